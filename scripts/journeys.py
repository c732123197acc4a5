"""How many files the six journeys of docs/architecture.md cross: `journeys.py [NAME…] [--files]`.

A journey is walked by the program as its users start it. A file counts when a function of it is called
on the way, in whichever process; what merely loading a module calls does not count.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "holdfast"
BARS = {"hook": 16, "finalize": 44, "context": 40, "resume": 71, "pause": 66, "undo": 26}
"""The most. The first build, counted by this program, crossed 19, 47, 43, 77, 67 and 28."""

_DEADLINE = 120.0

# Put at the start of every Python process of the journey. A call is noted by the first one of each function,
# as soon as it is seen: the process may be killed.
_WATCHER = """
import mmap, os, sys, threading

_package, _folder = os.environ["JOURNEY_PACKAGE"], os.environ["JOURNEY_FOLDER"]
with open(_folder + "/switch", "rb") as _file:
    _switch = mmap.mmap(_file.fileno(), 1, prot=mmap.PROT_READ)
_seen = set()

def _is_loading(frame):
    while frame := frame.f_back:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
    return False

def _look(frame, event, argument):
    code = frame.f_code
    if event != "call" or code in _seen or not _switch[0]:
        return
    ours = code.co_filename.startswith(_package)
    if ours and (code.co_name == "<module>" or not code.co_flags & 2 or _is_loading(frame)):
        return
    _seen.add(code)
    if ours:
        with open(_folder + "/files", "ab", 0) as file:
            file.write(code.co_filename[len(_package):].encode() + b"\\n")

threading.setprofile(_look)
sys.setprofile(_look)
"""

_PLAN = """\
issue: {{id: sail, title: Mend the sail}}
tasks:
  - {{id: cut, description: Cut the canvas, run: "echo cut >> app.py"}}
  - {{id: sew, description: Sew it, depends_on: [cut], run: "{sew}"}}
  - {{id: hoist, description: Hoist it, depends_on: [sew], run: "echo hoisted >> app.py"}}
"""
_WAITS = "touch begun; while ! test -e go; do sleep 0.05; done; echo sewn >> app.py"
_HANGS_AT_FIRST = "test -e go || { touch begun; sleep 600; }; echo sewn >> app.py"


class Place:
    """A project of its own, in which each Python process is watched while `walked` says so."""

    def __init__(self, folder: Path) -> None:
        self.project, self.home, self._watched = folder / "project", folder / "home", folder / "watched"
        for one in (self.project, self.home, self._watched):
            one.mkdir()
        (self._watched / "sitecustomize.py").write_text(_WATCHER)
        (self._watched / "switch").write_bytes(b"\0")
        (self._watched / "files").touch()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self._watched),
            "HOLDFAST_HOME": str(self.home / "holdfast"),
            "HOLDFAST_FORBID_MODELS": "1",
            "CLAUDE_PROJECT_DIR": str(self.project),
            "CLAUDE_PID": str(os.getpid()),
            "PYTHONPATH": f"{self._watched}{os.pathsep}{SOURCE}",
            "JOURNEY_PACKAGE": f"{PACKAGE}{os.sep}",
            "JOURNEY_FOLDER": str(self._watched),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{who}_{what}": "ada@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        (self.project / "app.py").write_text("def sail():\n    return 1\n")
        for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "First")):
            subprocess.run(("git", *words), cwd=self.project, env=self.environment, check=True)

    @contextmanager
    def walked(self) -> Generator[None]:
        with (self._watched / "switch").open("r+b") as file, mmap.mmap(file.fileno(), 1) as switch:
            switch[0] = 1
            yield
            switch[0] = 0

    @property
    def files(self) -> set[str]:
        return set((self._watched / "files").read_text().split())

    @contextmanager
    def start(self, *words: str) -> Generator[subprocess.Popen[str]]:
        command = (sys.executable, "-P", "-m", "holdfast", *words)
        how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(command, cwd=self.project, env=self.environment, **how) as process:
            try:
                yield process
            finally:
                process.kill()

    def holdfast(self, *words: str, expected: int = 0) -> str:
        with self.start(*words) as process:
            out, _ = process.communicate(timeout=_DEADLINE)
        assert process.returncode == expected, f"holdfast {' '.join(words)}: {process.returncode}"
        return out

    def hook(self, event: str, **payload: Any) -> None:
        """By its path, as the shell starts it; the watcher needs what `-I -S` leave out."""
        document = {"session_id": "s1", "hook_event_name": event, "cwd": str(self.project), **payload}
        command = (sys.executable, "-P", str(PACKAGE / "hooks" / "entry.py"), "claude-code", event)
        subprocess.run(
            command,
            input=json.dumps(document),
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            text=True,
            check=True,
        )

    def plan(self, sew: str = "echo sewn >> app.py") -> None:
        (self.project / "plan.yaml").write_text(_PLAN.format(sew=sew))

    def wait_for(self, condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + _DEADLINE
        while not (found := condition()):
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.05)
        return found

    def end(self, process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> None:
        process.send_signal(number)
        process.communicate(timeout=_DEADLINE)


# ── the journeys ──────────────────────────────────────────────────────────────────────────────────


def hook(place: Place) -> None:
    """A tool has run while the window is nearly full: a line in the journal of the wind-down."""
    transcript = place.home / "s1.jsonl"
    transcript.write_text("".join(map(_line, _conversation(tokens=184_000))))
    call = {
        "tool_name": "Bash",
        "tool_input": {"command": "pytest -q"},
        "tool_response": {"stdout": "1 passed"},
    }
    place.hook("SessionStart", transcript_path=str(transcript), source="startup")
    place.hook("UserPromptSubmit", transcript_path=str(transcript), prompt="Mend the sail.")
    place.hook("PostToolUse", transcript_path=str(transcript), **call)
    journal = place.project / ".holdfast" / "sessions" / "ACTIVE-PAUSE.jsonl"
    before = len(journal.read_bytes().splitlines())
    with place.walked():
        place.hook("PostToolUse", transcript_path=str(transcript), **call)
    assert len(journal.read_bytes().splitlines()) == before + 1, "nothing came to the journal"


def finalize(place: Place) -> None:
    place.holdfast("winddown", "start", "--percent", "0.90", "--state", '{"model": "claude-sonnet-4-5"}')
    for data in ('{"tool": "Edit", "path": "app.py"}', '{"tool": "Bash", "command": "pytest -q"}'):
        place.holdfast("winddown", "append", "tool_call", "--data", data, "--percent", "0.91")
    (place.project / "app.py").write_text("def sail():\n    return 2\n")
    with place.walked():
        place.holdfast("winddown", "finalize", "--reason", "the window is full")
    assert list((place.project / ".holdfast" / "sessions").glob("session-*")), "there is no session"


def context(place: Place) -> None:
    """Of a session of Claude Code with what most sessions hold: an edit, a failure, its fix, a decision."""
    folder = place.home / ".claude" / "projects" / str(place.project).replace("/", "-").replace("_", "-")
    folder.mkdir(parents=True)
    session = "0b1f7a52-3c1d-4d6e-9a55-1f2e3d4c5b6a"
    lines = ({**one, "sessionId": session, "cwd": str(place.project)} for one in _conversation())
    (folder / f"{session}.jsonl").write_text("".join(map(_line, lines)))
    with place.walked():
        told = place.holdfast("context", "--session", session)
    assert "Mend the sail" in told, told


def resume(place: Place) -> None:
    """`run`, killed in its second task, and `resume`."""
    place.plan(_HANGS_AT_FIRST)
    with place.walked():
        with place.start("run", "plan.yaml") as process:
            place.wait_for((place.project / "begun").exists)
            place.end(process, signal.SIGKILL)
        (place.project / "go").touch()
        place.holdfast("resume")
    assert (place.project / "app.py").read_text().endswith("cut\nsewn\nhoisted\n")


def pause(place: Place) -> None:
    """From the click, a request to the server, to the pause of the worker that the server started."""
    place.plan(_WAITS)
    with (
        place.start("serve", "--port", "0", "--no-worker", "--json") as server,
        place.start("worker") as worker,
    ):
        assert server.stdout
        address = json.loads(server.stdout.readline())["url"]
        started = json.loads(place.holdfast("run", "plan.yaml", "--detach", "--json"))
        workflow = started["id"]
        place.wait_for((place.project / "begun").exists)
        with place.walked():
            _ask(place, f"{address}/api/workflows/{workflow}/pause", {"reason": "a click"})
            (place.project / "go").touch()
            place.wait_for(lambda: _status(place, workflow) == "paused")
        place.end(worker)
        place.end(server)


def _ask(place: Place, address: str, body: dict[str, Any]) -> Any:
    token = (place.home / "holdfast" / "server-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=_DEADLINE) as answer:
        return json.load(answer)


def _status(place: Place, workflow: str) -> str:
    """Past the program, whose own way to the answer would be counted."""
    with closing(sqlite3.connect(place.home / "holdfast" / "holdfast.db")) as database:
        return database.execute("SELECT status FROM workflows WHERE id = ?", (workflow,)).fetchone()[0]


def undo(place: Place) -> None:
    place.plan()
    place.holdfast("run", "plan.yaml")
    with place.walked():
        place.holdfast("tx", "undo", "last")
    assert "hoisted" not in (place.project / "app.py").read_text()


# ── a conversation with Claude Code ───────────────────────────────────────────────────────────────

_FAILED = "E   assert 1 == 2\nFAILED test_app.py::test_sail - assert 1 == 2\n1 failed in 0.03s"


def _conversation(tokens: int = 60_000) -> list[dict[str, Any]]:
    return [
        _typed("Mend the sail: `sail()` in app.py must return 2. Never touch test_app.py."),
        _said("I'll read app.py first, because the test says what is expected.", tokens),
        *_call("Read", {"file_path": "app.py"}, "def sail():\n    return 1\n"),
        *_call("Bash", {"command": "pytest -q"}, _FAILED, error=True),
        _said(
            "The cause is the constant. I decided to change it rather than the test, since you forbade that."
        ),
        *_call("Edit", {"file_path": "app.py", "old_string": "return 1", "new_string": "return 2"}, "edited"),
        *_call("Bash", {"command": "pytest -q"}, "1 passed in 0.02s"),
        *_call(
            "Bash",
            {"command": "git commit -am 'Mend the sail'"},
            "[main 1234567] Mend the sail\n 1 file changed",
        ),
        _typed("Good. Now hoist it, too."),
        _said("Next I will add `hoist()` to app.py.", tokens),
    ]


def _typed(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}


def _said(text: str, tokens: int = 60_000) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": tokens - 60, "output_tokens": 50}
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "model": "claude-sonnet-4-5", "usage": usage, "content": content}
    return {"type": "assistant", "isSidechain": False, "message": message}


def _call(name: str, given: dict[str, str], result: str, *, error: bool = False) -> Generator[dict[str, Any]]:
    number = f"toolu_{name}_{abs(hash(str(given) + result))}"
    call = {"type": "tool_use", "id": number, "name": name, "input": given}
    answer = {"type": "tool_result", "tool_use_id": number, "content": result, "is_error": error}
    yield {"type": "assistant", "message": {"role": "assistant", "content": [call]}}
    yield {"type": "user", "message": {"role": "user", "content": [answer]}}


def _line(document: dict[str, Any]) -> str:
    stamp = {"timestamp": "2026-01-06T12:00:00.000Z", "uuid": "00000000-0000-4000-8000-000000000000"}
    return json.dumps({**stamp, **document}) + "\n"


# ── the count ─────────────────────────────────────────────────────────────────────────────────────

JOURNEYS = (hook, finalize, context, resume, pause, undo)


def files_of(journey: Callable[[Place], None]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="journey-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder))
        journey(place)
        return sorted(place.files)


def main(words: list[str]) -> int:
    named = {word for word in words if not word.startswith("-")}
    missed = 0
    for journey in JOURNEYS:
        name = journey.__name__
        if named and name not in named:
            continue
        files = files_of(journey)
        missed += len(files) > BARS[name]
        print(f"{name}: {len(files)} files (at most {BARS[name]})")
        if "--files" in words:
            print("".join(f"  {file}\n" for file in files), end="")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
