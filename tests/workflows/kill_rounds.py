"""Kills a run of a plan again and again and resumes it; for `test_crash`.

Forks from a process that has everything loaded, so that a round costs little more than the
work in it. Prints what it saw as JSON.

    kill_rounds.py PROJECT DATABASE KILLS
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import holdfast.workflows.engine  # so that no child has to
from holdfast.model.entry import TaskFinished, TaskStarted
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings, load_settings
from holdfast.workflows.plan import Plan, parse_plan
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.worker import Here

TASKS = 30
PATIENCE = 60.0


def plan(folder: Path) -> Plan:
    """Each task notes the attempt it is, then takes a moment."""
    lines = [
        f'  - {{id: t{number}, run: "echo $HOLDFAST_ATTEMPT >> {folder}/t{number}; sleep 0.01"}}'
        for number in range(TASKS)
    ]
    return parse_plan("issue: {id: K, title: Kill}\ntasks:\n" + "\n".join(lines))


def session(settings: Settings, ran: Path, workflow_id: str | None) -> Workflow:
    """Start it, or go on with it."""
    with Here(settings) as here:
        if workflow_id is None:
            workflow = here.service.start(plan(ran), claim=here.claim)
        else:
            workflow = here.service.resume_workflow(workflow_id, claim=here.claim).workflow
        return here.run(workflow)


def killed_session(settings: Settings, ran: Path, workflow_id: str | None, seconds: float) -> bool:
    """Whether the session got to its end before it was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            session(settings, ran, workflow_id)
            code = 0
        except BaseException:  # noqa: BLE001 - whatever it is, the parent's stderr shall have it
            traceback.print_exc()
        finally:
            os._exit(code)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, f"a session failed with status {status}"
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def newest(settings: Settings) -> Workflow | None:
    with OrchestratorService(settings) as service:
        found = service.workflows(limit=1)
        return found[0] if found else None


def verify(settings: Settings, workflow: Workflow, ran: Path, number: int = TASKS) -> Counter[str]:
    """Every task completed exactly once as recorded; each attempt ran at most once and is marked."""
    with OrchestratorService(settings) as service:
        assert service.workflow(workflow.id).status == "completed"
        tasks = service.tasks(workflow.id)
        entries = [event.entry for event in service.events(workflow.id)]
    completed = Counter(
        one.task_id for one in entries if isinstance(one, TaskFinished) and one.outcome == "completed"
    )
    assert completed == {f"t{one}": 1 for one in range(number)}, completed
    again = 0
    for task in tasks.tasks:
        started = [one.attempt for one in entries if isinstance(one, TaskStarted) and one.task_id == task.id]
        assert started == list(range(1, len(started) + 1)), (task.id, started)
        really = list(map(int, (ran / task.id).read_text().split()))
        assert len(set(really)) == len(really), (task.id, really)
        assert set(really) <= set(started), (task.id, really, started)
        assert started[-1] == task.attempts in really, (task.id, really, started)
        again += len(started) - 1
    return Counter(workflows=1, sessions=workflow.session_count, run_again=again)


def main(project: str, database: str, kills: int) -> None:
    settings = load_settings(
        {"HOLDFAST_HOME": str(Path(project).parent / "home"), "HOLDFAST_DB": database}, Path(project)
    )
    chance = random.Random()
    seen: Counter[str] = Counter()
    number = 0
    while seen["kills"] < kills:
        number += 1
        ran = Path(project).parent / f"ran-{number}"
        ran.mkdir()
        one_workflow(settings, ran, kills, chance, seen)
    print(json.dumps(seen))  # noqa: T201 - a program's answer


def one_workflow(
    settings: Settings, ran: Path, kills: int, chance: random.Random, seen: Counter[str]
) -> None:
    before = newest(settings)
    current: Workflow | None = None
    while True:
        workflow_id = current.id if current else None
        seconds = PATIENCE if seen["kills"] >= kills else 0.1 + chance.random() * 0.8
        finished = killed_session(settings, ran, workflow_id, seconds)
        seen["kills"] += not finished
        found = newest(settings)
        current = found if found and (before is None or found.id != before.id) else None
        if current is not None and current.status == "completed":  # perhaps killed just after its end
            seen.update(verify(settings, current, ran))
            return


if __name__ == "__main__":
    assert holdfast.workflows.engine
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
