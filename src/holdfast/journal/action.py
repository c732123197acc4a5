"""One recorded action of a wind-down."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, cast

from holdfast.base.errors import DamagedDataError, InvalidInputError

ACTION_TYPES = (
    "tool_call",
    "assistant_response",
    "user_message",
    "system_event",
    "pause_started",
    "pause_finalized",
)

_KEYS = ("type", "timestamp", "session_id", "data", "context_percentage")


@dataclass(frozen=True, slots=True)
class PauseAction:
    type: str
    timestamp: str
    session_id: str
    data: dict[str, Any]
    context_percentage: float

    def to_json_line(self) -> str:
        """Without the newline, so lines can be joined; text stays readable."""
        return json.dumps({key: getattr(self, key) for key in _KEYS}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json_line(cls, line: str | bytes) -> PauseAction:
        """Refuses anything that is not one whole action. Keys it does not know are passed over."""
        try:
            document = json.loads(line)
        except ValueError as error:  # UnicodeDecodeError is one, too
            raise DamagedDataError(f"not a line of JSON: {error}") from error
        except RecursionError:
            raise DamagedDataError("not a line we wrote: it is nested too deep") from None
        if not isinstance(document, dict):
            raise DamagedDataError("not an action: a JSON object is expected on each line")
        fields = cast("dict[str, Any]", document)
        missing = [key for key in _KEYS if key not in fields]
        if missing:
            raise DamagedDataError(f"not an action: {', '.join(missing)} missing")
        action = cls(*(fields[key] for key in _KEYS))
        action._check_types()
        return action

    @classmethod
    def try_parse(cls, line: bytes) -> PauseAction | None:
        try:
            return cls.from_json_line(line)
        except DamagedDataError:
            return None

    def _check_types(self) -> None:
        texts = (self.type, self.timestamp, self.session_id)
        number = self.context_percentage
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.data, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DamagedDataError("not an action: a field has the wrong type")
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DamagedDataError("not an action: context_percentage is no number")


def check_action_type(action_type: str) -> str:
    if action_type not in ACTION_TYPES:
        raise InvalidInputError(
            f"unknown action type {action_type!r}", hint=f"one of {', '.join(ACTION_TYPES)}"
        )
    return action_type


def check_fraction(value: float) -> float:
    """Context use is a fraction: 0.90, not 90."""
    if isinstance(value, bool) or not math.isfinite(value) or not 0 <= value <= 1:
        hint = f"did you mean {value / 100:g}?" if math.isfinite(value) and 1 < value <= 100 else None
        raise InvalidInputError(f"context use is a fraction from 0 to 1, not {value!r}", hint=hint)
    return float(value)
