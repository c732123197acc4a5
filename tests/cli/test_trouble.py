"""A disk that is full, read-only or otherwise in the way while a wind-down is finalised.

Either the whole session is there or nothing has changed, and the user is told which.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from .harness import PATIENCE, Place


def file_size_limit(size: int) -> dict[str, Any]:
    """No file may grow beyond it: what a full disk does, on any machine and for any user.

    Of the bytecode that it writes Python does not notice that a part is missing, and no program that reads it
    later would start.
    """
    return {
        "before": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        "env": {"PYTHONDONTWRITEBYTECODE": "1"},
    }


@pytest.mark.parametrize(
    ("journal_size", "limit"),
    [
        pytest.param(0, 1_000, id="not enough space for the files"),
        pytest.param(200_000, 150_000, id="no room for the journal's last line"),
    ],
)
def test_no_room(place: Place, journal_size: int, limit: int) -> None:
    name = place.started("tool_call")
    if journal_size:
        place.manager().append_action("tool_call", {"text": "x" * journal_size}, 0.95)
    place.json("list")  # the database is there already
    journal, files = place.journal.read_bytes(), place.session_files()

    result = place.run("winddown", "finalize", **file_size_limit(limit))

    told = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
    assert (result.code, result.out) == (1, ""), result
    assert told[0].startswith("error: could not "), result
    assert "File too large" in told[0]
    assert told[1] == "hint: check free space and permissions, then run the same command again"
    assert place.journal.read_bytes() == journal
    assert place.session_files() == files

    place.ok("winddown", "finalize")  # the same command again, with room
    assert place.latest() == f"{name}\n"
    assert [line["session_id"] for line in place.json("snapshot", "list")] == [name]


def test_no_room_to_append(place: Place) -> None:
    place.started("tool_call")
    journal = place.journal.read_bytes()
    result = place.run(
        *("winddown", "append", "tool_call", "--percent", "0.95"), **file_size_limit(len(journal) + 10)
    )
    result.failed(
        1, error="could not append to the journal: (File too large|No space left)", hint="free space"
    )
    assert place.journal.read_bytes() == journal


def folder_we_may_not_write(place: Place) -> None:
    place.started("tool_call")
    before = place.tree()
    place.sessions.chmod(0o500)
    try:
        result = place.run("winddown", "finalize")
    finally:
        place.sessions.chmod(0o700)
    result.failed(1, error="could not use the sessions folder: Permission denied", hint="permissions")
    assert place.tree() == before


if os.geteuid() != 0:  # root writes everywhere; the small disks below are for root
    test_a_folder_we_may_not_write = folder_we_may_not_write


# ── real small disks, where we may mount some ──────────────────────────────────────────────

_UNSHARE = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))


@cache
def may_mount() -> bool:
    try:
        return (
            subprocess.run(
                [*_UNSHARE, "mount", "-t", "tmpfs", "x", "/mnt"], check=False, capture_output=True
            ).returncode
            == 0
        )
    except FileNotFoundError:
        return False


# Runs in a mount namespace of its own, so its disks go when it ends.
_SMALL_DISKS = """
import json, os, pathlib, shutil, subprocess, sys
from holdfast import HoldfastError, IncrementalPauseManager

sessions = pathlib.Path(".holdfast/sessions")
before = pathlib.Path("../before")
shutil.copytree(sessions, before)
reports = []


def attempt(kind, options, *, spare_pages=None, read_only=False):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", sessions], check=True)
    shutil.copytree(before, sessions, dirs_exist_ok=True)
    journal = sessions / "ACTIVE-PAUSE.jsonl"
    if spare_pages is not None:
        room = os.statvfs(sessions).f_bfree - spare_pages
        (sessions / "filler").write_bytes(bytes(room * 4096))
    if read_only:
        subprocess.run(["mount", "-o", "remount,ro", sessions], check=True)
    listed, content = sorted(os.listdir(sessions)), journal.read_bytes()
    report = {"kind": kind, "error": None}
    try:
        IncrementalPauseManager().finalize_pause()
    except HoldfastError as error:
        report["error"] = f"{type(error).__name__}: {error.message}"
        report["untouched"] = journal.exists() and journal.read_bytes() == content
        report["same files"] = sorted(os.listdir(sessions)) == listed
    except BaseException as error:
        report["error"] = f"unexpected {error!r}"
    if read_only:
        subprocess.run(["mount", "-o", "remount,rw", sessions], check=True)
    (sessions / "filler").unlink(missing_ok=True)
    if report["error"]:
        IncrementalPauseManager().finalize_pause()
    report["files"] = sorted(p.name.removeprefix("session-") for p in sessions.glob("session-*"))
    report["latest"] = (sessions / "LATEST-SESSION.txt").read_text().strip()
    subprocess.run(["umount", sessions], check=True)
    os.environ["HOLDFAST_DB"] = f"../data/{len(reports)}.db"
    reports.append(report)


attempt("read-only", "size=1m", read_only=True)
for spare in range(8):
    attempt(f"{spare} pages free", "size=1m", spare_pages=spare)
print(json.dumps(reports))
"""


def small_disks(place: Place) -> None:
    """Room runs out at each step in turn: in one of them, nothing but the last file finds none."""
    place.paused()
    name = place.started("tool_call")
    done = subprocess.run(
        [*_UNSHARE, sys.executable, "-c", _SMALL_DISKS],
        cwd=place.project,
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    reports: list[dict[str, Any]] = json.loads(done.stdout)
    failed = [report for report in reports if report["error"]]
    assert {"read-only", "0 pages free", "1 pages free"} <= {report["kind"] for report in failed}
    assert "7 pages free" not in {report["kind"] for report in failed}
    for report in failed:
        assert report["error"].startswith("StorageError: could not "), report
        assert (report["untouched"], report["same files"]) == (True, True), report
    for report in reports:  # after the same command again, with room
        assert report["latest"] == name, report
        assert len(report["files"]) == 8, report


def what_the_user_is_told(place: Place) -> None:
    place.started("tool_call")
    before = place.tree()
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    done = subprocess.run(
        [
            *_UNSHARE,
            "sh",
            "-c",
            script,
            "sh",
            place.sessions,
            sys.executable,
            "-m",
            "holdfast",
            "winddown",
            "finalize",
        ],
        cwd=place.project,
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith("error: could not use the sessions folder: Read-only file system ("), (
        done.stderr
    )
    assert done.stderr.endswith("hint: check free space and permissions, then run the same command again\n")
    assert place.tree() == before


if may_mount():  # elsewhere `test_no_room` stands for them
    test_small_disks = small_disks
    test_what_the_user_is_told = what_the_user_is_told
