# ruff: noqa: E501 - patterns and lists of words, which read worse when broken
"""What a name says of its value, and whether a value looks like a secret.

`password=os.environ` has none, `password: str` neither, and `your-api-key-here` is what a manual writes. A value is
judged by its shape: code, types, paths, units and words with dashes are none.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

_PARTS = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORDS_OF_PASSWORDS = frozenset(
    b"password passwd passwrd passwort pwd pswd psw pword adminpw rootpw dbpw userpw pass passphrase passcode sshpass psk bindpw masterauth rootpw passe passkey motdepasse passord parola heslo geslo salasana adgangskode senha authtok kennwort wachtwoord mdp".split()
)
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
    b" item list event react element entity field column trace job step state storagekey locale lang test node file host price".split()
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
    b" ring arg args set spec signature source status usage user username validator context".split()
)


@lru_cache(4096)
def family_of(name: bytes) -> str:
    """What a name says of its value: `password`, `secret`, `key` (if it looks random), or nothing."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    if parts[-3:] == [b"public", b"key", b"token"]:
        return ""  # of a .NET assembly
    if name == b"SecretID":
        return "key"
    if parts[-2:] == [b"secret", b"id"] and parts[-3:-2] in ([b"vault"], [b"approle"], [b"role"]):
        return "key"  # what logs in, unlike other ids
    for at in range(len(parts) - 1, -1, -1):
        is_chance = parts[at] == b"pw" and (len(name) > _LONGEST_SHORT or at < len(parts) - 1)
        family = "" if is_chance else _family_of_part(parts, at)
        if family:
            return _with_tail(family, parts[at + 1 :])
    return ""


def family_in_place(data: bytes, match: re.Match[bytes], name: bytes) -> str:
    """What a name says where it stands: `?key=…`, `radius-server … key …`, `my key is …`; alone it says nothing."""
    before = match.end("tail") - len(name)
    line = data[max(0, before - 100) : before]
    told = name.lower()
    if told == b"secret_id":
        return "key" if b"approle" in line else ""
    if told not in (b"key", b"key-string"):
        return ""
    if match["open"] and _KEY_OF_32.match(data, match.end()):
        return "key"
    if match["open"] and b"crypt" in line[-40:] and _KEY_OF_16.match(data, match.end()):
        return "key"
    if match["sep"] == b"=":
        return "key" if data[before - 1 : before] in (b"?", b"&") else ""
    if not match["sep"] and line.lower().endswith((b" my ", b"\nmy ", b"your ", b"use the ", b"use this ")):
        return "key"
    is_of_router = line.endswith((b" ", b"\n", b"")) and any(one in line[-60:] for one in _ROUTERS)
    return "password" if not match["sep"] and (is_of_router or told == b"key-string") else ""


_ROUTERS = (b"radius", b"tacacs", b"isakmp")
_KEY_OF_32 = re.compile(rb"[A-Za-z0-9+/]{43}=(?![A-Za-z0-9+/=])")
_KEY_OF_16 = re.compile(rb"[0-9a-f]{32}(?![0-9A-Za-z])")
_LONGEST_SHORT = 30
"""Of a name that ends in `pw`, which any base64 may."""


def _with_tail(family: str, tail: list[bytes]) -> str:
    words = [word for word in tail if not word.isdigit() and len(word) > 1]
    if any(word in _TAILS_OF_NO_SECRET for word in words):
        return ""
    return family if all(word in _TAILS for word in words) else "key"


def _family_of_part(parts: list[bytes], at: int) -> str:
    word, before = parts[at], parts[at - 1] if at else b""
    if word in _WORDS_OF_PASSWORDS or word.endswith(
        (b"password", b"passwd", b"passwort", b"passphrase", b"bindpw")
    ):
        return "password"
    if word in _WORDS_OF_SECRETS or word.endswith(
        (b"secret", b"token", b"apikey", b"secretkey", b"privatekey")
    ):
        return "secret"
    if (word == b"phrase" and before in (b"seed", b"recovery", b"secret", b"pass")) or word == b"mnemonic":
        return "phrase"
    if word == b"key":
        return _family_of_key(before)
    if word == b"auth" and before == b"rediscli":
        return "password"
    if word in (b"pw", b"auth"):
        return "password" if word == b"pw" else "key"
    if word.endswith((b"accountkey", b"accesskey", b"sharedkey", b"authkey", b"masterkey", b"pass", b"pwd")):
        return (
            "password"
            if word
            in (
                b"requirepass",
                b"storepass",
                b"keypass",
                b"dbpass",
                b"smtppass",
                b"mailpass",
                b"userpass",
                b"masterpass",
                b"pgpass",
            )
            else "key"
        )
    return ""


def _family_of_key(before: bytes) -> str:
    if before in _KEYS_OF:
        return "secret"
    return "" if before in _KEYS_OF_NO_SECRET or not before else "key"


_PLACEHOLDERS = tuple(
    b"example placeholder changeme change-me change_me redacted replace- replace_ dummy insert- insert_ < ${ {{ %( **** xxxxxx"
    b" foobar undefined".split()
)
"""Looked for one by one: a pattern of all of them takes ten times as long."""
_YOURS = re.compile(rb"your[-_]?(?:api|key|tok|sec|pass|auth|own|acc|cli|priv|db|[-_])")
_HERE = re.compile(rb"[-_]here\b")
_TYPE = re.compile(
    rb"(?i)(?:u?int|float|utf|sha|md|base|varchar|char|str|string|bytes?|decimal|es|rs|hs|ps|oauth|http|v|pbkdf|aes|ed|x|secp|p)"
    rb"[-_]?[0-9]{1,4}(?:[-_][a-z0-9]{1,12})*"
)
_UNIT = re.compile(rb"[0-9][0-9.,_]*[a-zA-Z%]{0,8}")
PATH = re.compile(
    rb"\.{1,2}/|[~@]|[A-Za-z]:[\\/]|[a-z][a-z0-9+.-]{1,20}://|/(?:[A-Za-z0-9_.-]{0,40}/|[a-z_.-]{2,40}$)"
)
_DOTTED = re.compile(rb"(?:[A-Za-z_]{1,40}(?:32|64)?[a-z]{0,9}\.){1,6}[A-Za-z_]{2,60}[0-9]?")
_ATTRIBUTE = re.compile(rb"(?:[a-z_]{2,40}[0-9]{0,2}\.){2,6}[a-z_]{2,60}[0-9]?")
_IDENTIFIER = re.compile(rb"[A-Za-z_]{1,60}[0-9]{0,2}")
_SPLIT = re.compile(rb"[-_./:]")
_WORD = rb"(?>[A-Za-z]{0,3}[0-9]{1,4}|[A-Za-z]*)"
# What a part may hold and what is between them have no character in common: read once, from left to right.
_SLUG = re.compile(rb"%s(?:[-_./:]%s)+" % (_WORD, _WORD))
_CAPITALS = bytes(range(65, 91))


def is_placeholder(value: bytes) -> bool:
    """What a manual writes where a secret goes."""
    told = value[:_TOLD_BY].lower()
    return (
        any(word in told for word in _PLACEHOLDERS)
        or told.startswith((b"...", b"secrets.", b"env."))
        or told.endswith(b"...")
        or (b"your" in told and bool(_YOURS.search(told)))
        or (b"here" in told and bool(_HERE.search(told)))
        or len(set(value[-12:])) == 1
    )


_TOLD_BY = 100
"""So many characters tell a placeholder; a text full of names would be read again for each of them."""


def _is_path(value: bytes) -> bool:
    return value.startswith(b"arn:") or (
        bool(PATH.match(value)) and (b"://" in value or not _is_base64(value))
    )


def _is_base64(value: bytes) -> bool:
    """Capitals, small letters and digits in a piece between slashes as no folder's name has them."""
    longest = max(value.split(b"/"), key=len)
    return (
        len(value) >= 20
        and len(longest) >= 8
        and all(re.search(kind, longest) for kind in (rb"[A-Z]", rb"[a-z]", rb"[0-9]"))
    )


def has_mix(value: bytes) -> bool:
    """Letters, and something that words do not have."""
    plain = value.translate(None, b"_-")
    return not plain.isalpha() and any(65 <= c <= 90 or 97 <= c <= 122 for c in plain)


def looks_secret(value: bytes, family: str, quoted: bool, prose: bool, name: bytes) -> bool:
    """Whether a value of a secret-sounding name is one: `password=os.environ` is not."""
    shown = value[:_SHOWN]
    return _is_shaped_so(shown, family, quoted, prose, name) and not is_placeholder(shown)


def _is_shaped_so(value: bytes, family: str, quoted: bool, prose: bool, name: bytes) -> bool:
    if (
        len(value) < 6
        or (prose and name.lower() == b"pass" and not (quoted and name.isupper() and is_random(value, 10)))
        or (value[:1] in b"$%&*@!=~#<" and not quoted and not is_strong(value))
        or _is_path(value)
        or _VARIABLE.fullmatch(value)
        or value.count(b"?") * 3 > len(value)  # what is not ASCII
        or (prose and b"?" in value and not re.search(rb"[0-9]", value))
        or (prose and b"[" in value)
    ):
        return False
    if b" " in value:
        return _is_phrase(value, family, quoted, name)
    if family == "phrase":
        return False
    if family == "password":
        return _looks_password(value, quoted, prose, name)
    if not has_mix(value):
        return is_mixed_case(value)
    if _is_code(value, quoted):
        return False
    return is_random(value, 16 if family == "key" else 8 if not prose else 12)


_VARIABLE = re.compile(rb"\$(?:[A-Z][A-Z0-9_]{2,40}|[a-z]{2,20}(?:_[a-z]{2,20}){0,4})")
_SHOWN = 220
"""So much of a value says what it is: the longest phrase of words."""


def is_strong(value: bytes) -> bool:
    """A password although it begins as a variable, an alias or a format would."""
    return (
        value[:1] in b"!%&*#"
        and len(value) >= 10
        and value[1:] != value[1:].upper()
        and value[1:] != value[1:].lower()
        and bool(re.search(rb"[0-9]", value))
    )


def _looks_password(value: bytes, quoted: bool, prose: bool, name: bytes) -> bool:
    if value.isdigit():
        return not prose and (quoted or name.isupper())
    if not has_mix(value):
        return is_mixed_case(value)
    if prose:
        return not _is_code(value, False) and is_random(value, 8) and not is_slug(value)
    return not _is_code(value, quoted)


def _is_code(value: bytes, quoted: bool) -> bool:
    is_dotted = (_DOTTED.fullmatch(value) or _ATTRIBUTE.fullmatch(value)) and not any(
        is_mixed_case(part) for part in value.split(b".")
    )
    if is_dotted or _TYPE.fullmatch(value) or (_UNIT.fullmatch(value) and not value.isalnum()):
        return True
    if value.endswith((b"()", b"Key", b"Token", b"Secret", b"Password")) or b"?." in value or b"::" in value:
        return not quoted or value.endswith(b"()")
    is_name = not quoted and _IDENTIFIER.fullmatch(value)
    return bool(is_name) and any(
        word in value.lower() for word in (b"pass", b"token", b"secret", b"key", b"cred", b"psk")
    )


def is_slug(value: bytes) -> bool:
    """Words and small numbers with `-` between: `my-secret-v2`."""
    return bool(_SLUG.fullmatch(value)) and not any(map(is_mixed_case, _SPLIT.split(value)))


def is_random(value: bytes, least: int) -> bool:
    return len(value) >= least and not is_slug(value) and has_mix(value) and not _UNIT.fullmatch(value)


def is_mixed_case(value: bytes) -> bool:
    """Letters alone, but with capitals as no name has them: every third to two thirds, in few letters all over."""
    letters = value.translate(None, b"_-")
    if len(letters) < 12 or not letters.isalpha() or (len(letters) < 16 and _turns(value) < 5):
        return False
    capitals = len(letters) - len(letters.translate(None, _CAPITALS))
    least = 0.25 if letters == value else 0.35
    return least <= capitals / len(letters) <= 0.8


def _turns(value: bytes) -> int:
    """How often a small letter follows a capital or a capital a small letter."""
    return sum((one < 91) is not (other < 91) for one, other in pairwise(value))


_APP_PASSWORD = re.compile(rb"(?:[A-Za-z0-9]{4} ){5}[A-Za-z0-9]{4}|(?:[a-z]{4} ){3}[a-z]{4}")


_WORDS_OF_PHRASE = re.compile(rb"[a-z]{3,9}(?: [a-z]{3,9}){3,8}")
_SAY_WHAT_TO_DO = frozenset(
    b"the your for and you with from this that not enter used new please must pass key phrase passphrase password secret"
    b" was when will can file has have are which its set use private public ssh gpg same does match".split()
)


def _is_phrase(value: bytes, family: str, quoted: bool, name: bytes) -> bool:
    words = value.split(b" ")
    if b"phrase" in name.lower() and quoted and _WORDS_OF_PHRASE.fullmatch(value):
        return not _SAY_WHAT_TO_DO.intersection(words)
    if family in ("password", "secret") and _APP_PASSWORD.fullmatch(value):
        return bool(re.search(rb"[0-9]", value)) or any(not set(word) & set(b"aeiouy") for word in words)
    if family == "phrase" or (family == "password" and len(words) in (12, 15, 18, 21, 24)):
        return len(words) >= 3 and all(word.isalpha() and word.islower() for word in words)
    return (
        family == "password"
        and len(words) <= 4
        and has_mix(value)
        and bool(re.search(rb"[0-9]", value))
        and bool(re.search(rb"[!#$%&*+=?@^~]", value))
    )


def is_login(value: bytes) -> bool:
    """Base64 of `user:password`, as Basic authentication and Docker's settings have it."""
    if len(value) < 8:
        return False
    try:
        plain = base64.b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), validate=True)
    except (ValueError, binascii.Error):
        return False
    return b":" in plain and all(c >= 32 for c in plain)


PLAIN_WORDS = frozenset(
    b"password passwd pass pw pwd secret token changeme example placeholder user username xxx tiger mypassword".split()
)


def every(data: bytes, sign: bytes) -> Iterator[int]:
    """Where the sign stands. The engine of `re` finds literals faster than `find` does."""
    return (match.start() for match in re.finditer(re.escape(sign), data))
