from __future__ import annotations

from pathlib import Path

import pytest

from .harness import IDENTITY, Place


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python API runs in this process: git must find the same there as in the program's."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
