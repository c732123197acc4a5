"""A wind-down whose process was killed: found, offered, and never lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .harness import CTRL_C, Place, on_terminal

ASKED = "Finalise (f), discard (d) or continue (c)? (f, d, c) [f]: "


def document(place: Place, name: str) -> dict[str, Any]:
    return json.loads((place.sessions / f"{name}.json").read_text(encoding="utf-8"))


def is_active(place: Place) -> str | None:
    summary = place.manager().get_pause_summary()
    return summary["session_id"] if summary else None


def was_finalised_after_a_crash(place: Place, name: str) -> bool:
    found = document(place, name)
    return (found["trigger"], found["pause_reason"], found["incremental_pause"]["action_count"]) == (
        *("crash", "its process ended without a pause"),
        3,  # started, one tool call, finalised
    )


def test_a_start_elsewhere_finalises_it_first(place: Place) -> None:
    orphan = place.orphaned()
    result = place.run("winddown", "start", "--percent", "0.5", "--json")
    assert (result.code, place.shown(result.err)) == (
        *(0,),
        "Recovered SESSION-1: PROJECT/.holdfast/sessions/SESSION-1.json\n",
    )
    assert was_finalised_after_a_crash(place, orphan)
    assert place.latest() == f"{orphan}\n"
    new = result.data["session_id"]
    assert new != orphan
    assert is_active(place) == new


@pytest.mark.parametrize("arguments", [["--percent", "90"], ["--percent", "0.9", "--state", '{"a": NaN}']])
def test_a_wrong_start_leaves_it_alone(place: Place, arguments: list[str]) -> None:
    place.orphaned()
    before = place.tree()
    result = place.run("winddown", "start", *arguments)
    assert (result.code, result.out) == (2, ""), result
    assert place.tree() == before


@pytest.mark.parametrize("asked", [("context", "latest"), ("threads",), ("resume",), ("context", "--json")])
def test_what_is_handed_over_without_it_says_so(place: Place, asked: tuple[str, ...]) -> None:
    """It was recorded last, and may say the opposite."""
    first = place.ok("winddown", "start", "--percent", "0.9").out.split()[2]
    place.ok("winddown", "append", "user_message", "--data", '{"text": "port 5433"}', "--percent", "0.91")
    place.ok("winddown", "finalize")
    orphan = place.orphaned()
    result = place.run(*asked)
    assert result.code == 0
    assert first in result.out or "5433" in result.out
    assert (
        f"warning: the wind-down {orphan} (2 actions) was left behind by a process that ended, and is not"
        in (result.err)
    )
    assert place.run("winddown", "recover").code == 0
    assert "left behind" not in place.run(*asked).err


def test_where_it_is_all_there_is_it_is_named_beside_the_error(place: Place) -> None:
    place.orphaned()
    result = place.run("context", "latest")
    assert result.code != 0
    assert "`holdfast winddown recover` adds it" in result.err


def test_the_terminal_shows_what_was_found(place: Place) -> None:
    place.orphaned()
    code, shown = on_terminal(place, ["winddown", "start", "--percent", "0.5"], (ASKED, "f\n"))
    assert code == 0
    assert place.shown(shown) == (
        "Found an unfinished wind-down: SESSION-1\n"
        "  2 actions, started WHEN\n"
        f"{ASKED}f\n"
        "Recovered SESSION-1: PROJECT/.holdfast/sessions/SESSION-1.json\n"
        "Wind-down started: SESSION-2\n"
        "Record with: holdfast winddown append TYPE --data JSON --percent P\n"
    )


@pytest.mark.parametrize("command", [["winddown", "start", "--percent", "0.5"], ["winddown", "recover"]])
@pytest.mark.parametrize("answer", ["f", "d", "c"])
def test_each_answer(place: Place, command: list[str], answer: str) -> None:
    orphan = place.orphaned()
    code, shown = on_terminal(place, command, (ASKED, f"{answer}\n"))
    assert code == 0, shown
    assert (place.sessions / f"{orphan}.json").exists() == (answer == "f")
    active = is_active(place)
    if answer == "c":
        assert active == orphan
        assert not place.manager().is_orphaned()
        assert len(place.manager().get_recorded_actions()) == 2
    elif command[1] == "start":
        assert active is not None
        assert len(place.manager().get_recorded_actions()) == 1
    else:
        assert active is None
    if answer == "d":
        assert not list(place.sessions.glob("session-*"))


@pytest.mark.parametrize("key", [CTRL_C, "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_no_answer_changes_nothing(place: Place, key: str) -> None:
    place.orphaned()
    before = place.tree()
    code, shown = on_terminal(place, ["winddown", "start", "--percent", "0.5"], (ASKED, key))
    assert code == 130
    assert shown.endswith("\nerror: interrupted\n")
    assert place.tree() == before


def test_another_answer_is_asked_again(place: Place) -> None:
    orphan = place.orphaned()
    code, shown = on_terminal(place, ["winddown", "recover"], (ASKED, "x\n"), (ASKED, "c\n"))
    assert code == 0
    assert "'x' is not one of" in shown
    assert shown.endswith(f"Continuing {orphan}.\n")


def test_recover_by_finalising(place: Place) -> None:
    orphan = place.orphaned()
    result = place.run("winddown", "recover", "--finalize", "--json")
    assert (result.code, result.data) == (0, {"recovered": orphan, "how": "finalize"})
    assert place.shown(result.err) == "Recovered SESSION-1: PROJECT/.holdfast/sessions/SESSION-1.json\n"
    assert was_finalised_after_a_crash(place, orphan)
    assert is_active(place) is None


def test_recover_by_discarding(place: Place) -> None:
    orphan = place.orphaned()
    result = place.run("winddown", "recover", "--discard")
    assert (result.code, result.out, result.err) == (0, "", f"Discarded {orphan}.\n")
    assert place.session_files() == [".lock"]


def test_recover_by_going_on(place: Place) -> None:
    orphan = place.orphaned()
    assert place.ok("winddown", "recover", "--continue").out == f"Continuing {orphan}.\n"
    place.ok("winddown", "append", "tool_call", "--percent", "0.95")
    assert [action.context_percentage for action in place.manager().get_recorded_actions()] == [
        0.9,
        0.91,
        0.95,
    ]
    assert not place.manager().is_orphaned()
    place.run("winddown", "start", "--percent", "0.9").failed(3, error=f"already active: {orphan}")


def test_recover_elsewhere_finalises(place: Place) -> None:
    orphan = place.orphaned()
    assert place.run("winddown", "recover").code == 0
    assert was_finalised_after_a_crash(place, orphan)


@pytest.mark.parametrize("flag", [[], ["--finalize"], ["--discard"], ["--continue"]])
def test_nothing_to_recover(place: Place, flag: list[str]) -> None:
    before = place.tree()
    assert place.ok("winddown", "recover", *flag).out == "Nothing to recover.\n"
    assert place.tree() == before


def test_summary_tells(place: Place) -> None:
    place.orphaned()
    assert place.shown(place.ok("winddown", "summary").out).startswith(
        "Session:  SESSION-1  (abandoned by a dead process)\n"
    )


def test_appending_needs_no_owner(place: Place) -> None:
    place.orphaned()
    place.ok("winddown", "append", "tool_call", "--percent", "0.95")
    assert len(place.manager().get_recorded_actions()) == 3


@pytest.mark.parametrize(("answer", "kept"), [("y\n", False), ("n\n", True), (CTRL_C, True)])
def test_discard_asks_on_a_terminal(place: Place, answer: str, kept: bool) -> None:
    name = place.started("tool_call")
    code, shown = on_terminal(place, ["winddown", "discard"], ("Discard 2 recorded actions? [y/N]: ", answer))
    assert (code == 0, place.journal.exists()) == (not kept, kept), shown
    assert (f"Discarded: {name}" in shown) == (not kept)


def test_discard_does_not_ask_when_told_so(place: Place) -> None:
    name = place.started()
    assert on_terminal(place, ["winddown", "discard", "--yes"]) == (0, f"Discarded: {name}\n")
