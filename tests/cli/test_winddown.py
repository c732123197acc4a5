"""`holdfast winddown`: what it prints, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from holdfast.journal.log import ACTION_TYPES
from transcripts.claude_files import file_of, said, typed
from workflows.harness import Workshop, wait_for

from .harness import Place, tree_of

KEYS = ["type", "timestamp", "session_id", "data", "context_percentage"]


def test_from_start_to_session(place: Place) -> None:
    """The whole way, each step as its user sees it."""
    started = place.ok("winddown", "start", "--percent", "0.90", "--state", '{"model": "claude-sonnet-4-5"}')
    assert place.shown(started.out) == (
        "Wind-down started: SESSION-1\nRecord with: holdfast winddown append TYPE --data JSON --percent P\n"
    )
    name = started.out.split()[2]

    appended = place.ok("winddown", "append", "tool_call", "--data", '{"tool": "Read"}', "--percent", "0.91")
    assert appended.out == ""
    place.ok(
        "winddown", "append", "user_message", "--data", "-", "--percent", "0.93", stdin='{"message": "Grüße"}'
    )

    summary = place.ok("winddown", "summary")
    assert place.shown(summary.out) == (
        "Session:  SESSION-1\nActions:  3, the last a user_message\nContext:  90.0% -> 93.0%\nDuration: N s\n"
    )

    finalised = place.ok("winddown", "finalize", "-r", "lunch")
    assert place.shown(finalised.out) == (
        "Paused: SESSION-1\n"
        "  PROJECT/.holdfast/sessions/SESSION-1.json\n"
        "See it with: holdfast snapshot show SESSION-1\n"
    )
    assert place.session_files() == [
        f".indexed-{name}",
        ".lock",
        "LATEST-SESSION.txt",
        f"{name}-incremental.jsonl",
        f"{name}.json",
        f"{name}.md",
        f"{name}.yaml",
    ]
    assert place.latest() == f"{name}\n"
    archive = (place.sessions / f"{name}-incremental.jsonl").read_text(encoding="utf-8")
    archived = [json.loads(line) for line in archive.splitlines()]
    assert [list(action) for action in archived] == [KEYS] * 4
    assert [action["type"] for action in archived] == [
        "pause_started",
        "tool_call",
        "user_message",
        "pause_finalized",
    ]
    assert {action["session_id"] for action in archived} == {name}
    assert [action["context_percentage"] for action in archived] == [0.9, 0.91, 0.93, 0.93]
    assert archived[0]["data"] == {"context_percentage": 0.9, "initial_state": {"model": "claude-sonnet-4-5"}}
    assert archived[2]["data"] == {"message": "Grüße"}
    assert "Grüße" in archive


def test_summary_as_json_has_the_agreed_fields(place: Place) -> None:
    name = place.started("tool_call")
    summary = place.json("winddown", "summary")
    assert {
        key: summary[key] for key in ("session_id", "action_count", "context_range", "last_action_type")
    } == {
        "session_id": name,
        "action_count": 2,
        "context_range": [0.9, 0.901],
        "last_action_type": "tool_call",
    }
    assert set(summary) == {
        *("session_id", "action_count", "duration_seconds", "context_range"),
        *("pause_started_at", "last_action_type", "last_updated", "orphaned"),
    }
    assert summary["orphaned"] is False


def test_the_three_files_say_the_same(place: Place) -> None:
    name = place.started(*["tool_call", "assistant_response"] * 7, "user_message")
    place.ok("winddown", "finalize", "-r", "Zeit für Tee")
    files = {
        kind: (place.sessions / f"{name}.{kind}").read_text(encoding="utf-8")
        for kind in ("json", "yaml", "md")
    }
    document = json.loads(files["json"])
    assert yaml.safe_load(files["yaml"]) == document
    agreed = ("session_id", "paused_at", "duration_hours", "context_usage", "incremental_pause")
    assert [key for key in document if key in agreed] == list(agreed)
    assert document["session_id"] == name
    assert document["context_usage"] == {"tokens_used": 183000, "tokens_total": 200000, "percentage": 91.5}
    pause = document["incremental_pause"]
    assert {key: pause[key] for key in ("enabled", "action_count", "context_range", "tool_calls")} == {
        "enabled": True,
        "action_count": 17,
        "context_range": [0.9, 0.915],
        "tool_calls": 7,
    }
    archive = (place.sessions / f"{name}-incremental.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(archive) == pause["action_count"]
    assert pause["actions_summary"] == [
        {key: json.loads(line)[key] for key in ("type", "timestamp")} for line in archive[-10:]
    ]
    assert place.shown(files["md"]).startswith(
        "# SESSION-1\n\n"
        "Work in project, session 1, paused WHEN UTC (exhaustion).\n\n"
        "Reason: Zeit für Tee\n\n"
        "Context: 91.5 % used (183,000 of 200,000 tokens).\n\n"
        "## Wind-down\n\n"
        "17 actions, 7 of them tool calls, in N s; context 90% → 92%.\n"
    )


def test_everything_is_private(place: Place) -> None:
    place.ok("winddown", "start", "--percent", "0.9")
    place.ok("winddown", "finalize")
    modes = {
        path.relative_to(place.project).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in (place.project / ".holdfast", *(place.project / ".holdfast").rglob("*"))
    }
    folders = {name for name in modes if (place.project / name).is_dir()}
    assert folders == {".holdfast", ".holdfast/sessions", ".holdfast/state"}
    assert {modes[name] for name in folders} == {0o700}
    assert {name: oct(mode) for name, mode in modes.items() if name not in folders and mode != 0o600} == {}
    assert stat.S_IMODE(place.database.stat().st_mode) == 0o600


@pytest.mark.parametrize("as_json", [False, True])
def test_archive_only_keeps_the_journal_alone(place: Place, as_json: bool) -> None:
    name = place.started("tool_call")
    result = place.ok("winddown", "finalize", "--archive-only", *(["--json"] if as_json else []))
    archive = place.sessions / f"{name}-incremental.jsonl"
    if as_json:
        assert result.data == {"session_id": name, "path": str(archive)}
    else:
        assert result.out == f"Journal kept: {archive}\n"
    assert place.session_files() == [".lock", archive.name]
    assert not place.database.exists()


def test_discard_leaves_nothing(place: Place) -> None:
    place.paused()
    before = place.session_files()
    name = place.started("tool_call")
    with place.journal.open("ab") as journal:
        journal.write(b'{"torn')
    place.manager().append_action("tool_call", {}, 0.92)
    assert place.ok("winddown", "discard").out == f"Discarded: {name}\n"
    assert place.session_files() == before


# ── wrong input ────────────────────────────────────────────────────────────────────────────

APPEND = ["winddown", "append", "tool_call"]
START = ["winddown", "start"]
FRACTION = "context use must be a fraction from 0 to 1, not "
EVERY_TYPE = ", ".join(ACTION_TYPES)

WRONG: dict[str, tuple[bool, Sequence[str], int, str, str | None]] = {
    "start: percent 90": (False, [*START, "--percent", "90"], 2, FRACTION + "90.0", r"did you mean 0\.9\?"),
    "start: NaN": (False, [*START, "--percent", "nan"], 2, FRACTION + "nan", None),
    "start: infinite": (False, [*START, "--percent", "inf"], 2, FRACTION + "inf", None),
    "start: negative": (False, [*START, "--percent=-0.1"], 2, FRACTION + "-0.1", None),
    "start: a word": (False, [*START, "--percent", "most"], 2, "'most' is not a valid float", "--help"),
    "start: no percent": (
        False,
        START,
        2,
        "Missing option '--percent'",
        "see `holdfast winddown start --help`",
    ),
    "start: no JSON": (
        False,
        [*START, "--percent", "0.9", "--state", "{a}"],
        2,
        "--state is not valid JSON",
        "--state '",
    ),
    "start: a list": (
        False,
        [*START, "--percent", "0.9", "--state", "[]"],
        2,
        "--state must be a JSON object",
        None,
    ),
    "start: NaN inside": (
        *(False, [*START, "--percent", "0.9", "--state", '{"a": NaN}'], 2),
        *("cannot be serialised as JSON", None),
    ),
    "start: twice": (
        *(True, [*START, "--percent", "0.9"], 3),
        *(
            r"a wind-down is already active: session-\d{8}-\d{6}$",
            "`holdfast winddown finalize`, `discard` or `recover`",
        ),
    ),
    "append: none active": (
        *(False, [*APPEND, "--percent", "0.9"], 1),
        *("no wind-down is active here", "start one with `holdfast winddown start --percent 0.90`"),
    ),
    "append: unknown type": (
        *(True, ["winddown", "append", "dance", "--percent", "0.9"], 2),
        *("unknown action type 'dance'", f"^hint: one of {EVERY_TYPE}$"),
    ),
    "append: percent 91": (True, [*APPEND, "--percent", "91"], 2, FRACTION + "91.0", r"did you mean 0\.91\?"),
    "append: NaN": (True, [*APPEND, "--percent", "nan"], 2, FRACTION + "nan", None),
    "append: no JSON": (
        True,
        [*APPEND, "--percent", "0.9", "--data", "tool"],
        2,
        "--data is not valid JSON",
        "--data '",
    ),
    "append: text": (
        True,
        [*APPEND, "--percent", "0.9", "--data", '"x"'],
        2,
        "--data must be a JSON object",
        None,
    ),
    "append: too deep": (True, [*APPEND, "--percent", "0.9", "--data", "[" * 100_000], 2, "--data", None),
    "append: infinite inside": (
        *(True, [*APPEND, "--percent", "0.9", "--data", '{"a": 1e999}'], 2),
        *("cannot be serialised as JSON", None),
    ),
    "summary: none active": (False, ["winddown", "summary"], 1, "no wind-down is active here", "start one"),
    "finalize: none active": (False, ["winddown", "finalize"], 1, "no wind-down is active here", "start one"),
    "discard: none active": (False, ["winddown", "discard"], 1, "no wind-down is active here", "start one"),
    "finalize: nothing to commit": (
        *(True, ["winddown", "finalize", "--archive-only", "--commit"], 2),
        *("--archive-only makes no snapshot, so there is nothing to --commit", None),
    ),
    "unknown option": (
        True,
        ["winddown", "finalize", "--now"],
        2,
        "No such option:? '?--now",
        "winddown finalize --help",
    ),
    "no subcommand of ours": (True, ["winddown", "stop"], 2, "No such command 'stop'", "winddown --help"),
}


@pytest.mark.parametrize(("active", "arguments", "code", "error", "hint"), WRONG.values(), ids=WRONG.keys())
def test_wrong_input_changes_nothing(
    place: Place, active: bool, arguments: Sequence[str], code: int, error: str, hint: str | None
) -> None:
    if active:
        place.started("tool_call")
    before = place.tree()
    place.run(*arguments).failed(code, error=error, hint=hint)
    assert place.tree() == before


def test_bytes_that_are_no_text_on_stdin(place: Place) -> None:
    place.started()
    before = place.tree()
    result = place.run(
        *APPEND,
        "--percent",
        "0.9",
        "--data",
        "-",
        stdin=b'{"a": "\xff"}',
        env={"PYTHONIOENCODING": "utf-8:strict"},
    )
    result.failed(2, error="--data")
    assert place.tree() == before


def test_a_reason_that_is_no_text_costs_no_pause(place: Place) -> None:
    """An argument is bytes; one that is not UTF-8 must not stand between a user and their pause."""
    name = place.started()
    result = place.run("winddown", "finalize", "-r", b"caf\xe9")
    assert result.code == 0, result
    document = json.loads((place.sessions / f"{name}.json").read_text(encoding="utf-8"))
    assert document["pause_reason"].startswith("caf")


def test_finalize_twice(place: Place) -> None:
    place.started()
    place.ok("winddown", "finalize")
    before = place.tree()
    place.run("winddown", "finalize").failed(1, error="no wind-down is active here")
    assert place.tree() == before


# ── git ────────────────────────────────────────────────────────────────────────────────────


def users_changes(place: Place) -> dict[str, str]:
    return {
        "staged": place.git("diff", "--cached"),
        "unstaged": place.git("diff"),
        "status": place.git("status", "--porcelain"),
    }


def test_commit_takes_the_snapshot_alone(place: Place) -> None:
    for name in ("staged", "changed", "both"):
        (place.project / name).write_text("old\n")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "First")
    for name in ("staged", "both", "new"):
        (place.project / name).write_text("staged\n")
        place.git("add", name)
    for name in ("changed", "both", "untracked"):
        (place.project / name).write_text("not staged\n")
    before = users_changes(place)
    session = place.started("tool_call")

    place.ok("winddown", "finalize", "--commit")

    assert users_changes(place) == before
    assert place.git("log", "--format=%s") == f"Pause {session}\nFirst\n"
    assert place.git("show", "--format=", "--name-only", "HEAD").splitlines() == [
        f".holdfast/sessions/{session}.{kind}" for kind in ("json", "md", "yaml")
    ]
    assert (place.project / "both").read_text() == "not staged\n"


def test_commit_without_a_repository_keeps_the_session(place: Place) -> None:
    """The commit fails; the pause, which came first, does not."""
    folder = place.root / "plain"
    folder.mkdir()
    (folder / ".holdfast").mkdir()
    ceiling = {"GIT_CEILING_DIRECTORIES": str(place.root)}
    place.ok("--project", folder, "winddown", "start", "--percent", "0.9", cwd=folder, env=ceiling)
    result = place.run("winddown", "finalize", "--commit", cwd=folder, env=ceiling)
    result.failed(1, error="is not in a git work tree", hint="git init")
    kept = sorted(path.suffix for path in (folder / ".holdfast" / "sessions").glob("session-*"))
    assert kept == [".json", ".jsonl", ".md", ".yaml"]


TOUR: Sequence[tuple[str, ...]] = (
    ("winddown", "start", "--percent", "0.9", "--json"),
    ("winddown", "append", "tool_call", "--percent", "0.91", "--json"),
    ("winddown", "summary", "--json"),
    ("winddown", "finalize", "--json"),
    ("winddown", "recover", "--json"),
    ("quiet", "on", "--session-id", "a"),
    ("quiet", "status", "--session-id", "a", "--json"),
    ("quiet", "off", "--session-id", "a"),
    ("status", "--json"),
    ("list", "--json"),
    ("list", "--all", "--json"),
    ("snapshot", "list", "--json"),
    ("snapshot", "list", "--all", "--json"),
    ("snapshot", "show", "latest", "--json"),
    ("snapshot", "diff", "latest", "latest", "--json"),
    ("stats", "--json"),
    ("usage", "--json"),
    ("usage", "--session", "a", "--json"),
    ("reindex", "--json"),
    ("snapshot", "delete", "latest", "--json"),
    ("winddown", "start", "--percent", "0.9"),
    ("winddown", "discard"),
)


def test_every_command_keeps_to_its_folders_and_prints_json(place: Place) -> None:
    (place.project / "file").write_text("text\n")
    place.git("add", ".")
    place.git("commit", "--quiet", "-m", "First")
    before = {name: found for name, found in place.tree().items() if not name.startswith("data")}

    results = place.many(*TOUR)

    assert [
        (line, result) for line, result in zip(TOUR, results, strict=True) if result.code or result.err
    ] == []
    documents: list[Any] = [
        result.data for line, result in zip(TOUR, results, strict=True) if line[-1] == "--json"
    ]
    assert all(isinstance(document, dict | list) for document in documents)
    assert place.git("status", "--porcelain") == ""
    after = {
        name: found
        for name, found in place.tree().items()
        if not name.startswith(("data", "project/.holdfast"))
    }
    assert after == before


def test_a_folder_that_is_no_repository(place: Place) -> None:
    folder = place.root / "plain"
    folder.mkdir()
    ceiling = {"GIT_CEILING_DIRECTORIES": str(place.root)}
    place.ok("winddown", "start", "--percent", "0.9", cwd=folder, env=ceiling)
    name = place.json("winddown", "finalize", cwd=folder, env=ceiling)["session_id"]
    document = json.loads((folder / ".holdfast" / "sessions" / f"{name}.json").read_text())
    assert document["git_state"] is None
    assert [path for path in tree_of(folder) if not path.startswith(".holdfast")] == []


def test_a_folder_whose_name_is_no_text(place: Place) -> None:
    other = Place(place.root, "caf\udce9")
    *done, status = other.many(
        ["winddown", "start", "--percent", "0.9"], ["winddown", "finalize"], ["status", "--json"]
    )
    assert [(result.code, result.err) for result in done] == [(0, "")] * 2
    assert status.data["workflow"]["status"] == "paused"


def test_from_a_folder_inside_the_project(place: Place) -> None:
    inside = place.project / "src" / "deep"
    inside.mkdir(parents=True)
    place.ok("winddown", "start", "--percent", "0.9", cwd=inside)
    assert place.journal.exists()
    assert list(inside.iterdir()) == []


def test_twenty_pauses_in_a_row(place: Place) -> None:
    pause = (("winddown", "start", "--percent", "0.9", "--json"), ("winddown", "finalize", "--json"))
    results = place.many(*pause * 20)
    assert {result.code for result in results} == {0}
    names = [result.data["session_id"] for result in results[1::2]]
    assert len(set(names)) == 20
    assert [line["session_id"] for line in place.json("snapshot", "list")] == names
    assert place.latest() == f"{names[-1]}\n"
    assert len(list(place.sessions.glob("session-*"))) == 80


# ── what was recorded is handed over ────────────────────────────────────────────────────────────

NEVER = "never touch migrations/, whatever the tests say"


def wind_down(place: Place, *actions: tuple[str, dict[str, Any]], state: str = "{}", **options: str) -> str:
    place.ok("winddown", "start", "--percent", "0.90", "--state", state)
    for kind, data in actions:
        place.ok("winddown", "append", kind, "--data", json.dumps(data), "--percent", "0.91")
    given = [word for name, value in options.items() for word in (f"--{name}", value)]
    return place.ok("winddown", "finalize", *given).out.split()[1]


def test_what_was_recorded_is_in_the_context(place: Place) -> None:
    wind_down(
        place,
        ("user_message", {"text": "Port the CSV import next"}),
        ("user_message", {"text": NEVER}),
        (
            "tool_call",
            {"tool": "Bash", "input": {"command": "make test"}, "response": {"stdout": "3 failed"}},
        ),
        ("assistant_response", {"decision": "keep the old lexer", "because": "it is fast"}),
        ("system_event", {"event": "rate limit", "detail": "the model was away"}),
        state='{"goal": "a parser without recursion", "model": "claude-sonnet-4-5"}',
    )
    context = place.ok("context", "latest").out
    told = [line.removeprefix("- ") for line in context.splitlines() if line.startswith("- ")]
    recorded = [line for line in told if "while winding down" in line]
    assert set(recorded) == {
        f'Said while winding down: "{NEVER}"',
        'Said while winding down: "Port the CSV import next"',
        "Recorded while winding down (4 of 4, the newest): event: the model was away; event: rate limit",
        "Recorded while winding down (3 of 4): agent: decision: keep the old lexer; because: it is fast",
        "Recorded while winding down (2 of 4): Bash (command: make test): stdout: 3 failed",
        "Recorded while winding down (1 of 4): at the start: goal: a parser without recursion",
    }
    assert "{" not in context
    for budget in ("200", "900", "5000"):
        shorter = place.ok("context", "latest", "--max-chars", budget).out
        assert len(shorter) <= int(budget)
        assert NEVER in shorter


def test_what_was_recorded_stands_beside_what_the_transcript_tells(place: Place) -> None:
    transcript = place.root / "s.jsonl"
    transcript.write_bytes(
        file_of(typed("Build a shed", uuid="u", parentUuid=None, sessionId="s-9"), said("Done."))
    )
    wind_down(
        place,
        ("user_message", {"text": "Build a shed"}),
        ("user_message", {"text": NEVER}),
        ("assistant_response", {"text": "The frame is oak."}),
        transcript=str(transcript),
    )
    context = place.ok("context", "latest").out
    assert NEVER in context
    assert "The frame is oak." in context
    assert context.count("Build a shed") == 1


def test_what_has_no_room_is_in_the_report(place: Place) -> None:
    manager = place.manager()
    manager.start_incremental_pause(0.9, {})
    manager.append_action("user_message", {"text": NEVER}, 0.9)
    for number in range(300):
        manager.append_action("user_message", {"text": f"wish {number} " + "and more of it " * 20}, 0.91)
        manager.append_action("tool_call", {"tool": "Read", "path": f"file{number}.py"}, 0.91)
    assert manager.finalize_pause()
    done = place.ok("context", "latest", "--json").data
    context = done["context"]
    assert NEVER in context
    assert "wish 299 " in context
    found = {one["category"]: one for one in done["fidelity"]["categories"]}
    wishes, actions = found["recorded user messages"], found["recorded actions"]
    assert wishes["carried"] + wishes["left_out"] == 301
    assert actions["carried"] + actions["left_out"] == 300
    assert "recorded user messages" in context.splitlines()[-1]
    assert "wish 3 " in place.ok(*wishes["fetch"].split()[1:]).out


# ── and resuming it is reading it ───────────────────────────────────────────────────────────────


def test_resuming_a_wound_down_session_shows_its_handover(place: Place) -> None:
    name = wind_down(place, ("user_message", {"text": NEVER}))
    context = place.ok("context", "latest").out
    resumed = place.run("resume")
    assert (resumed.code, resumed.out) == (0, context)
    assert NEVER in resumed.out
    assert resumed.err == f"Resumed {name}. There is no plan to run. Continue from this context:\n"
    assert [flow["status"] for flow in place.ok("list", "--json").data] == ["paused"]
    again = place.run("resume", "--detach", "--message", "after lunch")
    assert (again.code, again.out) == (0, f"New message from the user: after lunch\n\n{context}")
    assert again.err.startswith(f"Resumed {name} again; previously at 20")
    told = place.ok("resume", "--json").data
    assert (told["status"], told["handover"]["context"]) == ("paused", context)
    assert told["handover"]["session_id"] == name
    assert told["handover"]["taken_up_before"]
    assert place.ok("context", "latest").out == context
    kinds = [event["entry"]["type"] for event in place.ok("events", told["id"], "--json").data]
    assert kinds.count("handover_taken_up") == 3
    assert "workflow_resumed" not in kinds


def test_after_a_taken_up_handover_the_next_pause_goes_on_in_the_same_workflow(place: Place) -> None:
    wind_down(place, ("user_message", {"text": NEVER}))
    assert place.run("resume").code == 0
    name = wind_down(place, ("user_message", {"text": "Now the docs"}))
    assert place.ok("context", "latest").out == place.run("resume").out
    shown = place.ok("snapshot", "show", name, "--json").data
    assert shown["session_number"] == 2


def test_a_session_whose_snapshot_was_deleted_cannot_be_resumed(place: Place) -> None:
    name = wind_down(place, ("user_message", {"text": NEVER}))
    place.ok("snapshot", "delete", name, "--yes")
    place.run("resume").failed(1, error="nothing to resume", hint="holdfast cancel")


def test_half_a_character_stands_in_nobodys_way(place: Place) -> None:
    """A text that was cut in the middle of an emoji."""
    place.ok("winddown", "start", "--percent", "0.9")
    place.ok(
        "winddown",
        "append",
        "user_message",
        "--data",
        r'{"text": "half \ud83d, whole \ud83d\ude00"}',
        "--percent",
        "0.91",
    )
    place.ok("winddown", "finalize", "--reason", "cut")
    assert "half ?, whole 😀" in place.ok("context", "latest").out


def test_who_works_beside_a_plan_neither_stops_it_nor_takes_it_up(place: Place) -> None:
    shop = Workshop(place, str(place.database))
    task = "touch began; until [ -e go ]; do sleep 0.05; done; echo once >> log"
    (place.root / "plan.yaml").write_text(
        f"issue: {{id: A, title: Run it}}\npause_every: 1\ntasks:\n  - {{id: t1, run: '{task}'}}\n"
        "  - {id: t2, run: 'true'}\n"
    )
    with shop.program("run", str(place.root / "plan.yaml")) as running:
        wait_for((place.project / "began").exists)
        beside = place.paused("tool_call")
        assert sorted(flow["status"] for flow in place.json("list")) == ["in_progress", "paused"]
        (place.project / "go").touch()
        assert running.wait(60) == 0
    place.paused("tool_call")
    assert (place.project / "log").read_text() == "once\n"
    plan, *_, other = sorted(place.json("threads"), key=lambda one: not one["issue"])
    assert beside in [name for one in place.json("threads") if not one["issue"] for name in one["sessions"]]
    flows = {flow["id"]: flow["session_count"] for flow in place.json("list")}
    assert flows == {plan["workflow_id"]: 1, other["workflow_id"]: 2}
    resumed = place.run("resume", "--yes")  # what can be run is meant, and the other is named
    assert "completed" in resumed.out
    assert "holdfast threads" in resumed.err


def test_a_wind_down_that_was_resumed_is_marked_as_taken_up(place: Place) -> None:
    place.paused("tool_call", reason="lunch")
    assert place.json("status")["workflow"]["taken_up_at"] is None
    assert "taken up" not in place.ok("status").out + place.ok("threads").out
    assert place.run("resume").code == 0
    told = place.json("status")["workflow"]
    (thread,) = place.json("threads")
    assert told["taken_up_at"]
    assert thread["taken_up_at"] == told["taken_up_at"]
    assert "; taken up " in place.ok("status").out
    assert "; taken up " in place.ok("threads").out
    assert (told["status"], thread["status"]) == ("paused", "open")
