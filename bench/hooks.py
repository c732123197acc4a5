"""What a hook costs an agent: a process an event, against the bare start of the same interpreter.

Also whether a long transcript makes any of it slower, and claude-mpm's hook beside.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import Figure, Subject, Timing, alone, compared, interleave, make_project, scratch_folder

from holdfast.hooks.events import hook_command

TOPIC = "hooks"
BARS = {"tool event, nothing to do": 1.0, "prompt event, all nudges": 2.2, "tool event, journaling": 2.0}
BARS["status line"] = 2.0
BAR_LONG = 1.1
LONG = 100 * 1024 * 1024
_EVENTS = {
    "tool event, nothing to do": ("PostToolUse", "idle"),
    "tool event, before": ("PreToolUse", "idle"),
    "prompt event, all nudges": ("UserPromptSubmit", "idle"),
    "tool event, journaling": ("PostToolUse", "full"),
    "status line": ("statusLine", "idle"),
}


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        return _measure(folder, repetitions=20 if quick else 150)


def _measure(folder: Path, repetitions: int) -> list[Figure]:
    short, long = Place(folder / "short", 200 * 1024), Place(folder / "long", LONG)

    def rest() -> None:
        short.rest()
        long.rest()

    bare = Subject(
        "python -I -S -c pass",
        _started([sys.executable, "-I", "-S", "-c", "pass"], b"", short),
        rest,
    )
    subjects = [bare]
    for name, (event, session) in _EVENTS.items():
        for place, words in ((short, name), (long, f"{name}, 100 MB transcript")):
            prepare = place.prepares(event, session)
            subjects.append(
                Subject(words, place.fires(event, session), lambda prepare=prepare: (rest(), prepare()))
            )
    subjects += _peer(short)
    timings = interleave(subjects, repetitions)
    for place in (short, long):
        place.check()
    return _figures(timings, timings[bare.name])


def _figures(timings: dict[str, Timing], bare: Timing) -> list[Figure]:
    figures = [alone(TOPIC, bare)]
    for name in _EVENTS:
        figures.append(compared(TOPIC, timings[name], bare, BARS.get(name, 1.0)))
        figures.append(compared(TOPIC, timings[f"{name}, 100 MB transcript"], timings[name], BAR_LONG))
    if PEER in timings:
        ours = timings["prompt event, all nudges"]
        figures.append(compared(TOPIC, timings[PEER], ours))
    return figures


class Place:
    """A project with a session that has nothing to do and one whose window is nearly full."""

    def __init__(self, folder: Path, transcript_size: int) -> None:
        self.project = make_project(folder / "project")
        self.folder = folder
        self.environment = {
            **os.environ,
            "HOLDFAST_HOME": str(folder / "home"),
            "CLAUDE_PID": str(os.getpid()),
        }
        self.environment["CLAUDE_PROJECT_DIR"] = str(self.project)
        for session, tokens in (("idle", 60_000), ("full", 184_000)):
            self._write_transcript(session, tokens, transcript_size)
            self._fire("SessionStart", session)
            self._fire("UserPromptSubmit", session)
            self._fire("PostToolUse", session)
        assert (self.project / ".holdfast" / "sessions" / "ACTIVE-PAUSE.jsonl").exists()

    def fires(self, event: str, session: str) -> Callable[[], object]:
        environment = {**self.environment, "CLAUDE_CODE_SESSION_ID": session}
        return _started(hook_command("claude-code", event), self._payload(event, session), self, environment)

    def prepares(self, event: str, session: str) -> Callable[[], object]:
        """Before a prompt, the model has answered, and every nudge may speak again."""

        def prepare() -> None:
            if event == "UserPromptSubmit":
                with self._transcript(session).open("a") as file:
                    file.write(_line(60_000 + file.tell() % 1000))
                (self.project / ".holdfast" / "state" / "hooks" / session / "told").unlink(missing_ok=True)

        return prepare

    def rest(self) -> None:
        """Until what earlier events left to other processes is done: an agent waits for its model then."""
        notes = self.project / ".holdfast" / "state" / "hooks"
        deadline = time.monotonic() + 30
        seen = False
        while any(notes.glob("*/turning")) and time.monotonic() < deadline:
            seen = True
            time.sleep(0.005)
        if seen:
            time.sleep(0.1)  # it has done its work and ends

    def check(self) -> None:
        log = self.project / ".holdfast" / "state" / "hook-errors.log"
        assert not log.exists(), log.read_text()
        journal = self.project / ".holdfast" / "sessions" / "ACTIVE-PAUSE.jsonl"
        assert len(journal.read_bytes().splitlines()) > 10

    def _fire(self, event: str, session: str) -> None:
        self.fires(event, session)()

    def _transcript(self, session: str) -> Path:
        return self.folder / f"{session}.jsonl"

    def _write_transcript(self, session: str, tokens: int, size: int) -> None:
        filler = json.dumps({"type": "user", "message": {"role": "user", "content": "y" * 4000}}) + "\n"
        with self._transcript(session).open("w") as file:
            file.writelines(filler for _ in range(size // len(filler)))
            file.write(_line(tokens))

    def _payload(self, event: str, session: str) -> bytes:
        document: dict[str, Any] = {
            "session_id": session,
            "transcript_path": str(self._transcript(session)),
            "cwd": str(self.project),
            "hook_event_name": event,
            "prompt": "Go on with the parser.",
            "tool_name": "Bash",
            "tool_input": {"command": "pytest -q tests/parser", "description": "Run the tests"},
            "cost": {"total_cost_usd": 1.25},
            "rate_limits": {"five_hour": {"used_percentage": 61}, "seven_day": {"used_percentage": 12}},
            "tool_response": {"stdout": "12 passed in 0.4s\n" * 20, "stderr": "", "interrupted": False},
        }
        return json.dumps(document, separators=(",", ":")).encode()


def _line(tokens: int) -> str:
    counts = {"input_tokens": 10, "cache_read_input_tokens": tokens - 60, "output_tokens": 50}
    message = {"id": f"m{tokens}", "role": "assistant", "model": "claude-sonnet-4-5", "usage": counts}
    document = {"type": "assistant", "isSidechain": False, "message": {**message, "content": []}}
    return json.dumps(document, separators=(",", ":")) + "\n"


def _started(
    command: list[str], payload: bytes, place: Place, environment: dict[str, str] | None = None
) -> Callable[[], object]:
    def start() -> None:
        subprocess.run(
            command,
            input=payload,
            check=True,
            cwd=place.project,
            env=environment or place.environment,
            stdout=subprocess.DEVNULL,
        )

    return start


PEER = "claude-mpm's hook"
_PEER_MODULE = "claude_mpm.hooks.claude_hooks.hook_handler"


def _peer(place: Place) -> list[Subject]:
    """Its hook handler, where it is installed: the same payload, a process of its own, too."""
    if importlib.util.find_spec("claude_mpm") is None:
        return []
    payload = place._payload("UserPromptSubmit", "idle")  # pyright: ignore[reportPrivateUsage]
    command = [sys.executable, "-m", _PEER_MODULE]
    return [Subject(PEER, _started(command, payload, place))]
