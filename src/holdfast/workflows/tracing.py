"""What workflows do, as spans of OpenTelemetry; on where the user's environment names an endpoint for them.

A session of a workflow is a trace: a span for it, one for each attempt at a task, and one for each call of
a model that a driver told of. They are named after the GenAI conventions. Ids, drivers, models, outcomes,
times and tokens are in them, and no text: neither of a plan nor of a command nor of an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast._version import __version__
from holdfast.model.entry import TaskFinished, TaskStarted, WorkflowPaused, WorkflowStatusChanged
from holdfast.model.statuses import OPEN
from holdfast.model.usage import ModelCall
from holdfast.workflows.runner_context import Happening, Listener

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.trace import Span

log = logging.getLogger("holdfast.tracing")

_LAST_WORDS_MS = 3000
_PATIENCE_SECONDS = 2.0


class Spans:
    """A listener that makes them, and passes everything on."""

    def __init__(self, endpoint: str, then: Listener) -> None:
        self._then = then
        self._provider: TracerProvider | None = None
        self._sessions: dict[str, Span] = {}
        self._tasks: dict[tuple[str, str], Span] = {}
        try:
            self._provider = _provider(endpoint)
        except ImportError:
            log.warning("no spans are sent to %s: that needs holdfast[telemetry]", endpoint)

    def __call__(self, workflow_id: str, what: Happening) -> None:
        if self._provider is not None:
            self._take(workflow_id, what)
        self._then(workflow_id, what)

    def close(self) -> None:
        """Send what is left; a collector that is away costs a moment, and the spans."""
        if self._provider is None:
            return
        for span in (*self._tasks.values(), *self._sessions.values()):
            span.end()
        self._provider.force_flush(_LAST_WORDS_MS)
        self._provider.shutdown()

    def _take(self, workflow_id: str, what: Happening) -> None:
        if isinstance(what, TaskStarted):
            self._begin(workflow_id, what)
        elif isinstance(what, ModelCall):
            self._call(workflow_id, what)
        elif isinstance(what, TaskFinished):
            self._finish(workflow_id, what)
        elif isinstance(what, WorkflowPaused):
            status = "failed" if what.trigger == "failure" else "paused"
            self._end_session(workflow_id, status, what.trigger)
        elif isinstance(what, WorkflowStatusChanged) and what.status not in OPEN:
            self._end_session(workflow_id, what.status)

    def _begin(self, workflow_id: str, started: TaskStarted) -> None:
        if workflow_id not in self._sessions:
            self._sessions[workflow_id] = self._span(
                "invoke_workflow",
                None,
                {"gen_ai.operation.name": "invoke_workflow", "gen_ai.conversation.id": workflow_id},
            )
        attributes = {
            "gen_ai.conversation.id": workflow_id,
            "holdfast.task.id": started.task_id,
            "holdfast.task.attempt": started.attempt,
        }
        task = self._span("task", self._sessions[workflow_id], attributes)
        self._tasks[workflow_id, started.task_id] = task

    def _call(self, workflow_id: str, call: ModelCall) -> None:
        """At the time at which it was told of: how long it took, nobody says."""
        task = self._tasks.get((workflow_id, call.task_id))
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": workflow_id,
            "gen_ai.usage.input_tokens": call.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": call.usage.completion_tokens,
        }
        if call.model:
            attributes["gen_ai.request.model"] = call.model
        self._span(f"chat {call.model or call.driver}", task, attributes).end()

    def _finish(self, workflow_id: str, finished: TaskFinished) -> None:
        from opentelemetry.trace import StatusCode

        task = self._tasks.pop((workflow_id, finished.task_id), None)
        if task is None:
            return
        driver = finished.driver or "shell"
        if driver == "shell":
            name, kind = "execute_tool", "gen_ai.tool.name"
        else:
            name, kind = "invoke_agent", "gen_ai.agent.name"
        task.update_name(f"{name} {driver}")
        task.set_attributes({"gen_ai.operation.name": name, kind: driver})
        task.set_attribute("holdfast.task.outcome", finished.outcome)
        if finished.tokens is not None:
            task.set_attribute("holdfast.usage.total_tokens", finished.tokens)
        if finished.outcome == "failed":
            task.set_attribute("error.type", "failed")
            task.set_status(StatusCode.ERROR)
        task.end()

    def _end_session(self, workflow_id: str, status: str, trigger: str | None = None) -> None:
        from opentelemetry.trace import StatusCode

        session = self._sessions.pop(workflow_id, None)
        if session is None:
            return
        session.set_attribute("holdfast.workflow.status", status)
        if trigger:
            session.set_attribute("holdfast.pause.trigger", trigger)
        if status == "failed":
            session.set_attribute("error.type", "failed")
            session.set_status(StatusCode.ERROR)
        session.end()

    def _span(self, name: str, parent: Span | None, attributes: Mapping[str, str | int]) -> Span:
        from opentelemetry.trace import set_span_in_context

        assert self._provider is not None  # noqa: S101 - told apart by who calls
        context = set_span_in_context(parent) if parent is not None else None
        tracer = self._provider.get_tracer("holdfast", __version__)
        return tracer.start_span(name, context, attributes=attributes)


def _provider(endpoint: str) -> TracerProvider:
    """What else there is to say of where and how, the exporter reads from the environment by itself."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    class Telling(OTLPSpanExporter):
        """Says once that spans were lost."""

        has_told = False

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = super().export(spans)
            if result is not SpanExportResult.SUCCESS and not self.has_told:
                self.has_told = True
                log.warning("spans could not be delivered to %s", endpoint)
            return result

    resource = Resource({"service.name": "holdfast"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    # It tells of every try that failed, in words that are no help to whoever waits for a workflow.
    quiet = logging.getLogger("opentelemetry")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    provider.add_span_processor(BatchSpanProcessor(Telling(timeout=_PATIENCE_SECONDS)))
    return provider
