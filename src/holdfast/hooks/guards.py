"""What keeps a tool call from running, whichever program would do the damage. Never silenced."""

from __future__ import annotations

import os
import sys

from holdfast.hooks.shell import DYNAMIC, Simple, parse

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.hooks.fast.event import AgentEvent


_SYSTEM = frozenset(
    [
        "/",
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/lib32",
        "/lib64",
        "/media",
        "/mnt",
        "/opt",
        "/proc",
        "/root",
        "/run",
        "/sbin",
        "/srv",
        "/sys",
        "/usr",
        "/usr/bin",
        "/usr/lib",
        "/usr/local",
        "/usr/sbin",
        "/usr/share",
        "/var",
        "/var/lib",
        "/var/log",
        "/Applications",
        "/Library",
        "/System",
        "/Users",
        "/Volumes",
        "/private",
        "/private/etc",
        "/private/var",
    ]
)
_DISKS = ("sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "loop", "mapper/")
_PRECIOUS_FILES = ("/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/fstab", "/proc/sysrq-trigger")
_PROTECTED_BRANCHES = ("main", "master", "trunk", "production", "release")
_GLOBS = ("*", ".*", "?*", "{*,.*}", "[!.]*", "..?*", ".[!.]*")


def moved(cwd: str, folder: str | None) -> str:
    """The folder after a `cd`."""
    return cwd if folder is None else _resolved(folder, cwd)


def _resolved(target: str, cwd: str) -> str:
    home = os.path.expanduser("~")
    if target == "~" or target.startswith("~/"):
        target = home + target[1:]
    path = os.path.normpath(os.path.join(cwd, target))
    return "/" + path.lstrip("/")  # two leading slashes are kept by normpath


def is_vital(target: str, cwd: str) -> bool:
    """Whether everything in it, or it itself, is the system, a home, or all above the project."""
    if target.startswith("-"):
        return False
    head, _, tail = target.rpartition("/")
    if tail in _GLOBS or (tail and not tail.strip("*?.") and "*" in tail):
        target = head + "/" if head or target.startswith("/") else "."
    if target.startswith("/" + DYNAMIC):
        return True  # `/$NAME` is `/` where the name is empty
    if DYNAMIC in target:
        return False
    path = _resolved(target, cwd)
    home = os.path.expanduser("~")
    is_home = path in (home, os.path.dirname(home)) or (
        path.count("/") == 2 and path.startswith(("/home/", "/Users/"))
    )
    return path in _SYSTEM or is_home


def is_disk(target: str) -> bool:
    path = os.path.normpath(target)
    return path.startswith("/dev/") and path[5:].startswith(_DISKS)


def why_not_write(target: str, cwd: str) -> str | None:
    path = _resolved(target, cwd)
    if is_disk(path):
        return f"it overwrites the disk {path}"
    if path in _PRECIOUS_FILES:
        return f"it overwrites {path}"
    return None


def why_not_run(name: str, words: list[str], cwd: str, branch: Callable[[], str]) -> str | None:
    rule = _RULES.get(name)
    if rule is not None:
        return rule(words, cwd)
    if name == "git":
        return _git(words, branch)
    if name.startswith(("mkfs", "mke2fs", "newfs")) or name in _DISK_TOOLS:
        return _disk_tool(name, words)
    if name in ("shutdown", "reboot", "halt", "poweroff"):
        return None if "--help" in words else "it shuts the machine down"
    if DYNAMIC in name or any(sign in name for sign in "*?["):
        return _hidden(words, cwd)
    return None


_DISK_TOOLS = ("wipefs", "fdisk", "sfdisk", "sgdisk", "parted", "blkdiscard", "hdparm", "mkswap", "badblocks")


def _letters(words: list[str]) -> str:
    return "".join(word[1:] for word in words if word.startswith("-") and not word.startswith("--"))


def _is_recursive(words: list[str]) -> bool:
    return "--recursive" in words or any(letter in _letters(words) for letter in "rR")


def _vital(words: list[str], cwd: str) -> str | None:
    return next((word.replace(DYNAMIC, "$…") for word in words if is_vital(word, cwd)), None)


def _rm(words: list[str], cwd: str) -> str | None:
    if "--no-preserve-root" in words:
        return "it may delete the whole system"
    target = _vital(words, cwd)
    if target is not None and _is_recursive(words):
        return f"it deletes {target} recursively"
    return None


def _change_all(words: list[str], cwd: str) -> str | None:
    target = _vital(words, cwd)
    if target is not None and _is_recursive(words):
        return f"it changes the owner or permissions of everything in {target}"
    return None


def _find(words: list[str], cwd: str) -> str | None:
    start = [word for word in words if not word.startswith("-")][:1]
    where = _vital(start, cwd) if start else None
    deletes = "-delete" in words or any(
        word in ("-exec", "-execdir", "-ok") and os.path.basename(after) in ("rm", "shred", "unlink")
        for word, after in zip(words, words[1:], strict=False)  # noqa: RUF007 - itertools is not loaded here
    )
    return f"it deletes the files it finds under {where}" if where and deletes else None


def _dd(words: list[str], cwd: str) -> str | None:
    outputs = (word[3:] for word in words if word.startswith("of="))
    return next((why for word in outputs if (why := why_not_write(word, cwd))), None)


def _move(words: list[str], cwd: str) -> str | None:
    plain = [word for word in words if not word.startswith("-")]
    target = _vital(plain[:-1], cwd)
    if target is not None:
        return f"it moves {target} away"
    return why_not_write(plain[-1], cwd) if plain else None


def _copy(words: list[str], cwd: str) -> str | None:
    plain = [word for word in words if not word.startswith("-")]
    return why_not_write(plain[-1], cwd) if plain else None


def _tee(words: list[str], cwd: str) -> str | None:
    return next((why for word in words if (why := why_not_write(word, cwd))), None)


def _shred(words: list[str], cwd: str) -> str | None:
    return next((f"it wipes {word}" for word in words if is_disk(word) or is_vital(word, cwd)), None)


def _rsync(words: list[str], cwd: str) -> str | None:
    removes = any(word.startswith("--delete") for word in words)
    target = _vital(words[-1:], cwd)
    return f"it deletes the contents of {target}" if removes and target else None


def _kill(words: list[str], cwd: str) -> str | None:  # noqa: ARG001 - one form for all rules
    plain = [word for word in words[1:] if word in ("-1", "1")]
    return "it kills every process, or init" if plain else None


def _crontab(words: list[str], cwd: str) -> str | None:  # noqa: ARG001
    return "it deletes all scheduled jobs" if "r" in _letters(words) else None


def _systemctl(words: list[str], cwd: str) -> str | None:  # noqa: ARG001
    ends = ("poweroff", "reboot", "halt", "kexec", "emergency", "rescue")
    return "it shuts the machine down" if any(word in ends for word in words) else None


def _init(words: list[str], cwd: str) -> str | None:  # noqa: ARG001
    return "it shuts the machine down" if words[:1] in (["0"], ["6"]) else None


_RULES: dict[str, Callable[[list[str], str], str | None]] = {
    "rm": _rm,
    "srm": _rm,
    "chmod": _change_all,
    "chown": _change_all,
    "chgrp": _change_all,
    "find": _find,
    "dd": _dd,
    "mv": _move,
    "cp": _copy,
    "tee": _tee,
    "shred": _shred,
    "rsync": _rsync,
    "kill": _kill,
    "crontab": _crontab,
    "systemctl": _systemctl,
    "init": _init,
    "telinit": _init,
}


def _disk_tool(name: str, words: list[str]) -> str | None:
    if any(word in ("-l", "--list", "--help", "-h", "--version") for word in words):
        return None
    disk = next((word for word in words if is_disk(word)), None)
    return f"{name} wipes or rewrites the disk {disk}" if disk else None


def _hidden(words: list[str], cwd: str) -> str | None:
    """A program whose name only the shell will know, given the words of a deletion."""
    target = _vital(words, cwd)
    if target is not None and _is_recursive(words):
        return f"it hides which program operates on {target}"
    return None


def _git(words: list[str], branch: Callable[[], str]) -> str | None:
    if "push" not in words:
        return None
    rest = words[words.index("push") + 1 :]
    refs = [word for word in rest if not word.startswith("-")][1:]
    forced = "--force" in rest or "f" in _letters([word for word in rest if word != "--force-with-lease"])
    deletes = "--delete" in rest or "-d" in rest
    if "--mirror" in rest:
        return "it mirrors this repository and deletes whatever exists only on the remote"
    for ref in refs:
        aimed = ref.removeprefix("+").rpartition(":")[2].removeprefix("refs/heads/")
        if aimed in _PROTECTED_BRANCHES and (forced or deletes or ref.startswith(("+", ":"))):
            return f"it rewrites or deletes the shared branch {aimed}"
    if forced and not refs and branch() in _PROTECTED_BRANCHES:
        return f"it rewrites the shared branch {branch()}"
    return None


def why_not_script(text: str) -> str | None:
    """A one-line program that removes a vital folder by its own means."""
    for call in (
        "rmtree(",
        "remove_tree(",
        "rm_rf(",
        "rmSync(",
        "rmdirSync(",
        "os.system(",
        "system(",
        "execSync(",
    ):
        _, found, after = text.partition(call)
        if not found:
            continue
        argument = after.lstrip().lstrip("\"'")
        argument = argument.partition(after.lstrip()[:1] if after.lstrip()[:1] in "\"'" else ")")[0]
        if "system" in call or "exec" in call:
            why = danger(argument)
            if why:
                return why
        elif argument and is_vital(argument, "/work"):
            return f"it deletes {argument} recursively"
    return None


# ── dangerous commands ────────────────────────────────────────────────────────────────────────────

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "ash")
_RUN_TEXT = (*_SHELLS, "su", "script", "ssh", "flatpak-spawn")
_FETCHERS = ("curl", "wget", "fetch", "aria2c")
_DECODERS = ("base64", "base32", "xxd", "openssl", "rev", "tr", "gunzip", "zcat")
_WITH_ARGUMENT = {
    "sudo": "ugpCDhRT",
    "doas": "uC",
    "env": "uSC",
    "nice": "n",
    "ionice": "cnp",
    "timeout": "sk",
    "stdbuf": "ioe",
    "xargs": "IiLlnPsdaE",
    "setsid": "",
    "nohup": "",
    "command": "",
    "builtin": "",
    "exec": "a",
    "busybox": "",
    "toybox": "",
    "chroot": "",
    "unbuffer": "",
    "strace": "epo",
    "watch": "n",
    "parallel": "j",
}
"""Programs that run another one, and their one-letter options that take a word."""
_DEEPEST = 6


def dangerous_commands(event: AgentEvent) -> str | None:
    """Keep a shell command from destroying the system, the home folder, a disk or shared history."""
    command = event.command()
    if not command:
        return None
    why = danger(command, event.text("cwd") or event.project, _branch(event))
    if why is None:
        return None
    return (
        f"holdfast: this command was blocked: {why}. If it is intended, the user can run it by hand; "
        "otherwise name the exact files or folders inside the project."
    )


def all_programs(command: str, depth: int = 0) -> Iterator[Simple]:
    """Those of the line, and those of texts that shells and `eval` in it are given to run."""
    for simple in parse(command) if depth <= _DEEPEST else ():
        yield simple
        for text in _texts_run_by(simple):
            yield from all_programs(text, depth + 1)


def program_of(simple: Simple) -> list[str]:
    """The words from the program on that really runs."""
    return _program(simple.words)[0]


def _texts_run_by(simple: Simple) -> list[str]:
    words = program_of(simple)
    name = os.path.basename(words[0]) if words else ""
    if name == "eval":
        return [" ".join(words[1:])]
    if name not in _RUN_TEXT:
        return []
    given = _command_text(words)
    if given is not None:
        return [given]
    printed = simple.after and _printed_text(program_of(simple.after))
    return [*simple.reads, *([printed] if printed else [])]


def danger(
    command: str, cwd: str = "/work", branch: Callable[[], str] = lambda: "", depth: int = 0
) -> str | None:
    """Why the command may not run; None where nothing speaks against it."""
    if depth > _DEEPEST:
        return "it is nested too deeply to analyse"
    if _is_fork_bomb(command):
        return "it is a fork bomb"
    for simple in parse(command):
        why = _danger_of(simple, cwd, branch, depth)
        if why:
            return why
    return None


def _branch(event: AgentEvent) -> Callable[[], str]:
    def current() -> str:
        from holdfast.hooks.fast import notes

        head = (notes.read(os.path.join(event.project, ".git", "HEAD"), 512) or b"").decode(
            "utf-8", "replace"
        )
        return head.strip().rpartition("refs/heads/")[2]

    return current


def _is_fork_bomb(command: str) -> bool:
    tight = "".join(command.split())
    opening = tight.find("(){")
    while opening >= 0:
        start = opening
        while start and (tight[start - 1].isalnum() or tight[start - 1] in "_:."):
            start -= 1
        name = tight[start:opening]
        body = tight[opening + 3 : tight.find("}", opening)]
        if name and f"{name}|{name}" in body and "&" in body:
            return True
        opening = tight.find("(){", opening + 1)
    return False


def _danger_of(simple: Simple, cwd: str, branch: Callable[[], str], depth: int) -> str | None:
    folder = moved(cwd, simple.folder)
    for target in simple.writes:
        why = why_not_write(target, folder)
        if why:
            return why
    words, fed_by_xargs = _program(simple.words)
    if not words:
        return None
    name = os.path.basename(words[0])
    why = _runs_text(name, words, simple, folder, branch, depth)
    if why:
        return why
    rest = words[1:]
    if fed_by_xargs and simple.after is not None:
        rest = [*rest, *simple.after.words[1:]]
    return why_not_run(name, rest, folder, branch)


def _program(words: list[str]) -> tuple[list[str], bool]:
    """The words from the program on that really runs, past `sudo`, `env A=b`, `timeout 5` and their like."""
    fed = False
    while words:
        name = os.path.basename(words[0])
        if name not in _WITH_ARGUMENT:
            return words, fed
        fed = fed or name in ("xargs", "parallel")
        words = _past_options(words[1:], _WITH_ARGUMENT[name])
        if name in ("timeout", "chroot") and words:
            words = words[1:]
    return words, fed


def _past_options(words: list[str], with_argument: str) -> list[str]:
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return words[position + 1 :]
        if word.startswith("-") and len(word) > 1:
            takes = len(word) == 2 and word[1] in with_argument
            if word == "-S":  # env: the rest is one text
                return " ".join(words[position + 1 :]).split()
            position += 2 if takes else 1
        elif "=" in word and word.partition("=")[0].isidentifier():
            position += 1
        else:
            break
    return words[position:]


def _runs_text(
    name: str, words: list[str], simple: Simple, cwd: str, branch: Callable[[], str], depth: int
) -> str | None:
    """Shells, `eval` and interpreters that are given a program as text."""
    if name == "eval":
        return _of_text(" ".join(words[1:]), cwd, branch, depth)
    if name in _RUN_TEXT:
        return _of_shell(name, words, simple, cwd, branch, depth)
    if name in ("source", "."):
        return (
            "it runs downloaded code without inspection"
            if any(word.startswith(DYNAMIC) for word in words[1:])
            else None
        )
    if name.startswith(("python", "perl", "ruby", "node", "php")):
        return next((why for word in words[1:] if (why := why_not_script(word))), None)
    return None


def _of_shell(
    name: str, words: list[str], simple: Simple, cwd: str, branch: Callable[[], str], depth: int
) -> str | None:
    given = _command_text(words)
    if given is not None:
        return _of_text(given, cwd, branch, depth)
    if any(word.startswith(DYNAMIC + "<") for word in words[1:]):
        return "it runs downloaded code without inspection"
    if name == "ssh":
        return None
    for body in simple.reads:
        why = _of_text(body, cwd, branch, depth)
        if why:
            return why
    return _of_pipe(simple, cwd, branch, depth) if name in _SHELLS and len(words) < 4 else None


def _command_text(words: list[str]) -> str | None:
    """The text after `-c`, also in `-lc`."""
    for position, word in enumerate(words[1:-1], start=1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return words[position + 1]
    return None


def _printed_text(words: list[str]) -> str | None:
    if not words or os.path.basename(words[0]) not in ("echo", "printf"):
        return None
    return " ".join(words[1:]).replace("\\n", "\n")


def _of_text(text: str, cwd: str, branch: Callable[[], str], depth: int) -> str | None:
    if text.strip() == DYNAMIC:
        return "it runs the output of another command without inspection"
    return danger(text, cwd, branch, depth + 1)


def _of_pipe(simple: Simple, cwd: str, branch: Callable[[], str], depth: int) -> str | None:
    """What is piped into a shell: downloads and decoded text are refused, plain text is looked at."""
    source = simple.after
    while source is not None:
        words = _program(source.words)[0]
        name = os.path.basename(words[0]) if words else ""
        if name in _FETCHERS or name in _DECODERS:
            return "it pipes downloaded or decoded text into a shell without inspection"
        text = _printed_text(words)
        if text is not None:
            return danger(text, cwd, branch, depth + 1)
        source = source.after
    return None


# ── unpinned program ──────────────────────────────────────────────────────────────────────────────

_NAMES = ("holdfast", "holdfast-hook")
_ONLY_PRINT = ("echo", "printf", "grep", "rg")
_FETCHING = (
    ("uvx",),
    ("uv", "tool", "run"),
    ("uv", "x"),
    ("pipx", "run"),
    ("npx",),
    ("bunx",),
    ("pnpm", "dlx"),
)


def unpinned_program(event: AgentEvent) -> str | None:
    """Keep the agent from running a copy of Holdfast other than the installed one.

    A copy fetched on the fly (`uvx holdfast`) or lying about (`./holdfast`) may be of any version, or of
    anybody.
    """
    command = event.command()
    if any(_trusts_a_folder(simple) for simple in all_programs(command)):
        return "holdfast: this command was blocked: only the user may trust a folder. Ask them to do it."
    why = unpinned(command, event.text("cwd") or event.project)
    if why is None:
        return None
    return f"holdfast: this command was blocked: {why}. Run the installed program: `holdfast …`."


def _trusts_a_folder(simple: Simple) -> bool:
    """In doubt it does: `$(which holdfast) trust` names a program that only the shell will know."""
    names = [os.path.basename(word) for word in program_of(simple)]
    if "trust" not in names or "--show" in names or names[0] in _ONLY_PRINT:
        return False
    return names[0] == DYNAMIC or any(name in _NAMES for name in names)


def unpinned(command: str, cwd: str) -> str | None:
    for simple in parse(command):
        words = simple.words
        for start in _FETCHING:
            if tuple(words[: len(start)]) == start and any(word in _NAMES for word in words[len(start) :]):
                return "it fetches an unpinned copy of Holdfast"
        if words and "/" in words[0] and os.path.basename(words[0]) in _NAMES:
            path = os.path.realpath(os.path.join(cwd, os.path.expanduser(words[0])))
            if os.path.dirname(path) not in _known_places(cwd):
                return f"{words[0]} is not the installed Holdfast"
    return None


def _known_places(cwd: str) -> tuple[str, ...]:
    """Beside our own interpreter, and a project's own environment, which its lock file pins."""
    environment = [os.path.realpath(os.path.join(cwd, name, "bin")) for name in (".venv", "venv")]
    return (os.path.dirname(os.path.abspath(sys.executable)), os.path.dirname(sys.executable), *environment)
