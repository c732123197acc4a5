"""A share of the crowd that `make bench ARGS=server` puts before the server: many listeners, many events."""

from __future__ import annotations

import threading

from holdfast.store.sql import SqlStore
from soak import repeated

from .harness import Served
from .test_live import Writer

CLIENTS = min(200, repeated(30))
EVENTS = repeated(2_000)


def test_no_event_is_lost_or_doubled_for_anybody(served: Served, sql_store: SqlStore) -> None:
    writer = Writer(sql_store)
    everybody = threading.Barrier(CLIENTS + 1)
    found: list[list[int]] = []

    def listen() -> None:
        with served.socket() as listener:
            listener.until("live")
            everybody.wait()
            found.append(listener.events(EVENTS))

    threads = [threading.Thread(target=listen) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    everybody.wait()
    written = writer.write(EVENTS, at_once=20)
    for thread in threads:
        thread.join()
    assert len(found) == CLIENTS
    assert all(seqs == written for seqs in found)
    assert served.get("/api/health")["seq"] == written[-1]
