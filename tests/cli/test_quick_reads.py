"""Commands that only look read the database's file themselves, and say what the store says."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.base.process import identify, machine
from holdfast.cli.context import read_lines, stored_lines
from holdfast.cli.status import stored_standing, stored_waiting_plan
from holdfast.model.entry import Entry, TaskFinished, TaskStarted, WorkflowCreated, WorkflowResumed
from holdfast.model.fold import SessionFold
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.statuses import Lease, PlanFacts
from holdfast.model.task import Task, TaskDAG
from holdfast.model.workflow import Issue, Workflow
from holdfast.resume.snapshots import CATEGORIES, history
from holdfast.sessions.contexts import history_data
from holdfast.sessions.standing import read_standing, read_waiting_plan
from holdfast.sessions.transitions import Core
from holdfast.store.reader import DocumentRecord, NotPlainError, open_reader
from holdfast.store.sql import SqlStore
from model.strategies import PLAN, entries, snapshots, workflows
from store.samples import ONE_OF_EACH, at, full_snapshot, full_workflow, new, next_of, snapshot, workflow

from .harness import Place

CREATED = WorkflowCreated(issue=Issue(id="7", title="x"), worktree="/w", task_dag=PLAN)


@pytest.fixture(scope="module")
def filled(empty_sqlite_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """One database that the examples of a test fill one after the other."""
    path = tmp_path_factory.mktemp("filled") / "holdfast.db"
    shutil.copy(empty_sqlite_file, path)
    store = SqlStore(str(path))
    yield store
    store.close()


_numbers = itertools.count()


def named(flow: Workflow) -> Workflow:
    """Under a name and in a worktree that no other example has."""
    name = f"wf_{next(_numbers)}"
    return flow.changed(id=name, worktree=f"/srv/{name}")


def same(store: SqlStore, worktree: str | None = None, workflow_id: str | None = None) -> Any:
    """What the quick way reads, once it was found to be what the store says, to the byte."""
    with open_reader(store.database) as reader:
        quick = {
            "standing": read_standing(reader, worktree or "", workflow_id),
            "plan": read_waiting_plan(reader, worktree or ""),
            "workflows": reader.workflows(worktree, limit=100),
            "snapshots": read_lines(reader, worktree, workflow_id),
        }
    found = store.workflows(worktree=worktree)
    whole = {
        "standing": stored_standing(store, worktree or "", workflow_id),
        "plan": stored_waiting_plan(store, worktree or ""),
        "workflows": [flow.model_dump(mode="json") for flow in found],
        "snapshots": stored_lines(store, worktree, workflow_id),
    }
    assert json.dumps(quick, default=str) == json.dumps(whole, default=str)
    return quick


def assert_same_fields(record: Any, value: Any) -> None:
    """What was read has every field of the value, down to what it is made of."""
    if isinstance(record, tuple):
        assert isinstance(value, tuple)
        for one, other in zip(record, cast("tuple[Any, ...]", value), strict=True):
            assert_same_fields(one, other)
    elif isinstance(record, DocumentRecord):
        for name in value.__struct_fields__ if isinstance(value, Task) else type(value).model_fields:
            assert_same_fields(getattr(record, name), getattr(value, name))
    elif isinstance(record, PlanFacts):
        assert_same_fields(record.tasks, value.tasks)
    else:
        assert (type(record), record) == (type(value), value)


@given(kept=snapshots())
@example(kept=full_snapshot())
def test_what_a_snapshot_holds(filled: SqlStore, kept: SessionSnapshot) -> None:
    flow = named(workflow())
    kept = kept.changed(id=f"snap_{next(_numbers)}", workflow_id=flow.id)
    filled.apply(new(flow, CREATED, save=kept))
    stored = filled.snapshot(kept.id)
    with open_reader(filled.database) as reader:
        read = reader.store.snapshot(kept.id)
        assert_same_fields(read, stored)
        for category in CATEGORIES:
            told, wanted = (history_data(one, category) for one in (read, stored))
            assert json.dumps(told) == json.dumps(wanted)
            assert history(read, category) == history(stored, category)
        assert (read.tasks_completed, read.tasks_remaining) == (
            stored.tasks_completed,
            stored.tasks_remaining,
        )
        assert_same_fields(reader.store.latest_snapshot(flow.id), stored)
        assert_same_fields(tuple(reader.store.workflows(worktree=flow.worktree)), (filled.workflow(flow.id),))
        assert reader.store.snapshots(flow.id) == filled.snapshots(flow.id)
        for name in (kept.id, kept.id[:-1], kept.session_id, "nothing"):
            assert reader.store.find_snapshots(name) == filled.find_snapshots(name)


def test_what_happened(sqlite_store: SqlStore) -> None:
    sqlite_store.apply(new(full_workflow(), *ONE_OF_EACH, save=full_snapshot()))
    flow = full_workflow().id
    kinds = ("task_started", "workflow_paused")
    with open_reader(sqlite_store.database) as reader:
        for types in (kinds, tuple(entry.type for entry in ONE_OF_EACH)):
            found = reader.store.events(workflow_id=flow, types=types)
            assert_same_fields(tuple(found), tuple(sqlite_store.events(workflow_id=flow, types=types)))
        with pytest.raises(TypeError):  # what becomes of a plan is not computed from what was only read
            Core(reader.store).fold(full_workflow())


def test_what_happened_as_it_is_printed(sqlite_store: SqlStore) -> None:
    sqlite_store.apply(new(full_workflow(), *ONE_OF_EACH, save=full_snapshot()))
    for since in (0, 3):
        whole = sqlite_store.events(workflow_id=full_workflow().id, since=since)
        with open_reader(sqlite_store.database) as reader:
            found = reader.printed_events(full_workflow().id, since)
        assert json.dumps(found) == json.dumps([event.model_dump(mode="json") for event in whole])
    for older in ('{"type":"task_started","task_id":"a"}', '{"type":"unheard_of"}'):
        _sql(sqlite_store.database, "UPDATE workflow_events SET entry_json = ?", older)
        with open_reader(sqlite_store.database) as reader, pytest.raises(Exception):  # noqa: B017, PT011 - whatever it is
            reader.printed_events(full_workflow().id, 0)


def test_what_a_newer_version_added_to_a_snapshot_is_left_to_the_store(sqlite_store: SqlStore) -> None:
    kept = full_snapshot()
    sqlite_store.apply(new(workflow(), CREATED, save=kept))
    stored = kept.model_dump_json(exclude={"task_dag"})
    for text in (stored[:-1] + ',"unheard_of":1}', stored.replace('"closed":', '"ajar":')):
        _sql(sqlite_store.database, "UPDATE session_snapshots SET snapshot_json = ?", text)
        with open_reader(sqlite_store.database) as reader, pytest.raises(NotPlainError):
            reader.store.snapshot(kept.id)


def paused(store: SqlStore, flow: Workflow, number: int) -> SessionSnapshot:
    """A snapshot of where the workflow stands, put into the store."""
    events = store.events(workflow_id=flow.id)
    fold = SessionFold().take(events)
    kept = snapshot(
        f"snap_{next(_numbers)}",
        of=flow.id,
        number=number,
        created_at=at(number),
        task_dag=fold.tasks(),
        current_task_id=fold.current_task_id,
        folded_through=fold.through,
    )
    store.apply(next_of(store.workflow(flow.id), save=kept))
    return kept


def recorded(store: SqlStore, flow: Workflow, *happened: Entry) -> None:
    if happened:
        store.apply(next_of(store.workflow(flow.id), *happened))


@given(
    first=st.lists(entries, max_size=6),
    second=st.lists(entries, max_size=6),
    third=st.lists(entries, max_size=6),
    again_from=st.sampled_from([None, 0, 1]),
)
@example(
    first=[TaskStarted(task_id="a"), TaskFinished(task_id="a", outcome="failed", result="it tore")],
    second=[TaskFinished(task_id="b", outcome="completed")],
    third=[TaskStarted(task_id="a", attempt=2)],
    again_from=0,
)
def test_where_a_workflow_stands(
    filled: SqlStore, first: list[Entry], second: list[Entry], third: list[Entry], again_from: int | None
) -> None:
    flow = named(workflow())
    filled.apply(new(flow, CREATED))
    recorded(filled, flow, *first)
    same(filled, flow.worktree)
    kept = [paused(filled, flow, 1)]
    recorded(filled, flow, *second)
    same(filled, flow.worktree)
    kept.append(paused(filled, flow, 2))
    resumed = None if again_from is None else kept[again_from].id
    recorded(filled, flow, WorkflowResumed(snapshot_id=resumed, session_number=3), *third)
    assert same(filled, flow.worktree)["standing"]["snapshots"] == 2
    same(filled, workflow_id=flow.id)


@given(flow=workflows)
def test_what_a_workflow_holds(filled: SqlStore, flow: Workflow) -> None:
    flow = named(flow)
    filled.apply(new(flow, CREATED))
    assert same(filled, flow.worktree)["workflows"][0]["id"] == flow.id


def test_every_field_and_every_entry(sqlite_store: SqlStore) -> None:
    sqlite_store.apply(new(full_workflow(), *ONE_OF_EACH, save=full_snapshot()))
    standing = same(sqlite_store, full_workflow().worktree)["standing"]
    assert standing["abandoned"] is True  # nobody has the lease of its claim
    assert standing["snapshots"] == 1


def test_a_claim_whose_process_runs(sqlite_store: SqlStore) -> None:
    me = identify(1 if identify(1)["started"] else 0)
    sqlite_store.leases.add(Lease("run-here-1", "run", machine(), me["pid"], me["started"], 5.0))
    flow = workflow(claim="run-here-1#1", run_id="wf_1/1.1")
    sqlite_store.apply(new(flow, CREATED))
    assert same(sqlite_store, flow.worktree)["standing"]["abandoned"] is False


def test_an_empty_database(sqlite_store: SqlStore) -> None:
    assert same(sqlite_store, "/nowhere") == {
        "standing": None,
        "plan": None,
        "workflows": [],
        "snapshots": [],
    }


def test_the_active_one_of_a_folder_comes_first(sqlite_store: SqlStore) -> None:
    for number, status in enumerate(("paused", "in_progress", "completed")):
        flow = workflow(f"wf_{number}", worktree="/w", status=status, updated_at=at(number))
        sqlite_store.apply(new(flow, CREATED))
    found = same(sqlite_store, "/w")
    assert found["standing"]["id"] == "wf_1"
    assert [flow["id"] for flow in found["workflows"]] == ["wf_2", "wf_1", "wf_0"]


def test_thousands_of_tasks(sqlite_store: SqlStore) -> None:
    status = ("completed", "failed", "pending", "blocked")
    plan = TaskDAG(
        tasks=tuple(
            Task(
                id=f"t{number}",
                description="sew",
                status=status[number % 4],
                result="so\nso",
                attempts=number,
            )
            for number in range(5_000)
        )
    )
    sqlite_store.apply(new(workflow(), CREATED, save=snapshot(task_dag=plan, folded_through=1)))
    assert same(sqlite_store, workflow().worktree)["standing"]["tasks_completed"] == 1_250


def test_tasks_inside_the_snapshot_as_older_versions_wrote_them(sqlite_store: SqlStore) -> None:
    kept = full_snapshot()
    sqlite_store.apply(new(workflow(), CREATED, save=kept))
    _sql(
        sqlite_store.database,
        "UPDATE session_snapshots SET tasks = NULL, snapshot_json = ?",
        kept.model_dump_json(),
    )
    assert same(sqlite_store, workflow().worktree)["standing"]["tasks_completed"] == 1


STATEMENTS = (
    "UPDATE alembic_version SET version_num = '9999'",
    "DROP TABLE alembic_version",
    "UPDATE session_snapshots SET snapshot_json = '{\"schema_version\":7}'",
    "UPDATE session_snapshots SET snapshot_json = 'torn'",
    "UPDATE session_snapshots SET tasks = x'92'",
    "UPDATE workflows SET options = '{\"unheard_of\":1}'",
    'UPDATE workflows SET pause_request = \'{"trigger":"pause"}\'',
    "UPDATE workflow_events SET entry_json = 'torn'",
)


def test_what_is_not_plain_is_left_to_the_store(place: Place) -> None:
    """Which reads it all the same, or tells what is wrong with it in its own words."""
    plan = place.project / "plan.yaml"
    plan.write_text("issue: {id: x, title: X}\ntasks: [{id: a, description: a, run: 'false'}]\n")
    assert place.run("run", str(plan)).code == 1
    plain = place.database.read_bytes()
    for statement in STATEMENTS:
        place.database.write_bytes(plain)
        _sql(str(place.database), statement)
        assert_left_to_the_store(place)


def assert_left_to_the_store(place: Place) -> None:
    with pytest.raises(Exception), open_reader(str(place.database)) as reader:  # noqa: B017, PT011 - whatever it is
        read_standing(reader, str(place.project), None)
    mark = place.sessions / ".unindexed-session-20260101-000000"
    mark.unlink(missing_ok=True)
    by_reader = place.run("status")
    mark.touch()  # with that, only the store is asked
    by_store = place.run("status")
    assert (by_reader.code, place.shown(by_reader.out)) == (by_store.code, place.shown(by_store.out))
    assert by_reader.err == "".join(line for line in by_store.err.splitlines(True) if "20260101" not in line)


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="unable to open"), open_reader(str(tmp_path / "none.db")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_workflow_that_is_not_there(sqlite_store: SqlStore) -> None:
    with open_reader(sqlite_store.database) as reader, pytest.raises(NotPlainError):
        reader.workflow("wf_nothere")


def test_odd_characters_in_the_name_of_the_database(place: Place) -> None:
    database = place.root / "a ?b#c%20 ü" / "of me.db"
    place.environment["HOLDFAST_DB"] = str(database)
    place.paused("tool_call", reason="lunch")
    with open_reader(str(database)) as reader:
        assert [flow["pause_reason"] for flow in reader.workflows(None, limit=1)] == ["lunch"]


def _sql(database: str, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(statement, values)
    connection.close()
