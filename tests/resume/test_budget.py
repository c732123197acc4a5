from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.resume.briefing import ENOUGH, Briefing, Statement, write

words = st.text(alphabet="abc ", min_size=1, max_size=40)
statements = st.builds(
    Statement, st.sampled_from(["now", "wants", "state", "map"]), words, words, st.integers(0, 8), st.just("")
)


@given(st.lists(statements, max_size=30), st.integers(0, 1500), st.booleans())
def test_what_is_written_never_exceeds_the_room(every: list[Statement], room: int, bare: bool):
    text = write(Briefing("", tuple(every)), room, bare=bare).text(bare=bare)
    assert len(text) <= room


@given(st.lists(statements, max_size=30))
def test_with_room_everything_is_written(every: list[Statement]):
    assert len(write(Briefing("", tuple(every)), 100_000, bare=False).forms) == len(every)


def test_the_shortest_forms_of_all_come_before_the_longest_of_one():
    every = (
        Statement("wants", "said", "a" * 400, 1, short="aa"),
        Statement("wants", "said", "b" * 400, 1, short="bb"),
    )
    written = write(Briefing("", every), 430, bare=True)
    assert written.forms == {0: "a" * 400, 1: "bb"}


def test_room_that_nobody_needs_stays_empty():
    every = tuple(Statement("earlier", "errors", f"{number} " + "x" * 200, 8) for number in range(200))
    assert len(write(Briefing("", every), 40_000, bare=False).text(bare=False)) <= ENOUGH
