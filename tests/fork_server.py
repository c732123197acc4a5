"""The program in a process of its own, without the start of an interpreter.

Loading modules is most of what a short command costs. So a server loads the program once and forks itself
for every command: still a process with its own pid, environment, folder, descriptors and signals, for a
tenth of the price. `ForkedProgram` is that process seen from a test, and a `Popen` in every other respect.
What such a process starts of ours (a worker, the work behind a hook) is forked in its turn.

What a fork cannot show is the start itself: what Python reads from its environment, and a module that
nobody has loaded. Whoever tests that starts `PROGRAM`; in CI many programs are started and not forked, and
in a soak all of them.

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
import runpy
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
READ_AT_START = {"PYTHONPATH": str(SOURCE), "LC_ALL": "C.UTF-8"}
"""The variables that Python reads when it starts, as they are for the server."""
KEPT = ("PATH", "HOLDFAST_SOAK")
PRELOADED = (
    "alembic.command",
    "dbos",
    "dbos._sys_db_sqlite",
    "holdfast.cli.live",
    "holdfast.cli.running",
    "holdfast.docaudit.improve",
    "holdfast.docaudit.search",
    "holdfast.docaudit.sessions",
    "holdfast.hooks.background_tasks",
    "holdfast.server.app",
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
    from soak import starts_program

    read = {name: value for name, value in environment.items() if is_read_at_start(name)}
    return read == READ_AT_START and not starts_program()


def start_script(
    script: str, *arguments: object, env: Mapping[str, str] | None = None, **how: Any
) -> subprocess.Popen[Any]:
    """A script of the tests, with them and the program to import from; forked in a quick run."""
    words = [script, *map(str, arguments)]
    variables = {
        name: value
        for name, value in (os.environ if env is None else env).items()
        if not is_read_at_start(name)
    }
    how = {"cwd": TESTS, **how}
    environment = {**variables, **READ_AT_START}
    if may_fork(environment):
        return ForkedScript(words, env=environment, **how)
    path = os.pathsep.join([str(SOURCE), str(TESTS)])
    return subprocess.Popen([sys.executable, *words], env={**environment, "PYTHONPATH": path}, **how)


def is_read_at_start(name: str) -> bool:
    return name == "LC_ALL" or name.startswith("PYTHON")


class ForkedProgram(subprocess.Popen[Any]):
    """`ForkedProgram(arguments, cwd=…, env=…)` for `Popen([*PROGRAM, *arguments], cwd=…, env=…)`."""

    main = "holdfast"

    def _execute_child(self, *given: Any) -> None:
        """Popen's own would fork this process; its arguments are the same in every Python since 3.11."""
        arguments, kept, cwd, environment, pipes = given[0], *given[4:7], given[10:16]
        request = {
            "main": self.main,
            "arguments": [os.fsdecode(one) for one in arguments],
            "cwd": os.fsdecode(cwd),
            "environment": {name: os.fsdecode(value) for name, value in environment.items()},
            "new_session": given[21],
        }
        streams = (pipes[0], pipes[3], pipes[5])
        self._server = _server().fork([own if one == -1 else one for own, one in enumerate(streams)], kept)
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


class ForkedScript(ForkedProgram):
    main = "script"


class ForkedBackground(ForkedProgram):
    """The work behind a hook."""

    main = "background"


class Forks(Protocol):
    def fork(self, streams: Sequence[int], kept: Sequence[int]) -> socket.socket: ...


class ForkServer:
    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-fork-"))
        self.address = str(self._folder / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.address)
            listener.listen(128)
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(listener.fileno()), self.address],
                env={**{name: os.environ[name] for name in KEPT if name in os.environ}, **READ_AT_START},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[listener.fileno()],
            )

    @functools.cached_property
    def loaded_address(self) -> str:
        """For those who do not wait for long: it answers at once."""
        assert self._process.stdout is not None
        assert self._process.stdout.read(1), "the fork server did not start"
        return self.address

    def fork(self, streams: Sequence[int], kept: Sequence[int]) -> socket.socket:
        return Running(self.address).fork(streams, kept)

    def stop(self) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder)


class Running:
    """A server that somebody else started."""

    def __init__(self, address: str) -> None:
        self._address = address

    def fork(self, streams: Sequence[int], kept: Sequence[int]) -> socket.socket:
        """A process with these descriptors open, which waits for its request there."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        socket.send_fds(connection, [b"."], [*streams, *kept])
        return connection


@functools.cache
def the_server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.stop)
    return server


_server: Callable[[], Forks] = the_server


def use_running(address: str) -> None:
    """In a process that is not the tests' own."""
    global _server  # noqa: PLW0603
    running = Running(address)
    _server = lambda: running  # noqa: E731


# ── the server ─────────────────────────────────────────────────────────────────────────────


def serve(listener: socket.socket, address: str) -> None:
    preload()
    os.write(1, b".")
    use_running(address)
    waiting: dict[int, socket.socket] = {}
    wakes, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([0, listener, wakes], [], [])
        if 0 in ready:
            return
        if wakes in ready:
            wakes.recv(4096)
            report_the_ended(waiting)
        if listener in ready:
            answers, _ = listener.accept()
            _, descriptors, _, _ = socket.recv_fds(answers, 1, 8)
            if not descriptors:  # whoever asked is gone
                answers.close()
                continue
            pid = os.fork()
            if not pid:
                become_the_program(answers, descriptors[:3], descriptors[3:])
            for each in descriptors:
                os.close(each)
            waiting[pid] = answers
            with contextlib.suppress(BrokenPipeError):
                answers.sendall(NUMBER.pack(pid))


def preload() -> None:
    from holdfast.cli.main import COMMANDS, cli

    for name in COMMANDS:
        cli.get_command(cli.make_context("holdfast", [], resilient_parsing=True), name)
    for name in PRELOADED:
        import_module(name)
    sys.path.append(str(TESTS))
    import_module("quick_age").use_quick_age()
    sys.path.remove(str(TESTS))
    assert threading.active_count() == 1, "a fork has only the thread that forks"
    gc.collect()
    gc.freeze()


def report_the_ended(waiting: dict[int, socket.socket]) -> None:
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with waiting.pop(pid) as answers, contextlib.suppress(OSError):  # nobody waits for it
            answers.sendall(NUMBER.pack(status))


def become_the_program(answers: socket.socket, streams: Sequence[int], kept: Sequence[int]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request = receive(answers)
    answers.detach()
    for own, each in enumerate([*streams, *kept]):
        os.dup2(each, own, inheritable=own < 3)
    os.closerange(len(streams) + len(kept), 256)
    if request["new_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin, sys.stdout, sys.stderr = text_streams()
    end(ended_with(lambda: MAINS[request["main"]](request)))


def text_streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper, io.TextIOWrapper]:
    """As Python makes them: what the server's held and knew must not reach the program."""
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    return (
        open(0, encoding=encoding, errors=errors, closefd=False),
        open(1, "w", encoding=encoding, errors=errors, closefd=False),
        open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False, buffering=1),
    )


def run_program(request: Mapping[str, Any]) -> None:
    from holdfast.__main__ import main
    from holdfast.workflows import lease

    lease.subprocess = ForksWorkers  # pyright: ignore[reportAttributeAccessIssue]
    sys.argv = [str(SOURCE / "holdfast" / "__main__.py"), *request["arguments"]]
    sys.path.insert(0, request["cwd"])
    main()


def run_script(request: Mapping[str, Any]) -> None:
    sys.argv = request["arguments"]
    sys.path.insert(0, str(TESTS))
    runpy.run_path(sys.argv[0], run_name="__main__")


def run_background(request: Mapping[str, Any]) -> None:
    from holdfast.hooks import background

    sys.argv = [str(background.__file__), *request["arguments"]]
    sys.exit(background.main(sys.argv[1:]))


MAINS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "holdfast": run_program,
    "script": run_script,
    "background": run_background,
}


class ForksWorkers:
    """`subprocess` for whoever starts a worker."""

    DEVNULL = subprocess.DEVNULL

    @staticmethod
    def Popen(words: Sequence[str], **how: Any) -> subprocess.Popen[Any]:  # noqa: N802
        assert words[:4] == [sys.executable, "-P", "-m", "holdfast"], words
        return ForkedProgram(words[4:], **how)


def ended_with(main: Callable[[], None]) -> int:
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
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
