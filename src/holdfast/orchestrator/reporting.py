"""What a driver tells about one task, gathered until the task's end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.model.entry import AgentSessionReported
from holdfast.model.usage import UsageMetadata, UsageMetrics
from holdfast.orchestrator.drivers.protocol import AgentSession, Finding


class SessionUsage:
    """What the session has used so far; the newest report says how full its window is."""

    def __init__(self, so_far: UsageMetrics) -> None:
        self._lock = threading.Lock()
        self.metrics = so_far

    def add(self, usage: UsageMetadata, tool_calls: int, cost_usd: float | None) -> UsageMetrics:
        with self._lock:
            before = self.metrics
            cost = before.cost_usd if cost_usd is None else (before.cost_usd or 0.0) + cost_usd
            self.metrics = before.changed(
                tokens_used=before.tokens_used + usage.total_tokens,
                tokens_remaining_estimate=usage.tokens_remaining,
                context_utilization=usage.utilization_percent,
                llm_calls=before.llm_calls + 1,
                tool_calls=before.tool_calls + tool_calls,
                cost_usd=cost,
            )
            return self.metrics


@dataclass
class TaskReport:
    """The `Report` a driver gets."""

    task_id: str
    session: SessionUsage
    on_usage: Callable[[UsageMetrics], None]
    on_agent_session: Callable[[AgentSessionReported], None]
    on_line: Callable[[str], None]
    findings: list[Finding] = field(default_factory=list[Finding])
    tokens: int | None = None

    def usage(self, usage: UsageMetadata, *, tool_calls: int = 0, cost_usd: float | None = None) -> None:
        self.tokens = (self.tokens or 0) + usage.total_tokens
        self.on_usage(self.session.add(usage, tool_calls, cost_usd))

    def agent_session(self, session: AgentSession) -> None:
        self.on_agent_session(
            AgentSessionReported(
                task_id=self.task_id,
                agent=session.agent,
                agent_session_id=session.id,
                transcript=str(session.transcript) if session.transcript else None,
            )
        )

    def found(self, *findings: Finding) -> None:
        self.findings += findings

    def say(self, line: str) -> None:
        self.on_line(line)
