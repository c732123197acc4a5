"""What only a database can get wrong: opening, migrating, damage, permissions, messages."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pysqlite3 import dbapi2 as sqlite  # type: ignore[import-untyped]
from sqlalchemy.exc import IntegrityError

from holdfast.base.errors import (
    DamagedDataError,
    HeldElsewhereError,
    HoldfastError,
    InvalidInputError,
    NewerSchemaError,
    StorageError,
)
from holdfast.model.entry import UnknownEntry
from holdfast.model.task import TaskDAG
from holdfast.store import engine as engines
from holdfast.store import sqlite as our_sqlite
from holdfast.store.engine import known_versions, upgrade
from holdfast.store.protocol import Change
from holdfast.store.sql import SqlStore, _snapshot_row, _workflow_row
from holdfast.store.sqlite import sqlite_driver
from holdfast.store.tables import metadata, session_snapshots, workflow_events, workflows
from store.samples import at, full_snapshot, new, next_of, numbered, snapshot, workflow

if TYPE_CHECKING:
    from postgres import PostgresServer


def sql(database: str, statement: str, **values: Any) -> Any:
    """Say it to the database behind the store's back."""
    url = sa.URL.create("sqlite", database=database) if "://" not in database else sa.make_url(database)
    engine = sa.create_engine(url, **({"module": sqlite} if "://" not in database else {}))
    try:
        with engine.begin() as connection:
            result = connection.execute(sa.text(statement), values)
            return result.scalar() if result.returns_rows else None
    finally:
        engine.dispose()


def filled(database: str, snapshots: int = 40) -> SqlStore:
    store = SqlStore(database)
    for number in range(snapshots):
        saved = full_snapshot().changed(id=f"snap_{number}", workflow_id=f"wf_{number}")
        store.apply(new(workflow(f"wf_{number}"), numbered(1), save=saved))
    return store


class Before:
    """A program of the schema that the database has now, whatever becomes of that."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engines.writing(engine)
        self._tables = sa.MetaData()
        self._tables.reflect(engine)

    def apply(self, change: Change) -> None:
        """As it was done when the order was by time."""
        row = _workflow_row(change.workflow)
        flows, events = self._tables.tables["workflows"], self._tables.tables["workflow_events"]
        snapshots = self._tables.tables["session_snapshots"]
        written = typed(workflows, row)
        with self._engine.begin() as connection:
            if change.seen is None:
                connection.execute(flows.insert().values(written))
            else:
                met = flows.c.id == change.workflow.id, flows.c.revision == change.seen
                assert connection.execute(flows.update().where(*met).values(written)).rowcount == 1
            if change.save is not None:
                connection.execute(
                    snapshots.insert().values(typed(session_snapshots, _snapshot_row(change.save)))
                )
            for entry in change.entries:
                event = {"workflow_id": change.workflow.id, "at": change.workflow.updated_at}
                event |= {"type": entry.type, "entry_json": entry.model_dump_json()}
                connection.execute(events.insert().values(typed(workflow_events, event)))


def typed(table: sa.Table, row: dict[str, Any]) -> dict[str, Any]:
    """With the types that reflecting a table does not find."""
    return {name: sa.bindparam(None, value, type_=table.c[name].type) for name, value in row.items()}


class TestNewerVersions:
    def test_an_entry_of_an_unknown_kind_is_kept_and_passed_on(self, sql_store: SqlStore) -> None:
        sql_store.apply(new(workflow()))
        sql(
            sql_store.database,
            "INSERT INTO workflow_events (workflow_id, at, type, entry_json) "
            "VALUES ('wf_1', :at, 'sail_set', :text)",
            at="2026-01-06T12:00:01.000000Z",
            text=json.dumps({"type": "sail_set", "area": 12, "crew": ["a", {"b": None}]}),
        )
        sql_store.apply(next_of(workflow(), numbered(1)))
        unknown = sql_store.events()[1].entry
        assert isinstance(unknown, UnknownEntry)
        assert unknown.model_dump() == {"type": "sail_set", "area": 12, "crew": ["a", {"b": None}]}

    def test_an_unknown_entry_can_be_written_again_as_it_was(self, sql_store: SqlStore) -> None:
        unknown = UnknownEntry.model_validate({"type": "sail_set", "area": 12})
        sql_store.apply(new(workflow(), unknown))
        assert sql_store.events()[0].entry == unknown

    def test_a_snapshot_of_a_newer_version_is_refused_and_left_as_it_is(self, sql_store: SqlStore) -> None:
        sql_store.apply(new(workflow(), save=snapshot()))
        text = '{"schema_version": 99, "id": "snap_1"}'
        sql(sql_store.database, "UPDATE session_snapshots SET snapshot_json = :text", text=text)
        with pytest.raises(NewerSchemaError, match="99"):
            sql_store.snapshot("snap_1")
        assert sql(sql_store.database, "SELECT snapshot_json FROM session_snapshots") == text

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "{}", '{"schema_version": 1}', "[" * 100_000], ids=lambda t: t[:22]
    )
    def test_a_damaged_snapshot_is_told_by_name(self, sql_store: SqlStore, text: str) -> None:
        sql_store.apply(new(workflow(), save=snapshot()))
        sql(sql_store.database, "UPDATE session_snapshots SET snapshot_json = :text", text=text)
        with pytest.raises(DamagedDataError, match="snap_1"):
            sql_store.snapshot("snap_1")

    @pytest.mark.parametrize(
        "tasks",
        [b"", b"\xc1", b"\x00", b"[]", b"\x91\x92\xa1a\xa2\xff\xff", b"\x91\x92\xa0\xa0", b"\x91" * 100_000],
        ids=lambda data: repr(data[:9]),
    )
    def test_a_snapshot_with_damaged_tasks_is_told_by_name(self, sql_store: SqlStore, tasks: bytes) -> None:
        sql_store.apply(new(workflow(), save=snapshot()))
        sql(sql_store.database, "UPDATE session_snapshots SET tasks = :tasks", tasks=tasks)
        with pytest.raises(DamagedDataError, match="snap_1"):
            sql_store.snapshot("snap_1")
        assert [line.id for line in sql_store.snapshots("wf_1")] == ["snap_1"]

    def test_a_snapshot_whose_next_task_is_not_among_its_tasks_is_told(self, sql_store: SqlStore) -> None:
        sql_store.apply(new(workflow(), save=full_snapshot()))
        sql(sql_store.database, "UPDATE session_snapshots SET tasks = :tasks", tasks=TaskDAG().packed())
        with pytest.raises(DamagedDataError, match="'t2', which is not a task of the plan"):
            sql_store.snapshot("snap_1")

    def test_a_database_from_the_future_is_refused_and_left_as_it_is(self, database: str) -> None:
        SqlStore(database).close()
        sql(database, "UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(NewerSchemaError, match="9999"):
            SqlStore(database)
        assert sql(database, "SELECT version_num FROM alembic_version") == "9999"


class TestMigrations:
    def test_the_newest_one_is_the_version_the_program_expects(self, database: str) -> None:
        SqlStore(database).close()
        assert max(known_versions()) == engines.SCHEMA_HEAD
        assert sql(database, "SELECT version_num FROM alembic_version") == engines.SCHEMA_HEAD

    def test_they_make_the_tables_the_program_uses(self, database: str) -> None:
        engine = engines.open_engine(database)
        with engine.connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            differences = compare_metadata(context, metadata)
        engine.dispose()
        assert differences == []

    def test_the_tables_are_made_with_the_same_words_either_way(self, database: str) -> None:
        # compare_metadata does not look at partial indexes and AUTOINCREMENT; the database does.
        def described(engine: sa.Engine) -> list[tuple[Any, ...]]:
            question = (
                "SELECT type, name, sql FROM sqlite_master "
                "WHERE name NOT LIKE '%alembic%' AND type <> 'trigger' ORDER BY name"
                if engine.dialect.name == "sqlite"
                else "SELECT tablename, indexname, indexdef FROM pg_indexes "
                "WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY indexname"
            )
            with engine.connect() as connection:
                rows = connection.execute(sa.text(question)).all()
                return [tuple(" ".join(str(field).split()) for field in row) for row in rows]

        engine = engines.open_engine(database)
        migrated = described(engine)
        metadata.drop_all(engine)
        metadata.create_all(engine)
        created = described(engine)
        engine.dispose()
        assert migrated == created

    def test_who_is_given_a_bare_engine_may_begin_a_transaction_that_we_began(self, database: str) -> None:
        engine = engines.open_bare_engine(database)
        with engines.writing(engine).begin() as connection:
            connection.execute(sa.text("BEGIN" if engine.dialect.name != "sqlite" else "BEGIN IMMEDIATE"))
            connection.execute(sa.text("CREATE TABLE kept (id INTEGER)"))
            connection.execute(sa.text("INSERT INTO kept VALUES (7)"))
        with engine.connect() as connection:
            assert connection.execute(sa.text("SELECT id FROM kept")).scalars().all() == [7]
        engine.dispose()

    def test_snapshots_from_before_tasks_had_a_column_stay_and_are_read(self, database: str) -> None:
        old = full_snapshot()
        text = old.model_dump_json()
        columns = [column.name for column in session_snapshots.c if column.name not in ("tasks", "seq")]
        row = {name: getattr(old, name, None) for name in columns} | {"snapshot_json": text}
        engine = engines.open_bare_engine(database)
        upgrade(engine, to="0003")
        with engine.begin() as connection:
            connection.execute(workflows.insert(), _workflow_row(workflow()))
            connection.execute(session_snapshots.insert().values(row))
        engine.dispose()

        store = SqlStore(database)
        try:
            assert store.snapshot(old.id) == old == store.latest_snapshot("wf_1")
            assert sql(database, "SELECT snapshot_json FROM session_snapshots") == text
            assert sql(database, "SELECT tasks FROM session_snapshots") is None
            later = old.changed(id="snap_2", session_number=2, created_at=at(60))
            store.apply(next_of(store.workflow("wf_1"), save=later))
            assert store.snapshot(old.id) == old
            assert store.latest_snapshot("wf_1") == later
            store.apply(next_of(store.workflow("wf_1"), save=old.changed(pause_reason="again")))
            assert store.snapshot(old.id) == old.changed(pause_reason="again")
            assert "task_dag" not in sql(
                database, "SELECT snapshot_json FROM session_snapshots WHERE id = 'snap_1'"
            )
        finally:
            store.close()

    def test_what_was_there_before_gets_its_place_in_the_order(self, database: str) -> None:
        engine = engines.open_bare_engine(database)
        upgrade(engine, to="0006")
        before = Before(engine)
        for name in ("wf_1", "wf_2"):
            before.apply(new(workflow(name), numbered(1)))
        first = snapshot("snap_1", created_at=at(-9))
        before.apply(next_of(workflow("wf_1"), seconds=-9, save=first))  # the clock was set back
        second = snapshot("snap_2", of="wf_2", created_at=at(-99))
        before.apply(next_of(workflow("wf_2"), seconds=-99, save=second))
        before.apply(next_of(workflow("wf_1").changed(revision=2), seconds=-9))
        engine.dispose()
        store = SqlStore(database)
        try:
            assert [flow.id for flow in store.workflows()] == ["wf_1", "wf_2"]
            assert {line.id for line in store.find_snapshots("snap_")} == {"snap_1", "snap_2"}
            store.apply(next_of(store.workflow("wf_2"), save=snapshot("snap_3", of="wf_2", number=2)))
            assert [flow.id for flow in store.workflows()] == ["wf_2", "wf_1"]
            assert store.find_snapshots("snap_")[0].id == "snap_3"
        finally:
            store.close()

    def test_a_program_that_runs_since_before_goes_on_and_keeps_the_order(self, database: str) -> None:
        engine = engines.open_bare_engine(database)
        upgrade(engine, to="0006")
        before = Before(engine)
        names = [f"wf_{number}" for number in range(3)]
        for name in names:
            before.apply(new(workflow(name)))
        migrated, done = threading.Event(), list[str]()

        def old_program() -> None:
            revisions = dict.fromkeys(names, 1)
            while len(done) < 30 or not migrated.is_set() or len(done) % 3:
                name = names[len(done) % 3]
                flow = workflow(name).changed(revision=revisions[name])
                saved = snapshot(f"snap_{len(done)}", of=name, number=revisions[name], created_at=at(0))
                before.apply(next_of(flow, numbered(len(done)), seconds=-len(done), save=saved))
                revisions[name] += 1
                done.append(name)

        with ThreadPoolExecutor() as pool:
            running = pool.submit(old_program)
            while len(done) < 5 and not running.done():
                time.sleep(0.001)
            store = SqlStore(database)
            migrated.set()
            running.result()
        engine.dispose()
        try:
            assert [flow.id for flow in store.workflows()] == names[::-1]
            told = [event.entry for event in store.events(types={"task_finished"})]
            assert told == [numbered(n) for n in range(len(done))]
            after = [line.id for line in store.find_snapshots("snap_") if line.seq > 0]
            assert after[0] == f"snap_{len(done) - 1}"
            store.apply(next_of(store.workflow("wf_0")))
            assert store.workflows()[0].id == "wf_0"
        finally:
            store.close()

    def test_opening_again_changes_nothing(self, sqlite_database: str) -> None:
        filled(sqlite_database, 2).close()
        before = Path(sqlite_database).read_bytes()
        SqlStore(sqlite_database).close()
        assert Path(sqlite_database).read_bytes() == before


class TestSqlite:
    def test_the_file_is_for_its_owner_alone(self, sqlite_database: str) -> None:
        store = filled(sqlite_database, 1)
        modes = {
            path.name: stat.S_IMODE(path.stat().st_mode) for path in Path(sqlite_database).parent.iterdir()
        }
        store.close()
        assert set(modes.values()) == {0o600}
        assert {"holdfast.db", "holdfast.db-wal", "holdfast.db-shm"} <= modes.keys()
        assert stat.S_IMODE(Path(sqlite_database).parent.stat().st_mode) == 0o700

    @pytest.mark.parametrize(
        ("pragma", "value"), [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)]
    )
    def test_every_connection_is_set_up_to_be_safe(
        self, sqlite_database: str, pragma: str, value: object
    ) -> None:
        engine = engines.open_engine(sqlite_database)
        with engine.connect() as one, engine.connect() as other:
            found = [connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() for connection in (one, other)]
        engine.dispose()
        assert found == [value, value]

    def test_a_row_without_its_workflow_is_refused_by_the_database(self, sqlite_database: str) -> None:
        engine = engines.open_engine(sqlite_database)
        with pytest.raises(IntegrityError), engine.begin() as connection:
            connection.execute(
                sa.text(
                    "INSERT INTO workflow_events (workflow_id, at, type, entry_json) VALUES ('x','x','x','x')"
                )
            )
        engine.dispose()

    def test_a_number_is_never_given_twice(self, sqlite_database: str) -> None:
        store = SqlStore(sqlite_database)
        [first] = store.apply(new(workflow("wf_1"), numbered(1)))
        sql(sqlite_database, "DELETE FROM workflow_events")
        [second] = store.apply(new(workflow("wf_2"), numbered(2)))
        store.close()
        assert second.seq > first.seq

    def test_a_url_names_the_same_file_as_a_path(self, sqlite_database: str) -> None:
        filled(sqlite_database, 1).close()
        store = SqlStore(f"sqlite:///{sqlite_database}")
        assert len(store.workflows()) == 1
        store.close()

    def test_a_database_somebody_else_holds_is_told_as_such(
        self, sqlite_database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engines, "BUSY_SECONDS", 0.05)
        store = SqlStore(sqlite_database)
        holder: Any = sqlite.connect(sqlite_database, isolation_level=None)  # type: ignore[attr-defined]
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(HeldElsewhereError, match="held the database"):
            store.apply(new(workflow()))
        assert list(store.events()) == []  # reading goes on
        holder.execute("ROLLBACK")
        store.apply(new(workflow()))
        holder.close()
        store.close()

    @pytest.mark.parametrize("size", [1, 100, 4096, 40_000])
    def test_a_file_that_is_no_database_is_told_and_left_as_it_is(
        self, sqlite_database: str, size: int
    ) -> None:
        path = Path(sqlite_database)
        path.parent.mkdir()
        path.write_bytes(b"garbage!" * size)
        with pytest.raises(DamagedDataError, match=r"holdfast\.db is damaged"):
            SqlStore(sqlite_database)
        assert path.read_bytes() == b"garbage!" * size

    @pytest.mark.parametrize("part", [0.3, 0.5, 0.9])
    def test_a_file_cut_off_in_the_middle_is_told_and_left_as_it_is(
        self, sqlite_database: str, part: float
    ) -> None:
        filled(sqlite_database).close()
        path = Path(sqlite_database)
        path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
        before = path.read_bytes()
        with pytest.raises(DamagedDataError, match=r"holdfast\.db is damaged"):
            read_everything(sqlite_database)
        assert path.read_bytes() == before

    def test_a_page_overwritten_with_rubbish_is_told(self, sqlite_database: str) -> None:
        filled(sqlite_database).close()
        with Path(sqlite_database).open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (Path(sqlite_database).stat().st_size - 4096))
        with pytest.raises(DamagedDataError, match=r"holdfast\.db is damaged"):
            read_everything(sqlite_database)

    def test_a_folder_that_cannot_be_written_is_a_clear_error(self) -> None:
        with folders_for_strangers(3) as (new_one, existing, unfinished):
            SqlStore(str(existing)).close()
            unfinished.touch()
            for path in (new_one, existing, unfinished):
                for each in path.parent.iterdir():
                    each.chmod(0o444)
                path.parent.chmod(0o555)
            assert tried_by_a_stranger(new_one, existing, unfinished) == [["StorageError", True]] * 3

    def test_a_folder_whose_place_is_taken_by_a_file_is_a_clear_error(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("")
        with pytest.raises(StorageError, match="data"):
            SqlStore(str(tmp_path / "data" / "holdfast.db"))

    def test_a_path_that_is_a_folder_is_a_clear_error(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError):
            SqlStore(str(tmp_path))


def read_everything(database: str) -> None:
    store = SqlStore(database)
    try:
        for flow in store.workflows(limit=1000):
            for line in store.snapshots(flow.id):
                store.snapshot(line.id)
        store.events()
    finally:
        store.close()


@contextmanager
def folders_for_strangers(count: int) -> Generator[list[Path]]:
    """Paths in folders others may enter, outside pytest's own, which they may not."""
    root = Path(tempfile.mkdtemp(prefix="holdfast-ro-"))
    root.chmod(0o755)
    paths = [root / str(number) / "holdfast.db" for number in range(count)]
    for path in paths:
        path.parent.mkdir(mode=0o755)
    try:
        yield paths
    finally:
        for path in paths:
            path.parent.chmod(0o755)
        shutil.rmtree(root)


TRY = """
import json, os, sys
from alembic import command, script  # loaded while we may still read everything
from holdfast.store.sql import SqlStore
from store.samples import new, workflow
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)  # root may write anywhere
results = []
for path in sys.argv[1:]:
    try:
        SqlStore(path).apply(new(workflow()))
    except Exception as error:
        results.append([type(error).__name__, os.path.dirname(path) in str(error)])
    else:
        results.append(["written", False])
print(json.dumps(results))
"""


def tried_by_a_stranger(*databases: Path) -> list[object]:
    """For each, what comes of writing to it without rights: the error, and whether it names the place."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    said = subprocess.run(
        [sys.executable, "-c", TRY, *map(str, databases)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


class TestUrls:
    @pytest.mark.parametrize(
        "url",
        [
            "mysql://u:secret@host/db",
            "postgresql+psycopg2://u:secret@host/db",
            "postgresql+asyncpg://u:secret@host/db",
            "http://u:secret@host/",
            "sqlite://",
            "postgresql:secret",
            "postgresql://u:secret@host:port/db",
            "postgresql://u:secret@[::1/db",
        ],
    )
    def test_one_of_another_kind_is_refused_without_its_password(
        self, url: str, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InvalidInputError) as raised:
            SqlStore(url)
        assert "secret" not in f"{raised.value.message} {raised.value.hint}"
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://u:secret@127.0.0.1:1/db",
            "postgresql+psycopg://u:secret@127.0.0.1:1/db",
            "postgres://u:secret@127.0.0.1:1/db",
            "postgresql://u@127.0.0.1:1/db?password=secret",
            "postgresql://127.0.0.1:1/db?user=u&password=secret&connect_timeout=2",
            "postgresql://u:se%63ret@127.0.0.1:1/db",
        ],
    )
    def test_a_server_that_does_not_answer_is_a_clear_error_without_the_password(self, url: str) -> None:
        with pytest.raises(StorageError, match=r"127\.0\.0\.1") as raised:
            SqlStore(url)
        told = f"{raised.value.message} {raised.value.hint}"
        assert "secret" not in told
        assert "se%63ret" not in told


class TestPostgres:
    @pytest.fixture
    def guest(self, postgres_url: str) -> Iterator[str]:
        """The same database for somebody who may only look at it."""
        plain = postgres_url.replace("+psycopg", "")
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS holdfast_guest")
            connection.execute("CREATE ROLE holdfast_guest LOGIN")
            connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            connection.execute("GRANT USAGE ON SCHEMA public TO holdfast_guest")
        yield postgres_url.replace("postgres@", "holdfast_guest@")
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute("DROP OWNED BY holdfast_guest")
            connection.execute("DROP ROLE holdfast_guest")

    def test_an_account_that_may_not_make_tables_gets_a_clear_error(self, guest: str) -> None:
        with pytest.raises(StorageError, match="permission denied"):
            SqlStore(guest)

    def test_an_account_that_may_not_write_gets_a_clear_error(self, guest: str, postgres_url: str) -> None:
        SqlStore(postgres_url).close()
        sql(postgres_url, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO holdfast_guest")
        store = SqlStore(guest)
        with pytest.raises(StorageError, match="permission denied"):
            store.apply(new(workflow()))
        store.close()

    def test_a_server_that_restarts_is_found_again(self, postgres_url: str) -> None:
        store = SqlStore(postgres_url)
        store.apply(new(workflow()))
        with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert store.workflow("wf_1") == workflow()
        store.close()

    def test_ids_are_found_by_how_they_begin_whatever_language_sorts_them(
        self, postgres_server: PostgresServer
    ) -> None:
        plain = postgres_server.create_database()
        try:
            with psycopg.connect(plain.replace("+psycopg", ""), autocommit=True) as connection:
                connection.execute(
                    "CREATE DATABASE sorted_by_icu TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
                )
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.SyntaxError):
            pytest.skip("this PostgreSQL sorts by the machine's languages only")
        url = sa.make_url(plain).set(database="sorted_by_icu").render_as_string(hide_password=False)
        store = SqlStore(url)
        for number, each in enumerate(("snap_01a", "snap_02", "snap_01ab", "SNAP_01a"), start=1):
            saved = snapshot(each, of=f"wf_{number}", number=number)
            store.apply(new(workflow(f"wf_{number}"), save=saved))
        found = {
            start: sorted(line.id for line in store.find_snapshots(start)) for start in ("snap_01a", "SNAP")
        }
        store.close()
        assert found == {"snap_01a": ["snap_01a", "snap_01ab"], "SNAP": ["SNAP_01a"]}

    def test_what_it_cannot_hold_is_refused_in_our_words(self, postgres_store: SqlStore) -> None:
        with pytest.raises(HoldfastError):
            postgres_store.apply(new(workflow(session_count=2**40)))
        assert list(postgres_store.workflows()) == []


def test_a_new_file_that_another_process_is_setting_up_is_waited_for(
    sqlite_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite gives up at once where it cannot change the journal's mode, however long it may wait."""
    Path(sqlite_database).parent.mkdir()
    other = sqlite_driver().connect(sqlite_database, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        other.rollback()

    monkeypatch.setattr(our_sqlite.time, "sleep", sleep)
    SqlStore(sqlite_database).close()
    assert len(waits) == 1
    other.close()
