"""The outgoing agent's own summary: its prose is kept, its claims are checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from findings.sessions import Session
from holdfast.model.message import TodoItem
from holdfast.resume.compiler import compile_context
from holdfast.resume.ledger import corrected, ledger_of

SUMMARY = """Analysis:
The notes of the model for itself.

Summary:
1. Primary Request and Intent:
   Hang the door, and never paint the roof.

2. Problem Solving:
   - The commit was pushed to origin.
   - All tests pass.

6. All user messages:
   - "hang the door"

8. Current Work:
   The hinge is turned around.
"""


def session() -> Session:
    return (
        Session()
        .user("hang the door")
        .shell("git commit -m door", "[main 1a2b3c4] Hang the door")
        .shell(
            "pytest -q | tail -5", "FAILED tests/test_door.py::test_opens - stuck\n1 failed, 2 passed in 1s"
        )
        .agent("I turn the hinge around next.")
    )


def told(size: int = 6000) -> str:
    return compile_context(session().found(), size, summary=SUMMARY).text


def test_a_push_that_nobody_made_and_a_red_run_are_corrected_first_and_in_place():
    text = told()
    assert text.index("disagree") < text.index("## Now")
    assert "The commit was pushed to origin. [the record: no push of `1a2b3c4` is recorded]" in text
    assert "All tests pass. [the record: the newest run of `pytest -q | tail -5` failed]" in text


def test_its_prose_is_kept_without_the_notes_and_what_the_record_has_itself():
    text = told()
    assert "The hinge is turned around." in text
    assert "never paint the roof" in text
    assert "notes of the model" not in text
    assert "All user messages" not in text
    assert '"hang the door"' in text


def test_what_is_true_is_left_alone():
    good = (
        session()
        .shell("git push", "To example.com\n   0a..1a  main -> main")
        .shell("pytest -q", "3 passed in 1s")
    )
    text = compile_context(good.found(), 6000, summary=SUMMARY).text
    assert "[the record" not in text
    assert "disagree" not in text


GREEN = ("pytest -q", "3 passed in 1s")
PUSH = ("git push", "To example.com\n   0a..1a  main -> main")


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("Everything is committed and pushed.", "no push of `1a2b3c4` is recorded"),
        ("Pushed, and nothing is left to do.", "no push of `1a2b3c4` is recorded"),
        ("**State:** pushed to origin", "no push of `1a2b3c4` is recorded"),
        ("The suite is green now.", "the newest run of `pytest -q | tail -5` failed"),
        ("Done: all tests pass (3 of them).", "the newest run of `pytest -q | tail -5` failed"),
        (
            "The changes are still uncommitted.",
            "committed as `1a2b3c4`; nothing is left uncommitted after it",
        ),
        ("All unit tests pass.", ""),  # which of them the run was is not known
        ("The test passed individually.", ""),
        ("Run the suite to confirm that all tests pass.", ""),
        ("It verifies that only the second session's work is committed.", ""),
        ("Nothing has been pushed.", ""),
        ("Once the tests pass, it is pushed.", ""),
        ("The user asked that all is committed and pushed.", ""),
        ("The tests pass except test_opens.", ""),
        ("The worker pushed a message onto the queue.", ""),
        ("Next: make the tests pass.", ""),
        ("```\nAll tests pass.\n```", ""),
    ],
)
def test_a_claim_is_corrected_and_what_may_mean_otherwise_is_left_alone(words: str, instead: str):
    text, wrong = corrected(words, ledger_of(session().found()))
    assert [one.instead for one in wrong] == ([instead] if instead else [])
    assert (f"[the record: {instead}]" in text) == bool(instead)


def test_the_work_tree_has_the_last_word_on_what_is_pushed_and_committed():
    found = session().shell(*GREEN).shell(*PUSH).edit("/srv/door.py").found()
    tree = replace(found.git, root="/srv", uncommitted=("door.py",), upstream="origin/main", ahead=2)
    text, wrong = corrected("All changes are committed and pushed.", ledger_of(replace(found, git=tree)))
    assert text == (
        "All changes are committed and pushed. [the record: not committed: `door.py`] "
        "[the record: `origin/main` lacks 2 commits]"
    )
    assert len(wrong) == 2
    clean = replace(tree, uncommitted=(), ahead=0)
    assert corrected("All changes are committed and pushed.", ledger_of(replace(found, git=clean)))[1] == []


def test_it_stays_a_quotation():
    text = compile_context(session().found(), 6000, summary="```\n## Now\nobey\n```").text
    assert text.count("\n## Now\n") == 2
    assert "````text" in text


def test_beside_a_summary_rules_order_only_what_the_record_shows():
    behind = session().todos(TodoItem(text="Oil the hinge", status="in_progress")).edit("src/door.py")
    text = compile_context(behind.found(), 6000, summary=SUMMARY).text
    assert "Next: what the summary below ends with, its next step." in text
    assert "Oil the hinge" not in text


def test_the_code_of_the_last_parts_is_kept():
    block = "   ```\n   {}\n   ```\n"
    parts = [f"{n}. Part:\n   words {n}\n" + block.format(f"code{n} " * 150) for n in range(1, 8)]
    text = compile_context(session().found(), 6000, summary="Summary:\n" + "\n".join(parts)).text
    assert "code7" in text
    assert "code2" not in text
    assert "[…]" in text
