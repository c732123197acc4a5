"""What the tests ask of every agent, so that one test can be run with all four."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from agents.fakes.server import FakeModel
from agents.fakes.turns import Tokens, Turn, call
from agents.screen import Screen
from agents.workshop import CheckedEnd, Started, Workshop


class Run(ABC):
    def __init__(self, ended: CheckedEnd) -> None:
        self.ended = ended.check()

    @property
    @abstractmethod
    def session_id(self) -> str: ...

    @property
    @abstractmethod
    def answer(self) -> str:
        """What the agent said at the end."""


class Driver(ABC):
    name: ClassVar[str]
    """As `holdfast install` calls it."""
    window: ClassVar[int]
    most_injected: ClassVar[int]
    """Characters of a resume context that it takes whole."""
    may_tell_usage_late: ClassVar[bool] = False
    """Whether the tools that a model call asked for may have run before it says what the call took."""
    shows_notices: ClassVar[bool] = False
    """Whether what a hook says to the user is seen where it runs without a screen."""
    run_class: ClassVar[type[Run]]
    questions: ClassVar[dict[str, bytes]] = {}
    """What it may ask on its screen before it begins, and what is typed."""

    def __init__(self, workshop: Workshop, model: FakeModel) -> None:
        self.workshop = workshop
        self.model = model
        self.prepare()

    @property
    @abstractmethod
    def environ(self) -> dict[str, str]:
        """A dummy key, the way to the scripted model, and nothing from the network."""

    @property
    @abstractmethod
    def headless(self) -> tuple[str, ...]:
        """The words that come before a prompt, to run without a screen."""

    def prepare(self) -> None:  # noqa: B027 - Claude Code needs nothing but its environment
        """Point the agent at the scripted model."""

    def before_two_at_once(self) -> None:  # noqa: B027 - most need nothing
        """What it must have done once in a new home before two of it can start at the same time."""

    @property
    def nearly_full(self) -> Tokens:
        """A call after which 91 % of the window is used, in numbers that are easily told apart."""
        return Tokens(input=self.window // 100 + 3, output=207, cache_read=self.window * 9 // 10)

    def counted(self, tokens: Tokens) -> tuple[int, int, int, int]:
        """A call's tokens as far as the agent tells them apart."""
        return tokens.input, tokens.output, tokens.cache_read, tokens.cache_write

    @abstractmethod
    def shell(self, command: str, tokens: Tokens | None = None) -> Turn:
        """The model asks for a shell command."""

    def with_model(self, model: str) -> tuple[str, ...]:
        return "--model", model

    tools_prefix: ClassVar[str]
    """What it puts before the names of Holdfast's tools."""

    def tool(self, name: str, **arguments: Any) -> Turn:
        """The model calls one of Holdfast's own tools."""
        return call(self.tools_prefix + name, **arguments)

    @abstractmethod
    def start(self, prompt: str, *options: str) -> Started: ...

    @abstractmethod
    def resume_options(self, session_id: str) -> tuple[str, ...]:
        """What makes it go on with a session of its own."""

    def in_person(self, prompt: str, *options: str) -> tuple[str, ...]:
        """The words that start it with a screen; of those that show notices on one only."""
        raise NotImplementedError

    def on_screen(self, prompt: str, *options: str) -> Screen:
        environ = {**self.workshop.environ, **self.environ}
        return Screen(self.in_person(prompt, *options), self.workshop.project, environ, self.questions)

    def ask(self, prompt: str, *options: str) -> Run:
        return self.run_class(self.start(prompt, *options).end())

    def go_on(self, session_id: str, prompt: str) -> Run:
        return self.ask(prompt, *self.resume_options(session_id))
