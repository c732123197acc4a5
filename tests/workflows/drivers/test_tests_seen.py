"""Tests that run within a task are noticed, whoever ran them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.base.errors import InvalidInputError
from holdfast.model.entry import TestsRun
from holdfast.model.findings import TestState
from holdfast.model.task import Task
from holdfast.project.settings import load_settings
from holdfast.workflows.drivers import driver_named
from holdfast.workflows.drivers.protocol import Done, Failed, TaskOutcome
from workflows.drivers.recorder import Recorder, assignment

PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pytest within a task; our plugins take most of a second to load."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def work(
    folder: Path, command: str, junit: str | None = None
) -> tuple[TaskOutcome, TestState | None, Recorder]:
    report = Recorder()
    task = {"prompt": None, "run": command, "junit": junit}
    outcome = driver_named("shell", load_settings({}, folder)).run(assignment(folder, task=task), report)
    states = [finding.state for finding in report.findings if isinstance(finding, TestsRun)]
    assert len(states) == len(report.findings) <= 1
    return outcome, states[0] if states else None, report


def test_a_cycle_from_red_to_refactor(tmp_path: Path) -> None:
    # Else a settings file somewhere above would decide what the names of tests begin with.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_app.py").write_text("from app import add\n\ndef test_adds(): assert add(1, 2) == 3\n")
    (tmp_path / "app.py").write_text("def add(a, b): return 0\n")
    outcome, red, _ = work(tmp_path, PYTEST)
    assert isinstance(outcome, Failed)
    assert red
    assert (red.phase, red.failing_tests) == ("red", ("test_app.py::test_adds",))
    assert red.expected_failures == red.failing_tests
    assert red.last_test_command == PYTEST
    assert red.last_test_run_at
    assert (red.last_test_output_summary or "").startswith("1 failed\ntest_app.py::test_adds: assert 0 == 3")
    (tmp_path / "app.py").write_text("def add(a, b): return a + b\n")
    outcome, green, _ = work(tmp_path, PYTEST)
    assert isinstance(outcome, Done)
    assert green
    assert (green.phase, green.failing_tests) == ("green", ())
    _, refactor, _ = work(tmp_path, PYTEST)
    assert refactor
    assert refactor.phase == "refactor"
    (tmp_path / "app.py").write_text("def add(a, b): return 0\n")
    _, broken, _ = work(tmp_path, PYTEST)
    assert broken
    assert (broken.phase, broken.expected_failures) == ("unknown", ())


def test_what_pytest_was_told_before_still_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_app.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k one")
    _, state, _ = work(tmp_path, f"{PYTEST} && {PYTEST} --junitxml=mine.xml")
    assert state
    assert state.last_test_output_summary == "1 passed"
    assert (tmp_path / "mine.xml").exists()


def test_a_report_that_the_task_names_is_read_where_it_is_new(tmp_path: Path) -> None:
    good = "<testsuite><testcase name='a'/></testsuite>"
    _, state, _ = work(tmp_path, f'mkdir build; echo "{good}" > build/one.xml', "build/*.xml")
    assert state
    assert state.last_test_output_summary == "1 passed"
    assert work(tmp_path, "true", "build/*.xml")[1] is None
    bad = "<testsuite><testcase name='b'><failure/></testcase></testsuite>"
    _, state, _ = work(tmp_path, f'echo "{bad}" > build/two.xml', "build/*.xml")
    assert state
    assert (state.phase, state.failing_tests) == ("red", ("b",))


def test_a_task_without_tests_says_nothing_of_them(tmp_path: Path) -> None:
    assert work(tmp_path, "echo hello")[1] is None


def test_a_report_that_cannot_be_read_is_said_and_costs_nothing(tmp_path: Path) -> None:
    outcome, state, report = work(tmp_path, "echo rubbish > tests.xml", "tests.xml")
    assert isinstance(outcome, Done)
    assert state is None
    assert any("could not be read" in line for line in report.lines)


def test_nothing_shows_in_git(tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text("def test_a(): pass\n")
    (tmp_path / ".gitignore").write_text("__pycache__\n")
    shown = "git status --short | grep -v -e test_app -e gitignore"
    outcome, state, _ = work(tmp_path, f"git init -q . && {PYTEST} && {shown}")
    assert isinstance(outcome, Failed), "nothing else is left to be shown"
    assert state


def test_a_report_outside_is_refused(tmp_path: Path) -> None:
    driver = driver_named("shell", load_settings({}, tmp_path))
    for junit in ("../tests.xml", "/tmp/tests.xml"):
        with pytest.raises(InvalidInputError, match="not in the worktree"):
            driver.check(Task(id="a", description="", run="true", junit=junit))
