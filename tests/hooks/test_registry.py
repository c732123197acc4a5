"""The tables against the files, the documents and each other; and what a hook may load."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import holdfast.hooks
from holdfast import transcripts
from holdfast.hooks.events import ENTRY, EVENTS, WRAPPER, hook_command
from holdfast.hooks.fast.context import LIMITS
from holdfast.hooks.fast.dispatch import KINDS
from holdfast.hooks.fast.event import MOMENTS
from holdfast.model.thresholds import COMPACTION
from holdfast.project.formats import AGENTS, OLD_NAMES
from holdfast.workflows.drivers import DRIVERS
from hooks.harness import AgentSession

HERE = Path(holdfast.hooks.__file__).parent


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_is_in_the_table(kind: str) -> None:
    module: Any = importlib.import_module(f"holdfast.hooks.{kind}")
    functions = [value for value in vars(module).values() if inspect.isfunction(value)]
    rules = [one for one in functions if one.__module__ == module.__name__ and _is_rule(one)]
    assert {rule.__name__ for rule in rules} == set(KINDS[kind])
    assert all(rule.__doc__ for rule in rules)


def _is_rule(function: Any) -> bool:
    names = list(inspect.signature(function).parameters)
    return not function.__name__.startswith("_") and names in (["event"], ["event", "answer"])


def test_installed_and_understood_events_are_the_same() -> None:
    assert {agent: {event.name for event in events} for agent, events in EVENTS.items()} == {
        agent: set(moments) for agent, moments in MOMENTS.items()
    }


def test_moments_in_the_table_exist() -> None:
    known = {moment for moments in MOMENTS.values() for moment in moments.values()}
    assert {moment for table in KINDS.values() for moments in table.values() for moment in moments} <= known


def test_only_the_dispatcher_and_the_status_line_know_of_quiet() -> None:
    for kind in KINDS:
        module: Any = importlib.import_module(f"holdfast.hooks.{kind}")
        knowing = {name for name in KINDS[kind] if "quiet" in inspect.getsource(getattr(module, name))}
        assert knowing <= {"status_line", "stale_markers"}


def test_an_agent_has_one_name() -> None:
    """In plans, settings, hooks, records and JSON; the old ones are understood, and stand nowhere else."""
    tables: tuple[Collection[str], ...] = (MOMENTS, EVENTS, LIMITS, transcripts.AGENTS[:-1])
    assert [sorted(table) for table in tables] == [sorted(AGENTS)] * len(tables)
    assert set(AGENTS) <= set(DRIVERS)
    assert {row[0] for row in COMPACTION} == set(AGENTS)
    assert set(OLD_NAMES.values()) <= set(AGENTS)


@pytest.mark.parametrize("old", OLD_NAMES)
def test_hooks_that_an_earlier_version_installed_work(session: AgentSession, old: str) -> None:
    session.agent = OLD_NAMES[old]
    event = {"gemini": "BeforeTool"}.get(session.agent, "PreToolUse")
    command = [old if word == session.agent else word for word in hook_command(session.agent, event)]
    assert old in command
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "rm -rf /"}}
    assert session.run(command, session.payload(event, **call)).refusal
    assert (session.notes / "who").read_text().startswith(f"{session.agent}\n")


def test_the_command_is_absolute() -> None:
    for event, script in (("PreToolUse", WRAPPER), ("Stop", ENTRY)):
        command = hook_command("claude-code", event)
        assert {sys.executable, script} < set(command)
        for word in (command[0], sys.executable, script):
            assert Path(word).is_absolute()
            assert Path(word).exists()


def test_hooks_that_are_left_behind_when_the_program_goes_block_nothing() -> None:
    """Python and dash end with 2 where a script is missing, which agents take for a block."""
    for event in ("PreToolUse", "UserPromptSubmit"):
        command = [word.replace(str(HERE), "/gone") for word in hook_command("claude-code", event)]
        ended = subprocess.run(command, input=b"{}", capture_output=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_the_table_in_the_documents_is_current() -> None:
    path = Path(__file__).parents[2] / "scripts" / "hook_table.py"
    spec = importlib.util.spec_from_file_location("hook_table", path)
    assert spec
    assert spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.PAGE.read_text()
    assert page == module.with_table(page), "run scripts/hook_table.py"


HEAVY = {
    "json",
    "re",
    "pathlib",
    "dataclasses",
    "datetime",
    "typing",
    "collections",
    "contextlib",
    "logging",
    "enum",
}


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "PreToolUse", "Stop", "statusLine"])
@pytest.mark.parametrize("tokens", [20_000, 185_000])
def test_an_event_loads_little(session: AgentSession, event: str, tokens: int) -> None:
    """Once a session is under way, journaling or not."""
    session.use(tokens)
    session.prompt()
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1))\n"
        "from holdfast.hooks.fast.dispatch import run\n"
        "code = run(sys.argv[1:])\n"
        "import json; sys.stderr.write(json.dumps(sorted(loaded)))"
    ).replace("import json;", "loaded = set(sys.modules); import json;")
    payload = session.payload(event, prompt="x", tool_name="Bash", tool_input={"command": "make all"})
    command = [sys.executable, "-I", "-S", "-c", code, str(HERE.parents[1]), "claude-code", event]
    done = subprocess.run(
        command, input=payload, capture_output=True, env=session.environment, cwd=session.project, check=True
    )
    assert set(json.loads(done.stderr)) & HEAVY == set()
    assert session.errors == ""
