"""What one entry of a transaction says: which files it found, and what it left.

An entry is a commit. Its message carries this document, its tree the blobs that the document names,
so that git itself keeps them. Nothing is ever taken out of a transaction: undoing adds an entry.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, ValidationError

from holdfast.base.errors import DamagedDataError
from holdfast.model.base import Schema, Value, explain

MANIFEST_SCHEMA = Schema("side-car entry", {1: "files before and after, what it undoes, what is in doubt"})

Kind = Literal["begin", "change", "undo", "rollback", "commit"]
Status = Literal["in-progress", "committed", "rolled-back"]
TransactionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]


class FileState(Value):
    """A file or a link. A path with nothing there has no state: None."""

    link: bool = False
    permissions: int = Field(ge=0, le=0o7777)
    oid: str = Field(pattern=r"^[0-9a-f]{40}$")
    size: int = Field(ge=0)
    stored: bool = Field(
        default=True, description="False where it was too large to keep; it may have been set aside"
    )

    @property
    def git_mode(self) -> str:
        if self.link:
            return "120000"
        return "100755" if self.permissions & 0o100 else "100644"

    def same_content(self, other: FileState | None) -> bool:
        return other is not None and (self.link, self.oid) == (other.link, other.oid)

    def same_as(self, other: FileState | None) -> bool:
        return other is not None and self.same_content(other) and self.permissions == other.permissions


def same(one: FileState | None, other: FileState | None) -> bool:
    return other is None if one is None else one.same_as(other)


class PathChange(Value):
    path: str
    before: FileState | None
    after: FileState | None


class Entry(Value):
    schema_version: Literal[1] = MANIFEST_SCHEMA.current
    id: str
    kind: Kind
    transaction_id: TransactionId
    session_id: str
    status: Status = Field(default="in-progress", description="Of the transaction from here on")
    at: AwareDatetime
    description: str = ""
    changes: tuple[PathChange, ...] = ()
    undoes: tuple[str, ...] = Field(
        default=(), description="Entries whose effect this one took back, but for the paths in `left`"
    )
    doubt: str = Field(default="", description="Why it cannot be told that this was the session's own change")
    left: tuple[str, ...] = Field(default=(), description="Paths that were left as they are")
    continued_from: str | None = Field(default=None, description="The committed transaction before this one")

    @property
    def renames(self) -> dict[str, str]:
        """New path to old, where content left one place and appeared in another."""
        gone = {c.before.oid: c.path for c in self.changes if c.before and not c.after and c.before.size}
        return {
            c.path: gone[c.after.oid]
            for c in self.changes
            if c.after and not c.before and c.after.oid in gone
        }


def to_message(entry: Entry) -> str:
    subject = " ".join(f"{entry.kind}: {entry.description}".split())[:72].rstrip(": ")
    return f"{subject}\n\n{entry.model_dump_json(exclude_defaults=False)}"


def from_message(message: str, *, where: str) -> Entry:
    try:
        document: Any = json.loads(message.partition("\n\n")[2])
        if not isinstance(document, dict):
            raise DamagedDataError(f"{where} is no entry of a transaction")
        return Entry.model_validate(MANIFEST_SCHEMA.upgrade(document, where=where))  # type: ignore[arg-type]
    except ValidationError as error:
        raise DamagedDataError(f"{where} is damaged: {explain(error)}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedDataError(f"{where} is damaged: {error}") from error
