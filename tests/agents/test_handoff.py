"""Pause in one agent, go on in another."""

from __future__ import annotations

import sys

import pytest

from agents.conftest import Meet
from agents.fakes.turns import say


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("claude-code", "codex"),
        ("codex", "claude-code"),
        ("claude-code", "gemini"),
        ("gemini", "opencode"),
        ("opencode", "claude-code"),
    ],
)
def test_the_work_goes_on_in_another_agent(source: str, target: str, meet: Meet) -> None:
    first, second = meet(source), meet(target)
    first.model.then(first.shell("echo 4711 > magic.txt"), say("The magic number is 4711."))
    first.ask("Find the magic number; never touch vendor/")
    second.model.then(say("Going on."))
    words = ["handoff", "--to", target, "--exec", "--", *second.headless]
    ended = first.workshop.run([sys.executable, "-m", "holdfast", *words], environ=second.environ)
    assert second.run_class(ended).answer == "Going on."
    request = second.model.main[-1].text
    assert "Find the magic number; never touch vendor/" in request
    assert "The magic number is 4711." in request
    # Once: the hook at the session's start knows that the first prompt brings it.
    assert request.count("# Handover\n") == 1


def test_the_printed_command_is_what_a_shell_can_run(meet: Meet) -> None:
    claude, codex = meet("claude-code"), meet("codex")
    claude.model.then(say("The magic number is 4711."))
    claude.ask("Find the magic number")
    printed = claude.workshop.holdfast("handoff", "--to", "codex", "--", *codex.headless).check()
    assert "tokens to read" in printed.err
    codex.model.then(say("Going on."))
    ended = codex.workshop.run(["sh", "-c", printed.out], environ=codex.environ)
    assert codex.run_class(ended).answer == "Going on."
    assert "The magic number is 4711." in codex.model.main[-1].text
