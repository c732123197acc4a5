"""What the tests of the command line share: a project of their own, and the program run in it.

The program runs in a process of its own, with nothing of this machine's environment. Where a test
only needs something to be there (a session, a journal), `Place` makes it through the Python API.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from fork_server import SOURCE, TESTS, ForkedProgram, may_fork, start_script
from holdfast.project.settings import Settings, load_settings
from holdfast.sessions.winddown import IncrementalPauseManager

PROGRAM = (sys.executable, "-P", "-m", "holdfast")  # -P: a package of that name in the project is not it
PATIENCE = 60.0
CTRL_C = "\x03"

IDENTITY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
}

Tree = dict[str, tuple[str, str]]
"""Every path under a folder, with its mode and what it holds."""


@dataclass(frozen=True)
class Result:
    """One run as its user saw it."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What `--json` printed."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def failed(self, code: int, *, error: str, hint: str | None = None) -> None:
        """It ended with this code and said so in the agreed form, and in no other."""
        assert (self.code, self.out) == (code, ""), self
        told = self.err.splitlines()
        assert told[0].startswith("error: "), self
        assert not told[0].startswith("error: unexpected: "), self
        assert re.search(error, told[0]), self
        assert [line for line in told[1:] if not line.startswith("hint: ")] == [], self
        if hint is not None:
            assert re.search(hint, told[1]), self


def start_program(
    arguments: Sequence[str | Path | bytes],
    *,
    env: Mapping[str, str],
    program: Sequence[str] = PROGRAM,
    **how: Any,
) -> subprocess.Popen[Any]:
    """The program with its output in pipes; forked where that is the same."""
    how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    if program == PROGRAM and not how.get("preexec_fn") and may_fork(env):
        return ForkedProgram(arguments, env=env, **how)
    return subprocess.Popen([*program, *arguments], env=env, **how)


_MANY = """
import contextlib, io, json, sys
from holdfast.cli.main import run
results = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    results.append((code, out.getvalue(), err.getvalue()))
json.dump(results, sys.stdout)
"""


class Place:
    """A git project in a folder of its own, and everything the program may see or touch around it."""

    def __init__(self, root: Path, name: str = "project") -> None:
        self.root = root
        self.program: Sequence[str] = PROGRAM
        self.project = root / name
        self.home = root / "data"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "HOLDFAST_HOME": str(self.home),
            "PYTHONPATH": str(SOURCE),
            "LC_ALL": "C.UTF-8",
            **IDENTITY,
        }
        for folder in (self.project, root / "home", root / "tmp", self.home):
            folder.mkdir(exist_ok=True)
        # What a test makes in this process is the same user's; the `home` of every test puts it back.
        os.environ["HOLDFAST_HOME"] = str(self.home)
        self.git("init", "--quiet", "--initial-branch=main")

    def beside(self, name: str) -> Place:
        """Another project of the same user."""
        return Place(self.root, name)

    @property
    def sessions(self) -> Path:
        return self.project / ".holdfast" / "sessions"

    @property
    def journal(self) -> Path:
        return self.sessions / "ACTIVE-PAUSE.jsonl"

    @property
    def database(self) -> Path:
        return self.home / "holdfast.db"

    def run(
        self,
        *arguments: str | Path | bytes,
        stdin: str | bytes | IO[bytes] | int | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        before: Callable[[], None] | None = None,
    ) -> Result:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        piped = given if isinstance(given, bytes) else None
        standard_input = subprocess.PIPE if piped is not None else given
        with start_program(
            arguments,
            program=self.program,
            cwd=cwd or self.project,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL if standard_input is None else standard_input,
            preexec_fn=before,
        ) as process:
            try:
                out, err = process.communicate(piped, timeout=PATIENCE)
            except BaseException:
                process.kill()
                raise
        told = (text.decode(errors="surrogateescape") for text in (out, err))  # names are any bytes
        result = Result(process.returncode, *told)
        assert "Traceback" not in result.err or "--debug" in arguments, result.err
        return result

    def ok(self, *arguments: str | Path, **how: Any) -> Result:
        """A run that must succeed and has nothing to complain about."""
        result = self.run(*arguments, **how)
        assert (result.code, result.err) == (0, ""), result
        return result

    def json(self, *arguments: str | Path, **how: Any) -> Any:
        return self.ok(*arguments, "--json", **how).data

    def many(self, *command_lines: Sequence[str]) -> list[Result]:
        """Several command lines one after the other: for their number, not for their start."""
        if may_fork(self.environment):
            return [self.run(*arguments) for arguments in command_lines]
        done = subprocess.run(
            [sys.executable, "-P", "-c", _MANY],
            cwd=self.project,
            env=self.environment,
            input=json.dumps(command_lines),
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE + 5 * len(command_lines),
        )
        return [Result(*each) for each in json.loads(done.stdout)]

    def settings(self, **changes: Any) -> Settings:
        return replace(load_settings(self.environment, self.project), **changes)

    def manager(self, at: float | None = None, **changes: Any) -> IncrementalPauseManager:
        clock = time.time if at is None else lambda: at
        return IncrementalPauseManager(settings=self.settings(**changes), clock=clock)

    def started(self, *actions: str, at: float | None = None) -> str:
        """An active wind-down with these actions in it; this process is its owner."""
        manager = self.manager(at)
        name = manager.start_incremental_pause(0.9, {})
        for number, action in enumerate(actions, start=1):
            manager.append_action(action, {"tool": "Read"}, 0.9 + number / 1000)
        return name

    def paused(self, *actions: str, reason: str | None = None, at: float | None = None) -> str:
        """A finalised session."""
        name = self.started(*actions, at=at)
        assert self.manager(at).finalize_pause(reason=reason) is not None
        return name

    def orphaned(self, actions: int = 1) -> str:
        """A wind-down whose process was killed."""
        with start_script(
            str(TESTS / "cli" / "winding_down.py"),
            actions,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            name, ready = process.stdout.readline().strip(), process.stdout.readline().strip()
            process.send_signal(signal.SIGKILL)
        assert (ready, process.returncode) == ("ready", -signal.SIGKILL)
        return name

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout

    def shown(self, text: str) -> str:
        """Text with what differs from run to run replaced by names."""
        text = text.replace(str(self.project), "PROJECT").replace(str(self.home), "DATA")
        return normalised(text)

    def tree(self) -> Tree:
        return tree_of(self.root)

    def session_files(self) -> list[str]:
        return sorted(path.name for path in self.sessions.iterdir()) if self.sessions.is_dir() else []

    def latest(self) -> str | None:
        path = self.sessions / "LATEST-SESSION.txt"
        return path.read_text() if path.exists() else None


def normalised(text: str) -> str:
    """Ids and moments as names: the first session seen is SESSION-1, and so on."""
    for kind, pattern in (
        ("SESSION", r"session-\d{8}-\d{6}(?:-\d+)?(?!\d)"),
        ("SNAP", r"snap_[0-9a-z]{26}"),
        ("WF", r"wf_[0-9a-z]{26}"),
    ):
        found = list(dict.fromkeys(re.findall(pattern, text)))
        for number, name in sorted(enumerate(found, start=1), key=lambda pair: -len(pair[1])):
            text = text.replace(name, f"{kind}-{number}")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "WHEN", text)
    text = re.sub(r"\b\d+ s ago\b", "N s ago", text)
    text = re.sub(r"(Duration:|Mean wind-down:) +\d+ s", r"\1 N s", text)
    return re.sub(r" in \d+ s;", " in N s;", text)


def tree_of(root: Path, ignore: Iterable[str] = ()) -> Tree:
    """Git's index is left out where it was only refreshed: what it says is compared through git."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        name = path.relative_to(root).as_posix()
        if name in ignore:
            continue
        if stat.S_ISREG(status.st_mode):
            is_large = status.st_size > 1 << 30  # of holes
            content = str(status.st_size) if is_large else hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            content = str(path.readlink()) if path.is_symlink() else ""
        found[name] = (stat.filemode(status.st_mode), content)
    return found


def start_on_terminal(
    terminal: int,
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    program: Sequence[str] = PROGRAM,
) -> subprocess.Popen[Any]:
    """The program with this as its controlling terminal."""
    streams: Any = {"stdin": terminal, "stdout": terminal, "stderr": terminal, "start_new_session": True}
    if program == PROGRAM and may_fork(env):
        return ForkedProgram(arguments, cwd=cwd, env=env, **streams)
    words = [sys.executable, "-c", _ON_TERMINAL, *program, *arguments]
    return subprocess.Popen(words, cwd=cwd, env=env, **streams)


_ON_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def on_terminal(place: Place, arguments: Sequence[str], *answers: tuple[str, str]) -> tuple[int, str]:
    """Run it on a pseudo terminal: wait for each text, then type its answer. Exit code and all it showed."""
    ours, theirs = os.openpty()
    try:
        with start_on_terminal(theirs, arguments, cwd=place.project, env=place.environment) as process:
            os.close(theirs)
            shown = b""
            answer = ""
            try:
                for awaited, answer in answers:
                    shown = _read_until(ours, shown, awaited.encode())
                    os.write(ours, answer.encode())
                shown = _read_until(ours, shown, None, again=CTRL_C.encode() if answer == CTRL_C else b"")
                code = process.wait(PATIENCE)
            except BaseException:
                process.kill()
                raise
    finally:
        os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")


def _read_until(descriptor: int, shown: bytes, awaited: bytes | None, again: bytes = b"") -> bytes:
    """Until the text was shown once more, or to the end.

    `again` is typed anew now and then: a Ctrl-C in the moment before a prompt begins to wait is lost.
    """
    fresh = b""
    deadline = time.monotonic() + PATIENCE
    while awaited is None or awaited not in fresh:
        assert time.monotonic() < deadline, shown + fresh
        if not select.select([descriptor], [], [], 0.5)[0]:
            os.write(descriptor, again)
            continue
        try:
            block = os.read(descriptor, 1 << 16)
        except OSError:  # Linux says so when the other side is closed
            block = b""
        if not block:
            assert awaited is None, shown + fresh
            break
        fresh += block
    return shown + fresh
