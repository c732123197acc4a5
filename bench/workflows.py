"""Workflows of no-op tasks: what a task costs beside a bare DBOS step and beside LangGraph.

Every subject makes each of its steps durable before the next one begins. The workers of
`throughput` are processes of their own on one PostgreSQL database.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import quote

from measure import Figure, Subject, in_fresh_process, interleave, make_project, scratch_folder

TOPIC = "workflows"
BAR = 1.2
FLAT = 1.3
TASKS = 20
FLUSH = 20
"""Milliseconds that a commit waits, as on a slow network disk."""
HERE = Path(__file__)


def run(quick: bool) -> list[Figure]:
    figures: list[Figure] = []
    with scratch_folder() as folder, _postgres() as new_database:
        for kind, database in (("SQLite", str(folder / "h.db")), ("PostgreSQL", new_database())):
            figures += _overhead(kind, database, folder, 20 if quick else 1_000)
        figures += _recorded(folder, 20 if quick else 300)
        for kind, database in (("SQLite", str(folder / "flat.db")), ("PostgreSQL", new_database())):
            figures += _flat(kind, database, folder, 1_000 if quick else 10_000)
        figures += _throughput(new_database, 40 if quick else 100)
        figures += _asleep(new_database, 1 if quick else 4)
        figures += _slow_disk(new_database, 20 if quick else 200)
    return figures


def _overhead(kind: str, database: str, folder: Path, rounds: int) -> list[Figure]:
    """In a process of its own, since DBOS is one a process."""
    found = in_fresh_process(HERE, "overhead", database, str(folder / kind), str(rounds))
    names = {
        "bare": f"{kind}: a bare DBOS step",
        "ours": f"{kind}: a task",
        "langgraph": f"{kind}: a LangGraph node, durability sync",
    }
    bare, ours, langgraph = (found[name] for name in ("bare", "ours", "langgraph"))
    return [
        Figure(TOPIC, names["bare"], bare),
        Figure(TOPIC, names["langgraph"], langgraph, against=names["bare"], ratio=langgraph / bare),
        Figure(TOPIC, names["ours"], ours, against=names["bare"], ratio=ours / bare, bar=BAR),
        Figure(TOPIC, names["ours"], ours, against=names["langgraph"], ratio=ours / langgraph),
    ]


def _recorded(folder: Path, rounds: int) -> list[Figure]:
    """What comparing a worktree of 1,000 files after every task adds, and what a change of a file does."""
    found = in_fresh_process(HERE, "recorded", str(folder / "r.db"), str(folder / "recorded"), str(rounds))
    bare = Figure(TOPIC, "SQLite: a bare DBOS step, beside these", found["bare"])
    names = {
        "off": ("SQLite: a task, files not recorded", None),
        "still": ("SQLite: a task, 1,000 files compared", BAR),
        "changing": ("SQLite: a task, a changed file recorded", None),
    }
    return [
        bare,
        *(
            Figure(TOPIC, words, found[name], against=bare.name, ratio=found[name] / bare.value, bar=bar)
            for name, (words, bar) in names.items()
        ),
    ]


def _flat(kind: str, database: str, folder: Path, many: int) -> list[Figure]:
    found = in_fresh_process(HERE, "flat", database, str(folder / f"flat-{kind}"), str(many))
    few = Figure(TOPIC, f"{kind}: a task, 10 workflows stored", found["few"])
    name = f"{kind}: a task, {many:,} workflows stored"
    return [
        few,
        Figure(TOPIC, name, found["many"], against=few.name, ratio=found["many"] / found["few"], bar=FLAT),
    ]


def _asleep(new_database: Callable[[], str], rounds: int) -> list[Figure]:
    """Tasks that sleep keep no core busy: what workers gain until the cores or the database are."""
    from noop_plans import AT_A_TIME, NAP

    figures: list[Figure] = []
    for workers in (1, 2, 4, 8):
        with scratch_folder() as folder:
            rate = _drained(new_database(), folder, rounds * workers * AT_A_TIME, workers, "sleep")
        most = workers * AT_A_TIME / NAP
        name = f"PostgreSQL: tasks of {NAP} s a second, {workers} workers of {AT_A_TIME} (limit {most:.0f})"
        figures.append(Figure(TOPIC, name, rate, unit="1/s"))
    return figures


def _slow_disk(new_database: Callable[[], str], changes: int) -> list[Figure]:
    """Changes of workflows a second where a flush takes long: whether writers wait for each other."""
    figures: list[Figure] = []
    for writers in (1, 2, 4, 8):
        options = f"-c commit_delay={FLUSH * 1000} -c commit_siblings=0"
        url = f"{new_database()}&options={quote(options)}"
        found = in_fresh_process(HERE, "write", url, str(writers), str(changes))
        name = f"PostgreSQL: changes a second, a flush of {FLUSH} ms, {writers} at once"
        figures.append(Figure(TOPIC, name, found["rate"], unit="1/s"))
    return figures


def _throughput(new_database: Callable[[], str], workflows: int) -> list[Figure]:
    figures: list[Figure] = []
    for workers in (1, 2, 4):
        with scratch_folder() as folder:
            rate = _drained(new_database(), folder, workflows, workers)
        name = f"PostgreSQL: tasks a second, {workers} worker{'s' if workers > 1 else ''}"
        figures.append(Figure(TOPIC, name, rate, unit="1/s"))
    return figures


def _drained(database: str, folder: Path, workflows: int, workers: int, prompt: str = "nothing") -> float:
    """Queue the workflows, start the workers, and look how long the queue takes to empty."""
    in_fresh_process(HERE, "queue", database, str(folder), str(workflows), prompt)
    processes = [
        subprocess.Popen(
            [sys.executable, HERE, "work", database, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(workers)
    ]
    for process in processes:  # starting Python is not what is measured
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [json.loads(process.communicate()[0]) for process in processes]
    seconds = max(end["last"] for end in ends) - min(end["first"] for end in ends)
    return workflows * TASKS / seconds


@contextlib.contextmanager
def _postgres() -> Generator[Callable[[], str]]:
    """The tests' own server."""
    sys.path.insert(0, str(HERE.parents[1] / "tests"))
    from postgres import PostgresServer

    with PostgresServer() as server:
        yield server.create_database


# ── in processes of their own ───────────────────────────────────────────────────────────────


def _overhead_here(database: str, folder: str, rounds: str) -> dict[str, float]:
    from noop_plans import Shop
    from peers.langgraph_chain import Chain

    with Shop(database, Path(folder)) as shop, Chain(database, Path(folder), TASKS) as chain:
        subjects = [
            Subject("bare", lambda: shop.bare(TASKS)),
            Subject("ours", shop.run, prepare=lambda: shop.start(TASKS)),
            Subject("langgraph", chain.run),
        ]
        timings = interleave(subjects, int(rounds))
        return {name: timing.median / TASKS for name, timing in timings.items()}


def _recorded_here(database: str, folder: str, rounds: str) -> dict[str, float]:
    from noop_plans import Shop

    with Shop(database, Path(folder)) as shop:
        off, still, changing = (make_project(Path(folder) / name) for name in ("off", "still", "changing"))
        for project in (off, still, changing):
            for number in range(1_000):
                (project / f"file{number}").write_text(f"{number}\n" * 100)
        subjects = [
            Subject("bare", lambda: shop.bare(TASKS)),
            Subject("off", shop.run, prepare=lambda: shop.start(TASKS, off, recorded=False)),
            Subject("still", shop.run, prepare=lambda: shop.start(TASKS, still)),
            Subject("changing", shop.run, prepare=lambda: shop.start(TASKS, changing, changes=True)),
        ]
        timings = interleave(subjects, int(rounds))
        return {name: timing.median / TASKS for name, timing in timings.items()}


def _flat_here(database: str, folder: str, many: str) -> dict[str, float]:
    from noop_plans import Shop

    with Shop(database, Path(folder)) as shop:
        subject = Subject("ours", shop.run, prepare=lambda: shop.start(TASKS))
        shop.store_paused(10)
        few = interleave([subject], 40)["ours"]
        shop.store_paused(int(many) - 10)
        return {"few": few.median / TASKS, "many": interleave([subject], 40)["ours"].median / TASKS}


def _queue_here(database: str, folder: str, workflows: str, prompt: str) -> dict[str, float]:
    from noop_plans import Shop

    with Shop(database, Path(folder)) as shop:
        for number in range(int(workflows)):
            shop.queue(TASKS, f"w{number}", prompt)
    return {}


def _work_here(database: str, folder: str) -> dict[str, float]:
    from noop_plans import work_off

    print("ready", flush=True)
    sys.stdin.readline()
    first, last = work_off(database, Path(folder))
    return {"first": first, "last": last}


def _write_here(database: str, writers: str, changes: str) -> dict[str, float]:
    from noop_plans import changed_by_many

    return {"rate": changed_by_many(database, int(writers), int(changes))}


_PARTS = {
    "write": _write_here,
    "overhead": _overhead_here,
    "recorded": _recorded_here,
    "flat": _flat_here,
    "queue": _queue_here,
    "work": _work_here,
}

if __name__ == "__main__":
    print(json.dumps(_PARTS[sys.argv[1]](*sys.argv[2:])))  # type: ignore[operator]
