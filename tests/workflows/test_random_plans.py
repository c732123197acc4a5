"""Random plans with failures, retries, time-outs, daemons, pauses, kills, skips and forks, against a model.

The model says which attempts run, in which order, and how the session ends. After every session nothing of a
task is alive, as `/proc` tells.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.workflows.drivers.protocol import StopSignal
from holdfast.workflows.plan import parse_plan
from holdfast.workflows.runner import GO_ON, SessionRun
from holdfast.workflows.task_runner import TaskRunner
from holdfast.workflows.worker import Here
from soak import SOAK, repeated

from .harness import Workshop, wait_for

PLANS = 500
AT_MOST = 40
DONE = ("completed", "skipped")

# An attempt does what the line of its number says; past the last line it succeeds.
_SCRIPT = """#!/bin/sh
n=$(($(wc -l < "$1.ran" 2>/dev/null || echo 0) + 1)); echo "$n" >> "$1.ran"
echo "$1" >> log
case "$(sed -n "${n}p" "$1.does" 2>/dev/null)" in
fail) exit 1 ;;
hang) HANGS; sleep TOKEN ;;
deaf) trap '' TERM INT HUP; HANGS; sleep TOKEN; sleep TOKEN ;;
daemon) setsid sleep TOKEN >/dev/null 2>&1 & ;;
leaves) setsid sleep TOKEN >/dev/null 2>&1 & exit 1 ;;
slow) sleep 0.3 ;;
esac
"""
_HANGS = 'echo "$HOLDFAST_WORKFLOW $HOLDFAST_ATTEMPT" > "$1.hangs"'
_FAILS = ("fail", "hang", "deaf", "leaves")


@dataclass
class Model:
    """What must happen."""

    needs: dict[str, list[str]]
    does: dict[str, list[str]]
    retries: int
    keep_going: bool
    pause_every: int | None
    status: dict[str, str] = field(default_factory=dict[str, str])
    ran: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.status = dict.fromkeys(self.needs, "pending")
        self.ran = dict.fromkeys(self.needs, 0)

    def session(self) -> tuple[str, list[str]]:
        """How it ends, and the attempts in it."""
        attempts: list[str] = []
        failures = dict.fromkeys(self.needs, 0)
        done, failed_now = 0, False
        while True:
            ready = [name for name in self.needs if self._may_start(name)]
            is_stopped = failed_now and not self.keep_going
            if "failed" in self.status.values() and (is_stopped or not ready):
                return "failed", attempts
            if all(status in DONE for status in self.status.values()):
                return "completed", attempts
            if self.pause_every is not None and done >= self.pause_every:
                return "paused", attempts
            name = ready[0]
            attempts.append(name)
            script = self.does[name]
            what = script[self.ran[name]] if self.ran[name] < len(script) else "ok"
            self.ran[name] += 1
            if what not in _FAILS:
                self.status[name] = "completed"
                done += 1
            elif failures[name] < self.retries:
                failures[name] += 1
            else:
                self.status[name] = "failed"
                failed_now = True

    def _may_start(self, name: str) -> bool:
        return self.status[name] == "pending" and all(self.status[one] in DONE for one in self.needs[name])

    def retry(self, *names: str) -> None:
        for name in names or [one for one, status in self.status.items() if status == "failed"]:
            self.status[name] = "pending"


class Trial:
    """One plan, taken to its end by whatever comes."""

    def __init__(self, workshop: Workshop, seed: int) -> None:
        self.workshop, self.seed, self.chance = workshop, seed, random.Random(seed)
        self.folder = workshop.project
        self.token = f"6{secrets.randbelow(10**8):08d}"
        self.model = self._made()
        self.kept: list[tuple[str, dict[str, str]]] = []
        """Snapshots, with what the model knew then."""

    def _made(self) -> Model:
        chance = self.chance
        names = [f"t{number}" for number in range(chance.randint(1, 5))]
        bad = ["fail", "fail", "leaves", "hang"] + (["deaf"] if SOAK >= 1 else [])
        does = {
            name: [chance.choice([*bad, "ok", "daemon"]) for _ in range(chance.choice((0, 0, 1, 2, 3)))]
            for name in names
        }
        needs = {
            name: sorted(chance.sample(names[:number], min(number, chance.choice((0, 1, 1, 2)))))
            for number, name in enumerate(names)
        }
        every = chance.choice((None, None, 1, 2))
        return Model(needs, does, chance.choice((0, 0, 1, 2)), chance.random() < 0.5, every)

    def plan(self) -> Any:
        model = self.model
        for old in (*self.folder.glob("t*"), self.folder / "log"):
            old.unlink(missing_ok=True)
        (self.folder / "task.sh").write_text(_SCRIPT.replace("TOKEN", self.token).replace("HANGS", _HANGS))
        for name, lines in model.does.items():
            (self.folder / f"{name}.does").write_text("".join(f"{line}\n" for line in lines))
        options = f"retries: {model.retries}\nretry_delay: 0\nkeep_going: {str(model.keep_going).lower()}\n"
        if model.pause_every:
            options += f"pause_every: {model.pause_every}\n"
        tasks = "".join(
            f"  - {{id: {name}, run: sh ./task.sh {name}, timeout: 0.5, depends_on: [{', '.join(needs)}]}}\n"
            for name, needs in model.needs.items()
        )
        return parse_plan(f"issue: {{id: R, title: Random}}\n{options}tasks:\n{tasks}")

    def log(self) -> list[str]:
        return self.workshop.log()

    def go(self) -> None:
        with self._here() as here:
            flow = self._session(here, here.service.start(self.plan(), claim=here.claim))
        for _ in range(AT_MOST):
            if flow.status == "completed":
                assert all(status in DONE for status in self.model.status.values())
                return
            flow = self._some_way_on(flow)
        raise AssertionError(f"plan {self.seed} did not end")

    @contextmanager
    def _here(self) -> Generator[Here]:
        with Here(self.workshop.settings) as here:
            yield here
        left = _pids_with(self.token)
        assert not left, f"plan {self.seed}: {left} outlived their tasks"

    def _session(self, here: Here, flow: Workflow) -> Workflow:
        """Without DBOS, which only repeats steps: the runner itself, to the end of the session."""
        before = len(self.log())
        verdict, attempts = self.model.session()
        with SessionRun(flow.id, flow.run_id or "", here._around) as run:  # pyright: ignore[reportPrivateUsage]
            while (ended := run.advance()) == GO_ON:
                pass
        assert (ended, self.log()[before:]) == (verdict, attempts), f"plan {self.seed}"
        found = {task.id: task.status for task in here.service.tasks(flow.id).tasks}
        assert found == self.model.status, f"plan {self.seed}"
        latest = here.service.store.latest_snapshot(flow.id)
        if verdict != "completed" and latest is not None:
            self.kept.append((latest.id, dict(self.model.status)))
        return here.service.workflow(flow.id)

    def _some_way_on(self, flow: Workflow) -> Workflow:
        chance, model = self.chance, self.model
        failed = [name for name, status in model.status.items() if status == "failed"]
        open_ones = [name for name, status in model.status.items() if status not in DONE]
        way = chance.choice(("resume", "resume", "retry", "skip", "from", "fork", "kill"))
        if way == "kill" and chance.random() < (1 if SOAK >= 1 else 0.2):
            flow, way = self._killed(flow), "resume"
            if flow.status == "completed":
                return flow
        with self._here() as here:
            service, claim = here.service, here.claim
            if way == "retry" and failed:
                name = chance.choice(failed)
                model.retry(name)
                return self._session(here, service.retry(flow.id, name, claim=claim).workflow)
            if way == "skip" and chance.random() < 0.4:
                name = chance.choice(open_ones)
                model.status[name] = "skipped"
                return self._session(here, service.skip(flow.id, name, claim=claim))
            snapshot = None
            if way == "fork":
                flow = self._forked(here, flow)
            elif way == "from":
                snapshot, status = chance.choice(self.kept)
                model.status = dict(status)
            model.retry()
            resumed = service.resume_workflow(flow.id, snapshot_id=snapshot, claim=claim)
            return self._session(here, resumed.workflow)

    def _forked(self, here: Here, origin: Workflow) -> Workflow:
        """A copy from some task on, or as it is."""
        model, service = self.model, here.service
        name = self.chance.choice([None, *model.needs])
        forked = service.fork(origin.id, name)
        again = {name} if name else set[str]()
        for one, needs in model.needs.items():  # each stands behind all that it needs
            if one in again or again & {*needs}:
                again.add(one)
                model.status[one] = "pending"
        assert service.workflow(origin.id) == origin
        self.kept = []  # of another workflow
        return forked

    def _killed(self, flow: Workflow) -> Workflow:
        """The program itself is killed at some moment; what it recorded until then is what holds."""
        before = dict(self.model.status)
        with self.workshop.program("resume", flow.id, "--yes") as process:
            seen = len(self.log())
            wanted = seen + self.chance.randint(1, 3)
            wait_for(lambda: process.poll() is not None or len(self.log()) >= wanted)
        wait_for(lambda: not _pids_with(self.token))
        with self.workshop.service() as service:
            recovered = service.recovered(flow.id)
            found = {task.id: task.status for task in service.tasks(flow.id).tasks}
        kept = [name for name, status in before.items() if status in DONE and found[name] not in DONE]
        assert not kept, f"plan {self.seed}: a kill lost {kept}"
        self.model.status = {
            name: status if status in (*DONE, "failed") else "pending" for name, status in found.items()
        }
        self.model.ran = {name: len(self.workshop.log(f"{name}.ran")) for name in found}
        return recovered


def _pids_with(token: str) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdecimal() else []
        except OSError:
            continue  # it has ended
        if token.encode() in words:
            found.append(int(folder.name))
    return found


@pytest.fixture
def only_what_hangs_times_out(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the others take on a machine that is busy."""
    look = TaskRunner._look

    def looked(self: TaskRunner, stop: StopSignal, task: Task, seconds: float) -> None:
        sign = workshop.project / f"{task.id}.hangs"
        hangs = sign.exists() and sign.read_text() == f"{self._workflow.id} {task.attempts}\n"
        look(self, stop, task, seconds if hangs else 0.0)

    monkeypatch.setattr(TaskRunner, "_look", looked)


@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("only_what_hangs_times_out")
def test_random_plans_do_what_the_model_says_and_leave_no_process(workshop: Workshop) -> None:
    for _ in range(repeated(PLANS // 10)):  # all of them in `make soak`
        Trial(workshop, random.randrange(2**32)).go()
