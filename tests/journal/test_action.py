from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import PauseAction
from holdfast.base.errors import DamagedDataError, InvalidInputError
from holdfast.journal.log import ACTION_TYPES, check_action_type, check_fraction, encode

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
actions = st.builds(
    PauseAction,
    type=st.sampled_from(ACTION_TYPES),
    timestamp=st.just("2026-01-06T12:00:00.000Z"),
    session_id=st.just("session-20260106-120000"),
    data=st.dictionaries(st.text(), json_values, max_size=5),
    context_percentage=st.floats(0, 1),
)


@given(actions)
def test_an_action_survives_its_line(action: PauseAction) -> None:
    assert PauseAction.from_json_line(action.to_json_line()) == action


@given(st.dictionaries(st.text(st.characters()), json_values, max_size=5))
def test_an_encoded_line_is_one_line_of_utf8_whatever_the_text(data: dict[str, Any]) -> None:
    line = encode({"data": data})
    assert b"\n" not in line
    assert json.loads(line.decode("utf-8")) == {"data": data}


def test_a_lone_surrogate_is_escaped_instead_of_refused() -> None:
    assert json.loads(encode({"name": "caf\udce9"}))["name"] == "caf\udce9"


def test_the_line_has_the_five_keys_in_their_order() -> None:
    line = PauseAction("tool_call", "2026-01-06T12:00:00Z", "session-20260106-120000", {"tool": "Read"}, 0.91)
    assert line.to_json_line() == (
        '{"type": "tool_call", "timestamp": "2026-01-06T12:00:00Z", "session_id": "session-20260106-120000", '
        '"data": {"tool": "Read"}, "context_percentage": 0.91}'
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"type": "tool_call"}',
        '{"type": 1, "timestamp": "t", "session_id": "s", "data": {}, "context_percentage": 0.9}',
        '{"type": "t", "timestamp": "t", "session_id": "s", "data": [], "context_percentage": 0.9}',
        '{"type": "t", "timestamp": "t", "session_id": "s", "data": {}, "context_percentage": true}',
        '{"type": "t", "timestamp": "t", "session_id": "s", "data": {}, "context_percentage": NaN}',
        '{"type": "t", "timestamp": "t", "session_id": "s", "data": {}, "context_percentage": "0.9"}',
        b"\xff\xfe",
        "[" * 100_000,
    ],
)
def test_what_is_no_action_is_refused_as_damaged(line: str | bytes) -> None:
    with pytest.raises(DamagedDataError):
        PauseAction.from_json_line(line)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_action_or_damaged(line: bytes) -> None:
    assert PauseAction.try_parse(line) is None or PauseAction.from_json_line(line)


def test_keys_of_a_newer_version_are_passed_over() -> None:
    line = '{"type": "t", "timestamp": "t", "session_id": "s", "data": {}, "context_percentage": 1, "new": 2}'
    assert PauseAction.from_json_line(line).context_percentage == 1


def test_an_unknown_type_is_refused_with_the_list_of_the_valid_ones() -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_action_type("tool_cal")
    assert all(name in str(refused.value.hint) for name in ACTION_TYPES)


@pytest.mark.parametrize("share", [-0.01, 1.01, 90, math.nan, math.inf, True])
def test_context_use_is_a_fraction(share: float) -> None:
    with pytest.raises(InvalidInputError):
        check_fraction(share)


def test_a_percentage_gets_the_fraction_as_a_hint() -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_fraction(90)
    assert refused.value.hint == "did you mean 0.9?"
