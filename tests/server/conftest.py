from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli.harness import IDENTITY, Place
from holdfast.project.settings import Settings, load_settings
from holdfast.store.sql import SqlStore

from .harness import Served, serving


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(
    params=[pytest.param(kind, marks=pytest.mark.some_of("sql_store")) for kind in ("sqlite", "postgresql")]
)
def sql_store(request: pytest.FixtureRequest) -> SqlStore:
    """One kind in a quick run: what the server says of a store does not depend on its kind."""
    kinds = {"sqlite": "sqlite_store", "postgresql": "postgres_store"}
    return request.getfixturevalue(kinds[request.param])


@pytest.fixture
def settings(tmp_path: Path, sql_store: SqlStore) -> Settings:
    project = tmp_path / "project"
    project.mkdir()
    return replace(load_settings(cwd=project), project=project, db=sql_store.database)


@pytest.fixture
def served(settings: Settings, sql_store: SqlStore, tmp_path: Path) -> Iterator[Served]:
    with serving(settings, home=tmp_path) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
