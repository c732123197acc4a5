"""The few fields a hook needs, taken out of its JSON payload without loading a JSON library.

Loading `json` costs a hook more than all of its work. This scanner knows where the members of one
object begin and end and leaves their values as the bytes they are; what it is not sure about, it
leaves to `json`.
"""

_SPACE = b" \t\r\n"
_OPENING = b"{["
_CLOSING = b"}]"
_ENDS_OF_SCALAR = b",}] \t\r\n"
_SIMPLE_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


class NotAnObjectError(ValueError):
    """The bytes are no JSON object, as far as the scanner can tell."""


def members(data: bytes) -> dict[str, bytes]:
    """The raw values of an object's members; of a doubled name the last, as `json` does."""
    found: dict[str, bytes] = {}
    position = _after_space(data, 0)
    if data[position : position + 1] != b"{":
        raise NotAnObjectError("no object")
    position = _after_space(data, position + 1)
    if data[position : position + 1] == b"}":
        return found
    while True:
        end = _end_of_string(data, position)
        name = text(data[position:end])
        position = _after_space(data, end)
        if data[position : position + 1] != b":":
            raise NotAnObjectError("no colon after a name")
        position = _after_space(data, position + 1)
        end = _end_of_value(data, position)
        found[name] = data[position:end]
        position = _after_space(data, end)
        mark = data[position : position + 1]
        if mark == b"}":
            return found
        if mark != b",":
            raise NotAnObjectError("no comma after a value")
        position = _after_space(data, position + 1)


def text(raw: bytes | None) -> str:
    """A JSON string as text; empty where the value is none or not a string."""
    if not raw or raw[:1] != b'"':
        return ""
    inner = raw[1:-1].decode("utf-8", "replace")
    return _unescaped(inner) if "\\" in inner else inner


def number(raw: bytes | None) -> int:
    """A count of something; 0 where the value is none."""
    return int(raw) if raw and raw.isdigit() else 0


def quoted(value: str) -> str:
    """Text as a JSON string."""
    inner = value.translate(_ESCAPED)
    if not inner.isascii():  # half of a pair has no UTF-8; the codec escapes it as JSON does
        inner = inner.encode("utf-8", "backslashreplace").decode()
    return f'"{inner}"'


_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(32), 127)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


def _unescaped(inner: str) -> str:
    """Escapes one by one; those with code points are left to `json`, since pairs of them may be one sign."""
    pieces = inner.split("\\")
    done = [pieces[0]]
    index = 1
    while index < len(pieces):
        piece = pieces[index]
        if not piece:  # two backslashes in a row: the next piece is plain
            done.append("\\" + (pieces[index + 1] if index + 1 < len(pieces) else ""))
            index += 2
            continue
        plain = _SIMPLE_ESCAPES.get(piece[0])
        if plain is None:
            import json

            return json.loads(f'"{inner}"', strict=False)
        done.append(plain + piece[1:])
        index += 1
    return "".join(done)


def _after_space(data: bytes, position: int) -> int:
    size = len(data)
    while position < size and data[position] in _SPACE:
        position += 1
    return position


def _end_of_string(data: bytes, start: int) -> int:
    """Position after the closing quote of the string that starts there."""
    if data[start : start + 1] != b'"':
        raise NotAnObjectError("no string where one must be")
    position = start + 1
    while True:
        quote = data.find(b'"', position)
        if quote < 0:
            raise NotAnObjectError("a string has no end")
        slashes = 0
        while data[quote - 1 - slashes] == 0x5C:
            slashes += 1
        if slashes % 2 == 0:
            return quote + 1
        position = quote + 1


def _end_of_value(data: bytes, start: int) -> int:
    first = data[start : start + 1]
    if first == b'"':
        return _end_of_string(data, start)
    if first in (b"{", b"["):
        return _end_of_nested(data, start)
    position = start
    size = len(data)
    while position < size and data[position] not in _ENDS_OF_SCALAR:
        position += 1
    if position in (start, size):
        raise NotAnObjectError("a value has no end")
    return position


def _end_of_nested(data: bytes, start: int) -> int:
    """Jumps from string to string: what lies between them is short, the strings may be long."""
    depth = 0
    position = start
    while True:
        quote = data.find(b'"', position)
        stretch = data[position : quote if quote >= 0 else len(data)]
        for offset, sign in enumerate(stretch):
            if sign in _OPENING:
                depth += 1
            elif sign in _CLOSING:
                depth -= 1
                if depth == 0:
                    return position + offset + 1
        if quote < 0:
            raise NotAnObjectError("brackets are left open")
        position = _end_of_string(data, quote)
