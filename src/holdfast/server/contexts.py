"""The context of a snapshot as the next session reads it, with its report and its price."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query

from holdfast.capture.drift import FolderDrift, find_workflow_drift
from holdfast.journal.cost import characters_for, reading_cost
from holdfast.model.gathered import Gathered
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow
from holdfast.resume.compiler import SMALLEST_BUDGET, Compiled, compile_context
from holdfast.resume.snapshots import ResumeContextCompiler
from holdfast.server.models import Cost

MOST_CHARACTERS = 1_000_000

MaxChars = Annotated[int, Query(ge=SMALLEST_BUDGET, le=MOST_CHARACTERS, description="Length at most")]
Budget = Annotated[int | None, Query(ge=100, le=1_000_000, description="Length at most, in tokens")]
Model = Annotated[str | None, Query(max_length=200, description="Who will read it, for the price")]


def characters(max_chars: int, budget: int | None) -> int:
    if budget is None:
        return max_chars
    return min(MOST_CHARACTERS, max(SMALLEST_BUDGET, characters_for(budget)))


def compiled_for(
    workflow: Workflow, snapshot: SessionSnapshot | None, max_chars: int
) -> tuple[Compiled, FolderDrift]:
    """As a session of that workflow would read it now, drift included."""
    drift = find_workflow_drift(workflow, snapshot)
    if snapshot is None:
        issue = f"{workflow.issue.id}: {workflow.issue.title}"
        return compile_context(Gathered(issue=issue), max_chars), drift
    compiler = ResumeContextCompiler(max_chars)
    return compiler.compile_with_report(snapshot, workflow.issue, drift=drift.sentences), drift


def context_fields(compiled: Compiled, drift: FolderDrift, model: str | None) -> dict[str, Any]:
    cost = reading_cost(len(compiled.text), model)
    return {
        "context": compiled.text,
        "fidelity": compiled.fidelity,
        "cost": Cost(**asdict(cost)),
        "drift": drift.sentences,
        "drift_state": drift.state,
    }
