"""Spans of OpenTelemetry, as a collector on loopback gets them from real runs."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic_ai import RunUsage

from cli.harness import Place
from holdfast.model.usage import UsageMetadata
from holdfast.workflows import worker
from holdfast.workflows.drivers.protocol import Assignment, Done, Report, TaskOutcome
from holdfast.workflows.plan import parse_plan

from .harness import ScriptedDriver, Workshop

PLAN = """
issue: {id: W, title: Paint the secret door}
tasks:
  - {id: sand, run: "echo a-word-of-its-output"}
  - {id: paint, run: "test -e brush-of-the-painter", depends_on: [sand]}
"""


class Collector:
    """What a collector is sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_packed = self.headers.get("Content-Encoding") == "gzip"
                collector.bodies.append(gzip.decompress(body) if is_packed else body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *_: Any) -> None:  # noqa: A002 - the library's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        resources = [one for request in requests for one in request.resource_spans]
        return [span for one in resources for scope in one.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans() if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with closing(Collector()) as found:
        yield found


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_a_run_that_fails_and_goes_on(place: Place, collector: Collector) -> None:
    plan = place.project / "plan.yaml"
    plan.write_text(PLAN)
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
    place.run("run", str(plan), env=env)
    (failed,) = collector.named("invoke_workflow")
    assert attributes(failed)["holdfast.workflow.status"] == "failed"
    assert failed.status.code == 2
    sand, paint = collector.named("execute_tool shell")
    assert all(span.parent_span_id == failed.span_id for span in (sand, paint))
    assert attributes(sand) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "shell",
        "gen_ai.conversation.id": attributes(failed)["gen_ai.conversation.id"],
        "holdfast.task.id": "sand",
        "holdfast.task.attempt": 1,
        "holdfast.task.outcome": "completed",
    }
    assert (attributes(paint)["holdfast.task.outcome"], paint.status.code) == ("failed", 2)
    assert failed.start_time_unix_nano <= sand.start_time_unix_nano <= sand.end_time_unix_nano
    (place.project / "brush-of-the-painter").touch()
    assert place.run("resume", env=env).code == 0
    again = collector.named("invoke_workflow")[1]
    assert attributes(again)["holdfast.workflow.status"] == "completed"
    assert again.trace_id != failed.trace_id, "a session, a trace"
    assert attributes(collector.named("execute_tool shell")[2])["holdfast.task.attempt"] == 2
    for text in (
        b"secret door",
        b"a-word-of-its-output",
        b"brush-of-the-painter",
        str(place.project).encode(),
    ):
        assert not any(text in body for body in collector.bodies), "a span holds no text"


def test_calls_of_models(workshop: Workshop, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    def work(_assignment: Assignment, report: Report) -> TaskOutcome:
        for given, back in ((70, 30), (100, 5)):
            report.turn("big-1")
            used = RunUsage(input_tokens=given, output_tokens=back)
            report.usage(UsageMetadata.from_pydantic_ai_usage(used))
        return Done()

    driver = ScriptedDriver([work])
    monkeypatch.setattr(worker, "driver_named", lambda name, settings: driver)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{collector.endpoint}/v1/traces")
    plan = parse_plan("issue: {id: W, title: Work}\ndriver: model\ntasks: [{id: t1, prompt: Think}]\n")
    workshop.settings = replace(
        workshop.settings, agent_model="openai:big-1", spans_to=f"{collector.endpoint}/v1/traces"
    )
    assert workshop.run(plan).status == "completed"
    (task,) = collector.named("invoke_agent model")
    assert attributes(task)["gen_ai.agent.name"] == "model"
    assert attributes(task)["holdfast.usage.total_tokens"] == 205
    calls = collector.named("chat big-1")
    assert [call.parent_span_id for call in calls] == [task.span_id] * 2
    used = [attributes(call) for call in calls]
    assert [(one["gen_ai.usage.input_tokens"], one["gen_ai.usage.output_tokens"]) for one in used] == [
        (70, 30),
        (100, 5),
    ]


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "{endpoint}", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "{endpoint}", "OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=["no endpoint", "disabled", "no exporter"],
)
def test_off(place: Place, collector: Collector, env: dict[str, str]) -> None:
    plan = place.project / "plan.yaml"
    plan.write_text("issue: {id: W, title: Off}\ntasks: [{id: a, run: 'true'}]\n")
    told = {name: value.format(endpoint=collector.endpoint) for name, value in env.items()}
    place.ok("run", str(plan), env=told)
    assert collector.bodies == []


def test_a_collector_that_is_away_costs_only_the_spans(place: Place) -> None:
    with closing(Collector()) as gone:
        endpoint = gone.endpoint
    plan = place.project / "plan.yaml"
    plan.write_text("issue: {id: W, title: Away}\ntasks: [{id: a, run: 'true'}]\n")
    result = place.run("run", str(plan), env={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint})
    assert (result.code, result.err) == (0, f"warning: spans could not be delivered to {endpoint}\n")
    assert "completed" in result.out
