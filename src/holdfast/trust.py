"""Whose `.holdfast/` it is. One that a clone or an archive brought, or that another user owns, is foreign.

Nothing in a foreign folder is read, adopted, run, sent or injected; the rest of the program sees no
folder there until the user says `holdfast trust`.

A folder is ours if this user's program marked it: `.holdfast/mark` holds a random name, and a record of
that name stands in the user's data folder, where no repository can put one. The record says which folder
it is for, so a copy of the mark is worth nothing elsewhere. Git can bring files into a folder of ours
later, with a pull; so git may track nothing in it but what the user agreed to.

Asked on every hook event: `os` alone, and no process but where the index may name the folder.
"""

import os
import stat
import sys

try:
    import fcntl
except ImportError:  # Windows: one process at a time, unlocked
    fcntl = None

FOLDER = ".holdfast"
_MARK = "mark"
_IGNORE = ".gitignore"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_REFUSED = "refused"
"""In a record: git brought files that the user has not agreed to yet."""
_SPLIT_INDEX = b"\0link\0"
"""The entries are in another file then."""


def data_home() -> str:
    """The user's data folder, as platformdirs finds it, which hooks cannot load."""
    given = os.environ.get("HOLDFAST_HOME")
    if given:
        return os.path.abspath(given)
    if sys.platform == "win32":
        from platformdirs import user_data_dir

        return user_data_dir("holdfast", appauthor=False)
    base = os.environ.get("XDG_DATA_HOME", "")
    if not base.startswith("/"):
        usual = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
        base = os.path.expanduser(usual)
    return os.path.join(base, "holdfast")


def anchors(candidate: str) -> bool:
    """Whether a folder upwards is a project: it has a `.holdfast` of this user, or a repository."""
    try:
        found = os.lstat(f"{candidate}/{FOLDER}")
    except OSError:
        found = None
    if found and stat.S_ISDIR(found.st_mode) and found.st_uid == _user():
        return True
    return os.path.exists(f"{candidate}/.git")


class _Record:
    """What the user's data folder says of one marked folder."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.path, self.inode, self.owner, self.tracked, self.index = lines

    def covers(self, folder: str, found: os.stat_result) -> bool:
        """A moved folder keeps its inode, one restored from a backup its path. A copy has neither."""
        return self.inode == str(found.st_ino) or self.path == os.path.realpath(folder)

    def encoded(self) -> bytes:
        lines = (self.path, self.inode, self.owner, self.tracked, self.index)
        return "\n".join(lines).encode("utf-8", "surrogateescape")


class Trust:
    """The marks of one user; `home` is that user's data folder."""

    def __init__(self, home: str = "") -> None:
        home = home or data_home()
        self._records = os.path.join(home, "trusted")
        self.nowhere = os.path.join(home, "untrusted", FOLDER)
        """Stands for a foreign folder; never made."""

    def folder_of(self, project: str) -> str:
        """The project's `.holdfast`; where that is foreign, one that is never there."""
        return self.nowhere if self.foreign_because(project) else os.path.join(project, FOLDER)

    def foreign_because(self, project: str) -> str | None:
        """Why the project's folder is ignored; None where it is ours, or where there is none."""
        folder = os.path.join(project, FOLDER)
        try:
            found = os.lstat(folder)
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            return "it is a symbolic link"
        if not stat.S_ISDIR(found.st_mode):
            return None  # a file in the way; whoever wants to write says so
        record = self._record_of(folder, found)
        if found.st_uid != _user() and (record is None or record.owner != str(found.st_uid)):
            return "another user owns it"
        if record is None:
            return None if _is_fresh(folder) else "it was not made by Holdfast on this machine"
        if self._was_brought_by_git(project, record):
            return "git tracks files in it, or did"
        return None

    def make_own(self, project: str) -> None:
        """Make the folder, and mark it; one that is there and holds something is left as it is."""
        folder = os.path.join(project, FOLDER)
        if _mark_in(folder) and self.foreign_because(project) is None:
            return
        os.makedirs(self._records, 0o700, exist_ok=True)
        with _Lock(self._records):
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                pass
            found = os.lstat(folder)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != _user():
                return
            if self._read_record(folder, found) is None and _is_fresh(folder):
                if not os.path.lexists(os.path.join(folder, _IGNORE)):
                    _replace(os.path.join(folder, _IGNORE), b"*\n")  # git never sees what follows
                self._mark(project, folder, found)

    def accept(self, project: str) -> None:
        """The user trusts the folder as it is now: its owner, and what git tracks in it."""
        folder = os.path.join(project, FOLDER)
        found = os.lstat(folder)
        os.makedirs(self._records, 0o700, exist_ok=True)
        with _Lock(self._records):
            record = self._read_record(folder, found)
            if record is None:
                self._mark(project, folder, found)
                return
            record.owner = str(found.st_uid)
            record.index = _stamp(_index_of(project))
            record.tracked = _tracked_files(project)
            self._write_record(record)

    def revoke(self, project: str) -> bool:
        """From now on the folder is foreign; whether it was trusted."""
        name = _mark_in(os.path.join(project, FOLDER))
        try:
            os.unlink(os.path.join(self._records, name))
        except OSError:
            return False
        return True

    def _was_brought_by_git(self, project: str, record: _Record) -> bool:
        """Whether git tracks, or has tracked, what the user did not agree to.

        It stays so when git stops tracking the files: `git rm --cached` leaves them where they are.
        """
        stamp = _stamp(_index_of(project))
        if stamp != record.index and record.tracked != _REFUSED:
            tracked = _tracked_files(project)
            record.index = stamp
            if tracked and tracked != record.tracked:
                record.tracked = _REFUSED
            try:
                self._write_record(record)
            except OSError:
                pass  # looked at again the next time
        return record.tracked == _REFUSED

    def _record_of(self, folder: str, found: os.stat_result) -> _Record | None:
        record = self._read_record(folder, found)
        if record is None:
            try:
                with _Lock(self._records):  # somebody may be making it right now
                    record = self._read_record(folder, found)
            except OSError:
                return None  # nobody has made any
        return record

    def _read_record(self, folder: str, found: os.stat_result) -> _Record | None:
        name = _mark_in(folder)
        data = _read(os.path.join(self._records, name)) if name else b""
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        record = _Record(name, lines) if len(lines) == 5 else None
        return record if record and record.covers(folder, found) else None

    def _write_record(self, record: _Record) -> None:
        _replace(os.path.join(self._records, record.name), record.encoded())

    def _mark(self, project: str, folder: str, found: os.stat_result) -> None:
        """The record first: a mark without one is a stranger's."""
        name = os.urandom(16).hex()
        stamp = _stamp(_index_of(project))
        identity = [os.path.realpath(folder), str(found.st_ino), str(found.st_uid)]
        self._write_record(_Record(name, [*identity, _tracked_files(project), stamp]))
        _replace(os.path.join(folder, _MARK), f"{name}\n".encode())


def _mark_in(folder: str) -> str:
    name = _read(os.path.join(folder, _MARK)).decode("ascii", "replace").strip()
    return name if len(name) == 32 and not name.strip("0123456789abcdef") else ""


def _is_fresh(folder: str) -> bool:
    """Made by somebody who was killed before marking it: there is nothing in it to obey."""
    return set(os.listdir(folder)) <= {_IGNORE, _MARK}


def _tracked_files(project: str) -> str:
    """A digest of what git tracks in the folder; empty where that is nothing."""
    index = _index_of(project)
    if _stamp(index) == "-" or not _may_name_folder(index):
        return ""
    listed = _listed_by_git(project)
    if not listed:
        return ""
    from hashlib import sha256

    return sha256(listed).hexdigest()


def _index_of(project: str) -> str:
    """The index of the repository that the project is in; empty where it is in none."""
    place = os.path.realpath(project)
    while not os.path.lexists(f"{place}/.git"):
        parent = os.path.dirname(place)
        if parent == place:
            return ""
        place = parent
    git = f"{place}/.git"
    if not os.path.isdir(git):  # a linked worktree or a submodule
        told = _read(git).decode("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
        git = os.path.join(place, told)
    return f"{git}/index"


def _stamp(index: str) -> str:
    """How the index looks from outside. Git replaces it, so the inode changes even within a tick."""
    try:
        found = os.stat(index)
    except OSError:
        return "-"
    return f"{found.st_ino}:{found.st_mtime_ns}:{found.st_size}"


def _may_name_folder(index: str) -> bool:
    """Whether only git can tell: the name occurs, or names are stored in parts (version 4, a split index)."""
    data = _read(index)
    if data[:8] not in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3") or _SPLIT_INDEX in data:
        return True
    return FOLDER.encode() in data.lower()  # some file systems do not tell capitals


def _listed_by_git(project: str) -> bytes:
    """The tracked files with their content's ids. Where git cannot tell, nobody knows what they are."""
    from pathlib import Path

    from holdfast.errors import GitError
    from holdfast.git_program import run_git

    try:
        answer = run_git(Path(project), "ls-files", "--stage", "-z", "--", f":(icase){FOLDER}")
    except GitError:
        return b"unknown"
    return answer.out if answer.code == 0 else b"unknown"


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW)
    except OSError:
        return b""
    try:
        blocks: list[bytes] = []
        while block := os.read(descriptor, 1 << 24):
            blocks.append(block)
        return b"".join(blocks)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _replace(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_FOLLOW, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


class _Lock:
    """Alone with the records, until the block ends or the process does."""

    def __init__(self, records: str) -> None:
        self._path = os.path.join(records, ".lock")

    def __enter__(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o600)
        if fcntl is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
