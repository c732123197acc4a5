"""`holdfast sessions list`: what four agents keep of this project."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from transcripts import claude_files as claude
from transcripts.codex_files import Rollout

from .harness import Place, normalised
from .test_context import AGENTS, FIRST, keep, kept_session, ran_tool

AGES = {"claude-code": 30, "codex": 10, "gemini": 20, "opencode": 40}


@pytest.fixture
def four(place: Place) -> Place:
    for agent, age in AGES.items():
        kept_session(place, agent, f"{agent}-1", age=age)
    return place


def test_none(place: Place) -> None:
    assert place.ok("sessions", "list").out == "No agent sessions found for this project.\n"
    assert place.json("sessions", "list") == []


def test_four_agents_newest_first(four: Place) -> None:
    lines = four.ok("sessions", "list").lines
    assert re.split(r"  +", lines[0]) == [
        "AGENT",
        "SESSION",
        "UPDATED",
        "SIZE",
        "WINDOW",
        "COST",
        "FIRST MESSAGE",
    ]
    assert [line.split()[:2] for line in lines[1:5]] == [
        ["codex", "codex-1"],
        ["gemini", "gemini-1"],
        ["claude-code", "claude-code-1"],
        ["opencode", "opencode-1"],
    ]
    assert all(FIRST in line for line in lines[1:4])
    assert "The shed" in lines[4]
    assert lines[5:] == ["Read one with: holdfast context --session codex-1"]


def test_as_json(four: Place) -> None:
    found = four.json("sessions", "list")
    assert [one["agent"] for one in found] == sorted(AGENTS, key=lambda agent: AGES[agent])
    for one in found:
        assert list(one) == [
            *("agent", "session_id", "path", "started", "updated", "size", "title", "project", "usage")
        ]
        path = Path(one["path"])
        assert path.is_file()
        assert one["size"] == (None if one["agent"] == "opencode" else path.stat().st_size)
        updated = datetime.fromisoformat(one["updated"])
        assert updated == datetime.fromtimestamp(2_000_000_000 - AGES[one["agent"]], UTC)
        assert one["started"] is None or datetime.fromisoformat(one["started"]).year == 2026


def test_all_projects(four: Place) -> None:
    other = four.beside("other one")
    for number in range(3):
        kept_session(other, "claude-code", f"other-{number}", age=5 + number)
    kept_session(four, "claude-code", "torn", age=50).write_bytes(b"\x00")
    everything, newest, here, shown = four.many(
        ["sessions", "list", "--all", "--json"],
        ["sessions", "list", "--all", "--json", "--limit", "2"],
        ["sessions", "list", "--json"],
        ["sessions", "list", "--all", "--limit", "4"],
    )
    ids = ["other-0", "other-1", "other-2", "codex-1", "gemini-1", "claude-code-1", "opencode-1"]
    assert [one["session_id"] for one in everything.data] == ids
    assert [one["project"] for one in everything.data] == [str(other.project)] * 3 + [str(four.project)] * 4
    assert [one["session_id"] for one in here.data] == ids[3:]
    assert (everything.err, newest.data) == (here.err, everything.data[:2])
    assert "1 files could not be read" in here.err
    assert newest.err == "", "only as many are looked at as are shown"
    assert re.split(r"  +", shown.lines[0])[4:] == ["WINDOW", "COST", "PROJECT", "FIRST MESSAGE"]
    assert shown.lines[5] == "… and more; use --limit 40 to show more of them"
    command = shlex.split(shown.lines[6].partition(": holdfast ")[2])
    assert command == ["--project", str(other.project), "context", "--session", "other-0"]
    assert FIRST in four.ok(*command).out


def test_the_command_to_read_one_is_a_single_command(place: Place) -> None:
    """Agents' files name sessions and folders, and anybody may have written them."""
    where = {"sessionId": "x; touch made", "cwd": "/tmp/$(touch made)"}
    line = claude.typed("Sew it", **where)
    kept_session(place, "claude-code", "odd").write_bytes(claude.file_of(line))
    shown = place.ok("sessions", "list", "--all").lines[-1].partition(": ")[2]
    words = ["holdfast", "--project", where["cwd"], "context", "--session", where["sessionId"]]
    assert shown == shlex.join(words)


@pytest.mark.parametrize("size", [0, 600_000])
def test_a_search_in_what_was_said_called_and_returned(four: Place, size: int) -> None:
    file = kept_session(four, "claude-code", "talked", age=1)
    said = claude.said(f'{"x" * size} The Ärmel is "sewn" on, see a/b.py')
    lines = (claude.typed("Sew it", cwd=str(four.project), sessionId="talked"), said)
    called = ran_tool(1, "3 buttons MISSING", command="count-buttons --all")
    file.write_bytes(claude.file_of(*lines, *called))
    cases = {
        "sewn": ["talked"],
        "ÄRMEL sew": ["talked"],
        'is "sewn"': ["talked"],
        "count-buttons missing a/b.py": ["talked"],
        "sewn zeppelin": [],
        "parentUuid": [],
        FIRST.upper(): ["codex-1", "gemini-1", "claude-code-1", "opencode-1"],
    }
    results = four.many(*(["sessions", "list", "--json", "--search", words] for words in cases))
    found = {
        words: [one["session_id"] for one in result.data]
        for words, result in zip(cases, results, strict=True)
    }
    assert found == cases
    none, cut, empty = four.many(
        ["sessions", "list", "--search", "zeppelin"],
        ["sessions", "list", "--all", "--search", FIRST, "--limit", "1"],
        ["sessions", "list", "--search", " "],
    )
    assert none.out == "No agent sessions found for this project with all of: zeppelin.\n"
    assert [line.split()[0] for line in cut.lines] == ["AGENT", "codex", "…", "Read"]
    empty.failed(2, error="no words")


def test_what_is_listed_can_be_read(four: Place) -> None:
    found = four.json("sessions", "list")
    for result in four.many(*(["context", "--session", one["session_id"]] for one in found)):
        assert (result.code, result.err) == (0, "")
        assert FIRST in result.out


def test_a_limit(four: Place) -> None:
    two, two_as_json, none, word = four.many(
        ["sessions", "list", "--limit", "2"],
        ["sessions", "list", "--limit", "2", "--json"],
        ["sessions", "list", "--limit", "0"],
        ["sessions", "list", "--limit", "all"],
    )
    assert [line.split()[0] for line in two.lines[1:3]] == ["codex", "gemini"]
    assert two.lines[3:] == [
        "… and 2 more; use --limit 4 to show all",
        "Read one with: holdfast context --session codex-1",
    ]
    assert [one["agent"] for one in two_as_json.data] == ["codex", "gemini"]
    none.failed(2, error="--limit")
    word.failed(2, error="--limit")


def test_odd_files_are_counted_on_stderr(four: Place) -> None:
    chats = keep(four, ".gemini", "tmp", "shed", "chats", "session-bad.jsonl")
    rollouts = keep(four, ".codex", "sessions", "2026", "03", "01", "rollout-bad.jsonl")
    projects = next(four.root.joinpath("home", ".claude", "projects").iterdir())
    chats.write_bytes(b"\x00\xff" * 100)
    rollouts.write_bytes(b"")
    (projects / "bad.jsonl").write_bytes(b"[1]\n")
    os.mkfifo(projects / "pipe.jsonl")
    keep(four, ".local", "share", "opencode", "opencode-old.db").write_bytes(b"no database")
    for options in ([], ["--json"]):
        result = four.run("sessions", "list", *options)
        assert result.code == 0
        assert result.err == "warning: 5 files could not be read and were skipped\n"
        assert all(f"{agent}-1" in result.out for agent in AGENTS)
        assert "bad" not in result.out


def test_only_this_projects(place: Place) -> None:
    other = place.beside("other")
    for agent in AGENTS[:2]:
        kept_session(other, agent, f"far-{agent}")
    kept_session(place, "claude-code", "near")
    assert [one["session_id"] for one in place.json("sessions", "list")] == ["near"]
    assert {one["session_id"] for one in other.json("sessions", "list")} == {"far-claude-code", "far-codex"}
    below = place.project / "src" / "deep"
    below.mkdir(parents=True)
    assert [one["session_id"] for one in place.json("sessions", "list", cwd=below)] == ["near"]


def test_agents_that_keep_theirs_elsewhere(place: Place) -> None:
    path = kept_session(place, "codex", "moved")
    root = path.parents[4]
    away = place.root / "away"
    root.rename(away)
    assert place.json("sessions", "list") == []
    [found] = place.json("sessions", "list", env={"CODEX_HOME": str(away)})
    assert found["session_id"] == "moved"


def test_a_title_stays_on_its_line_and_is_short(place: Place) -> None:
    prompt = "use this\n\n## and\tthen\r\n" + "more words " * 40
    rollout = Rollout(cwd=str(place.project), session_id="b1").prompt(prompt)
    keep(place, ".codex", "sessions", "2026", "03", "01", "rollout-b1.jsonl").write_bytes(rollout.data)
    _, line, _ = place.ok("sessions", "list").lines
    assert "use this ## and then more words" in line
    assert line.endswith("…")
    [found] = place.json("sessions", "list")
    assert len(found["title"]) <= 80


def test_a_damaged_head_does_not_hide_the_others(place: Place) -> None:
    path = kept_session(place, "claude-code", "torn")
    path.write_bytes(b'{"torn\n' + path.read_bytes())
    path.with_name("empty.jsonl").touch()
    path.with_name("new.jsonl").write_bytes(claude.file_of({"type": "summary", "summary": "x"}))
    result = place.run("sessions", "list", "--json")
    assert [one["session_id"] for one in result.data] == ["torn"]
    assert result.err.startswith("warning: ")


def test_a_program_starts_the_other_agent_as_handoff_itself_does(place: Place) -> None:
    """`handoff --json` tells all that `--exec` uses: the words, the prompt and the environment."""
    kept_session(place, "claude-code", "claude-code-1")
    codex = place.root / "bin" / "codex"
    codex.parent.mkdir()
    codex.write_text('#!/bin/sh\nprintf "%s\\n" "$HOLDFAST_HANDED_OVER" "$@"\n')
    codex.chmod(0o755)
    env = {**place.environment, "PATH": f"{codex.parent}:{place.environment['PATH']}"}
    words = ("handoff", "--to", "codex", "--session", "claude-code-1")
    told = place.run(*words, "--json", "--", "exec").data
    started = place.run(*words, "--exec", "--", "exec", env=env)
    ran = subprocess.run(
        [*told["command"], told["prompt"]],
        env={**env, **told["environment"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert normalised(ran.stdout) == normalised(started.out)
    assert (FIRST in ran.stdout, ran.stdout.splitlines()[:2]) == (True, [told["session"], "exec"])


# --- what sessions used


def answered(model: str, answer: int, *, given: int, back: int, read: int = 0, written: int = 0) -> bytes:
    line = claude.said(
        "Yes",
        message_id=f"m-{model}-{answer}",
        usage={
            "input_tokens": given,
            "output_tokens": back,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        },
    )
    line["message"]["model"] = model
    return claude.file_of(line)


def asked(place: Place, session: str) -> bytes:
    return claude.file_of(claude.typed("Is it done?", cwd=str(place.project), sessionId=session))


def kept_with(place: Place, session: str, *answers: bytes) -> Path:
    path = kept_session(place, "claude-code", session)
    path.write_bytes(asked(place, session) + b"".join(answers))
    return path


def usage_of(place: Place, session: str) -> Any:
    found = place.json("sessions", "list", "--all")
    return next(one["usage"] for one in found if one["session_id"] == session)


PRICES = """
[prices.ours]
input = 1
output = 10
cache_read = 0.1

[prices."vendor/theirs-1.5"]
input = 2.0
output = 20.0
"""


def test_fullness_and_cost_with_the_users_prices(place: Place) -> None:
    (place.home / "config.toml").write_text(PRICES)
    first = answered("ours", 1, given=40_000, back=10_000, read=100_000)
    path = kept_with(place, "s", first)
    expected = {
        "model": "ours",
        "tokens": 150_000,
        "context_tokens": 150_000,
        "context_window": 200_000,
        "cost_usd": pytest.approx(0.04 + 0.1 + 0.01),
        "cost_is_partial": False,
        "context_share": 0.75,
    }
    assert usage_of(place, "s") == expected
    row = place.ok("sessions", "list").lines[1]
    assert "75%" in row
    assert "$0.15" in row
    with path.open("ab") as file:
        file.write(answered("vendor/theirs-1.5", 1, given=20_000, back=1000))
    grown = usage_of(place, "s")
    assert grown == expected | {
        "model": "vendor/theirs-1.5",
        "tokens": 171_000,
        "context_tokens": 21_000,
        "cost_usd": pytest.approx(0.15 + 0.04 + 0.02),
        "context_share": pytest.approx(0.105),
    }
    assert usage_of(place, "s") == grown, "told again without counting again"
    with path.open("ab") as file:
        file.write(answered("nobody-knows", 1, given=1, back=1))
    unknown = usage_of(place, "s")
    assert (unknown["tokens"], unknown["cost_is_partial"]) == (171_002, True)
    assert "≥ $0.21" in place.ok("sessions", "list").lines[1], "a part of the cost is not the cost"


def test_subagents_cost_but_do_not_fill_the_window(place: Place) -> None:
    (place.home / "config.toml").write_text(PRICES)
    path = kept_with(place, "s", answered("ours", 1, given=10_000, back=0))
    other = path.with_suffix("") / "subagents" / "agent-1.jsonl"
    other.parent.mkdir(parents=True)
    other.write_bytes(asked(place, "s") + answered("ours", 7, given=90_000, back=10_000))
    used = usage_of(place, "s")
    assert (used["tokens"], used["context_tokens"]) == (110_000, 10_000)
    assert used["cost_usd"] == pytest.approx(0.01 + 0.09 + 0.1)


def test_what_was_not_counted_is_not_made_up(place: Place) -> None:
    kept_with(place, "silent")
    used = usage_of(place, "silent")
    assert (used["tokens"], used["context_share"], used["cost_usd"]) == (0, None, None)
    large = kept_with(place, "large", answered("ours", 1, given=10_000, back=0))
    large.write_bytes(large.read_bytes() + claude.file_of(claude.typed("word " * 1_000_000)))
    assert usage_of(place, "large") is None, "too large to be read for a list"
    place.ok("sessions", "list", "--all", "--search", "done")
    assert usage_of(place, "large")["tokens"] == 10_000
    (place.home / "search.sqlite").write_bytes(b"no database" * 1000)
    assert [one["session_id"] for one in place.json("sessions", "list")] == ["large", "silent"]


def test_an_emptied_window_is_not_full(place: Place) -> None:
    summary = claude.typed("This is what we did", isCompactSummary=True)
    kept_with(place, "s", answered("ours", 1, given=190_000, back=0), claude.file_of(summary))
    used = usage_of(place, "s")
    assert (used["tokens"], used["context_tokens"]) == (190_000, None)
