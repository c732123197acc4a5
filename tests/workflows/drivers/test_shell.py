"""Commands as tasks: how they end, how they are stopped, and that none outlives its runner."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.base.errors import InvalidInputError
from holdfast.model.task import Task
from holdfast.model.workflow import Issue
from holdfast.project.settings import load_settings
from holdfast.workflows.drivers import driver_named, guarded
from holdfast.workflows.drivers.protocol import (
    Assignment,
    Done,
    DriverFinding,
    DriverSession,
    Failed,
    TaskInterrupted,
    TaskOutcome,
)
from holdfast.workflows.drivers.shell import ShellDriver

PATIENCE = 30.0


class Silence:
    """A report nobody reads."""

    def turn(self, model: str) -> None:
        pass

    def usage(self, usage: object, *, tool_calls: int = 0, cost_usd: float | None = None) -> None:
        pass

    def agent_session(self, session: DriverSession) -> None:
        pass

    def found(self, *findings: DriverFinding) -> None:
        pass

    def say(self, line: str) -> None:
        pass

    def output(self, text: str) -> None:
        pass


def assignment(folder: Path, command: str) -> Assignment:
    task = Task(id="t", description="", run=command)
    return Assignment(
        "wf_1", 1, Issue(id="1", title="T"), task, folder, attempt=2, records=folder / "records"
    )


def run(folder: Path, command: str) -> TaskOutcome:
    return ShellDriver(load_settings({}, folder)).run(assignment(folder, command), Silence())


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("true", Done(None)),
        ("echo one; echo two", Done("one\ntwo")),
        ("echo no >&2; exit 3", Failed("exit code 3: no")),
        ("kill -9 $$", Failed("terminated by signal 9: Killed")),
        ("exit 137", Failed("terminated by signal 9")),
        ("exit 255", Failed("exit code 255")),  # there is no signal 127
        ("cat; pwd -P >/dev/null", Done(None)),  # stdin is empty, not ours
        ('echo "$HOLDFAST_WORKFLOW $HOLDFAST_TASK $HOLDFAST_ATTEMPT"', Done("wf_1 t 2")),
        ("printf 'a\\0b'", Done("ab")),
    ],
)
def test_how_a_command_ends(tmp_path: Path, command: str, outcome: TaskOutcome) -> None:
    assert run(tmp_path, command) == outcome


def test_a_missing_command_is_said_to_be_missing(tmp_path: Path) -> None:
    outcome = run(tmp_path, "no-such-program --now")
    assert isinstance(outcome, Failed)
    assert outcome.reason.startswith("command not found (exit code 127)")
    assert "no-such-program" in outcome.reason


def test_a_worktree_that_is_gone_is_a_failure_with_its_name(tmp_path: Path) -> None:
    gone = assignment(tmp_path / "gone", "true")
    outcome = ShellDriver(load_settings({}, tmp_path)).run(gone, Silence())
    assert isinstance(outcome, Failed)
    assert "could not be started" in outcome.reason


def test_only_the_end_of_long_output_is_kept(tmp_path: Path) -> None:
    outcome = run(tmp_path, "seq 1 100000")
    assert isinstance(outcome, Done)
    assert outcome.result is not None
    assert outcome.result.startswith("…")
    assert outcome.result.endswith("\n100000")
    assert len(outcome.result) < 5000


_PRINTED = 60_000_000


class LooksAtTheDisk(Silence):
    """Tells the command once its output takes much less of the disk than it is long."""

    def __init__(self, sign: Path) -> None:
        self.sign = sign
        self.read: list[str] = []

    def output(self, text: str) -> None:
        self.read.append(text)
        for one in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                about = one.stat()
                if about.st_nlink == 0 and about.st_size > _PRINTED and about.st_blocks * 512 < _PRINTED / 3:
                    self.sign.touch()


def test_a_command_that_prints_for_ever_does_not_fill_the_disk(tmp_path: Path) -> None:
    seen, report = tmp_path / "seen", LooksAtTheDisk(tmp_path / "seen")
    command = (
        f"echo begin; yes | head -c {_PRINTED}; echo end; n=0; "
        "while [ ! -e seen ] && [ $n -lt 200 ]; do n=$((n + 1)); sleep 0.1; done; echo over"
    )
    outcome = ShellDriver(load_settings({}, tmp_path)).run(assignment(tmp_path, command), report)
    assert seen.exists()
    assert isinstance(outcome, Done)
    assert (outcome.result or "").endswith("\ny\nend\nover")
    printed = "".join(report.read)
    assert (printed[:7], printed[-10:]) == ("begin\ny", "\nend\nover\n")
    assert "\0" not in printed


@pytest.mark.parametrize(
    "command",
    [
        "sleep 60 & echo $! > pid; wait",
        "trap '' TERM; sleep 60 & echo $! > pid; wait",
        "(trap '' TERM; exec sleep 60) & echo $! > pid; wait",
        "((trap '' TERM; exec sleep 60) & echo $! > pid; exec sleep 60) & wait",
        "(trap '' TERM; exec sleep 60) & echo $! > pid; kill -STOP $!; wait",
    ],
    ids=["obeys", "ignores TERM", "a child ignores TERM", "a grandchild ignores TERM", "is stopped"],
)
def test_a_stop_ends_the_command_and_what_it_started(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.workflows.drivers.guarded.GRACE_SECONDS", 0.5)
    job = assignment(tmp_path, command)

    def stop() -> None:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        job.stop.request("somebody asked")

    thread = threading.Thread(target=stop)
    thread.start()
    outcome = ShellDriver(load_settings({}, tmp_path)).run(job, Silence())
    assert not is_running(int((tmp_path / "pid").read_text()))
    thread.join()
    assert outcome == TaskInterrupted("somebody asked")


def test_a_stop_waits_for_no_zombie(tmp_path: Path) -> None:
    """A process of the group whose parent has left the group and never collects it."""
    job = assignment(tmp_path, f"env -u HOLDFAST_RUN {sys.executable} zombie.py & wait")
    (tmp_path / "zombie.py").write_text(_HOARDER)
    thread = threading.Thread(
        target=lambda: (wait_for((tmp_path / "hoarder").exists), job.stop.request("somebody asked"))
    )
    thread.start()
    outcome = ShellDriver(load_settings({}, tmp_path)).run(job, Silence())
    thread.join()
    hoarder = int((tmp_path / "hoarder").read_text())
    assert (outcome, is_running(hoarder)) == (TaskInterrupted("somebody asked"), False)


_HOARDER = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        os._exit(0)
    os.setsid()
    with open("hoarder.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("hoarder.new", "hoarder")
time.sleep(60)
"""


def test_a_stop_before_the_start_counts(tmp_path: Path) -> None:
    job = assignment(tmp_path, "sleep 60")
    job.stop.request("too late")
    assert ShellDriver(load_settings({}, tmp_path)).run(job, Silence()) == TaskInterrupted("too late")


_RUNNER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_shell import run
command = "sleep 60 & echo $! > child; setsid sh -c 'echo $$ > own; sleep 60' & "
command += "env -i setsid /bin/sh -c 'echo $$ > bare; sleep 60' & "
command += "while [ ! -s bare ]; do sleep 0.01; done; "
run(Path(sys.argv[1]), command + "while [ ! -s own ]; do sleep 0.01; done; echo $$ > pid; sleep 60")
"""


def test_a_command_does_not_outlive_a_killed_runner(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _RUNNER, str(tmp_path), str(Path(__file__).parent)]
    ) as runner:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        runner.kill()
    for name in ("pid", "child", "own", "bare"):
        wait_for(lambda name=name: not is_running(int((tmp_path / name).read_text())))


_NEVER_TOLD = """
import os, signal, sys, threading, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_shell import run

def collect_all():
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.001)

if sys.argv[3] == "ignores":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    threading.Thread(target=collect_all, daemon=True).start()
for command in sys.argv[4:]:
    print(run(Path(sys.argv[1]), command), flush=True)
"""


@pytest.mark.parametrize("how", ["ignores", "collects"])
def test_who_never_learns_how_its_children_end_takes_none_for_a_success(tmp_path: Path, how: str) -> None:
    """A program that ignores SIGCHLD, or collects every child: the system tells nobody else its exit code."""
    leaderless = "kill -9 $PPID; sleep 0.2"
    words = [sys.executable, "-c", _NEVER_TOLD, str(tmp_path), str(Path(__file__).parent), how]
    told = subprocess.run(
        [*words, "true", "exit 3", "kill -9 $$", leaderless], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[:2] == [str(Done(None)), str(Failed("exit code 3"))]
    assert told[2].startswith("Failed(reason='terminated by signal 9")
    assert told[3].startswith("Failed(reason='cannot tell whether the command succeeded")


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "GRACE_SECONDS", 0.2)


LEFT_BEHIND = {
    "in the background": "sleep 300 & echo $! > pid;",
    "in a session of its own": "setsid sh -c 'echo $$ > pid; exec sleep 300' &",
    "with an empty environment": "env -i setsid /bin/sh -c 'echo $$ > pid; exec sleep 300' &",
    "twice removed": "env -i setsid sh -c '(setsid sh -c \"echo \\$\\$ > pid; sleep 9; true\") &' &",
    "deaf": "env -i setsid /bin/sh -c 'trap \"\" TERM HUP; echo $$ > pid; while :; do sleep 0.2; done' &",
}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("command", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
@pytest.mark.usefixtures("short_grace")
def test_nothing_of_a_task_outlives_it(tmp_path: Path, command: str, code: int) -> None:
    outcome = run(tmp_path, f"{command} while [ ! -s pid ]; do sleep 0.01; done; echo told; exit {code}")
    assert outcome == (Failed("exit code 3: told") if code else Done("told"))
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_without_perl_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERL5OPT", "-Mnothing::of::this::name")
    test_nothing_of_a_task_outlives_it(tmp_path, LEFT_BEHIND["twice removed"], 0)


@pytest.mark.parametrize("command", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
@pytest.mark.usefixtures("short_grace")
def test_nothing_of_a_task_outlives_a_stop(tmp_path: Path, command: str) -> None:
    given = assignment(tmp_path, f"{command} trap '' TERM; while :; do sleep 1; done")
    with ThreadPoolExecutor(1) as beside:
        ending = beside.submit(ShellDriver(load_settings({}, tmp_path)).run, given, Silence())
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        given.stop.request("enough")
        assert ending.result(PATIENCE) == TaskInterrupted("enough")
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_a_task_without_a_command_is_refused(tmp_path: Path) -> None:
    driver = driver_named("shell", load_settings({}, tmp_path))
    driver.check(Task(id="a", description="", run="true"))
    with pytest.raises(InvalidInputError, match="no command"):
        driver.check(Task(id="a", description=""))


def test_an_unknown_driver_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no such driver: 'magic'") as refused:
        driver_named("magic", load_settings({}, tmp_path))
    assert "shell" in (refused.value.hint or "")
