from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.resume.budget import choose
from holdfast.resume.rendering import Block, Item, Outline, Section

words = st.text(alphabet="abc ", min_size=1, max_size=30)


@st.composite
def outlines(draw: st.DrawFn) -> Outline:
    def item(details: bool) -> Item:
        made = Item("kind", draw(words), draw(st.floats(0, 10)), once=draw(st.booleans()))
        if details and draw(st.booleans()):
            made.details = [item(False) for _ in range(draw(st.integers(1, 3)))]
        return made

    def block() -> Block:
        items = [item(True) for _ in range(draw(st.integers(1, 4)))]
        return Block(draw(st.sampled_from(("", "Label"))), items, bullets=draw(st.booleans()))

    sections = [
        Section(f"S{n}", [block() for _ in range(draw(st.integers(1, 3)))])
        for n in range(draw(st.integers(0, 3)))
    ]
    return Outline("Head\n", sections, roomy=draw(st.booleans()))


@given(outlines(), st.integers(5, 600))
def test_the_sum_of_costs_is_the_length_of_the_text(outline: Outline, budget: int):
    choice = choose(outline, budget)
    assert len(outline.written(choice.kept)) == budget - choice.left
    assert choice.left >= 0


@given(outlines())
def test_with_room_for_all_everything_is_carried(outline: Outline):
    choice = choose(outline, 100_000)
    assert all(
        choice.carried(item)
        for _, _, item, parent in outline.items()
        if parent is None or choice.kept(parent)
    )


def two(first: Item, second: Item) -> Outline:
    return Outline("", [Section("", [Block("", [first, second], bullets=False)])], roomy=False)


def test_worth_per_character_decides():
    dense, sparse = Item("k", "short", 3.0), Item("k", "a good deal longer", 4.0)
    choice = choose(two(sparse, dense), 20)
    assert choice.kept(dense)
    assert not choice.kept(sparse)


def test_what_already_stands_there_is_not_written_again():
    sentence, name = Item("k", "call openDoor() now", 9.0), Item("k", "openDoor", 1.0, once=True)
    choice = choose(two(sentence, name), 100)
    assert not choice.kept(name)
    assert choice.carried(name)


def test_order_of_the_outline_is_kept_whatever_is_chosen_first():
    outline = two(Item("k", "aaa", 1.0), Item("k", "bbb", 5.0))
    assert outline.written(choose(outline, 100).kept) == "aaa, bbb\n"
