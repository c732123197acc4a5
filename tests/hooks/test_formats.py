"""Names and formats that hooks share with the rest: one definition, and `hook.sh` says the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.hooks.events import WRAPPER
from holdfast.hooks.fast.event import MOMENTS
from holdfast.hooks.nudges import EDITING_TOOLS
from holdfast.journal.log import PauseAction
from holdfast.journal.usage import ContextUsageTracker, UsageState, parse_state
from holdfast.project import formats
from hooks.harness import AgentSession

SCRIPT = Path(WRAPPER).read_text()


def test_the_shell_knows_the_folders() -> None:
    assert set(re.findall(r"\$project/(\.holdfast[a-z/]*)", SCRIPT)) == {
        formats.FOLDER,
        f"{formats.FOLDER}/{formats.STATE}",
        f"{formats.FOLDER}/{formats.STATE}/{formats.HOOKS}",
    }


def test_the_shell_knows_the_notes() -> None:
    known = {
        formats.WHO,
        formats.WINDING,
        formats.FULL,
        formats.NOTICE_DUE,
        formats.GAUGE,
        formats.TURNING,
        formats.RECORDING,
        formats.NAMED,
        formats.EDIT_GATE,
        formats.COMPACTED,
        formats.INDEX_SEEN,
    }
    session = r"(?:\$session|\$CLAUDE_CODE_SESSION_ID|\*)"
    assert set(re.findall(rf'\$notes"?/{session}/([a-z-]+)', SCRIPT)) == known


def test_the_shell_knows_the_editing_tools() -> None:
    assert " | ".join(EDITING_TOOLS) + ")" in {line.strip() for line in SCRIPT.splitlines()}


@pytest.mark.parametrize(
    ("variable", "moments"), [("before", {"before_tool"}), ("after", {"after_tool", "batch"})]
)
def test_the_shell_knows_the_tool_events(variable: str, moments: set[str]) -> None:
    listed = re.search(rf"^(.+)\) moment={variable} ;;$", SCRIPT, re.MULTILINE)
    assert listed
    known = {name for names in MOMENTS.values() for name, moment in names.items() if moment in moments}
    assert set(listed[1].split(" | ")) == known


def test_both_writers_of_usage_write_the_same_document(session: AgentSession) -> None:
    session.use(20_000)
    session.prompt()
    path = session.state / formats.usage_file(session.session_id)
    by_hook = json.loads(path.read_bytes())
    ContextUsageTracker(session.project, session_id=session.session_id).update_usage(
        1, report="cumulative", model=by_hook["model"]
    )
    by_tracker = json.loads(path.read_bytes())
    assert list(by_hook) == list(by_tracker) == [field.name for field in fields(UsageState) if field.compare]
    assert parse_state(json.dumps(by_hook).encode()).total_tokens == 20_000


def test_a_line_of_the_journal_is_the_action_it_stands_for() -> None:
    action = PauseAction("tool_call", "2026-01-06T12:00:00Z", "session-x", {"tool": "Édit"}, 0.9)
    data = json.dumps(action.data, ensure_ascii=False).encode()
    line = formats.journal_line(action.type, action.timestamp, action.session_id, data, 0.9)
    assert line.decode() == action.to_json_line() + "\n"
    assert formats.journal_session(line) == "session-x"
    assert formats.journal_session(b'{"type": "x", "session_id": "cut') is None


def test_who_is_read_as_it_was_written() -> None:
    data = formats.render_who("claude-code", "s-1", "/tmp/\udcff.jsonl", 42, "")
    assert formats.parse_who(data) == ("claude-code", "s-1", "/tmp/\udcff.jsonl", "42", "")
    assert formats.process_in_who(data) == (42, None)
    assert formats.parse_who(data.replace(b"claude-code", b"claude")) == formats.parse_who(
        data
    )  # as it was once
    assert formats.parse_who(b"claude\ns-1") is None
    assert formats.process_in_who(b"a\nb\nc\nno number\nd") is None


@pytest.mark.parametrize("data", [None, b"", b"1 2", b"1 2 x", b"\xff"])
def test_a_damaged_usage_note_counts_as_none(data: bytes | None) -> None:
    assert formats.parse_usage_note(data) is None


def test_the_definitions_load_nothing_else() -> None:
    """But `os`, which every program needs."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules)\n"
        "import holdfast.project.formats; print(*sorted(set(sys.modules) - before))"
    )
    source = Path(WRAPPER).parents[2]
    command = [sys.executable, "-I", "-S", "-c", code, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["holdfast", "holdfast.project", "holdfast.project.formats"]
