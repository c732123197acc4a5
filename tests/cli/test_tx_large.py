"""`holdfast tx` with files too large to be stored: nothing is lost by taking a change back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from .harness import Place

SIZE = 20_000_000


@pytest.fixture
def run(place: Place) -> Callable[[str], None]:
    """A workflow of one task, run to its end."""

    def run_task(command: str) -> None:
        script = place.root / "task.sh"
        script.write_text(command)
        plan = place.root / "plan.yaml"
        plan.write_text(f"issue: {{id: D, title: Demo}}\ntasks:\n  - {{id: t1, run: sh {script}}}\n")
        place.ok("run", plan)

    return run_task


def make(end: str) -> str:
    """A command that makes `model.bin`, with a mode and a time of its own."""
    content = f"{{ head -c {SIZE - 6} /dev/zero; printf {end}; }} > model.bin"
    return f"{content}; chmod 640 model.bin; touch -d @1500000000 model.bin"


def content(end: str) -> str:
    return hashlib.sha256(bytes(SIZE - 6) + end.encode()).hexdigest()


def held(path: Path) -> tuple[str, int, int]:
    status = path.stat()
    return hashlib.sha256(path.read_bytes()).hexdigest(), status.st_mode & 0o777, int(status.st_mtime)


def last_entry(place: Place) -> str:
    return place.json("tx", "show", "last")["entries"][-1]["id"]


def test_a_large_file_that_a_task_made_comes_back(place: Place, run: Callable[[str], None]) -> None:
    model, notes = place.project / "model.bin", place.project / "notes.txt"
    notes.write_text("mine\n")
    run(make("first!") + "; echo task >> notes.txt")
    made = held(model)
    assert made == (content("first!"), 0o640, 1_500_000_000)
    told = place.ok("tx", "rollback", "last", "--yes").out
    assert not model.exists()
    assert notes.read_text() == "mine\n"
    assert "set aside: model.bin: .holdfast/sidecar/set-aside/" in told
    assert "set aside: .holdfast/sidecar/set-aside/" in place.ok("tx", "show").out
    assert "1 file set aside, 20.0 MB" in place.ok("tx", "list").out
    for _ in range(2):
        place.ok("tx", "undo", last_entry(place))  # the rollback; then the undo of the undo of it
        assert held(model) == made
        assert notes.read_text() == "mine\ntask\n"
        assert "set aside" not in place.ok("tx", "list").out
        place.ok("tx", "undo", last_entry(place))
        assert not model.exists()
        assert notes.read_text() == "mine\n"


def test_a_file_that_grew_too_large_is_set_aside_for_the_old_one(
    place: Place, run: Callable[[str], None]
) -> None:
    model = place.project / "model.bin"
    model.write_text("small\n")
    run(make("grown!"))
    grown = held(model)
    place.ok("tx", "rollback", "last", "--yes")
    assert model.read_text() == "small\n"
    place.ok("tx", "undo", last_entry(place))
    assert held(model) == grown


def test_what_was_never_stored_is_refused_alone(place: Place, run: Callable[[str], None]) -> None:
    model, notes = place.project / "model.bin", place.project / "notes.txt"
    model.write_bytes(bytes(SIZE - 6) + b"before")
    before = held(model)
    notes.write_text("mine\n")
    run("echo small > model.bin; echo task >> notes.txt")
    result = place.run("tx", "rollback", "last", "--yes")
    assert (result.code, result.lines[0]) == (3, "Rolled back 1 file")
    assert "left unchanged: model.bin: its earlier content was too large to store" in result.err
    assert (model.read_text(), notes.read_text()) == ("small\n", "mine\n")
    place.run("tx", "rollback", "last", "--yes").failed(3, error="model.bin .*too large to store")
    # The user got the file back from elsewhere: now nothing is left to do, and that can be said.
    model.write_bytes(bytes(SIZE - 6) + b"before")
    model.chmod(before[1])
    assert place.ok("tx", "rollback", "last", "--yes").lines[0] == "Rolled back 0 files"
    place.run("tx", "rollback", "last", "--yes").failed(1, error="already been rolled back")


def test_an_edit_is_not_stranded_with_a_large_file_that_is_gone(
    place: Place, run: Callable[[str], None]
) -> None:
    """The set-aside file was removed by hand: the rest of the change still comes back."""
    notes = place.project / "notes.txt"
    notes.write_text("mine\n")
    run(make("first!") + "; echo task and user >> notes.txt")
    place.ok("tx", "rollback", "last", "--yes")
    [aside] = (place.project / ".holdfast" / "sidecar" / "set-aside").iterdir()
    elsewhere = place.root / "elsewhere"
    aside.rename(elsewhere)
    result = place.run("tx", "undo", last_entry(place))
    assert (result.code, notes.read_text()) == (3, "mine\ntask and user\n")
    assert "left unchanged: model.bin: its earlier content was too large to store" in result.err
    # The obstacle goes away: a second run brings back what is left, and only that.
    elsewhere.rename(aside)
    rollback = next(
        entry["id"] for entry in place.json("tx", "show", "last")["entries"] if entry["kind"] == "rollback"
    )
    assert place.json("tx", "undo", rollback)["restored"] == ["model.bin"]
    assert held(place.project / "model.bin")[0] == content("first!")


def test_a_large_file_that_was_renamed_goes_back_to_its_name(
    place: Place, run: Callable[[str], None]
) -> None:
    model = place.project / "model.bin"
    model.write_bytes(bytes(SIZE - 6) + b"before")
    before = held(model)
    run("mkdir -p deep; mv model.bin deep/moved.bin")
    place.ok("tx", "rollback", "last", "--yes")
    assert held(model) == before
    assert not (place.project / "deep").exists()
    place.ok("tx", "undo", last_entry(place))
    assert held(place.project / "deep" / "moved.bin") == before
    assert not model.exists()
