"""What holds with all four agents alike."""

from __future__ import annotations

import json
import re
from pathlib import Path

from agents.driver import Driver
from agents.fakes.turns import Seen, Tokens, Turn, say
from agents.workshop import wait_for


def test_usage_is_right_to_the_token_and_the_journal_starts_at_90_percent(agent: Driver) -> None:
    full = agent.nearly_full
    # Gemini CLI compacts at half of its window; from far below, Claude Code's usage may be read a tool late.
    below = Tokens(input=1_011, output=7, cache_read=agent.window // (3 if agent.name == "gemini" else 2))
    agent.model.then(
        agent.shell("echo first", below),
        agent.shell("echo second", full),
        agent.shell("echo third", full),
        say("All done.", full),
    )
    run = agent.ask("Do three things")
    assert run.answer == "All done."
    snapshot = agent.workshop.settled()
    assert agent.workshop.usage(run.session_id) == agent.counted(full)
    assert agent.workshop.holdfast_json("usage")[0]["context_window"] == agent.window
    # The advice comes with the first tool result after the level was known to be crossed, and once.
    told = [seen.text.count("Wrap up now") for seen in agent.model.main]
    late = agent.may_tell_usage_late and told == [0, 0, 0, 1]
    assert late or told == [0, 0, 1, 1]
    kinds = [action["type"] for action in _journal(agent)]
    assert kinds[0] == "pause_started"
    assert kinds.count("tool_call") == (1 if late else 2)
    assert snapshot["incremental_pause"]["tool_calls"] == kinds.count("tool_call")


def _journal(agent: Driver) -> list[dict[str, str]]:
    archive = next((agent.workshop.project / ".holdfast" / "sessions").glob("*-incremental.jsonl"))
    return [json.loads(line) for line in archive.read_text().splitlines()]


def test_a_new_session_starts_with_the_context_of_the_last(agent: Driver) -> None:
    agent.model.then(agent.shell("echo 4711 > magic.txt"), say("The magic number is 4711."))
    first = agent.ask("Find the magic number; never touch vendor/")
    agent.workshop.settled()
    agent.model.then(say("Going on."))
    second = agent.ask("Go on")
    assert second.session_id != first.session_id
    context = _injected(agent.model.main[-1])
    assert "Find the magic number; never touch vendor/" in context
    assert "The magic number is 4711." in context
    assert len(context) <= agent.most_injected + 200


def _injected(request: Seen) -> str:
    """The piece of the request that holds the resume context; the agent wraps it in a few words."""
    return next(piece for piece in request.pieces if "[holdfast] Work in this folder" in piece)


def test_what_a_turn_changed_is_recorded_and_can_be_taken_back(agent: Driver) -> None:
    project = agent.workshop.project
    # A scripted model answers sooner than any real one; nothing is to change before the look is over.
    looked = "while ls .holdfast/state/hooks/*/turning; do sleep 0.1; done >/dev/null 2>&1"
    agent.model.then(agent.shell(f"{looked}; echo made > made.txt; echo more >> README.md"), say("Done."))
    agent.ask("Change two files")

    notes = project / ".holdfast" / "state" / "hooks"
    pending = ("turning", "recording", "ending")
    wait_for(
        lambda: not any(path.name in pending for path in notes.glob("*/*")), told=agent.workshop.hook_errors
    )
    (transaction,) = agent.workshop.holdfast_json("tx", "list")
    assert transaction["files"] == ["README.md", "made.txt"]
    agent.workshop.holdfast("tx", "rollback", transaction["id"], "--yes").check()
    assert not (project / "made.txt").exists()
    assert (project / "README.md").read_text() == "# A project to work in\n"


def test_a_killed_session_is_found_and_offered_at_the_next_start(agent: Driver) -> None:
    agent.model.then(agent.shell("echo half > half.txt; touch started; sleep 20"))
    started = agent.start("Begin something long")
    wait_for((agent.workshop.project / "started").exists)
    started.kill_agent()
    agent.model.then(say("I see."))
    agent.ask("What happened?")
    request = agent.model.main[-1].text
    assert "Work in this folder was paused" in request
    assert "Begin something long" in request
    assert "sleep 20" in request  # the call that was cut off
    assert "half.txt" in request  # what it was writing
    assert json.loads(agent.workshop.sessions[0].read_text())["trigger"] == "crash"
    started.kill_all()


def test_a_guard_blocks_what_would_delete_the_home(agent: Driver) -> None:
    """It is the throw-away one: a guard that failed would cost nothing."""
    treasure = agent.workshop.home / "treasure"
    treasure.write_text("gold")
    agent.model.then(agent.shell(f"rm -rf {agent.workshop.home}/"), say("It was refused."))
    run = agent.ask("Clean up")
    assert run.answer == "It was refused."
    assert "this command was blocked" in agent.model.main[-1].text
    assert treasure.exists()


def test_two_sessions_in_one_folder_do_not_mix(agent: Driver) -> None:
    few = Tokens(input=1_100, output=11, cache_read=5_000)
    full = agent.nearly_full

    def by_prompt(request: Seen) -> Turn:
        is_full = "I am the full one" in request.text
        tokens = full if is_full else few
        wait = "touch {0}; for i in $(seq 2000); do [ -e {1} ] && break; sleep 0.1; done; echo $((40+2))met"
        command = wait.format("full", "roomy") if is_full else wait.format("roomy", "full")
        has_met = request.text.count("42met") >= 2
        return say("Done.", tokens) if has_met else agent.shell(command, tokens)

    agent.model.then(*[by_prompt] * 12)
    agent.before_two_at_once()
    started = [agent.start("I am the full one"), agent.start("I have room")]
    first, second = (agent.run_class(one.end()).session_id for one in started)
    assert agent.workshop.usage(first) == agent.counted(full)
    assert agent.workshop.usage(second) == agent.counted(few)
    advised = {"I am the full one" in seen.text: "Wrap up now" in seen.text for seen in agent.model.main}
    assert advised == {True: True, False: False}
    agent.workshop.settled(2)
    begun = _journal(agent)[0]
    assert begun["data"]["initial_state"]["agent_session"] == first  # type: ignore[index]


def test_a_session_gone_on_with_keeps_its_books(agent: Driver) -> None:
    agent.model.then(say("Hello.", Tokens(input=1_100, output=11)), say("Hello again.", agent.nearly_full))
    first = agent.ask("Hello")
    second = agent.go_on(first.session_id, "Hello again")
    assert second.session_id == first.session_id
    # A last answer may reach the agent's own file after its last hook: what settles the session reads it.
    wait_for(lambda: agent.workshop.usage(first.session_id) == agent.counted(agent.nearly_full))


def test_damaged_state_holds_nobody_up(agent: Driver) -> None:
    agent.model.then(agent.shell("echo one", agent.nearly_full), say("Done."))
    agent.ask("Do one thing")
    agent.workshop.settled()
    for path in (agent.workshop.project / ".holdfast").rglob("*"):
        if path.is_file() and path.name != ".gitignore":
            path.write_bytes(b"\x00{not what it was")
    _one_tool_works(agent)


def test_a_folder_that_cannot_be_made_holds_nobody_up(agent: Driver) -> None:
    (agent.workshop.project / ".holdfast").write_text("in the way")
    _one_tool_works(agent)


def test_a_full_disk_holds_nobody_up(agent: Driver) -> None:
    folder = agent.workshop.project / ".holdfast"
    folder.mkdir()
    with agent.workshop.tiny_disk(folder):
        _one_tool_works(agent)


def test_hooks_of_a_program_that_is_gone_hold_nobody_up(agent: Driver) -> None:
    """As after `pip uninstall holdfast`, with the hooks left behind."""
    changed = 0
    for path in agent.workshop.home.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".js"):
            changed += _point_nowhere(path)
    assert changed
    _one_tool_works(agent)
    assert not (agent.workshop.project / ".holdfast").exists()


def _point_nowhere(path: Path) -> int:
    text = path.read_text()
    moved = re.sub(r"/[^\s\"']+(?=/holdfast/hooks/(?:hook\.sh|entry\.py))", "/gone", text)
    path.write_text(moved)
    return moved != text


def _one_tool_works(agent: Driver) -> None:
    agent.model.then(agent.shell("echo works > it.txt", agent.nearly_full), say("Done.", agent.nearly_full))
    assert agent.ask("Do it").answer == "Done."
    assert (agent.workshop.project / "it.txt").read_text() == "works\n"
