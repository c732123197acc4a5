"""What hooks read and write, against `json`, which takes longer to load and is always right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.hooks.fast.payload import NotAnObjectError, as_json, mapping, members, number, quoted, text

_texts = st.text() | st.sampled_from(["\\", '"', '\\"', "a\\\\", "\n", "é", "😀", "\ud800", "{", "]", ""])
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)
_documents = st.dictionaries(_texts, _values, max_size=6)


@given(_documents, st.sampled_from([None, 1, "\t"]))
def test_every_member_is_found_whole(document: dict[str, Any], indent: Any) -> None:
    assert members(json.dumps(document, indent=indent).encode()) == document


@given(_documents)
def test_what_is_written_is_one_line_of_json(document: dict[str, Any]) -> None:
    written = as_json(document)
    assert json.loads(written) == document
    assert "\n" not in written
    assert members(written.encode()) == document


@given(_texts)
def test_quoted_text_is_json(value: str) -> None:
    assert json.loads(quoted(value)) == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\ a1', max_size=30).map(str.encode))
def test_rubbish_is_refused_and_nothing_else_happens(data: bytes) -> None:
    try:
        found = members(data)
    except NotAnObjectError:
        return
    assert type(found) is dict


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'"x"',
        b'{"a"',
        b'{"a":',
        b'{"a":1',
        b'{"a":"x',
        b'{"a":[1,2}',
        b"{a:1}",
        b'{"a":' * 50_000,
    ],
)
def test_what_is_no_object(data: bytes) -> None:
    with pytest.raises(NotAnObjectError):
        members(data)


def test_a_string_that_is_not_strict_json_or_utf_8_is_read_all_the_same() -> None:
    assert members(b' {"a": "x\ny\xff"}') == {"a": "x\ny\ufffd"}


def test_a_doubled_name_means_the_last() -> None:
    assert members(b'{"a": 1, "a": 2}') == {"a": 2}


def test_values_of_another_kind_are_none() -> None:
    assert number(12) == 12
    assert number(None) == number(1.5) == number("3") == number(True) == number(-1) == 0
    assert (text("a"), text(None), text(1)) == ("a", "", "")
    assert (mapping({"a": 1}), mapping([1]), mapping(None)) == ({"a": 1}, {}, {})


@pytest.mark.parametrize(
    "hiding",
    ["9" * 5000, "[" * 3000 + "]" * 3000, '{"a":' * 3000 + '"]"' + "}" * 3000],
    ids=["digits", "[", "{"],
)
def test_nothing_hides_the_rest_of_a_payload(hiding: str) -> None:
    """Guards look at the command, whatever stands beside it."""
    found = members(f'{{"x": {hiding}, "tool_input": {{"y": {hiding}, "command": "rm -rf /"}}}}'.encode())
    assert mapping(found["tool_input"])["command"] == "rm -rf /"
    assert json.loads(as_json(found)) == found
