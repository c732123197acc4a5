# ruff: noqa: E501 - patterns, which read worse when broken
"""Passwords on command lines: after an option of a program that takes one, or at a place that has no name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.base.secret_values import PLAIN_WORDS, every, has_mix, is_mixed_case, is_placeholder

Span = tuple[int, int]
Found = tuple[int, int, str]

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
