"""Secrets are taken out before anything is written, and out of every context.

Each kind is recognised by a form that hardly occurs by chance: a vendor's prefix, a key
block, a password inside a URL, a value assigned to a name that says it is secret. What is
found becomes `[redacted:KIND]`, which says that something was there without saying what.
Works on plain text and on JSON text alike: no replacement contains a quote or a backslash,
and no pattern reaches over one.

Fast because patterns run only where a few fixed characters were found first: text without
secrets costs a handful of substring searches. Linear whatever the text: no pattern reads a long
piece again for each sign in it. The kinds whose patterns would (a run of letters that is only a
secret by what follows it, a key block) are looked for by functions that remember what they read.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.base.secret_signs import SECRET_NAMES

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Form:
    kind: str
    sign: str
    """Characters without which there is no such secret."""
    spans: Callable[[str], Iterator[Span]]


def _form(kind: str, sign: str, pattern: str) -> _Form:
    # One that was cut, as our own briefings cut long text, is shorter than its kind and ends in `…`.
    cut = re.sub(r"\{\d+,?\}(\\b)?$", "{4,}(?=…)", pattern)
    compiled = re.compile(pattern if cut == pattern else f"{pattern}|{cut}", re.DOTALL)
    return _Form(kind, sign, lambda text: _matches(compiled, text))


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """The group named `secret`, where there is one, is all that is taken out."""
    framed = "secret" in pattern.groupindex
    for match in pattern.finditer(text):
        if framed or not _continues_a_word(text, match.start()):
            yield match.span("secret" if framed else 0)


class _Runs:
    """Where runs of characters of one class end. Asked from left to right, it reads no character twice."""

    def __init__(self, characters: str, text: str) -> None:
        self._run, self._text = re.compile(f"{characters}*"), text
        self._start = self._end = -1

    def end(self, start: int) -> int:
        if not self._start <= start <= self._end:
            self._start, self._end = start, _end_of(self._run, self._text, start)
        return self._end


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _not_overlapping(text: str, sign: str, end_of: Callable[[int], int | None]) -> Iterator[Span]:
    """What begins with the sign and ends where `end_of` says, as `finditer` would find it."""
    start = text.find(sign)
    while start >= 0:
        end = end_of(start)
        if end is not None and not _continues_a_word(text, start):
            yield start, end
        start = text.find(sign, start + 1 if end is None else end)


def _aws_keys(sign: str) -> _Form:
    """The sign and 16 characters up to the end of the word, or what a cut left of them and `…`."""

    def spans(text: str) -> Iterator[Span]:
        runs = _Runs("[A-Z0-9]", text)

        def end_of(start: int) -> int | None:
            end = runs.end(start)
            length, after = end - start - len(sign), text[end : end + 1]
            is_whole = length == 16 and not _WORD.match(after)
            return end if is_whole or (length >= 4 and after == "…") else None

        return _not_overlapping(text, sign, end_of)

    return _Form("aws-key", sign, spans)


_WORD = re.compile(r"\w")


def _jwts(text: str) -> Iterator[Span]:
    """Three parts with dots between, of which two begin with `eyJ`; the last may be cut."""
    first, second, third = (_Runs("[A-Za-z0-9_-]", text) for _ in range(3))

    def end_of(start: int) -> int | None:
        dot = first.end(start)
        if dot - start < 11 or not text.startswith(".eyJ", dot):
            return None
        next_dot = second.end(dot + 1)
        if next_dot - dot < 12 or not text.startswith(".", next_dot):
            return None
        end = third.end(next_dot + 1)
        length = end - next_dot - 1
        return end if length >= 8 or (length >= 4 and text.startswith("…", end)) else None

    return _not_overlapping(text, "eyJ", end_of)


_KEY_BEGINS = re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")
# Of one whose end is missing, what looks like its body: never a quote, so JSON stays JSON.
_KEY_BODY = re.compile(r"(?:[A-Za-z0-9+/=:,.\s-]|\\+[nrt])*")
_LONGEST_KEY = 20_000


def _private_keys(text: str) -> Iterator[Span]:
    """From its first line to its last, where that comes soon and before any quote."""
    ends = [match.span() for start in _every(text, "-----END ") if (match := _KEY_ENDS.match(text, start))]
    quotes = _Runs('[^"]', text)

    def end_of(start: int) -> int | None:
        begun = _KEY_BEGINS.match(text, start)
        if begun is None:
            return None
        body = begun.end()
        nearest = bisect_left(ends, (body, 0))
        if nearest < len(ends) and ends[nearest][0] <= min(body + _LONGEST_KEY, quotes.end(body)):
            return ends[nearest][1]
        return _end_of(_KEY_BODY, text, body)

    return _not_overlapping(text, "-----BEGIN ", end_of)


def _every(text: str, sign: str) -> Iterator[int]:
    start = text.find(sign)
    while start >= 0:
        yield start
        start = text.find(sign, start + 1)


# A pattern here may end in a run of any length only if a long run always is a secret, or if the run cannot
# hold the sign: else a run full of signs would be read once for each of them.
_FORMS = (
    _Form("private-key", "PRIVATE KEY", _private_keys),
    _form("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _form("openai-key", "sk-", r"sk-(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    *(_form("github-token", f"gh{letter}_", f"gh{letter}_[A-Za-z0-9]{{30,}}") for letter in "pousr"),
    _form("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{30,}"),
    _form("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    _aws_keys("AKIA"),
    _aws_keys("ASIA"),
    _form("google-key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _form("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    *(
        _form("stripe-key", f"{letter}k_{mode}_", f"{letter}k_{mode}_[A-Za-z0-9]{{16,}}")
        for letter in "rs"
        for mode in ("live", "test")
    ),
    _form("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}\b"),
    _form("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    _Form("jwt", "eyJ", _jwts),
    _form("url-password", "://", r"://(?P<secret>[^\s/:@\"'\\]{1,64}:[^\s/@\"'\\]{1,128})@"),
    *(
        _form("bearer-token", f"{word} ", rf"{word} (?P<secret>[A-Za-z0-9._~+/-]{{16,}}=*)")
        for word in ("Bearer", "bearer")
    ),
)

# `password = …`, `"api_key": "…"`, `--auth-token …`: the name stays, the value goes.
_ASSIGNED = re.compile(
    r"[A-Za-z0-9_-]{0,20}(?:\\?[\"'])?\s{0,3}(?:=>|:=|=|:|\s)\s{0,3}(?:\\?[\"'])?"
    r"(?P<secret>[^\s\"'\\,;(){}<>\[\]$…]{8,200}|[^\s\"'\\,;(){}<>\[\]$…]{4,200}(?=…))"
)


def redact(text: str) -> tuple[str, Counter[str]]:
    """The text without its secrets, and how many of each kind were taken out."""
    found: Counter[str] = Counter()
    pieces: list[str] = []
    done = 0
    for start, end, kind in sorted((*_vendor_secrets(text), *_assigned_secrets(text))):
        if start < done:
            continue  # inside one that is taken out already
        pieces += (text[done:start], f"[redacted:{kind}]")
        found[kind] += 1
        done = end
    return ("".join((*pieces, text[done:])) if pieces else text), found


def _vendor_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    for form in _FORMS:
        if form.sign in text:
            for start, end in form.spans(text):
                yield start, end, form.kind


def _continues_a_word(text: str, start: int) -> bool:
    """Whether a vendor's prefix is only the tail of a longer word: `task-…` is no `sk-…`.

    In JSON text a letter may be half of an escape: `\\nsk-…` begins a line.
    """
    before = text[max(0, start - 2) : start]
    return (before[-1:].isalnum() and not before.startswith("\\")) or before[-1:] == "_"


def _assigned_secrets(text: str) -> Iterator[tuple[int, int, str]]:
    lowered = text.lower()
    if len(lowered) != len(text):  # some letters grow when lowered; positions would be off
        lowered = text
    for name in SECRET_NAMES:
        position = lowered.find(name)
        while position >= 0:
            position += len(name)
            match = _ASSIGNED.match(text, position)
            if match and _looks_secret(match["secret"]):
                yield (*match.span("secret"), "assigned-secret")
            position = lowered.find(name, position)


def _looks_secret(value: str) -> bool:
    """Whether a value assigned to a secret-sounding name is one: `password=os.environ` is not."""
    if value.replace("_", "").replace("-", "").isalpha():
        return False  # a word
    is_code = "." in value and all(part.isidentifier() for part in value.split("."))
    return not is_code and any(character.isalpha() for character in value)
