"""What a model answered, taken item by item: a bad one costs itself, not its neighbours.

The schema that is sent asks for everything to be right. What comes back is trusted with
nothing: any JSON value is survived, each field is checked for type and cut to length,
and an item stands only on messages that were really sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast, get_args

from holdfast.base.clock import Clock, to_datetime
from holdfast.base.text import clipped, one_line
from holdfast.findings.model_prompt import PromptConversation, printable
from holdfast.model.findings import Decision, DecisionType, ErrorRecord, Evidence, Resolution

_SENTENCES = 400
_NAME = 100
_MOST_ALTERNATIVES = 6
_MOST_CITED = 12
_CITED = re.compile(r"#?(\d{1,9})")

_TYPES: dict[str, DecisionType] = {
    **{name: name for name in get_args(DecisionType)},
    "design": "architecture",
    "structure": "architecture",
    "dependency": "library",
    "tool": "library",
    "tooling": "library",
    "implementation": "approach",
    "strategy": "approach",
    "defer": "skip",
    "deferred": "skip",
    "skipped": "skip",
    "interpretation": "clarification",
    "assumption": "clarification",
    "requirement": "clarification",
}
_RESOLUTIONS: dict[str, Resolution] = {
    **{name: name for name in get_args(Resolution)},
    "resolved": "fixed",
    "solved": "fixed",
    "worked around": "workaround",
    "skipped": "deferred",
    "postponed": "deferred",
    "open": "unresolved",
    "pending": "unresolved",
    "not fixed": "unresolved",
}


@dataclass(frozen=True, slots=True)
class Findings:
    decisions: tuple[Decision, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    dropped: int = 0
    """Items that were given and did not stand: wrong types, or no message to stand on."""


def answer_schema(items: int) -> dict[str, Any]:
    """The JSON schema of an answer.

    Every field is required and none may be null, since strict servers ask for that.
    Lengths keep a small model from repeating itself until its tokens are used up.
    """
    text = {"type": "string", "maxLength": _SENTENCES}
    cited = {"type": "array", "minItems": 1, "maxItems": _MOST_CITED, "items": {"type": "integer"}}
    decision = {
        "decision_type": {"type": "string", "enum": list(get_args(DecisionType))},
        "description": text,
        "rationale": text,
        "alternatives_considered": {"type": "array", "maxItems": _MOST_ALTERNATIVES, "items": text},
        "messages": cited,
    }
    error = {
        "error_type": {"type": "string", "maxLength": _NAME},
        "error_message": text,
        "context": text,
        "resolution": {"type": "string", "enum": list(get_args(Resolution))},
        "resolution_notes": text,
        "messages": cited,
    }
    return _object(
        {
            "decisions": {"type": "array", "maxItems": items, "items": _object(decision)},
            "errors": {"type": "array", "maxItems": items, "items": _object(error)},
        }
    )


def is_answer(answer: object) -> bool:
    """Whether it has at least the outline of an answer."""
    return isinstance(answer, dict) and ("decisions" in answer or "errors" in answer)


def findings_in(
    answer: object, told: PromptConversation, *, source: str, items: int, clock: Clock
) -> Findings:
    """Every item that holds up, in the answer's order, none twice."""
    reader = _Reader(told, source, clock)
    given = _fields(answer)
    decisions = [reader.decision(item) for item in _list(given.get("decisions"))]
    errors = [reader.error(item) for item in _list(given.get("errors"))]
    standing = {found.id: found for found in decisions if found is not None}
    recorded = {found.id: found for found in errors if found is not None}
    return Findings(
        tuple(standing.values())[:items],
        tuple(recorded.values())[:items],
        decisions.count(None) + errors.count(None),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    told: PromptConversation
    source: str
    clock: Clock

    def decision(self, item: object) -> Decision | None:
        fields = _fields(item)
        kind = _TYPES.get(_word(fields.get("decision_type")))
        description = _sentence(fields.get("description"), _SENTENCES)
        cited = self._cited(fields.get("messages"))
        if kind is None or not description or not cited:
            return None
        return Decision(
            id=_id("dec", self.source, kind, description, *map(str, cited)),
            timestamp=self._when(cited),
            decision_type=kind,
            description=description,
            rationale=_sentence(fields.get("rationale"), _SENTENCES),
            alternatives_considered=_alternatives(fields.get("alternatives_considered")),
            evidence=(Evidence(source=self.source, messages=cited),),
        )

    def error(self, item: object) -> ErrorRecord | None:
        fields = _fields(item)
        resolution = _RESOLUTIONS.get(_word(fields.get("resolution")))
        message = _sentence(fields.get("error_message"), _SENTENCES)
        cited = self._cited(fields.get("messages"))
        if resolution is None or not message or not cited:
            return None
        kind = _sentence(fields.get("error_type"), _NAME) or "error"
        return ErrorRecord(
            id=_id("err", self.source, kind, message, *map(str, cited)),
            timestamp=self._when(cited),
            error_type=kind,
            error_message=message,
            context=_sentence(fields.get("context"), _SENTENCES) or None,
            resolution=resolution,
            resolution_notes=_sentence(fields.get("resolution_notes"), _SENTENCES) or None,
            evidence=(Evidence(source=self.source, messages=cited),),
        )

    def _cited(self, value: object) -> tuple[int, ...]:
        """The cited messages that were really sent; numbers made up are left out."""
        numbers = {_number(one) for one in _list(value)}
        return tuple(sorted(number for number in numbers if number in self.told.messages))[:_MOST_CITED]

    def _when(self, cited: tuple[int, ...]) -> datetime:
        """The time of the last message that shows it, where the agent kept one."""
        stamp = self.told.messages[cited[-1]].at
        try:
            moment = datetime.fromisoformat(stamp or "")
        except ValueError:
            return to_datetime(self.clock())
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _fields(item: object) -> Mapping[object, object]:
    return cast("Mapping[object, object]", item) if isinstance(item, dict) else {}


def _sentence(value: object, most: int) -> str:
    """One line of text; empty for anything that is none, a placeholder copied from the schema included."""
    text = clipped(one_line(printable(value)), most) if isinstance(value, str) else ""
    return text if any(character.isalnum() for character in text) else ""


def _word(value: object) -> str:
    return (
        one_line(value).lower().replace("_", " ").replace("-", " ")[:_NAME] if isinstance(value, str) else ""
    )


def _alternatives(value: object) -> tuple[str, ...] | None:
    named = dict.fromkeys(_sentence(one, _SENTENCES) for one in _list(value))
    return tuple(filter(None, named))[:_MOST_ALTERNATIVES] or None


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    match = _CITED.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(match[1]) if match else None


def _id(prefix: str, *parts: str) -> str:
    """From the content: extracting twice names the same finding the same way."""
    digest = hashlib.sha256("\x1f".join(parts).encode())
    return f"{prefix}_{digest.hexdigest()[:26]}"
