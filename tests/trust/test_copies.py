"""Ten secrets in everything that Holdfast copies: none is in any file that it wrote, nor in any answer.

Left out is what has to be to the byte: the contents and names of the user's files that undo keeps and tells
of, and what a task executes, which stands in a table of its own.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import shlex
import sqlite3
import subprocess
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import yaml
from mcp import Client, StdioServerParameters

from cli.harness import IDENTITY, PROGRAM, Place
from holdfast.server.app import create_api
from hooks.harness import AgentSession
from server.harness import serving

from .test_hostile_clones import OF_A_FOLDER, PAGES

# Put together at run time, so that no scanner takes this file for a leak.
TOKEN = "gh" + "p_" + "a1B2c3" * 6
SECRETS = {
    TOKEN: "use {} for git",
    "AK" + "IA" + "QWERTY1234567890": "key {}",
    "sk-" + "ant-api03-" + "Zz9Yy8" * 8: "export ANTHROPIC_API_KEY={}",
    "xo" + "xb-" + "123456789012-abcdefGHIJKL": "slack {}",
    "gl" + "pat-" + "x9Kq2Vb7Lm4T8wR3": "PRIVATE-TOKEN: {}",
    "hun" + "ter2Hunter2!": "DB_PASSWORD={}",
    "Tr0ub" + "adour7Xq": "git clone https://ci:{}@git.corp.example/x.git",
    "mF9x" + "K2pQ7vLr4TnW8zYb": "Authorization: Bearer {}",
    "q7Rt" + "Zx3VbN8mK1Lp": '{{"client_secret": "{}"}}',
    "Wn5Hc" + "8sJd2Gf6Aa": "sudo -S <<< {} ls",
}
LINES = [line.format(secret) for secret, line in SECRETS.items()]
TEXT = "\n".join(LINES)
QUOTED = shlex.quote(TEXT)


def plan() -> str:
    told = {"description": TEXT, "files": []}
    return yaml.safe_dump(
        {
            "issue": {"id": "A", "title": f"Use {TOKEN}", "description": TEXT},
            "tasks": [
                {
                    "id": "t1",
                    **{k: told[k] for k in ("description",)},
                    "run": f"echo {QUOTED}; echo {QUOTED} > a.txt",
                },
                {
                    "id": "t2",
                    "depends_on": ["t1"],
                    "description": TEXT,
                    "run": f"printf %s {QUOTED} >&2; echo 'Error: {TOKEN} was refused' >&2; exit 3",
                },
            ],
        }
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    place = Place(tmp_path)
    place.environment["DB_PASSWORD"] = next(one for one in SECRETS if one.startswith("hun"))
    (place.project / f"notes-{TOKEN}.md").write_text(TEXT)
    (place.project / "a.py").write_text(f'def f():\n    """{LINES[0]}"""\n    return 1\n')
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", f"Use {TOKEN}\n\n{TEXT}")
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "remote.git"], check=True)
    place.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    return place


def call(name: str, given: dict[str, str], result: str, number: int) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": f"c{number}", "name": name, "input": given}
    answer = {"type": "tool_result", "tool_use_id": f"c{number}", "is_error": True, "content": result}
    return [
        {
            "type": kind,
            "uuid": f"{kind}{number}",
            "sessionId": "s",
            "timestamp": f"2026-01-06T12:0{number}:00.000Z",
        }
        | {
            "isSidechain": False,
            "message": {"role": kind, "content": content}
            | ({"id": f"m{number}"} if kind == "assistant" else {}),
        }
        for kind, content in (("assistant", [use]), ("user", [answer]))
    ]


def agent_session(place: Place) -> str:
    """A session that is told the secrets, uses them and is wound down; everything that it was told."""
    session = AgentSession(place.project, place.root)
    projects = (
        place.root / "home" / ".claude" / "projects" / str(place.project).replace("/", "-").replace(".", "-")
    )
    projects.mkdir(parents=True)
    session.variables |= {"HOLDFAST_HOME": str(place.home), "HOME": str(place.root / "home")}
    told = [session.start().out]
    said = {"type": "user", "isSidechain": False, "uuid": "u0", "sessionId": "s", "cwd": str(place.project)}
    session.write(
        {**said, "timestamp": "2026-01-06T12:00:00.000Z", "message": {"role": "user", "content": TEXT}}
    )
    session.write(*call("Bash", {"command": TEXT}, f"Error: {TEXT}", 1))
    session.write(
        *call("Write", {"file_path": str(place.project / f"{TOKEN}.txt"), "content": TEXT}, TEXT, 2)
    )
    session.use(100_000)
    told.append(session.prompt(TEXT).out)
    for tokens in (100_000, 185_000, 192_000):
        session.use(tokens, f"m{tokens}")
        told.append(session.before_tool(TEXT).out)
        (place.project / f"made-{TOKEN}.txt").write_text(TEXT)
        response = {"stdout": TEXT, "stderr": TEXT}
        told.append(session.after_tool(TEXT, tool_response=response).out)
        told.append(session.prompt(f"Go on with {TEXT}").out)
    told += [
        session.fire("Stop").out,
        session.fire("PreCompact", trigger="auto", custom_instructions=TEXT).out,
    ]
    told.append(session.fire("SessionStart", source="compact").out)
    told.append(session.fire("SessionEnd", reason="other").out)
    (projects / session.transcript.name).write_bytes(session.transcript.read_bytes())
    return "".join(told)


COMMANDS = [
    words.split()
    for words in """
    status
    status --json
    list --all
    list --json
    threads
    events
    events --json
    context latest
    history latest journal
    history latest errors
    history latest decisions
    history latest tasks
    snapshot list --all
    snapshot show latest
    snapshot show latest --json
    sessions list --all
    sessions list --all --search git
    sessions list --all --search git --json
    remind
    usage
    stats
    doctor
    handoff --to codex
    logs t1
    logs t2
    trust --show
    resume --yes
    retry
    docs audit .
    docs plan .
    schedules
    note handover
    share push
    reindex
    prune --dry-run
    """.strip().splitlines()
]


UNDO = [words.split() for words in ("tx list", "tx list --json", "tx show last", "tx show last --json")]


def by_commands(place: Place) -> str:
    told = [place.run("run", place.root / "plan.yaml")]
    told.append(place.run("remind", TEXT))
    (place.root / "handover.md").write_text(TEXT)
    told.append(place.run("note", "handover", place.root / "handover.md"))
    data = json.dumps(
        {"prompt": TEXT, "command": TEXT, "error": {"message": TEXT, "nested": json.dumps({"x": TEXT})}}
    )
    told.append(place.run("winddown", "start", "--percent", "0.9", "--state", json.dumps({"text": TEXT})))
    told.append(place.run("winddown", "append", "tool_call", "--data", data, "--percent", "0.91"))
    told.append(place.run("winddown", "summary"))
    told.append(place.run("winddown", "finalize", "--reason", TEXT))
    told += place.many(*COMMANDS)
    told.append(place.run("export", place.root / "bundle", "--force"))
    return "".join(one.out + one.err for one in told)


def by_server(place: Place) -> str:
    with serving(place.settings(), home=place.home) as server:
        folder = quote(str(place.project), safe="")
        pages = [*PAGES, *(page.format(folder) for page in OF_A_FOLDER if "/transactions" not in page)]
        for flow in server.get("/api/workflows")["workflows"]:
            for snapshot in server.get(f"/api/workflows/{flow['id']}/snapshots")["snapshots"]:
                pages += every_page(place, flow["id"], snapshot["id"])
        return "".join(server.ask("GET", page).body.decode() for page in pages)


def every_page(place: Place, workflow: str, snapshot: str) -> Iterator[str]:
    values = {"workflow_id": workflow, "snapshot_id": snapshot, "transaction_id": "last"}
    values["session_id"] = AgentSession(place.project, place.root).session_id
    asked = {
        "project": str(place.project),
        "worktree": str(place.project),
        "before": snapshot,
        "after": snapshot,
    }
    for task in ("t1", "t2"):
        for path, verbs in create_api().openapi()["paths"].items():
            if "get" in verbs and "/transactions" not in path:
                given = {one["name"] for one in verbs["get"].get("parameters", ())}
                more = {**asked, "task_id": task, "name": "session-"}
                query = urlencode({name: value for name, value in more.items() if name in given})
                yield f"{path.format_map({**values, 'task_id': task})}?{query}"


def by_mcp(place: Place) -> str:
    server = StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "mcp"], env=place.environment, cwd=str(place.project)
    )
    asked: list[tuple[str, dict[str, Any]]] = [
        ("record_decision", {"decision": TEXT, "reason": TEXT}),
        ("record_constraint", {"text": TEXT}),
        ("set_todos", {"todos": [{"text": TEXT, "status": "pending"}]}),
        ("record_handover", {"text": TEXT}),
        *((name, {}) for name in ("status", "threads", "context")),
        *(("history", {"category": one}) for one in ("decisions", "tasks", "errors")),
    ]

    async def use() -> str:
        async with Client(server) as client:
            answers = [await client.call_tool(name, given) for name, given in asked]
        return "".join(getattr(block, "text", "") for answer in answers for block in answer.content)

    return asyncio.run(use())


def pieces(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """What a file holds, packed or not."""
    with suppress(OSError, EOFError, zlib.error):
        yield name, gzip.decompress(data)
    with suppress(zlib.error):
        yield name, zlib.decompress(data)
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from pieces(f"{name}/{member}", archive.read(member))
    elif data[:15] != b"SQLite format 3":
        yield name, data
    else:
        with closing(sqlite3.connect(":memory:")) as base:
            base.deserialize(data[:18] + b"\1\1" + data[20:])  # in memory there is no log beside it
            for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                with suppress(sqlite3.Error):
                    rows = base.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608
                    yield f"{name}, {table}", repr(rows).encode()


def written(place: Place) -> Iterator[tuple[str, bytes]]:
    """Every file of ours."""
    tops = (
        place.project / ".holdfast",
        place.home,
        place.root / "bundle",
        place.root / "tmp",
        place.root / "remote.git",
    )
    for top in tops:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file():
                name = str(path.relative_to(place.root))
                yield from pieces(name, path.read_bytes())
                yield "a name", name.encode()


OF_UNDO = (
    *("project/.holdfast/sidecar/objects/", "project/.holdfast/sidecar/holdfast-state.db", "/transactions/"),
    "data/holdfast.db, originals",
)


def leaked(name: str, data: bytes) -> list[str]:
    return [f"{name}: {line}" for secret, line in SECRETS.items() if secret.encode() in data]


def test_no_secret_is_in_anything_that_is_written_or_told(place: Place) -> None:
    (place.root / "plan.yaml").write_text(plan())
    told = {"hooks": agent_session(place), "commands": by_commands(place)}
    told |= {"server": by_server(place), "MCP": by_mcp(place)}
    assert "Shared " in told["commands"]
    assert all("[redacted:" in text for text in told.values())
    for database in place.home.glob("*.db"):
        with closing(sqlite3.connect(database)) as base:
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # so that the rows are in the file itself
    found = [one for name, text in told.items() for one in leaked(name, text.encode())]
    found += [
        one
        for name, data in written(place)
        if not any(part in name for part in OF_UNDO)
        for one in leaked(name, data)
    ]
    # A file's name is told by `tx` and stands in undo's records as it is; nothing else of a secret does.
    undo = "".join(one.out + one.err for one in place.many(*UNDO)).replace(TOKEN, "")
    messages = subprocess.run(
        ["git", "--git-dir", place.project / ".holdfast" / "sidecar", "log", "--all", "--format=%B%D"],
        capture_output=True,
        check=True,
    ).stdout
    assert messages
    found += leaked("the side-car's messages", messages.replace(TOKEN.encode(), b""))
    found += leaked("undo", undo.encode())
    assert found == []
