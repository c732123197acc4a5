"""A transaction as one document, to be taken to another project, and what such a document must stand up to.

It may come from anybody, and undoing what it tells writes files: so every path must be one that we would
watch ourselves, every blob must be what its id says, and nothing may be missing or left over.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.base.errors import DamagedDataError, HoldfastError
from holdfast.model.base import Schema, explain
from holdfast.model.git import decode_path, encode_path
from holdfast.undo.ledger import Transaction
from holdfast.undo.state import MANIFEST_SCHEMA, FileState, LedgerEntry, PathChange
from holdfast.undo.worktree import blob_id, checked_path

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
