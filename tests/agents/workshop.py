"""A throw-away home and a project in it, and the means to run things there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / ".cache" / "agents" / "node_modules" / ".bin"
PATIENCE = 280.0
"""Seconds that one run of an agent may take. Most take three; with ten programs a core, half a minute."""


@dataclass(frozen=True)
class Ended:
    """A process that came to its end."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its output, where that is one JSON object a line."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]


class Workshop:
    """Nothing of the person who runs the tests reaches in, and nothing reaches out."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(PROGRAMS), _node_folder(), "/usr/bin", "/bin")),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_PROXY": "127.0.0.1,localhost",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self._make_repository()

    def _make_repository(self) -> None:
        (self.project / "README.md").write_text("# A project to work in\n")
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
        for words in (("init", "-q", "-b", "main"), ("add", "."), (*identity, "commit", "-qm", "Begin")):
            self.run(["git", *words]).check()

    def run(
        self,
        words: Sequence[str],
        *,
        environ: dict[str, str] | None = None,
        timeout: float = PATIENCE,
    ) -> CheckedEnd:
        return self.start(words, environ=environ).end(timeout)

    def start(self, words: Sequence[str], *, environ: dict[str, str] | None = None) -> Started:
        process = subprocess.Popen(
            list(words),
            cwd=self.project,
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,  # some agents read it to its end before they begin
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that its children can be ended with it
        )
        return Started(process)

    def holdfast(self, *words: str) -> CheckedEnd:
        return self.run([sys.executable, "-m", "holdfast", *words])

    def holdfast_json(self, *words: str) -> Any:
        return json.loads(self.holdfast(*words, "--json").check().out)

    def usage(self, session_id: str) -> tuple[int, int, int, int]:
        """An agent's session as Holdfast has counted it: input, output, cache read and written."""
        found = self.holdfast_json("usage", "--session", session_id)[0]
        return found["input_tokens"], found["output_tokens"], found["cache_read"], found["cache_write"]

    def configure(self, **values: str | float | bool) -> None:
        """Holdfast's settings for this project."""
        making = (
            "from pathlib import Path\nfrom holdfast.project.layout import ProjectLayout\n"
            "ProjectLayout(Path.cwd()).ensure()"
        )
        self.run([sys.executable, "-c", making]).check()
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in values.items()]
        (self.project / ".holdfast" / "config.toml").write_text("".join(lines))

    @property
    def sessions(self) -> list[Path]:
        """The snapshots' files, oldest first."""
        return sorted((self.project / ".holdfast" / "sessions").glob("session-*.json"))

    @contextlib.contextmanager
    def tiny_disk(self, folder: Path) -> Generator[None]:
        """A folder on a disk that is as good as full."""
        mounted = self.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(folder)])
        assert mounted.code == 0, f"no disk can be mounted here: {mounted.err}"
        try:
            yield
        finally:
            self.run(["umount", "-l", str(folder)]).check()

    def first_settled(self) -> dict[str, Any]:
        """The oldest snapshot: of a session that was compacted there is another one at its end."""
        self.settled()
        return json.loads(self.sessions[0].read_text())

    def settled(self, count: int = 1) -> dict[str, Any]:
        """The newest snapshot, once there are so many with their contexts prepared: that is done detached."""
        folder = self.project / ".holdfast" / "sessions"

        def newest() -> Path | None:
            ready = {path.name.partition(".")[0] for path in folder.glob("session-*.context-20000.md")}
            return self.sessions[-1] if len(ready) >= count else None

        return json.loads(wait_for(newest, told=self.hook_errors).read_text())

    def hook_errors(self) -> str:
        path = self.project / ".holdfast" / "state" / "hook-errors.log"
        return path.read_text() if path.exists() else "no errors in the hooks' log"

    @property
    def journal(self) -> Path:
        return self.project / ".holdfast" / "sessions" / "ACTIVE-PAUSE.jsonl"


class CheckedEnd(Ended):
    def check(self) -> CheckedEnd:
        assert self.code == 0, f"exit {self.code}\n{self.out[-3000:]}\n{self.err[-3000:]}"
        return self


@dataclass(frozen=True)
class Started:
    process: subprocess.Popen[str]

    def end(self, timeout: float = PATIENCE) -> CheckedEnd:
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill_all()
            out, err = self.process.communicate()
            raise AssertionError(f"not done after {timeout:g} s\n{out[-3000:]}\n{err[-3000:]}") from None
        return CheckedEnd(self.process.returncode, out, err)

    def kill_agent(self) -> None:
        """As a crash does it, without a warning; what its shell started lives on in a group of its own."""
        self.kill_all()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def kill_all(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def wait_for(what: Callable[[], Any], timeout: float = PATIENCE, told: Callable[[], str] = str) -> Any:
    """Until something is true; returns it. For what is done detached."""
    deadline = time.monotonic() + timeout
    while True:
        if found := what():
            return found
        assert time.monotonic() < deadline, f"waited in vain; {told()}"
        time.sleep(0.05)


def _node_folder() -> str:
    node = shutil.which("node")
    assert node, "Node is missing: scripts/ensure-tools node"
    return str(Path(node).parent)
