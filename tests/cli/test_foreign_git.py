"""A repository that somebody else made is looked at, and nothing that it names is run.

Everything in `.git` came with the archive here: settings, hooks, attributes. Each of these has git run a
program where nobody keeps it from doing so; the program leaves a mark.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .harness import Place, Result

PLAN = """
pause_every: 1
issue: {id: W, title: Work}
tasks:
  - {id: one, description: One, run: echo x > x.txt}
  - {id: two, description: Two, run: echo y > y.txt, depends_on: [one]}
"""
MISSING = "12" * 20
HOOKS = (
    *(
        "applypatch-msg",
        "commit-msg",
        "fsmonitor-watchman",
        "post-applypatch",
        "post-checkout",
        "post-commit",
    ),
    *("post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update", "pre-auto-gc"),
    *("pre-applypatch", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive"),
    *("prepare-commit-msg", "proc-receive", "push-to-checkout", "reference-transaction", "update"),
)


class Trapped:
    """A project that somebody else made, and the mark that its programs would leave."""

    def __init__(self, place: Place) -> None:
        self.place, self.folder = place, place.project
        self.mark = place.root / "ran"
        self.program = place.root / "program"
        self.program.write_text(f"#!/bin/sh\necho \"$0 $*\" >>'{self.mark}'\ncat\n")
        self.program.chmod(0o755)

    def config(self, name: str, value: str | None = None) -> None:
        self.place.git("config", name, str(self.program) if value is None else value)

    def hooks(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(self.program)

    def attributes(self, line: str, place: str = ".gitattributes") -> None:
        (self.folder / place).write_text(f"{line}\n")

    def stale(self) -> None:
        """Have git look into every file again."""
        for path in self.folder.rglob("*.txt"):
            os.utime(path, (1, 1))

    def nothing_ran(self) -> None:
        assert not self.mark.exists(), self.mark.read_text()


@pytest.fixture
def trapped(place: Place) -> Trapped:
    (place.project / "a.txt").write_text("text\n")
    (place.project / ".gitignore").write_text(".holdfast/\n")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "First")
    (place.root / "plan.yaml").write_text(PLAN)
    return Trapped(place)


def _filter(name: str, way: str) -> Callable[[Trapped], None]:
    def plant(trapped: Trapped) -> None:
        trapped.attributes(f"* filter={name}")
        trapped.config(f"filter.{name}.{way}")
        trapped.config(f"filter.{name}.required", "true")

    return plant


def _info_attributes(trapped: Trapped) -> None:
    trapped.attributes("* filter=x", ".git/info/attributes")
    trapped.config("filter.x.clean")


def _included(trapped: Trapped) -> None:
    trapped.attributes("* filter=x")
    (trapped.folder / ".git" / "more").write_text(f'[filter "x"]\n\tclean = {trapped.program}\n')
    trapped.config("include.path", "more")


def _of_the_worktree(trapped: Trapped) -> None:
    trapped.attributes("* filter=x")
    trapped.config("extensions.worktreeConfig", "true")
    (trapped.folder / ".git" / "config.worktree").write_text(f'[filter "x"]\n\tclean = {trapped.program}\n')


def _hooks(trapped: Trapped) -> None:
    trapped.hooks(trapped.folder / ".git" / "hooks")


def _hooks_elsewhere(trapped: Trapped) -> None:
    trapped.hooks(trapped.place.root / "hooks")
    trapped.config("core.hooksPath", str(trapped.place.root / "hooks"))


def _signing(**settings: str) -> Callable[[Trapped], None]:
    def plant(trapped: Trapped) -> None:
        trapped.config("commit.gpgSign", "true")
        for name, value in settings.items():
            trapped.config(name.replace("_", "."), value or None)

    return plant


def _attribute_program(attribute: str, name: str) -> Callable[[Trapped], None]:
    def plant(trapped: Trapped) -> None:
        trapped.attributes(f"* {attribute}=x")
        trapped.config(name)

    return plant


def _promisor(trapped: Trapped) -> None:
    """HEAD's tree is missing, and is to be had from a remote that names a program."""
    commit = trapped.place.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Second").strip()
    trapped.place.git("update-ref", "HEAD", commit)
    tree = trapped.place.git("rev-parse", "HEAD^{tree}").strip()
    (trapped.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    trapped.config("core.repositoryFormatVersion", "1")
    trapped.config("extensions.partialClone", "origin")
    trapped.config("remote.origin.promisor", "true")
    trapped.config("remote.origin.url", str(trapped.place.root))
    trapped.config("remote.origin.uploadpack")


def _submodule(key: str) -> Callable[[Trapped], None]:
    """A repository in the repository, without a word in `.gitmodules`, and one more in that."""

    def plant(trapped: Trapped) -> None:
        inner = trapped.folder / "lib" / "deep"
        for folder in (inner, inner.parent, trapped.folder):
            folder.mkdir(parents=True, exist_ok=True)
            git = ("-C", str(folder))
            trapped.place.git(*git, "init", "--quiet")
            (folder / "b.txt").write_text("text\n")
            trapped.place.git(*git, "add", ".")
            trapped.place.git(*git, "commit", "--quiet", "-m", "First")
        for folder in (inner, inner.parent):
            (folder / ".gitattributes").write_text("* filter=deep\n")
            trapped.place.git("-C", str(folder), "config", key, str(trapped.program))

    return plant


def _submodule_beside_a_missing_tree(trapped: Trapped) -> None:
    """`git status` looks into submodules before it fails for want of the tree."""
    for name in ("aside", "kept"):
        (trapped.folder / name).mkdir()
        (trapped.folder / name / "c.txt").write_text(f"{name}\n")
    _submodule("filter.deep.clean")(trapped)
    tree = trapped.place.git("rev-parse", "HEAD:aside").strip()
    trapped.place.git("sparse-checkout", "set", "--cone", "--sparse-index", "kept")
    (trapped.folder / ".git" / "objects" / tree[:2] / tree[2:]).unlink()


VECTORS: dict[str, Callable[[Trapped], None]] = {
    "fsmonitor": lambda trapped: trapped.config("core.fsmonitor"),
    "hooks": _hooks,
    "hooksPath": _hooks_elsewhere,
    "filter clean": _filter("x", "clean"),
    "filter process": _filter("x", "process"),
    "filter smudge": _filter("x", "smudge"),
    "filter with an equals sign in its name": _filter("a=b", "clean"),
    "filter with dots and capitals in its name": _filter("A.b.C", "clean"),
    "filter in info/attributes": _info_attributes,
    "filter in an included file": _included,
    "filter in the settings of the work tree": _of_the_worktree,
    "filter of a submodule": _submodule("filter.deep.clean"),
    "filter of a submodule beside a missing tree": _submodule_beside_a_missing_tree,
    "fsmonitor of a submodule": _submodule("core.fsmonitor"),
    "gpg": _signing(gpg_program=""),
    "openpgp": _signing(gpg_openpgp_program=""),
    "x509": _signing(gpg_format="x509", gpg_x509_program=""),
    "ssh-keygen": _signing(gpg_format="ssh", gpg_ssh_program="", user_signingkey="key::ssh-ed25519 AAAA"),
    "ssh default key": _signing(gpg_format="ssh", gpg_ssh_defaultKeyCommand=""),
    "promisor": _promisor,
    "textconv": _attribute_program("diff", "diff.x.textconv"),
    "diff command": _attribute_program("diff", "diff.x.command"),
    "external diff": lambda trapped: trapped.config("diff.external"),
    "merge driver": _attribute_program("merge", "merge.x.driver"),
    "pager": lambda trapped: trapped.config("core.pager"),
    "editor": lambda trapped: trapped.config("core.editor"),
    "alias": lambda trapped: trapped.config("alias.status", f"!{trapped.program}"),
}


def run_everything(trapped: Trapped) -> list[Result]:
    """All that has us start git in the user's repository."""
    trapped.stale()
    first = trapped.place.many(
        ["status"],
        ["doctor"],
        ["winddown", "start", "--percent", "0.9"],
        ["winddown", "append", "tool_call", "--percent", "0.91"],
        ["winddown", "finalize", "--commit"],
        ["context", "latest"],
        ["docs", "audit", "."],
    )
    trapped.stale()
    plan = str(trapped.place.root / "plan.yaml")
    return [*first, *trapped.place.many(["run", plan], ["resume", "--yes"], ["tx", "list"])]


def test_all_that_starts_git_works_where_nothing_is_wrong(trapped: Trapped) -> None:
    assert [result.code for result in run_everything(trapped)] == [0] * 10


@pytest.mark.some_of("vector", number=6)
@pytest.mark.parametrize("vector", VECTORS)
def test_nothing_that_a_repository_names_is_run(trapped: Trapped, vector: str) -> None:
    VECTORS[vector](trapped)
    run_everything(trapped)
    trapped.nothing_ran()


def test_a_snapshot_is_committed_past_hooks_and_filters_of_the_repository(trapped: Trapped) -> None:
    _hooks(trapped)
    _filter("x", "clean")(trapped)
    trapped.place.started("tool_call")
    trapped.place.ok("winddown", "finalize", "--commit")
    assert ".holdfast/sessions/" in trapped.place.git("show", "--name-only", "--format=", "HEAD")
    trapped.nothing_ran()


@pytest.mark.parametrize("name", ["gpg.program", "gpg.openpgp.program"])
def test_the_users_own_signing_program_signs_in_spite_of_the_repositorys(trapped: Trapped, name: str) -> None:
    signer = trapped.place.root / "signer"
    signer.write_text(
        f"#!/bin/sh\ncat >/dev/null; touch '{signer}.ran'\n"
        "echo '[GNUPG:] SIG_CREATED ' >&2; echo '-----BEGIN PGP SIGNATURE-----'\n"
    )
    signer.chmod(0o755)
    settings = trapped.place.root / "gitconfig"
    settings.write_text(f"[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {signer}\n")
    trapped.place.environment["GIT_CONFIG_GLOBAL"] = str(settings)
    trapped.config(name)
    trapped.place.started("tool_call")
    trapped.place.ok("winddown", "finalize", "--commit")
    assert (trapped.place.root / "signer.ran").exists()
    trapped.nothing_ran()


# ── the side-car ───────────────────────────────────────────────────────────────────────────


def _own_config(sidecar: Path, settings: str) -> None:
    with (sidecar / "config").open("a") as file:
        file.write(settings)


def _common_dir(sidecar: Path, settings: str) -> None:
    """Git takes the settings from where this file points to."""
    elsewhere = sidecar.parent / "elsewhere"
    subprocess.run(["cp", "-r", sidecar, elsewhere], check=True)
    _own_config(elsewhere, settings)
    (sidecar / "commondir").write_text("../elsewhere\n")


@pytest.mark.some_of("command", "plant", number=2)
@pytest.mark.parametrize("plant", [_own_config, _common_dir])
@pytest.mark.parametrize("command", [("tx", "list"), ("tx", "show"), ("tx", "rollback", "--yes")])
def test_the_side_car_fetches_nothing(
    trapped: Trapped, plant: Callable[[Path, str], None], command: tuple[str, ...]
) -> None:
    place = trapped.place
    place.ok("run", place.root / "plan.yaml")
    assert place.json("tx", "list")
    sidecar = place.project / ".holdfast" / "sidecar"
    plant(
        sidecar,
        "[core]\n\trepositoryformatversion = 1\n\tfsmonitor = program\n"
        '[extensions]\n\tpartialClone = origin\n[remote "origin"]\n\tpromisor = true\n'
        f"\turl = {place.root}\n\tuploadpack = {trapped.program}\n",
    )
    for branch in (sidecar / "refs" / "heads" / "holdfast").iterdir():
        branch.write_text(f"{MISSING}\n")
    place.run(*command)
    trapped.nothing_ran()


# ── share ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def remote(trapped: Trapped) -> Path:
    folder = trapped.place.root / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
    trapped.place.git("remote", "add", "origin", str(folder))
    trapped.place.paused("tool_call")
    trapped.place.ok("share", "push")
    return folder


@pytest.mark.parametrize("where", ["project", "share", "remote"])
def test_sharing_runs_no_hook(trapped: Trapped, remote: Path, where: str) -> None:
    folders = {"project": trapped.folder / ".git", "share": trapped.folder / ".holdfast" / "share"}
    trapped.hooks(folders.get(where, remote) / "hooks")
    trapped.place.ok("share", "push")
    trapped.place.run("share", "pull")
    trapped.nothing_ran()


def test_a_local_remote_names_no_program(trapped: Trapped, remote: Path) -> None:
    subprocess.run(
        ["git", "clone", "--quiet", "--bare", trapped.folder, remote.parent / "lent.git"], check=True
    )
    (remote / "objects" / "info" / "alternates").write_text(f"{remote.parent}/lent.git/objects\n")
    for name in ("core.alternateRefsCommand", "core.fsmonitor", "uploadpack.packObjectsHook"):
        subprocess.run(["git", "-C", remote, "config", name, trapped.program], check=True)
    trapped.place.ok("share", "push")
    trapped.place.run("share", "pull")
    trapped.nothing_ran()


ADDRESSES = {
    "ext": "ext::{program} %S",
    "ext with a path": "ext::sh -c {program}% /x",
    "fd": "fd::0,1/x",
    "an option": "--upload-pack={program}",
    "an unknown scheme": "evil://host/x",
    "an SSH option": "ssh://-oProxyCommand={program}/x",
}


@pytest.mark.some_of("command")
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("command", ["push", "pull"])
def test_an_address_that_has_a_program_run_is_refused(
    trapped: Trapped, remote: Path, address: str, command: str
) -> None:
    trapped.config("remote.origin.url", ADDRESSES[address].format(program=trapped.program))
    trapped.config("protocol.allow", "always")
    trapped.config("protocol.ext.allow", "always")
    assert_refused(trapped.place.run("share", command))
    trapped.nothing_ran()


def assert_refused(result: Result) -> None:
    assert result.code in (1, 2), result
    assert result.err.startswith("error: ")


SHARE_SETTINGS = {
    "ssh command": '[core]\n\tsshCommand = "{program}"\n',
    "askpass": '[core]\n\taskPass = "{program}"\n',
    "receivepack": '[remote "{remote}"]\n\treceivepack = "{program}"\n\tuploadpack = "{program}"\n',
    "other address": '[remote "{remote}"]\n\turl = "ext::{program} %S"\n[protocol]\n\tallow = always\n',
    "rewritten": '[url "ext::{program} "]\n\tinsteadOf = "{remote}"\n[protocol "ext"]\n\tallow = always\n',
    "rewritten, same protocol": '[url "{elsewhere}"]\n\tinsteadOf = "{remote}"\n',
    "included": "[include]\n\tpath = more\n",
    "promisor": '[remote "x"]\n\tpromisor = true\n\turl = "{remote}"\n\tuploadpack = "{program}"\n',
}


@pytest.mark.parametrize("settings", SHARE_SETTINGS)
def test_settings_in_our_own_repository_are_not_obeyed(
    trapped: Trapped, remote: Path, tmp_path: Path, settings: str
) -> None:
    elsewhere = tmp_path / "elsewhere.git"
    subprocess.run(["git", "init", "--quiet", "--bare", elsewhere], check=True)
    share = trapped.folder / ".holdfast" / "share"
    values = {"program": trapped.program, "remote": remote, "elsewhere": elsewhere}
    (share / "more").write_text(SHARE_SETTINGS["receivepack"].format(**values))
    with (share / "config").open("a") as file:
        file.write(SHARE_SETTINGS[settings].format(**values))
    trapped.place.run("share", "push").failed(1, error="not made by Holdfast", hint="delete the folder")
    trapped.nothing_ran()
    assert not any((elsewhere / "refs").rglob("*/*/*"))
    subprocess.run(["rm", "-r", share], check=True)
    trapped.place.ok("share", "push")


def test_a_share_folder_without_a_repository_is_not_mistaken_for_the_users(
    trapped: Trapped, remote: Path
) -> None:
    subprocess.run(["rm", "-r", trapped.folder / ".holdfast" / "share" / "objects"], check=True)
    before = trapped.place.git("ls-files", "--stage")
    assert_refused(trapped.place.run("share", "push"))
    assert trapped.place.git("ls-files", "--stage") == before


def test_addresses_that_the_user_rewrites_go_where_the_user_says(trapped: Trapped, remote: Path) -> None:
    settings = trapped.place.root / "gitconfig"
    settings.write_text(f'[url "{remote.parent}/"]\n\tinsteadOf = "https://example.invalid/"\n')
    trapped.place.environment["GIT_CONFIG_GLOBAL"] = str(settings)
    trapped.place.ok("share", "push", "https://example.invalid/remote.git")


def test_a_rewriting_of_the_repositorys_does_not_widen_the_protocols(trapped: Trapped, remote: Path) -> None:
    trapped.config(f"url.ext::{trapped.program} .insteadOf", str(remote))
    assert_refused(trapped.place.run("share", "push"))
    trapped.nothing_ran()


HIDING = {
    "modes": "git config core.fileMode false; chmod +x door.py",
    "modes, oddly written": "git config core.fileMode 0x0; chmod +x door.py",
    "links": "git config core.symlinks false; rm link; printf door.py >link",
    "stamps": "git config core.trustctime false; printf painted >door.py",
    "flag": "git update-index --assume-unchanged door.py; printf painted >door.py",
    "line ends": "printf '* text eol=lf' >.git/info/attributes; printf 'door\\r\\n' >door.py",
    "filter": "git config filter.f.clean 'git show HEAD:door.py'; printf '* filter=f' >.git/info/attributes"
    "; printf painted >door.py",
    "replaced commit": "git read-tree HEAD~1; rm more.py"
    "; git replace HEAD $(git commit-tree -m x -p HEAD~1 $(git write-tree))",
    "work tree": "cp -R . ../other; git config core.worktree ../../other; printf painted >door.py",
}


@pytest.mark.parametrize("way", HIDING)
def test_settings_of_git_hide_no_change_since_the_pause(place: Place, way: str) -> None:
    (place.project / "door.py").write_text("door\n")
    (place.project / "link").symlink_to("door.py")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "first")
    (place.project / "more.py").write_text("more\n")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "second")
    place.paused("tool_call")
    subprocess.run(["sh", "-ec", HIDING[way]], cwd=place.project, env=place.environment, check=True)
    place.run("resume", "--strict", "--yes").failed(1, error="the worktree (?:has|may have) changed since")
