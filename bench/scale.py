"""1,000 workers and 1,000,000 workflows on one PostgreSQL, simulated: rows, indexes, vacuum, connections.

The rows are made by the server itself, and the workers are leases of processes that are not there.
Measured are the questions and the commits of a worker.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from measure import Figure, in_fresh_process, scratch_folder

TOPIC = "scale"
WORKERS = 1_000
RUNNING = 14
"""Sessions of each worker."""
EVENTS = 5
"""Of each workflow here; a real one of 20 tasks has some 45."""
HERE = Path(__file__)


def run(quick: bool) -> list[Figure]:
    from workflows import _postgres  # pyright: ignore[reportPrivateUsage]

    number = 20_000 if quick else 1_000_000
    with scratch_folder() as folder, _postgres() as new_database:
        url = new_database()
        script = HERE.with_name("workflows.py")
        in_fresh_process(script, "queue", url, str(folder), "0", "nothing")  # makes the tables
        figures = [*_questions(url, number), *_growth(url, number)]
        return [*figures, *_connections(new_database(), folder)]


def _questions(url: str, number: int) -> list[Figure]:
    """What each worker asks twice a second, and a commit, among so many workflows."""
    from holdfast.model.entry import Warned
    from holdfast.sessions.transitions import Core
    from holdfast.store.sql import SqlStore

    store = SqlStore(url)
    with contextlib.closing(store):
        with store._engine.begin() as connection:  # pyright: ignore[reportPrivateUsage]
            _fill(connection, number)
        core = Core(store)
        asked: dict[str, Callable[[], object]] = {
            "the leases": store.leases.all,
            "what is queued": store.queued,
            "what a dead worker left": store.left_behind,
            "all that is claimed": store.claimed,
            "how many are claimed": store.claimed_by_workers,
            "one workflow": lambda: store.workflow("wf_bench_77"),
            "a page of all": lambda: store.workflows(limit=50),
            "a commit with an event": lambda: core.record("wf_bench_1", Warned(text="bench")),
        }
        return [
            Figure(TOPIC, f"{name}, among {number:,} workflows and {WORKERS:,} workers", _median(action))
            for name, action in asked.items()
        ]


def _median(action: Callable[[], object]) -> float:
    """Milliseconds."""
    times: list[float] = []
    for _ in range(9):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


_WORKFLOWS = """
INSERT INTO workflows (id, issue_id, issue_title, issue_description, worktree, status, revision,
                       session_count, created_at, updated_at, run_id, claim)
SELECT 'wf_bench_' || n, 'B', 'Bench', '', '/w' || n,
       CASE WHEN n <= :running THEN 'in_progress' ELSE 'completed' END, 45, 1, now(), now(),
       CASE WHEN n <= :running THEN 'wf_bench_' || n || '/1.1' END,
       CASE WHEN n <= :running THEN 'worker-host-' || (n % :workers) || '-abc#1' END
FROM generate_series(1, :number) AS n
"""
_EVENTS = """
INSERT INTO workflow_events (workflow_id, at, type, entry_json)
SELECT 'wf_bench_' || n, now(), 'task_finished', repeat('x', 200)
FROM generate_series(1, :number) AS n, generate_series(1, :events)
"""
_LEASES = """
INSERT INTO workers (id, kind, host, pid, lease_seconds, seen_at)
SELECT 'worker-host-' || n || '-abc', 'worker', 'elsewhere', n, 86400, now()
FROM generate_series(0, :workers - 1) AS n
"""


def _fill(connection: sa.Connection, number: int) -> None:
    running = min(WORKERS * RUNNING, number // 2)
    connection.execute(sa.text(_LEASES), {"workers": WORKERS})
    connection.execute(sa.text(_WORKFLOWS), {"running": running, "workers": WORKERS, "number": number})
    connection.execute(sa.text(_EVENTS), {"number": number, "events": EVENTS})
    connection.execute(sa.text("ANALYZE"))


def _growth(url: str, number: int) -> list[Figure]:
    engine = _bare(url, isolation_level="AUTOCOMMIT")
    figures: list[Figure] = []
    with engine.connect() as connection:
        for table, rows in (("workflows", number), ("workflow_events", number * EVENTS)):
            size = "SELECT pg_table_size(:t), pg_indexes_size(:t)"
            data, indexes = connection.execute(sa.text(size), {"t": table}).one()
            figures.append(Figure(TOPIC, f"{table}: bytes a row", data / rows, unit="B"))
            figures.append(Figure(TOPIC, f"{table}: bytes of indexes a row", indexes / rows, unit="B"))
        connection.execute(sa.text("DELETE FROM workflow_events WHERE seq % :fifth = 0"), {"fifth": EVENTS})
        began = time.perf_counter()
        connection.execute(sa.text("VACUUM workflow_events"))
        name = f"a vacuum of {number * EVENTS:,} events, a fifth of them deleted"
        figures.append(Figure(TOPIC, name, time.perf_counter() - began, unit="s"))
    engine.dispose()
    return figures


def _connections(url: str, folder: Path) -> list[Figure]:
    """How many one worker holds, of the hundred that PostgreSQL allows by default."""
    script = HERE.with_name("workflows.py")
    (folder / "one").mkdir()
    in_fresh_process(script, "queue", url, str(folder / "one"), "4", "sleep")
    engine = _bare(url)
    most = 0
    worker = subprocess.Popen(
        [sys.executable, script, "work", url, str(folder / "one")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    counted = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with engine.connect() as connection:
        while worker.poll() is None:
            most = max(most, connection.execute(sa.text(counted)).scalar_one())
            connection.rollback()
            time.sleep(0.05)
    worker.communicate()
    engine.dispose()
    return [Figure(TOPIC, "connections of one worker with 4 sessions", most, unit="")]


def _bare(url: str, **options: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), **options)  # type: ignore[arg-type]
