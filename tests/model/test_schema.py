"""Versions of stored shapes: newer fails fast, older is brought up, what is not ours is damage."""

from __future__ import annotations

import pytest

from holdfast.base.errors import DamagedDataError, NewerSchemaError
from holdfast.model.base import ITEM_SESSION_SCHEMA, SNAPSHOT_SCHEMA, Document, Schema


def renamed(document: Document) -> Document:
    return {"name": document["title"], "schema_version": document.get("schema_version")}


def doubled(document: Document) -> Document:
    return {**document, "name": document["name"] * 2}


THREE = Schema("note", {1: "a title", 2: "a name", 3: "a name twice"}, {1: renamed, 2: doubled}, unmarked=1)
MARKED = Schema("note", {1: "a title"})


@pytest.mark.parametrize(
    ("document", "upgraded"),
    [
        ({"schema_version": 1, "title": "a"}, {"schema_version": 3, "name": "aa"}),
        ({"title": "a"}, {"schema_version": 3, "name": "aa"}),
        ({"schema_version": 2, "name": "a"}, {"schema_version": 3, "name": "aa"}),
        ({"schema_version": 3, "name": "a"}, {"schema_version": 3, "name": "a"}),
    ],
)
def test_an_older_document_goes_through_every_step_in_order(document: Document, upgraded: Document) -> None:
    assert THREE.upgrade(document, where="here") == upgraded


def test_a_newer_document_is_refused_at_once_with_what_to_do() -> None:
    with pytest.raises(NewerSchemaError, match=r"here is a note of version 4; .* up to 3") as raised:
        THREE.upgrade({"schema_version": 4}, where="here")
    assert raised.value.hint is not None
    assert "upgrade holdfast" in raised.value.hint


@pytest.mark.parametrize("version", ["1", None, 0, -3, 1.0, True, [], {}])
def test_a_version_that_is_no_version_is_damage(version: object) -> None:
    with pytest.raises(DamagedDataError, match="here is not a valid note"):
        MARKED.upgrade({"schema_version": version}, where="here")


def test_a_missing_version_is_damage_where_there_never_were_such_documents() -> None:
    with pytest.raises(DamagedDataError, match="schema_version is None"):
        MARKED.upgrade({}, where="here")


@pytest.mark.parametrize("schema", [SNAPSHOT_SCHEMA, ITEM_SESSION_SCHEMA], ids=lambda schema: schema.name)
def test_every_version_has_its_sentence_and_every_older_one_its_step(schema: Schema) -> None:
    assert list(schema.versions) == list(range(1, schema.current + 1))
    assert all(schema.versions.values())
    assert set(schema.steps) == set(range(1, schema.current))
