"""Being there: a process that runs work keeps a lease, and is told when it was taken for dead.

Who holds a claim, and whether that process is gone, is judged in `model/statuses.py`.
"""

from __future__ import annotations

import itertools
import logging
import os
import subprocess
import sys
import threading
import time
from secrets import token_hex
from typing import Literal, Self

from holdfast.base.durable import open_to_append
from holdfast.base.errors import HoldfastError
from holdfast.base.process import identify, machine
from holdfast.model.statuses import Lease, holder, is_dead, is_gone
from holdfast.project.settings import Settings
from holdfast.store.sql import Leases

__all__ = ["LEASE_SECONDS", "HeldLease", "holder", "is_dead", "is_gone", "start_worker"]

log = logging.getLogger("holdfast.worker")

LeaseKind = Literal["worker", "run", "server"]
"""A server runs nothing itself: it has workers started."""

LEASE_SECONDS = 5.0
BEAT_SECONDS = 1.0


class HeldLease:
    """`with HeldLease(leases, "worker") as here:`; `here.lost` is set when it was taken for dead."""

    def __init__(self, leases: Leases, kind: LeaseKind, lease_seconds: float = LEASE_SECONDS) -> None:
        me = identify(os.getpid())
        host = machine()
        name = host.partition("[")[0]
        self.lease = Lease(
            id=f"{kind}-{name}-{me['pid']}-{token_hex(3)}",
            kind=kind,
            host=host,
            pid=me["pid"],
            started_mark=me["started"],
            lease_seconds=lease_seconds,
        )
        self.lost = threading.Event()
        self._leases = leases
        self._beat = min(BEAT_SECONDS, lease_seconds / 4)
        self._numbers = itertools.count(1)
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="holdfast-lease", daemon=True)
        self._steady_since: int = 0
        self._renewed_at = time.monotonic()

    @property
    def silent_leases(self) -> float:
        """For how long the database has not taken a renewal, measured in leases."""
        return (time.monotonic() - self._renewed_at) / self.lease.lease_seconds

    @property
    def id(self) -> str:
        return self.lease.id

    @property
    def is_steady(self) -> bool:
        """Whether it was itself in touch for as long as a lease lasts; else it cannot judge others."""
        return self._steady_since * self._beat >= self.lease.lease_seconds

    def claim(self) -> str:
        """A new claim of this process: no two are alike."""
        return f"{self.id}#{next(self._numbers)}"

    def __enter__(self) -> Self:
        for lease in self._leases.all():
            if lease.kind != "worker" and lease.host == self.lease.host and is_dead(lease):
                self._leases.remove(lease.id)  # of a process that was killed: nobody else will
        self._leases.add(self.lease)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self._thread.join()
        if not self.lost.is_set():
            try:
                self._leases.remove(self.id)
            except HoldfastError as failure:  # it expires by itself
                log.debug("lease not removed: %s", failure.message)

    def _keep(self) -> None:
        while not self.closed.wait(self._beat):
            try:
                if not self._leases.renew(self.id) and not self._came_back():
                    return
                self._steady_since += 1
                self._renewed_at = time.monotonic()
            except HoldfastError as error:
                self._steady_since = 0
                log.debug("lease not renewed: %s", error.message)

    def _came_back(self) -> bool:
        """A laptop that slept goes on, if nobody has taken its workflow; a worker knows it is too late."""
        if self.lease.kind == "worker":
            self.lost.set()
            return False
        self._leases.add(self.lease)
        return True


# ── starting a worker ─────────────────────────────────────────────────────────────────────────────

# Seeing to it that somebody runs what is queued, where no worker was started by hand.


def start_worker(settings: Settings) -> subprocess.Popen[bytes]:
    """A worker of its own process, which outlives this one and ends when nothing is left to do."""
    environ = {**os.environ, "HOLDFAST_DB": settings.db, "HOLDFAST_HOME": str(settings.home)}
    environ.pop("HOLDFAST_SERVER", None)  # a worker works on the database itself
    environ.pop("HOLDFAST_RUN", None)  # nor is it part of the task that may have asked for it
    with open_to_append(settings.layout.ensure_scratch() / "worker.log") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast", "worker", "--until-idle"],
            cwd=settings.project,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
