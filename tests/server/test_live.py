"""`/ws/events`: replay, then live; gaps are told; a slow client is told and holds nobody up."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from cli.harness import Place
from holdfast.model.entry import Warned
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings
from holdfast.server import feed as feeds
from holdfast.server.routes import events
from holdfast.store.engine import open_engine
from holdfast.store.sql import SqlStore
from holdfast.store.tables import workflow_events
from soak import repeated
from store.samples import new, next_of, workflow

from .harness import PATIENCE, Listener, Served, serving
from .program import ServerProgram


class Writer:
    """Writes events into a store, as a worker beside the server would."""

    def __init__(self, store: SqlStore, name: str = "wf_1") -> None:
        self._store = store
        self._flow: Workflow = workflow(name)
        self.seqs = [event.seq for event in store.apply(new(self._flow))]

    def write(self, number: int, at_once: int = 1, size: int = 10) -> list[int]:
        written: list[int] = []
        for start in range(0, number, at_once):
            entries = [Warned(text="x" * size) for _ in range(min(at_once, number - start))]
            change = next_of(self._flow, *entries)
            written += [event.seq for event in self._store.apply(change)]
            self._flow = change.workflow
        self.seqs += written
        return written


@pytest.fixture
def writer(sql_store: SqlStore) -> Writer:
    return Writer(sql_store)


def test_live_from_now_on(served: Served, writer: Writer) -> None:
    with served.socket() as listener:
        assert listener.next() == {"type": "live", "seq": writer.seqs[-1]}
        written = writer.write(5)
        assert listener.events(5) == written


@pytest.mark.parametrize("known", [0, 3, 7])
def test_replay_then_live_without_a_seam(served: Served, writer: Writer, known: int) -> None:
    writer.write(6)
    since = writer.seqs[0] - 1 + known
    with served.socket(f"?since={since}") as listener:
        messages = listener.until("live")
        replayed = [event["seq"] for message in messages[:-1] for event in message["events"]]
        assert replayed == [seq for seq in writer.seqs if seq > since]
        assert messages[-1]["seq"] == writer.seqs[6]
        assert writer.write(3) == listener.events(3)


def test_an_event_looks_the_same_over_rest_and_socket(served: Served, writer: Writer) -> None:
    writer.write(2)
    with served.socket(f"?since={writer.seqs[0] - 1}") as listener:
        assert listener.next()["events"] == served.get("/api/events")["events"]


def test_only_one_workflow(served: Served, writer: Writer, sql_store: SqlStore) -> None:
    other = Writer(sql_store, "wf_2")
    writer.write(3)
    with served.socket("?since=0&workflow_id=wf_2") as listener:
        assert listener.events(1) == other.seqs
        listener.until("live")
        writer.write(3)
        assert other.write(2) == listener.events(2)


def test_many_join_while_events_come(served: Served, writer: Writer) -> None:
    """Whenever a listener joins, what it gets has no hole and nothing twice."""
    done = threading.Event()
    found: dict[int, list[int]] = {}
    total = repeated(300)

    def listen(number: int) -> None:
        with served.socket("?since=0") as listener:
            found[number] = listener.events(total + 1)

    def write() -> None:
        writer.write(total)
        done.set()

    threads = [threading.Thread(target=write)]
    threads += [threading.Thread(target=listen, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done.is_set()
    assert all(seqs == writer.seqs for seqs in found.values())


def test_a_gap_that_is_gone_is_said(served: Served, writer: Writer, sql_store: SqlStore) -> None:
    writer.write(9)
    gone, kept = writer.seqs[:5], writer.seqs[5:]
    engine = open_engine(sql_store.database)
    with engine.begin() as connection:
        connection.execute(workflow_events.delete().where(workflow_events.c.seq <= gone[-1]))
    engine.dispose()
    with served.socket(f"?since={gone[1]}") as listener:
        assert listener.next() == {
            "type": "backfill_expired",
            "since": gone[1],
            "oldest": kept[0],
            "newest": kept[-1],
        }
        assert listener.events(5) == kept
    with served.socket(f"?since={gone[-1]}") as listener:
        assert listener.next()["type"] == "events"


def test_a_number_of_another_database_is_said(served: Served, writer: Writer) -> None:
    with served.socket(f"?since={writer.seqs[-1] + 1000}") as listener:
        assert listener.next()["type"] == "backfill_expired"
        assert listener.next() == {"type": "live", "seq": writer.seqs[-1]}
        assert writer.write(2) == listener.events(2)


def test_ping_when_nothing_happens(served: Served, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PING_SECONDS", 0.05)
    with served.socket() as listener:
        assert [listener.next()["type"] for _ in range(3)] == ["live", "ping", "ping"]
        assert listener.next() == {"type": "ping", "seq": writer.seqs[-1]}


@pytest.mark.parametrize("query", ["?since=-1", "?since=x", f"?since={2**63}", "?workflow_id=" + "x" * 300])
def test_what_cannot_be_asked_for(served: Served, query: str) -> None:
    with pytest.raises(InvalidStatus) as refused, served.socket(query):
        pass
    assert refused.value.response.status_code == 422


@pytest.fixture
def small_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that keeps little, so that it is easy to fall behind."""
    monkeypatch.setattr(feeds, "KEPT_EVENTS", 50)


@pytest.mark.usefixtures("small_feed")
def test_a_slow_client_is_told_and_holds_nobody_up(
    settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    with serving(settings, home=tmp_path) as served:
        writer = Writer(sql_store)
        with served.socket(reads_ahead=1) as slow, served.socket() as quick:
            slow.until("live")
            quick.until("live")
            # More than all the buffers between the two hold, while the slow one reads nothing.
            for _ in range(40):
                written = writer.write(10, at_once=10, size=50_000)
                assert quick.events(10) == written
            seen, told = _rest(slow)
            assert writer.write(1) == quick.events(1)
        assert told == {"type": "slow", "seq": seen[-1], "newest": writer.seqs[-2]}
        assert seen == writer.seqs[1 : len(seen) + 1]
        assert len(seen) < 400
        with served.socket(f"?since={told['seq']}") as again:
            assert again.events(401 - len(seen)) == writer.seqs[len(seen) + 1 :]


def _rest(listener: Listener) -> tuple[list[int], dict[str, Any]]:
    """What still comes, up to the last word before the connection is closed."""
    seen: list[int] = []
    while (message := listener.next())["type"] == "events":
        seen += [event["seq"] for event in message["events"]]
    with pytest.raises(ConnectionClosed) as closed:
        listener.next()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == events.TOO_SLOW
    return seen, message


def test_killed_and_started_again_no_event_is_lost(place: Place) -> None:
    """A client that connects again with the last number it saw has, in the end, seen every event once."""
    rounds = 1 + repeated(2)
    with ServerProgram(place) as program:
        store = SqlStore(str(place.database))
        writer = Writer(store)
        client = _Client(program, total=1 + rounds * 40)
        for number in range(rounds):
            writer.write(20)
            client.has_seen(10 + number * 40)
            program.kill()
            writer.write(20)
            program.start()
        client.thread.join(PATIENCE)
        store.close()
    assert client.seen == writer.seqs
    assert client.connections > rounds


class _Client:
    """Follows on a thread of its own, and connects again whenever it is cut off."""

    def __init__(self, program: ServerProgram, total: int) -> None:
        self.seen: list[int] = []
        self.connections = 0
        self._program, self._total = program, total
        self._news = threading.Condition()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def has_seen(self, number: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: len(self.seen) >= number, PATIENCE)

    def _run(self) -> None:
        while len(self.seen) < self._total:
            with contextlib.suppress(OSError, ConnectionClosed, InvalidHandshake):
                self._follow()

    def _follow(self) -> None:
        with self._program.served().socket(f"?since={self.seen[-1] if self.seen else 0}") as listener:
            self.connections += 1
            while len(self.seen) < self._total:
                message = listener.next()
                with self._news:
                    self.seen += [event["seq"] for event in message.get("events", ())]
                    self._news.notify_all()
