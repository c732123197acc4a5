"""The conversation with a model, kept in a file beside the work so that the next task talks on in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.base.clock import Clock
from holdfast.base.durable import read_file, replace_file, storage_errors
from holdfast.base.ids import new_id
from holdfast.orchestrator.drivers.protocol import AgentSession
from holdfast.project.layout import ProjectLayout

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse

_FOLDER = "model-sessions"


@dataclass(frozen=True)
class ModelHistory:
    session: AgentSession
    path: Path
    messages: list[ModelMessage]

    @classmethod
    def opened(cls, session: AgentSession | None, worktree: Path, clock: Clock) -> tuple[ModelHistory, bool]:
        """The conversation of that session, or a new one; and whether it is that one."""
        if session and session.transcript and (messages := _read(session.transcript)):
            return cls(session, session.transcript, messages), True
        name = new_id("model", clock())
        path = ProjectLayout(worktree).ensure_scratch(_FOLDER) / f"{name}.json"
        return cls(AgentSession(name, "model", path), path, []), False

    def write(self, messages: list[ModelMessage], response: ModelResponse | None = None) -> None:
        """As far as it got; `response` is the newest answer, where the messages do not have it yet."""
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        whole = messages if response is None or response in messages else [*messages, response]
        with storage_errors(f"write {self.path}"):
            replace_file(self.path, ModelMessagesTypeAdapter.dump_json(whole))


def _read(path: Path) -> list[ModelMessage]:
    """Up to the last answer whose tools have all come back: one cut off can be answered by nobody."""
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

    try:
        messages = ModelMessagesTypeAdapter.validate_json(read_file(path))
    except (OSError, ValidationError):
        return []
    while messages and isinstance(messages[-1], ModelResponse) and messages[-1].tool_calls:
        messages.pop()
    return messages
