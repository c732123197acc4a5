# ruff: noqa: E501, RUF001 - patterns and words in many scripts, which read worse when broken
"""Secrets that no name in plain signs stands before: on command lines, in other languages, behind escapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from holdfast.base.secret_values import PLAIN_WORDS, every, has_mix, is_mixed_case, is_placeholder

Span = tuple[int, int]
Found = tuple[int, int, str]

# ── command lines ─────────────────────────────────────────────────────────────────────────────────

# Passwords after an option of a program that takes one, or at a place that has no name.

_OPTION = re.compile(
    rb"-(?<= -)(?:[abknptuwANPUX]|-user|-body|-with-token|-(?:proxy-user|creds|src-creds|dest-creds))"
)
_OF_OPTION = rb"[ =]?\\{0,15}[\"']?"
_IN_COMMAND = rb"(?P<secret>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
_ARGUMENT = re.compile(_OF_OPTION + _IN_COMMAND)
_AFTER_USER = re.compile(_OF_OPTION + rb"[^\s:\"'\\]{1,64}:(?P<secret>[^\s\"'\\$<{][^\s\"'\\]{3,200})")
_AFTER_SHARE = re.compile(_OF_OPTION + rb"[^\s%\"'\\]{1,64}%(?P<secret>[^\s\"'\\$<{][^\s\"'\\]{3,200})")
_AFTER_NAME_OF_USER = re.compile(
    rb"[a-zA-Z]{0,3}b[a-zA-Z]{0,2} [^\s\"'\\]{1,64} \\{0,15}[\"']?" + _IN_COMMAND
)
_AFTER_FILE = re.compile(rb" [^\s\"'\\]{1,80} [^\s\"'\\]{1,64} \\{0,15}[\"']?" + _IN_COMMAND)
_AFTER_COOKIE = re.compile(
    _OF_OPTION + rb"[^\s=;,\"'\\]{1,80}=(?P<secret>[^\s;,\"'\\$<{][^\s;,\"'\\]{7,4000})"
)
_AFTER_COMMA = re.compile(_OF_OPTION + rb"[^\s,\"'\\]{1,64},(?P<secret>[^\s\"'\\$<{][^\s\"'\\]{3,200})")
_AFTER_TOKEN_USER = re.compile(_OF_OPTION + rb"(?P<secret>[A-Za-z0-9_-]{20,200}):[\sxX\"']")
_WEB = (b"curl", b"http", b"wget")
_OPTIONS: dict[bytes, tuple[tuple[re.Pattern[bytes], tuple[bytes, ...]], ...]] = {
    b"-a": ((_ARGUMENT, (b"redis-cli",)), (_AFTER_USER, (b"http", b"xh "))),
    b"-p": (
        (
            _ARGUMENT,
            (
                b"sshpass",
                b"mysql",
                b"docker login",
                b"podman login",
                b"registry login",
                b"mongo",
                b"az login",
                b"twine",
                b"7z",
                b"oc login",
                b"skopeo",
                b"crane",
                b"buildah",
                b"cf login",
                b"nuget",
                b"poetry",
                b"rabbitmqadmin",
                b"cypher-shell",
                b"cqlsh",
                b"beeline",
                b"hdbsql",
                b"ncftp",
                b"rdesktop",
                b"psexec",
                b"smbmap",
                b"crackmapexec",
                b"nxc ",
                b"netexec",
                b"evil-winrm",
                b"mariadb",
                b"rar ",
            ),
        ),
    ),
    b"-u": ((_AFTER_USER, _WEB), (_AFTER_TOKEN_USER, _WEB), (_AFTER_COMMA, (b"lftp",))),
    b"-b": (
        (_AFTER_FILE, (b"htpasswd", b"mosquitto_passwd")),
        (_ARGUMENT, (b"gh secret",)),
        (_AFTER_COOKIE, (b"curl",)),
    ),
    b"-k": ((_ARGUMENT, (b"openssl", b"nuget push")),),
    b"-A": ((_ARGUMENT, (b"snmp",)),),
    b"-X": ((_ARGUMENT, (b"snmp",)),),
    b"-N": ((_ARGUMENT, (b"ssh-keygen",)),),
    b"-n": ((_AFTER_NAME_OF_USER, (b"htpasswd",)), (_AFTER_USER, (b"transmission",))),
    b"-t": ((_ARGUMENT, (b"doctl",)),),
    b"-w": ((_ARGUMENT, (b"ldap", b"kadmin")),),
    b"-P": ((_ARGUMENT, (b"zip", b"ipmitool", b"ssh-keygen", b"sqlcmd", b"bcp ", b"mosquitto")),),
    b"-U": ((_AFTER_SHARE, (b"smbclient", b"rpcclient", b"net ")), (_AFTER_USER, (b"curl",))),
    b"--user": ((_AFTER_USER, (*_WEB, b"etcdctl")),),
    b"--proxy-user": ((_AFTER_USER, _WEB),),
    b"--creds": ((_AFTER_USER, (b"skopeo",)),),
    b"--src-creds": ((_AFTER_USER, (b"skopeo",)),),
    b"--dest-creds": ((_AFTER_USER, (b"skopeo",)),),
    b"--body": ((_ARGUMENT, (b"gh secret",)),),
    b"--with-token": ((re.compile(rb" <<< ?[\"']?" + _IN_COMMAND), (b"gh auth",)),),
}
"""By option: what follows it, in lines that name one of these programs."""
_COMMANDS = (
    # Each by a literal that begins with a letter that is rare: that is searched for faster.
    (
        b"fied ",
        re.compile(
            rb"(?i)(?<=identi)fied (?:with [a-z0-9_]{1,40} )?by (?:password )?\\{0,15}['\"](?P<secret>[^'\"\\\s]{4,200})\\{0,15}['\"]"
        ),
    ),
    (b"/p:", re.compile(rb"(?<=\s)/p:[\"']?" + _IN_COMMAND)),
    (b":5432:", re.compile(rb":5432:[^\s:\"'\\]{1,64}:[^\s:\"'\\]{1,64}:(?P<secret>[^\s\"'\\]{4,200})")),
    (
        b"cho ",  # into a program that asks for a password
        re.compile(
            rb"(?<=e)cho (?:-n )?\\{0,15}[\"']?(?:[a-z0-9_.-]{1,40}:)?"
            + _IN_COMMAND
            + rb"\\{0,15}[\"']? ?\|[^|\n]{0,60}?"
            rb"(?:sudo -S|chpasswd|-stdin|with-token|kinit|passphrase-fd|cryptsetup|secret put)"
        ),
    ),
    (b"SecureString ", re.compile(rb"SecureString (?:-String )?\\{0,15}[\"']" + _IN_COMMAND)),
    (
        b"qlplus ",
        re.compile(
            rb"(?<=s)qlplus (?:-[a-z] )?[a-z0-9_]{1,40}/(?P<secret>[^\s@\"'\\/$&{][^\s@\"'\\]{3,60})@"
        ),
    ),
    (b"mc alias set", re.compile(rb"mc alias set \S{1,60} \S{1,200} \S{1,60} [\"']?" + _IN_COMMAND)),
)
_BEGUN = re.compile(rb"b(?:itmqctl |undle config |asic(?<=http-basic)[.:])")
_BEGUN_WITH_B = re.compile(
    rb"bitmqctl (?:add_user|change_password) [^\s\"'\\]{1,64} [\"']?(?P<rabbit>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
    rb"|basic[.:]\S{1,80} [^\s\"'\\]{1,64} \\{0,15}[\"']?(?P<basic>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
    rb"|bundle config (?:set )?(?:--[a-z]{1,8} )?\S{1,80} \\{0,15}[\"']?[^\s:\"'\\/]{1,64}:"
    rb"(?P<bundle>[^\s\"'\\$<{/][^\s\"'\\]{3,200})"
)
_LONGEST_COMMAND = 160


def on_command_lines(data: bytes, lowered: bytes) -> Iterator[Found]:
    for option in _OPTION.finditer(data):
        found = _after_option(data, option)
        if found:
            yield (*found, "command-password")
    for sign, pattern in _COMMANDS:
        for at in every(lowered if sign.islower() else data, sign):
            match = pattern.match(data, at)
            if match and _is_argument(match["secret"]):
                yield (*match.span("secret"), "command-password")
    for place in _BEGUN.finditer(lowered):
        match = _BEGUN_WITH_B.match(data, place.start())
        if match and _is_argument(match[match.lastgroup or 0]):
            yield (*match.span(match.lastgroup or 0), "command-password")


def _after_option(data: bytes, option: re.Match[bytes]) -> Span | None:
    before = data[max(0, option.start() - _LONGEST_COMMAND) : option.start()]
    command = before[before.rfind(b"\n") + 1 :].lower()
    for pattern, programs in _OPTIONS[option[0]]:
        if any(name in command for name in programs):
            match = pattern.match(data, option.end())
            if match and _is_argument(match["secret"]):
                return match.span("secret")
    return None


def _is_argument(value: bytes) -> bool:
    return (
        not is_placeholder(value)
        and value.lower() not in PLAIN_WORDS
        and (has_mix(value) or is_mixed_case(value))
    )


# ── other languages, and escapes ──────────────────────────────────────────────────────────────────

# Names in other languages and signs that were escaped, told as the rules of redaction know them. What is put in
# their place is as long, so that a position in the one text is a position in the other.

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
