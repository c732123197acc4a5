"""What all stored values share: frozen, strict about names, errors in plain words, and a schema version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.base.errors import DamagedDataError, InvalidInputError, NewerSchemaError
from holdfast.base.redact import redact


class Value(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_inf_nan="constants",
        json_schema_serialization_defaults_required=True,  # what we write has every field
    )

    def changed(self, **changes: Any) -> Self:
        """A copy with these fields changed, validated like any other."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}  # and nothing cached
        return type(self).model_validate({**fields, **changes})

    def without_secrets(self) -> Self:
        """Itself, or where it holds a secret a copy with `[redacted:…]` in its place."""
        clean, found = redact(self.model_dump_json())
        return type(self).model_validate_json(clean) if found else self


def explain(error: ValidationError, *, most: int = 3) -> str:
    """`tasks.3.id: Field required; …`: where and what, in one line."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}" for fault in error.errors()[:most]
    ]
    left = error.error_count() - most
    return "; ".join(faults) + (f"; and {left} more" if left > 0 else "")


def invalid(what: str, error: ValidationError) -> InvalidInputError:
    return InvalidInputError(f"{what}: {explain(error)}")


# ── schema versions ───────────────────────────────────────────────────────────────────────────────

# Versions of what we store: each with a sentence, and the step that brings an older one up.
#
# from the future   refused at once, with what to do
# older             migrated step by step, then validated
# not ours          damaged: the caller sets it aside
#
# To change a stored shape: add a version here with its sentence and its step.

Document = dict[str, Any]
UpgradeStep = Callable[[Document], Document]


@dataclass(frozen=True)
class Schema:
    name: str
    versions: Mapping[int, str]
    steps: Mapping[int, UpgradeStep] = field(default_factory=dict[int, UpgradeStep])
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
                f"this holdfast supports versions up to {self.current}"
            )
        while version < self.current:
            document = self.steps[version](document)
            version += 1
            document["schema_version"] = version
        return document

    def _version_of(self, document: Document, where: str) -> int:
        version = document.get("schema_version", self.unmarked)
        if isinstance(version, bool) or not isinstance(version, int) or version < min(self.versions):
            raise DamagedDataError(f"{where} is not a valid {self.name}: schema_version is {version!r}")
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
