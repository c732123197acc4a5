"""What was learned on the way: decisions and why, errors and how they ended, tests, reviews."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from holdfast.model.base import Value

DecisionType = Literal["approach", "library", "architecture", "workaround", "skip", "clarification"]
Resolution = Literal["fixed", "workaround", "deferred", "unresolved"]
TestPhase = Literal["red", "green", "refactor", "unknown"]


class Evidence(Value):
    """The messages that support a finding, so that a reader can check it."""

    source: str = Field(description="The transcript or journal it was found in")
    messages: tuple[int, ...] = Field(description="Positions of the messages in that source")
    quote: str | None = None


class Decision(Value):
    id: str
    timestamp: AwareDatetime
    task_id: str | None = None
    decision_type: DecisionType
    description: str = Field(min_length=1)
    rationale: str
    alternatives_considered: tuple[str, ...] | None = None
    evidence: tuple[Evidence, ...] = ()


class ErrorRecord(Value):
    id: str
    timestamp: AwareDatetime
    task_id: str | None = None
    error_type: str
    error_message: str
    context: str | None = None
    resolution: Resolution
    resolution_notes: str | None = None
    evidence: tuple[Evidence, ...] = ()


class Observation(Value):
    """One sentence on what cannot be read off a record by rule, and the messages it rests on."""

    text: str = Field(min_length=1)
    evidence: tuple[Evidence, ...] = ()


class ModelReading(Value):
    """What a model made of a session: its word, not the record's."""

    now: Observation | None = Field(default=None, description="Where the work stands, and the next action")
    causes: tuple[Observation, ...] = Field(default=(), description="Root causes of what went wrong")
    edits: tuple[Observation, ...] = Field(default=(), description="What uncommitted edits do and lack")
    answers: tuple[Observation, ...] = Field(default=(), description="What the user's short answers meant")
    settled: tuple[Observation, ...] = Field(
        default=(), description="Errors that rules left open and the model saw settled, and by what"
    )


class ReviewerFeedback(Value):
    review_id: str
    reviewer_persona: str
    timestamp: AwareDatetime
    approved: bool
    severity: str
    comments: tuple[str, ...]
    addressed: bool = False


class TestState(Value):
    """State of a test-first cycle: a failing test may be intended."""

    __test__ = False  # not a test class, whatever its name makes pytest think

    phase: TestPhase
    failing_tests: tuple[str, ...] = ()
    expected_failures: tuple[str, ...] = ()
    last_test_run_at: AwareDatetime | None = None
    last_test_command: str | None = None
    last_test_output_summary: str | None = None
