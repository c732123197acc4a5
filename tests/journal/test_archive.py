from __future__ import annotations

import os
from pathlib import Path

from holdfast.journal import log, summary
from holdfast.journal.log import PauseAction

SESSION = "session-20260106-120000"


def archived(folder: Path, session: str, *, age: float) -> Path:
    path = folder / summary.archive_name(session)
    action = PauseAction("tool_call", "2026-01-06T12:00:00Z", session, {"text": "é" * 5000}, 0.9)
    path.write_text(action.to_json_line() + "\n", encoding="utf-8")
    os.utime(path, (age, age))
    return path


def test_only_archives_older_than_the_moment_are_compressed(tmp_path: Path) -> None:
    old = archived(tmp_path, SESSION, age=100)
    new = archived(tmp_path, "session-20260107-120000", age=300)
    assert summary.compress_older(tmp_path, before=200) == [old.with_name(f"{old.name}.gz")]
    assert not old.exists()
    assert new.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([f"{old.name}.gz", new.name])


def test_a_compressed_archive_reads_like_a_plain_one(tmp_path: Path) -> None:
    plain = archived(tmp_path, SESSION, age=100)
    before = list(log.Reader(plain))
    summary.compress_older(tmp_path, before=200)
    found = summary.find_archive(tmp_path, SESSION)
    assert found is not None
    assert found.suffix == ".gz"
    assert list(log.Reader(found)) == before
    assert found.stat().st_size < 1000


def test_the_list_of_archives_holds_both_kinds(tmp_path: Path) -> None:
    archived(tmp_path, SESSION, age=100)
    archived(tmp_path, "session-20260107-120000", age=300)
    summary.compress_older(tmp_path, before=200)
    assert len(list(summary.archives(tmp_path))) == 2
