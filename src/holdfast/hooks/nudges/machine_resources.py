"""The machine is short of disk or memory: work is about to fail for a reason nobody looks for."""

import os

from holdfast.hooks import notes, pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

_LITTLE_DISK = 512 * 1024 * 1024
_LITTLE_MEMORY_SHARE = 0.05


def check(event: "Event") -> str | None:
    if not pace.is_due(event, "machine_resources", prompts=20):
        return None
    short = [*_disk(event.project), *_memory()]
    if not short:
        return None
    pace.spoke(event, "machine_resources")
    return f"[holdfast] This machine is short of {' and '.join(short)}. Clean up before large builds."


def _disk(folder: str) -> list[str]:
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    return [f"disk ({free // 1_048_576} MB free)"] if free < _LITTLE_DISK else []


def _memory() -> list[str]:
    data = notes.read("/proc/meminfo", 4096)
    if data is None:
        return []
    sizes = {words[0]: int(words[1]) for words in map(bytes.split, data.split(b"\n")) if len(words) >= 2}
    total, free = sizes.get(b"MemTotal:", 0), sizes.get(b"MemAvailable:", 0)
    return [f"memory ({free // 1024} MB free)"] if total and free < total * _LITTLE_MEMORY_SHARE else []
