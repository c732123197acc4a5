"""What a task's tests and a review task tell the next session."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.capture.junit import read_junit
from holdfast.model.entry import FeedbackRecorded, TestsRun
from holdfast.model.findings import TestState
from holdfast.orchestrator.plan import Plan, parse_plan

from .harness import Workshop, plan_of, wait_for

RED = "def test_one():\n    assert 1 == 2\n\ndef test_two():\n    pass\n"


def state_after(workshop: Workshop, command: str) -> TestState:
    ended = workshop.run(plan_of(command))
    (told,) = workshop.entries(ended, TestsRun)
    return told.state  # type: ignore[union-attr]


def test_pytest_tells_its_failing_tests_without_being_asked_to(workshop: Workshop) -> None:
    (workshop.project / "test_it.py").write_text(RED)
    state = state_after(
        workshop, f"{sys.executable} -m pytest -q -p no:randomly -p no:cacheprovider test_it.py || true"
    )
    assert (state.phase, state.failing_tests, state.expected_failures) == (
        "red",
        ("test_it::test_one",),
        ("test_it::test_one",),
    )
    assert state.last_test_output_summary == "1 failed, 1 passed, 0 skipped"


def test_a_red_run_that_fails_its_task_was_not_expected(workshop: Workshop) -> None:
    (workshop.project / "test_it.py").write_text(RED)
    state = state_after(
        workshop, f"{sys.executable} -m pytest -q -p no:randomly -p no:cacheprovider test_it.py"
    )
    assert (state.phase, state.expected_failures) == ("red", ())


def task(**fields: Any) -> Plan:
    """A plan of one task with these fields."""
    return parse_plan(json.dumps({"issue": {"id": "W", "title": "Work"}, "tasks": [{"id": "a", **fields}]}))


def test_any_runner_that_writes_junit_xml(workshop: Workshop) -> None:
    xml = '<testsuite><testcase name="a"/><testcase classname="K" name="b"><failure/></testcase></testsuite>'
    ended = workshop.run(task(junit="out.xml", run=f"printf '%s' '{xml}' > out.xml"))
    (told,) = workshop.entries(ended, TestsRun)
    assert told.state.failing_tests == ("K::b",)  # type: ignore[union-attr]


def test_a_command_that_runs_no_tests_tells_nothing(workshop: Workshop) -> None:
    assert workshop.entries(workshop.run(plan_of("echo hello")), TestsRun) == []


@pytest.mark.parametrize("text", ["", "<a", "<!DOCTYPE x [<!ENTITY e 'e'>]><testsuite/>"])
def test_what_is_no_report_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.xml").write_text(text)
    assert read_junit(tmp_path / "x.xml") is None
    assert read_junit(tmp_path / "missing.xml") is None


@pytest.mark.parametrize(
    ("said", "approved", "comments"),
    [
        ("LGTM, no further issues", True, ()),
        ("Changes requested:\n- name it\n- test it", False, ("name it", "test it")),
        ("Not approved yet", False, ("Not approved yet",)),
    ],
)
def test_a_review_becomes_feedback(
    workshop: Workshop, said: str, approved: bool, comments: tuple[str, ...]
) -> None:
    (workshop.project / "review.txt").write_text(said)
    ended = workshop.run(task(review=True, run="cat review.txt"))
    (told,) = workshop.entries(ended, FeedbackRecorded)
    feedback = told.feedback  # type: ignore[union-attr]
    assert (feedback.approved, feedback.comments) == (approved, comments)


@pytest.fixture
def mailbox() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that notices can be sent to, and what it got."""
    got: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"json://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of apprise's own imports
def test_notices_of_pauses_and_ends_go_out(
    workshop: Workshop, mailbox: tuple[str, list[dict[str, Any]]]
) -> None:
    url, got = mailbox
    workshop.settings = replace(workshop.settings, notify=(url,))
    paused = workshop.run(plan_of("true", "true", pause_every=1))
    wait_for(lambda: len(got) == 1)
    workshop.resume(paused)
    wait_for(lambda: len(got) == 2)
    assert [one["title"] for one in got] == [
        f"Workflow {paused.id} paused",
        f"Workflow {paused.id} completed",
    ]
    assert f"holdfast resume {paused.id}" in got[0]["message"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of apprise's own imports
def test_a_notice_that_cannot_be_sent_holds_nothing_up(workshop: Workshop) -> None:
    workshop.settings = replace(workshop.settings, notify=("json://127.0.0.1:1",))
    assert workshop.run(plan_of("true")).status == "completed"


def test_nobody_is_told_unless_asked(workshop: Workshop) -> None:
    assert workshop.settings.notify == ()
