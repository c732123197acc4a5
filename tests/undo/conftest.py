from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.testing import FixedClock
from holdfast.undo.transactions import SideCar

from .trees import new_project


@pytest.fixture
def project() -> Iterator[Path]:
    folder = new_project()
    yield folder
    shutil.rmtree(folder.parent)


@pytest.fixture
def sidecar(project: Path, clock: FixedClock) -> Iterator[SideCar]:
    with SideCar(project, clock=clock) as opened:
        yield opened
