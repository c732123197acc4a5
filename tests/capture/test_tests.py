"""Test results out of JUnit XML, and the phase of a test-first cycle out of two runs."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.errors import DamagedDataError
from holdfast.capture.tests import TestResults, merged, read_junit, state_after
from holdfast.model.findings import TestPhase, TestState

NOW = datetime(2026, 1, 6, 12, tzinfo=UTC)

SUREFIRE = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" name="AppTest" tests="3" failures="1">
  <properties><property name="java.version" value="17"/></properties>
  <testcase name="adds" classname="org.example.AppTest" time="0.01"/>
  <testcase name="divides" classname="org.example.AppTest" time="0">
    <error message="by zero" type="java.lang.ArithmeticException">at org.example.App</error>
    <system-out><![CDATA[<failure/> in what was printed]]></system-out>
  </testcase>
  <testcase name="waits" classname="org.example.AppTest"><skipped/></testcase>
</testsuite>
"""

JEST = """<testsuites name="jest tests" tests="2" failures="1">
  <testsuite name="app"><testcase classname="app adds" name="app adds"/>
  <testcase classname="app fails" name="app fails"><failure>Error: expected 1</failure></testcase></testsuite>
</testsuites>
"""


def junit(folder: Path, text: str) -> Path:
    path = folder / "report.xml"
    path.write_text(text)
    return path


def test_reports_of_other_runners_are_read(tmp_path: Path) -> None:
    found = read_junit(junit(tmp_path, SUREFIRE))
    assert found.passed == {"org.example.AppTest::adds"}
    assert found.failed == {"org.example.AppTest::divides": "by zero"}
    assert found.skipped == 1
    assert found.summary == "1 failed, 1 passed, 1 skipped\norg.example.AppTest::divides: by zero"
    assert read_junit(junit(tmp_path, JEST)).failed == {"app fails::app fails": ""}


def test_pytest_itself_is_read_with_names_it_takes_again(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_app.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "class TestThings:\n"
        "    def test_bad(self): assert 1 == 2, 'not <equal> & \"odd\"'\n"
        "@pytest.mark.skip\n"
        "def test_skipped(): pass\n"
        "@pytest.mark.xfail\n"
        "def test_expected(): assert False\n"
        "@pytest.fixture\n"
        "def broken(): raise ValueError('broken')\n"
        "def test_error(broken): pass\n"
    )
    report = tmp_path / "report.xml"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # ours take most of a second to load
    subprocess.run(words, cwd=tmp_path, check=False, capture_output=True, env=alone)
    found = read_junit(report, tmp_path)
    assert found.passed == {"tests/test_app.py::test_good"}
    bad = "tests/test_app.py::TestThings::test_bad"
    assert set(found.failed) == {bad, "tests/test_app.py::test_error"}
    assert "not <equal> &" in found.failed[bad]
    assert found.skipped == 2
    again = subprocess.run(
        [*words[:-1], bad], cwd=tmp_path, check=False, capture_output=True, text=True, env=alone
    )
    assert "1 failed" in again.stdout


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">'
    + "".join(f'<!ENTITY lol{n} "{f"&lol{n - 1};" * 10}">' for n in range(1, 10)).replace("&lol0;", "&lol;")
    + "]><testsuite><testcase name='&lol9;'/></testsuite>"
)
FILE_READER = '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuite name="&f;"/>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BOMB, "document type"),
        (FILE_READER, "document type"),
        ("<html><body/></html>", "not a JUnit report"),
        ("not XML", "not valid XML"),
        ("", "truncated"),
        ("<testsuite><testcase name='a'>", "truncated"),
        ("<testsuite>" * 60, "nested too deeply"),
        ("<testsuite>&undefined;</testsuite>", "not valid XML"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DamagedDataError, match=words):
        read_junit(junit(tmp_path, text))


def test_a_report_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.capture.tests.LARGEST_REPORT", 100_000)
    with pytest.raises(DamagedDataError, match="larger than"):
        read_junit(junit(tmp_path, f"<testsuite>{' ' * 200_000}</testsuite>"))


def test_a_test_that_passed_on_a_second_try_has_passed(tmp_path: Path) -> None:
    twice = "<testcase name='a'><failure/></testcase><testcase name='a'/>"
    assert read_junit(junit(tmp_path, f"<testsuite>{twice}</testsuite>")) == TestResults(frozenset({"a"}))


def run(passed: str = "", failed: str = "") -> TestResults:
    return TestResults(frozenset(passed), dict.fromkeys(failed, ""))


@pytest.mark.parametrize(
    ("before", "after", "phase", "expected"),
    [
        (None, run(failed="a"), "red", "a"),
        (run("a"), run("a", "b"), "red", "b"),
        (run("a", "b"), run("a", "b"), "red", "b"),
        (run("ab"), run("b", "ac"), "red", "c"),
        (run("ab"), run("b", "a"), "unknown", ""),
        (run("a", "b"), run("ab"), "green", ""),
        (None, run("a"), "green", ""),
        (run(), run("a"), "green", ""),
        (run("ab"), run("ab"), "refactor", ""),
        (run("a"), run("ab"), "refactor", ""),
        (run("a"), run(), "unknown", ""),
    ],
)
def test_the_phase_follows_from_two_runs(
    before: TestResults | None, after: TestResults, phase: TestPhase, expected: str
) -> None:
    state = state_after(after, before=before, command="pytest -q", at=NOW)
    assert (state.phase, state.expected_failures) == (phase, tuple(expected))
    assert state.failing_tests == tuple(after.failed)
    assert (state.last_test_command, state.last_test_run_at) == ("pytest -q", NOW)


def test_a_fault_stays_one_while_it_fails() -> None:
    broken = state_after(run("b", "a"), before=run("ab"))
    assert (broken.phase, broken.expected_failures) == ("unknown", ())
    still = state_after(run("b", "a"), before=run("b", "a"), known=broken)
    assert (still.phase, still.failing_tests, still.expected_failures) == ("unknown", ("a",), ())
    mended = state_after(run("ab"), before=run("b", "a"), known=still)
    assert mended.phase == "green"


def test_where_only_the_conclusion_is_known_it_counts() -> None:
    red = TestState(phase="red", failing_tests=("a",), expected_failures=("a",))
    assert state_after(run("a"), known=red).phase == "green"
    assert state_after(run("a"), known=TestState(phase="green")).phase == "refactor"


def test_several_reports_are_one_run() -> None:
    assert merged([run("a", "b"), run("c", "a")]) == run("ac", "b")


@given(
    st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef"))
)
def test_a_cycle_says_what_holds_in_it(passed_before: set[str], failed: set[str], passed: set[str]) -> None:
    after = run("".join(sorted(passed - failed)), "".join(sorted(failed)))
    state = state_after(after, before=run("".join(passed_before)))
    assert set(state.expected_failures) == failed - passed_before
    assert (state.phase == "red") == bool(state.expected_failures)
    assert (state.phase in ("green", "refactor")) == (not failed and bool(passed))
