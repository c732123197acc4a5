"""The sessions folder: a set of files is there as a whole or not at all, whenever the process dies."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base import ids
from holdfast.base.durable import write_new
from holdfast.base.errors import DamagedDataError, NotFoundError, StorageError
from holdfast.journal import log
from holdfast.project.formats import LATEST
from holdfast.project.layout import ProjectLayout
from holdfast.store.session_files import Closing, FileSet, SessionFiles
from store.faults import crash_at, disk_full_at

NOON = 1_767_700_800.0
OLDER = "session-20260106-115959"
NAME = "session-20260106-120000"
JOURNAL = "ACTIVE-PAUSE.jsonl"
ARCHIVE = f"{NAME}-incremental.jsonl"
LINES = b'{"n": 1}\n{"n": 2}\n'
LAST_LINE = '{"type": "pause_finalized", "é": 1}'
CONTENT = {".json": b'{"session_id": "x"}\n', ".yaml": b"session_id: x\n", ".md": b"# x\n"}


def whole_set(name: str = NAME, *, journal: bool = True, becomes_latest: bool = True) -> FileSet:
    closing = Closing(JOURNAL, f"{name}-incremental.jsonl", LAST_LINE) if journal else None
    return FileSet(name, CONTENT, closing, becomes_latest=becomes_latest, to_be_indexed=True)


def sessions_folder(root: Path) -> Path:
    """As it is when a wind-down is about to be finalised: an older session, and the open journal."""
    folder = ProjectLayout(root).ensure().sessions
    files = SessionFiles(folder)
    with files.locked():
        files.place(whole_set(OLDER, journal=False))
    (folder / JOURNAL).write_bytes(LINES)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return sessions_folder(tmp_path)


def place(folder: Path, files: FileSet | None = None) -> None:
    there = SessionFiles(folder)
    with there.locked():
        there.place(files or whole_set())


def reopen(folder: Path) -> SessionFiles:
    files = SessionFiles(folder)
    with files.locked():
        pass
    return files


def content(folder: Path) -> dict[str, bytes]:
    """Every file below the folder but the locks."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def finished(folder: Path) -> dict[str, bytes]:
    """What the folder holds once the set is in place."""
    before = {name: data for name, data in content(folder).items() if name != JOURNAL}
    own = {f"{NAME}{kind}": data for kind, data in CONTENT.items()}
    return {
        **before,
        **own,
        f".unindexed-{NAME}": hashlib.sha256((folder.parent / "mark").read_bytes() + NAME.encode())
        .hexdigest()
        .encode(),
        LATEST: f"{NAME}\n".encode(),
        ARCHIVE: LINES + LAST_LINE.encode() + b"\n",
    }


def test_a_placed_set_is_complete_and_its_journal_closed(folder: Path) -> None:
    expected = finished(folder)
    place(folder)
    assert content(folder) == expected


def test_placed_files_are_for_their_owner_alone(folder: Path) -> None:
    place(folder)
    modes = {
        stat.S_IMODE(path.stat().st_mode) for path in folder.glob("session-2*[!l]") if path.name != JOURNAL
    }
    assert modes == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_crash_at_any_step_leaves_the_whole_set_or_nothing(tmp_path: Path) -> None:
    outcomes: set[str] = set()
    for step in count(1):
        folder = sessions_folder(tmp_path / str(step))
        before, after = content(folder), finished(folder)
        with crash_at(step) as faults:
            place(folder)
        if not faults.happened:
            break
        reopen(folder)
        assert content(folder) in (before, after), f"crash at step {step}"
        assert not [path for path in folder.iterdir() if path.is_dir()]
        outcomes.add("nothing" if content(folder) == before else "everything")
    assert outcomes == {"nothing", "everything"}


def test_a_crash_while_a_crash_is_mended_leaves_the_whole_set_or_nothing(tmp_path: Path) -> None:
    def crash_twice(step: int, second: int) -> tuple[bool, bool]:
        """Whether the placing crashed, and whether the mending did."""
        folder = sessions_folder(tmp_path / f"{step}-{second}")
        before, after = content(folder), finished(folder)
        with crash_at(step) as placing:
            place(folder)
        with crash_at(second) as mending:
            reopen(folder)
        reopen(folder)
        assert content(folder) in (before, after), f"crash at step {step}, then at {second}"
        return placing.happened, mending.happened

    twice = 0
    step = second = 1
    while True:
        placing_crashed, mending_crashed = crash_twice(step, second)
        if not placing_crashed:
            break
        twice += mending_crashed
        step, second = (step, second + 1) if mending_crashed else (step + 1, 1)
    assert twice > 20


def test_after_a_crash_at_any_step_the_pause_can_be_finalised(tmp_path: Path) -> None:
    for step in count(1):
        folder = sessions_folder(tmp_path / str(step))
        after = finished(folder)
        with crash_at(step) as faults:
            place(folder)
        if not faults.happened:
            break
        reopen(folder)
        if (folder / JOURNAL).exists():
            place(folder)
        assert content(folder) == after, f"crash at step {step}"


def test_a_disk_that_is_full_from_any_step_on_changes_nothing_and_says_so(tmp_path: Path) -> None:
    refused = 0
    for step in count(1):
        folder = sessions_folder(tmp_path / str(step))
        before, after = content(folder), finished(folder)
        with disk_full_at(step) as faults:
            try:
                place(folder)
            except StorageError as error:
                assert "No space left" in error.message  # noqa: PT017 - the last step raises nothing
                refused += 1
        if not faults.happened:
            break
        assert content(folder) == before, f"disk full from step {step} on"
        place(folder)
        assert content(folder) == after
    assert refused > 5


def test_a_journal_whose_last_line_was_torn_by_a_crash_is_closed_on_a_line_of_its_own(folder: Path) -> None:
    (folder / JOURNAL).write_bytes(LINES + b'{"n": 3')
    place(folder)
    assert (folder / ARCHIVE).read_bytes() == LINES + b'{"n": 3\n' + LAST_LINE.encode() + b"\n"


def test_an_action_appended_between_a_crash_and_its_mending_is_kept(folder: Path) -> None:
    for step in count(1):
        fresh = folder.parent / f"again-{step}"
        fresh.mkdir()
        (fresh / JOURNAL).write_bytes(LINES)
        with crash_at(step) as faults:
            place(fresh)
        if (fresh / JOURNAL).exists():
            with (fresh / JOURNAL).open("ab") as journal:
                journal.write(b'{"n": 3}\n')
            reopen(fresh)
            kept = fresh / (JOURNAL if (fresh / JOURNAL).exists() else ARCHIVE)
            assert kept.read_bytes().count(b'{"n": 3}\n') == 1
            assert kept.read_bytes().startswith(LINES)
        if not faults.happened:
            break


def append(journal: Path, line: bytes) -> None:
    """As another process does it: with the journal's lock, and no other."""
    with log.locked(journal) as (descriptor, _size):
        os.write(descriptor, line)


def test_an_action_appended_at_the_moment_of_the_mending_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = b'{"n": "late"}\n'
    truncate = os.ftruncate
    writers: list[threading.Thread] = []

    def append_and_truncate(descriptor: int, size: int) -> None:
        """The append comes just before; one that has to wait for the lock comes after."""
        writers[-1].start()
        writers[-1].join(0.3)
        truncate(descriptor, size)

    for step in count(1):
        folder = sessions_folder(tmp_path / str(step))
        with crash_at(step) as faults:
            place(folder)
        if not faults.happened:
            break
        writers.append(threading.Thread(target=append, args=(folder / JOURNAL, late)))
        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", append_and_truncate)
            reopen(folder)
        if writers[-1].ident is None:
            continue  # nothing was cut off
        writers[-1].join()
        assert (folder / JOURNAL).read_bytes() == LINES + late, f"crash at step {step}"
    assert any(writer.ident for writer in writers), "the journal is never cut: this test lost its subject"


def test_a_journal_can_be_closed_without_a_snapshot(folder: Path) -> None:
    place(folder, FileSet(NAME, closing=Closing(JOURNAL, ARCHIVE, LAST_LINE), becomes_latest=False))
    files = SessionFiles(folder)
    assert (folder / ARCHIVE).read_bytes() == LINES + LAST_LINE.encode() + b"\n"
    assert (files.session_ids(), files.latest()) == ([OLDER], OLDER)


def test_the_newest_session_is_the_latest_until_it_is_deleted(folder: Path) -> None:
    place(folder)
    files = SessionFiles(folder)
    assert files.latest() == NAME
    assert files.delete(NAME)
    assert files.latest() == OLDER
    assert files.delete(OLDER)
    assert files.latest() is None
    assert not (folder / LATEST).exists()


def test_deleting_takes_all_files_of_the_session_and_no_others(folder: Path) -> None:
    before = {name: data for name, data in content(folder).items() if name != JOURNAL}
    place(folder)
    place(folder, whole_set(f"{NAME}-2", journal=False))
    SessionFiles(folder).delete(NAME)
    SessionFiles(folder).delete(f"{NAME}-2")
    assert content(folder) == before


def test_deleting_a_session_keeps_the_second_one_of_the_same_second(folder: Path) -> None:
    place(folder)
    place(folder, whole_set(f"{NAME}-2", journal=False))
    SessionFiles(folder).delete(NAME)
    assert SessionFiles(folder).session_ids() == [f"{NAME}-2", OLDER]


def test_deleting_what_is_not_there_says_so(folder: Path) -> None:
    assert not SessionFiles(folder).delete("session-20200101-000000")


@pytest.mark.parametrize(
    "name", ["", "ACTIVE-PAUSE", "LATEST-SESSION", "audit-session-1", "../sessions/session"]
)
def test_only_sessions_can_be_deleted(folder: Path, name: str) -> None:
    (folder / "audit-session-1.json").write_text("{}")
    before = content(folder)
    assert not SessionFiles(folder).delete(name)
    assert content(folder) == before


def test_a_delete_that_crashed_is_completed_by_the_next(tmp_path: Path) -> None:
    for step in count(1):
        folder = sessions_folder(tmp_path / str(step))
        before = {name: data for name, data in content(folder).items() if name != JOURNAL}
        place(folder)
        with crash_at(step) as faults:
            SessionFiles(folder).delete(NAME)
        SessionFiles(folder).delete(NAME)
        assert content(folder) == before, f"crash at step {step}"
        if not faults.happened:
            break


Step = tuple[Literal["place", "delete", "reopen"], int, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["place", "delete", "reopen"]), st.integers(0, 5), st.integers(1, 45)),
    max_size=12,
)


@given(steps=STEPS)
def test_latest_never_names_a_session_that_is_not_there(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = ProjectLayout(Path(root)).ensure().sessions
        for verb, number, crash in steps:
            name = ids.session_id(NOON, number + 1)
            with crash_at(crash):
                do(verb, folder, name)
            assert_latest_is_there(folder)
        names_before = set(SessionFiles(folder).session_ids())
        reopen(folder)
        assert_latest_is_there(folder)
        assert names_before <= set(SessionFiles(folder).session_ids())


def do(verb: str, folder: Path, name: str) -> None:
    files = SessionFiles(folder)
    if verb == "delete":
        files.delete(name)
        return
    with files.locked():
        if verb == "place" and not (folder / f"{name}.json").exists():
            (folder / JOURNAL).write_bytes(LINES)
            files.place(whole_set(name))


def assert_latest_is_there(folder: Path) -> None:
    if (folder / LATEST).exists():
        named = (folder / LATEST).read_text().strip()
        assert (folder / f"{named}.json").exists()


def test_a_latest_file_that_names_nothing_reads_as_none(folder: Path) -> None:
    (folder / LATEST).write_bytes(b"\xff nonsense\n")
    assert SessionFiles(folder).latest() is None


def test_twenty_pauses_within_a_second_get_twenty_names(folder: Path) -> None:
    files = SessionFiles(folder)
    names: list[str] = []
    for _ in range(20):
        with files.locked():
            name = files.free_session_id(NOON)
            files.place(whole_set(name, journal=False))
        names.append(name)
    assert names == [NAME, *(f"{NAME}-{number}" for number in range(2, 21))]
    assert files.session_ids() == [*reversed(names), OLDER]


def test_a_name_is_taken_even_if_only_the_journal_of_its_session_is_left(folder: Path) -> None:
    (folder / f"{NAME}-incremental.jsonl.gz").write_bytes(b"")
    assert SessionFiles(folder).free_session_id(NOON) == f"{NAME}-2"


def test_sessions_are_listed_newest_first_and_nothing_else_is(folder: Path) -> None:
    for name in (f"{NAME}-10", f"{NAME}-9", "session-20251231-235959", "session-x", "session-20260106-12000"):
        (folder / f"{name}.json").write_text("{}")
    assert SessionFiles(folder).session_ids() == [f"{NAME}-10", f"{NAME}-9", OLDER, "session-20251231-235959"]


def test_a_session_waits_for_the_database_until_it_is_marked(folder: Path) -> None:
    place(folder, whole_set(f"{NAME}-10", journal=False))
    place(folder, whole_set(f"{NAME}-9", journal=False))
    files = SessionFiles(folder)
    files.mark_indexed(OLDER)
    assert files.unindexed() == [f"{NAME}-9", f"{NAME}-10"]
    files.mark_indexed(f"{NAME}-9")
    files.mark_indexed(f"{NAME}-9")
    assert files.unindexed() == [f"{NAME}-10"]


def test_a_session_reads_as_the_document_on_the_disk(folder: Path) -> None:
    assert SessionFiles(folder).read(OLDER) == json.loads(CONTENT[".json"])


@pytest.mark.parametrize("name", ["session-20200101-000000", "../config", "ACTIVE-PAUSE", ""])
def test_what_is_no_session_here_is_not_found(folder: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        SessionFiles(folder).read(name)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000], ids=lambda data: repr(data[:9])
)
def test_a_damaged_session_file_is_told_and_left_as_it_is(folder: Path, data: bytes) -> None:
    path = folder / f"{OLDER}.json"
    path.write_bytes(data)
    with pytest.raises(DamagedDataError, match=OLDER):
        SessionFiles(folder).read(OLDER)
    assert path.read_bytes() == data


def test_opening_the_folder_leaves_the_files_other_rooms_are_writing_alone(folder: Path) -> None:
    # An item session is saved under another lock; its new content waits beside it to be renamed.
    waiting = folder / f".audit-session-1.json.{os.getpid()}.123.tmp"
    write_new(waiting, b"{}")
    reopen(folder)
    assert waiting.exists()


def test_what_a_crash_left_of_a_new_latest_is_swept(folder: Path) -> None:
    left = folder / f".{LATEST}.99999.123.tmp"
    write_new(left, b"half")
    reopen(folder)
    assert not left.exists()


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="sessions folder"), SessionFiles(tmp_path / "none").locked():
        pass


def test_a_set_without_a_journal_that_finds_the_disk_full_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    for step in count(1):
        folder = sessions_folder(tmp_path / str(step))
        before = content(folder)
        files = SessionFiles(folder)
        with disk_full_at(step) as faults, suppress(StorageError), files.locked():
            files.place(FileSet("session-20260106-120001", {".json": b"{}", ".md": b"# x"}))
        if not faults.happened:
            break
        assert content(folder) == before, f"disk full from step {step} on"
