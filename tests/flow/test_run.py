"""What a flow does when nobody disturbs it, and when a node fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest
from pydantic import BaseModel

from flow.harness import play
from holdfast.base.errors import ConflictError, NodeFailedError, SessionAlreadyRunningError
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.flow.store import MemoryFlowStore


def give(value: Any) -> Callable[[Step], Any]:
    return lambda step: value


def run(flow: Flow, given: Any = None) -> dict[str, Any]:
    state = play(Hub().run(flow, given))
    assert state.status == "complete"
    return state.outputs


def test_outputs_flow_along_the_edges() -> None:
    flow = Flow("greeting")

    @flow.node
    def name(step: Step) -> str:
        return step.input["name"].title()

    @flow.node(after="name")
    async def greet(step: Step) -> str:
        await asyncio.sleep(0)
        return f"Hello {step.received}"

    assert run(flow, {"name": "ada"}) == {"name": "Ada", "greet": "Hello Ada"}


def test_a_join_waits_for_all_and_sees_what_each_put_out() -> None:
    flow = Flow("diamond")
    flow.node(give(1), name="top")
    flow.node(lambda step: step.received + 1, name="left", after="top")
    flow.node(lambda step: step.received + 2, name="right", after="top")
    flow.node(lambda step: step.received, name="bottom", after=("left", "right"))
    assert run(flow)["bottom"] == {"left": 2, "right": 3}


def test_a_condition_chooses_the_way_and_the_other_one_is_skipped_to_its_end() -> None:
    flow = Flow("choice")
    flow.node(lambda step: step.input, name="sort")
    flow.node(give("big"), name="big", after="sort", when=lambda output: output > 10)
    flow.node(give("small"), name="small", after="sort", when=lambda output: output <= 10)
    flow.node(give("more"), name="more", after="small")
    flow.node(lambda step: sorted(step.inputs), name="end", after=("big", "more"))
    assert run(flow, 99) == {"sort": 99, "big": "big", "end": ["big"]}
    flow.name = "again"
    assert run(flow, 1) == {"sort": 1, "small": "small", "more": "more", "end": ["more"]}


def test_a_node_sees_only_those_that_led_to_it() -> None:
    flow = Flow("cut")
    flow.node(give(1), name="a")
    flow.node(give(2), name="b")
    flow.node(lambda step: step.received, name="end", after="a")
    flow.edge("b", "end", when=lambda output: False)
    assert run(flow)["end"] == {"a": 1}


def test_a_node_to_which_nothing_leads_is_skipped() -> None:
    flow = Flow("none")
    flow.node(give(1), name="a")
    flow.node(give(2), name="b", after="a", when=lambda output: False)
    flow.node(give(3), name="c", after="b")
    assert run(flow) == {"a": 1}


def test_foreach_keeps_the_order_of_its_items_and_its_bound() -> None:
    under_way, most = 0, 0

    async def each(step: Step) -> list[int]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        for _ in range(10 - step.item):
            await asyncio.sleep(0)
        under_way -= 1
        return [step.index, step.item]

    flow = Flow("loop")
    flow.node(lambda step: list(range(10)), name="list")
    flow.foreach(each, over="list", at_most=3)
    assert run(flow)["each"] == [[number, number] for number in range(10)]
    assert most == 3


def test_foreach_over_nothing_puts_out_an_empty_list() -> None:
    flow = Flow("loop")
    flow.foreach(give(1), name="each", over=lambda step: [])
    flow.node(lambda step: step.received, name="after", after="each")
    assert run(flow) == {"each": [], "after": []}


@pytest.mark.parametrize("items", ["text", {"a": 1}, 7, None])
def test_foreach_over_what_is_no_list_fails_in_words(items: Any) -> None:
    flow = Flow("loop")
    flow.node(give(items), name="list")
    flow.foreach(give(1), name="each", over="list")
    with pytest.raises(NodeFailedError, match=f"not {type(items).__name__}"):
        run(flow)


def test_a_flow_inside_gets_what_its_node_receives_and_gives_what_its_last_node_gives() -> None:
    inner = Flow("inner")
    inner.node(lambda step: step.input + 1, name="a")
    inner.node(lambda step: step.received * 10, name="b", after="a")
    flow = Flow("outer")
    flow.node(give(1), name="start")
    flow.subflow(inner, after="start")
    flow.subflow(inner, name="other", after="start", takes=lambda step: step.received + 5)
    flow.node(lambda step: step.received, name="end", after=("inner", "other"))
    assert run(flow)["end"] == {"inner": 20, "other": 70}


def test_a_flow_with_several_last_nodes_gives_them_by_name() -> None:
    inner = Flow("inner")
    inner.node(give(1), name="a")
    inner.node(give(2), name="b")
    inner.node(give(3), name="c", after="b", when=lambda output: False)
    flow = Flow("outer")
    flow.subflow(inner)
    assert run(flow) == {"inner": {"a": 1}}


def test_a_flow_runs_for_each_item() -> None:
    inner = Flow("inner")
    inner.node(lambda step: step.input * 2, name="double")
    flow = Flow("outer")
    flow.foreach(inner, over=lambda step: [1, 2, 3], name="each")
    assert run(flow) == {"each": [2, 4, 6]}


def test_flows_nest_as_deep_as_one_likes() -> None:
    flow = Flow("f0")
    flow.node(give("deep"), name="n")
    for number in range(1, 3000):
        outer = Flow(f"f{number}")
        outer.subflow(flow, name="n")
        flow = outer
    assert run(flow) == {"n": "deep"}


def test_a_chain_may_be_long_and_a_flow_wide() -> None:
    flow = Flow("long")
    flow.node(give(0), name="n0")
    for number in range(1, 5000):
        flow.node(lambda step: step.received + 1, name=f"n{number}", after=f"n{number - 1}")
    assert run(flow)["n4999"] == 4999
    flow = Flow("wide")
    for number in range(5000):
        flow.node(give(1), name=f"n{number}")
    flow.node(lambda step: sum(step.inputs.values()), name="sum", after=[f"n{n}" for n in range(5000)])
    assert run(flow)["sum"] == 5000


def test_skipping_goes_on_along_any_length() -> None:
    flow = Flow("skipped")
    flow.node(give(0), name="n0")
    flow.node(give(0), name="n1", after="n0", when=lambda output: False)
    for number in range(2, 20_000):
        flow.node(give(0), name=f"n{number}", after=f"n{number - 1}")
    assert run(flow) == {"n0": 0}


def test_at_most_so_many_nodes_are_under_way() -> None:
    under_way, most = 0, 0

    async def node(step: Step) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    flow = Flow("bounded", at_most=5)
    for number in range(50):
        flow.node(node, name=f"n{number}")
    run(flow)
    assert most == 5


def test_agents_put_out_their_messages_or_their_answer() -> None:
    flow = Flow("agents")

    @flow.node
    async def talks(step: Step) -> AsyncIterator[str]:
        yield "one"
        yield "two"

    @flow.node
    async def answers(step: Step) -> AsyncIterator[str]:
        yield "thinking"
        step.answer(42)

    class Anything:
        def __init__(self) -> None:
            self.left = ["a", "b"]

        def __aiter__(self) -> Anything:
            return self

        async def __anext__(self) -> str:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    flow.node(lambda step: Anything(), name="anything")
    assert run(flow) == {"talks": ["one", "two"], "answers": 42, "anything": ["a", "b"]}


def test_a_function_may_return_anything_that_can_be_awaited() -> None:
    flow = Flow("awaited")

    def node(step: Step) -> asyncio.Future[str]:
        future = asyncio.get_running_loop().create_future()
        future.set_result("later")
        return future

    flow.node(node)
    assert run(flow) == {"node": "later"}


def test_what_a_node_does_to_its_context_stays_with_it() -> None:
    mark: ContextVar[str] = ContextVar("mark", default="clean")

    def stain(step: Step) -> str:
        before = mark.get()
        mark.set("stained")
        return before

    flow = Flow("contexts")
    flow.node(stain, name="a")
    flow.node(stain, name="b", after="a")
    assert run(flow) == {"a": "clean", "b": "clean"}


def test_plain_functions_leave_others_their_turns() -> None:
    async def scene() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        flow = Flow("busy")
        for number in range(20_000):
            flow.node(give(0), name=f"n{number}")
        task = asyncio.create_task(other())
        await Hub().run(flow)
        task.cancel()
        await asyncio.wait([task])
        assert turns > 5

    play(scene())


class TestFailures:
    def test_siblings_finish_what_comes_after_does_not_start_and_a_resume_tries_again(self) -> None:
        ran: list[str] = []
        broken = True

        async def fails(step: Step) -> str:
            ran.append("fails")
            if broken:
                raise ValueError("no luck")
            return "mended"

        async def sibling(step: Step) -> str:
            for _ in range(5):
                await asyncio.sleep(0)
            ran.append("sibling")
            return "done"

        def later(step: Step) -> Any:
            ran.append("later")
            return step.received

        flow = Flow("failing")
        flow.node(fails)
        flow.node(sibling)
        flow.node(later, after=("fails", "sibling"))

        async def scene() -> None:
            nonlocal broken
            hub = Hub()
            with pytest.raises(
                NodeFailedError, match=r"node 'fails' of session s1 failed: ValueError: no luck"
            ) as e:
                await hub.run(flow, session_id="s1")
            assert isinstance(e.value.__cause__, ValueError)
            assert e.value.hint
            assert ran == ["fails", "sibling"]
            state = await hub.state("s1")
            assert (state.status, state.node_id, state.outputs) == ("paused", "fails", {"sibling": "done"})
            assert "no luck" in str(state.reason)
            broken = False
            assert (await hub.resume("s1", "try again")).outputs["later"] == {
                "fails": "mended",
                "sibling": "done",
            }
            assert ran == ["fails", "sibling", "fails", "later"]

        play(scene())

    def test_a_failure_inside_is_told_by_its_path(self) -> None:
        inner = Flow("inner")
        inner.node(lambda step: 1 // step.input, name="divide")
        flow = Flow("outer")
        flow.foreach(inner, over=lambda step: [1, 0], name="each")
        with pytest.raises(NodeFailedError, match=r"each#1/divide.*ZeroDivisionError"):
            run(flow)

    def test_several_failures_are_counted(self) -> None:
        async def fails(step: Step) -> None:
            raise ValueError

        flow = Flow("failing")
        for name in "abc":
            flow.node(fails, name=name)
        with pytest.raises(NodeFailedError, match=r"'a'.* failed \(and 2 more\): ValueError"):
            run(flow)

    def test_a_condition_that_fails_does_not_make_its_node_run_again(self) -> None:
        ran: list[str] = []
        broken = True

        def choose(output: Any) -> bool:
            if broken:
                raise LookupError("which way?")
            return True

        flow = Flow("conditions")
        flow.node(lambda step: ran.append("a"), name="a")
        flow.node(give("end"), name="end", after="a", when=choose)

        async def scene() -> None:
            nonlocal broken
            hub = Hub()
            with pytest.raises(NodeFailedError, match=r"a → end.*which way"):
                await hub.run(flow, session_id="s1")
            broken = False
            assert (await hub.resume("s1", "that way")).outputs == {"a": None, "end": "end"}
            assert ran == ["a"]

        play(scene())

    def test_a_condition_is_asked_once(self) -> None:
        asked: list[Any] = []

        def choose(output: Any) -> bool:
            asked.append(output)
            return len(asked) == 1

        flow = Flow("conditions")
        flow.node(give(1), name="a")
        flow.node(lambda step: None if step.messages else step.pause("ask"), name="b", after="a")
        flow.node(give("end"), name="end", after="a", when=choose)
        flow.edge("b", "end")

        async def scene() -> None:
            hub = Hub()
            state = await hub.run(flow)
            assert state.status == "paused"
            assert (await hub.resume(state.session_id, "yes")).outputs["end"] == "end"
            assert asked == [1]

        play(scene())

    def test_a_node_that_cancels_itself_has_failed(self) -> None:
        async def node(step: Step) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

        flow = Flow("cancels")
        flow.node(node)
        with pytest.raises(NodeFailedError, match="was cancelled"):
            run(flow)


def test_an_id_of_a_running_or_known_session_is_refused() -> None:
    flow = Flow("one")

    async def again(step: Step) -> None:
        with pytest.raises(SessionAlreadyRunningError, match="s1"):
            await hub.run(flow, session_id="s1")

    flow.node(again)
    hub = Hub()

    async def scene() -> None:
        await hub.run(flow, session_id="s1")
        with pytest.raises(ConflictError, match="s1"):
            await hub.run(flow, session_id="s1")
        assert hub.status == "complete"

    play(scene())


def test_only_items_of_a_loop_have_an_item() -> None:
    flow = Flow("plain")
    flow.node(lambda step: step.item, name="node")
    with pytest.raises(NodeFailedError, match="foreach"):
        run(flow)


def test_a_loop_runs_until_its_output_is_right_and_a_resume_allows_as_many_rounds_again() -> None:
    ran: list[int] = []
    inner = Flow("round")
    inner.node(lambda step: ran.append(step.input) or step.input + 1, name="more")

    def loop(enough: int) -> Flow:
        flow = Flow("loop")
        flow.repeat(inner, name="grow", until=lambda output: output >= enough, at_most=4)
        flow.node(lambda step: -step.received, name="then", after="grow")
        return flow

    async def scene() -> None:
        store = MemoryFlowStore()
        with pytest.raises(NodeFailedError, match="not done after 4 rounds") as raised:
            await Hub(store=store).run(loop(15), 10, session_id="s1")
        assert "as many rounds again" in str(raised.value.hint)
        with pytest.raises(NodeFailedError, match="not done after 8 rounds"):
            await Hub(loop(25), store=store).resume("s1", "more")
        done = await Hub(loop(20), store=store).resume("s1", "more")
        assert (done.outputs, ran) == ({"grow": 20, "then": -20}, [*range(10, 20)])

    play(scene())


class Chapter(BaseModel):
    title: str
    words: int


def test_a_typed_step_receives_what_it_says_or_an_error_that_names_the_field() -> None:
    flow = Flow("typed")
    flow.node(lambda step: step.input, name="write")

    @flow.node(after="write")
    def count(step: Step[Chapter]) -> int:
        return step.received.words * 2

    assert play(Hub().run(flow, {"title": "tides", "words": 4})).outputs["count"] == 8
    with pytest.raises(NodeFailedError, match=r"'count' received something else: words: .*integer"):
        play(Hub().run(flow, {"title": "tides", "words": "many"}))
