"""What the first page asks for: open work by what it needs, and what agents' sessions have used."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal.usage import session_usage
from holdfast.model.entry import Entry, TaskFinished, TaskStarted, WorkflowCreated
from holdfast.model.gathered import FileUse, Gathered, StoppingPoint, Turn
from holdfast.model.message import Message, TokenUsage
from holdfast.model.task import Task, TaskDAG
from holdfast.store.sql import SqlStore
from store.samples import at, new, snapshot, workflow

from .harness import Served

MODEL = "claude-sonnet-4-5"


def plan(store: SqlStore, name: str, status: str, *entries: Entry, approval: bool = False) -> None:
    tasks = TaskDAG(
        tasks=(
            Task(id="a", description="a", run="true", approval=approval),
            Task(id="b", description="b", run="true", depends_on=("a",)),
        )
    )
    flow = workflow(name, status=status, worktree=f"/srv/{name}")
    begun = WorkflowCreated(issue=flow.issue, worktree=flow.worktree, task_dag=tasks, runs=True)
    store.apply(new(flow, begun, *entries))


def left_by_an_agent(store: SqlStore, name: str, stop: StoppingPoint, status: str = "paused") -> None:
    use = FileUse("a.py", False, False, 1, 0, 0, 0, 0, 0)
    talk = Gathered(messages=4, turns=(Turn(0, f"Write the lexer of {name}"),), files=(use,), stop=stop)
    flow = workflow(name, status=status, worktree=f"/srv/{name}", updated_at=at(5))
    begun = WorkflowCreated(issue=flow.issue, worktree=flow.worktree, task_dag=TaskDAG(tasks=()))
    told = snapshot(
        f"snap_{name}",
        of=name,
        gathered=talk,
        task_dag=TaskDAG(tasks=()),
        trigger="pause",
        pause_reason="the agent session ended",
        conversation=name,
        session_id=f"session-{name}",
    )
    store.apply(new(flow, begun, save=told))


@pytest.fixture
def busy(served: Served, sql_store: SqlStore) -> Served:
    started = TaskStarted(task_id="a", attempt=1)
    broken = TaskFinished(task_id="a", outcome="failed", result="exit code 1")
    plan(sql_store, "runs", "in_progress", started)
    plan(sql_store, "asks", "blocked", approval=True)
    plan(sql_store, "broke", "paused", started, broken)
    plan(sql_store, "rests", "paused")
    plan(sql_store, "over", "completed")
    left_by_an_agent(sql_store, "question", StoppingPoint("asked", "Tabs or spaces?"))
    left_by_an_agent(sql_store, "quota", StoppingPoint("failed", "rate limit"))
    left_by_an_agent(sql_store, "answered", StoppingPoint("answered"))
    return served


def test_open_work_by_what_it_needs(busy: Served) -> None:
    found = busy.get("/api/work")
    assert found["counts"] == {"waiting": 2, "failed": 2, "running": 1, "open": 1}
    states = [one["state"] for one in found["items"]]
    assert states == sorted(states, key=["waiting", "failed", "running", "open"].index)
    items = {one["workflow_id"]: one for one in found["items"]}
    assert set(items) == {"runs", "asks", "broke", "rests", "question", "quota"}
    told = {name: (one["state"], one["because"], one["task_id"]) for name, one in items.items()}
    assert told == {
        "runs": ("running", "runs a", "a"),
        "asks": ("waiting", "a waits for approval", "a"),
        "broke": ("failed", "exit code 1", "a"),
        "rests": ("open", "paused", "a"),
        "question": ("waiting", "the agent asked the user something: Tabs or spaces?", None),
        "quota": ("failed", "the agent's program reported an error: rate limit", None),
    }
    assert items["broke"]["left"] == ["failed: a", "to do: b"]
    assert (items["question"]["issue"], items["question"]["snapshot_id"]) == (None, "snap_question")


def test_all_open_work_is_counted_and_of_each_state_some_is_told(served: Served, sql_store: SqlStore) -> None:
    broken = TaskFinished(task_id="a", outcome="failed", result="exit code 1")
    plan(sql_store, "broke", "paused", TaskStarted(task_id="a", attempt=1), broken)
    for number in range(120):
        plan(sql_store, f"p{number}", "paused")
    found = served.get("/api/work")
    assert found["counts"] == {"waiting": 0, "failed": 1, "running": 0, "open": 120}
    assert found["is_cut"] is False
    assert [one["state"] for one in found["items"]] == ["failed"] + ["open"] * 100
    few = served.get("/api/work?limit=8")
    assert (few["counts"], few["items"]) == (found["counts"], found["items"][:9])


def test_it_says_that_agents_worked_in_more_folders_than_are_looked_at(
    served: Served, sql_store: SqlStore
) -> None:
    for number in range(10):
        left_by_an_agent(sql_store, f"s{number}", StoppingPoint("asked", "Tabs or spaces?"))
    found = served.get("/api/work")
    assert (found["is_cut"], found["counts"]["waiting"]) == (False, 10)
    left_by_an_agent(sql_store, "later", StoppingPoint("asked", "Tabs or spaces?"))
    found = served.get("/api/work")
    assert (found["is_cut"], found["counts"]["waiting"]) == (True, 10)


def said(number: int, used: TokenUsage | None = None, **more: Any) -> Message:
    return Message(number, "assistant", text="x", usage=used, **more)


def test_usage_is_of_the_window_now_and_of_all_that_was_spent() -> None:
    big, small = TokenUsage(1000, 100, 5000, 400, MODEL), TokenUsage(10, 20, 30, 40, MODEL)
    aside = TokenUsage(7, 7, 0, 0, MODEL)
    found = session_usage([said(0, big), said(1, aside, subagent="reader")])
    assert (found.context_tokens, found.tokens, found.model) == (6500, 6514, MODEL)
    assert found.share == pytest.approx(6500 / found.context_window)
    listed = (1007 * 3.0 + 107 * 15.0 + 5000 * 0.3 + 400 * 3.75) / 1_000_000
    assert found.cost_usd == pytest.approx(listed)
    compacted = session_usage([said(0, big), Message(1, "user", text="summary", compaction=True)])
    assert (compacted.context_tokens, compacted.share, compacted.tokens) == (None, None, 6500)
    after = session_usage([said(0, big), Message(1, "user", compaction=True), said(2, small)])
    assert (after.context_tokens, after.tokens) == (100, 6600)


def test_a_model_without_a_price_is_not_free() -> None:
    odd = TokenUsage(10, 10, 0, 0, "no-such-model-9")
    assert session_usage([said(0, odd)]).cost_usd is None
    both = session_usage([said(0, odd), said(1, TokenUsage(10, 10, 0, 0, MODEL))])
    assert both.cost_is_partial
    assert both.cost_usd
    assert session_usage([]).cost_usd is None


def keep_session(home: Path, project: str, name: str, tokens: int) -> Path:
    """As Claude Code keeps one."""
    folder = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", project)
    folder.mkdir(parents=True, exist_ok=True)
    usage = {"input_tokens": tokens, "output_tokens": 10, "cache_read_input_tokens": 0}
    lines: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": f"Work in {project}"}},
        {
            "type": "assistant",
            "requestId": "r",
            "message": {"id": "m", "role": "assistant", "model": MODEL, "content": "Done", "usage": usage},
        },
    ]
    path = folder / f"{name}.jsonl"
    shared = {"sessionId": name, "cwd": project, "timestamp": "2026-01-06T12:00:00Z"}
    path.write_text(
        "".join(json.dumps(line | shared | {"uuid": str(n)}) + "\n" for n, line in enumerate(lines))
    )
    return path


def test_sessions_of_all_projects_with_fullness_and_cost(served: Served, tmp_path: Path) -> None:
    here = str(tmp_path / "project")
    keep_session(tmp_path, here, "0b8f5c1e-6a4f-4a53-9f0e-0d6f3a1c2b4d", 50_000)
    other = keep_session(tmp_path, "/srv/elsewhere", "1b8f5c1e-6a4f-4a53-9f0e-0d6f3a1c2b4d", 99_990)
    assert [one["project"] for one in served.get("/api/sessions")["sessions"]] == [here]
    page = served.get("/api/sessions?everywhere=true&usage=true")
    assert page["project"] is None
    found = {one["project"]: one["usage"] for one in page["sessions"]}
    assert set(found) == {here, "/srv/elsewhere"}
    used = found["/srv/elsewhere"]
    assert (used["context_tokens"], used["context_share"], used["model"]) == (100_000, 0.5, MODEL)
    assert used["cost_usd"] > 0
    assert all(one["usage"] is None for one in served.get("/api/sessions?everywhere=true")["sessions"])
    with other.open("a") as file:  # what it used is read again once its agent wrote on
        more = json.loads(other.read_text().splitlines()[1])
        more["message"] |= {"id": "m2", "usage": {"input_tokens": 149_990, "output_tokens": 10}}
        file.write(json.dumps(more | {"requestId": "r2", "uuid": "9"}) + "\n")
    again = {
        one["project"]: one["usage"]
        for one in served.get("/api/sessions?everywhere=true&usage=true")["sessions"]
    }
    assert again["/srv/elsewhere"]["context_tokens"] == 150_000
