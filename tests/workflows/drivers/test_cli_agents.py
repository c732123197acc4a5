"""The drivers of Claude Code and Codex before programs that play what the real ones once printed.

The recordings in `recorded/` are of Claude Code 2.1.325 and Codex 0.166.0 before a scripted
model; `make test-agents` runs the same drivers with the programs themselves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.base.errors import CannotDoError, InvalidInputError
from holdfast.model.task import Task
from holdfast.project.settings import Settings, load_settings
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

RECORDED = Path(__file__).parent / "recorded"
RESETS_AT = datetime.fromtimestamp(1794775383, UTC)
LOST = "11111111-1111-4111-8111-111111111111"

_PLAYER = """#!{python}
import json, os, pathlib, subprocess, sys, time
box = pathlib.Path({box!r})
number = len(list(box.glob("call-*.json")))
(box / f"call-{{number}}.json").write_text(json.dumps(
    {{"words": sys.argv[1:], "prompt": sys.stdin.read(), "environ": dict(os.environ)}}))
scenes = json.loads((box / "scenes.json").read_text())
scene = scenes[min(number, len(scenes) - 1)]
if "rollout" in scene:
    text = pathlib.Path(scene["rollout"]).read_text()
    thread = json.loads(pathlib.Path(scene["stream"]).read_text().splitlines()[0])["thread_id"]
    folder = pathlib.Path(os.environ["CODEX_HOME"], "sessions", "2026", "01", "06")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"rollout-2026-01-06T00-00-00-{{thread}}.jsonl").write_text(text)
if "before" in scene:
    subprocess.run(scene["before"], shell=True, start_new_session=True)
for path in [scene["stream"]] if "stream" in scene else []:
    sys.stdout.write(pathlib.Path(path).read_text())
    sys.stdout.flush()
sys.stderr.write(scene.get("stderr", ""))
if "after" in scene:
    subprocess.run(scene["after"], shell=True, start_new_session=True)
sys.exit(scene.get("code", 0))
"""


class Stage:
    """A program that plays scenes, one a call, and the driver that calls it."""

    def __init__(self, agent: str, program: str, folder: Path) -> None:
        self.agent, self.program = agent, program
        self.box = folder / "box"
        self.project = folder / "project"
        programs = folder / "bin"
        for one in (self.box, self.project, programs):
            one.mkdir()
        player = programs / program
        player.write_text(_PLAYER.format(python=sys.executable, box=str(self.box)))
        player.chmod(0o755)
        self.programs = programs
        self.report = Recorder()

    def plays(self, *scenes: str | dict[str, Any]) -> None:
        self.box.joinpath("scenes.json").write_text(json.dumps([self._scene(one) for one in scenes]))

    def _scene(self, scene: str | dict[str, Any]) -> dict[str, Any]:
        if isinstance(scene, dict):
            return scene
        found: dict[str, Any] = {"stream": str(RECORDED / f"{self.program}-{scene}.jsonl")}
        rollout = RECORDED / f"{self.program}-{scene}.rollout.jsonl"
        if rollout.exists():
            found["rollout"] = str(rollout)
        return {**found, "code": 0 if scene.startswith("two-") else 1}

    def settings(self, **more: Any) -> Settings:
        return replace(load_settings({}, self.project), **more)

    def work(self, prompt: str = "Do it", settings: Settings | None = None, **more: Any) -> TaskOutcome:
        driver = driver_named(self.agent, settings or self.settings())
        return driver.run(assignment(self.project, prompt, **more), self.report)

    def call(self, number: int = -1) -> dict[str, Any]:
        calls = sorted(self.box.glob("call-*.json"))
        return json.loads(calls[number].read_text())


@pytest.fixture(params=["claude", "codex"])
def stage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage({"claude": "claude-code", "codex": "codex"}[request.param], request.param, tmp_path)
    for name in ("DISABLE_AUTO_COMPACT", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{stage.programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return stage


only_claude = pytest.mark.parametrize("stage", ["claude"], indirect=True)
only_codex = pytest.mark.parametrize("stage", ["codex"], indirect=True)


def good(stage: Stage) -> str:
    return "two-tools" if stage.program == "claude" else "two-calls"


def test_the_answer_and_every_call_once(stage: Stage) -> None:
    stage.plays(good(stage))
    assert stage.work() == Done("Done.")
    assert stage.report.tokens == [(3_010, 20), (4_011, 21)]
    assert stage.report.tool_calls == (2 if stage.program == "claude" else 1)
    window = 200_000 if stage.program == "claude" else 95_000
    assert [one.context_window_size for one in stage.report.calls] == [window, window]
    assert stage.report.calls[-1].utilization_percent == pytest.approx(4_032 / window)
    assert len({session.id for session in stage.report.sessions}) == 1


def test_a_window_that_is_set_goes_before_the_agents(stage: Stage) -> None:
    stage.plays(good(stage))
    stage.work(settings=stage.settings(context_window=10_000))
    assert stage.report.calls[-1].utilization_percent == pytest.approx(0.4032)


@only_claude
def test_what_it_cost_comes_with_the_last_call(stage: Stage) -> None:
    stage.plays("two-tools")
    stage.work()
    assert stage.report.cost == pytest.approx(0.002778)


def test_a_full_window_is_exhaustion(stage: Stage) -> None:
    stage.plays("window-full")
    outcome = stage.work()
    assert isinstance(outcome, Exhausted)
    assert "context window" in outcome.reason
    assert stage.report.tokens == [(100, 20)]


def test_a_used_up_quota_tells_when_it_resets(stage: Stage) -> None:
    stage.plays("quota")
    outcome = stage.work()
    assert isinstance(outcome, RateLimited)
    assert "limit" in outcome.reason
    assert outcome.resets_at == RESETS_AT


def test_a_refused_key_is_a_failure(stage: Stage) -> None:
    stage.plays("bad-key")
    outcome = stage.work()
    assert isinstance(outcome, Failed)
    assert "key" in outcome.reason.lower()


def test_how_it_is_called(stage: Stage) -> None:
    stage.plays(good(stage))
    stage.work("Do this", context="# Handover", message="Hurry", attempt=2)
    call = stage.call()
    for words in ("Do this", "# Handover", "The user says: Hurry", "earlier attempt"):
        assert words in call["prompt"]
    assert call["environ"]["HOLDFAST_TASK"] == "t1"
    if stage.program == "claude":
        assert call["words"][-2:] == ["--permission-mode", "acceptEdits"]
        assert call["environ"]["DISABLE_AUTO_COMPACT"] == "1"
    else:
        assert call["words"][0] == "exec"
        assert call["words"][-3:] == ["--sandbox", "workspace-write", "-"]


def test_a_prompt_longer_than_a_command_line_may_be(stage: Stage) -> None:
    stage.plays(good(stage))
    long = "word " * 1_000_000
    stage.work(context=long)
    assert long.strip() in stage.call()["prompt"]


def test_words_from_the_settings_are_passed_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.plays(good(stage))
    name = f"HOLDFAST_{stage.program.upper()}_ARGS"
    settings = load_settings({name: "--model 'a model'"}, stage.project)
    stage.work(settings=settings)
    words = stage.call()["words"]
    assert words[words.index("--model") + 1] == "a model"


def test_a_review_is_asked_for_in_a_schema(stage: Stage) -> None:
    stage.plays(good(stage))
    stage.work("Review it", task={"description": "Review"})
    words = stage.call()["words"]
    assert "--json-schema" in words or "--output-schema" in words
    assert len(stage.report.findings) == 1


def test_a_session_is_gone_on_with(stage: Stage) -> None:
    stage.plays(good(stage))
    own = DriverSession("abc", stage.agent)
    stage.work(agent_session=own, context="# Handover")
    assert "abc" in stage.call()["words"]
    assert "# Handover" not in stage.call()["prompt"]


@pytest.mark.parametrize(
    ("trigger", "share", "is_taken_up"),
    [("pause", 0.3, True), ("pause", 0.7, False), ("exhaustion", 0.3, False), ("crash", None, False)],
)
def test_an_old_session_is_taken_up_where_its_window_has_room(
    stage: Stage, trigger: Any, share: float | None, is_taken_up: bool
) -> None:
    stage.plays(good(stage))
    earlier = EarlierSession(trigger, DriverSession("old", stage.agent), share)
    stage.work(earlier=earlier, context="# Handover")
    assert ("old" in stage.call()["words"]) is is_taken_up
    assert "# Handover" in stage.call()["prompt"]


def test_a_session_of_another_machine_or_agent_is_not_asked_for(stage: Stage, tmp_path: Path) -> None:
    stage.plays(good(stage))
    for session in (
        DriverSession("old", stage.agent, tmp_path / "elsewhere.jsonl"),
        DriverSession("old", "gemini"),
    ):
        stage.work(agent_session=session, context="# Handover")
        assert "old" not in stage.call()["words"]
        assert "# Handover" in stage.call()["prompt"]


def test_a_session_it_no_longer_knows_is_begun_anew(stage: Stage) -> None:
    stderr = f"Error: thread/resume failed: no rollout found for thread id {LOST}\n"
    gone = "no-conversation" if stage.program == "claude" else {"stderr": stderr, "code": 1}
    stage.plays(gone, good(stage))
    lost = DriverSession(LOST, stage.agent)
    assert stage.work(agent_session=lost, context="# Handover") == Done("Done.")
    assert LOST in stage.call(0)["words"]
    assert LOST not in stage.call(1)["words"]
    assert "# Handover" in stage.call(1)["prompt"]


def test_a_program_that_says_nothing_useful(stage: Stage, tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish"
    rubbish.write_text(
        'warning: \x1b[31mred\x1b[0m\n{"torn": \n[1]\n"text"\n{}\n{"type": 3}\n{"type": "result"'
    )
    stage.plays({"stream": str(rubbish), "stderr": "token=sk-ant-api03-" + "aB3dE5gH7" * 10, "code": 3})
    outcome = stage.work()
    assert isinstance(outcome, Failed)
    assert "3" in outcome.reason
    assert "aB3dE5gH7" not in outcome.reason


def test_a_line_longer_than_any_is_passed_over(stage: Stage, tmp_path: Path) -> None:
    long = tmp_path / "long"
    recorded = Path(str(RECORDED / f"{stage.program}-{good(stage)}.jsonl")).read_text()
    first, _, rest = recorded.partition("\n")
    long.write_text(f'{first}\n{{"type": "{"x" * (17 << 20)}"}}\n{rest}')
    stage.plays({"stream": str(long)})
    assert stage.work() == Done("Done.")


def test_something_left_behind_does_not_hold_the_task_up(stage: Stage) -> None:
    stream = str(RECORDED / f"{stage.program}-{good(stage)}.jsonl")
    pid = stage.box / "pid"
    stage.plays({"stream": stream, "after": f"sleep 300 & echo $! > {pid}"})
    assert stage.work() == Done("Done.")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_stop_ends_it_and_what_its_tools_started(stage: Stage) -> None:
    pid = stage.box / "pid"
    stage.plays({"before": f"echo $$ > {pid}; exec sleep 300"})
    job = assignment(stage.project)
    thread = threading.Thread(
        target=lambda: (
            wait_for(lambda: pid.exists() and pid.read_text().strip()),
            job.stop.request("enough"),
        )
    )
    thread.start()
    outcome = driver_named(stage.agent, stage.settings()).run(job, stage.report)
    thread.join()
    assert outcome == TaskInterrupted("enough")
    wait_for(lambda: not is_running(int(pid.read_text())))


_RUNNER = """
import sys
from pathlib import Path
from holdfast.project.settings import load_settings
from holdfast.workflows.drivers import driver_named
from workflows.drivers.recorder import Recorder, assignment
folder = Path(sys.argv[2])
driver_named(sys.argv[1], load_settings({}, folder)).run(assignment(folder), Recorder())
"""


def test_neither_outlives_a_killed_runner(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = stage.box / "pid"
    stage.plays({"before": f"echo $$ > {pid}; exec sleep 300"})
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-c", _RUNNER, stage.agent, str(stage.project)]
    with subprocess.Popen(words, env=environ) as runner:
        wait_for(lambda: pid.exists() and pid.read_text().strip())
        runner.kill()
    wait_for(lambda: not is_running(int(pid.read_text())))


def test_a_worktree_that_is_gone_is_a_failure_with_its_name(stage: Stage) -> None:
    driver = driver_named(stage.agent, stage.settings())
    outcome = driver.run(assignment(stage.project / "gone"), stage.report)
    assert isinstance(outcome, Failed)
    assert "gone" in outcome.reason


def test_a_stop_before_the_start_counts(stage: Stage) -> None:
    job = assignment(stage.project)
    job.stop.request("too late")
    assert driver_named(stage.agent, stage.settings()).run(job, stage.report) == TaskInterrupted("too late")


def test_what_is_missing_is_said_before_anything_starts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver = driver_named(stage.agent, stage.settings())
    driver.check(Task(id="a", description="", prompt="Do it"))
    with pytest.raises(InvalidInputError, match="no prompt"):
        driver.check(Task(id="a", description=""))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotDoError, match=f"{stage.program} is not installed") as missing:
        driver.check(Task(id="a", description="", prompt="Do it"))
    assert "npm install" in (missing.value.hint or "")


@only_codex
def test_without_its_rollout_the_end_of_the_turn_tells_usage(stage: Stage) -> None:
    stage.plays({"stream": str(RECORDED / "codex-two-calls.jsonl")})
    assert stage.work() == Done("Done.")
    assert stage.report.tokens == [(7_021, 41)]


@pytest.mark.parametrize("program", ["gemini", "opencode"])
def test_gemini_and_opencode_tell_usage_answer_and_a_full_window(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(program, program, tmp_path)
    for name in ("GEMINI_CLI_HOME", "XDG_DATA_HOME", "HOLDFAST_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("OPENCODE_DB", "OPENCODE_DISABLE_AUTOCOMPACT", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{stage.programs}{os.pathsep}{os.environ['PATH']}")
    stage.plays("two-calls", "window-full", {"code": 1, "stderr": "Session not found"}, "two-calls")
    mine = load_settings({"HOLDFAST_HOME": str(tmp_path / "home")}, stage.project)
    assert stage.work("Do it", replace(mine, context_window=10_000), context="# Handover") == Done("Done.")
    # Without its chat file Gemini CLI tells of all calls at once.
    told = [(7_021, 41)] if program == "gemini" else [(3_010, 20), (4_011, 21)]
    assert (stage.report.tokens, stage.report.tool_calls) == (told, 1)
    assert "# Handover" in stage.call()["prompt"]
    unset = {"gemini": "GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "opencode": "OPENCODE_DISABLE_AUTOCOMPACT"}[program]
    assert stage.call()["environ"][unset]
    session = stage.report.sessions[-1]
    assert (session.agent, session.id) == (program, stage.report.sessions[0].id)
    full = stage.work(agent_session=session)
    assert isinstance(full, Exhausted)
    assert session.id in stage.call()["words"]
    if program == "opencode":
        assert stage.work(agent_session=session) == Done("Done.")
        assert session.id not in stage.call()["words"]
