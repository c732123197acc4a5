"""A flow that cannot be run is refused before it runs, in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flow.harness import play
from holdfast.base.errors import InvalidFlowError
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step


def nothing(step: Step) -> None:
    """A node that does nothing."""


def chain(*names: str, flow: str = "chain", start: str | None = None) -> Flow:
    made = Flow(flow, start=start)
    for number, name in enumerate(names):
        made.node(nothing, name=name, after=names[number - 1] if number else ())
    return made


def circle() -> Flow:
    flow = chain("a", "b", "c")
    flow.edge("c", "b")
    return flow


def doubled_edge() -> Flow:
    flow = chain("a", "b")
    flow.edge("a", "b")
    return flow


def inside_itself() -> Flow:
    outer, inner = Flow("outer"), Flow("inner")
    outer.subflow(inner)
    inner.subflow(outer)
    return outer


def changed_after_its_run() -> Flow:
    flow = chain("a")
    flow.compile()
    flow.node(nothing, name="b")
    return flow


def lost_node() -> Flow:
    flow = chain("a", "b", start="a")
    flow.node(nothing, name="island")
    return flow


def unknown_start() -> Flow:
    return chain("a", start="z")


def to_nowhere() -> Flow:
    flow = chain("a")
    flow.edge("a", "nowhere")
    return flow


def over_nothing() -> Flow:
    flow = Flow("loop")
    flow.foreach(nothing, over="nobody", name="each")
    return flow


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (circle, r"contains a cycle: (b → c → b|c → b → c)"),
        (doubled_edge, r"two edges from 'a' to 'b'"),
        (inside_itself, r"contains itself"),
        (changed_after_its_run, r"'chain' is in use"),
        (lost_node, r"never reaches 'island'"),
        (unknown_start, r"has no node 'z'"),
        (to_nowhere, r"has no node 'nowhere'"),
        (over_nothing, r"has no node 'nobody'"),
        (lambda: chain("a", "a"), r"two nodes called 'a'|two edges"),
        (lambda: chain("a/b"), r"cannot be called 'a/b'"),
        (lambda: chain("a#1"), r"cannot be called 'a#1'"),
        (lambda: Flow("empty"), r"'empty' has no nodes"),
        (lambda: Flow(""), r"needs a name"),
        (lambda: Flow("x", at_most=0), r"at most 0"),
        (lambda: Flow("x").node(lambda step: 1), r"lambda"),
        (lambda: Flow("x").foreach(nothing, over="a", at_most=0), r"at most 0"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(make: Callable[[], Flow], said: str) -> None:
    with pytest.raises(InvalidFlowError, match=said) as raised:
        make().compile()
    assert raised.value.hint


def test_the_hub_refuses_it_too() -> None:
    with pytest.raises(InvalidFlowError, match="cycle"):
        play(Hub().run(circle()))


def test_the_fingerprint_is_of_the_structure_alone() -> None:
    def another(step: Step) -> int:
        return 1

    one = Flow("f")
    one.node(nothing, name="a")
    one.node(nothing, name="b", after="a", when=lambda output: True)
    other = Flow("f")
    other.edge("a", "b", when=lambda output: False)
    other.node(another, name="b")
    other.node(another, name="a")
    assert one.compile().fingerprint == other.compile().fingerprint


@pytest.mark.parametrize(
    "change",
    [
        lambda flow: flow.node(nothing, name="more"),
        lambda flow: flow.edge("a", "c"),
        lambda flow: flow.foreach(nothing, over="a", name="more"),
        lambda flow: flow.subflow(chain("x"), name="more"),
    ],
)
def test_the_fingerprint_tells_structures_apart(change: Callable[[Flow], object]) -> None:
    before, after = chain("a", "b", "c"), chain("a", "b", "c")
    change(after)
    assert before.compile().fingerprint != after.compile().fingerprint


def test_the_fingerprint_sees_flows_inside() -> None:
    def outer(inner: Flow) -> str:
        flow = Flow("outer")
        flow.subflow(inner, name="inner")
        return flow.compile().fingerprint

    assert outer(chain("a", "b")) == outer(chain("a", "b"))
    assert outer(chain("a", "b")) != outer(chain("a", "c"))
