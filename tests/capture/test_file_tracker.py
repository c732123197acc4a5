"""`FileTracker`: which files hold something else than they did."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import FileTracker
from holdfast.capture import files
from holdfast.model.git import encode_path
from holdfast.model.snapshot import FileFingerprint


def later() -> float:
    """A moment at which every stamp made by this test is old enough to be believed."""
    return 4_000_000_000.0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Every file whose content was looked at."""
    seen: list[bytes] = []
    real = files.read_steadily

    def noted(location: bytes, read: Callable[[int], str]) -> tuple[str, os.stat_result, bool]:
        seen.append(location)
        return real(location, read)

    monkeypatch.setattr(files, "read_steadily", noted)
    return seen


def snapshot_of(root: Path, *names: str) -> dict[str, FileFingerprint]:
    return FileTracker.create_snapshot(names, root=root, clock=later)


def test_unchanged_files_are_not_read_again(tmp_path: Path, reads: list[bytes]) -> None:
    (tmp_path / "a").write_text("one")
    snapshot = snapshot_of(tmp_path, "a")
    reads.clear()
    assert FileTracker.detect_changes(snapshot, root=tmp_path, clock=later) == []
    assert reads == []


def test_changed_deleted_and_new_are_told_apart(tmp_path: Path) -> None:
    for name in ("kept", "changed", "grown", "deleted"):
        (tmp_path / name).write_text(name)
    snapshot = snapshot_of(tmp_path, "kept", "changed", "grown", "deleted", "later")
    (tmp_path / "changed").write_text("CHANGED")
    (tmp_path / "grown").write_text("longer than before")
    (tmp_path / "deleted").unlink()
    (tmp_path / "later").touch()
    (tmp_path / "unknown").touch()
    changes = FileTracker.compare(snapshot, ["kept", "unknown", "nowhere"], root=tmp_path)
    assert (changes.modified, changes.deleted) == (["changed", "grown"], ["deleted"])
    assert changes.new == ["later", "unknown"]
    found = FileTracker.detect_changes(snapshot, root=tmp_path)
    assert found == ["changed", "grown", "deleted", "later"]


def test_touched_is_no_change_and_refreshes_the_stamp(tmp_path: Path, reads: list[bytes]) -> None:
    (tmp_path / "a").write_text("one")
    snapshot = snapshot_of(tmp_path, "a")
    os.utime(tmp_path / "a", ns=(7, 1_600_000_000_000_000_007))
    assert FileTracker.detect_changes(snapshot, root=tmp_path, clock=later) == []
    assert snapshot["a"].mtime_ns == 1_600_000_000_000_000_007
    reads.clear()
    assert FileTracker.detect_changes(snapshot, root=tmp_path, clock=later) == []
    assert reads == []


def test_a_write_in_the_same_tick_is_found(tmp_path: Path) -> None:
    """Same size, same stamp: what a second write within one tick of the clock leaves."""
    path = tmp_path / "a"
    path.write_text("one")
    snapshot = FileTracker.create_snapshot(["a"], root=tmp_path, clock=lambda: path.stat().st_mtime)
    assert snapshot["a"].ctime_ns is None
    path.write_text("two")
    now = path.stat()
    frozen = snapshot["a"].changed(mtime_ns=now.st_mtime_ns)
    assert FileTracker.detect_changes({"a": frozen}, root=tmp_path) == ["a"]


def test_a_forged_modification_time_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    before = path.stat()
    snapshot = snapshot_of(tmp_path, "a")
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == snapshot["a"].mtime_ns
    # `later` called the stamp settled; were the second write in the same tick, it would not be.
    snapshot["a"] = snapshot["a"].changed(ctime_ns=before.st_ctime_ns - 1)
    assert FileTracker.detect_changes(snapshot, root=tmp_path) == ["a"]


def test_a_file_of_another_size_is_not_read(tmp_path: Path, reads: list[bytes]) -> None:
    (tmp_path / "a").write_text("one")
    snapshot = snapshot_of(tmp_path, "a")
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)
    reads.clear()
    assert FileTracker.detect_changes(snapshot, root=tmp_path) == ["a"]
    assert reads == []


def test_links_and_what_takes_a_files_place(tmp_path: Path) -> None:
    for name in ("to-link", "to-folder", "to-pipe"):
        (tmp_path / name).write_text("text")
    (tmp_path / "link").symlink_to("one")
    snapshot = snapshot_of(tmp_path, "to-link", "to-folder", "to-pipe", "link")
    for name in ("to-link", "to-folder", "to-pipe", "link"):
        (tmp_path / name).unlink()
    (tmp_path / "to-link").symlink_to("text")
    (tmp_path / "to-folder").mkdir()
    os.mkfifo(tmp_path / "to-pipe")
    (tmp_path / "link").symlink_to("two")
    changes = FileTracker.compare(snapshot, root=tmp_path)
    assert (changes.modified, changes.unreadable) == (["link"], ["to-folder", "to-pipe"])
    # A link to "text" and a file with "text" in it hash alike; they are told apart by git's own mode,
    # which the side-car keeps. Here the content counts.
    assert changes.refreshed.keys() == {"to-link"}


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("one")
    snapshot = snapshot_of(tmp_path, "a")
    (tmp_path / "a").write_text("two")

    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refused)  # as root, who runs tests in containers, may read all
    assert FileTracker.compare(snapshot, root=tmp_path).unreadable == ["a"]
    assert FileTracker.create_snapshot(["a"], root=tmp_path) == {}


def test_a_file_that_vanishes_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    real = os.lstat

    def then_gone(location: bytes) -> os.stat_result:
        status = real(location)
        path.unlink(missing_ok=True)
        return status

    monkeypatch.setattr(os, "lstat", then_gone)
    assert FileTracker.create_snapshot(["a"], root=tmp_path)["a"].hash == "absent"


def test_a_file_that_changes_while_it_is_read_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    real = files.feed

    def then_written(descriptor: int, take: Callable[[bytes], object]) -> int:
        total = real(descriptor, take)
        with path.open("a") as file:
            file.write("x")
        return total

    with monkeypatch.context() as patch:
        patch.setattr(files, "feed", then_written)
        snapshot = FileTracker.create_snapshot(["a"], root=tmp_path, clock=later)
    assert snapshot["a"].ctime_ns is None
    assert snapshot["a"].size > len("one")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result: list[dict[str, FileFingerprint]] = []
    thread = threading.Thread(
        target=lambda: result.append(FileTracker.create_snapshot(["pipe"], root=tmp_path)), daemon=True
    )
    thread.start()
    thread.join(30)
    assert result == [{}]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = b"caf\xe9.py"
    location = os.fsencode(tmp_path) + b"/" + name
    Path(os.fsdecode(location)).write_bytes(b"x")
    snapshot = FileTracker.create_snapshot([name], root=tmp_path)
    assert list(snapshot) == [encode_path(name)]
    Path(os.fsdecode(location)).write_bytes(b"y")
    assert FileTracker.detect_changes(snapshot, root=tmp_path) == [encode_path(name)]


@dataclass
class CodeItem:
    name: str
    filepath: str


def test_changed_items() -> None:
    items = [CodeItem("f", "a.py"), CodeItem("g", "b.py"), CodeItem("h", "a.py")]
    assert [one.name for one in FileTracker.get_changed_items(["a.py"], items)] == ["f", "h"]
    assert FileTracker.get_changed_items(["b.py"], [{"filepath": "b.py"}, {"filepath": "c.py"}]) == [
        {"filepath": "b.py"}
    ]
    assert FileTracker.get_changed_items([], items) == []


def test_absolute_paths_need_no_root(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("one")
    snapshot = FileTracker.create_snapshot([path])
    path.write_text("two!")
    assert FileTracker.detect_changes(snapshot) == [str(path)]


NAMES = ("a", "b", "c")
STEP = st.tuples(
    st.sampled_from(["write", "touch", "delete", "link"]),
    st.sampled_from(NAMES),
    st.sampled_from(["", "1", "2", "longer"]),
)


@given(first=st.lists(STEP, max_size=6), then=st.lists(STEP, max_size=6), settled=st.booleans())
def test_finds_exactly_what_differs(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, str, str]],
    then: list[tuple[str, str, str]],
    settled: bool,
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for step in first:
        _take(root, *step)
    before = {name: _content(root / name) for name in NAMES}
    # A snapshot taken at once cannot believe any stamp; all writes here fall into the same second.
    snapshot = FileTracker.create_snapshot(NAMES, root=root)
    for step in then:
        _take(root, *step)
    if settled:
        FileTracker.detect_changes(dict(snapshot), root=root)
    expected = {name for name in NAMES if _content(root / name) != before[name]}
    assert set(FileTracker.detect_changes(snapshot, root=root)) == expected


def _take(root: Path, action: str, name: str, text: str) -> None:
    path = root / name
    if action == "touch":
        if path.exists():
            os.utime(path)
        return
    path.unlink(missing_ok=True)
    if action == "write":
        path.write_text(text)
    elif action == "link":
        path.symlink_to(text or "empty")


def _content(path: Path) -> str | None:
    """By content alone, as a fingerprint has it."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    return str(path.readlink()) if stat.S_ISLNK(status.st_mode) else path.read_text()
