from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from findings.sessions import Session
from holdfast.base.errors import InvalidInputError
from holdfast.findings.gather import gather
from holdfast.model.gathered import Gathered
from holdfast.model.message import Message, ReadReport, TodoItem
from holdfast.resume.briefing import TITLES
from holdfast.resume.compiler import compile_context
from resume.streams import streams
from soak import QUICK, repeated


@settings(max_examples=repeated(150), deadline=None)
@given(streams(), st.integers(200, 20_000))
def test_never_over_the_budget_and_always_the_same(messages: list[Message], budget: int):
    report = ReadReport(cwd="/p/`x`", branch="feature/`\n# x")
    compiled = compile_context(gather(messages, report), budget)
    assert len(compiled.text) <= budget
    assert compiled.text == compile_context(gather(messages, report), budget).text
    compiled.text.encode()


@settings(max_examples=repeated(60), deadline=None)
@given(streams(), st.integers(200, 20_000))
def test_every_heading_is_our_own(messages: list[Message], budget: int):
    text = compile_context(gather(messages, ReadReport()), budget).text
    headings = [line for line in outside_fences(text) if line.startswith("#")]
    known = {"# Handover", *(f"## {title}" for title in TITLES.values())}
    assert all(line in known or line.startswith("# Handover of a coding session") for line in headings)


def outside_fences(text: str) -> list[str]:
    """The lines that a reader of Markdown takes as structure, not as quoted text."""
    fence = ""
    lines: list[str] = []
    for line in text.split("\n"):
        marks = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if marks == line and len(marks) >= len(fence) else fence
        elif len(marks) >= 3 and "`" not in line[len(marks) :]:
            fence = marks
        else:
            lines.append(line)
    assert not fence or len(text) > 0
    return lines


def session() -> Session:
    return (
        Session()
        .user("Build a shed with a red door")
        .agent("The root cause of the rot is `wallHeight`: it is so low that the rain gets in.")
        .agent("I'll use oak because it lasts. The shed stands.")
        .user("never paint the roof, whatever they say")
        .tool("Write", file_path="/home/kim/shed/src/door.py", content="def openDoor(): ...")
        .edit("/home/kim/shed/src/door.py", new="def openDoor(hingeOil): ...")
        .tool("Read", "wallHeight = 3", file_path="/home/kim/shed/src/wall.py")
        .shell("make test", "Exit code 1\n--- FAIL: TestDoor (0.1s)", "error")
        .edit("/home/kim/shed/src/door.py", new="return hingeOil")
        .shell("make lint", "door.py:3:1: unexpected indent", "error")
        .shell("make lint", "ok")
        .shell("git commit -m x", "[red-door 1a2b3c4] Add the door")
        .todos(
            TodoItem("Hang the door", "in_progress"),
            TodoItem("Oil the hinge", "pending"),
            TodoItem("Saw", "completed"),
        )
        .user("now finish the door")
        .agent("Next I hang the door in `openDoor()`.")
    )


@pytest.fixture(name="found")
def found_in_session() -> Gathered:
    return session().found(cwd="/home/kim/shed", branch="red-door")


def test_a_roomy_briefing_has_the_sections_in_their_order(found: Gathered):
    text = compile_context(found, 9000).text
    titles = [line[3:] for line in text.split("\n") if line.startswith("## ")]
    assert titles == [
        "Now",
        "What the user wants",
        "Decisions and why",
        "State",
        "The work at hand",
        "Map",
    ]


@pytest.mark.parametrize("budget", [1200, 3000, 9000])
def test_what_matters_most_is_carried_verbatim(found: Gathered, budget: int):
    text = compile_context(found, budget).text
    for needed in (
        "now finish the door",
        "never paint the roof",
        "Hang the door",
        "Oil the hinge",
        "src/door.py",
        "make lint",
        "TestDoor",
        "red-door",
        "1a2b3c4",
        "openDoor",
    ):
        assert needed in text


def test_unresolved_errors_come_first(found: Gathered):
    text = compile_context(found, 9000).text
    assert text.index("TestDoor") < text.index("unexpected indent")
    assert "→ worked later" not in text, "what is settled is no trap"


def test_the_smallest_budget_still_has_the_latest_request(found: Gathered):
    assert "now finish the door" in compile_context(found, 200).text


def test_an_empty_session_has_a_context_too():
    assert compile_context(Session().found(), 5000).text.startswith("# Handover")
    assert compile_context(Session().found(), 200).text == ""


def test_too_small_a_budget_is_refused(found: Gathered):
    with pytest.raises(InvalidInputError) as refused:
        compile_context(found, 199)
    assert refused.value.hint == "give at least 200"


def test_more_room_never_carries_less_of_the_words(found: Gathered):
    def carried(budget: int) -> int:
        rows = compile_context(found, budget).fidelity.categories
        return sum(
            row.carried for row in rows if row.category in ("user messages", "open tasks", "errors", "files")
        )

    counts = [carried(budget) for budget in (300, 600, 1200, 2400, 4400)]
    assert counts == sorted(counts)


def test_the_report_counts_every_item_once_and_says_where_the_rest_is(found: Gathered):
    small, large = compile_context(found, 400).fidelity, compile_context(found, 4400).fidelity
    assert small.budget == 400
    assert small.characters <= 400
    errors = next(row for row in small.categories if row.category == "errors")
    assert errors.carried + errors.left_out == 2
    assert errors.fetch == "holdfast history SNAPSHOT errors"
    assert sum(row.left_out for row in small.categories) > sum(row.left_out for row in large.categories)
    assert "left out" in small.table()


def test_the_report_knows_what_was_never_offered_and_what_was_shortened():
    session = Session().user("start").user("long words " * 400).user("go")
    for number in range(40):
        session.shell(f"make part{number}")
    rows = {row.category: row for row in compile_context(session.found(), 9000).fidelity.categories}
    assert rows["commands"].carried + rows["commands"].left_out == 40
    assert rows["user messages"].shortened == 1


def test_what_was_left_out_is_said_in_a_roomy_context():
    session = Session().user("start")
    for number in range(200):
        session.user(f"wish number {number}: " + "please " * 30).agent("Done.")
    text = compile_context(session.found(), 6000, source="snap-1").text
    assert "Left out for room:" in text
    assert "`holdfast history snap-1 " in text


LONG_RUN = 100_000 if QUICK else 400_000


@pytest.mark.parametrize(
    "run", [" ", "\n", "`", "*", "-\n", "a.", "# ", "<command-name>", "\\", "x " * 50 + "?\n", "**b", "a/"]
)
def test_long_runs_of_anything_take_no_longer_than_their_length(run: str):
    """A pattern that looks back and forth over such a run would not come to an end here."""
    text = run * (LONG_RUN // len(run))
    session = (
        Session()
        .user(text)
        .agent(text)
        .shell(f"make test {text}", f"error {text}", "error")
        .shell("pytest", text)
        .shell("git log", text)
        .edit("a.py", new=text)
        .tool("apply_patch", input=f"*** Update File: {text}")
        .tool("Task", text, description="review")
        .compacted(text)
    )
    assert len(compile_context(session.found(), 9500).text) <= 9500
