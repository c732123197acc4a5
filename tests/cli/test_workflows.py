"""Workflows from the command line, as their users see them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.base.process import is_alive
from holdfast.capture.files import LARGEST_FILE

from .harness import CTRL_C, PATIENCE, Place, Result, on_terminal, start_program

# In the same words, whether the database is ours or a server's.
pytestmark = [pytest.mark.usefixtures("anywhere"), pytest.mark.some_of("anywhere")]
embedded = pytest.mark.parametrize("anywhere", ["embedded"], indirect=True)
"""What is about this very process: a server's worker outlives whoever watches it."""
LIMIT = "  Pauses when the context window is 85% full\n"
HEAD = "issue: {id: D, title: Demo}\ntasks:\n"


@pytest.fixture
def plan(place: Place) -> Callable[..., Path]:
    """A plan of these commands, one after the other."""

    def write(*commands: str, head: str = "") -> Path:
        names = ["", *(f"t{number}" for number in range(1, len(commands) + 1))]
        tasks = "".join(
            f"  - {{id: {names[number]}, run: {command!r}, depends_on: [{names[number - 1]}]}}\n"
            for number, command in enumerate(commands, start=1)
        )
        path = place.root / "plan.yaml"
        path.write_text(head + HEAD + tasks)
        return path

    return write


def log(place: Place) -> list[str]:
    path = place.project / "log"
    return path.read_text().split() if path.exists() else []


def begin(place: Place, *arguments: str | Path) -> subprocess.Popen[str]:
    return start_program(
        arguments, cwd=place.project, env=place.environment, text=True, start_new_session=True
    )


def result_of(process: subprocess.Popen[str]) -> Result:
    out, err = process.communicate(timeout=PATIENCE)
    return Result(process.returncode, out, err)


def wait_until(place: Place, name: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not (place.project / name).exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


WAITS = "touch began; while [ ! -e go ]; do sleep 0.01; done; echo a >> log"


def test_run_to_the_end(place: Place, plan: Callable[..., Path]) -> None:
    done = place.ok("run", plan("echo a >> log", "echo b >> log"))
    assert place.shown(done.out) == (
        f"Workflow WF-1 started: Demo (2 tasks)\n{LIMIT}✓ Workflow completed (2 tasks)\n"
    )
    assert log(place) == ["a", "b"]
    assert "completed" in place.ok("status").out
    assert place.json("list")[0]["status"] == "completed"


def test_pause_from_another_terminal_and_resume(place: Place, plan: Callable[..., Path]) -> None:
    running = begin(place, "run", plan(WAITS, "echo b >> log"))
    wait_until(place, "began")
    assert "Running:   t1" in place.ok("status").out
    pausing = begin(place, "pause", "-r", "going home")
    _until_asked(place)
    (place.project / "go").touch()
    paused, ended = result_of(pausing), result_of(running)
    assert (paused.code, paused.err, ended.code, ended.err) == (0, "", 0, "")
    assert place.shown(paused.out) == (
        "Pausing workflow WF-1...\n"
        "✓ Workflow paused (snapshot: SNAP-1)\n"
        "  Resume with: holdfast resume WF-1\n"
    )
    assert place.shown(ended.out) == (
        f"Workflow WF-1 started: Demo (2 tasks)\n{LIMIT}"
        "✓ Workflow paused (snapshot: SNAP-1)\n"
        "  Reason: going home\n"
        "  Tasks: 1 done, 1 remaining\n"
        "  Resume with: holdfast resume WF-1\n"
    )
    assert log(place) == ["a"]
    resumed = place.ok("resume")
    assert place.shown(resumed.out) == (
        "Resuming from session 1:\n"
        "  Paused: WHEN UTC (going home)\n"
        "  Tasks: 1 done, 1 remaining\n"
        "\n"
        "Resuming workflow WF-1...\n"
        "✓ Workflow resumed\n"
        "✓ Workflow completed (2 tasks)\n"
    )
    assert log(place) == ["a", "b"]


def test_two_resumes_at_once_are_one(place: Place, plan: Callable[..., Path]) -> None:
    place.ok("run", plan("true", WAITS, head="pause_every: 1\n"))
    both = [begin(place, "resume"), begin(place, "resume")]
    wait_until(place, "began")
    loser = next(process for process in both if _ends(process, both))
    (place.project / "go").touch()
    ended = {process: result_of(process) for process in both}
    assert sorted(result.code for result in ended.values()) == [0, 3]
    assert ended[loser].code == 3
    assert ended[loser].err.startswith("error: workflow wf_")
    assert log(place) == ["a"]


def _ends(process: subprocess.Popen[str], both: list[subprocess.Popen[str]]) -> bool:
    """Whether it is this one that ends first, while the other waits in its task."""
    deadline = time.monotonic() + PATIENCE
    while all(one.poll() is None for one in both):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process.poll() is not None


@embedded
def test_killed_and_resumed(place: Place, plan: Callable[..., Path]) -> None:
    command = "echo $HOLDFAST_ATTEMPT >> log; [ $HOLDFAST_ATTEMPT = 2 ] || { touch began; sleep 60; }"
    running = begin(place, "run", plan("true", command, "echo c >> log"))
    wait_until(place, "began")
    os.killpg(running.pid, signal.SIGKILL)
    result_of(running)
    assert "it does not seem to be running: holdfast resume" in place.ok("status").out
    sick = place.run("doctor")
    assert sick.code == 1
    assert "1 abandoned by a dead process" in sick.out
    resumed = place.ok("resume")
    assert "(its process ended without a pause)" in resumed.out
    assert log(place) == ["1", "2", "c"]
    assert place.json("snapshot", "list")[0]["trigger"] == "crash"
    assert "attempt" in place.ok("events", "--json").out


def test_a_task_that_fails(place: Place, plan: Callable[..., Path]) -> None:
    done = place.run("run", plan("echo torn; exit 3"))
    assert done.code == 1
    assert "failed: task t1: exit code 3: torn" in done.err
    shown = place.shown(done.err)
    assert "hint: `holdfast retry --workflow WF-1` retries the failed task" in shown


def test_a_failed_task_is_tried_again(place: Place, plan: Callable[..., Path]) -> None:
    failed = place.run("run", plan("echo a >> log", "test -e ok", "echo c >> log"))
    assert (failed.code, log(place)) == (1, ["a"])
    status = place.shown(place.ok("status").out)
    assert "Status:    failed" in status
    assert "Snapshot:  SESSION-1  (session 1)\nTasks:     1 done, 2 remaining\n" in status
    assert (
        "Failed:    t2 (attempt 1): exit code 1\n"
        "           try again: holdfast retry --workflow WF-1\n"
        "           or without it: holdfast skip t2 --workflow WF-1\n"
    ) in status
    told = place.json("status")["workflow"]
    assert (told["status"], told["pause_reason"]) == ("failed", "task t2: exit code 1")
    assert told["failed_tasks"] == [{"id": "t2", "attempt": 1, "reason": "exit code 1"}]
    (line,) = place.json("snapshot", "list")
    assert (line["trigger"], line["pause_reason"]) == ("failure", "task t2: exit code 1")
    assert (place.sessions / f"{line['session_id']}.json").exists()
    again = place.run("resume")
    assert (again.code, "failed: task t2: exit code 1" in again.err) == (1, True)
    assert "Failed:    t2 (attempt 2): exit code 1" in place.ok("status").out
    (place.project / "ok").touch()
    refused = place.run("resume", "--strict")
    assert (refused.code, "the worktree has changed since" in refused.err) == (1, True)
    done = place.run("resume")
    assert done.code == 0
    assert "(task t2: exit code 1)\n  Tasks: 1 done, 2 remaining\n" in done.out
    assert done.out.endswith("✓ Workflow completed (3 tasks)\n")
    assert log(place) == ["a", "c"]


def _wind_down(place: Place) -> str:
    """Its session's name."""
    place.ok("winddown", "start", "--percent", "0.9")
    said = ("assistant_response", "--data", '{"summary": "looked around"}')
    place.ok("winddown", "append", *said, "--percent", "0.9")
    place.ok("winddown", "finalize", "-r", "full")
    return place.json("status")["workflow"]["latest_snapshot"]


def test_work_without_a_plan_hides_no_failed_plan(place: Place, plan: Callable[..., Path]) -> None:
    place.run("run", plan("echo a >> log", "test -e ok"))
    failed = place.json("status")["workflow"]["id"]
    _wind_down(place)
    told = place.json("status")
    assert (told["workflow"]["id"] != failed, told["plan"]["id"]) == (True, failed)
    status = place.ok("status").out
    assert f"({told['workflow']['id']})\n" in status
    assert f"Plan:      Demo  ({failed})\n" in status
    assert f"try again: holdfast retry --workflow {failed}\n" in status
    assert "Failed:    t2 (attempt 1): exit code 1" in status
    assert place.json("status", failed)["plan"] is None
    place.run("skip", "t9").failed(1, error="has no task 't9'")
    again = place.run("resume")
    assert (again.code, "failed: task t2: exit code 1" in again.err) == (1, True)
    newest = _wind_down(place)
    again = place.run("resume")
    assert f"{failed} is the plan of this folder" in again.err
    assert f"`holdfast resume {newest}` takes the newest of it" in again.err
    (place.project / "ok").touch()
    assert place.run("retry").out.startswith("✓ Retrying what failed")
    assert log(place) == ["a"]


def test_a_plan_completed_later_leaves_a_failed_one_named(place: Place, plan: Callable[..., Path]) -> None:
    place.run("run", plan("test -e ok"))
    failed = place.json("status")["workflow"]["id"]
    place.ok("run", plan("echo b >> log"))
    assert place.json("status")["plan"] is None
    for command in ("resume", "retry"):
        hint = f"`holdfast resume {failed}` retries the plan that failed before"
        place.run(command).failed(1, error="No paused workflow in current directory", hint=hint)


def test_work_without_a_plan_hides_no_paused_plan(place: Place, plan: Callable[..., Path]) -> None:
    place.ok("run", plan("echo a >> log", "echo b >> log"), "--pause-every", "1")
    paused = place.json("status")["workflow"]["id"]
    _wind_down(place)
    assert f"continue: holdfast resume {paused}\n" in place.ok("status").out
    assert (place.run("resume").code, log(place)) == (0, ["a", "b"])


def test_the_last_lines_of_output_and_a_retry(place: Place, plan: Callable[..., Path]) -> None:
    place.run("run", plan("seq 1 20; test -e ok", "echo b >> log"))
    told = place.ok("status").out
    assert "exit code 1: 1\n             16\n             17\n" in told
    (place.project / "ok").touch()
    place.run("retry", "t2").failed(1, error="task t2 is pending; only a failed task can be retried")
    done = place.run("retry", "t1")
    assert (done.code, done.out.splitlines()[0]) == (0, "✓ Retrying task t1")
    assert (done.out.splitlines()[-1], log(place)) == ("✓ Workflow completed (2 tasks)", ["b"])
    place.run("retry").failed(1, error="No paused workflow in current directory")


def test_a_copy_goes_another_way_and_the_original_stays(place: Place, plan: Callable[..., Path]) -> None:
    place.run("fork").failed(1, error="No workflow in current directory")
    place.run("run", plan("echo a >> log", "test -e ok", "echo c >> log"))
    failed = place.json("status")["workflow"]["id"]
    (place.project / "ok").touch()
    copied = place.json("fork", "t2")
    assert (copied["status"], copied["id"] != failed) == ("paused", True)
    assert place.run("resume").code == 0
    assert place.json("status")["workflow"]["id"] == copied["id"]
    assert (log(place), place.json("status", failed)["workflow"]["status"]) == (["a", "c"], "failed")
    said = place.ok("fork", "t1", "--workflow", failed).out.splitlines()
    assert said[0] == f"✓ Forked {failed}"
    assert place.run("resume", said[1].split()[-1]).code == 0
    assert log(place) == ["a", "c", "a", "c"]


def test_what_a_task_prints_is_seen_while_it_runs(place: Place, plan: Callable[..., Path]) -> None:
    token = "ghp_" + "a1B2" * 9
    running = begin(place, "run", plan(f"echo one; echo {token}; {WAITS}; echo two >&2"))
    wait_until(place, "began")
    following = begin(place, "logs", "t1", "--follow")
    assert following.stdout is not None
    told = [following.stdout.readline() for _ in range(2)]
    assert told == ["one\n", "[redacted:github-token]\n"]
    (place.project / "go").touch()
    followed = result_of(following)
    assert (followed.code, followed.err) == (0, "")
    assert followed.out == "two\n"
    assert result_of(running).code == 0
    assert place.ok("logs", "t1").out == "".join([*told, "two\n"])
    place.run("logs", "t9").failed(1, error="has no task 't9'")
    place.run("logs", "t1", "--attempt", "7").failed(1, error="no output of task t1, attempt 7")


def test_of_long_output_both_ends_are_kept(place: Place, plan: Callable[..., Path]) -> None:
    place.ok("run", plan("seq 1 300000"))
    lines = place.ok("logs", "t1").out.splitlines()
    assert (lines[0], lines[-1], len(lines) < 150_000) == ("1", "300000", True)
    assert [line for line in lines if not line.isdigit()] != []
    assert all("bytes left out]" in line for line in lines if line and not line.isdigit())


def test_a_failed_task_is_skipped(place: Place, plan: Callable[..., Path]) -> None:
    place.run("run", plan("exit 1", "echo b >> log"), "--retries", "0", "--keep-going")
    place.run("skip", "t9").failed(1, error="has no task 't9'", hint="its tasks: t1, t2")
    done = place.run("skip", "t1", "-r", "by hand")
    assert (done.code, done.out.splitlines()[0]) == (0, "✓ Skipped task t1")
    assert log(place) == ["b"]
    told = place.json("status")["workflow"]
    assert (told["status"], told["tasks_completed"], told["tasks_remaining"]) == ("completed", 1, 0)


def test_the_obvious_workflow_needs_no_name(place: Place) -> None:
    asks = place.root / "asks.yaml"
    asks.write_text(HEAD + "  - {id: a, run: 'echo a >> log', approval: true}\n")
    place.run("approve").failed(1, error="No waiting workflow in current directory")
    place.ok("run", asks)
    told = place.json("status")["workflow"]
    assert told["waiting_task_id"] == "a"
    shown = place.ok("status").out
    assert f"Waiting:   for your approval of a\n           approve: holdfast approve {told['id']}\n" in shown
    assert "✓ Workflow completed" in place.run("approve").out
    assert place.json("status")["workflow"]["waiting_task_id"] is None
    place.ok("run", asks)
    assert "rejected" in place.ok("reject", "-r", "no").out
    assert ": task a was rejected: no\n" in place.ok("status").out
    place.ok("run", asks)
    assert "cancelled" in place.ok("cancel").out  # the active one
    assert "cancelled" in place.ok("cancel").out  # the one that failed, alone now
    place.run("cancel").failed(1, error="No active workflow")
    place.run("run", asks)
    place.ok("reject")
    place.run("run", asks)
    place.ok("reject")
    place.run("cancel").failed(2, error="several workflows here could be cancelled", hint="name one")


def test_a_failed_attempt_that_was_rolled_back_is_tried_again(
    place: Place, plan: Callable[..., Path]
) -> None:
    """Nothing that counts as completed was taken back; where something was, it is refused."""
    fails = "[ -e ready ] || { echo b > made; exit 1; }"
    for commands in ((fails,), ("true", fails)):
        place.run("run", plan(*commands))
        place.ok("tx", "rollback", "last", "--yes")
        assert not (place.project / "made").exists()
        (place.project / "ready").touch()
        assert "✓ Workflow completed" in place.run("resume").out
        (place.project / "ready").unlink()
    place.run("run", plan("echo a > done", fails))
    place.ok("tx", "rollback", "last", "--yes")
    refused = place.run("resume")
    assert (refused.code, "was undone: t1" in refused.err) == (1, True), refused


def test_two_resumes_of_a_failed_one_are_one(place: Place, plan: Callable[..., Path]) -> None:
    place.run("run", plan(f"[ $HOLDFAST_ATTEMPT = 2 ] && {{ {WAITS}; }}"))
    both = [begin(place, "resume"), begin(place, "resume")]
    wait_until(place, "began")
    loser = next(process for process in both if _ends(process, both))
    (place.project / "go").touch()
    ended = {process: result_of(process) for process in both}
    assert sorted(result.code for result in ended.values()) == [0, 3]
    assert (ended[loser].code, log(place)) == (3, ["a"])


def test_a_failed_one_stands_in_nobodys_way(place: Place, plan: Callable[..., Path]) -> None:
    place.run("run", plan("test -e ok"))
    old = place.json("status")["workflow"]["id"]
    running = begin(place, "run", plan(WAITS))
    wait_until(place, "began")
    refused = place.run("resume", old)
    assert (refused.code, "another workflow is active" in refused.err) == (3, True)
    (place.project / "go").touch()
    assert result_of(running).code == 0
    place.run("resume").failed(1, error="No paused workflow in current directory", hint=old)
    place.ok("cancel", old)
    place.run("resume").failed(1, error="No paused workflow in current directory", hint="list")
    place.run("resume", old).failed(1, error="is cancelled and cannot become in_progress")


def test_a_failed_one_is_resumed_by_a_worker(place: Place, plan: Callable[..., Path]) -> None:
    place.ok("run", plan("test -e ok", "echo b >> log"), "--detach")
    _until_it_is(place, "failed")
    assert "try again: holdfast retry" in place.ok("status").out
    (place.project / "ok").touch()
    assert place.run("resume", "--detach").code == 0
    _until_it_is(place, "completed")
    assert log(place) == ["b"]


def _until_it_is(place: Place, status: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while (found := place.json("status")["workflow"]["status"]) != status:
        assert time.monotonic() < deadline, found


def test_ctrl_c_pauses_at_the_boundary(place: Place, plan: Callable[..., Path]) -> None:
    running = begin(place, "run", plan(WAITS, "echo b >> log"))
    wait_until(place, "began")
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    assert running.stderr.readline().startswith("Pausing when the running task ends")
    _until_asked(place)
    (place.project / "go").touch()
    ended = result_of(running)
    assert ended.code == 130
    assert "✓ Workflow paused" in ended.out
    assert log(place) == ["a"]


def _until_asked(place: Place) -> None:
    deadline = time.monotonic() + PATIENCE
    while place.json("status")["workflow"]["pause_request"] is None:
        assert time.monotonic() < deadline


def test_a_second_ctrl_c_cuts_the_task_off(place: Place, plan: Callable[..., Path]) -> None:
    running = begin(place, "run", plan("touch began; sleep 60"))
    wait_until(place, "began")
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    running.stderr.readline()
    running.send_signal(signal.SIGINT)
    ended = result_of(running)
    assert ended.code == 130
    assert "  Tasks: 0 done, 1 remaining" in ended.out


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
with open("pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
while True:
    time.sleep(0.05)
"""
OBEYING = "echo $$ >> pids; python3 stubborn.py & wait"
SESSION = f"import subprocess\nsubprocess.run({OBEYING!r}, shell=True, start_new_session=True)\n"
IGNORING = f"trap '' TERM INT; {OBEYING}; while :; do sleep 0.05; done"


class Stubborn:
    """A task whose first attempt holds a process that ends only when it is killed."""

    def __init__(self, place: Place) -> None:
        self._pids = place.project / "pids"
        (place.project / "stubborn.py").write_text(STUBBORN)
        (place.project / "session.py").write_text(SESSION)

    def command(self, first: str) -> str:
        return f"if [ $HOLDFAST_ATTEMPT = 1 ]; then {first}; fi; echo $HOLDFAST_ATTEMPT >> log"

    def started(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(self._read()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def running(self) -> list[int]:
        return [pid for pid in self._read() if is_alive({"pid": pid, "started": None})]

    def _read(self) -> list[int]:
        return [int(pid) for pid in self._pids.read_text().split()] if self._pids.exists() else []


@pytest.fixture
def stubborn(place: Place) -> Iterator[Stubborn]:
    made = Stubborn(place)
    yield made
    for pid in made.running():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.some_of("anywhere", "first")
@pytest.mark.parametrize("first", [OBEYING, IGNORING], ids=["its child ignores TERM", "it ignores TERM"])
def test_a_forced_pause_leaves_nothing_running(
    place: Place, plan: Callable[..., Path], stubborn: Stubborn, first: str
) -> None:
    running = begin(place, "run", plan(stubborn.command(first)))
    stubborn.started()
    place.ok("pause", "--force-after", "0")
    assert stubborn.running() == []
    assert "✓ Workflow paused" in result_of(running).out
    assert "✓ Workflow completed" in place.ok("resume").out
    assert log(place) == ["2"]


def test_a_cancel_is_reported_when_nothing_is_left_running(
    place: Place, plan: Callable[..., Path], stubborn: Stubborn
) -> None:
    running = begin(place, "run", plan(IGNORING))
    stubborn.started()
    place.ok("cancel")
    assert stubborn.running() == []
    assert "was cancelled" in result_of(running).out


def test_a_new_run_waits_for_what_was_just_cancelled(
    place: Place, plan: Callable[..., Path], stubborn: Stubborn
) -> None:
    running = begin(place, "run", plan(IGNORING))
    stubborn.started()
    cancelling = begin(place, "cancel")
    _until_it_is(place, "cancelled")
    pids = " ".join(map(str, stubborn.running()))
    place.ok("run", plan(f"for one in {pids}; do if kill -0 $one; then touch beside; fi; done; touch ran"))
    assert ((place.project / "ran").exists(), (place.project / "beside").exists()) == (True, False)
    assert result_of(cancelling).code == 0
    assert "was cancelled" in result_of(running).out


STARTERS = {
    "timeout": f"timeout 600 sh -c '{OBEYING}'",
    "setsid": f"setsid -w sh -c '{OBEYING}'",
    "python": "python3 session.py",
}


@pytest.mark.some_of("anywhere", "first")
@pytest.mark.parametrize("first", STARTERS.values(), ids=STARTERS.keys())
def test_a_forced_pause_ends_what_has_a_group_or_a_session_of_its_own(
    place: Place, plan: Callable[..., Path], stubborn: Stubborn, first: str
) -> None:
    running = begin(place, "run", plan(stubborn.command(first)))
    stubborn.started()
    place.ok("pause", "--force-after", "0")
    assert stubborn.running() == []
    assert "✓ Workflow paused" in result_of(running).out


@pytest.mark.some_of("anywhere", "starter")
@pytest.mark.parametrize("starter", ["", "setsid "], ids=["in its group", "in a session of its own"])
def test_a_failed_task_leaves_nothing_running(
    place: Place, plan: Callable[..., Path], stubborn: Stubborn, starter: str
) -> None:
    waits = "while [ $(wc -l <pids) -lt 2 ]; do sleep 0.01; done; exit 7"
    command = stubborn.command(f"touch pids; {starter}sh -c '{OBEYING}' & {waits}")
    failed = place.run("run", plan(command))
    assert (failed.code, "exit code 7" in failed.err) == (1, True), failed
    assert stubborn.running() == []
    assert "✓ Workflow completed" in place.ok("resume").out


def test_a_second_ctrl_c_leaves_nothing_running(
    place: Place, plan: Callable[..., Path], stubborn: Stubborn
) -> None:
    running = begin(place, "run", plan(stubborn.command(OBEYING)))
    stubborn.started()
    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    assert running.stdout is not None
    running.stderr.readline()
    running.send_signal(signal.SIGINT)
    assert any(line.startswith("✓ Workflow paused") for line in iter(running.stdout.readline, ""))
    assert stubborn.running() == []
    assert result_of(running).code == 130


def test_live_on_a_terminal(place: Place, plan: Callable[..., Path]) -> None:
    code, shown = on_terminal(place, ["run", str(plan("sleep 0.5", "echo b >> log"))])
    assert code == 0
    assert "of 2 tasks" in shown
    assert "✓ Workflow completed (2 tasks)" in shown


def test_ctrl_c_on_a_terminal(place: Place, plan: Callable[..., Path]) -> None:
    code, shown = on_terminal(place, ["run", str(plan("sleep 1", "sleep 60"))], ("t1", CTRL_C))
    assert code == 130
    assert "✓ Workflow paused" in shown


BAD: dict[str, tuple[str, str]] = {
    "cycle": (HEAD + "  - {id: a, run: x, depends_on: [a]}\n", r"plan\.yaml:3: .*circular dependency"),
    "unknown": (
        HEAD + "  - {id: a, run: x, depends_on: [b]}\n",
        r"plan\.yaml:3: .*'b', which does not exist",
    ),
    "doubled": (HEAD + "  - {id: a, run: x}\n  - {id: a, run: x}\n", r"plan\.yaml:4: duplicate task id"),
    "key": (HEAD + "  - {id: a, runs: x}\n", r"plan\.yaml:3: .*unknown key 'runs'"),
    "command": (HEAD + "  - {id: a}\n", r"plan\.yaml:3: .*no command"),
    "driver": ("driver: magic\n" + HEAD + "  - {id: a, prompt: x}\n", "no such driver: 'magic'"),
}


@pytest.mark.parametrize(("text", "error"), BAD.values(), ids=BAD.keys())
def test_bad_plans_start_nothing(place: Place, text: str, error: str) -> None:
    (place.project / "plan.yaml").write_text(text)
    place.run("run", "plan.yaml").failed(2, error=error)
    assert place.json("list") == []


NOBODY: dict[str, tuple[list[str], str]] = {
    "pause": (["pause"], "No active workflow in current directory"),
    "resume": (["resume"], "No paused workflow in current directory"),
    "events": (["events"], "No known workflow"),
    "cancel": (["cancel", "wf_x"], "no such workflow: wf_x"),
    "approve": (["approve", "wf_x"], "no such workflow: wf_x"),
    "reject": (["reject", "wf_x"], "no such workflow: wf_x"),
    "run": (["run", "nowhere.yaml"], "no such plan: nowhere.yaml"),
}


@pytest.mark.parametrize(("arguments", "error"), NOBODY.values(), ids=NOBODY.keys())
def test_where_there_is_nothing(place: Place, arguments: list[str], error: str) -> None:
    place.run(*arguments).failed(1, error=error)


def test_all_that_a_plan_says_of_a_task_arrives(place: Place) -> None:
    said = {
        "run": "true",
        "prompt": "p",
        "driver": "shell",
        "approval": True,
        "review": True,
        "junit": "x.xml",
        "timeout": 60.0,
        "retries": 1,
        "until": "true",
        "max": 3,
    }
    path = place.root / "plan.yaml"
    path.write_text(HEAD + f"  - {json.dumps({'id': 'a', 'description': 'A', **said})}\n")
    (task,) = place.json("run", path)["tasks"]
    assert {name: task[name] for name in said} == said
    assert {
        *said,
        "id",
        "description",
        "depends_on",
        "status",
        "attempts",
        "result",
        "outputs",
    } == task.keys()


def test_approval(place: Place) -> None:
    (place.project / "plan.yaml").write_text(
        HEAD + "  - {id: a, description: Ship it, run: 'echo a >> log', approval: true}\n"
    )
    waiting = place.ok("run", "plan.yaml")
    assert "is waiting for approval of task a (Ship it)" in waiting.out
    place.run("resume").failed(1, error="is waiting for approval", hint="holdfast approve")
    flow: dict[str, Any] = place.json("list")[0]
    done = place.ok("approve", flow["id"])
    assert (done.lines, log(place)) == (["✓ Approved", "✓ Workflow completed (1 task)"], ["a"])
    place.run("approve", flow["id"]).failed(1, error="is not waiting for approval")


def test_cancel_from_another_terminal(place: Place, plan: Callable[..., Path]) -> None:
    running = begin(place, "run", plan("touch began; sleep 60"))
    wait_until(place, "began")
    flow = place.json("list")[0]["id"]
    assert place.ok("cancel", flow, "-r", "no more").out == f"✓ Workflow {flow} cancelled\n"
    assert f"Workflow {flow} was cancelled" in result_of(running).out
    place.run("resume", flow).failed(1, error="cancelled and cannot become in_progress")


def test_json_tells_all_of_it(place: Place, plan: Callable[..., Path]) -> None:
    told = place.json("run", plan("echo hello"))
    assert (told["status"], told["tasks"][0]["result"]) == ("completed", "hello")
    events = place.json("events", told["id"])
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert events[-1]["entry"] == {"type": "workflow_status_changed", "status": "completed", "reason": None}
    assert place.json("events", told["id"], "--since", str(events[-2]["seq"])) == events[-1:]


def test_strict_refuses_a_diverged_branch(place: Place, plan: Callable[..., Path]) -> None:
    place.git("commit", "--quiet", "--allow-empty", "-m", "start")
    place.ok("run", plan("true", "echo b >> log", head="pause_every: 1\n"))
    place.git("checkout", "--quiet", "-b", "elsewhere")
    refused = place.run("resume", "--strict")
    assert (refused.code, log(place)) == (1, [])
    assert "The branch was main and is elsewhere now." in refused.err
    resumed = place.run("resume")
    assert (resumed.code, log(place)) == (0, ["b"])
    assert resumed.err == "warning: The branch was main and is elsewhere now.\n"


def test_without_git_the_files_themselves_are_compared(place: Place, plan: Callable[..., Path]) -> None:
    shutil.rmtree(place.project / ".git")
    notes = place.project / "notes"
    notes.write_text("at the pause")
    place.ok("run", plan("true", "echo b >> log", "echo c >> log", head="pause_every: 1\n"))
    notes.write_text("rewritten")
    refused = place.run("resume", "--strict")
    assert (refused.code, log(place)) == (1, [])
    assert "Changed on disk since the pause: notes." in refused.err
    notes.write_text("at the pause")
    resumed = place.run("resume", "--strict")
    assert (resumed.code, resumed.err, log(place)) == (0, "", ["b"])
    (place.project / "new").touch()
    notes.unlink()
    refused = place.run("resume", "--strict")
    assert (refused.code, log(place)) == (1, ["b"])
    assert "Changed on disk since the pause: notes, new." in refused.err


def test_strict_refuses_where_nobody_can_tell(place: Place, plan: Callable[..., Path]) -> None:
    shutil.rmtree(place.project / ".git")
    notes = place.project / "notes"
    notes.write_text("at the pause")
    large = place.project / "large"
    large.touch()
    os.truncate(large, LARGEST_FILE + 1)  # nobody waits until so much is read
    place.ok("run", plan("true", "echo b >> log", head="pause_every: 1\n"))
    notes.write_text("rewritten")
    told = "Cannot tell whether the files changed: no git state was recorded at the pause."
    refused = place.run("resume", "--strict")
    assert (refused.code, log(place)) == (1, [])
    assert told in refused.err
    assert "hint: check it yourself, then resume without --strict" in refused.err
    resumed = place.run("resume")
    assert (resumed.code, resumed.err, log(place)) == (0, f"warning: {told}\n", ["b"])


def test_strict_refuses_in_a_folder_that_git_ignores(place: Place, plan: Callable[..., Path]) -> None:
    """As a repository of dot files in one's home does with everything in it."""
    (place.project / ".gitignore").write_text("*\n")
    notes = place.project / "notes"
    notes.write_text("at the pause")
    place.ok("run", plan("true", "echo b >> log", head="pause_every: 1\n"))
    notes.write_text("rewritten")
    told = "Cannot tell whether the files changed: git ignores all new files in the folder."
    refused = place.run("resume", "--strict")
    assert (refused.code, log(place)) == (1, [])
    assert told in refused.err
    resumed = place.run("resume")
    assert (resumed.code, resumed.err, log(place)) == (0, f"warning: {told}\n", ["b"])


def test_strict_resumes_work_in_a_clone(place: Place, plan: Callable[..., Path]) -> None:
    """There is no folder of the user's that could have changed meanwhile."""
    place.git("commit", "--quiet", "--allow-empty", "-m", "start")
    place.git("clone", "--quiet", "--bare", ".", "../origin.git")
    origin = place.root / "origin.git"
    place.ok("run", plan("true", "echo b >> log", head=f"repository: {origin}\npause_every: 1\n"))
    flow = place.json("list", "--all")[0]["id"]
    assert "✓ Workflow completed" in place.ok("resume", flow, "--strict").out


def test_from_an_older_snapshot(place: Place, plan: Callable[..., Path]) -> None:
    place.ok("run", plan("echo a >> log", "echo b >> log", "echo c >> log", head="pause_every: 1\n"))
    place.ok("resume")
    first = place.json("snapshot", "list")[0]["id"]
    assert log(place) == ["a", "b"]
    again = place.run("resume", "--from", first)
    assert (again.code, log(place)) == (0, ["a", "b", "b"])
    assert again.err == "warning: Changed on disk since the pause: log.\n"


@embedded
def test_doctor_is_content(place: Place) -> None:
    well = place.ok("doctor")
    assert "✓ driver shell: usable" in well.lines
    assert [line for line in well.lines if line.startswith("✗ ")] == []
    assert [line for line in well.lines if line.startswith("· driver ")] == []
    assert {finding["name"] for finding in place.json("doctor")} >= {
        "python",
        "git",
        "database",
        "driver shell",
    }


def test_the_context_of_a_plan_that_ended_since_orders_nothing(
    place: Place, plan: Callable[..., Path]
) -> None:
    place.run("run", plan("true", "test -e ok"))
    assert "t2" in place.ok("context", "latest").out
    (place.project / "ok").touch()
    place.run("resume")
    shown = place.ok("context", "latest").out
    assert "has completed since this pause" in shown
    assert "Go on with" not in shown


def test_the_context_of_a_cancelled_plan_orders_nothing(place: Place, plan: Callable[..., Path]) -> None:
    place.run("run", plan("true", "test -e ok"))
    place.ok("cancel", place.json("status")["workflow"]["id"])
    shown = place.ok("context", "latest").out
    assert "was cancelled after this pause" in shown
    assert "Go on with" not in shown
