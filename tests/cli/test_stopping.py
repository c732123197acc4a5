"""What a context says of where the session stopped: as the record of each agent tells, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transcripts import claude_files as claude
from transcripts import gemini_files as gemini
from transcripts import opencode_files as opencode
from transcripts.codex_files import Rollout, ran

from .harness import Place

ASKED_FOR = "Oil the hinge"
CLOSING = "The hinge is oiled, and all tests pass."
QUESTION = "Shall I paint the door, too?"
LIMIT = "You've hit your limit · resets 3pm"

STOPPED = {
    "answered": "- Stopped: the agent had finished its turn; nothing was running.",
    "asked": f'- Stopped: the agent has asked the user and has no answer yet: "{QUESTION}".',
    "spoke": "- Stopped: the record ends with the agent's words; whether its turn was over is not recorded.",
    "in flight": "- Stopped: `make oil` was called; no result is recorded.",
    "working": "- Stopped: in mid-task.",
    "unanswered": "- Stopped: the user's latest message is not acted on yet.",
    "stopped": "- Stopped: the user stopped the agent.",
    "failed": f'- Stopped: the agent\'s program ended the turn with "{LIMIT}".',
}
NEXT = {
    "answered": "- Next: wait for the user; the agent's last words say how it left the latest request.",
    "asked": "- Next: wait for the user's answer.",
    "spoke": "- Next: wait for the user; the agent's last words say how it left the latest request.",
    "in flight": "- Next: run `make oil` again if it only checks; otherwise look first at what it has done.",
    "working": "- Next: ",
    "unanswered": "- Next: do what the user wrote last",
    "stopped": "- Next: do what the user wrote last",
    "failed": "- Next: go on with that goal from the last step.",
}


def ended(text: str, **fields: Any) -> dict[str, Any]:
    line = claude.said(text, **fields)
    line["message"]["stop_reason"] = "end_turn"
    return line


def synthetic(text: str, **fields: Any) -> dict[str, Any]:
    line = ended(text, **fields)
    line["message"]["model"] = "<synthetic>"
    return line


RUNNING = claude.called("c1", "Bash", command="make oil")
RAN = claude.answered("c1", "oiled")
REFUSED = claude.answered("c1", "The user doesn't want to proceed with this tool use.", error=True)
INTERRUPTED = claude.typed("[Request interrupted by user]")
HOOK_SUMMARY = {"type": "system", "subtype": "stop_hook_summary"}

CLAUDE: tuple[tuple[str, list[dict[str, Any]]], ...] = (
    ("answered", [ended(CLOSING)]),
    ("answered", [RUNNING, RAN, claude.said(CLOSING), HOOK_SUMMARY]),
    ("answered", [ended(CLOSING), claude.typed("<command-name>/exit</command-name>")]),
    ("answered", [ended(CLOSING), claude.typed('{"task_id":"b1","status":"completed"}')]),
    ("asked", [ended(f"{CLOSING} {QUESTION}")]),
    ("asked", [claude.said(f"{CLOSING}\n\n**{QUESTION}**\n\n1. Red\n2. Blue")]),
    ("asked", [claude.called("c1", "AskUserQuestion", questions=[{"question": QUESTION, "options": []}])]),
    ("spoke", [claude.said(CLOSING)]),
    ("in flight", [ended("Well."), claude.typed("Go"), RUNNING]),
    ("in flight", [RUNNING, claude.called("c2", "Read", file_path="/p/a"), claude.answered("c2", "a")]),
    ("working", [RUNNING, RAN]),
    ("working", [claude.called("c1", "Bash", command="holdfast handoff --to codex")]),
    (
        "working",
        [
            *(
                RUNNING,
                claude.called("c2", "Bash", command="make paint"),
                claude.answered("c1", "no", error=True),
            ),
            claude.answered("c2", "<tool_use_error>Sibling tool call errored</tool_use_error>", error=True),
        ],
    ),
    ("unanswered", [RUNNING, RAN, claude.typed(ASKED_FOR)]),
    ("unanswered", [RUNNING, claude.typed(ASKED_FOR), RAN]),
    ("unanswered", [INTERRUPTED, synthetic("No response requested."), claude.typed("Go on")]),
    ("stopped", [RUNNING, REFUSED, claude.typed("[Request interrupted by user for tool use]")]),
    ("stopped", [RUNNING, RAN, INTERRUPTED]),
    ("failed", [RUNNING, RAN, synthetic(LIMIT, isApiErrorMessage=True), HOOK_SUMMARY]),
)
CODEX = (
    ("answered", Rollout().prompt(ASKED_FOR).says(CLOSING).used("r1", 10).event("task_complete")),
    ("asked", Rollout().prompt(ASKED_FOR).says(QUESTION).event("task_complete")),
    ("spoke", Rollout().prompt(ASKED_FOR).says(CLOSING)),
    ("in flight", Rollout().prompt(ASKED_FOR).calls("exec_command", {"cmd": "make oil"}, "c1")),
    (
        "working",
        Rollout().prompt(ASKED_FOR).calls("exec_command", {"cmd": "x"}, "c1").answers("c1", ran(0, "x")),
    ),
    ("unanswered", Rollout().prompt(ASKED_FOR)),
    (
        "stopped",
        Rollout()
        .prompt(ASKED_FOR)
        .calls("exec_command", {"cmd": "make oil"}, "c1")
        .prompt("<turn_aborted>\nThe user interrupted the turn.", kind=None)
        .event("turn_aborted", reason="interrupted"),
    ),
    ("failed", Rollout().prompt(ASKED_FOR).event("error", message=LIMIT).event("task_complete")),
)
OILED = gemini.tool("c1", "run_shell_command", {"command": "make oil"}, output="Output: oiled")
GEMINI = (
    ("asked", [gemini.gemini("m1", QUESTION)]),
    ("spoke", [gemini.gemini("m1", CLOSING)]),
    ("working", [gemini.gemini("m1", toolCalls=[OILED])]),
    ("unanswered", []),
    ("stopped", [{"id": "n1", "type": "info", "content": "Request cancelled."}]),
)
OPENCODE: tuple[tuple[str, list[dict[str, Any]], dict[str, Any]], ...] = (
    ("answered", [opencode.text(CLOSING)], {"finish": "stop"}),
    ("asked", [opencode.text(QUESTION)], {"finish": "stop"}),
    ("spoke", [opencode.text(CLOSING)], {}),
    ("in flight", [opencode.tool("bash", "c1", "running", input={"command": "make oil"})], {}),
    ("working", [opencode.shell("c1", "make oil", "oiled", 0)], {"finish": "tool-calls"}),
    ("stopped", [opencode.text("I oil")], {"error": {"name": "MessageAbortedError"}}),
    ("failed", [], {"error": {"data": {"message": LIMIT}}}),
)


def files(folder: Path) -> list[tuple[str, str, Path]]:
    """What is to be said, the agent, and its session file."""
    found: list[tuple[str, str, Path]] = []

    def keep(kind: str, agent: str, data: bytes | None = None) -> Path:
        path = folder / f"{agent}-{len(found)}"
        found.append((kind, agent, path))
        if data is not None:
            path.write_bytes(data)
        return path

    for kind, lines in CLAUDE:
        keep(kind, "claude-code", claude.file_of(claude.typed(ASKED_FOR), *lines))
    for kind, rollout in CODEX:
        keep(kind, "codex", rollout.data)
    for kind, records in GEMINI:
        keep(kind, "gemini", gemini.Log().say(gemini.user("u1", ASKED_FOR), *records).data)
    for kind, parts, info in OPENCODE:
        database = opencode.Database(keep(kind, "opencode")).session()
        database.message("user", opencode.text(ASKED_FOR))
        database.message("assistant", *parts, **info)
    return found


def test_the_first_lines_and_the_next_step_say_how_it_ended(place: Place) -> None:
    cases = files(place.root)
    results = place.many(
        *(["context", "--transcript", str(path), "--agent", agent] for _, agent, path in cases)
    )
    for (kind, agent, path), result in zip(cases, results, strict=True):
        assert result.code == 0, (path.name, result)
        case = (kind, agent, path.name, result.out)
        lines = result.out.split("\n")
        now = lines[lines.index("## Now") + 1 : lines.index("## Now") + 6]
        assert now[0].startswith("- Goal: "), case
        assert any(line.startswith(STOPPED[kind]) for line in now), case
        assert any(line.startswith(NEXT[kind]) for line in now), case
        assert "inish the latest request" not in result.out, case
        assert "cut off" not in result.out, case


def test_the_call_without_a_result_is_named(place: Place) -> None:
    path = place.root / "killed.jsonl"
    path.write_bytes(claude.file_of(claude.typed(ASKED_FOR), RUNNING))
    for size in ("9500", "900"):
        told = place.ok("context", "--transcript", path, "--max-chars", size).out
        assert STOPPED["in flight"] in told
        assert NEXT["in flight"] in told


def test_the_agents_last_words_are_its_last(place: Place) -> None:
    path = place.root / "short.jsonl"
    lines = [claude.said("I am going to push the branch to its remote now."), RUNNING, RAN, ended("Pushed.")]
    path.write_bytes(claude.file_of(claude.typed("push it"), *lines, synthetic("No response requested.")))
    assert 'The agent\'s last words: "Pushed."' in place.ok("context", "--transcript", path).out


def test_what_is_left_of_the_plan_is_told_but_is_no_order(place: Place) -> None:
    todos = [{"content": "Paint the door", "status": "pending"}]
    planned = [claude.called("c9", "TodoWrite", todos=todos), claude.answered("c9", "ok")]
    path = place.root / "planned.jsonl"
    path.write_bytes(claude.file_of(claude.typed(ASKED_FOR), *planned, ended(CLOSING)))
    told = place.ok("context", "--transcript", path).out
    assert "- Next: wait for the user; still open in the agent's plan: Paint the door." in told
    for last in (RUNNING, claude.said("Next comes the paint.")):
        path.write_bytes(claude.file_of(claude.typed(ASKED_FOR), *planned, last))
        told = place.ok("context", "--transcript", path).out
        assert 'ake up the next task of the plan, "Paint the door".' in told
        assert "ait for the user" not in told


def test_a_compaction_with_nothing_behind_it_is_said(place: Place) -> None:
    path = place.root / "compacted.jsonl"
    summary = claude.typed("<summary>A door was hung.</summary>", isCompactSummary=True)
    path.write_bytes(claude.file_of(claude.typed(ASKED_FOR), ended(CLOSING), summary))
    told = place.ok("context", "--transcript", path).out
    assert f"{STOPPED['answered']} The window had just been compacted." in told


def test_a_request_that_was_taken_back_is_not_the_latest(place: Place) -> None:
    rollout = Rollout().prompt(ASKED_FOR).says("I oil.").prompt("Burn the shed").says("No.")
    path = place.root / "rollout-back.jsonl"
    path.write_bytes(rollout.event("thread_rolled_back", num_turns=1).data)
    told = place.ok("context", "--transcript", path).out
    assert f'Goal: "{ASKED_FOR}"' in told
    assert "Burn the shed" not in told
    assert "how it ended is not recorded." in told


# ── commits ────────────────────────────────────────────────────────────────────────────────


def test_head_is_no_commit_that_the_session_made(place: Place) -> None:
    place.git("commit", "--quiet", "--allow-empty", "-m", "Before")
    head = place.git("rev-parse", "HEAD").strip()
    place.paused("tool_call")
    told = place.ok("context", "latest").out
    assert f"HEAD at the pause: `{head[:12]}`" in told
    assert "Commits of" not in told


@pytest.mark.parametrize(
    ("command", "printed", "made"),
    [
        ("git commit -m b", "[main bbbbbbb] b", ["aaaaaaa", "bbbbbbb"]),
        ("git add . && git commit --amend --no-edit", "[main bbbbbbb] a", ["bbbbbbb"]),
        ("git commit -q --amend --no-edit", "", []),
        ("git reset --soft HEAD~1", "", []),
        ("git -C shop reset HEAD^", "", []),
        ("git reset --hard HEAD~ && git commit -m b", "[main bbbbbbb] b", ["bbbbbbb"]),
        ("git reset HEAD door.py", "", ["aaaaaaa"]),
    ],
)
def test_a_commit_that_was_undone_was_not_made(
    place: Place, command: str, printed: str, made: list[str]
) -> None:
    path = place.root / "git.jsonl"
    lines = [
        claude.called("g1", "Bash", command="git commit -m a"),
        claude.answered("g1", "[main aaaaaaa] a"),
        claude.called("g2", "Bash", command=command),
        claude.answered("g2", printed),
    ]
    path.write_bytes(claude.file_of(claude.typed("commit it"), *lines))
    told = place.ok("context", "--transcript", path).lines
    listed = next((line for line in told if line.startswith("- Commits of this session")), "")
    assert [name for name in ("aaaaaaa", "bbbbbbb") if name in listed] == made


GOES_ON = "do what the agent said it would do next, unless it is done"
LEFT = "wait for the user; the agent called this left"


@pytest.mark.parametrize(
    ("last", "following"),
    [
        ("Next I will write the header in csv1.py.", GOES_ON),
        ("Now I still have to write the docs.", GOES_ON),
        ("The docs are still missing.", LEFT),
        ("I will do the docs next if you agree.", LEFT),
    ],
)
def test_what_an_agent_named_as_left_is_next(place: Place, last: str, following: str) -> None:
    path = place.root / "left.jsonl"
    path.write_bytes(claude.file_of(claude.typed(ASKED_FOR), RUNNING, RAN, ended(f"Oiled. {last}")))
    assert f'- Next: {following}: "{last}".\n' in place.ok("context", "--transcript", path).out


def test_nothing_left_is_nothing_to_do(place: Place) -> None:
    path = place.root / "done.jsonl"
    path.write_bytes(claude.file_of(claude.typed(ASKED_FOR), RUNNING, RAN, ended("Nothing remains to do.")))
    assert f"{NEXT['answered']}\n" in place.ok("context", "--transcript", path).out
