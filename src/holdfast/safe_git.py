"""What every git that we start is told: it obeys the user, and nobody who merely brought a repository.

An archive brings its `.git` along, a shared folder the repositories that we keep in it. Their settings,
hooks and attributes can name programs, and git runs them: while it looks at a file, fetches an object it
misses, signs, or reaches a remote. Two guards are in force here. The first is the same for every command
and costs nothing: `git_command` and `NO_PROTOCOL`. The second is for commands that read or write files of
a work tree, run hooks or reach a remote: `guarded` takes back what a repository's own settings say.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.errors import GitError

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


class Setting(NamedTuple):
    scope: str
    name: str
    value: str

    @property
    def is_foreign(self) -> bool:
        """Not the user's: neither of this account, nor of the machine, nor of our environment."""
        return self.scope not in ("system", "global", "command")


def read_settings(listed: bytes) -> list[Setting]:
    """What `LIST_SETTINGS` printed."""
    fields = [os.fsdecode(field) for field in listed.split(b"\0")[:-1]]
    pairs = zip(fields[::2], fields[1::2], strict=True)
    return [Setting(scope, *_halves(entry)) for scope, entry in pairs]


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
    environment: Mapping[str, str], settings: Sequence[Setting], *, users_filters: bool
) -> dict[str, str]:
    """An environment in which none of the programs runs that these settings of a repository name.

    The user's own run in their place. Filters do so only where `users_filters` are asked for: Git LFS,
    for one, is the user's and runs what the repository's settings tell it to. Hooks never run.
    """
    result = _with_settings(environment, _overrides(settings, users_filters=users_filters))
    if any(one.is_foreign and one.name == "core.gitproxy" for one in settings):
        result["GIT_PROXY_COMMAND"] = ""  # of several settings git takes the first, not the last
    return result


def _overrides(settings: Sequence[Setting], *, users_filters: bool) -> list[tuple[str, str]]:
    """All that names a program is taken back, then what the user set is set again."""
    kept = [one for one in settings if _is_kept(one, users_filters=users_filters)]
    if not any(_neutral(one.name) for one in set(settings).difference(kept)):
        return []
    neutral = dict(pair for one in settings for pair in _neutral(one.name))
    return [*neutral.items(), *((one.name, one.value) for one in kept)]


def _is_kept(one: Setting, *, users_filters: bool) -> bool:
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


def _with_settings(environment: Mapping[str, str], more: Sequence[tuple[str, str]]) -> dict[str, str]:
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


def allowed_protocols(address: str, settings: Iterable[Setting]) -> str:
    """That of the address, and of what the user's own settings make of it (`url.*.insteadOf`)."""
    users = [one for one in settings if not one.is_foreign]
    named = [_protocol(one) for one in (address, *_rewritten(address, users))]
    known = {_KNOWN[name] for name in named if name in _KNOWN}
    if not known:
        raise GitError(
            f"the address of this remote asks for the protocol {named[0]}, which is not used here",
            hint="give an address of https, ssh, git or file, or the path of a folder",
        )
    return ":".join(sorted(known))


_REWRITING = re.compile(r"url\.(.*)\.(?:push)?insteadof")


def _rewritten(address: str, settings: Iterable[Setting]) -> Iterator[str]:
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
