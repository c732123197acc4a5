"""How the world has changed since a snapshot, in sentences."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from capture.test_git import Repository
from holdfast.capture.drift import FolderDrift, find_drift
from holdfast.capture.files import LARGEST_FILE, MOST_FILES, fingerprint_folder
from holdfast.capture.git import capture_git_state
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Issue
from holdfast.resume.snapshots import ResumeContextCompiler
from holdfast.sessions.pause import with_world
from holdfast.sessions.transitions import Facts
from store.samples import snapshot


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.org")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository.start(tmp_path / "shed", "--initial-branch=main")
    made.commit("kept.py")
    made.commit("edited.py")
    made.write("edited.py", "edited\n")
    made.write("new.py")
    return made


def paused(folder: Path, **fields: Any) -> SessionSnapshot:
    """What a pause there would have noted."""
    facts = with_world(Facts(), folder, None)
    assert facts.git_state is not None
    return snapshot(git_state=facts.git_state, files=facts.files, **fields)


def changes(before: SessionSnapshot, folder: Path) -> tuple[str, ...]:
    """What is told where everything could be compared."""
    drift = find_drift(before, folder)
    assert drift.unknown == ()
    assert drift.state == ("changed" if drift.changes else "same")
    return drift.changes


def test_nothing(repository: Repository) -> None:
    before = paused(repository.folder)
    assert changes(before, repository.folder) == ()
    os.utime(repository.folder / "edited.py", (1, 1))
    assert changes(before, repository.folder) == ()


def test_without_git_at_the_pause_nobody_can_tell(tmp_path: Path) -> None:
    told = "Cannot tell whether the files changed: no git state was recorded at the pause."
    for folder in (tmp_path, Repository.start(tmp_path / "new").folder):
        drift = find_drift(snapshot(), folder)
        assert (drift.state, drift.sentences) == ("cannot_tell", (told,))


def test_without_git_every_file_is_compared(tmp_path: Path) -> None:
    for name in ("kept", "edited", "gone", "sub/deep"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("at the pause\n")
    (tmp_path / "link").symlink_to("kept")
    for ours in (".holdfast", "sub/.git"):
        (tmp_path / ours).mkdir()
    before = snapshot(folder_files=fingerprint_folder(tmp_path))
    (tmp_path / ".holdfast" / "state").touch()
    os.utime(tmp_path / "kept", (1, 1))
    assert changes(before, tmp_path) == ()
    (tmp_path / "edited").write_text("another day\n")
    (tmp_path / "gone").unlink()
    (tmp_path / "sub" / "new").touch()
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("edited")
    assert changes(before, tmp_path) == ("Changed on disk since the pause: edited, link, gone, sub/new.",)


def test_a_folder_without_git_that_is_too_much_is_not_compared(tmp_path: Path) -> None:
    assert fingerprint_folder(tmp_path) == ()
    before = snapshot(folder_files=())
    for number in range(MOST_FILES + 1):
        (tmp_path / str(number)).touch()
    assert fingerprint_folder(tmp_path) is None
    assert find_drift(before, tmp_path) == FolderDrift(
        unknown=("Cannot tell whether files were added: there are too many.",)
    )
    (tmp_path / "0").unlink()
    os.truncate(tmp_path / "1", LARGEST_FILE + 1)
    assert fingerprint_folder(tmp_path) is None


def test_without_a_snapshot_or_a_folder_nobody_can_tell(repository: Repository) -> None:
    assert find_drift(None, repository.folder).state == "cannot_tell"
    assert find_drift(paused(repository.folder), repository.folder / "none").state == "cannot_tell"


def test_without_git_now_nobody_can_tell(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    before = paused(repository.folder)
    monkeypatch.setenv("PATH", str(repository.folder))
    drift = find_drift(before, repository.folder)
    assert drift.state == "cannot_tell"
    assert drift.sentences[0].startswith("Cannot tell whether the files changed: ")


def test_what_is_in_an_untracked_folder_is_compared(repository: Repository) -> None:
    """Git names such a folder and nothing in it."""
    repository.write(".gitignore", "*.log\n")
    repository.write("notes/plan.md", "at the pause\n")
    repository.write("notes/deep/more.md", "at the pause\n")
    before = paused(repository.folder)
    repository.write("notes/run.log", "ignored\n")
    assert changes(before, repository.folder) == ()
    repository.write("notes/plan.md", "rewritten\n")
    repository.write("notes/new.md", "new\n")
    (repository.folder / "notes" / "deep" / "more.md").unlink()
    told = ("Changed on disk since the pause: notes/plan.md, notes/deep/more.md, notes/new.md.",)
    assert changes(before, repository.folder) == told
    shutil.rmtree(repository.folder / "notes")
    told = ("Changed on disk since the pause: notes/deep/more.md, notes/plan.md.",)
    assert changes(before, repository.folder) == told


def test_an_untracked_folder_that_is_too_much_has_no_fingerprint(repository: Repository) -> None:
    repository.write("notes/plan.md", "at the pause\n")
    repository.write("notes/large", "")
    os.truncate(repository.folder / "notes" / "large", LARGEST_FILE + 1)
    before = paused(repository.folder)
    told = ("Cannot tell whether these changed since the pause: notes/.",)
    for content in ("at the pause\n", "rewritten\n"):
        repository.write("notes/plan.md", content)
        drift = find_drift(before, repository.folder)
        assert (drift.state, drift.sentences) == ("cannot_tell", told)
    repository.write("kept.py", "changed\n")
    drift = find_drift(before, repository.folder)
    assert (drift.state, drift.unknown) == ("changed", told)
    repository.git("checkout", "--quiet", "--", "kept.py")
    shutil.rmtree(repository.folder / "notes")
    drift = find_drift(before, repository.folder)
    assert drift == FolderDrift(changes=("Changed on disk since the pause: notes/.",))


def test_files_without_a_fingerprint(repository: Repository) -> None:
    """Too large or too many at the pause."""
    before = paused(repository.folder)
    before = before.model_copy(update={"files": before.files[:1]})
    drift = find_drift(before, repository.folder)
    assert drift.state == "cannot_tell"
    assert drift.sentences == ("Cannot tell whether these changed since the pause: new.py.",)


@pytest.mark.parametrize("rule", ["*", "sub/", "/sub/deep"])
@pytest.mark.parametrize("tracked", [False, True], ids=["nothing tracked", "one file tracked"])
def test_a_folder_that_a_repository_further_out_ignores(
    repository: Repository, rule: str, tracked: bool
) -> None:
    repository.write(".gitignore", f"{rule}\n")
    repository.write("sub/deep/work.py", "at the pause\n")
    if tracked:
        repository.write("sub/deep/kept.py")
        repository.git("add", "--force", "sub/deep/kept.py")
        repository.git("commit", "--quiet", "-m", "Keep one")
    folder = repository.folder / "sub" / "deep"
    before = paused(folder)
    repository.write("sub/deep/work.py", "rewritten\n")
    drift = find_drift(before, folder)
    assert drift.state == "cannot_tell"
    assert drift.sentences == (
        "Cannot tell whether the files changed: git ignores all new files in the folder.",
    )


@pytest.mark.parametrize(
    ("rules", "state"),
    [
        *(("*", "cannot_tell"), ("/*", "cannot_tell"), ("*\n!.vimrc", "cannot_tell")),
        *(("*\n!*/\n!*.py", "same"), ("*.o\nbuild/\nsub/", "same"), (".*\nsub/", "same")),
    ],
)
def test_a_repository_that_ignores_everything(repository: Repository, rules: str, state: str) -> None:
    repository.write(".gitignore", f"{rules}\n")
    repository.write("sub/work.txt", "at the pause\n")
    before = paused(repository.folder)
    repository.write("sub/work.txt", "rewritten\n")
    assert find_drift(before, repository.folder).state == state


@pytest.mark.parametrize("place", [".git/info/exclude", "their-rules", ".gitignore", "elsewhere"])
def test_rules_that_came_to_hide_a_new_file(
    repository: Repository, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    repository.git("config", "core.excludesFile", str(tmp_path / "their-rules"))
    before = paused(repository.folder)
    repository.write(".git/info/exclude", "# nothing but a comment\n\n")
    assert changes(before, repository.folder) == ()
    rules = tmp_path / place if place == "their-rules" else repository.folder / place
    if place == "elsewhere":
        repository.git("config", "--unset", "core.excludesFile")
        rules = tmp_path / "config" / "git" / "ignore"
        rules.parent.mkdir(parents=True)
    rules.write_text("hidden.py\n.gitignore\n")
    repository.write("hidden.py")
    told = "Cannot tell whether files were added since the pause: git's ignore rules changed."
    assert find_drift(before, repository.folder) == FolderDrift(unknown=(told,))


@pytest.mark.parametrize("rules", [os.devnull, "gone"])
def test_rules_that_cannot_be_read_hold_nothing_up(repository: Repository, rules: str) -> None:
    """Of a folder in their place git itself reads no status."""
    repository.git("config", "core.excludesFile", str(repository.folder / rules))
    before = paused(repository.folder)
    assert find_drift(before, repository.folder).state == "same"


def test_rules_of_a_linked_work_tree(repository: Repository) -> None:
    linked = repository.folder.parent / "linked"
    repository.git("worktree", "add", "--quiet", str(linked))
    before = paused(linked)
    repository.write(".git/info/exclude", "hidden.py\n")
    (linked / "hidden.py").write_text("")
    assert find_drift(before, linked).state == "cannot_tell"


def test_a_changed_ignore_file_is_told_as_a_file(repository: Repository) -> None:
    repository.write(".gitignore", "*.o\n")
    before = paused(repository.folder)
    repository.write(".gitignore", "*.o\nhidden.py\n")
    repository.write("hidden.py")
    assert changes(before, repository.folder) == ("Changed on disk since the pause: .gitignore.",)


def test_what_is_staged_is_work(repository: Repository) -> None:
    before = paused(repository.folder)
    repository.git("add", "edited.py", "new.py")
    told = ("Staged in git since the pause: edited.py, new.py.",)
    assert changes(before, repository.folder) == told
    before = paused(repository.folder)
    repository.git("reset", "--quiet", "new.py")
    assert changes(before, repository.folder) == ("No longer staged in git since the pause: new.py.",)


def test_other_content_that_is_staged(repository: Repository) -> None:
    repository.git("add", "edited.py")
    before = paused(repository.folder)
    repository.write("edited.py", "for a while\n")
    repository.git("add", "edited.py")
    repository.write("edited.py", "edited\n")
    told = ("Staged in git with other content since the pause, among: edited.py.",)
    assert changes(before, repository.folder) == told


def test_a_conflict_that_was_staged_as_it_stands(repository: Repository) -> None:
    for branch, text in (("side", "theirs\n"), ("main", "ours\n")):
        repository.git("checkout", "--quiet", "-B", branch, "HEAD" if branch == "side" else "main")
        repository.write("kept.py", text)
        repository.git("commit", "--quiet", "-m", branch, "kept.py")
    repository.git("merge", "side", fails=True)
    before = paused(repository.folder)
    repository.git("add", "kept.py")
    assert changes(before, repository.folder) == ("Staged in git since the pause: kept.py.",)


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_a_file_that_git_was_told_not_to_look_at(repository: Repository, flag: str) -> None:
    repository.git("update-index", flag, "kept.py")
    before = paused(repository.folder)
    repository.write("kept.py", "rewritten\n")
    drift = find_drift(before, repository.folder)
    assert drift.state == "cannot_tell"
    assert drift.sentences == ("Cannot tell whether these changed since the pause: kept.py.",)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("setting", ["core.fileMode", "core.symlinks"])
def test_modes_and_links_that_git_was_told_not_to_compare(
    repository: Repository, setting: str, when: str
) -> None:
    kept = repository.folder / "kept.py"
    (repository.folder / "link").symlink_to("kept.py")
    repository.git("add", "link")
    repository.git("commit", "--quiet", "-m", "link")
    if when == "before":
        repository.git("config", setting, "false")
    before = paused(repository.folder)
    repository.git("config", setting, "off")
    assert changes(before, repository.folder) == ()
    kept.chmod(0o755)
    (repository.folder / "link").unlink()
    (repository.folder / "link").write_text("kept.py")
    drift = find_drift(before, repository.folder)
    hidden = {"core.fileMode": "kept.py", "core.symlinks": "link"}[setting]
    assert hidden in " ".join(drift.sentences)
    assert "Cannot tell whether these changed since the pause: " + hidden + "." in drift.unknown


def test_a_commit_that_was_replaced_by_another(repository: Repository) -> None:
    before = paused(repository.folder)
    commit, first = repository.git("rev-parse", "HEAD", "HEAD~1").split()
    repository.git("read-tree", first)
    tree = repository.git("write-tree").strip()
    repository.git("replace", commit, repository.git("commit-tree", "-m", "other", "-p", first, tree).strip())
    (repository.folder / "edited.py").unlink()
    drift = find_drift(before, repository.folder)
    assert drift.state != "same"
    assert "edited.py" in " ".join(drift.sentences)


def test_an_old_commit_that_was_replaced_hides_nothing(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD~1").strip()
    repository.git("replace", first, repository.git("commit-tree", "-m", "x", f"{first}^{{tree}}").strip())
    assert changes(paused(repository.folder), repository.folder) == ()


@pytest.mark.parametrize("hides", ["assume", "mode", "untracked"])
def test_what_is_hidden_in_a_submodule(repository: Repository, hides: str) -> None:
    inner = Repository.start(repository.folder / "inner", "--initial-branch=main")
    inner.commit("part.py")
    repository.git("add", "inner")
    repository.git("commit", "--quiet", "-m", "inner")
    before = paused(repository.folder)
    assert changes(before, repository.folder) == ()
    if hides == "assume":
        inner.git("update-index", "--assume-unchanged", "part.py")
        inner.write("part.py", "rewritten\n")
    elif hides == "mode":
        inner.git("config", "core.fileMode", "false")
        (inner.folder / "part.py").chmod(0o755)
    else:
        inner.git("config", "status.showUntrackedFiles", "no")
        inner.write("more.py")
    drift = find_drift(before, repository.folder)
    assert drift.state != "same"
    assert "inner" in drift.sentences[0]


def test_a_file_that_a_sparse_checkout_leaves_out(repository: Repository) -> None:
    repository.commit("far/away.py")
    repository.git("sparse-checkout", "set", "near")
    assert not (repository.folder / "far").exists()
    assert changes(paused(repository.folder), repository.folder) == ()


def test_what_a_sparse_checkout_leaves_out_since(repository: Repository) -> None:
    """The files are gone from the disk, and git does not look."""
    repository.commit("far/away.py")
    repository.commit("near/by.py")
    before = paused(repository.folder)
    repository.git("sparse-checkout", "set", "near")
    drift = find_drift(before, repository.folder)
    assert drift.sentences == ("Cannot tell whether these changed since the pause: far/away.py.",)
    before = paused(repository.folder)
    repository.git("sparse-checkout", "set", "far")
    told = ("Changed on disk since the pause: what the sparse checkout leaves out.",)
    assert changes(before, repository.folder) == told


@pytest.mark.parametrize("setting", [("core.trustctime", "false"), ("core.checkStat", "minimal")])
def test_settings_of_the_repository_do_not_make_a_file_unchanged(
    repository: Repository, setting: tuple[str, str]
) -> None:
    repository.git("config", "core.trustctime", "false")
    repository.git("config", *setting)
    kept = repository.folder / "kept.py"
    os.utime(kept, (1, 1))
    repository.git("status")
    before = paused(repository.folder)
    while int(time.time()) == int(kept.stat().st_ctime):  # git keeps whole seconds
        time.sleep(0.02)
    kept.write_text("x" * (kept.stat().st_size - 1) + "\n")
    os.utime(kept, (1, 1))
    assert changes(before, repository.folder) == ("Changed on disk since the pause: kept.py.",)


@pytest.mark.parametrize("where", ["repository", ".gitmodules"])
def test_a_submodule_that_the_repository_says_to_ignore(repository: Repository, where: str) -> None:
    other = Repository.start(repository.folder.parent / "other")
    other.commit("a.py")
    allowed = ("-c", "protocol.file.allow=always")
    repository.git(*allowed, "submodule", "add", "--quiet", str(other.folder), "sub")
    if where == "repository":
        repository.git("config", "diff.ignoreSubmodules", "all")
    else:
        repository.git("config", "-f", ".gitmodules", "submodule.sub.ignore", "all")
    repository.git("commit", "--quiet", "-am", "Add it")
    before = paused(repository.folder)
    repository.git("-C", "sub", "commit", "--quiet", "--allow-empty", "-m", "Go on")
    assert changes(before, repository.folder) == ("Changed on disk since the pause: sub.",)


@pytest.mark.parametrize("name", ["kept.py", "edited.py", "new.py"])
def test_a_file_that_became_executable(repository: Repository, name: str) -> None:
    """Of one that was changed at the pause already git tells nothing new."""
    before = paused(repository.folder)
    (repository.folder / name).chmod(0o755)
    assert changes(before, repository.folder) == (f"Changed on disk since the pause: {name}.",)


def test_git_alone_tells_of_a_tree_that_was_clean(repository: Repository) -> None:
    """What was committed since the start needs no fingerprint then."""
    start = repository.head
    repository.git("add", ".")
    repository.git("commit", "--quiet", "-m", "Go on")
    before = snapshot(git_state=capture_git_state(repository.folder, since=start))
    assert before.git_state is not None
    assert before.git_state.files_modified
    assert find_drift(before, repository.folder).state == "same"
    repository.write("edited.py", "edited again\n")
    assert changes(before, repository.folder) == ("Changed on disk since the pause: edited.py.",)


def test_branch_and_head(repository: Repository) -> None:
    before, head = paused(repository.folder), repository.head
    repository.git("switch", "--quiet", "-c", "side")
    assert changes(before, repository.folder) == ("The branch was main and is side now.",)
    repository.git("commit", "--quiet", "--allow-empty", "-m", "Go on")
    assert changes(before, repository.folder) == (
        "The branch was main and is side now.",
        f"HEAD was {head[:12]} at the pause and is {repository.head[:12]} now.",
    )
    repository.git("checkout", "--quiet", "--detach", head)
    assert changes(before, repository.folder) == ("The branch was main and is (detached) now.",)


def test_the_first_commit_ever(tmp_path: Path) -> None:
    repository = Repository.start(tmp_path / "new", "--initial-branch=main")
    before = paused(repository.folder)
    repository.git("commit", "--quiet", "--allow-empty", "-m", "Begin")
    assert changes(before, repository.folder) == (
        f"HEAD was none at the pause and is {repository.head[:12]} now.",
    )


def test_a_commit_that_is_gone(repository: Repository) -> None:
    before, head = paused(repository.folder), repository.head
    repository.git("commit", "--quiet", "--amend", "--allow-empty", "-m", "Otherwise")
    repository.git("reflog", "expire", "--expire=now", "--all")
    repository.git("gc", "--quiet", "--prune=now")
    assert changes(before, repository.folder) == (
        f"The commit checked out at the pause ({head[:12]}) is gone: history was rewritten; "
        f"HEAD is {repository.head[:12]}.",
    )


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "new.py").write_text("other\n"), id="changed"),
        pytest.param(lambda folder: (folder / "new.py").unlink(), id="deleted"),
        pytest.param(lambda folder: replaced_by_folder(folder / "new.py"), id="a folder now"),
        pytest.param(lambda folder: replaced_by_link(folder / "new.py"), id="a link now"),
    ],
)
def test_files_that_were_changed_at_the_pause(repository: Repository, change: Any) -> None:
    before = paused(repository.folder)
    change(repository.folder)
    [told] = changes(before, repository.folder)
    assert told == "Changed on disk since the pause: new.py."


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("kept.py")


def test_a_file_that_was_deleted_at_the_pause_and_is_back(repository: Repository) -> None:
    (repository.folder / "kept.py").unlink()
    before = paused(repository.folder)
    assert changes(before, repository.folder) == ()
    repository.git("checkout", "--quiet", "--", "kept.py")
    [told] = changes(before, repository.folder)
    assert "kept.py" in told


@pytest.mark.parametrize("name", ["kept.py", "brand_new.py"])
def test_files_that_were_clean_or_not_there_at_the_pause(repository: Repository, name: str) -> None:
    """D9: a dirty tree that was not so at the pause is somebody else's work, and must be told."""
    before = paused(repository.folder)
    repository.write(name, "by somebody else\n")
    [told] = changes(before, repository.folder)
    assert name in told
    assert "edited.py" not in told


def test_committing_what_was_changed_at_the_pause_changes_no_file(repository: Repository) -> None:
    before, head = paused(repository.folder), repository.head
    repository.git("add", ".")
    repository.git("commit", "--quiet", "-m", "Done by hand")
    assert changes(before, repository.folder) == (
        f"HEAD was {head[:12]} at the pause and is {repository.head[:12]} now.",
    )


def test_no_more_than_ten_files_are_named(repository: Repository) -> None:
    for number in range(14):
        repository.write(f"f{number:02d}")
    before = paused(repository.folder)
    for number in range(14):
        repository.write(f"f{number:02d}", "other\n")
    [told] = changes(before, repository.folder)
    assert told.startswith("Changed on disk since the pause: f00, f01, ")
    assert told.endswith("f09 and 4 more.")


def test_a_folder_within_the_repository(repository: Repository) -> None:
    """Git's paths begin at the top of the repository, not at the project's folder."""
    repository.commit("deep/inner.py")
    repository.write("deep/inner.py", "edited\n")
    inner = repository.folder / "deep"
    before = paused(inner)
    assert changes(before, inner) == ()
    repository.write("deep/inner.py", "edited again\n")
    [told] = changes(before, inner)
    assert "deep/inner.py" in told


def test_a_merge_in_progress(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--force", ".")
    before = paused(repository.folder)
    repository.conflicting_branch()
    repository.git("merge", "other", fails=True)
    assert "A merge is in progress that had not started at the pause." in changes(before, repository.folder)


def test_a_repository_that_is_broken(repository: Repository) -> None:
    before = paused(repository.folder)
    (repository.folder / ".git" / "HEAD").write_text("rubbish")
    assert find_drift(before, repository.folder).state == "cannot_tell"


def test_a_repository_that_is_gone(repository: Repository) -> None:
    before = paused(repository.folder)
    shutil.rmtree(repository.folder / ".git")
    assert changes(before, repository.folder) == ("The folder is no longer a git repository.",)


@pytest.fixture
def filtered(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """With a file that the user's own filter keeps otherwise in git than on the disk, as Git LFS does."""
    (tmp_path / "gitconfig").write_text('[filter "big"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    repository.write(".gitattributes", "*.big filter=big\n")
    repository.write("film.big", "scene\n")
    repository.git("add", ".")
    repository.git("commit", "-qm", "big files")
    return repository


def test_a_file_that_only_a_filter_could_compare_is_not_said_to_be_changed(filtered: Repository) -> None:
    os.utime(filtered.folder / "film.big", (1, 1))
    git = capture_git_state(filtered.folder)
    assert git is not None
    assert (git.files_modified, git.files_uncompared) == ((), ("film.big",))
    assert (git.has_uncommitted_changes, git.uncommitted_summary) == (True, "1 possibly modified")


def test_the_handover_names_it(filtered: Repository) -> None:
    os.utime(filtered.folder / "film.big", (1, 1))
    before = paused(filtered.folder)
    told = ResumeContextCompiler().compile(before, Issue(id="A", title="Big files"))
    assert "May have uncommitted changes (only a git filter such as LFS can tell): `film.big`" in told


def test_its_fingerprint_tells_whether_it_changed_after_the_pause(filtered: Repository) -> None:
    os.utime(filtered.folder / "film.big", (1, 1))
    before = paused(filtered.folder)
    assert find_drift(before, filtered.folder).state == "same"
    filtered.write("film.big", "other\n")
    assert changes(before, filtered.folder) == ("Changed on disk since the pause: film.big.",)


def test_of_one_that_had_none_nobody_can_tell(filtered: Repository) -> None:
    os.utime(filtered.folder / "film.big", (1, 1))
    filtered.git("status")  # git itself runs the filter, and remembers that nothing has changed
    before = paused(filtered.folder)
    filtered.write("film.big", "other\n")
    drift = find_drift(before, filtered.folder)
    assert drift == FolderDrift(unknown=("Cannot tell whether these changed since the pause: film.big.",))
