"""Claude Code's stream as a node, with recorded lines from a real process."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from flow.harness import play
from holdfast.base.errors import NodeFailedError
from holdfast.flow.agents.claude_code import claude_code_node
from holdfast.flow.graph import Flow, NodeBody
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.journal.usage import ContextUsageTracker
from holdfast.model.flow import SessionState

HERE = Path(__file__).parent
RECORDED = (HERE / "claude_stream.jsonl").read_text()
SESSION = json.loads(RECORDED.splitlines()[0])["session_id"]


class Player:
    """A program that plays lines, and what it was told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notes = folder / "notes.jsonl"

    def command(self, lines: str = RECORDED, wait_after: int = -1) -> list[str]:
        said = self._folder / "lines.jsonl"
        said.write_text(lines)
        return [sys.executable, str(HERE / "stream_player.py"), str(self._notes), str(said), str(wait_after)]

    @property
    def notes(self) -> list[Any]:
        return [json.loads(line) for line in self._notes.read_text().splitlines()]


@pytest.fixture
def player(tmp_path: Path) -> Player:
    return Player(tmp_path)


def node_of(command: list[str], **options: Any) -> NodeBody:
    words = ("--model", "m")
    return claude_code_node(lambda step: f"Fix {step.input}", command=command, options=words, **options)


def flow_with(command: list[str], **options: Any) -> Flow:
    flow = Flow("claude")
    flow.node(node_of(command, **options), name="fix")
    return flow


def test_it_is_asked_on_its_input_and_its_answer_is_the_output(player: Player) -> None:
    state = play(Hub().run(flow_with(player.command()), "the parser"))
    (note,) = player.notes
    assert note["input"] == "Fix the parser"
    assert note["words"] == ["-p", "--output-format", "stream-json", "--verbose", "--model", "m"]
    assert state.outputs["fix"] == json.loads(RECORDED.splitlines()[-1])["result"]


def test_its_use_of_the_window_goes_to_the_tracker_once_a_message(player: Player, tmp_path: Path) -> None:
    tracker = ContextUsageTracker(tmp_path, session_id=SESSION)
    play(Hub().run(flow_with(player.command(), usage=tracker), "it"))
    messages = [json.loads(line)["message"] for line in RECORDED.splitlines() if '"assistant"' in line]
    calls = {message["id"]: message["usage"] for message in messages if "usage" in message}
    last = list(calls.values())[-1]
    state = tracker.get_current_state()
    assert state.reports == len(calls)
    assert state.input_tokens == last["input_tokens"]
    assert state.total_tokens == sum(
        last[name] or 0
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        )
    )


def test_paused_in_mid_stream_it_is_ended_politely_and_its_session_goes_on(player: Player) -> None:
    async def scene() -> tuple[SessionState, SessionState]:
        hub = Hub()
        agent = node_of(player.command(wait_after=3))

        async def paused_after_the_first_message(step: Step) -> AsyncIterator[Any]:
            async with aclosing(agent(step)) as messages:
                async for message in messages:
                    hub.pause("lunch")
                    yield message

        first = Flow("claude")
        first.node(paused_after_the_first_message, name="fix")
        paused = await hub.run(first, "the parser", session_id="s1")
        hub.register(flow_with(player.command()))
        return paused, await hub.resume("s1", "and mind the tests")

    paused, done = play(scene())
    assert paused.status == "paused"
    assert paused.interrupted["fix"].provider_session == SESSION
    assert len(paused.interrupted["fix"].partial) == 1
    called, ended, again = player.notes
    assert (called["input"], ended) == ("Fix the parser", "ended")
    assert again["input"] == "and mind the tests"
    assert again["words"][-2:] == ["--resume", SESSION]
    assert done.outputs["fix"] == json.loads(RECORDED.splitlines()[-1])["result"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "without a result: no message"),
        ("no JSON\n[1]\n", "without a result"),
        (json.dumps({"type": "result", "is_error": True, "result": "Credit balance is too low"}), "Credit"),
    ],
    ids=["nothing", "rubbish", "an error"],
)
def test_an_end_without_an_answer_is_a_failure_in_words(player: Player, lines: str, said: str) -> None:
    with pytest.raises(NodeFailedError, match=said):
        play(Hub().run(flow_with(player.command(lines)), "it"))


def test_a_program_that_is_not_there_is_a_failure_in_words() -> None:
    with pytest.raises(NodeFailedError, match="no-such-claude could not be started") as raised:
        play(Hub().run(flow_with(["no-such-claude"]), "it"))
    assert "install" in str(raised.value.hint)


def test_a_line_of_megabytes_is_read_whole(player: Player) -> None:
    long = json.dumps({"type": "result", "session_id": SESSION, "result": "x" * 3_000_000})
    state = play(Hub().run(flow_with(player.command(long)), "it"))
    assert len(state.outputs["fix"]) == 3_000_000
