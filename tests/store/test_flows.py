"""What every store of flows does, in memory, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from flow.harness import play
from holdfast.base.errors import (
    ConflictError,
    DamagedDataError,
    HeldElsewhereError,
    IllegalTransitionError,
    InvalidInputError,
    NewerSchemaError,
    SessionAlreadyRunningError,
    SessionNotFoundError,
    StorageError,
)
from holdfast.flow.store import FlowStore, MemoryFlowStore
from holdfast.model.flow import (
    Claimed,
    FlowSession,
    FlowStatus,
    Record,
    Runner,
    Settlement,
    progress,
)
from holdfast.store.engine import open_engine
from holdfast.store.flows import SqlFlowStore
from holdfast.store.sql import SqlStore

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC)
ME: Runner = {"host": "here", "process": {"pid": 7, "started": "boot:1"}, "token": "hub_1"}
OTHER: Runner = {"host": "here", "process": {"pid": 8, "started": None}, "token": "hub_2"}


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def flows(request: pytest.FixtureRequest) -> Iterator[FlowStore]:
    if request.param == "memory":
        yield MemoryFlowStore()
        return
    yield from _opened(
        request.getfixturevalue(f"{'sqlite' if request.param == 'sqlite' else 'postgres'}_store")
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_flows(request: pytest.FixtureRequest) -> Iterator[SqlFlowStore]:
    yield from _opened(
        request.getfixturevalue(f"{'sqlite' if request.param == 'sqlite' else 'postgres'}_store")
    )


def _opened(beside: SqlStore) -> Iterator[SqlFlowStore]:
    store = SqlFlowStore(beside.database)
    yield store
    store.close()


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def session(store: FlowStore, name: str = "s1", given: Any = None, **fields: Any) -> FlowSession:
    made = FlowSession(
        id=name,
        flow="review",
        fingerprint="sha256:0",
        status="running",
        created_at=NOON,
        updated_at=NOON,
        input=store.pack(given)[0],
        runner=ME,
    )
    return replace(made, **fields)


def completed(
    store: FlowStore, seq: int, path: str, value: Any, taken: tuple[str, ...] | None = None
) -> Record:
    return Record(seq, "completed", path, store.pack(value)[0], taken)


def anybody(_session: FlowSession, _records: Sequence[Record]) -> None:
    """Admits."""


async def done(result: Any) -> Any:
    return await result if isinstance(result, asyncio.Future) else result


async def claim(
    store: FlowStore,
    name: str = "s1",
    runner: Runner = ME,
    admit: Callable[[FlowSession, Sequence[Record]], None] = anybody,
    message: str = "go on",
) -> Claimed:
    return await done(store.claim(name, runner, at(60), admit, message))


async def paused(
    store: FlowStore, name: str = "s1", records: tuple[Record, ...] = (), seconds: int = 1
) -> None:
    await done(store.create(session(store, name)))
    await done(store.settle(name, 1, records, Settlement("paused", at(seconds), "n2", "lunch")))


def test_a_session_comes_back_with_every_field(flows: FlowStore) -> None:
    async def scene() -> None:
        given = {"topic": "tides", "list": [1, 2.5, None, True], "text": "\x00 ü ✓"}
        await done(flows.create(session(flows, given=given, parent_id="s0")))
        found = (await done(flows.load("s1"))).session
        assert found == session(flows, parent_id="s0", input=given)

    play(scene())


def test_records_come_back_in_order_with_their_values(flows: FlowStore) -> None:
    async def scene() -> None:
        await done(flows.create(session(flows)))
        values = [None, True, 0, 1.5, "text", [], {}, {"deep": [{"er": None}]}, 2**70, float("inf")]
        records = [completed(flows, number, f"n{number}", value) for number, value in enumerate(values, 1)]
        await done(flows.append("s1", 1, records[:4]))
        await done(flows.append("s1", 1, records[4:]))
        found = await done(flows.load("s1"))
        assert [record.value for record in found.records] == values
        assert [record.seq for record in found.records] == list(range(1, 11))

    play(scene())


def test_the_edges_taken_come_back(flows: FlowStore) -> None:
    async def scene() -> None:
        await done(flows.create(session(flows)))
        records = [
            completed(flows, 1, "a", 1),
            completed(flows, 2, "b", 1, ()),
            completed(flows, 3, "c", 1, ("x", "y")),
        ]
        await done(flows.append("s1", 1, records))
        found = (await done(flows.load("s1"))).records
        assert [record.taken for record in found] == [None, (), ("x", "y")]

    play(scene())


def test_a_pause_keeps_where_and_why_and_gives_the_session_up(flows: FlowStore) -> None:
    async def scene() -> None:
        await paused(flows, records=(completed(flows, 1, "n1", "one"),))
        found = await done(flows.load("s1"))
        assert found.session == session(
            flows,
            input=None,
            status="paused",
            updated_at=at(1),
            paused_at=at(1),
            node_id="n2",
            reason="lunch",
            runner=None,
        )
        assert [record.path for record in found.records] == ["n1"]

    play(scene())


def test_a_claim_takes_the_session_and_adds_the_message_at_once(flows: FlowStore) -> None:
    async def scene() -> None:
        await paused(flows, records=(completed(flows, 1, "n1", "one"),))
        claimed = await claim(flows, runner=OTHER, message="mind the gap")
        assert (claimed.session.status, claimed.session.claim, claimed.session.runner) == (
            "running",
            2,
            OTHER,
        )
        assert (claimed.session.paused_at, claimed.session.reason, claimed.session.node_id) == (
            None,
            None,
            None,
        )
        assert [(each.seq, each.kind, each.value) for each in claimed.records] == [
            (1, "completed", "one"),
            (2, "message", "mind the gap"),
        ]
        assert await done(flows.load("s1")) == claimed

    play(scene())


def test_a_claim_that_is_not_admitted_changes_nothing(flows: FlowStore) -> None:
    def nobody(found: FlowSession, _records: Sequence[Record]) -> None:
        raise SessionAlreadyRunningError(f"{found.id} belongs to {found.runner}")

    async def scene() -> None:
        await done(flows.create(session(flows)))
        with pytest.raises(SessionAlreadyRunningError, match="hub_1"):
            await claim(flows, admit=nobody)
        found = await done(flows.load("s1"))
        assert (found.session, found.records) == (session(flows, input=None), ())

    play(scene())


def test_of_many_who_claim_at_once_one_gets_it(flows: FlowStore) -> None:
    def if_paused(found: FlowSession, _records: Sequence[Record]) -> None:
        if found.status != "paused":
            raise SessionAlreadyRunningError("too late")

    async def scene() -> None:
        await paused(flows)
        tries = [claim(flows, admit=if_paused, message=str(number)) for number in range(20)]
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(outcome, Claimed) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, SessionAlreadyRunningError) for outcome in outcomes) == 19

    play(scene())


def test_a_runner_that_was_replaced_can_neither_append_nor_settle(flows: FlowStore) -> None:
    async def scene() -> None:
        await done(flows.create(session(flows)))
        await claim(flows, runner=OTHER)
        before = await done(flows.load("s1"))
        with pytest.raises(SessionAlreadyRunningError, match="taken over"):
            await done(flows.append("s1", 1, [completed(flows, 9, "late", 1)]))
        with pytest.raises(SessionAlreadyRunningError, match="taken over"):
            await done(flows.settle("s1", 1, [completed(flows, 9, "late", 1)], Settlement("complete", at(3))))
        assert await done(flows.load("s1")) == before

    play(scene())


@pytest.mark.parametrize("end", ["complete", "aborted"])
def test_what_has_ended_cannot_be_claimed_or_settled_again(flows: FlowStore, end: FlowStatus) -> None:
    async def scene() -> None:
        await done(flows.create(session(flows)))
        await done(flows.settle("s1", 1, (), Settlement(end, at(1))))
        with pytest.raises(IllegalTransitionError, match=end):
            await claim(flows)
        with pytest.raises(IllegalTransitionError, match=end):
            await done(flows.settle("s1", 1, (), Settlement("paused", at(2))))
        assert (await done(flows.load("s1"))).session.status == end

    play(scene())


def test_a_paused_session_can_be_aborted(flows: FlowStore) -> None:
    async def scene() -> None:
        await paused(flows)
        await done(flows.settle("s1", 1, (), Settlement("aborted", at(2), None, "no more")))
        found = (await done(flows.load("s1"))).session
        assert (found.status, found.reason, found.paused_at) == ("aborted", "no more", None)

    play(scene())


def test_mail_is_numbered_for_each_session_and_what_was_said_is_on_record_when_it_is_claimed(
    flows: FlowStore,
) -> None:
    async def scene() -> None:
        await paused(flows, records=(completed(flows, 1, "a", 1),))
        await paused(flows, "s2")
        for kind, name, value in (("signal", "go", {"at": 1}), ("message", "", "hello"), ("pause", "", None)):
            await done(flows.post("s1", kind, name, flows.pack(value)[0]))  # type: ignore[arg-type]
        await done(flows.post("s2", "signal", "go", flows.pack(2)[0]))
        sent: list[Any] = [("s1", 1, "signal", "go", {"at": 1}), ("s1", 2, "message", "", "hello")]
        sent.append(("s1", 3, "pause", "", None))
        assert await done(flows.mail({"s1": 0, "s2": 0})) == [*sent, ("s2", 1, "signal", "go", 2)]
        assert await done(flows.mail({"s1": 2, "none": 0})) == sent[2:]
        found = await claim(flows)
        assert found.mail == tuple(sent)
        assert [(each.seq, each.kind, each.path, each.value) for each in found.records] == [
            (1, "completed", "a", 1),
            (2, "message", "2", "hello"),
            (3, "message", "", "go on"),
        ]
        assert (await claim(flows, message="again")).records[3:] == ((4, "message", "", "again", None),)
        await done(flows.settle("s1", 3, (), Settlement("complete", at(90))))
        with pytest.raises(SessionNotFoundError, match="complete"):
            await done(flows.post("s1", "signal", "go", flows.pack(1)[0]))

    play(scene())


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.load("none"),
        lambda store: store.post("none", "signal", "go", store.pack(1)[0]),
        lambda store: store.append("none", 1, [completed(store, 1, "a", 1)]),
        lambda store: store.settle("none", 1, (), Settlement("complete", NOON)),
        lambda store: store.claim("none", ME, NOON, anybody, "go on"),
        lambda store: store.forget("none"),
    ],
    ids=["load", "post", "append", "settle", "claim", "forget"],
)
def test_what_is_not_there_is_not_found(flows: FlowStore, ask: Callable[[FlowStore], Any]) -> None:
    async def scene() -> None:
        with pytest.raises(SessionNotFoundError, match="none"):
            await done(ask(flows))

    play(scene())


def test_an_id_is_given_to_one_session_only(flows: FlowStore) -> None:
    async def scene() -> None:
        await done(flows.create(session(flows)))
        with pytest.raises(ConflictError, match="s1"):
            await done(flows.create(session(flows, flow="another")))
        assert (await done(flows.load("s1"))).session.flow == "review"

    play(scene())


def test_sessions_are_listed_newest_change_first(flows: FlowStore) -> None:
    async def scene() -> None:
        for name, seconds in (("s1", 5), ("s2", 9), ("s3", 1)):
            await paused(flows, name, seconds=seconds)
        await done(flows.create(session(flows, "s4")))
        assert [each.id for each in await done(flows.sessions())] == ["s2", "s1", "s3", "s4"]
        assert [each.id for each in await done(flows.sessions({"paused"}, limit=2))] == ["s2", "s1"]
        assert [each.id for each in await done(flows.sessions({"running"}))] == ["s4"]

    play(scene())


def test_a_session_is_forgotten_with_its_records_unless_it_runs(flows: FlowStore) -> None:
    async def scene() -> None:
        await paused(flows, records=(completed(flows, 1, "n1", "one"),))
        await done(flows.create(session(flows, "s2")))
        await done(flows.forget("s1"))
        with pytest.raises(SessionAlreadyRunningError, match="s2"):
            await done(flows.forget("s2"))
        assert [each.id for each in await done(flows.sessions())] == ["s2"]
        await done(flows.create(session(flows)))
        assert (await done(flows.load("s1"))).records == ()

    play(scene())


def test_one_that_fails_does_not_hurt_those_that_are_written_with_it(flows: FlowStore) -> None:
    async def ask(result: Callable[[], Any]) -> Any:
        return await done(result())

    async def scene() -> None:
        names = [f"s{number}" for number in range(30)]
        await asyncio.gather(*(ask(lambda name=name: flows.create(session(flows, name))) for name in names))
        right = [
            ask(lambda name=name: flows.append(name, 1, [completed(flows, 1, "a", name)])) for name in names
        ]
        wrong = [
            ask(lambda: flows.append("s3", 9, [completed(flows, 1, "b", 0)])),
            ask(lambda: flows.load("none")),
        ]
        outcomes = await asyncio.gather(*right[:15], *wrong, *right[15:], return_exceptions=True)
        assert [type(outcome) for outcome in outcomes[15:17]] == [
            SessionAlreadyRunningError,
            SessionNotFoundError,
        ]
        for name in names:
            found = await done(flows.load(name))
            assert [record.value for record in found.records] == [name]

    play(scene())


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, {"a": [{"b": frozenset()}]}, {"a": [lambda: 1]}, b"x", {3: "three"}, "\ud800"],
    ids=["object", "set", "set inside", "function", "bytes", "number as a key", "half a character"],
)
def test_what_cannot_be_stored_is_refused_in_words(flows: FlowStore, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="cannot be stored") as raised:
        flows.pack(value)
    assert raised.value.hint is not None
    assert "JSON" in raised.value.hint


def test_a_value_too_deep_to_be_read_back_is_refused(flows: FlowStore) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(InvalidInputError, match="cannot be stored"):
        flows.pack(deep)


@pytest.mark.parametrize("value", [(1, 2), {"x": (None, 1.5)}, {"a": {"b": [True]}}, 7, "ü", None])
def test_a_value_means_the_same_in_every_store(flows: FlowStore, value: Any) -> None:
    async def scene() -> None:
        packed, seen = flows.pack(value)
        assert seen == json.loads(json.dumps(value))
        await done(flows.create(session(flows)))
        await done(flows.append("s1", 1, [Record(1, "completed", "a", packed)]))
        if isinstance(seen, dict):
            seen.clear()
        (record,) = (await done(flows.load("s1"))).records
        assert record.value == json.loads(json.dumps(value))

    play(scene())


class TestDatabases:
    """What only a database can get wrong."""

    @pytest.mark.parametrize("value", [(1, 2), {"x": (None,)}, float("nan"), 2**80, [1.5], "ü"])
    def test_a_node_sees_what_a_resumed_one_would_see(self, sql_flows: SqlFlowStore, value: Any) -> None:
        async def scene() -> None:
            packed, seen = sql_flows.pack(value)
            await sql_flows.create(session(sql_flows))
            await sql_flows.append("s1", 1, [Record(1, "completed", "a", packed)])
            (record,) = (await sql_flows.load("s1")).records
            assert repr(record.value) == repr(seen)

        play(scene())

    def test_a_session_of_a_newer_version_is_refused(self, sql_flows: SqlFlowStore) -> None:
        async def scene() -> None:
            await sql_flows.create(session(sql_flows, record_version=99))
            with pytest.raises(NewerSchemaError, match="99"):
                await sql_flows.load("s1")

        play(scene())

    def test_a_damaged_record_is_told_by_the_name_of_its_session(self, sql_flows: SqlFlowStore) -> None:
        async def scene() -> None:
            await sql_flows.create(session(sql_flows))
            await sql_flows.append("s1", 1, [Record(1, "completed", "a", '{"cut off')])
            with pytest.raises(DamagedDataError, match="s1"):
                await sql_flows.load("s1")

        play(scene())

    def test_a_record_is_written_once(self, sql_flows: SqlFlowStore) -> None:
        async def scene() -> None:
            await sql_flows.create(session(sql_flows))
            await sql_flows.append("s1", 1, [completed(sql_flows, 1, "a", 1)])
            with pytest.raises(ConflictError, match="in the meantime"):
                await sql_flows.append("s1", 1, [completed(sql_flows, 1, "a", 2)])
            (record,) = (await sql_flows.load("s1")).records
            assert record.value == 1

        play(scene())

    def test_closing_writes_what_was_asked_for(self, empty_sqlite_file: Path, tmp_path: Path) -> None:
        database = tmp_path / "flows.db"
        shutil.copy(empty_sqlite_file, database)

        async def scene() -> None:
            store = SqlFlowStore(str(database))
            await store.create(session(store))
            asked = [
                store.append("s1", 1, [completed(store, number, "a", number)]) for number in range(1, 200)
            ]
            store.close()
            await asyncio.gather(*asked)
            with pytest.raises(StorageError, match="closed"):
                store.load("s1")

        play(scene())
        engine = open_engine(str(database))
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT count(*) FROM flow_records")).scalar() == 199
        engine.dispose()

    def test_who_stops_waiting_does_not_stop_the_writing(self, sql_flows: SqlFlowStore) -> None:
        async def scene() -> None:
            await sql_flows.create(session(sql_flows))
            sql_flows.append("s1", 1, [completed(sql_flows, 1, "a", 1)]).cancel()
            assert len((await sql_flows.load("s1")).records) == 1

        play(scene())

    def test_a_connection_that_broke_is_made_anew(self, postgres_store: SqlStore) -> None:
        async def scene() -> None:
            store = SqlFlowStore(postgres_store.database)
            await store.create(session(store))
            await store.append("s1", 1, [completed(store, 1, "a", 1)])
            engine = sa.create_engine(postgres_store.database)
            with engine.begin() as connection:
                ended = connection.execute(
                    sa.text(
                        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                )
                assert ended.scalar_one() > 0
            engine.dispose()
            await store.append("s1", 1, [completed(store, 2, "b", 2)])
            assert len((await store.load("s1")).records) == 2
            store.close()

        play(scene())

    def test_a_database_that_somebody_else_holds_is_told(
        self, empty_sqlite_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("holdfast.store.engine.BUSY_SECONDS", 0.05)
        database = tmp_path / "flows.db"
        shutil.copy(empty_sqlite_file, database)

        async def scene() -> None:
            store = SqlFlowStore(str(database))
            await store.create(session(store))
            engine = open_engine(str(database))
            with (
                engine.execution_options(begin="BEGIN IMMEDIATE").begin(),
                pytest.raises(HeldElsewhereError, match="another process"),
            ):
                await store.append("s1", 1, [completed(store, 1, "a", 1)])
            await store.append("s1", 1, [completed(store, 1, "a", 1)])
            engine.dispose()
            store.close()

        play(scene())


def test_what_the_records_add_up_to() -> None:
    said = {"partial": ["one"], "provider_session": "p1", "heard": True}
    more = {"partial": ["two"], "provider_session": None, "heard": True}
    found = progress(
        [
            Record(1, "completed", "a", 1),
            Record(2, "interrupted", "b", said),
            Record(3, "message", "", "first"),
            Record(4, "message", "", "second"),
            Record(5, "interrupted", "b", more),
            Record(6, "message", "", "third"),
        ]
    )
    assert found.outputs == {"a": 1}
    assert found.interrupted["b"].partial == ("one", "two")
    assert found.interrupted["b"].provider_session == "p1"
    assert found.interrupted["b"].messages == ("third",)
    assert (found.queue, found.seq) == ([], 6)


def test_a_message_waits_for_an_agent_where_none_was_interrupted() -> None:
    waiting = [Record(1, "message", "", "first"), Record(2, "message", "", "second")]
    assert progress(waiting).queue == ["first", "second"]
    handed = progress([*waiting, Record(3, "handed", "b", None)])
    assert (handed.queue, handed.interrupted["b"].messages) == ([], ("first", "second"))
    assert (
        progress([*waiting, Record(3, "handed", "b", None), Record(4, "completed", "b", 1)]).interrupted == {}
    )
