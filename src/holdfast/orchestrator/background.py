"""Seeing to it that somebody runs what is queued, where no worker was started by hand."""

from __future__ import annotations

import os
import subprocess
import sys

from holdfast.base.durable import open_to_append
from holdfast.project.settings import Settings


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
