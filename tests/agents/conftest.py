"""For the tests with real agents: a home to throw away, and each agent before a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agents.claude_code import ClaudeCode
from agents.codex import Codex
from agents.driver import Driver
from agents.fakes.anthropic import FakeAnthropic
from agents.fakes.gemini import FakeGemini
from agents.fakes.openai import FakeOpenAI
from agents.fakes.server import FakeModel
from agents.gemini import Gemini
from agents.opencode import OpenCode
from agents.workshop import Workshop

_AGENTS: dict[str, tuple[type[Driver], type[FakeModel]]] = {
    "claude-code": (ClaudeCode, FakeAnthropic),
    "codex": (Codex, FakeOpenAI),
    "gemini": (Gemini, FakeGemini),
    "opencode": (OpenCode, FakeOpenAI),
}

Meet = Callable[[str], Driver]


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def meet(workshop: Workshop) -> Iterator[Meet]:
    """An agent by name, with Holdfast's hooks installed; any number of them in one project."""
    with ExitStack() as stack:

        def installed(name: str) -> Driver:
            workshop.holdfast("install", name).check()
            driver, model = _AGENTS[name]
            return driver(workshop, stack.enter_context(model()))

        yield installed


@pytest.fixture(params=list(_AGENTS))
def agent(request: pytest.FixtureRequest, meet: Meet) -> Driver:
    """Each of the four in turn."""
    return meet(request.param)


@pytest.fixture
def claude(meet: Meet) -> Driver:
    return meet("claude-code")


@pytest.fixture
def codex(meet: Meet) -> Driver:
    return meet("codex")


@pytest.fixture
def gemini(meet: Meet) -> Driver:
    return meet("gemini")


@pytest.fixture
def opencode(meet: Meet) -> Driver:
    return meet("opencode")
