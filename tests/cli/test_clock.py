"""The clock was set back: what came last is still the last."""

from __future__ import annotations

from holdfast.docaudit.audit import Audit
from holdfast.docaudit.sessions import ItemSessions
from holdfast.undo.transactions import SideCar
from holdfast.workflows.plan import parse_plan
from holdfast.workflows.service import OrchestratorService
from server.program import ServerProgram

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


def test_several_folders_are_listed_in_the_order_of_their_changes(place: Place) -> None:
    places = [place.beside(name) for name in "abc"]
    names: list[str] = []
    for number, one in enumerate([*places, places[0]]):
        names.append(one.paused("tool_call", at=NOW - number * A_MONTH))
    assert [flow["worktree"] for flow in places[1].json("list", "--all")] == [
        str(one.project) for one in (places[0], places[2], places[1])
    ]
    listed = places[1].json("snapshot", "list", "--all")
    assert [line["session_id"] for line in listed] == names
    with ServerProgram(places[1]) as program:
        served = program.served()
        flows = served.get("/api/workflows")["workflows"]
        first = served.get("/api/workflows?limit=2")
        second = served.get(f"/api/workflows?limit=2&cursor={first['next_cursor']}")
        threads = served.get("/api/threads")["threads"]
        found = served.get("/api/snapshots?name=snap_")["snapshots"]
    paged = [*first["workflows"], *second["workflows"]]
    assert second["next_cursor"] is None
    assert [flow["id"] for flow in paged] == [flow["id"] for flow in flows]
    assert flows[0]["worktree"] == str(places[0].project)
    assert [thread["sessions"][0] for thread in threads] == names[::-1]
    assert [line["session_id"] for line in found] == names[::-1]


def test_the_last_change_of_files_is_the_one_that_is_undone(place: Place) -> None:
    for number, name in enumerate(("first", "second", "third", "first")):
        with SideCar(place.project, clock=lambda n=number: NOW - n * A_MONTH) as sidecar:
            if number < 3:
                sidecar.begin(name, transaction_id=name)
            sidecar.watch(name)
            (place.project / f"{name}-{number}").write_text(name)
            sidecar.record(name, "an edit")
    assert [one["id"] for one in place.json("tx", "list")] == ["first", "third", "second"]
    place.ok("tx", "undo", "last")
    assert not (place.project / "first-3").exists()
    assert (place.project / "first-0").exists()


def test_the_last_audit_is_the_one_that_is_offered(place: Place) -> None:
    (place.project / "a.py").write_text("def f():\n    return 1\n")
    started: list[str] = []
    for number in range(3):
        sessions = ItemSessions(place.project, "audit", ".", clock=lambda n=number: NOW - n * A_MONTH)
        started.append(Audit.start(sessions, {}).state.session_id)
    latest = ItemSessions(place.project, "audit", ".").manager.get_latest_session("audit")
    assert latest is not None
    assert latest.session_id == started[-1]
    listed = place.run("sessions", "list").out
    assert sorted(started, key=listed.index) == started[::-1]
