"""Sessions in one folder that end in the same moment: each keeps its snapshot, its context and its files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.hooks.fast.context import LIMITS
from holdfast.project.settings import load_settings
from holdfast.sessions.pause import open_store
from holdfast.store.protocol import Store
from holdfast.undo.transactions import SideCar
from hooks.harness import AgentSession, said
from soak import QUICK
from transcripts.claude_files import answered, called

MANY = 4 if QUICK else 8
_NOTES_OF_A_TURN = ("turning", "recording", "ending", "transaction")


def at_once(sessions: Sequence[AgentSession], act: Callable[[AgentSession], Any]) -> None:
    with ThreadPoolExecutor(len(sessions)) as pool:
        list(pool.map(act, sessions))


def work(session: AgentSession, tool: str) -> None:
    """A turn in which the agent writes one file of its own."""
    path = session.project / f"{session.session_id}.py"
    given = {"file_path": str(path), "content": "x = 1\n"}
    if tool == "Bash":
        given = {"command": f"echo 'x = 1' > {path.name}"}
    session.start()
    session.prompt(f"Write {path.name}")
    session.wait_for(lambda: not (session.notes / "turning").exists())
    session.fire("PreToolUse", tool_name=tool, tool_input=given, tool_use_id="t1")
    path.write_text("x = 1\n")
    session.fire("PostToolUse", tool_name=tool, tool_input=given, tool_use_id="t1", tool_response={})
    decided = f"We decided to keep {session.session_id} in a module because it is imported twice."
    session.write(
        said(f"Write {path.name}", "user"),
        called("t1", tool, **given),
        answered("t1", "done"),
        said(decided, "assistant", "m1", 50_000, "claude-sonnet-4-5"),
    )


def end(session: AgentSession) -> None:
    """The agent waits for its hooks, and exits."""
    session.fire("Stop")
    session.fire("SessionEnd", reason="other")
    os.kill(int(session.variables["CLAUDE_PID"]), signal.SIGKILL)


def over(session: AgentSession) -> bool:
    is_recorded = not any((session.notes / name).exists() for name in _NOTES_OF_A_TURN)
    return is_recorded and context_of(session).exists()


def name_of(session: AgentSession) -> str:
    note = session.notes / "settled"
    return note.read_text().split("\n")[0] if note.exists() else "none"


def context_of(session: AgentSession) -> Path:
    return session.sessions / f"{name_of(session)}.context-{LIMITS['claude-code']}.md"


@pytest.fixture
def sessions(session: AgentSession) -> Iterator[list[AgentSession]]:
    subprocess.run(["git", "init", "--quiet", session.project], check=True)
    forever = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
    agents = [subprocess.Popen(forever, stdin=subprocess.PIPE) for _ in range(MANY)]
    yield [
        AgentSession(
            session.project, session.home, session_id=f"agent-{n}", variables={"CLAUDE_PID": str(agent.pid)}
        )
        for n, agent in enumerate(agents)
    ]
    for agent in agents:
        agent.kill()
        agent.communicate()


@pytest.fixture
def store(session: AgentSession) -> Iterator[Store]:
    variables = {**session.environment, "HOLDFAST_PROJECT": str(session.project)}
    with open_store(load_settings(variables)) as opened:
        yield opened


@pytest.mark.some_of("tool")
@pytest.mark.parametrize("tool", ["Write", "Bash", "Edit"])
def test_each_keeps_its_snapshot_its_context_and_its_files(
    sessions: list[AgentSession], store: Store, tool: str
) -> None:
    at_once(sessions, lambda session: work(session, tool))
    at_once(sessions, end)
    for session in sessions:
        session.wait_for(lambda one=session: over(one))
    assert sessions[0].errors == ""
    assert not list(sessions[0].sessions.glob(".unindexed-*"))
    names = {name_of(session) for session in sessions}
    assert {path.stem for path in sessions[0].sessions.glob("session-*.json")} == names
    (workflow,) = store.workflows()
    stored = {one.session_id: one for one in store.snapshots(workflow.id)}
    assert sorted(one.session_number for one in stored.values()) == list(range(1, MANY + 1))
    for session in sessions:
        own = f"{session.session_id}.py"
        snapshot = store.snapshot(stored[name_of(session)].id)
        document = json.loads((session.sessions / f"{snapshot.session_id}.json").read_text())
        assert (document["id"], document["session_number"]) == (snapshot.id, snapshot.session_number)
        assert any(session.session_id in one.description for one in snapshot.decisions)
        assert own in context_of(session).read_text()
        assert recorded(session) == ("committed", [(own, "turn 1", "")])
    assert not list((sessions[0].project / ".holdfast" / "sidecar").glob("holdfast-ending-*"))


def recorded(session: AgentSession) -> tuple[str, list[tuple[str, str, str]]]:
    with SideCar(session.project) as sidecar:
        found = sidecar.transaction(f"claude-code-{session.session_id}")
    changes = [(change.path, one.description, one.doubt) for one in found.changes for change in one.changes]
    return found.status, changes
