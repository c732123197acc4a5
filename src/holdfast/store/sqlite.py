"""What there is to know about SQLite and our file in it, without SQLAlchemy.

SQLite runs in WAL mode with full sync: a commit is on the disk when it returns and
readers do not wait for writers. Before 3.51.3 WAL has a rare corruption race between
writing processes, so we carry a newer SQLite (`pysqlite3`) and fall back to the
rollback journal should an old one be found (docs/decisions/0004).
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from holdfast.base.errors import InvalidInputError

SCHEMA_HEAD = "0007"
"""The newest migration; a test holds it to the folder `migrations/versions`."""
SCHEMA_VERSION = "SELECT version_num FROM alembic_version"

BUSY_SECONDS = 30
_WAL_IS_SAFE_FROM = (3, 51, 3)

LEASE_AGE = "(julianday('now') - julianday(seen_at)) * 86400.0"
"""Seconds since a lease was renewed, by the database's clock."""


def is_postgres(database: str) -> bool:
    return database.startswith(("postgresql:", "postgresql+psycopg:", "postgres:"))


def sqlite_path(database: str) -> Path:
    if database.startswith("sqlite:///"):
        return Path(database.removeprefix("sqlite:///"))
    if "://" in database:
        raise InvalidInputError(
            f"HOLDFAST_DB names an unsupported database: {database.split('://', maxsplit=1)[0]}",
            hint="use a path (SQLite) or a postgresql:// URL",
        )
    return Path(database)


def sqlite_driver() -> Any:
    """Our own SQLite where there is a wheel of it, else Python's."""
    try:
        from pysqlite3 import dbapi2  # type: ignore[import-untyped]  # it ships no types
    except ImportError:
        import sqlite3

        return sqlite3
    return dbapi2


def prepare(connection: Any, driver: Any, *, wait: float = BUSY_SECONDS) -> None:
    """What every connection of ours is set to."""
    mode = "WAL" if driver.sqlite_version_info >= _WAL_IS_SAFE_FROM else "TRUNCATE"
    # secure_delete: a plan's secrets would stay readable in free pages.
    for pragma in ("foreign_keys=ON", "synchronous=FULL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
    deadline = time.monotonic() + wait
    while not _has_set_mode(connection, driver, mode, is_last=time.monotonic() >= deadline):
        time.sleep(0.01)


def _has_set_mode(connection: Any, driver: Any, mode: str, *, is_last: bool) -> bool:
    """SQLite gives up at once here, whatever its time-out, where another process makes the database."""
    try:
        connection.execute(f"PRAGMA journal_mode={mode}")
    except driver.OperationalError as error:
        if is_last or "locked" not in str(error):
            raise
        return False
    return True
