"""Where a run keeps its files: in memory, and with `HOLDFAST_SOAK` of 1 or more on the disk, as users do.

Every store, journal and repository syncs what it writes, and waiting for a disk is most of what many short
tests would do. In memory the calls are the same and cost nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from soak import QUICK

MEMORY = Path("/dev/shm")
ROOM = 2 << 30


def use_memory() -> None:
    """For this process and its children: everything that is temporary, and so pytest's folders too."""
    if "TMPDIR" not in os.environ and QUICK and is_usable(MEMORY):
        os.environ["TMPDIR"] = str(MEMORY)
    # Looked up once, and so before a test has a TMPDIR of its own.
    tempfile.tempdir = None
    tempfile.gettempdir()


def is_usable(folder: Path) -> bool:
    """Whether there is room, and programs may be run from there; in many containers neither holds."""
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK) or shutil.disk_usage(folder).free < ROOM:
        return False
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC
