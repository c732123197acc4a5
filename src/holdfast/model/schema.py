"""Versions of what we store: each with a sentence, and the step that brings an older one up.

    from the future   refused at once, with what to do
    older             migrated step by step, then validated
    not ours          damaged: the caller sets it aside

To change a stored shape: add a version here with its sentence and its step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.base.errors import DamagedDataError, NewerSchemaError

Document = dict[str, Any]
Step = Callable[[Document], Document]


@dataclass(frozen=True)
class Schema:
    name: str
    versions: Mapping[int, str]
    steps: Mapping[int, Step] = field(default_factory=dict[int, Step])
    unmarked: int | None = None
    """The version of documents that carry no `schema_version`, if there ever were such."""

    @property
    def current(self) -> Any:
        return max(self.versions)

    def upgrade(self, document: Document, *, where: str) -> Document:
        """The document in today's shape."""
        version = self._version_of(document, where)
        if version > self.current:
            raise NewerSchemaError(
                f"{where} is a {self.name} of version {version}; "
                f"this holdfast knows versions up to {self.current}"
            )
        while version < self.current:
            document = self.steps[version](document)
            version += 1
            document["schema_version"] = version
        return document

    def _version_of(self, document: Document, where: str) -> int:
        version = document.get("schema_version", self.unmarked)
        if isinstance(version, bool) or not isinstance(version, int) or version < min(self.versions):
            raise DamagedDataError(f"{where} is no {self.name}: schema_version is {version!r}")
        return version


SNAPSHOT_SCHEMA = Schema(
    "snapshot", {1: "tasks, git, findings, tests, usage, journal section, file fingerprints"}
)


def _item_session_1_to_2(document: Document) -> Document:
    """mtimes were float seconds and hashes bare; the continued transaction had no place of its own."""
    files = {
        path: {
            "path": path,
            "hash": f"sha256:{old['checksum']}",
            "mtime_ns": round(_seconds(old["timestamp"]) * 1_000_000_000),
            "size": old["size"],
        }
        for path, old in document.get("file_snapshot", {}).items()
    }
    return {**document, "file_snapshot": files}


def _seconds(timestamp: float) -> float:
    """One of the two old writers counted milliseconds; no file is from the year 5000."""
    return timestamp / 1000 if timestamp > 100_000_000_000 else timestamp


ITEM_SESSION_SCHEMA = Schema(
    "item session",
    {
        1: "unmarked files: float timestamps, bare checksums",
        2: "nanosecond timestamps, hashes that name their algorithm, schema_version",
    },
    {1: _item_session_1_to_2},
    unmarked=1,
)
