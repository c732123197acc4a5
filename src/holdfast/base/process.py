"""Who is running: an identity that a later process with the same number cannot be taken for.

And how a process group is ended, so that nothing of it is left.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypedDict

from holdfast.base.errors import CannotDoError

_LOOK_SECONDS = 0.05
_PASSES = 20
_DEATH_SECONDS = 10.0
"""What a killed process gets to be gone; longer takes only one that the system itself holds."""


def learn_of_children() -> None:
    """How they end, that is. Who starts us may ignore SIGCHLD, and a program inherits that: the system then
    keeps no exit code, and Python takes every command for a success."""
    import signal

    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


class ProcessIdentity(TypedDict):
    pid: int
    started: str | None


def identify(pid: int) -> ProcessIdentity:
    return {"pid": pid, "started": _start_mark(pid)}


def machine() -> str:
    """Where process numbers mean what they mean here: this host, and this container on it."""
    import platform

    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - pathlib would be loaded for this alone
    except OSError:
        space = ""
    return f"{platform.node()}{space.removeprefix('pid:')}"


def lasting_parent() -> int:
    """The process on whose behalf we run: our parent, or the one behind a shell that runs one command."""
    pid = os.getppid()
    while _runs_one_command(pid) and len(fields := _stat_fields(pid)) > 1:
        pid = int(fields[1])
    return pid


def _runs_one_command(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    shell = words[0].rpartition(b"/")[2].lstrip(b"-")
    return shell in (b"sh", b"bash", b"dash", b"zsh", b"fish") and any(
        word.startswith(b"-") and word.endswith(b"c") for word in words[1:3]
    )


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether that very process still runs.

    Where the system does not tell when a process began (no /proc), the number alone decides.
    """
    pid, started = identity["pid"], identity["started"]
    if pid <= 0 or not _exists(pid):
        return False
    now = _start_mark(pid)
    return started is None or now is None or now == started


def end_group(leader: ProcessIdentity, grace: float) -> None:
    """Return once no process of its group runs: what has not ended within `grace` seconds is killed.

    The leader's end is not enough: what it started may ignore the signal it obeyed. Nor is the group, where
    its leader began a session: `timeout` and shells with job control make groups of their own in it.
    """
    group = leader["pid"]
    _signal_each([one for one, of in _members(leader) if of != group], 15)  # the group was told already
    deadline = time.monotonic() + grace
    while group_members(leader) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    for _ in range(_PASSES):  # before the leader, which has adopted what is in no group of ours
        if not (left := [one for one in group_members(leader) if one["pid"] != group]):
            break
        _signal_each(left, 9)
        time.sleep(_LOOK_SECONDS)
    # In any case: one that forks and exits all the time can slip through a look, but not through this.
    signal_group(leader, 9)
    kill_all(lambda: group_members(leader))


def kill_all(running: Callable[[], list[ProcessIdentity]]) -> None:
    """Kill what is found to run until nothing is found: a process may have started another one meanwhile."""
    deadline = time.monotonic() + _DEATH_SECONDS
    while left := running():
        if time.monotonic() > deadline:
            raise CannotDoError(
                f"cannot terminate process {', '.join(str(one['pid']) for one in left)}",
                hint="terminate it by hand first, or the next attempt runs alongside it",
            )
        _signal_each(left, 9)
        time.sleep(_LOOK_SECONDS)


def signal_group(leader: ProcessIdentity, number: int) -> None:
    """Only while the number is sure to be the group's: a child that nobody has collected yet keeps it."""
    fields = _stat_fields(leader["pid"])
    if Path("/proc/self/stat").exists() and (len(fields) < 2 or int(fields[1]) != os.getpid()):
        _signal_each([one for one, of in _members(leader) if of == leader["pid"]], number)
        return
    # Not permitted: another user's (sudo). Whoever waits for its end finds it still running.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader["pid"], number)


def signal_process(one: ProcessIdentity, number: int) -> None:
    """That very process: never a later one with its number. Where the system gives no handle on a process,
    the look and the signal are two steps."""
    try:
        handle = os.pidfd_open(one["pid"])
    except ProcessLookupError:
        return
    except (AttributeError, OSError):
        handle = None
    try:
        if is_alive(one):  # now that a handle holds what is looked at
            _send(one["pid"], handle, number)
    finally:
        if handle is not None:
            os.close(handle)


def _send(pid: int, handle: int | None, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if handle is None:
            os.kill(pid, number)
        else:
            import signal

            signal.pidfd_send_signal(handle, number)


def _signal_each(ones: list[ProcessIdentity], number: int) -> None:
    for one in ones:
        signal_process(one, number)


def group_members(leader: ProcessIdentity) -> list[ProcessIdentity]:
    """The processes of its group, or of its session, or descended from it, that still run.

    A zombie does not, and its parent may never collect it.
    """
    return [one for one, _ in _members(leader)]


def _members(leader: ProcessIdentity) -> list[tuple[ProcessIdentity, int]]:
    """Each with its own group."""
    group = leader["pid"]
    if (now := _start_mark(group)) is not None and now != leader["started"]:
        return []  # its number is another process's: nothing of the group is left
    found = _processes()
    descended = _descendants(group, [(one.pid, one.parent) for one in found])
    return [
        ({"pid": one.pid, "started": one.started}, one.group)
        for one in found
        if (group in (one.group, one.session) or one.pid in descended) and one.state[:1] not in ("Z", "X")
    ]


def _descendants(pid: int, parents: list[tuple[int, int]]) -> set[int]:
    children: dict[int, list[int]] = {}
    for child, parent in parents:
        children.setdefault(parent, []).append(child)
    found: set[int] = set()
    left = [pid]
    while left:
        new = [child for child in children.get(left.pop(), ()) if child not in found]
        found.update(new)
        left += new
    return found


class _Process(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: str | None


def _processes() -> list[_Process]:
    if not Path("/proc/self/stat").exists():
        return _processes_by_ps()
    found = [(int(name), _stat_fields(int(name))) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    return [
        _Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), fields[0], _started(fields))
        for pid, fields in found
        if len(fields) > 3
    ]


def _processes_by_ps() -> list[_Process]:
    import subprocess

    told = subprocess.run(
        ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat="],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line.split() for line in told.splitlines()]
    return [
        _Process(int(line[0]), int(line[1]), int(line[2]), 0, line[3], None)
        for line in lines
        if len(line) > 3
    ]


def _exists(pid: int) -> bool:
    if os.name == "nt":
        return True  # os.kill would end the process there; assume it lives
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _stat_fields(pid: int) -> list[str]:
    """/proc/PID/stat after the command name, which may itself hold spaces and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _is_zombie(pid: int) -> bool:
    return _stat_fields(pid)[:1] == ["Z"]


def _start_mark(pid: int) -> str | None:
    return _started(_stat_fields(pid))


def _started(fields: list[str]) -> str | None:
    """Boot and start time in the kernel's ticks: unique across reboots."""
    return f"{boot_mark() or ''}:{fields[19]}" if len(fields) >= 20 else None


_boot: list[str | None] = []


def boot_mark() -> str | None:
    """Another one each time the machine starts; None where the system does not tell."""
    if not _boot:  # no process lives to see another one
        try:
            _boot.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        except OSError:
            _boot.append(None)
    return _boot[0]
