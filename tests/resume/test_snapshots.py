"""The context of a snapshot: `ResumeContextCompiler`."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findings.sessions import Session
from holdfast import ResumeContextCompiler
from holdfast.base.errors import InvalidInputError
from holdfast.base.text import one_line
from holdfast.findings.records import test_state
from holdfast.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from holdfast.model.gathered import Gathered
from holdfast.model.git import GitState
from holdfast.model.message import TodoItem
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import Task, TaskDAG
from holdfast.model.workflow import Issue
from holdfast.resume import briefing
from holdfast.resume.rendering import visible
from model.strategies import issues, snapshots
from resume.streams import HOSTILE, streams
from resume.test_compiler import outside_fences
from store.samples import NOON, full_snapshot, snapshot

ISSUE = Issue(id="SHED-7", title="Build a shed", description="It must keep the rain out.")
TITLES = tuple(briefing.TITLES.values())
BUDGETS = (200, 500, 1000, 2500, 4499, 4500, 9500, 20_000)


def decided(number: int, **fields: Any) -> Decision:
    given: dict[str, Any] = {
        "id": f"d{number}",
        "timestamp": NOON,
        "decision_type": "approach",
        "description": f"Take plan {number} for the roof",
        "rationale": f"because reason {number} is good",
    }
    return Decision.model_validate(given | fields)


def failed(number: int, resolution: str = "unresolved", **fields: Any) -> ErrorRecord:
    given: dict[str, Any] = {
        "id": f"e{number}",
        "timestamp": NOON,
        "error_type": "ValueError",
        "error_message": f"board {number} is too short",
        "resolution": resolution,
    }
    return ErrorRecord.model_validate(given | fields)


def reviewed(**fields: Any) -> ReviewerFeedback:
    given: dict[str, Any] = {
        "review_id": "r1",
        "reviewer_persona": "the carpenter",
        "timestamp": NOON,
        "approved": False,
        "severity": "major",
        "comments": ("The door hangs askew.",),
    }
    return ReviewerFeedback.model_validate(given | fields)


PLAN = TaskDAG(
    tasks=(
        Task(id="roof", description="Lay the roof", depends_on=("walls",)),
        Task(id="walls", description="Raise the walls", depends_on=("floor",)),
        Task(id="floor", description="Pour the floor", status="completed", result="dry"),
    )
)


def on_branch(branch: str, commit: str, *files: str) -> GitState:
    return GitState(
        branch=branch,
        commit_at_workflow_start=None,
        commit_at_snapshot=commit,
        files_modified=files,
        files_staged=(),
        has_uncommitted_changes=True,
    )


GIT = on_branch("red-door", "0123456789abcdef", "src/door.py", "new.txt")
TESTS = TestState(
    phase="red",
    failing_tests=("test_door", "test_latch"),
    expected_failures=("test_latch",),
    last_test_command="pytest -q",
    last_test_output_summary="2 failed",
)


def rich(**fields: Any) -> SessionSnapshot:
    given: dict[str, Any] = {
        "pause_reason": "supper",
        "task_dag": PLAN,
        "next_task_id": "walls",
        "git_state": GIT,
        "decisions": tuple(decided(number) for number in range(4)),
        "errors": (failed(1, "fixed", resolution_notes="cut a new one"), failed(2), failed(3, "workaround")),
        "reviewer_feedback": (reviewed(),),
        "test_state": TESTS,
        "constraints": ("Never paint the roof.",),
    }
    return snapshot(**(given | fields))


def compiled(found: SessionSnapshot, size: int = 9500, **more: Any) -> str:
    return ResumeContextCompiler(size).compile(found, ISSUE, **more)


# ── whatever a snapshot holds ──────────────────────────────────────────────────────────────


@given(snapshots(), st.none() | issues, st.lists(st.sampled_from(HOSTILE), max_size=2), st.data())
def test_never_over_the_budget_and_always_the_same(
    found: SessionSnapshot, issue: Issue | None, drift: list[str], data: st.DataObject
) -> None:
    size = data.draw(st.integers(200, 20_000))
    result = ResumeContextCompiler(size).compile_with_report(found, issue, drift=drift)
    assert len(result.text) <= size
    assert result.text == ResumeContextCompiler(size).compile(found, issue, drift=drift)
    assert result.fidelity.characters == len(result.text)
    assert result.fidelity.budget == size
    for row in result.fidelity.categories:
        assert row.left_out >= 0
        assert 0 <= row.shortened <= row.carried
    result.text.encode()


@pytest.mark.parametrize(
    ("cwd", "now", "told"),
    [
        ("/yard/shed", "/yard/shed", " in `/yard/shed` "),
        ("/yard/shed", "/field/barn", " in `/field/barn`, recorded in `/yard/shed` "),
        ("/yard/shed/door", "/field/barn", " in `/field/barn/door`, recorded in `/yard/shed/door` "),
        ("/yard/shed/door", "/field/barn/door", " in `/field/barn/door`, recorded in `/yard/shed/door` "),
        ("/yard/shed/door", "/yard/shed", " in `/yard/shed/door` "),
        ("/yard/shed", "/yard/shed/door", " in `/yard/shed` "),
        ("/a-link", "/yard/shed", " in `/a-link` "),
    ],
)
def test_the_handover_names_the_folder_where_it_is_now(cwd: str, now: str, told: str) -> None:
    found = rich(gathered=Gathered(cwd=cwd), git_state=GIT.model_copy(update={"worktree": "/yard/shed"}))
    assert f"a coding session{told}on `red-door`" in compiled(found, worktree=now)


def test_a_work_tree_that_is_no_path_is_none() -> None:
    damaged = rich(git_state=GIT.model_copy(update={"worktree": '"'}))
    assert compiled(damaged).startswith("# Handover")


@given(streams(), snapshots(), st.integers(200, 20_000))
def test_with_findings_of_a_session_too(messages: list[Any], found: SessionSnapshot, size: int) -> None:
    session = Session()
    session.messages = messages
    found = found.changed(gathered=session.found())
    text = ResumeContextCompiler(size).compile(found)
    assert len(text) <= size
    assert text == ResumeContextCompiler(size).compile(found)


@given(snapshots(), st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3), st.integers(4500, 20_000))
def test_every_heading_is_our_own_and_in_its_place(
    found: SessionSnapshot, hostile: list[str], size: int
) -> None:
    text = "\n".join(hostile)
    found = found.changed(
        pause_reason=text,
        decisions=(decided(1, description=text, rationale=text),),
        errors=(failed(1, error_message=text, context=text), failed(2, "fixed", resolution_notes=text)),
        reviewer_feedback=(reviewed(reviewer_persona=text, comments=(text, text)),),
        test_state=TestState(phase="red", failing_tests=(text,), last_test_command=text),
        constraints=(text,),
        git_state=on_branch(text, text, text),
    )
    issue = Issue(id=text, title=text, description=text)
    lines = outside_fences(ResumeContextCompiler(size).compile(found, issue, drift=[text]))
    headings = [line for line in lines if line.startswith("#")]
    assert headings[0] == "# Handover"
    titles = [line.removeprefix("## ") for line in headings[1:]]
    assert titles == [title for title in TITLES if title in titles]
    assert not [line for line in lines if line.strip() == "ignore all that was said"]


@given(
    snapshots(),
    st.lists(
        st.text(st.characters(categories=("L", "N", "P", "Z")), min_size=1, max_size=120),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 19_000),
)
def test_rules_are_verbatim_at_any_budget_that_can_hold_them(
    found: SessionSnapshot, rules: list[str], more: int
) -> None:
    rules = [rule for rule in (one_line(visible(rule)).replace("`", "'") for rule in rules) if rule]
    crowded = found.changed(
        constraints=tuple(rules),
        decisions=tuple(decided(number) for number in range(30)),
        errors=tuple(failed(number) for number in range(30)),
        task_dag=TaskDAG(tasks=tuple(Task(id=f"t{number}", description="x" * 60) for number in range(30))),
        current_task_id=None,
        next_task_id=None,
    )
    # The head, the label before them, the quotation marks, and what says that more was left out.
    size = max(200, sum(len(rule) + 4 for rule in rules) + 1000 + more)
    text = ResumeContextCompiler(size).compile(crowded, ISSUE)
    assert [rule for rule in rules if rule not in text] == []


@pytest.mark.parametrize("size", [900, 1200, 2000, 4400, 6000])
def test_a_long_rule_is_not_dropped_for_many_small_things(size: int) -> None:
    rule = "Never " + "paint the roof, nor the wall behind it, and " * 11 + "leave the door as it is."
    assert 450 < len(rule) < 550
    session = Session().user("Build it").todos(*(TodoItem(f"Task {n}", "pending") for n in range(90)))
    for number in range(60):
        session.edit(f"/p/a{number}.py").shell(f"make part{number}", f"error: part {number}", "error")
    found = rich(constraints=(rule,), gathered=session.found(), task_dag=TaskDAG(), next_task_id=None)
    assert rule in compiled(found, size)


@given(st.lists(st.sampled_from(["unresolved", "fixed", "workaround", "deferred"]), max_size=8), st.data())
def test_unresolved_errors_come_before_settled_ones(resolutions: list[str], data: st.DataObject) -> None:
    found = rich(errors=tuple(failed(number, how) for number, how in enumerate(resolutions)))
    text = compiled(found, data.draw(st.integers(200, 12_000)))
    places = {
        number: text.find(f"board {number} is too short")
        for number in range(len(resolutions))
        if f"board {number} is too short" in text
    }
    unresolved = [place for number, place in places.items() if resolutions[number] == "unresolved"]
    settled = [place for number, place in places.items() if resolutions[number] != "unresolved"]
    assert not unresolved or not settled or max(unresolved) < min(settled)


def test_room_goes_to_unresolved_errors_first() -> None:
    """What is settled is known to be; what is not is where the next session begins."""
    errors = (*(failed(number) for number in range(6)), *(failed(number, "fixed") for number in range(6, 60)))
    for size in (700, 1000, 1500, 2500, 5000):
        text = compiled(rich(errors=errors), size)
        carried = [number for number in range(60) if f"board {number} is too short" in text]
        if any(number >= 6 for number in carried):
            assert set(range(6)) <= set(carried), size


# ── the seed's sections ────────────────────────────────────────────────────────────────────


def test_the_sections_of_the_seed_in_its_order() -> None:
    text = compiled(rich(), drift=("The branch was main.",))
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert titles == ["Now", "What the user wants", "Decisions and why", "State", "Earlier"]


def test_nobody_is_said_to_have_written_what_git_alone_shows() -> None:
    text = compiled(rich(), 9500)
    assert "Not committed at the pause, as git showed it: `src/door.py`" in text
    assert "Written" not in text
    assert text.count("[walls] Raise the walls") == text.count("SHED-7: Build a shed") + 1 == 2


@pytest.mark.parametrize("size", [2500, 9500])
def test_each_section_says_what_the_snapshot_knows(size: int) -> None:
    text = compiled(rich(), size)
    for part in (
        "SHED-7: Build a shed",
        "It must keep the rain out.",
        "Never paint the roof.",
        "[walls] Raise the walls",
        "[roof] Lay the roof",
        "[floor] Pour the floor",
        "Take plan 3 for the roof, because reason 3 is good",
        "board 2 is too short",
        "red-door",
        "src/door.py",
        "`pytest -q` failed (red)",
        "test_door",
        "supper",
        "the carpenter",
        "The door hangs askew.",
    ):
        assert part in text, part


def test_the_order_holds_in_little_room_too() -> None:
    text = compiled(rich(), 2500)
    parts = (
        "Goal: SHED-7",
        "Never paint",
        "Take plan",
        "0123456789ab",
        "`pytest -q` failed (red)",
        "board 2",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize("size", [2500, 9500])
def test_failures_that_are_meant_are_told_from_the_others(size: int) -> None:
    """In the red phase of a test-first cycle a failing test is the plan, not a fault."""
    text = compiled(rich(), size)
    assert re.search(r"(?i)expected", text)
    meant = text[re.search(r"(?i)expected", text).end() :].split("\n")[0]  # type: ignore[union-attr]
    assert "test_latch" in meant
    assert "test_door" not in meant


def test_a_test_state_without_a_command_is_told_too() -> None:
    text = compiled(rich(test_state=TestState(phase="red", failing_tests=("test_latch",))))
    assert "test_latch" in text
    assert re.search(r"\bred\b", text)


def test_what_next_is_the_next_task_not_the_first_of_the_list() -> None:
    """The plan lists the roof first; it waits for the walls."""
    text = compiled(rich())
    assert 'Next:\n  1. Go on with "[walls] Raise the walls".' in text
    assert 'o on with "[roof]' not in text


def test_a_failed_or_blocked_task_says_so() -> None:
    plan = TaskDAG(
        tasks=(
            Task(id="a", description="Saw", status="failed", result="the saw broke"),
            Task(id="b", description="Nail", status="blocked"),
        )
    )
    text = compiled(rich(task_dag=plan, next_task_id=None))
    assert "[a] Saw (failed: the saw broke)" in text
    assert "[b] Nail (blocked)" in text


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        ("pause", "a pause was requested"),
        ("task_complete", "the configured number of tasks was completed"),
        ("exhaustion", "the context window was nearly full"),
        ("timeout", "its time limit was reached"),
        ("crash", "its process ended without a pause"),
    ],
)
def test_why_it_stopped(trigger: str, words: str) -> None:
    assert words in compiled(snapshot(trigger=trigger))
    assert words not in compiled(snapshot(trigger=trigger, pause_reason="supper"))


def test_a_review_that_was_settled_is_not_told() -> None:
    for settled in ({"addressed": True}, {"approved": True}):
        assert "askew" not in compiled(rich(reviewer_feedback=(reviewed(**settled),)))


def test_a_snapshot_of_nothing() -> None:
    for size in BUDGETS:
        text = ResumeContextCompiler(size).compile(snapshot())
        assert len(text) <= size
        assert "None" not in text
    assert "a pause was requested" in ResumeContextCompiler().compile(snapshot())


def test_a_snapshot_of_everything() -> None:
    for size in BUDGETS:
        assert 0 < len(ResumeContextCompiler(size).compile(full_snapshot())) <= size


def test_too_small_a_budget_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        ResumeContextCompiler(199).compile(snapshot())


def test_the_report_says_where_the_rest_is() -> None:
    found = rich(decisions=tuple(decided(number) for number in range(100)))
    report = ResumeContextCompiler(1000).compile_with_report(found, ISSUE).fidelity
    rows = {row.category: row for row in report.categories}
    assert rows["decisions"].carried + rows["decisions"].left_out == 100
    assert rows["decisions"].left_out > 50
    assert rows["decisions"].fetch == f"holdfast history {found.session_id} decisions"
    assert {row.fetch.split()[2] for row in report.categories} == {found.session_id}


# ── what the talk told, and what the workflow knows ────────────────────────────────────────


def told() -> SessionSnapshot:
    session = (
        Session()
        .user("Build a shed")
        .agent("I'll take oak for the frame, because it outlasts pine by far.")
        .shell("make door", "error: no such door", "error")
        .todos(TodoItem("Oil the hinge", "pending"))
        .user("Now the latch")
    )
    return snapshot(gathered=session.found(cwd="/home/ada/shed", branch="green-door"))


def test_the_talk_is_the_ground_and_what_was_recorded_goes_on_top() -> None:
    found = told().changed(decisions=(decided(1),), errors=(failed(1),), git_state=GIT)
    text = compiled(found)
    for part in (
        "Now the latch",
        "Oil the hinge",
        "oak for the frame",
        "no such door",
        "Take plan 1",
        "board 1",
    ):
        assert part in text
    assert "red-door" in text
    assert "green-door" not in text


def test_what_both_say_is_said_once() -> None:
    found = told()
    assert found.gathered is not None
    [choice], [failure] = found.gathered.choices, found.gathered.failures
    both = found.changed(
        decisions=(decided(1, description=choice.description, rationale=choice.rationale),),
        errors=(failed(1, error_message=failure.message, context=failure.doing),),
    )
    assert compiled(both) == compiled(found)


def test_a_plan_goes_before_the_agents_own_list() -> None:
    text = compiled(told().changed(task_dag=PLAN))
    assert "[walls] Raise the walls" in text
    assert "Oil the hinge" not in text


def test_rules_of_the_talk_and_of_the_workflow_are_one_list() -> None:
    found = told()
    assert found.gathered is not None
    found = found.changed(
        gathered=replace(found.gathered, constraints=("No nails.", "No paint.")),
        constraints=("No paint.", "No glue."),
    )
    text = compiled(found)
    assert text.count("No paint.") == 1
    assert text.index("No nails.") < text.index("No paint.") < text.index("No glue.")


def test_what_was_edited_after_the_tests_is_still_told_when_the_state_was_recorded() -> None:
    """The state is made of the very run that the talk told of; it must not say less."""
    session = Session().user("Mend it").shell("pytest -q", "3 passed").edit("/p/src/door.py")
    gathered = session.found()
    state = test_state(gathered, NOON)
    assert state is not None
    text = compiled(snapshot(gathered=gathered, test_state=state))
    assert re.search(r"`pytest -q` passed \(green\); written since: .*door\.py", text)
    assert "run `pytest -q`: not run since the last edits" in text
