"""A model as a worker, before a scripted server on loopback that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.usage import RequestUsage, RunUsage

from findings.scripted_model import Reply, ScriptedModel, fails, hangs, says
from holdfast.base.errors import CannotDoError, InvalidInputError
from holdfast.findings.by_model import DecisionExtractor
from holdfast.findings.gather import gather
from holdfast.model.entry import FeedbackRecorded
from holdfast.model.task import Task
from holdfast.model.usage import UsageMetadata
from holdfast.project.settings import Settings, load_settings
from holdfast.testing import FixedClock
from holdfast.transcripts import open_transcript
from holdfast.workflows.drivers import driver_named
from holdfast.workflows.drivers.model import ModelDriver
from holdfast.workflows.drivers.protocol import (
    Done,
    DriverSession,
    EarlierSession,
    Exhausted,
    Failed,
    RateLimited,
    TaskInterrupted,
    TaskOutcome,
)
from workflows.drivers.recorder import Recorder, assignment, is_running, wait_for

WINDOW = 10_000


class Bench:
    def __init__(self, folder: Path, model: ScriptedModel) -> None:
        self.folder, self.model = folder, model
        self.settings = replace(
            load_settings({}, folder),
            agent_model="scripted",
            agent_model_url=model.base_url,
            context_window=WINDOW,
        )
        self.report = Recorder()
        self.clock = FixedClock()

    def work(self, prompt: str = "Do it", **more: Any) -> TaskOutcome:
        return ModelDriver(self.settings, self.clock).run(
            assignment(self.folder, prompt, **more), self.report
        )

    def said(self, request: int = -1) -> str:
        return json.dumps(self.model.requests[request]["messages"])


@pytest.fixture
def meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr("holdfast.workflows.drivers.model.FIRST_WAIT", 0.001)

    @contextmanager
    def meeting(*replies: Reply) -> Generator[Bench]:
        with ScriptedModel(*replies).running() as model:
            yield Bench(tmp_path, model)

    return meeting


def calls(tool: str, prompt_tokens: int = 120, **arguments: Any) -> Reply:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{tool}_{abs(hash(json.dumps(arguments)))}", "type": "function", "function": function}
    return _completion({"content": None, "tool_calls": [call]}, "tool_calls", prompt_tokens)


def ends(text: str, prompt_tokens: int, finish: str = "stop", output: int = 30) -> Reply:
    return _completion({"content": text}, finish, prompt_tokens, output)


def _completion(message: dict[str, Any], finish: str, prompt_tokens: int, output: int = 30) -> Reply:
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_767_700_800,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": output,
            "total_tokens": prompt_tokens + output,
        },
    }
    return lambda handler: handler.answer(200, completion)


def test_a_handover_is_one_answer_and_runs_no_tools(meet: Any) -> None:
    with meet(
        ends("Painted.", 200), calls("write_file", 300, path="late", content="x"), ends("-", 1)
    ) as bench:
        bench.work("Paint it")
        session = bench.report.sessions[-1]
        assert bench.work(agent_session=session, wraps_up=True) == Done(None)
        assert not (bench.folder / "late").exists()
        assert len(bench.model.requests) == 2
        assert "Painted." in bench.said()
        assert "answer with your handover alone" in bench.said()
        assert isinstance(bench.work(wraps_up=True), Failed)  # no conversation to ask in


def test_it_works_with_its_tools_and_tells_usage_after_every_call(meet: Any) -> None:
    with meet(
        calls("write_file", 200, path="src/app.py", content="print('hello')\n"),
        calls("run_command", 300, command="python3 src/app.py"),
        ends("It prints hello.", 400),
    ) as bench:
        assert bench.work() == Done("It prints hello.")
    assert (bench.folder / "src" / "app.py").read_text() == "print('hello')\n"
    assert "exit code 0\\nhello" in bench.said()
    assert bench.report.tokens == [(200, 30), (300, 30), (400, 30)]
    assert bench.report.calls[-1].utilization_percent == pytest.approx(0.043)
    assert bench.report.calls[-1].tokens_remaining == WINDOW - 430
    assert bench.report.tool_calls == 2


def test_usage_is_told_before_the_tools_of_that_call_run(meet: Any) -> None:
    with meet(calls("run_command", command="until [ -e go ]; do sleep 0.02; done"), says("Done.")) as bench:
        bench.report.after_usage = lambda _: (bench.folder / "go").touch()
        assert bench.work() == Done("Done.")


@pytest.mark.parametrize(
    "usage", [RunUsage(input_tokens=70, output_tokens=30), RequestUsage(input_tokens=70, output_tokens=30)]
)
def test_usage_reads_pydantic_ais_own_figures(usage: Any) -> None:
    found = UsageMetadata.from_pydantic_ai_usage(usage, context_window=1_000)
    assert (found.prompt_tokens, found.completion_tokens, found.total_tokens) == (70, 30, 100)
    assert (found.tokens_remaining, found.utilization_percent) == (900, 0.1)


def test_tasks_of_a_session_talk_on_in_one_conversation(meet: Any) -> None:
    with meet(says("The number is 4711."), says("As I said.")) as bench:
        bench.work("Find the number", context="# Handover")
        session = bench.report.sessions[-1]
        bench.work("Say it again", context="# Handover", agent_session=session)
        assert bench.report.sessions[-1] == session
        assert "The number is 4711." in bench.said()
        assert bench.said().count("# Handover") == 1
    assert session.transcript
    assert session.transcript.stat().st_mode & 0o077 == 0


def test_its_conversation_reads_as_a_transcript(meet: Any) -> None:
    """So that the next session's context knows what was said, decided and done."""
    with meet(
        calls("write_file", 200, path="app.py", content="import nothing_there"),
        calls("run_command", 300, command="python3 app.py"),
        ends("We decided to use SQLite instead of PostgreSQL because there is one writer.", 400),
    ) as bench:
        bench.work("Make it; never touch vendor/")
    session = bench.report.sessions[-1]
    assert session.transcript
    for agent in (session.agent, None):
        report, stream = open_transcript(session.transcript, agent)
        messages = list(stream)
        assert report.agent == "model"
        assert (report.torn, report.unknown_types) == (0, {})
    assert [message.role for message in messages] == ["user", "assistant"] * 3
    assert "never touch vendor/" in messages[0].text
    assert [call.name for message in messages for call in message.tool_calls] == ["write_file", "run_command"]
    assert [one.outcome for message in messages for one in message.tool_results] == ["ok", "error"]
    assert messages[-1].usage
    assert messages[-1].usage.context == 430
    found = gather(messages, report)
    assert [file.path for file in found.files] == ["app.py"]
    assert any("ModuleNotFoundError" in failure.message for failure in found.failures)
    decisions, _ = DecisionExtractor().extract_sync(messages)
    assert any("SQLite" in decision.description for decision in decisions)


def test_a_new_session_starts_with_the_context_and_without_the_talk(meet: Any) -> None:
    with meet(says("The number is 4711."), says("Going on.")) as bench:
        bench.work("Find the number")
        full = EarlierSession("exhaustion", bench.report.sessions[-1], 0.9)
        bench.work("Go on", context="# Handover\nNever touch vendor/", message="Hurry", earlier=full)
        assert "The number is 4711." not in bench.said()
        assert "Never touch vendor/" in bench.said()
        assert "The user says: Hurry" in bench.said()


def test_an_earlier_conversation_with_room_is_gone_on_with(meet: Any) -> None:
    with meet(says("The number is 4711."), says("Going on.")) as bench:
        bench.work("Find the number")
        roomy = EarlierSession("pause", bench.report.sessions[-1], 0.1)
        bench.work("Go on", context="# Handover\nThe branch has moved.", earlier=roomy)
        assert "The number is 4711." in bench.said()
        assert "The branch has moved." in bench.said()


@pytest.mark.parametrize("content", [None, b"{torn", b"[]"])
def test_a_conversation_that_is_lost_or_torn_is_begun_anew(
    meet: Any, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "lost.json"
    if content is not None:
        path.write_bytes(content)
    with meet(says("Anew.")) as bench:
        lost = DriverSession("model_1", "model", path)
        assert bench.work("Go on", agent_session=lost, context="# Handover") == Done("Anew.")
        assert "# Handover" in bench.said()
        assert bench.report.sessions[-1].id != "model_1"


LLAMA = {
    "code": 400,
    "type": "exceed_context_size_error",
    "message": "the request exceeds the available context size",
}
OPENAI = {"code": "context_length_exceeded", "type": "invalid_request_error", "message": "too long"}


@pytest.mark.parametrize("error", [LLAMA, OPENAI])
def test_an_overrun_window_is_exhaustion(meet: Any, error: dict[str, Any]) -> None:
    with meet(calls("list_files"), fails(400, error)) as bench:
        outcome = bench.work()
        assert isinstance(outcome, Exhausted)
        assert len(bench.model.requests) == 2


def test_an_answer_cut_off_by_the_end_of_the_window_is_exhaustion(meet: Any) -> None:
    with meet(ends("I was about to", WINDOW - 30, "length")) as bench:
        assert isinstance(bench.work(), Exhausted)
        assert bench.report.calls[-1].utilization_percent == 1.0


def test_a_busy_server_is_tried_again(meet: Any) -> None:
    busy = fails(429, {"code": "rate_limit_exceeded"}, {"Retry-After": "0"})
    with meet(busy, fails(503), fails(500), says("Done.")) as bench:
        assert bench.work() == Done("Done.")
        assert len(bench.model.requests) == 4
        assert sum("retrying" in line for line in bench.report.lines) == 3
    assert len(bench.report.calls) == 1


def test_a_server_that_stays_busy_is_a_limit(meet: Any) -> None:
    with meet(fails(429, {"code": "rate_limit_exceeded"})) as bench:
        outcome = bench.work()
        assert isinstance(outcome, RateLimited)
        assert "rate limited" in outcome.reason
        assert len(bench.model.requests) == 5


def test_a_long_wait_is_not_waited_for_but_told(meet: Any) -> None:
    with meet(fails(429, {"code": "rate_limit_exceeded"}, {"Retry-After": "7200"})) as bench:
        outcome = bench.work()
        assert isinstance(outcome, RateLimited)
        assert outcome.resets_at
        assert outcome.resets_at.timestamp() == pytest.approx(bench.clock() + 7_200)
        assert len(bench.model.requests) == 1


def test_a_used_up_quota_is_a_limit_at_once(meet: Any) -> None:
    with meet(fails(429, {"code": "insufficient_quota", "type": "insufficient_quota"})) as bench:
        outcome = bench.work()
        assert isinstance(outcome, RateLimited)
        assert "quota" in outcome.reason
        assert len(bench.model.requests) == 1


def test_a_server_out_of_reach_costs_no_task(meet: Any) -> None:
    with meet(says("never")) as bench:
        pass
    outcome = bench.work()
    assert isinstance(outcome, RateLimited)
    assert "could not be reached" in outcome.reason


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (fails(401, {"message": "no"}), "credentials were rejected"),
        (fails(404, {"message": "no"}), "not know this model"),
        (fails(400, {"message": "no"}), "rejected"),
    ],
)
def test_what_no_patience_mends_is_a_failure_in_clear_words(meet: Any, reply: Reply, words: str) -> None:
    with meet(reply) as bench:
        outcome = bench.work()
        assert isinstance(outcome, Failed)
        assert words in outcome.reason
        assert "scripted" in outcome.reason
        assert len(bench.model.requests) == 1


def test_a_model_that_goes_round_in_circles_is_stopped(meet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.workflows.drivers.model._MOST_CALLS", 4)
    with meet(calls("list_files")) as bench:
        outcome = bench.work()
        assert outcome == Failed("model scripted: 4 calls without finishing the task")


def _stopping(bench: Bench, when: Callable[[], object]) -> TaskOutcome:
    job = assignment(bench.folder)
    thread = threading.Thread(target=lambda: (wait_for(when), job.stop.request("somebody asked")))
    thread.start()
    outcome = ModelDriver(bench.settings).run(job, bench.report)
    thread.join()
    return outcome


def test_a_stop_ends_a_request_under_way(meet: Any) -> None:
    with meet(hangs) as bench:
        assert _stopping(bench, bench.model.asked.is_set) == TaskInterrupted("somebody asked")


def test_a_stop_ends_a_command_and_what_it_started(meet: Any) -> None:
    with meet(calls("run_command", command="sleep 300 & echo $! > pid; sleep 300"), says("Done.")) as bench:
        pid = bench.folder / "pid"
        assert _stopping(bench, lambda: pid.exists() and pid.read_text().strip()) == TaskInterrupted(
            "somebody asked"
        )
        wait_for(lambda: not is_running(int(pid.read_text())))


def test_a_conversation_cut_off_in_its_tools_can_be_gone_on_with(meet: Any) -> None:
    first = calls("run_command", command="touch started; sleep 300")
    with meet(says("The number is 4711."), first, says("Going on.")) as bench:
        bench.work("Find the number")
        session = bench.report.sessions[-1]
        job = assignment(bench.folder, "Begin", agent_session=session)
        thread = threading.Thread(
            target=lambda: (wait_for((bench.folder / "started").exists), job.stop.request("stop"))
        )
        thread.start()
        ModelDriver(bench.settings).run(job, bench.report)
        thread.join()
        assert bench.work("Go on", agent_session=session) == Done("Going on.")
        assert "The number is 4711." in bench.said()


def test_a_review_given_as_data_becomes_feedback(meet: Any) -> None:
    review: dict[str, Any] = {
        "approved": False,
        "severity": "major",
        "comments": ["app.py:3 leaks the handle"],
    }

    def answer(handler: Any) -> None:
        tools = [tool["function"]["name"] for tool in handler.script.requests[-1]["tools"]]
        (output,) = [name for name in tools if name.startswith("final_result")]
        calls(output, **review)(handler)

    with meet(answer) as bench:
        outcome = bench.work("Review it", task={"id": "t3", "description": "Review"})
    assert isinstance(outcome, Done)
    assert "changes requested" in (outcome.result or "")
    (finding,) = bench.report.findings
    assert isinstance(finding, FeedbackRecorded)
    assert finding.feedback.comments == ("app.py:3 leaks the handle",)


def test_a_review_in_words_becomes_feedback(meet: Any) -> None:
    words = "I looked.\n\nVerdict: approved\nSeverity: none\nComments:\n- none"
    with meet(says(words)) as bench:
        bench.work("Review it", task={"id": "t3", "description": "Review"})
    (finding,) = bench.report.findings
    assert isinstance(finding, FeedbackRecorded)
    assert (finding.feedback.approved, finding.feedback.comments) == (True, ())


def _settings(folder: Path, **more: Any) -> Settings:
    return replace(load_settings({}, folder), **more)


def test_tasks_it_could_not_do_are_refused_before_anything_starts(tmp_path: Path) -> None:
    task = Task(id="a", description="", prompt="Do it")
    driver_named("model", _settings(tmp_path, model="openai:gpt-4o")).check(task)
    with pytest.raises(CannotDoError, match="no model is set"):
        driver_named("model", _settings(tmp_path)).check(task)
    with pytest.raises(InvalidInputError, match="no prompt"):
        driver_named("model", _settings(tmp_path, model="x")).check(Task(id="a", description=""))


_WITHOUT = """
import importlib.util
import sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "pydantic_ai" else found(name, *rest)
from dataclasses import replace
from holdfast.project.settings import load_settings
from holdfast.model.task import Task
from holdfast.workflows.drivers import driver_named
try:
    driver_named("model", replace(load_settings(), model="x")).check(Task(id="a", description="", prompt="x"))
except Exception as error:
    print(error, "|", error.hint)
print("pydantic_ai" in sys.modules)
"""


def test_a_missing_extra_is_named_with_its_command_and_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines() == [
        "the driver `model` requires the package pydantic-ai, which is not installed"
        " | pip install 'holdfast[models]'",
        "False",
    ]


def test_no_model_beyond_this_machine_is_called_where_that_is_forbidden(tmp_path: Path) -> None:
    settings = _settings(tmp_path, agent_model="x", agent_model_url="http://192.0.2.1/v1")
    outcome = ModelDriver(settings).run(assignment(tmp_path), Recorder())
    assert isinstance(outcome, Failed)
    assert "HOLDFAST_FORBID_MODELS" in outcome.reason
