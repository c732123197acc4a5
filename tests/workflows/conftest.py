from __future__ import annotations

from pathlib import Path

import pytest

from cli.harness import IDENTITY, Place

from .harness import Workshop


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def workshop(place: Place) -> Workshop:
    """On SQLite."""
    return Workshop(place, str(place.home / "holdfast.db"))


@pytest.fixture
def any_workshop(place: Place, any_database: str) -> Workshop:
    """The same test on each kind of database."""
    return Workshop(place, any_database)
