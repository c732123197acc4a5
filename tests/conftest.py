"""What every test may count on: a home of its own, a clock moved by hand, and each kind of store."""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import sqlalchemy
from hypothesis import HealthCheck, settings

from holdfast.store.memory import MemoryStore
from holdfast.store.protocol import Store
from holdfast.store.sql import SqlStore
from holdfast.store.tables import metadata
from holdfast.testing import FixedClock
from memory import use_memory
from quick_age import use_quick_age
from soak import QUICK, repeated

if TYPE_CHECKING:
    from postgres import PostgresServer

pytest_plugins = ["early_failures", "postgres", "real_model"]

gc.disable()  # until all is collected, which then stays to the end
use_memory()
use_quick_age()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell starts a run in the background; what the tests start would not hear Ctrl-C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)

KEPT = {"HOLDFAST_SOAK", "HOLDFAST_TEST_POSTGRES"}

settings.register_profile(
    "holdfast",
    deadline=None,  # a busy machine is no failure
    max_examples=repeated(30),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("holdfast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accept-wording", action="store_true", help="write what the program says now")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "some_of(parameter, …, number=1): in a quick run only so many of their values, others each time",
    )
    config.addinivalue_line("markers", "whole_sample: not in a quick run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what these markers allow; every worker chooses the same, by the seed of the run."""
    groups: dict[tuple[object, int], list[pytest.Item]] = {}
    for item in items if QUICK else ():
        if mark := item.get_closest_marker("some_of"):
            group = _without(item, mark.args), mark.kwargs.get("number", 1)
            groups.setdefault(group, []).append(item)
    chance = random.Random(getattr(config.option, "randomly_seed", 0))
    left_out = {item for item in items if item.get_closest_marker("whole_sample") and QUICK}
    # By the names of tests: what a parameter looks like may differ from worker to worker.
    chosen = [(number, sorted(group, key=lambda item: item.nodeid)) for (_, number), group in groups.items()]
    for number, group in sorted(chosen, key=lambda one: one[1][0].nodeid):
        left_out.update(set(group) - set(chance.sample(group, min(number, len(group)))))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def _without(item: pytest.Item, names: Sequence[str]) -> object:
    parameters = item.callspec.params if isinstance(item, pytest.Function) else {}
    others = sorted((key, str(value)) for key, value in parameters.items() if key not in names)
    return item.nodeid.partition("[")[0], tuple(others)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder for this test; nothing reaches the real one, from child processes neither.

    Nor the temporary folder of others: where the data folder cannot be written, something is kept there.
    """
    for name in list(os.environ):
        if name.startswith("HOLDFAST_") and name not in KEPT:
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOLDFAST_HOME", str(folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
    monkeypatch.setenv("HOLDFAST_FORBID_MODELS", "1")
    return folder


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def sqlite_database(tmp_path: Path) -> str:
    return str(tmp_path / "data" / "holdfast.db")


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """The name of a database that nobody has opened yet: SQLite's path, PostgreSQL's URL."""
    kinds = {"sqlite": "sqlite_database", "postgresql": "postgres_url"}
    return request.getfixturevalue(kinds[request.param])


@pytest.fixture(
    params=[
        pytest.param(kind, marks=pytest.mark.some_of("any_database")) for kind in ("sqlite", "postgresql")
    ]
)
def any_database(request: pytest.FixtureRequest) -> str:
    """As `database`, one kind in a quick run: for what is built on a store, whose own tests show that both
    kinds do the same."""
    kinds = {"sqlite": "sqlite_database", "postgresql": "postgres_url"}
    return request.getfixturevalue(kinds[request.param])


@pytest.fixture(scope="session")
def empty_sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables, to copy: making the tables costs more than most tests."""
    path = tmp_path_factory.mktemp("template") / "holdfast.db"
    SqlStore(str(path)).close()
    return path


@pytest.fixture
def sqlite_store(empty_sqlite_file: Path, sqlite_database: str) -> Iterator[SqlStore]:
    Path(sqlite_database).parent.mkdir()
    shutil.copy(empty_sqlite_file, sqlite_database)
    store = SqlStore(sqlite_database)
    yield store
    store.close()


@pytest.fixture(scope="session")
def one_postgres_store(postgres_server: PostgresServer) -> Iterator[SqlStore]:
    """For all tests that need nothing but an empty store, one after the other."""
    store = SqlStore(postgres_server.create_database())
    yield store
    store.close()


@pytest.fixture
def postgres_store(one_postgres_store: SqlStore) -> Iterator[SqlStore]:
    yield one_postgres_store
    engine = sqlalchemy.create_engine(one_postgres_store.database)
    with engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
        # Rows gone, the numbers would go on: the next test would see how much the ones before it wrote.
        for sequence in sqlalchemy.inspect(connection).get_sequence_names():
            connection.execute(sqlalchemy.text(f'ALTER SEQUENCE "{sequence}" RESTART'))
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def sql_store(request: pytest.FixtureRequest) -> SqlStore:
    kinds = {"sqlite": "sqlite_store", "postgresql": "postgres_store"}
    return request.getfixturevalue(kinds[request.param])


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> Store:
    """The same test over every store."""
    kinds = {"sqlite": "sqlite_store", "postgresql": "postgres_store"}
    return request.getfixturevalue(kinds[request.param]) if request.param in kinds else MemoryStore()
