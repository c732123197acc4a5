"""Where a command would run, which places there must not go with it, and what a one-line program names."""

from __future__ import annotations

import os

from holdfast.base.command_line import DYNAMIC

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

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


def has_tracked_changes(folder: str, *paths: str, untracked: bool = False) -> bool:
    """Of tracked files, or untracked ones. Where git cannot tell, the command is git's own to refuse."""
    from pathlib import Path

    from holdfast.base.errors import GitError
    from holdfast.base.git import guarded_environment, run_git

    try:
        safe = guarded_environment(Path(folder))
        files = "normal" if untracked else "no"
        status = (
            "status",
            "--porcelain",
            f"--untracked-files={files}",
            "--ignore-submodules=all",
            "--",
            *paths,
        )
        found = run_git(Path(folder), *status, environment=safe, time_limit=5.0).out
        return any(line.startswith(b"??") for line in found.split(b"\n")) if untracked else bool(found)
    except GitError:
        return False


# ── programs of one line, in Python ───────────────────────────────────────────────────────────────

_REMOVES = ("rmtree", "remove_tree")
_STARTS = ("system", "popen", "Popen", "check_call", "check_output", "getoutput", "getstatusoutput")
_STARTS_OF_SUBPROCESS = ("run", "call")
_RUNS_CODE = ("exec", "eval")
_SAME_PATH = ("Path", "PosixPath", "PurePath", "str", "expanduser", "abspath", "realpath", "normpath")
_SAME_PATH_OF = ("expanduser", "resolve", "absolute", "strip")
_LONGEST_PROGRAM = 20_000


def python_calls(code: str) -> list[tuple[bool, list[str]]] | None:
    """What a program removes, or else what it starts, as far as its text tells.

    None where it is no Python that can be read.
    """
    import ast  # of few commands, and a hook would wait for it at every one

    if len(code) > _LONGEST_PROGRAM:
        return None
    reader = _PythonReader(ast)
    try:
        reader.visit(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return reader.found


class _PythonReader:
    """Follows imports under other names, names that stand for texts, and loops over them."""

    def __init__(self, ast: Any) -> None:
        self.ast = ast
        self.found: list[tuple[bool, list[str]]] = []
        """Whether it is removed: then each of these may be; else the words that are run, or the text."""
        self.imported: dict[str, str] = {}
        self.known: dict[str, list[str]] = {}

    def visit(self, node: Any) -> None:
        kind = type(node).__name__
        if kind in ("Import", "ImportFrom"):
            for one in node.names:
                name = f"{node.module}.{one.name}" if kind == "ImportFrom" else one.name
                self.imported[one.asname or one.name] = name
        elif kind == "Assign":
            self._bind(node.targets[0], self.texts(node.value))
        elif kind in ("For", "comprehension"):
            self._bind(node.target, self.texts(node.iter))
        elif kind == "Call":
            self._call(node)
        inner = list(self.ast.iter_child_nodes(node))
        for child in sorted(inner, key=lambda one: type(one).__name__ != "comprehension"):
            self.visit(child)

    def _bind(self, target: Any, texts: list[str]) -> None:
        if type(target).__name__ == "Name":
            self.known[target.id] = texts

    def _call(self, node: Any) -> None:
        called = self._name(node.func)
        module, _, name = called.rpartition(".")
        given = [*node.args, *(one.value for one in node.keywords if one.arg in ("path", "args"))][:1]
        if name in _REMOVES:
            self.found.append((True, [text for one in given for text in self.texts(one)]))
        elif name in _STARTS or (module == "subprocess" and name in _STARTS_OF_SUBPROCESS):
            self.found.append((False, [text for one in given for text in self._words(one)]))
        elif not module and name in _RUNS_CODE:
            for text in (text for one in given for text in self.texts(one)):
                self.found += python_calls(text) or []

    def _name(self, node: Any) -> str:
        """What a function is called, its module before it."""
        kind = type(node).__name__
        if kind == "Name":
            return self.imported.get(str(node.id), str(node.id))
        if kind == "Attribute":
            return f"{self._name(node.value)}.{node.attr}"
        if kind == "Call" and node.args:
            of = self._name(node.func)
            told = self.texts(node.args[-1])[:1]
            if of == "__import__" and told:
                return told[0]
            if of == "getattr" and told:
                return f"{self._name(node.args[0])}.{told[0]}"
        return ""

    def _words(self, node: Any) -> list[str]:
        if type(node).__name__ not in ("List", "Tuple"):
            return self.texts(node)
        return [(self.texts(one) or [DYNAMIC])[0] for one in node.elts]

    def texts(self, node: Any) -> list[str]:
        """The texts that it may stand for; none where only running it would tell."""
        reader = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        return reader(node) if reader else []

    def _of_constant(self, node: Any) -> list[str]:
        return [node.value] if isinstance(node.value, str) else []

    def _of_name(self, node: Any) -> list[str]:
        return self.known.get(node.id, [])

    def _of_list(self, node: Any) -> list[str]:
        return [text for one in node.elts for text in self.texts(one)]

    _of_tuple = _of_set = _of_list

    def _of_joinedstr(self, node: Any) -> list[str]:
        parts = [self.texts(one) for one in node.values]
        return ["".join(part[0] for part in parts)] if all(parts) else []

    def _of_formattedvalue(self, node: Any) -> list[str]:
        return self.texts(node.value)

    def _of_binop(self, node: Any) -> list[str]:
        sides = [self.texts(node.left)[:1], self.texts(node.right)[:1]]
        sign = {"Add": "", "Div": "/"}.get(type(node.op).__name__)
        if sign is None or not all(sides):
            return []
        return [_joined_path(sides[0][0], sides[1][0]) if sign else sides[0][0] + sides[1][0]]

    def _of_attribute(self, node: Any) -> list[str]:
        if node.attr == "sep":
            return ["/"]
        return [_joined_path(text, "..") for text in self.texts(node.value)] if node.attr == "parent" else []

    def _of_subscript(self, node: Any) -> list[str]:
        is_home = self._name(node.value).endswith("environ") and self.texts(node.slice) == ["HOME"]
        return ["~"] if is_home else []

    def _of_call(self, node: Any) -> list[str]:
        called = self._name(node.func)
        name = called.rpartition(".")[2]
        given = [self.texts(one)[:1] for one in node.args]
        if called.endswith("Path.home") or (name in ("get", "getenv") and given[:1] == [["HOME"]]):
            return ["~"]
        if name == "join" and given and all(given):
            parts = [one[0] for one in given]
            return [_joined_path(*parts)]
        if name in _SAME_PATH and given:
            return [_joined_path(*(one[0] for one in given))] if all(given) else []
        inner = node.func.value if type(node.func).__name__ == "Attribute" else None
        if inner is not None and (name in _SAME_PATH_OF or (name == "split" and not given)):
            return self.texts(inner)
        return []


def _joined_path(*parts: str) -> str:
    whole = ""
    for part in parts:
        whole = part if part.startswith("/") or not whole else f"{whole.rstrip('/')}/{part}"
    return whole


# ── programs of one line, in any language ─────────────────────────────────────────────────────────

_HOMES = (
    *("Path.home()", "os.homedir()", "homedir()", "process.env.HOME", "Dir.home"),
    *("os.environ['HOME']", 'os.environ["HOME"]', "os.environ.get('HOME')", 'os.environ.get("HOME")'),
    *("os.getenv('HOME')", 'os.getenv("HOME")', "ENV['HOME']", 'ENV["HOME"]'),
)
_WRAPPERS = ("expanduser", "abspath", "realpath", "normpath", "join", "path", "Path", "pathlib", "str", "os")


def literals(code: str) -> list[str]:
    """The arguments of a call, lists flattened, up to the first that is no text as it stands."""
    words: list[str] = []
    at = 0
    while at < len(code) and code[at] in " [(,'\"`":
        if code[at] in "'\"`":
            end = code.find(code[at], at + 1)
            if end < 0 or code[end + 1 : end + 3].lstrip()[:1] in ("+", "%", "."):
                break
            words.append(code[at + 1 : end])
            at = end
        at += 1
    return words


def path_in(code: str) -> str:
    """The path that the first argument stands for; empty where only running it would tell."""
    for form in _HOMES:
        code = code.replace(form, "'~'")
    literals: list[str] = []
    depth, at = 0, 0
    while at < len(code):
        sign = code[at]
        if sign in "'\"":
            end = code.find(sign, at + 1)
            end = end if end >= 0 else len(code)
            literals.append(code[at + 1 : end])
            at = end
        elif sign.isalpha() or sign == "_":
            word = _identifier(code, at)
            if word not in _WRAPPERS:
                return ""
            at += len(word) - 1
        elif sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        if depth < 0 or (sign == "," and depth == 0):
            break
        at += 1
    return os.path.join(*literals) if literals else ""


def _identifier(code: str, start: int) -> str:
    end = start
    while end < len(code) and (code[end].isalnum() or code[end] == "_"):
        end += 1
    return code[start:end]
