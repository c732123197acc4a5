"""Whose `.holdfast/` it is. One that a clone or an archive brought, or that another user owns, is foreign.

Nothing in a foreign folder is read, adopted, run, sent or injected; the rest of the program sees no
folder there until the user says `holdfast trust`.

A folder is ours if this user's program marked it: `.holdfast/mark` holds a random name, and a record of
that name stands in the user's data folder, where no repository can put one. The record says which folder
it is for, so a copy of the mark is worth nothing elsewhere. Git can bring files into a folder of ours
later, with a pull; so no file may be there that git tracks, but those that the user agreed to.

Asked on every hook event: `os` and `stat` alone, and no process but where the index may name the folder.
"""

import errno
import os
import stat
import sys
from _thread import get_ident

from holdfast.project.formats import (
    FOLDER,
    HOOKS,
    INDEXED,
    JOURNAL,
    JOURNAL_HEAD,
    SESSIONS,
    SHARE,
    SIDECAR,
    STARTED,
    STATE,
    journal_session,
)

try:
    import fcntl
except ImportError:  # Windows: one process at a time, unlocked
    fcntl = None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MARK = "mark"
_IGNORE = ".gitignore"
_IGNORES_ALL = b"*\n"
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_PARTS = (SESSIONS, STATE, f"{STATE}/{HOOKS}", SIDECAR, SHARE)
_PARTS_WITH_MARK = (SIDECAR, SHARE)
_BEFORE_MARK = {MARK, "holdfast.lock"}
"""What a part may hold that was made by somebody who was killed before marking it."""
_NO_MARK = "it was not created by you on this machine (a copy, from elsewhere, or from an older version)"
_NOT_PROVED = "was not created by you with this version (a patch brought it, or an older Holdfast still runs)"
_REFUSED = "refused"
"""In a record: git brought files that the user has not agreed to yet."""
_PROVES = "proves"
"""In a record: what Holdfast writes into the folder proves that it did. Earlier versions left no proofs."""
_UNSEEN = ""
"""In place of the index's stamp in a record: look at the index the next time, changed or not."""
_Tracked = set[tuple[bytes, str]]
"""Paths below the project that git tracks, each with a digest of the path and its content."""
_OF_SESSIONS = ".sessions"
_MOST_SESSIONS = 500
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


def nearest_project(start: str) -> str:
    """The nearest folder upwards with a repository or a `.holdfast` that is ours; else the folder itself.

    One of this user's that is foreign all the same is a project only where there is no other: a pull can
    bring a folder `sub/.holdfast`, too.
    """
    candidate, second = start, ""
    while True:
        if os.path.exists(f"{candidate}/.git"):
            return candidate
        if _has_folder(candidate):
            if Trust().foreign_because(candidate) is None:
                return candidate
            second = second or candidate
        parent = os.path.dirname(candidate)
        if parent == candidate:
            return second or start
        candidate = parent


def passed_over(start: str, project: str) -> tuple[str, str] | None:
    """The nearest foreign folder between, and why it is foreign."""
    candidate = start
    while candidate != project:
        if os.path.lexists(f"{candidate}/{FOLDER}") and (reason := Trust().foreign_because(candidate)):
            return f"{candidate}/{FOLDER}", reason
        parent = os.path.dirname(candidate)
        if parent == candidate:
            return None
        candidate = parent
    return None


def _has_folder(candidate: str) -> bool:
    try:
        found = os.lstat(f"{candidate}/{FOLDER}")
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == _user()


class _Record:
    """What the user's data folder says of one marked folder."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.path, self.inode, self.owner, self.tracked, self.index = lines

    @property
    def accepted(self) -> set[str]:
        """Tracked files that the user agreed to, each with its content, as digests."""
        return set(self.tracked.split())

    def accept(self, files: set[str]) -> None:
        self.tracked = " ".join(sorted(files))

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
        # For as long as the data folder cannot be written: a pause must not fail for that.
        self._spare = os.path.join(os.environ.get("TMPDIR") or "/tmp", f"holdfast-trusted-{_user()}")  # noqa: S108 - used only if private
        self.nowhere = os.path.join(home, "untrusted", FOLDER)
        """Stands for a foreign folder; never made."""
        self.index: tuple[str, int] | None = None
        """Git's index and when it was written, as they were when it was last asked whose a folder is."""

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
            return "it is owned by another user"
        if record is None:
            return None if _is_fresh(folder) else _NO_MARK
        return (
            _linked_part(folder)
            or self._brought_by_git(project, record)
            or (_unproved_part(folder, record.name) if self._proves(folder, record) else None)
        )

    def _proves(self, folder: str, record: _Record) -> bool:
        """What an earlier version wrote is taken for ours once, as it was until then."""
        if _PROVES in record.accepted:
            return True
        try:
            with _Lock(self._writable()):
                _mark_parts(folder)
                _mark_all_notes(folder)
                _mark_sessions(folder)
                record.accept(record.accepted | {_PROVES})
                self._write_record(record)
        except OSError:
            return False  # it is tried again where we may write
        return True

    def make_own(self, project: str) -> None:
        """Make the folder, and mark it; one that is there and holds something is left as it is."""
        folder = os.path.join(project, FOLDER)
        if _mark_in(folder) and self.foreign_because(project) is None:
            return
        with _Lock(self._writable()):
            try:
                os.mkdir(folder, 0o700)
                sync_names(project)  # or all that is acknowledged in it may go with its name
            except FileExistsError:
                pass
            found = os.lstat(folder)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != _user():
                return
            if self._read_record(folder, found) is None and _is_fresh(folder):
                _replace(os.path.join(folder, _IGNORE), _IGNORES_ALL)  # git never sees what follows
                names = {os.fsencode(f"{FOLDER}/{name}") for name in (_IGNORE, MARK)}
                stamp = _stamp(_index_of(project))
                tracked = _tracked_files(project)
                own = _of(tracked, names)
                is_all = tracked is not None and own == _of(tracked)
                self._mark(folder, found, own, stamp if is_all else _UNSEEN)

    def accept(self, project: str) -> None:
        """The user trusts the folder as it is now: its owner, and the files in it that git tracks."""
        folder = os.path.join(project, FOLDER)
        found = os.lstat(folder)
        there = _of(_present(project, _tracked_files(project) or set()))
        with _Lock(self._writable()):
            record = self._read_record(folder, found)
            if record is None:
                self._mark(folder, found, there)
                _mark_parts(folder)
                return
            _mark_parts(folder)
            record.owner = str(found.st_uid)
            record.index = _UNSEEN
            # What was accepted stays so: another branch may have an older state of the same files.
            record.accept(record.accepted.difference((_REFUSED,)).union(there, (_PROVES,)))
            self._write_record(record)

    def accept_files(self, project: str, names: "Iterable[str]") -> None:
        """The user has git track just these files, named by their paths below the project."""
        folder = os.path.join(project, FOLDER)
        tracked = _tracked_files(project) or set()
        own = _of(tracked, {os.fsencode(name) for name in names})
        with _Lock(self._writable()):
            record = self._read_record(folder, os.lstat(folder))
            if record is None:
                return
            accepted = record.accepted | own
            if _of(_present(project, tracked)) <= accepted:
                accepted.discard(_REFUSED)  # somebody looked before we could say whose they are
            record.index = _UNSEEN
            record.accept(accepted)
            self._write_record(record)

    def revoke(self, project: str) -> bool:
        """From now on the folder is foreign; whether it was trusted."""
        name = _mark_in(os.path.join(project, FOLDER))
        was_trusted = False
        for place in (self._records, self._spare):
            try:
                os.unlink(os.path.join(place, name))
                sync_names(place)  # or a power cut would bring the trust back
            except OSError:
                continue
            was_trusted = True
        return was_trusted

    def note_session(self, project: str, line: str) -> bool:
        """Of a folder of ours that became foreign, so that nothing is written into it; whether it is news."""
        folder = os.path.join(project, FOLDER)
        try:
            if self._read_record(folder, os.lstat(folder)) is None:
                return False
            with _Lock(self._writable()):
                path = os.path.join(self._writable(), f"{_mark_in(folder)}{_OF_SESSIONS}")
                lines = read_plain(path, most=1 << 20).decode().split("\n")
                if line in lines:
                    return False
                _replace(path, "\n".join([*lines[-_MOST_SESSIONS:], line]).encode(), is_lasting=False)
        except OSError:
            return False
        return True

    def take_sessions(self, project: str) -> list[str]:
        """What was noted of them, once the folder is ours again."""
        name = f"{_mark_in(os.path.join(project, FOLDER))}{_OF_SESSIONS}"
        lines: list[str] = []
        for place in (self._records, self._spare):
            path = os.path.join(place, name)
            lines += read_plain(path, most=1 << 20).decode().split("\n")
            try:
                os.unlink(path)
            except OSError:
                pass  # there was none
        return [line for line in lines if line]

    def _writable(self) -> str:
        for place in (self._records, self._spare):
            try:
                for folder in (os.path.dirname(place), place):
                    if not os.path.isdir(folder):
                        os.makedirs(folder, 0o700, exist_ok=True)  # 0700 is for the last one alone
                        sync_names(os.path.dirname(folder))
            except OSError:
                continue
            if os.access(place, os.W_OK) and (place == self._records or _is_private(place)):
                return place
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), self._records)

    def _brought_by_git(self, project: str, record: _Record) -> str | None:
        """Why the folder is foreign, where git tracks or has tracked what the user did not agree to.

        It stays so when git stops tracking the files: `git rm --cached` leaves them where they are.
        Files that were removed do no harm while they are gone; `git checkout` brings them back.
        """
        index = _index_of(project)
        stamp = _stamp(index)
        self.index = index, int(stamp.split(":")[1]) if ":" in stamp else 0
        if stamp != record.index and _REFUSED not in record.accepted:
            tracked = _tracked_files(project)
            if tracked is None:
                return "git cannot tell whether it tracks files in it"
            before = record.encoded()
            unknown = {file for file in tracked if file[1] not in record.accepted}
            record.index = _UNSEEN if unknown else stamp
            if _present(project, unknown):
                record.tracked += f" {_REFUSED}"
            if record.encoded() != before:
                self._try_to_write(record)
        return "git tracks files in it, or did" if _REFUSED in record.accepted else None

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
        data = read_plain(os.path.join(self._records, name)) if name else b""
        if name and not data and _is_private(self._spare):
            data = read_plain(os.path.join(self._spare, name))
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        record = _Record(name, lines) if len(lines) == 5 else None
        if record is None or not record.covers(folder, found):
            return None
        place = [os.path.realpath(folder), str(found.st_ino)]
        if [record.path, record.inode] != place:  # moved or restored: the other may change next
            record.path, record.inode = place
            self._try_to_write(record)
        return record

    def _try_to_write(self, record: _Record) -> None:
        """Where the data folder cannot be written, the same is found out again the next time."""
        try:
            self._write_record(record, is_lasting=False)
        except OSError:
            pass

    def _write_record(self, record: _Record, *, is_lasting: bool = True) -> None:
        _replace(os.path.join(self._writable(), record.name), record.encoded(), is_lasting=is_lasting)

    def _mark(self, folder: str, found: os.stat_result, accepted: set[str], index: str = _UNSEEN) -> None:
        """The record first: a mark without one is a stranger's. `index`: how it looked when this was all."""
        name = os.urandom(16).hex()
        identity = [os.path.realpath(folder), str(found.st_ino), str(found.st_uid)]
        self._write_record(_Record(name, [*identity, " ".join(sorted(accepted | {_PROVES})), index]))
        _replace(os.path.join(folder, MARK), f"{name}\n".encode())


def _linked_part(folder: str) -> str | None:
    """What is written into it would go elsewhere; what is read comes from there."""
    for name in _PARTS:
        try:
            found = os.lstat(os.path.join(folder, name))
        except OSError:
            continue
        if stat.S_ISLNK(found.st_mode):
            return f"its folder {name} is a symbolic link"
    return None


def _unproved_part(folder: str, mark: str) -> str | None:
    """A part that somebody else put into a folder of ours, as a patch can: it holds no copy of the mark."""
    for name in _PARTS_WITH_MARK:
        part = os.path.join(folder, name)
        if not _is_proved(part, mark, name) and _names_in(part) - _BEFORE_MARK:
            return f"its folder {name} {_NOT_PROVED}"
    sessions = os.path.join(folder, SESSIONS)
    if _strange_journal(sessions, mark):
        return f"its {SESSIONS}/{JOURNAL} {_NOT_PROVED}"
    return None


def _strange_journal(sessions: str, mark: str) -> bool:
    """A wind-down that something else put there. One whose beginning is damaged is ours if any was begun."""
    path = os.path.join(sessions, JOURNAL)
    head = read_plain(path, most=JOURNAL_HEAD)
    if not head and not os.path.lexists(path):
        return False
    known = journal_session(head)
    names = (
        [_started_name(known)] if known else [one for one in _names_in(sessions) if one.startswith(STARTED)]
    )
    return not any(read_plain(os.path.join(sessions, name), most=512) == _proof(mark, name) for name in names)


def _started_name(session_id: str) -> str:
    return f"{STARTED}{session_id.replace('/', '_')}"


def note_start(folder: str, session_id: str) -> None:
    """Before the wind-down's journal is there; those of earlier ones go. Call with the sessions locked."""
    forget_starts(folder)
    name = _started_name(session_id)
    _replace(os.path.join(folder, SESSIONS, name), _proof(_own_mark(folder), name))


def forget_starts(folder: str) -> None:
    """Once no wind-down is active."""
    sessions = os.path.join(folder, SESSIONS)
    for name in _names_in(sessions):
        if name.startswith(STARTED):
            try:
                os.unlink(os.path.join(sessions, name))
            except FileNotFoundError:
                pass  # somebody else did


def mark_part(folder: str, name: str) -> None:
    """Before anything that counts is in it."""
    mark, part = _own_mark(folder), os.path.join(folder, name)
    if not _is_proved(part, mark, name):
        _replace(os.path.join(part, MARK), _proof(mark, name))


def _own_mark(folder: str) -> str:
    """Without it nothing could be proved, and what is written now would be a stranger's."""
    if mark := _mark_in(folder):
        return mark
    raise OSError(errno.EIO, "cannot be read", os.path.join(folder, MARK))


def _is_proved(part: str, mark: str, name: str) -> bool:
    return read_plain(os.path.join(part, MARK), most=512) == _proof(mark, name)


def _proof(mark: str, what: str) -> bytes:
    """More than the mark: an archive may hold a second name for the file with that."""
    return f"{mark} {what}\n".encode()


def mark_notes(notes: str) -> None:
    """Before anything that counts is in the folder of notes of an agent session."""
    folder, name = _folder_and_name(notes)
    mark_part(folder, name)


def are_own_notes(notes: str) -> bool:
    """Whether this user's program made them: they name a transcript, and what is in it is told to agents."""
    folder, name = _folder_and_name(notes)
    mark = _mark_in(folder)
    return bool(mark) and _is_proved(notes, mark, name)


def _folder_and_name(notes: str) -> tuple[str, str]:
    folder, key = os.path.split(notes)
    return os.path.dirname(os.path.dirname(folder)), f"{STATE}/{HOOKS}/{key}"


def _mark_all_notes(folder: str) -> None:
    hooks = os.path.join(folder, STATE, HOOKS)
    for name in _names_in(hooks):
        if os.path.isdir(os.path.join(hooks, name)):
            mark_part(folder, f"{STATE}/{HOOKS}/{name}")


def _mark_parts(folder: str) -> None:
    for name in _PARTS_WITH_MARK:
        if os.path.isdir(os.path.join(folder, name)):
            mark_part(folder, name)
    path = os.path.join(folder, SESSIONS, JOURNAL)
    if os.path.isfile(path) and _strange_journal(os.path.dirname(path), _mark_in(folder)):
        note_start(folder, journal_session(read_plain(path, most=JOURNAL_HEAD)) or "unknown")


def _mark_sessions(folder: str) -> None:
    sessions, mark = os.path.join(folder, SESSIONS), read_plain(os.path.join(folder, MARK))
    for name in _names_in(sessions):
        session, ending, rest = name.partition(".json")
        if session.startswith("session-") and ending and not rest:
            _replace(os.path.join(sessions, f"{INDEXED}{session}"), session_proof(mark, session))


def session_proof(mark: bytes, session: str) -> bytes:
    """What only who can read the folder's mark can have written."""
    from hashlib import sha256  # not needed to look at sessions

    return sha256(mark + session.encode("utf-8", "surrogateescape")).hexdigest().encode()


def _names_in(folder: str) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if not name.endswith(".tmp")}
    except OSError:
        return set()


def refuse_links(folder: str, *parts: str) -> str | None:
    """A link among these parts of a folder, or directly in one whose name is given with a `/` at its end."""
    for part in parts:
        place = os.path.join(folder, part.rstrip("/"))
        if os.path.islink(place):
            return place
        if part.endswith("/"):
            try:
                with os.scandir(place) as entries:
                    linked = next((entry.path for entry in entries if entry.is_symlink()), None)
            except OSError:
                continue  # not there yet
            if linked:
                return linked
    return None


def _is_private(folder: str) -> bool:
    """In a place where anybody may make folders: this user's, and closed to all others."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == _user() and not found.st_mode & 0o077


def _mark_in(folder: str) -> str:
    name = read_plain(os.path.join(folder, MARK), most=64).decode("ascii", "replace").strip()
    return name if len(name) == 32 and not name.strip("0123456789abcdef") else ""


def lines_of_ours(project: str, name: str) -> list[bytes]:
    """The lines of a file in the folder that this user's program wrote: no stranger knows the mark."""
    folder = os.path.join(project, FOLDER)
    head, _, rest = read_plain(os.path.join(folder, name), most=1 << 20).partition(b"\n")
    mark = _mark_in(folder)
    return rest.split(b"\n") if mark and head == mark.encode() else []


def as_ours(project: str, lines: "Iterable[bytes]") -> bytes:
    """What makes `lines_of_ours` know them."""
    return b"\n".join((_mark_in(os.path.join(project, FOLDER)).encode(), *lines))


def _is_fresh(folder: str) -> bool:
    """Made by somebody who was killed before marking it: there is nothing in it to obey."""
    try:
        with os.scandir(folder) as entries:
            kinds = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
    except OSError:
        return False
    ours = all(name.startswith((_IGNORE, MARK)) for name in kinds if name.endswith(".tmp"))
    rest = {name for name in kinds if not name.endswith(".tmp")}
    ignore = read_plain(os.path.join(folder, _IGNORE), most=64) if _IGNORE in rest else b""
    return ours and all(kinds.values()) and rest <= {_IGNORE, MARK} and ignore in (b"", _IGNORES_ALL)


def _tracked_files(project: str) -> _Tracked | None:
    """What git tracks in the folder; None where nobody can tell."""
    index = _index_of(project)
    if _stamp(index) == "-" or not _may_name_folder(index):
        return set()
    listed = _listed_by_git(project) if os.path.isfile(index) else None
    if listed is None:
        return None
    from hashlib import sha256

    entries = (entry for entry in listed.split(b"\0") if entry)
    return {(entry.partition(b"\t")[2], sha256(entry).hexdigest()[:32]) for entry in entries}


def _present(project: str, tracked: _Tracked) -> _Tracked:
    """Those that stand in the folder, with whatever content."""
    place = os.fsencode(project)
    return {file for file in tracked if os.path.lexists(os.path.join(place, file[0]))}


def _of(tracked: _Tracked | None, names: set[bytes] | None = None) -> set[str]:
    """The digests of all, or of those with these names."""
    return {digest for name, digest in tracked or () if names is None or name in names}


def _index_of(project: str) -> str:
    """The index of the repository that the project is in; empty where it is in none."""
    place = os.path.realpath(project)
    while not os.path.lexists(f"{place}/.git"):
        parent = os.path.dirname(place)
        if parent == place:
            return ""
        place = parent
    git = os.path.realpath(f"{place}/.git")
    if not os.path.isdir(git):  # a linked worktree or a submodule
        told = read_plain(git, most=8192).decode("utf-8", "surrogateescape").partition("gitdir:")[2].strip()
        git = os.path.join(os.path.dirname(git), told)
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
    data = read_plain(index)
    if data[:8] not in (b"DIRC\0\0\0\2", b"DIRC\0\0\0\3") or _SPLIT_INDEX in data:
        return True
    return FOLDER.encode() in data.lower()  # some file systems do not tell capitals


def _listed_by_git(project: str) -> bytes | None:
    """The tracked files with their content's ids; None where git cannot tell."""
    from pathlib import Path

    from holdfast.base.errors import GitError
    from holdfast.base.git import run_git

    try:
        answer = run_git(Path(project), "ls-files", "--stage", "-z", "--", f":(icase){FOLDER}")
    except GitError:
        return None
    return answer.out if answer.code == 0 else None


def read_plain(path: str, most: int = 1 << 30) -> bytes:
    """Nothing where it is no plain file: who opened a pipe would wait for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        blocks: list[bytes] = []
        while most > 0 and (block := os.read(descriptor, min(most, 1 << 24))):
            blocks.append(block)
            most -= len(block)
        return b"".join(blocks)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _replace(path: str, data: bytes, *, is_lasting: bool = True) -> None:
    """On the disk when it returns; of one that need not be lasting, a power cut may leave the one before."""
    temporary = f"{path}.{os.getpid()}-{get_ident()}.tmp"  # threads of a server write the same record at once
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_FOLLOW, 0o600)
    try:
        try:
            left = memoryview(data)
            while left:  # a full disk may take a part
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        is_new = not os.path.lexists(path)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    if is_new or is_lasting:
        sync_names(os.path.dirname(path))


def sync_names(folder: str) -> None:
    """Names in the folder survive a power cut."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
