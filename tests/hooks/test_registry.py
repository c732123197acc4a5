"""The tables against the files, the documents and each other; and what a hook may load."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast.hooks
from holdfast.base import redact, secret_signs
from holdfast.hooks.command import ENTRY, WRAPPER, hook_command
from holdfast.hooks.event import MOMENTS
from holdfast.hooks.events import EVENTS
from holdfast.hooks.registry import KINDS
from hooks.harness import AgentSession

HERE = Path(holdfast.hooks.__file__).parent
KIND_OF = {"housekeeping": "housekeeping", "guards": "guard", "nudges": "nudge"}
BESIDES = {"__init__", "targets"}


@pytest.mark.parametrize("folder", KINDS)
def test_every_file_is_in_the_table_with_its_kind(folder: str) -> None:
    assert {path.stem for path in (HERE / folder).glob("*.py")} - BESIDES == set(KINDS[folder])
    for name in KINDS[folder]:
        module: Any = importlib.import_module(f"holdfast.hooks.{folder}.{name}")
        assert KIND_OF[folder] == module.KIND
        assert callable(getattr(module, "run" if folder == "housekeeping" else "check"))


def test_installed_and_understood_events_are_the_same() -> None:
    assert {agent: {event.name for event in events} for agent, events in EVENTS.items()} == {
        agent: set(moments) for agent, moments in MOMENTS.items()
    }


def test_moments_in_the_table_exist() -> None:
    known = {moment for moments in MOMENTS.values() for moment in moments.values()}
    assert {moment for table in KINDS.values() for moments in table.values() for moment in moments} <= known


def test_only_the_dispatcher_and_the_status_line_know_of_quiet() -> None:
    files = [path for folder in KINDS for path in (HERE / folder).glob("*.py")]
    knowing = {path.stem for path in files if "quiet" in path.read_text()}
    assert knowing <= {"status_line", "stale_markers"}


def test_the_command_is_absolute() -> None:
    for event, script in (("PreToolUse", WRAPPER), ("Stop", ENTRY)):
        command = hook_command("claude", event)
        assert {sys.executable, script} < set(command)
        for word in (command[0], sys.executable, script):
            assert Path(word).is_absolute()
            assert Path(word).exists()


def test_hooks_that_are_left_behind_when_the_program_goes_block_nothing() -> None:
    """Python and dash end with 2 where a script is missing, which agents take for a block."""
    for event in ("PreToolUse", "UserPromptSubmit"):
        command = [word.replace(str(HERE), "/gone") for word in hook_command("claude", event)]
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


def test_signs_of_secrets_are_those_of_the_redactor() -> None:
    for form in redact._FORMS:
        assert any(sign in form.sign for sign in secret_signs.SIGNS), form.sign


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
        "from holdfast.hooks.program import run\n"
        "code = run(sys.argv[1:])\n"
        "import json; sys.stderr.write(json.dumps(sorted(loaded)))"
    ).replace("import json;", "loaded = set(sys.modules); import json;")
    payload = session.payload(event, prompt="x", tool_name="Bash", tool_input={"command": "make all"})
    command = [sys.executable, "-I", "-S", "-c", code, str(HERE.parents[1]), "claude", event]
    done = subprocess.run(
        command, input=payload, capture_output=True, env=session.environment, cwd=session.project, check=True
    )
    assert set(json.loads(done.stderr)) & HEAVY == set()
    assert session.errors == ""
