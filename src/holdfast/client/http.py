"""One connection to a server: JSON in and out, and its errors as our own. Standard library only."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from holdfast.base.errors import (
    CannotDoError,
    HoldfastError,
    InvalidInputError,
    StorageError,
    kinds,
)
from holdfast.project.settings import Settings

_SECONDS = 90.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Connection:
    """Opened with the first request; several threads take turns."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise InvalidInputError(f"{url} is no address of a server", hint="--server http://127.0.0.1:8421")
        self._turn = threading.Lock()
        self._url, self._token = f"{parts.scheme}://{parts.netloc}", token
        self._connection = (
            http.client.HTTPSConnection(
                parts.hostname, port, timeout=_SECONDS, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, port, timeout=_SECONDS)
        )

    def close(self) -> None:
        self._connection.close()

    def get(self, *path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", _address(path) + (f"?{urlencode(given, doseq=True)}" if given else ""))

    def post(self, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._ask("POST", _address(path), body or {})

    def delete(self, *path: str) -> Any:
        return self._ask("DELETE", _address(path))

    def _ask(self, method: str, address: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        with self._turn:
            status, answer = self._exchange(method, address, data, headers)
        if status >= 400:
            raise _error(status, answer, self._url)
        return answer

    def _exchange(
        self, method: str, address: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any]:
        # A server that was started anew has closed the connection we kept: a question is asked once more.
        attempts = 2 if self._connection.sock is not None and method == "GET" else 1
        for attempt in range(1, attempts + 1):
            try:
                self._connection.request(method, address, data, headers)
                response = self._connection.getresponse()
                return response.status, json.loads(response.read())
            except ssl.SSLCertVerificationError as error:
                raise CannotDoError(
                    f"the certificate of {self._url} is not trusted: {error.verify_message}",
                    hint="set SSL_CERT_FILE to the certificate of the authority that signed it",
                ) from None
            except ValueError:
                raise CannotDoError(f"what answers at {self._url} is no Holdfast server") from None
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if attempt == attempts:
                    raise StorageError(
                        f"the server at {self._url} cannot be reached: {error}",
                        hint="start it with `holdfast serve`, or leave --server out",
                    ) from None
        raise AssertionError("not reached")


def connection_for(settings: Settings) -> Connection:
    """With the token that is set, or the one of this machine's own server."""
    url = settings.server or ""
    token = settings.server_token
    if token is None:
        if (urlsplit(url).hostname or "") not in _LOOPBACK:
            raise InvalidInputError(
                f"no token for {url}", hint="set HOLDFAST_SERVER_TOKEN to the token of that server"
            )
        from holdfast.project.server_token import read_token

        token = read_token(settings.home)
    return Connection(url, token)


def _address(path: tuple[str, ...]) -> str:
    return "/api/" + "/".join(quote(part, safe="") for part in path)


def _error(status: int, answer: Any, url: str) -> HoldfastError:
    try:
        told = answer["error"]
        code, message, hint = told["code"], told["message"], told["hint"]
    except (KeyError, TypeError):
        return CannotDoError(f"what answers at {url} is no Holdfast server (status {status})")
    if code == "unauthorised":
        return InvalidInputError(f"{url}: {message}", hint="set HOLDFAST_SERVER_TOKEN to its token")
    return kinds().get(code, CannotDoError)(message, hint=hint)
