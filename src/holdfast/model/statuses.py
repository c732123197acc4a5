"""The states of workflows and of tasks, and which may follow which.

Standard library only: commands that only look read these without loading the values.
"""

from __future__ import annotations

from typing import Literal

WorkflowStatus = Literal["pending", "in_progress", "blocked", "paused", "completed", "failed", "cancelled"]

VALID_TRANSITIONS: dict[WorkflowStatus, frozenset[WorkflowStatus]] = {
    "pending": frozenset({"in_progress", "cancelled"}),
    "in_progress": frozenset({"blocked", "paused", "completed", "failed", "cancelled"}),
    "blocked": frozenset({"in_progress", "failed", "cancelled"}),
    "paused": frozenset({"in_progress", "cancelled"}),
    "completed": frozenset(),
    "failed": frozenset({"in_progress", "cancelled"}),
    "cancelled": frozenset(),
}

ACTIVE: frozenset[WorkflowStatus] = frozenset({"in_progress", "blocked"})
"""A worktree holds at most one of these."""

RESUMABLE: frozenset[WorkflowStatus] = frozenset({"paused", "failed"})
"""The next session of these is another one, from where the last one stopped."""

OPEN: frozenset[WorkflowStatus] = frozenset({*ACTIVE, "pending", "paused"})

NEVER_RUN_AGAIN: frozenset[WorkflowStatus] = frozenset({"completed", "cancelled"})

TaskStatus = Literal["pending", "in_progress", "blocked", "completed", "failed"]

REMAINING: frozenset[TaskStatus] = frozenset({"pending", "in_progress", "blocked", "failed"})
