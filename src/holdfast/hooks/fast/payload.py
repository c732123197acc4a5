"""JSON for hooks, read and written by the C half of Python's own library.

Loading `json` around it loads `re`, which costs a hook more than all of its work.
"""

from _json import make_encoder, make_scanner

_LONGEST_NUMBER = 4000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DEEPEST = 100
"""Levels of a payload that are nested deeper than the scanner can go: what is below is left out."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _whole(digits: str) -> "int | str":
    """Python refuses numbers of thousands of digits, and none of them may hide the rest of a payload."""
    return int(digits) if len(digits) < _LONGEST_NUMBER else digits


class _AsUsual:
    """What the scanner is told by `json`; only, a string may hold control characters."""

    strict = False
    object_hook = object_pairs_hook = array_hook = None
    parse_int, parse_float, parse_constant = staticmethod(_whole), float, float
    memo: "dict[str, str]" = {}  # noqa: RUF012 - the scanner's own


_scan = make_scanner(_AsUsual)  # type: ignore[arg-type]


class NotAnObjectError(ValueError):
    """The bytes are no JSON object."""


def members(data: bytes) -> "dict[str, Any]":
    """A JSON object; of a doubled name the last."""
    whole = data.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace").lstrip()
    try:
        try:
            found, _ = _scan(whole, 0)
        except RecursionError:
            found, _ = _scan(_without_depths(whole), 0)
    except (StopIteration, ValueError, RecursionError, SystemError):
        # The last one where Python 3.11 finds no class for its error, as `json` is not loaded.
        raise NotAnObjectError("not valid JSON") from None
    if not isinstance(found, dict):
        raise NotAnObjectError("not a JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]


def _without_depths(document: str) -> str:
    """The document with `null` for whatever is nested too deep: guards must see the rest of it."""
    kept: list[str] = []
    depth, start, at = 0, 0, 0
    while at < len(document):
        sign = document[at]
        if sign == '"':
            at = _end_of_string(document, at)
            continue
        if sign in "[{":
            depth += 1
            if depth == _DEEPEST:
                kept += document[start:at], "null"
        elif sign in "]}":
            if depth == _DEEPEST:
                start = at + 1
            depth -= 1
        at += 1
    return "".join([*kept, document[start:] if depth < _DEEPEST else ""])


def without_comments(document: str) -> str:
    """As settings may have them, where an agent reads them so."""
    kept: list[str] = []
    start = at = 0
    while at < len(document):
        if document[at] == '"':
            at = _end_of_string(document, at)
            continue
        end = {"//": "\n", "/*": "*/"}.get(document[at : at + 2])
        if end is None:
            at += 1
            continue
        kept.append(document[start:at])
        found = document.find(end, at + 2)
        start = at = len(document) if found < 0 else found + len(end)
    return " ".join([*kept, document[start:]])


def _end_of_string(document: str, at: int) -> int:
    at += 1
    while at < len(document) and document[at] != '"':
        at += 2 if document[at] == "\\" else 1
    return at + 1


def mapping(value: object) -> "dict[str, Any]":
    """An object among the members; empty where the value is none."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def text(value: object) -> str:
    """Empty where the value is no string."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """A count of something; 0 where the value is none."""
    return value if type(value) is int and value > 0 else 0


def amount(value: object) -> float:
    """A number with or without a fraction; 0 where the value is none."""
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0


def quoted(value: str) -> str:
    """Text as a JSON string."""
    inner = value.translate(_ESCAPED)
    if not inner.isascii():  # half of a pair has no UTF-8; the codec escapes it as JSON does
        inner = inner.encode("utf-8", "backslashreplace").decode()
    return f'"{inner}"'


_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(32), 127, 0x85, 0x2028, 0x2029)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}
_encode = make_encoder(None, repr, quoted, None, ": ", ", ", False, False, True)


def as_json(value: object) -> str:
    """Anything that `members` gave, on one line."""
    return "".join(_encode(value, 0))
