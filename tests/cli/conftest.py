from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from server.program import ServerProgram

from .harness import IDENTITY, Place


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python API runs in this process: git must find the same there as in the program's."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(params=["embedded", "server"])
def anywhere(request: pytest.FixtureRequest, place: Place) -> Iterator[None]:
    """The same test twice: on the database itself, and through a server that has it run by workers."""
    if request.param == "embedded":
        yield
        return
    with ServerProgram(place) as program:
        place.environment["HOLDFAST_SERVER"] = program.url
        yield
