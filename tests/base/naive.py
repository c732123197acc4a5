"""Redaction as plain patterns say it, however long that takes: what `holdfast.base.redact` must find, too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.base.secret_signs import SECRET_NAMES


@dataclass(frozen=True, slots=True)
class _Form:
    kind: str
    sign: str
    """Characters without which there is no such secret."""
    pattern: re.Pattern[str]


def _form(kind: str, sign: str, pattern: str) -> _Form:
    # One that was cut, as our own briefings cut long text, is shorter than its kind and ends in `…`.
    cut = re.sub(r"\{\d+,?\}(\\b)?$", "{4,}(?=…)", pattern)
    return _Form(kind, sign, re.compile(pattern if cut == pattern else f"{pattern}|{cut}", re.DOTALL))


# The group named `secret`, where there is one, is all that is taken out.
_FORMS = (
    _form(
        "private-key",
        "PRIVATE KEY",
        # Of one whose end is missing, what looks like its body: never a quote, so JSON stays JSON.
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[^\"]{0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:[A-Za-z0-9+/=:,.\s-]|\\+[nrt])*)",
    ),
    _form("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    _form("openai-key", "sk-", r"sk-(?!ant-)(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    *(_form("github-token", f"gh{letter}_", f"gh{letter}_[A-Za-z0-9]{{30,}}") for letter in "pousr"),
    _form("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{30,}"),
    _form("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    _form("aws-key", "AKIA", r"AKIA[A-Z0-9]{16}\b"),
    _form("aws-key", "ASIA", r"ASIA[A-Z0-9]{16}\b"),
    _form("google-key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    _form("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    *(
        _form("stripe-key", f"{letter}k_{mode}_", f"{letter}k_{mode}_[A-Za-z0-9]{{16,}}")
        for letter in "rs"
        for mode in ("live", "test")
    ),
    _form("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}\b"),
    _form("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
    _form("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
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
        if form.sign not in text:
            continue
        for match in form.pattern.finditer(text):
            framed = "secret" in form.pattern.groupindex
            if framed or not _continues_a_word(text, match.start()):
                yield (*match.span("secret" if framed else 0), form.kind)


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
    has_digit = any(character.isdigit() for character in value)
    has_letter = any(character.isalpha() for character in value)
    is_code = "." in value and all(part.isidentifier() for part in value.split("."))
    is_word = value.replace("_", "").replace("-", "").isalpha()
    return has_letter and not is_code and (has_digit or not is_word)
