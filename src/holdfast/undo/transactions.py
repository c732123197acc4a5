"""`SideCar`: let an agent change files, and be able to take any of it back.

    begin ─► watch ─► (the agent works) ─► record ─► … ─► commit | rollback
                                              └─► undo one change

`watch` before a task or a batch of tools, `record` after it: what differs in the files watched is the
session's change, whoever's hand made it, an editor's or a shell's. What differed before was the
user's, and is only remembered. All sessions share one memory of how each file was last seen, so a
change is counted once, and to the one who watched that file.

What cannot be told apart (two sessions watched the same file; a session crashed while watching) is
recorded *in doubt*, and taken back only on request.
"""

from __future__ import annotations

import heapq
import os
import sqlite3
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from holdfast.base.clock import Clock, system_clock
from holdfast.base.durable import lock_file, private_folder, set_aside, storage_errors
from holdfast.base.errors import (
    CannotDoError,
    ConflictError,
    DamagedDataError,
    HoldfastError,
    IllegalTransitionError,
    NotFoundError,
)
from holdfast.base.faults import fault_point
from holdfast.base.ids import new_id
from holdfast.base.process import ProcessIdentity, identify
from holdfast.project.formats import FORKED, SIDECAR, UNDO_BRANCHES, forked_name
from holdfast.project.layout import ProjectLayout
from holdfast.project.trust import mark_part, refuse_links
from holdfast.undo.git import run_git
from holdfast.undo.ledger import Cache, CarriedTransaction, Transaction, to_document
from holdfast.undo.objects import Repository
from holdfast.undo.plan import Hunk, hunks_of, told_reasons, without_hunks
from holdfast.undo.state import (
    WHOLE_TREE,
    LedgerEntry,
    PathChange,
    State,
    TasksEnded,
    UndoLimits,
    refused_by_the_disk,
)
from holdfast.undo.tree_cache import TreeCache
from holdfast.undo.work import (
    NO_TASKS,
    FilesBySession,
    UndoOutcome,
    UndoWork,
    no_named_files,
)
from holdfast.undo.worktree import Worktree, blob_id, checked_path

__all__ = ["SideCar", "UndoLimits", "UndoOutcome"]

PATIENCE = 60.0
_NO_LINKS = (
    "/",
    "objects/",
    "refs/",
    "refs/heads/",
    f"{UNDO_BRANCHES}/",
    "info/",
    "logs/",
    "kept",
    "set-aside",
    "stage",
)
"""Set-aside and staged files of the user's may be links themselves."""

AnyPath = str | bytes | os.PathLike[str]


class SideCar:
    def __init__(
        self,
        project: Path | str,
        *,
        clock: Clock = system_clock,
        limits: UndoLimits | None = None,
        patience: float = PATIENCE,
        named_files: FilesBySession = no_named_files,
    ) -> None:
        """`patience`: seconds to wait for another process that is at work in the same side-car.

        `named_files`: which files each of several sessions at work at once is known to have changed.
        """
        self._layout = ProjectLayout(Path(project).absolute())
        self._clock = clock
        self._limits = limits or UndoLimits()
        self.folder = self._layout.sidecar
        self._repository = Repository(self.folder)
        self._stage = self.folder / "stage"
        self._tree = Worktree(self._layout.root, self._stage, largest=self._limits.largest_file)
        self._state: State | None = None
        self._cache: Cache = {}
        self._glance = TreeCache(self._tree)
        self._patience = patience
        self._named_files = named_files
        self._recovered: UndoOutcome | None = None

    @property
    def project(self) -> Path:
        return self._layout.root

    def close(self) -> None:
        self._repository.close()
        if self._state is not None:
            self._state.close()
            self._state = None

    def __enter__(self) -> SideCar:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── the life of a transaction ──────────────────────────────────────────────────────────

    def begin(
        self, session_id: str, *, transaction_id: str | None = None, continued_from: str | None = None
    ) -> Transaction:
        with self._at_work() as work:
            if work.room_is_short():
                work.collect()
            name = transaction_id or new_id("tx", self._clock())
            if work.ledger.exists(name):
                raise ConflictError(f"transaction {name} already exists", hint=f"`holdfast tx show {name}`")
            return work.add(name, session_id, "begin", continued_from=continued_from)

    def take_up(
        self,
        family: str,
        name: str | None = None,
        *,
        owner: ProcessIdentity | None = None,
        formerly: str | None = None,
        description: str = "",
        missed: str = "",
    ) -> str:
        """Watch all files for whoever works in sessions of one kind, a family of transactions.

        The session's own transaction, if one is in progress; else a new one of that `name`, which continues
        the family's last. What an earlier session left in progress is committed. A family that is known as
        `formerly` keeps that name. Returns its id.

        A watch of its own that still stands is one whose end could not be recorded: what changed since it
        began, with that `description`, may be anybody's. `missed`: what the record lacks.
        """
        with self._at_work() as work:
            if work.room_is_short():
                work.collect()
            formers = work.ledger.family(formerly) if formerly else []
            family, wanted = (formerly, formerly) if formerly and formers else (family, name or family)
            known = [work.ledger.last(one) for one in formers or work.ledger.family(family)]
            who = owner or identify(os.getpid())
            unended = [one for one in known if one.status == "in-progress"]
            own = next((one for one in reversed(unended) if one.session_id == wanted), None)
            if own is not None:
                work.go_on_watching(own.transaction_id, who, description, missed)
                return own.transaction_id
            work.settle(None)
            for one in unended:
                work.end(one.transaction_id)
            left = work.ledger.family(family)  # one without changes was dropped
            last = work.ledger.last(left[-1]) if left else None
            chosen = work.free_name(wanted)
            work.begin_watching(
                chosen,
                wanted,
                who,
                continued_from=last.transaction_id if last and last.status == "committed" else None,
                missed=missed,
            )
            fault_point("sidecar.watching")
            return chosen

    def look(self) -> None:
        """Take in how all files are now, with nobody's name on it; who watches them does it anyway."""
        with self._at_work() as work:
            if not work.state.watches():
                work.settle(None)
        self.complete_first_look()

    def complete_first_look(self) -> None:
        """The first look at a tree takes the user's index for most of it, and looks no closer: to be done
        where nobody waits. Whoever comes next does it otherwise."""
        with self._at_work():
            pass

    def finish(
        self, transaction_id: str, description: str = "", *, doubt: str = "", ended: TasksEnded = NO_TASKS
    ) -> Transaction | None:
        """Record what is left to record, end the watch and commit; None where nothing was ever changed,
        and the transaction is dropped. `doubt` as with `record`."""
        with self._at_work(transaction_id) as work:
            name = work.successor(transaction_id)
            work.running(name)
            scope = self._suspects()
            work.settle(scope, closing=name, description=description, doubt=doubt, ended=ended)
            # What was recorded while it went on says nothing of what came to be ignored meanwhile.
            return work.end(name, uncovered=work.newly_uncovered(name) if scope is not None else ())

    def let_go(self, transaction_id: str, description: str = "", *, ended: TasksEnded = NO_TASKS) -> None:
        """Record and end the watch, if it is this process's; the transaction stays in progress."""
        with self._at_work() as work:
            name = work.successor(transaction_id)
            if work.state.is_watched_by(name, identify(os.getpid())):
                work.settle(self._suspects(), closing=name, description=description, ended=ended)

    def resume(self, transaction_id: str) -> Transaction:
        """To go on with: itself while in progress, a new one that continues a committed one."""
        with self._at_work() as work:
            found = work.ledger.read(transaction_id)
        if found.status == "rolled-back":
            raise IllegalTransitionError(
                f"cannot resume session {found.session_id}: transaction {found.id} has been rolled back",
                hint="start over with --new",
            )
        if found.status == "committed":
            return self.begin(found.session_id, continued_from=found.id)
        return found

    def watch(
        self,
        transaction_id: str,
        paths: Iterable[AnyPath] | None = None,
        *,
        owner: ProcessIdentity | None = None,
    ) -> None:
        """From now on, what changes in these files (in all, if none are named) is this transaction's.

        `owner` is the process whose end would leave the watch without anybody to end it.
        """
        names = self._names(paths)
        with self._at_work() as work:
            work.running(transaction_id)
            who = owner or identify(os.getpid())
            scope = [WHOLE_TREE] if names is None else names
            work.settle(names, also=lambda: work.state.watch(transaction_id, scope, who))
            fault_point("sidecar.watching")

    def record(
        self,
        transaction_id: str,
        description: str = "",
        paths: Iterable[AnyPath] | None = None,
        *,
        keeps_watching: bool = False,
        doubt: str = "",
        missed: str = "",
        ended: TasksEnded = NO_TASKS,
    ) -> LedgerEntry | None:
        """The change since `watch`, which ends with it unless it `keeps_watching`; None where there is none.

        With `paths`, of these alone; the others stay watched. `doubt` says why it may be somebody else's,
        `missed` what the record cannot hold. Of a transaction that was rolled back meanwhile it is in the
        one that follows it.
        """
        names = self._names(paths)
        if keeps_watching and names is None and self._glance.complete:
            suspects = self._suspects()
            if not suspects and not ended.is_noted:
                return None  # nothing was touched: not even the lock is needed to say so
        else:
            suspects = None
        with self._at_work(transaction_id) as work:
            name = work.successor(transaction_id)
            work.running(name)
            watched = next((one for one in work.state.watches() if one.transaction_id == name), None)
            if watched is None or (
                names is not None and not names <= watched.paths and not watched.whole_tree
            ):
                raise CannotDoError(
                    f"transaction {name} is not watching these files",
                    hint="watch them before the change",
                )
            scope = names if names is not None else (suspects if watched.whole_tree else watched.paths)
            return work.settle(
                scope,
                closing=name,
                description=description,
                ending=names,
                keeps_watching=keeps_watching,
                doubt=doubt,
                ended=ended._replace(missed=missed),
            )

    def fork(self, family: str, name: str, session_number: int) -> None:
        """Let what another family's sessions up to that one changed so far count as a new family's, too."""
        with self._at_work() as work:
            if work.ledger.family(family):
                link = forked_name(name, family, session_number)
                work.add(link, f"{name}-s1", "begin", status="committed")

    def note(self, transaction_id: str, description: str, ended: TasksEnded) -> None:
        """That these tasks count as ended with what stands now; it is a change of no file."""
        with self._at_work() as work:
            work.note(transaction_id, description, ended)

    def set_apart(self, transaction_id: str, paths: Iterable[AnyPath], description: str = "") -> None:
        """Record what was done to these files so far, as far as they are known, as a change of its own.

        They stay watched.
        """
        names = self._names(paths) or ()
        with self._at_work() as work:
            chosen = work.successor(transaction_id)
            work.running(chosen)
            known = [name for name in names if work.state.file(name)]
            if known:
                work.settle(known, closing=chosen, description=description, keeps_watching=True)

    def write(
        self, transaction_id: str, path: AnyPath, before: bytes, after: bytes, description: str = ""
    ) -> LedgerEntry:
        """Exchange the content of one file, if it still is `before`, and record it with that.

        A `ConflictError` where somebody changed the file; then it is as they left it.
        """
        name = checked_path(self._layout.root, path)
        with self._at_work() as work:
            work.running(transaction_id)
            who = identify(os.getpid())
            work.settle([name], also=lambda: work.state.watch(transaction_id, [name], who))
            try:
                self._exchange(work, name, before, after)
            except BaseException:
                with work.state.change():
                    work.state.unwatch(transaction_id, [name])
                raise
            entry = work.settle([name], closing=transaction_id, description=description, ending=[name])
            if entry is None:
                raise CannotDoError(
                    f"{os.fsdecode(name)} already has that content", hint="nothing was changed"
                )
            return entry

    def _exchange(self, work: UndoWork, name: bytes, before: bytes, after: bytes) -> None:
        fault_point("sidecar.watching")
        known = work.state.file(name)
        if known is None or known.link or known.oid != blob_id(before):
            raise ConflictError(
                f"{os.fsdecode(name)} was changed in the meantime and was left unchanged",
                hint="review it again, then repeat your last step",
            )
        work.keep(before)  # it may be in the user's repository alone
        work.keep(after)  # so that a crash leaves nothing behind that nobody knows
        target = known.state.changed(oid=blob_id(after), size=len(after), stored=True)
        self._tree.put(name, known.state, target, after)
        fault_point("sidecar.exchanged")

    def commit(self, transaction_id: str) -> Transaction:
        """The changes are meant to stay. Any of them can still be undone."""
        with self._at_work() as work:
            found = work.running(transaction_id)
            return work.add(transaction_id, found.session_id, "commit", status="committed", unwatch=True)

    def undo(
        self,
        change_id: str,
        *,
        partial: bool = False,
        doubtful: bool = False,
        files: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> UndoOutcome:
        """Take one change back, and nothing else; what was undone can be undone itself. As with `rollback`,
        a file whose earlier content was not kept is left alone."""
        with self._at_work() as work:
            transaction, entry = work.find_entry(change_id)
            if entry.kind not in ("change", "undo", "rollback"):
                raise IllegalTransitionError(f"{change_id} is a {entry.kind}: it did not change any file")
            if entry.id not in transaction.standing:
                raise IllegalTransitionError(
                    f"{change_id} has already been undone", hint="undo that undo instead"
                )
            standing = [transaction.standing_part(entry)]
            return work.restore(
                transaction,
                "undo",
                standing,
                partial=partial,
                doubtful=doubtful,
                files=files,
                dry_run=dry_run,
            )

    def undo_hunks(
        self,
        transaction_id: str,
        hunks: Sequence[Hunk],
        chosen: Collection[int],
        *,
        partial: bool = False,
        doubtful: bool = False,
        dry_run: bool = False,
    ) -> UndoOutcome:
        """Take these hunks back, by their numbers, and nothing else. The change they are of still stands."""
        wanted = [one for one in hunks if one.number in chosen]
        if not chosen:
            raise CannotDoError("no hunk was chosen", hint="nothing was changed")
        if missing := sorted(set(chosen) - {one.number for one in hunks}):
            raise NotFoundError(
                f"no such hunk: {missing[0]}", hint=f"`holdfast tx diff {transaction_id}` shows the numbers"
            )
        with self._at_work() as work:
            transaction = work.ledger.read(transaction_id)
            doubts = {
                change.path: entry.doubt
                for entry in transaction.changes
                for change in entry.changes
                if entry.doubt
            }
            subjects = [
                transaction.entries[-1].changed(
                    id="",
                    doubt=doubts.get(change.path, ""),
                    changes=(self._part(work, change, hunks, wanted),),
                )
                for change in {one.change.path: one.change for one in wanted}.values()
            ]
            return work.restore(
                transaction, "undo", subjects, partial=partial, doubtful=doubtful, dry_run=dry_run
            )

    def _part(
        self, work: UndoWork, change: PathChange, hunks: Sequence[Hunk], wanted: Sequence[Hunk]
    ) -> PathChange:
        """A change from the file without the hunks wanted to the file with all of them."""
        of_file = [one for one in hunks if one.change.path == change.path]
        some = [one for one in wanted if one.change.path == change.path]
        if len(some) == len(of_file) or change.before is None or change.after is None:
            return change
        sides = (self.content(change, "before") or b"", self.content(change, "after") or b"")
        content = without_hunks(*sides, some)
        if not work.keep(content):
            raise CannotDoError("not enough space for another version of the file", hint="`holdfast tx list`")
        return change.changed(before=change.after.changed(oid=blob_id(content), size=len(content)))

    def rewind(
        self,
        later: Sequence[tuple[str, Collection[str]]],
        *,
        partial: bool = False,
        doubtful: bool = False,
        complete: bool = False,
        dry_run: bool = False,
    ) -> list[UndoOutcome]:
        """Take several transactions' changes back, an undo each: all of them, or with `partial` what can be.
        With `complete` nothing is done where a file would be left, for whatever reason.

        `later`: transactions, the newest first, each with the ids of its changes.
        """
        done: list[UndoOutcome] = []
        try:
            for name, ids in later:
                with self._at_work() as work:
                    transaction = work.ledger.read(name)
                    entries = [one for one in transaction.changes[::-1] if one.id in ids]
                    done.append(
                        work.restore(
                            transaction, "undo", entries, partial=partial, doubtful=doubtful, dry_run=dry_run
                        )
                    )
            left = {path: reason for one in done for path, reason in one.left.items()}
            if complete and left and not dry_run:
                raise ConflictError(
                    f"cannot restore every file: {told_reasons(left)}", hint="nothing was changed"
                )
        except HoldfastError:
            for outcome in [] if dry_run else done[::-1]:
                self.undo(outcome.entry.id, doubtful=True)
            raise
        return done

    def rollback(
        self,
        transaction_id: str,
        *,
        partial: bool = False,
        doubtful: bool = False,
        files: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> UndoOutcome:
        """Take all changes of a transaction back: all of them, or with `partial` those that can be.

        A file whose earlier content was not kept is left alone even so; what is left can be tried again.
        Of some `files` alone it is an undo: the transaction goes on.
        """
        with self._at_work() as work:
            transaction = work.ledger.read(transaction_id)
            if transaction.status == "rolled-back" and not transaction.changes:
                done = self._recovered
                if done and done.entry.kind == "rollback" and done.entry.transaction_id == transaction_id:
                    return done  # it was killed in the middle, and is asked for again
                raise IllegalTransitionError(f"transaction {transaction_id} has already been rolled back")
            changes = transaction.changes[::-1]
            return work.restore(
                transaction,
                "rollback" if files is None else "undo",
                changes,
                partial=partial,
                doubtful=doubtful,
                files=files,
                dry_run=dry_run,
            )

    # ── questions ──────────────────────────────────────────────────────────────────────────

    def transactions(self) -> list[Transaction]:
        """The most recently changed first."""
        return [one for one in self.recorded() if FORKED not in one.id]

    def recorded(self) -> list[Transaction]:
        """The same, with what tells only which plan a fork continues."""
        if not self.folder.is_dir():
            return []
        with self._at_work() as work:
            found = work.sound_transactions()
            return sorted(found, key=lambda one: (*work.ledger.place(one.id), one.id), reverse=True)

    def transaction(self, transaction_id: str) -> Transaction:
        with self._at_work() as work:
            return work.ledger.read(transaction_id)

    def content(self, change: PathChange, side: Literal["before", "after"]) -> bytes | None:
        """What a file held before or after a change; None where it was not there or was not kept."""
        state = change.before if side == "before" else change.after
        if state is None or state.folder:
            return None
        return self._repository.read(state.oid) if state.stored else None

    def difference(self, change: PathChange) -> list[str] | None:
        """The lines of a unified diff; None where a side is no text or was not kept."""
        sides = [self.content(change, "before"), self.content(change, "after")]
        for state, content in zip((change.before, change.after), sides, strict=True):
            has_content = state is not None and not state.folder
            if (has_content and content is None) or b"\0" in (content or b""):
                return None
        with self._at_work():
            oids = [self._repository.write("blob", content or b"") for content in sides]
            found = run_git(
                self.folder, "diff", "--text", "--no-ext-diff", "--no-textconv", "--no-color", *oids
            )
        lines = found.decode(errors="backslashreplace").split("\n")
        start = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
        return lines[start:-1]

    def hunks(self, changes: Iterable[PathChange]) -> list[Hunk]:
        return hunks_of(changes, self.difference)

    def set_aside(self, entry: LedgerEntry) -> dict[str, Path]:
        """Files that an entry took out of the tree and that are not stored: path to where they lie now."""
        unstored = {one.path: one.before.oid for one in entry.changes if one.before and not one.before.stored}
        found = {path: self._tree.set_aside.find(oid) for path, oid in unstored.items()}
        return {path: places[-1].relative_to(self._layout.root) for path, places in found.items() if places}

    def all_set_aside(self) -> list[Path]:
        return self._tree.set_aside.files()

    def carry_out(self, transaction_id: str) -> bytes:
        """As a document for another project."""
        with self._at_work() as work:
            return to_document(work.ledger.read(transaction_id), self._repository.read)

    def in_order(self, carried: Sequence[CarriedTransaction]) -> list[CarriedTransaction]:
        """With numbers of this side-car, in the order in which their entries were made: it tells what was
        undone before a task ended, and what after."""
        if not carried:
            return []
        entries = list(heapq.merge(*(one.entries for one in carried), key=lambda one: (one.number, one.at)))
        with self._at_work() as work:
            first = work.ledger.reserve(len(entries))
        numbers = {one.id: number for number, one in enumerate(entries, first)}
        return [one.numbered(numbers) for one in carried]

    def bring_in(
        self, carried: CarriedTransaction, wanted: str, ids: Mapping[str, str], *, follows: bool = False
    ) -> str | None:
        """Take another project's transaction in, under a new name where that one is taken.

        None where this very one is here already; one that `follows` gets what was done to it since where it
        comes from, unless it went on here, too. No file of the project is touched.
        """
        with self._at_work() as work:
            known = work.ledger.read(wanted) if work.ledger.exists(wanted) else None
            if known is not None and known.began == carried.entries[0].at:
                news = carried.since(known, self._new_change_id) if follows else None
                if news is None:
                    return None
                carried = news
            elif wanted != carried.id or known is not None:
                wanted = new_id("tx", self._clock()) if known is not None else wanted
                carried = carried.renamed(wanted, self._new_change_id, ids)
            if not all(work.keep(data) for data in carried.blobs.values()):
                raise CannotDoError(
                    "not enough space for the files of this transaction", hint="`holdfast tx list`"
                )
            for entry in carried.entries:
                work.ledger.append(entry, {}, number=entry.number)
            return wanted

    def _new_change_id(self) -> str:
        return new_id("ch", self._clock())

    def collect(self) -> None:
        """Drop what nobody needs any more, and old finished transactions where room is short."""
        with self._at_work() as work:
            work.collect()

    def is_in_progress(self, transaction_id: str) -> bool:
        """Itself, or the one that follows it since it was rolled back."""
        with self._at_work(transaction_id) as work:
            name = work.successor(transaction_id)
            return work.ledger.exists(name) and work.ledger.last(name).status == "in-progress"

    def family(self, name: str) -> list[Transaction]:
        """The transactions of one kind of sessions, the one that changed last at the end."""
        if not self.folder.is_dir():
            return []
        with self._at_work() as work:
            return [work.ledger.read(one) for one in work.ledger.family(name)]

    # ── inside ─────────────────────────────────────────────────────────────────────────────

    def _names(self, paths: Iterable[AnyPath] | None) -> frozenset[bytes] | None:
        return None if paths is None else frozenset(checked_path(self._layout.root, path) for path in paths)

    def _suspects(self) -> set[bytes] | None:
        """Files that may differ from how this very object last saw them; None where that means all."""
        return self._glance.suspects(self._clock()) if self._glance.complete else None

    @contextmanager
    def _at_work(self, ending: str | None = None) -> Generator[UndoWork]:
        """The one who holds the lock first ends what a crashed one left.

        Not the watch of a transaction that is about to be ended: whoever speaks for it is no crash, even
        where the process it watched for is gone.
        """
        try:
            with self._locked(ending) as work:
                yield work
        except BaseException:
            self._glance.forget()
            raise

    @contextmanager
    def _locked(self, ending: str | None) -> Generator[UndoWork]:
        if not self._stage.is_dir():  # it is made last
            self._layout.ensure()
            private_folder(self.folder)
            with storage_errors("mark the side-car"):
                mark_part(str(self._layout.folder), SIDECAR)
        if linked := refuse_links(str(self.folder), *_NO_LINKS):
            raise CannotDoError(f"{linked} is a symbolic link", hint="remove it; links are not followed here")
        with (
            storage_errors("use the side-car"),
            lock_file(self.folder / "holdfast.lock", wait=self._patience),
            self._tree.reading_large_files_once(),
        ):
            self._repository.ensure()
            self._repository.forget()
            self._tree.forget()
            self._stage.mkdir(mode=0o700, exist_ok=True)
            fresh = self._state is None
            if self._state is None:
                self._state = State(
                    self.folder / "holdfast-state.db", self._repository.take_unsynced, now=self._clock()
                )
            try:
                work = UndoWork(
                    self._repository,
                    self._state,
                    self._tree,
                    self._clock,
                    self._limits,
                    self._cache,
                    self._glance,
                    self._named_files,
                )
                work.recover(fresh=fresh, ending=ending)
                self._recovered = work.recovered or self._recovered
                yield work
            except sqlite3.DatabaseError as error:
                raise self._damaged(error) from error

    def _damaged(self, error: sqlite3.DatabaseError) -> Exception:
        """What was seen of files is looked at anew the next time; the record of changes lies elsewhere."""
        path = self.folder / "holdfast-state.db"
        if refusal := refused_by_the_disk(error):
            return refusal
        if isinstance(error, sqlite3.OperationalError) or self._state is None:
            return error
        self._state.close()
        self._state = None
        kept = set_aside(path, self._clock())
        return DamagedDataError(
            f"{path.name} of the side-car is damaged ({error}) and was kept as {kept.name}",
            hint="run the command again",
        )
