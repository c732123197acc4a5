"""Who gets in: the token, the Host, the Origin; what is too large or too deep; what a browser is told."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from cli.harness import Place
from holdfast.base.errors import DamagedDataError, InvalidInputError, NotFoundError
from holdfast.project.server_token import (
    BROWSER_DAYS,
    create_browser_token,
    create_scoped_token,
    made_token,
    matching_token,
    read_token,
    revoke_scoped_token,
    scoped_tokens_file,
    token_file,
)
from holdfast.project.settings import Settings
from holdfast.server.app import HttpConnection, origin_of
from holdfast.server.auth import (
    LINK_SECONDS,
    MOST_BODY_BYTES,
    MOST_JSON_DEPTH,
    TOKEN_ENDED,
    Auth,
    Credentials,
    OneTimeCodes,
    _depth,
)
from holdfast.server.problems import RefusedError
from holdfast.store.sql import SqlStore

from .harness import PATIENCE, TOKEN, Served, serving
from .program import ServerProgram
from .test_document import DOCUMENT

ROUTES = [
    (method.upper(), path.replace("{workflow_id}", "wf_x").replace("{snapshot_id}", "snap_x"))
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if operation.get("security") != []
]
OFFERED = ("holdfast", f"holdfast.token.{TOKEN}")
"""The protocols that the dashboard offers for its WebSocket."""
PLAN = {"issue": {"id": "a", "title": "t"}, "tasks": [{"id": "x", "run": "true"}]}


def code_of(link: str) -> dict[str, str]:
    return {"code": link.partition("#code=")[2]}


@pytest.fixture
def sql_store(sqlite_store: SqlStore) -> SqlStore:
    """Who gets in has nothing to do with the database."""
    return sqlite_store


def test_every_address_without_a_token_is_401(served: Served) -> None:
    for method, path in [*ROUTES, ("GET", "/api/openapi.json"), ("GET", "/api/nowhere"), ("GET", "/api")]:
        for token in (None, "wrong", TOKEN[:-1], TOKEN + "x"):
            answer = served.ask(method, path, token=token)
            assert (answer.status, answer.code) == (401, "unauthorised"), (method, path, token)
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": ""},
        {"Cookie": f"holdfast={TOKEN}"},
        {"Sec-WebSocket-Protocol": ", ".join(OFFERED)},
        {"X-Token": TOKEN},
    ],
)
def test_what_is_no_token(served: Served, headers: dict[str, str]) -> None:
    assert served.ask("GET", "/api/health", token=None, headers=headers).status == 401
    assert served.ask("GET", f"/api/health?token={TOKEN}", token=None, headers=headers).status == 401


FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "user@127.0.0.1",
    "127.0.0.1:80:80",
    "127.0.0.1/x",
    "192.168.1.7",
    "0.0.0.0",  # noqa: S104
    "[::1",
    "",
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_403_everywhere(served: Served, host: str) -> None:
    for path in ("/api/health", "/", "/login", "/assets/x.js"):
        answer = served.ask("GET", path, headers={"Host": host})
        assert (answer.status, answer.code) == (403, "foreign_host"), path


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:99", "localhost."])
def test_our_own_names(served: Served, host: str) -> None:
    assert served.ask("GET", "/api/health", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "", "file://"]
)
def test_a_foreign_origin_is_403(served: Served, origin: str) -> None:
    sent = {"Origin": origin.format(port=served.port)}
    for method, path in ROUTES:
        answer = served.ask(method, path, headers=sent)
        assert (answer.status, answer.code) == (403, "foreign_origin")
    with pytest.raises(InvalidStatus) as refused, served.socket(headers=sent, protocols=OFFERED):
        pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200)])
def test_what_the_browser_says_of_itself(served: Served, site: str, status: int) -> None:
    assert served.ask("GET", "/api/health", headers={"Sec-Fetch-Site": site}).status == status


def test_no_cookie_lets_anybody_in(served: Served) -> None:
    """A browser sends them to every port of this host, so whoever listens on another one has them all."""
    older = hmac.digest(TOKEN.encode(), b"holdfast dashboard cookie", hashlib.sha256).hex()
    cookies = [
        f"{name}={value}"
        for name in ("holdfast", f"holdfast-{served.port}", "holdfast-token")
        for value in (older, TOKEN)
    ]
    for origin in ({}, {"Origin": served.url}, {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}):
        sent = {"Cookie": "; ".join(cookies), **origin}
        for method, path in ROUTES:
            assert served.ask(method, path, token=None, headers=sent).code == "unauthorised", (method, path)
        assert served.ask("POST", "/api/workflows", {"plan": PLAN}, token=None, headers=sent).status == 401
        with pytest.raises(InvalidStatus) as refused, served.socket(headers=sent):
            pass
        assert refused.value.response.status_code == 401


COOKIES_OF_OTHERS = (
    'prefs={"theme":"dark"}',
    'holdfast="; ;;=;',
    "\xe9=\xff",
    "; ".join(f"other{number}={'x' * 4_000}" for number in range(40)),
)


def test_cookies_of_other_programs_do_no_harm(place: Place) -> None:
    with ServerProgram(place) as program:
        served = program.served()
        for cookie in COOKIES_OF_OTHERS:
            sent = {"Cookie": cookie, "Origin": served.url}
            assert served.ask("GET", "/", token=None, headers=sent).status == 200
            assert served.ask("GET", "/api/health", headers=sent).status == 200
            offered = ("holdfast", f"holdfast.token.{program.token}")
            with served.socket(headers=sent, protocols=offered) as listener:
                assert listener.next()["type"] == "live"


def test_a_websocket_needs_the_token(served: Served) -> None:
    for headers, protocols in (
        ({"X": "y"}, ()),
        ({"Authorization": "Bearer no"}, ()),
        ({"Authorization": "Bearer no"}, OFFERED),
        ({"X": "y"}, OFFERED[:1]),
        ({"X": "y"}, (OFFERED[0], "holdfast.token.no")),
        ({"X": "y"}, (OFFERED[0], "holdfast.token.", TOKEN)),
    ):
        with pytest.raises(InvalidStatus) as refused, served.socket(headers=headers, protocols=protocols):
            pass
        assert refused.value.response.status_code == 401
        assert json.loads(refused.value.response.body or b"")["error"]["code"] == "unauthorised"
    with served.socket(headers={"Origin": served.url}, protocols=OFFERED) as listener:
        assert listener.connection.subprotocol == "holdfast"
        assert listener.next()["type"] == "live"


def test_a_refused_websocket_is_no_event_for_the_terminal(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    with ServerProgram(place) as program:
        served = program.served()
        for sent in ({"Origin": "http://evil.example"}, {"Authorization": "Bearer no"}):
            with pytest.raises(InvalidStatus), served.socket(headers=sent):
                pass
        program.stop()
    assert capfd.readouterr().err == ""


def test_the_link_opens_this_server_and_holds_no_token_that_opens_another(place: Place) -> None:
    with ServerProgram(place) as one, ServerProgram(place) as other:
        assert one.token not in one.link
        assert other.served().ask("POST", "/api/login", code_of(one.link), token=None).code == "link_expired"
        answer = one.served().ask("POST", "/api/login", code_of(one.link), token=None)
        assert answer.status == 200
        token = answer.data["token"]
        assert token != one.token
        assert one.served().ask("GET", "/api/health", token=token).status == 200
        assert other.served().ask("GET", "/api/health", token=token).status == 401
        page = one.served().ask("GET", "/", token=None)
        assert (page.status, "set-cookie" in page.headers) == (200, False)


def test_every_answer_keeps_a_browser_on_a_short_leash(served: Served) -> None:
    for path, how in (("/", {}), ("/api/health", {}), ("/api/health", {"token": None}), ("/api/x", {})):
        headers = served.ask("GET", path, **how).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert path == "/" or headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def _chunks(size: int) -> Iterator[bytes]:
    for _ in range(size >> 20):
        yield b"x" * (1 << 20)


BODIES: dict[str, tuple[Callable[[], Any], int]] = {
    "64 MB": (lambda: b'{"plan": "' + b"x" * (64 << 20) + b'"}', 413),
    "64 MB in pieces": (lambda: _chunks(64 << 20), 413),
    "deep lists": (lambda: b'{"plan": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422),
    "deep objects": (lambda: b'{"a":' * 5_000 + b"1" + b"}" * 5_000, 422),
    "deep and torn": (lambda: b"[" * 1_000_000, 422),
    "lone surrogate": (lambda: b'{"plan": "\\ud800", "worktree": "\\ud800"}', 422),
    "lone surrogate in a name": (lambda: b'{"\\ud800": 1}', 422),
    "lone surrogate in a plan": (lambda: json.dumps({"plan": {**PLAN, "driver": "\ud800"}}).encode(), 422),
    "zero in a folder": (lambda: json.dumps({"plan": PLAN, "worktree": "/tmp\0x"}).encode(), 422),
    "a folder that is not whole": (lambda: json.dumps({"plan": PLAN, "worktree": "../x"}).encode(), 422),
    "a folder that is not there": (
        lambda: json.dumps({"plan": PLAN, "worktree": "/no\U0001f525"}).encode(),
        404,
    ),
    "no UTF-8": (lambda: b'{"plan": "\xff\xfe"}', 400),
    "no JSON": (lambda: b"{plan: no}", 422),
    "not a number": (lambda: json.dumps({"plan": {**PLAN, "timeout": float("nan")}}).encode(), 422),
    "a huge number": (lambda: b'{"plan": ' + b"9" * 100_000 + b"}", 400),
    "control characters in a plan": (lambda: json.dumps({"plan": "issue: \x01\x02\u202e"}).encode(), 422),
    "nothing": (lambda: b"", 422),
    "null": (lambda: b"null", 422),
}


@pytest.mark.parametrize(("body", "status"), BODIES.values(), ids=BODIES.keys())
def test_odd_bodies_are_refused(served: Served, body: Callable[[], Any], status: int) -> None:
    answer = served.ask("POST", "/api/workflows", raw=body())
    assert (answer.status, bool(answer.code)) == (status, True), answer
    assert served.get("/api/workflows")["workflows"] == []


def test_a_body_that_is_announced_as_too_large_is_refused_before_it_arrives(served: Served) -> None:
    head = HEAD.replace("GET /api/health", "POST /api/workflows")
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE) as opened:
        opened.sendall(
            f"{head}Content-Type: application/json\r\nContent-Length: {64 << 20}\r\n\r\n{{".encode()
        )
        told = b""
        while b"must not exceed 16 MB" not in told:
            piece = opened.recv(65_536)
            assert piece, "closed without an answer"
            told += piece
    assert told.startswith(b"HTTP/1.1 413")


def test_a_body_must_say_that_it_is_json(served: Served) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = served.ask("POST", "/api/workflows", PLAN, headers={"Content-Type": kind})
        assert (answer.status, answer.code) == (415, "unsupported_media_type")


ODD_NAMES = [
    "%00",
    "%ff",
    "%F0%9F%94%A5",
    "..%2f..%2fetc",
    "%E2%80%AE",
    "x" * 5_000,
    "%0d%0aX:%20y",
    "'%22;--",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_not_found(served: Served, name: str) -> None:
    for path in (f"/api/workflows/{name}", f"/api/snapshots/{name}", f"/api/sessions/{name}/context"):
        answer = served.ask("GET", path)
        assert 400 <= answer.status < 500
        assert answer.code


def test_depth_is_counted_outside_of_strings() -> None:
    assert _depth(b'{"a": [1, {"b": []}]}') == 4
    assert _depth(rb'["[[[[", "\"[[", "\\"]') == 1
    assert _depth(b"[[[") == 3
    assert _depth(rb'["\"[[') == 1
    assert _depth(rb'["[[\\"[') == 2


def test_strings_without_an_end_are_read_once() -> None:
    """A body is looked at where all requests are answered: nobody else is, meanwhile."""
    body = b"[]" * MOST_JSON_DEPTH + b'"\\' * 8_000_000
    assert len(body) < MOST_BODY_BYTES
    assert _depth(body) == 1


def test_a_question_has_no_large_body(served: Served) -> None:
    assert served.ask("GET", "/api/health", raw=b"{}").status == 200
    assert served.ask("GET", "/api/health", raw=b"[" * 10_000).code == "too_large"


def test_unknown_addresses_and_methods(served: Served) -> None:
    assert served.ask("GET", "/api/nowhere").code == "not_found"
    answer = served.ask("PUT", "/api/workflows")
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, POST"
    assert served.ask("GET", "/api/workflows/x/pause").status == 405
    assert served.ask("POST", "/").status == 405


# --- the token's file


def test_the_token_is_made_once_and_for_its_owner(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(NotFoundError):
        read_token(home)
    found: list[str] = []
    starts = [threading.Thread(target=lambda: found.append(made_token(home))) for _ in range(8)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert len(found) == 8
    assert set(found) == {read_token(home)}
    assert stat.S_IMODE(token_file(home).stat().st_mode) == 0o600
    assert len(found[0]) >= 40


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    made_token(tmp_path)
    token_file(tmp_path).chmod(0o644)
    with pytest.raises(InvalidInputError, match="readable by other users"):
        made_token(tmp_path)


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 50])
def test_a_damaged_token_is_said(tmp_path: Path, content: bytes) -> None:
    token_file(tmp_path).write_bytes(content)
    token_file(tmp_path).chmod(0o600)
    with pytest.raises(DamagedDataError):
        read_token(tmp_path)


# --- doors that lead outside


def test_a_server_for_others_answers_to_addresses_and_to_its_names(
    settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    door = Credentials(TOKEN, names=frozenset({"box.example.org"}), any_address=True)
    with serving(settings, home=tmp_path, door=door) as served:
        for host, status in (("192.168.1.7", 200), ("BOX.example.org:1", 200), ("evil.example", 403)):
            assert served.ask("GET", "/api/health", headers={"Host": host}).status == status


def test_behind_a_proxy_the_public_address_is_its_own(
    settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    public = "https://box.example.org"
    door = Credentials(TOKEN, names=frozenset({"127.0.0.1", "box.example.org"}), public_origin=public)
    with serving(settings, home=tmp_path, door=door) as served:
        for host in ("box.example.org", f"127.0.0.1:{served.port}"):
            for origin, status in ((public, 422), ("https://evil.example", 403), (f"{public}:1", 403)):
                sent = {"Host": host, "Origin": origin}
                assert served.ask("POST", "/api/workflows", {}, headers=sent).status == status
            with served.socket(headers={"Origin": public}, protocols=OFFERED) as listener:
                assert listener.next()["type"] == "live"


PUBLIC = {
    "https://Box.example.org/": "https://box.example.org",
    "https://box.example.org:443": "https://box.example.org",
    "https://box.example.org:8443": "https://box.example.org:8443",
    "https://[2001:db8::1]": "https://[2001:db8::1]",
    "http://localhost:80": "http://localhost",
}
NOT_PUBLIC = (
    "box.example.org",
    "ftp://box.example.org",
    "https://box.example.org/holdfast",
    "https://box.example.org?x",
    "https://me@box.example.org",
    "https://box.example.org:x",
    "https://",
    "http://box.example.org",
)


def test_a_public_address_is_a_scheme_a_host_and_a_port(place: Place) -> None:
    assert {url: origin_of(url) for url in PUBLIC} == PUBLIC
    assert origin_of("http://box.example.org", insecure=True) == "http://box.example.org"
    for url in NOT_PUBLIC:
        with pytest.raises(InvalidInputError, match="--public-url"):
            origin_of(url)
    with ServerProgram(place, "--public-url", "https://box.example.org:8443") as program:
        assert program.link.startswith("https://box.example.org:8443/#code=")


def test_the_dashboard_comes_from_its_folder_and_nothing_else_does(
    settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    files = tmp_path / "static"
    (files / "assets").mkdir(parents=True)
    (files / "index.html").write_text("<title>the dashboard</title>")
    (files / "assets" / "app-1a2b.js").write_text("1")
    (tmp_path / "secret").write_text("secret")
    (files / "link").symlink_to(tmp_path / "secret")
    with serving(settings, home=tmp_path, files=files) as served:
        page = served.ask("GET", "/", token=None)
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        for path in (
            "/workflows/wf_1",
            "/workflows/wf_1/tasks/old.js",
            "/workflows/x/tasks/..%2f..%2f..%2flink",
        ):
            assert served.ask("GET", path, token=None).body == page.body
        script = served.ask("GET", "/assets/app-1a2b.js", token=None)
        assert "immutable" in script.headers["cache-control"]
        assert "javascript" in script.headers["content-type"]
        for path in ("/assets/app-0000.js", "/favicon.ico", "/workflows/old.js"):
            missing = served.ask("GET", path, token=None)
            assert (missing.status, missing.code) == (404, "not_found")
        for path in ("/../secret", "/%2e%2e/secret", "/..%2fsecret", "/link", "//etc/passwd", "/assets/%00"):
            assert b"secret" not in served.ask("GET", path, token=None).body
            assert b"root:" not in served.ask("GET", path, token=None).body


def test_without_a_dashboard_a_page_says_so(settings: Settings, sql_store: SqlStore, tmp_path: Path) -> None:
    with serving(settings, home=tmp_path, files=tmp_path / "none") as served:
        assert b"dashboard is not included" in served.ask("GET", "/", token=None).body


@pytest.mark.parametrize("name", ["app.js", "index.html"])
def test_a_file_is_sent_as_the_browser_can_read_it(
    name: str, settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    for ending, content in (("", "plain"), (".br", "br"), (".gz", "gzip")):
        (tmp_path / f"index.html{ending}").write_text(content)
        (tmp_path / f"app.js{ending}").write_text(content)
    with serving(settings, home=tmp_path, files=tmp_path) as served:
        for accepted, expected in (
            ("gzip, deflate, br, zstd", "br"),
            ("GZIP;q=0.5", "gzip"),
            ("br;q=0, gzip;q=1.0", "gzip"),
            ("gzip;q=0.000", "plain"),
            ("identity", "plain"),
            ("", "plain"),
        ):
            answer = served.ask("GET", f"/{name}", token=None, headers={"Accept-Encoding": accepted})
            assert answer.body.decode() == answer.headers.get("content-encoding", "plain") == expected
            assert answer.headers["content-type"].split(";")[0] in ("text/javascript", "text/html")
            assert answer.headers["vary"] == "accept-encoding"


def test_of_many_connections_without_a_request_the_oldest_ends(
    settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    """They held the server's files for 20 seconds each, and nobody else was let in."""

    class Crowded(HttpConnection):
        most_waiting = 8

    with serving(settings, home=tmp_path, http=Crowded) as served, ExitStack() as stack:
        crowd: list[socket.socket] = []
        for half in ("", HEAD) * 8:
            opened = socket.create_connection(("127.0.0.1", served.port), PATIENCE)
            crowd.append(stack.enter_context(opened))
            opened.sendall(half.encode())
        assert served.ask("GET", "/api/health").status == 200
        for opened in crowd[:8]:
            with suppress(ConnectionResetError):  # how the system ends one with something unread
                assert opened.recv(1) == b""
        crowd[-1].sendall(b"\r\n")
        assert crowd[-1].recv(12) == b"HTTP/1.1 200"


class Impatient(HttpConnection):
    request_seconds = 5.0


HEAD = f"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"


def test_half_a_request_does_not_keep_its_connection(
    settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    body = HEAD.replace("GET /api/health", "POST /api/workflows") + "Content-Length: 9\r\n\r\n{"
    with (
        serving(settings, home=tmp_path, http=Impatient) as served,
        served.socket(headers={"Origin": served.url}, protocols=OFFERED) as listener,
        ExitStack() as stack,
    ):
        assert listener.next()["type"] == "live"
        connections: list[socket.socket] = []
        for whole, half in (("", ""), ("", HEAD), ("", body), (f"{HEAD}\r\n", HEAD)):
            opened = socket.create_connection(("127.0.0.1", served.port), PATIENCE)
            connections.append(stack.enter_context(opened))
            opened.sendall(whole.encode())
            assert not whole or opened.recv(65_536).startswith(b"HTTP/1.1 200")
            opened.sendall(half.encode())
        for opened in connections:
            while opened.recv(65_536):
                pass
        assert listener.connection.ping().wait(PATIENCE), "a WebSocket is no request that waits"
        assert served.ask("GET", "/api/health").status == 200


def test_a_login_that_does_not_end_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it drips: anybody can begin one."""
    monkeypatch.setattr(Auth, "login_seconds", 0.1)
    head = "POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE) as opened:
        opened.sendall(f"{head}Content-Length: 99\r\n\r\n{{".encode())
        told = b""
        while piece := opened.recv(65_536):
            told += piece
        assert told.startswith(b"HTTP/1.1 400")
        assert b"took too long" in told


# --- links that work once


def test_a_link_works_once_and_its_refusals_say_what_to_do(served: Served) -> None:
    made = served.ask("POST", "/api/links")
    assert made.status == 201
    codes = [code_of(made.data["link"])] * 8
    answers: list[int] = []
    at_once = [
        threading.Thread(
            target=lambda one=one: answers.append(
                served.ask("POST", "/api/login", one, token=None, headers={"Origin": served.url}).status
            )
        )
        for one in codes
    ]
    for thread in at_once:
        thread.start()
    for thread in at_once:
        thread.join()
    assert sorted(answers) == [200] + [410] * 7
    for code, expected in (
        (codes[0], "link_used"),
        ({"code": "x"}, "link_expired"),
        ({"code": ""}, "link_expired"),
    ):
        refused = served.ask("POST", "/api/login", code, token=None)
        assert (refused.status, refused.code) == (410, expected)
        assert "holdfast serve --link" in refused.data["error"]["hint"]


def test_a_link_expires() -> None:
    now = [1000.0]
    codes = OneTimeCodes(lambda: now[0])
    in_time, late = codes.new()[0], codes.new()[0]
    now[0] += LINK_SECONDS - 1
    codes.use(in_time)
    now[0] += 1
    with pytest.raises(RefusedError, match="expired"):
        codes.use(late)


def test_the_exchange_is_only_for_our_own_pages_and_small(served: Served) -> None:
    code = code_of(served.ask("POST", "/api/links").data["link"])
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil"}):
        assert served.ask("POST", "/api/login", code, token=None, headers=headers).status == 403
    assert served.ask("POST", "/api/login", {"code": "x" * 5_000}, token=None).code == "too_large"
    assert served.ask("GET", "/api/login", token=None).status == 401
    assert served.ask("POST", "/api/login", code, token=None).status == 200


def test_a_new_link_by_a_command(place: Place) -> None:
    with ServerProgram(place) as program:
        link = place.json("serve", "--link", "--port", str(program.port))["link"]
        assert link.startswith(f"{program.url}/#code=")
        for one in (link, program.link):
            answer = program.served().ask("POST", "/api/login", code_of(one), token=None)
            assert program.served().ask("GET", "/api/health", token=answer.data["token"]).status == 200
    place.run("serve", "--link", "--port", str(program.port)).failed(
        1, error="cannot be reached", hint="holdfast serve"
    )


# --- browsers


def test_a_browser_logs_out_for_good_and_the_others_stay(served: Served, home: Path) -> None:
    def let_in() -> str:
        code = code_of(served.ask("POST", "/api/links").data["link"])
        return served.ask("POST", "/api/login", code, token=None).data["token"]

    one, other = let_in(), let_in()
    assert served.ask("POST", "/api/links", token=one).status == 201, "it has the owner's rights"
    with served.socket(
        headers={"Origin": served.url}, protocols=("holdfast", f"holdfast.token.{one}")
    ) as live:
        assert live.next()["type"] == "live"
        assert served.ask("POST", "/api/logout", token=one).status == 200
        assert served.ask("GET", "/api/health", token=one).code == "unauthorised"
        assert served.ask("POST", "/api/logout", token=one).code == "unauthorised"
        assert served.ask("POST", "/api/workflows", {"plan": PLAN}, token=other).status == 201
        with pytest.raises(ConnectionClosed):
            live.next()
    assert served.ask("GET", "/api/health", token=other).status == 200
    writer, _ = create_scoped_token(home, "writer", "write", "7d")
    for token in (TOKEN, writer):
        refused = served.ask("POST", "/api/logout", token=token)
        assert (refused.status, served.ask("GET", "/api/health", token=token).status) == (409, 200)


def test_a_browser_is_listed_revoked_and_forgotten_after_its_days(served: Served, home: Path) -> None:
    now = 1_000.0
    old = create_browser_token(home, 0, clock=lambda: now)
    lasting, _ = create_scoped_token(home, "ci", "read", "1h", clock=lambda: now)
    refused = served.ask("GET", "/api/health", token=old)
    assert (refused.status, refused.data["error"]["hint"].count("holdfast serve --link")) == (401, 1)
    now += BROWSER_DAYS * 86_400
    create_browser_token(home, 0, clock=lambda: now)
    kept = json.loads(scoped_tokens_file(home).read_text())["tokens"]
    assert [one["scope"] for one in kept] == ["read", "browser"]
    assert matching_token(home, old) is None
    assert matching_token(home, lasting) is not None
    revoke_scoped_token(home, kept[1]["name"])


# --- tokens given away


@pytest.fixture
def home(settings: Settings) -> Iterator[Path]:
    scoped_tokens_file(settings.home).unlink(missing_ok=True)
    yield settings.home
    scoped_tokens_file(settings.home).unlink(missing_ok=True)


def test_a_read_only_token_sees_everything_and_changes_nothing(
    served: Served, home: Path, sql_store: SqlStore
) -> None:
    token, _ = create_scoped_token(home, "eyes", "read", "7d")
    assert served.ask("POST", "/api/workflows", {"plan": PLAN}).status == 201
    before = (served.get("/api/workflows", token=token), sql_store.event_range())
    for method, path in ROUTES:
        answer = served.ask(method, path, token=token)
        if method == "GET":
            assert answer.status not in (401, 403), (method, path)
        else:
            assert (answer.status, answer.code) == (403, "read_only"), (method, path)
            assert answer.data["error"]["hint"]
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "X"):
        assert served.ask(method, "/api/workflows", token=token).status in (400, 403), method
    assert before == (served.get("/api/workflows", token=token), sql_store.event_range())
    with served.socket(headers={"Authorization": f"Bearer {token}"}) as listener:
        assert listener.next()["type"] == "live"


def test_a_write_token_writes_and_makes_no_owner(served: Served, home: Path) -> None:
    token, _ = create_scoped_token(home, "writer", "write", "7d")
    assert served.ask("POST", "/api/workflows", {"plan": PLAN}, token=token).status == 201
    refused = served.ask("POST", "/api/links", token=token)
    assert (refused.status, refused.code) == (403, "owner_only")


def test_a_revoked_token_ends_at_once_in_open_connections_too(served: Served, home: Path) -> None:
    token, _ = create_scoped_token(home, "gone", "read", "7d")
    with (
        served.socket(headers={"Authorization": f"Bearer {token}"}) as listener,
        served.socket() as owners,
    ):
        assert listener.next()["type"] == owners.next()["type"] == "live"
        revoke_scoped_token(home, "gone")
        assert served.ask("GET", "/api/health", token=token).code == "unauthorised"
        assert served.ask("POST", "/api/workflows", {"plan": PLAN}).status == 201
        assert owners.next()["type"] == "events"
        with pytest.raises(ConnectionClosed) as closed:
            listener.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == TOKEN_ENDED


def test_an_expired_token_is_refused_with_what_to_do(served: Served, home: Path) -> None:
    token, _ = create_scoped_token(home, "old", "write", "30m", clock=lambda: 1_000.0)
    refused = served.ask("GET", "/api/health", token=token)
    assert (refused.status, refused.code) == (401, "unauthorised")
    assert "has expired" in refused.data["detail"]
    assert "holdfast token create" in refused.data["error"]["hint"]


def test_damaged_tokens_let_nobody_in_but_the_owner(served: Served, home: Path) -> None:
    token, _ = create_scoped_token(home, "ci", "write", "7d")
    for content in ("", "{}", "[]", '{"tokens": [{"name": "x"}]}', "[" * 100_000, '{"tokens": [1]}'):
        scoped_tokens_file(home).write_text(content)
        refused = served.ask("GET", "/api/health", token=token)
        assert (refused.status, refused.code) == (401, "unauthorised")
        assert served.ask("GET", "/api/health").status == 200


def test_tokens_by_the_command_line(place: Place) -> None:
    home = place.settings().home
    made = place.json("token", "create", "ci", "--scope", "write", "--expires", "7d")
    stored = scoped_tokens_file(home)
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert made["token"] not in stored.read_text()
    found = matching_token(home, made["token"])
    assert found is not None
    assert (found.name, found.scope, round(found.expires - found.created)) == ("ci", "write", 7 * 86_400)
    assert matching_token(home, "wrong") is None
    place.run("token", "create", "ci").failed(1, error="already", hint="token revoke ci")
    for bad in ("7", "0d", "7y", "-1d", "4000d", ""):
        place.run("token", "create", "x", "--expires", bad).failed(2, error="--expires")
    place.run("token", "create", "two words").failed(2, error="name")
    (listed,) = place.json("token", "list")
    assert (listed["name"], listed["scope"], listed["state"]) == ("ci", "write", "valid")
    assert "token" not in listed
    own = {"HOLDFAST_SERVER_TOKEN": made["token"]}
    with ServerProgram(place) as program:
        place.ok("--server", program.url, "list", env=own)
        place.ok("token", "revoke", "ci")
        place.run("--server", program.url, "list", env=own).failed(2, error="token")
    place.run("token", "revoke", "ci").failed(1, error="no such token")
    assert place.ok("token", "list").out.startswith("No tokens")
