# ruff: noqa: E501, RUF001 - patterns and words in many scripts, which read worse when broken
"""Secrets that no name in plain signs stands before: on command lines, in other languages, behind escapes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache

from holdfast.base.secret_rules import ALIKE, INVISIBLE, NEAR
from holdfast.base.secret_values import (
    PLAIN_WORDS,
    every,
    family_of,
    has_mix,
    is_mixed_case,
    is_placeholder,
    is_random,
    is_slug,
    looks_secret,
)

Span = tuple[int, int]
Found = tuple[int, int, str]

# ── command lines ─────────────────────────────────────────────────────────────────────────────────

# Passwords after an option of a program that takes one, or at a place that has no name.

_OPTION = re.compile(
    rb"-(?<= -)(?:h(?:p(?=[^ ])|mac|ashes)|ap(?= )|[abcknptuwyAHKNPSUX]"
    rb"|-(?:user|body|proxy-user|creds|src-creds|dest-creds|value|plaintext|encrypt|(?:password-)?stdin|with-token|data-file))"
)
_READ_INPUT = frozenset((b"-S", b"--stdin", b"--password-stdin", b"--with-token", b"--data-file"))
_OF_OPTION = rb"[ =:]?\\{0,15}[\"']?"
_IN_COMMAND = rb"(?P<secret>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
_ARGUMENT = re.compile(_OF_OPTION + _IN_COMMAND)
_AFTER_USER = re.compile(
    _OF_OPTION
    + rb"[^\s:\"'\\]{1,64}:(?:\\{1,15}(?:\s|n)\s{0,30})?\\{0,15}[\"']?(?P<secret>[^\s\"'\\$<{][^\s\"'\\]{3,200})"
)
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
_AFTER_COLON = re.compile(rb" \\{0,15}[\"']?[0-9a-f]{0,32}:(?P<secret>[0-9a-fA-F]{32})(?![0-9a-fA-F])")
_AFTER_TWO_COLONS = re.compile(_OF_OPTION + rb"(?:[^\s:\"'\\]{1,64}:){1,2}(?P<secret>[A-Za-z0-9+/=]{12,200})")
_ON_NETWORKS = (b"crackmapexec", b"nxc ", b"netexec", b"evil-winrm", b"smbmap")
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
                b"hydra",
                b"bloodhound",
                b"az sql",
                b"snowsql",
                b"usermod",
                b"winrs",
                b"certutil",
                b"influx",
                b"steghide",
                b"useradd",
                b"isql",
            ),
        ),
    ),
    b"-ap": ((_ARGUMENT, (b"swaks",)),),
    b"-c": ((_ARGUMENT, (b"snmp",)),),
    b"-H": ((_ARGUMENT, _ON_NETWORKS),),
    b"-K": ((_ARGUMENT, (b"openssl",)),),
    b"-hashes": ((_AFTER_COLON, (b".py ", b"impacket")),),
    b"-hmac": ((_ARGUMENT, (b"openssl",)),),
    b"-hp": ((_ARGUMENT, (b"rar ",)),),
    b"-y": ((_AFTER_TWO_COLONS, (b"nsupdate", b"dig ")),),
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
    b"-t": ((_ARGUMENT, (b"doctl", b"codecov", b"influx")),),
    b"-w": ((_ARGUMENT, (b"ldap", b"kadmin", b"security add-")),),
    b"-P": ((_ARGUMENT, (b"zip", b"ipmitool", b"ssh-keygen", b"sqlcmd", b"bcp ", b"mosquitto")),),
    b"-U": ((_AFTER_SHARE, (b"smbclient", b"rpcclient", b"net ")), (_AFTER_USER, (b"curl",))),
    b"--user": ((_AFTER_USER, (*_WEB, b"etcdctl")),),
    b"--proxy-user": ((_AFTER_USER, _WEB),),
    b"--creds": ((_AFTER_USER, (b"skopeo",)),),
    b"--src-creds": ((_AFTER_USER, (b"skopeo",)),),
    b"--dest-creds": ((_AFTER_USER, (b"skopeo",)),),
    b"--body": ((_ARGUMENT, (b"gh secret",)),),
    b"--value": ((_ARGUMENT, (b"ssm put-parameter", b"keyvault secret")),),
    b"--plaintext": ((_ARGUMENT, (b"caddy hash",)),),
    b"--encrypt": ((_ARGUMENT, (b"qpdf",)),),
}
"""By option: what follows it, in lines that name one of these programs."""
_ASKING = re.compile(
    rb"[^|\r\n\\]{0,60}?(?:sudo -S|passwd|-stdin|with-token|kinit|passphrase-fd|cryptsetup|secret put|secret create"
    rb"|secrets (?:create|versions)|secret-tool store|pass insert)"
)
_PIPE = re.compile(rb"\| ?(?=[a-z])")
_PRINTED_INTO = re.compile(
    rb"(?:echo |printf (?:\\{0,15}[\"']?%s(?:\\{1,15}n)?\\{0,15}[\"']? )?)(?:-[a-zA-Z]{1,3} )?\\{0,15}[\"']?(?:[a-z0-9_.-]{1,40}:)?"
    + _IN_COMMAND
    + rb"(?:\\{1,15}n)?\\{0,15}[\"']? ?$"
)
_SENT = rb"(?=[^\s\"\\]{0,60}[0-9])(?P<secret>[^\s\"'\\$<{]{8,80})\\{1,15}[rn]\\{0,15}\""
_COMMANDS = tuple(
    (re.compile(sign), tuple(map(re.compile, patterns)))
    for sign, *patterns in (
        # Each sign begins with one letter: the engine searches for that at the speed of memory.
        (
            rb"fied ",
            rb"(?i)(?<=identi)fied (?:with [a-z0-9_]{1,40} )?by (?:password )?"
            rb"(?:\\{0,15}['\"](?=[^'\"\\\s]{4,200}\\{0,15}['\"])|(?=[^'\"\\\s;]{8,60}(?:;| using | default )))(?P<secret>[^'\"\\\s;]{4,200})",
        ),
        (  # `net user name … /add`, `user name on >…` of a list of Redis
            rb"user [^ ]{1,60} ",
            rb"(?i)(?:(?<=net )user \\{0,15}[\"']?[^\s\"'/]{1,40} \\{0,15}[\"']?(?!/)"
            rb"|user [^\s\"']{1,60} on [^\r\n\\\"'>]{0,80}>(?!\S{1,60}\.[a-z]{2,4}(?![a-z0-9])))"
            + _IN_COMMAND,
        ),
        (
            rb"g(?:in (?<=login )|ma key)",
            rb"(?i)(?:(?<=wandb lo)|(?<=cargo lo))gin (?:token=)?(?P<secret>[a-z0-9._-]{20,200})",
            # `a1 LOGIN user "…"` of IMAP.
            rb"(?i)(?:(?<=[0-9] lo)gin [^\s\"'\\]{1,64} \\{0,15}[\"']?|(?<=pra)gma key\s?=\s?\\{0,15}[\"'])"
            + _IN_COMMAND,
        ),
        (
            rb"vault (?:login|unseal|operator) ",
            rb"vault (?:login (?:token=)?|(?:operator )?unseal )\\{0,15}[\"']?(?P<secret>[A-Za-z0-9+/=._-]{20,200})",
        ),
        (
            rb"/(?:p:|rp |v |user:)",
            rb"(?<=\s)/(?:p:|rp )\\{0,15}[\"']?" + _IN_COMMAND,
            rb"(?i)/v \\{0,15}[\"']?[a-z_]{0,30}(?:password|pwd|secret|token|apikey)[a-z_]{0,10}\\{0,15}[\"']?"
            rb" /t [a-z_]{3,16} /d \\{0,15}[\"']?" + _IN_COMMAND,
        ),
        (
            rb"w(?:pa_passphrase |d(?<=userpwd))",
            rb"wpa_passphrase \S{1,60} \\{0,15}[\"']?" + _IN_COMMAND,
            rb"(?i)wd\\{0,15}[\"']?\s?(?:=>|[,=:])?\s?\\{0,15}[\"'][^\s:\"'\\]{1,64}:" + _IN_COMMAND,
        ),
        (
            rb"k(?:ey content|serv identify )",
            rb"(?i)(?:key content\s{1,20}:\s|(?<=nic)kserv identify (?:\S{1,32} )?)" + _IN_COMMAND,
        ),
        (
            rb"x(?:p_send |pect )",
            rb"(?:xp_send |xpect [^\r\n]{1,80}assword[^\r\n]{0,20}(?:\s|\\{1,15}[nrt]){1,30}send )(?:-- )?\\{0,15}\""
            + _SENT,
        ),
        (rb"> auth ", rb"> AUTH (?:[A-Za-z0-9_.-]{1,40} )?" + _IN_COMMAND),
        (rb"\]:[2-5]", rb"\]:(?:25|465|587|2525)\s{1,8}[^\s:]{1,80}:" + _IN_COMMAND),
        (  # the question of SMTP for a password, in base64, and the answer
            rb"gfzc3dv",
            rb"GFzc3dvcmQ6(?:\s|\\{1,15}[nrt]){1,30}(?:[a-z0-9-]{1,20} {1,2}\| )?(?P<secret>[A-Za-z0-9+/]{8,200}={0,2})",
        ),
        (  # a line of `.pgpass`: host, port, database, user
            rb"43[0-9]{1,2}:",
            rb"(?:(?<=:[0-9])|(?<=:[0-9]{2}))43[0-9]{1,2}:[A-Za-z_*][A-Za-z0-9_.*-]{0,63}:[A-Za-z_][A-Za-z0-9_.*-]{0,63}:(?P<secret>[^\s\"'\\]{4,200})",
        ),
        (rb"curestring ", rb"(?<=Se)cureString (?:-String )?\\{0,15}[\"']" + _IN_COMMAND),
        (
            rb"munity",
            rb"(?<=com)munity[ :=]{1,3}\\{0,15}[\"']?(?P<secret>(?![A-Za-z]?[a-z_]{0,30}[0-9]{0,4}(?![A-Za-z0-9!#%&*+_]))[A-Za-z0-9!#%&*+_]{8,64})(?![A-Za-z0-9:/.-])",
        ),
    )
)
_PRINTED = re.compile(
    rb"printf (?:\\{0,15}[\"']?%s(?:\\{1,15}n)?\\{0,15}[\"']? )?\\{0,15}[\"']?(?:[a-z0-9_.-]{1,40}:)?"
    + _IN_COMMAND
    + rb"\\{0,15}[\"']? ?\|[^|\n]{0,60}$"
)
_SHARED = re.compile(
    rb"(?i)(?:(?<![a-z])|(?<=\\[nrt]))net us(?:e (?:[a-z]:\s)?\\{2,30}[^\s\"']{1,80}|er [^\s\"'/]{1,40}) \\{0,15}[\"']?"
    + _IN_COMMAND
    + rb"\\{0,15}[\"']? $"
)
_AFTER_USER_OF_SHARE = re.compile(rb"/user:[^\s\"']{1,64} (?=[^/])\\{0,15}[\"']?" + _IN_COMMAND)
_ALIAS_SET = re.compile(rb"mc alias set \S{1,60} \S{1,200} \S{1,60} [\"']?" + _IN_COMMAND)
_BEGUN = re.compile(rb"b(?:itmqctl |undle config |asic(?<=http-basic)[.:])")
_BEGUN_WITH_B = re.compile(
    rb"bitmqctl (?:add_user|change_password) [^\s\"'\\]{1,64} [\"']?(?P<rabbit>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
    rb"|basic[.:]\S{1,80} [^\s\"'\\]{1,64} \\{0,15}[\"']?(?P<basic>[^\s\"'\\$<{-][^\s\"'\\]{3,200})"
    rb"|bundle config (?:set )?(?:--[a-z]{1,8} )?\S{1,80} \\{0,15}[\"']?[^\s:\"'\\/]{1,64}:"
    rb"(?P<bundle>[^\s\"'\\$<{/][^\s\"'\\]{3,200})"
)
_LONGEST_COMMAND = 160
_HERE_STRING = re.compile(rb"<<< ?\\{0,15}[\"']?(?:[a-z0-9_.-]{1,40}:)?" + _IN_COMMAND)
_ASK_FOR_ONE = (
    *(b"sudo ", b"passwd", b"kinit", b"cryptsetup", b"restic ", b"passphrase", b"secret", b"login", b"su -"),
    *(b"-stdin", b"-token", b"pass insert", b"keyctl"),
)
_LONGEST_INSERT = 1_200
_INSERT = re.compile(rb"insert into [^\s(]{1,80}\s?\((?P<names>[^()]{1,1000})\)(?:\s|\\{1,15}[nrt]){0,8}$")
_VALUES = re.compile(rb"values\s{0,3}\((?=[^)])")
_INSERTED = re.compile(
    rb"\s{0,3}(?:[en]?\\{0,15}['\"](?P<secret>[^'\"\\]{0,400})\\{0,15}['\"]|[^,'\"()]{0,200}(?:\([^()]{0,200}\))?)\s{0,3}(?:,|\))"
)
_LOGIN_OF_DOMAIN = re.compile(
    rb"(?:^|(?<= )|[\"'=(]|\\n)[A-Za-z0-9._-]{1,40}/[A-Za-z0-9._$-]{1,40}:(?P<secret>[^\s\"'\\<>\x60/@${][^\s\"'\\<>\x60/@]{3,80})$"
)
_LOGIN_OF_ORACLE = re.compile(
    rb"(?:(?:oracle:(?:thin|oci8?):)|(?:sqlplus|conn(?:ect)?|(?:imp|exp)(?:dp)?|sqlldr|rman|userid)(?: -[a-z]{1,2})?[ =]\\{0,15}[\"']?)"
    rb"[A-Za-z][A-Za-z0-9_]{0,40}/\\{0,15}\"?(?P<secret>[^\s\"'\\<>\x60/@${][^\s\"'\\<>\x60/@]{3,60})\\{0,15}\"?$",
    re.IGNORECASE,
)
_BEFORE_HOST = re.compile(rb"[A-Za-z0-9_.-]{1,64}:(?P<secret>[^\s\"'\\<>\x60/@${]{4,80})$")


def _of_domain(before: bytes) -> re.Match[bytes] | None:
    at = before.rfind(b" ") + 1
    if before.find(b"/", at) < 0 or before.find(b"//", at) >= 0:
        return None
    match = _LOGIN_OF_DOMAIN.search(before, at) if before.find(b":", at) >= 0 else None
    return match if match and is_random(match["secret"], 6) else _LOGIN_OF_ORACLE.search(before)


def before_hosts(data: bytes) -> Iterator[Found]:
    """`user:password@tcp(host)`, `domain/user:password@host`, `user/password@host`."""
    at = data.find(b"@")
    while at >= 0:
        before = data[max(0, at - 160) : at]
        is_told = data.startswith(b"tcp(", at + 1) or b"sip:" in before or b"sips:" in before
        match = _BEFORE_HOST.search(before) if is_told else None
        if b"/" in before and not data.startswith(b"sha", at + 1):
            match = _of_domain(before) or match
        if match and _is_argument(match["secret"]):
            start = at - len(before)
            yield start + match.start("secret"), start + match.end("secret"), "url-password"
        at = data.find(b"@", at + 1)


def with_alias(data: bytes, at: int) -> Iterator[Found]:
    """`mc alias set name http://host user password`, by its address."""
    match = (
        _ALIAS_SET.search(data, max(0, at - 80), at + 400) if b" set " in data[max(0, at - 80) : at] else None
    )
    if match and _is_argument(match["secret"]):
        yield (*match.span("secret"), "command-password")


def inserted(data: bytes, lowered: bytes) -> Iterator[Found]:
    """`INSERT INTO users (name, password) VALUES ('a', '…')`: the value at the place of its name."""
    for begin in _VALUES.finditer(lowered):
        before = lowered[max(0, begin.start() - _LONGEST_INSERT) : begin.start()]
        match = _INSERT.match(before, into) if (into := before.rfind(b"insert into ")) >= 0 else None
        if match is None:
            continue
        at, end = begin.end(), begin.end() + 4_000
        for name in match["names"].split(b",")[:40]:
            value = _INSERTED.match(data, at, end)
            if value is None:
                break
            family = family_of(name.strip(b" \"'\x60\\[]")) if value["secret"] else ""
            if family and looks_secret(value["secret"], family, True, False, name):
                yield (*value.span("secret"), "assigned-secret")
            at = value.end()


def on_command_lines(data: bytes, lowered: bytes) -> Iterator[Found]:
    for option in _OPTION.finditer(data):
        found = _after_option(data, option)
        if found:
            yield (*found, "command-password")
        elif option[0] in _READ_INPUT:
            yield from _before(data, option.start(), _PRINTED)
    for sign, patterns in _COMMANDS:
        for place in sign.finditer(lowered):
            for match in [pattern.match(data, place.start()) for pattern in patterns]:
                yield from _argument_of(match)
            if place[0] == b"/user:":
                yield from _of_share(data, place.start())
    yield from _of_input(data, lowered)


def _of_input(data: bytes, lowered: bytes) -> Iterator[Found]:
    for place in _BEGUN.finditer(lowered):
        yield from _argument_of(_BEGUN_WITH_B.match(data, place.start()))
    for pipe in _PIPE.finditer(data):
        before = data[max(0, pipe.start() - _LONGEST_COMMAND) : pipe.start()]
        if (b"echo " in before or b"printf " in before) and _ASKING.match(data, pipe.end()):
            yield from _before(data, pipe.start(), _PRINTED_INTO)
    for at in every(data, b"<<<"):
        if _asks(data, at):
            yield from _argument_of(_HERE_STRING.match(data, at))


def _of_share(data: bytes, at: int) -> Iterator[Found]:
    """`net use … /user:…`."""
    yield from _before(data, at, _SHARED)
    if b"net us" in data[max(0, at - 120) : at]:
        yield from _argument_of(_AFTER_USER_OF_SHARE.match(data, at))


def _argument_of(match: re.Match[bytes] | None) -> Iterator[Found]:
    """The one group that matched."""
    if match and _is_argument(match[match.lastgroup or 0]):
        yield (*match.span(match.lastgroup or 0), "command-password")


def _before(data: bytes, end: int, pattern: re.Pattern[bytes]) -> Iterator[Found]:
    start = max(0, end - _LONGEST_COMMAND)
    match = pattern.search(data[start:end])
    if match and _is_argument(match["secret"]):
        yield start + match.start("secret"), start + match.end("secret"), "command-password"


def _asks(data: bytes, at: int) -> bool:
    """Whether the command before the place reads a secret from its input."""
    before = data[max(0, at - _LONGEST_COMMAND) : at].lower()
    return any(name in before[before.rfind(b"\n") + 1 :] for name in _ASK_FOR_ONE)


def _after_option(data: bytes, option: re.Match[bytes]) -> Span | None:
    before = data[max(0, option.start() - _LONGEST_COMMAND) : option.start()]
    command = before[before.rfind(b"\n") + 1 :].lower()
    for pattern, programs in _OPTIONS.get(option[0], ()):
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


# What a command that prints a secret has printed: a word alone on the next line.

_PRINTS = re.compile(
    rb"\$ (?:sudo )?(?:[^\r\n\\]{1,200}[|;&] ?)?(?:pass show |gopass |lpass show |bw get |op (?:read|item get) |security find-|secret-tool lookup "
    rb"|gcloud (?:secrets|auth print)|aws (?:ssm get|secretsmanager get|ecr get)|az (?:keyvault secret show|account get)"
    rb"|vault (?:kv get|read|print)|kubectl (?:-n \S{1,60} )?(?:get secret|create token)|pwgen|apg|makepasswd|openssl rand|wg gen"
    rb"|php artisan key:generate|(?:rails|rake|npx auth) secret|doppler secrets get|heroku config:get|gh auth token"
    rb"|terraform output -raw|docker swarm join-token|read -s"
    rb"|(?:cat|less|head|tail|echo|printenv) [^\r\n\\|]{0,80}(?i:passw|secret|token|auth|cred|key|pw|pass))[^\r\n\\]{0,200}"
)
_ALONE = re.compile(
    rb"(?:\r?\n|\\{1,15}(?:r\\{1,15})?n)(?:[a-z0-9-]{1,24} {1,2}\| )?(?:[ \t>+]|\\{1,15}t){0,12}\\{0,15}[\"']?(?:base64:)?"
    rb"(?P<secret>[^\s\"'\\]{1,200})\\{0,15}[\"']?(?=\r?\n|\\{1,15}[rn]|\"|$)"
)


def in_outputs(data: bytes) -> Iterator[Found]:
    """Of two lines, since a user's name may stand before his password."""
    for prompt in every(data, b"$ "):
        command = _PRINTS.match(data, prompt)
        line = _ALONE.match(data, command.end()) if command else None
        if line and not _is_output(line["secret"]):
            line = _ALONE.match(data, line.end())
        if line and _is_output(line["secret"]):
            yield (*line.span("secret"), "command-output")


def _is_output(value: bytes) -> bool:
    return is_second(value) and len(value) >= 8 and is_random(value, 8) and b"=" not in value[:-2]


# ── arguments of calls ────────────────────────────────────────────────────────────────────────────

_SECOND_OF_TWO = (
    rb"[^\"'\\\s]{1,80}\\{0,15}[\"'],\s{0,2}\\{0,15}[\"'](?P<secret>[^\"'\\\s]{6,200})\\{0,15}[\"']"
)
SECOND = re.compile(_SECOND_OF_TWO)
AUTH_LOGIN = re.compile(
    # `auth=("user", "password")`: in brackets, the second of two strings.
    rb"auth(?!or)[a-z_]{0,20}\s{0,2}[:=]?\s{0,2}[(\[]\s{0,2}(?:\$?[a-z_.]{1,40},\s{0,2}){0,2}\\{0,15}[\"']"
    + _SECOND_OF_TWO
)
_CALL = re.compile(
    # The ends of the names below, all as long: so the engine reads them backwards in one step.
    rb"\((?<=(?:nect|tion|ogin|ogon|g_in|g_on|n_in|gnin|user|auth|cate|asic|bind|nd_s|[\s\\]pdo|sqli|lize|ials|tial|word|open|btoa|code|ient|edis|base|\sftp|rypt|eriv|hmac|spec|totp|mhex|rcmp"
    rb"|tart|egin|ddap|_set|iver|dial|data)\()(?=[^()]{0,90}[\"'\x60])"
)
_LOGS_IN = re.compile(
    rb"(?:log_?[io]n|sign_?in|log_?in_?user|auth|authenticat(?:e|ion)|(?:auth|credentials?|tokens|feature)[.:]{1,2}basic|bind(?:_s)?|credentials?"
    rb"|pw_set|(?:create|add)_?user|usmuserdata|ssh2_auth_password|getconnection|(?:imap_|imaps?\.|s?ftps?[.:]{1,2})open)$"
)
_CONNECTS = re.compile(
    rb"(?:connect(?:ion)?|client|database|(?<=[\s=])ftp|pdo|mysqli|sequelize|driver|dial|wifi(?:multi)?\.(?:begin|addap)|(?:smtp|ssh|sftp|scp|imap|pop3?)[.:]{1,2}start)$"
)
_CONNECTS_THIRD = re.compile(rb"(?:redis|open)$")
_ENCRYPTS = re.compile(rb"(?:aes\.(?:en|de)crypt|cipheriv|createhmac|hash_hmac)$")
_TAKES_KEY = re.compile(rb"(?:secretkeyspec|totp|(?:key|secret|seed)\s?=\s?bytes\.fromhex)$")
_ENCODES_LOGIN = re.compile(rb"(?:btoa|b(?:ase)?64_?encode)$")
_TAKES_ONE = re.compile(rb"(?:redis|client|conn|r|rdb|jedis|db)(?:\.|->)auth$|communitydata$")
_MOST_ARGUMENTS = 7
_GAP = rb"(?:\s|\\{1,15}[nrt]){0,30}"
_ONE = re.compile(
    _GAP
    + rb"(?:(?P<name>[A-Za-z_]{1,24}\s?[=:]\s?)?(?:[A-Za-z:.]{0,24}\()?[bfru@$]?\\{0,15}[\"'\x60](?P<secret>(?:[^\"'\x60\\\r\n]|\\{1,15}[A-Za-z0-9]){0,200})\\{0,15}[\"'\x60]\)?(?:\.[A-Za-z_]{1,20}\(\))?"
    rb"|[^,\"'\x60()\r\n\\]{0,80}(?:\([^()\"'\r\n]{0,60}\))?)" + _GAP + rb"(?P<next>[,)])"
)


def in_calls(data: bytes, lowered: bytes) -> Iterator[Found]:
    """`connect("host", "user", "…")`, `login(user, "…")`: a password by its place among the arguments."""
    for call in _CALL.finditer(lowered):
        before = lowered[max(0, call.start() - 32) : call.start()]
        if _LOGS_IN.search(before):
            alone = _TAKES_ONE.search(before) is not None
            yield from _among_arguments(data, call.end(), 0 if alone else 1, is_second)
        elif _TAKES_KEY.search(before):
            yield from _among_arguments(data, call.end(), 0, _is_made_key)
        elif _CONNECTS.search(before) or _ENCRYPTS.search(before) or _TAKES_ONE.search(before):
            yield from _among_arguments(data, call.end(), b"data" not in before[-4:], _is_made_password)
        elif _CONNECTS_THIRD.search(before):
            yield from _among_arguments(data, call.end(), 2, _is_made_password)
        elif _ENCODES_LOGIN.search(before):
            yield from _argument_of(_LOGIN_TO_ENCODE.match(data, call.end()))


_LOGIN_TO_ENCODE = re.compile(rb"[bfru]?\\{0,15}[\"'\x60][^\s:\"'\\]{1,64}:" + _IN_COMMAND)


def _among_arguments(data: bytes, at: int, first: int, is_secret: Callable[[bytes], bool]) -> Iterator[Found]:
    for number in range(_MOST_ARGUMENTS):
        one = _ONE.match(data, at)
        if one is None:
            return
        value = one["secret"]
        if number >= first and value and not one["name"] and is_secret(value):
            yield (*one.span("secret"), "assigned-secret")
        if one["next"] == b")":
            return
        at = one.end()


_HOST_OR_NAME = re.compile(
    rb"[a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60}){1,6}(?::[0-9]{1,5})?|[a-z]{1,6}=[^\s=]{1,80},.*|[\w.+-]{1,64}@[\w-]{1,60}\.[\w.-]{2,60}"
)


def is_second(value: bytes) -> bool:
    """What a login takes second: no host, no name of a directory, no address of a mail."""
    return (
        looks_secret(value, "password", True, False, b"")
        and not is_slug(value)
        and not _HOST_OR_NAME.fullmatch(value)
    )


def _is_made_password(value: bytes) -> bool:
    """Where a host, a database or a character set may stand as well: more than small letters and digits."""
    return (
        is_second(value)
        and len(value) >= 8
        and bool(_DIGIT.search(value))
        and (bool(_SIGN.search(value)) or (value.lower() != value != value.upper()))
        and b" " not in value
    )


def _is_made_key(value: bytes) -> bool:
    return is_random(value, 16) and not is_placeholder(value)


_DIGIT = re.compile(rb"[0-9]")
_SIGN = re.compile(rb"[!#$%^&*?@+~]")


# ── near a password's name ────────────────────────────────────────────────────────────────────────

_MADE_UP = re.compile(
    # Letters, digits and a sign at the end, or signs among all kinds of letters: no code and no sentence has such a word.
    rb"(?<![^\s\"'\x60(])(?P<secret>(?=[A-Za-z0-9._-]{0,40}[0-9]{2})(?=[0-9._-]{0,40}[A-Za-z][A-Za-z0-9._-]{3,40}[!#^*])[A-Za-z0-9._-]{7,40}[!#%^*]"
    rb"|(?=[^a-z\s]{0,20}[a-z])(?=[^A-Z\s]{0,20}[A-Z])(?=[^0-9\s]{0,20}[0-9])[A-Za-z0-9._-]{2,20}[!#^*][A-Za-z0-9!#^*._=-]{6,30})(?=[\s\"'\x60),;]|\\|$)"
)
_NEAR_BY = 80


def near_name(data: bytes, start: int, end: int) -> Iterator[Found]:
    """On the line of a password's name, before or behind it."""
    low, high = max(0, start - _NEAR_BY), end + _NEAR_BY
    line = data.rfind(b"\n", low, start) + 1 or low
    stop = data.find(b"\n", end, high)
    for word in _MADE_UP.finditer(data, line, high if stop < 0 else stop):
        if not is_placeholder(word["secret"]) and not is_slug(word["secret"]):
            yield (*word.span("secret"), "assigned-secret")


# ── tables ────────────────────────────────────────────────────────────────────────────────────────

# Below a header that names it: CSV, Markdown, what databases print. Each line is read once.

_NEW_LINE = re.compile(rb"\r?\n|\\{1,15}(?:r\\{1,15})?n")
_LONGEST_ROW = 600
_MOST_ROWS = 2_000
_ENDS_CELL = re.compile(
    rb"[\"'\x60*]{0,2} {0,40}(?:[,;|\t\r\n]|\\{1,15}(?:[tnr]|u25)|\\{0,15}\"(?:[,;\s\\]|$)|$)|  | (?:from|FROM) "
)
_REST_OF_HEADER = re.compile(
    rb"[A-Za-z0-9 ,;|\t_.#/\"'\x60*?-]*+(?:\\{1,15}(?:t|u25[0-9a-f]{2}|\")[A-Za-z0-9 ,;|\t_.#/\"'\x60*?-]*+)*+"
)
_HEADER = re.compile(rb"[A-Za-z?][A-Za-z0-9 ?_.#/-]{0,40}|#|")
_RULE = re.compile(rb"[-=]{3}|\?{4}|(?:\\{1,15}u25..){3}|^\s*$")
_QUERY = re.compile(rb"(?i)select ([a-z_., ]{3,200}?) from ")
_BETWEEN_CELLS = tuple(
    map(re.compile, (rb"\t|\\{1,15}t", rb"\||\\{1,15}u25(?:02|03|51)", rb";", rb",", rb" {2,}"))
)
_ROW_OF_WORDS = re.compile(rb" +")
_FRAME = b" \t\"'\x60*\\>"


def below_headers(data: bytes, at: int) -> tuple[list[Found], int]:
    """What stands in the columns that the line around `at` names, and how far this was read."""
    rest = _REST_OF_HEADER.match(data, at) if _ENDS_CELL.match(data, at) else None
    end = rest.end() if rest else at
    first = _NEW_LINE.match(data, end) if rest else None
    if first is None:
        return [], end
    start = _start_of_line(data, at)
    start, _ = _inside_string(data, start, end, first)
    query = _QUERY.search(data, start, end)
    for sign in _BETWEEN_CELLS[1:2] if query else _BETWEEN_CELLS:
        if not query and not sign.search(data, start, end):
            continue
        cells = _cells(data, *query.span(1), _BETWEEN_CELLS[3]) if query else _cells(data, start, end, sign)
        names = [data[one:other] for one, other in cells]
        is_code = names[-1:] == [b""] and sign is _BETWEEN_CELLS[3]  # `user, password,` of a list
        if len(names) < 2 or is_code or not all(map(_HEADER.fullmatch, names[1:])):
            continue
        columns = {at: name for at, name in enumerate(names) if family_of(name) and name.lower() != b"key"}
        if columns:
            return _in_columns(data, first, sign, columns, len(names))
    return [], end


def _start_of_line(data: bytes, at: int) -> int:
    low = max(0, at - _LONGEST_ROW)
    start = max(data.rfind(b"\n", low, at) + 1, low)
    escaped = data.rfind(b"\\n", start, at)
    return escaped + 2 if escaped >= 0 else start


def _inside_string(data: bytes, start: int, end: int, new_line: re.Match[bytes]) -> Span:
    """Where lines end with `\\n`, a quote with fewer backslashes is the one of the string around them."""
    depth = new_line[0].count(b"\\")
    for quote in _QUOTES.finditer(data, start, end) if depth else ():
        if len(quote[1]) < depth:
            if new_line.end() <= quote.start():
                return start, quote.start()
            start = quote.end()
    return start, end


_QUOTES = re.compile(rb"(\\*)\"")


def _cells(data: bytes, start: int, end: int, sign: re.Pattern[bytes]) -> list[Span]:
    """Without what frames them. A sign between quotes ends none."""
    if sign.pattern.startswith(b" "):
        start += len(data[start:end]) - len(data[start:end].lstrip(_FRAME))
    cells: list[Span] = []
    at, quotes = start, 0
    for mark in (*sign.finditer(data, start, end), None):
        other = mark.start() if mark else end
        quotes = data.count(b'"', at, other)
        if mark and quotes % 2:
            continue
        inner = data[at:other]
        one = at + len(inner) - len(inner.lstrip(_FRAME))
        cells.append((one, max(one, at + len(inner.rstrip(_FRAME)))))
        at = mark.end() if mark else end
    return cells


def _in_columns(
    data: bytes, first: re.Match[bytes], sign: re.Pattern[bytes], columns: dict[int, bytes], width: int
) -> tuple[list[Found], int]:
    found: list[Found] = []
    at = first.end()
    for _ in range(_MOST_ROWS):
        new_line = _NEW_LINE.search(data, at, at + _LONGEST_ROW)
        end = new_line.start() if new_line else min(len(data), at + _LONGEST_ROW)
        _, end = _inside_string(data, at, end, first)
        if not _RULE.search(data, at, end):
            cells = _cells(data, at, end, sign)
            if len(cells) < width and sign.pattern.startswith(b" "):
                cells = _cells(data, at, end, _ROW_OF_WORDS)
            more = len(cells) - width
            if not 0 <= more <= 1:
                break
            for number, name in columns.items():
                one, other = cells[number + more]
                if _is_cell(data[one:other], name):
                    found.append((one, other, "assigned-secret"))
        if new_line is None:
            break
        at = new_line.end()
    return found, at


_WORD_AND_DIGITS = re.compile(rb"[A-Za-z]{3,}[0-9]{2,}")


def _is_cell(value: bytes, name: bytes) -> bool:
    family = family_of(name)
    if (
        b" " in value
        or not looks_secret(value, family, True, False, name)
        or is_slug(value)
        or _HOST_OR_NAME.fullmatch(value)
    ):
        return False
    if family == "password":
        return bool(_DIGIT.search(value) or _SIGN.search(value))
    return len(value) >= 12 and len(_DIGIT.findall(value)) > 1


# ── other languages, and escapes ──────────────────────────────────────────────────────────────────

# Names in other languages and signs that were escaped, told as the rules of redaction know them. What is put in
# their place is as long, so that a position in the one text is a position in the other.

_ENGLISH: dict[str, tuple[tuple[str, str], ...]] = {
    "р": (("пароль", "passwd"), ("Пароль", "passwd")),
    "密": (("密码是", "pw:"), ("密碼是", "pw:"), ("密码", "pw"), ("密碼", "pw"), ("密钥", "pw")),
    "令": (("口令是", "pw:"), ("口令", "pw"), ("令牌", "pw")),
    "パ": (("パスワードは", "__pwd:"), ("パスワード", "__pwd")),
    "번": (("비밀번호는", "_pwd:"), ("비밀번호", "_pwd")),
    "ö": (("lösenord", "password"), ("Lösenord", "password")),
    "ó": (("jelszó", "passwd"), ("Jelszó", "passwd")),
    "ş": (("şifre", "__pwd"),),
    "Ş": (("Şifre", "__pwd"),),
    "ü": (("Schlüssel", "secretkey"), ("schlüssel", "secretkey")),
    "ك": (("كلمة المرور", "___password"), ("كلمة السر", "_password")),
    "т": (("токен", "token"), ("Токен", "token")),
    "ñ": (("contraseña", "__password"), ("Contraseña", "__password")),
    "ł": (("hasło", "__pwd"), ("Hasło", "__pwd")),
    "ό": (("κωδικός", "_passwd"), ("Κωδικός", "_passwd")),
    "ס": (("סיסמה", "__pwd"),),
    "ẩ": (("mật khẩu", "password"), ("Mật khẩu", "password")),
}
"""By a letter of theirs: the name, and one that is known."""


_INVISIBLE = re.compile(f"[{INVISIBLE}]")


def letters_beyond(text: str, data: bytes) -> frozenset[str]:
    """Which letters it has that are not ASCII: in `data` they are `?`."""
    return frozenset(text[match.start()] for match in re.finditer(rb"\?", data))


def in_sight(text: str, letters: frozenset[str]) -> tuple[str, Callable[[int], int]]:
    """The text without what nobody sees, and where a place of it was before."""
    if letters.isdisjoint(INVISIBLE):
        return text, lambda at: at
    places = [match.start() - number for number, match in enumerate(_INVISIBLE.finditer(text))]
    return _INVISIBLE.sub("", text), lambda at: at + bisect_right(places, at)


def in_english(text: str, letters: frozenset[str]) -> str:
    """With the names that are not ASCII."""
    for letter in _ENGLISH.keys() & letters:
        for name, known in _ENGLISH[letter]:
            text = text.replace(name, known)
    return text


def in_latin(text: str, data: bytes, letters: frozenset[str]) -> bytes:
    """With the usual signs in place of those like them that stand beside a letter; of a cut text, `_CUT`."""
    if letters.isdisjoint(ALIKE) and _CUT not in letters:
        return data
    changed = bytearray(data)
    places = () if letters.isdisjoint(ALIKE) else _BESIDE_LETTER.finditer(data)
    for at in [match.start() for match in places]:
        changed[at] = ALIKE.get(text[at], changed[at])
    at = text.find(_CUT) if _CUT in letters else -1
    while at >= 0:
        changed[at] = CUT_MARK
        at = text.find(_CUT, at + 1)
    return bytes(changed)


_CUT = "…"
CUT_MARK = 26
"""Stands for `…` in the bytes: what our own briefings cut is shorter than its kind."""


_BESIDE_LETTER = re.compile(rb"\?(?:(?<=[A-Za-z0-9_? ]\?)|(?=[A-Za-z0-9_? ]))")


_FOREIGN = re.compile(
    rb"(?i)kennwort|wachtwoord|salasana|(?<![a-z])(?:senha|mdp|clave)(?![a-z])|contrase(?:na|nha)"
)
_ESCAPED = re.compile(
    rb"(?i)%(?P<percent>22|27|3a|3d|20)|&(?P<entity>quot|apos|#34|#39|#x27|#x22|lt|gt);"
    rb"|\\{1,15}(?:u00|x)(?P<code>22|27|3a|3d)"
)
_TELLS = (
    # Each is searched for by letters that rarely stand next to each other.
    *(
        rb"%(?:22|3[ad]|6[1-9a-f]|7[0-9a])",
        rb"&(?:quot|apos|#|nbsp|shy|zw|lt)",
        rb"u(?:00(?:2[27]|3[ad]|1b|[4-7]|a[0d])|20(?:0[b-f]|6[0-4])|feff)",
    ),
    *(
        rb"lasana(?<=salasana)",
        rb"contrasen",
    ),
)
_SIGNS = {
    **dict.fromkeys((b"22", b"quot", b"#34", b"#x22"), b'"'),
    b"lt": b"<",
    b"gt": b">",
    b"3a": b":",
    b"3d": b"=",
    b"20": b" ",
}
_AROUND = 100, 400


@cache
def _tells() -> tuple[re.Pattern[bytes], ...]:
    return tuple(map(re.compile, _TELLS))


def places_of_escapes(lowered: bytes) -> Iterator[tuple[int, int]]:
    """What lies around each escaped sign and each such name; where these are close together, one piece."""
    start = end = -1
    told = [match.start() for tell in _tells() for match in tell.finditer(lowered)]
    at = lowered.find(b"\x1b")
    while at >= 0:
        told.append(at)
        at = lowered.find(b"\x1b", at + 1)
    for place in sorted(told):
        if start >= 0 and place - end > sum(_AROUND):
            yield max(0, start - _AROUND[0]), end + _AROUND[1]
            start = place
        start, end = place if start < 0 else start, place
    if start >= 0:
        yield max(0, start - _AROUND[0]), end + _AROUND[1]


_LETTER = re.compile(
    rb"(?i)(?P<space>\\{1,15}u00a0|&(?:nbsp|#160|#xa0);)|\\{1,15}u(?:00ad|200[b-f]|206[0-4]|feff)|&(?:shy|zwn?j|zerowidthspace|#(?:173|820[3-7]|8288|x(?:ad|200[b-f]|2060)));"
    rb"|(?:\x1b|\\{1,15}(?:u001b|x1b|033))\[[0-9;]{0,12}m"
    rb"|(?:\\{1,15}(?:u00|x)|%)(?P<hex>[46][1-9a-f]|[57][0-9a]|5f|2d)|&#(?:x(?P<also>[46][1-9a-f]|[57][0-9a]|5f)|(?P<number>[0-9]{2,3}));"
)


def in_plain_signs(data: bytes) -> tuple[bytes, Callable[[int], int]]:
    """The text with its signs as they are and its names in English, and where a place of it was before."""
    plain = _FOREIGN.sub(lambda match: b"pwd".rjust(len(match[0]), b"_"), _ESCAPED.sub(_plain_sign, data))
    pieces: list[bytes] = []
    done, places, lost = 0, [0], [0]
    for match in _LETTER.finditer(plain):
        sign = _sign_of(match)
        pieces += (plain[done : match.start()], sign)
        done = match.end()
        places.append(done - lost[-1] - len(match[0]) + len(sign))
        lost.append(lost[-1] + len(match[0]) - len(sign))
    return b"".join((*pieces, plain[done:])), lambda at: at + lost[bisect_right(places, at) - 1]


def _sign_of(letter: re.Match[bytes]) -> bytes:
    """Nothing for one that nobody sees."""
    if letter["space"]:
        return b" "
    if letter["number"]:
        return bytes((int(letter["number"]) & 127,))
    code = letter["hex"] or letter["also"]
    return bytes((int(code, 16),)) if code else b""


def _plain_sign(match: re.Match[bytes]) -> bytes:
    """Backslashes stand before a quote, so that it is one of JSON inside JSON; spaces before the other signs."""
    sign = _SIGNS.get((match[match.lastgroup] if match.lastgroup else b"20").lower(), b"'")
    return sign.rjust(len(match[0]), b"\\" if sign in (b'"', b"'") else b" ")


# ── random words ──────────────────────────────────────────────────────────────────────────────────

_STARTS_VALUE = frozenset(b"\"' =:(")
_RANDOM = re.compile(
    rb"(?=[A-Za-z_.~-]{0,60}[0-9])(?:(?=[^A-Z]{0,60}[A-Z])(?=[^a-z]{0,60}[a-z])|[0-9a-f]{32}|[A-Z2-7]{16}|[a-z0-9]{24})|(?=[a-z]{0,20}[A-Z])[A-Za-z]{19,}"
)
_UUID = re.compile(rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-")
_NEAR = tuple(word.encode() for word in NEAR)
_OPENED = rb"[bfru@]?\\{0,15}[\"'\x60]"
_FUNCTIONS = (
    rb"jwt\.(?:sign|verify|encode|decode)|hmac[a-z0-9_]{0,20}(?:\.new|\.hexdigest|\.digest)?"
    rb"|createcipher(?:iv)?|createdecipher(?:iv)?|aes\.(?:en|de)crypt|openssl_(?:en|de)crypt|cryptr|fernet|aes\.new|secretkeyspec|symmetricsecuritykey"
    rb"|compare_digest|bot(?:\.run|\.login)?|client(?:\.login)?|stripe|github|openai|slack|twilio|mailgun|algoliasearch|cookieparser"
)
_CONTEXTS = re.compile(
    rb"(?:"
    # A header of a vendor's own: `X-JFrog-Art-Api: …`.
    rb"(?:(?<![a-z0-9])|(?<=\\[nrt]))x-(?![a-z0-9_-]{0,40}(?:id|trace|hash|digest|sum|tag|version|nonce|cache|served|sha|signature|fingerprint|boundary|revision|commit)[0-9-]{0,4}\\{0,15}[\"':= ])"
    rb"[a-z][a-z0-9_-]{2,40}\\{0,15}[\"']?\s?[:=]\s?(?:\\{0,15}[\"'])?"
    # An argument of what encrypts, signs or logs in.
    rb"|(?:" + _FUNCTIONS + rb")\((?:[^;\n]{0,70}[\s,({])?" + _OPENED + rb"(?:[0-9]{6,12}:)?"
    # Names that are too short, or too common, to be looked for everywhere.
    rb"|(?:[_-]|(?:git(?:hub|lab)|azure|devops|ado)_?)pat"
    + rb"\\{0,15}[\"']?\s{0,3}(?:=>?|:)\s{0,3}(?:"
    + _OPENED
    + rb")?"
    rb"|(?:pepper|_salt|totp_seed|otp_seed|mfa_seed|sessid|jsessionid|net_sessionid|bearer|(?:(?<![a-z])|(?<=\\[nrt]))jwt|privkey|signkey|authtok|sonar\.login)"
    rb"\\{0,15}[\"'\]]{0,2}\s{0,3}(?:=>?|:)\s{0,3}(?:" + _OPENED + rb")?"
    rb"|cookiesession\(\{\s?keys:\s?\["
    + _OPENED
    + rb"|(?:vault|operator) unseal |user-secrets set [a-z0-9:_.-]{1,60} |pass oauth:|(?:github|gitlab)-oauth\.[a-z.]{1,40} "
    rb")$"
)


def in_context(data: bytes, start: int, end: int) -> Span | None:
    """A long random word where only secrets stand, though no name says so."""
    if (
        data[start - 1] not in _STARTS_VALUE
        or not _RANDOM.match(data, start, end)
        or _UUID.match(data, start)
    ):
        return None
    before = data[max(0, start - 110) : start].lower()
    if not any(word in before for word in _NEAR) or not _CONTEXTS.search(before):
        return None
    value = data[start:end]
    return (
        None if is_placeholder(value) or not (is_random(value, 16) or is_mixed_case(value)) else (start, end)
    )
