"""Any interleaving of sessions, the user, undo, rollback, crash and resume loses nothing.

Everybody writes lines that nobody else writes. Then, whatever happens:

- what is not taken back leaves every file as it is;
- taking back makes only those lines vanish that the changes taken back had brought in, touches only
  their files, and keeps what it replaced;
- a change put down to a session never brings in what the user, or another session alone, wrote;
- nor, where an agent's tools name the files, what the user wrote in others during its turn;
- the user's repository is the same to the byte;
- files too large to be stored are no exception: what leaves the tree is set aside;
- what links of the tree lead to outside of it is the same to the byte;
- taking back can be taken back: the tree is as it was.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from holdfast.base.errors import CannotDoError, ConflictError, IllegalTransitionError
from holdfast.testing import FixedClock, SimulatedCrash, crash_at
from holdfast.undo import state as state_module
from holdfast.undo import transactions as transactions_module
from holdfast.undo import work as work_module
from holdfast.undo.state import FileState, LedgerEntry, NamedFiles
from holdfast.undo.transactions import SideCar, UndoLimits, UndoOutcome
from soak import QUICK, SOAK, repeated

from .trees import (
    content_of,
    git,
    git_folder_of,
    id_of,
    make_outside,
    new_project,
    tokens_in,
    tokens_of,
    tree_of,
    twins_in,
)

T = TypeVar("T")
PATHS = ("a", "b", "d/c", "d/new", "b/inside", "e")
ELSEWHERE = ("nested/a", "submodule/d/c")
"""In other repositories: never recorded, never touched."""
POINTS = (
    "object", "written", "promised", "published", "shared", "watching", "intended", "staged",
    "swapped", "aside", "step", "fetched", "set-aside",
)  # fmt: skip
EDITS = (
    "append", "prepend", "middle", "drop", "overwrite", "delete", "chmod", "binary", "link", "rename",
    "large", "large", "swell", "swell", "empty", "folder", "no folder", "folder's mode", "all gone", "twin",
    "mode", "link outside", "link to folder outside", "folder linked outside", "twin outside", "huge",
    "shell", "shell",
)  # fmt: skip
COMMANDS = (
    "cp -a d copied", "rm -rf copied", "mv d b/", "mv b/d .", "mv a d/", "mkdir -p empty/deeper",
    "rmdir -p empty/deeper", "cp -al d linked", "rm -rf linked d", "ln -s ../../outside/folder d/far",
    "test -L b || truncate -s 0 b", "sed -i 's/$/ /' a", "mv d linked", "rm -f a b e",
    "ln -sfn ../outside/folder b", "chmod -R go-rwx d", "touch a b e",
)  # fmt: skip
"""What an agent's shell may do to many files at once, but not to what a link leads to outside."""
MODES = (0o600, 0o640, 0o444, 0o755, 0o2755, 0o664)
HUGE_SIZES = (1 << 20, 16 << 20, (16 << 20) + 1, 64 << 20)

LIMITS = UndoLimits(largest_file=300)
PADDING = b"." * 301

paths = st.sampled_from(PATHS)
any_paths = st.sampled_from((*PATHS, *ELSEWHERE))
edits = st.sampled_from(EDITS)
sessions = st.integers(0, 2)
choices = st.integers(0, 99)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a power cut keeps is not the question here."""
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.setattr(state_module, "SYNCHRONOUS", "OFF")
    for module in (work_module, transactions_module):
        monkeypatch.setattr(module, "new_id", numbered_id)


_numbers = count()


_WRITERS = ("aaaa", "bbbb", "cccc")
"""What the lines of the sessions begin with."""


def writer_of(session_id: str) -> bytes:
    return _WRITERS[int(session_id.removeprefix("session-"))].encode()


def numbered_id(prefix: str, _seconds: float) -> str:
    """Without chance, so that a history can be told again."""
    return f"{prefix}_{next(_numbers):026}"


class Histories(RuleBasedStateMachine):
    count = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).count += 1
        global _numbers  # noqa: PLW0603 - every history counts from one
        _numbers = count(1)
        self.root = new_project(repositories=True)
        git(self.root, "update-index", "--refresh")
        self.outside = make_outside(self.root)
        self.outside_at_first = contents_in(self.outside)
        later = (3_999_999_999, 3_999_999_999)  # so that what git knows of the files is believed
        os.utime(self.root / ".git" / "index", later)
        self.clock = FixedClock(4_000_000_000.0)
        self.limits = LIMITS
        self.named: dict[str, NamedFiles] = {}
        """Transaction to what its tools named, where it is an agent's turn."""
        self.sidecar = self._open_sidecar()
        self.git_before = git_folder_of(self.root)
        self.open: dict[int, str] = {}
        """Session to its transaction in progress."""
        self.watching: dict[str, set[str] | None] = {}
        """Transaction to what it watches; None is everything."""
        self.known: dict[str, LedgerEntry] = {}
        self.owners: dict[bytes, str | None] = {}
        """Line to the transaction that alone can have written it; None is the user."""
        self.written_since: set[str] = set()
        """Paths that somebody wrote to since the last crash."""
        self.contents: dict[str, bytes] = {}
        """All that was ever written, by its id: what is not stored cannot be asked for."""
        self.overwritten: set[bytes] = set()
        """What somebody wrote over, or removed, since the last crash."""
        self._remember_contents()
        self.trap: tuple[str, int] | None = None
        self.crashed: Callable[[], None] | None = None
        self.number = 0

    def _open_sidecar(self) -> SideCar:
        return SideCar(self.root, clock=self.clock, limits=self.limits, named_files=lambda: self.named)

    # ── writers ────────────────────────────────────────────────────────────────────────────

    @rule(path=any_paths, edit=edits)
    def user_writes(self, path: str, edit: str) -> None:
        watched = self._watchers(path)
        self._write("user", path, edit, None if not watched else "?")

    @rule(
        session=sessions, edits=st.lists(st.tuples(paths, edits), min_size=1, max_size=3), whole=st.booleans()
    )
    def session_works(self, session: int, edits: list[tuple[str, str]], whole: bool) -> None:
        """As an agent does: says what it will change, or that a shell may change anything; then does it."""
        self.begin(session)
        for path, edit in edits:
            name = self.open.get(session)
            if name is None:
                return
            if name not in self._watchers(path):
                self.watch(session, None if whole else path)
            if self.crashed is None and name in self._watchers(path):
                alone = self._watchers(path) == [name]
                self._write(_WRITERS[session], path, edit, name if alone else "?")

    @rule(session=sessions, path=paths, edit=edits, whole=st.booleans())
    def session_works_and_says_so(self, session: int, path: str, edit: str, whole: bool) -> None:
        self.session_works(session, [(path, edit)], whole)
        self.record(session)

    @rule(session=sessions, path=paths, edit=edits, users=paths, users_edit=edits)
    def agents_turn(self, session: int, path: str, edit: str, users: str, users_edit: str) -> None:
        """An agent's tool names the one file; the user edits another meanwhile."""
        self.begin(session)
        name = self.open.get(session)
        if name is None or name in self.watching:
            return
        self.watch(session, None)
        if self.crashed is not None or self.watching.get(name, path) is not None:
            return
        self.named[name] = NamedFiles(frozenset([os.fsencode(path)]))
        alone = {one: self._watchers(one) == [name] for one in (path, users)}
        self._write(_WRITERS[session], path, edit, name if alone[path] else "?")
        is_named = self.named[name].covers(os.fsencode(users))
        self._write("user", users, users_edit, None if alone[users] and not is_named else "?")
        self.record(session)

    def _watchers(self, path: str) -> list[str]:
        return [name for name, scope in self.watching.items() if scope is None or path in scope]

    def _write(self, who: str, path: str, edit: str, owner: str | None) -> None:
        self.number += 1
        line = f"{who}-{self.number}".encode()
        if edit == "huge" and self.limits is LIMITS:
            edit = "large"
        before = tree_of(self.root)
        if edit in ("twin", "shell") or (edit == "rename" and who != "user"):
            # The other name may be watched by others, or at another time: its lines are anybody's now.
            for token in tokens_in(before):
                self.owners.pop(token, None)
        done = (
            run_command(self.root, self.number)
            if edit == "shell"
            else edit_file(self.root / path, edit, line)
        )
        after = tree_of(self.root)
        self.written_since |= {path} | {one for one in {*before, *after} if before.get(one) != after.get(one)}
        if done:
            self._remember_contents()
            self.overwritten |= {known[1] for one, known in before.items() if known != after.get(one)}
            if owner != "?":
                self.owners[line] = owner
            self._note_user_loss()

    def _remember_contents(self) -> None:
        for _, data in tree_of(self.root).values():
            self.contents[id_of(data)] = data

    def _note_user_loss(self) -> None:
        """Lines that a writer has removed are no longer ours to look after."""
        if self.crashed is not None:
            self.before_crash &= tokens_in(tree_of(self.root))

    @initialize(size=st.integers(0, 9))
    def two_sessions(self, size: int) -> None:
        if size == 0:  # files as large as they come, and what is really kept of them
            self.limits = UndoLimits()
            self.sidecar = self._open_sidecar()
        self.session_works_and_says_so(0, "a", "append", whole=True)
        self.session_works_and_says_so(0, "b", "swell", whole=True)
        self.begin(1)

    # ── sessions ───────────────────────────────────────────────────────────────────────────

    def begin(self, session: int) -> None:
        if session not in self.open:
            begun = self._quietly(lambda: self.sidecar.begin(f"session-{session}"))
            if begun is not None:
                self.open[session] = begun.id

    def watch(self, session: int, path: str | None) -> None:
        name = self.open.get(session)
        if name is None:
            return
        self._after_crash()
        if self.open.get(session) != name:
            return
        before = self.watching.get(name, set())
        # The watch may stand or not, should this crash: count it as standing, which claims less.
        self.watching[name] = None if path is None or before is None else {*before, path}
        self._quietly(lambda: self.sidecar.watch(name, None if path is None else [path]))

    @rule(session=sessions)
    def record(self, session: int) -> None:
        name = self.open.get(session)
        if name in self.watching:
            self._quietly(lambda: self.sidecar.record(name, "worked"))
            if self.crashed is None:
                self.watching.pop(name, None)
                self.named.pop(name, None)

    @rule(session=sessions)
    def record_and_go_on(self, session: int) -> None:
        """As a workflow does between two tasks."""
        name = self.open.get(session)
        if name in self.watching:
            self._quietly(lambda: self.sidecar.record(name, "worked", keeps_watching=True))

    @rule(session=sessions)
    def commit(self, session: int) -> None:
        name = self.open.get(session)
        if name is not None and self._quietly(lambda: self.sidecar.commit(name)) is not None:
            self._ended(session, name)

    @rule(session=sessions)
    def dies(self, session: int) -> None:
        """The session's process is gone, its watch stays behind."""
        name = self.open.get(session)
        if name in self.watching and self.sidecar._state is not None:
            self.sidecar._state._database.execute(
                "UPDATE watches SET pid = 99999999 WHERE transaction_id = ?", (name,)
            )

    @rule(choice=choices)
    def resume(self, choice: int) -> None:
        found = self._quietly(self.sidecar.transactions)
        if not found:
            return
        chosen = found[choice % len(found)]
        if chosen.status == "rolled-back":
            with pytest.raises(IllegalTransitionError, match="rolled back"):
                self.sidecar.resume(chosen.id)
            return
        resumed = self._quietly(lambda: self.sidecar.resume(chosen.id))
        if resumed is not None and resumed.id != chosen.id:
            assert (resumed.status, resumed.continued_from) == ("in-progress", chosen.id)

    def _ended(self, session: int, name: str) -> None:
        self.open.pop(session, None)
        self.watching.pop(name, None)

    # ── taking back ────────────────────────────────────────────────────────────────────────

    @rule(choice=choices)
    def undo(self, choice: int) -> None:
        if self.known:
            entry = self.known[sorted(self.known)[choice % len(self.known)]]
            self._take_back([entry], lambda: self.sidecar.undo(entry.id))

    @rule(choice=choices)
    def undo_one_file(self, choice: int) -> None:
        changing = [entry for _, entry in sorted(self.known.items()) if entry.changes]
        if changing:
            entry = changing[choice % len(changing)]
            path = entry.changes[choice % len(entry.changes)].path
            around = tuple(
                one
                for one in entry.changes
                if one.path == path or (one.path.endswith("/") and path.startswith(one.path))
            )
            part = entry.changed(changes=around)
            self._take_back([part], lambda: self.sidecar.undo(entry.id, files=[path]))

    @rule(choice=choices)
    def undo_a_hunk(self, choice: int) -> None:
        changing = [entry for _, entry in sorted(self.known.items()) if entry.changes]
        if changing:
            entry = changing[choice % len(changing)]
            change = entry.changes[choice % len(entry.changes)]

            def some_hunk() -> UndoOutcome:
                hunks = self.sidecar.hunks([change])
                return self.sidecar.undo_hunks(entry.transaction_id, hunks, [choice % len(hunks) + 1])

            self._take_back([entry.changed(changes=(change,))], some_hunk)

    @rule(choice=choices)
    def make_room(self, choice: int) -> None:
        if choice % 8 == 0:  # two processes: not every time
            self._quietly(self.sidecar.collect)

    @rule(choice=choices)
    def undo_in_a_dry_run(self, choice: int) -> None:
        if self.known:
            entry = self.known[sorted(self.known)[choice % len(self.known)]]
            self._take_back([], lambda: self.sidecar.undo(entry.id, dry_run=True))

    @rule()
    def undo_the_latest(self) -> None:
        if self.known:
            entry = self.known[max(self.known)]
            self._take_back([entry], lambda: self.sidecar.undo(entry.id))

    @rule(choice=choices)
    def undo_and_back(self, choice: int) -> None:
        if not self.known:
            return
        self._after_crash()
        before, twins = tree_of(self.root), twins_in(self.root)
        entry = self.known[sorted(self.known)[choice % len(self.known)]]
        outcome = self._take_back([entry], lambda: self.sidecar.undo(entry.id))
        if outcome is None:
            return
        undoing = outcome.entry
        back = self._take_back([undoing], lambda: self.sidecar.undo(undoing.id))
        if back is None:
            assert self.crashed is not None
        else:
            assert tree_of(self.root) == before
            assert twins_in(self.root) == twins

    @rule(session=sessions, partial=st.booleans())
    def rollback(self, session: int, partial: bool) -> None:
        name = self.open.get(session)
        if name is None:
            return
        self._find_new_entries()
        if self.crashed is not None:
            return
        subjects = [entry for entry in self.known.values() if entry.transaction_id == name]
        done = self._take_back(subjects, lambda: self.sidecar.rollback(name, partial=partial))
        if done is not None:
            assert self.sidecar.transaction(name).status == "rolled-back"
            self._ended(session, name)

    def _take_back(
        self, subjects: list[LedgerEntry], action: Callable[[], UndoOutcome]
    ) -> UndoOutcome | None:
        self._after_crash()
        before = tree_of(self.root)
        allowed = {token for entry in subjects for token in self._introduced(entry, as_far_as_stored=True)}
        allowed |= self._own_lines_taken_back({entry.transaction_id for entry in subjects})
        touched = {change.path for entry in subjects for change in entry.changes}
        shared = {name for names in twins_in(self.root) if names & touched for name in names}
        try:
            outcome = self._run(action)
        except (ConflictError, IllegalTransitionError):
            assert tree_of(self.root) == before
            self._find_new_entries()
            return None
        except SimulatedCrash:
            self._crash(before, allowed, touched)
            return None
        self._check_loss(tokens_in(before), allowed)
        after = tree_of(self.root)
        touched |= {path for path in outcome.restored if path.endswith("/")}  # made for what came back
        for path in {*before, *after}:
            if before.get(path) != after.get(path):
                # A mode is of all names of a file; content is not, for the names are parted by then.
                assert path in touched or (path in shared and before[path][1] == after[path][1]), path
                assert path not in before or self._is_kept(before[path][1])
        self._find_new_entries()
        return outcome

    def _check_loss(self, before: set[bytes], allowed: set[bytes]) -> None:
        lost = before - tokens_in(tree_of(self.root)) - allowed
        assert not lost, f"lost: {lost}"

    def _is_kept(self, data: bytes) -> bool:
        return (
            self.sidecar._repository.has(id_of(data))
            or any(data == content_of(place) for place in self.sidecar.all_set_aside())
            or any(data == held for _, held in tree_of(self.root).values())
            or not data
        )

    def _introduced(self, entry: LedgerEntry, *, as_far_as_stored: bool = False) -> set[bytes]:
        """Tokens that an entry brought into the tree.

        As far as the side-car can know, all that is in a file is new if what it held before was not stored.
        """
        befores = [one.before for one in entry.changes]
        if as_far_as_stored:
            befores = [state for state in befores if state is None or state.stored]
        return self._tokens(one.after for one in entry.changes) - self._tokens(befores)

    def _own_lines_taken_back(self, names: set[str]) -> set[bytes]:
        """What these wrote and were told to take back: copies of it in what they wrote since may go, too."""
        return {
            token
            for transaction in self.sidecar.transactions()
            if transaction.id in names
            for entry in transaction.entries
            if entry.kind == "change" and entry.id not in transaction.standing
            for token in self._introduced(entry)
            if token.startswith(writer_of(transaction.session_id))
        }

    def _tokens(self, states: Iterable[FileState | None]) -> set[bytes]:
        read = self.sidecar._repository.read
        return {
            token
            for state in states
            if state is not None and not state.folder
            for token in tokens_of(self.contents.get(state.oid) or read(state.oid))
        }

    # ── crashes ────────────────────────────────────────────────────────────────────────────

    @rule(point=st.sampled_from(POINTS), after=st.integers(0, 2))
    def crash_soon(self, point: str, after: int) -> None:
        self.trap = (f"sidecar.{point}", after)

    def _run(self, action: Callable[[], T]) -> T:
        before = contents_in(self.outside)
        try:
            return self._run_into_trap(action)
        finally:
            assert contents_in(self.outside) == before

    def _run_into_trap(self, action: Callable[[], T]) -> T:
        self.clock.advance(1)
        if self.trap is None:
            return action()
        try:
            with crash_at(self.trap[0], after=self.trap[1]):
                return action()
        except SimulatedCrash:
            self.trap = None
            raise

    def _crash(self, before: Any, allowed: set[bytes], touched: set[str]) -> None:
        """The process is gone; another one comes, perhaps after others have written."""
        self.sidecar.close()
        self.sidecar = self._open_sidecar()
        self.before_crash = tokens_in(before)
        self.written_since = set()
        self.overwritten = set()

        def check() -> None:
            self._check_loss(self.before_crash, allowed)
            after = tree_of(self.root)
            for path in touched - self.written_since:
                if path in before and before[path] != after.get(path):
                    assert before[path][1] in self.overwritten or self._is_kept(before[path][1])

        self.crashed = check

    def _after_crash(self) -> None:
        """The next command, whichever, has recovered."""
        if self.crashed is not None:
            check, self.crashed = self.crashed, None
            self.sidecar.transactions()
            check()
            self._catch_up()
            self._find_new_entries()

    def _catch_up(self) -> None:
        """What a crashed command has brought about or not."""
        found = {one.id: one for one in self.sidecar.transactions()}
        for session, name in list(self.open.items()):
            if found[name].status != "in-progress":
                self._ended(session, name)
        self.watching = {
            watch.transaction_id: None if watch.whole_tree else {os.fsdecode(path) for path in watch.paths}
            for watch in self.sidecar._state.watches()  # type: ignore[union-attr]
        }
        # As the recorder tells of no turn that has ended.
        self.named = {name: files for name, files in self.named.items() if name in self.watching}

    def _quietly(self, action: Callable[[], T]) -> T | None:
        """Something that must not change a single file."""
        self._after_crash()
        before = tree_of(self.root)
        try:
            result = self._run(action)
        except SimulatedCrash:
            self._crash(before, set(), set())
            assert tree_of(self.root) == before
            return None
        except CannotDoError:  # the crash of the other process has ended its watch or its transaction
            result = None
        assert tree_of(self.root) == before
        self._find_new_entries()
        return result

    def _find_new_entries(self) -> None:
        if self.crashed is not None:
            return
        for transaction in self.sidecar.transactions():
            standing = set(transaction.standing)
            for entry in transaction.entries:
                if entry.kind in ("begin", "commit") or entry.id in self.known:
                    continue
                self.known[entry.id] = entry
                if entry.kind == "change" and not entry.doubt:
                    self._check_attribution(entry)
            for entry in transaction.entries:
                if entry.id not in standing:
                    self.known.pop(entry.id, None)

    def _check_attribution(self, entry: LedgerEntry) -> None:
        for token in self._introduced(entry):
            owner = self.owners.get(token, entry.transaction_id)
            assert owner == entry.transaction_id, f"{token!r} is of {owner or 'the user'}"

    def teardown(self) -> None:
        self._after_crash()
        assert git_folder_of(self.root) == self.git_before
        outside = contents_in(self.outside)
        assert {name: outside[name] for name in self.outside_at_first} == self.outside_at_first
        if self.number % 10 == 9:  # a process each: not every time
            assert ".holdfast" not in git(self.root, "status", "--porcelain", "--untracked-files=all")
            checked = subprocess.run(
                ["git", f"--git-dir={self.sidecar.folder}", "fsck", "--strict", "--no-dangling"],
                capture_output=True,
                text=True,
                check=False,
            )
            assert checked.returncode == 0, checked.stdout + checked.stderr
        self.sidecar.close()
        shutil.rmtree(self.root.parent)


def edit_file(path: Path, edit: str, line: bytes) -> bool:
    """Whether there was something to do."""
    if any(parent.is_file() or parent.is_symlink() for parent in path.parents):
        return False
    if edit in FOLDER_EDITS:
        return edit_folder(path, edit)
    if path.is_dir():
        return False
    if edit in NEW_FILES or edit in LINKS or edit == "huge":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if edit == "huge":
            path.write_bytes(line + b"\n")
            os.truncate(path, HUGE_SIZES[int(line.rpartition(b"-")[2]) % len(HUGE_SIZES)])
        elif edit in LINKS:
            path.symlink_to(LINKS[edit] or line.decode())
        else:
            path.write_bytes(NEW_FILES[edit](line))
        return True
    if not path.exists() or path.is_symlink():
        return False
    return edit_standing(path, edit, line)


NEW_FILES: dict[str, Callable[[bytes], bytes]] = {
    "overwrite": lambda line: line + b"\n",
    "binary": lambda line: line + b"\0\xff",
    "large": lambda line: line + b"\n" + PADDING,
    "empty": lambda line: b"",
}


LINKS = {"link": "", "link outside": "../outside/file", "link to folder outside": "../outside/folder"}


def run_command(root: Path, number: int) -> bool:
    """Most do nothing where there is nothing to do it to."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    subprocess.run(
        ["sh", "-c", COMMANDS[number % len(COMMANDS)]],
        cwd=root,
        env=environment,
        capture_output=True,
        check=False,
    )
    return True


def edit_standing(path: Path, edit: str, line: bytes) -> bool:
    if edit == "delete":
        path.unlink()
    elif edit == "chmod":
        path.chmod(path.stat().st_mode ^ 0o111)
    elif edit == "mode":
        path.chmod(MODES[int(line.rpartition(b"-")[2]) % len(MODES)])
    elif edit == "twin outside":
        outside = next(one for one in path.parents if (one / "../outside").is_dir()).parent / "outside"
        (outside / line.decode()).hardlink_to(path)
    elif edit in ("rename", "twin"):
        other = path.with_name("moved" if edit == "rename" else "twin")
        if other.exists() or other.is_symlink():
            return False
        path.rename(other) if edit == "rename" else other.hardlink_to(path)
    else:
        edit_lines(path, edit, line)
    return True


def edit_lines(path: Path, edit: str, line: bytes) -> None:
    """In place, or as most editors do: another file takes the name."""
    lines = path.read_bytes().splitlines(keepends=True)
    if edit == "drop" and lines:
        del lines[len(lines) // 2]
    else:
        where = {"append": len(lines), "prepend": 0}.get(edit, len(lines) // 2)
        lines.insert(where, line + (b"\n" + PADDING if edit == "swell" else b"") + b"\n")
    in_place = edit in ("append", "swell") and os.access(path, os.W_OK)
    place = path if in_place else path.with_name("written")
    place.write_bytes(b"".join(lines))
    place.chmod(path.stat().st_mode)
    place.rename(path)


FOLDER_EDITS = ("folder", "no folder", "folder's mode", "all gone", "folder linked outside")


def edit_folder(path: Path, edit: str) -> bool:
    if path.is_symlink():
        return False
    if edit == "folder" and not path.exists() and not path.is_symlink():
        path.mkdir(parents=True)
    elif not path.is_dir() and not (path.parent.name == "d" and path.parent.is_dir()):
        return False
    place = path if path.is_dir() else path.parent
    if edit == "folder's mode":
        place.chmod(place.stat().st_mode ^ 0o055)
    elif edit == "all gone":
        shutil.rmtree(place, ignore_errors=True)
    elif edit == "folder linked outside":
        shutil.rmtree(place, ignore_errors=True)
        place.symlink_to("../outside/folder")
    elif edit == "no folder" and not any(place.iterdir()):
        place.rmdir()
    return True


def contents_in(folder: Path) -> dict[str, bytes]:
    """Not the modes: those of a file with another name in the project are the project's, too."""
    return {name: data for name, (_, data) in tree_of(folder).items()}


def test_a_name_that_the_user_made_for_a_file_that_the_agent_named() -> None:
    """Found by chance: the user's hard link was put down to the agent, and went with its rollback."""
    state = Histories()
    state.two_sessions(size=0)
    state.agents_turn(edit="prepend", path="a", session=0, users="a", users_edit="twin")
    state.undo(choice=0)
    state.rollback(partial=False, session=0)
    assert (state.root / "twin").read_bytes().startswith(b"aaaa-3\n")
    state.teardown()


def test_a_copy_of_lines_that_were_taken_back() -> None:
    """They are the session's own in its own file: nobody loses them with that."""
    state = Histories()
    state.two_sessions(size=0)
    state.session_works(0, [("a", "prepend"), ("a", "twin")], whole=True)
    state.record(0)
    state.undo(choice=0)
    state.rollback(partial=False, session=0)
    assert not (state.root / "twin").exists()
    state.teardown()


def test_lines_that_are_left_in_a_file_too_large_to_be_stored() -> None:
    """Found by chance: another name of a file was removed with its lines while the file itself was left."""
    state = Histories()
    state.two_sessions(size=1)
    state.session_works(2, [("a", "twin"), ("a", "swell")], whole=True)
    state.record(2)
    state.session_works(0, [("a", "link outside")], whole=False)
    state.undo_the_latest()
    assert b"aaaa-1\n" in (state.root / "twin").read_bytes()
    state.teardown()


HISTORIES = 12 if QUICK else repeated(250)
pytestmark = pytest.mark.timeout(900 * max(1.0, SOAK))  # hundreds of histories take minutes on a busy machine

_some = settings(max_examples=HISTORIES, stateful_step_count=24, deadline=None, print_blob=True)
TestOne = type("TestOne", (Histories.TestCase,), {"settings": _some})
TestTwo = type("TestTwo", (Histories.TestCase,), {"settings": _some})
TestThree = type("TestThree", (Histories.TestCase,), {"settings": _some})
TestFour = type("TestFour", (Histories.TestCase,), {"settings": _some})
