"""A report that remembers, and assignments for tests of drivers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.model.task import Task
from holdfast.model.usage import UsageMetadata
from holdfast.model.workflow import Issue
from holdfast.workflows.drivers.protocol import Assignment, DriverFinding, DriverSession

PATIENCE = 60.0


@dataclass
class Recorder:
    calls: list[UsageMetadata] = field(default_factory=list[UsageMetadata])
    tool_calls: int = 0
    cost: float = 0.0
    sessions: list[DriverSession] = field(default_factory=list[DriverSession])
    findings: list[DriverFinding] = field(default_factory=list[DriverFinding])
    lines: list[str] = field(default_factory=list[str])
    after_usage: Callable[[UsageMetadata], None] = lambda _: None

    def turn(self, model: str) -> None:
        pass

    def usage(self, usage: UsageMetadata, *, tool_calls: int = 0, cost_usd: float | None = None) -> None:
        self.calls.append(usage)
        self.tool_calls += tool_calls
        self.cost += cost_usd or 0.0
        self.after_usage(usage)

    def agent_session(self, session: DriverSession) -> None:
        self.sessions.append(session)

    def found(self, *findings: DriverFinding) -> None:
        self.findings += findings

    def output(self, text: str) -> None:
        pass

    def say(self, line: str) -> None:
        self.lines.append(line)

    @property
    def tokens(self) -> list[tuple[int, int]]:
        """Of each call: what went in, what came out."""
        return [(one.prompt_tokens, one.completion_tokens) for one in self.calls]


def assignment(
    folder: Path, prompt: str = "Do it", *, task: dict[str, Any] | None = None, **more: Any
) -> Assignment:
    fields: dict[str, Any] = {"id": "t1", "description": "", "prompt": prompt, **(task or {})}
    return Assignment("wf_1", 1, Issue(id="DEMO-1", title="A demo"), Task(**fields), folder, **more)


def wait_for(condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Until something is true; returns it."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return found


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
