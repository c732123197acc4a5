"""The drivers of a workflow with the real agents behind them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.claude_code import MODEL, ClaudeCode
from agents.codex import Codex
from agents.driver import Driver as Agent
from agents.fakes.anthropic import FakeAnthropic
from agents.fakes.gemini import FakeGemini
from agents.fakes.openai import FakeOpenAI
from agents.fakes.turns import Call, Seen, Tokens, Turn, call, fail, say
from agents.gemini import MODEL as GEMINI
from agents.gemini import Gemini
from agents.opencode import OpenCode
from agents.workshop import Workshop
from holdfast.model.entry import FeedbackRecorded
from holdfast.project.settings import Settings, load_settings
from holdfast.sessions.contexts import read_session
from holdfast.workflows.drivers import driver_named
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

LOST = "11111111-1111-4111-8111-111111111111"


class Bench:
    """An agent before its scripted model, and the driver that is to work with it."""

    def __init__(self, agent: Agent, settings: Settings) -> None:
        self.agent, self.model, self.project = agent, agent.model, agent.workshop.project
        self.driver = driver_named(agent.name, settings)
        self.report = Recorder()

    def work(self, prompt: str = "Do it", **more: object) -> TaskOutcome:
        return self.driver.run(assignment(self.project, prompt, **more), self.report)  # type: ignore[arg-type]

    def prompt(self, request: int = -1) -> str:
        return self.model.main[request].text


@pytest.fixture
def environ(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDECODE", "DISABLE_AUTO_COMPACT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in workshop.environ.items():
        monkeypatch.setenv(name, value)
    return workshop


@pytest.fixture
def claude_bench(environ: Workshop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with FakeAnthropic() as model:
        agent = ClaudeCode(environ, model)
        for name, value in {**agent.environ, "CLAUDE_CODE_MAX_RETRIES": "1"}.items():
            monkeypatch.setenv(name, value)
        settings = load_settings(cwd=environ.project)
        words = ("--model", MODEL, "--allowedTools=Bash,Read,Write,Edit")
        yield Bench(agent, replace(settings, claude_args=words))


@pytest.fixture
def codex_bench(environ: Workshop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with FakeOpenAI() as model:
        agent = Codex(environ, model)
        for name, value in agent.environ.items():
            monkeypatch.setenv(name, value)
        settings = load_settings(cwd=environ.project)
        words = ("--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust")
        yield Bench(agent, replace(settings, codex_args=words))


@pytest.fixture
def gemini_bench(environ: Workshop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with FakeGemini() as model:
        agent = Gemini(environ, model)
        for name, value in agent.environ.items():
            monkeypatch.setenv(name, value)
        settings = load_settings(cwd=environ.project)
        yield Bench(agent, replace(settings, gemini_args=("--model", GEMINI, "--yolo")))


@pytest.fixture
def opencode_bench(environ: Workshop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with FakeOpenAI() as model:
        agent = OpenCode(environ, model)
        agent.compact_by_itself(True)  # the driver turns that off
        for name, value in agent.environ.items():
            monkeypatch.setenv(name, value)
        yield Bench(agent, replace(load_settings(cwd=environ.project), context_window=agent.window))


@pytest.fixture(params=["gemini", "opencode"])
def other_bench(request: pytest.FixtureRequest) -> Bench:
    return request.getfixturevalue(f"{request.param}_bench")


def test_the_other_two_tell_usage_session_and_answer_and_talk_on(other_bench: Bench) -> None:
    bench, first, second = other_bench, Tokens(10, 20, 3_000), Tokens(11, 21, 4_000)
    bench.model.then(bench.agent.shell("echo made > made.txt", first), say("The number is 4711.", second))
    context = "# Handover\n" + "\n".join(f"- fact {number}" for number in range(2_000)) + "\nLAST-FACT"
    assert bench.work("Find the number", context=context) == Done("The number is 4711.")
    assert (bench.project / "made.txt").read_text() == "made\n"
    assert bench.report.tokens == [(3_010, 20), (4_011, 21)]
    assert bench.report.tool_calls == 1
    assert bench.report.calls[-1].utilization_percent == pytest.approx(4_032 / bench.agent.window)
    assert context in bench.model.main[0].text
    session = bench.report.sessions[-1]
    assert (session.agent, session.transcript is not None) == (bench.agent.name, True)
    bench.model.then(say("As I said."))
    bench.work("Say it again", context=context, agent_session=session)
    assert bench.report.sessions[-1].id == session.id
    assert "The number is 4711." in bench.prompt()
    assert bench.prompt().count("LAST-FACT") == 1


def test_the_other_two_go_on_from_exhaustion_with_the_context_in_the_first_request(
    other_bench: Bench,
) -> None:
    bench = other_bench
    words = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    full = fail(400, code="context_length_exceeded", type="invalid_request_error", message=words)
    bench.model.then(bench.agent.shell("echo one"), full)
    outcome = bench.work("Find the number")
    assert isinstance(outcome, Exhausted)
    assert "context window is full" in outcome.reason
    session = bench.report.sessions[-1]
    bench.model.then(say("Going on."))
    earlier = EarlierSession("exhaustion", session, 0.9)
    went_on = bench.work("Go on", earlier=earlier, context="# Handover\nBe kind.", message="Mind the gap")
    assert went_on == Done("Going on.")
    assert bench.report.sessions[-1].id != session.id
    assert all(word in bench.prompt() for word in ("Be kind.", "The user says: Mind the gap", "Go on"))
    assert "Find the number" not in bench.prompt()
    lost = DriverSession(
        "ses_1111111111111111111111" if bench.agent.name == "opencode" else LOST, bench.agent.name
    )
    bench.model.then(say("Anew."))
    assert bench.work("Go on", agent_session=lost, context="# Handover\nBe kind.") == Done("Anew.")


def test_the_other_two_end_with_all_they_started(other_bench: Bench) -> None:
    test_a_stop_ends_the_agent_and_the_commands_of_its_tools(other_bench)


def test_a_refused_key_of_the_other_two_is_a_failure_in_clear_words(other_bench: Bench) -> None:
    other_bench.model.then(*[fail(401, type="authentication_error", message="invalid x-api-key")] * 4)
    outcome = other_bench.work()
    assert isinstance(outcome, Failed)
    assert "key" in outcome.reason.lower()


@pytest.fixture(params=["claude", "codex"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return request.getfixturevalue(f"{request.param}_bench")


def test_usage_is_told_after_every_call_and_once(bench: Bench) -> None:
    first, second = Tokens(10, 20, 3_000), Tokens(11, 21, 4_000)
    shell = bench.agent.shell
    calls = (*shell("echo one").calls, *shell("echo two").calls)
    bench.model.then(Turn("I will.", calls, first), say("Done.", second))
    assert bench.work() == Done("Done.")
    assert bench.report.tokens == [(3_010, 20), (4_011, 21)]
    assert bench.report.tool_calls == 2
    window = bench.agent.window
    assert [one.context_window_size for one in bench.report.calls] == [window, window]
    assert bench.report.calls[-1].tokens_remaining == window - 4_032
    assert bench.report.calls[-1].utilization_percent == pytest.approx(4_032 / window)


def test_usage_is_told_while_the_tools_of_that_call_run(bench: Bench) -> None:
    marker = bench.project / "go"
    bench.report.after_usage = lambda _: marker.touch()
    loop = f"until [ -e {marker} ]; do sleep 0.05; done; echo seen"
    bench.model.then(bench.agent.shell(loop), say("Done."))
    assert bench.work() == Done("Done.")


def test_the_session_is_told_at_once_with_its_transcript(bench: Bench) -> None:
    bench.model.then(say("Done."))
    bench.work()
    told = bench.report.sessions[-1]
    assert told.agent in ("claude-code", "codex")
    assert told.id == bench.report.sessions[0].id
    assert told.transcript
    assert told.id in told.transcript.name
    assert "Do it" in told.transcript.read_text()


def test_tasks_of_a_session_talk_on_in_one_conversation(bench: Bench) -> None:
    bench.model.then(say("The number is 4711."), say("As I said."))
    bench.work("Find the number", context="# Handover\nNever touch vendor/.")
    session = bench.report.sessions[-1]
    bench.work("Say it again", context="# Handover\nNever touch vendor/.", agent_session=session)
    assert bench.report.sessions[-1].id == session.id
    assert "The number is 4711." in bench.prompt()
    assert bench.prompt().count("# Handover") == 1


def test_before_a_pause_the_agent_hands_over_in_its_own_conversation(bench: Bench) -> None:
    words = "Now: paint the door.\nWatch out: never paint the roof."
    bench.model.then(say("The number is 4711."), say(words))
    bench.work("Find the number")
    session = bench.report.sessions[-1]
    assert bench.work(agent_session=session, wraps_up=True) == Done(words)
    assert bench.report.sessions[-1].id == session.id
    assert "The number is 4711." in bench.prompt()
    assert "answer with your handover alone" in bench.prompt()
    assert session.transcript
    found = read_session(session.transcript, session.agent).found
    assert [turn.said for turn in found.turns][-1].endswith("Find the number")
    assert found.last_words == "The number is 4711."


def test_a_new_session_reads_its_context_whole(bench: Bench) -> None:
    context = (
        "# Handover\n" + "\n".join(f"- fact {number} of many" for number in range(2_000)) + "\nLAST-FACT"
    )
    bench.model.then(say("Going on."))
    outcome = bench.work("Go on", context=context, message="Mind the gap", attempt=2)
    assert outcome == Done("Going on.")
    prompt = bench.prompt()
    assert context in prompt
    assert "The user says: Mind the gap" in prompt
    assert "earlier attempt" in prompt


def test_an_old_conversation_with_room_is_taken_up_again(bench: Bench) -> None:
    bench.model.then(say("The number is 4711."), say("Going on."), say("Anew."))
    bench.work("Find the number")
    session = bench.report.sessions[-1]
    roomy = EarlierSession("pause", session, 0.2)
    bench.work("Go on", earlier=roomy, context="# Handover\nThe branch has moved.")
    assert "The number is 4711." in bench.prompt()
    assert "The branch has moved." in bench.prompt()
    bench.work("Go on", earlier=EarlierSession("exhaustion", session, 0.9), context="# Handover")
    assert "The number is 4711." not in bench.prompt()
    assert bench.report.sessions[-1].id != session.id


def test_a_conversation_it_no_longer_knows_is_begun_anew(bench: Bench) -> None:
    bench.model.then(say("Anew."))
    lost = DriverSession(LOST, _agent(bench))
    assert bench.work("Go on", agent_session=lost, context="# Handover\nBe kind.") == Done("Anew.")
    assert "Be kind." in bench.prompt()


def _agent(bench: Bench) -> str:
    return "claude-code" if isinstance(bench.agent, ClaudeCode) else "codex"


def test_a_full_window_is_exhaustion(claude_bench: Bench) -> None:
    full = fail(
        400, type="invalid_request_error", message="prompt is too long: 210000 tokens > 200000 maximum"
    )
    claude_bench.model.then(call("Bash", command="echo one"), full)
    outcome = claude_bench.work()
    assert isinstance(outcome, Exhausted)
    assert "context window is full" in outcome.reason
    assert claude_bench.report.tokens == [(100, 20)]


def test_a_full_window_is_exhaustion_in_codex_too(codex_bench: Bench) -> None:
    words = "Your input exceeds the context window of this model. Please adjust your input and try again."
    full = fail(400, code="context_length_exceeded", type="invalid_request_error", message=words)
    codex_bench.model.then(call("exec_command", cmd="echo one"), full)
    outcome = codex_bench.work()
    assert isinstance(outcome, Exhausted)
    assert "exceeds the context window" in outcome.reason
    assert codex_bench.report.tokens == [(100, 20)]


def test_a_used_up_quota_says_when_it_resets(claude_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a subscription: only then is the reset told."""
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "dummy")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    resets = int(time.time()) + 7_200
    kind = "anthropic-ratelimit-unified"
    headers = {
        "retry-after": "7200",
        f"{kind}-status": "rejected",
        f"{kind}-reset": str(resets),
        f"{kind}-representative-claim": "five_hour",
    }
    refused = fail(429, headers, type="rate_limit_error", message="This would exceed your limit.")
    claude_bench.model.then(refused, refused, refused)
    outcome = claude_bench.work()
    assert isinstance(outcome, RateLimited)
    assert outcome.resets_at == datetime.fromtimestamp(resets, UTC)


def test_a_used_up_quota_of_codex_says_when_it_resets(codex_bench: Bench) -> None:
    resets = int(time.time()) + 7_200
    names = {"used-percent": "100", "window-minutes": "300", "reset-at": str(resets)}
    headers = {f"x-codex-primary-{name}": value for name, value in names.items()}
    refused = fail(429, headers, type="usage_limit_reached", resets_at=resets, message="Reached")
    codex_bench.model.then(refused)
    outcome = codex_bench.work()
    assert isinstance(outcome, RateLimited)
    assert "usage limit" in outcome.reason
    assert outcome.resets_at == datetime.fromtimestamp(resets, UTC)


@pytest.mark.parametrize("status", [429, 529])
def test_a_busy_api_is_tried_again_and_then_a_limit(claude_bench: Bench, status: int) -> None:
    busy = fail(status, {"retry-after": "0"}, type="rate_limit_error", message="Slow down")
    claude_bench.model.then(busy, busy, busy, busy)
    outcome = claude_bench.work()
    assert isinstance(outcome, RateLimited)
    assert len(claude_bench.model.main) >= 2
    assert any("retrying" in line for line in claude_bench.report.lines)


def test_refused_credentials_are_a_failure_in_clear_words(bench: Bench) -> None:
    bench.model.then(*[fail(401, type="authentication_error", message="invalid x-api-key")] * 4)
    outcome = bench.work()
    assert isinstance(outcome, Failed)
    assert "key" in outcome.reason.lower()


def test_an_api_that_cannot_be_reached_costs_no_task(claude_bench: Bench) -> None:
    claude_bench.model.go_away()
    outcome = claude_bench.work()
    assert isinstance(outcome, RateLimited)
    assert "cannot be reached" in outcome.reason


def test_codex_waits_for_the_network_says_so_and_can_be_stopped(codex_bench: Bench) -> None:
    codex_bench.model.go_away()
    job = assignment(codex_bench.project)
    said = codex_bench.report.lines

    def stop() -> None:
        wait_for(lambda: any("waiting for network" in line for line in said))
        job.stop.request("enough")

    thread = threading.Thread(target=stop)
    thread.start()
    assert codex_bench.driver.run(job, codex_bench.report) == TaskInterrupted("enough")
    thread.join()


def test_a_stop_ends_the_agent_and_the_commands_of_its_tools(bench: Bench) -> None:
    pids = bench.project / "pids"
    bench.model.then(bench.agent.shell(f"echo $$ > {pids}; sleep 300 & echo $! >> {pids}; sleep 300"))
    job = assignment(bench.project)

    def stop() -> None:
        wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2)
        job.stop.request("somebody asked")

    thread = threading.Thread(target=stop)
    thread.start()
    outcome = bench.driver.run(job, bench.report)
    thread.join()
    assert outcome == TaskInterrupted("somebody asked")
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: not is_running(int(pid)))
    assert bench.report.tokens in ([[], [(100, 20)]] if bench.agent.may_tell_usage_late else [[(100, 20)]])


def test_a_session_that_was_stopped_can_be_gone_on_with(bench: Bench) -> None:
    started = bench.project / "started"
    bench.model.then(bench.agent.shell(f"touch {started}; sleep 300"))
    job = assignment(bench.project, "Begin something long")
    thread = threading.Thread(target=lambda: (wait_for(started.exists), job.stop.request("stop")))
    thread.start()
    bench.driver.run(job, bench.report)
    thread.join()
    bench.model.then(say("Going on."))
    earlier = EarlierSession("pause", bench.report.sessions[-1], 0.01)
    assert bench.work("Go on", earlier=earlier, context="# Handover", attempt=2) == Done("Going on.")
    assert "Begin something long" in bench.prompt()


def test_a_review_is_asked_for_in_a_schema_and_becomes_feedback(bench: Bench) -> None:
    review = {"approved": False, "severity": "major", "comments": ["app.py:3 leaks the handle"]}
    if isinstance(bench.agent, ClaudeCode):
        bench.model.then(Turn(calls=(Call("StructuredOutput", review),)), say("Reviewed."))
    else:
        bench.model.then(
            say('{"approved":false,"severity":"major","comments":["app.py:3 leaks the handle"]}')
        )
    outcome = bench.work("Review it", task={"id": "t3", "description": "Review"})
    assert isinstance(outcome, Done)
    (finding,) = bench.report.findings
    assert isinstance(finding, FeedbackRecorded)
    assert (finding.feedback.approved, finding.feedback.severity) == (False, "major")
    assert finding.feedback.comments == ("app.py:3 leaks the handle",)
    assert not finding.feedback.addressed


def test_installed_hooks_leave_the_pause_to_the_runner_and_go_on_guarding(bench: Bench) -> None:
    """Else the end of the agent's session would pause the workflow that its task belongs to."""
    workshop = bench.agent.workshop
    workshop.holdfast("winddown", "start", "--percent", "0.9").check()
    workshop.holdfast("winddown", "finalize").check()
    before = workshop.sessions
    assert len(before) == 1
    workshop.holdfast("install", bench.agent.name).check()
    workshop.configure(context_window=60_000)  # for the hooks; the agent itself has more
    home, full = workshop.home, Tokens(1_000, 20, 57_000)
    treasure = home / "treasure"
    treasure.write_text("gold")
    bench.model.then(bench.agent.shell(f"rm -rf {home}/", full), say("It was refused.", full))
    outcome = bench.work("Clean up", context="# Handover")
    assert isinstance(outcome, Done)
    assert (outcome.result or "").startswith("It was refused.")
    assert "this command was blocked" in bench.prompt()
    assert treasure.exists()
    assert bench.prompt().count("# Handover") == 1
    assert "Work in this folder was paused" not in bench.prompt()
    assert "Wrap up now" not in bench.prompt()
    assert workshop.sessions == before
    assert not workshop.journal.exists()
    assert not (workshop.project / ".holdfast" / "state" / "hook-errors.log").exists()


def test_what_was_not_permitted_is_said(claude_bench: Bench) -> None:
    settings = load_settings(cwd=claude_bench.project)
    claude_bench.driver = driver_named("claude-code", replace(settings, claude_args=("--model", MODEL)))
    claude_bench.model.then(call("Bash", command="touch it"), say("I could not."))
    outcome = claude_bench.work()
    assert isinstance(outcome, Done)
    assert "Not permitted: Bash" in (outcome.result or "")


def test_what_a_call_cost_is_of_this_task_alone(claude_bench: Bench) -> None:
    claude_bench.model.then(say("One.", Tokens(100_000, 0)), say("Two.", Tokens(100_000, 0)))
    claude_bench.work("One")
    first = claude_bench.report.cost
    claude_bench.work("Two", agent_session=claude_bench.report.sessions[-1])
    assert first > 0
    assert claude_bench.report.cost == pytest.approx(2 * first)


def test_a_sub_agent_has_a_window_of_its_own(claude_bench: Bench) -> None:
    helper = {"description": "look", "prompt": "I am the helper", "subagent_type": "general-purpose"}
    claude_bench.driver = driver_named(
        "claude-code", replace(load_settings(cwd=claude_bench.project), claude_args=("--model", MODEL))
    )

    def by_prompt(request: Seen) -> Turn:
        if "I am the helper" in request.text and "Find out" not in request.text:
            return say("Found.", Tokens(90_000, 7))
        if "toolu_" in str(request.body):
            return say("Done.", Tokens(2_000, 5))
        return Turn(calls=(Call("Task", helper),), tokens=Tokens(1_000, 5))

    claude_bench.model.then(*[by_prompt] * 6)
    claude_bench.work("Find out")
    shares = [one.utilization_percent for one in claude_bench.report.calls]
    assert any(tokens[0] == 90_000 for tokens in claude_bench.report.tokens)
    assert max(shares) < 0.05


def test_settings_of_the_agent_are_passed_on(claude_bench: Bench) -> None:
    assert Path(os.environ["HOME"]) == claude_bench.agent.workshop.home
    settings = load_settings({"HOLDFAST_CLAUDE_ARGS": "--model claude-opus-5-5"}, claude_bench.project)
    claude_bench.driver = driver_named("claude-code", settings)
    claude_bench.model.then(say("Done."))
    assert claude_bench.work() == Done("Done.")
    assert claude_bench.model.main[-1].body["model"].startswith("claude-opus-5-5")


_RUNNER = """
import sys
from pathlib import Path
from holdfast.project.settings import load_settings
from holdfast.workflows.drivers import driver_named
from workflows.drivers.recorder import Recorder, assignment
folder = Path(sys.argv[2])
driver_named(sys.argv[1], load_settings(cwd=folder)).run(assignment(folder), Recorder())
"""


def test_nothing_outlives_a_runner_that_was_killed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_CLAUDE_ARGS", f"--model {MODEL} --allowedTools=Bash")
    monkeypatch.setenv("HOLDFAST_CODEX_ARGS", "--dangerously-bypass-approvals-and-sandbox")
    pids = bench.project / "pids"
    bench.model.then(bench.agent.shell(f"echo $PPID $$ > {pids}; sleep 300 & echo $! >> {pids}; sleep 300"))
    words = [sys.executable, "-c", _RUNNER, bench.agent.name, str(bench.project)]
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(words, env=environ) as runner:
        wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 3)
        runner.kill()
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: not is_running(int(pid)))
