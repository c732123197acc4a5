"""Kills a run of a plan at named points of its database work, ours and DBOS's; for `test_kill_points`.

A point is a fault point of the program, a statement with its table, or a commit, before and after. One run
is watched to learn how often each is passed; then each round is killed at one of them, finished by processes
that nobody kills, and verified. `first` makes a new SQLite database for each round, so that the making is
killed, too. Forks from a process that has everything loaded. Prints what it saw as JSON.

    kill_points.py PROJECT DATABASE KILLS here|worker|first
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine.default import DefaultDialect

import holdfast.workflows.engine  # so that no child has to
from holdfast.base.faults import fault_point, watch_points
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings, load_settings
from holdfast.store.sql import SqlStore
from holdfast.workflows.plan import Plan, parse_plan
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.worker import Here, Worker
from workflows.kill_rounds import newest, verify

TASKS = 3
_NAMED = re.compile(
    r"\s*(?:/\*.*?\*/\s*)?(?:(INSERT) INTO|(UPDATE)|(DELETE) FROM|(SELECT)\b.*?\bFROM|"
    r"(BEGIN|PRAGMA|CREATE \w+))\s*\"?((?:[\w.\"]+)?)",
    re.DOTALL | re.IGNORECASE,
)


class Watched(set[str]):
    """Counts what is passed, and ends the process where it is told to."""

    def __init__(self, name: str = "", index: int = 0) -> None:
        super().__init__()
        self.passed: Counter[str] = Counter()
        self._due = (name, index)

    def add(self, name: str, /) -> None:
        if (name, self.passed[name]) == self._due:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed[name] += 1


def name_database_work() -> None:
    """Every statement through SQLAlchemy is a point, and every commit has one before and one after it."""

    def executing(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        found = _NAMED.match(statement)
        words = [word for word in found.groups() if word] if found else ["another"]
        fault_point(f"sql.{' '.join(words)}".replace('"', "").lower())

    event.listen(Engine, "before_cursor_execute", executing)
    commit = DefaultDialect.do_commit

    def do_commit(self: DefaultDialect, dbapi_connection: Any) -> None:
        fault_point("sql.commit")
        commit(self, dbapi_connection)
        fault_point("sql.committed")

    DefaultDialect.do_commit = do_commit


def plan(ran: Path) -> Plan:
    """It pauses in between; each task notes the attempt it is."""
    tasks = "".join(
        f'  - {{id: t{n}, run: "echo $HOLDFAST_ATTEMPT >> {ran}/t{n}"'
        + (f", depends_on: [t{n - 1}]}}\n" if n else "}\n")
        for n in range(TASKS)
    )
    return parse_plan(f"issue: {{id: K, title: Kill}}\npause_every: 2\ntasks:\n{tasks}")


def here(settings: Settings, ran: Path, known: Workflow | None) -> None:
    """From wherever it stands to the end, in one process."""
    while known is None or known.status != "completed":
        with Here(settings) as process:
            flow = (
                process.service.start(plan(ran), claim=process.claim)
                if known is None
                else process.service.resume_workflow(known.id, claim=process.claim).workflow
            )
            known = process.run(flow)


def worker(settings: Settings, ran: Path, known: Workflow | None) -> None:
    """The same from the queue: whoever takes it up, and whoever was there before."""
    while known is None or known.status != "completed":
        with OrchestratorService(settings) as service:
            if known is None:
                known = service.start(plan(ran))
            elif known.status == "paused":
                service.resume_workflow(known.id)
        Worker(settings).run(until_idle=True)
        with OrchestratorService(settings) as service:
            known = service.workflow(known.id)


WAYS = {"here": here, "worker": worker, "first": here}


def in_child(work: Callable[[], None]) -> bool:
    """Whether it got to its end before it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent's stderr shall have it
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return False
    assert status == 0, f"a session failed with status {status}"
    return True


class Laboratory:
    def __init__(self, project: Path, database: str, way: str) -> None:
        environment = {"HOLDFAST_HOME": str(project.parent / "home"), "HOLDFAST_DB": database}
        self._settings = load_settings(environment, project)
        self._project, self._go, self._is_first = project, WAYS[way], way == "first"
        self._number = 0
        if not self._is_first:  # else the points of making the tables would be counted, and never met again
            assert in_child(lambda: self._go(self._settings, self._room(), None))

    def points(self) -> Counter[str]:
        """How often one run passes each."""
        told = self._project.parent / "points.json"
        self._number += 1

        def watched() -> None:
            seen = Watched()
            watch_points(seen)
            self._go(self._settings, self._room(), None)
            watch_points(None)
            told.write_text(json.dumps(seen.passed))

        assert in_child(watched)
        return Counter(json.loads(told.read_text()))

    def killed(self, name: str, index: int) -> bool:
        """One round; whether the point was reached."""
        self._number += 1
        ran, before = self._room(), None
        if self._is_first:
            self._settings = replace(self._settings, db=str(ran / "holdfast.db"))
        else:
            before = newest(self._settings)

        def doomed() -> None:
            watch_points(Watched(name, index))
            self._go(self._settings, ran, None)

        is_over = in_child(doomed)
        found = newest(self._settings)
        known = found if found and (before is None or found.id != before.id) else None
        if not is_over:
            assert in_child(lambda: self._go(self._settings, ran, known))
        last = newest(self._settings)
        assert last is not None
        assert known is None or last.id == known.id, "what was acknowledged is gone"
        verify(self._settings, last, ran, TASKS)
        return not is_over

    def verify_database(self) -> None:
        store = SqlStore(self._settings.db)
        try:
            store.verify()
        finally:
            store.close()

    def _room(self) -> Path:
        folder = self._project.parent / f"ran-{self._number}"
        folder.mkdir(exist_ok=True)
        return folder


def main(project: str, database: str, kills: int, way: str) -> None:
    name_database_work()
    laboratory = Laboratory(Path(project), database, way)
    passed = laboratory.points()
    chance = random.Random()
    names = sorted(passed)
    chance.shuffle(names)
    seen: Counter[str] = Counter()
    done = tried = 0
    while done < kills:
        name = names[tried % len(names)]
        tried += 1
        assert tried < 10 * kills + 10 * len(names), f"points are not reached: {seen}"
        index = chance.randrange(passed[name])
        try:
            was_killed = laboratory.killed(name, index)
        except BaseException:
            print(f"killed at {name}, {index}", file=sys.stderr)  # noqa: T201 - a program's answer
            raise
        done += was_killed
        seen[name] += was_killed
    laboratory.verify_database()
    print(json.dumps({"kills": done, "points": names, "seen": seen}))  # noqa: T201 - a program's answer


if __name__ == "__main__":
    assert holdfast.workflows.engine
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
