"""The scanner against `json`, which is slower and always right."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.hooks.fast.payload import NotAnObjectError, members, number, quoted, text

_texts = st.text() | st.sampled_from(["\\", '"', '\\"', "a\\\\", "\n", "é", "😀", "\ud800", "{", "]", ""])
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_texts, _values, max_size=6), st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_every_member_is_found_whole(document: dict[str, Any], ascii_only: bool, indent: Any) -> None:
    data = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass")
    if not ascii_only and any(
        "\ud800" <= sign <= "\udfff" for sign in repr(document).encode().decode("unicode_escape", "replace")
    ):
        return
    found = members(data)
    assert {name: json.loads(raw) for name, raw in found.items()} == document
    for name, value in document.items():
        assert text(found[name]) == (value if isinstance(value, str) else "")


@given(_texts)
def test_quoted_text_is_json(value: str) -> None:
    assert json.loads(quoted(value)) == value


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,\\ a1', max_size=30).map(str.encode))
def test_rubbish_is_refused_and_nothing_else_happens(data: bytes) -> None:
    with contextlib.suppress(NotAnObjectError, ValueError, IndexError):
        members(data)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'"x"', b'{"a"', b'{"a":', b'{"a":1', b'{"a":"x', b'{"a":[1,2}', b"{a:1}"]
)
def test_what_is_no_object(data: bytes) -> None:
    with pytest.raises(NotAnObjectError):
        members(data)


def test_a_doubled_name_means_the_last() -> None:
    assert members(b'{"a": 1, "a": 2}') == {"a": b"2"}


def test_counts() -> None:
    assert number(b"12") == 12
    assert number(b"null") == number(b"1.5") == number(None) == number(b'"3"') == 0
