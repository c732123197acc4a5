"""What a task's tests and a review task tell the next session."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast.model.entry import FeedbackRecorded, TestsRun
from holdfast.model.findings import TestState
from holdfast.workflows.plan import Plan, parse_plan

from .harness import Workshop, plan_of, wait_for

RED = "def test_one():\n    assert 1 == 2\n\ndef test_two():\n    pass\n"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pytest within a task; our plugins take most of a second to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def state_after(workshop: Workshop, command: str) -> TestState:
    ended = workshop.run(plan_of(command))
    (told,) = workshop.entries(ended, TestsRun)
    return told.state  # type: ignore[union-attr]


def test_pytest_tells_its_failing_tests_without_being_asked_to(workshop: Workshop) -> None:
    (workshop.project / "test_it.py").write_text(RED)
    state = state_after(workshop, f"{sys.executable} -m pytest -q -p no:cacheprovider test_it.py || true")
    assert (state.phase, state.failing_tests, state.expected_failures) == (
        "red",
        ("test_it.py::test_one",),
        ("test_it.py::test_one",),
    )
    assert (state.last_test_output_summary or "").startswith(
        "1 failed, 1 passed\ntest_it.py::test_one: assert 1 == 2"
    )


def test_a_test_that_passed_before_is_no_step_of_a_test_first_cycle(workshop: Workshop) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider test_it.py || true"
    breaks = "sed -i.old s/pass/raise/ test_it.py"
    (workshop.project / "test_it.py").write_text("def test_two():\n    pass\n")
    ended = workshop.run(plan_of(command, f"{breaks}; {command}"))
    first, second = (told.state for told in workshop.entries(ended, TestsRun))  # type: ignore[union-attr]
    assert (first.phase, second.phase) == ("green", "unknown")
    assert (second.failing_tests, second.expected_failures) == (("test_it.py::test_two",), ())


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


@pytest.mark.parametrize(
    ("said", "approved", "comments"),
    [
        ("All is well.\n\nVerdict: approved\nSeverity: none\nComments:\n- none", True, ()),
        ("Verdict: changes requested\n- name it\n- test it", False, ("name it", "test it")),
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


def test_doctor_sends_a_test_message_to_each_address(
    workshop: Workshop, mailbox: tuple[str, list[dict[str, Any]]]
) -> None:
    url, got = mailbox
    place = workshop.place
    none = place.run("doctor", "--notify")
    none.failed(1, error="nowhere to send", hint="notify")
    place.environment["HOLDFAST_NOTIFY"] = f"{url} nonsense://user:hinge@host"
    done = place.run("doctor", "--notify")
    assert (done.code, [one["message"] for one in got]) == (1, ["This is a test message."])
    assert "✓ notification 1: a test message was delivered" in done.out
    assert "✗ notification 2: the test message was not delivered" in done.out
    assert "hinge" not in done.out + done.err
