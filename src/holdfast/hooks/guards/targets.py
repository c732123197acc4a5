"""What may not be deleted, overwritten or handed over, whichever program is to do it."""

import os

from holdfast.hooks.shell import DYNAMIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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


def why_not_run(name: str, words: list[str], cwd: str, branch: "Callable[[], str]") -> str | None:
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
        return f"it deletes {target} with all that is in it"
    return None


def _change_all(words: list[str], cwd: str) -> str | None:
    target = _vital(words, cwd)
    if target is not None and _is_recursive(words):
        return f"it changes owner or rights of all of {target}"
    return None


def _find(words: list[str], cwd: str) -> str | None:
    start = [word for word in words if not word.startswith("-")][:1]
    where = _vital(start, cwd) if start else None
    deletes = "-delete" in words or any(
        word in ("-exec", "-execdir", "-ok") and os.path.basename(after) in ("rm", "shred", "unlink")
        for word, after in zip(words, words[1:], strict=False)  # noqa: RUF007 - itertools is not loaded here
    )
    return f"it deletes what it finds under {where}" if where and deletes else None


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
    return f"it deletes what is in {target}" if removes and target else None


def _kill(words: list[str], cwd: str) -> str | None:  # noqa: ARG001 - one form for all rules
    plain = [word for word in words[1:] if word in ("-1", "1")]
    return "it kills every process, or the first of all" if plain else None


def _crontab(words: list[str], cwd: str) -> str | None:  # noqa: ARG001
    return "it deletes all scheduled jobs" if "r" in _letters(words) else None


def _systemctl(words: list[str], cwd: str) -> str | None:  # noqa: ARG001
    ends = ("poweroff", "reboot", "halt", "kexec", "emergency", "rescue")
    return "it shuts the machine down" if any(word in ends for word in words) else None


def _init(words: list[str], cwd: str) -> str | None:  # noqa: ARG001
    return "it shuts the machine down" if words[:1] in (["0"], ["6"]) else None


_RULES: "dict[str, Callable[[list[str], str], str | None]]" = {
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
        return f"it hides which program gets {target} to work on"
    return None


def _git(words: list[str], branch: "Callable[[], str]") -> str | None:
    if "push" not in words:
        return None
    rest = words[words.index("push") + 1 :]
    refs = [word for word in rest if not word.startswith("-")][1:]
    forced = "--force" in rest or "f" in _letters([word for word in rest if word != "--force-with-lease"])
    deletes = "--delete" in rest or "-d" in rest
    if "--mirror" in rest:
        return "it makes the remote a mirror and deletes what is not here"
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
            from holdfast.hooks.guards.dangerous_commands import danger

            why = danger(argument)
            if why:
                return why
        elif argument and is_vital(argument, "/work"):
            return f"it deletes {argument} with all that is in it"
    return None
