"""The server as its users start it: a process of its own, that can be killed and started again."""

from __future__ import annotations

import json
import signal
from collections.abc import Sequence
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from cli.harness import PROGRAM, Place, start_program
from holdfast.project.server_token import read_token

from .harness import PATIENCE, Served


class ServerProgram:
    """`with ServerProgram(place) as program:`; after `kill`, `start` is on the same port."""

    def __init__(self, place: Place, *arguments: str, program: Sequence[str] = PROGRAM) -> None:
        self._place, self._arguments, self._program = place, arguments, program
        self.port = 0
        self.token = self.url = self.link = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.stop()

    def start(self) -> None:
        self._process = start_program(
            ["serve", "--port", str(self.port), "--json", *self._arguments],
            program=self._program,
            cwd=self._place.project,
            env={**self._place.environment, "HOLDFAST_SERVER": ""},
            stderr=None,
            text=True,
        )
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self.link, self.url = told["link"], told["url"]
        port = urlsplit(self.link).port
        assert port is not None
        self.port = port
        self.token = read_token(self._place.settings().home)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        code = self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def served(self) -> Served:
        return Served(self.port, self.token)
