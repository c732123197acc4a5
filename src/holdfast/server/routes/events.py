"""What happened, in the one order of all changes; and what of it is a curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from holdfast.journal.cost import seconds_until_full
from holdfast.model.entry import Event, UsageReported, WorkflowResumed
from holdfast.server.desk import AtDesk, Desk
from holdfast.server.models import EventPage, UsageHistory, UsageSample
from holdfast.server.paging import Since
from holdfast.server.problems import documented

router = APIRouter(tags=["events"])

EventLimit = Annotated[int, Query(ge=1, le=2_000, description="How many at most")]
_FORECAST_SAMPLES = 200


@router.get("/api/events", responses=documented(422))
def list_events(desk: AtDesk, since: Since = 0, limit: EventLimit = 500) -> EventPage:
    """Of all workflows; `/ws/events` brings the same as it happens."""
    return _page(desk, None, since, limit)


@router.get("/api/workflows/{workflow_id}/events", responses=documented(404, 422))
def list_workflow_events(
    workflow_id: str, desk: AtDesk, since: Since = 0, limit: EventLimit = 500
) -> EventPage:
    desk.store.workflow(workflow_id)
    return _page(desk, workflow_id, since, limit)


def _page(desk: Desk, workflow_id: str | None, since: int, limit: int) -> EventPage:
    oldest, newest = desk.store.event_range()
    found = desk.store.events(workflow_id=workflow_id, since=since, limit=limit + 1)
    page = tuple(found[:limit])
    more = len(found) > limit
    return EventPage(events=page, next_since=page[-1].seq if more else None, oldest=oldest, newest=newest)


@router.get("/api/workflows/{workflow_id}/usage", responses=documented(404, 422))
def get_usage(workflow_id: str, desk: AtDesk) -> UsageHistory:
    """How the context window filled, session by session, and when it will be full at this pace."""
    workflow = desk.store.workflow(workflow_id)
    events = desk.store.events(workflow_id=workflow_id, types=["usage_reported", "workflow_resumed"])
    samples = tuple(_samples(events))
    latest = [one for one in samples if one.session_number == workflow.session_count]
    filling = [
        (one.at.timestamp(), one.context_utilization)
        for one in latest[-_FORECAST_SAMPLES:]
        if one.context_utilization is not None
    ]
    limit = workflow.options.exhaustion_at
    return UsageHistory(
        workflow_id=workflow_id,
        samples=samples,
        exhaustion_at=limit,
        seconds_until_pause=seconds_until_full(filling, full=limit),
        seconds_until_full=seconds_until_full(filling),
    )


def _samples(events: Sequence[Event]) -> list[UsageSample]:
    found: list[UsageSample] = []
    session = 1
    for event in events:
        if isinstance(event.entry, WorkflowResumed):
            session = event.entry.session_number
        elif isinstance(event.entry, UsageReported):
            usage = event.entry.usage
            found.append(
                UsageSample(
                    at=event.at,
                    seq=event.seq,
                    session_number=session,
                    context_utilization=usage.context_utilization,
                    tokens_used=usage.tokens_used,
                    cost_usd=usage.cost_usd,
                )
            )
    return found
