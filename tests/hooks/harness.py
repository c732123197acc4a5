"""A session of an agent as the hooks see it: its payloads, its transcript, and the real hook program."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.harness import start_program
from fork_server import READ_AT_START, SOURCE, TESTS, the_server
from holdfast.hooks.events import ENTRY, hook_command
from soak import starts_program

PATIENCE = 60.0


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """Why the tool may not run, in whichever agent's form; empty where it may."""
        told = self.data if self.out else {}
        own = told.get("hookSpecificOutput", {})
        if told.get("decision") == "deny":
            return told["reason"]
        return (
            told.get("deny", "") or (own.get("permissionDecision") and own["permissionDecisionReason"]) or ""
        )

    @property
    def context(self) -> str:
        """What the model is told; empty where nothing."""
        return self.data["hookSpecificOutput"]["additionalContext"] if self.out else ""


@dataclass
class AgentSession:
    project: Path
    home: Path
    agent: str = "claude-code"
    session_id: str = "0f6e2a4c-aaaa-4bbb-8ccc-000000000001"
    variables: dict[str, str] = field(default_factory=dict[str, str])
    prompts: int = 0

    def __post_init__(self) -> None:
        # What a test makes in this process is the same user's; the `home` of every test puts it back.
        os.environ["HOLDFAST_HOME"] = str(self.home / "data")

    @property
    def transcript(self) -> Path:
        return self.home / f"{self.session_id}.jsonl"

    @property
    def state(self) -> Path:
        return self.project / ".holdfast" / "state"

    @property
    def sessions(self) -> Path:
        return self.project / ".holdfast" / "sessions"

    @property
    def notes(self) -> Path:
        return self.state / "hooks" / self.session_id

    @property
    def journal(self) -> Path:
        return self.sessions / "ACTIVE-PAUSE.jsonl"

    @property
    def errors(self) -> str:
        path = self.state / "hook-errors.log"
        return path.read_text() if path.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # as where it is installed
            "HOME": str(self.home),
            "HOLDFAST_HOME": str(self.home / "data"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "CLAUDE_PID": str(os.getpid()),
            **self.variables,
        }

    def payload(self, event: str, **fields: Any) -> bytes:
        common = {
            "session_id": self.session_id,
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": event,
        }
        return json.dumps({**common, **fields}).encode()

    def fire(self, event: str, **fields: Any) -> Result:
        """The event as the agent sends it, through the command that is installed."""
        return self.run(quick(hook_command(self.agent, event)), self.payload(event, **fields))

    def fire_python(self, event: str, **fields: Any) -> Result:
        """The same without the shell in front."""
        command = [sys.executable, "-I", "-S", ENTRY, self.agent, event]
        return self.run(command, self.payload(event, **fields))

    def run(self, command: list[str], payload: bytes) -> Result:
        done = subprocess.run(
            command,
            input=payload,
            capture_output=True,
            env=self.environment,
            cwd=self.project,
            timeout=PATIENCE,
            check=False,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())

    def holdfast(self, *words: str) -> Result:
        """A command of the same user, in the project."""
        environment = {**self.environment, **READ_AT_START}
        with start_program(words, cwd=self.project, env=environment, text=True) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return Result(process.returncode, out, err)

    def start(self, source: str = "startup", **fields: Any) -> Result:
        return self.fire("SessionStart", source=source, **fields)

    def prompt(self, text: str = "go on", **fields: Any) -> Result:
        self.prompts += 1
        name = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}
        key = "prompt_id" if self.agent == "claude-code" else "turn_id"
        if self.agent == "gemini":
            key = "timestamp"
        stamp = {key: f"prompt-{self.prompts}"}
        return self.fire(name.get(self.agent, "chat.message"), prompt=text, **{**stamp, **fields})

    def before_tool(self, command: str = "ls", **fields: Any) -> Result:
        name = {"claude-code": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}
        return self._tool(name.get(self.agent, "tool.execute.before"), command, fields)

    def after_tool(self, command: str = "ls", **fields: Any) -> Result:
        name = {"claude-code": "PostToolUse", "codex": "PostToolUse", "gemini": "AfterTool"}
        response = {"stdout": "a\nb", "stderr": ""}
        return self._tool(
            name.get(self.agent, "tool.execute.after"), command, {"tool_response": response, **fields}
        )

    def _tool(self, event: str, command: str, fields: Mapping[str, Any]) -> Result:
        tool = "run_shell_command" if self.agent == "gemini" else "Bash"
        given = {"tool_name": tool, "tool_input": {"command": command}, "tool_use_id": "t1", **fields}
        return self.fire(event, **given)

    def write(self, *lines: Mapping[str, Any]) -> None:
        """Add lines to the transcript."""
        with self.transcript.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def use(self, tokens: int, message: str = "m1", *, model: str = "claude-sonnet-4-5") -> None:
        """A model call that leaves so many tokens in the window."""
        self.write(said("hello", "user"), said("Working on it.", "assistant", message, tokens, model))

    def wait_for(self, what: Callable[[], bool]) -> None:
        """For what a detached process does in its own time."""
        deadline = time.monotonic() + PATIENCE
        while not what():
            assert time.monotonic() < deadline, f"it never came about; errors: {self.errors}"
            select.select([], [], [], 0.02)


def quick(command: list[str]) -> list[str]:
    """The same hook; where programs are forked, what it leaves to another process is."""
    if starts_program():
        return command
    return [_python_that_forks() if word == sys.executable else word for word in command]


@functools.cache
def _python_that_forks() -> str:
    """Where a hook's Python is expected: it starts that, told to have its work forked."""
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r})"
        f"; exec(open({str(TESTS / 'hooks' / 'quick.py')!r}).read())"
        f"; install({str(TESTS)!r}, {the_server().loaded_address!r}); del sys.path[0]"
        "; __file__ = sys.argv.pop(1); exec(open(__file__).read())"
    )
    folder = tempfile.mkdtemp(prefix="holdfast-python-")
    atexit.register(shutil.rmtree, folder)
    path = Path(folder) / "python"
    # PYTHON -I -S [-c CODE] ENTRY AGENT EVENT
    path.write_text(
        '#!/bin/sh\nshift 2; [ "$1" != -c ] || shift 2\n'
        f'exec {shlex.quote(sys.executable)} -I -S -c {shlex.quote(code)} "$@"\n'
    )
    path.chmod(0o700)
    return str(path)


def said(text: str, role: str, message: str = "", tokens: int = 0, model: str = "") -> dict[str, Any]:
    """A line of Claude Code's transcript."""
    body: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}]}
    if role == "assistant":
        cached = tokens // 2
        counts = {
            "input_tokens": tokens - cached - 10,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": 10,
        }
        body |= {"id": message, "model": model, "type": "message", "usage": counts}
    return {
        "type": role,
        "isSidechain": False,
        "message": body,
        "uuid": f"u-{message}-{role}",
        "sessionId": "s",
        "timestamp": "2026-01-06T12:00:00.000Z",
    }
