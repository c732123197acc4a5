"""The document that the dashboard's types are made from is the server's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from holdfast.server.app import rendered
from holdfast.server.models import PauseWorkflow

KEPT = Path(__file__).parents[2] / "dashboard" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8"))
OPERATIONS = [
    pytest.param(operation, id=f"{method} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]


def test_the_kept_document_is_current() -> None:
    assert KEPT.read_text(encoding="utf-8") == rendered(), "run: .venv/bin/python scripts/openapi.py"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_error_has_the_one_shape(operation: dict[str, Any]) -> None:
    errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
    assert set(errors) >= {"400", "401", "403", "500", "503"}
    for answer in errors.values():
        assert list(answer["content"]) == ["application/problem+json"]
        schema = answer["content"]["application/problem+json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ErrorResponse"}


def test_every_schema_has_a_name_of_its_own() -> None:
    """Generators make a class of each and leave out the second of a name, with all that uses it."""
    schemas = DOCUMENT["components"]["schemas"]
    assert [name for name, schema in schemas.items() if schema.get("title", name) != name] == []
    assert len({name.casefold() for name in schemas}) == len(schemas)


def test_what_a_websocket_sends_is_described() -> None:
    kinds = {
        option["$ref"].rpartition("/")[2]
        for option in DOCUMENT["components"]["schemas"]["SocketMessage"]["anyOf"]
    }
    assert kinds == {"EventsMessage", "LiveMessage", "BackfillExpiredMessage", "PingMessage", "SlowMessage"}


@pytest.mark.parametrize("field", ["wait_seconds", "force_after"])
def test_true_and_false_are_not_numbers(field: str) -> None:
    assert PauseWorkflow.model_validate({field: 3})
    with pytest.raises(ValidationError):
        PauseWorkflow.model_validate({field: False})
