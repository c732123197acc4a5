"""The part that all scripted models share: a server on loopback that plays a script and remembers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

from agents.fakes.turns import Answer, Seen, Turn, say


class FakeModel:
    """Answers each request of an agent's own loop with the next turn of its script.

    Requests on the side (titles, compactions) take no turn. When the script is used up, the
    model says so and the agent comes to an end.
    """

    summary_marks: ClassVar[tuple[str, ...]] = ()
    summary = "The script's summary of the talk so far."
    side = '{"title": "A scripted title"}'

    def __init__(self, turns: Iterable[Answer] = ()) -> None:
        self._turns = list(turns)
        self._lock = threading.Lock()
        self.seen: list[Seen] = []
        self.summarised: Answer | None = None
        """How it answers a request for a summary, where not with the fixed one."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()

    def go_away(self) -> None:
        """From now on nobody listens at its address."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def main(self) -> list[Seen]:
        """The requests of the agent's own loop, in order."""
        return self.of("main")

    def of(self, kind: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.kind == kind]

    def then(self, *turns: Answer) -> None:
        """Add to the script."""
        with self._lock:
            self._turns += turns

    def take(self, path: str, body: dict[str, Any]) -> tuple[int, str, Turn]:
        """Remember a request and choose the answer; its number makes ids that differ."""
        kind = self.kind_of(path, body)
        seen = Seen(kind, path, body)
        with self._lock:
            self.seen.append(seen)
            number, answer = len(self.seen), self._answer_to(kind)
        return number, kind, answer if isinstance(answer, Turn) else answer(seen)

    def _answer_to(self, kind: str) -> Answer:
        if kind == "summary":
            return self.summarised or say(self.summary)
        if kind != "main":
            return say(self.side)
        return self._turns.pop(0) if self._turns else say("The script is used up.")

    def kind_of(self, path: str, body: dict[str, Any]) -> str:
        raise NotImplementedError

    def answer(self, exchange: Exchange) -> None:
        raise NotImplementedError


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, path: str, body: dict[str, Any]) -> None:
        self._handler = handler
        self.path = path
        self.body = body
        self.number = 0
        self.kind = "other"
        self.turn = Turn()

    def send_json(self, document: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._send(json.dumps(document).encode(), "application/json", status, headers)

    def send_events(self, events: Sequence[tuple[str | None, Any]]) -> None:
        """Server-sent events, all at once: agents read them the same way."""
        lines = [
            (f"event: {name}\n" if name else "")
            + f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
            for name, data in events
        ]
        self._send("".join(lines).encode(), "text/event-stream", 200)

    def _send(self, data: bytes, kind: str, status: int, headers: dict[str, str] | None = None) -> None:
        self._handler.send_response(status)
        about = {"content-type": kind, "content-length": str(len(data))}
        for name, value in {**about, **(headers or {})}.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()
        self._handler.wfile.write(data)


def _handler_for(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its base names it so
            pass

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self._exchange({})

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            self._exchange(json.loads(data or b"{}"))

        def _exchange(self, body: dict[str, Any]) -> None:
            exchange = Exchange(self, self.path.split("?")[0], body)
            exchange.number, exchange.kind, exchange.turn = model.take(exchange.path, body)
            try:
                if exchange.turn.status != 200:
                    error = {"type": "error", "error": exchange.turn.error}
                    exchange.send_json(error, exchange.turn.status, exchange.turn.headers)
                else:
                    model.answer(exchange)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the agent was killed: some tests do that

    return Handler
