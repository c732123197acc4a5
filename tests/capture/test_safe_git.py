"""What every git that we start is told. What it keeps from running is seen in `cli/test_foreign_git.py`."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

import holdfast
from holdfast.base import git as git_module
from holdfast.base.errors import GitError
from holdfast.base.git import (
    GitSetting,
    allowed_protocols,
    base_environment,
    guarded,
    repository_settings,
    run_git,
)
from holdfast.capture.git import capture_git_state

SOURCE = Path(holdfast.__file__).parent
STARTS_GIT = {"base/git.py"}
STARTS_PROCESSES = {
    # Those that run git, with what `base/git.py` tells them.
    *("base/git.py", "undo/objects.py"),
    # Processes of our own that share the first look at a tree.
    "undo/git.py",
    # `ps`, where there is no /proc.
    "base/process.py",
    # Ourselves, agents, and what the user's plans say.
    *(
        "docaudit/search.py",
        "flow/agents/claude_code.py",
        "hooks/fast/spawn.py",
        "cli/context.py",
        "cli/watch.py",
    ),
    *("workflows/lease.py", "workflows/drivers/guarded.py"),
}
_STARTERS = {
    "subprocess": ("Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"),
    "asyncio": ("create_subprocess_exec", "create_subprocess_shell"),
    "os": ("system", "popen", "exec", "spawn", "posix_spawn"),
}


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in SOURCE.rglob("*.py"):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text())


def _says_git(node: ast.AST) -> bool:
    """The beginning of a command line: `["git", …`."""
    first = node.elts[0] if isinstance(node, ast.List | ast.Tuple) and node.elts else None
    return isinstance(first, ast.Constant) and first.value == "git"


def _starts_a_process(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return node.func.attr.startswith(_STARTERS.get(ast.unparse(node.func.value), ()))


def test_git_is_started_in_one_way_only() -> None:
    assert {name for name, tree in _trees() if any(map(_says_git, ast.walk(tree)))} == STARTS_GIT


def test_no_other_module_starts_processes() -> None:
    assert {
        name for name, tree in _trees() if any(map(_starts_a_process, ast.walk(tree)))
    } == STARTS_PROCESSES


# ── settings ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    subprocess.run(["git", "init", "--quiet", tmp_path / "repository"], check=True)
    return tmp_path / "repository"


def test_the_users_credential_helpers_are_asked_once_and_the_repositorys_never(
    repository: Path, tmp_path: Path
) -> None:
    answer = "!f() { echo asked >>'%s'; }; f"
    (tmp_path / "gitconfig").write_text(
        f'[credential]\n\thelper = "{answer % (tmp_path / "one")}"\n'
        f'[credential "https://example.invalid"]\n\thelper = "{answer % (tmp_path / "two")}"\n'
        '\thelper = "!echo username=ada; echo password=secret #"\n'
    )
    for name in ("credential.helper", "credential.https://example.invalid.helper"):
        run_git(repository, "config", name, answer % (tmp_path / "evil"))
    environment = guarded(base_environment(), repository_settings(repository), users_filters=True)
    asked = run_git(
        repository, "credential", "fill", stdin=b"url=https://example.invalid/x\n", environment=environment
    )
    assert b"username=ada" in asked.out
    assert not (tmp_path / "evil").exists()
    assert [(tmp_path / name).read_text() for name in ("one", "two")] == ["asked\n"] * 2


def test_settings_of_the_environment_are_kept(repository: Path) -> None:
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada"}
    settings = [
        GitSetting("local", "core.sshcommand", "evil"),
        GitSetting("local", "filter.x=y.clean", "evil"),
    ]
    environment = guarded({**base_environment(), **given}, settings, users_filters=True)

    def value(name: str) -> str:
        return run_git(repository, "config", name, environment=environment).out.decode().strip()

    assert [value(name) for name in ("user.name", "core.sshCommand", "filter.x=y.clean")] == [
        "Ada",
        "ssh",
        "",
    ]


# ── addresses ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("address", "protocols"),
    [
        ("https://example.org/x.git", "https"),
        ("http://example.org/x.git", "http:https"),
        ("ssh://git@example.org/x", "ssh"),
        ("git+ssh://git@example.org/x", "ssh"),
        ("git@example.org:x.git", "ssh"),
        ("git://example.org/x", "git"),
        ("file:///srv/x.git", "file"),
        ("/srv/x.git", "file"),
        ("../x:y", "file"),
        ("x.git", "file"),
    ],
)
def test_only_the_protocol_of_the_address_is_allowed(address: str, protocols: str) -> None:
    assert allowed_protocols(address, []) == protocols


@pytest.mark.parametrize(
    "address", ["ext::sh -c x", "fd::1", "https::https://example.org/x", "s3://bucket", "EXT::x", "ext+x::y"]
)
def test_protocols_with_a_program_of_their_own_are_refused(address: str) -> None:
    with pytest.raises(GitError, match="uses the protocol"):
        allowed_protocols(address, [])


def test_only_the_user_may_rewrite_an_address() -> None:
    rule = ("url.ssh://git@example.org/.pushinsteadof", "https://example.org/")
    assert allowed_protocols("https://example.org/x", [GitSetting("global", *rule)]) == "https:ssh"
    assert allowed_protocols("https://example.org/x", [GitSetting("local", *rule)]) == "https"
    assert allowed_protocols("https://example.com/x", [GitSetting("global", *rule)]) == "https"


Odd = Literal["pipe", "device", "holes"]


def _put(kind: Odd, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("pipe", name) for name in (".gitignore", "folder/inner/.gitignore", "folder/.gitattributes")),
        *(("pipe", f".git/{name}") for name in ("config", "HEAD", "index", "info/exclude", "packed-refs")),
        ("device", ".git/info/exclude"),
        ("device", ".git/info/attributes"),
        ("holes", ".gitignore"),
        ("holes", ".git/info/exclude"),
    ],
)
def test_git_waits_for_nothing_that_never_ends(
    repository: Path, monkeypatch: pytest.MonkeyPatch, kind: Odd, name: str
) -> None:
    """As an archive can bring them: a capture says which file it is, where git would hang."""
    (repository / "folder" / "inner").mkdir(parents=True)
    (repository / "folder" / "inner" / "file").touch()
    subprocess.run(["git", "-C", repository, "add", "folder"], check=True)
    _put(kind, repository / name)
    monkeypatch.setattr(git_module, "SLOW", 0.2)
    told: list[str] = []
    for _ in range(2):
        try:
            capture_git_state(repository)
        except GitError as error:
            told.append(error.message)
    assert len(told) in (0, 2)
    assert told or name not in (".gitignore", "folder/inner/.gitignore", ".git/config", ".git/HEAD")
    # Not every version of git opens all of the others.
    assert all(str(repository / name) in one or "memory" in one for one in told), told
    (repository / name).unlink()
    if name not in (".git/config", ".git/HEAD"):
        assert capture_git_state(repository) is not None


def test_a_git_that_merely_takes_its_time_is_waited_for(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_module, "SLOW", 0.0)
    assert capture_git_state(repository) is not None


def test_a_slow_git_gets_all_of_what_it_is_given(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds: the rest was never sent once git had been looked after, and both waited."""
    monkeypatch.setattr(git_module, "SLOW", 0.0)
    asked = 200_000
    answer = run_git(
        repository, "cat-file", "--batch-check", stdin=(b"0" * 39 + b"1\n") * asked, time_limit=120.0
    )
    assert (answer.code, answer.out.count(b" missing\n")) == (0, asked)
