"""Capture against real repositories, each in a folder of its own with no config but ours."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.base import git
from holdfast.base.errors import GitError, InvalidInputError
from holdfast.capture.git import BEFORE_FIRST_COMMIT, capture_git_state, commit_files
from holdfast.model.git import GitState
from soak import repeated

GONE = "1234567890" * 4


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def start(cls, folder: Path, *options: str) -> Repository:
        folder.mkdir(parents=True, exist_ok=True)
        repository = cls(folder)
        repository.git("init", "--quiet", *options)
        return repository

    def git(self, *arguments: str, fails: bool = False) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stdout.strip()

    def write(self, name: str | bytes, text: str = "text\n") -> Path:
        path = self.folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def commit(self, name: str = "file", text: str = "text\n") -> str:
        """Write, stage and commit one file."""
        self.write(name, text)
        self.git("add", "--", name)
        self.git("commit", "--quiet", "-m", f"Change {name}")
        return self.head

    def conflicting_branch(self) -> str:
        """A branch `other` whose one commit touches the same line as the one here does."""
        self.commit("file", "base\n")
        self.git("checkout", "--quiet", "-b", "other")
        theirs = self.commit("file", "theirs\n")
        self.git("checkout", "--quiet", "main")
        self.commit("file", "ours\n")
        return theirs

    def hook(self, name: str, script: str) -> None:
        path = self.folder / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        executable(path, script)

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def state(self, since: str | None = None) -> GitState:
        state = capture_git_state(self.folder, since=since)
        assert state is not None
        return state


def executable(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture(autouse=True)
def our_own_config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The global config file of this test; the machine's plays no part."""
    home = tmp_path_factory.mktemp("home")
    config = home / "gitconfig"
    config.write_text('[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n')
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ann Author")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ann@example.org")
    return config


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return Repository.start(tmp_path / "repo")


@pytest.fixture
def wrap_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a script before git; `$real` in it is the real one."""

    def wrap(script: str) -> None:
        real = subprocess.check_output(["/bin/sh", "-c", "command -v git"], text=True).strip()
        folder = tmp_path / "bin"
        folder.mkdir()
        executable(folder / "git", f"real='{real}'\n{script}")
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    return wrap


# ── the plain cases ────────────────────────────────────────────────────────────────────────


def test_a_clean_tree(repo: Repository) -> None:
    first = repo.commit()

    assert repo.state(since=first) == GitState(
        branch="main",
        commit_at_workflow_start=first,
        commit_at_snapshot=first,
        files_modified=(),
        files_staged=(),
        files_uncommitted=(),
        has_uncommitted_changes=False,
        worktree=str(repo.folder),
        ignore_rules="",
    )


def test_a_staged_file(repo: Repository) -> None:
    repo.commit()
    repo.write("new")
    repo.git("add", "new")

    state = repo.state()

    assert state.files_staged == state.files_modified == ("new",)
    assert state.uncommitted_summary == "1 added; 1 staged"


def test_an_unstaged_change(repo: Repository) -> None:
    repo.commit("file")
    repo.write("file", "changed\n")

    state = repo.state()

    assert (state.files_modified, state.files_staged) == (("file",), ())
    assert state.uncommitted_summary == "1 modified"


def test_an_untracked_file_is_an_uncommitted_change(repo: Repository) -> None:
    repo.commit()
    repo.write("new")

    state = repo.state()

    assert state.has_uncommitted_changes
    assert (state.files_modified, state.files_staged) == (("new",), ())


def test_an_ignored_file_is_none(repo: Repository) -> None:
    repo.commit(".gitignore", "*.log\n")
    repo.write("build.log")

    assert not repo.state().has_uncommitted_changes


def test_modified_files_are_sorted_and_each_stands_once(repo: Repository) -> None:
    start = repo.commit("z")
    repo.commit("b")
    repo.write("b", "staged\n")
    repo.git("add", "b")
    repo.write("b", "and changed again\n")
    repo.write("a")

    assert repo.state(since=start).files_modified == ("a", "b")


def test_the_summary_counts_by_kind(repo: Repository) -> None:
    for name in ("changed", "gone", "moved"):
        repo.commit(name, f"text of {name}\n")
    repo.write("changed", "other\n")
    (repo.folder / "gone").unlink()
    repo.git("mv", "moved", "here")
    repo.write("new")

    assert repo.state().uncommitted_summary == "1 modified, 1 deleted, 1 renamed, 1 untracked; 1 staged"


def test_without_a_start_only_uncommitted_changes_count(repo: Repository) -> None:
    repo.commit("one")
    repo.commit("two")

    state = repo.state()

    assert (state.commit_at_workflow_start, state.files_modified) == (None, ())


# ── where the folder is ────────────────────────────────────────────────────────────────────


def test_an_empty_repository_has_a_branch_and_no_commit(repo: Repository) -> None:
    state = repo.state()

    assert (state.branch, state.commit_at_snapshot, state.has_uncommitted_changes) == ("main", None, False)


def test_a_file_staged_for_the_first_commit(repo: Repository) -> None:
    repo.write("first")
    repo.git("add", "first")

    assert repo.state().files_staged == ("first",)


def test_a_detached_head_has_no_branch(repo: Repository) -> None:
    first = repo.commit()
    repo.git("checkout", "--quiet", "--detach")

    state = repo.state()

    assert (state.branch, state.commit_at_snapshot) == (None, first)


def test_a_sub_folder_tells_of_the_whole_repository(repo: Repository, our_own_config: Path) -> None:
    repo.git("config", "--global", "status.relativePaths", "true")
    repo.commit("inner/file")
    repo.write("outer")

    assert capture_git_state(repo.folder / "inner") == repo.state()
    assert repo.state().files_modified == ("outer",)


def test_a_linked_worktree_has_a_branch_and_a_root_of_its_own(repo: Repository, tmp_path: Path) -> None:
    repo.commit()
    repo.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = Repository(tmp_path / "side")
    side.write("new")

    state = side.state()

    assert (state.branch, state.worktree) == ("side", str(tmp_path / "side"))
    assert state.files_modified == ("new",)
    assert repo.state().files_modified == ()


def test_an_operation_in_another_worktree_is_not_ours(repo: Repository, tmp_path: Path) -> None:
    repo.conflicting_branch()
    repo.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = Repository(tmp_path / "side")
    side.git("merge", "other", fails=True)

    assert (side.state().operation, repo.state().operation) == ("merge", None)


def test_the_root_is_named_without_symlinks(repo: Repository, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo.folder)

    state = capture_git_state(tmp_path / "link")

    assert state is not None
    assert state.worktree == str(repo.folder)


def test_a_root_with_a_line_break_in_its_name(tmp_path: Path) -> None:
    repo = Repository.start(tmp_path / "two\nlines")

    assert repo.state().worktree == str(repo.folder)


def test_a_folder_outside_of_any_repository(tmp_path: Path) -> None:
    assert capture_git_state(tmp_path) is None


def test_a_bare_repository_has_no_work_tree(tmp_path: Path) -> None:
    assert capture_git_state(Repository.start(tmp_path, "--bare").folder) is None


def test_a_bare_repository_where_git_refuses_those(tmp_path: Path) -> None:
    bare = Repository.start(tmp_path, "--bare")
    bare.git("config", "--global", "safe.bareRepository", "explicit")

    assert capture_git_state(bare.folder) is None


def test_the_git_folder_itself_is_no_work_tree(repo: Repository) -> None:
    assert capture_git_state(repo.folder / ".git") is None


def test_an_empty_git_folder_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    assert capture_git_state(tmp_path) is None


def test_a_repository_above_the_ceiling_is_not_seen(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write("inner/file")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(repo.folder))

    assert capture_git_state(repo.folder / "inner") is None


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no such folder"):
        capture_git_state(tmp_path / "gone")


def test_without_git(repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(GitError, match="not installed") as caught:
        capture_git_state(repo.folder)
    assert caught.value.hint is not None


def test_a_repository_of_another_user(repo: Repository, wrap_git: Callable[[str], None]) -> None:
    wrap_git('GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec "$real" "$@"')

    with pytest.raises(GitError, match="another user") as caught:
        capture_git_state(repo.folder)
    assert f"git config --global --add safe.directory {repo.folder}`" in str(caught.value.hint)


# ── damage ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "rubbish"),
    [
        ("HEAD", ""),
        ("HEAD", "rubbish\n"),
        ("config", "[rubbish\n"),
        ("index", ""),
        ("index", "rubbish\n"),
        ("refs/heads/main", ""),
        ("refs/heads/main", "rubbish\n"),
        ("refs/heads/main", f"{GONE}\n"),
    ],
)
def test_a_damaged_file_of_git_is_an_error_and_not_another_state(
    repo: Repository, name: str, rubbish: str
) -> None:
    repo.commit()
    (repo.folder / ".git" / name).write_text(rubbish)

    with pytest.raises(GitError) as caught:
        capture_git_state(repo.folder)
    assert caught.value.hint is not None


def test_a_commit_that_is_missing(repo: Repository) -> None:
    commit = repo.commit()
    (repo.folder / ".git" / "objects" / commit[:2] / commit[2:]).unlink()

    with pytest.raises(GitError, match="cannot read"):
        capture_git_state(repo.folder)


def test_a_git_file_that_points_nowhere(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text(f"gitdir: {tmp_path / 'gone'}\n")

    with pytest.raises(GitError, match="link is broken"):
        capture_git_state(tmp_path)


def test_a_damaged_repository_inside_a_sound_one_is_not_taken_for_the_outer(repo: Repository) -> None:
    inner = Repository.start(repo.folder / "inner")
    (inner.folder / ".git" / "HEAD").unlink()

    with pytest.raises(GitError, match="damaged"):
        capture_git_state(inner.folder)


# ── since the start ────────────────────────────────────────────────────────────────────────


def test_files_committed_since(repo: Repository) -> None:
    repo.commit("gone")
    start = repo.commit("changed")
    repo.commit("new")
    repo.commit("changed", "other\n")
    repo.git("rm", "--quiet", "gone")
    repo.git("commit", "--quiet", "-m", "Remove")

    state = repo.state(since=start)

    assert state.files_modified == ("changed", "gone", "new")
    assert not state.has_uncommitted_changes


def test_a_file_renamed_in_a_commit_counts_under_both_names(repo: Repository) -> None:
    start = repo.commit("before")
    repo.git("mv", "before", "after")
    repo.git("commit", "--quiet", "-m", "Rename")

    assert repo.state(since=start).files_modified == ("after", "before")


def test_a_change_taken_back_is_none(repo: Repository) -> None:
    start = repo.commit("file", "one\n")
    repo.commit("file", "two\n")
    repo.commit("file", "one\n")

    assert repo.state(since=start).files_modified == ()


def test_a_start_that_is_no_ancestor_is_compared_all_the_same(repo: Repository) -> None:
    repo.commit("base")
    start = repo.commit("left")
    repo.git("reset", "--quiet", "--hard", "HEAD~")
    repo.commit("right")

    state = repo.state(since=start)

    assert state.files_modified == ("left", "right")
    assert not state.start_commit_missing


def test_a_start_that_is_gone_is_said(repo: Repository) -> None:
    repo.commit("committed")
    repo.write("new")

    state = repo.state(since=GONE)

    assert state.start_commit_missing
    assert (state.commit_at_workflow_start, state.files_modified) == (GONE, ("new",))


def test_a_start_before_a_shallow_clones_history(repo: Repository, tmp_path: Path) -> None:
    start = repo.commit("one")
    tip = repo.commit("two")
    repo.git("clone", "--quiet", "--depth=1", repo.folder.as_uri(), str(tmp_path / "shallow"))

    state = Repository(tmp_path / "shallow").state(since=start)

    assert (state.commit_at_snapshot, state.start_commit_missing) == (tip, True)


def test_a_start_before_the_first_commit_makes_every_file_new(repo: Repository) -> None:
    repo.commit("a/one")
    repo.commit("two")
    repo.write("three")

    state = capture_git_state(repo.folder / "a", since=BEFORE_FIRST_COMMIT)

    assert state is not None
    assert state.files_modified == ("a/one", "three", "two")
    assert state.commit_at_workflow_start is None


def test_an_orphan_branch_has_nothing_committed_since(repo: Repository) -> None:
    start = repo.commit("file")
    repo.git("checkout", "--quiet", "--orphan", "fresh")

    state = repo.state(since=start)

    assert (state.branch, state.commit_at_snapshot) == ("fresh", None)
    assert state.files_modified == ("file",)


@pytest.mark.parametrize("since", ["", "main", "--output=file", GONE[:12], GONE.replace("1", "G")])
def test_a_start_that_is_no_commit_id_is_refused(repo: Repository, since: str) -> None:
    with pytest.raises(InvalidInputError):
        repo.state(since=since)


# ── in the middle of something ─────────────────────────────────────────────────────────────


def start_merge(repo: Repository) -> None:
    repo.git("merge", "other", fails=True)


def start_rebase(repo: Repository) -> None:
    repo.git("rebase", "other", fails=True)


def start_old_rebase(repo: Repository) -> None:
    repo.git("rebase", "--apply", "other", fails=True)


def start_cherry_pick(repo: Repository) -> None:
    repo.git("cherry-pick", "other", fails=True)


def start_revert(repo: Repository) -> None:
    repo.git("revert", "--no-edit", "HEAD~", fails=True)


def start_am(repo: Repository) -> None:
    patch = repo.git("format-patch", "-1", "other", "-o", str(repo.folder.parent))
    repo.git("am", patch, fails=True)


def start_bisect(repo: Repository) -> None:
    repo.git("bisect", "start")


@pytest.mark.parametrize(
    ("operation", "start", "conflicts"),
    [
        ("merge", start_merge, True),
        ("rebase", start_rebase, True),
        ("rebase", start_old_rebase, True),
        ("cherry-pick", start_cherry_pick, True),
        ("revert", start_revert, True),
        ("am", start_am, False),
        ("bisect", start_bisect, False),
    ],
)
def test_an_operation_in_progress_is_named(
    repo: Repository, operation: str, start: Callable[[Repository], None], conflicts: bool
) -> None:
    repo.conflicting_branch()
    start(repo)

    state = repo.state()

    assert state.operation == operation
    assert state.uncommitted_summary == ("1 conflicted" if conflicts else None)
    assert state.files_modified == (("file",) if conflicts else ())
    assert state.files_staged == ()


def test_a_cherry_pick_between_two_of_its_commits(repo: Repository) -> None:
    theirs = repo.conflicting_branch()
    repo.git("checkout", "--quiet", "other")
    repo.commit("later")
    repo.git("checkout", "--quiet", "main")
    repo.git("cherry-pick", f"{theirs}~..other", fails=True)
    repo.commit("file", "resolved\n")

    assert not (repo.folder / ".git" / "CHERRY_PICK_HEAD").exists()
    assert repo.state().operation == "cherry-pick"


def test_a_repository_that_keeps_refs_in_a_table_is_asked_through_git(repo: Repository) -> None:
    repo.conflicting_branch()
    start_cherry_pick(repo)
    (repo.folder / ".git" / "reftable").mkdir()

    assert repo.state().operation == "cherry-pick"


# ── upstream ───────────────────────────────────────────────────────────────────────────────


def test_how_far_the_branch_is_from_its_upstream(repo: Repository, tmp_path: Path) -> None:
    repo.commit("base")
    repo.git("clone", "--quiet", str(repo.folder), str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone")
    repo.commit("theirs")
    clone.git("fetch", "--quiet")
    clone.commit("one")
    clone.commit("two")

    state = clone.state()

    assert (state.upstream, state.ahead, state.behind) == ("origin/main", 2, 1)


def test_an_upstream_that_is_gone_leaves_the_distance_unknown(repo: Repository, tmp_path: Path) -> None:
    repo.commit()
    repo.git("clone", "--quiet", str(repo.folder), str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone")
    clone.git("update-ref", "-d", "refs/remotes/origin/main")

    state = clone.state()

    assert (state.upstream, state.ahead, state.behind) == ("origin/main", None, None)


# ── submodules ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def with_submodule(repo: Repository, tmp_path: Path) -> Repository:
    library = Repository.start(tmp_path / "library")
    library.commit("code")
    repo.git("submodule", "--quiet", "add", str(library.folder), "lib")
    repo.git("commit", "--quiet", "-m", "Add a submodule")
    return repo


def test_a_submodule_as_it_should_be(with_submodule: Repository) -> None:
    state = with_submodule.state()

    assert (state.submodules_changed, state.has_uncommitted_changes) == ((), False)


def test_a_dirty_submodule(with_submodule: Repository) -> None:
    with_submodule.write("lib/code", "changed\n")

    state = with_submodule.state()

    assert state.submodules_changed == state.files_modified == ("lib",)
    assert state.files_staged == ()


def test_a_submodule_moved_to_another_commit(with_submodule: Repository) -> None:
    Repository(with_submodule.folder / "lib").commit("more")

    assert with_submodule.state().submodules_changed == ("lib",)


def test_a_submodule_move_that_was_committed_since(with_submodule: Repository) -> None:
    start = with_submodule.head
    Repository(with_submodule.folder / "lib").commit("more")
    with_submodule.git("commit", "--quiet", "-am", "Move")

    state = with_submodule.state(since=start)

    assert (state.submodules_changed, state.has_uncommitted_changes) == (("lib",), False)


def test_inside_a_submodule_the_submodule_is_the_repository(with_submodule: Repository) -> None:
    inner = Repository(with_submodule.folder / "lib")

    assert inner.state().worktree == str(inner.folder)


# ── names and kinds of change ──────────────────────────────────────────────────────────────

ODD_NAMES = {
    b"caf\xe9": r'"caf\351"',
    "café".encode(): "café",
    b"with space": "with space",
    b" leading": " leading",
    b"two\nlines": "two\nlines",
    b'"quoted"': r'"\"quoted\""',
    b"-dash": "-dash",
    b"arrow -> name": "arrow -> name",
}


@pytest.mark.parametrize("how", ["untracked", "staged", "committed"])
def test_odd_names(repo: Repository, how: str) -> None:
    start = repo.commit()
    for name in ODD_NAMES:
        repo.write(name)
    if how != "untracked":
        repo.git("add", ".")
    if how == "committed":
        repo.git("commit", "--quiet", "-m", "Odd")

    assert repo.state(since=start).files_modified == tuple(sorted(ODD_NAMES.values()))


def test_odd_names_in_a_rename(repo: Repository) -> None:
    repo.commit("old\nname")
    repo.git("mv", "old\nname", "new name")

    assert repo.state().files_modified == ("new name", "old\nname")


def test_a_rename_is_staged_under_both_names(repo: Repository) -> None:
    repo.commit("before")
    repo.git("mv", "before", "after")

    assert repo.state().files_staged == ("after", "before")


def test_a_copy_leaves_its_origin_out(repo: Repository) -> None:
    repo.git("config", "--global", "status.renames", "copies")
    repo.commit("origin", "a line\n")
    repo.write("copy", "a line\n")
    repo.write("origin", "other\n")
    repo.git("add", "copy", "origin")

    state = repo.state()

    assert state.files_staged == ("copy", "origin")
    assert state.uncommitted_summary == "1 modified, 1 copied; 2 staged"


def test_a_file_that_became_a_link(repo: Repository) -> None:
    path = repo.folder / "file"
    repo.commit("file")
    path.unlink()
    path.symlink_to("elsewhere")

    state = repo.state()

    assert state.files_modified == ("file",)
    assert state.uncommitted_summary == "1 changed in type"


def test_a_file_that_git_was_only_told_of(repo: Repository) -> None:
    repo.write("file")
    repo.git("add", "--intent-to-add", "file")

    state = repo.state()

    assert (state.files_modified, state.files_staged) == (("file",), ())


def test_a_file_staged_and_then_deleted_counts_as_deleted(repo: Repository) -> None:
    repo.commit("file")
    repo.write("file", "staged\n")
    repo.git("add", "file")
    (repo.folder / "file").unlink()

    assert repo.state().uncommitted_summary == "1 deleted; 1 staged"


def test_an_untracked_folder_stays_one_path(repo: Repository) -> None:
    repo.commit()
    for number in range(50):
        repo.write(f"build/deep/{number}")

    assert repo.state().files_modified == ("build/",)


def test_untracked_files_show_even_where_the_user_hides_them(repo: Repository) -> None:
    repo.git("config", "status.showUntrackedFiles", "no")
    repo.write("new")

    assert repo.state().files_modified == ("new",)


# ── it only reads ──────────────────────────────────────────────────────────────────────────


def fingerprint(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


def make_stat_info_stale(folder: Path) -> None:
    """So that git would like to write what it learnt back to the index."""
    for path in folder.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            os.utime(path, ns=(1, 1))


def test_a_capture_leaves_the_repository_byte_for_byte(repo: Repository) -> None:
    repo.git("config", "core.untrackedCache", "true")
    start = repo.commit("one")
    repo.commit("two")
    repo.write("new")
    make_stat_info_stale(repo.folder)
    before = fingerprint(repo.folder)

    repo.state(since=start)

    assert fingerprint(repo.folder) == before
    repo.git("status")
    assert fingerprint(repo.folder) != before, "plain git status writes, so the comparison can fail"


def test_a_capture_leaves_submodules_byte_for_byte(with_submodule: Repository) -> None:
    make_stat_info_stale(with_submodule.folder)
    before = fingerprint(with_submodule.folder)

    with_submodule.state()

    assert fingerprint(with_submodule.folder) == before


def test_a_capture_in_a_partial_clone_downloads_nothing(repo: Repository, tmp_path: Path) -> None:
    start = repo.commit("old name", "a line\n" * 20)
    repo.commit("second")
    repo.git("config", "uploadpack.allowFilter", "true")
    partial = Repository(tmp_path / "partial")
    repo.git("clone", "-q", "--filter=blob:none", "--no-checkout", repo.folder.as_uri(), str(partial.folder))
    partial.git("reset", "--quiet")
    partial.git("rm", "--quiet", "--cached", "old name")
    partial.write("new name", "a line\n" * 19)
    partial.git("add", "new name")
    executable(tmp_path / "asked", f"touch '{tmp_path}/remote was asked'; exit 1")
    partial.git("config", "remote.origin.uploadpack", str(tmp_path / "asked"))
    before = fingerprint(partial.folder)

    partial.state(since=start)
    partial.state(since=GONE)

    assert fingerprint(partial.folder) == before
    assert not (tmp_path / "remote was asked").exists()


def test_a_file_monitor_is_not_asked(repo: Repository, tmp_path: Path) -> None:
    executable(tmp_path / "monitor", f"touch '{tmp_path}/asked'")
    repo.commit()
    repo.git("config", "core.fsmonitor", str(tmp_path / "monitor"))

    repo.state()

    assert not (tmp_path / "asked").exists()


# ── how git is run ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "variable", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"]
)
def test_the_environment_cannot_point_to_another_repository(
    repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    repo.commit()
    expected = repo.state()
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))

    assert capture_git_state(repo.folder) == expected


def test_config_given_in_the_environment_still_counts(
    repo: Repository, wrap_git: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrap_git('GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec "$real" "$@"')
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")

    assert capture_git_state(repo.folder) is not None


def test_messages_are_understood_in_any_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")

    assert capture_git_state(tmp_path) is None


def test_git_that_does_not_end_is_ended(
    repo: Repository, wrap_git: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrap_git("sleep 600 & wait")
    monkeypatch.setattr(git, "TIME_LIMIT", 0.2)

    with pytest.raises(GitError, match=r"`git rev-parse` took more than 0\.2 seconds"):
        capture_git_state(repo.folder)


@pytest.mark.parametrize(("moved", "processes"), [(False, 4), (True, 5)])
def test_a_capture_takes_few_processes(
    repo: Repository, tmp_path: Path, wrap_git: Callable[[str], None], moved: bool, processes: int
) -> None:
    start = repo.commit("one")
    if moved:
        repo.commit("two")
    wrap_git(f'echo . >>"{tmp_path}/count"; exec "$real" "$@"')

    capture_git_state(repo.folder, since=start)

    assert len((tmp_path / "count").read_text().splitlines()) == processes


# ── any sequence of changes ────────────────────────────────────────────────────────────────

NAMES = ("a", "b", "folder/c")
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(NAMES), st.sampled_from(["one\n", "two\n", ""])),
    st.tuples(st.sampled_from(["delete", "add", "unstage", "untrack"]), st.sampled_from(NAMES), st.just("")),
    st.tuples(st.just("commit"), st.just(""), st.just("")),
)


@dataclass
class Oracle:
    """Four trees, as plain dictionaries, and what each step does to them."""

    repo: Repository
    start: dict[str, str] = field(default_factory=dict[str, str])
    head: dict[str, str] = field(default_factory=dict[str, str])
    index: dict[str, str] = field(default_factory=dict[str, str])
    tree: dict[str, str] = field(default_factory=dict[str, str])

    def step(self, action: str, name: str, text: str) -> None:
        match action:
            case "write":
                self.repo.write(name, text)
                self.tree[name] = text
            case "delete":
                (self.repo.folder / name).unlink(missing_ok=True)
                self.tree.pop(name, None)
            case "add" if name in self.tree or name in self.index:
                self.repo.git("add", "--", name)
                copy_entry(name, self.tree, self.index)
            case "unstage":
                self.repo.git("reset", "--quiet", "--", name)
                copy_entry(name, self.head, self.index)
            case "untrack":
                self.repo.git("rm", "--quiet", "--cached", "--force", "--ignore-unmatch", "--", name)
                self.index.pop(name, None)
            case "commit":
                self.repo.git("commit", "--quiet", "--allow-empty", "-m", "Step")
                self.head = dict(self.index)
            case _:
                pass

    @staticmethod
    def differing(one: dict[str, str], other: dict[str, str]) -> set[str]:
        return {name for name in {*one, *other} if one.get(name) != other.get(name)}

    @property
    def staged(self) -> set[str]:
        return self.differing(self.head, self.index)

    @property
    def uncommitted(self) -> set[str]:
        return self.staged | self.differing(self.index, self.tree)

    @property
    def modified(self) -> set[str]:
        return self.uncommitted | self.differing(self.start, self.head)


def copy_entry(name: str, source: dict[str, str], target: dict[str, str]) -> None:
    target.pop(name, None)
    if name in source:
        target[name] = source[name]


@settings(
    max_examples=repeated(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(before=st.lists(STEPS, max_size=5), after=st.lists(STEPS, max_size=12))
def test_any_sequence_of_changes(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        repo = Repository.start(Path(folder))
        repo.commit("folder/always here", "so that the folder is never untracked as a whole\n")
        oracle = Oracle(repo)
        for step in before:
            oracle.step(*step)
        start = repo.head
        oracle.start = dict(oracle.head)
        for step in after:
            oracle.step(*step)

        state = repo.state(since=start)

        assert set(state.files_modified) == oracle.modified
        assert set(state.files_staged) == oracle.staged
        assert state.has_uncommitted_changes == bool(oracle.uncommitted)


# ── committing the snapshot ────────────────────────────────────────────────────────────────


def everything(repo: Repository) -> str:
    """Index and work tree, entry by entry, without those of the snapshot."""
    listed = repo.git("ls-files", "--stage") + "\n" + repo.git("status", "--porcelain=v2", "-uall")
    return "\n".join(line for line in listed.splitlines() if "snapshots/" not in line)


@pytest.fixture
def project(repo: Repository) -> Repository:
    """Changes of every kind, and a snapshot in a folder that git ignores."""
    repo.commit(".gitignore", "snapshots/\n")
    repo.commit("both", "one\n")
    repo.commit("unstaged")
    repo.commit("gone")
    repo.write("both", "two\n")
    repo.write("staged")
    repo.git("add", "both", "staged")
    repo.git("rm", "--quiet", "gone")
    repo.write("both", "three\n")
    repo.write("unstaged", "changed\n")
    repo.write("untracked")
    repo.write("snapshots/one.json", "{}\n")
    return repo


SNAPSHOT = Path("snapshots/one.json")


def test_exactly_the_named_files_are_committed(project: Repository) -> None:
    project.write("snapshots/other.json")

    commit = commit_files(project.folder, [SNAPSHOT], "Pause\n\n# of a session")

    assert commit == project.head
    assert project.git("show", "--no-patch", "--format=%B") == "Pause\n\n# of a session"
    assert project.git("show", "--name-only", "--format=") == "snapshots/one.json"


def test_other_changes_stay_as_they_are(project: Repository) -> None:
    before = everything(project)

    commit_files(project.folder, [SNAPSHOT], "Pause")

    assert everything(project) == before


def test_paths_may_be_absolute_and_the_folder_a_sub_folder(project: Repository) -> None:
    commit_files(project.folder / "snapshots", [Path("one.json"), project.write("snapshots/two")], "Pause")

    assert project.git("show", "--name-only", "--format=") == "snapshots/one.json\nsnapshots/two"


def test_the_first_commit_of_a_repository(repo: Repository) -> None:
    repo.write("staged")
    repo.git("add", "staged")
    snapshot = repo.write("snapshot")

    commit = commit_files(repo.folder, [snapshot], "Pause")

    assert repo.git("ls-tree", "-r", "--name-only", commit) == "snapshot"
    assert repo.state().files_staged == ("staged",)


def test_a_file_committed_before_is_committed_anew(project: Repository) -> None:
    first = commit_files(project.folder, [SNAPSHOT], "Pause")
    project.write("snapshots/one.json", "{1}\n")

    second = commit_files(project.folder, [SNAPSHOT], "Pause")

    assert project.git("rev-parse", f"{second}~") == first


def test_files_that_did_not_change_make_no_commit(project: Repository) -> None:
    first = commit_files(project.folder, [SNAPSHOT], "Pause")

    assert commit_files(project.folder, [SNAPSHOT], "Pause") == first


@pytest.mark.parametrize("name", ["*", "[a-z]*", ":(top)staged", "-a", "two\nlines", ":!x"])
def test_a_name_is_never_a_pattern(project: Repository, name: str) -> None:
    staged = project.state().files_staged
    project.write(name)

    commit_files(project.folder, [Path(name)], "Pause")

    assert project.git("show", "--name-only", "--format=", "-z") == f"{name}\0"
    assert project.state().files_staged == staged


def test_a_name_that_is_no_utf_8(project: Repository) -> None:
    path = project.write(b"caf\xe9")

    commit_files(project.folder, [path], "Pause")

    assert "caf" not in project.git("status", "--porcelain")


def test_in_a_sparse_checkout(project: Repository) -> None:
    project.git("stash", "--quiet")
    project.commit("folder/file")
    project.git("sparse-checkout", "set", "--cone", "folder")
    project.write("snapshots/one.json")

    commit_files(project.folder, [SNAPSHOT], "Pause")

    assert project.git("show", "--name-only", "--format=") == "snapshots/one.json"


def refused(project: Repository, match: str) -> GitError:
    """Assert that the commit fails, that it says so, and that nothing is left of it."""
    before = (project.git("ls-files", "--stage"), project.git("status", "--porcelain", "-uall"))
    head = project.git("rev-parse", "HEAD")

    with pytest.raises(GitError, match=match) as caught:
        commit_files(project.folder, [SNAPSHOT], "Pause")

    assert "the snapshot itself is safe" in str(caught.value.hint)
    assert project.git("rev-parse", "HEAD") == head
    assert (project.git("ls-files", "--stage"), project.git("status", "--porcelain", "-uall")) == before
    return caught.value


@pytest.mark.parametrize(
    "start", [start_merge, start_rebase, start_cherry_pick, start_revert, start_am, start_bisect]
)
def test_no_commit_in_the_middle_of_something(repo: Repository, start: Callable[[Repository], None]) -> None:
    repo.conflicting_branch()
    start(repo)
    repo.write("snapshots/one.json")

    refused(repo, "in progress")


def test_no_commit_without_an_identity(project: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    project.git("config", "user.useConfigOnly", "true")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{role}_NAME")
        monkeypatch.delenv(f"GIT_{role}_EMAIL")

    assert "user.email" in str(refused(project, "not committed").hint)


@pytest.fixture
def sign_with(tmp_path: Path, our_own_config: Path) -> Callable[[str], None]:
    """Have the user's own settings sign every commit with a program that does this."""

    def sign(script: str) -> None:
        executable(tmp_path / "sign", script)
        for name, value in (("commit.gpgSign", "true"), ("gpg.program", str(tmp_path / "sign"))):
            subprocess.run(["git", "config", "--file", our_own_config, name, value], check=True)

    return sign


def test_a_repository_with_longer_hashes(tmp_path: Path, sign_with: Callable[[str], None]) -> None:
    repo = Repository.start(tmp_path / "long", "--object-format=sha256")
    start = repo.commit("one")
    repo.write("snapshots/one.json")
    commit = commit_files(repo.folder, [SNAPSHOT], "Pause")
    assert repo.state(since=start).files_modified == ("snapshots/one.json",)
    assert len(commit) == 64

    repo.write("snapshots/one.json", "changed\n")
    sign_with("exit 1")
    refused(repo, "not committed")


def test_a_refused_commit_brings_the_older_version_back_to_the_index(
    project: Repository, sign_with: Callable[[str], None]
) -> None:
    commit_files(project.folder, [SNAPSHOT], "Pause")
    project.write("snapshots/one.json", "{1}\n")
    project.git("add", "-f", "snapshots/one.json")
    project.write("snapshots/one.json", "{2}\n")
    sign_with("exit 1")

    refused(project, "not committed")


def test_no_commit_past_a_locked_index(project: Repository) -> None:
    lock = project.folder / ".git" / "index.lock"
    lock.touch()

    with pytest.raises(GitError, match="not committed") as caught:
        commit_files(project.folder, [SNAPSHOT], "Pause")

    assert "another git process" in str(caught.value.hint)
    assert lock.exists()
    lock.unlink()
    assert "snapshots" not in project.git("ls-files")


def test_a_signing_program_that_hangs_is_ended(
    project: Repository, monkeypatch: pytest.MonkeyPatch, sign_with: Callable[[str], None]
) -> None:
    sign_with("sleep 600")
    monkeypatch.setattr(git, "TIME_LIMIT", 1.0)

    refused(project, "`git commit` took more than 1 seconds")

    assert not (project.folder / ".git" / "index.lock").exists()


def test_no_editor_is_opened(project: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "editor", f"touch '{tmp_path}/opened'; exit 1")
    for variable in ("GIT_EDITOR", "EDITOR", "VISUAL"):
        monkeypatch.setenv(variable, str(tmp_path / "editor"))
    project.git("config", "core.editor", str(tmp_path / "editor"))
    project.git("config", "commit.verbose", "true")
    project.hook("prepare-commit-msg", 'eval "$(git var GIT_EDITOR) $1"')

    commit_files(project.folder, [SNAPSHOT], "Pause")

    assert not (tmp_path / "opened").exists()


def test_a_signing_program_has_no_terminal_to_ask_on(
    project: Repository, sign_with: Callable[[str], None]
) -> None:
    sign_with("read passphrase </dev/tty")

    assert "signing key" in str(refused(project, "failed to sign").hint)


def test_no_commit_outside_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(GitError, match="not in a git work tree"):
        commit_files(tmp_path, [Path("file")], "Pause")


def test_no_commit_of_a_missing_file(project: Repository) -> None:
    (project.folder / SNAPSHOT).unlink()

    refused(project, "does not exist")


@pytest.mark.parametrize("paths", [[], [Path()], [Path("snapshots")], [Path("../elsewhere")]])
def test_paths_that_name_no_file_of_the_repository_are_refused(
    project: Repository, paths: list[Path]
) -> None:
    before = everything(project)

    with pytest.raises(InvalidInputError):
        commit_files(project.folder, paths, "Pause")
    assert everything(project) == before


def test_an_empty_message_is_refused(project: Repository) -> None:
    with pytest.raises(GitError, match="empty commit message"):
        commit_files(project.folder, [SNAPSHOT], " \n")
