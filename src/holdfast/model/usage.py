"""What a session consumed, and how much of the context window is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from pydantic import Field

from holdfast.model.base import Value


class UsageMetrics(Value):
    """Usage of one session so far."""

    tokens_used: int = Field(default=0, ge=0)
    tokens_remaining_estimate: int | None = Field(default=None, ge=0)
    context_utilization: float | None = Field(
        default=None, ge=0, description="Share of the window, 0.0 to 1.0"
    )
    llm_calls: int = Field(default=0, ge=0)
    tool_calls: int = Field(default=0, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    session_duration_seconds: int = Field(default=0, ge=0)


class _RunUsage(Protocol):
    """The part of pydantic-ai's usage object we read."""

    @property
    def input_tokens(self) -> int: ...

    @property
    def output_tokens(self) -> int: ...


class UsageMetadata(Value):
    """What a driver reports after each call."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    total_tokens: int = Field(ge=0)
    context_window_size: int = Field(gt=0)
    tokens_remaining: int = Field(ge=0)
    utilization_percent: float = Field(ge=0, le=1, description="0.0 to 1.0")

    @classmethod
    def from_pydantic_ai_usage(cls, usage: _RunUsage, context_window: int = 200_000) -> Self:
        prompt, completion = usage.input_tokens or 0, usage.output_tokens or 0
        total = prompt + completion
        return cls(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=total,
            context_window_size=context_window,
            tokens_remaining=max(0, context_window - total),
            utilization_percent=min(1.0, total / context_window),
        )


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model that a driver told of."""

    task_id: str
    driver: str
    model: str | None
    usage: UsageMetadata
