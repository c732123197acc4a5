"""The journal from outside: many shells at once, and what a crash left in it."""

from __future__ import annotations

from collections import Counter

import pytest

from fork_server import start_script
from soak import QUICK

from .harness import PATIENCE, Place, start_program

SHELL = """
import os, sys
import holdfast.cli.winddown, holdfast.sessions.pause
from holdfast.cli.main import run
shell, many = sys.argv[1:]
for number in range(int(many)):
    child = os.fork()  # a process for each command, without its start
    if child == 0:
        data = '{"shell": %s, "number": %d, "text": "%s"}' % (shell, number, "x" * 5000)
        code = run(["winddown", "append", "tool_call", "--data", data, "--percent", "0.95"])
        os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(1)
"""


def test_eight_shells_append_at_once(place: Place) -> None:
    place.started()
    (script := place.root / "shell.py").write_text(SHELL)
    many = 8 if QUICK else 20
    shells = [
        start_script(str(script), shell, many, cwd=place.project, env=place.environment) for shell in range(8)
    ]
    assert [shell.wait(PATIENCE) for shell in shells] == [0] * 8
    assert place.json("winddown", "summary")["action_count"] == 1 + 8 * many
    actions = [action.data for action in place.manager().get_recorded_actions()[1:]]
    assert Counter((data["shell"], data["number"]) for data in actions) == Counter(
        (shell, number) for shell in range(8) for number in range(many)
    )
    for shell in range(8):  # each shell's own are in its order
        assert [data["number"] for data in actions if data["shell"] == shell] == list(range(many))


@pytest.mark.parametrize(("command", "refused"), [(["start", "--percent", "0.9"], 3), (["finalize"], 1)])
def test_of_several_at_once_one_wins(place: Place, command: list[str], refused: int) -> None:
    if command[0] == "finalize":
        place.started("tool_call")
    runs = [
        start_program(["winddown", *command], cwd=place.project, env=place.environment, text=True)
        for _ in range(3)
    ]
    told = [run.communicate(timeout=PATIENCE) for run in runs]
    assert sorted(run.returncode for run in runs) == [0, refused, refused], told
    assert all(err.startswith("error: ") for (_, err), run in zip(told, runs, strict=True) if run.returncode)
    if command[0] == "finalize":
        assert len(list(place.sessions.glob("session-*.json"))) == 1
    else:
        assert len(place.manager().get_recorded_actions()) == 1


FRAGMENT = b'{"type": "tool_call", "timestamp": "2026-01-'


@pytest.fixture
def torn(place: Place) -> Place:
    """A writer died in the middle of its second action."""
    place.started("tool_call")
    with place.journal.open("ab") as journal:
        journal.write(FRAGMENT)
    return place


def is_kept(place: Place) -> bool:
    return any(FRAGMENT in path.read_bytes() for path in place.sessions.iterdir())


def test_summary_of_a_torn_journal(torn: Place) -> None:
    before = torn.tree()
    result = torn.run("winddown", "summary")
    assert (result.code, result.lines[1]) == (0, "Actions:  2, the last a tool_call")
    assert torn.tree() == before


def test_append_to_a_torn_journal(torn: Place) -> None:
    result = torn.run("winddown", "append", "user_message", "--percent", "0.92")
    assert (result.code, result.out, result.err) == (
        *(0, ""),
        f"warning: a truncated line of {len(FRAGMENT)} bytes at the end of ACTIVE-PAUSE.jsonl "
        "was moved to ACTIVE-PAUSE.torn\n",
    )
    assert [action.type for action in torn.manager().get_recorded_actions()] == [
        *("pause_started", "tool_call", "user_message")
    ]
    assert is_kept(torn)
    assert torn.run("winddown", "append", "user_message", "--percent", "0.92").err == ""


def test_finalise_a_torn_journal(torn: Place) -> None:
    result = torn.run("winddown", "finalize", "--json")
    assert (result.code, result.err) == (
        0,
        "warning: ACTIVE-PAUSE.jsonl: line 3 is damaged and was skipped\n",
    )
    assert is_kept(torn)
    shown = torn.json("snapshot", "show", "latest")["incremental_pause"]
    assert (shown["action_count"], shown["skipped_lines"]) == (3, 1)
    stats = torn.run("stats")
    assert (stats.code, stats.lines[:2]) == (0, ["3 actions in 1 wind-downs", "1 damaged lines skipped"])


def test_a_line_that_only_lacks_its_end(place: Place) -> None:
    place.started("tool_call")
    place.journal.write_bytes(place.journal.read_bytes().removesuffix(b"\n"))
    place.ok("winddown", "append", "user_message", "--percent", "0.92")
    assert len(place.manager().get_recorded_actions()) == 3
