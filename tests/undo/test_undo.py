"""Taking changes back, as the one whose files they are sees it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.base.errors import (
    CannotDoError,
    ConflictError,
    DamagedDataError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
    StorageError,
)
from holdfast.base.process import ProcessIdentity
from holdfast.testing import FixedClock, SimulatedCrash, crash_at
from holdfast.undo import git as git_module
from holdfast.undo import state as state_module
from holdfast.undo import work as work_module
from holdfast.undo.git import UsersGit
from holdfast.undo.ledger import from_document
from holdfast.undo.state import BORROWED, FirstLook, LedgerEntry, NamedFiles
from holdfast.undo.transactions import SideCar, UndoLimits

from .trees import START, git, git_folder_of, make_outside, tree_of, twins_in

DEAD: ProcessIdentity = {"pid": 99_999_999, "started": "long ago"}


def changed(sidecar: SideCar, transaction_id: str, *paths: str) -> LedgerEntry:
    entry = sidecar.record(transaction_id, "worked", paths or None)
    assert entry is not None
    return entry


@pytest.fixture
def tx(sidecar: SideCar) -> str:
    return sidecar.begin("s1").id


def test_everything_a_shell_did_is_taken_back(sidecar: SideCar, project: Path, tx: str) -> None:
    (project / "blob").write_bytes(bytes(range(256)))
    (project / "link").symlink_to("a")
    (project / "secret").write_text("mine\n")
    (project / "secret").chmod(0o600)
    before = tree_of(project)
    sidecar.watch(tx)
    (project / "a").write_text("other\n")
    (project / "b").unlink()
    (project / "d" / "c").rename(project / "d" / "moved")
    (project / "blob").write_bytes(b"\0\1\2")
    (project / "link").unlink()
    (project / "link").symlink_to("b")
    (project / "secret").chmod(0o644)
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "er" / "new").write_text("new\n")
    entry = changed(sidecar, tx)
    assert {change.path for change in entry.changes} == {
        "a", "b", "d/c", "d/moved", "blob", "link", "secret", "deep/", "deep/er/", "deep/er/new",
    }  # fmt: skip
    assert entry.renames == {"d/moved": "d/c"}
    sidecar.rollback(tx)
    assert tree_of(project) == before
    assert not (project / "deep").exists()
    assert sidecar.transaction(tx).status == "rolled-back"


def test_an_undo_can_be_undone(sidecar: SideCar, project: Path, tx: str) -> None:
    sidecar.watch(tx, ["a"])
    (project / "a").write_text("other\n")
    after = tree_of(project)
    entry = changed(sidecar, tx)
    undoing = sidecar.undo(entry.id).entry
    assert (project / "a").read_text() == START["a"]
    with pytest.raises(IllegalTransitionError, match="already been undone"):
        sidecar.undo(entry.id)
    sidecar.undo(undoing.id)
    assert tree_of(project) == after
    assert [one.id for one in sidecar.transaction(tx).changes] == [entry.id]


def test_a_rollback_can_be_undone(sidecar: SideCar, project: Path, tx: str) -> None:
    sidecar.watch(tx, ["a"])
    (project / "a").write_text("other\n")
    changed(sidecar, tx)
    rollback = sidecar.rollback(tx).entry
    sidecar.undo(rollback.id)
    assert (project / "a").read_text() == "other\n"
    assert sidecar.transaction(tx).status == "in-progress"


def test_what_the_user_added_since_stays(sidecar: SideCar, project: Path, tx: str) -> None:
    sidecar.watch(tx, ["a"])
    (project / "a").write_text("agent\n" + START["a"])
    entry = changed(sidecar, tx)
    (project / "a").write_text("agent\n" + START["a"] + "user\n")
    assert sidecar.undo(entry.id).restored == ("a",)
    assert (project / "a").read_text() == START["a"] + "user\n"


@pytest.mark.parametrize(
    ("agent", "user", "reason"),
    [
        ("x\n", "y\n", "same places"),
        (None, "y\n", "another file has since been created"),
        ("x\n", None, "since been deleted"),
        ("\0x", "\0y", "same places"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(
    sidecar: SideCar, project: Path, tx: str, agent: str | None, user: str | None, reason: str
) -> None:
    sidecar.watch(tx)
    _set(project / "b", agent)
    (project / "other").write_text("fine\n")
    entry = changed(sidecar, tx)
    _set(project / "b", user)
    before = tree_of(project)
    for action in (lambda: sidecar.undo(entry.id), lambda: sidecar.rollback(tx)):
        with pytest.raises(ConflictError, match=reason):
            action()
        assert tree_of(project) == before
    outcome = sidecar.rollback(tx, partial=True)
    assert (outcome.restored, list(outcome.left)) == (("other",), ["b"])
    assert tree_of(project) == {path: held for path, held in before.items() if path != "other"}


def test_a_new_file_that_was_changed_since_is_kept(sidecar: SideCar, project: Path, tx: str) -> None:
    sidecar.watch(tx)
    (project / "new").write_text("agent\n")
    entry = changed(sidecar, tx)
    (project / "new").write_text("agent\nuser\n")
    with pytest.raises(ConflictError, match="changed after it was created"):
        sidecar.undo(entry.id)
    assert (project / "new").read_text() == "agent\nuser\n"


def _set(path: Path, text: str | None) -> None:
    if text is None:
        path.unlink()
    else:
        path.write_text(text)


def test_two_sessions_keep_each_others_files(sidecar: SideCar, project: Path) -> None:
    one, two = sidecar.begin("s1").id, sidecar.begin("s2").id
    sidecar.watch(one, ["a"])
    sidecar.watch(two)
    (project / "a").write_text("one\n" + START["a"])
    (project / "b").write_text("two\n")
    (project / "made").write_text("two\n")
    first, second = changed(sidecar, one), changed(sidecar, two)
    assert [change.path for change in first.changes] == ["a"]
    assert [change.path for change in second.changes] == ["b", "made"]
    sidecar.rollback(one)
    assert (project / "a").read_text() == START["a"]
    assert (project / "made").read_text() == (project / "b").read_text() == "two\n"


def test_what_two_watched_is_in_doubt(sidecar: SideCar, project: Path) -> None:
    one, two = sidecar.begin("s1").id, sidecar.begin("s2").id
    sidecar.watch(one)
    sidecar.watch(two)
    (project / "b").unlink()
    entry = changed(sidecar, one)
    assert two in entry.doubt
    with pytest.raises(ConflictError, match="cannot tell which session made this change"):
        sidecar.undo(entry.id)
    sidecar.undo(entry.id, doubtful=True)
    assert (project / "b").read_text() == START["b"]


def test_a_move_split_between_two_watchers_is_in_doubt(sidecar: SideCar, project: Path) -> None:
    for first in (0, 1):
        (project / "b").write_text(f"mine {first}\n")
        ids = sidecar.begin("s1").id, sidecar.begin("s2").id
        watched = "b", f"made{first}"
        for name, path in zip(ids, watched, strict=True):
            sidecar.watch(name, [path])
        (project / "b").rename(project / watched[1])
        entries = {ids[one]: changed(sidecar, ids[one]) for one in (first, 1 - first)}
        assert "it contains what was in b" in entries[ids[1]].doubt
        with pytest.raises(ConflictError, match="cannot tell"):
            sidecar.rollback(ids[1])


@pytest.mark.parametrize("first", ["s1", "s2"])
def test_a_move_split_between_two_watchers_with_an_edit_between_is_in_doubt(
    project: Path, clock: FixedClock, first: str
) -> None:
    """Only the same content was seen as a move: a rollback removed the line that a human had added."""
    lines = "".join(f"line {number}\n" for number in range(40))
    (project / "a").write_text(lines)
    named = {
        "s1": NamedFiles(frozenset([b"a", b"middle"])),
        "s2": NamedFiles(frozenset([b"middle", b"last"])),
    }
    with SideCar(project, clock=clock, named_files=lambda: named) as sidecar:
        for name in named:
            sidecar.begin(name, transaction_id=name)
            sidecar.watch(name)
        (project / "a").unlink()
        (project / "last").write_text(f"{lines}the user's\n")
        for name in sorted(named, key=lambda one: one != first):
            sidecar.record(name)
        (entry,) = sidecar.transaction("s2").changes
        assert entry.doubt == "it contains what was in a"
        for name in named:
            sidecar.rollback(name, partial=True)
        assert (project / "last").read_text().endswith("the user's\n")


def test_what_a_tree_has_beside_the_content_of_files(sidecar: SideCar, project: Path, tx: str) -> None:
    """Hard links, extended attributes, folders' modes, empty folders: all are back, and back again."""
    (project / "twin").hardlink_to(project / "a")
    (project / "other").hardlink_to(project / "b")
    os.setxattr(project / "d" / "c", "user.note", b"mine")
    for name, mode in (("empty", 0o750), ("kept", 0o755), ("d", 0o500)):
        (project / name).mkdir(exist_ok=True)
        (project / name).chmod(mode)

    def look() -> object:
        tagged = [one.name for one in project.rglob("*") if one.is_file() and os.listxattr(one)]
        return tree_of(project), twins_in(project), tagged

    before = look()
    sidecar.watch(tx)
    (project / "d").chmod(0o700)
    shutil.rmtree(project / "d")
    (project / "empty").rmdir()
    (project / "new").mkdir()
    (project / "kept").chmod(0o700)
    (project / "kept" / "file").write_text("agent\n")
    (project / "a").write_text("in place\n")
    (project / "written").write_text("renamed over\n")
    (project / "written").rename(project / "b")
    after = look()
    entry = changed(sidecar, tx)
    assert {"d/", "empty/", "new/"} <= {one.change.path for one in sidecar.hunks(entry.changes)}
    undone = sidecar.undo(entry.id)
    assert look() == before
    redone = sidecar.undo(undone.entry.id)
    assert look() == after
    (project / "kept" / "users").write_text("mine\n")
    sidecar.undo(redone.entry.id)
    assert sidecar.transaction(tx).last_undo is not None
    assert (project / "kept" / "users").read_text() == "mine\n"


def test_what_comes_from_elsewhere_brings_no_owner_and_no_attributes(
    sidecar: SideCar, project: Path, tx: str
) -> None:
    sidecar.watch(tx)
    (project / "d" / "new").write_text("agent\n")
    (project / "made").mkdir()
    changed(sidecar, tx)
    document = json.loads(sidecar.carry_out(tx))
    for change in document["entries"][-1]["changes"]:
        change["after"] |= {"owner": [0, 0], "attributes": {"security.capability": "AAAA"}}
    carried = from_document(document, project, where="it")
    states = [change.after for change in carried.entries[-1].changes]
    assert [(one.owner, one.attributes) for one in states if one] == [(None, {})] * 2
    document["entries"][-1]["changes"][0]["path"] += "/"
    with pytest.raises(DamagedDataError, match="do not fit"):
        from_document(document, project, where="it")


def test_folders_that_an_older_version_did_not_know_are_nobodys_change(
    sidecar: SideCar, project: Path, tx: str
) -> None:
    sidecar.watch(tx)
    sidecar.close()
    with sqlite3.connect(sidecar.folder / "holdfast-state.db") as state:
        for column in ("inode", "names", "more"):
            state.execute(f"ALTER TABLE files DROP COLUMN {column}")
        state.execute("DELETE FROM files WHERE link = 2")
        state.execute("PRAGMA user_version = 1")
    state.close()
    (project / "d" / "new").write_text("agent\n")
    assert [change.path for change in changed(sidecar, tx).changes] == ["d/new"]
    sidecar.watch(tx)
    (project / "made").mkdir()
    assert [change.path for change in changed(sidecar, tx).changes] == ["made/"]


@pytest.mark.parametrize("others", [0, 1])
def test_the_other_names_of_a_file_that_a_tool_named(project: Path, clock: FixedClock, others: int) -> None:
    """Also where others are at work, who named neither."""
    (project / "twin").hardlink_to(project / "a")
    named = {"tx": NamedFiles(frozenset([b"a"])), "other": NamedFiles(frozenset([b"b"]))}
    with SideCar(project, clock=clock, named_files=lambda: named) as sidecar:
        for name in ("tx", "other")[: 1 + others]:
            sidecar.begin("s1", transaction_id=name)
            sidecar.watch(name)
        (project / "a").write_text("agent\n")
        sidecar.undo(changed(sidecar, "tx").id)
    assert (project / "twin").read_text() == START["a"]
    assert (project / "twin").samefile(project / "a")


def test_a_new_name_of_a_file_that_a_tool_named_is_in_doubt(project: Path, clock: FixedClock) -> None:
    """That the content is the agent's does not make the name its own: anybody may have made it."""
    named = {"tx": NamedFiles(frozenset([b"a"]))}
    with SideCar(project, clock=clock, named_files=lambda: named) as sidecar:
        sidecar.begin("s1", transaction_id="tx")
        sidecar.watch("tx")
        (project / "a").write_text("agent\n")
        (project / "twin").hardlink_to(project / "a")
        [in_doubt, certain] = (sidecar.record("tx"), sidecar.transaction("tx"))[1].changes
        assert ([c.path for c in in_doubt.changes], bool(in_doubt.doubt)) == (["twin"], True)
        assert ([c.path for c in certain.changes], certain.doubt) == (["a"], "")
        assert sidecar.rollback("tx", partial=True).in_doubt == {"twin"}
    assert (project / "a").read_text() == START["a"]
    assert (project / "twin").read_text() == "agent\n"


def test_a_name_that_a_file_got_since_is_not_split_from_it(project: Path, clock: FixedClock) -> None:
    with SideCar(project, clock=clock) as sidecar:
        sidecar.begin("s1", transaction_id="tx")
        sidecar.watch("tx")
        for name in ("a", "b", "made"):
            (project / name).write_text("agent\n")
        sidecar.record("tx")
        (project / "twin").hardlink_to(project / "a")
        (project / "made too").hardlink_to(project / "made")
        done = sidecar.rollback("tx", partial=True)
        assert done.left == {"a": "twin is a hard link to it now: make that a copy, or remove it"}
        assert (project / "twin").samefile(project / "a")
        assert (project / "a").read_text() == (project / "made too").read_text() == "agent\n"
        assert (project / "b").read_text() == START["b"]
        assert not (project / "made").exists()
        (project / "twin").unlink()
        assert not sidecar.rollback("tx").left
    assert (project / "a").read_text() == START["a"]


def test_a_rollback_that_was_killed_can_be_asked_for_again(project: Path, clock: FixedClock) -> None:
    with SideCar(project, clock=clock) as sidecar:
        sidecar.begin("s1", transaction_id="tx")
        sidecar.watch("tx")
        (project / "a").write_text("agent\n")
        (project / "b").write_text("agent\n")
        changed(sidecar, "tx")
        with pytest.raises(SimulatedCrash), crash_at("sidecar.step"):
            sidecar.rollback("tx")
    with SideCar(project, clock=clock) as sidecar:
        assert sidecar.transaction("tx").status == "rolled-back"
        assert sidecar.rollback("tx").restored == ("a", "b")
    with SideCar(project, clock=clock) as sidecar, pytest.raises(IllegalTransitionError, match="already"):
        sidecar.rollback("tx")
    assert (project / "b").read_text() == START["b"]


def test_what_the_user_did_before_and_between_is_not_the_sessions(
    sidecar: SideCar, project: Path, tx: str
) -> None:
    (project / "b").write_text("user\n")
    sidecar.watch(tx)
    assert sidecar.record(tx) is None
    (project / "b").write_text("user again\n")
    sidecar.watch(tx)
    (project / "a").unlink()
    entry = changed(sidecar, tx)
    assert [change.path for change in entry.changes] == ["a"]
    sidecar.rollback(tx)
    assert (project / "b").read_text() == "user again\n"


def test_a_session_that_died_while_watching(sidecar: SideCar, project: Path, tx: str) -> None:
    sidecar.watch(tx, owner=DEAD)
    (project / "b").write_text("the session, or the user after it?\n")
    [found] = sidecar.transactions()
    [entry] = found.changes
    assert "ended unexpectedly" in entry.doubt
    with pytest.raises(ConflictError):
        sidecar.rollback(tx)
    with pytest.raises(CannotDoError, match="is not watching"):
        sidecar.record(tx)


def test_resume_rules(sidecar: SideCar, tx: str) -> None:
    assert sidecar.resume(tx).id == tx
    sidecar.commit(tx)
    after = sidecar.resume(tx)
    assert (after.id != tx, after.continued_from, after.session_id) == (True, tx, "s1")
    sidecar.rollback(tx)
    with pytest.raises(IllegalTransitionError, match=f"cannot resume session s1: transaction {tx} has been"):
        sidecar.resume(tx)
    with pytest.raises(NotFoundError, match="transaction branch not found: gone"):
        sidecar.resume("gone")


def test_a_branch_that_was_deleted_stands_in_nobodys_way(
    sidecar: SideCar, project: Path, tx: str, caplog: pytest.LogCaptureFixture
) -> None:
    sidecar.watch(tx)
    other = sidecar.begin("s2").id
    (sidecar.folder / "refs" / "heads" / "holdfast" / f"session-{tx}").unlink()
    sidecar.watch(other)
    (project / "b").unlink()
    changed(sidecar, other)
    assert [one.id for one in sidecar.transactions()] == [other]
    assert "transaction branch not found" in caplog.text


def test_files_too_large_are_recorded_and_not_kept(project: Path, clock: FixedClock) -> None:
    with SideCar(project, clock=clock, limits=UndoLimits(largest_file=100)) as sidecar:
        tx = sidecar.begin("s1").id
        (project / "large").write_bytes(b"x" * 101)
        sidecar.watch(tx)
        (project / "large").write_bytes(b"y" * 102)
        (project / "b").write_text("small\n")
        entry = changed(sidecar, tx)
        assert [change.path for change in entry.changes] == ["b", "large"]
        outcome = sidecar.undo(entry.id)
        assert (outcome.restored, list(outcome.left)) == (("b",), ["large"])
        with pytest.raises(ConflictError, match="too large to store"):
            sidecar.undo(entry.id)
        assert sidecar.rollback(tx, partial=True).restored == ()
        assert (project / "large").read_bytes() == b"y" * 102


def test_room_is_made_by_dropping_old_finished_transactions(project: Path, clock: FixedClock) -> None:
    with SideCar(project, clock=clock, limits=UndoLimits(keep_days=7)) as sidecar:
        old, young = sidecar.begin("s1").id, sidecar.begin("s2").id
        sidecar.watch(old, ["a"])
        (project / "a").write_text("one\n")
        changed(sidecar, old)
        sidecar.commit(old)
        clock.advance(8 * 86_400)
        sidecar.watch(young, ["b"])
        (project / "b").write_text("two\n")
        entry = changed(sidecar, young)
        sidecar.collect()
        assert [one.id for one in sidecar.transactions()] == [young]
        sidecar.undo(entry.id)
        assert (project / "b").read_text() == START["b"]
    assert git(project, f"--git-dir={sidecar.folder}", "fsck", "--strict", "--no-dangling") == ""


def test_what_a_fork_began_with_is_no_change_and_lasts_as_long_as_that(
    project: Path, clock: FixedClock
) -> None:
    with SideCar(project, clock=clock, limits=UndoLimits(keep_days=7)) as sidecar:
        sidecar.fork("wf_1", "wf_2", 1)
        assert sidecar.family("wf_2") == []
        sidecar.watch(sidecar.begin("wf_1-s1", transaction_id="wf_1-s1").id, ["a"])
        (project / "a").write_text("one\n")
        changed(sidecar, "wf_1-s1")
        sidecar.commit("wf_1-s1")
        sidecar.fork("wf_1", "wf_2", 1)
        sidecar.fork("wf_2", "wf_3", 1)
        sidecar.collect()
        assert [one.id for one in sidecar.transactions()] == ["wf_1-s1"]
        assert [len(sidecar.family(name)) for name in ("wf_1", "wf_2", "wf_3")] == [1, 1, 1]
        clock.advance(8 * 86_400)
        sidecar.collect()
        assert [sidecar.family(name) for name in ("wf_1", "wf_2", "wf_3")] == [[], [], []]


def test_beyond_the_limit_nothing_is_kept(project: Path, clock: FixedClock) -> None:
    with SideCar(project, clock=clock, limits=UndoLimits(total=300)) as sidecar:
        tx = sidecar.begin("s1").id
        (project / "b").write_bytes(os.urandom(400))
        sidecar.watch(tx)
        (project / "b").write_bytes(b"x")
        entry = changed(sidecar, tx)
        with pytest.raises(ConflictError, match="too large to store"):
            sidecar.undo(entry.id)


def test_the_users_repository_and_settings_are_left_alone(
    sidecar: SideCar, project: Path, tx: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Filters, attributes and hooks of the project neither run nor change a byte."""
    (project / ".gitattributes").write_text("* text eol=crlf filter=shout ident\n")
    mark = tmp_path / "ran"
    git(project, "config", "filter.shout.clean", f"touch {mark}; cat")
    git(project, "config", "core.fsmonitor", f"touch {mark}")
    git(project, "config", "core.hooksPath", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    before = git_folder_of(project)
    (project / "a").write_bytes(b"one\r\n$Id$\n")
    sidecar.watch(tx)
    (project / "a").unlink()
    changed(sidecar, tx)
    sidecar.rollback(tx)
    assert (project / "a").read_bytes() == b"one\r\n$Id$\n"
    assert git_folder_of(project) == before
    assert not mark.exists()


def test_ignored_files_are_covered_where_they_are_named(sidecar: SideCar, project: Path, tx: str) -> None:
    (project / ".gitignore").write_text("*.log\n")
    (project / "x.log").write_text("one\n")
    sidecar.watch(tx)
    (project / "x.log").unlink()
    assert sidecar.record(tx) is None
    (project / "x.log").write_text("one\n")
    sidecar.watch(tx, ["x.log"])
    (project / "x.log").unlink()
    changed(sidecar, tx)
    sidecar.rollback(tx)
    assert (project / "x.log").read_text() == "one\n"


def test_a_folder_that_became_a_link_is_not_followed(
    sidecar: SideCar, project: Path, tx: str, tmp_path: Path
) -> None:
    sidecar.watch(tx)
    (project / "d" / "c").write_text("agent\n")
    entry = changed(sidecar, tx)
    (tmp_path / "c").write_text("agent\n")
    (project / "d" / "c").unlink()
    (project / "d").rmdir()
    (project / "d").symlink_to(tmp_path)
    with pytest.raises(ConflictError):
        sidecar.undo(entry.id)
    assert (tmp_path / "c").read_text() == "agent\n"


def test_a_file_that_made_room_for_a_folder(sidecar: SideCar, project: Path, tx: str) -> None:
    before = tree_of(project)
    sidecar.watch(tx)
    (project / "b").unlink()
    (project / "b").mkdir()
    (project / "b" / "inside").write_text("x\n")
    (project / "d" / "c").unlink()
    (project / "d").rmdir()
    (project / "d").write_text("a file now\n")
    changed(sidecar, tx)
    sidecar.rollback(tx)
    assert tree_of(project) == before


@pytest.mark.parametrize(
    "path", ["../out", "/etc/passwd", ".git/config", ".holdfast/x", "sub/.git/config", "."]
)
def test_paths_that_are_not_the_projects(sidecar: SideCar, tx: str, path: str) -> None:
    with pytest.raises(InvalidInputError):
        sidecar.watch(tx, [path])


def test_names_that_are_no_text(sidecar: SideCar, project: Path, tx: str) -> None:
    name = b"caf\xe9\n.py"
    place = Path(os.fsdecode(os.fsencode(project) + b"/" + name))
    place.write_text("one\n")
    sidecar.watch(tx)
    place.unlink()
    changed(sidecar, tx)
    sidecar.rollback(tx)
    assert place.read_text() == "one\n"


@pytest.mark.parametrize("git_folder", [False, True], ids=["none", "empty"])
def test_without_git_every_file_is_watched(tmp_path: Path, clock: FixedClock, git_folder: bool) -> None:
    if git_folder:
        (tmp_path / ".git").mkdir()
    (tmp_path / "a").write_text("one\n")
    with SideCar(tmp_path, clock=clock) as sidecar:
        tx = sidecar.begin("s1").id
        sidecar.watch(tx)
        (tmp_path / "a").unlink()
        changed(sidecar, tx)
        sidecar.rollback(tx)
    assert (tmp_path / "a").read_text() == "one\n"


def _leads_elsewhere(project: Path) -> None:
    git(project, "config", "core.worktree", str(make_outside(project)))


def _leads_elsewhere_for_one_worktree(project: Path) -> None:
    git(project, "config", "extensions.worktreeConfig", "true")
    git(project, "config", "--worktree", "core.worktree", str(make_outside(project)))


def _leads_inside(project: Path) -> None:
    git(project, "config", "core.worktree", "../d")


def _leads_further_out(project: Path) -> None:
    """The index, which lies in the project, names files below the folder around it."""
    git(project, "config", "core.worktree", str(project.parent))
    (project / ".git" / "index").unlink()
    git(project.parent, f"--git-dir={project}/.git", "--work-tree=.", "add", "project/a", "project/b")


def _has_no_worktree(project: Path) -> None:
    git(project, "config", "core.bare", "true")


def _is_a_file(project: Path) -> None:
    there = project.parent / "there"
    (project / ".git").rename(there)
    (project / ".git").write_text("gitdir: ../there\n")
    git(project, "config", "core.worktree", str(make_outside(project)))


def _is_included(project: Path) -> None:
    (project / ".git" / "more").write_text(f"[core]\n\tworktree = {make_outside(project)}\n")
    git(project, "config", "include.path", "more")


@pytest.mark.parametrize("looked_before", [False, True])
@pytest.mark.parametrize(
    "place",
    [
        _leads_elsewhere,
        _leads_elsewhere_for_one_worktree,
        _leads_inside,
        _leads_further_out,
        _has_no_worktree,
        _is_a_file,
        _is_included,
    ],
)
def test_every_file_is_recorded_wherever_the_settings_put_the_work_tree(
    project: Path, clock: FixedClock, place: Callable[[Path], None], looked_before: bool
) -> None:
    """An archive can bring settings of git that lead its work tree somewhere else."""
    place(project)
    with SideCar(project, clock=clock) as sidecar:
        if looked_before:
            sidecar.look()
        tx = sidecar.take_up("s1")
        before = tree_of(project)
        (project / "new").write_text("new-1\n")
        (project / "d" / "new").write_text("new-2\n")
        (project / "a").write_text("changed-1\n")
        (project / "b").unlink()
        found = sidecar.finish(tx)
        assert found is not None
        assert found.paths == ["a", "b", "d/new", "new"]
        sidecar.rollback(tx)
        assert tree_of(project) == before


def test_what_came_to_be_ignored_while_it_was_recorded_is_said(sidecar: SideCar, project: Path) -> None:
    (project / ".gitignore").write_text("*.log\n")
    sidecar.look()
    tx = sidecar.take_up("s1")
    (project / "run.log").write_text("log-1\n")
    (project / "new").write_text("new-1\n")
    assert sidecar.record(tx, "worked", keeps_watching=True) is not None
    found = sidecar.finish(tx)
    assert found is not None
    assert found.uncovered == ("ignored by git: run.log",)


def test_a_renamed_file_stays_where_its_old_place_is_taken(sidecar: SideCar, project: Path, tx: str) -> None:
    """Taken back by half, the file would be in neither place."""
    text = (project / "a").read_text()
    sidecar.watch(tx)
    (project / "a").rename(project / "moved")
    (project / "b").write_text("the session's\n")
    changed(sidecar, tx)
    (project / "a").write_text("the user's\n")
    outcome = sidecar.rollback(tx, partial=True)
    assert (project / "a").read_text() == "the user's\n"
    assert (project / "moved").read_text() == text
    assert (project / "b").read_text() == START["b"]
    assert outcome.left == {
        "a": "another file has since been created there",
        "moved": "it contains what was in a, which is left unchanged",
    }


def test_lines_that_moved_between_files_stay_together(sidecar: SideCar, project: Path, tx: str) -> None:
    first, *others = (project / "a").read_text().splitlines(keepends=True)
    sidecar.watch(tx)
    (project / "a").write_text("".join(others))
    (project / "b").write_text(START["b"] + first)
    changed(sidecar, tx)
    (project / "a").write_text("the user's\n")
    sidecar.rollback(tx, partial=True)
    assert (project / "b").read_text() == START["b"] + first


def test_whoever_ends_a_watch_is_no_crash(sidecar: SideCar, project: Path, tx: str) -> None:
    """An agent may be gone by the time what it did in its last turn is recorded."""
    sidecar.watch(tx, owner=DEAD)
    (project / "a").write_text("the session's\n")
    assert changed(sidecar, tx).doubt == ""
    sidecar.rollback(tx)
    assert (project / "a").read_text() == START["a"]


@pytest.mark.parametrize("by_processes", [True, False])
@pytest.mark.parametrize("version", ["2", "4"])
def test_what_the_users_index_tells_is_what_reading_tells(
    project: Path, monkeypatch: pytest.MonkeyPatch, by_processes: bool, version: str
) -> None:
    for number in range(40):
        place = project / f"deep{number % 3}" / f"er{number % 7}" / f"f{number}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{number}\n")
    (project / "link").symlink_to("a")
    (project / "program").write_text("#!/bin/sh\n")
    (project / "program").chmod(0o755)
    (project / "private").write_text("mine\n")
    (project / "private").chmod(0o600)
    (project / "nothing").touch()
    (project / "twin").hardlink_to(project / "private")
    (project / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (project / ".gitattributes").write_text("*.txt text\n")
    for path in project.rglob("*"):
        if ".git" not in path.parts and not path.is_symlink():
            os.utime(path, (1_000_000_000, 1_000_000_000))
    git(project, "config", "core.autocrlf", "input")
    git(project, "add", ".")
    git(project, "update-index", "--index-version", version)
    later = 3_999_999_999  # so that what git knows of the files is believed
    os.utime(project / ".git" / "index", (later, later))
    (project / "untracked").write_text("new\n")
    (project / "a").write_text("changed\n")
    (project / "b").unlink()
    shutil.rmtree(project / "deep0")
    (project / "deep0").symlink_to("deep1")
    (project / "empty" / "inside").mkdir(parents=True)
    with SideCar(project, clock=lambda: 4_000_000_000.0) as sidecar:
        monkeypatch.setattr(work_module, "SHARED_FROM", 1)
        monkeypatch.setattr(git_module, "SHARED_FROM", 1 if by_processes else 10**9)
        sidecar.look()
        state = sidecar._state
        assert state is not None
        told = state.all_files()
        seen = {path: known.state for path, known in told.items()}
        assert told[b"nothing"].stored == told[b"deep1/er1/f1"].stored == BORROWED
        assert state.first_look() is None
    shutil.rmtree(project / ".holdfast")
    monkeypatch.setattr(UsersGit, "survey", lambda *_: None)
    with SideCar(project, clock=lambda: 4_000_000_000.0) as sidecar:
        sidecar.look()
        state = sidecar._state
        assert state is not None
        read = {path: known.state for path, known in state.all_files().items()}
    assert {path: one.changed(stored=True) for path, one in seen.items()} == read


def test_an_index_that_git_replaces_meanwhile_is_read_as_it_was(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "update-index", "--refresh")
    later = 3_999_999_999  # so that what git knows of the files is believed
    os.utime(project / ".git" / "index", (later, later))
    (project / "b").write_text("changed\n")
    before = UsersGit(project).survey(4_000_000_000.0, lambda _index: None)
    assert before is not None
    usual = git_module.usual_modes

    def replace_index(*arguments: Any) -> tuple[int, int]:
        git(project, "rm", "--cached", "--quiet", "a")
        return usual(*arguments)

    monkeypatch.setattr(git_module, "usual_modes", replace_index)
    monkeypatch.setattr(git_module, "SHARED_FROM", 1)
    during = UsersGit(project).survey(4_000_000_000.0, lambda _index: None)
    assert during is not None
    assert (during.index, during.odd) == (before.index, before.odd)
    assert before.odd[b"b"] is None
    assert all(one for path, one in before.odd.items() if path != b"b")


@pytest.mark.some_of("most_folders", "version", "ignores_case", number=2)
@pytest.mark.parametrize("most_folders", [0, 100])
@pytest.mark.parametrize("processes", [0, 1, 3])
@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("ignores_case", [False, True])
def test_what_git_does_not_know_is_told_as_git_tells_it(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_folders: int,
    processes: int,
    version: str,
    ignores_case: bool,
) -> None:
    """Whether the folders among it are few or many, and whoever looks at which part of the tree."""
    for name in ("one", "gone/f", "gone/in/f", "kept/f", "kept/in/f", "taken", "turned/f", "zone"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("1\n")
    git(project, "init", "--quiet", "module")
    author = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
    git(project / "module", *author, "commit", "--quiet", "--allow-empty", "-m", "One")
    git(project, "add", ".")
    git(project, "update-index", "--index-version", version)
    git(project, "config", "core.ignoreCase", str(ignores_case).lower())
    shutil.rmtree(project / "gone")
    (project / "kept" / "f").unlink()
    shutil.rmtree(project / "kept" / "in")
    (project / "kept" / "new").touch()
    (project / "taken").unlink()
    (project / "taken").mkdir()
    (project / "taken" / "new").touch()
    shutil.rmtree(project / "turned")
    (project / "turned").symlink_to("kept")
    os.mkfifo(project / "pipe")
    monkeypatch.setattr(git_module, "SHARED_FROM", 1 if processes else 10**9)
    monkeypatch.setattr(os, "cpu_count", lambda: processes)
    ignoring = {".gitignore": "build/\n*.log\n!d/kept.log\n", "sub/.idea/.gitignore": "*\n"}
    names = ("new", "x.log", "build/o", "d/new", "d/z.log", "d/kept.log", "un/a", "un/y.log", "un/in/b")
    for name, text in {
        **ignoring,
        **dict.fromkeys((*names, ":x", "-y/z", "ünder/w", "sub/.idea/w"), "1\n"),
    }.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    (project / "empty").mkdir()
    for name in ("nested", "un/nested"):
        (project / name).mkdir()
        git(project / name, "init", "--quiet")
        (project / name / "f").write_text("1\n")
    (project / "link").symlink_to("d")
    (project / ".holdfast").mkdir()
    (project / ".holdfast" / "own").touch()
    monkeypatch.setattr(git_module, "_MOST_FOLDERS", most_folders)
    survey = UsersGit(project).survey(4_000_000_000.0, lambda _index: None)
    assert survey is not None

    def listed(*options: str) -> set[str]:
        return set(git(project, "ls-files", "-z", "--others", "--exclude-standard", *options).split("\0"))

    ours = {"", ".holdfast/own"}
    assert {*map(os.fsdecode, survey.others)} - ours == listed() - ours
    assert {*map(os.fsdecode, survey.ignored)} == listed("--ignored", "--directory") - ours


def test_a_file_in_a_folder_that_has_the_place_of_a_tracked_file_is_seen(
    sidecar: SideCar, project: Path
) -> None:
    """Git does not tell of it: the agent's edit counted as its creation, and the rollback removed it."""
    git(project, "update-index", "--refresh")
    (project / "a").unlink()
    (project / "a").mkdir()
    (project / "a" / "new").write_text("the user's\n")
    tx = sidecar.take_up("s1")
    (project / "a" / "new").write_text("the user's\nthe agent's\n")
    sidecar.finish(tx)
    sidecar.rollback(tx)
    assert (project / "a" / "new").read_text() == "the user's\n"


def test_a_first_look_that_was_not_finished_is_none(project: Path, clock: FixedClock) -> None:
    """Its large part may be on the disk by then."""
    with SideCar(project, clock=clock) as sidecar:
        sidecar.begin("s1")
        state = sidecar._state
        assert state is not None
        state.keep_index(b"large")
        assert state.first_look() is None
        for indexed in (b"large", state._kept_index):
            with state.change():
                state.put_first_look(FirstLook(indexed, frozenset([b"odd"]), (1, 2)))
            assert state.first_look() == FirstLook(b"large", frozenset([b"odd"]), (1, 2))


@pytest.mark.parametrize("when", ["opening", "at work"])
def test_a_full_disk_is_no_damage(
    project: Path, clock: FixedClock, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """`max_page_count`: SQLite refuses as it does on a full disk."""
    database = project / ".holdfast" / "sidecar" / "holdfast-state.db"
    with SideCar(project, clock=clock) as sidecar:
        sidecar.begin("s1", transaction_id="tx")
    (project / "a").write_text("x\n")
    opened = state_module._opened

    def full(path: Path) -> sqlite3.Connection:
        connection = opened(path)
        connection.execute("PRAGMA max_page_count = 1")
        if when == "opening":
            try:
                connection.executescript(
                    "CREATE TABLE filling (x); INSERT INTO filling VALUES (zeroblob(99999));"
                )
            finally:
                connection.close()
        return connection

    def begin_many(sidecar: SideCar) -> None:
        for number in range(200):
            sidecar.begin("s1", transaction_id=f"more-{number}-padded-to-fill-a-page-sooner")

    with monkeypatch.context() as patch:
        patch.setattr(state_module, "_opened", full)
        with (
            SideCar(project, clock=clock) as sidecar,
            pytest.raises(StorageError, match="no space left") as told,
        ):
            begin_many(sidecar)
    assert "free space" in (told.value.hint or "")
    assert ("nothing was changed" in told.value.message) == (when == "opening")
    assert [path.name for path in database.parent.glob("*state.db*damaged*")] == []
    with SideCar(project, clock=clock) as sidecar:
        sidecar.watch("tx")
        (project / "a").write_text("y\n")
        assert changed(sidecar, "tx").changes


def test_what_could_not_be_recorded_in_time_is_in_doubt(project: Path, clock: FixedClock) -> None:
    """The side-car's trouble is not the file's: it was taken for one that cannot be read, or is gone."""
    with SideCar(project, clock=clock) as sidecar:
        tx = sidecar.take_up("s1")
        (project / "a").write_text("the session's\n")
        objects = sidecar.folder / "objects"
        objects.rename(sidecar.folder / "away")
        objects.write_bytes(b"")
        with pytest.raises(StorageError):
            sidecar.record(tx, "turn 1")
        objects.unlink()
        (sidecar.folder / "away").rename(objects)
        (project / "b").write_text("the user's\n")
        assert sidecar.take_up("s1", description="turn 1", missed="turn 1 was not recorded: full") == tx
        (project / "d" / "c").write_text("the session's\n")
        sidecar.finish(tx)
        first, second = sidecar.transaction(tx).changes
        assert (first.description, [one.path for one in first.changes]) == ("turn 1", ["a", "b"])
        assert first.doubt.startswith("it could not be recorded in time")
        assert ([one.path for one in second.changes], second.doubt) == (["d/c"], "")
        assert sidecar.transaction(tx).uncovered == ("turn 1 was not recorded: full",)
        sidecar.rollback(tx, partial=True)
        assert (project / "b").read_text() == "the user's\n"


def test_a_file_that_came_to_be_unreadable_is_said_where_nothing_else_changed(
    sidecar: SideCar, project: Path
) -> None:
    tx = sidecar.take_up("s1")
    (project / "a").unlink()
    os.mkfifo(project / "a")
    assert sidecar.record(tx, "turn 1") is not None
    assert sidecar.transaction(tx).uncovered == ("unreadable: a",)
