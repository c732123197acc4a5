"""`holdfast sessions list --all --search`: the index answers as reading all the files would."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from transcripts import claude_files as claude
from transcripts.codex_files import Rollout

from .harness import Place, on_terminal, start_program
from .test_context import AGENTS, FIRST, kept_session, reopened

WORDS = (
    *("door", "BRASS rust", "a", "do", '"', "src/door.py hinge"),
    *("assertionerror:", "Ärmel", "zeppelin", "paint oof."),
)
SEARCH = ("sessions", "list", "--all", "--limit", "100", "--json", "--search")


@pytest.fixture
def four(place: Place) -> Place:
    for age, agent in enumerate(AGENTS):
        for number in range(2):
            kept_session(place, agent, f"{agent}-{number}", age=10 * age + number)
    return place


def by_index(place: Place, words: str) -> list[dict[str, Any]]:
    result = place.ok(*SEARCH, words)
    assert result.err == ""
    return told_by(result.data, "index")


def told_by(found: list[dict[str, Any]], searched: str) -> list[dict[str, Any]]:
    assert all(one.pop("searched") == searched for one in found)
    return found


def assert_same_as_scan(place: Place, *words: str) -> None:
    lines = [[*SEARCH, one, *more] for one in (*WORDS, *words) for more in ([], ["--no-index"])]
    results = place.many(*lines)
    for index, scan in zip(results[::2], results[1::2], strict=True):
        assert told_by(index.data, "index") == told_by(scan.data, "scan")
        assert index.err == scan.err


def ids(found: list[dict[str, Any]]) -> set[str]:
    return {one["session_id"] for one in found}


def index_of(place: Place) -> Path:
    return place.home / "search.sqlite"


def appended(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_the_same_answer_as_the_scan_whatever_happens_to_the_files(four: Place) -> None:
    assert_same_as_scan(four)
    assert len(by_index(four, "hinges of brass")) == 8
    claude_file = kept_session(four, "claude-code", "claude-0")
    codex_file = kept_session(four, "codex", "codex-0")
    rollout = Rollout(session_id="codex-0", cwd=str(four.project)).prompt(FIRST).says("Brass it is")
    codex_file.write_bytes(before := rollout.data)
    gemini_file = kept_session(four, "gemini", "gemini-0")
    assert_same_as_scan(four)
    appended(claude_file, claude.file_of(claude.said("The Ärmel is on", message_id="m9")))
    appended(codex_file, rollout.says("Der ÄRMEL too").data.removeprefix(before))
    database = reopened(kept_session(four, "opencode", "opencode-2", age=99))
    assert_same_as_scan(four, "sewn", "ärmel too")
    assert ids(by_index(four, "ärmel")) == {"claude-0", "codex-0"}
    # Written anew, shorter and longer, and without a change of its size.
    said = claude_file.read_bytes()
    claude_file.write_bytes(said.replace("Ärmel".encode(), b"collar"))
    codex_file.write_bytes(Rollout(session_id="codex-0").prompt("A zeppelin").data)
    gemini_file.write_bytes(gemini_file.read_bytes().replace(b"brass", b"glass"))
    assert_same_as_scan(four, "collar", "glass", "ärmel")
    assert ids(by_index(four, "zeppelin")) == {"codex-0"}
    codex_file.unlink()
    gemini_file.unlink()
    database.run("DELETE FROM session WHERE id = 'opencode-0'")
    assert_same_as_scan(four, "zeppelin", "glass")
    assert by_index(four, "zeppelin") == []


def test_half_a_line_and_what_was_taken_back(four: Place) -> None:
    path = kept_session(four, "claude-code", "claude-0")
    line = claude.file_of(claude.said("The velvet is on", message_id="m9"))
    appended(path, line[:-20])
    assert_same_as_scan(four, "velvet")
    appended(path, line[-20:])
    assert_same_as_scan(four, "velvet")
    assert ids(by_index(four, "velvet")) == {"claude-0"}
    queued = {"type": "queue-operation", "sessionId": "claude-0", "timestamp": "2026-03-01T11:00:00.000Z"}
    appended(path, claude.file_of({**queued, "operation": "enqueue", "content": "use corduroy"}))
    assert_same_as_scan(four, "corduroy")
    appended(path, claude.file_of({**queued, "operation": "popAll", "content": "use corduroy"}))
    assert_same_as_scan(four, "corduroy")


def test_only_what_is_new_is_read(four: Place) -> None:
    by_index(four, "door")
    path = kept_session(four, "claude-code", "claude-1")
    by_index(four, "door")
    before = index_of(four).read_bytes()
    by_index(four, "brass")
    assert index_of(four).read_bytes() == before, "nothing new is nothing written"
    pieces = "SELECT count(*) FROM words"
    with closing(sqlite3.connect(index_of(four))) as index:
        (count,) = index.execute(pieces).fetchone()
    appended(path, claude.file_of(claude.said("Velvet", message_id="m9")))
    by_index(four, "velvet")
    with closing(sqlite3.connect(index_of(four))) as index:
        assert index.execute(pieces).fetchone() == (count + 1,)
        newest = index.execute("SELECT body FROM words ORDER BY id DESC LIMIT 1").fetchone()
    assert newest == (b"velvet",), "the rest was read before"


def test_it_is_private_and_holds_no_secret(four: Place) -> None:
    secret = "ghp_" + "aB3dE6gH9j" * 3 + "kL2mN4"
    path = kept_session(four, "claude-code", "claude-0")
    path.write_bytes(claude.file_of(claude.typed(f"Use {secret} here", cwd=str(four.project), sessionId="s")))
    assert ids(by_index(four, "here")) == {"s"}
    assert stat.S_IMODE(index_of(four).stat().st_mode) == 0o600
    data = index_of(four).read_bytes()
    assert secret.encode() not in data
    assert secret.lower().encode() not in data
    assert b"redacted" in data


@pytest.mark.parametrize("damage", ["text", "cut", "older", "tables", "pages"])
def test_a_damaged_one_is_built_again(four: Place, damage: str) -> None:
    by_index(four, "door")
    path = index_of(four)
    data = path.read_bytes()
    if damage == "text":
        path.write_bytes(b"no database" * 1000)
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "pages":
        path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    else:
        with closing(sqlite3.connect(path)) as index:
            index.execute("PRAGMA user_version = 0" if damage == "older" else "DROP TABLE words")
    assert_same_as_scan(four)
    with closing(sqlite3.connect(path)) as index:
        assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_where_it_cannot_be_used_the_files_are_searched(four: Place, tmp_path: Path) -> None:
    by_index(four, "door")
    with closing(sqlite3.connect(index_of(four))) as index:
        index.execute("PRAGMA user_version = 99")
    before = index_of(four).read_bytes()
    newer = four.run(*SEARCH, "door")
    assert len(told_by(newer.data, "scan")) == 8
    assert "newer Holdfast" in newer.err
    assert index_of(four).read_bytes() == before
    index_of(four).unlink()
    index_of(four).symlink_to(tmp_path / "elsewhere")
    linked = four.run(*SEARCH, "door")
    assert len(told_by(linked.data, "scan")) == 8
    assert not (tmp_path / "elsewhere").exists()


def started_search(place: Place) -> subprocess.Popen[Any]:
    return start_program([*SEARCH, "door"], env=place.environment, cwd=place.project)


def test_a_journal_left_by_a_killed_process_is_rolled_back(four: Place) -> None:
    """As a kill in the middle of an update leaves it: half written."""
    by_index(four, "door")
    program = (
        "import os, signal, sqlite3, sys\n"
        "index = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "index.execute('PRAGMA cache_size = 1')\n"
        "index.execute('BEGIN IMMEDIATE')\n"
        "index.execute('DELETE FROM words')\n"
        "index.execute('CREATE TABLE big AS SELECT randomblob(9000000) AS data')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, index_of(four)], check=False)
    assert index_of(four).with_name("search.sqlite-journal").stat().st_size > 0
    assert_same_as_scan(four)


def test_two_at_once_and_killed_midway(four: Place) -> None:
    for number in range(12):
        kept_session(four, "claude-code", f"more-{number}", age=200 + number)
    for _ in range(3):
        started = [started_search(four) for _ in range(2)]
        os.kill(started[0].pid, signal.SIGKILL)
        outputs = [one.communicate()[0] for one in started]
        assert started[1].returncode == 0
        assert len(told_by(json.loads(outputs[1]), "index")) == 20
        assert_same_as_scan(four)
        index_of(four).unlink()
    both = [started_search(four) for _ in range(2)]
    first, second = (json.loads(one.communicate()[0]) for one in both)
    for one in (*first, *second):
        del one["usage"]  # it is not waited for while another process has the index
    assert first == second
    assert_same_as_scan(four)


def test_prune_removes_it_and_encrypt_names_it(four: Place) -> None:
    by_index(four, "door")
    told = four.json("prune", "--dry-run")
    assert str(index_of(four)) in {one["path"] for one in told["files"]}
    encrypted = four.run("sessions", "encrypt", env={"HOLDFAST_PASSPHRASE": "correct horse"})
    (named,) = [line for line in encrypted.err.splitlines() if str(index_of(four)) in line]
    assert named.startswith("not encrypted: words of all agents' sessions")
    four.ok("prune", "--yes")
    assert not index_of(four).exists()
    assert_same_as_scan(four)


def test_progress_is_shown_on_a_terminal(four: Place) -> None:
    path = kept_session(four, "claude-code", "claude-0")
    appended(path, claude.file_of(claude.said("velvet " * 1_000_000, message_id="m9")))
    four.environment["COLUMNS"] = "300"
    shown = on_terminal(four, ["sessions", "list", "--all", "--search", "velvet"])[1]
    assert "\r\x1b[KReading sessions into the index: 100%\r\x1b[K" in shown
    again = on_terminal(four, ["sessions", "list", "--all", "--search", "velvet"])[1]
    assert "into the index" not in again
    assert FIRST in again
