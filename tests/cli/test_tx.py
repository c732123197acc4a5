"""`holdfast tx`: what sessions changed in the files, and taking it back."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.common import INSTALL_STEP
from holdfast.undo.transactions import SideCar

from .harness import Place, Result, on_terminal


@pytest.fixture
def changed(place: Place) -> Place:
    """A session that changed, made, renamed and deleted files."""
    for name in ("changed", "renamed", "deleted"):
        (place.project / name).write_text(f"{name}\n")
    with SideCar(place.project) as sidecar:
        sidecar.begin("s1", transaction_id="first")
        sidecar.watch("first")
        (place.project / "changed").write_text("agent\n")
        (place.project / "made").write_text("agent\n")
        (place.project / "renamed").rename(place.project / "moved")
        (place.project / "deleted").unlink()
        sidecar.record("first", "sed -i … token=ghp_0123456789abcdefghijABCDEFGHIJ012345")
    return place


def test_nothing_yet(place: Place) -> None:
    assert (
        place.ok("tx", "list").out == f"No session has changed files here yet. Start with: {INSTALL_STEP}\n"
    )
    assert place.json("tx", "list") == []
    place.run("tx", "show").failed(1, error="no session has changed files")
    place.run("tx", "undo", "gone").failed(1, error="no such transaction or change: gone", hint="tx list")
    place.run("tx", "rollback", "../x").failed(1, error="no such transaction")


def test_list_and_show(changed: Place) -> None:
    head, line = changed.ok("tx", "list").lines
    assert re.split(r"  +", head) == [
        "TRANSACTION", "SESSION", "STATUS", "CHANGES", "FILES", "COVERAGE", "UPDATED (UTC)"
    ]  # fmt: skip
    assert re.split(r"  +", line)[:6] == ["first", "s1", "in-progress", "1", "5", "all files"]
    shown = changed.ok("tx", "show", "fir").out
    assert "  M changed\n" in shown
    assert "  A made\n" in shown
    assert "  R renamed -> moved\n" in shown
    assert "  D deleted\n" in shown
    assert "ghp_" not in shown
    found = changed.json("tx", "show", "last")
    assert (found["status"], [entry["kind"] for entry in found["entries"]]) == (
        "in-progress",
        ["begin", "change"],
    )


def test_undo_and_undo_the_undo(changed: Place) -> None:
    assert changed.ok("tx", "undo").lines[0] == "Undid 5 files"
    assert (changed.project / "deleted").read_text() == "deleted\n"
    assert not (changed.project / "made").exists()
    undoing = changed.json("tx", "show", "last")["entries"][-1]["id"]
    changed.run("tx", "undo").failed(
        1, error="no change left to undo", hint="`holdfast tx redo first` reverts the last undo"
    )
    assert sorted(changed.json("tx", "undo", undoing)["restored"]) == [
        "changed", "deleted", "made", "moved", "renamed",
    ]  # fmt: skip
    assert (changed.project / "made").read_text() == "agent\n"


def test_rollback(changed: Place) -> None:
    before = changed.git("status", "--porcelain")
    assert changed.ok("tx", "rollback", "first").lines[0] == "Rolled back 5 files"
    assert changed.json("tx", "list")[0]["status"] == "rolled-back"
    assert (changed.project / "renamed").read_text() == "renamed\n"
    assert changed.git("status", "--porcelain") != before
    assert ".holdfast" not in changed.git("status", "--porcelain", "--untracked-files=all")
    changed.run("tx", "rollback", "first").failed(1, error="has already been rolled back")


REVEALING = {
    "branch": "git checkout --quiet old",
    "rules": "echo '*.o' > .gitignore",
    "no rules": "rm .gitignore",
    "index": "git add --force .env build",
}


@pytest.fixture
def ignoring(place: Place) -> Place:
    """A project with files that git ignores, and a branch on which it does not."""
    (place.project / "src").mkdir()
    (place.project / "src" / "kept").write_text("kept\n")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "start")
    place.git("branch", "old")
    (place.project / ".gitignore").write_text(".env\nbuild/\n")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "ignore")
    (place.project / "build").mkdir()
    for name in (".env", "build/out"):
        (place.project / name).write_text("the user's\n")
    return place


@pytest.mark.parametrize("command", REVEALING.values(), ids=REVEALING.keys())
def test_a_rollback_leaves_files_that_were_only_ignored_before(ignoring: Place, command: str) -> None:
    plan = ignoring.root / "plan.yaml"
    commands = f"[{{id: a, run: {command!r}}}, {{id: b, run: 'echo b > made', depends_on: [a]}}]"
    plan.write_text(f"issue: {{id: D, title: Demo}}\ntasks: {commands}\n")
    ignoring.ok("run", plan)
    ignoring.ok("tx", "rollback", "last", "--yes")
    for name in (".env", "build/out"):
        assert (ignoring.project / name).read_text() == "the user's\n"
    assert (ignoring.project / ".gitignore").read_text() == ".env\nbuild/\n"
    assert not (ignoring.project / "made").exists()


@pytest.mark.parametrize("command", REVEALING.values(), ids=REVEALING.keys())
def test_what_a_turn_brings_to_light_is_not_its_change(ignoring: Place, command: str) -> None:
    """Each step in a process of its own, as hooks have them."""
    with SideCar(ignoring.project) as sidecar:
        sidecar.take_up("agent")
    subprocess.run(["/bin/sh", "-c", command], cwd=ignoring.project, check=True)
    (ignoring.project / "src").rename(ignoring.project / "lib")
    (ignoring.project / "made").write_text("agent\n")
    with SideCar(ignoring.project) as sidecar:
        sidecar.finish("agent")
    assert not {".env", "build/out"} & set(ignoring.json("tx", "list")[0]["files"])
    ignoring.ok("tx", "rollback", "--yes")
    for name in (".env", "build/out"):
        assert (ignoring.project / name).read_text() == "the user's\n"
    assert (ignoring.project / "src" / "kept").read_text() == "kept\n"
    assert not (ignoring.project / "lib").exists()
    assert not (ignoring.project / "made").exists()


def test_what_the_user_changed_since_is_refused(changed: Place) -> None:
    (changed.project / "changed").write_text("user\n")
    before = changed.tree()
    changed.run("tx", "rollback").failed(
        3,
        error=r"changes: changed \(it has since been changed in the same places\)$",
        hint="add --partial to undo the other 4 files",
    )
    assert {path: held for path, held in changed.tree().items() if ".holdfast" not in path} == {
        path: held for path, held in before.items() if ".holdfast" not in path
    }
    result = changed.run("tx", "rollback", "--partial")
    assert (result.code, result.lines[0]) == (3, "Rolled back 4 files")
    assert result.err == "left unchanged: changed: it has since been changed in the same places\n"
    assert (changed.project / "changed").read_text() == "user\n"


def run_tasks(place: Place, *commands: str, more: Sequence[str] = (), **how: Any) -> Result:
    plan = place.root / "plan.yaml"
    tasks = [
        {"id": f"t{number}", "run": command, "depends_on": [f"t{number - 1}"] if number else []}
        for number, command in enumerate(commands)
    ]
    plan.write_text(json.dumps({"issue": {"id": "D", "title": "Demo"}, "tasks": tasks}))
    return place.run("run", plan, *more, **how)


def changed_files(place: Place) -> list[str]:
    return [path for one in place.json("tx", "list") for path in one["files"]]


@pytest.mark.parametrize("where", ["core.excludesFile", "default", "include"])
def test_what_the_users_own_git_ignores_is_no_change(place: Place, where: str) -> None:
    home = Path(place.environment["HOME"])
    (home / ".config" / "git").mkdir(parents=True)
    default = home / ".config" / "git" / "ignore"
    settings = {
        "core.excludesFile": "[core]\nexcludesFile = ~/ignored\n",
        "default": "",
        "include": "[include]\npath = other\n",
    }
    (home / ".gitconfig").write_text(settings[where])
    (home / "other").write_text("[core]\nexcludesFile = ~/ignored\n")
    (default if where == "default" else home / "ignored").write_text(".env\n.idea/\n")
    place.environment["GIT_CONFIG_GLOBAL"] = str(home / ".gitconfig")
    assert (
        run_tasks(place, "mkdir .idea; echo x > .idea/x; echo x > .env; echo x > made", "rm .env").code == 0
    )
    assert changed_files(place) == ["made"]


def test_an_ignore_file_that_only_the_repository_names_does_not_count(place: Place) -> None:
    (place.root / "everything").write_text("*\n")
    place.git("config", "core.excludesFile", str(place.root / "everything"))
    assert run_tasks(place, "echo x > made").code == 0
    assert changed_files(place) == ["made"]


def test_a_repository_of_another_user_is_read_where_it_is_safe(place: Place) -> None:
    real = subprocess.check_output(["/bin/sh", "-c", "command -v git"], text=True).strip()
    wrapper = place.root / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f"#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec '{real}' \"$@\"\n")
    wrapper.chmod(0o700)
    (place.project / ".gitignore").write_text("node_modules/\n")
    place.environment["PATH"] = f"{wrapper.parent}:{place.environment['PATH']}"
    work = "mkdir -p node_modules; echo x > node_modules/x; echo x > made"
    run_tasks(place, work).failed(1, error="another user", hint=r"safe\.directory")
    trusted = place.root / "trusted"
    trusted.write_text(f"[safe]\ndirectory = {place.project}\n")
    place.environment["GIT_CONFIG_GLOBAL"] = str(trusted)
    assert run_tasks(place, work).code == 0
    assert changed_files(place) == ["made"]


def test_what_is_not_covered_is_said(place: Place) -> None:
    library = place.beside("library")
    (library.project / "x").write_text("x\n")
    library.git("add", ".")
    library.git("commit", "--quiet", "-m", "x")
    (place.project / ".gitignore").write_text(".env\nbuild/\n")
    (place.project / ".env").write_text("SECRET\n")
    place.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.project), "lib")
    place.git("clone", "--quiet", str(library.project), "nested")
    assert (
        run_tasks(
            place, "rm .env; echo y > lib/x; echo y > nested/x; echo x > made", "mkdir build; echo > build/x"
        ).code
        == 0
    )
    expected = ["ignored by git: .env, build/", "nested repository: nested/", "submodule: lib"]
    (found,) = place.json("tx", "list")
    assert (found["files"], found["not_covered"]) == (["made"], expected)
    assert "  partial  " in place.ok("tx", "list").out
    assert [f"not covered: {line}" for line in expected] == place.ok("tx", "show").lines[1:4]


def test_a_folder_in_the_place_of_a_tracked_file_is_no_submodule(place: Place) -> None:
    for name in ("now", "before"):
        (place.project / name).write_text("x\n")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "x")
    (place.project / "before").unlink()
    (place.project / "before").mkdir()
    (place.project / "before" / "inner").write_text("x\n")
    assert run_tasks(place, "rm now; mkdir now; echo y > now/inner; echo y > before/inner").code == 0
    (found,) = place.json("tx", "list")
    assert (found["files"], found["not_covered"]) == (["before/inner", "now", "now/inner"], [])


def test_the_users_objects_are_borrowed_and_what_an_undo_needs_is_copied(place: Place) -> None:
    for number in range(30):
        (place.project / f"f{number}").write_text(f"{number}\n" * 50)
    (place.project / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (place.project / "rot.bin").write_text("uryyb\n")
    (place.project / ".gitattributes").write_text("*.txt text\n*.bin filter=rot\n")
    for way in ("clean", "smudge"):
        place.git("config", f"filter.rot.{way}", "tr a-z n-za-m")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "start")
    index = place.project / ".git" / "index"
    later = index.stat().st_mtime + 60  # as if the files had been left alone for a while
    os.utime(index, (later, later))
    (place.project / "untracked").write_text("mine\n")
    assert run_tasks(place, "echo agent | tee f1 f2 dos.txt rot.bin untracked; rm f3").code == 0
    with closing(sqlite3.connect(place.project / ".holdfast/sidecar/holdfast-state.db")) as state:
        assert state.execute("SELECT count(*) FROM files WHERE stored = 2").fetchone() == (28,)
    shutil.rmtree(place.project / ".git" / "objects")
    place.ok("tx", "rollback", "last", "--yes")
    assert [(place.project / f"f{number}").read_text() for number in (1, 2, 3)] == [
        f"{number}\n" * 50 for number in (1, 2, 3)
    ]
    assert (place.project / "dos.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (place.project / "rot.bin").read_text() == "uryyb\n"
    assert (place.project / "untracked").read_text() == "mine\n"


def test_a_folder_that_a_task_replaced_by_a_link_comes_back(place: Place) -> None:
    elsewhere = place.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "inner").write_text("of another place\n")
    (place.project / "folder").mkdir()
    (place.project / "folder" / "inner").write_text("kept\n")
    assert run_tasks(place, f"rm -r folder; ln -s {elsewhere} folder; echo x > made").code == 0
    place.ok("tx", "rollback", "last", "--yes")
    assert not (place.project / "folder").is_symlink()
    assert (place.project / "folder" / "inner").read_text() == "kept\n"
    assert not (place.project / "made").exists()
    assert (elsewhere / "inner").read_text() == "of another place\n"
    place.ok("tx", "undo", place.json("tx", "show", "last")["entries"][-1]["id"])
    assert (place.project / "folder").is_symlink()
    assert (elsewhere / "inner").read_text() == "of another place\n"


def test_an_entry_from_the_future(changed: Place) -> None:
    from holdfast.undo.objects import Repository

    repository = Repository(changed.project / ".holdfast" / "sidecar")
    old = repository.branch("session-first")
    tree = repository.write_tree([])
    new = repository.write_commit(tree, old, 0, 'change\n\n{"schema_version": 99}')
    (repository.folder / "refs/heads/holdfast/session-first").write_text(f"{new}\n")
    refused = changed.run("tx", "rollback", "first")
    assert refused.code == 4
    *warnings, error, hint = refused.err.splitlines()
    assert all(line.startswith("warning: ") for line in warnings)
    assert re.match(r"error: .* of version 99", error)
    assert hint.startswith("hint: upgrade holdfast")
    listed = changed.run("tx", "list")
    assert (listed.code, listed.out) == (
        0,
        f"No session has changed files here yet. Start with: {INSTALL_STEP}\n",
    )
    assert re.match(r"warning: .* of version 99", listed.err)


def test_diff_of_a_transaction_and_of_one_change(changed: Place) -> None:
    shown = changed.ok("tx", "diff").out
    assert "M changed\n@@ -1 +1 @@ #1\n-changed\n+agent\n" in shown
    assert "D deleted\n@@ -1 +0,0 @@ #2\n-deleted\n" in shown
    assert re.search(r"A made\n@@ -0,0 \+1 @@ #\d\n\+agent\n", shown)
    change = changed.json("tx", "show")["entries"][-1]["id"]
    only = changed.ok("tx", "diff", change, "--file", "made").out
    assert only.startswith("A made\n@@ -0,0 +1 @@ #")
    assert only in shown
    changed.run("tx", "diff", "--file", "other").failed(1, error="no change to other", hint="tx show")


@pytest.fixture
def edited(place: Place) -> Place:
    """Two places of one file, and one of another."""
    lines = [f"{number}\n" for number in range(30)]
    for name in ("one", "two"):
        (place.project / name).write_text("".join(lines))
    with SideCar(place.project) as sidecar:
        sidecar.begin("s1", transaction_id="first")
        sidecar.watch("first")
        (place.project / "one").write_text("".join(["first\n", *lines[1:-1], "last\n"]))
        (place.project / "two").write_text("".join([*lines, "more\n"]))
        sidecar.record("first")
    return place


def test_single_hunks(edited: Place) -> None:
    one, two = edited.project / "one", edited.project / "two"
    shown = edited.ok("tx", "diff").out
    assert re.findall(r"#\d", shown) == ["#1", "#2", "#3"]
    one.write_text(one.read_text().replace("15\n", "mine\n"))
    before = one.read_text(), two.read_text()
    assert edited.ok("tx", "undo", "--hunks", "2-3", "--dry-run").lines[0] == "Would undo 2 files"
    edited.run("tx", "undo", "--hunks", "2,4").failed(1, error="no such hunk: 4", hint="tx diff")
    edited.run("tx", "undo", "--hunks", "x").failed(2, error="such as 1,3-5")
    edited.run("tx", "undo", "--patch").failed(2, error="needs a terminal", hint="--hunks")
    edited.run("tx", "undo", "--patch", "--hunks", "1").failed(2, error="either --hunks or --patch")
    assert (one.read_text(), two.read_text()) == before
    assert edited.ok("tx", "undo", "--hunks", "2,3").lines == ["Undid 2 files", "  one", "  two"]
    kept = one.read_text().splitlines()
    assert (kept[0], kept[15], kept[-1]) == ("first", "mine", "29")
    assert two.read_text().endswith("29\n")
    edited.ok("tx", "redo")
    assert (one.read_text(), two.read_text()) == before
    edited.ok("tx", "undo", "--hunks", "1")
    entries = len(edited.json("tx", "show")["entries"])
    edited.run("tx", "undo", "--hunks", "1").failed(1, error="already been undone")
    assert len(edited.json("tx", "show")["entries"]) == entries
    edited.ok("tx", "rollback", "--yes")
    assert one.read_text().splitlines()[::15] == ["0", "mine"]
    assert two.read_text().endswith("29\n")


def test_hunks_are_asked_about_on_a_terminal(edited: Place) -> None:
    asked = "Undo this hunk"
    code, shown = on_terminal(
        edited, ["tx", "undo", "--patch"], (asked, "n\n"), (asked, "y\n"), (asked, "d\n")
    )
    assert code == 0, shown
    assert (edited.project / "one").read_text().splitlines()[::29] == ["first", "29"]
    assert (edited.project / "two").read_text().endswith("more\n")


@pytest.mark.parametrize(
    ("answers", "undone"),
    [("?yq", {1}), ("aq", {1, 2}), ("dy", {3}), ("nay", {2, 3}), ("nyq", {2})],
)
def test_the_answers_mean_what_they_mean_to_git(edited: Place, answers: str, undone: set[int]) -> None:
    """The first two hunks are of one file."""
    asked = "Undo this hunk"
    code, shown = on_terminal(
        edited, ["tx", "undo", "--patch"], *((asked, f"{answer}\n") for answer in answers)
    )
    assert code == 0, shown
    assert ("? - print this help" in shown) == ("?" in answers)
    one, two = ((edited.project / name).read_text().splitlines() for name in ("one", "two"))
    left = [one[0] == "first", one[-1] != "29", two[-1] == "more"]
    assert {number for number, there in enumerate(left, 1) if not there} == undone


def test_names_and_lines_that_a_terminal_would_obey(place: Place) -> None:
    name = "evil\x1b[2J\u202ename"
    with SideCar(place.project) as sidecar:
        sidecar.begin("s1", transaction_id="first")
        sidecar.watch("first")
        (place.project / name).write_text("text \x1b]0;title\x07\n")
        sidecar.record("first")
    for words in (("show",), ("diff",), ("undo", "--dry-run"), ("undo",), ("list",)):
        assert not set("\x1b\x07\u202e") & set(place.ok("tx", *words).out), words


def test_a_dry_run_changes_nothing(changed: Place) -> None:
    before = tree(changed.project)
    assert changed.ok("tx", "undo", "--dry-run").lines[0] == "Would undo 5 files"
    assert changed.ok("tx", "rollback", "--dry-run").lines[0] == "Would roll back 5 files"
    assert tree(changed.project) == before
    assert [one["kind"] for one in changed.json("tx", "show")["entries"]] == ["begin", "change"]


def test_one_file_and_then_the_rest(changed: Place) -> None:
    assert changed.ok("tx", "undo", "--file", "changed").lines == ["Undid 1 file", "  changed"]
    assert (changed.project / "changed").read_text() == "changed\n"
    assert (changed.project / "made").exists()
    assert changed.ok("tx", "rollback", "--file", "./made", "--yes").lines == ["Rolled back 1 file", "  made"]
    assert changed.json("tx", "list")[0]["status"] == "in-progress"
    assert changed.ok("tx", "rollback", "--yes").lines[0] == "Rolled back 3 files"
    assert (changed.project / "deleted").read_text() == "deleted\n"


def test_resume_from_a_snapshot_with_its_files(place: Place) -> None:
    seen = place.root / "seen"
    commands = ["echo 1 > a", f"cat a >> {seen}; echo 2 > a; mkdir -p more; echo 2 > more/b", "true"]
    assert run_tasks(place, *commands, more=["--pause-every", "1"]).code == 0
    (first,) = place.json("snapshot", "list")
    assert place.run("resume", "--yes").code == 0
    place.run("resume", "--files").failed(2, error="--files needs --from", hint="snapshot list")
    (place.project / "mine").write_text("mine\n")
    resumed = place.run("resume", "--from", first["id"], "--files", "--yes")
    assert resumed.code == 0, resumed
    assert "restored 2 files; `holdfast tx undo ch_" in resumed.err
    assert seen.read_text() == "1\n1\n"
    assert (place.project / "mine").read_text() == "mine\n"


def test_no_task_runs_on_files_that_could_not_be_restored(place: Place) -> None:
    runs = place.root / "runs"
    large = f"head -c {17 << 20} /dev/zero > big"
    commands = [large, f"echo run >> {runs}; echo x > other; truncate -s 10 big", "true"]
    assert run_tasks(place, *commands, more=["--pause-every", "1"]).code == 0
    (first,) = place.json("snapshot", "list")
    assert place.run("resume", "--yes").code == 0
    before = tree(place.project)
    words = ("resume", "--from", first["id"], "--files", "--yes")
    shown = place.run(*words, "--dry-run")
    assert (shown.code, "left unchanged: big" in shown.err) == (3, True), shown
    refused = place.run(*words)
    assert (refused.code, refused.err.partition(" (")[0]) == (3, "error: cannot restore every file: big")
    assert "--partial" in refused.err
    assert tree(place.project) == before
    assert runs.read_text() == "run\n"
    assert place.run(*words, "--partial").code == 0
    assert runs.read_text() == "run\nrun\n"
    place.run("resume", "--dry-run").failed(2, error="need --files")


def test_files_are_restored_only_where_nothing_stands_against_resuming(place: Place) -> None:
    assert run_tasks(place, "echo 1 > a", "echo 2 > a", "true", more=["--pause-every", "1"]).code == 0
    (first,) = place.json("snapshot", "list")
    assert place.run("resume", "--yes").code == 0
    (place.project / "a").write_text("mine\n")
    assert place.run("resume", "--from", first["id"], "--files", "--strict", "--yes").code != 0
    assert (place.project / "a").read_text() == "mine\n"
    assert run_tasks(place, "echo 1 > b", "true", more=["--pause-every", "1"]).code == 0
    other = place.json("list")[0]["id"]
    refused = place.run("resume", other, "--from", first["id"], "--files", "--yes")
    assert "does not belong" in refused.err
    assert (place.project / "b").read_text() == "1\n"


def test_hunks_leave_alone_what_others_wrote_between_two_changes(place: Place) -> None:
    lines = [f"{number}\n" for number in range(60)]
    file = place.project / "one"
    file.write_text("".join(lines))
    with SideCar(place.project) as sidecar:
        sidecar.begin("s1", transaction_id="first")
        for number, who in ((0, "agent"), (30, "mine"), (59, "agent")):
            if who == "agent":
                sidecar.watch("first")
            lines[number] = f"{who}\n"
            file.write_text("".join(lines))
            if who == "agent":
                sidecar.record("first")
    assert "+mine" not in place.ok("tx", "diff").out
    place.run("tx", "undo", "--hunks", "1").failed(1, error="changed by somebody else in between")
    assert file.read_text() == "".join(lines)


def test_empty_folders_that_a_task_removes_come_back(place: Place) -> None:
    (place.project / "dir" / "empty").mkdir(parents=True)
    (place.project / "solo").mkdir()
    (place.project / "dir" / "file").write_text("1\n")
    assert run_tasks(place, "echo 1 > a", "rm -rf dir solo").code == 0
    place.ok("tx", "rollback", "--yes")
    assert (place.project / "dir" / "empty").is_dir()
    assert (place.project / "solo").is_dir()


def test_undo_undo_redo_redo(place: Place) -> None:
    assert run_tasks(place, "echo 1 > a", "echo 2 > a", "echo 3 > a").code == 0
    contents = [(place.project / "a").read_text()]
    for words in ("undo", "undo", "redo", "redo"):
        place.ok("tx", words)
        contents.append((place.project / "a").read_text())
    assert contents == [f"{number}\n" for number in (3, 2, 1, 2, 3)]
    place.run("tx", "redo").failed(1, error="no undo to redo", hint="tx show")
    place.ok("tx", "rollback", "--yes")
    assert place.ok("tx", "redo", "--dry-run").lines == ["Would redo 1 file", "  a"]
    place.ok("tx", "redo")
    assert (place.project / "a").read_text() == "3\n"


def tree(project: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in project.iterdir() if path.is_file()}
