from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base import adversary, naive
from holdfast.base.redact import redact
from soak import repeated

# Put together at run time, so that no scanner takes this file for a leak.
HIDDEN = {
    "anthropic-key": "sk-" + "ant-" + "api03-" + "a1B2" * 8,
    "openai-key": "sk-" + "proj-" + "Zz9" * 10,
    "github-token": "gh" + "p_" + "a1" * 18,
    "gitlab-token": "glpat" + "-" + "x9_" * 8,
    "aws-key": "AK" + "IA" + "ABCDEFGH12345678",
    "google-key": "AI" + "za" + "b2_" * 11 + "cd",
    "slack-token": "xo" + "xb-" + "123456789012-abcdef",
    "stripe-key": "sk_" + "live_" + "a1b2" * 6,
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0In0.abc" + "DEF123_-x",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_vendors_key_is_taken_out_wherever_it_stands(kind: str) -> None:
    secret = HIDDEN[kind]
    for text in (secret, f"use {secret}, please", f"KEY={secret}\n", json.dumps({"out": f"a\n{secret}\n"})):
        clean, found = redact(text)
        assert secret not in clean
        assert sum(found.values()) == 1


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("git clone https://bob:s3cr3t@host/x.git", "git clone https://[redacted:url-password]@host/x.git"),
        ("Authorization: Bearer abcdefghij1234567890", "Authorization: Bearer [redacted:bearer-token]"),
        ('{"password": "hunter2hunter2", "x": 1}', '{"password": "[redacted:assigned-secret]", "x": 1}'),
        ("export DB_PASSWORD='tr0ub4dor&3'", "export DB_PASSWORD='[redacted:assigned-secret]'"),
        ("client_secret: 8f3a9c2b1d", "client_secret: [redacted:assigned-secret]"),
        ("curl --access-token 8f3a9c2b1d", "curl --access-token [redacted:assigned-secret]"),
    ],
)
def test_secrets_with_a_name_or_a_place(text: str, clean: str) -> None:
    assert redact(text)[0] == clean


def test_a_private_key_goes_as_a_whole_even_if_its_end_is_cut_off() -> None:
    block = "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc\n-----END RSA " + "PRIVATE KEY-----"
    assert redact(f"a {block} b")[0] == "a [redacted:private-key] b"
    assert redact(f"a {block[:60]}")[0] == "a [redacted:private-key]"


@pytest.mark.parametrize(
    "text",
    [
        "password = os.environ.get('X')",
        "the password is wrong",
        "def get_access_token(self) -> str:",
        "api_key: str = None",
        "task-abcdefghijklmnopqrstuvwxyz",
        "risk-management-of-everything-there-is",
        "https://host/path:with@sign",
        "commit 3f2b9c1d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b",
        "secret_name=my_secret_name",
    ],
)
def test_what_only_sounds_like_a_secret_stays(text: str) -> None:
    assert redact(text) == (text, {})


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once, _ = redact(text)
    assert redact(once)[0] == once


@given(
    st.lists(
        st.sampled_from([*HIDDEN.values(), "password=", '"', "\\", "x9y8z7w6v5", " ", ":", "://a:b@", "\n"])
    ),
)
def test_json_stays_json(parts: list[str]) -> None:
    document = {"text": "".join(parts), "password": "".join(parts)}
    clean, _ = redact(json.dumps(document))
    assert json.loads(clean).keys() == document.keys()


SECONDS = 300
PARTS = [
    *HIDDEN.values(),
    *adversary.PIECES,
    *(
        ".",
        "_",
        "x",
        "B",
        "A" * 12,
        "a" * 8,
        "7",
        "é",
        "@",
        "'",
        "PRIVATE KEY",
        " BLOCK",
        "RSA ",
        "-----",
        "/",
    ),
]


@settings(max_examples=repeated(2_000))
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_it_finds_what_plain_patterns_find(text: str) -> None:
    assert redact(text) == naive.redact(text)


@settings(max_examples=repeated(300))
@given(
    st.lists(st.sampled_from(PARTS), max_size=4).map("".join),
    st.integers(19_960, 20_040),
    st.lists(st.sampled_from(PARTS), max_size=4).map("".join),
)
def test_so_it_does_of_a_long_key_block(before: str, length: int, after: str) -> None:
    text = f"{before}{adversary.OPEN_KEY}{'!' * length}{adversary.CLOSED_KEY}{after}"
    assert redact(text) == naive.redact(text)


def test_the_time_grows_with_the_length_alone() -> None:
    """Held by the processor time it may use: some thirty times what is needed, and less than what a single
    one of these texts takes where the time grows with the square of the length."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    done = subprocess.run(
        [sys.executable, adversary.__file__],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    assert done.returncode == 0, f"stuck at {done.stdout.splitlines()[-1:]} {done.stderr}"
