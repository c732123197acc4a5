"""A review task's result as feedback that the next session is told of."""

from __future__ import annotations

import re
from datetime import datetime

from holdfast.model.entry import FeedbackRecorded
from holdfast.model.findings import ReviewerFeedback
from holdfast.model.task import Task
from holdfast.text import clipped, one_line

_REFUSED = re.compile(
    r"\b(?:not approved?|changes? (?:are )?(?:requested|required|needed)|request(?:ing|s)? changes"
    r"|must be fixed|must fix|blocking|rejected?)\b",
    re.IGNORECASE,
)
_APPROVED = re.compile(
    r"\b(?:approved?|lgtm|looks good|no (?:further )?(?:issues|comments|changes|findings))\b", re.IGNORECASE
)
_COMMENT = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.+)$", re.MULTILINE)
_MOST_COMMENTS = 30


def feedback_of(task: Task, result: str | None, reviewer: str, now: datetime) -> FeedbackRecorded:
    """Approved where it says so and asks for nothing; its comments are the points of its lists."""
    text = result or ""
    comments = tuple(clipped(one_line(point), 300) for point in _COMMENT.findall(text)[:_MOST_COMMENTS])
    approved = bool(_APPROVED.search(text)) and not _REFUSED.search(text)
    if not comments and not approved and text.strip():
        comments = (clipped(one_line(text), 300),)
    return FeedbackRecorded(
        feedback=ReviewerFeedback(
            review_id=f"{task.id}-{task.attempts}",
            reviewer_persona=reviewer,
            timestamp=now,
            approved=approved,
            severity="info" if approved else "changes-requested",
            comments=comments,
        )
    )
