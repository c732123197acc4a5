# ruff: noqa: E501 - patterns and lists of words, which read worse when broken
"""Secrets are taken out before anything is written, and out of every context.

Each kind is recognised by a form that hardly occurs by chance: a vendor's prefix, a key
block, a password inside a URL, a value assigned to a name that says it is secret. What is
found becomes `[redacted:KIND]`, which says that something was there without saying what.
Works on plain text and on JSON text alike, JSON inside JSON included: no replacement contains a
quote or a backslash, and none reaches over the quote that ends its string.

Fast because patterns run only where fixed characters were found first. The text is looked at as bytes,
one a character, in a few passes that run at the speed of memory: long words (vendors' tokens begin one),
secret-sounding names, and the signs of the rest. Linear whatever the text: what a pattern may read before
it fails is bounded, and what it found is not read again. The rules are in `secret_rules.py`; why this is
no foreign engine: docs/decisions/0021-redaction.md.
"""

from __future__ import annotations

import base64
import binascii
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

from holdfast.base.secret_rules import LONG_RULES, LONG_WORD, SHORTEST_WORD, SIGN_RULES, WORD_RULES

Span = tuple[int, int]
Found = tuple[int, int, str]

_CUT = "\x1a"
"""Stands for `…` in the bytes: what our own briefings cut is shorter than its kind."""


def redact(text: str) -> tuple[str, Counter[str]]:
    """The text without its secrets, and how many of each kind were taken out."""
    data = _as_bytes(text)
    found: Counter[str] = Counter()
    pieces: list[str] = []
    done = 0
    for start, end, kind in sorted(_secrets(data), key=lambda one: (one[0], -one[1])):
        if start < done:
            continue  # inside one that is taken out already
        pieces += (text[done:start], f"[redacted:{kind}]")
        found[kind] += 1
        done = end
    return ("".join((*pieces, text[done:])) if pieces else text), found


def _as_bytes(text: str) -> bytes:
    """One byte a character, so that a position in the one is a position in the other."""
    plain = text if text.isascii() else text.replace("…", _CUT)
    return plain.encode("ascii", "replace")


def _secrets(data: bytes) -> Iterator[Found]:
    lowered = data.lower()
    yield from _vendor_words(data)
    yield from _by_sign(data)
    yield from _private_keys(data)
    yield from _urls(data)
    yield from _named(data, lowered)
    yield from _in_headers(data, lowered)
    yield from _on_command_lines(data, lowered)


# Words with a vendor's prefix.

_WORD_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_IN_WORDS = bytes(97 if c in _WORD_BYTES + b".~-" else 32 for c in range(256))
_LONG_WORD = b"a" * SHORTEST_WORD
_ESCAPES = b"nrtbf"


def _vendor_words(data: bytes) -> Iterator[Found]:
    """Tokens begin a long word, or a part of one. The loop runs for every long word: what it does is counted."""
    shape, heads, inner = data.translate(_IN_WORDS), _heads(), _inner_heads()
    start = shape.find(_LONG_WORD)
    while start >= 0:
        end = shape.find(b" ", start)
        end = len(data) if end < 0 else end
        if start and data[start - 1] == 92 and data[start] in _ESCAPES:
            start += 1  # in JSON text `\n` begins a line
        if (
            data[start : start + 3] in heads
            or data[start : start + 2] in heads
            or inner.search(data, start, end)
        ):
            yield from _in_word(data, start, end)
        elif end - start >= LONG_WORD and (match := _long_words().match(data, start)):
            yield (*match.span(), LONG_RULES[int((match.lastgroup or "r0")[1:])][0])
        start = shape.find(_LONG_WORD, end)
    if _CUT.encode() in data or b"u2026" in data:
        yield from _cut_words(data)


def _in_word(data: bytes, start: int, end: int) -> Iterator[Found]:
    done, tries = start, _MOST_PLACEHOLDERS
    heads = _heads()
    for place in (start, *(match.start() + 1 for match in _inner_heads().finditer(data, start, end))):
        rules = heads.get(data[place : place + 3]) or heads.get(data[place : place + 2]) or ()
        for kind, pattern in rules if place >= done else ():
            match = pattern().match(data, place) if tries else None
            if match and not _is_placeholder(match[0]):
                yield place - _digits_before(data, place, kind), match.end(), kind
                done = match.end()
                break
            tries -= match is not None
    if done == start and (match := _long_words().match(data, start)):
        yield (*match.span(), LONG_RULES[int((match.lastgroup or "r0")[1:])][0])


_MOST_PLACEHOLDERS = 16
"""In one word: each may be as long as the word, and is read again from the next head on."""


@cache
def _inner_heads() -> re.Pattern[bytes]:
    """Where a part of a word begins as a token does."""
    seconds: dict[bytes, set[bytes]] = {}
    for head in _heads():
        seconds.setdefault(head[:1], set()).add(head[1:2])
    parts = (
        re.escape(first) + b"[" + re.escape(b"".join(sorted(two))) + b"]"
        for first, two in sorted(seconds.items())
    )
    return re.compile(rb"[.~-](?:" + b"|".join(parts) + b")")


@cache
def _long_words() -> re.Pattern[bytes]:
    return re.compile(
        "|".join(f"(?P<r{number}>{rest})" for number, (_, rest) in enumerate(LONG_RULES)).encode()
    )


def _digits_before(data: bytes, place: int, kind: str) -> int:
    """Telegram's tokens begin with a number and a colon."""
    if kind != "telegram-token":
        return 0
    digits = data[max(0, place - 11) : place - 1]
    return len(digits) - len(digits.rstrip(b"0123456789")) + 1


@cache
def _heads() -> dict[bytes, tuple[tuple[str, Callable[[], re.Pattern[bytes]]], ...]]:
    """Which rules can match, by the first two or three characters."""
    heads: dict[bytes, tuple[tuple[str, Callable[[], re.Pattern[bytes]]], ...]] = {}
    for kind, prefixes, rest in WORD_RULES:
        for prefix in prefixes.split(" "):
            before = "(?<=[0-9]{8}:)" if kind == "telegram-token" else ""
            rule = (kind, _later(f"{before}{re.escape(prefix)}(?:{rest})"))
            head = prefix[:3].encode()
            heads[head] = (*heads.get(head, ()), rule)
    for head in [head for head in heads if len(head) == 3 and head[:2] in heads]:
        heads[head] = (*heads[head], *heads[head[:2]])
    heads[b"eyJ"] = (*heads.get(b"eyJ", ()), ("jwt", _later(_JWT)))
    return heads


def _later(pattern: str) -> Callable[[], re.Pattern[bytes]]:
    """Compiled when it is first needed: most are never."""
    compiled: list[re.Pattern[bytes]] = []

    def get() -> re.Pattern[bytes]:
        if not compiled:
            compiled.append(re.compile(pattern.encode()))
        return compiled[0]

    return get


# The parts are bounded, since a word full of `eyJ` would be read once for each of them.
_PART = "[A-Za-z0-9_-]"
_JWT = (
    rf"eyJ{_PART}{{8,1000}}\.(?:eyJ{_PART}{{8,8000}}\.(?:{_PART}{{8,}}|{_PART}{{4,}}(?=\x1a)|(?![A-Za-z0-9]))"
    rf"|{_PART}{{0,1000}}\.{_PART}{{8,100}}\.{_PART}{{8,}}\.{_PART}{{8,}})"
)
_CUT_PREFIXES = tuple(
    (prefix.encode(), kind)
    for kind, prefixes, _ in WORD_RULES
    for prefix in prefixes.split(" ")
    if len(prefix) > 3 or prefix == "sk-"
)


def _cut_words(data: bytes) -> Iterator[Found]:
    """What a cut left of a token: its prefix, at least four characters and `…`, which JSON may spell out."""
    for mark in (_CUT.encode(), b"u2026"):
        for at in _every(data, mark):
            word = data[max(0, at - 100) : at].rstrip(b"\\")
            end = max(0, at - 100) + len(word)
            word = word[len(word.rstrip(_WORD_BYTES + b".~-")) :]
            yield from _cut_word(data, end - len(word), word)


def _cut_word(data: bytes, start: int, word: bytes) -> Iterator[Found]:
    if len(word) < 8:
        return
    if start and data[start - 1] == 92 and word[:1] in (b"n", b"r", b"t"):
        start, word = start + 1, word[1:]
    for prefix, kind in _CUT_PREFIXES:
        at = word.find(prefix)
        starts_word = at == 0 or (at > 0 and word[at - 1] not in _WORD_BYTES)
        if starts_word and len(word) - at - len(prefix) >= 4:
            yield start + at, start + len(word), kind
            return


# What has a sign that may stand anywhere.


def _by_sign(data: bytes) -> Iterator[Found]:
    for pattern in _signs():
        for match in pattern.finditer(data):
            group = match.lastgroup or ""
            kind = SIGN_RULES[int(group[1:])][0]
            if not _is_placeholder(match[group]) and (kind != "basic-auth" or _is_login(match[group])):
                yield (*match.span(group), kind)


@cache
def _signs() -> tuple[re.Pattern[bytes], ...]:
    """A pattern a sign, each of its rules a group. One that begins with a literal is as fast as a search for it."""
    choices: dict[str, list[str]] = {}
    for number, (_, sign, before, secret) in enumerate(SIGN_RULES):
        choices.setdefault(sign, []).append(f"{before}(?P<r{number}>{secret})")
    return tuple(
        re.compile(f"{re.escape(sign)}(?:{'|'.join(rules)})".encode()) for sign, rules in choices.items()
    )


_KEY_BEGINS = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(rb"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
# Of one whose end is missing, what looks like its body: never a quote, so JSON stays JSON.
_KEY_BODY = re.compile(rb"(?:[A-Za-z0-9+/=:,.\s-]|\\+[nrt])*")
_LONGEST_KEY = 20_000


def _private_keys(data: bytes) -> Iterator[Found]:
    """From its first line to its last, where that comes soon and before any quote."""
    begun = _KEY_BEGINS.search(data)
    ends = [match.span() for match in _KEY_ENDS.finditer(data)] if begun else []
    while begun:
        end = _end_of_key(data, begun.end(), ends)
        yield begun.start(), end, "private-key"
        begun = _KEY_BEGINS.search(data, end)


def _end_of_key(data: bytes, body: int, ends: list[Span]) -> int:
    nearest = bisect_left(ends, (body, 0))
    quote = data.find(b'"', body, body + _LONGEST_KEY)
    if nearest < len(ends) and ends[nearest][0] <= (body + _LONGEST_KEY if quote < 0 else quote):
        return ends[nearest][1]
    match = _KEY_BODY.match(data, body)
    return match.end() if match else body


def _every(data: bytes, sign: bytes) -> Iterator[int]:
    """Where the sign stands. The engine of `re` finds literals faster than `find` does."""
    return (match.start() for match in re.finditer(re.escape(sign), data))


_IN_URL = re.compile(
    rb"://(?P<secret>(?P<user>[^\s/:@\"'\\<>\x60]{0,64}):(?P<word>[^\s/\"'\\<>\x60]{1,160})|[0-9a-f]{32}|[A-Za-z0-9_-]{30,200})@"
)
_PLAIN_WORDS = frozenset(
    b"password passwd pass pw pwd secret token changeme example placeholder user username xxx tiger mypassword".split()
)


def _urls(data: bytes) -> Iterator[Found]:
    for at in _every(data, b"://"):
        match = _IN_URL.match(data, at)
        if match and not _is_plain_login(
            match["user"], match["word"], bool(_AT_HOME.match(data, match.end()))
        ):
            yield (*match.span("secret"), "url-password")


_AT_HOME = re.compile(
    rb"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|host(?:name)?|myhost|db|server|example)\b|/|192\.168\."
)


def _is_plain_login(user: bytes | None, word: bytes | None, at_home: bool) -> bool:
    """`user:password@` of a manual, `postgres:postgres@` of every tutorial, `$USER:$PASSWORD@` of a script."""
    if word is None:
        return False
    is_local = word.isalpha() and word.islower() and at_home
    return (
        is_local
        or word.lower() in _PLAIN_WORDS
        or word == user
        or word[:1] in b"${[*%"
        or _is_placeholder(word)
    )


# Values of secret-sounding names.

_NAMED = re.compile(
    # Anchored at rare letters of the names: what comes before is read backwards where the rest fits.
    rb"(?:k(?:ey|en(?<=token))|p(?:ass(?:w(?:or)?[dt]|phrase|code)?|wd|hrase)"
    rb"|c(?:re(?:t(?<=secret)|d(?:s|entials?)?)|(?<=mnemonic)))(?P<tail>[a-z0-9_.-]{0,24})"
    rb"(?P<close>\\{0,15}[\"'\]]{0,2})(?:\s{1,3}(?:is|was|to):?\s|\s{0,3}(?P<sep>=>|:=|[!=]?==?|:|,|\(|>)\s{0,3}|\s{1,3})"
    rb"(?P<open>[bfru]?\\{0,15}[\"'\x60]|)(?=[^\s\"'\\,;(){}<>\[\]|\x60])"
)
_BARE = re.compile(rb"[^\s\"'\\,;(){}<>\[\]\x60\x1a]{1,400}")
_QUOTED = re.compile(rb"[^\"'\x60\\\r\n]{1,400}")
_QUOTE = re.compile(rb"(\\*)\"")


def _named(data: bytes, lowered: bytes) -> Iterator[Found]:
    match = _NAMED.search(lowered)
    while match:
        start = match.end()
        found = _value_of(data, match)
        if found:
            yield (*found, "assigned-secret")
            start = found[1]
        match = _NAMED.search(lowered, start)


def _value_of(data: bytes, match: re.Match[bytes]) -> Span | None:
    name = _name_at(data, match)
    family = _family(name)
    if not family:
        return None
    start, quoted = match.end(), bool(match["open"])
    end = _end_of_quoted(data, start, match["open"]) if quoted else _end_of_bare(data, start)
    value = data[start:end]
    if _is_call(data, match, name, end):
        return None
    prose = match["sep"] is None and not _is_flag(data, match, name)
    is_cut = data[end : end + 1] == b"\x1a" and len(value) >= 4 and not prose
    is_secret = (is_cut and _has_mix(value)) or _looks_secret(value, family, quoted, prose, name)
    return (start, end) if is_secret else None


def _is_call(data: bytes, match: re.Match[bytes], name: bytes, end: int) -> bool:
    """Code whose arguments are no values of the name: `token(x)`, `Token, "x"`, `get_password(…)`."""
    sep, quoted = match["sep"], bool(match["open"])
    if sep == b",":
        return not (quoted and match["close"])
    if sep == b"(":
        return not (quoted and b"set" in name.lower())
    is_template = quoted and b"{" in data[match.end() : end] and b"}" in data[match.end() : end]
    return is_template or (not quoted and data[end : end + 1] in (b"(", b"["))


def _name_at(data: bytes, match: re.Match[bytes]) -> bytes:
    before = data[max(0, match.start() - 40) : match.start()]
    at = len(before.rstrip(_WORD_BYTES + b"-."))
    at += before[at - 1 : at] == b"\\" and before[at : at + 1] in (b"n", b"r", b"t")  # `\npassword` in JSON
    return before[at:] + data[match.start() : match.end("tail")]


def _is_flag(data: bytes, match: re.Match[bytes], name: bytes) -> bool:
    """`--password X`, and `password X` of a `.netrc` or a `redis.conf`."""
    if name.startswith(b"-"):
        return True
    line = data[max(0, match.start() - 120) : match.start()]
    return b"login " in line or b"machine " in line or name.lower() == b"requirepass"


def _end_of_bare(data: bytes, start: int) -> int:
    match = _BARE.match(data, start)
    end = match.end() if match else start
    while end > start and data[end - 1] in b".:!?" and data[end : end + 1] in (b"", b" ", b"\n"):
        end -= 1
    amp = data.find(b"&", start, end)  # the next field of a query
    return amp if amp > start and b"=" in data[amp:end] else end


def _end_of_quoted(data: bytes, start: int, opened: bytes) -> int:
    """The quote that ends the string, however deep in JSON; else where a bare value would end."""
    if opened[-1:] != b'"':
        match = _QUOTED.match(data, start)
        end = match.end() if match else start
        return end if data[end : end + 1] == opened[-1:] else _end_of_bare(data, start)
    depth = opened.count(b"\\")
    for quote in _QUOTE.finditer(data, start, start + 2000):
        escapes = len(quote[1])
        if depth == 0 and escapes % 2 == 0:
            return _on_one_line(data, start, quote.end() - 1)
        if depth and escapes <= depth:
            return _on_one_line(data, start, quote.start())
    return _end_of_bare(data, start)


def _on_one_line(data: bytes, start: int, end: int) -> int:
    return end if b"\n" not in data[start:end] and end - start <= 1000 else _end_of_bare(data, start)


_PARTS = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORDS_OF_PASSWORDS = frozenset(b"password passwd passwort pwd pass passphrase passcode".split())
_WORDS_OF_SECRETS = frozenset(
    b"secret token apikey credential credentials creds cred secretkey accesskey authtoken".split()
)
_KEYS_OF = frozenset(
    b"api app access secret private auth encryption signing master account shared storage service license client consumer"
    b" subscription admin deploy webhook hmac aes jwt session cipher preshared root data developer integration rest server"
    b" project write read ingest ingestion management billing sas functions host ssh decryption security security wrapping"
    b" user personal bot registration activation merchant payment crypto wallet seed publish management sdk personal".split()
)
_KEYS_OF_NO_SECRET = frozenset(
    b"primary foreign sort partition cache public publishable row hash map object s3 group query lookup idempotency unique"
    b" composite pub dict json translation i18n message routing range shard index issue config dedup etag natural surrogate"
    b" item list event react element entity field column trace job step state storagekey locale lang test node file host".split()
)
_TAILS = frozenset(
    b"prod production staging stage dev development test live value val base b64 base64 raw plain plaintext text string str"
    b" default old new current previous primary secondary main backup local ci eu us key".split()
)
_TAILS_OF_NO_SECRET = frozenset(
    b"file path url uri name names id ids type types count counts limit limits expiry expires expiration ttl length len size"
    b" hash env ref refs header headers field fields prefix suffix version index policy manager provider store storage"
    b" endpoint address format label title hint placeholder rotation strategy usage budget window windows class cls"
    b" reset changed required enabled valid error errors date time at age in for kind mode method algorithm alg arn dir folder"
    b" location var variable pair pairs fingerprint checksum digest stdin prompt less free board stroke word words code frame"
    b" ring set spec signature source status usage user username validator".split()
)


@lru_cache(4096)
def _family(name: bytes) -> str:
    """What a name says of its value: `password`, `secret`, `key` (if it looks random), or nothing."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    for at in range(len(parts) - 1, -1, -1):
        family = _family_of(parts, at)
        if family:
            return _with_tail(family, parts[at + 1 :])
    return ""


def _with_tail(family: str, tail: list[bytes]) -> str:
    words = [word for word in tail if not word.isdigit() and len(word) > 1]
    if any(word in _TAILS_OF_NO_SECRET for word in words):
        return ""
    return family if all(word in _TAILS for word in words) else "key"


def _family_of(parts: list[bytes], at: int) -> str:
    word, before = parts[at], parts[at - 1] if at else b""
    if word in _WORDS_OF_PASSWORDS or word.endswith((b"password", b"passwd", b"passphrase")):
        return "password"
    if word in _WORDS_OF_SECRETS or word.endswith(
        (b"secret", b"token", b"apikey", b"secretkey", b"privatekey")
    ):
        return "secret"
    if (word == b"phrase" and before in (b"seed", b"recovery", b"secret", b"pass")) or word == b"mnemonic":
        return "phrase"
    if word == b"key":
        return _family_of_key(before)
    if word.endswith((b"accountkey", b"accesskey", b"sharedkey", b"authkey", b"masterkey", b"pass", b"pwd")):
        return (
            "password"
            if word in (b"requirepass", b"dbpass", b"smtppass", b"userpass", b"masterpass", b"pgpass")
            else "key"
        )
    return ""


def _family_of_key(before: bytes) -> str:
    if before in _KEYS_OF:
        return "secret"
    return "" if before in _KEYS_OF_NO_SECRET or not before else "key"


_PLACEHOLDER = re.compile(
    rb"(?i)your[-_]?(?:api|key|tok|sec|pass|auth|own|acc|cli|priv|db|[-_])|example|placeholder|changeme|change[-_]me|redacted"
    rb"|replace[-_]|dummy|insert[-_]|<|\$\{|\{\{|%\(|\*{4}|x{6}|\.{3}$|^\.{3}|[-_]here\b|foobar|undefined|^secrets\.|^env\."
)
_TYPE = re.compile(
    rb"(?i)(?:u?int|float|utf|sha|md|base|varchar|char|str|string|bytes?|decimal|es|rs|hs|ps|oauth|http|v|pbkdf|aes|ed|x|secp|p)"
    rb"[-_]?[0-9]{1,4}(?:[-_][a-z0-9]{1,12})*"
)
_UNIT = re.compile(rb"[0-9][0-9.,_]*[a-zA-Z%]{0,8}")
_PATH = re.compile(
    rb"\.{1,2}/|[~@]|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{1,20}://|/(?:[A-Za-z0-9_.-]{0,40}/|[a-z_.-]{2,40}$)"
)
_DOTTED = re.compile(rb"(?:[A-Za-z_]{1,40}\.){1,6}[A-Za-z_]{2,60}[0-9]?")
_IDENTIFIER = re.compile(rb"[A-Za-z_]{1,60}[0-9]{0,2}")
_SPLIT = re.compile(rb"[-_./:]")
_SLUG = re.compile(rb"[A-Za-z]{2,}|[A-Za-z]{0,3}[0-9]{1,4}|[A-Za-z]?")


def _is_placeholder(value: bytes) -> bool:
    """What a manual writes where a secret goes."""
    return bool(_PLACEHOLDER.search(value)) or len(set(value[-12:])) == 1


def _is_path(value: bytes) -> bool:
    return bool(_PATH.match(value)) and (b"://" in value or not _is_base64(value))


def _is_base64(value: bytes) -> bool:
    """Capitals, small letters and digits in a piece between slashes as no folder's name has them."""
    longest = max(value.split(b"/"), key=len)
    return (
        len(value) >= 20
        and len(longest) >= 8
        and all(re.search(kind, longest) for kind in (rb"[A-Z]", rb"[a-z]", rb"[0-9]"))
    )


def _has_mix(value: bytes) -> bool:
    """Letters, and something that words do not have."""
    plain = value.translate(None, b"_-")
    return not plain.isalpha() and any(65 <= c <= 90 or 97 <= c <= 122 for c in plain)


def _looks_secret(value: bytes, family: str, quoted: bool, prose: bool, name: bytes) -> bool:
    """Whether a value of a secret-sounding name is one: `password=os.environ` is not."""
    if (
        len(value) < 6
        or (prose and name.lower() == b"pass")
        or (value[:1] in b"$%&*@!=~#<" and not quoted)
        or _is_placeholder(value)
        or _is_path(value)
    ):
        return False
    if b" " in value:
        return _is_phrase(value, family)
    if family == "phrase":
        return False
    if family == "password":
        return _looks_password(value, quoted, prose, name)
    if not _has_mix(value):
        return _is_mixed_case(value)
    if _is_code(value, quoted):
        return False
    return _is_random(value, 16 if family == "key" else 8 if not prose else 12)


def _looks_password(value: bytes, quoted: bool, prose: bool, name: bytes) -> bool:
    if value.isdigit():
        return not prose and (quoted or name.isupper())
    if not _has_mix(value):
        return _is_mixed_case(value)
    if prose:
        return _is_random(value, 8) and not _is_slug(value)
    return not _is_code(value, quoted)


def _is_code(value: bytes, quoted: bool) -> bool:
    is_dotted = _DOTTED.fullmatch(value) and not any(_is_mixed_case(part) for part in value.split(b"."))
    if is_dotted or _TYPE.fullmatch(value) or (_UNIT.fullmatch(value) and not value.isalnum()):
        return True
    is_name = not quoted and _IDENTIFIER.fullmatch(value)
    return bool(is_name) and any(
        word in value.lower() for word in (b"pass", b"token", b"secret", b"key", b"cred")
    )


def _is_slug(value: bytes) -> bool:
    """Words and small numbers with `-` between: `my-secret-v2`."""
    parts = _SPLIT.split(value)
    return len(parts) > 1 and all(_SLUG.fullmatch(part) for part in parts)


def _is_random(value: bytes, least: int) -> bool:
    return len(value) >= least and not _is_slug(value) and _has_mix(value) and not _UNIT.fullmatch(value)


def _is_mixed_case(value: bytes) -> bool:
    """Letters alone, but with capitals as no name has them: every third to two thirds."""
    letters = value.translate(None, b"_-")
    capitals = sum(65 <= c <= 90 for c in letters)
    least = 0.25 if letters == value else 0.35
    return len(letters) >= 16 and letters.isalpha() and least <= capitals / len(letters) <= 0.8


def _is_phrase(value: bytes, family: str) -> bool:
    words = value.split(b" ")
    if family == "phrase" or (family == "password" and len(words) in (12, 15, 18, 21, 24)):
        return len(words) >= 3 and all(word.isalpha() and word.islower() for word in words)
    return (
        family == "password"
        and len(words) <= 4
        and _has_mix(value)
        and bool(re.search(rb"[0-9]", value))
        and bool(re.search(rb"[!#$%&*+=?@^~]", value))
    )


def _is_login(value: bytes) -> bool:
    """Base64 of `user:password`, as Basic authentication and Docker's settings have it."""
    if len(value) < 8:
        return False
    try:
        plain = base64.b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), validate=True)
    except (ValueError, binascii.Error):
        return False
    return b":" in plain and all(c >= 32 for c in plain)


# Headers.

_SCHEME = re.compile(
    rb"(?i)(?:bearer|token|apikey|api-key|key|ssws|bot|sso-key|splunk|geniekey|negotiate|ntlm|discogs token=|oauth|jwt|zoho-oauthtoken|digest|basic)"
    rb"\s{1,3}(?P<secret>[A-Za-z0-9._~+/:|%-]{8,600}=*)"
)
_AUTHORIZATION = re.compile(
    rb"authorization\\{0,15}[\"'\]]{0,2}\s{0,3}[:=,]?\s{0,3}[bfru]?\\{0,15}[\"'\x60]?"
)
_RAW = re.compile(rb"[A-Za-z0-9._~+/:|-]{16,600}=*")
_REST = re.compile(rb"[A-Za-z0-9._~+/:|%=-]*")
"""Of a credential that is longer than what was needed to tell: it is read once."""
_SIGNATURE = re.compile(rb"[A-Za-z0-9 /=,;_-]{0,400}?Signature=(?P<secret>[A-Za-z0-9%+/=]{20,})")
_COOKIES = re.compile(
    rb"cookies?\\{0,15}[\"'\]]{0,2}\s{0,3}[:=,(]?\s{0,3}\\{0,15}[\"'\x60]?(?=[^\s\"'\x60]{1,200}=)"
)
_COOKIE = re.compile(rb"\s{0,3}(?P<name>[^\s=;,\"'\\]{1,80})=(?P<secret>[^\s;,\"'\\]{0,4000})(?:;|(?=.)|$)")
_OF_COOKIES = frozenset(
    b"path domain expires max-age samesite secure httponly version priority partitioned".split()
)


def _in_headers(data: bytes, lowered: bytes) -> Iterator[Found]:
    for word, kind in ((b"bearer ", "bearer-token"), (b"basic ", "basic-auth")):
        for at in _every(lowered, word):
            match = _SCHEME.match(data, at)
            if match and _is_credential(match["secret"], kind):
                yield match.start("secret"), _end_of_rest(data, match.end()), kind
    done = 0
    for at in _every(lowered, b"authorization"):
        span = _authorization(data, lowered, at) if at >= done else None
        if span:
            done = _end_of_rest(data, span[1])
            yield span[0], done, "authorization"
    done = 0
    for at in _every(lowered, b"cookie"):
        for match in _cookies(data, lowered, at) if at >= done else ():
            done = match.end()
            if _is_cookie(match):
                yield (*match.span("secret"), "cookie")


def _end_of_rest(data: bytes, end: int) -> int:
    rest = _REST.match(data, end)
    return rest.end() if rest else end


def _is_credential(value: bytes, kind: str) -> bool:
    if kind == "basic-auth":
        return _is_login(value)
    if _is_placeholder(value):
        return False
    return len(value) >= 16 and ((_has_mix(value) and not _is_slug(value)) or _is_mixed_case(value))


def _authorization(data: bytes, lowered: bytes, at: int) -> Span | None:
    begin = _AUTHORIZATION.match(lowered, at)
    if begin is None:
        return None
    match = _SCHEME.match(data, begin.end()) or _SIGNATURE.match(data, begin.end())
    if match:
        is_one = _is_login(match["secret"]) or _is_credential(match["secret"], "bearer-token")
        return match.span("secret") if is_one else None
    raw = _RAW.match(data, begin.end())
    if raw and _is_credential(raw[0], "bearer-token") and not _PATH.match(raw[0]) and b"://" not in raw[0]:
        return raw.span()
    return None


def _cookies(data: bytes, lowered: bytes, at: int) -> Iterator[re.Match[bytes]]:
    """The pairs of a list, which is walked once: a pair in it may be called `cookie`, too."""
    begin = _COOKIES.match(lowered, at)
    match = _COOKIE.match(data, begin.end()) if begin else None
    while match:
        yield match
        match = _COOKIE.match(data, match.end()) if data[match.end() - 1 : match.end()] == b";" else None


def _is_cookie(match: re.Match[bytes]) -> bool:
    value = match["secret"]
    return (
        match["name"].lower() not in _OF_COOKIES
        and len(value) >= 8
        and _is_random(value, 8)
        and not _is_placeholder(value)
    )


# Programs that take a password without a name.

_COMMANDS = (
    (
        b" -u",
        re.compile(rb" -u(?:ser)?[ =]?[\"']?[^\s:\"'\\]{1,64}:(?P<secret>[^\s\"'\\$<{][^\s\"'\\]{3,200})"),
    ),
    (b"--user", re.compile(rb"--user[ =][\"']?[^\s:\"'\\]{1,64}:(?P<secret>[^\s\"'\\$<{][^\s\"'\\]{3,200})")),
    (b"sshpass -p", re.compile(rb"sshpass -p ?[\"']?(?P<secret>[^\s\"'\\$<{][^\s\"'\\]{3,200})")),
    (
        b"mysql",
        re.compile(
            rb"mysql(?:dump|admin)? [^\n|;\"]{0,120}?-p[\"']?(?P<secret>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
        ),
    ),
    (
        b"docker login",
        re.compile(
            rb"docker login [^\n|;\"]{0,120}?-p[ =]?[\"']?(?P<secret>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
        ),
    ),
    (
        b"redis-cli",
        re.compile(rb"redis-cli [^\n|;\"]{0,120}?-a[ =]?[\"']?(?P<secret>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"),
    ),
    (b"identified by", re.compile(rb"(?i)identified by (?:password )?'(?P<secret>[^'\"\\\s]{4,200})'")),
    (b":5432:", re.compile(rb":5432:[^\s:\"'\\]{1,64}:[^\s:\"'\\]{1,64}:(?P<secret>[^\s\"'\\]{4,200})")),
)


def _on_command_lines(data: bytes, lowered: bytes) -> Iterator[Found]:
    for sign, pattern in _COMMANDS:
        for at in _every(lowered, sign):
            match = pattern.match(data, at)
            if match and _is_argument(match["secret"], lowered[max(0, at - 200) : match.end()], sign):
                yield (*match.span("secret"), "command-password")


def _is_argument(value: bytes, command: bytes, sign: bytes) -> bool:
    if _is_placeholder(value) or value.lower() in _PLAIN_WORDS:
        return False
    if sign in (b" -u", b"--user") and not any(name in command for name in (b"curl", b"http", b"wget")):
        return False  # `docker run -u 1000:1000`
    return _has_mix(value) or sign == b"identified by"
