"""Processes that outlive neither their task nor us: a group of their own, ended on a stop and on our death.

The leader of the group is a shell. On Linux it adopts whatever the command leaves behind, be it in
a session of its own (`setsid`, a double fork) or with an empty environment, and ends that before it
tells how the command ended. A guard beside it holds the other end of a socket. When Holdfast is killed
outright, the socket closes and the guard ends them all, so that nothing goes on alone beside its second
attempt. What a dead leader had adopted is found by a mark in its environment (where the system shows it, as
Linux does), and by the record of the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self, cast

from holdfast.base.durable import open_to_append, private_folder, read_file
from holdfast.base.errors import StorageError
from holdfast.base.process import (
    ProcessIdentity,
    end_group,
    identify,
    is_alive,
    kill_all,
    machine,
    signal_group,
    signal_process,
)
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.workflows.drivers.protocol import Assignment

GRACE_SECONDS = 5.0
"""What a process gets to end by itself once it was asked to."""

MARK = "HOLDFAST_RUN"
CANNOT_TELL = 256
"""Stands for the exit code of a command that nobody told how it ended; no exit code is that large."""
TAIL_BYTES = 4_000
_MOST_NEWS = 256 << 10
_KEPT_ENDS = 1 << 20
"""Of very long output so much of the beginning and of the end stays on the disk."""
_WORTHWHILE = 8 << 20
_LONGEST_LINE = 16 << 20
_LAST_LINES_SECONDS = 2.0
_TICK_SECONDS = 0.25
_LOOK_SECONDS = 0.05

# $$ is the leader of the group, which outlasts a signal to the group so as to tell how the command ended.
# Descriptor 3 is the socket to Holdfast; the command gets neither it nor our stdin. Once that is closed,
# the guard does not go with the command: there may be more to end. How the command ended is told there, too:
# what the system says of the leader is lost where the program that we are part of ignores SIGCHLD or
# collects every child itself, and Python then says 0.
# The children of the leader, once the guard is gone, are what the command left: each set of them is asked to
# end once, and killed after so many looks. What those leave comes next. A `sleep` collects the dead, too.
_GUARD = """
input=$1 grace=$2 patience=$3 group=$4
shift 4
exec 3<&0 </dev/null
[ -z "$group" ] || echo $$ 2>/dev/null >"$group/cgroup.procs"
trap : TERM INT
(
  trap '' TERM INT
  read -r _ <&3
  trap '' USR1
  [ "$grace" = 0 ] || { kill -TERM -$$; sleep "$grace"; }
  read -r self _ </proc/self/stat
  [ -z "$group" ] || echo "$self" >"${group%/*}/cgroup.procs"
  looks=200
  while read -r left </proc/$$/task/$$/children; [ $looks -gt 0 ]; do
    looks=$((looks - 1)) found=
    for one in $left; do
      [ "$one" = "$self" ] || { kill -KILL "$one"; found=1; }
    done
    [ -n "$found" ] || break
    sleep 0.02
  done
  for one in $(grep -ls "HOLDFAST_RUN=$HOLDFAST_RUN" /proc/[0-9]*/environ); do
    one=${one#/proc/}
    one=${one%/environ}
    read -r about </proc/$one/stat || continue
    set -- ${about##*) }
    [ "$3" = $$ ] || kill -KILL "$one"
  done
  for one in /proc/[0-9]*/stat; do
    read -r about <"$one" || continue
    set -- ${about##*) }
    [ "$4" = $$ ] && [ "$3" != $$ ] || continue
    one=${one#/proc/}
    kill -KILL "${one%/stat}"
  done
  if [ -n "$group" ]; then echo 1 >"$group/cgroup.kill"; sleep 0.1; rmdir "$group"; fi
  kill -KILL -$$
) >/dev/null 2>&1 &
guard=$!
"$@" 3<&- <"$input"
code=$?
kill -USR1 $guard 2>/dev/null
wait $guard 2>/dev/null
left= asked=
while [ -n "$patience" ] && [ $patience -gt -200 ]; do
  read -r left </proc/$$/task/$$/children
  [ -n "$left" ] || break
  if [ $patience -le 0 ]; then kill -KILL $left; elif [ "$left" != "$asked" ]; then kill -TERM $left; fi
  asked=$left patience=$((patience - 1))
  sleep 0.05
done 2>/dev/null
{ echo $code >&3; } 2>/dev/null
exit $code
"""


class Guarded:
    """A running command. Leave it with `with`: it is waited for, and its files are closed."""

    def __init__(
        self,
        words: Sequence[str],
        assignment: Assignment,
        *,
        environ: Mapping[str, str] | None = None,
        text: str | None = None,
        lines: bool = False,
        kind: Literal["command", "agent", "tool"] = "command",
        ask_to_end: signal.Signals = signal.SIGTERM,
    ) -> None:
        """For this task, with further variables in its environment. `text` is what it reads on stdin. With
        `lines`, its stdout is for `lines()`, no part of `tail`.

        An agent gets time to close its session even where it ends because we died. What an agent's tool
        leaves in the background may be for the next one: it ends with the task.
        """
        self._stop = stop = assignment.stop
        environ = {**task_environ(assignment), **(environ or {})}
        self._ask_to_end = ask_to_end
        self._asked_at: float | None = None
        self._is_group_gone = self._is_over = False
        self._told: int | None = None
        self._read_through = 0
        self._dropped_through = _KEPT_ENDS
        self._lock = threading.Lock()
        self._mark = f"{assignment.mark}-{uuid.uuid4().hex}"
        self._kind = kind
        self._owned = OwnedProcesses(assignment.records, self._mark)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        try:
            self._process, self._link = _started(
                words,
                (
                    "0" if kind == "command" else f"{GRACE_SECONDS:g}",
                    "" if kind == "tool" else str(int(GRACE_SECONDS / _LOOK_SECONDS)),
                    str(self._owned.group or ""),
                ),
                cwd=assignment.worktree,
                environ={**environ, MARK: self._mark},
                text=text,
                stdout=subprocess.PIPE if lines else self._output,
                stderr=self._output,
            )
        except BaseException:
            self._output.close()
            self._owned.give_up()
            raise
        self._leader, self._handle = identify(self._process.pid), _handle(self._process.pid)
        self._owned.begun(self._leader)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        if lines:
            threading.Thread(target=self._read_lines, name="holdfast-lines", daemon=True).start()
        stop.on_request(self._ask)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None:
                self.kill()
            elif self._stop.requested:  # whoever reports that it was stopped may rely on it
                self._ended()
            self._has_ended(None)
            if self._kind != "tool":
                self._owned.end()
        finally:
            with self._lock:  # from now on its number may be another process's
                self._is_over = True
                self._process.poll()
            if self._handle is not None:
                os.close(self._handle)
            self._link.close()
            self._output.close()

    def lines(self) -> Iterator[bytes | None]:
        """Each line of its output as it comes; None now and then while there is none, to look around.

        Ends with the process, even where something it left behind holds the output open.
        """
        ended: float | None = None
        asked: float | None = None
        while True:
            now = time.monotonic()
            if self._stop.requested:
                asked = now if asked is None else asked
                if now - asked >= GRACE_SECONDS:
                    self.kill()
            self._owned.look()
            if ended is None and self._has_ended(0):
                ended = now
            try:
                line = self._lines.get(timeout=_TICK_SECONDS)
            except queue.Empty:
                self._drop_the_middle()
                if ended is not None and now - ended >= _LAST_LINES_SECONDS:
                    return
                yield None
                continue
            if line is None:
                return
            yield line

    def wait(self, seconds: float | None = None) -> int | None:
        """Its exit code; None when `seconds` are over and it is not. A stop cuts the wait to the grace."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not self._stop.requested:
            left = 1.0 if deadline is None else min(1.0, deadline - time.monotonic())
            if left <= 0:
                return None
            if self._has_ended(left):
                return self._how_it_ended()
            self._owned.look()
            self._drop_the_middle()
        return self._ended()

    def end(self) -> int:
        """Ask it to end, and see to it."""
        return self._ended()

    def _ended(self) -> int:
        """Once nothing of its group runs any more, however its leader ended."""
        self._ask()
        waited = time.monotonic() - (self._asked_at or 0.0)
        return self._end_group(max(0.0, GRACE_SECONDS - waited))

    def kill(self) -> None:
        self._end_group(0)

    def _end_group(self, grace: float) -> int:
        if not self._is_group_gone:
            end_group(self._leader, grace)
            self._is_group_gone = True
        self._sweep()
        self._has_ended(None)
        return self._how_it_ended()

    def _has_ended(self, seconds: float | None) -> bool:
        """After at most so many seconds. It is not collected yet: as long as it is not, no other process gets
        its number, and a signal to its group reaches nobody else."""
        if self._handle is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            return self._process.returncode is not None
        end = select.poll()
        end.register(self._handle, select.POLLIN)
        return bool(end.poll(None if seconds is None else seconds * 1000))

    def _how_it_ended(self) -> int:
        """Its exit code, as its leader told it; where that was killed before, as the system saw it."""
        if self._told is None:
            with contextlib.suppress(OSError, ValueError):
                self._told = int(self._link.recv(16))
        return self._told if self._told is not None else self._seen_end() or CANNOT_TELL

    def _seen_end(self) -> int:
        if self._handle is None:
            return self._process.wait()
        try:
            seen = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return CANNOT_TELL
        return 0 if seen is None else seen.si_status if seen.si_code == os.CLD_EXITED else -seen.si_status

    @property
    def tail(self) -> str:
        """The end of what it printed."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - TAIL_BYTES))
        text = _text(self._output.read()).strip()
        return f"…{text}" if size > TAIL_BYTES else text

    def news(self, *, is_last: bool = False) -> str:
        """What it printed since this was last asked, up to the end of a line; of very much, the beginning and
        the end. The place in the file is the program's, too: it must not be moved."""
        descriptor, start = self._output.fileno(), self._read_through
        new = os.fstat(descriptor).st_size - start
        if new > 2 * _MOST_NEWS:
            first = os.pread(descriptor, _MOST_NEWS, start)
            last = os.pread(descriptor, _MOST_NEWS, start + new - _MOST_NEWS)
            self._read_through += new
            return f"{_text(first)}\n[… {new - 2 * _MOST_NEWS} bytes left out]\n{_text(last)}"
        data = os.pread(descriptor, new, start)
        if not is_last and new < _MOST_NEWS:
            data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
        self._read_through += len(data)
        return _text(data)

    def _drop_the_middle(self) -> None:
        """Of what it printed and nobody will ask for: who prints for ever must not fill the disk."""
        descriptor = self._output.fileno()
        start, end = self._dropped_through, (self._read_through or os.fstat(descriptor).st_size) - _KEPT_ENDS
        if end - start >= _WORTHWHILE:
            _give_back(descriptor, start, end - start)
            self._dropped_through = end

    def printed(self, most: int) -> str:
        """What it printed; of more than so many bytes the beginning and the end, with a sign between them."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(0)
        if size <= most:
            return _text(self._output.read())
        head = self._output.read(most // 2)
        self._output.seek(size - most // 2)
        left = size - 2 * (most // 2)
        return f"{_text(head)}\n[… {left} bytes left out]\n{_text(self._output.read())}"

    def _ask(self) -> None:
        """Once: an agent that is asked twice may leave without closing its session."""
        with self._lock:
            if self._asked_at is None and not self._is_over:
                self._asked_at = time.monotonic()
                signal_group(self._leader, self._ask_to_end)

    def _sweep(self) -> None:
        """What was started in sessions of its own."""
        kill_all(lambda: _marked(self._mark))

    def _read_lines(self) -> None:
        stream = self._process.stdout
        if stream is None:
            return
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                if line.endswith(b"\n") or len(line) < _LONGEST_LINE:
                    self._lines.put(line)
                else:
                    _skip_line(stream)
        self._lines.put(None)


_KEEP_SIZE_PUNCH_HOLE = 3


def _give_back(descriptor: int, start: int, length: int) -> None:
    """The disk under a part of a file, which reads as zeros then; where system and file system can."""
    if sys.platform == "linux":
        import ctypes

        system = ctypes.CDLL(None)
        fallocate = getattr(system, "fallocate64", system.fallocate)
        fallocate(descriptor, _KEEP_SIZE_PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(length))


def _started(
    words: Sequence[str],
    ending: tuple[str, str, str],
    *,
    cwd: Path,
    environ: dict[str, str],
    text: str | None,
    stdout: int | IO[bytes],
    stderr: IO[bytes],
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """The leader, which is told how to end what is left, and our end of the socket to it."""
    with contextlib.ExitStack() as stack:
        given: tuple[int, ...] = ()
        if text is not None:
            # As a file: however long it is, nobody waits for it to be read.
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            file.seek(0)
            given = (file.fileno(),)
        source = f"/dev/fd/{given[0]}" if given else "/dev/null"
        adopting, adopt = _adoption(environ)
        ours, theirs = socket.socketpair()
        on_error = stack.enter_context(contextlib.ExitStack())
        on_error.callback(ours.close)
        stack.callback(theirs.close)
        ours.setblocking(False)
        process = subprocess.Popen(
            [
                *adopting,
                "/bin/sh",
                "-c",
                _GUARD,
                "holdfast",
                source,
                *ending,
                *words,
            ],
            cwd=cwd,
            env={**_QUIET_PERL, **environ} if adopting else environ,
            stdin=theirs.fileno(),
            stdout=stdout,
            stderr=stderr,
            pass_fds=given,
            start_new_session=True,
            preexec_fn=adopt,  # noqa: PLW1509 - one system call
        )
        on_error.pop_all()
        return process, ours


_SUBREAPER = 36
_PRCTL = {"x86_64": 157, "aarch64": 167}
_QUIET_PERL = {"PERL_BADLANG": "0"}
_BECOME_PARENT = "syscall({}, {}, 1, 0, 0, 0); delete $ENV{{PERL_BADLANG}}; exec @ARGV; exit 127"


def _adoption(environ: Mapping[str, str]) -> tuple[Sequence[str], Callable[[], object] | None]:
    """How a new process becomes the parent of whatever its descendants leave behind: by words to put before
    its program, or by a call before that starts. That one makes Python copy itself, which takes ten times as
    long; so where Perl is at hand, which git brings along, it is asked."""
    call = _PRCTL.get(platform.machine())
    perl = shutil.which("perl")
    if sys.platform != "linux":
        return (), None
    if call and perl and "PERL5OPT" not in environ:
        return (perl, "-e", _BECOME_PARENT.format(call, _SUBREAPER)), None
    import ctypes

    prctl = ctypes.PyDLL(None).prctl
    return (), lambda: prctl(_SUBREAPER, 1, 0, 0, 0)


def attempt_mark(workflow: Workflow, task: Task) -> str:
    """The mark of the last attempt at a task: whoever takes over can tell it, too."""
    names = (workflow.id, str(workflow.session_count), task.id, str(task.attempts))
    return sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def end_cut_off(workflow: Workflow, tasks: Iterable[Task], home: Path) -> None:
    """Of the tasks that somebody else was at: whatever still runs of them on this machine.

    Their runner may be dead, and its agents in the middle of closing their sessions; or it was only
    stopped or cut off from the database, and does not know that it was replaced.
    """
    marks = _marks_under_way(workflow, tasks)
    for mark in marks:
        for one in _marked(mark):
            signal_process(one, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    for mark in marks:
        while _marked(mark) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        kill_all(partial(_marked, mark))
        end_recorded(records_in(home), mark, GRACE_SECONDS)


def wait_for_cut_off(workflow: Workflow, tasks: Iterable[Task], seconds: float, home: Path) -> None:
    """Until no process of the tasks that were under way is left on this machine: their runner ends them."""
    marks, records = _marks_under_way(workflow, tasks), records_in(home)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(_marked(mark) or is_recorded(records, mark) for mark in marks):
        time.sleep(_LOOK_SECONDS)


def _marks_under_way(workflow: Workflow, tasks: Iterable[Task]) -> list[str]:
    return [f"{attempt_mark(workflow, task)}-" for task in tasks if task.status == "in_progress"]


def end_what_is_left(assignment: Assignment) -> None:
    """Of all commands of an attempt, also those that ended long ago: the next one must not run beside it."""
    if assignment.has_programs.is_set():  # to look through all processes costs more than a short task
        kill_all(lambda: _marked(f"{assignment.mark}-"))
        end_recorded(assignment.records, f"{assignment.mark}-")


def _marked(mark: str) -> list[ProcessIdentity]:
    """Processes whose mark begins with this, besides this very one: a task may start a worker."""
    found: list[ProcessIdentity] = []
    for folder in Path("/proc").glob("[0-9]*"):
        if _has_mark(folder, mark) and (pid := int(folder.name)) != os.getpid():
            one = identify(pid)
            if _has_mark(folder, mark):  # else its number is another process's by now
                found.append(one)
    return found


def _has_mark(folder: Path, mark: str) -> bool:
    start = f"{MARK}={mark}".encode()
    with contextlib.suppress(OSError):
        environ = (folder / "environ").read_bytes()
        return start in environ and any(one.startswith(start) for one in environ.split(b"\0"))
    return False


def _handle(pid: int) -> int | None:
    """By which its end is seen without collecting it; None where the system has no such thing."""
    with contextlib.suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None


def _text(data: bytes) -> str:
    return data.decode(errors="replace").replace("\0", "")


def _skip_line(stream: IO[bytes]) -> None:
    while (rest := stream.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
        pass


def task_environ(assignment: Assignment) -> dict[str, str]:
    """Ours, and what a command may want to know about its task. Who gets it is ended with the attempt."""
    assignment.has_programs.set()
    return {
        **os.environ,
        **assignment.environ,
        "HOLDFAST_WORKFLOW": assignment.workflow_id,
        "HOLDFAST_TASK": assignment.task.id,
        "HOLDFAST_ATTEMPT": str(assignment.attempt),
        MARK: assignment.mark,
    }


def meaning(code: int) -> str:
    if code == CANNOT_TELL:
        return "cannot tell whether the command succeeded: its exit code was lost"
    if code == 127:
        return "command not found (exit code 127)"
    if code == 126:
        return "permission denied (exit code 126)"
    number = code - 128 if code > 0 else -code
    if number in signal.valid_signals():  # 255 is an exit code: `ssh` and `git` end with it
        return f"terminated by signal {number}"
    return f"exit code {code}"


# ── which processes are a task's ───────────────────────────────────────────────────────────

# All of them are ended, and no other one. Most are told by the shell around a command, which adopts what
# that leaves behind, and by a mark in their environment. Neither is left of a process that cleared its
# environment, took a session of its own and was orphaned, once that shell was killed. So there is a record
# of each command, which outlives us:
#
#     HOME/processes/MARK    a line of JSON with the machine, the runner and the control group of the command
#                            (cgroup v2), where one may be had; then a line a process seen below its shell,
#                            with its start, which no later process shares
#
# It goes with the command, or with the next attempt. Where none follows, whoever starts to run workflows
# prunes it.
#
# Nothing leaves a control group. Where there is none, what was seen counts.

_EACH_SECONDS = 0.2
_LONGEST_KEPT = 30 * 24 * 3600.0


def records_in(home: Path) -> Path:
    return home / "processes"


class OwnedProcesses:
    """Of one command. Begin before it starts, end once nothing of it may run any more."""

    def __init__(self, folder: Path | None, mark: str) -> None:
        """Without a folder nothing survives us."""
        self._path = folder / mark if folder is not None else None
        self.group = _made_group(mark) if folder is not None else None
        self._leader: ProcessIdentity | None = None
        self._seen: dict[int, ProcessIdentity] = {}
        self._looked_at = 0.0

    def begun(self, leader: ProcessIdentity) -> None:
        self._leader = leader
        group = str(self.group) if self.group is not None else None
        head = {"machine": machine(), "group": group, "runner": _line(identify(os.getpid()))}
        self._note([leader], json.dumps(head) + "\n")

    def look(self) -> None:
        """Now and then, while it runs."""
        if self._leader is None or time.monotonic() < self._looked_at + _EACH_SECONDS:
            return
        self._looked_at = time.monotonic()
        if _inside(self.group):  # else it was not let in
            return
        found = map(identify, _below(self._leader["pid"]))
        if new := [one for one in found if self._seen.get(one["pid"]) != one]:
            self._note(new)

    def end(self) -> None:
        """Kill what is left of it, and forget it."""
        _kill(self.group, list(self._seen.values()))
        _remove(self.group)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def give_up(self) -> None:
        """It was never begun."""
        _remove(self.group)

    def _note(self, new: list[ProcessIdentity], head: str = "") -> None:
        self._seen.update({one["pid"]: one for one in new})
        if self._path is None:
            return
        lines = "".join(f"{_line(one)}\n" for one in new if one["started"])
        with contextlib.suppress(OSError, StorageError):  # costs only what a kill of us all would leave
            if head:
                private_folder(self._path.parent)
            with open_to_append(self._path) as file:
                file.write(f"{head}{lines}".encode())


def end_recorded(folder: Path | None, mark: str, grace: float = 0.0) -> None:
    """What is left here of the commands whose mark begins with this: asked to end, then killed."""
    for path in _record_files(folder, mark):
        if (found := _record_in(path)) is None:
            continue
        left = found.left()
        for one in left if grace else ():
            signal_process(one, 15)
        deadline = time.monotonic() + grace
        while left and found.left() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        _kill(found.group, found.seen)
        _forget(path, found)


def is_recorded(folder: Path | None, mark: str) -> bool:
    """Whether something is left of them."""
    return any((found := _record_in(path)) and found.left() for path in _record_files(folder, mark))


def prune_records(home: Path, now: float) -> None:
    """Forget the commands of which nothing is left and which nobody looks after.

    Of others, another machine's and torn ones, nobody can tell here: they go when they are old.
    """
    for path in _record_files(records_in(home), ""):
        with contextlib.suppress(OSError):
            if (found := _record_in(path)) is not None:
                if not found.left() and not (found.runner and is_alive(found.runner)):
                    _forget(path, found)
            elif path.stat().st_mtime < now - _LONGEST_KEPT:
                path.unlink()


@dataclass(frozen=True)
class _Record:
    group: Path | None
    seen: list[ProcessIdentity]
    runner: ProcessIdentity | None

    def left(self) -> list[ProcessIdentity]:
        return _left(self.group, self.seen)


def _record_files(folder: Path | None, mark: str) -> list[Path]:
    return [*folder.glob(f"{mark}*")] if folder is not None else []


def _record_in(path: Path) -> _Record | None:
    """None where it is another machine's, or torn: then the mark in the environment is left."""
    try:
        head, *lines = read_file(path).decode().split("\n")[:-1]  # what was torn is no line
        found = cast("dict[str, str | None]", json.loads(head))
        group, is_here, runner = found["group"], found["machine"] == machine(), found.get("runner")
        seen = [_identity(line) for line in lines]
        its_runner = _identity(runner) if runner else None
    except (OSError, StorageError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return (
        _Record(Path(group) if group and _IS_OURS.search(group) else None, seen, its_runner)
        if is_here
        else None
    )


def _forget(path: Path, record: _Record) -> None:
    _remove(record.group)
    path.unlink(missing_ok=True)


def _line(one: ProcessIdentity) -> str:
    return f"{one['pid']} {one['started'] or ''}"


def _identity(line: str) -> ProcessIdentity:
    pid, _, started = line.partition(" ")
    return {"pid": int(pid), "started": started}


def _left(group: Path | None, seen: list[ProcessIdentity]) -> list[ProcessIdentity]:
    """But not this very process: a task may start a worker."""
    inside = [identify(pid) for pid in _inside(group)]
    return [one for one in (*seen, *inside) if one["pid"] != os.getpid() and is_alive(one)]


def _kill(group: Path | None, seen: list[ProcessIdentity]) -> None:
    inside = _inside(group)
    if group is not None and inside and os.getpid() not in inside:
        with contextlib.suppress(OSError):
            (group / "cgroup.kill").write_text("1")  # all at once, also those that fork all the time
    kill_all(lambda: _left(group, seen))


# ── what the system has ───────────────────────────────────────────────────────────────────────────

_IS_OURS = re.compile(r"/holdfast-[\w-]+\Z")


def _below(leader: int) -> list[int]:
    """What descends from it, as the threads of each process tell."""
    found: list[int] = []
    left = [leader]
    while left:
        threads: list[Path] = []
        with contextlib.suppress(OSError):  # it may end meanwhile, which `glob` does not bear
            threads = [*Path(f"/proc/{left.pop()}/task").iterdir()]
        for thread in threads:
            with contextlib.suppress(OSError):
                children = [int(one) for one in (thread / "children").read_text().split()]
                found += children
                left += children
    return found


@cache
def _own_group() -> Path | None:
    """Our control group, if we may make others in it."""
    with contextlib.suppress(OSError, StopIteration):
        place = next(
            line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")
        )
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            fields, _, kind = line.partition(" - ")
            if kind.startswith("cgroup2 "):
                root, mounted = fields.split()[3:5]
                group = Path(os.path.normpath(f"{mounted}/{os.path.relpath(place, root)}"))
                is_inside = group.is_relative_to(mounted)
                return group if is_inside and os.access(group / "cgroup.procs", os.W_OK) else None
    return None


def _made_group(mark: str) -> Path | None:
    if (own := _own_group()) is None:
        return None
    group = own / f"holdfast-{mark}"
    try:
        group.mkdir()
    except OSError:
        return None
    if os.access(group / "cgroup.kill", os.W_OK):  # since Linux 5.14
        return group
    _remove(group)
    return None


def _inside(group: Path | None) -> list[int]:
    """In it or in one below: a task may run a plan of its own."""
    found: list[int] = []
    # Whoever ends the rest removes it meanwhile, which `rglob` does not bear.
    for folder, _, _ in os.walk(group) if group is not None else ():
        with contextlib.suppress(OSError):
            found += map(int, Path(folder, "cgroup.procs").read_text().split())
    return found


def _remove(group: Path | None) -> None:
    if group is not None:
        with contextlib.suppress(OSError):
            for one in group.glob("*/"):
                _remove(one)
            group.rmdir()
