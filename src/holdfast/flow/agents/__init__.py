"""Agents as nodes, a provider a file. Anything else that yields messages asynchronously is one, too."""

from __future__ import annotations

from typing import Literal, Protocol


class UsageTracker(Protocol):
    """Takes what a model call used; `holdfast.ContextUsageTracker` does."""

    def update_usage(
        self,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cache_read: int = 0,
        cache_write: int = 0,
        *,
        report: Literal["delta", "cumulative"] = "delta",
        report_id: str | None = None,
        model: str | None = None,
    ) -> object: ...
