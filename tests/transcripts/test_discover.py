from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.transcripts.discover import FoundSession, SearchReport, find_sessions
from soak import repeated
from transcripts.codex_files import Rollout
from transcripts.gemini_files import Log, gemini, user
from transcripts.odd_input import lines
from transcripts.opencode_files import Database, text


class House:
    """A home folder and a project in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "my.shop"
        self.project.mkdir(parents=True)
        self.env: dict[str, str] = {}
        self.report = SearchReport()

    def find(self, project: Path | None = None) -> list[FoundSession]:
        return list(find_sessions(project or self.project, self.home, self.env, self.report))

    def write(self, data: bytes, *parts: str, age: int = 0, below: Path | None = None) -> Path:
        path = (below or self.home).joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (2_000_000_000 - age, 2_000_000_000 - age))
        return path

    def claude(
        self, name: str = "a1", prompt: str = "fix it", cwd: Path | None = None, **place: object
    ) -> Path:
        line = {
            "type": "user",
            "uuid": "u1",
            "sessionId": name,
            "cwd": str(cwd or self.project),
            "timestamp": "2026-03-01T10:00:00.000Z",
            "message": {"role": "user", "content": prompt},
        }
        folder = "".join(letter if letter.isalnum() else "-" for letter in str(self.project))
        return self.write(lines(line), ".claude", "projects", folder, f"{name}.jsonl", **place)  # pyright: ignore[reportArgumentType]

    def codex(
        self, name: str = "b1", cwd: Path | None = None, prompt: str = "fix it", **meta: object
    ) -> Path:
        rollout = Rollout(cwd=str(cwd or self.project), session_id=name, **meta).prompt(prompt)
        return self.write(
            rollout.data, ".codex", "sessions", "2026", "03", "01", f"rollout-2026-{name}.jsonl"
        )

    def gemini(self, name: str = "c1", folder: str = "my-shop", root: Path | None = None) -> Path:
        self.write(str(root or self.project).encode(), ".gemini", "tmp", folder, ".project_root")
        log = Log(name).say(user("u1", "fix it"), gemini("m1", "done"))
        return self.write(log.data, ".gemini", "tmp", folder, "chats", f"session-2026-{name}.jsonl")

    def opencode(self, *parts: str) -> Database:
        path = self.home.joinpath(*(parts or (".local", "share", "opencode", "opencode.db")))
        path.parent.mkdir(parents=True, exist_ok=True)
        return Database(path)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_nothing_anywhere(house: House) -> None:
    assert house.find() == []
    assert house.report.skipped == 0


def test_all_four_agents_newest_first(house: House) -> None:
    paths = [house.claude(), house.codex(), house.gemini()]
    for age, path in zip((30, 10, 20), paths, strict=True):
        os.utime(path, (2_000_000_000 - age, 2_000_000_000 - age))
    database = house.opencode().session("d1", directory=str(house.project), title="The shop")
    database.message("user", text("fix it"), session="d1")

    found = house.find()

    assert [(f.agent, f.session_id) for f in found] == [
        ("codex", "b1"),
        ("gemini", "c1"),
        ("claude-code", "a1"),
        ("opencode", "d1"),
    ]
    assert [f.title for f in found] == ["fix it", "fix it", "fix it", "The shop"]
    assert found[2] == FoundSession(
        agent="claude-code",
        session_id="a1",
        path=paths[0],
        updated=datetime.fromtimestamp(1_999_999_970, UTC),
        started=datetime(2026, 3, 1, 10, tzinfo=UTC),
        size=paths[0].stat().st_size,
        title="fix it",
        project=str(house.project),
    )
    assert house.report.skipped == 0


def test_sessions_of_other_projects_are_not_listed(house: House) -> None:
    other = house.home / "my-shop"  # Claude Code gives it the same folder name
    house.claude(cwd=other)
    house.codex(cwd=other)
    house.gemini(root=other)
    house.opencode().session("d1", directory=str(other))
    assert house.find() == []
    assert {f.agent for f in house.find(other)} == {"claude-code", "codex", "gemini", "opencode"}


def test_the_environment_moves_the_folders(house: House, tmp_path: Path) -> None:
    house.claude()
    house.codex()
    house.gemini()
    house.opencode().session("d1", directory=str(house.project))
    house.home.joinpath(".local/share").rename(tmp_path / "data")
    house.home.joinpath(".gemini").rename(tmp_path / ".gemini")
    for name in ("claude", "codex"):
        house.home.joinpath(f".{name}").rename(tmp_path / name)
    assert house.find() == []
    house.env |= {
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CODEX_HOME": str(tmp_path / "codex"),
        "GEMINI_CLI_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
    }
    assert {f.agent for f in house.find()} == {"claude-code", "codex", "gemini", "opencode"}


def test_opencode_may_keep_its_database_elsewhere(house: House) -> None:
    house.opencode("elsewhere.db").session("d1", directory=str(house.project))
    house.env["OPENCODE_DB"] = str(house.home / "elsewhere.db")
    assert [f.session_id for f in house.find()] == ["d1"]


def test_a_project_reached_through_a_link(house: House, tmp_path: Path) -> None:
    house.codex()
    link = tmp_path / "link"
    link.symlink_to(house.project)
    assert [f.session_id for f in house.find(link)] == ["b1"]


def test_gemini_projects_named_by_hash_and_sessions_of_older_versions(house: House) -> None:
    name = hashlib.sha256(str(house.project).encode()).hexdigest()
    document = {"sessionId": "old", "messages": [user("u1", "fix it")]}
    house.write(
        json.dumps(document, indent=2).encode(), ".gemini", "tmp", name, "chats", "session-1-old.json"
    )
    assert [(f.session_id, f.title) for f in house.find()] == [("old", "fix it")]


def test_the_empty_twin_that_a_gemini_resume_leaves_is_not_listed(house: House) -> None:
    whole = house.gemini("c1")
    house.write(Log("c1").data, ".gemini", "tmp", "my-shop", "chats", "session-2027-c1.jsonl")
    assert [f.path for f in house.find()] == [whole]


def test_sub_agents_are_not_sessions_of_their_own(house: House) -> None:
    house.codex("b2", source={"subagent": {"thread_spawn": {}}}, agent_nickname="Harvey")
    house.claude("agent-x")
    database = house.opencode().session("d1", directory=str(house.project))
    database.session("d2", parent="d1", directory=str(house.project))
    assert [f.session_id for f in house.find()] == ["d1"]


def test_a_long_prompt_gives_a_short_title(house: House) -> None:
    house.codex(prompt="please\n  rename " + "everything " * 100)
    (found,) = house.find()
    assert found.title is not None
    assert found.title.startswith("please rename everything")
    assert len(found.title) <= 80


def test_odd_files_are_skipped_and_counted(house: House) -> None:
    good = house.codex("good")
    for name, data in {"empty": b"", "garbage": b"\x00\xff" * 100, "list": b"[1]\n"}.items():
        house.write(data, ".codex", "sessions", "2026", "03", "01", f"rollout-{name}.jsonl")
        house.write(data, ".gemini", "tmp", "my-shop", "chats", f"session-{name}.jsonl")
    house.write(str(house.project).encode(), ".gemini", "tmp", "my-shop", ".project_root")
    good.with_name("rollout-folder.jsonl").mkdir()
    os.mkfifo(good.with_name("rollout-pipe.jsonl"))
    good.with_name("rollout-dangling.jsonl").symlink_to("nowhere")
    house.write(b"not a database", ".local", "share", "opencode", "opencode.db")
    assert [f.session_id for f in house.find()] == ["good"]
    assert house.report.skipped == 9


def test_a_database_of_another_layout_is_skipped(house: House) -> None:
    path = house.write(b"", ".local", "share", "opencode", "opencode.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE session (id)")
    assert house.find() == []
    assert house.report.skipped == 1


def test_only_heads_are_read(house: House) -> None:
    path = house.codex()
    with path.open("ab") as file:
        file.truncate(20 * 1024**3)  # sparse: reading it through would take minutes
    (found,) = house.find()
    assert (found.title, found.size) == ("fix it", 20 * 1024**3)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=repeated(60),
    deadline=None,
)
@given(st.binary(max_size=600))
def test_any_bytes_in_any_place(house: House, data: bytes) -> None:
    house.write(str(house.project).encode(), ".gemini", "tmp", "my-shop", ".project_root")
    house.write(data, ".gemini", "tmp", "my-shop", "chats", "session-x.jsonl")
    house.write(data, ".codex", "sessions", "2026", "03", "01", "rollout-x.jsonl")
    house.write(data, ".local", "share", "opencode", "opencode.db")
    house.find()
