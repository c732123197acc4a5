"""Claude Code as a node: its headless stream, one message a line.

    flow.node(claude_code_node(lambda step: f"Fix {step.received}", cwd=project), name="fix")

Paused between two messages, the program is ended politely, and its session id is kept; on resume
the same session goes on with the user's message. The id is on record as soon as it is
known, so the session goes on after a crash of ours as well. The output is its final answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from holdfast.base.errors import CannotDoError
from holdfast.base.process import ProcessIdentity, end_group, identify, signal_group
from holdfast.flow.graph import NodeBody
from holdfast.flow.step import Step
from holdfast.journal.usage import ContextUsageTracker

_HEADLESS = ("-p", "--output-format", "stream-json", "--verbose")
_LONGEST_LINE = 64 << 20
_GRACE_SECONDS = 10.0

Line = dict[str, Any]


def claude_code_node(
    prompt: Callable[[Step], str],
    *,
    command: Sequence[str] = ("claude",),
    options: Sequence[str] = (),
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    usage: ContextUsageTracker | None = None,
) -> NodeBody:
    """`options` are further ones of the program (`--model`, `--allowedTools`, …), `env` its environment."""

    async def node(step: Step) -> AsyncIterator[Line]:
        words = [*command, *_HEADLESS, *options]
        if step.provider_session is not None:
            words += ["--resume", step.provider_session]
        said = step.messages if step.provider_session is not None and step.messages else None
        text = "\n\n".join(said or (prompt(step), *step.messages))
        with tempfile.TemporaryFile() as complaints:
            process = await _start(words, cwd, env, complaints)
            leader = identify(process.pid)
            try:
                await _tell(process, text)
                async with contextlib.aclosing(_lines(process)) as lines:
                    async for line in lines:
                        if isinstance(name := line.get("session_id"), str):
                            step.provider_session = name
                        await _report(line, usage)
                        if line.get("type") == "result":
                            step.answer(_result(line))
                        yield line
                code = await process.wait()
            finally:
                await _end(process, leader)
            if not step.has_answered:
                raise CannotDoError(
                    f"{words[0]} ended with status {code} and without a result: {_last_words(complaints)}",
                    hint="run it by hand with the same options to see what it needs",
                )

    return node


async def _start(
    words: Sequence[str], cwd: Path | str | None, env: Mapping[str, str] | None, complaints: IO[bytes]
) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *words,
            cwd=cwd,
            env=env,
            stdin=PIPE,
            stdout=PIPE,
            stderr=complaints,
            limit=_LONGEST_LINE,
            start_new_session=True,  # a Ctrl-C at our terminal is ours to handle, and its tools end with it
        )
    except OSError as error:
        raise CannotDoError(
            f"{words[0]} could not be started: {error.strerror}",
            hint="install Claude Code, or pass command=…",
        ) from error


async def _tell(process: Process, text: str) -> None:
    stdin = cast("asyncio.StreamWriter", process.stdin)
    with contextlib.suppress(ConnectionError):  # it has ended; its status says why
        stdin.write(text.encode())
        await stdin.drain()
    stdin.close()


async def _lines(process: Process) -> AsyncGenerator[Line]:
    stdout = cast("asyncio.StreamReader", process.stdout)
    while data := await stdout.readline():
        with contextlib.suppress(ValueError):  # a line for people
            line = json.loads(data)
            if isinstance(line, dict):
                yield cast("Line", line)


def _result(line: Line) -> str:
    if line.get("is_error"):
        raise CannotDoError(f"Claude Code ended with an error: {line.get('result') or line.get('subtype')}")
    return str(line.get("result", ""))


async def _report(line: Line, usage: ContextUsageTracker | None) -> None:
    """Every line of a message repeats its usage; the tracker knows them by the message's id."""
    message = line.get("message")
    if usage is None or line.get("type") != "assistant" or not isinstance(message, dict):
        return
    known = cast("dict[str, Any]", message)
    used = known.get("usage")
    if not isinstance(used, dict) or line.get("parent_tool_use_id"):
        return  # a sub-agent has a window of its own
    counts = cast("dict[str, Any]", used)
    await asyncio.to_thread(
        usage.update_usage,
        int(counts.get("input_tokens") or 0),
        int(counts.get("output_tokens") or 0),
        int(counts.get("cache_read_input_tokens") or 0),
        int(counts.get("cache_creation_input_tokens") or 0),
        report="cumulative",
        report_id=known.get("id"),
        model=known.get("model"),
    )


async def _end(process: Process, leader: ProcessIdentity) -> None:
    """Politely first: asked to terminate, it still closes its session. With all that it started."""
    if process.returncode is None:
        signal_group(leader, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_SECONDS)
    await asyncio.to_thread(end_group, leader, 0)
    await process.wait()


def _last_words(complaints: IO[bytes]) -> str:
    complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - 2000))
    return complaints.read().decode(errors="replace").strip() or "no message"
