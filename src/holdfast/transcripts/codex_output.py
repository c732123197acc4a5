"""What a Codex tool printed, taken out of the envelope that Codex puts around it.

The envelope changed over time: a JSON object with an exit code, then a few header lines
before ``Output:``. Either holds the only exact word on whether a command failed.
"""

from __future__ import annotations

import re
from typing import Any, cast

import orjson

from holdfast.model.message import Outcome
from holdfast.transcripts.fields import joined, mapping_of, mappings_of, text_of

_ENVELOPE_STARTS = ("Chunk ID:", "Exit code:", "Wall time:")
_ENVELOPE_BYTES = 1000
_BODY_MARK = "\nOutput:\n"
_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)\s*$", re.MULTILINE)
_STILL_RUNNING = re.compile(r"^Process running with session ID", re.MULTILINE)
_ABORTED = re.compile(r"\A(?:Wall time: [^\n]*\n)?(?:aborted|Command aborted)\b")
# Codex refuses or fails a call in plain words, with no field that says so.
_REFUSALS = (
    "unsupported call:",
    "unsupported custom tool call:",
    "failed to parse function arguments",
    "apply_patch verification failed",
    "exec_command failed",
    "write_stdin failed",
    "execution error",
    "unable to locate ",
    "unable to read ",
    "failed in sandbox",
    "sandbox error",
    "tool call error",
    "tool call failed",
    "Err(",
    "err: ",
    "Error:",
    "error:",
)
_REJECTIONS = ("exec command rejected by user", "patch rejected by user", "rejected by user", "user rejected")
_STATUS_OUTCOMES: dict[str, Outcome] = {
    "completed": "ok",
    "failed": "error",
    "declined": "interrupted",
    "interrupted": "interrupted",
}


def outcome_of_status(status: object) -> Outcome | None:
    return _STATUS_OUTCOMES.get(text_of(status))


def read_output(output: object, from_event: Outcome | None) -> tuple[str, Outcome]:
    """The printed text and how the call ended; ``from_event`` is what Codex noted of it elsewhere."""
    text, success = _plain(output)
    if _ABORTED.match(text) or text.startswith(_REJECTIONS):
        return text, "interrupted"
    body, exit_code, running = _unwrapped(text)
    if exit_code is not None:
        return (body, "ok") if exit_code == 0 else (f"Exit code {exit_code}\n{body}", "error")
    if running:
        return body, "unknown"
    if from_event is not None:
        return body, from_event
    failed = success is False or text.startswith(_REFUSALS)
    return body, "error" if failed else "ok"


def _plain(output: object) -> tuple[str, bool | None]:
    if isinstance(output, str):
        return output, None
    if isinstance(output, list):
        return joined(text_of(item.get("text")) for item in mappings_of(cast(list[object], output))), None
    fields = mapping_of(output)
    success = fields.get("success")
    text, _ = _plain(fields.get("content") or fields.get("content_items")) if fields else ("", None)
    return text, success if isinstance(success, bool) else None


def _unwrapped(text: str) -> tuple[str, int | None, bool]:
    if text.startswith('{"output":'):
        return _out_of_json(text)
    if not text.startswith(_ENVELOPE_STARTS):
        return text, None, False
    mark = text.find(_BODY_MARK, 0, _ENVELOPE_BYTES)
    head, body = (
        (text[:mark], text[mark + len(_BODY_MARK) :]) if mark >= 0 else (text[:_ENVELOPE_BYTES], text)
    )
    code = _EXIT_CODE.search(head)
    return body, _small(code[1]) if code else None, bool(_STILL_RUNNING.search(head))


def _out_of_json(text: str) -> tuple[str, int | None, bool]:
    try:
        fields: dict[str, Any] = mapping_of(orjson.loads(text))
    except (orjson.JSONDecodeError, RecursionError):
        return text, None, False
    code = mapping_of(fields.get("metadata")).get("exit_code")
    exact = code if isinstance(code, int) and not isinstance(code, bool) else None
    return text_of(fields.get("output")), exact, False


def _small(digits: str) -> int:
    return int(digits[:12])
