"""Many writers at once: threads on every store, real processes on the databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from holdfast.base.errors import ConflictError
from holdfast.model.entry import Event, TaskFinished
from holdfast.model.workflow import Issue, WorkflowStatus
from holdfast.sessions.transitions import Core, Facts
from holdfast.store.driver import Ordinary
from holdfast.store.memory import MemoryStore
from holdfast.store.protocol import Store
from holdfast.store.sql import SqlStore
from holdfast.testing import FixedClock
from soak import repeated
from store import writers
from store.samples import new, next_of, numbered, retried, workflow

WRITERS = 8


def in_threads(work: Callable[[int], None]) -> None:
    """Run it in eight threads at once; the first failure is raised here."""
    failures: list[BaseException] = []
    gate = threading.Barrier(WRITERS)

    def run(number: int) -> None:
        gate.wait()
        try:
            work(number)
        except BaseException as failure:  # noqa: BLE001 - told in the test's own thread
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def results(events: list[Event], of: str) -> list[str | None]:
    return [
        event.entry.result
        for event in events
        if event.workflow_id == of and isinstance(event.entry, TaskFinished)
    ]


def assert_whole(events: list[Event], changes: int) -> None:
    """Every writer's changes are there once, in its order, and numbers rise without doubles."""
    numbers = [event.seq for event in events]
    assert numbers == sorted(set(numbers))
    for writer in range(WRITERS):
        assert results(events, f"wf_{writer}") == [str(count) for count in range(changes)]


def test_threads_with_workflows_of_their_own_lose_nothing(store: Store) -> None:
    def work(number: int) -> None:
        change = new(workflow(f"wf_{number}"), numbered(0))
        store.apply(change)
        for count in range(1, 15):
            change = next_of(change.workflow, numbered(count))
            store.apply(change)

    in_threads(work)
    assert_whole(list(store.events()), 15)


def test_writers_on_postgresql_do_not_wait_for_each_other_and_readers_miss_nothing(
    postgres_store: SqlStore,
) -> None:
    """A change that has its numbers is open: another is committed meanwhile, and is shown after it."""
    store = postgres_store
    for number in range(2):
        store.apply(new(workflow(f"wf_{number}"), numbered(0)))
    _, before = store.event_range()
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.extend(event.seq for event in store.events(since=before)))
    with store._engine.begin() as slow:  # pyright: ignore[reportPrivateUsage]
        store._write_entries(Ordinary(slow), next_of(store.workflow("wf_0"), numbered(1)))  # pyright: ignore[reportPrivateUsage]
        store.apply(next_of(store.workflow("wf_1"), numbered(1)))
        (own,) = store.events(workflow_id="wf_1", since=before)
        reader.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while not slow.exec_driver_sql(waiting).scalar():
            pass
        assert seen == []
    reader.join()
    assert seen == [own.seq - 1, own.seq]


def test_threads_on_one_workflow_win_each_revision_once(store: Store) -> None:
    store.apply(new(workflow(), numbered(0)))

    def work(number: int) -> None:
        for _ in range(5):
            retried(store, "wf_1", numbered(number))

    in_threads(work)
    assert store.workflow("wf_1").revision == 1 + 5 * WRITERS
    written = results(list(store.events()), "wf_1")[1:]
    assert sorted(map(str, written)) == sorted(str(number) for number in range(WRITERS) for _ in range(5))


def test_of_threads_that_change_the_same_revision_one_wins(store: Store) -> None:
    first = workflow()
    store.apply(new(first))
    won: list[int] = []

    def work(number: int) -> None:
        try:
            store.apply(next_of(first, numbered(number)))
        except ConflictError:
            return
        won.append(number)

    in_threads(work)
    assert len(won) == 1
    assert results(list(store.events()), "wf_1") == [str(won[0])]


class WritingMeanwhile(frozenset[WorkflowStatus]):
    """A question that takes so long that somebody else writes before it is answered."""

    store: MemoryStore
    wrote: threading.Thread | None = None

    def __contains__(self, status: object) -> bool:
        if self.wrote is None:
            self.wrote = threading.Thread(target=self.store.apply, args=(new(workflow("wf_new")),))
            self.wrote.start()
            self.wrote.join(0.2)  # a store that holds its lock lets the writer in afterwards
        return super().__contains__(status)


def test_reading_goes_on_while_others_write() -> None:
    # SQL stores leave this to the database; the one in memory has to see to it itself.
    store = MemoryStore()
    for number in range(3):
        store.apply(new(workflow(f"wf_{number}")))
    statuses = WritingMeanwhile({"in_progress"})
    statuses.store = store
    found = {flow.id for flow in store.workflows(statuses=statuses)}
    assert statuses.wrote is not None
    statuses.wrote.join()
    assert found - {"wf_new"} == {"wf_0", "wf_1", "wf_2"}


def test_processes_on_one_workflow_win_each_revision_once(database: str) -> None:
    store = SqlStore(database)
    store.apply(new(workflow(), numbered(0)))
    revisions = repeated(60)
    won: Any = writers.answer(writers.start("one_workflow", database, WRITERS, revisions))
    written = results(list(store.events()), "wf_1")[1:]
    last = store.workflow("wf_1").revision
    store.close()
    owners = {revision: writer for writer, mine in enumerate(won) for revision in mine}
    assert sorted(revision for mine in won for revision in mine) == list(range(2, last + 1))
    assert [str(owners[revision]) for revision in range(2, last + 1)] == written


def test_processes_lose_no_change_and_who_follows_along_misses_none(database: str) -> None:
    store = SqlStore(database)
    seen: list[Event] = []
    process = writers.start("own_workflows", database, WRITERS, repeated(25))
    writing = True
    while writing:
        writing = process.poll() is None
        seen += store.events(since=seen[-1].seq if seen else 0, limit=50)
    told = writers.answer(process)
    seen += store.events(since=seen[-1].seq if seen else 0)
    everything = list(store.events())
    store.close()
    assert_whole(everything, repeated(25))
    for writer, numbers in enumerate(told):
        assert [event.seq for event in everything if event.workflow_id == f"wf_{writer}"] == numbers
    assert seen == everything


def test_of_eight_processes_that_resume_a_workflow_one_does(database: str, clock: FixedClock) -> None:
    store = SqlStore(database)
    core = Core(store, clock)
    paused = core.open(Issue(id="7", title="Mend the sail"), "/srv/sail")
    core.settle(paused.id, Facts())
    told = writers.answer(writers.start("claim", database, WRITERS, paused.id))
    after = store.workflow(paused.id)
    store.close()
    assert sorted(map(str, told)) == ["SessionAlreadyRunningError"] * 7 + ["won"]
    assert (after.status, after.session_count) == ("in_progress", 2)


def test_processes_that_open_a_fresh_database_at_once_all_can(database: str) -> None:
    assert writers.answer(writers.start("open_fresh", database, 4)) == ["ok"] * 4
    store = SqlStore(database)
    assert len(store.workflows()) == 4
    store.close()


def test_what_was_acknowledged_before_a_kill_is_there_after_it(database: str) -> None:
    rounds: Any = writers.answer(writers.start("killed", database, repeated(8)))
    store = SqlStore(database)
    for name, count in rounds:
        kept = results(list(store.events(workflow_id=name)), name)
        # One more may have been committed than the writer lived to tell.
        assert kept in ([str(n) for n in range(count)], [str(n) for n in range(count + 1)])
        assert store.workflow(name).revision == len(kept)
    store.close()
