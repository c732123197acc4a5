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

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain

from holdfast.base.secret_forms import (
    AUTH_LOGIN,
    CUT_MARK,
    SECOND,
    before_hosts,
    below_headers,
    in_calls,
    in_context,
    in_english,
    in_latin,
    in_outputs,
    in_plain_signs,
    in_sight,
    inserted,
    is_second,
    letters_beyond,
    near_name,
    on_command_lines,
    places_of_escapes,
    with_alias,
)
from holdfast.base.secret_rules import LONG_RULES, LONG_WORD, SHORTEST_WORD, SIGN_RULES, WORD_RULES
from holdfast.base.secret_values import (
    PATH,
    PLAIN_WORDS,
    every,
    family_in_place,
    family_of,
    has_mix,
    is_login,
    is_mixed_case,
    is_placeholder,
    is_random,
    is_slug,
    is_strong,
    looks_secret,
)

Span = tuple[int, int]
Found = tuple[int, int, str]

_CUT = bytes((CUT_MARK,))


def redact(text: str) -> tuple[str, Counter[str]]:
    """The text without its secrets, and how many of each kind were taken out."""
    data, place = _as_bytes(text)
    found: Counter[str] = Counter()
    pieces: list[str] = []
    done = 0
    for first, last, kind in sorted(_visible_commands_left(data), key=lambda one: (one[0], -one[1])):
        start, end = place(first), place(last - 1) + 1
        if start < done:
            continue  # inside one that is taken out already
        pieces += (text[done:start], f"[redacted:{kind}]")
        found[kind] += 1
        done = end
    return ("".join((*pieces, text[done:])) if pieces else text), found


def _as_bytes(text: str) -> tuple[bytes, Callable[[int], int]]:
    """One byte a character that can be seen, and where a place in it is in the text."""
    if text.isascii():
        return text.encode(), lambda at: at
    data = text.encode("ascii", "replace")
    letters = letters_beyond(text, data)
    bare, place = in_sight(text, letters)
    plain = in_english(bare, letters)
    if plain is not text:
        data = plain.encode("ascii", "replace")
    return in_latin(plain, data, letters), place


def _secrets(data: bytes) -> Iterator[Found]:
    lowered = data.lower()
    yield from _vendor_words(data)
    yield from _by_sign(data)
    yield from _private_keys(data)
    if b"kty" in data:
        yield from ((*match.span("secret"), "jwk") for match in _JWK.finditer(data))
    yield from _urls(data)
    yield from _named(data, lowered)
    for start, end in places_of_escapes(lowered):
        plain, before = in_plain_signs(data[start:end])
        again = (_named(plain, plain.lower()), _in_headers(plain, plain.lower()), _vendor_words(plain))
        for one, other, kind in chain.from_iterable(again):
            yield start + before(one), start + before(other), kind
    yield from _pairs(data, lowered)
    yield from _in_headers(data, lowered)
    yield from in_calls(data, lowered)
    yield from on_command_lines(data, lowered)
    yield from inserted(data, lowered)
    yield from in_outputs(data)


_SUBSTITUTION = re.compile(rb"\$\(|\x60")
_LONGEST_SUBSTITUTION = 1000
_PARENTHESIS_OR_END = re.compile(rb"[()\r\n]")


def _visible_commands_left(data: bytes) -> Iterator[Found]:
    """A shell runs `$(…)` and backticks inside a value: who reads the command must see what they run.

    Such a part is no secret itself; secrets inside of it are looked for once more, as the value was not.
    """
    if b"$(" not in data and b"\x60" not in data:
        yield from _secrets(data)
        return
    for start, end, kind in _secrets(data):
        yield from _outside_substitutions(data, start, end, kind)


def _outside_substitutions(data: bytes, start: int, end: int, kind: str) -> Iterator[Found]:
    opened = _SUBSTITUTION.search(data, start, end)
    while opened:
        closed = _end_of_substitution(data, opened, end)
        if closed is None:
            opened = _SUBSTITUTION.search(data, opened.end(), end)
            continue
        if start < opened.start():
            yield start, opened.start(), kind
        start, inside = min(closed, end), opened.end()
        for one, other, inner in _visible_commands_left(data[inside:start]):
            yield inside + one, inside + other, inner
        opened = _SUBSTITUTION.search(data, start, end)
    if start < end:
        yield start, end, kind


def _end_of_substitution(data: bytes, opened: re.Match[bytes], end: int) -> int | None:
    """None for what is never closed. A value that ends at a quote inside `$(…)` goes on behind it."""
    if opened[0] == b"\x60":
        closed = data.find(b"\x60", opened.end(), end)
        return closed + 1 if closed > 0 else None
    depth = 1
    for sign in _PARENTHESIS_OR_END.finditer(data, opened.end(), opened.end() + _LONGEST_SUBSTITUTION):
        if sign[0] not in b"()":
            return None
        depth += 1 if sign[0] == b"(" else -1
        if depth == 0:
            return sign.end()
    return None


# Words with a vendor's prefix.

_WORD_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_IN_WORDS = bytes(97 if c in _WORD_BYTES + b".~-" else 32 for c in range(256))
_LONG_WORD = b"a" * SHORTEST_WORD
_ESCAPES = b"nrtbf"


def _vendor_words(data: bytes) -> Iterator[Found]:
    """Tokens begin a long word, or a part of one. The loop runs for every long word: what it does is counted."""
    shape, heads, inner = data.translate(_IN_WORDS), _heads(), _inner_heads()
    plain: set[bytes] = set()
    start = shape.find(_LONG_WORD)
    while start >= 0:
        end = shape.find(b" ", start)
        end = len(data) if end < 0 else end
        word = data[start:end]
        if word not in plain or (start and data[start - 1] == 58):  # after a colon it may be another's half
            if start and data[start - 1] == 92 and data[start] in _ESCAPES:
                start += 1  # in JSON text `\n` begins a line
            if data[start : start + 3] in heads or data[start : start + 2] in heads or inner.search(word):
                found = list(_in_word(data, start, end))
            else:
                found = _long_word(data, start, end)
            if not found and start and (place := in_context(data, start, end)):
                end = _end_of_rest(data, place[1])
                found = [(start, end, "assigned-secret")]
            yield from found
            if not found:
                plain.add(word)
        start = shape.find(_LONG_WORD, end)
    if _CUT in data or b"u2026" in data:
        yield from _cut_words(data)


def _in_word(data: bytes, start: int, end: int) -> Iterator[Found]:
    done, tries = start, _MOST_PLACEHOLDERS
    heads = _heads()
    for place in (start, *(match.start() + 1 for match in _inner_heads().finditer(data, start, end))):
        rules = heads.get(data[place : place + 3]) or heads.get(data[place : place + 2]) or ()
        for kind, prefix, pattern in rules if place >= done else ():
            if not tries or not data.startswith(prefix, place):
                continue
            match = pattern().match(data, place)
            if match and not is_placeholder(match[0]):
                yield place - _digits_before(data, place, kind), match.end(), kind
                done = match.end()
                break
            tries -= match is not None
    if done == start:
        yield from _long_word(data, start, end)


def _long_word(data: bytes, start: int, end: int) -> list[Found]:
    match = _long_words().match(data, start) if end - start >= LONG_WORD else None
    return [(*match.span(), LONG_RULES[int((match.lastgroup or "r0")[1:])][0])] if match else []


_MOST_PLACEHOLDERS = 16
"""In one word: each may be as long as the word, and is read again from the next head on."""


@cache
def _inner_heads() -> re.Pattern[bytes]:
    """Where a part of a word begins as a token does."""
    nexts: dict[bytes, tuple[set[bytes], set[bytes]]] = {}
    for head in _heads():
        seconds, thirds = nexts.setdefault(head[:1], (set(), set()))
        seconds.add(head[1:2])
        thirds.add(head[2:])
    parts = (
        re.escape(first)
        + b"".join(b"[" + re.escape(b"".join(sorted(some))) + b"]" for some in both if b"" not in some)
        for first, both in sorted(nexts.items())
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


_Rule = tuple[str, bytes, Callable[[], re.Pattern[bytes]]]


@cache
def _heads() -> dict[bytes, tuple[_Rule, ...]]:
    """Which rules can match, by the first two or three characters."""
    heads: dict[bytes, tuple[_Rule, ...]] = {}
    for kind, prefixes, rest in WORD_RULES:
        for prefix in prefixes.split(" "):
            before = "(?<=[0-9]{8}:)" if kind == "telegram-token" else ""
            rule = (kind, prefix.encode(), _later(f"{before}{re.escape(prefix)}(?:{rest})"))
            head = prefix[:3].encode()
            heads[head] = (*heads.get(head, ()), rule)
    for head in [head for head in heads if len(head) == 3 and head[:2] in heads]:
        heads[head] = (*heads[head], *heads[head[:2]])
    heads[b"eyJ"] = (*heads.get(b"eyJ", ()), ("jwt", b"eyJ", _later(_JWT)))
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
_CUT_PREFIXES = {
    prefix.encode(): kind
    for kind, prefixes, _ in reversed(WORD_RULES)
    for prefix in prefixes.split(" ")
    if len(prefix) > 3 or prefix == "sk-"
}


@cache
def _cut_prefix() -> re.Pattern[bytes]:
    longest_first = sorted(_CUT_PREFIXES, key=len, reverse=True)
    return re.compile(rb"(?<![A-Za-z0-9_])(%s)(?=.{4})" % b"|".join(map(re.escape, longest_first)))


def _cut_words(data: bytes) -> Iterator[Found]:
    """What a cut left of a token: its prefix, at least four characters and `…`, which JSON may spell out."""
    for mark in (_CUT, b"u2026"):
        for at in every(data, mark):
            word = data[max(0, at - 100) : at].rstrip(b"\\")
            end = max(0, at - 100) + len(word)
            word = word[len(word.rstrip(_WORD_BYTES + b".~-")) :]
            yield from _cut_word(data, end - len(word), word)


def _cut_word(data: bytes, start: int, word: bytes) -> Iterator[Found]:
    if len(word) < 8:
        return
    if start and data[start - 1] == 92 and word[:1] in (b"n", b"r", b"t"):
        start, word = start + 1, word[1:]
    match = _cut_prefix().search(word)
    if match:
        yield start + match.start(), start + len(word), _CUT_PREFIXES[match[1]]


# What has a sign that may stand anywhere.


def _by_sign(data: bytes) -> Iterator[Found]:
    for pattern in _signs():
        for match in pattern.finditer(data):
            group = match.lastgroup or ""
            kind = SIGN_RULES[int(group[1:])][0]
            if not is_placeholder(match[group]):
                yield (*match.span(group), kind)


@cache
def _signs() -> tuple[re.Pattern[bytes], ...]:
    """A pattern a sign, each of its rules a group. One that begins with a literal is as fast as a search for it."""
    choices: dict[str, list[str]] = {}
    for number, (_, sign, before, secret) in enumerate(SIGN_RULES):
        choices.setdefault(sign, []).append(f"{before}(?P<r{number}>{secret})")
    return tuple(
        re.compile(f"{re.escape(sign)}{_BEFORE_RULES.get(sign, '')}(?:{'|'.join(rules)})".encode())
        for sign, rules in choices.items()
    )


_BEFORE_RULES = {"_": "(?:(?=[lpsS])|(?<=ec_|ps_|1r_|1a_|2r_|2a_|m2_|LE_|T[SL]_))"}
"""What is quick to see of each of a sign's rules, where the sign is in every other word."""

_KEY_NAME = rb"(?:(?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V[0-9])[- ]----"
_KEY_BEGINS = re.compile(rb"----[- ]BEGIN " + _KEY_NAME)
_KEY_ENDS = re.compile(rb"----[- ]END " + _KEY_NAME)
# Of one whose end is missing, what looks like its body: never a quote, so JSON stays JSON.
_KEY_BODY = re.compile(rb"(?:[A-Za-z0-9+/=:,.?\s-]|\\+[nrt])*")
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


_JWK = re.compile(rb"\"(?:[dkpq]|d[pq]|qi)\\{0,15}\": ?\\{0,15}\"(?P<secret>[A-Za-z0-9_-]{40,})\\{0,15}\"")
"""The private numbers of a key that is written as JSON."""


_IN_URL = re.compile(
    rb"://(?P<secret>(?P<user>[^\s/:@\"'\\<>\x60]{0,64}):(?P<word>[^\s/\"'\\<>\x60]{1,160})|[0-9a-f]{32}|[A-Za-z0-9_-]{30,200})@"
)
_KEY_IN_PATH = re.compile(
    rb"://[a-z0-9.-]{1,60}\.(?:infura\.io/v3|g\.alchemy\.com/v2|quiknode\.pro|ifttt\.com/trigger/[^\s/\"'\\]{1,80}/with/key|azurewebsites\.net/api/[^\s?\"'\\]{1,80}\?code=)/?(?P<secret>[A-Za-z0-9_-]{20,100}={0,2})"
)


def _urls(data: bytes) -> Iterator[Found]:
    for at in every(data, b"://"):
        match = _IN_URL.match(data, at)
        if match and not _is_plain_login(
            match["user"], match["word"], bool(_AT_HOME.match(data, match.end()))
        ):
            yield (*match.span("secret"), "url-password")
        elif key := _KEY_IN_PATH.match(data, at):
            yield (*key.span("secret"), "url-key")
        else:
            yield from with_alias(data, at)
    yield from before_hosts(data)


_AT_HOME = re.compile(
    rb"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|host(?:name)?|myhost|db|server|example)\b|/|192\.168\."
)


def _is_plain_login(user: bytes | None, word: bytes | None, at_home: bool) -> bool:
    """`user:password@` of a manual, `postgres:postgres@` of every tutorial, `$USER:$PASSWORD@` of a script."""
    if word is None:
        return False
    is_local = word.isalpha() and word.islower() and at_home
    is_local |= word.isalpha() and (
        word.isupper() or word.lower().endswith((b"token", b"password", b"secret"))
    )
    return (
        is_local
        or word.lower() in PLAIN_WORDS
        or word == user
        or (word[:1] in b"${[*%" and not is_strong(word))
        or is_placeholder(word)
    )


# Values of secret-sounding names.

_NAMES = (
    # Anchored at rare letters of the names, each with a literal to search for: what comes before is read
    # backwards where the rest fits.
    r"k(?:ey|en(?<=token)|ode(?<=adgangskode)|(?<=authtok)|ennwort)",
    r"p(?:ass(?:w(?:o?r)?[dt]|ord|phrase|code)?|wd?|word|hrase|s(?:k|wd?)|arola|(?<=(?<![a-z])mdp)(?![a-z]))",
    r"cre(?:t(?<=secret)|d(?:s|entials?)?)",
    r"mnemonic",
    r"h(?:eslo|a(?<=senha)|twoord(?<=wachtwoord))",
)
_GAP = r"(?:\s|\\{1,15}[nrt]){0,30}"
_LINE_END = r"(?:\r?\n|\\{1,15}n)"
# The value stands on a line of its own: below `password:`, `token = (`, `secret: !vault`, a title.
_BELOW = (
    rf"[ \t]{{0,3}}(?:[(>|][+-]?|![!a-z]{{1,12}}|\\{{1,30}}(?=[\n\\]))?[ \t]{{0,3}}{_LINE_END}{_GAP}(?:-\s)?"
)
_AFTER_NAME = (
    r"(?P<tail>[a-z0-9_.-]{0,24})"
    r"(?P<close>\\{0,15}[\"'\]\x60]{0,2})(?:\*{0,2}(?:"
    r"(?:\s(?:for|of|on|to|at|do|de|du|der|des|del|ot|[?a-z]{1,3}\?|\?[?a-z]{1,3})\s[a-z0-9 .'?-]{1,40}?|\sfrom\s[^\s:]{1,60}|(?:\s|\\n){1,2}d['?]ordine)?\s{1,3}"
    r"(?:(?:has been |was |will be )?(?:changed|set|reset) to|is generated for [^\s:]{1,40}:|is|was|ist|to|este?|es|lautet|jest|\?)(?P<colon>:?)\s"
    r"|(?:\s{0,3}(?P<type>:{1,2}\s{0,2}[&']{0,2}(?:static\s)?[a-z_.]{1,30}(?:\[[a-z_., ]{1,30}\])?(?:\s?\|\s?[a-z]{1,10})?|\[[0-9a-z_]{0,16}\])|\sas\s[a-z.]{1,20})\s{0,3}=(?!=)[ \t]{0,3}"
    # `fill("#password", …)` in the ways that drive a browser, and what an argument is without one.
    r"|\)\s?(?:or|\|\||\?\?)\s{1,3}(?P<other>)(?=\\{0,15}[\"'])"
    r"|(?:\)\s?\.(?:fill|type|send_?keys|presssequentially)\(|,\s?(?:with:|default\s?=)\s?)(?P<filled>)(?=\\{0,15}[\"'])"
    r"|(?:(?=[\s(\[#])(?:\s(?:for|of|do|ot|[?a-z]{1,3}\?|\?[?a-z]{1,3})\s(?:user\s)?[^\s:=,(]{1,40}|\sto\s[a-z ]{3,40}(?=:\s|:\\)|\s(?:from|d['?]ordine)(?:\s[^\s:]{1,40})?(?=:\s)|\s[0-9]{1,2}(?=:)|\s?(?:\([a-z0-9 ]{1,20}\)|\[[a-z]{1,16}\]|#[0-9]{1,3}|provided)(?=:\s)"
    r"|(?:\s[a-z:]{1,20}=\\{0,15}\"[^\"\\<>]{0,60}\\{0,15}\"){1,3}(?=>))|)"
    r"\s{0,40}(?P<sep>=>|->|<-|::(?=\s)|[:?]=|\?:|\|\||\?\?|[!=]?==?|:|,|\(|>|\{(?=\\{0,15}\")|or(?=\s{1,3}\\{0,15}[\"']))"
    r"(?:\s{0,3}(?:[a-z:]{0,30}(?:from|new|str|string|some|crypt|hash|md5|sha[0-9]{1,3}|encode|make)|\[\]byte)\((?=\\{0,15}[\"'\x60])|)\*{0,2}(?:"
    rf"(?P<below>{_BELOW})(?=[^\s\\]|\\{{1,15}}[\"'])|(?P<list>\s{{0,3}}\[{_GAP})(?=\\{{0,15}}[\"'])|\s{{0,3}}|\\{{1,15}}t)"
    r"(?:<(?:value|plaintext)>|<!\[cdata\[)?"
    rf"|:?</(?:key|name|t[dh]|dt|b|strong|label|code)>:?{_GAP}<(?:string|value|t?dd?|code|b|span|pre|kbd|input value=(?=\\{{0,15}}[\"']))>?(?:<string>)?(?P<xml>)"
    rf"|[ \t]{{0,2}}(?P<title>{_LINE_END}(?:[-=]{{3,40}}{_LINE_END}|{_LINE_END})?[ \t]{{0,8}})"
    r"|\s{0,30}(?P<cell>\|)\s{0,3}"
    rf"|\s{{0,3}}\{{(?:{_GAP}(?:type|description|sensitive)\s{{0,8}}=[^\n\\]{{1,60}}){{0,3}}{_GAP}default\s{{0,3}}=\s{{0,3}}"
    r"|\s{1,3}(?:[05-9]\s|plaintext )?|(?<=openssl passwd)(?:\s-[a-z0-9]{1,8}){1,3}\s)"
    r"(?P<open>[bfrun@$]?\\{0,15}[\"'\x60]|(?=[^\s\"'\\,;(){}<>\[\]|\x60]{4}|[a-z]{3} )(?![0-9]{1,5}[,}\s]))(?=[^\s\"'\\,;(){}<>\[\]|\x60])"
    r"|(?P<column>(?=[ *]{0,40}(?:[,;|\t\r\n]|\\{1,15}(?:[tnr]|u25)|$)|  | from ))|(?<=ssword)(?=[ )]))"
)
_BARE = re.compile(rb"[^\s\"'\\,;(){}<>\[\]\x60\x1a]{1,400}")
_QUOTED = re.compile(rb"[^\"'\x60\\\r\n]{1,400}")
_QUOTE = re.compile(rb"(\\*)\"")


_AUTH_NAME = re.compile((r"auth(?![a-z])" + _AFTER_NAME).encode())


@cache
def _named_patterns() -> tuple[re.Pattern[bytes], ...]:
    return tuple(re.compile((name + _AFTER_NAME).encode()) for name in _NAMES)


def _named(data: bytes, lowered: bytes) -> Iterator[Found]:
    for pattern in _named_patterns():
        match = pattern.search(lowered)
        read = 0
        while match:
            start = match.end()
            found = None if match["open"] is None else _value_of(data, match)
            if not found and match.start() >= read:
                below, read = below_headers(data, match.end("tail"))
                yield from below
                if lowered[match.start()] == 112:  # of a password
                    yield from near_name(data, match.start(), match.end("tail"))
            if found:
                yield (*found, "assigned-secret")
                start = found[1]
                for item in _next_items(data, start) if match["list"] or match["below"] else ():
                    yield (*item, "assigned-secret")
                    start = item[1]
            match = pattern.search(lowered, start)


_NEXT_ITEM = re.compile(
    rf"\\{{0,15}}[\"']?,?{_GAP}(?:-\s\\{{0,15}}[\"']?|(?<=[\s,])\\{{0,15}}[\"'])(?P<secret>[^\s\"'\\,\[\]]{{8,400}})".encode()
)


def _next_items(data: bytes, end: int) -> Iterator[Span]:
    """The others of a list whose first is a secret."""
    match = _NEXT_ITEM.match(data, end)
    while match and _is_loose(match["secret"]) and not is_placeholder(match["secret"]):
        yield match.span("secret")
        match = _NEXT_ITEM.match(data, match.end())


def _value_of(data: bytes, match: re.Match[bytes]) -> Span | None:
    name = _name_at(data, match)
    is_list = match["list"] or (match["below"] and match["below"].endswith(b"- "))
    if is_list and name[-1:] in (b"s", b"S") and name[-6:].lower() != b"tokens":
        name = name[:-1]
    family = family_of(name) or family_in_place(data, match, name)
    if not family:
        return None
    start, quoted = match.end(), bool(match["open"])
    if family == "phrase" and not quoted:
        phrase = _PHRASE.match(data, start)
        return phrase.span() if phrase else None
    end = _end_of_quoted(data, start, match["open"]) if quoted else _end_of_bare(data, start)
    value = data[start:end]
    if match["sep"] == b"(" and name.lower().endswith((b"credential", b"credentials")):
        second = SECOND.match(data, start)
        if second:
            return second.span("secret") if is_second(second["secret"]) else None
    if (is_list or match["sep"] == b"or" or match["xml"] is not None) and not _is_loose(value):
        return None
    if (match["below"] or match["title"]) and not (
        match["sep"] != b"," and _is_alone(data, value, end, quoted)
    ):
        return None
    if _is_call(data, match, name, end) or (match["type"] and not quoted):
        return None
    if (
        data[match.end("tail") - len(name) - 1 : match.end("tail") - len(name)] in (b"$", b"{")
        and not match["sep"]
    ):
        return None  # a variable, and the next argument
    has_sign = (
        match["sep"]
        or match["colon"]
        or match["type"]
        or match["cell"]
        or match["xml"] is not None
        or match["filled"] is not None
        or match["other"] is not None
    )
    prose = not has_sign and not _is_flag(data, match, name)
    is_cut = data[end : end + 1] == b"\x1a" and len(value) >= 4 and not prose
    is_secret = (is_cut and has_mix(value)) or looks_secret(value, family, quoted, prose, name)
    return (start, end) if is_secret else None


def _is_alone(data: bytes, value: bytes, end: int, quoted: bool) -> bool:
    """Below a name stand other things, too: the next statement, the first word of a text."""
    if quoted:
        return True
    if _NEXT_NAME.match(value):
        return False
    end += data[end : end + 1] == b"!"
    rest = data[end : end + 2]
    is_last = rest[:1] in (b"", b"\n", b"\r", b'"') or rest in (b"\\n", b"\\r", b'\\"', b"\\\\")
    return is_last and (is_random(value, 8) or is_mixed_case(value) or _is_made_up(value))


_NEXT_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_.-]{1,60}[=:](?!=?$)")
_MADE_UP = re.compile(rb"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^_-]*[_-])[\w-]{4,60}\d\d")


def _is_made_up(value: bytes) -> bool:
    """Words as people join them to a password."""
    return _MADE_UP.fullmatch(value) is not None


def _is_loose(value: bytes) -> bool:
    """No word of a list whose words sound like secrets."""
    is_word = _WORD_AND_NUMBER.fullmatch(value)
    return bool(re.search(rb"[0-9]", value)) and is_random(value, 8) and b"[" not in value and not is_word


_WORD_AND_NUMBER = re.compile(rb"[A-Za-z]?[a-z_]*[0-9]{1,2}")


_PHRASE = re.compile(rb"(?:[a-z]{3,8} ){11,23}[a-z]{3,8}")


def _is_call(data: bytes, match: re.Match[bytes], name: bytes, end: int) -> bool:
    """Code whose arguments are no values of the name: `token(x)`, `Token, "x"`, `get_password(…)`."""
    sep, quoted = match["sep"], bool(match["open"])
    if sep == b",":
        return not (quoted and match["close"] and _is_loose(data[match.end() : end]))
    if sep in (b"||", b"??") and not quoted:
        return True
    if sep == b":" and name == b"PASS" and data.endswith(b"--- ", 0, match.end("tail") - 4):
        return True  # the name of a test of Go
    if match["cell"]:
        return not data.endswith((b"| ", b"| `", b"| **"), 0, match.end("tail") - len(name))
    if sep == b"(":
        is_taker = b"set" in name.lower() or _is_wrapped(data[match.end() : end], name)
        return not (quoted and is_taker)
    value = data[match.end() : end]
    is_attribute = not quoted and _ATTRIBUTE.fullmatch(value) is not None
    is_template = is_attribute or (quoted and b"{" in value and b"}" in value)
    return is_template or (not quoted and data[end : end + 1] in (b"(", b"["))


_ATTRIBUTE = re.compile(rb"[A-Za-z][A-Za-z:_-]{0,40}=")
_ASKS = (b"get", b"fetch", b"read", b"find", b"load", b"has", b"is", b"check", b"test", b"parse")


def _is_wrapped(value: bytes, name: bytes) -> bool:
    """`Password("…")`, `new AzureKeyCredential("…")`: a value that is made a secret."""
    return _is_loose(value) and len(value) >= 10 and not name.lower().lstrip(b"_").startswith(_ASKS)


def _name_at(data: bytes, match: re.Match[bytes]) -> bytes:
    before = data[max(0, match.start() - 40) : match.start()]
    at = len(before.rstrip(_WORD_BYTES + b"-."))
    at += before[at - 1 : at] == b"\\" and before[at : at + 1] in (b"n", b"r", b"t")  # `\npassword` in JSON
    name = before[at:] + data[match.start() : match.end("tail")]
    if before.endswith(b" "):  # `API key: …`
        first = _FIRST_WORD.search(before)
        return first[1] + b"_" + name if first else name
    return name


_FIRST_WORD = re.compile(
    rb"(?i)(?:(?<![a-z])|(?<=\\[nrt]))(api|access|secret|private|auth|signing|master|seed|recovery|unseal|server|license|encryption) $"
)


def _is_flag(data: bytes, match: re.Match[bytes], name: bytes) -> bool:
    """`--password X`, and `password X` of a `.netrc` or a `redis.conf`."""
    if name.startswith(b"-"):
        return True
    start = match.end("tail") - len(name)
    line = data[max(0, start - 120) : start]
    return (
        b"login " in line
        or b"machine " in line
        or (name == b"PASS" and b"USER " in line)
        or (b"rclone config " in line and name == b"pass")
        or line.endswith((b"openssl ", b"ENV ", b"ARG ", b"setenv ", b"set -x ", b"set -gx "))
        or name.lower() in (b"requirepass", b"masterauth", b"bindpw")
    )


def _end_of_bare(data: bytes, start: int) -> int:
    match = _BARE.match(data, start)
    end = match.end() if match else start
    while end > start and data[end - 1] in b".:!?" and data[end : end + 1] in (b"", b" ", b"\n", b"<", b"\\"):
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


# A name and its value that are told as a pair: of a container's environment, a form, a list of settings.

_PAIR_NAME = re.compile(
    rb"(?:name|key)\\{0,15}[\"']?\s{0,3}[:=]\s{0,3}\\{0,15}[\"']?(?P<name>[A-Za-z0-9_.-]{3,60})\\{0,15}[\"']?,?"
    + _GAP.encode()
    + rb"(?:(?!name|key)[a-z]{2,12}=\\{0,15}[\"'][^\"'\\]{0,30}\\{0,15}[\"']\s{1,3}){0,2}\\{0,15}[\"']?(?:parameter|android:)?$",
    re.IGNORECASE,
)
_PAIR_VALUE = re.compile(
    rb"value\\{0,15}[\"']?\s{0,3}[:=]\s{0,3}(?P<open>\\{0,15}[\"']|)(?=[^\s\"'\\,;(){}<>\[\]|\x60])"
)
_LONGEST_PAIR = 140


def _pairs(data: bytes, lowered: bytes) -> Iterator[Found]:
    for match in _PAIR_VALUE.finditer(lowered):
        named = _PAIR_NAME.search(data, max(0, match.start() - _LONGEST_PAIR), match.start())
        if named is None:
            yield from _before_its_name(data, match)
            continue
        start, quoted = match.end(), bool(match["open"])
        if named["name"].lower().endswith(b"cookie"):
            yield from _of_list(data, start)
            continue
        end = _end_of_quoted(data, start, match["open"]) if quoted else _end_of_bare(data, start)
        family = family_of(named["name"])
        if family and looks_secret(data[start:end], family, quoted, False, named["name"]):
            yield start, end, "assigned-secret"


_NAME_AFTER = re.compile(
    rb"\\{0,15}[\"'],\s{0,3}\\{0,15}[\"'](?:parameter)?(?:name|key)\\{0,15}[\"']\s?:\s?\\{0,15}[\"'](?P<name>[A-Za-z0-9_.-]{3,60})\\{0,15}[\"']",
    re.IGNORECASE,
)


def _before_its_name(data: bytes, match: re.Match[bytes]) -> Iterator[Found]:
    """`{"value": "…", "name": "DB_PASSWORD"}`, `<input value="…" name="password">`."""
    if not match["open"]:
        return
    end = _end_of_quoted(data, match.end(), match["open"])
    named = _NAME_AFTER.match(data, end) or _NAME_IN_TAG.match(data, end)
    family = family_of(named["name"]) if named else ""
    if named and family and looks_secret(data[match.end() : end], family, True, False, named["name"]):
        yield match.end(), end, "assigned-secret"


_NAME_IN_TAG = re.compile(
    rb"\\{0,15}[\"'] (?:where )?(?:name|key) ?= ?\\{0,15}[\"'](?P<name>[A-Za-z0-9_.-]{3,60})\\{0,15}[\"']",
    re.IGNORECASE,
)

# Headers.

_SCHEME = re.compile(
    rb"(?i)(?:bearer|token|apikey|api-key|key|ssws|bot|sso-key|splunk|geniekey|negotiate|ntlm|discogs token=|oauth|jwt|zoho-oauthtoken|digest|basic)"
    rb"\s{1,3}(?P<secret>[A-Za-z0-9._~+/:|%-]{8,600}=*)"
)
_COMMON_SCHEME = re.compile(rb"b(?:earer|asic) ")
_AUTHORIZATION = re.compile(
    rb"authorization\\{0,15}[\"'\]]{0,2}\s{0,3}[:=,]?\s{0,3}[bfru]?\\{0,15}[\"'\x60]?"
)
_DOCKER_AUTH = re.compile(
    rb"auth\\{0,15}[\"']?\s{0,2}[:=]\s{0,2}\\{0,15}[\"']?(?P<secret>[A-Za-z0-9+/]{10,400}={0,2})"
)
_OTHER_SCHEME = re.compile(
    rb"(?i)[a-z][a-z0-9-]{1,30} (?:[a-z]{1,20}=)?(?:akia[a-z0-9]{16}:)?\\{0,15}\"?(?P<secret>[A-Za-z0-9._~+/-]{16,600}=*)"
)
_AFTER_AUTH = re.compile(
    rb"(?i:auth)(?: (?:PLAIN|LOGIN) (?=[A-Za-z0-9+/]{12,400}={0,2}(?![A-Za-z]))|:(?=[a-z0-9]{30}(?![A-Za-z0-9_-])))(?P<secret>[A-Za-z0-9+/]{12,400}={0,2})"
)
_RAW = re.compile(rb"[A-Za-z0-9._~+/:|-]{16,600}=*")
_REST = re.compile(rb"[A-Za-z0-9._~+/:|%=-]*")
"""Of a credential that is longer than what was needed to tell: it is read once."""
_SIGNATURE = re.compile(rb"[A-Za-z0-9 /=,;_-]{0,400}?Signature=(?P<secret>[A-Za-z0-9%+/=]{20,})")
_DIGEST = re.compile(
    rb"(?i)digest [^\r\n]{0,600}?[ ,]response=\\{0,15}\"?(?P<secret>[0-9a-f]{32,64})(?![0-9a-z])"
)
_COOKIES = re.compile(
    rb"cookies?(?![a-z])\\{0,15}[\"'\]]{0,2}\s{0,3}[:=,(]?\s{0,3}\\{0,15}[\"'\x60]?(?=[^\s\"'\x60?/][^\s\"'\x60]{0,200}=)"
)
_COOKIE = re.compile(rb"\s{0,3}(?P<name>[^\s=;,\"'\\]{1,80})=(?P<secret>[^\s;,\"'\\]{0,4000})(?:;|(?=.)|$)")
_OF_COOKIES = frozenset(
    b"path domain expires max-age samesite secure httponly version priority partitioned".split()
)


def _in_headers(data: bytes, lowered: bytes) -> Iterator[Found]:
    for scheme in _COMMON_SCHEME.finditer(lowered):
        kind = "bearer-token" if scheme[0][1] == 101 else "basic-auth"
        match = _SCHEME.match(data, scheme.start())
        if match and _is_credential(match["secret"], kind):
            yield match.start("secret"), _end_of_rest(data, match.end()), kind
    done = 0
    for at in _starts(lowered, b"auth", 1):
        if not lowered.startswith(b"authorization", at):
            yield from _other_auth(data, lowered, at)
            continue
        span = _authorization(data, lowered, at) if at >= done else None
        if span:
            done = _end_of_rest(data, span[1])
            yield span[0], done, "authorization"
    done = 0
    for at in _starts(lowered, b"cookie", 3):
        for match in _cookies(data, lowered, at) if at >= done else ():
            done = match.end()
            if _is_cookie(match):
                yield (*match.span("secret"), "cookie")


def _starts(lowered: bytes, word: bytes, rare: int) -> Iterator[int]:
    """Where the word begins; it is searched for from a letter on that is rare."""
    for at in every(lowered, word[rare:]):
        if at >= rare and lowered.startswith(word, at - rare):
            yield at - rare


def _other_auth(data: bytes, lowered: bytes, at: int) -> Iterator[Found]:
    named = _AUTH_NAME.match(lowered, at)
    value = _value_of(data, named) if named and named["open"] is not None else None
    if value:
        yield (*value, "assigned-secret")
    match = _DOCKER_AUTH.match(data, at)
    if match and is_login(match["secret"]):
        yield (*match.span("secret"), "basic-auth")
    match = _AFTER_AUTH.match(data, at)
    if match and has_mix(match["secret"]):
        yield (*match.span("secret"), "basic-auth")
    match = AUTH_LOGIN.match(lowered, at)
    if match and is_second(data[match.start("secret") : match.end("secret")]):
        yield (*match.span("secret"), "assigned-secret")


def _end_of_rest(data: bytes, end: int) -> int:
    rest = _REST.match(data, end)
    return rest.end() if rest else end


def _is_credential(value: bytes, kind: str) -> bool:
    if kind == "basic-auth":
        return is_login(value)
    if is_placeholder(value):
        return False
    return len(value) >= 12 and ((has_mix(value) and not is_slug(value)) or is_mixed_case(value))


def _authorization(data: bytes, lowered: bytes, at: int) -> Span | None:
    begin = _AUTHORIZATION.match(lowered, at)
    if begin is None:
        return None
    answer = _DIGEST.match(data, begin.end())
    if answer:
        return answer.span("secret")
    match = _SCHEME.match(data, begin.end()) or _SIGNATURE.match(data, begin.end())
    if match:
        is_one = is_login(match["secret"]) or _is_credential(match["secret"], "bearer-token")
        return match.span("secret") if is_one else None
    other = _OTHER_SCHEME.match(data, begin.end()) if b":" in begin[0] or b"=" in begin[0] else None
    if other and re.search(rb"[0-9]", other["secret"]) and _is_credential(other["secret"], "bearer-token"):
        return other.span("secret")
    raw = _RAW.match(data, begin.end())
    if raw and _is_credential(raw[0], "bearer-token") and not PATH.match(raw[0]) and b"://" not in raw[0]:
        return raw.span()
    return None


def _cookies(data: bytes, lowered: bytes, at: int) -> Iterator[re.Match[bytes]]:
    """The pairs of a list, which is walked once: a pair in it may be called `cookie`, too."""
    begin = _COOKIES.match(lowered, at)
    match = _COOKIE.match(data, begin.end()) if begin else None
    while match:
        yield match
        match = _COOKIE.match(data, match.end()) if data[match.end() - 1 : match.end()] == b";" else None


def _of_list(data: bytes, start: int) -> Iterator[Found]:
    match = _COOKIE.match(data, start)
    while match:
        if _is_cookie(match):
            yield (*match.span("secret"), "cookie")
        match = _COOKIE.match(data, match.end()) if data[match.end() - 1 : match.end()] == b";" else None


def _is_cookie(match: re.Match[bytes]) -> bool:
    value = match["secret"]
    return (
        match["name"].lower() not in _OF_COOKIES
        and len(value) >= 8
        and is_random(value, 8)
        and not is_placeholder(value)
    )
