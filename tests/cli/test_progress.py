"""Long work says on a terminal how far it is, in one line that is gone when it is done (P3)."""

from __future__ import annotations

import json
import re

from .harness import Place, on_terminal

NOON = 1_767_700_800.0
MANY = 100
CLEARED = "\r\x1b[K"


def with_many_sessions(place: Place) -> None:
    first = json.loads((place.sessions / f"{place.paused('tool_call', at=NOON)}.json").read_text())
    for number in range(1, MANY):
        name = f"session-20260106-13{number // 60:02}{number % 60:02}"
        copy = {**first, "session_id": name, "id": f"{first['id'][:-2]}{number:02}"}
        (place.sessions / f"{name}.json").write_text(json.dumps(copy))


def shares(shown: str, doing: str) -> list[int]:
    """Each of them was written over the last, and over the last of them nothing."""
    found = re.findall(rf"\r\x1b\[K{doing}: +(\d+)%(?=\r\x1b\[K)", shown)
    assert len(found) == shown.count(f"{doing}:")
    return [int(share) for share in found]


def test_sessions_that_are_exported_imported_and_read_again(place: Place) -> None:
    with_many_sessions(place)
    other, bundle = place.beside("other"), str(place.root / "work.holdfast")
    code, shown = on_terminal(place, ["export", bundle])
    assert (code, shares(shown, "Reading sessions")) == (0, list(range(101)))
    assert f"{CLEARED}Exported 100 sessions" in shown
    code, shown = on_terminal(other, ["import", bundle])
    assert (code, shares(shown, "Writing sessions")) == (0, list(range(101)))
    assert shares(shown, "Adding sessions") == list(range(101))
    code, shown = on_terminal(other, ["reindex", str(other.project)])
    assert (code, shares(shown, "Reading sessions")[-1]) == (0, 100)
    assert "%" not in on_terminal(other, ["reindex", "--json"])[1]
    assert "%" not in other.ok("reindex").err


def test_code_that_is_audited(place: Place) -> None:
    for number in range(MANY):
        (place.project / f"a{number}.py").write_text("def f(x):\n    return x\n")
    for command, answers in {"audit": [("?:", "q")], "plan": []}.items():
        code, shown = on_terminal(place, ["docs", command, "."], *answers)
        assert (code, shares(shown, "Reading code")) == (0, list(range(1, 101)))
    assert "%" not in on_terminal(place, ["docs", "audit", ".", "--json"])[1].partition("{")[0]


def test_quick_work_says_nothing(place: Place) -> None:
    place.paused("tool_call", at=NOON)
    (place.project / "a.py").write_text("def f(x):\n    return x\n")
    bundle = str(place.root / "work.holdfast")
    for line in (["export", bundle], ["import", bundle], ["reindex"], ["docs", "plan", "."]):
        code, shown = on_terminal(place, line)
        assert (code, "%" in shown, "\r" in shown) == (0, False, False), shown
