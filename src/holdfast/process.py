"""Who is running: an identity that a later process with the same number cannot be taken for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict


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


def _exists(pid: int) -> bool:
    if os.name == "nt":
        return True  # os.kill would end the process there; assume it lives
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
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
    """Boot and start time in the kernel's ticks: unique across reboots."""
    fields = _stat_fields(pid)
    if len(fields) < 20:
        return None
    return f"{boot_mark() or ''}:{fields[19]}"


_boot: list[str | None] = []


def boot_mark() -> str | None:
    """Another one each time the machine starts; None where the system does not tell."""
    if not _boot:  # no process lives to see another one
        try:
            _boot.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        except OSError:
            _boot.append(None)
    return _boot[0]
