"""Files whose content is not stored: what leaves the tree is set aside, and a refusal is about one file."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.base.durable import opened
from holdfast.base.errors import CannotDoError, ConflictError
from holdfast.base.faults import clear_traps, set_trap
from holdfast.base.file_stamps import feed
from holdfast.testing import FixedClock, SimulatedCrash, crash_at
from holdfast.undo import worktree as worktree_module
from holdfast.undo.state import FileState, LedgerEntry
from holdfast.undo.transactions import SideCar, UndoLimits
from holdfast.undo.worktree import Worktree, blob_id

from .trees import START, tree_of

ONE, TWO, THREE = (f"{name}-".encode() * 100 for name in ("one", "two", "three"))
LIMITS = UndoLimits(largest_file=300)


@pytest.fixture
def sidecar(project: Path, clock: FixedClock) -> Iterator[SideCar]:
    with SideCar(project, clock=clock, limits=LIMITS) as opened:
        yield opened


@pytest.fixture
def work(sidecar: SideCar) -> Callable[[Callable[[], object]], LedgerEntry]:
    """A session's change, recorded."""
    tx = sidecar.begin("s1", transaction_id="tx").id

    def record(action: Callable[[], object]) -> LedgerEntry:
        sidecar.watch(tx)
        action()
        entry = sidecar.record(tx)
        assert entry is not None
        return entry

    return record


Work = Callable[[Callable[[], object]], LedgerEntry]


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.write_bytes(data)
    path.chmod(mode)


def test_files_that_changed_places(sidecar: SideCar, project: Path, work: Work) -> None:
    """Each has to wait for the other: one is copied."""
    for name, data, mode in (("x", ONE, 0o600), ("y", TWO, 0o755), ("z", THREE, 0o644)):
        write(project / name, data, mode)
    before = tree_of(project)

    def rotate() -> None:
        (project / "x").rename(project / "t")
        (project / "y").rename(project / "x")
        (project / "z").rename(project / "y")
        (project / "t").rename(project / "z")

    entry = work(rotate)
    after = tree_of(project)
    for _ in range(2):
        undoing = sidecar.undo(entry.id).entry
        assert tree_of(project) == before
        entry = sidecar.undo(undoing.id).entry
        assert tree_of(project) == after


def test_a_chain_of_renames_needs_no_copy(sidecar: SideCar, project: Path, work: Work) -> None:
    """As logs are rotated."""
    write(project / "log", ONE)
    write(project / "log.1", TWO)
    before = tree_of(project)

    def rotate() -> None:
        (project / "log.1").rename(project / "log.2")
        (project / "log").rename(project / "log.1")
        (project / "log").write_bytes(THREE)

    work(rotate)
    after = tree_of(project)
    rollback = sidecar.rollback("tx").entry
    assert tree_of(project) == before
    assert [path.read_bytes() for path in sidecar.all_set_aside()] == [THREE]
    sidecar.undo(rollback.id)
    assert tree_of(project) == after
    assert sidecar.all_set_aside() == []


def test_the_mode_alone(sidecar: SideCar, project: Path, work: Work) -> None:
    write(project / "x", ONE, 0o644)
    entry = work(lambda: (project / "x").chmod(0o755))
    inode = (project / "x").stat().st_ino
    sidecar.undo(entry.id)
    assert (project / "x").stat().st_mode & 0o777 == 0o644
    assert (project / "x").stat().st_ino == inode


def test_two_files_of_one_content(sidecar: SideCar, project: Path, work: Work) -> None:
    work(lambda: [write(project / name, ONE, mode) for name, mode in (("x", 0o600), ("y", 0o755))])
    after = tree_of(project)
    rollback = sidecar.rollback("tx").entry
    assert not (project / "x").exists()
    sidecar.all_set_aside()[0].unlink()  # by hand: one of the two cannot come back
    outcome = sidecar.undo(rollback.id)
    assert (len(outcome.restored), len(outcome.left)) == (1, 1)
    [name] = outcome.restored
    assert tree_of(project)[name] == after[name]


def test_a_second_run_does_only_what_was_left(sidecar: SideCar, project: Path, work: Work) -> None:
    """Files that were taken back through several changes are not touched again."""
    write(project / "x", ONE)
    work(lambda: (project / "b").write_text("first\n"))
    work(lambda: [(project / "b").write_text("second\n"), write(project / "x", b"small\n")])
    outcome = sidecar.rollback("tx")
    assert (outcome.restored, list(outcome.left)) == (("b",), ["x"])
    assert [[one.path for one in entry.changes] for entry in sidecar.transaction("tx").changes] == [["x"]]
    (project / "b").write_text("the user's\n")
    with pytest.raises(ConflictError, match=r"x \(its earlier content was too large to store"):
        sidecar.rollback("tx")
    write(project / "x", ONE)
    assert sidecar.rollback("tx").left == {}
    assert sidecar.transaction("tx").changes == ()
    assert (project / "b").read_text() == "the user's\n"


def test_an_undo_undone_undone(sidecar: SideCar, project: Path, work: Work) -> None:
    """What stands is told right however often it went to and fro."""
    entry = work(lambda: write(project / "x", ONE))
    last = entry
    for number in range(6):
        last = sidecar.undo(last.id).entry
        stands = number % 2 == 1
        assert (project / "x").exists() == stands
        assert (entry.id in sidecar.transaction("tx").standing) == stands


@pytest.mark.parametrize("change", ["written to", "replaced", "deleted"])
def test_what_the_user_did_to_it_since_stays(
    sidecar: SideCar, project: Path, work: Work, change: str
) -> None:
    """The refusal is about that file; the others are taken back."""
    write(project / "x", ONE)
    entry = work(lambda: [write(project / "x", TWO), (project / "b").write_text("session\n")])
    if change == "deleted":
        (project / "x").unlink()
    elif change == "replaced":
        write(project / "new", THREE)
        (project / "new").rename(project / "x")
    else:
        write(project / "x", TWO + b"more")
    held = tree_of(project).get("x")
    outcome = sidecar.undo(entry.id)
    assert (outcome.restored, list(outcome.left)) == (("b",), ["x"])
    assert tree_of(project).get("x") == held


@pytest.mark.parametrize("kind", ["fifo", "folder", "link"])
def test_something_else_stands_there_now(sidecar: SideCar, project: Path, work: Work, kind: str) -> None:
    entry = work(lambda: [write(project / "x", ONE), (project / "b").write_text("session\n")])
    (project / "x").unlink()
    if kind == "fifo":
        os.mkfifo(project / "x")
    elif kind == "folder":
        (project / "x").mkdir()
        (project / "x" / "mine").write_text("mine\n")
    else:
        (project / "x").symlink_to("b")
    outcome = sidecar.undo(entry.id)
    assert (project / "b").read_text() == START["b"]
    assert "x" not in outcome.restored
    assert os.path.lexists(project / "x")
    if kind == "folder":
        assert (project / "x" / "mine").read_text() == "mine\n"
    sidecar.undo(outcome.entry.id)
    assert (project / "b").read_text() == "session\n"


def test_what_was_set_aside_and_changed_there_is_not_believed(
    sidecar: SideCar, project: Path, work: Work
) -> None:
    entry = work(lambda: [write(project / "x", ONE), (project / "b").write_text("session\n")])
    undoing = sidecar.undo(entry.id).entry
    [aside] = sidecar.all_set_aside()
    aside.write_bytes(TWO)
    outcome = sidecar.undo(undoing.id)
    assert outcome.restored == ("b",)
    assert (
        f"set aside as .holdfast/sidecar/set-aside/{aside.name}, which has since been changed"
        in outcome.left["x"]
    )
    assert aside.read_bytes() == TWO
    assert not (project / "x").exists()


def test_content_that_is_missing_from_the_store_is_set_aside(
    sidecar: SideCar, project: Path, work: Work, clock: FixedClock
) -> None:
    clock.seconds = 4_000_000_000.0  # its stamp is believed: the file is not read, and stored, once more
    entry = work(lambda: (project / "new").write_text("session\n"))
    oid = blob_id(b"session\n")
    (sidecar.folder / "objects" / oid[:2] / oid[2:]).unlink()
    undoing = sidecar.undo(entry.id).entry
    assert [path.read_text() for path in sidecar.all_set_aside()] == ["session\n"]
    sidecar.undo(undoing.id)
    assert (project / "new").read_text() == "session\n"


def test_a_small_file_for_which_there_was_no_room(project: Path, clock: FixedClock) -> None:
    with SideCar(project, clock=clock, limits=UndoLimits(total=300)) as sidecar:
        tx = sidecar.begin("s1").id
        sidecar.watch(tx)
        noise = os.urandom(400)
        (project / "new").write_bytes(noise)
        entry = sidecar.record(tx)
        assert entry is not None
        for _ in range(2):
            undoing = sidecar.undo(entry.id).entry
            assert not (project / "new").exists()
            entry = sidecar.undo(undoing.id).entry
            assert (project / "new").read_bytes() == noise


def test_writing_over_a_file_that_is_not_stored(sidecar: SideCar, project: Path) -> None:
    write(project / "x", ONE)
    tx = sidecar.begin("s1").id
    entry = sidecar.write(tx, "x", ONE, b"new\n")
    assert (project / "x").read_bytes() == b"new\n"
    sidecar.undo(entry.id)
    assert (project / "x").read_bytes() == ONE


def test_where_names_cannot_be_exchanged(
    sidecar: SideCar, project: Path, work: Work, clock: FixedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor may a crash in between lose what is not stored, or leave it with two names."""
    monkeypatch.setattr(worktree_module, "_exchange", lambda: None)
    entry = work(lambda: write(project / "b", ONE))
    with pytest.raises(SimulatedCrash), crash_at("sidecar.linked"):
        sidecar.undo(entry.id)
    assert (project / "b").read_bytes() == ONE
    sidecar.close()
    with SideCar(project, clock=clock, limits=LIMITS) as opened:
        undoing = opened.transaction("tx").entries[-1]
        assert (project / "b").read_text() == START["b"]
        [aside] = opened.all_set_aside()
        assert (aside.read_bytes(), aside.stat().st_nlink) == (ONE, 1)
        opened.undo(undoing.id)
        assert (project / "b").read_bytes() == ONE


def test_no_room_for_the_old_content(
    sidecar: SideCar, project: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: that file stays as it is, and is done the next time."""
    work(lambda: [write(project / "b", ONE), write(project / "made", TWO)])

    def full(descriptor: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(worktree_module, "write_whole", full)
        outcome = sidecar.rollback("tx")
    assert (outcome.restored, list(outcome.left)) == (("made",), ["b"])
    assert "No space left" in outcome.left["b"]
    assert (project / "b").read_bytes() == ONE
    assert list((sidecar.folder / "stage").iterdir()) == []
    assert sidecar.rollback("tx").restored == ("b",)
    assert (project / "b").read_text() == START["b"]


def test_where_it_cannot_be_set_aside_it_stays(sidecar: SideCar, project: Path, work: Work) -> None:
    work(lambda: [write(project / "made", ONE), write(project / "b", TWO), write(project / "a", b"x\n")])
    (sidecar.folder / "set-aside").write_text("in the way\n")
    outcome = sidecar.rollback("tx")
    assert (outcome.restored, sorted(outcome.left)) == (("a",), ["b", "made"])
    assert ((project / "made").read_bytes(), (project / "b").read_bytes()) == (ONE, TWO)
    assert list((sidecar.folder / "stage").iterdir()) == []
    (sidecar.folder / "set-aside").unlink()
    assert sorted(sidecar.rollback("tx").restored) == ["b", "made"]


def test_onto_another_disk_it_is_copied(project: Path, tmp_path: Path) -> None:
    """The project's folder lies in memory where there is such a place, ours on the disk."""
    (tmp_path / "stage").mkdir()
    tree = Worktree(project, tmp_path / "stage", largest=300)
    write(project / "x", ONE, 0o640)
    os.utime(project / "x", ns=(1, 1_500_000_000_000_000_123))
    state = FileState(permissions=0o640, oid=blob_id(ONE), size=len(ONE), stored=False)
    tree.put(b"x", state, None, b"")
    assert not (project / "x").exists()
    assert [path.read_bytes() for path in tree.set_aside.files()] == [ONE]
    tree.put(b"x", None, state, b"")
    assert (project / "x").read_bytes() == ONE
    assert (project / "x").stat().st_mtime_ns == 1_500_000_000_000_000_123
    assert (project / "x").stat().st_mode & 0o777 == 0o640
    assert tree.set_aside.files() == []
    assert {path.name for path in project.iterdir()} == {".git", "a", "b", "d", "x"}
    with pytest.raises(CannotDoError, match="too large to store"):
        tree.put(b"y", None, state, b"")


def test_part_of_a_rollback_can_be_undone(sidecar: SideCar, project: Path, work: Work) -> None:
    """`partial` takes the large file back though another one was changed since in the same places."""
    work(lambda: [write(project / "x", ONE), (project / "b").write_text("session\n")])
    rollback = sidecar.rollback("tx").entry
    (project / "b").write_text("the user's\n")
    with pytest.raises(ConflictError, match="same places"):
        sidecar.undo(rollback.id)
    assert not (project / "x").exists()
    outcome = sidecar.undo(rollback.id, partial=True)
    assert (outcome.restored, list(outcome.left)) == (("x",), ["b"])
    assert (project / "x").read_bytes() == ONE
    (project / "b").write_text(START["b"])
    assert sidecar.undo(rollback.id).restored == ("b",)
    assert (project / "b").read_text() == "session\n"


def test_what_has_to_stay_with_a_file_that_is_left(sidecar: SideCar, project: Path, work: Work) -> None:
    """A renamed file stays where its old name is taken, and so does the folder it is in."""
    write(project / "x", ONE)

    def move() -> None:
        (project / "b").unlink()
        (project / "b").mkdir()
        (project / "x").rename(project / "b" / "inside")
        (project / "a").write_text("session\n")

    entry = work(move)
    (project / "x").write_text("the user's\n")
    outcome = sidecar.undo(entry.id)
    assert outcome.restored == ("a",)
    assert outcome.left == {
        "x": "another file has since been created there",
        "b/inside": "it contains what was in x, which is left unchanged",
        "b": "there is now a folder in its place",
    }
    assert (project / "b" / "inside").read_bytes() == ONE
    (project / "x").unlink()
    assert sorted(sidecar.undo(entry.id).restored) == ["b", "b/inside", "x"]
    assert ((project / "x").read_bytes(), (project / "b").read_text()) == (ONE, START["b"])


def reads_of_large_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of each large file that is read from now on, at its end."""
    sizes: list[int] = []

    def counted(descriptor: int, take: Callable[[bytes], object]) -> int:
        total = feed(descriptor, take)
        sizes.extend([total] if total > LIMITS.largest_file else [])
        return total

    monkeypatch.setattr(worktree_module, "feed", counted)
    return sizes


def written_long_ago(path: Path, data: bytes) -> None:
    write(path, data)
    os.utime(path, (1_500_000_000, 1_500_000_000))


def test_an_undo_reads_a_large_file_once(
    sidecar: SideCar, project: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is set aside, brought back, or both."""
    written_long_ago(project / "x", ONE)
    entry = work(lambda: [(project / "x").unlink(), written_long_ago(project / "y", TWO)])
    sizes = reads_of_large_files(monkeypatch)
    for restored in (["y"], ["y"], ["y"]):  # of `x` nothing was kept
        sizes.clear()
        outcome = sidecar.undo(entry.id)
        assert list(outcome.restored) == restored
        assert len(sizes) == 1
        entry = outcome.entry
    assert not (project / "y").exists()


def test_a_large_file_that_is_written_to_in_the_middle_of_an_undo_stays(
    sidecar: SideCar, project: Path, work: Work
) -> None:
    """Also where it was read just before, and has the size that it had."""
    entry = work(lambda: written_long_ago(project / "x", ONE))
    other = ONE.replace(b"one", b"two")
    set_trap("sidecar.intended", lambda: write(project / "x", other))
    try:
        outcome = sidecar.undo(entry.id)
    finally:
        clear_traps()
    assert outcome.left == {"x": "it was changed in the meantime"}
    assert (project / "x").read_bytes() == other


@pytest.mark.parametrize("shares", [True, False])
def test_a_copy_of_a_large_file_shares_its_content_where_the_disk_can(
    sidecar: SideCar, project: Path, work: Work, monkeypatch: pytest.MonkeyPatch, shares: bool
) -> None:
    asked: list[bytes] = []

    def share(source: int, target: int) -> bool:
        asked.append(os.pread(source, 3, 0))
        if shares:
            os.write(target, os.pread(source, 1 << 20, 0))
            os.lseek(target, 0, os.SEEK_SET)
        return shares

    monkeypatch.setattr(worktree_module, "share_content", share)
    for name, data in (("x", ONE), ("y", TWO)):
        write(project / name, data)
    before = tree_of(project)

    def swap() -> None:
        (project / "x").rename(project / "t")
        (project / "y").rename(project / "x")
        (project / "t").rename(project / "y")

    entry = work(swap)
    undoing = sidecar.undo(entry.id).entry
    assert tree_of(project) == before
    assert len(asked) == 1
    assert (project / "x").stat().st_nlink == 1
    sidecar.undo(undoing.id)
    assert (project / "y").read_bytes() == ONE


def test_a_disk_that_shares_nothing_says_so(tmp_path: Path) -> None:
    """Or shares it: then what is written to the one is not in the other."""
    (tmp_path / "source").write_bytes(ONE)
    with (
        opened(tmp_path / "source", os.O_RDWR) as source,
        opened(tmp_path / "target", os.O_RDWR | os.O_CREAT) as target,
    ):
        if worktree_module.share_content(source, target):
            os.pwrite(target, b"two", 0)
            assert os.pread(target, 1 << 20, 0) == b"two" + ONE[3:]
    assert (tmp_path / "source").read_bytes() == ONE
