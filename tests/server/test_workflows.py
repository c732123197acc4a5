"""Workflows over REST: what a dashboard does, from the first plan to the last snapshot."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.harness import Place
from holdfast.base.errors import HTTP_STATUSES, HoldfastError, kinds
from holdfast.client.service import RemoteService
from holdfast.model.task import Task, TaskDAG
from holdfast.project.settings import Settings
from holdfast.sessions.transitions import Core
from holdfast.store.sql import SqlStore
from holdfast.workflows.originals import UnconfirmedCommandsError
from store.samples import at, full_snapshot, full_workflow, new, next_of, numbered, snapshot, workflow

from .harness import Answer, Served
from .program import ServerProgram


def plan(*commands: str, **more: Any) -> dict[str, Any]:
    tasks = [
        {"id": f"t{number}", "run": command, "depends_on": [f"t{number - 1}"] if number > 1 else []}
        for number, command in enumerate(commands, start=1)
    ]
    return {"issue": {"id": "W", "title": "Work"}, "tasks": tasks, **more}


@pytest.fixture
def program(place: Place, any_database: str) -> Iterator[Served]:
    """A real server, which starts workers; on SQLite, and on PostgreSQL."""
    place.environment["HOLDFAST_DB"] = any_database
    with ServerProgram(place) as running:
        yield running.served()


WAITS = "touch began; while [ ! -e go ]; do sleep 0.01; done"


def test_create_watch_pause_resume_finish(program: Served, place: Place) -> None:
    with program.socket() as listener:
        listener.until("live")
        made = program.ask("POST", "/api/workflows", {"plan": plan(WAITS, "echo b >> log")})
        assert made.status == 201, made
        flow = made.data["id"]
        _until_entry(listener, "task_started")
        asked = program.ask("POST", f"/api/workflows/{flow}/pause", {"reason": "going home"})
        assert (asked.status, asked.data["status"]) == (202, "pausing")
        (place.project / "go").touch()
        paused = _until_entry(listener, "workflow_paused")
        assert paused["reason"] == "going home"
        preview = program.get(f"/api/workflows/{flow}/resume/preview?model=claude-sonnet-4")
        assert preview["snapshot"]["id"] == paused["snapshot_id"]
        assert preview["next_task_id"] == "t2"
        assert (preview["drift_state"], preview["drift"]) == ("same", [])
        assert "going home" in preview["context"]
        assert preview["cost"]["dollars"] > 0
        assert preview["fidelity"]["characters"] == len(preview["context"])
        resumed = program.ask("POST", f"/api/workflows/{flow}/resume", {"message": "go on"})
        assert (resumed.status, resumed.data["session_number"]) == (200, 2), resumed
        again = program.ask("POST", f"/api/workflows/{flow}/resume")
        assert (again.status, again.code) == (409, "session_already_running")
        while _until_entry(listener, "workflow_status_changed")["status"] != "completed":
            pass
    progress = program.get(f"/api/workflows/{flow}/progress")
    assert (progress["tasks_completed"], progress["workflow"]["status"]) == (2, "completed")
    assert (place.project / "log").read_text() == "b\n"


def test_of_two_servers_on_one_database_each_has_work_run(place: Place) -> None:
    with ServerProgram(place) as first, ServerProgram(place) as second:
        for number, server in enumerate((first.served(), second.served()), start=1):
            with server.socket() as listener:
                listener.until("live")
                made = server.ask("POST", "/api/workflows", {"plan": plan(f"echo {number} >> log")})
                assert made.status == 201, made
                while _until_entry(listener, "workflow_status_changed")["status"] != "completed":
                    pass
    assert (place.project / "log").read_text() == "1\n2\n"


def test_work_in_a_clone_has_no_folder_that_could_differ(program: Served, place: Place) -> None:
    place.git("commit", "--quiet", "--allow-empty", "-m", "start")
    place.git("clone", "--quiet", "--bare", ".", "../origin.git")
    steps = plan("true", "true", repository=str(place.root / "origin.git"), pause_every=1)
    with program.socket() as listener:
        listener.until("live")
        flow = program.ask("POST", "/api/workflows", {"plan": steps}).data["id"]
        _until_entry(listener, "workflow_paused")
        preview = program.get(f"/api/workflows/{flow}/resume/preview")
        assert (preview["drift_state"], preview["drift"]) == ("same", [])
        resumed = program.ask("POST", f"/api/workflows/{flow}/resume", {"strict": True})
        assert (resumed.status, resumed.data["drift_state"]) == (200, "same"), resumed
        while _until_entry(listener, "workflow_status_changed")["status"] != "completed":
            pass


def test_resuming_work_without_a_plan_hands_it_over_and_completes_nothing(
    program: Served, place: Place
) -> None:
    """Also through the command line, with the server in between."""
    manager = place.manager()
    manager.start_incremental_pause(0.9, {})
    manager.append_action("user_message", {"text": "never touch migrations/"}, 0.91)
    assert manager.finalize_pause()
    (flow,) = program.get("/api/workflows")["workflows"]
    for is_first in (True, False):
        taken = program.ask("POST", f"/api/workflows/{flow['id']}/resume", {"message": "go on"})
        assert (taken.status, taken.data["status"]) == (200, "taken_up"), taken
        assert (taken.data["taken_up_before"] is None) == is_first
    assert program.get(f"/api/workflows/{flow['id']}")["status"] == "paused"
    preview = program.get(f"/api/workflows/{flow['id']}/resume/preview")
    assert "never touch migrations/" in preview["context"]
    through = place.run("--server", program.url, "resume")
    assert (through.code, through.out) == (0, preview["context"])


def _until_entry(listener: Any, kind: str) -> dict[str, Any]:
    while True:
        message = listener.next()
        for event in message.get("events", ()):
            if event["entry"]["type"] == kind:
                return event["entry"]


def test_a_plan_with_secrets_runs_as_it_was_posted_and_no_answer_has_them(
    program: Served, place: Place
) -> None:
    secret = "hun" + "ter2" * 3
    command = f"export DB_PASSWORD={secret}; printf %s $DB_PASSWORD > {{}}; echo $DB_PASSWORD"
    given = plan(command.format("one"), command.format("two"), pause_every=1)
    answers = [program.ask("POST", "/api/workflows", {"plan": given})]
    flow = answers[0].data["id"]
    with program.socket(f"?since=0&workflow_id={flow}") as listener:
        paused = _until_entry(listener, "workflow_paused")
        wish = {"message": f"password={secret}"}
        answers.append(program.ask("POST", f"/api/workflows/{flow}/resume", wish))
        while _until_entry(listener, "workflow_status_changed")["status"] != "completed":
            pass
    for path in ("", "/tasks", "/progress", "/events", "/snapshots", "/resume/preview"):
        answers.append(program.ask("GET", f"/api/workflows/{flow}{path}"))
    answers.append(program.ask("GET", f"/api/snapshots/{paused['snapshot_id']}"))
    answers += [program.ask("GET", "/api/events"), program.ask("GET", "/api/workflows")]
    assert [answer for answer in answers if answer.status not in (200, 201, 409)] == []
    assert [answer for answer in answers if secret.encode() in answer.body] == []
    assert [(place.project / name).read_text() for name in ("one", "two")] == [secret] * 2


def test_a_pause_can_be_waited_for(program: Served, place: Place) -> None:
    flow = program.ask("POST", "/api/workflows", {"plan": plan("sleep 0.2", "sleep 60")}).data["id"]
    with program.socket(f"?since=0&workflow_id={flow}") as listener:
        _until_entry(listener, "task_started")
    answer = program.ask("POST", f"/api/workflows/{flow}/pause", {"wait_seconds": 30, "force_after": 0.5})
    assert (answer.status, answer.data["status"]) == (200, "paused"), answer
    snapshots = program.get(f"/api/workflows/{flow}/snapshots")["snapshots"]
    assert [line["id"] for line in snapshots] == [answer.data["snapshot_id"]]


def test_approve_reject_cancel(program: Served, place: Place) -> None:
    asks = "{id: a, run: 'true', depends_on: [b], approval: true}"
    yaml = f"issue: {{id: A, title: Ask}}\ntasks:\n  - {{id: b, run: echo built}}\n  - {asks}\n"
    for verb, status in (("reject", "failed"), ("approve", "completed"), ("cancel", "cancelled")):
        flow = program.ask("POST", "/api/workflows", {"plan": yaml}).data["id"]
        with program.socket(f"?since=0&workflow_id={flow}") as listener:
            while _until_entry(listener, "workflow_status_changed")["status"] != "blocked":
                pass
            assert program.get(f"/api/workflows/{flow}/progress")["waiting_for_approval"] == "a"
            asked = program.get(f"/api/workflows/{flow}/approval")
            assert (asked["task"]["id"], asked["task"]["run"], asked["driver"]) == ("a", "true", "shell")
            assert asked["worktree"] == str(place.project.resolve())
            before = {"task_id": "b", "status": "completed", "result": "built", "printed": "built"}
            assert (asked["after"], asked["after_left_out"]) == ([before], 0)
            for decision in ("approve", "reject"):
                other = program.ask("POST", f"/api/workflows/{flow}/{decision}", {"task_id": "b"})
                assert (other.status, other.code) == (409, "illegal_transition"), "what was not shown"
            assert program.ask("POST", f"/api/workflows/{flow}/{verb}").status == 200
            while _until_entry(listener, "workflow_status_changed")["status"] != status:
                pass
        gone = program.ask("GET", f"/api/workflows/{flow}/approval")
        assert (gone.status, gone.code) == (404, "not_found")


def test_commands_from_elsewhere_run_once_exactly_these_were_confirmed(
    served: Served, sql_store: SqlStore, settings: Settings
) -> None:
    def arrives(number: int, *tasks: Task) -> None:
        brought = snapshot(f"snap_{number}", number=number, task_dag=TaskDAG(tasks=tasks))
        flow = workflow(status="paused", worktree=str(settings.project), session_count=number)
        assert Core(sql_store).take_in(brought, flow)

    def resumed(**body: object) -> Answer:
        return served.ask("POST", "/api/workflows/wf_1/resume", body)

    first = Task(id="a", description="", run="touch a", until="test -e \x1b")
    arrives(1, first)
    refused = resumed()
    assert (refused.status, refused.code) == (409, "unconfirmed_commands")
    listed = refused.data["error"]["confirm"]
    assert listed["commands"] == ["touch a", "test -e \x1b"]
    arrives(2, first, Task(id="b", description="", prompt="remove b"))
    changed = resumed(accept_commands=listed["digest"])
    assert (changed.status, changed.code) == (409, "unconfirmed_commands")
    now = changed.data["error"]["confirm"]
    assert now["commands"] == [
        *listed["commands"],
        "remove b",
        "Mend the sail",
    ]  # its title
    for wrong in (None, "", "true", now["digest"][:-1]):
        assert resumed(accept_commands=wrong).code == "unconfirmed_commands"
    assert resumed(accept_commands=True).status == 422, "to what?"
    assert served.ask("POST", "/api/workflows/wf_1/skip", {"task_id": "a"}).code == "unconfirmed_commands"
    away = replace(settings, server=served.url, server_token=served.token)
    with RemoteService(away) as client, pytest.raises(UnconfirmedCommandsError, match="touch a; test -e"):
        client.resume_workflow("wf_1")
    assert resumed(accept_commands=now["digest"]).data["status"] == "resumed"


def test_retry_and_skip(program: Served, place: Place) -> None:
    wanted = plan("test -e ok", "echo torn; exit 5", "echo c >> log") | {"retries": 1, "retry_delay": 0}
    flow = program.ask("POST", "/api/workflows", {"plan": wanted}).data["id"]

    def wait_for(status: str) -> None:
        with program.socket(f"?since=0&workflow_id={flow}") as listener:
            while program.get(f"/api/workflows/{flow}/progress")["workflow"]["status"] != status:
                listener.next()

    wait_for("failed")
    assert program.get(f"/api/workflows/{flow}/progress")["failed_task_ids"] == ["t1"]
    assert program.get(f"/api/workflows/{flow}/tasks")["tasks"][0]["attempts"] == 2
    refused = program.ask("POST", f"/api/workflows/{flow}/retry", {"task_id": "t2"})
    assert (refused.status, refused.code) == (409, "illegal_transition")
    (place.project / "ok").touch()
    answer = program.ask("POST", f"/api/workflows/{flow}/retry", {"task_id": "t1"})
    assert (answer.status, answer.data["status"]) == (200, "resumed"), answer
    wait_for("failed")
    told = program.get(f"/api/workflows/{flow}/output?task_id=t2")
    assert told == {"attempt": 2, "text": "torn\n", "next": 5, "is_running": False}
    answer = program.ask("POST", f"/api/workflows/{flow}/skip", {"task_id": "t2", "reason": "later"})
    assert (answer.status, answer.data["status"]) == (200, "skipped"), answer
    wait_for("completed")
    copied = program.ask("POST", f"/api/workflows/{flow}/fork", {"task_id": "t3"})
    assert (copied.status, copied.data["status"]) == (201, "paused"), copied
    events = program.get(f"/api/workflows/{copied.data['id']}/events")["events"]
    told = next(event["entry"] for event in events if event["entry"]["type"] == "workflow_forked")
    assert (told["origin_id"], told["task_id"]) == (flow, "t3")
    settings = replace(place.settings(), server=program.url, server_token=program.token)
    with RemoteService(settings) as away:
        second = away.fork(copied.data["id"], "t1", worktree=place.project)
        assert away.tasks(second.id).count("pending") == 3
    missing = program.ask("POST", f"/api/workflows/{flow}/fork", {"task_id": "t9"})
    assert (missing.status, missing.code) == (404, "not_found")


BAD_PLANS: dict[str, tuple[Any, str]] = {
    "circle": (
        plan("true") | {"tasks": [{"id": "a", "run": "x", "depends_on": ["a"]}]},
        "circular dependency",
    ),
    "doubled": (plan("true") | {"tasks": [{"id": "a", "run": "x"}] * 2}, "duplicate task id"),
    "unknown": (plan("true") | {"tasks": [{"id": "a", "run": "x", "depends_on": ["b"]}]}, "does not exist"),
    "NUL": (plan("true") | {"tasks": [{"id": "a\0b", "run": "x"}]}, "contains a NUL character"),
    "no command": (plan("true") | {"tasks": [{"id": "a"}]}, "no command"),
    "no such driver": (
        plan("true") | {"driver": "magic", "tasks": [{"id": "a", "prompt": "x"}]},
        "no such driver",
    ),
    "line of a text": ("issue: {id: a, title: b}\ntasks:\n  - {id: a, runs: x}\n", "plan:3: "),
}


@pytest.mark.parametrize(("given", "error"), BAD_PLANS.values(), ids=BAD_PLANS.keys())
def test_bad_plans_start_nothing(served: Served, given: Any, error: str) -> None:
    answer = served.ask("POST", "/api/workflows", {"plan": given})
    assert (answer.status, answer.code) == (422, "invalid_input")
    assert error in answer.data["error"]["message"]
    assert served.get("/api/workflows")["workflows"] == []


def test_pages_filter_and_search(served: Served, sql_store: SqlStore) -> None:
    for number in range(25):
        status = "paused" if number % 5 == 0 else "completed"
        sql_store.apply(new(workflow(f"wf_{number:02}", status=status, updated_at=at(number // 2))))
    whole = [flow["id"] for flow in served.get("/api/workflows?limit=500")["workflows"]]
    assert len(whole) == 25
    paged: list[str] = []
    cursor = ""
    while True:
        page = served.get(f"/api/workflows?limit=4{cursor}")
        paged += [flow["id"] for flow in page["workflows"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert paged == whole
    paused = served.get("/api/workflows?status=paused&status=failed")["workflows"]
    assert {flow["id"] for flow in paused} == {f"wf_{number:02}" for number in range(0, 25, 5)}
    assert [flow["id"] for flow in served.get("/api/workflows?search=WF_07")["workflows"]] == ["wf_07"]
    assert served.ask("GET", "/api/workflows?status=odd").status == 422
    assert served.ask("GET", "/api/workflows?cursor=AAAA").code == "invalid_input"


def test_what_was_read_is_told_again_only_while_it_is_true(served: Served, sql_store: SqlStore) -> None:
    flow = workflow()
    sql_store.apply(new(flow))
    for number in range(1, 6):
        assert served.get("/api/workflows/wf_1")["revision"] == number
        assert served.get("/api/workflows")["workflows"][0]["revision"] == number
        change = next_of(flow, numbered(number))
        sql_store.apply(change)  # by another connection, as a worker would
        flow = change.workflow


def test_tasks_are_counted_where_that_is_asked_for(served: Served, sql_store: SqlStore) -> None:
    sql_store.apply(new(workflow("wf_plain")))
    made = served.ask("POST", "/api/workflows", {"plan": plan("true", "false")}).data["id"]
    assert served.get("/api/workflows")["tasks"] is None
    assert served.get("/api/workflows?tasks=true")["tasks"] == {
        "wf_plain": {"total": 0, "completed": 0, "failed": 0},
        made: {"total": 2, "completed": 0, "failed": 0},
    }
    progress = served.get(f"/api/workflows/{made}/progress")
    assert (progress["tasks_total"], progress["tasks_completed"], progress["tasks_failed"]) == (2, 0, 0)
    assert served.ask("GET", "/api/workflows?tasks=maybe").status == 422


def test_answers_are_compressed_for_who_can_read_them(served: Served, sql_store: SqlStore) -> None:
    for number in range(5):
        sql_store.apply(new(workflow(f"wf_{number}")))
    packed = served.ask("GET", "/api/workflows", headers={"Accept-Encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["vary"]
    plain = served.ask("GET", "/api/workflows")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 3


def test_what_a_program_has_already_is_not_sent_again(served: Served, sql_store: SqlStore) -> None:
    flow = workflow()
    sql_store.apply(new(flow))
    for address in ("/api/workflows/wf_1", "/api/workflows"):
        first = served.ask("GET", address)
        tag = first.headers["etag"]
        again = served.ask("GET", address, headers={"If-None-Match": f'"other", W/{tag}'})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    change = next_of(flow, numbered(1))
    sql_store.apply(change)
    now = served.ask("GET", "/api/workflows/wf_1", headers={"If-None-Match": tag})
    assert (now.status, now.data["revision"]) == (200, 2)


@pytest.fixture
def stored(served: Served, sql_store: SqlStore) -> Served:
    sql_store.apply(new(full_workflow(), save=full_snapshot()))
    sql_store.apply(new(workflow("wf_2"), save=snapshot("snap_2", of="wf_2")))
    return served


KINDS = ("decisions", "errors", "reviewer-feedback", "git-changes", "tasks", "tests", "journal", "context")


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_a_kind(stored: Served, kind: str) -> None:
    path = "/api/workflows/wf_1/snapshots/snap_1"
    whole = stored.get(path)
    found = stored.get(f"{path}/{kind}")
    same = {
        "decisions": whole["decisions"],
        "errors": whole["errors"],
        "reviewer-feedback": whole["reviewer_feedback"],
        "tasks": whole["task_dag"]["tasks"],
        "tests": whole["test_state"],
    }
    assert found == same.get(kind, found)
    assert found
    foreign = stored.ask("GET", f"/api/workflows/wf_2/snapshots/snap_1/{kind}")
    assert (foreign.status, foreign.code) == (404, "not_found")


def test_a_resting_workflow_tells_the_usage_of_its_last_session(stored: Served) -> None:
    progress = stored.get(f"/api/workflows/{full_workflow().id}/progress")
    assert progress["workflow"]["status"] == "blocked"
    assert progress["usage"]["tokens_used"] == full_snapshot().usage.tokens_used > 0


def test_diff_find_delete(stored: Served) -> None:
    assert stored.get("/api/snapshots?name=snap_")["snapshots"][0]["workflow_id"] in ("wf_1", "wf_2")
    changes = stored.get("/api/snapshots/diff?before=snap_1&after=snap_2")
    assert changes["facts"]
    assert stored.ask("DELETE", "/api/workflows/wf_2/snapshots/snap_1").status == 404
    assert stored.ask("DELETE", "/api/workflows/wf_2/snapshots/snap_2").data["status"] == "deleted"
    assert stored.ask("GET", "/api/snapshots/snap_2").status == 404


def test_sessions_of_this_machine(stored: Served, tmp_path: Path) -> None:
    assert stored.get("/api/sessions")["sessions"] == []
    assert stored.ask("GET", "/api/sessions?project=relative").status == 422
    assert stored.ask("GET", "/api/sessions/none/context").code == "not_found"


def test_threads(stored: Served) -> None:
    found = {one["id"]: one for one in stored.get("/api/threads")["threads"]}
    thread = found[full_workflow().id]
    assert (thread["issue"], thread["status"], thread["state"]) == ("7", "open", "blocked, 2 tasks left")
    assert stored.get("/api/threads?worktree=/nowhere")["threads"] == []


def test_about(stored: Served) -> None:
    assert stored.get("/api/health")["status"] == "ok"
    told = stored.get("/api/settings")
    assert told["project"] in stored.get("/api/projects")["projects"]
    assert "token" not in str(told)
    assert stored.get("/api/stats")["actions"] == 0
    counted = stored.get("/api/stats/workflows")
    assert (counted["pauses"], counted["newest"]) == ({}, 500)


def test_every_error_of_ours_has_a_status_and_a_name() -> None:
    assert set(HTTP_STATUSES) <= set(kinds().values())
    assert kinds()["session_already_running"].__name__ == "SessionAlreadyRunningError"
    assert kinds()["holdfast"] is HoldfastError
