"""Agent frameworks in whose programs Holdfast measures the window, pauses at a boundary and hands over.

A module a framework: `pydantic_ai`, `langgraph`, `openai_agents`. What they share is `PausableSession`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.base.clock import Clock, system_clock
from holdfast.base.errors import HoldfastError
from holdfast.findings.gather import gather
from holdfast.journal.usage import ContextUsageTracker
from holdfast.model.message import Message, ReadReport, TokenUsage
from holdfast.model.usage import UsageMetrics
from holdfast.project.settings import project_settings
from holdfast.resume.compiler import DEFAULT_BUDGET
from holdfast.resume.snapshots import ResumeContextCompiler
from holdfast.sessions.contexts import ReadSession
from holdfast.sessions.enrich import add_conversation
from holdfast.sessions.pause import SessionPauseManager
from holdfast.sessions.transitions import Facts
from holdfast.store.documents import read_session_document
from holdfast.store.session_files import SessionFiles


@dataclass(frozen=True)
class RunEnd:
    """How a run ended: with its output, or paused at a boundary."""

    output: Any = None
    paused: str | None = None
    """Name of the session that was saved; None where the run was not paused."""


class PausableSession:
    """One agent's work in one project, over as many windows as it takes."""

    def __init__(
        self,
        session_id: str,
        project: Path | str | None = None,
        *,
        model: str | None = None,
        context_window: int | None = None,
        stop: Callable[[], bool] = bool,
        clock: Clock = system_clock,
    ) -> None:
        """`context_window` in tokens; by default the model's. `stop` is asked at each boundary."""
        self.session_id = session_id
        self.settings = project_settings(project, None)
        self.tracker = ContextUsageTracker(
            self.settings.project,
            session_id=session_id,
            model=model,
            context_window=context_window or self.settings.context_window,
            levels=self.settings.levels,
            clock=clock,
        )
        self._stop = stop
        self._clock = clock

    def used(self, usage: TokenUsage, report_id: str | None = None) -> None:
        """One model call was sent the whole conversation: what it used is what is in the window now."""
        self.tracker.update_usage(
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read,
            usage.cache_write,
            report="cumulative",
            report_id=report_id,
            model=usage.model,
        )

    def should_pause(self) -> bool:
        """Whether the window is as full as your settings allow, or `stop` says so."""
        return self._stop() or self.tracker.should_auto_pause()

    def pause(
        self,
        messages: Iterable[Message],
        *,
        agent: str,
        reason: str | None = None,
        is_cut_short: bool = True,
    ) -> str:
        """Save the session with what its conversation tells; returns its name.

        Programs that pause in one folder together are all saved, also beside an agent that is winding down
        there. `is_cut_short` says that the agent would have gone on.
        """
        spoken = list(messages)
        if spoken and is_cut_short:
            spoken[-1].turn = "open"
        usage = self.tracker.get_current_state()
        name = SessionPauseManager(settings=self.settings, clock=self._clock).pause_now(
            Facts(
                trigger="exhaustion" if usage.auto_pause_active else "pause",
                reason=reason,
                usage=UsageMetrics(
                    tokens_used=usage.total_tokens,
                    tokens_remaining_estimate=max(0, usage.context_window - usage.total_tokens),
                    context_utilization=min(1.0, usage.share),
                    tool_calls=sum(len(message.tool_calls) for message in spoken),
                    session_duration_seconds=0,
                ),
            )
        )
        self._add(name, spoken, agent)
        return name

    def handover(self, max_chars: int = DEFAULT_BUDGET) -> str:
        """What the next window should read of the last pause of this session; empty where there is none."""
        document = self._last()
        if document is None:
            return ""
        snapshot, workflow = read_session_document(document, where=f"{document['session_id']}.json")
        return ResumeContextCompiler(max_chars).compile_with_report(snapshot, workflow.issue).text

    def new_window(self, max_chars: int = DEFAULT_BUDGET) -> str:
        """The handover, for a conversation that begins anew: its window is empty again."""
        text = self.handover(max_chars)
        if text:
            self.tracker.reset_session()
        return text

    def last_reason(self) -> str | None:
        """Why this session was paused last, if it was."""
        document = self._last()
        return None if document is None else document.get("pause_reason")

    def _add(self, name: str, messages: list[Message], agent: str) -> None:
        report = ReadReport(agent=agent, session_id=self.session_id, cwd=str(self.settings.project))
        read = ReadSession(gather(messages, report), report, tuple(messages[-50:]))
        snapshot_id = str(SessionFiles(self.settings.layout.sessions).read(name)["id"])
        add_conversation(self.settings, snapshot_id, read, {"conversation": self.session_id})

    def _last(self) -> dict[str, Any] | None:
        files = SessionFiles(self.settings.layout.sessions)
        for name in files.session_ids():
            try:
                document = files.read(name)
            except HoldfastError:
                continue  # a damaged one hides no other
            if document.get("conversation") == self.session_id:
                return document
        return None
