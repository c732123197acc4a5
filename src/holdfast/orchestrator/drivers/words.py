"""What an agent is told: the task, what came before it, and the form of a review."""

from __future__ import annotations

from holdfast.model.frame import GOES_ON, PAUSED_EARLIER, TRIED_BEFORE
from holdfast.orchestrator.drivers.protocol import Assignment
from holdfast.orchestrator.drivers.review import REVIEW_FORM, is_review

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
    if not is_begun:
        if assignment.context:
            parts.append(f"{_OLD_CONVERSATION if goes_on else _CONTEXT}\n\n{assignment.context.strip()}")
        elif not goes_on:
            parts.append(_issue(assignment))
        if assignment.message:
            parts.append(f"The user says: {assignment.message.strip()}")
    if assignment.attempt > 1:
        parts.append(_NOT_THE_FIRST)
    parts.append(_task(assignment))
    if form and is_review(task):
        parts.append(form)
    return "\n\n".join(parts)


def _issue(assignment: Assignment) -> str:
    issue = assignment.issue
    about = f"\n\n{issue.description.strip()}" if issue.description.strip() else ""
    return f"You work on {issue.id}: {issue.title}{about}"


def _task(assignment: Assignment) -> str:
    task = assignment.task
    asked = (task.prompt or f"Run this command, and see to it that it succeeds: {task.run}").strip()
    about = "" if task.description in (task.id, asked, "") else f": {task.description}"
    return f"Your task now ({task.id}{about}). Do this task and nothing beyond it.\n\n{asked}"
