"""Where a command would run, and which places there must not go with it."""

from __future__ import annotations

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
_GLOBS = ("*", ".*", "?*", "{*,.*}", "[!.]*", "..?*", ".[!.]*")


class CommandPlace:
    """Where a command would run, and what there is to lose."""

    __slots__ = ("branch", "cwd", "has_changes", "root")

    def __init__(
        self,
        cwd: str,
        branch: Callable[[], str] = lambda: "",
        has_changes: Callable[..., bool] = lambda *_, **__: False,
        root: str = "",
    ) -> None:
        self.cwd = cwd
        self.branch = branch
        self.has_changes = has_changes
        """Whether git would lose changes of tracked files in that folder, or of those that are named; with
        `untracked` instead, whether there are files that git knows nothing of."""
        self.root = root or cwd
        """The project, wherever the command goes."""

    def after_cd(self, folder: str | None) -> CommandPlace:
        if folder is None:
            return self
        return CommandPlace(self.resolved(folder), self.branch, self.has_changes, self.root)

    def resolved(self, target: str) -> str:
        if target.startswith("~"):
            target = os.path.expanduser(target)
        path = os.path.normpath(os.path.join(self.cwd, target))
        return "/" + path.lstrip("/")  # two leading slashes are kept by normpath

    def is_vital(self, target: str) -> bool:
        """Whether everything in it, or it itself, is the system, a home, or what is above home or project."""
        if target.startswith("-"):
            return False
        folder, _ = _folder_and_whether_all(target)
        if folder.startswith("/" + DYNAMIC):
            return True  # `/$NAME` is `/` where the name is empty
        if folder.rstrip("/") in ("/home/" + DYNAMIC, "/Users/" + DYNAMIC):
            return True
        if DYNAMIC in folder:
            return False
        path = self.resolved(folder)
        return path in _SYSTEM or _is_home(path) or _is_above(path, self.root) or _fits_system(path)

    def holds_history(self, target: str) -> bool:
        """Whether the project's own git repository would go with it; another repository's may."""
        folder, is_all = _folder_and_whether_all(target)
        if target.startswith("-") or DYNAMIC in folder:
            return False
        path, tail = self.resolved(folder), target.rpartition("/")[2]
        if not is_all and path == self.root:
            return target.rstrip("/") != "."  # which `rm` itself refuses
        part = next((part for part in ("", "/objects", "/refs") if path.endswith("/.git" + part)), None)
        if part is not None:
            around = path[: -len("/.git" + part)] or "/"
        elif tail.startswith(".") and ".git".startswith(tail.rstrip("*?")) and tail[-1] in "*?":
            around = path if is_all else os.path.dirname(path)
        else:
            return False
        return around == self.root or _is_above(around, self.root)

    def is_project_or_history(self, target: str) -> bool:
        """Where everything in it goes."""
        return self.resolved(target) == self.root or self.holds_history(target)

    def is_all_of_it(self, target: str) -> bool:
        """Whether everything in the project is meant, as by `*` in it."""
        folder, is_all = _folder_and_whether_all(target)
        return is_all and DYNAMIC not in folder and self.resolved(folder) == self.root


def _folder_and_whether_all(target: str) -> tuple[str, bool]:
    """`a/*` as `a` and that all in it is meant; anything else as it is."""
    head, _, tail = target.rpartition("/")
    if tail in _GLOBS or (tail and not tail.strip("*?.") and "*" in tail):
        return (head + "/" if head or target.startswith("/") else "."), True
    return target, False


def _fits_system(path: str) -> bool:
    """Whether a pattern in the last name, as in `/e*`, takes in a folder of the system."""
    known = min((path.partition(sign)[0] for sign in "*?["), key=len)
    rest = min((path.rpartition(sign)[2] for sign in "*?]"), key=len)
    return known != path and any(
        one.startswith(known) and one.endswith(rest) and one.count("/") == path.count("/") for one in _SYSTEM
    )


def _is_home(path: str) -> bool:
    home = os.path.expanduser("~")
    is_somebodys = path.count("/") == 2 and path.startswith(("/home/", "/Users/"))
    return path == home or is_somebodys or _is_above(path, home)


def _is_above(path: str, other: str) -> bool:
    return other != path and other.startswith(path.rstrip("/") + "/")
