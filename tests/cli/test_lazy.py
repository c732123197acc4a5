"""What a command does not need it does not load: the quick ones must stay quick."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

import holdfast.cli
from holdfast.cli.main import _SHARED, COMMANDS, cli
from holdfast.journal.usage import ContextUsageTracker

from .harness import PATIENCE, Place

FRAME = {"__init__", "common", "dialogue", "interrupts", "live", "main", "running", "watch"}


def test_the_table_is_the_modules() -> None:
    modules = {path.stem for path in Path(holdfast.cli.__file__).parent.glob("*.py")} - FRAME
    assert {_SHARED.get(name, name) for name in COMMANDS} == modules


@pytest.mark.parametrize("name", COMMANDS)
def test_name_and_line_are_the_commands_own(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.get_short_help_str(200) == COMMANDS[name]


# The modules that are there when a command has run, without those of the interpreter and the site.
_LOADED = """
import contextlib, io, json, sys
before = set(sys.modules)
with contextlib.redirect_stdout(io.StringIO()):
    if sys.argv[1:2] == ["import"]:
        import holdfast
    else:
        from holdfast.__main__ import main
        with contextlib.suppress(SystemExit):
            main()
print(json.dumps(sorted(set(sys.modules) - before)))
"""

DATABASE = {"sqlalchemy", "alembic", "pysqlite3", "psycopg"}
STORE = DATABASE - {"pysqlite3"} | {"pydantic", "yaml", "asyncio", "subprocess", "rich", "holdfast.store.sql"}
HEAVY = DATABASE | {"msgspec", "pydantic", "yaml", "logging", "asyncio", "gzip", "subprocess", "tomllib"}

LIGHT: dict[str, tuple[Sequence[str], set[str]]] = {
    "--help": (["--help"], HEAVY),
    "quiet status": (["quiet", "status", "--session-id", "a"], HEAVY),
    "quiet on": (["quiet", "on", "--session-id", "a"], HEAVY),
    "--version": (["--version"], HEAVY | {"click"}),
    "docs --help": (["docs", "improve", "--help"], HEAVY | {"tree_sitter", "rich", "pydantic_ai"}),
    "docs plan": (["docs", "plan", "."], DATABASE | {"rich", "pydantic_ai", "asyncio"}),
    "import": (["import"], HEAVY | {"click", "holdfast.base.errors"}),
    "winddown append": (["winddown", "append", "tool_call", "--percent", "0.9"], DATABASE | {"yaml"}),
    "winddown summary": (["winddown", "summary"], DATABASE | {"yaml"}),
    "usage": (["usage"], STORE - {"asyncio", "subprocess"} | {"msgspec"}),
    "status": (["status"], STORE | {"msgspec"}),
    "status --json": (["status", "--json"], STORE | {"msgspec"}),
    "list": (["list", "--all"], STORE | {"msgspec", "logging"}),
    "snapshot list": (["snapshot", "list"], STORE | {"msgspec", "logging"}),
    "threads": (["threads"], STORE - {"subprocess"}),
    "threads --json": (["threads", "--all", "--json"], STORE - {"subprocess"}),
    "context": (["context", "latest", "--json"], STORE - {"subprocess"}),
    "history": (["history", "latest", "tasks"], STORE - {"subprocess"}),
    "history --json": (["history", "latest", "journal", "--json"], STORE - {"subprocess"}),
    "events": (["events"], STORE | {"msgspec"}),
    "events --json": (["events", "--json"], STORE | {"msgspec"}),
    "stats": (["stats"], DATABASE | {"msgspec", "pydantic", "yaml"}),
}


@pytest.mark.parametrize(("arguments", "banned"), LIGHT.values(), ids=LIGHT.keys())
def test_loads_none_of_the_heavy_parts(place: Place, arguments: Sequence[str], banned: set[str]) -> None:
    place.paused("tool_call")
    place.started()
    assert loaded(place, arguments) & banned == set()


def test_status_of_a_plan_and_of_an_agent_loads_neither_store_nor_values(place: Place) -> None:
    plan = place.project / "plan.yaml"
    plan.write_text("issue: {id: x, title: X}\ntasks: [{id: a, description: a, run: 'false'}]\n")
    assert place.run("run", plan).code == 1
    ContextUsageTracker(place.project, session_id="agent-1").update_usage(input_tokens=1_000)
    assert loaded(place, ["status"]) & STORE == set()


def test_status_with_a_session_that_the_database_missed_loads_the_store(place: Place) -> None:
    place.paused("tool_call")
    (place.sessions / ".unindexed-session-20260101-000000").touch()
    assert "holdfast.store.sql" in loaded(place, ["status"])


def loaded(place: Place, arguments: Sequence[str]) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, *arguments],
        cwd=place.project,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    found = set(json.loads(done.stdout.splitlines()[-1]))
    assert any(name.startswith("holdfast") for name in found)
    return found
