"""Whatever is broken, the agent goes on: exit 0, nothing on stderr, and a line in the log where one fits."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.hooks.events import ENTRY, EVENTS, WRAPPER, hook_command
from holdfast.hooks.fast.error_log import note
from holdfast.project.layout import ProjectLayout
from hooks.harness import PATIENCE, AgentSession, Result, quick


def silent(result: Result) -> bool:
    return result.code == 0 and result.err == "" and "Traceback" not in result.out


WAITING = ("PreCompact", "session.compacting")
"""Wait for a snapshot; tested where one can be made."""
ALL = [
    (agent, event.name) for agent, events in EVENTS.items() for event in events if event.name not in WAITING
]


@pytest.mark.some_of("payload", number=2)
@pytest.mark.parametrize(("agent", "event"), ALL)
@pytest.mark.parametrize(
    "payload", [b"", b"not json", b'{"session_id": 5}', b'{"tool_input": "x", "cwd": 1}']
)
def test_odd_payloads(session: AgentSession, agent: str, event: str, payload: bytes) -> None:
    session.agent = agent
    session.variables["HOLDFAST_PROJECT"] = str(session.project)
    assert silent(session.run(quick([sys.executable, "-I", "-S", ENTRY, agent, event]), payload))


def test_unknown_agents_events_and_words(session: AgentSession) -> None:
    for words in (["claude-code", "NewEvent"], ["other", "Stop"]):
        assert silent(session.run([*hook_command(*words)], b"{}"))


@pytest.mark.parametrize(
    "event", ["UserPromptSubmit", "PostToolUse", "SessionStart", "SessionEnd", "statusLine"]
)
def test_a_project_that_cannot_be_written(session: AgentSession, event: str) -> None:
    (session.project / ".holdfast").write_text("a file is in the way")
    session.use(190_000)
    assert silent(
        session.fire(event, source="startup", prompt="x", tool_name="Bash", tool_input={"command": "ls"})
    )


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "PreToolUse"])
def test_a_full_disk(session: AgentSession, event: str) -> None:
    """As a limit on the size of files, which every write runs into."""
    session.start()
    session.use(190_000)
    done = subprocess.run(
        hook_command("claude-code", event),
        input=session.payload(event, prompt="x", tool_name="Bash", tool_input={"command": "make all"}),
        capture_output=True,
        env=session.environment,
        cwd=session.project,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        check=False,
    )
    assert silent(Result(done.returncode, done.stdout.decode(), done.stderr.decode()))


@pytest.mark.some_of("damage")
@pytest.mark.parametrize("name", ["who", "usage", "gauge", "prompts", "told", "winding", "model", "settled"])
@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\x00", b"-1 -1 -1", b"x" * 5000])
def test_damaged_notes(session: AgentSession, name: str, damage: bytes) -> None:
    session.use(100_000)
    session.prompt()
    (session.notes / name).write_bytes(damage)
    for result in (session.prompt(), session.after_tool(), session.before_tool(), session.fire("Stop")):
        assert silent(result)


def test_a_damaged_settings_file_leaves_the_defaults(session: AgentSession) -> None:
    ProjectLayout(session.project).ensure()
    (session.project / ".holdfast" / "config.toml").write_text("levels = [")
    session.use(182_000)
    assert "91% full" in session.after_tool().context
    assert "settings cannot be read" in session.errors


def test_the_program_is_gone(session: AgentSession) -> None:
    command = ["/bin/sh", WRAPPER, "/nowhere/python", "claude-code", "PreToolUse"]
    assert silent(session.run(command, session.payload("PreToolUse")))


def test_a_payload_that_never_ends_is_given_up(session: AgentSession) -> None:
    code = "import holdfast.hooks.fast.dispatch as p; p._LONGEST = 1; p.run(['claude-code', 'Stop'])"
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdin=reading,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            cwd=session.project,
            env={**session.environment, "PYTHONPATH": str(Path(WRAPPER).parents[2])},
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert silent(Result(done.returncode, done.stdout.decode(), done.stderr.decode()))


def test_the_log_is_bounded(tmp_path: Path) -> None:
    for _ in range(400):
        note(str(tmp_path), "x" * 2_000)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2 * 300_000


def test_an_unknown_agent_or_event_is_reported_by_doctor(session: AgentSession) -> None:
    session.start()
    hook = [sys.executable, "-I", "-S", ENTRY]
    for agent, event in (
        ("claude-code", "Stop"),
        ("claude-code", "Brandnew"),
        ("aider", "Stop"),
        ("aider", "Stop"),
    ):
        result = session.run([*hook, agent, event], session.payload(event))
        assert (result.code, result.out, result.err) == (0, "", "")
    told = session.holdfast("doctor").out
    assert "hooks: unknown to this version: claude-code Brandnew, aider Stop\n" in told


def test_hooks_that_all_have_wrong_names_are_reported_by_doctor(session: AgentSession) -> None:
    """No event has made the project's folder then, and the hook runs in another one than the session."""
    hook = [sys.executable, "-I", "-S", ENTRY]
    payload = session.payload("Stopp").replace(str(session.project).encode(), str(session.home).encode())
    assert session.run([*hook, "claude-code", "Stopp"], payload).code == 0
    assert not (session.project / ".holdfast").exists()
    assert "hooks: unknown to this version: claude-code Stopp\n" in session.holdfast("doctor").out
