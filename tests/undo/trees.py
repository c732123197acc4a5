"""A small project with a git repository of the user's, made fast, and looked at closely."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import tempfile
from functools import cache, lru_cache
from pathlib import Path

from holdfast.undo.ledger import Transaction
from holdfast.undo.objects import blob_id
from holdfast.undo.state import LedgerEntry

START = {
    "a": "".join(f"start-a{number}\n" for number in range(9)),
    "b": "start-b\n",
    "d/c": "".join(f"start-c{number}\n" for number in range(5)),
}
FAST = Path("/dev/shm")  # in memory, where there is such a place

Tree = dict[str, tuple[int, bytes]]
"""Every file, link and folder (with a `/` behind) outside of git's folders and ours: mode and content."""

HUGE = 1 << 20
_HUGE_MARK = b"\0huge"
_TOKEN = re.compile(rb"[a-z]+-[a-z]?\d+")


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-template-")) / "project"
    atexit.register(shutil.rmtree, folder.parent)
    for name, text in START.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for arguments in (
        ("init", "--quiet", "--template="),
        ("add", "."),
        (*author, "commit", "--quiet", "-m", "Start"),
    ):
        git(folder, *arguments)
    return folder


def git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


@cache
def _with_repositories() -> Path:
    """The same with a submodule and a repository that git knows nothing of."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-template-")) / "project"
    atexit.register(shutil.rmtree, folder.parent)
    shutil.copytree(_template(), folder, symlinks=True)
    for name in ("submodule", "nested"):
        shutil.copytree(_template(), folder / name, symlinks=True)
    git(folder, "add", "submodule")
    return folder


def new_project(*, repositories: bool = False) -> Path:
    """In memory where that can be; the caller removes it."""
    place = Path(tempfile.mkdtemp(prefix="holdfast-", dir=FAST if FAST.is_dir() else None)) / "project"
    shutil.copytree(_with_repositories() if repositories else _template(), place, symlinks=True)
    return place


def make_outside(root: Path) -> Path:
    """A folder beside the project that links of the project may lead to."""
    outside = root.parent / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "file").write_text("outside-1\n")
    for name in ("c", "new", "inside"):
        (outside / "folder" / name).write_text(f"outside-{len(name)}\n")
    return outside


def tree_of(root: Path) -> Tree:
    found: Tree = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", ".holdfast")]
        links = [one for one in folders if (Path(folder) / one).is_symlink()]
        for name in (one for one in folders if one not in links):
            path = Path(folder) / name
            found[f"{path.relative_to(root)}/"] = (path.stat().st_mode, b"")
        for name in [*names, *links]:
            path = Path(folder) / name
            found[str(path.relative_to(root))] = (path.lstat().st_mode, content_of(path))
    return found


def content_of(path: Path) -> bytes:
    """What a file holds, or where a link leads; of a huge file its id and its tokens."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(path.readlink())
    if status.st_size < HUGE:
        return path.read_bytes()
    return _told_of_huge(str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@lru_cache(maxsize=256)
def _told_of_huge(path: str, *_stamp: int) -> bytes:
    data = Path(path).read_bytes()
    return b"\n".join((_HUGE_MARK, blob_id(data).encode(), *dict.fromkeys(tokens_of(data))))


def id_of(content: bytes) -> str:
    """Of what `content_of` tells, the id that git would give it."""
    is_huge = content.startswith(_HUGE_MARK)
    return content.split(b"\n")[1].decode() if is_huge else blob_id(content)


def twins_in(root: Path) -> set[frozenset[str]]:
    """The files with several names in the tree, by these."""
    found: dict[int, set[str]] = {}
    for name in tree_of(root):
        status = (root / name).lstat()
        if not name.endswith("/") and status.st_nlink > 1:
            found.setdefault(status.st_ino, set()).add(name)
    return {frozenset(names) for names in found.values() if len(names) > 1}


def git_folder_of(root: Path) -> dict[str, tuple[int, bytes]]:
    """The user's repository to the byte, with the time of each file."""
    return {
        str(path.relative_to(root)): (path.stat().st_mtime_ns, path.read_bytes())
        for folder in (root, root / "submodule", root / "nested")
        for path in (folder / ".git").rglob("*")
        if path.is_file()
    }


def tokens_in(tree: Tree) -> set[bytes]:
    return {token for _, data in tree.values() for token in tokens_of(data)}


def tokens_of(data: bytes) -> list[bytes]:
    return _TOKEN.findall(data)


def entry_of(transaction: Transaction, entry_id: str) -> LedgerEntry:
    return next(entry for entry in transaction.entries if entry.id == entry_id)
