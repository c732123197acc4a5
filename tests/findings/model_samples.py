"""A short session, findings by rule, and answers a model could give about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from holdfast.model.findings import Decision, ErrorRecord, Evidence
from holdfast.model.message import Message, ToolCall, ToolResult

WHEN = datetime(2026, 1, 6, 12, tzinfo=UTC)

SESSION = (
    Message(40, "user", "Add a health endpoint to the service.", at="2026-01-06T12:00:00Z"),
    Message(
        41,
        "assistant",
        "I'll use FastAPI rather than Flask.",
        at="2026-01-06T12:00:05Z",
        tool_calls=(ToolCall("c1", "Bash", {"command": "pytest -q"}),),
    ),
    Message(
        42,
        "user",
        at="2026-01-06T12:00:09Z",
        tool_results=(ToolResult("c1", "E  ModuleNotFoundError: No module named 'fastapi'", "error"),),
    ),
    Message(43, "assistant", "It was missing from the environment; installed, and the tests pass."),
)


def decision(description: str, *messages: int, **fields: Any) -> Decision:
    return Decision.model_validate(
        {
            "id": f"dec-{description}",
            "timestamp": WHEN,
            "decision_type": "library",
            "description": description,
            "rationale": "",
            "evidence": (Evidence(source="transcript", messages=messages, quote="as it was said"),),
            **fields,
        }
    )


def error(message: str, *messages: int, **fields: Any) -> ErrorRecord:
    return ErrorRecord.model_validate(
        {
            "id": f"err-{message}",
            "timestamp": WHEN,
            "error_type": "tool",
            "error_message": message,
            "resolution": "fixed",
            "evidence": (Evidence(source="transcript", messages=messages),),
            **fields,
        }
    )


def decided(**fields: Any) -> dict[str, Any]:
    """An item as a model answers it."""
    return {
        "decision_type": "library",
        "description": "Use FastAPI for the endpoint",
        "rationale": "The project depends on it already",
        "alternatives_considered": ["Flask"],
        "messages": [41],
        **fields,
    }


def went_wrong(**fields: Any) -> dict[str, Any]:
    return {
        "error_type": "ModuleNotFoundError",
        "error_message": "No module named 'fastapi'",
        "context": "running the tests",
        "resolution": "fixed",
        "resolution_notes": "installed it",
        "messages": [42, 43],
        **fields,
    }


GOOD = {"decisions": [decided()], "errors": [went_wrong()]}
