"""The commands that look: status, list, snapshot, usage, stats."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.common import INSTALL_STEP
from holdfast.journal.usage import ContextUsageTracker
from holdfast.model.entry import TaskFinished, TaskStarted, UsageReported
from holdfast.model.usage import UsageMetrics
from holdfast.project import formats
from holdfast.workflows.plan import parse_plan
from holdfast.workflows.service import OrchestratorService
from transcripts import claude_files as claude

from .harness import Place, on_terminal

NOON = 1_767_700_800.0  # 2026-01-06 12:00:00 UTC


# ── status ─────────────────────────────────────────────────────────────────────────────────


def test_status_of_a_fresh_folder(place: Place) -> None:
    before = {name for name in place.tree() if name.startswith("project")}
    assert place.shown(place.ok("status").out) == (
        "Project:   PROJECT\nWorkflow:  none yet\n"
        "Start with: holdfast install claude-code, or codex, gemini or opencode\n"
    )
    assert {name for name in place.tree() if name.startswith("project")} == before


def test_whatever_is_empty_names_the_first_step(place: Place) -> None:
    looking = ("status", "snapshot list", "threads", "usage", "tx list", "context", "tx show")
    for result in place.many(*(command.split() for command in looking)):
        assert "tart with: holdfast install claude-code" in result.out + result.err


def test_once_an_agent_is_recorded_the_first_step_is_a_session_of_it(place: Place) -> None:
    """Right after `install` the first screen used to ask for `install`."""
    place.ok("install", "codex")
    place.ok("install", "claude-code", "--plugin")
    step = "Start with: a new session of claude-code or codex in this folder; it is recorded"
    assert place.shown(place.ok().out).splitlines()[2] == step
    assert step in place.ok("usage").out
    assert step.lower() in place.run("context").err
    for agent in ("claude-code", "codex"):
        place.ok("uninstall", agent)
    assert f"Start with: {INSTALL_STEP}\n" in place.ok().out


def test_where_usage_is_recorded_nothing_is_to_be_started(place: Place) -> None:
    tracker(place, "agent-1").update_usage(input_tokens=1_000)
    assert "Start with" not in place.ok("status").out


def test_colours_on_a_terminal_alone_and_room_for_what_is_copied(place: Place) -> None:
    """What a session brought along colours nothing; an id is never cut."""
    (place.project / "plan.yaml").write_text(
        'issue: {id: X, title: "Broken \\e[31m and a title that is longer than a narrow terminal is wide"}\n'
        "tasks: [{id: a, run: exit 3}]\n"
    )
    place.run("run", "plan.yaml")
    flow = place.json("status")["workflow"]["id"]
    place.environment["COLUMNS"] = "60"
    place.environment.pop("NO_COLOR", None)
    for words, red in ((["status"], "\x1b[31mfailed, "), (["list"], "\x1b[31m  failed")):
        code, shown = on_terminal(place, words)
        assert code == 0
        assert red in shown
        assert shown.count("\x1b[31m") == 1
        assert flow in shown
        assert "\x1b" not in place.ok(*words).out
    assert "…" in shown
    place.environment["NO_COLOR"] = "1"
    assert "\x1b" not in on_terminal(place, ["status"])[1]


def test_status_while_winding_down(place: Place) -> None:
    name = place.started("tool_call")
    tracker(place, "agent-1").update_usage(input_tokens=180_000, output_tokens=4_000)
    result = place.ok("status")
    assert place.shown(result.out) == (
        "Project:   PROJECT\n"
        "Workflow:  none yet\n"
        "Wind-down: SESSION-1, 2 actions\n"
        "Usage:     agent-1: 92.0 % of 200,000 tokens, auto-pause\n"
    )
    report = place.json("status")
    assert (report["workflow"], report["winddown"]["session_id"], report["winddown"]["orphaned"]) == (
        *(None, name),
        False,
    )
    assert report["usage"][0]["percentage_used"] == 92.0


def test_status_with_an_orphan(place: Place) -> None:
    place.orphaned()
    assert place.shown(place.ok("status").out).splitlines()[2:] == [
        "Wind-down: SESSION-1, 2 actions",
        "           abandoned by a dead process: holdfast winddown recover",
    ]


def test_status_when_paused(place: Place) -> None:
    name = place.paused("tool_call", reason="lunch")
    result = place.ok("status")
    assert place.shown(result.out) == (
        "Project:   PROJECT\n"
        "Workflow:  Work in project  (WF-1)\n"
        "Status:    paused, N s ago: lunch\n"
        "Snapshot:  SESSION-1  (session 1)\n"
        "           its handover: holdfast context SESSION-1\n"
        "           all open work: holdfast threads\n"
    )
    assert "lunch" in place.ok("context", name).out
    assert name in place.ok("threads").out
    workflow = result.out.split("(")[1].split(")")[0]
    named, unknown = place.many(["status", workflow, "--json"], ["status", "wf_nothere"])
    report = named.data["workflow"]
    assert (report["status"], report["pause_reason"], report["latest_snapshot"]) == ("paused", "lunch", name)
    unknown.failed(1, error="wf_nothere", hint="`holdfast list")


# ── list ───────────────────────────────────────────────────────────────────────────────────


def test_list(place: Place) -> None:
    here, everywhere = place.many(["list"], ["list", "--all"])
    assert here.out == "No workflows in this folder. Use `--all` to include all projects.\n"
    assert everywhere.out == "No workflows yet.\n"
    other = place.beside("other")
    place.paused()
    other.paused()
    lines = place.shown(place.ok("list").out).splitlines()
    assert [line.split() for line in lines] == [
        ["WORKFLOW", "STATUS", "SESSIONS", "CHANGED", "(UTC)", "TITLE", "WORKTREE"],
        ["WF-1", "paused", "1", "WHEN", "Work", "in", "project", "PROJECT"],
    ]
    everywhere, newest, none = place.many(
        ["list", "--all", "--json"], ["list", "--all", "--limit", "1", "--json"], ["list", "--limit", "0"]
    )
    assert [flow["worktree"] for flow in everywhere.data] == [str(other.project), str(place.project)]
    assert [flow["worktree"] for flow in newest.data] == [str(other.project)]
    none.failed(2, error="--limit")


# ── snapshot ───────────────────────────────────────────────────────────────────────────────


def test_snapshot_list(place: Place) -> None:
    assert place.ok("snapshot", "list").out == (f"No snapshots yet. Start with: {INSTALL_STEP}\n")
    first, second = place.paused(at=NOON), place.paused(reason="two\nlines", at=NOON + 60)
    lines = place.shown(place.ok("snapshot", "list").out).splitlines()
    assert [line.split() for line in lines] == [
        ["SNAPSHOT", "SESSION", "#", "TRIGGER", "PAUSED", "(UTC)", "TASKS", "REASON"],
        ["SNAP-1", "SESSION-1", "1", "exhaustion", "WHEN", "0/0", "-"],
        ["SNAP-2", "SESSION-2", "2", "exhaustion", "WHEN", "0/0", "two", "lines"],
    ]
    workflow = snapshots(place)[0]["workflow_id"]
    here, of_workflow, unknown = place.many(
        ["snapshot", "list", "--json"],
        ["snapshot", "list", workflow, "--json"],
        ["snapshot", "list", "wf_nothere"],
    )
    assert [line["session_id"] for line in here.data] == [first, second]
    assert (first, second) == ("session-20260106-120000", "session-20260106-120100")
    assert of_workflow.data == here.data
    unknown.failed(1, error="wf_nothere")


@pytest.fixture
def three(place: Place) -> tuple[Place, list[dict[str, Any]]]:
    """Three sessions, an hour apart, and their lines in the database."""
    for hour in range(3):
        place.paused("tool_call", reason=f"pause {hour}", at=NOON + hour * 3600)
    return place, snapshots(place)


def snapshots(place: Place) -> list[dict[str, Any]]:
    from holdfast.sessions.pause import open_store

    with open_store(place.settings()) as store:
        return [
            vars(line)
            for flow in reversed(store.workflows(worktree=str(place.project)))
            for line in store.snapshots(flow.id)
        ]


def test_snapshot_names(three: tuple[Place, list[dict[str, Any]]]) -> None:
    """By id, by a unique beginning of it, by session, and `latest`."""
    place, lines = three
    ids = [line["id"] for line in lines]
    unique = next(ids[0][:length] for length in range(1, 40) if not ids[1].startswith(ids[0][:length]))
    names = (ids[0], unique, lines[0]["session_id"], "latest")
    *found, ambiguous = place.many(
        *(["snapshot", "show", name, "--json"] for name in names), ["snapshot", "show", "snap_"]
    )
    assert [result.data["id"] for result in found] == [ids[0], ids[0], ids[0], ids[2]]
    ambiguous.failed(
        2, error=r"snap_ is ambiguous: it matches 3 snapshots: snap_", hint="give more characters of the id"
    )


def test_unknown_snapshots(place: Place) -> None:
    place.paused()
    before = place.session_files()
    names = ("snap_nothere", "session-20200101-000000", "../../etc/passwd", "%", " ")
    commands = [["snapshot", command, name] for name in names for command in ("show", "delete")]
    for command, result in zip(commands, place.many(*commands), strict=True):
        result.failed(1, error=f"no such snapshot: {command[-1]}", hint="`holdfast snapshot list` shows them")
    assert place.session_files() == before
    assert len(snapshots(place)) == 1


@pytest.mark.parametrize("command", ["show", "delete"])
def test_an_empty_name_means_none(place: Place, command: str) -> None:
    """It is the beginning of every id, and what an unset variable leaves on a command line."""
    place.paused()
    result = place.run("snapshot", command, "")
    assert result.code in (1, 2), result
    result.failed(result.code, error="snapshot")
    assert len(snapshots(place)) == 1


def test_nothing_is_latest(place: Place) -> None:
    place.run("snapshot", "show", "latest").failed(
        1, error="nothing has been paused in this folder yet", hint="holdfast install"
    )


def test_one_session_name_in_two_projects(place: Place) -> None:
    other = place.beside("other")
    name = place.paused(at=NOON)
    assert other.paused(at=NOON) == name
    for one in (place, other):
        assert one.json("snapshot", "show", name)["workflow"]["worktree"] == str(one.project)


def test_snapshot_show_is_the_page_on_the_disk(place: Place) -> None:
    name = place.paused("tool_call", reason="lunch")
    page, whole = place.many(["snapshot", "show", name], ["snapshot", "show", name, "--json"])
    assert page.out == (place.sessions / f"{name}.md").read_text(encoding="utf-8")
    assert whole.data == json.loads((place.sessions / f"{name}.json").read_text())


def test_snapshot_diff(place: Place) -> None:
    (place.project / "kept").write_text("1\n")
    first = place.paused(at=NOON)
    (place.project / "kept").write_text("2\n")
    (place.project / "new").write_text("1\n")
    second = place.paused("tool_call", reason="lunch", at=NOON + 60)
    assert place.shown(place.ok("snapshot", "diff", first, "latest").out) == (
        "SESSION-1 -> SESSION-2\n"
        "  session number: 1 -> 2\n"
        "  reason: none -> lunch\n"
        "  uncommitted changes: 1 untracked -> 2 untracked\n"
        "  context used: 90.0% -> 90.1%\n"
        "  tokens used: 180000 -> 180200\n"
        "  tool calls: 0 -> 1\n"
        "  + file: new\n"
        "  ~ file: kept\n"
    )
    same, whole, unknown = place.many(
        ["snapshot", "diff", "latest", second],
        ["snapshot", "diff", first, second, "--json"],
        ["snapshot", "diff", first, "snap_nothere"],
    )
    assert same.out == "No difference.\n"
    assert whole.data["files_added"] == ["new"]
    unknown.failed(1, error="no such snapshot: snap_nothere")


def test_snapshot_delete(three: tuple[Place, list[dict[str, Any]]]) -> None:
    """Each deletion takes files and entry; LATEST is always right; `reindex` brings nothing back."""
    place, lines = three
    names = [line["session_id"] for line in lines]

    assert place.ok("snapshot", "delete", names[1]).out == f"Deleted: {names[1]}\n"
    assert place.latest() == f"{names[2]}\n"

    assert place.json("snapshot", "delete", "latest") == {"deleted": lines[2]["id"], "session_id": names[2]}
    assert place.latest() == f"{names[0]}\n"
    assert [line["session_id"] for line in snapshots(place)] == [names[0]]
    assert sorted(path.name for path in place.sessions.glob("session-*")) == [
        f"{names[0]}{ending}" for ending in ("-incremental.jsonl", ".json", ".md", ".yaml")
    ]
    again, gone = place.many(["reindex", "--json"], ["snapshot", "delete", names[2]])
    assert again.data["added"] == []
    gone.failed(1, error=f"no such snapshot: {names[2]}")

    last, latest, again = place.many(
        ["snapshot", "delete", lines[0]["id"]], ["snapshot", "show", "latest"], ["reindex"]
    )
    assert (last.code, place.latest()) == (0, None)
    latest.failed(1, error="nothing has been paused")
    assert again.out == "0 sessions added, 0 already present, in 1 project.\n"


def test_a_pause_after_all_were_deleted(place: Place) -> None:
    name = place.paused(at=NOON)
    place.ok("snapshot", "delete", name)
    place.paused(at=NOON + 60)
    assert [line["session_number"] for line in snapshots(place)] == [2]
    assert place.latest() == "session-20260106-120100\n"


@pytest.mark.parametrize(("answer", "kept"), [("y\n", False), ("n\n", True)])
def test_snapshot_delete_asks_on_a_terminal(place: Place, answer: str, kept: bool) -> None:
    name = place.paused()
    code, shown = on_terminal(place, ["snapshot", "delete", "latest"], ("and its journal? [y/N]: ", answer))
    assert (code == 0, (place.sessions / f"{name}.json").exists()) == (not kept, kept), shown


# ── usage ──────────────────────────────────────────────────────────────────────────────────


def tracker(place: Place, session: str) -> ContextUsageTracker:
    return ContextUsageTracker(place.project, session_id=session)


def damage(place: Place, session: str, content: bytes) -> Path:
    path = place.project / ".holdfast" / "state" / f"usage-{session}.json"
    path.write_bytes(content)
    return path


def test_usage(place: Place) -> None:
    assert place.ok("usage").out == f"No usage reported in this project yet. Start with: {INSTALL_STEP}\n"
    assert place.json("usage") == []
    tracker(place, "agent-1").update_usage(120_000, 10_000, 20_000, 25_000, model="claude-sonnet-4-5")
    lines = place.ok("usage").lines
    assert [line.split() for line in lines] == [
        ["SESSION", "USED", "LEVEL", "TOKENS", "WINDOW", "REPORTS", "MODEL"],
        ["agent-1", "87.5", "%", "warning", "175,000", "200,000", "1", "claude-sonnet-4-5"],
    ]
    found = place.json("usage", "--session", "agent-1")
    assert found == place.json("usage")
    counts = (
        "input_tokens",
        "output_tokens",
        "cache_read",
        "cache_write",
        "total_tokens",
        "reports",
        "complete",
    )
    assert [found[0][name] for name in counts] == [120_000, 10_000, 20_000, 25_000, 175_000, 1, True]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"session_id": "agent-1", "input_t',
        b"[]",
        b'{"surprise": 1}',
        b'{"schema_version": 99}',
        b"\xff\x00",
    ],
)
def test_damaged_usage_is_unknown_and_not_empty(place: Place, content: bytes) -> None:
    tracker(place, "agent-1").update_usage(190_000)
    tracker(place, "agent-2").update_usage(20_000)
    path = damage(place, "agent-1", content)

    result = place.run("usage")
    assert (result.code, [line.split()[0] for line in result.lines]) == (4, ["SESSION", "agent-2"])
    error, hint = result.err.splitlines()[-2:]
    kept = error.removeprefix(
        "error: the usage of session agent-1 is unknown: its state was damaged and renamed to "
    )
    assert (path.parent / kept).read_bytes() == content
    assert hint == "hint: it is available again after the next model call"

    again = place.run("usage", "--session", "agent-1")
    again.failed(4, error="the usage of session agent-1 is unknown", hint="available again after")


def test_usage_after_damage_is_a_lower_bound(place: Place) -> None:
    tracker(place, "agent-1").update_usage(190_000)
    damage(place, "agent-1", b"")
    assert place.run("usage").code == 4
    tracker(place, "agent-1").update_usage(20_000)
    assert place.ok("usage").lines[1].split()[1:6] == ["at", "least", "10.0", "%", "normal"]
    assert place.json("usage")[0]["complete"] is False
    tracker(place, "agent-1").update_usage(150_000, report="cumulative")
    assert place.json("usage")[0]["complete"] is True


# ── stats ──────────────────────────────────────────────────────────────────────────────────


def winddown(place: Place, start: float, steps: list[tuple[float, str, str, float]]) -> None:
    place.manager(start).start_incremental_pause(0.90, {})
    for seconds, action, tool, share in steps:
        place.manager(start + seconds).append_action(action, {"tool": tool}, share)


def recorded(place: Place) -> None:
    """Two finished wind-downs of 40 s and 20 s, and one that fills 5 % a minute."""
    winddown(place, NOON, [(10, "tool_call", "Read", 0.92), (20, "tool_call", "Bash", 0.96)])
    place.manager(NOON + 40).finalize_pause()
    winddown(place, NOON + 100, [(10, "tool_call", "Read", 0.92), (20, "user_message", "", 0.92)])
    place.manager(NOON + 120).finalize_pause(create_full_snapshot=False)
    winddown(place, NOON + 200, [(60, "tool_call", "Read", 0.95)])


EXPECTED = {
    "journals": 3,
    "actions": 10,
    "skipped_lines": 0,
    "by_type": {"pause_started": 3, "tool_call": 4, "user_message": 1, "pause_finalized": 2},
    "by_tool": {"Read": 3, "Bash": 1},
    "mean_duration_seconds": 30.0,
    "active_session": "session-20260106-120320",
}


@pytest.mark.usefixtures("anywhere")
def test_stats_as_json(place: Place) -> None:
    recorded(place)
    stats = place.json("stats")
    assert {name: stats[name] for name in EXPECTED} == EXPECTED
    assert stats["seconds_to_exhaustion"] == pytest.approx(60.0)
    assert stats["context_per_action"] == pytest.approx((0.06 / 3 + 0.02 / 3 + 0.05) / 3)


@pytest.mark.usefixtures("anywhere")
def test_stats(place: Place) -> None:
    assert place.ok("stats").out == "No actions recorded in this project yet.\n"
    recorded(place)
    assert place.ok("stats").out == (
        "10 actions in 3 wind-downs\n"
        "\n"
        "TYPE             ACTIONS\n"
        "tool_call        4\n"
        "pause_started    3\n"
        "pause_finalized  2\n"
        "user_message     1\n"
        "\n"
        "TOOL  CALLS\n"
        "Read  3\n"
        "Bash  1\n"
        "\n"
        "Context per action:   2.56%\n"
        "Mean wind-down:       30 s\n"
        "Time to exhaustion:   1 min 00 s  (session-20260106-120320)\n"
    )


def test_compressed_journals_are_read_back(place: Place) -> None:
    winddown(place, NOON, [(10, "tool_call", "Read", 0.92)])
    result = place.ok("winddown", "finalize", "--json", env={"HOLDFAST_COMPRESS_AFTER_DAYS": "0"})
    name = result.data["session_id"]
    packed = place.sessions / f"{name}-incremental.jsonl.gz"
    assert sorted(path.name for path in place.sessions.glob("*incremental*")) == [packed.name]
    assert (packed.stat().st_mode & 0o777) == 0o600
    assert len(gzip.decompress(packed.read_bytes()).splitlines()) == 3
    assert place.ok("stats").lines[:2] == ["3 actions in 1 wind-downs", ""]


def test_a_compression_cut_short_counts_once(place: Place) -> None:
    """Killed between making the compressed copy and removing the plain file."""
    name = place.paused("tool_call")
    plain = place.sessions / f"{name}-incremental.jsonl"
    with plain.open("rb") as source, gzip.open(f"{plain}.gz", "wb") as packed:
        shutil.copyfileobj(source, packed)
    assert place.ok("stats").lines[0] == "3 actions in 1 wind-downs"


def test_archive_only_names_the_compressed_journal(place: Place) -> None:
    name = place.started()
    result = place.json("winddown", "finalize", "--archive-only", env={"HOLDFAST_COMPRESS_AFTER_DAYS": "0"})
    assert result == {"session_id": name, "path": str(place.sessions / f"{name}-incremental.jsonl.gz")}


HOSTILE = "\x1b]0;pwned\x07 \x1b[2J \x9b31m \u202etxt.exe \u2066 over\rwritten"


def test_no_stored_text_steers_the_terminal(place: Place) -> None:
    plan = {
        "issue": {"id": "X-1", "title": f"title {HOSTILE}", "description": HOSTILE},
        "tasks": [{"id": "t1", "description": f"task {HOSTILE}", "run": "printf 'out \\033[2J\\n'; false"}],
    }
    file = place.project / "plan.yaml"
    file.write_text(json.dumps(plan))
    commands = (
        ("run", str(file)),
        ("status",),
        ("list",),
        ("events",),
        ("snapshot", "list"),
        ("snapshot", "show", "latest"),
        ("history", "latest", "tasks"),
        ("context", "latest"),
        ("sessions", "list"),
        ("status", "--json"),
        ("events", "--json"),
    )
    for command in commands:
        result = place.run(*command)
        told = result.out + result.err
        assert "error: unexpected" not in told
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", told), (command, told)
    assert "title" in place.ok("list").out


def test_usage_and_stats_tell_of_workflows_that_asked_a_model(place: Place) -> None:
    plan = parse_plan("issue: {id: W, title: Work}\ntasks: [{id: a, run: x}]\n")
    with OrchestratorService(place.settings()) as service:
        workflow = service.start(plan, place.project, claim="run-nowhere-1-aaa#1")
        usage = UsageMetrics(tokens_used=5000, llm_calls=3, context_utilization=0.25)
        service.core.record(
            workflow.id,
            TaskStarted(task_id="a"),
            UsageReported(usage=usage),
            TaskFinished(task_id="a", outcome="completed", seconds=1.0, driver="model"),
        )
    (told,) = place.json("usage")
    assert (told["session_id"], told["percentage_used"], told["total_tokens"]) == (workflow.id, 25.0, 5000)
    assert re.search(rf"{workflow.id} +25.0 % +normal +5,000 +- +3 +-", place.ok("usage").out)
    assert "Tasks of all workflows:\nDRIVER" in place.ok("stats").out


def test_usage_draws_how_the_window_of_a_workflow_filled(place: Place) -> None:
    plan = parse_plan("issue: {id: W, title: Work}\ntasks: [{id: a, run: x}]\n")
    with OrchestratorService(place.settings()) as service:
        workflow = service.start(plan, place.project, claim="run-nowhere-1-aaa#1")
        for share in (0.05, None, 0.4, 0.9):
            service.core.record(workflow.id, UsageReported(usage=UsageMetrics(context_utilization=share)))
    heading, line = place.ok("usage").lines
    assert (heading.split()[-1], line.split()[-1]) == ("FILLED", "▁▄█")
    assert "filling" not in place.json("usage")[0]


def with_hooks_note(place: Place, session: str, agent: str, transcript: Path) -> None:
    note = place.project / ".holdfast/state/hooks" / session / formats.WHO
    note.parent.mkdir(parents=True)
    note.write_bytes(formats.render_who(agent, session, str(transcript), 1, ""))


def test_usage_draws_how_the_window_of_an_agents_session_filled(place: Place) -> None:
    """A message counts once, however many lines it has; of many messages some are drawn, with the last."""
    for session in ("agent-1", "agent-2", "agent-3"):
        tracker(place, session).update_usage(190_000)
    said = [
        claude.said("x", message_id=f"m{number}", usage={"input_tokens": number * 1000})
        for number in range(1, 191)
        for _ in range(2)
    ]
    place.root.joinpath("one.jsonl").write_bytes(claude.file_of(*said))
    with_hooks_note(place, "agent-1", "claude-code", place.root / "one.jsonl")
    os.mkfifo(place.root / "pipe")
    with_hooks_note(place, "agent-2", "claude-code", place.root / "pipe")
    lines = {line.split()[0]: line.split()[-1] for line in place.ok("usage").lines}
    drawn = lines["agent-1"]
    assert (list(drawn), drawn[0], drawn[-1]) == (sorted(drawn), "▁", "█")
    assert 8 <= len(drawn) <= 16
    assert lines["agent-2"] == lines["agent-3"] == "-"
    assert place.ok("usage", "--session", "agent-1").lines[1].endswith(drawn)
    assert "FILLED" not in place.ok("usage", "--session", "agent-3").out


def test_the_latest_is_the_last_one_even_if_the_clock_was_set_back(place: Place) -> None:
    place.paused("tool_call", reason="before", at=1_767_700_800.0)
    name = place.paused("tool_call", reason="after", at=1_767_700_800.0 - 30 * 86_400)
    assert place.json("snapshot", "show", "latest")["session_id"] == name
    assert "after" in place.ok("context", "latest").out
