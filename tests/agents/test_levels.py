"""With several models of each agent: levels are told before that agent compacts on that model, and used."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from agents.codex import Codex
from agents.conftest import Meet
from agents.driver import Driver
from agents.fakes.turns import Seen, Tokens, Turn, say
from agents.opencode import OpenCode
from agents.workshop import wait_for

WORDS = "Now: run make numbers. State: half of it."
NOTE = f"printf '%s' '{WORDS}' | {sys.executable} -m holdfast note handover"
MODELS = {
    "claude-code": {
        "claude-opus-4-6": 167_000,
        "claude-sonnet-4-6": 167_000,
        "claude-sonnet-4-5-20250929": 200_000,
    },
    "codex": {"gpt-5.5": 90_000, "gpt-5.4": 90_000, "scripted": 90_000},
    "gemini": {"gemini-2.5-pro": 524_288, "gemini-2.5-flash": 524_288, "gemini-3-pro-preview": 524_288},
    "opencode": {"small": 68_000, "middle": 168_000, "large": 968_000},
}
"""Each with the tokens at which it compacts by itself."""


NEVER_COMPACT = ("claude-sonnet-4-5-20250929",)
LEVELS = 4
PROMPT = "Count all numbers"
LONG = " ".join(f"Number {n} is not it." for n in range(2_000))
"""Gemini CLI compacts only what came before the newest prompt."""


@pytest.mark.parametrize(
    ("name", "model"), [(name, model) for name, models in MODELS.items() for model in models]
)
def test_the_wrap_up_comes_before_the_compaction_and_its_handover_is_passed_on(
    meet: Meet, name: str, model: str
) -> None:
    agent, point = meet(name), MODELS[name][model]
    _let_compact(agent, point)
    at = [Tokens(input=point * share // 100) for share in (40, 73, 87, 92, 96)]
    options = [*agent.with_model(model)]
    if name == "gemini":
        agent.model.then(say(LONG))
        options += agent.resume_options(agent.ask("Look around", *options).session_id)
    turns = [agent.shell(_recorded_before_it_ends(name, tokens.input), tokens) for tokens in at]
    turns += [agent.shell(NOTE, at[4]), agent.shell("echo over", Tokens(input=point + 1_000))]
    turns += [say("Stopped.", Tokens(input=2_000))]
    shown = _shown_headless(agent, turns, options) if agent.shows_notices else _shown(agent, turns, options)
    asked = [index for index, seen in enumerate(agent.model.seen) if "Wrap up now" in seen.text]
    compacted = [index for index, seen in enumerate(agent.model.seen) if seen.kind == "summary"]
    assert bool(compacted) == (model not in NEVER_COMPACT)
    assert asked, "it was never asked to wrap up"
    assert not compacted or asked[0] < compacted[0]
    steered = "Should you be asked to summarise" if name in ("codex", "gemini") else "Write this summary as"
    assert all(steered in _holding(agent, index).text for index in compacted)
    assert len(shown) == len(set(shown)) == LEVELS, shown
    agent.workshop.settled(2 if compacted else 1)
    agent.model.then(say("I see."))
    agent.ask("Go on")
    assert WORDS in agent.model.main[-1].text


def _recorded_before_it_ends(name: str, tokens: int) -> str:
    """Claude Code writes its record a moment later: a tool that is over at once would have no usage yet."""
    command = f"echo {tokens} > numbers.txt"
    if name != "claude-code":
        return command
    tries = " ".join(map(str, range(100)))
    return f"{command}; for n in {tries}; do grep -rqs {tokens} ~/.claude/projects && break; sleep 0.05; done"


def _holding(agent: Driver, summary: int) -> Seen:
    """The request for a summary; where the newest prompt and what followed is kept, the one that goes on."""
    seen = agent.model.seen
    return (
        next(one for one in seen[summary:] if one.kind == "main") if agent.name == "gemini" else seen[summary]
    )


def _shown_headless(agent: Driver, turns: list[Turn], options: list[str]) -> list[str]:
    agent.model.then(*turns)
    ended = agent.ask(PROMPT, *options).ended
    return re.findall(r"Holdfast: [^\"\\\n]*", ended.out + ended.err)


def _shown(agent: Driver, turns: list[Turn], options: list[str]) -> list[str]:
    """What a person reads on the screen; the model waits for what is about to be shown there."""
    with agent.on_screen(PROMPT, *options) as screen:

        def once_seen(levels: int, turn: Turn) -> Callable[[Seen], Turn]:
            def answer(_: Seen) -> Turn:
                wait_for(lambda: len(screen.notices) >= levels)
                return turn

            return answer

        # A level is told with the result of the tool after the one that reached it, at the latest.
        due = [max(0, min(LEVELS, number - 2)) for number in range(len(turns))]
        agent.model.then(*[once_seen(*one) for one in zip(due, turns, strict=True)])
        screen.wait_for(lambda: "Stopped." in screen.text)
        screen.leave()
        return screen.notices


def _let_compact(agent: Driver, point: int) -> None:
    if isinstance(agent, Codex):
        agent.compact_at(point)
    elif isinstance(agent, OpenCode):
        agent.compact_by_itself(True)
