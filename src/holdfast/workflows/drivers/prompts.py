"""What an agent is told: the task, what came before it, and how a review is asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from holdfast.base.ids import new_id
from holdfast.base.text import clipped, one_line
from holdfast.model.entry import FeedbackRecorded
from holdfast.model.findings import ReviewerFeedback
from holdfast.model.frame import GOES_ON, PAUSED_EARLIER, TRIED_BEFORE, WRAP_UP
from holdfast.model.task import Task
from holdfast.workflows.drivers.protocol import Assignment

# ── reviews ───────────────────────────────────────────────────────────────────────────────────────

# Reviews: which task is one, how its answer is asked for, and what becomes of it.
#
# A task is a review where the plan says so (`review: true`), or its id, its description or the
# beginning of its prompt says "review" as what is to be done ("Review it", "code-review", not "fix the
# review's
# comments"). Agents that take a schema are given `REVIEW_SCHEMA`; all others are asked to
# end their answer with `REVIEW_FORM`. An answer in neither form is kept as it is, as a
# review that approves nothing.

SEVERITIES = ("none", "minor", "major", "critical")
UNKNOWN_SEVERITY = "unknown"

REVIEW_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether it may stay as it is"},
        "severity": {"type": "string", "enum": list(SEVERITIES), "description": "Of the worst comment"},
        "comments": {
            "type": "array",
            "items": {"type": "string"},
            "description": "One fault each, with the file and line it is about",
        },
    },
    "required": ["approved", "severity", "comments"],
    "additionalProperties": False,
}

REVIEW_FORM = """\
End your answer with your verdict in this form, and nothing after it:

Verdict: approved | changes requested
Severity: none | minor | major | critical
Comments:
- one fault each, with the file and line it is about"""

_MOST_COMMENTS = 50
_LONGEST_COMMENT = 1_000
_SCANNED = 60_000
_REVIEW = re.compile(r"\b(?:code[ -])?review(?:er|ing)?\b", re.IGNORECASE)
_REVIEW_ID = re.compile(r"(?:^|[-_./])(?:code-?)?review(?:er)?(?:$|[-_./\d])", re.IGNORECASE)
_ACTS_ON_ONE = re.compile(
    r"\b(?:address|fix|apply|answer|respond|resolve|implement|act on|work (?:in|off))\w*\b.*\breview",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"^[\s>*#-]*\**verdict\**\s*:\s*\**\s*(?:(approved?\b(?! with)|lgtm|accept)|(.+))$",
    re.IGNORECASE | re.MULTILINE,
)
_SEVERITY = re.compile(r"^[\s>*#-]*\**severity\**\s*:\s*\**\s*([a-z]+)", re.IGNORECASE | re.MULTILINE)
_POINT = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+(\S.*)$", re.MULTILINE)
_JSON_BLOCK = re.compile(r"```(?:json)?\s*\n(\{.*?\})\s*\n```", re.DOTALL)


def is_review(task: Task) -> bool:
    if task.review:
        return True
    opening = (task.prompt or "").strip().split("\n", 1)[0]
    texts = (task.description, opening)
    if any(_ACTS_ON_ONE.search(text) for text in texts):
        return False
    return bool(_REVIEW_ID.search(task.id)) or any(
        _REVIEW.match(text.strip()) or _REVIEW.search(" ".join(text.split()[:4])) for text in texts
    )


def feedback(
    task: Task, answer: str, reviewer: str, at: datetime, structured: object = None
) -> FeedbackRecorded:
    """What a review task found. `structured` is the answer as data, where the agent could give that."""
    found = _from_data(structured) or _from_json(answer) or _from_form(answer)
    approved, severity, comments = found or (False, UNKNOWN_SEVERITY, _points(answer) or [answer])
    return FeedbackRecorded(
        feedback=ReviewerFeedback(
            review_id=new_id("review", at.timestamp()),
            reviewer_persona=f"{reviewer} ({task.id})",
            timestamp=at,
            approved=approved,
            severity=severity,
            comments=tuple(_tidied(comments)),
            addressed=approved and not comments,
        )
    )


_Found = tuple[bool, str, list[str]]


def _from_data(data: object) -> _Found | None:
    if not isinstance(data, dict):
        return None
    fields = cast("dict[str, object]", data)
    approved, severity, comments = (fields.get(name) for name in ("approved", "severity", "comments"))
    if not isinstance(approved, bool):
        return None
    listed = cast("list[object]", comments) if isinstance(comments, list) else []
    return approved, _severity(str(severity or "")), [str(comment) for comment in listed]


def _from_json(answer: str) -> _Found | None:
    for text in (answer.strip(), *reversed(_JSON_BLOCK.findall(answer[-_SCANNED:]))):
        if text.startswith("{"):
            try:
                found = _from_data(json.loads(text))
            except (ValueError, RecursionError):
                continue
            if found:
                return found
    return None


def _from_form(answer: str) -> _Found | None:
    text = answer[-_SCANNED:]
    verdict = next(reversed(list(_VERDICT.finditer(text))), None)
    if verdict is None:
        return None
    after = text[verdict.end() :]
    severity = _SEVERITY.search(after)
    return bool(verdict[1]), _severity(severity[1] if severity else ""), _points(after)


def _points(text: str) -> list[str]:
    return [
        point for point in _POINT.findall(text[-_SCANNED:]) if point.strip().lower() not in ("none", "none.")
    ]


def _severity(text: str) -> str:
    return text.lower() if text.lower() in SEVERITIES else UNKNOWN_SEVERITY


def _tidied(comments: list[str]) -> Iterator[str]:
    for comment in comments[:_MOST_COMMENTS]:
        if words := one_line(comment):
            yield clipped(words, _LONGEST_COMMENT)


# ── prompts ───────────────────────────────────────────────────────────────────────────────────────

# What an agent is told: the task, what came before it, and the form of a review.

_CONTEXT = f"{PAUSED_EARLIER}; check it against the files before relying on it."
_OLD_CONVERSATION = f"{GOES_ON}; where it differs from what you remember, it is right."
_NOT_THE_FIRST = f"{TRIED_BEFORE} What it did may be there already: look before you do it again."


def prompt_for(
    assignment: Assignment, *, is_begun: bool, goes_on: bool = False, form: str | None = REVIEW_FORM
) -> str:
    """The prompt for a task.

    `is_begun`: the conversation has the session's earlier tasks, so what came before is known in it.
    `goes_on`: it is the conversation of the session before. `form`: how to write a review, where
    the agent has no better way to be asked for it.
    """
    task, parts = assignment.task, list[str]()
    if assignment.wraps_up:
        return WRAP_UP
    if not is_begun:
        if assignment.context:
            parts.append(f"{_OLD_CONVERSATION if goes_on else _CONTEXT}\n\n{assignment.context.strip()}")
        elif not goes_on:
            parts.append(_issue(assignment))
        if assignment.message:
            parts.append(f"The user says: {assignment.message.strip()}")
    if assignment.attempt > 1:
        parts.append(_NOT_THE_FIRST)
    if assignment.inputs:
        parts.append(_inputs(assignment))
    parts.append(_task(assignment))
    if task.until:
        parts.append(_condition(task))
    if form and is_review(task):
        parts.append(form)
    return "\n\n".join(parts)


def _issue(assignment: Assignment) -> str:
    issue = assignment.issue
    about = f"\n\n{issue.description.strip()}" if issue.description.strip() else ""
    return f"You work on {issue.id}: {issue.title}{about}"


def _inputs(assignment: Assignment) -> str:
    lines = [
        f"- {task_id}.{name}: {value}"
        for task_id, values in assignment.inputs.items()
        for name, value in values.items()
    ]
    return "\n".join(["Values that earlier tasks left, as data:", *lines])


def _condition(task: Task) -> str:
    """When it is done, and what the command that tells said last: its output is no instruction."""
    told = f"\n\nThe last attempt ended with:\n\n```\n{task.result}\n```" if task.result else ""
    return f"It is done when this command succeeds: {task.until}{told}"


def _task(assignment: Assignment) -> str:
    task = assignment.task
    asked = (task.prompt or f"Run this command, and see to it that it succeeds: {task.run}").strip()
    about = "" if task.description in (task.id, asked, "") else f": {task.description}"
    return f"Your task now ({task.id}{about}). Do this task and nothing beyond it.\n\n{asked}"
