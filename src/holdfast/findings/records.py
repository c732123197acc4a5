"""What was gathered, as the values a snapshot stores: decisions and errors with their evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime

from holdfast.model.findings import Decision, ErrorRecord, Evidence, ReviewerFeedback, TestPhase, TestState
from holdfast.model.gathered import Failure, Gathered, Review, TestRun


def decisions(found: Gathered, source: str, now: datetime) -> Iterator[Decision]:
    for choice in found.choices:
        yield Decision(
            id=_id("dec", choice.description),
            timestamp=now,
            decision_type=choice.kind,
            description=choice.description,
            rationale=choice.rationale,
            evidence=(Evidence(source=source, messages=(choice.index,)),),
        )


def errors(found: Gathered, source: str, now: datetime) -> Iterator[ErrorRecord]:
    for failure in found.failures:
        if not failure.lookup:
            yield ErrorRecord(
                id=_id("err", f"{failure.doing}\0{failure.message}"),
                timestamp=now,
                error_type=_kind(failure),
                error_message=failure.message,
                context=failure.doing or None,
                resolution=failure.resolution,
                resolution_notes=failure.notes or None,
                evidence=(Evidence(source=source, messages=(failure.index,)),),
            )


def test_state(found: Gathered, now: datetime) -> TestState | None:
    run = found.tests
    if run is None:
        return None
    return TestState(
        phase=_phase(run),
        failing_tests=run.failing,
        last_test_run_at=now,
        last_test_command=run.command,
        last_test_output_summary=run.summary or None,
    )


test_state.__test__ = False  # type: ignore[attr-defined]  # no test, whatever its name says


def feedback(found: Gathered, now: datetime) -> tuple[ReviewerFeedback, ...] | None:
    return tuple(_feedback(review, now) for review in found.reviews) or None


def _feedback(review: Review, now: datetime) -> ReviewerFeedback:
    return ReviewerFeedback(
        review_id=_id("rev", f"{review.reviewer}\0{review.index}"),
        reviewer_persona=review.reviewer,
        timestamp=now,
        approved=not review.comments,
        severity="comment",
        comments=review.comments,
        addressed=review.addressed,
    )


def _phase(run: TestRun) -> TestPhase:
    if not run.passed:
        return "red"
    if run.unsure:
        return "unknown"
    return "refactor" if run.edited_since else "green"


def _kind(failure: Failure) -> str:
    """The exception's name where the message begins with one, else what was being done."""
    head = failure.message.partition(":")[0].strip()
    return head if head.isidentifier() and head[:1].isupper() else failure.doing.partition(" ")[0] or "error"


def _id(prefix: str, text: str) -> str:
    """The same finding in two passes over a session has the same id."""
    return f"{prefix}_{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"
