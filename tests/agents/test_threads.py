"""Which work a real agent's new session is told of."""

from __future__ import annotations

import re
import sys
from functools import partial

import pytest

from agents.claude_code import ClaudeCode
from agents.driver import Driver
from agents.fakes.turns import Seen, Turn, say
from agents.workshop import wait_for

COMMIT = "git -c user.name=A -c user.email=a@b.c commit -q"


def _told(agent: Driver) -> str:
    """What Holdfast says in the newest request of a session that has just begun."""
    return "".join(re.findall(r"\[holdfast\](?:.|\n)*", agent.model.main[-1].text))


def _ask(agent: Driver, prompt: str, *turns: Turn, count: int) -> None:
    """A whole session, until its snapshot is there; `count` are all so far."""
    agent.model.then(*turns)
    agent.ask(prompt)
    agent.workshop.settled(count)


def test_a_session_that_only_asked_hides_no_work(agent: Driver) -> None:
    _ask(agent, "Write a.txt and say 4711", agent.shell("echo a > a.txt"), say("4711 is in."), count=1)
    _ask(agent, "Which day is it?", say("It is Monday."), count=2)
    agent.model.then(say("I see."))
    agent.ask("Go on")
    assert "Write a.txt and say 4711" in _told(agent)
    assert "Which day is it" not in _told(agent)


def test_of_finished_work_the_next_session_reads_one_line(agent: Driver) -> None:
    done = agent.shell(f"echo a > a.txt; git add a.txt; {COMMIT} -m 'Add a'")
    _ask(agent, "Write the file a.txt and commit it", done, say("Done: a.txt is committed."), count=1)
    agent.model.then(say("I see."))
    agent.ask("What is next here?")
    told = _told(agent)
    assert told.startswith(
        "[holdfast] The last session in this folder left nothing open, as far as its record shows: "
    )
    assert "# Handover" not in told


def test_three_threads_on_two_branches(claude: ClaudeCode) -> None:
    for count, name in enumerate(("one", "two"), 1):
        _ask(
            claude,
            f"Write the module {name}.txt for me",
            claude.shell(f"echo > {name}.txt"),
            say("Half of it."),
            count=count,
        )
    claude.workshop.run(["git", "checkout", "-qb", "feature"]).check()  # what is committed would be finished
    _ask(
        claude,
        "Write the module three.txt for me",
        claude.shell("echo > three.txt"),
        say("Half of it."),
        count=3,
    )
    claude.model.then(say("I see."))
    claude.ask("Go on")
    assert "Write the module three.txt for me" in _told(claude)
    assert "# Handover" in _told(claude)
    claude.workshop.run(["git", "checkout", "-q", "main"]).check()
    claude.model.then(say("I see."))
    claude.ask("Go on")
    told = _told(claude)
    assert "# Handover" not in told
    assert [name for name in ("one", "two", "three") if f"module {name}.txt" in told] == [
        "one",
        "two",
        "three",
    ]
    listed = claude.workshop.holdfast_json("threads")
    assert [one["branch"] for one in listed].count("feature") == 1


def _kept(agent: Driver, count: int) -> bool:
    return len(agent.workshop.sessions) == count


@pytest.mark.parametrize("part", range(4))
def test_sessions_that_end_together_are_all_kept(claude: ClaudeCode, part: int) -> None:
    """Two at a time, twenty times in all; in parts, so that several run side by side."""

    def by_prompt(request: Seen) -> Turn:
        (name,) = set(re.findall(r"Write the module (\w+)\.txt for me", request.text.rpartition("ASKED")[2]))
        made = f"made-{name}"
        return (
            say("Half of it.")
            if made in request.text
            else claude.shell(f"echo > {name}.txt; echo ma''de-{name}")
        )

    names: list[str] = []
    for number in range(5 * part, 5 * part + 5):
        pair = [f"left{number}", f"right{number}"]
        names += pair
        claude.model.then(*[by_prompt] * 4)
        started = [claude.start(f"ASKED: Write the module {name}.txt for me") for name in pair]
        for one in started:
            one.end().check()
        wait_for(partial(_kept, claude, len(names)), told=claude.workshop.hook_errors)
    wait_for(
        lambda: len(claude.workshop.holdfast_json("threads")) == len(names), told=claude.workshop.hook_errors
    )
    titles = {one["title"] for one in claude.workshop.holdfast_json("threads")}
    assert titles == {f"ASKED: Write the module {name}.txt for me" for name in names}
    claude.model.then(say("I see."))
    claude.ask("Go on")
    assert all(f"module {name}.txt" in _told(claude) for name in names[-2:])


def test_a_conversation_that_goes_on_is_told_only_what_changed(claude: ClaudeCode) -> None:
    claude.model.then(claude.shell("echo > a.txt"), say("Half of it."))
    session = claude.ask("Write the module a.txt for me").session_id
    claude.workshop.settled()
    (claude.workshop.project / "README.md").write_text("# Changed by the user\n")
    claude.model.then(say("I see."))
    claude.go_on(session, "Go on")
    assert "Changed on disk since the pause: README.md" in _told(claude)
    assert "# Handover" not in _told(claude)


def test_an_agent_hands_over_in_its_own_words(claude: ClaudeCode) -> None:
    words = "Now: run make numbers.\\nState: half of it."
    note = f"printf '{words}' | {sys.executable} -m holdfast note handover"
    claude.model.then(claude.shell("echo > a.txt"), claude.shell(note), say("Handed over."))
    run = claude.ask("Write the module a.txt for me")
    assert "Handover noted for session" in run.tool_results[-1]
    assert "make numbers" in claude.workshop.settled()["handover"]
    claude.model.then(say("I see."))
    claude.ask("Go on")
    assert "Now: run make numbers." in _told(claude)
