"""The one way git is run: it obeys the user, not the repository it happens to be in.

An archive can bring its own `.git`, and a shared folder its own repositories. Their settings, hooks and
attributes can name programs, and git runs them: while it looks at a file, fetches a missing object, signs,
or contacts a remote. There are two protections. `git_command` and `NO_PROTOCOL` apply to every command
and cost nothing. `guarded` is for commands that read or write files of a work tree, run hooks or contact
a remote: it overrides what a repository's own settings say.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.base.durable import is_hole
from holdfast.base.errors import GitError

_OPTIONS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.alternateRefsCommand=true"),
    # What a command does in submodules is done under their settings, which nobody has looked at.
    *("-c", "submodule.recurse=false"),
    *("-c", "fetch.recurseSubmodules=false"),
    *("-c", "push.recurseSubmodules=no"),
)
NO_PROTOCOL: Mapping[str, str] = {
    # A partial clone downloads what it misses, with a program that its settings name. Versions of git
    # before 2.39.4 know only the second way to forbid it.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
LIST_SETTINGS = ("config", "--null", "--list", "--show-scope")


def git_command(*arguments: str) -> list[str]:
    return ["git", "--no-pager", *_OPTIONS, *arguments]


# ── settings that a repository brings ──────────────────────────────────────────────────────


class GitSetting(NamedTuple):
    scope: str
    name: str
    value: str

    @property
    def is_foreign(self) -> bool:
        """Not the user's: neither of this account, nor of the machine, nor of our environment."""
        return self.scope not in ("system", "global", "command")


def read_settings(listed: bytes) -> list[GitSetting]:
    """What `LIST_SETTINGS` printed."""
    fields = [os.fsdecode(field) for field in listed.split(b"\0")[:-1]]
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return [GitSetting(scope, *_halves(entry)) for scope, entry in pairs]


def _halves(entry: str) -> tuple[str, str]:
    name, _, value = entry.partition("\n")
    return name, value


_PROGRAM = re.compile(
    r"core\.(?:sshcommand|askpass)|gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand"
    r"|credential\.(?:.*\.)?helper|remote\..*\.(?:uploadpack|receivepack)"
)
_FILTER = re.compile(r"(filter\..*)\.[a-z]+")
_HOOK = re.compile(r"(hook\..*)\.[a-z]+")
_DEFAULTS = (
    # What git runs where nothing is set. An empty name would be run as well, so it has to be given.
    (r"core\.sshcommand", "ssh"),
    (r"gpg\.x509\.program", "gpgsm"),
    (r"gpg\.ssh\.program", "ssh-keygen"),
    (r"gpg\.ssh\.defaultkeycommand", "false"),
    (r"gpg\..*program", "gpg"),
    (r"remote\..*\.uploadpack", "git-upload-pack"),
    (r"remote\..*\.receivepack", "git-receive-pack"),
)


def guarded(
    environment: Mapping[str, str], settings: Sequence[GitSetting], *, users_filters: bool
) -> dict[str, str]:
    """An environment in which none of the programs runs that these settings of a repository name.

    The user's own run in their place. Filters do so only where `users_filters` are asked for: Git LFS,
    for one, is the user's and runs what the repository's settings tell it to. Hooks never run.
    """
    result = with_settings(environment, _overrides(settings, users_filters=users_filters))
    if any(one.is_foreign and one.name == "core.gitproxy" for one in settings):
        result["GIT_PROXY_COMMAND"] = ""  # of several settings git takes the first, not the last
    return result


def _overrides(settings: Sequence[GitSetting], *, users_filters: bool) -> list[tuple[str, str]]:
    """All that names a program is taken back, then what the user set is set again."""
    kept = [one for one in settings if _is_kept(one, users_filters=users_filters)]
    if not any(_neutral(one.name) for one in set(settings).difference(kept)):
        return []
    neutral = dict(pair for one in settings for pair in _neutral(one.name))
    return [*neutral.items(), *((one.name, one.value) for one in kept)]


def _is_kept(one: GitSetting, *, users_filters: bool) -> bool:
    if one.is_foreign:
        return False
    return bool(_PROGRAM.fullmatch(one.name) or (users_filters and _FILTER.fullmatch(one.name)))


def _neutral(name: str) -> list[tuple[str, str]]:
    """Settings under which git runs no program for the sake of this one, or its own default."""
    if match := _FILTER.fullmatch(name):
        ways = [(f"{match[1]}.{way}", "") for way in ("clean", "smudge", "process")]
        return [*ways, (f"{match[1]}.required", "false")]
    if match := _HOOK.fullmatch(name):
        return [(f"{match[1]}.enabled", "false")]
    if not _PROGRAM.fullmatch(name):
        return []
    if name.startswith("credential."):
        return [("credential.helper", "")]  # empties the list, whatever address an entry is for
    return [(name, next((value for pattern, value in _DEFAULTS if re.fullmatch(pattern, name)), ""))]


def with_settings(environment: Mapping[str, str], more: Sequence[tuple[str, str]]) -> dict[str, str]:
    """These are read last, and so prevail.

    Not with `-c`: that takes a name to end at its first `=`, and the name of a filter may hold one.
    """
    given = environment.get("GIT_CONFIG_COUNT", "")
    start = int(given) if given.isdecimal() else 0
    result = {**environment, "GIT_CONFIG_COUNT": str(start + len(more))}
    for number, (name, value) in enumerate(more, start):
        result[f"GIT_CONFIG_KEY_{number}"] = name
        result[f"GIT_CONFIG_VALUE_{number}"] = value
    return result


# ── remotes ────────────────────────────────────────────────────────────────────────────────

_KNOWN = {
    "file": "file",
    "git": "git",
    "git+ssh": "ssh",
    "http": "http:https",  # which servers redirect to
    "https": "https",
    "ssh": "ssh",
    "ssh+git": "ssh",
}


def allowed_protocols(address: str, settings: Iterable[GitSetting]) -> str:
    """That of the address, and of what the user's own settings make of it (`url.*.insteadOf`)."""
    users = [one for one in settings if not one.is_foreign]
    named = [_protocol(one) for one in (address, *_rewritten(address, users))]
    known = {_KNOWN[name] for name in named if name in _KNOWN}
    if not known:
        raise GitError(
            f"the URL of this remote uses the protocol {named[0]}, which is not allowed",
            hint="use an https, ssh, git or file URL, or a folder path",
        )
    return ":".join(sorted(known))


_REWRITING = re.compile(r"url\.(.*)\.(?:push)?insteadof")


def _rewritten(address: str, settings: Iterable[GitSetting]) -> Iterator[str]:
    for one in settings:
        match = _REWRITING.fullmatch(one.name)
        if match and address.startswith(one.value):
            yield match[1] + address.removeprefix(one.value)


def _protocol(address: str) -> str:
    """Read as git reads it: `NAME::…` has a program of that name run, `HOST:PATH` is SSH."""
    scheme = re.match(r"([A-Za-z0-9][A-Za-z0-9+.-]*)(::|://)", address)
    if scheme is None:
        return "file" if _is_path(address) else "ssh"
    return scheme[1] if scheme[2] == "://" else f"{scheme[1]}::"


def _is_path(address: str) -> bool:
    if os.name == "nt" and re.match(r"[A-Za-z]:", address):
        return True
    return ":" not in address.partition("/")[0]


def other_end(command: str, protocols: str) -> list[str]:
    """Options that have the git at the other end guarded, too, where that runs here and as this user."""
    if protocols != "file":
        return []
    program = "receive-pack" if command == "push" else "upload-pack"
    variables = " ".join(f"{name}={value}" for name, value in NO_PROTOCOL.items())
    words = git_command("-c", "receive.autogc=false", program)
    return [f"--{program}={variables} {shlex.join(words)}"]


# ── running it ────────────────────────────────────────────────────────────────────────────────────

# Running git: with no more of our environment than it should have, nobody to ask, and not for ever.

TIME_LIMIT = 60.0
"""Seconds that one git process gets."""
SLOW = 1.5
"""Seconds after which it is asked why."""


@dataclass(frozen=True)
class GitResult:
    code: int
    out: bytes
    err: bytes


_KEPT = (
    # Everything else that starts with GIT_ goes: a hook or an alias that started us may have
    # set GIT_DIR, GIT_INDEX_FILE and more of another repository, and new ones are invented.
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"),  # containers set safe.directory so
    *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
)
_PROMPTERS = {"DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS"}
_ALWAYS = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    **NO_PROTOCOL,
}
_NOTHING_OF_THE_USERS = {
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}


def base_environment(git_dir: str | None = None) -> dict[str, str]:
    """`git_dir` says that the repository is there, and that none further out is meant if it is not."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _PROMPTERS and (not name.startswith("GIT_") or name.startswith(_KEPT))
    }
    return {**kept, **_ALWAYS, **({"GIT_DIR": git_dir} if git_dir else {})}


def sealed_environment() -> dict[str, str]:
    """With nothing of the user's, where that must not count: no settings, attributes or replaced objects."""
    return {"PATH": os.environ.get("PATH", os.defpath), **_ALWAYS, **_NOTHING_OF_THE_USERS}


def repository_settings(folder: Path, git_dir: str | None = None) -> list[GitSetting]:
    return read_settings(output(folder, _list_settings(folder, git_dir)))


def _list_settings(folder: Path, git_dir: str | None) -> GitResult:
    return run_git(folder, *LIST_SETTINGS, environment=base_environment(git_dir))


def guarded_environment(folder: Path) -> dict[str, str]:
    """For a command that looks into files: no filter runs, neither here nor in a submodule."""
    return guarded(base_environment(), settings_with_submodules(folder)[0], users_filters=False)


def settings_with_submodules(folder: Path) -> tuple[list[GitSetting], set[Path]]:
    """Of the repository and of those in it, and where all of them are."""
    settings, seen = [*repository_settings(folder)], {folder.resolve()}
    _add_submodules(folder, None, settings, seen)
    return settings, seen


def silenced_filters(environment: Mapping[str, str]) -> frozenset[str]:
    """The filters that a guarded environment keeps from running."""
    names = (value for key, value in environment.items() if key.startswith("GIT_CONFIG_KEY_"))
    return frozenset(name.split(".", 1)[1].rpartition(".")[0] for name in names if name.startswith("filter."))


def _add_submodules(folder: Path, git_dir: str | None, settings: list[GitSetting], seen: set[Path]) -> None:
    """Their settings, and those of submodules in them: `git status` goes into each in the same way."""
    for submodule in _submodules(folder, base_environment(git_dir)):
        place = submodule.resolve()
        listed = _list_settings(submodule, ".git")
        if place in seen or listed.code != 0:  # git cannot go into that one either
            continue
        seen.add(place)
        settings += read_settings(listed.out)
        _add_submodules(submodule, ".git", settings, seen)


def _submodules(folder: Path, environment: Mapping[str, str]) -> list[Path]:
    listed = run_git(folder, "ls-files", "--stage", "-z", "--full-name", "--", ":/", environment=environment)
    entries = output(folder, listed).split(b"\0")
    names = [entry.partition(b"\t")[2] for entry in entries if entry.startswith(b"160000 ")]
    if not names:
        return []
    answer = run_git(folder, "rev-parse", "--show-toplevel", environment=environment)
    top = Path(os.fsdecode(output(folder, answer).removesuffix(b"\n")))
    return [place for name in names if os.path.lexists((place := top / os.fsdecode(name)) / ".git")]


def run_git(
    folder: Path,
    *arguments: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    time_limit: float | None = None,
) -> GitResult:
    """Run git to its end, whatever its exit code.

    A command that looks into files of the work tree, runs hooks or reaches a remote needs an
    environment from `guarded_environment`.
    """
    seconds = TIME_LIMIT if time_limit is None else time_limit
    if found := known_obstacle(folder):
        raise _endless(folder, found)
    try:
        process = subprocess.Popen(
            git_command(*arguments),
            cwd=folder,
            env=base_environment() if environment is None else environment,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # No terminal to ask on, and one group to end with all that git started.
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(folder, error) from error
    with process:
        try:
            out, err = _communicate(process, folder, stdin or None, seconds)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise _too_slow(folder, arguments, seconds) from error
        except BaseException:
            _end(process)
            raise
    return GitResult(process.returncode, out, err)


def _communicate(
    process: subprocess.Popen[bytes], folder: Path, stdin: bytes | None, seconds: float
) -> tuple[bytes, bytes]:
    """What it answered. One that takes its time may never end: then what it waits for is looked for."""
    if seconds <= SLOW:
        return process.communicate(stdin, timeout=seconds)
    found: list[Obstacle] = []

    def look() -> None:
        if process.returncode is None and (obstacle := find_obstacle(folder)):
            found.append(obstacle)
            _end(process)

    # Looked for beside it: a `communicate` that is left and called again never sends the rest of stdin.
    watch = threading.Timer(SLOW, look)
    watch.daemon = True
    watch.start()
    try:
        answer = process.communicate(stdin, timeout=seconds)
    finally:
        watch.cancel()
    if found:
        raise _endless(folder, found[0])
    return answer


def _endless(folder: Path, found: Obstacle) -> GitError:
    return GitError(
        f"git cannot work in {folder}: {found.place} is {found.kind}, which git would read for ever",
        hint="remove it, or put a file in its place",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asked first, for git then takes its lock files with it."""
    if os.name == "nt":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def output(folder: Path, answer: GitResult) -> bytes:
    if answer.code != 0:
        raise failure(folder, answer)
    return answer.out


def _not_started(folder: Path, error: OSError) -> GitError:
    if not folder.is_dir():
        return GitError(f"no such folder: {folder}", hint="was it moved or deleted?")
    if isinstance(error, FileNotFoundError):
        return GitError("git is not installed, or not on PATH", hint="install it from https://git-scm.com")
    return GitError(f"could not start git in {folder}: {error.strerror}", hint="check the permissions")


def _too_slow(folder: Path, arguments: Sequence[str], seconds: float) -> GitError:
    command = next(word for word in arguments if re.fullmatch("[a-z][a-z-]+", word))
    return GitError(
        f"`git {command}` took more than {seconds:g} seconds in {folder}",
        hint="try it by hand: a slow disk or a signing key waiting for input can block it",
    )


def failure(folder: Path, answer: GitResult) -> GitError:
    if b"dubious ownership" in answer.err or b"unsafe repository" in answer.err:
        command = re.search(rb"git config --global --add safe\.directory \S.*", answer.err)
        advice = os.fsdecode(command[0]) if command else "git config --global --add safe.directory FOLDER"
        return GitError(
            f"the git repository at {folder} belongs to another user, so git refuses to read it",
            hint=f"if you trust it: `{advice}`",
        )
    return GitError(
        f"git cannot read the repository at {folder}: {reason(answer)}",
        hint="run `git status` there to see the error; `git fsck` checks for damage",
    )


def reason(answer: GitResult) -> str:
    """The line that says it: git's own, else the last, which is where hooks put it."""
    lines = [line.strip() for line in answer.err.decode(errors="replace").splitlines() if line.strip()]
    spoken = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    told = (spoken or lines[-1:] or [f"exit code {answer.code}"])[0]
    return told.removeprefix("fatal: ").removeprefix("error: ")[:300]


# ── what git would wait for ────────────────────────────────────────────────────────────────

# For ever: for a pipe, a device or a file of holes in place of a file. An archive
# can hold these and git itself cannot, so git does not expect them. Looking for them costs as much as
# `git status` does, and is left to the moment when a git has not answered for a while.

_READ_IN_EACH_FOLDER = frozenset((".gitignore", ".gitattributes", ".gitmodules"))
_MOST = 300_000
"""Names that are looked at; who has more in a tree waits for git itself."""


class Obstacle(NamedTuple):
    place: str
    kind: str
    is_in_git: bool


_found: dict[Path, Obstacle] = {}
"""By the folder that git was run in: nobody waits for the same one twice."""


def known_obstacle(folder: Path) -> Obstacle | None:
    """The one that was found before, if it is still there."""
    before = _found.pop(folder, None)
    if before and _kind_of(before.place, follow=before.is_in_git):
        _found[folder] = before
        return before
    return None


def find_obstacle(folder: Path) -> Obstacle | None:
    """The first one in the repository that the folder is in: in its `.git`, or in the work tree."""
    top = next((one for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), None)
    found = _obstacle_in(top) if top else None
    if found:
        _found[folder] = found
    return found


def _obstacle_in(top: Path) -> Obstacle | None:
    left = _MOST
    for entry, is_git in _entries(top):
        left -= 1
        if left < 0:
            return None
        if is_git or entry.name in _READ_IN_EACH_FOLDER:
            kind = _kind_of(entry.path, follow=is_git)
            if kind:
                return Obstacle(entry.path, kind, is_git)
    return None


def _entries(top: Path) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """All but folders, with whether git reads each; git's own come first."""
    waiting = [(str(top), False), *((one, True) for one in _git_folders(top))]
    while waiting:
        folder, is_git = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                yield entry, is_git
            elif is_git or entry.name != ".git":
                waiting.append((entry.path, is_git))


def _git_folders(top: Path) -> list[str]:
    git = top / ".git"
    if git.is_dir():
        return [str(git)]
    try:
        told = git.read_text(errors="replace") if git.is_file() else ""
    except OSError:
        return []
    return [str(top / told.partition("gitdir:")[2].strip())] if "gitdir:" in told else []


def _kind_of(path: str, *, follow: bool) -> str:
    """Empty for what ends when it is read. Git follows links in its own folder and no others."""
    try:
        found = Path(path).stat(follow_symlinks=follow)
    except OSError:
        return ""
    if stat.S_ISFIFO(found.st_mode):
        return "a pipe"
    if stat.S_ISCHR(found.st_mode):
        return "a device"
    return "empty in most parts and said to be very large" if is_hole(found) else ""
