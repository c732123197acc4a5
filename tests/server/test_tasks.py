"""What the page of a task asks for: attempts, cost, changed files, the agent's conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cli.harness import Place
from holdfast.model.entry import (
    AgentSessionReported,
    Entry,
    TaskFinished,
    TaskStarted,
    UsageReported,
    WorkflowCreated,
    WorkflowPaused,
    WorkflowResumed,
)
from holdfast.model.task import Task, TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.project.settings import Settings
from holdfast.store.sql import SqlStore
from holdfast.undo.state import MANIFEST_SCHEMA, LedgerEntry
from holdfast.workflows.file_recorder import is_of_task
from store.samples import NOON, new, next_of, workflow

from .harness import Served
from .program import ServerProgram

SESSION = "0b8f5c1e-6a4f-4a53-9f0e-0d6f3a1c2b4d"
KEY = "sk-ant-api03-" + "a1B2" * 20


@pytest.fixture
def program(place: Place) -> Iterator[Served]:
    with ServerProgram(place) as running:
        yield running.served()


def used(dollars: float) -> UsageReported:
    return UsageReported(usage=UsageMetrics(tokens_used=100, cost_usd=dollars))


def ended(
    task_id: str, attempt: int = 1, outcome: str = "completed", tokens: int | None = None
) -> TaskFinished:
    return TaskFinished.model_validate(
        {"task_id": task_id, "attempt": attempt, "outcome": outcome, "tokens": tokens, "seconds": 2.0}
    )


def write_conversation(home: Path, project: Path, said: list[tuple[int, str, object]]) -> None:
    """As Claude Code keeps one: second after noon, who, content."""
    lines = [
        {
            "type": who,
            "sessionId": SESSION,
            "cwd": str(project),
            "timestamp": f"2026-01-06T12:00:{second:02}Z",
            "uuid": f"m{number}",
            "message": {"role": who, "content": content},
        }
        for number, (second, who, content) in enumerate(said)
    ]
    folder = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folder.mkdir(parents=True)
    (folder / f"{SESSION}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def worked(served: Served, sql_store: SqlStore, settings: Settings) -> Served:
    """Two tasks side by side, a pause, then the first one again and alone."""
    tasks = TaskDAG(
        tasks=(
            Task(id="a", description="a", prompt="Do it", driver="claude-code"),
            Task(id="b", description="b", prompt="And that", driver="claude-code", depends_on=("a",)),
        )
    )
    flow = workflow(worktree=str(settings.project), status="in_progress")
    begun: list[Entry] = [
        WorkflowCreated(issue=flow.issue, worktree=flow.worktree, task_dag=tasks, runs=True),
        TaskStarted(task_id="a", attempt=1),
        TaskStarted(task_id="b", attempt=1),
        ended("a", 1, "failed", 60),
        used(1.0),
        ended("b", 1, "interrupted", 40),
        used(1.5),
        WorkflowPaused(snapshot_id="s", session_id="s", session_number=1, trigger="failure"),
    ]
    sql_store.apply(new(flow, *begun))
    again: list[Entry] = [
        WorkflowResumed(session_number=2),
        TaskStarted(task_id="a", attempt=2),
        AgentSessionReported(
            task_id="a", agent="claude", agent_session_id=SESSION
        ),  # as earlier versions did
    ]
    change = next_of(flow, *again, seconds=10)
    sql_store.apply(change)
    end: list[Entry] = [ended("a", 2, tokens=70), used(0.25), TaskStarted(task_id="b", attempt=2)]
    sql_store.apply(next_of(change.workflow, *end, seconds=10))
    return served


def test_attempts_with_what_each_cost(worked: Served) -> None:
    told = worked.get("/api/workflows/wf_1/task?task_id=a")
    first, second = told["attempts"]
    assert (first["number"], first["outcome"], first["tokens"], first["session_number"]) == (
        1,
        "failed",
        60,
        1,
    )
    assert first["cost_usd"] is None, "two tasks ran: nobody can tell whose cost it was"
    assert (second["number"], second["session_number"], second["cost_usd"]) == (2, 2, 0.25)
    assert second["conversations"] == [{"agent": "claude-code", "session_id": SESSION}]
    assert (told["driver"], told["needed_by"], told["is_waiting"]) == ("claude-code", ["b"], False)
    running = worked.get("/api/workflows/wf_1/task?task_id=b")["attempts"]
    assert [one["outcome"] for one in running] == ["interrupted", None]
    assert worked.ask("GET", "/api/workflows/wf_1/task?task_id=none").code == "not_found"
    assert worked.ask("GET", "/api/workflows/wf_1/task").status == 422


def test_conversation_of_an_attempt(worked: Served, settings: Settings, tmp_path: Path) -> None:
    of_a = "/api/workflows/wf_1/conversation?task_id=a"
    assert worked.ask("GET", of_a).code == "not_found", "the record is not on this machine"
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make test"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": f"2 failed {KEY}", "is_error": True}
    write_conversation(
        tmp_path,
        settings.project,
        [
            (1, "user", "of an earlier task"),
            (11, "user", "Do it"),
            (12, "assistant", [{"type": "text", "text": "I run the tests."}, call]),
            (13, "user", [result]),
            (14, "assistant", [{"type": "text", "text": "Two fail."}]),
            (50, "user", "of a later task"),
        ],
    )
    told = worked.get(of_a)
    assert (told["agent"], told["session_id"], told["total"]) == ("claude-code", SESSION, 4)
    said = told["messages"]
    assert [one["text"] for one in said] == ["Do it", "I run the tests.", "", "Two fail."]
    assert said[1]["calls"] == [{"id": "c1", "tool": "Bash", "arguments": "make test"}]
    assert said[2]["results"][0]["outcome"] == "error"
    assert KEY not in json.dumps(told), "a secret"
    newest = worked.get(f"{of_a}&limit=3")
    assert (newest["first"], len(newest["messages"])) == (1, 3)
    before = worked.get(f"{of_a}&limit=3&before=1")
    assert [one["text"] for one in before["messages"]] == ["Do it"]
    assert worked.ask("GET", f"{of_a}&attempt=1").code == "not_found", "it had none"
    assert worked.ask("GET", "/api/workflows/wf_1/conversation?task_id=b").code == "not_found"


def test_evidence_of_a_finding(worked: Served, settings: Settings, tmp_path: Path) -> None:
    of_it = f"/api/workflows/wf_1/evidence?source={SESSION}"
    assert worked.ask("GET", f"{of_it}&message=1").code == "not_found", "the record is not on this machine"
    said: list[tuple[int, str, object]] = [
        (1, "user", "Cache it"),
        (2, "assistant", f"I use a cache {KEY}"),
        (3, "user", "Good"),
    ]
    write_conversation(tmp_path, settings.project, said)
    (cited,) = worked.get(f"{of_it}&message=1&message=77")["messages"]
    assert (cited["number"], cited["role"]) == (1, "assistant")
    assert cited["text"].startswith("I use a cache")
    assert KEY not in cited["text"]
    for odd in ("", "&message=-1", "&message=x", "&message=1" * 51):
        assert worked.ask("GET", f"{of_it}{odd}").status == 422
    odd_source = "/api/workflows/wf_1/evidence?message=1&source=" + quote("../../../etc/passwd", safe="")
    assert worked.ask("GET", odd_source).code == "not_found"
    assert worked.ask("GET", f"/api/workflows/nope/evidence?source={SESSION}&message=1").code == "not_found"


def test_changed_files_undo_and_redo(program: Served, place: Place) -> None:
    """Over the API as the page does it, with a real worker."""
    steps = [
        {"id": "a/1", "description": "Write; it", "run": "sleep 0.05; echo one > made"},
        {"id": "b", "run": "sleep 0.05; echo two > other", "depends_on": ["a/1"]},
    ]
    plan = {"issue": {"id": "W", "title": "Work"}, "tasks": steps}
    with program.socket() as listener:
        listener.until("live")
        flow = program.ask("POST", "/api/workflows", {"plan": plan}).data["id"]
        while program.get(f"/api/workflows/{flow}")["status"] != "completed":
            listener.next()

    def changes(task: str) -> list[dict[str, Any]]:
        told = program.get(f"/api/workflows/{flow}/task?task_id={quote(task, safe='')}")
        assert told["changes_unknown"] is None
        return told["changes"]

    (of_a,), (of_b,) = changes("a/1"), changes("b")
    assert [one["change"]["files"] for one in (of_a, of_b)] == [
        [{"path": "made", "kind": "added"}],
        [{"path": "other", "kind": "added"}],
    ]

    def undo(change: str) -> None:
        address = f"/api/transactions/{of_a['transaction_id']}/undo?project={quote(str(place.project))}"
        answer = program.ask("POST", address, {"change": change, "doubtful": True})
        assert answer.status == 200, answer

    undo(of_a["change"]["id"])
    assert not (place.project / "made").exists()
    assert (place.project / "other").exists()
    (gone,) = changes("a/1")
    assert (gone["change"]["stands"], bool(gone["undone_by"])) == (False, True)
    undo(gone["undone_by"])
    assert (place.project / "made").read_text() == "one\n"
    (back,) = changes("a/1")
    assert (back["change"]["stands"], back["undone_by"]) == (True, None)


@pytest.mark.parametrize(
    ("description", "is_its"),
    [
        ("t1", True),
        ("t1: Mend", True),
        ("t0: Cut; t1: Mend", True),
        ("t1: Mend; t2: Sew (beside t3, t4)", True),
        ("t10: Mend", False),
        ("xt1: Mend", False),
        ("t2: Sew (beside t1)", False),
    ],
)
def test_whose_change_it_is_that_an_earlier_version_recorded(description: str, is_its: bool) -> None:
    older = {
        "schema_version": 3,
        "id": "ch_1",
        "kind": "change",
        "transaction_id": "wf_1-s1",
        "session_id": "wf_1-s1",
        "at": NOON,
        "description": description,
    }
    entry = LedgerEntry.model_validate(MANIFEST_SCHEMA.upgrade(older, where="here"))
    assert is_of_task(entry, Task(id="t1", description="Mend")) is is_its


@pytest.mark.parametrize("agent", ["claude-code", "model", "other"])
@pytest.mark.parametrize("name", ["../../../etc/passwd", "a\0b", "", "x" * 5_000, "\n"])
def test_odd_names_of_conversations_are_not_found(
    served: Served, sql_store: SqlStore, settings: Settings, agent: str, name: str
) -> None:
    tasks = TaskDAG(tasks=(Task(id="a", description="a", prompt="Do it"),))
    flow = workflow(worktree=str(settings.project))
    said: list[Entry] = [
        WorkflowCreated(issue=flow.issue, worktree=flow.worktree, task_dag=tasks),
        TaskStarted(task_id="a"),
        AgentSessionReported(task_id="a", agent=agent, agent_session_id=name),
    ]
    sql_store.apply(new(flow, *said))
    answer = served.ask("GET", "/api/workflows/wf_1/conversation?task_id=a")
    assert answer.status in (404, 422), answer
    assert served.ask("GET", "/api/workflows/wf_1/task?task_id=a").status == 200


def test_work_in_a_clone_has_no_changes_here(served: Served, sql_store: SqlStore) -> None:
    tasks = TaskDAG(tasks=(Task(id="a", description="a", run="true"),))
    flow = workflow(worktree="/no/such/folder", created_at=NOON)
    sql_store.apply(new(flow, WorkflowCreated(issue=flow.issue, worktree=flow.worktree, task_dag=tasks)))
    told = served.get("/api/workflows/wf_1/task?task_id=a")
    assert (told["changes"], told["changes_unknown"]) == ([], "its folder is not on the server's machine")
