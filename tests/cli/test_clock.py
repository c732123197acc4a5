"""The clock was set back: what came last is still the last."""

from __future__ import annotations

from holdfast.workflows.plan import parse_plan
from holdfast.workflows.service import OrchestratorService

from .harness import Place

NOW = 1_767_700_800.0
A_MONTH = 30 * 86_400.0


def test_the_last_pause_is_the_latest_whatever_the_clock_said(place: Place) -> None:
    names = [place.paused("tool_call", at=NOW - n * A_MONTH) for n in range(3)]
    assert place.json("status")["workflow"]["latest_snapshot"] == names[-1]
    assert [line["session_id"] for line in place.json("snapshot", "list")] == names
    assert place.json("snapshot", "show", "latest")["session_id"] == names[-1]
    threads = place.json("threads")
    assert names[-1] in str(threads[0])


def test_a_new_workflow_of_the_folder_is_the_one_meant(place: Place) -> None:
    ids: list[str] = []
    for number in range(3):
        plan = parse_plan(f"issue: {{id: W{number}, title: Work}}\ntasks: [{{id: t, run: 'true'}}]\n")
        with OrchestratorService(place.settings(), clock=lambda n=number: NOW - n * A_MONTH) as service:
            ids.append(service.start(plan).id)
            service.cancel(ids[-1])
    listed = [flow["id"] for flow in place.json("list")]
    assert listed == ids[::-1]
    assert place.json("status")["workflow"]["id"] == ids[-1]
