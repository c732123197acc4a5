"""`holdfast docs audit` as its users see it: on a terminal, broken off, resumed, for machines (E3 to E5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .harness import Place
from .terminal import Terminal

PROMPT = "Rating 1-4, s, u, c, q or ?:"
SHOP = '''class Shop:
    """Sells things."""

    def open(self):
        return True

    def sell(self, thing):
        if thing:
            return 1
        return 0
'''
APP = """export function start(port) {
  return port;
}
"""
ITEMS = ["start", "Shop", "Shop.open", "Shop.sell"]


@pytest.fixture
def shop(place: Place) -> Place:
    source = place.project / "src"
    source.mkdir()
    (source / "shop.py").write_text(SHOP)
    (source / "app.ts").write_text(APP)
    return place


def audit(place: Place, *options: str) -> Terminal:
    return Terminal(place, "docs", "audit", "src", *options)


def stored(place: Place) -> list[dict[str, Any]]:
    files = sorted(place.sessions.glob("audit-session-*.json"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_bytes()) for path in files]


def ratings(place: Place) -> dict[str, int | None]:
    """Of the only session."""
    [state] = stored(place)
    return {name: value for rated in state["partial_ratings"].values() for name, value in rated.items()}


def test_every_item_is_shown_with_its_code_and_rated(shop: Place) -> None:
    with audit(shop) as terminal:
        assert "no documentation" in terminal.wait(PROMPT)
        terminal.type("1")
        shown = terminal.wait(PROMPT)
        assert "2/4" in shown
        assert "class Shop  src/shop.py:1" in shown
        assert "Sells things." in shown
        assert '2     """Sells things."""' in shown
        terminal.type("4")
        terminal.answer(PROMPT, "s")
        terminal.answer(PROMPT, "2")
        assert terminal.end() == 0
        assert "4 items, 1 documented (25 %)\n3 rated, 2.3 on average, 1 skipped" in terminal.shown
        assert "Next: holdfast docs plan src" in terminal.shown
    assert ratings(shop) == {"start": 1, "Shop": 4, "Shop.open": None, "Shop.sell": 2}
    [state] = stored(shop)
    assert (state["current_index"], state["total_items"]) == (4, 4)
    assert state["completed_at"] is not None


def test_help_undo_all_of_the_code_and_quitting(shop: Place) -> None:
    (shop.project / "src" / "shop.py").write_text(SHOP + "        # more\n" * 30 + "        return 2\n")
    with audit(shop) as terminal:
        terminal.answer(PROMPT, "u")
        assert "no rating to undo" in terminal.wait(PROMPT)
        terminal.type("?")
        assert "excellent" in terminal.wait(PROMPT)
        terminal.type("3")
        terminal.answer(PROMPT, "u")
        assert "Undid the rating of start." in terminal.wait(PROMPT)
        terminal.type("4")
        assert "more lines; press c to show all" in terminal.wait(PROMPT)
        terminal.type("c")
        assert "return 2" in terminal.wait(PROMPT)
        terminal.type("\x1b[A")  # an arrow means nothing
        assert "this help" in terminal.wait(PROMPT)
        terminal.type("q")
        assert terminal.end() == 0
        assert "Saved: 1/4 rated. Continue with: holdfast docs audit src --resume" in terminal.shown
    assert ratings(shop) == {"start": 4}


@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_broken_off_at_every_prompt_nothing_is_lost(shop: Place, how: str) -> None:
    """The question whether to resume is a prompt too."""

    def broken_off(terminal: Terminal) -> None:
        assert getattr(terminal, how)() == (130 if how == "interrupt" else -9)

    with audit(shop) as terminal:
        terminal.wait(PROMPT)
        broken_off(terminal)
    for done, name in enumerate(ITEMS):
        with audit(shop) as terminal:
            terminal.wait(f"({done}/4 rated, started ")
            terminal.wait("Resume? [Y/n]")
            broken_off(terminal)
        assert list(ratings(shop)) == ITEMS[:done]
        with audit(shop) as terminal:
            terminal.answer("Resume? [Y/n]", "y")
            assert f" {done + 1}/4 " in terminal.wait(PROMPT)
            terminal.type(str(done + 1))
            if name != ITEMS[-1]:
                terminal.wait(PROMPT)
                broken_off(terminal)
                assert ("Continue with: holdfast docs audit src" in terminal.shown) == (how == "interrupt")
            else:
                assert terminal.end() == 0
    assert ratings(shop) == {"start": 1, "Shop": 2, "Shop.open": 3, "Shop.sell": 4}


def rated_once(place: Place, keys: str = "3332") -> str:
    """A session with so many ratings; its id."""
    with audit(place, "--new") as terminal:
        for key in keys:
            terminal.answer(PROMPT, key)
        if len(keys) < len(ITEMS):
            terminal.answer(PROMPT, "q")
        assert terminal.end() == 0
    return stored(place)[-1]["session_id"]


def test_a_found_session_can_be_declined(shop: Place) -> None:
    first = rated_once(shop, "33")
    with audit(shop) as terminal:
        terminal.answer("Resume? [Y/n]", "n")
        assert "1/4" in terminal.wait(PROMPT)
        terminal.type("q")
        assert terminal.end() == 0
    assert {state["session_id"] for state in stored(shop)} > {first}


def test_changed_files_lose_their_ratings_and_deleted_ones_drop_out(shop: Place) -> None:
    extra = shop.project / "src" / "extra.py"
    extra.write_text("def gone():\n    pass\n")
    with audit(shop) as terminal:
        for _ in range(4):
            terminal.answer(PROMPT, "3")
        terminal.answer(PROMPT, "q")
        terminal.end()
    extra.unlink()
    (shop.project / "src" / "shop.py").write_text(SHOP.replace("Sells things", "Sells all things"))
    (shop.project / "src" / "app.ts").touch()
    with audit(shop, "--resume") as terminal:
        shown = terminal.wait(PROMPT)
        assert "1 file (src/shop.py) changed since and was analysed again" in shown
        assert "1 file (src/extra.py) was deleted" in shown
        assert "3 ratings no longer valid" in shown
        assert "2/4" in shown
        terminal.type("q")
        terminal.end()
    assert ratings(shop) == {"start": 3}


def test_resume_by_the_beginning_of_an_id(shop: Place) -> None:
    first = rated_once(shop, "33")
    rated_once(shop, "1")
    with audit(shop, "--resume", first[:8]) as terminal:
        assert "3/4" in terminal.wait(PROMPT)
        terminal.type("q")
        assert terminal.end() == 0


def failed(terminal: Terminal) -> tuple[int, str]:
    return terminal.end(), " ".join(terminal.shown.split())


def test_a_damaged_session_is_kept_and_told_with_what_helps(shop: Place) -> None:
    name = rated_once(shop, "33")
    path = shop.sessions / f"audit-session-{name}.json"
    path.write_text("{")
    with audit(shop, "--resume", name) as terminal:
        code, shown = failed(terminal)
    assert code == 4
    assert f"error: audit-session-{name}.json is damaged and was renamed to" in shown
    assert "hint: start over with --new" in shown
    assert [one.read_text() for one in shop.sessions.glob("*.damaged-*")] == ["{"]


def test_a_damaged_session_does_not_stand_in_the_way_of_a_new_one(shop: Place) -> None:
    name = rated_once(shop, "33")
    (shop.sessions / f"audit-session-{name}.json").write_text("{")
    with audit(shop) as terminal:
        assert "is damaged and was renamed to" in " ".join(terminal.wait(PROMPT).split())
        terminal.type("q")
        assert terminal.end() == 0


def test_a_session_from_the_future_is_refused_and_left_alone(shop: Place) -> None:
    name = rated_once(shop, "33")
    path = shop.sessions / f"audit-session-{name}.json"
    path.write_text(path.read_text().replace('"schema_version": 2', '"schema_version": 9'))
    before = path.read_bytes()
    with audit(shop, "--resume", name) as terminal:
        code, shown = failed(terminal)
    assert code == 4
    assert "version 9" in shown
    assert "hint: upgrade holdfast" in shown
    assert path.read_bytes() == before


def test_two_at_once_the_second_is_told_and_nothing_is_lost(shop: Place) -> None:
    rated_once(shop, "3")
    with audit(shop, "--resume") as first, audit(shop, "--resume") as second:
        second.wait(PROMPT)
        first.answer(PROMPT, "2")
        first.wait(PROMPT)
        second.type("1")
        code, shown = failed(second)
        assert code == 3
        assert "was changed by another process" in shown
        first.type("q")
        assert first.end() == 0
    assert ratings(shop) == {"start": 3, "Shop": 2}


def test_sessions_are_cleared_and_listed(shop: Place) -> None:
    name = rated_once(shop, "33")
    assert "audit" in shop.ok("sessions", "list").out
    assert shop.json("docs", "audit", "src", "--clear-session") == {"deleted": [name]}
    assert stored(shop) == []
    assert shop.ok("docs", "audit", "src", "--clear-session").out == "Deleted: nothing\n"


def test_for_machines_items_are_listed_with_their_ratings(shop: Place) -> None:
    rated_once(shop, "12")
    report = shop.json("docs", "audit", "src")
    assert [(item["name"], item["kind"], item["rating"]) for item in report["items"]] == [
        ("start", "function", 1),
        ("Shop", "class", 2),
        ("Shop.open", "method", None),
        ("Shop.sell", "method", None),
    ]
    assert report["items"][1]["documentation"] == "Sells things."
    assert report["items"][3]["branches"] == 1
    assert report["summary"] == {"rated": 2, "skipped": 0, "total": 4, "documented": 1, "average": 1.5}
    assert shop.run("docs", "audit", "src").out.startswith("4 items, 1 documented (25 %)\n")


def test_what_cannot_be_read_is_told_and_left_out(shop: Place) -> None:
    (shop.project / "src" / "old.py").write_bytes(b"# caf\xe9\ndef f(): pass\n")
    report = shop.json("docs", "audit", "src")
    assert report["skipped"] == {"src/old.py": "src/old.py is not UTF-8 (line 1)"}
    assert report["summary"]["total"] == 4


def test_wrong_words(shop: Place, tmp_path: Path) -> None:
    shop.run("docs", "audit").failed(2, error="Missing argument 'PATH'")
    shop.run("docs", "audit", "nowhere").failed(1, error="no such file or folder: nowhere")
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    shop.run("docs", "audit", str(outside)).failed(2, error="outside the project", hint="--project")
    shop.run("docs", "audit", "src", "--new", "--resume").failed(2, error="--new")
    shop.run("docs", "audit", "src", "--resume").failed(
        1, error="no audit found for src", hint="docs audit src --new"
    )
    shop.run("docs", "audit", "--resume", "src").failed(1, error="no audit found for src")


def test_nothing_in_a_file_steers_the_terminal(shop: Place) -> None:
    (shop.project / "src" / "app.ts").write_text("/** \x1b]0;owned\x07 */\nexport function start() {}\n")
    with audit(shop) as terminal:
        terminal.wait(PROMPT)
        assert b"\x1b]0;owned" not in terminal._raw
        terminal.type("q")
        assert terminal.end() == 0
