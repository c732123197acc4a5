"""Claims and leases: who runs a workflow, and whether that process is gone.

A claim names its holder: `worker-HOST-PID-…#3` is the third session that worker took. A
worker's lease may be judged by anybody; a run in somebody's terminal lives as long as
its process does, even where it is stopped with Ctrl-Z.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.base.process import ProcessIdentity, is_alive, machine


@dataclass(frozen=True)
class Lease:
    id: str
    kind: str
    host: str
    pid: int
    started_mark: str | None
    lease_seconds: float
    age: float = 0.0
    """Seconds since it was renewed, by the database's clock."""

    @property
    def expired(self) -> bool:
        return self.age > self.lease_seconds


def holder(claim: str) -> str:
    return claim.rpartition("#")[0]


def is_gone(claim: str, leases: Iterable[Lease]) -> bool:
    """Whether whoever holds this claim will never go on with it."""
    lease = next((one for one in leases if one.id == holder(claim)), None)
    return lease is None or is_dead(lease)


def is_dead(lease: Lease) -> bool:
    if lease.host == machine():
        identity: ProcessIdentity = {"pid": lease.pid, "started": lease.started_mark}
        if not is_alive(identity):
            return True
        if lease.kind == "run":
            return False
    return lease.expired
