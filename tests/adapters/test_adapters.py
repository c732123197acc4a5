# pyright: reportMissingTypeStubs=false
"""Adapters of agent frameworks: each example runs, what was paused is handed over, nothing is done twice."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.harness import PATIENCE, Place
from holdfast import IncrementalPauseManager
from holdfast.adapters import PausableSession
from holdfast.adapters.langgraph import import_threads
from holdfast.adapters.langgraph import run as run_graph
from holdfast.adapters.openai_agents import HoldfastSession, conversation
from holdfast.adapters.openai_agents import run as run_openai
from holdfast.adapters.pydantic_ai import run as run_agent
from holdfast.base.errors import CannotDoError, DamagedDataError, MissingExtraError
from holdfast.model.message import Message, TokenUsage

EXAMPLES = Path(__file__).parents[2] / "examples" / "adapters"


def example(name: str, tmp_path: Path) -> str:
    environment = {**Place(tmp_path).environment, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_example_of_pydantic_ai(tmp_path: Path) -> None:
    first, last = example("with_pydantic_ai", tmp_path).splitlines()
    assert re.fullmatch(r"Paused after \['harbour', 'storm'\]: session-\d{8}-\d{6}", first)
    assert last == "The book is done. ['harbour', 'storm', 'island']"


def test_the_example_of_langgraph(tmp_path: Path) -> None:
    printed = example("with_langgraph", tmp_path)
    assert re.match(r"Paused: session-\d{8}-\d{6}\n# Handover\n", printed)
    assert '- Goal: "Write a book of three chapters"' in printed
    written = ("Write a book of three chapters", *(f"Chapter {name} is written." for name in CHAPTERS))
    assert f"{list(written)}\n" in printed  # each once
    assert printed.splitlines()[-1].count("session-") == 2  # this thread and the poem


CHAPTERS = ("harbour", "storm", "island")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    for name, value in place.environment.items():
        if name.startswith(("HOLDFAST", "XDG", "HOME")):
            monkeypatch.setenv(name, value)
    return place


class TestPydanticAi:
    @staticmethod
    def agent(seen: list[str], calls: list[int]) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel
        from pydantic_ai.usage import RequestUsage

        def model(messages: list[Any], _info: Any) -> Any:
            seen.append(str(messages[0].parts[-1].content))
            usage = RequestUsage(input_tokens=950, output_tokens=10)
            if len(calls) >= 2:
                return ModelResponse(parts=[TextPart("all done")], usage=usage)
            return ModelResponse(parts=[ToolCallPart("count", {})], usage=usage)

        agent = Agent(FunctionModel(model))

        def count() -> str:
            calls.append(1)
            return f"counted to {len(calls)}"

        agent.tool_plain(count)
        return agent

    def test_the_next_window_begins_with_the_handover(self, place: Place) -> None:
        seen: list[str] = []
        calls: list[int] = []
        agent = self.agent(seen, calls)
        session = PausableSession("counting", place.project, context_window=1_000)
        first = asyncio.run(run_agent(agent, "Count to two", session))
        assert (first.output, len(calls)) == (None, 1)
        again = PausableSession("counting", place.project, context_window=1_000)  # as another process would
        second = asyncio.run(run_agent(agent, "Go on", again))
        third = asyncio.run(run_agent(agent, "Go on", again))
        assert (bool(second.paused), third.output, len(calls)) == (True, "all done", 2)
        assert seen[0] == "Count to two"
        assert re.fullmatch(r"# Handover\n.*Count to two.*\n\nGo on", seen[1], re.DOTALL)

    def test_a_program_may_ask_for_a_pause(self, place: Place) -> None:
        calls: list[int] = []
        session = PausableSession(
            "counting", place.project, context_window=1_000_000, stop=lambda: bool(calls)
        )
        assert asyncio.run(run_agent(self.agent([], calls), "Count", session)).paused
        shown = place.run("threads", "--json").data
        assert [one["title"] for one in shown] == ["Count"]

    def test_the_pauses_of_one_session_are_one_thread(self, place: Place) -> None:
        calls: list[int] = []
        agent = self.agent([], calls)
        session = PausableSession("counting", place.project, context_window=1_000)
        for _ in range(2):
            assert asyncio.run(run_agent(agent, "Count", session)).paused
        (thread,) = place.run("threads", "--json").data
        assert len(thread["sessions"]) == 2


def test_a_graph_without_a_checkpointer_is_refused_before_it_runs(place: Place) -> None:
    from langgraph.graph import END, START, MessagesState, StateGraph

    ran: list[int] = []

    def node(_state: MessagesState) -> dict[str, Any]:
        ran.append(1)
        return {"messages": []}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    with pytest.raises(CannotDoError, match="no checkpointer"):
        run_graph(builder.compile(), {"messages": []}, PausableSession("a", place.project))
    assert ran == []


def test_a_thread_is_imported_once_for_each_checkpoint(place: Place) -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import END, START, MessagesState, StateGraph

    builder: Any = StateGraph(MessagesState)
    builder.add_node("answer", lambda _state: {"messages": [("ai", "It is the hinge.")]})
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    saver = InMemorySaver()
    graph = builder.compile(checkpointer=saver)
    for thread in ("door", "window"):
        graph.invoke({"messages": [("user", f"Why does the {thread} squeak?")]}, with_thread(thread))
    assert len(import_threads(saver, place.project)) == 2
    assert import_threads(saver, place.project) == []
    graph.invoke({"messages": [("user", "And now?")]}, with_thread("door"))
    (again,) = import_threads(saver, place.project)
    told = place.run("context", again)
    assert "It is the hinge." in told.out


def with_thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


class TestSessionOfTheOpenAiSdk:
    """The SDK asks for these four methods and two fields (`agents.memory.Session`)."""

    def test_it_keeps_items_in_their_order(self, place: Place) -> None:
        async def use() -> None:
            session = HoldfastSession("support", place.project)
            assert (session.session_id, session.session_settings) == ("support", None)
            assert await session.get_items() == []
            assert await session.pop_item() is None
            items = [{"role": "user", "content": f"message {number} äö\u2028"} for number in range(5)]
            await session.add_items(items[:2])
            await session.add_items(items[2:])
            other = HoldfastSession("support", place.project)
            assert await other.get_items() == items
            assert await other.get_items(limit=2) == items[-2:]
            assert await other.get_items(limit=0) == []
            assert await other.pop_item() == items[-1]
            assert await session.get_items() == items[:-1]
            assert await HoldfastSession("other", place.project).get_items() == []
            await session.clear_session()
            assert await other.get_items() == []

        asyncio.run(use())

    def test_items_of_several_threads_are_all_kept(self, place: Place) -> None:
        def add(number: int) -> None:
            session = HoldfastSession("support", place.project)
            asyncio.run(session.add_items([{"role": "user", "content": str(number)}]))

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(add, range(24)))
        items = asyncio.run(HoldfastSession("support", place.project).get_items())
        assert sorted(int(item["content"]) for item in items) == list(range(24))

    def test_a_damaged_conversation_is_told_and_kept(self, place: Place) -> None:
        session = HoldfastSession("support", place.project)
        asyncio.run(session.add_items([{"role": "user", "content": "hello"}]))
        (file,) = (place.project / ".holdfast/state/openai-agents").glob("*.json")
        file.write_bytes(b"[{")
        with pytest.raises(DamagedDataError):
            asyncio.run(session.get_items())
        with pytest.raises(DamagedDataError):
            asyncio.run(session.add_items([{"role": "user", "content": "more"}]))
        assert file.read_bytes() == b"[{"

    def test_its_conversation_is_handed_over(self, place: Place) -> None:
        session = HoldfastSession("support", place.project)
        items = [
            {"role": "user", "content": "Find out why the door squeaks"},
            {"type": "function_call", "name": "look", "call_id": "1", "arguments": '{"at": "hinge"}'},
            {"type": "function_call_output", "call_id": "1", "output": "rust everywhere"},
            {"type": "function_call", "name": "look", "call_id": "2", "arguments": "not JSON"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It rusts."}],
            },
            {"type": "reasoning", "summary": []},
        ]
        session.used(TokenUsage(100, 20, model="gpt-4o"))
        session.pause(conversation(items), agent="openai-agents")
        told = session.handover()
        assert "Find out why the door squeaks" in told
        assert "It rusts." in told

    def test_without_the_sdk_the_extra_is_named(self, place: Place) -> None:
        with pytest.raises(MissingExtraError) as told:
            asyncio.run(run_openai(object(), "hello", HoldfastSession("a", place.project)))
        assert told.value.hint == "pip install 'holdfast[openai-agents]'"


def test_a_session_that_was_never_paused_hands_nothing_over(place: Place) -> None:
    session = PausableSession("new", place.project)
    assert (session.handover(), session.new_window()) == ("", "")


def test_a_pause_beside_somebody_elses_wind_down_is_saved_and_leaves_it_alone(place: Place) -> None:
    manager = IncrementalPauseManager(place.project)
    name = manager.start_incremental_pause(0.9, {})
    session = PausableSession("mine", place.project)
    saved = session.pause([Message(0, "user", text="Oil the hinge")], agent="mine")
    assert "Oil the hinge" in session.handover()
    summary = manager.get_pause_summary()
    assert summary is not None
    assert (summary["session_id"], summary["action_count"]) == (name, 1)
    finalized = manager.finalize_pause()
    assert finalized is not None
    assert finalized.stem != saved
    assert "Oil the hinge" in session.handover()


def test_programs_that_pause_together_are_all_saved(place: Place) -> None:
    def pause(number: int) -> str:
        session = PausableSession(f"worker-{number}", place.project)
        return session.pause([Message(0, "user", text=f"Oil hinge {number}")], agent="mine")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        names = list(pool.map(pause, range(8)))
    assert len(set(names)) == 8
    for number in range(8):
        assert f"Oil hinge {number}" in PausableSession(f"worker-{number}", place.project).handover()
