# ruff: noqa: RUF001 - signs of many scripts
"""Texts that make naive redaction read the same piece again for each sign in it.

Run as a program, with the length of the longest, it redacts them all and names each before it starts, so
that the last line tells which one was too much for the processor time it was given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product

from holdfast.base.redact import redact
from holdfast.base.secret_rules import NAMES, NEAR, PLACES, SIGN_RULES, WORD_RULES

SHORTER = 8_000

OPEN_KEY = "-----BEGIN " + "PRIVATE KEY-----"
CLOSED_KEY = "-----END " + "PRIVATE KEY-----"
PIECES = (
    *(prefix for _, prefixes, _ in WORD_RULES for prefix in prefixes.split(" ")),
    *(sign for _, sign, _, _ in SIGN_RULES),
    *NAMES,
    *NEAR,
    *PLACES,
    *(
        "curl -u a:",
        "mysql -",
        "sshpass -p ",
        "a.a.a.",
        "a-a-",
        "Cookie: a=",
        "authorization: basic ",
        "authorization: digest response=",
        "identified by '",
        "rabbitmqctl add_user ",
        "curl -b a=",
        "password is ",
        "authorization",
        "authorization:",
        "cookie:a=b;",
        "cookie=",
    ),
    *(
        "sudo -S <<< a1b2",
        "printf a1b2 | sudo -S ",
        "net use \\\\a\\b a1b2 /user:",
        "net use \\\\a\\b ",
        "/user:a ",
        "a/b:c1d2@",
        "oracle:thin:a/",
        "@",
        "insert into t(password) values (",
        "insert into t(password,",
        "values ('",
        ":5432:a:b:",
        ":5432:a",
        "community ",
        "X-Ab: " + "aB3" * 8 + " ",
        "hmac('" + "aB3" * 8,
        "jwt.sign(",
        "x-a-",
        "\\u0061",
        "%61",
        "&#97;",
        "password:\n",
        "password:\\n  ",
        "token = (\n",
        "tokens: ['a1b2c3d4', ",
        'key <a b="c"',
        "password (a)",
        "</td><td>",
        "password</td>",
        "pаss",
        "“",
        "K" + "a1" * 25,
    ),
    *(
        "eyJ-",
        "eyJ.",
        "key-",
        "-us",
        "atlasv1.",
        'password\\\\"',
        "\\u2026",
        "token=$",
        "sk-a",
        "SG.a.",
        "a1" * 16,
    ),
    *(f"{name}=" for name in ("password", "secret", "api_key")),
    *("eyJ" + "a" * 8 + ".", "eyJ" + "a" * 8, "AKIA…", "AKIA" + "A" * 16, "sk-ant-", "sk-proj-", "xoxb-"),
    *(
        OPEN_KEY,
        CLOSED_KEY,
        f"{OPEN_KEY}!",
        f"{OPEN_KEY}\\\\!",
        f'{OPEN_KEY}"',
        "-----BEGIN A ",
        "-----END A ",
    ),
    *("psk", "token:", "auth=('a','", "login('a', '", 'key": "a", "value": "', "name=a value=", "value="),
    *("echo a | sudo", " -p ", "mysql -p", " -u a:", "htpasswd -b a ", 'credential("a",', "mc alias set a "),
    *('{default = "', "api key: ", "for a is ", "| password | ", '"d":"', 'kty"d":"', "password: |\n"),
    *("token: string = ", "BUNDLE_A=a:", "AUTH_SALT','", "hook", "mnemonic: aaa ", "key: "),
    *(
        "%3D",
        "password%3D",
        "&quot;",
        "\\u0022",
        "\x1b[0m",
        "a:b@tcp(",
        "?key=",
        "</key><string>",
        ").fill(",
        "пароль: ",
    ),
    *("basic.a b ", "auth plain ", "auth:", "token=\\", "{ type = a", "password for a"),
    *("://a:", "://a:b", "password: ", "password' : '", "secret=ab1…", "passwordpassphrase=", "npm_a"),
    *(" ", "\n", "\\", "\\n", '"', "0", "A", "-", "=", ":", "…", "\u0130"),
)
MIXED = (
    *("eyJ", "eyJ" + "a" * 8, ".", "AKIA", "ASIA", "…", "-", OPEN_KEY, CLOSED_KEY, "!", '"', "\\", " "),
    *("password", "secret=", "A1"),
)


def texts(longest: int) -> Iterator[tuple[str, str]]:
    for piece in PIECES:
        yield repr(piece), piece * (longest // len(piece))
    for ending in ("glpat-", "sk-ant-example-", "dp.pt.example-", "-xoxb-xxxxxx"):
        yield f"{ending!r}, and a placeholder at the end", f"{ending * (longest // len(ending))}-here"
    for one, other in product(MIXED, repeat=2):
        times = SHORTER // len(one + other)
        yield f"{one!r} and {other!r} in turn", (one + other) * times
        yield f"{one!r}, then {other!r}", one * times + other * times


if __name__ == "__main__":
    for name, text in texts(int(sys.argv[1])):
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        redact(text)
