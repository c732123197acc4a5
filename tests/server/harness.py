"""A server for tests: real sockets, in a thread of this process, on a database of its own."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from holdfast.project.settings import Settings
from holdfast.server.app import HttpConnection, create_app, listening_socket
from holdfast.server.auth import Credentials

TOKEN = "token-of-the-tests-0123456789abcdefghijklmn"  # noqa: S105
PATIENCE = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """What kind of error it is; that it has the one shape is checked on the way."""
        assert self.headers["content-type"] == "application/problem+json"
        told, error = self.data, self.data["error"]
        assert told["type"] == f"urn:holdfast:error:{error['code']}"
        assert (told["status"], told["detail"]) == (self.status, error["message"])
        assert told["title"]
        assert set(error) == {"code", "message", "hint", "faults", "confirm", "undone"}, error
        assert error["message"]
        return error["code"]


class Served:
    """A running server, seen from outside."""

    def __init__(self, port: int, token: str = TOKEN) -> None:
        self.port, self.token = port, token
        self.url = f"http://127.0.0.1:{port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = "",
    ) -> Answer:
        """`token` None sends none; headers given win over those of a program with the token."""
        sent = {} if token is None else {"Authorization": f"Bearer {token or self.token}"}
        data: Any = raw
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        sent |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, told, response.read())
        finally:
            connection.close()

    def get(self, path: str, **how: Any) -> Any:
        answer = self.ask("GET", path, **how)
        assert answer.status == 200, answer
        return answer.data

    @contextmanager
    def socket(
        self,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        protocols: Sequence[str] = (),
        reads_ahead: int = 16,
    ) -> Generator[Listener]:
        """`protocols`: what a page offers; `reads_ahead`: messages taken in before somebody asks for them."""
        with connect(
            f"ws://127.0.0.1:{self.port}/ws/events{query}",
            additional_headers=headers or {"Authorization": f"Bearer {self.token}"},
            subprotocols=[Subprotocol(one) for one in protocols] or None,
            max_size=None,
            max_queue=reads_ahead,
            compression=None,
            open_timeout=PATIENCE,
            proxy=None,
        ) as connection:
            yield Listener(connection)


class Listener:
    """One end of a WebSocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def next(self) -> dict[str, Any]:
        return json.loads(self.connection.recv(PATIENCE))

    def until(self, kind: str) -> list[dict[str, Any]]:
        """All messages up to and with the first of this kind."""
        found = [self.next()]
        while found[-1]["type"] != kind:
            found.append(self.next())
        return found

    def events(self, number: int) -> list[int]:
        """The numbers of so many events, whatever else comes between."""
        found: list[int] = []
        while len(found) < number:
            message = self.next()
            if message["type"] == "events":
                found += [event["seq"] for event in message["events"]]
        return found


@contextmanager
def serving(
    settings: Settings,
    *,
    home: Path,
    door: Credentials | None = None,
    http: type[HttpConnection] = HttpConnection,
    **options: Any,
) -> Generator[Served]:
    """No worker is started unless asked for: what runs is the tests' own."""
    options.setdefault("starts_workers", False)
    app = create_app(settings, door or Credentials(TOKEN), home=home, environ={}, **options)
    listener = listening_socket("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=http,
            log_config=None,
            log_level="error",
            ws_per_message_deflate=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        _wait(thread, server)
        yield Served(listener.getsockname()[1], (door or Credentials(TOKEN)).token)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()


def _wait(thread: threading.Thread, server: uvicorn.Server) -> None:
    pause = threading.Event()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        pause.wait(0.01)
