"""Opening a database: SQLite by path, PostgreSQL by URL; its schema brought up to date first."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from holdfast.base.durable import PRIVATE_FILE, lock_file, private_folder, storage_errors
from holdfast.base.errors import (
    DamagedDataError,
    HeldElsewhereError,
    HoldfastError,
    InvalidInputError,
    NewerSchemaError,
    StorageError,
    how_to_install,
    require_installed,
)
from holdfast.store.sqlite import (
    BUSY_SECONDS,
    SCHEMA_HEAD,
    SCHEMA_VERSION,
    is_postgres,
    prepare,
    sqlite_driver,
    sqlite_path,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from alembic.config import Config

# ── migrations ────────────────────────────────────────────────────────────────────────────────────

# Alembic, driven from code: no ini file, no working folder. Loaded only when there is something to do:
# it costs more than most commands.


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    return config


def known_versions() -> set[str]:
    from alembic.script import ScriptDirectory

    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def upgrade(engine: sa.Engine, to: str = "head") -> None:
    """All missing steps in one transaction."""
    from alembic import command

    config = _config()
    with writing(engine).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, to)


# ── opening ───────────────────────────────────────────────────────────────────────────────────────

_MIGRATION_LOCK = 7_310_001


def open_engine(database: str) -> sa.Engine:
    """The database behind a path or a URL, at the schema this version writes."""
    with storage_errors("open the database"), database_errors(database):
        engine = _postgres(database) if is_postgres(database) else _sqlite(sqlite_path(database))
        try:
            _bring_up_to_date(engine, database)
        except BaseException:
            engine.dispose()
            raise
    return engine


def engine_database(database: str) -> str:
    """Where the engine of workflows keeps its own tables: a file beside ours, or its schema on the server."""
    if is_postgres(database):
        return database
    path = sqlite_path(database)
    return str(path.with_name(f"{path.stem}-engine{path.suffix}"))


def open_bare_engine(database: str) -> sa.Engine:
    """The same kind of connection, without our tables, for a library that may begin transactions itself."""
    with storage_errors("open the database"), database_errors(database):
        if is_postgres(database):
            return _postgres(database)
        engine = _sqlite(sqlite_path(database))
    event.listen(engine, "before_cursor_execute", _begin_once, retval=True)
    return engine


def _begin_once(
    _connection: Any, cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
) -> tuple[str, Any]:
    """We have begun it by then; SQLite refuses a second BEGIN, which DBOS says from 3.4 on."""
    if statement.startswith("BEGIN") and cursor.connection.in_transaction:
        return "/* begun */", parameters
    return statement, parameters


def verify_engine_tables(database: str) -> None:
    """Raises `DamagedDataError` where the file of the engine of workflows is broken. Makes none."""
    place = engine_database(database)
    if is_postgres(database) or not Path(place).exists():
        return
    engine = open_bare_engine(place)
    try:
        with database_errors(place), engine.connect() as connection:
            check_whole(connection, place)
    finally:
        engine.dispose()


def check_whole(connection: sa.Connection, database: str) -> None:
    """Look through all of it; raises `DamagedDataError` where something is broken."""
    if connection.dialect.name == "sqlite":
        verdict = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if verdict != "ok":
            raise DamagedDataError(f"the database {database} is damaged: {verdict}", hint=_REINDEX)


_REINDEX = "`holdfast reindex` sets it aside and builds a new one from the session files"


@contextlib.contextmanager
def database_errors(database: str) -> Generator[None]:
    """The database's complaints in our words."""
    try:
        yield
    except exc.IntegrityError:
        raise
    except exc.DBAPIError as error:
        raise _translated(error, shown(database)) from error


def _translated(error: exc.DBAPIError, database: str) -> HoldfastError:
    text = next(iter(str(error.orig).strip().splitlines()), type(error.orig).__name__)
    if "not a database" in text or "malformed" in text:
        return DamagedDataError(
            f"the database {database} is damaged: {text}",
            hint=_REINDEX,
        )
    if "database is locked" in text:
        return HeldElsewhereError(
            f"another process has held the database {database} for {BUSY_SECONDS} s",
            hint="wait for it to finish and try again; if it is a server of another installation, "
            f"run here: {how_to_install('sqlite')}",
        )
    if isinstance(error, exc.DataError):
        return InvalidInputError(
            f"the database cannot store this: {text}", hint="remove the unusual characters from the text"
        )
    return StorageError(
        f"the database {database} cannot be used: {text}",
        hint="check HOLDFAST_DB, free space and permissions, and that the database server is running",
    )


def shown(database: str) -> str:
    """Never a password in a message."""
    if not is_postgres(database):
        return database
    url = _postgres_url(database)
    harmless = {name: value for name, value in url.query.items() if "password" not in name}
    return url.set(drivername="postgresql", query=harmless).render_as_string(hide_password=True)


def _postgres_url(database: str) -> sa.URL:
    try:
        return sa.make_url(database).set(drivername="postgresql+psycopg")
    except (exc.ArgumentError, ValueError):
        raise InvalidInputError(
            "HOLDFAST_DB is not a valid URL", hint="postgresql://user:password@host:port/database"
        ) from None


def _postgres(database: str) -> sa.Engine:
    require_installed("PostgreSQL", "psycopg")
    return sa.create_engine(_postgres_url(database), pool_pre_ping=True)


def _sqlite(path: Path) -> sa.Engine:
    driver = sqlite_driver()
    private_folder(path.parent)
    if not path.exists():
        with storage_errors(f"create the database {path}"):
            path.touch(mode=PRIVATE_FILE)  # by us, so that it is private from its first byte
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        module=driver,
        # isolation_level=None: we say BEGIN ourselves, below; the driver would begin too late.
        connect_args={"timeout": BUSY_SECONDS, "isolation_level": None},
    )

    def connected(connection: Any, _record: Any) -> None:
        prepare(connection, driver)

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begin)
    return engine


def writing(engine: sa.Engine) -> sa.Engine:
    """For transactions that write: SQLite takes its one write lock at the start, not half-way."""
    return engine.execution_options(begin="BEGIN IMMEDIATE")


def _bring_up_to_date(engine: sa.Engine, database: str) -> None:
    if _schema_version(engine) == SCHEMA_HEAD:
        return
    with one_at_a_time(engine, _MIGRATION_LOCK):
        found = _schema_version(engine)
        if found == SCHEMA_HEAD:
            return

        if found is not None and found not in known_versions():
            raise NewerSchemaError(
                f"the database {shown(database)} was written by a newer holdfast (schema {found})",
                hint="upgrade holdfast, or set HOLDFAST_DB to another database",
            )
        upgrade(engine)


def _schema_version(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(sa.text(SCHEMA_VERSION)).scalar()


@contextlib.contextmanager
def one_at_a_time(engine: sa.Engine, lock: int) -> Generator[None]:
    """Alone with the database among those who ask for the same lock."""
    if engine.dialect.name == "sqlite":
        path = Path(str(engine.url.database))
        with lock_file(path.with_name(f"{path.name}.lock")):
            yield
        return
    # DBOS makes indexes concurrently, which waits for every transaction there is, even for one that
    # itself waits for a lock: so in no transaction, and asking again and again.
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.execute(sa.select(sa.func.pg_try_advisory_lock(lock))).scalar():
            time.sleep(0.1)
        try:
            yield
        finally:
            connection.execute(sa.select(sa.func.pg_advisory_unlock(lock)))
