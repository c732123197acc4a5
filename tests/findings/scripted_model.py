"""An OpenAI-compatible server on loopback that says, or does not say, what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Handler"], None]

DRIP_SECONDS = 0.02


class ScriptedModel:
    """Replies in the order given; the last one is repeated."""

    def __init__(self, *replies: Reply) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        self.over = threading.Event()
        self._replies = replies
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._server.script = self  # type: ignore[attr-defined]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def next_reply(self) -> Reply:
        return self._replies[min(len(self.requests), len(self._replies)) - 1]

    @contextmanager
    def running(self) -> Generator[ScriptedModel]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self._server.shutdown()
            self._server.server_close()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def script(self) -> ScriptedModel:
        return self.server.script  # type: ignore[attr-defined]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.script.requests.append(json.loads(body))
        self.script.headers.append(dict(self.headers))
        self.script.asked.set()
        try:
            self.script.next_reply()(self)
        except OSError:
            self.close_connection = True  # the other side has stopped waiting

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass

    def answer(self, status: int, body: object, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def says(content: object, *, refusal: str | None = None, finish: str = "stop") -> Reply:
    """A completion with this content: text as it is, anything else as JSON."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    message = {"role": "assistant", "content": text, "refusal": refusal}
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_767_700_800,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150},
    }
    return lambda handler: handler.answer(200, completion)


def fails(status: int, error: object = "no", headers: dict[str, str] | None = None) -> Reply:
    return lambda handler: handler.answer(status, {"error": error}, headers)


def raw(data: bytes) -> Reply:
    return lambda handler: handler.answer(200, data)


def closes(handler: Handler) -> None:
    handler.close_connection = True


def breaks_off(handler: Handler) -> None:
    """Promises more than it sends."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id": "chat')
    handler.close_connection = True


def hangs(handler: Handler) -> None:
    handler.script.over.wait()
    handler.close_connection = True


def drips(handler: Handler) -> None:
    """A byte at a time, for ever: no time-out between two bytes would notice."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.script.over.wait(DRIP_SECONDS):
        handler.wfile.write(b" ")
    handler.close_connection = True


def never_ends(handler: Handler) -> None:
    """As fast as it can be read."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(10**15))
    handler.end_headers()
    while not handler.script.over.is_set():
        handler.wfile.write(b" " * 65536)


def echoes_key(handler: Handler) -> None:
    sent = handler.headers["Authorization"]
    error = {"message": f"bad key {sent}", "code": sent.split()[-1], "type": sent.split()[-1]}
    handler.answer(401, {"error": error})
