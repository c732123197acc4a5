"""Which tasks are reviews, and what becomes of their answers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.findings import ReviewerFeedback
from holdfast.model.task import Task
from holdfast.workflows.drivers.prompts import feedback, is_review

NOW = datetime(2026, 1, 6, 12, tzinfo=UTC)


def task(task_id: str = "t3", description: str = "Review", prompt: str = "Review it") -> Task:
    return Task(id=task_id, description=description, prompt=prompt)


def given_back(answer: str, structured: object = None) -> ReviewerFeedback:
    return feedback(task(), answer, "codex", NOW, structured).feedback


@pytest.mark.parametrize(
    ("task_id", "description", "prompt", "expected"),
    [
        ("t3", "Review", "Review it", True),
        ("code-review", "t", "Look at the changes", True),
        ("t3", "Security review of the login", "Look", True),
        ("t3", "t3", "Please review the diff", True),
        ("t3", "Address the review", "Fix what the review found", False),
        ("t4", "Implement", "Fix the review comments", False),
        ("t4", "Implement preview", "Show a preview", False),
        ("t5", "Implement", "Write code that will later be put before a reviewer", False),
    ],
)
def test_which_task_is_a_review(task_id: str, description: str, prompt: str, expected: bool) -> None:
    assert is_review(task(task_id, description, prompt)) is expected


def test_an_answer_in_the_form_that_was_asked_for() -> None:
    found = given_back(
        "I read all of it.\n- this is only talk\n\nVerdict: changes requested\nSeverity: major\nComments:\n"
        "- app.py:3 leaks the handle\n- app.py:9 is never called\n"
    )
    assert (found.approved, found.severity, found.addressed) == (False, "major", False)
    assert found.comments == ("app.py:3 leaks the handle", "app.py:9 is never called")
    assert found.reviewer_persona == "codex (t3)"
    assert found.timestamp == NOW


@pytest.mark.parametrize(
    ("answer", "approved", "severity", "comments"),
    [
        ("**Verdict:** Approved\n**Severity:** none", True, "none", 0),
        ("Verdict: approved\nSeverity: minor\n1. rename x", True, "minor", 1),
        ("Verdict: approved with changes\nSeverity: minor\n- rename x", False, "minor", 1),
        ("Verdict: not approved\nSeverity: awful", False, "unknown", 0),
        ('{"approved": true, "severity": "none", "comments": []}', True, "none", 0),
        (
            'So:\n```json\n{"approved": false, "severity": "critical", "comments": ["a"]}\n```',
            False,
            "critical",
            1,
        ),
    ],
)
def test_answers_much_like_it(answer: str, approved: bool, severity: str, comments: int) -> None:
    found = given_back(answer)
    assert (found.approved, found.severity, len(found.comments)) == (approved, severity, comments)
    assert found.addressed is (approved and not comments)


def test_data_goes_before_words() -> None:
    data = {"approved": False, "severity": "minor", "comments": ["a"]}
    found = given_back("Verdict: approved", data)
    assert (found.approved, found.comments) == (False, ("a",))


def test_an_answer_in_no_form_is_kept_and_approves_nothing() -> None:
    found = given_back("It is fine, but:\n- app.py:3 leaks the handle\n")
    assert (found.approved, found.severity) == (False, "unknown")
    assert found.comments == ("app.py:3 leaks the handle",)
    assert given_back("Looks good to me").comments == ("Looks good to me",)


@given(
    st.text(),
    st.none()
    | st.dictionaries(
        st.sampled_from(["approved", "severity", "comments"]), st.text() | st.booleans() | st.lists(st.text())
    ),
)
def test_no_answer_is_too_odd(answer: str, structured: object) -> None:
    assert given_back(answer, structured).reviewer_persona == "codex (t3)"
