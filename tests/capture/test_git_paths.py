"""Names of files as text: what git calls bytes, read by people and programs."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.base.errors import InvalidInputError
from holdfast.model.git import decode_path, encode_path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"plain.txt", "plain.txt"),
        ("café.txt".encode(), "café.txt"),
        (b"two\nlines and\ta tab", "two\nlines and\ta tab"),
        (b"back\\slash", "back\\slash"),
        (b'mid"dle', 'mid"dle'),
        (b"caf\xe9.txt", r'"caf\351.txt"'),
        (b'"quoted"', r'"\"quoted\""'),
        (b"\xff\n\\", r'"\377\n\\"'),
    ],
)
def test_a_name_is_itself_or_quoted_as_git_quotes_it(name: bytes, text: str) -> None:
    assert encode_path(name) == text


@given(st.binary())
@example(b'"')
@example(b'"\\101')
@example(b"\xed\xa0\x80")
def test_decoding_gives_back_any_name(name: bytes) -> None:
    assert decode_path(encode_path(name)) == name


@given(st.binary())
def test_the_text_can_be_stored_as_utf_8(name: bytes) -> None:
    encode_path(name).encode()


@pytest.mark.parametrize("text", ['"', '"open', r'"\x41"', r'"\400"', '"in"side"', "lone \ud800"])
def test_what_no_name_is_written_as_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        decode_path(text)
