"""A database that goes away, a runner that lost its claim, and how soon a pause is honoured."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa

from cli.harness import Place
from holdfast.base.errors import ConflictError
from holdfast.model.entry import TaskFinished, Warned
from holdfast.sessions.transitions import Core
from holdfast.store import engine
from holdfast.store.engine import open_bare_engine, writing
from holdfast.store.protocol import Change
from holdfast.store.sql import SqlStore
from holdfast.workflows.runner_context import Recorder, RunOverError
from holdfast.workflows.worker import Here
from postgres import PostgresServer
from soak import repeated

from .harness import Workshop, plan_of, wait_for

TRIES_IN_VAIN = repeated(5, least=3)


class Tries:
    """Counts how often a change was brought to the store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        original = SqlStore.apply

        def counted(store: SqlStore, change: Change) -> Any:
            self.calls += 1
            return original(store, change)

        monkeypatch.setattr(SqlStore, "apply", counted)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> Tries:
    return Tries(monkeypatch)


@pytest.mark.timeout(300)
def test_a_database_server_that_goes_away_in_mid_run_is_waited_for(place: Place, tries: Tries) -> None:
    with PostgresServer() as server:
        workshop = Workshop(place, server.create_database())
        ended: list[Any] = []
        tasks = plan_of("touch began; while [ ! -e go ]; do sleep 0.05; done; echo a >> log", "echo b >> log")
        with Here(workshop.settings) as here:
            workflow = here.service.start(tasks, claim=here.claim)
            thread = threading.Thread(target=lambda: ended.append(here.run(workflow)))
            thread.start()
            wait_for((workshop.project / "began").exists)
            data = server.folder / "data"
            server._run("pg_ctl", "stop", "--mode=immediate", f"--pgdata={data}")
            (workshop.project / "go").touch()
            wait_for(lambda: workshop.log() == ["a"])
            in_vain = tries.calls
            wait_for(lambda: tries.calls >= in_vain + TRIES_IN_VAIN)
            options = f"--options=--listen_addresses='' --unix_socket_directories={server.folder}"
            server._run(
                "pg_ctl", "start", "--wait", f"--pgdata={data}", f"--log={server.folder / 'log'}", options
            )
            thread.join(120)
        assert [flow.status for flow in ended] == ["completed"]
        assert workshop.log() == ["a", "b"]
        assert len(workshop.entries(workflow, TaskFinished)) == 2


@pytest.mark.timeout(120)
def test_a_database_file_that_somebody_holds_is_waited_for(
    workshop: Workshop, tries: Tries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)  # SQLite gives up sooner, the runner does not
    ended: list[Any] = []
    with Here(workshop.settings) as here:
        workflow = here.service.start(plan_of("touch began", "echo b >> log"), claim=here.claim)
        other = writing(open_bare_engine(workshop.database))
        with other.begin() as connection:
            connection.execute(sa.text("UPDATE workflows SET updated_at = updated_at"))
            thread = threading.Thread(target=lambda: ended.append(here.run(workflow)))
            thread.start()
            in_vain = tries.calls
            wait_for(lambda: tries.calls >= in_vain + TRIES_IN_VAIN)
        thread.join(60)
        other.dispose()
    assert [flow.status for flow in ended] == ["completed"]
    assert workshop.log() == ["b"]


def test_a_commit_whose_acknowledgement_was_lost_counts_once(workshop: Workshop) -> None:
    with workshop.service() as service:
        workflow = service.start(plan_of("true"), claim="run-nowhere-1-aaa#1")
        recorder = Recorder(service.core, workflow)
        change = service.core.advancing(workflow, Warned(text="once"))
        service.store.apply(change)
        assert recorder.apply(change)
    assert len(workshop.entries(workflow, Warned)) == 1


def test_who_lost_the_claim_writes_nothing(workshop: Workshop) -> None:
    with workshop.service() as service:
        workflow = service.start(plan_of("true"), claim="worker-a-1-aaa#1")
        zombie = Recorder(service.core, workflow)
        assert workflow.run_id
        service.core.take(workflow.id, workflow.run_id, "worker-b-2-bbb#1")
        before = len(service.events(workflow.id))
        for write in (lambda: zombie.note(Warned(text="late")), zombie.refresh):
            with pytest.raises(RunOverError):
                write()
        assert len(service.events(workflow.id)) == before


def test_a_change_by_somebody_else_is_seen_and_not_written_over(workshop: Workshop) -> None:
    with workshop.service() as service:
        workflow = service.start(plan_of("true"), claim="run-nowhere-1-aaa#1")
        recorder = Recorder(service.core, workflow)
        Core(service.store).request_pause(workflow.id, "pause", "home")
        assert not recorder.commit(Warned(text="first try"))
        assert recorder.workflow.pause_request is not None
        assert recorder.commit(Warned(text="second try"))
        with pytest.raises(ConflictError):
            service.store.apply(service.core.advancing(workflow, Warned(text="third")))


@pytest.mark.timeout(300)
def test_a_pause_is_the_next_thing_after_the_tasks_end(workshop: Workshop) -> None:
    with Here(workshop.settings) as here:
        tasks = plan_of("touch began; while [ ! -e go ]; do sleep 0.01; done", "echo b >> log")
        workflow = here.service.start(tasks, claim=here.claim)
        thread = threading.Thread(target=lambda: here.run(workflow))
        thread.start()
        wait_for((workshop.project / "began").exists)
        with workshop.service() as service:
            service.pause_workflow(workflow.id, wait=False)
            (workshop.project / "go").touch()
            thread.join(60)
            happened = [event.entry.type for event in service.events(workflow.id)]
    assert workshop.log() == []
    assert happened[happened.index("task_finished") + 1 :] == ["workflow_paused"]
