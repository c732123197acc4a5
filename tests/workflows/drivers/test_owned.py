"""Whose a process is, when neither its environment nor its parents tell; and that nobody else's is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.base.process import identify, machine, signal_process
from holdfast.project.settings import load_settings
from holdfast.workflows.drivers import guarded
from holdfast.workflows.drivers.guarded import (
    OwnedProcesses,
    end_recorded,
    end_what_is_left,
    is_recorded,
    prune_records,
    records_in,
)
from holdfast.workflows.drivers.model_tools import WorktreeTools
from holdfast.workflows.drivers.protocol import Failed
from holdfast.workflows.drivers.shell import ShellDriver
from holdfast.workflows.worker import Here

from ..harness import Workshop
from .test_shell import Silence, assignment, is_running, run, wait_for

# A daemon of which nothing tells whose it is: no parent, no mark, a session of its own. What follows waits
# until it is in the record, by its number or in a group.
DAEMON = """
env -i setsid /bin/sh -c '(setsid /bin/sh -c "echo \\$\\$ > pid.new; mv pid.new pid; sleep 300; :" &) ; :'
while [ ! -s pid ]; do sleep 0.01; done
until grep -q '"group": "/' RECORDS/* || grep -q "^$(cat pid) " RECORDS/*; do sleep 0.01; done
cat RECORDS/* > recorded
"""


@pytest.fixture(params=["in control groups", "without"])
def groups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How it is where we may make control groups (if we may), and where not."""
    if request.param == "without":
        monkeypatch.setattr(guarded, "_own_group", lambda: None)
    return request.param


def daemon(folder: Path) -> int:
    return int((folder / "pid").read_text())


def nothing_is_kept(folder: Path, records: Path) -> bool:
    heads = [json.loads(line) for line in (folder / "recorded").read_text().splitlines() if line[0] == "{"]
    assert heads
    inside = [pid for head in heads if (group := head["group"]) for pid in guarded._inside(Path(group))]
    return not [*records.glob("*"), *inside]


@pytest.mark.usefixtures("groups")
def test_who_kills_the_shell_around_it_leaves_nothing_either(tmp_path: Path) -> None:
    outcome = run(tmp_path, f"{DAEMON.replace('RECORDS', 'records')} kill -9 $PPID; sleep 300")
    assert outcome == Failed("terminated by signal 9")
    assert not is_running(daemon(tmp_path))
    assert nothing_is_kept(tmp_path, tmp_path / "records")


def test_a_group_that_lets_nobody_in_is_not_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one below a group of threads."""
    (tmp_path / "group/cgroup.procs").mkdir(parents=True)
    monkeypatch.setattr(guarded, "_made_group", lambda _: tmp_path / "group")
    command = DAEMON.replace("RECORDS", "records").replace('"group": "/', "no such line")
    assert run(tmp_path, f"{command} kill -9 $PPID; sleep 300") == Failed("terminated by signal 9")
    assert not is_running(daemon(tmp_path))


@pytest.mark.usefixtures("groups")
def test_what_a_tool_left_ends_with_the_attempt(tmp_path: Path) -> None:
    given = assignment(tmp_path, "")
    tools = WorktreeTools(given, Silence(), 60.0)
    assert tools.run_command(DAEMON.replace("RECORDS", "records")) == "exit code 0"
    assert is_running(daemon(tmp_path))
    end_what_is_left(given)
    assert not is_running(daemon(tmp_path))
    assert nothing_is_kept(tmp_path, tmp_path / "records")


_RUNNER = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[2:4]
from holdfast.workflows.drivers import guarded
from workflows.drivers.test_shell import run
if sys.argv[4] == "without":
    guarded._own_group = lambda: None
run(Path(sys.argv[1]), sys.argv[5] + "echo $$ > command.new; mv command.new command; sleep 300")
"""


def test_the_next_runner_ends_what_a_killed_one_and_its_shells_left(tmp_path: Path, groups: str) -> None:
    command = DAEMON.replace("RECORDS", "records")
    tests = Path(__file__).parents[2]
    words = [sys.executable, "-c", _RUNNER, str(tmp_path), str(tests), str(tests.parent), groups, command]
    with subprocess.Popen(words) as runner:
        wait_for((tmp_path / "command").exists)
        runner.send_signal(signal.SIGSTOP)  # or it would see to it
        os.killpg(os.getpgid(int((tmp_path / "command").read_text())), signal.SIGKILL)
        runner.kill()
    (record,) = (tmp_path / "records").iterdir()
    assert is_running(daemon(tmp_path))
    assert is_recorded(tmp_path / "records", record.name[:32])
    end_recorded(tmp_path / "records", record.name[:32])
    assert not is_running(daemon(tmp_path))
    assert nothing_is_kept(tmp_path, tmp_path / "records")


def test_resume_ends_it_before_it_begins_the_next_attempt(workshop: Workshop) -> None:
    records = records_in(workshop.settings.home)
    first = f"{DAEMON.replace('RECORDS', str(records))} touch ready; sleep 300"
    (workshop.project / "first.sh").write_text(first)
    is_there = """[ -n "$(tr -d '\\0' </proc/$(cat pid)/cmdline)" ]"""  # a zombie has no command line
    second = f"{is_there} && echo beside >> log; echo alone >> log"
    (workshop.project / "task.sh").write_text(
        f'[ "$HOLDFAST_ATTEMPT" = 1 ] && {{ echo $$ > command; . ./first.sh; }}; {second}\n'
    )
    (workshop.project / "plan.yaml").write_text(
        "issue: {id: I, title: T}\ntasks: [{id: t1, run: sh ./task.sh}]\n"
    )
    with workshop.program("run", "plan.yaml") as process:
        wait_for((workshop.project / "ready").exists)
        process.send_signal(signal.SIGSTOP)
        os.killpg(os.getpgid(int((workshop.project / "command").read_text())), signal.SIGKILL)
        process.kill()
        process.wait()
    assert is_running(daemon(workshop.project))
    workshop.place.ok("resume", "--yes")
    assert workshop.log() == ["alone"]
    assert not is_running(daemon(workshop.project))
    assert nothing_is_kept(workshop.project, records)


@pytest.fixture
def bystander() -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def test_a_number_that_is_another_process_s_by_now_is_let_alone(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    records = tmp_path / "records"
    run(tmp_path, "cp records/* kept")
    head = (tmp_path / "kept").read_text().splitlines()[0]
    now = identify(bystander.pid)
    (records / "mark").write_text(f"{head}\n{bystander.pid} {now['started']}0\n")
    end_recorded(records, "mark")
    signal_process({"pid": bystander.pid, "started": f"{now['started']}0"}, signal.SIGKILL)
    assert bystander.poll() is None
    assert not list(records.iterdir())


@pytest.mark.parametrize("has_handles", [True, False])
def test_a_process_that_is_meant_is_told(
    bystander: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, has_handles: bool
) -> None:
    if not has_handles:
        monkeypatch.delattr(os, "pidfd_open")
    signal_process(identify(bystander.pid), signal.SIGTERM)
    assert bystander.wait() == -signal.SIGTERM


def test_a_torn_record_and_one_of_another_machine_harm_nobody(
    tmp_path: Path, bystander: subprocess.Popen[bytes]
) -> None:
    line = f"{bystander.pid} {identify(bystander.pid)['started']}"
    (tmp_path / "mark-1").write_text('{"machine": "elsewhere", "group": null}\n' + line + "\n")
    (tmp_path / "mark-2").write_text(line)
    (tmp_path / "mark-3").write_text("")
    (tmp_path / "mark-4").write_bytes(b"\xff\n")
    end_recorded(tmp_path, "mark")
    assert bystander.poll() is None


def test_records_of_what_has_ended_are_pruned(tmp_path: Path, bystander: subprocess.Popen[bytes]) -> None:
    """As a restart of the machine leaves them. What still runs, or is looked after, stays recorded."""
    run(tmp_path, "cp records/* kept")
    head = json.loads((tmp_path / "kept").read_text().splitlines()[0])
    records = records_in(tmp_path)
    records.mkdir()
    ended, alive = "99999999 1", f"{bystander.pid} {identify(bystander.pid)['started']}"
    heads = {
        "ended": {"runner": ended},
        "of an earlier version": {},
        "looked after": {"runner": alive},
        "running": {"runner": ended},
        "of another machine": {"machine": "elsewhere", "runner": ended},
        "long ago": {"machine": "elsewhere", "runner": ended},
    }
    for name, more in heads.items():
        own = {key: head[key] for key in ("machine", "group")} | more
        line = alive if name == "running" else ended
        (records / name).write_text(f"{json.dumps(own)}\n{line}\n")
    for name in ("torn", "torn long ago"):
        (records / name).write_text('{"mach')
    for name in ("long ago", "torn long ago"):
        os.utime(records / name, (1_000_000_000, 1_000_000_000))
    prune_records(tmp_path, (records / "torn").stat().st_mtime)
    left = {one.name for one in records.iterdir()}
    assert left == {"looked after", "running", "of another machine", "torn"}
    assert bystander.poll() is None


def test_whoever_starts_to_run_workflows_prunes(workshop: Workshop) -> None:
    records = records_in(workshop.settings.home)
    records.mkdir(parents=True)
    head = {"machine": machine(), "group": None, "runner": "99999999 1"}
    (records / "left").write_text(f"{json.dumps(head)}\n99999999 1\n")
    with Here(workshop.settings):
        assert not list(records.iterdir())


def test_a_group_that_goes_meanwhile_is_empty(tmp_path: Path) -> None:
    """Several may end what is left of a command, and the first of them removes its group."""
    group, over = tmp_path / "holdfast-group", threading.Event()
    head = {"machine": machine(), "group": str(group), "runner": "99999999 1"}
    (tmp_path / "mark").write_text(f"{json.dumps(head)}\n99999999 1\n")

    def come_and_go() -> None:
        while not over.is_set():
            group.mkdir()
            group.rmdir()

    other = threading.Thread(target=come_and_go)
    other.start()
    try:
        assert not any(is_recorded(tmp_path, "mark") for _ in range(3_000))
    finally:
        over.set()
        other.join()


def test_processes_that_end_while_they_are_looked_at_harm_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "_EACH_SECONDS", 0.0)
    owned = OwnedProcesses(None, "mark")
    short = "while :; do for one in 1 2 3 4 5 6 7 8; do (:) & done; wait; done"
    with subprocess.Popen(["sh", "-c", short]) as shell:
        try:
            owned.begun(identify(shell.pid))
            for _ in range(1_000):
                owned.look()
        finally:
            shell.kill()


def test_only_a_group_of_ours_is_killed(tmp_path: Path) -> None:
    run(tmp_path, "cp records/* kept")
    head = (tmp_path / "kept").read_text().splitlines()[0]
    (tmp_path / "cgroup.kill").write_text("")
    (tmp_path / "cgroup.procs").write_text("1\n")
    (tmp_path / "records/mark").write_text(head.partition('"group"')[0] + f'"group": "{tmp_path}"}}\n')
    end_recorded(tmp_path / "records", "mark")
    assert (tmp_path / "cgroup.kill").read_text() == ""


def test_a_command_without_a_record_is_ended_too(tmp_path: Path) -> None:
    given = replace(assignment(tmp_path, "setsid sleep 300 & echo $! > pid"), records=None)
    ShellDriver(load_settings({}, tmp_path)).run(given, Silence())
    assert not is_running(daemon(tmp_path))
