"""Transactions as branches of entries: appended to, folded, never rewritten; and as documents for others."""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.base.errors import ConflictError, DamagedDataError, HoldfastError, NotFoundError
from holdfast.base.faults import fault_point
from holdfast.model.base import Schema, explain
from holdfast.model.git import decode_path, encode_path
from holdfast.undo.objects import Repository, TreeEntry, blob_id
from holdfast.undo.state import (
    MANIFEST_SCHEMA,
    FileState,
    KnownFile,
    LedgerEntry,
    PathChange,
    State,
    Status,
    from_message,
    to_message,
    told,
)
from holdfast.undo.worktree import checked_path

log = logging.getLogger("holdfast.sidecar")

_PUBLISH = "publish"
_ORDER = "order"
FOLLOWED = "followed"
"""Note of a transaction that was rolled back at work: the one in which its session goes on."""


@dataclass(frozen=True)
class Transaction:
    """A fold over the entries."""

    id: str
    session_id: str
    status: Status
    began: datetime
    updated: datetime
    entries: tuple[LedgerEntry, ...]
    standing: Mapping[str, frozenset[str]]
    """The entries whose effect was not taken back, or not in all files: id to the paths that stand."""
    continued_from: str | None

    @property
    def changes(self) -> tuple[LedgerEntry, ...]:
        """The changes that stand, each with the files in which it does."""
        return tuple(
            self.standing_part(one)
            for one in self.entries
            if one.kind == "change" and one.id in self.standing and one.changes
        )

    @property
    def paths(self) -> list[str]:
        """The files in which a change stands, and the folders that none of these tells of."""
        return told({change.path for entry in self.changes for change in entry.changes})

    def newest(self, *, doubtful: bool) -> LedgerEntry | None:
        """The last change that stands, of the certain ones first."""
        certain = [one for one in self.changes if doubtful or not one.doubt]
        return next(iter((certain or self.changes)[::-1]), None)

    @property
    def uncovered(self) -> tuple[str, ...]:
        """What is not recorded, each kind once, with all the names that were ever said of it."""
        said: dict[str, dict[str, None]] = {}
        for one in (one for entry in self.entries for one in entry.uncovered):
            kind, _, names = one.partition(": ")
            said.setdefault(kind, {}).update(dict.fromkeys(names.split(", ") if names else ()))
        return tuple(": ".join(filter(None, (kind, ", ".join(names)))) for kind, names in said.items())

    @property
    def summary(self) -> dict[str, Any]:
        """What lists say of it, here and through the server."""
        return {
            "id": self.id,
            "session_id": self.session_id,
            "status": self.status,
            "began": self.began,
            "updated": self.updated,
            "changes": len(self.changes),
            "files": tuple(self.paths),
            "continued_from": self.continued_from,
            "not_covered": self.uncovered,
        }

    @property
    def net_changes(self) -> tuple[PathChange, ...]:
        """Of each file how it was before the first change that stands, and after the last.

        Where somebody else changed it in between, what stands before and after that is told apart: their
        lines are none of this transaction's.
        """
        runs: dict[str, list[PathChange]] = {}
        for change in (change for entry in self.changes for change in entry.changes):
            run = runs.setdefault(change.path, [])
            if run and run[-1].after == change.before:
                run[-1] = PathChange(path=change.path, before=run[-1].before, after=change.after)
            else:
                run.append(change)
        return tuple(change for path in sorted(runs) for change in runs[path])

    @property
    def last_undo(self) -> LedgerEntry | None:
        """What a redo takes back: the last undo or rollback that stands and is not itself a redo."""
        redoes: dict[str, bool] = {}
        for entry in self.entries:
            if entry.kind in ("undo", "rollback"):
                redoes[entry.id] = any(not redoes.get(name, True) for name in entry.undoes)
        found = [one for one in self.entries if redoes.get(one.id) is False and self.standing.get(one.id)]
        return found[-1] if found else None

    def standing_part(self, entry: LedgerEntry) -> LedgerEntry:
        paths = self.standing[entry.id]
        return entry.changed(changes=tuple(one for one in entry.changes if one.path in paths))


def fold(entries: Sequence[LedgerEntry]) -> Transaction:
    standing: dict[str, set[str]] = {}
    taken: dict[str, dict[str, set[str]]] = {}
    """Entry to what it took back: of which entry, and in which files."""
    for entry in entries:
        taken[entry.id] = {
            undone: standing[undone].difference(entry.left) for undone in entry.undoes if undone in standing
        }
        for undone, paths in taken[entry.id].items():
            _take_back(undone, paths, standing, taken)
        standing[entry.id] = {change.path for change in entry.changes}.union(*taken[entry.id].values())
    first, last = entries[0], entries[-1]
    return Transaction(
        first.transaction_id,
        first.session_id,
        last.status,
        first.at,
        last.at,
        tuple(entries),
        {entry.id: frozenset(standing[entry.id]) for entry in entries if entry.id in standing},
        first.continued_from,
    )


def _take_back(
    undone: str, paths: set[str], standing: dict[str, set[str]], taken: Mapping[str, Mapping[str, set[str]]]
) -> None:
    """To take back an undoing is to bring its subjects back, and what those had taken back goes again."""
    waiting = [(undone, paths, False)]
    while waiting:
        name, some, stands = waiting.pop()
        before = standing.pop(name, set[str]())
        now = before | some if stands else before - some
        if now:
            standing[name] = now
        waiting += [
            (subject, both, not stands) for subject, its in taken[name].items() if (both := its & some)
        ]


def branch_of(transaction_id: str) -> str:
    return f"session-{transaction_id}"


Cache = dict[str, tuple[str | None, LedgerEntry]]
"""Commit to parent and entry: a commit never changes, so what was read once is good for ever."""

_MOST_CACHED = 1_000


class Ledger:
    def __init__(self, repository: Repository, state: State, cache: Cache) -> None:
        self._repository = repository
        self._state = state
        self._cache = cache

    def ids(self) -> list[str]:
        return [name.removeprefix("session-") for name in self._repository.branches()]

    def family(self, name: str) -> list[str]:
        """Ids that are this name or begin with it and a dash, the one begun last at the end."""
        found = [one for one in self.ids() if one == name or one.startswith(f"{name}-")]
        return sorted(found, key=lambda one: (*self.place(one), len(one), one))

    def place(self, transaction_id: str) -> tuple[int, datetime]:
        """Sorts transactions, the one changed last at the end, whatever the clock said. Where the state was
        lost, and for what an earlier version recorded, only the time is known."""
        number = self._state.note(f"{_ORDER} {branch_of(transaction_id)}")
        return number or 0, self.last(transaction_id).at

    def exists(self, transaction_id: str) -> bool:
        return self._repository.branch(branch_of(transaction_id)) is not None

    def last(self, transaction_id: str) -> LedgerEntry:
        """The newest entry; it costs the same however many there are."""
        return self._entry(transaction_id, self._tip(transaction_id))[1]

    def read(self, transaction_id: str) -> Transaction:
        oid: str | None = self._tip(transaction_id)
        entries: list[LedgerEntry] = []
        while oid is not None:
            oid, entry = self._entry(transaction_id, oid)
            entries.append(entry)
        return fold(entries[::-1])

    def _tip(self, transaction_id: str) -> str:
        oid = self._repository.branch(branch_of(transaction_id))
        if oid is None:
            raise NotFoundError(
                f"transaction branch not found: {transaction_id}; it may have been deleted by hand",
                hint="`holdfast tx list` shows the transactions; start over with --new",
            )
        return oid

    def _entry(self, transaction_id: str, oid: str) -> tuple[str | None, LedgerEntry]:
        if oid not in self._cache:
            parent, message = self._repository.read_commit(oid)
            entry = from_message(message, where=f"entry {oid[:12]} of transaction {transaction_id}")
            self._remember(oid, parent, entry)
        return self._cache[oid]

    def _remember(self, oid: str, parent: str | None, entry: LedgerEntry) -> None:
        if len(self._cache) >= _MOST_CACHED:
            self._cache.clear()
        self._cache[oid] = (parent, entry)

    def append(
        self,
        entry: LedgerEntry,
        files: Mapping[bytes, KnownFile | None],
        also: Callable[[], None] = lambda: None,
        *,
        number: int = 0,
    ) -> None:
        """Add an entry, and take over `files` as what is known, in one step that a crash cannot split.

        `number` is its place, where that was reserved; else it is the last.
        """
        branch = branch_of(entry.transaction_id)
        old = self._repository.branch(branch)
        last = self._last_number()
        number = number or last + 1
        undone = entry.kind in ("undo", "rollback") or bool(old and self.last(entry.transaction_id).undone)
        entry = entry.model_copy(update={"number": number, "undone": undone})
        tree = self._repository.write_tree(_tree_of(entry.changes))
        new = self._repository.write_commit(tree, old, entry.at.timestamp(), to_message(entry))
        fault_point("sidecar.written")
        with self._state.change():
            for path, known in files.items():
                self._state.put_file(path, known)
            also()
            self._state.put_note(_ORDER, max(last, number))
            self._state.put_note(f"{_ORDER} {branch}", number)
            self._state.put_branch(branch, new)
            self._state.put_note(_PUBLISH, [branch, old, new])
        fault_point("sidecar.promised")
        self._repository.move_branch(branch, old, new)
        self._remember(new, old, entry)
        fault_point("sidecar.published")

    def reserve(self, count: int) -> int:
        """The first of so many places, which no other entry gets."""
        last = self._last_number()
        with self._state.change():
            self._state.put_note(_ORDER, last + count)
        return last + 1

    def _last_number(self) -> int:
        """Where the state was lost, the branches tell."""
        number = self._state.note(_ORDER)
        return max((self.last(one).number for one in self.ids()), default=0) if number is None else number

    def after_power_cut(self) -> None:
        """Write again what may not have reached the disk."""
        for oid, packed in self._state.unsynced().items():
            self._repository.write_loose(oid, packed)
        for branch, oid in self._state.branches().items():
            self._repository.set_branch(branch, oid)

    def checkpoint(self) -> None:
        """Sync what the state has been keeping for the disk's sake."""
        self._repository.sync(self._state.unsynced())
        with self._state.change():
            self._state.all_synced()

    def recover(self) -> None:
        """Move the branch that a crash kept from being moved."""
        promised = self._state.note(_PUBLISH)
        if promised is None:
            return
        try:
            self._repository.move_branch(*promised)
        except ConflictError as error:
            log.warning("%s", error.message)
            with self._state.change():
                self._state.put_note(_PUBLISH, None)

    def delete(self, transaction_id: str) -> None:
        with self._state.change():
            self._state.unwatch(transaction_id)
            self._state.put_note(_PUBLISH, None)
            self._state.put_note(f"{_ORDER} {branch_of(transaction_id)}", None)
            self._state.put_note(f"{FOLLOWED} {transaction_id}", None)
            self._state.put_branch(branch_of(transaction_id), None)
        self._repository.delete_branch(branch_of(transaction_id))


def _tree_of(changes: Sequence[PathChange]) -> list[TreeEntry]:
    """Every blob under a name of its own: numbered, since a path is no name, and easy on the eye."""
    entries: list[TreeEntry] = []
    for number, change in enumerate(changes):
        sides: tuple[tuple[bytes, FileState | None], ...] = (
            (b"before", change.before),
            (b"after", change.after),
        )
        readable = decode_path(change.path).replace(b"/", b"%2F")[-150:]
        for side, state in sides:
            if state is not None and state.blob:
                name = b"%06d.%s.%s" % (number, side, readable)
                entries.append((state.git_mode, name, state.oid))
    return entries


# ── carried to another project ────────────────────────────────────────────────────────────────────

# A transaction as one document, and what such a document must stand up to.
#
# It may come from anybody, and undoing what it tells writes files: so every path must be one that we would
# watch ourselves, every blob must be what its id says, and nothing may be missing or left over.

CARRIED_SCHEMA = Schema("carried transaction", {1: "entries, and the blobs they name in base64"})


@dataclass(frozen=True)
class CarriedTransaction:
    entries: tuple[LedgerEntry, ...]
    blobs: Mapping[str, bytes]

    @property
    def id(self) -> str:
        return self.entries[0].transaction_id

    @property
    def size(self) -> int:
        return sum(map(len, self.blobs.values()))

    def numbered(self, numbers: Mapping[str, int]) -> CarriedTransaction:
        return CarriedTransaction(
            tuple(one.changed(number=numbers[one.id]) for one in self.entries), self.blobs
        )

    def since(self, known: Transaction, new_entry_id: Callable[[], str]) -> CarriedTransaction | None:
        """What was done to it after what is known of it; None where that is nothing, or not all of it."""
        count = len(known.entries)
        then, rest = self.entries[:count], self.entries[count:]
        if not rest or [(one.kind, one.at) for one in then] != [(one.kind, one.at) for one in known.entries]:
            return None
        own = {one.id: here.id for one, here in zip(then, known.entries, strict=True)}
        is_renamed = any(old != new for old, new in own.items())
        own |= {one.id: new_entry_id() if is_renamed else one.id for one in rest}
        changes = [(own[one.id], tuple(own[name] for name in one.undoes)) for one in rest]
        return CarriedTransaction(
            tuple(
                one.changed(id=name, transaction_id=known.id, undoes=undoes)
                for one, (name, undoes) in zip(rest, changes, strict=True)
            ),
            self.blobs,
        )

    def renamed(
        self, transaction_id: str, new_entry_id: Callable[[], str], ids: Mapping[str, str]
    ) -> CarriedTransaction:
        """Under another name, with new names for its entries, too; `ids` are new names of others."""
        own = {entry.id: new_entry_id() for entry in self.entries}
        return CarriedTransaction(
            tuple(
                entry.changed(
                    id=own[entry.id],
                    transaction_id=transaction_id,
                    undoes=tuple(own[name] for name in entry.undoes),
                    continued_from=ids.get(entry.continued_from or "", entry.continued_from),
                )
                for entry in self.entries
            ),
            self.blobs,
        )


def to_document(transaction: Transaction, read: Callable[[str], bytes]) -> bytes:
    blobs = {state.oid: read(state.oid) for entry in transaction.entries for state in _stored(entry)}
    document = {
        "schema_version": CARRIED_SCHEMA.current,
        "entries": [entry.model_dump(mode="json") for entry in transaction.entries],
        "blobs": {oid: base64.b64encode(data).decode() for oid, data in blobs.items()},
    }
    return json.dumps(document).encode()


def from_document(document: dict[str, Any], root: Path, *, where: str) -> CarriedTransaction:
    """`DamagedDataError` with the reason, for anything wrong about it."""
    upgraded = CARRIED_SCHEMA.upgrade(document, where=where)
    try:
        entries = tuple(
            LedgerEntry.model_validate(MANIFEST_SCHEMA.upgrade(dict(one), where=where))
            for one in upgraded["entries"]
        )
        blobs = {
            str(oid): base64.b64decode(data, validate=True) for oid, data in dict(upgraded["blobs"]).items()
        }
    except ValidationError as error:
        raise DamagedDataError(f"{where}: {explain(error)}") from error
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise DamagedDataError(f"{where} is not a transaction: {error}") from error
    carried = CarriedTransaction(tuple(map(_undressed, entries)), blobs)
    _check_entries(carried, where)
    _check_blobs(carried, where)
    for entry in entries:
        for change in entry.changes:
            _check_path(change, root, where)
    return carried


def _check_entries(carried: CarriedTransaction, where: str) -> None:
    entries = carried.entries
    if not entries or entries[0].kind != "begin":
        raise DamagedDataError(f"{where} has no first entry")
    if {entry.transaction_id for entry in entries} != {carried.id}:
        raise DamagedDataError(f"{where} contains several transactions")
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen or not seen.issuperset(entry.undoes):
            raise DamagedDataError(f"{where}: entry {entry.id[:40]} is inconsistent with the others")
        seen.add(entry.id)


def _check_blobs(carried: CarriedTransaction, where: str) -> None:
    named: set[str] = set()
    if any(state.permissions > 0o777 for entry in carried.entries for state in _states(entry)):
        raise DamagedDataError(f"{where}: a file would run as another user")
    for state in (state for entry in carried.entries for state in _stored(entry)):
        data = carried.blobs.get(state.oid)
        if data is None or len(data) != state.size:
            raise DamagedDataError(f"{where}: the content {state.oid} does not match its id")
        named.add(state.oid)
    if named != set(carried.blobs) or any(blob_id(data) != oid for oid, data in carried.blobs.items()):
        raise DamagedDataError(f"{where}: contents do not match their ids")


def _undressed(entry: LedgerEntry) -> LedgerEntry:
    """Without owners and extended attributes: they are another machine's, and may give rights."""

    def plain(state: FileState | None) -> FileState | None:
        return state and state.changed(owner=None, attributes={})

    return entry.changed(
        changes=tuple(one.changed(before=plain(one.before), after=plain(one.after)) for one in entry.changes)
    )


def _check_path(change: PathChange, root: Path, where: str) -> None:
    path, states = change.path, [one for one in (change.before, change.after) if one]
    try:
        name = decode_path(path)
        if any(state.folder != name.endswith(b"/") for state in states):
            raise DamagedDataError("its name and its kind do not fit")
        plain = name.removesuffix(b"/")
        if b"\0" in name or checked_path(root, plain) != plain or encode_path(name) != path:
            raise DamagedDataError("it points outside the project")
    except (HoldfastError, ValueError) as error:
        raise DamagedDataError(f"{where}: {path[:80]!r} is not a path in a project: {error}") from error


def _states(entry: LedgerEntry) -> list[FileState]:
    sides = [state for change in entry.changes for state in (change.before, change.after)]
    return [state for state in sides if state is not None]


def _stored(entry: LedgerEntry) -> list[FileState]:
    return [state for state in _states(entry) if state.blob]


def status_after(
    transaction: Transaction, kind: str, undone: Sequence[LedgerEntry], *, is_followed: bool
) -> Status:
    """`is_followed`: whoever worked in it goes on in another one, and it is not in progress again."""
    if kind == "rollback":
        return "rolled-back"
    undone_ids = {entry.id for entry in undone}
    rollbacks = {one.id for one in transaction.entries if one.kind == "rollback"}
    standing = rollbacks & transaction.standing.keys()
    if standing.isdisjoint(undone_ids):
        return transaction.status
    if standing - undone_ids:
        return "rolled-back"
    if is_followed:
        return "committed"
    before: Status = "in-progress"
    for entry in transaction.entries:
        if entry.id in standing:
            break
        before = before if entry.status == "rolled-back" else entry.status
    return before
