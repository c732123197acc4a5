# ruff: noqa: E501, RUF001 - a table of words in many scripts, which reads worse when broken
"""Names in other languages and signs that were escaped, told as the rules of redaction know them.

What is put in their place is as long, so that a position in the one text is a position in the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_ENGLISH: dict[str, tuple[tuple[str, str], ...]] = {
    "р": (("пароль", "passwd"), ("Пароль", "passwd")),
    "密": (("密码", "pw"), ("密碼", "pw"), ("密钥", "pw")),
    "令": (("口令", "pw"), ("令牌", "pw")),
    "パ": (("パスワード", "__pwd"),),
    "번": (("비밀번호", "_pwd"),),
    "ñ": (("contraseña", "__password"), ("Contraseña", "__password")),
    "ł": (("hasło", "__pwd"), ("Hasło", "__pwd")),
}
"""By a letter of theirs that is looked for first, fast where its low byte is no letter: the name, and one that is known."""


def in_english(text: str) -> str:
    """With the names that are not ASCII."""
    for letter, names in _ENGLISH.items():
        if letter in text:
            for name, known in names:
                text = text.replace(name, known)
    return text


_FOREIGN = re.compile(rb"(?i)kennwort|wachtwoord|(?<![a-z])(?:senha|mdp|clave)(?![a-z])|contrase(?:na|nha)")
_ESCAPED = re.compile(
    rb"(?i)%(?P<percent>22|27|3a|3d|20)|&(?P<entity>quot|apos|#34|#39|#x27|#x22);"
    rb"|\\{1,15}(?:u00|x)(?P<code>22|27|3a|3d)|(?:\x1b|\\{1,15}(?:u001b|x1b|033))\[[0-9;]{0,12}m"
)
_TELLS = (
    # Each is searched for by letters that rarely stand next to each other.
    *(rb"%(?:22|3[ad])", rb"&(?:quot|apos|#)", rb"u00(?:2[27]|3[ad]|1b)", rb"\x1b"),
    *(
        rb"wo(?:rt(?<=kennwort)|ord(?<=wachtwoord))",
        rb"dp(?<=(?<![a-z])mdp)(?![a-z])",
        rb"contrasen",
    ),
)
_SIGNS = {b"22": b'"', b"quot": b'"', b"#34": b'"', b"#x22": b'"', b"3a": b":", b"3d": b"=", b"20": b" "}
_AROUND = 100, 400


@cache
def _tells() -> tuple[re.Pattern[bytes], ...]:
    return tuple(map(re.compile, _TELLS))


def places_of_escapes(lowered: bytes) -> Iterator[tuple[int, int]]:
    """What lies around each escaped sign and each such name; where these are close together, one piece."""
    start = end = -1
    for place in sorted(match.start() for tell in _tells() for match in tell.finditer(lowered)):
        if start >= 0 and place - end > sum(_AROUND):
            yield max(0, start - _AROUND[0]), end + _AROUND[1]
            start = place
        start, end = place if start < 0 else start, place
    if start >= 0:
        yield max(0, start - _AROUND[0]), end + _AROUND[1]


def in_plain_signs(data: bytes) -> bytes:
    """The text with its signs as they are and its names in English."""
    return _FOREIGN.sub(lambda match: b"pwd".rjust(len(match[0]), b"_"), _ESCAPED.sub(_plain_sign, data))


def _plain_sign(match: re.Match[bytes]) -> bytes:
    """Backslashes stand before a quote, so that it is one of JSON inside JSON; spaces before the other signs."""
    sign = _SIGNS.get((match[match.lastgroup] if match.lastgroup else b"20").lower(), b"'")
    return sign.rjust(len(match[0]), b"\\" if sign in (b'"', b"'") else b" ")
