"""Which processes are a task's, so that all of them are ended, and no other one.

Most are told by the shell around a command, which adopts what that leaves behind, and by a mark in their
environment. Neither is left of a process that cleared its environment, took a session of its own and was
orphaned, once that shell was killed. So there is a record of each command, which outlives us:

    HOME/processes/MARK    a line of JSON with the machine and the control group of the command (cgroup v2),
                           where one may be had; then a line a process seen below its shell, with its start,
                           which no later process shares

Nothing leaves a control group. Where there is none, what was seen counts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

from holdfast.base.durable import open_to_append, private_folder, read_file
from holdfast.base.errors import StorageError
from holdfast.base.process import ProcessIdentity, identify, is_alive, kill_all, machine, signal_process

_EACH_SECONDS = 0.2
_LOOK_SECONDS = 0.05


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
        self._note([leader], json.dumps({"machine": machine(), "group": group}) + "\n")

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
        lines = "".join(f"{one['pid']} {one['started']}\n" for one in new if one["started"])
        with contextlib.suppress(OSError, StorageError):  # costs only what a kill of us all would leave
            if head:
                private_folder(self._path.parent)
            with open_to_append(self._path) as file:
                file.write(f"{head}{lines}".encode())


def end_recorded(folder: Path | None, mark: str, grace: float = 0.0) -> None:
    """What is left here of the commands whose mark begins with this: asked to end, then killed."""
    records = list(_records(folder, mark))
    for path, group, seen in records:
        left = _left(group, seen)
        for one in left if grace else ():
            signal_process(one, 15)
        deadline = time.monotonic() + grace
        while left and _left(group, seen) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        _kill(group, seen)
        _remove(group)
        path.unlink(missing_ok=True)


def is_recorded(folder: Path | None, mark: str) -> bool:
    """Whether something is left of them."""
    return any(_left(group, seen) for _, group, seen in _records(folder, mark))


def _records(folder: Path | None, mark: str) -> Iterator[tuple[Path, Path | None, list[ProcessIdentity]]]:
    for path in folder.glob(f"{mark}*") if folder is not None else ():
        try:
            head, *lines = read_file(path).decode().split("\n")[:-1]  # what was torn is no line
            found = cast("dict[str, str | None]", json.loads(head))
            group, is_here = found["group"], found["machine"] == machine()
            ones = [_identity(line) for line in lines]
        except (OSError, StorageError, ValueError, KeyError, TypeError):
            continue  # torn as its writer was killed; the mark in the environment is left
        if is_here:
            yield path, Path(group) if group and _IS_OURS.search(group) else None, ones


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
        for thread in Path(f"/proc/{left.pop()}/task").glob("*"):
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
    for one in group.rglob("cgroup.procs") if group is not None else ():
        with contextlib.suppress(OSError):
            found += map(int, one.read_text().split())
    return found


def _remove(group: Path | None) -> None:
    if group is not None:
        with contextlib.suppress(OSError):
            for one in group.glob("*/"):
                _remove(one)
            group.rmdir()
