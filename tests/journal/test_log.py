from __future__ import annotations

import errno
import logging
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.errors import StorageError
from holdfast.journal import log
from holdfast.journal.log import PauseAction
from holdfast.journal.summary import Tally

SESSION = "session-20260106-120000"


def line(text: str = "", share: float = 0.91) -> bytes:
    return (
        PauseAction("tool_call", "2026-01-06T12:00:00Z", SESSION, {"text": text}, share)
        .to_json_line()
        .encode()
        + b"\n"
    )


def append(path: Path, data: bytes) -> None:
    log.append(path, lambda _session: data)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "ACTIVE-PAUSE.jsonl"
    log.create(path, line("first"))
    return path


def texts(path: Path) -> list[str]:
    return [action.data["text"] for action in log.Reader(path)]


def test_lines_are_read_back_in_the_order_they_were_appended(journal: Path) -> None:
    for text in ("second", "third\nwith a line break", "fourth"):
        append(journal, line(text))
    assert texts(journal) == ["first", "second", "third\nwith a line break", "fourth"]


def test_the_journal_is_private(journal: Path) -> None:
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600


def test_a_second_journal_is_not_made_over_the_first(journal: Path) -> None:
    with pytest.raises(FileExistsError):
        log.create(journal, line("other"))
    assert texts(journal) == ["first"]
    assert [path.name for path in journal.parent.iterdir()] == [journal.name]


def test_appending_without_a_journal_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(log.NotActiveError) as refused:
        append(tmp_path / "ACTIVE-PAUSE.jsonl", line())
    assert "winddown start" in str(refused.value.hint)


def test_a_torn_tail_is_skipped_with_a_warning_on_read(
    journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal.write_bytes(journal.read_bytes() + line("torn")[:30])
    reader = log.Reader(journal)
    with caplog.at_level(logging.WARNING):
        assert [action.data["text"] for action in reader] == ["first"]
    assert reader.skipped == 1
    assert "damaged" in caplog.text


def test_the_next_append_sets_a_torn_tail_aside_and_loses_no_byte_of_it(journal: Path) -> None:
    fragment = line("torn")[:30]
    journal.write_bytes(journal.read_bytes() + fragment)
    append(journal, line("after"))
    assert journal.read_bytes() == line("first") + line("after")
    assert log.torn_path(journal).read_bytes() == fragment + b"\n"


def test_a_whole_line_that_lacks_only_its_newline_is_kept(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes() + line("whole").rstrip(b"\n"))
    append(journal, line("after"))
    assert texts(journal) == ["first", "whole", "after"]
    assert not log.torn_path(journal).exists()


@given(cut=st.integers(0, 400), block=st.sampled_from([8, 64, 1 << 20]))
def test_a_journal_cut_anywhere_takes_appends_and_keeps_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, cut: int, block: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "ACTIVE-PAUSE.jsonl"
    whole = line("first") + line("second") + line("third")
    path.write_bytes(whole[:cut])
    before = log._BLOCK
    log._BLOCK = block  # a tail longer than one block must work, too
    try:
        append(path, line("after"))
    finally:
        log._BLOCK = before
    kept = [
        text for text, end in zip(("first", "second", "third"), _ends(whole), strict=True) if cut >= end - 1
    ]
    assert texts(path) == [*kept, "after"]


def _ends(data: bytes) -> list[int]:
    return [index + 1 for index, byte in enumerate(data) if byte == 10]


def test_a_full_disk_takes_nothing(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = journal.read_bytes()
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, bytes(data)[:10]))
    with pytest.raises(StorageError, match="No space left"):
        append(journal, line("too much"))
    assert journal.read_bytes() == before


def test_a_refused_write_is_a_clear_error(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, data: bytes) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    before = journal.read_bytes()
    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(StorageError, match="append to the journal"):
        append(journal, line())
    assert journal.read_bytes() == before


def test_an_append_is_on_the_disk_before_it_returns(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(log, "_sync_data", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    append(journal, line("second"))
    assert synced == [len(line("first") + line("second"))]


def test_a_writer_that_waited_out_the_finalising_does_not_write_into_the_archive(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = journal.with_name("archived.jsonl")
    real_lock = log.lock_descriptor

    def finalised_meanwhile(descriptor: int) -> None:
        journal.rename(archive)
        real_lock(descriptor)

    monkeypatch.setattr(log, "lock_descriptor", finalised_meanwhile)
    with pytest.raises(log.NotActiveError):
        append(journal, line("late"))
    assert texts(archive) == ["first"]


def test_a_line_is_made_for_the_session_the_journal_bears(journal: Path) -> None:
    log.append(journal, lambda session: line(f"for {session}"))
    assert texts(journal) == ["first", f"for {SESSION}"]


def test_a_tally_counts_lines_and_knows_both_ends(journal: Path) -> None:
    for number in range(5):
        append(journal, line(f"{number}", share=0.9 + number / 100))
    tally = Tally(journal).advance()
    assert (tally.lines, tally.first, tally.last) == (
        6,
        next(iter(log.Reader(journal))),
        list(log.Reader(journal))[-1],
    )


@given(st.lists(st.tuples(st.integers(0, 600), st.booleans()), min_size=1, max_size=12))
def test_a_tally_that_is_asked_now_and_then_agrees_with_a_full_read(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool]]
) -> None:
    path = tmp_path_factory.mktemp("tally") / "ACTIVE-PAUSE.jsonl"
    log.create(path, line("first"))
    tally = Tally(path)
    for size, ask in steps:
        append(path, line("x" * size))
        if ask:
            tally.advance()
    actions = list(log.Reader(path))
    tally.advance()
    assert (tally.lines, tally.last) == (len(actions), actions[-1])


def test_a_tally_starts_afresh_on_another_journal(journal: Path) -> None:
    tally = Tally(journal).advance()
    journal.unlink()
    log.create(journal, line("other"))
    tally.advance()
    assert tally.lines == 1
    assert tally.first is not None
    assert tally.first.data == {"text": "other"}
