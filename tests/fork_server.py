"""The program in a process of its own, without the start of an interpreter.

Loading modules is most of what a short command costs. So a server loads the program once and forks itself
for every command: still a process with its own pid, environment, folder, descriptors and signals, for a
tenth of the price. `ForkedProgram` is that process seen from a test, and a `Popen` in every other respect.

What a fork cannot show is the start itself: what Python reads from its environment, and a module that
nobody has loaded. Whoever tests that starts `PROGRAM`; and with `HOLDFAST_SOAK` of 1 or more, as in CI,
nothing is forked.

The server ends with its standard input: a test run that is killed outright leaves none behind. Run as a
program, this file is that server.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import io
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
READ_AT_START = {"PYTHONPATH": str(SOURCE), "LC_ALL": "C.UTF-8"}
"""The variables that Python reads when it starts, as they are for the server."""
PRELOADED = (
    "alembic.command",
    "dbos",
    "dbos._sys_db_sqlite",
    "holdfast.cli.live",
    "holdfast.cli.running",
    "holdfast.docaudit.sessions",
    "holdfast.server.serve",
    "holdfast.sessions.bundles",
    "holdfast.workflows.drivers.model",
    "pydantic_ai.models.openai",
    "rich.console",
    "sqlalchemy.dialects.sqlite.pysqlite",
)
"""What commands load when they need it, and what costs them most."""
NUMBER = struct.Struct("i")


# ── the side of the tests ──────────────────────────────────────────────────────────────────


def may_fork(environment: Mapping[str, str]) -> bool:
    """Whether an interpreter would start in this environment as the server did."""
    from soak import STARTS_EVERY_PROGRAM

    read = {
        name: value for name, value in environment.items() if name == "LC_ALL" or name.startswith("PYTHON")
    }
    return not STARTS_EVERY_PROGRAM and read == READ_AT_START


class ForkedProgram(subprocess.Popen[Any]):
    """`ForkedProgram(arguments, cwd=…, env=…)` for `Popen([*PROGRAM, *arguments], cwd=…, env=…)`."""

    def _execute_child(self, *given: Any) -> None:
        """Popen's own would fork this process; its arguments are the same in every Python since 3.11."""
        arguments, cwd, environment, pipes = given[0], given[5], given[6], given[10:16]
        request = {
            "arguments": [os.fsdecode(one) for one in arguments],
            "cwd": os.fsdecode(cwd),
            "environment": {name: os.fsdecode(value) for name, value in environment.items()},
            "new_session": given[21],
        }
        streams = (pipes[0], pipes[3], pipes[5])
        self._server = _server().fork([own if one == -1 else one for own, one in enumerate(streams)])
        send(self._server, request)
        self.pid = receive_number(self._server)
        self._child_created = True
        popen: Any = super()
        popen._close_pipe_fds(*pipes)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags == os.WNOHANG and not select.select([self._server], [], [], 0)[0]:
            return (0, 0)
        status = receive_number(self._server)
        self._server.close()
        return (self.pid, status)

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        popen: Any = super()
        return popen._internal_poll(_deadstate, _waitpid=lambda _pid, flags: self._try_wait(flags))


class ForkServer:
    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        self._turn = threading.Lock()
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env={"PATH": os.environ["PATH"], **READ_AT_START},
                stdin=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, streams: Sequence[int]) -> socket.socket:
        """A process with these as its standard streams, which waits for its request there."""
        ours, theirs = socket.socketpair()
        with theirs, self._turn:
            socket.send_fds(self._control, [b"."], [theirs.fileno(), *streams])
        return ours

    def stop(self) -> None:
        self._process.communicate()
        self._control.close()


@functools.cache
def _server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.stop)
    return server


# ── the server ─────────────────────────────────────────────────────────────────────────────


def serve(control: socket.socket) -> None:
    preload()
    waiting: dict[int, socket.socket] = {}
    wakes, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([0, control, wakes], [], [])
        if 0 in ready:
            return
        if wakes in ready:
            wakes.recv(4096)
            report_the_ended(waiting)
        if control in ready:
            _, descriptors, _, _ = socket.recv_fds(control, 1, 4)
            if not descriptors:
                return
            answers, *streams = descriptors
            pid = os.fork()
            if not pid:
                become_the_program(socket.socket(fileno=answers), streams)
            for each in streams:
                os.close(each)
            waiting[pid] = socket.socket(fileno=answers)
            waiting[pid].sendall(NUMBER.pack(pid))


def preload() -> None:
    from holdfast.cli.main import COMMANDS, cli

    for name in COMMANDS:
        cli.get_command(cli.make_context("holdfast", [], resilient_parsing=True), name)
    for name in PRELOADED:
        import_module(name)
    assert threading.active_count() == 1, "a fork has only the thread that forks"
    gc.collect()
    gc.freeze()


def report_the_ended(waiting: dict[int, socket.socket]) -> None:
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with waiting.pop(pid) as answers, contextlib.suppress(BrokenPipeError):  # nobody waits for it
            answers.sendall(NUMBER.pack(status))


def become_the_program(answers: socket.socket, streams: Sequence[int]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request = receive(answers)
    for own, each in enumerate(streams):
        os.dup2(each, own)
    os.closerange(3, 256)
    answers.detach()
    if request["new_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = [str(SOURCE / "holdfast" / "__main__.py"), *request["arguments"]]
    sys.path.insert(0, request["cwd"])
    sys.stdin, sys.stdout, sys.stderr = text_streams()
    end(run_main())


def text_streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
    """As Python makes them: what the server's held and knew must not reach the program."""
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    return (
        open(0, encoding=encoding, errors=errors, closefd=False),
        open(1, "w", encoding=encoding, errors=errors, closefd=False),
        open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False, buffering=1),
    )


def run_main() -> int:
    from holdfast.__main__ import main

    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    return 0


def end(code: int) -> None:
    """The end of an interpreter, without the taking apart of every module."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = 120
    os._exit(code)


# ── what both sides say to each other ──────────────────────────────────────────────────────


def send(stream: socket.socket, value: Any) -> None:
    data = json.dumps(value).encode()
    stream.sendall(NUMBER.pack(len(data)) + data)


def receive(stream: socket.socket) -> Any:
    return json.loads(receive_bytes(stream, receive_number(stream)))


def receive_number(stream: socket.socket) -> int:
    return NUMBER.unpack(receive_bytes(stream, NUMBER.size))[0]


def receive_bytes(stream: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = stream.recv(length - len(data))
        assert more, "the other side is gone"
        data += more
    return data


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
