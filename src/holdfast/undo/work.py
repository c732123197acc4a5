"""What is done under the side-car's lock: whose a change is, taking changes back, making room."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from typing import Literal

from pydantic import ValidationError

from holdfast.base.clock import Clock, to_datetime
from holdfast.base.durable import storage_errors
from holdfast.base.errors import (
    CannotDoError,
    ConflictError,
    HoldfastError,
    IllegalTransitionError,
    NotFoundError,
)
from holdfast.base.faults import fault_point
from holdfast.base.ids import new_id
from holdfast.base.process import ProcessIdentity, boot_mark, identify
from holdfast.base.redact import redact
from holdfast.base.text import shown_path
from holdfast.model.base import invalid
from holdfast.model.git import encode_path
from holdfast.project.formats import FORKED, origin_of
from holdfast.undo.git import SHARED_FROM, TreeSurvey, UsersGit
from holdfast.undo.ledger import FOLLOWED, Cache, Ledger, Transaction, status_after
from holdfast.undo.objects import Repository, blob_id
from holdfast.undo.plan import told_reasons, way_around, with_folders
from holdfast.undo.restore import Restoring, rescue
from holdfast.undo.state import (
    BORROWED,
    FOLDER_KIND,
    WHOLE_TREE,
    Differing,
    FileKind,
    FirstLook,
    KnownFile,
    LedgerEntry,
    NamedFiles,
    PathChange,
    State,
    Status,
    TasksEnded,
    UndoLimits,
    Watch,
    same_content,
    told,
)
from holdfast.undo.tree_cache import TreeCache
from holdfast.undo.users_index import IndexedFile, entries, is_executable, oid_of, readable_count, stamp_of
from holdfast.undo.worktree import MOST_READ, UnreadableError, Worktree, folders_above, is_ours, known_folder

log = logging.getLogger("holdfast.sidecar")

_MOST_UNSYNCED = 512
NO_TASKS = TasksEnded()
_UNASKED = "it was not asked for"
_ONLY_SEEN = "it changed during the turn, but no tool call of the session names it"
_NOT_ENDED = "it could not be recorded in time: the file may have been changed by another process since"
_LEFT = "left"
"""The note of files that went while several were at work: path, content, whose change it was."""
_MOST_LEFT = 1_000
_MOST_COMPARED = 10_000
_LOOKED = "looked"
"""The note of when the whole tree was last looked at."""


Departed = tuple[str, str, str | None]
"""A path, what was there, and the transaction whose change it is that it went."""
Owner = tuple[str, str]
"""A transaction, and why it is in doubt that a change is its."""

FilesBySession = Callable[[], Mapping[str, NamedFiles]]
"""By transaction; asked under the lock, after the files were looked at."""


def no_named_files() -> Mapping[str, NamedFiles]:
    return {}


@dataclass(frozen=True)
class UndoOutcome:
    """What an undo or a rollback did."""

    entry: LedgerEntry
    restored: tuple[str, ...]
    left: Mapping[str, str]
    """Paths that stayed as they are, each with the reason."""
    in_doubt: frozenset[str] = frozenset()
    """Those of them that were left because the change is in doubt."""


class UndoWork:
    """One turn at the side-car; whoever holds the lock has one."""

    def __init__(
        self,
        repository: Repository,
        state: State,
        tree: Worktree,
        clock: Clock,
        limits: UndoLimits,
        cache: Cache,
        glance: TreeCache,
        named_files: FilesBySession = no_named_files,
    ) -> None:
        self.repository = repository
        self.state = state
        self.tree = tree
        self.ledger = Ledger(repository, state, cache)
        self._clock = clock
        self._limits = limits
        self._named_files = named_files
        self.glance = glance
        self._size = int(state.note("size") or 0)
        self._first_look: TreeSurvey | None = None
        self.recovered: UndoOutcome | None = None
        """What another process began to take back, and this one has brought to its end."""

    def recover(self, *, fresh: bool, ending: str | None) -> None:
        """End what others began; with the state just opened, also what the machine's end may have taken."""
        if fresh and ((boot := boot_mark()) is None or boot != self.state.note("boot")):
            self.ledger.after_power_cut()
            with self.state.change():
                self.state.put_note("boot", boot)
        self.ledger.recover()
        if self.state.unsynced_count() > _MOST_UNSYNCED:
            self.ledger.checkpoint()
        self.complete_first_look()
        spoken_for = self.successor(ending) if ending else None
        restoring = Restoring.unfinished(self.state)
        if restoring is not None:
            self.recovered = self._carry_out(restoring)
        for watch in self.state.watches():
            if watch.abandoned and watch.transaction_id != spoken_for:
                scope = None if watch.whole_tree else watch.paths
                if scope is not None:
                    unstored = {
                        row.oid for path in scope if (row := self.state.file(path)) and not row.stored
                    }
                    rescue(self.tree, self.repository, scope, watch.transaction_id, unstored)
                self.settle(scope, also=partial(self.state.unwatch, watch.transaction_id))
                watch.ending.unlink(missing_ok=True)

    def running(self, transaction_id: str) -> LedgerEntry:
        """The newest entry of a transaction that is in progress."""
        found = self.ledger.last(transaction_id)
        if found.status != "in-progress":
            raise IllegalTransitionError(
                f"transaction {transaction_id} is {found.status}", hint="start a new one, or resume it"
            )
        return found

    def sound_transactions(self) -> list[Transaction]:
        """All that can be read; one that cannot is told about and does not hide the others."""
        found: list[Transaction] = []
        for name in self.ledger.ids():
            try:
                found.append(self.ledger.read(name))
            except HoldfastError as error:
                log.warning("%s", error.message)
        return found

    def find_entry(self, change_id: str) -> tuple[Transaction, LedgerEntry]:
        for transaction in self.sound_transactions():
            for entry in transaction.entries:
                if entry.id == change_id:
                    return transaction, entry
        raise NotFoundError(f"no such change: {change_id}", hint="`holdfast tx show last` lists the changes")

    def add(
        self,
        transaction_id: str,
        session_id: str,
        kind: FileKind,
        *,
        status: Status = "in-progress",
        continued_from: str | None = None,
        unwatch: bool = False,
        uncovered: tuple[str, ...] = (),
    ) -> Transaction:
        more = {"continued_from": continued_from, "uncovered": uncovered}
        entry = self._entry(transaction_id, session_id, kind, status=status, **more)
        self.ledger.append(entry, {}, lambda: self.state.unwatch(transaction_id) if unwatch else None)
        return self.ledger.read(transaction_id)

    def note(self, transaction_id: str, description: str, ended: TasksEnded) -> None:
        entry, files = self._change((transaction_id, ""), [], {}, description)
        self.ledger.append(entry.model_copy(update={"tasks": ended.tasks}), files)

    def end(self, transaction_id: str, uncovered: tuple[str, ...] = ()) -> Transaction | None:
        """Its changes are meant to stay; None where there never were any, and it is dropped."""
        found = self.ledger.read(transaction_id)
        if all(entry.kind == "begin" for entry in found.entries):
            self.ledger.delete(transaction_id)
            return None
        return self.add(
            transaction_id,
            found.session_id,
            "commit",
            status="committed",
            unwatch=True,
            uncovered=uncovered,
        )

    def free_name(self, wanted: str) -> str:
        names = (f"{wanted}-{number}" if number > 1 else wanted for number in count(1))
        return next(name for name in names if not self.ledger.exists(name))

    def successor(self, transaction_id: str) -> str:
        """Where one goes on that was rolled back under whoever works in it; else itself."""
        while (name := self.state.note(f"{FOLLOWED} {transaction_id}")) and self.ledger.exists(name):
            transaction_id = name
        return transaction_id

    def begin_watching(
        self,
        transaction_id: str,
        session_id: str,
        owner: ProcessIdentity,
        continued_from: str | None,
        missed: str = "",
    ) -> None:
        lacking = (*self.uncovered(), *filter(None, [missed]))
        more = {"continued_from": continued_from, "uncovered": lacking}
        entry = self._entry(transaction_id, session_id, "begin", **more)
        self.ledger.append(entry, {}, lambda: self.state.watch(transaction_id, [WHOLE_TREE], owner))

    def go_on_watching(
        self, transaction_id: str, owner: ProcessIdentity, description: str, missed: str
    ) -> None:
        own = (one for one in self.state.watches() if one.transaction_id == transaction_id)
        stands = any(one.whole_tree for one in own)
        self.settle(
            None,
            closing=transaction_id if stands or missed else None,
            description=description if stands else "",
            keeps_watching=True,
            doubt=_NOT_ENDED if stands else "",
            ended=NO_TASKS._replace(missed=missed),
            also=lambda: self.state.watch(transaction_id, [WHOLE_TREE], owner),
        )

    def _entry(self, transaction_id: str, session_id: str, kind: FileKind, **more: object) -> LedgerEntry:
        now = self._clock()
        document = {
            "id": new_id("ch", now),
            "kind": kind,
            "transaction_id": transaction_id,
            "session_id": session_id,
            "at": to_datetime(now),
            **more,
        }
        try:
            return LedgerEntry.model_validate(document)
        except ValidationError as error:
            raise invalid("transaction", error) from error

    # ── whose is it? ───────────────────────────────────────────────────────────────────────

    def settle(
        self,
        scope: Iterable[bytes] | None,
        *,
        closing: str | None = None,
        description: str = "",
        ending: Iterable[bytes] | None = None,
        keeps_watching: bool = False,
        doubt: str = "",
        ended: TasksEnded = NO_TASKS,
        also: Callable[[], None] | None = None,
    ) -> LedgerEntry | None:
        """Look at the files in scope, and put what differs down to whom it belongs.

        Where `closing` names a transaction, its watch ends with this, unless it `keeps_watching`; returns
        its entry. What was missed is said in it, even where nothing was seen to change.
        """
        watches = [one for one in self.state.watches() if self._is_sound(one.transaction_id)]
        looked = self.tree.moment() if scope is None else None
        differing, refreshed = self._compare(scope, watches)
        named = self._named_files() if differing and watches else no_named_files()
        named_files = {self.successor(name): files for name, files in named.items()}
        shares, users = self._shares(differing, watches, closing, named_files, doubt)
        shares = self._doubting_moves(shares, differing)
        differing = {**differing, **self._owned(differing, [path for one in shares.values() for path in one])}
        refreshed |= users
        mine = [
            self._change(owner, paths, differing, _doing(owner[0], closing, named_files) or description)
            for owner, paths in shares.items()
        ]
        # Its own comes last, with the rest, and of that what is certain.
        mine.sort(key=lambda one: (one[0].transaction_id == closing, not one[0].doubt))
        has_own = bool(mine) and mine[-1][0].transaction_id == closing
        is_told = closing is not None and not keeps_watching and (has_own or bool(self.glance.unseen))
        is_whole = scope is None or any(one.whole_tree for one in watches if one.transaction_id == closing)
        news = self.newly_uncovered(closing) if closing and is_told and is_whole else ()
        if closing and not has_own and (ended.missed or ended.is_noted or news):
            mine.append(self._change((closing, ""), [], {}, description))
        mine = [
            (entry.model_copy(update={"tasks": ended.tasks, "beside": ended.beside}), files)
            if entry.transaction_id == closing
            else (entry, files)
            for entry, files in mine
        ]
        if mine and mine[-1][0].transaction_id == closing:
            mine[-1] = mine[-1][0].changed(uncovered=(*news, *filter(None, [ended.missed]))), mine[-1][1]

        def rest() -> None:
            self._put_seen(refreshed)
            if closing and not keeps_watching:
                self.state.unwatch(closing, ending)
            if also is not None:
                also()
            self._note_what_left(shares, differing)
            if looked is not None:
                self.state.put_note(_LOOKED, looked)
                self.state.found_folders()
            self.state.put_note("size", self._size + self.repository.added)

        for entry, files in mine[:-1]:
            self.ledger.append(entry, files)
            fault_point("sidecar.shared")
        if mine:
            self.ledger.append(*mine[-1], rest)
        elif looked or refreshed or also or (closing and not keeps_watching) or self.repository.added:
            with self.state.change():
                rest()
        return mine[-1][0] if mine and mine[-1][0].transaction_id == closing else None

    def _shares(
        self,
        differing: Differing,
        watches: Sequence[Watch],
        closing: str | None,
        named_files: Mapping[str, NamedFiles],
        doubt: str,
    ) -> tuple[dict[tuple[str, str], list[bytes]], dict[bytes, KnownFile | None]]:
        """The paths by the transaction they belong to; and the user's own, which we only remember.

        `doubt` is about all of the closing one's.
        """
        if not watches:
            return {}, {path: now for path, (_, now) in differing.items()}
        shares: dict[tuple[str, str], list[bytes]] = {}
        users = {path: differing[path][1] for path in self._there_before(differing, watches)}

        def naming(path: bytes) -> dict[str, bool]:
            return {name: one.covers(path, differing) for name, one in named_files.items()}

        owners = _owners(
            {path: states for path, states in differing.items() if path not in users},
            lambda path: _owner(path, watches, closing, naming(path)),
            lambda path: any(path in one.paths for one in watches) or any(naming(path).values()),
        )
        for path, owner in owners.items():
            if owner is None:
                users[path] = differing[path][1]
            else:
                doubted = (owner[0], doubt) if doubt and owner[0] == closing else owner
                shares.setdefault(doubted, []).append(path)
        return shares, users

    def _doubting_moves(
        self, shares: Mapping[Owner, list[bytes]], differing: Differing
    ) -> dict[Owner, list[bytes]]:
        """A file that left one place as somebody else's change, or nobody's, and turned up in another as
        this one's was moved: whose its lines are cannot be told."""
        came = {
            path: now.oid
            for (_, doubt), paths in shares.items()
            for path in paths
            if not doubt and (now := differing[path][1]) and now.size and differing[path][0] is None
        }
        departed = self._departed(set(came.values()), shares, differing) if came else []
        is_moved = self._moves(len(came) * len(departed))
        found: dict[Owner, list[bytes]] = {}
        for (name, doubt), paths in shares.items():
            for path in paths:
                now = came.get(path)
                sources = [
                    place for place, oid, whose in departed if now and whose != name and is_moved(oid, now)
                ]
                told = f"it contains what was in {shown_path(sources[0])}" if sources else doubt
                found.setdefault((name, told), []).append(path)
        return found

    def _departed(
        self, oids: set[str], shares: Mapping[Owner, list[bytes]], differing: Differing
    ) -> list[Departed]:
        """Where these contents were and are not any more, with whose change that is, if it is anybody's."""
        whose = {path: name for (name, _), paths in shares.items() for path in paths}
        gone = [(path, old.oid) for path, (old, now) in differing.items() if old and now is None]
        gone += [
            (path, oid)
            for path, oid in self.state.paths_with(oids)
            if path not in differing and self.tree.size_of(path) is None
        ]
        noted: list[Departed] = self.state.note(_LEFT) or []
        return [*((encode_path(path), oid, whose.get(path)) for path, oid in gone), *noted]

    def _moves(self, pairs: int) -> Callable[[str, str], bool]:
        """Whether a file that came holds what one held that went, or most of its lines: somebody may have
        edited it in between. Of very many files only the same content tells."""

        @cache
        def lines_in(oid: str) -> frozenset[bytes]:
            if self.repository.has(oid):
                content = self.repository.read(oid)
            else:
                users_git = self.tree.users_git()
                content = next(iter(users_git.read_blobs([oid])), b"") if users_git else b""
            return frozenset(line for line in content.splitlines() if line.strip())

        def is_moved(old: str, now: str) -> bool:
            if old == now or pairs > _MOST_COMPARED:
                return old == now
            return 2 * len(lines_in(old) & lines_in(now)) > len(lines_in(old))

        return is_moved

    def _note_what_left(self, shares: Mapping[Owner, list[bytes]], differing: Differing) -> None:
        """For as long as others are at work, who may find it in another place."""
        if not self.state.watches():
            self.state.put_note(_LEFT, None)
            return
        left = [
            [encode_path(path), old.oid, name]
            for (name, _), paths in shares.items()
            for path in paths
            if (old := differing[path][0]) and differing[path][1] is None and old.size
        ]
        if left:
            self.state.put_note(_LEFT, [*(self.state.note(_LEFT) or []), *left][-_MOST_LEFT:])

    def uncovered(self) -> tuple[str, ...]:
        """What a record of the whole tree leaves out; to be asked after it was looked at."""
        if self._first_look is not None:
            listed = self._first_look.ignored
        else:
            users_git = self.tree.users_git()
            listed = users_git.list_ignored() if users_git else []
        ignored = [one for one in listed if is_ours(one)]
        names = {"ignored by git": ignored, "nested repository": self.glance.nested}
        for path, kind in self.glance.unseen.items():
            names.setdefault(kind, []).append(path)
        return tuple(f"{kind}: {_listed(found)}" for kind, found in names.items() if found)

    def newly_uncovered(self, transaction_id: str) -> tuple[str, ...]:
        """What its record does not say yet."""
        said = self.ledger.read(transaction_id).uncovered
        return tuple(one for one in self.uncovered() if one not in said)

    def _is_sound(self, transaction_id: str) -> bool:
        """A branch that was deleted or damaged by hand must not stand in everybody's way."""
        try:
            self.ledger.last(transaction_id)
        except HoldfastError as error:
            log.warning("%s", error.message)
            return False
        return True

    def _compare(
        self, scope: Iterable[bytes] | None, watches: Sequence[Watch]
    ) -> tuple[dict[bytes, tuple[KnownFile | None, KnownFile | None]], dict[bytes, KnownFile | None]]:
        """Files with another content than known (before, now), and those with only another stamp."""
        borrowed: Mapping[bytes, IndexedFile | None] = {}
        seen: Mapping[bytes, KnownFile] = {}
        if scope is None:
            self.glance.forget()
            rows = self.state.all_files()
            is_first = self.state.note(_LOOKED) is None and not any(one.whole_tree for one in watches)
            first = self.glance.first_look(self._clock(), self.state.keep_index) if is_first else None
            if first is not None:
                self._first_look, names = first
                borrowed = self._first_look.odd
                folders = self._first_look.folders
                seen = {name + b"/": known_folder(mode) for name, mode in folders.items()}
            else:
                names = self.glance.list_files(self._clock(), rows)
            paths: Collection[bytes] = {*names, *rows}
            if is_first:
                self._refuse_the_enormous(path for path in paths if not borrowed.get(path))
        else:
            listed = list(scope)
            paths = {*listed, *(folder for path in listed for folder in folders_above(path))}
            rows = {path: row for path in paths if (row := self.state.file(path)) is not None}
        differing: dict[bytes, tuple[KnownFile | None, KnownFile | None]] = {}
        refreshed: dict[bytes, KnownFile | None] = {}
        clock, look, saw = self._clock, self.tree.look, self.glance.saw
        knows_folders = self.state.knows_folders
        for path in sorted(paths):  # often many thousands
            before = rows.get(path)
            try:
                now = seen.get(path) or look(path, before, clock(), self.keep, borrowed)
            except UnreadableError as error:
                log.warning("not watched: %s", error.message)
                self.glance.unseen[path] = error.kind
                continue
            if now is not None:
                self.glance.unseen.pop(path, None)
            elif scope is None and self.glance.is_submodule(
                path, before, paths
            ):  # of a few names none can tell
                self.glance.unseen[path] = "submodule"
            saw(path, now)
            if now is not before and now != before:
                if same_content(before, now) or (path.endswith(b"/") and not knows_folders):
                    refreshed[path] = now
                else:
                    differing[path] = (before, now)
        self.glance.complete |= scope is None and self._first_look is None
        whole = scope is None
        return (differing if whole else _without_others_folders(differing, self.state.files_in)), refreshed

    def complete_first_look(self) -> None:
        """Take in file by file what the user's index said of the tree when it was first looked at."""
        first = self.state.first_look()
        if first is None:
            return
        rows = self.state.all_files()
        files = {path: row for path, row in rows.items() if row.stored == BORROWED}
        count = readable_count(first.indexed) or 0
        for position, name, _ in entries(first.indexed, count):
            if name not in first.odd and name not in rows and is_ours(name):
                ctime, mtime, inode, size = stamp_of(first.indexed, position)
                mode = first.modes[is_executable(first.indexed, position)]
                oid = oid_of(first.indexed, position)
                known = KnownFile(0, stat.S_IMODE(mode), oid, size, BORROWED, mtime, ctime, inode)
                more = self.tree.more_of(name, known) if count >= SHARED_FROM else ""
                files[name] = known._replace(more=more) if more else known
        users_git = self.tree.users_git()
        for path in users_git.wrong_sizes(files) if users_git else files:
            files[path] = self._content_then(path, files[path], users_git)
        with self.state.change():
            self.state.put_files(files)
            self.state.put_first_look(None)
        if count >= SHARED_FROM:
            self.state.shrink()

    def _content_then(self, path: bytes, known: KnownFile, users_git: UsersGit | None) -> KnownFile:
        """What a file held that git converts: its line ends, mostly. Read, unless it was changed since."""
        with suppress(UnreadableError):
            found = self.tree.look(path, None, self._clock(), self.keep)
            stamp = (known.mtime_ns, known.size, known.ctime_ns)
            if found and (found.mtime_ns, found.size, found.ctime_ns) == stamp:
                return found
        for data in users_git.read_blobs([known.oid]) if users_git else ():
            text = data.replace(b"\n", b"\r\n")
            if b"\r" not in data and len(text) == known.size and self.keep(text):
                return known._replace(oid=blob_id(text), stored=1)
        return known._replace(stored=0)

    def _put_seen(self, files: Mapping[bytes, KnownFile | None]) -> None:
        self.state.put_files(files)
        if self._first_look is not None:
            survey = self._first_look
            self.state.put_first_look(FirstLook(survey.index, frozenset(survey.odd), survey.modes))

    def _names_of(self, inode: int) -> list[bytes]:
        """Where a file stands that has several names; one that nobody has looked at yet is searched for."""
        inode_of = self.tree.inode_of
        known = [one for one in self.state.paths_of(inode) if inode_of(one) == inode]
        return known or [one for one in self.tree.list_files(self.tree.users_git()) if inode_of(one) == inode]

    def _there_before(self, differing: Differing, watches: Sequence[Watch]) -> list[bytes]:
        """Files that are new to us and not to the tree: git ignored them, and does not any more.

        The change time tells: nobody can set it, and it is older than the last look at the whole tree. A
        folder that is renamed keeps the times of its files; those are known by the ones that went. Nobody
        made such a file, so it is nobody's change, and no undo may remove it.
        """
        last = self.state.note(_LOOKED)
        if last is None:
            return []
        named = frozenset[bytes]().union(*(one.paths for one in watches))
        gone = {(old.oid, old.mtime_ns) for old, now in differing.values() if old and now is None}
        return [
            path
            for path, (old, now) in differing.items()
            if old is None
            and now is not None
            and path not in named
            and (now.oid, now.mtime_ns) not in gone
            and self.tree.is_older(path, last)
        ]

    def _refuse_the_enormous(self, paths: Iterable[bytes]) -> None:
        """Before all of it is read for the first time."""
        sizes = (self.tree.size_of(path) or 0 for path in paths if not path.endswith(b"/"))
        total = sum(size for size in sizes if size <= MOST_READ)
        if total > self._limits.largest_tree:
            raise CannotDoError(
                f"{self.tree.root} holds {total >> 20:,} MiB: too large to watch as a whole",
                hint="add generated files to .gitignore, or give the paths to watch",
            )

    def _change(
        self,
        owner: tuple[str, str],
        paths: Sequence[bytes],
        differing: Differing,
        description: str,
    ) -> tuple[LedgerEntry, dict[bytes, KnownFile | None]]:
        transaction_id, doubt = owner
        changes = tuple(
            PathChange(path=encode_path(path), before=before and before.state, after=now and now.state)
            for path in paths
            for before, now in (differing[path],)
        )
        last = self.ledger.last(transaction_id)
        entry = self._entry(
            transaction_id,
            last.session_id,
            "change",
            status=last.status,
            description=redact(description)[0],
            changes=changes,
            doubt=doubt,
        )
        return entry, {path: differing[path][1] for path in paths}

    def _owned(
        self, differing: Differing, paths: Iterable[bytes]
    ) -> dict[bytes, tuple[KnownFile | None, KnownFile | None]]:
        """These, with what the user's repository alone holds copied: its owner may drop it at any time."""
        own = self._copied(known for path in paths for known in differing[path])
        return {path: (own(differing[path][0]), own(differing[path][1])) for path in paths}

    def _copied(self, files: Iterable[KnownFile | None]) -> Callable[[KnownFile | None], KnownFile | None]:
        """Copy what is borrowed; returns what makes of a file one that is stored here, or is not."""
        borrowed = {known.oid for known in files if known and known.stored == BORROWED}
        kept = {oid for oid in borrowed if self.repository.has(oid)}
        users_git = self.tree.users_git() if borrowed - kept else None
        for data in users_git.read_blobs(borrowed - kept) if users_git else ():
            if self.keep(data):
                kept.add(blob_id(data))

        def own(known: KnownFile | None) -> KnownFile | None:
            return known._replace(stored=known.oid in kept) if known and known.oid in borrowed else known

        return own

    def keep(self, data: bytes) -> bool:
        if self._size + self.repository.added + len(data) > self._limits.total:
            return False
        with storage_errors("store the content of a file"):  # not taken for the file's own trouble
            self.repository.write("blob", data)
        return True

    # ── taking back ────────────────────────────────────────────────────────────────────────

    def restore(
        self,
        transaction: Transaction,
        kind: Literal["undo", "rollback"],
        entries: Sequence[LedgerEntry],
        *,
        partial: bool,
        doubtful: bool,
        files: Collection[str] | None = None,
        dry_run: bool = False,
    ) -> UndoOutcome:
        """Of all files, or of these; a dry run comes as far as it can without touching any."""
        touched = {change.path for one in entries for change in one.changes}
        unasked = dict.fromkeys(touched.difference(with_folders(files, touched)), _UNASKED)
        unsure = {c.path: one.doubt for one in entries if one.doubt and not doubtful for c in one.changes}
        unsure = {path: doubt for path, doubt in unsure.items() if path not in unasked}
        sure = {c.path for one in entries if doubtful or not one.doubt for c in one.changes}
        if unsure and not partial and sure <= unasked.keys():
            raise ConflictError(
                f"cannot tell which session made this change: {told_reasons(unsure)}",
                hint="review it with `holdfast tx show`; use --doubtful to undo it anyway",
            )
        status = status_after(
            transaction, kind, entries, is_followed=self.successor(transaction.id) != transaction.id
        )
        restoring = Restoring.planned(
            self,
            self._entry(transaction.id, transaction.session_id, kind, status=status),
            entries,
            unasked,
            unsure,
            status_before=transaction.status,
            partial=partial,
        )
        left = {**unsure, **restoring.left}
        left = {path: reason for path, reason in left.items() if path not in unasked}
        if not partial and (restoring.is_blocked or (left and not restoring.steps)):
            blocking = {path: reason for path, reason in left.items() if path not in unsure} or left
            raise ConflictError(
                f"cannot be undone without losing changes: {told_reasons(blocking)}",
                hint=f"nothing was changed; {way_around(len(told(step.path for step in restoring.steps)))}",
            )
        if entries and not (restoring.steps or left or any(one.id for one in entries)):
            raise IllegalTransitionError(
                "the files no longer hold these lines: they have already been undone",
                hint="nothing was changed",
            )
        if dry_run:
            planned = tuple(step.path for step in restoring.steps)
            return UndoOutcome(restoring.entry, planned, left, frozenset(unsure))
        with self.state.change():
            restoring.note(self.state)
        fault_point("sidecar.intended")
        done = self._carry_out(restoring)
        left = {path: reason for path, reason in {**unsure, **done.left}.items() if path not in unasked}
        return replace(done, left=left, in_doubt=frozenset(unsure))

    def _carry_out(self, restoring: Restoring) -> UndoOutcome:
        entry, files = restoring.carry_out(self.tree, self.repository, self._clock, self._names_of)
        if entry.kind == "rollback":
            self._begin_successor(entry)

        def forget() -> None:
            restoring.forget(self.state)
            if entry.kind == "rollback":
                self.state.unwatch(entry.transaction_id)

        self.ledger.append(entry, files, forget)
        return UndoOutcome(entry, tuple(change.path for change in entry.changes), restoring.left)

    def _begin_successor(self, rollback: LedgerEntry) -> None:
        """What is changed from here on by another process that works in the transaction is of another one.

        Who rolls back what it watches itself has come to its end with that.
        """
        name = rollback.transaction_id
        watch = next((one for one in self.state.watches() if one.transaction_id == name), None)
        if watch is None or not watch.whole_tree or watch.abandoned:
            return
        if watch.owners == (identify(os.getpid()),):
            return
        chosen = self.free_name(rollback.session_id)
        missing = self.ledger.read(name).uncovered

        def go_on() -> None:
            self.state.put_note(f"{FOLLOWED} {name}", chosen)
            for owner in watch.owners:
                self.state.watch(chosen, [WHOLE_TREE], owner)
            self.state.unwatch(name)

        self.ledger.append(self._entry(chosen, rollback.session_id, "begin", uncovered=missing), {}, go_on)

    def look_again(self, paths: Iterable[bytes]) -> dict[bytes, KnownFile | None]:
        """How these files are now, with what the user did to them taken in."""
        names = list(paths)
        self.settle(names)
        found = {path: self.state.file(path) for path in names}
        own = self._copied(found.values())
        return {path: own(known) for path, known in found.items()}

    # ── room ───────────────────────────────────────────────────────────────────────────────

    def room_is_short(self) -> bool:
        collected = int(self.state.note("collected") or 0)
        return self._size > self._limits.total * 0.9 or self._size - collected > self._limits.collect_after

    def collect(self) -> None:
        found = self.sound_transactions()
        finished = [one for one in found if one.status != "in-progress" and FORKED not in one.id]
        finished.sort(key=lambda one: one.updated)
        oldest = self._clock() - self._limits.keep_days * 86_400
        while finished and finished[0].updated.timestamp() < oldest:
            self.ledger.delete(finished.pop(0).id)
        self._repack()
        while finished and self._size > self._limits.total * 0.8:
            for one in finished[: (len(finished) + 1) // 2]:
                self.ledger.delete(one.id)
            del finished[: (len(finished) + 1) // 2]
            self._repack()
        for one in sorted(found, key=lambda one: one.updated):
            origin = origin_of(one.id)
            if origin is not None and not self.ledger.family(origin[0]):
                self.ledger.delete(one.id)

    def _repack(self) -> None:
        known = (one for one in self.state.all_files().values() if one.link != FOLDER_KIND)
        self.repository.repack(one.oid for one in known if one.stored and one.stored != BORROWED)
        self._size = self.repository.size()
        with self.state.change():
            self.state.put_note("size", self._size)
            self.state.put_note("collected", self._size)


def _doing(name: str, closing: str | None, named_files: Mapping[str, NamedFiles]) -> str:
    """What a session other than the closing one does; empty where it named no file."""
    return named_files[name].description if name != closing and name in named_files else ""


def _owner(
    path: bytes, watches: Sequence[Watch], closing: str | None, naming: Mapping[str, bool]
) -> tuple[str, str] | None:
    """The transaction a change belongs to, and why that is in doubt, if it is.

    Who named the file, in its watch or to a tool, comes before who watches everything. `naming`: whether
    it did to a tool, of every session that tells.
    """
    named = [one for one in watches if path in one.paths or naming.get(one.transaction_id)]
    candidates = named or [one for one in watches if one.whole_tree]
    if not candidates:
        return None
    chosen = next((one for one in candidates if one.transaction_id == closing), candidates[0])
    others = [one.transaction_id for one in candidates if one is not chosen]
    if chosen.abandoned and chosen.transaction_id != closing:
        return chosen.transaction_id, "its session ended unexpectedly"
    if others:
        return chosen.transaction_id, f"{', '.join(others)} was also watching it"
    return chosen.transaction_id, "" if named or chosen.transaction_id not in naming else _ONLY_SEEN


def _owners(
    changed: Differing,
    owner_of: Callable[[bytes], Owner | None],
    is_named: Callable[[bytes], bool],
) -> dict[bytes, Owner | None]:
    """Whose each is. The names that a file had all along are of whoever is known to have changed it under
    one of them, not so a new one; a folder that came or went goes with what came or went in it."""
    found = {path: owner_of(path) for path in changed}
    shared = {path: now.inode for path, (_, now) in changed.items() if now and now.names > 1}
    certain = {inode: owner for path, inode in shared.items() if (owner := found[path]) and not owner[1]}
    for path, inode in shared.items():
        if found[path] and inode in certain and _is_same_file(*changed[path]) and not is_named(path):
            found[path] = certain[inode]
    inside: dict[bytes, Owner] = {}
    for path in sorted(changed, key=lambda one: bool((owner := found[one]) and owner[1]), reverse=True):
        owner = found[path]
        if owner and not path.endswith(b"/"):
            inside.update(dict.fromkeys(folders_above(path), owner))
    return {path: inside.get(path, owner) for path, owner in found.items()}


def _is_same_file(before: KnownFile | None, now: KnownFile | None) -> bool:
    """Whether a name stands for the file it stood for; git's index keeps less of the inode than the disk."""
    return before is not None and now is not None and not (before.inode ^ now.inode) & 0xFFFFFFFF


def _without_others_folders(
    differing: Differing, files_in: Callable[[bytes], list[bytes]]
) -> dict[bytes, tuple[KnownFile | None, KnownFile | None]]:
    """A folder that went with files that were not looked at is told with those."""
    return {
        path: states
        for path, states in differing.items()
        if not path.endswith(b"/")
        or states[1] is not None
        or all(file in differing for file in files_in(path))
    }


def _listed(names: Sequence[bytes], most: int = 5) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(shown_path(encode_path(name)) for name in names[:most]) + more
