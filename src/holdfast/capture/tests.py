"""Where the tests stand, out of the JUnit XML that pytest and nearly every other runner writes.

The phase of a test-first cycle follows from two runs, the one before and this one:

- `red`: tests fail that never passed as far as is known. They are the expected failures: a test that
  is new, or was expected to fail before, is the plan and not a fault.
- `green`: all pass, and before some failed (or nothing is known of before).
- `refactor`: all pass, as before.
- `unknown`: nothing ran, or all that fails did pass once: that is a fault, not a phase.

The XML comes from other programs: a document type (and with it every entity bomb) is
refused, size is limited, and what the tests printed is not even collected.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from xml.parsers import expat

from holdfast.base.errors import DamagedDataError
from holdfast.base.text import clipped, one_line
from holdfast.model.findings import TestPhase, TestState

LARGEST_REPORT = 64 << 20
_MOST_FAILING = 200
_CHUNK = 1 << 16
_MOST_TOLD = 5
_DEEPEST = 50
_FAULTS = frozenset(("failure", "error"))


@dataclass(frozen=True)
class TestResults:
    """One run: which tests passed, which failed and how, in the order they ran."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    passed: frozenset[str] = frozenset()
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """The failing tests, and the first line of why."""
    skipped: int = 0

    @property
    def total(self) -> int:
        return len(self.passed) + len(self.failed) + self.skipped

    @property
    def summary(self) -> str:
        counts = {"failed": len(self.failed), "passed": len(self.passed), "skipped": self.skipped}
        line = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "no tests ran"
        why = [f"{name}: {reason}" for name, reason in list(self.failed.items())[:_MOST_TOLD] if reason]
        return "\n".join((line, *why))


def read_junit(path: Path, root: Path | None = None) -> TestResults:
    """The results in a file. `DamagedDataError` where it is no JUnit XML; `OSError` where there is none.

    With `root`, the folder the tests ran in, Python tests are named by their files, as pytest takes them.
    """
    with path.open("rb") as source:
        reader = _JUnitReader(path.name, root)
        size = 0
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > LARGEST_REPORT:
                raise DamagedDataError(f"{path.name} is larger than {LARGEST_REPORT >> 20} MB")
            reader.feed(chunk)
        return reader.close()


def state_after(
    results: TestResults,
    *,
    before: TestResults | None = None,
    known: TestState | None = None,
    command: str | None = None,
    at: datetime | None = None,
) -> TestState:
    """Where the cycle stands after a run. `before` is the run before it, `known` what was concluded then."""
    failing = tuple(results.failed)
    faults = set(known.failing_tests) - set(known.expected_failures) if known else set[str]()
    has_passed = before.passed if before else frozenset[str]()
    expected = tuple(name for name in failing if name not in has_passed and name not in faults)
    return TestState(
        phase=_phase(results, before, known, expected),
        failing_tests=failing[:_MOST_FAILING],
        expected_failures=expected[:_MOST_FAILING],
        last_test_run_at=at,
        last_test_command=command,
        last_test_output_summary=clipped(results.summary, 1_000),
    )


def _phase(
    results: TestResults, before: TestResults | None, known: TestState | None, expected: tuple[str, ...]
) -> TestPhase:
    if results.failed:
        return "red" if expected else "unknown"
    if not results.passed:
        return "unknown"
    failed_before = bool(before.failed) if before else bool(known and known.failing_tests)
    passed_before = bool(before.passed) if before else known is not None
    return "refactor" if passed_before and not failed_before else "green"


class _JUnitReader:
    """Expat rather than a tree: memory does not depend on what the tests printed."""

    def __init__(self, name: str, root: Path | None) -> None:
        self._name = name
        self._root = root
        self._files: dict[str, str] = {}
        self._path: list[str] = []
        self._case: str | None = None
        self._verdict = ""
        self._reason = ""
        self._passed: set[str] = set()
        self._failed: dict[str, str] = {}
        self._skipped = 0
        self._parser = expat.ParserCreate()
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def feed(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, False)
        except expat.ExpatError as error:
            raise DamagedDataError(
                f"{self._name} is not valid XML: {error}",
                hint="the test run may have ended before the report was complete",
            ) from None

    def close(self) -> TestResults:
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise DamagedDataError(f"{self._name} is truncated: {error}") from None
        # A name that ran twice, as with retries, has passed if it did once.
        failed = {name: why for name, why in self._failed.items() if name not in self._passed}
        return TestResults(frozenset(self._passed), failed, self._skipped)

    def _refuse_doctype(self, *_: object) -> None:
        raise DamagedDataError(
            f"{self._name} contains a document type declaration, which is not allowed in a test report"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self._path and tag not in ("testsuites", "testsuite"):
            raise DamagedDataError(f"{self._name} is not a JUnit report: it starts with <{clipped(tag, 40)}>")
        self._path.append(tag)
        if len(self._path) > _DEEPEST:
            raise DamagedDataError(f"{self._name} is nested too deeply")
        if tag == "testcase":
            self._case, self._verdict, self._reason = self._test(attributes), "passed", ""
        elif self._case is not None and self._path[-2] == "testcase":
            if tag in _FAULTS:
                self._verdict = "failed"
                self._reason = self._reason or clipped(one_line(attributes.get("message", "")[:2000]), 200)
            elif tag == "skipped" and self._verdict == "passed":
                self._verdict = "skipped"

    def _end(self, _: str) -> None:
        if self._path.pop() != "testcase" or self._case is None:
            return
        if self._verdict == "failed":
            self._failed.setdefault(self._case, self._reason)
        elif self._verdict == "skipped":
            self._skipped += 1
        else:
            self._passed.add(self._case)
        self._case = None

    def _test(self, attributes: dict[str, str]) -> str:
        """`tests/test_app.py::test_it` where the file can be told, else `tests.test_app::test_it`."""
        name = clipped(one_line(attributes.get("name", "")), 300)
        place = clipped(one_line(attributes.get("classname", "")), 300)
        if place not in self._files:
            self._files[place] = _python_file(place, self._root) or place
        return "::".join(part for part in (self._files[place], name) if part) or "?"


def _python_file(place: str, root: Path | None) -> str | None:
    """`tests.test_app.TestIt` as `tests/test_app.py::TestIt`, where there is such a file."""
    words = place.split(".")
    if root is None or not all(word.isidentifier() for word in words):
        return None
    for length in range(len(words), 0, -1):
        file = "/".join(words[:length]) + ".py"
        if (root / file).is_file():
            return "::".join((file, *words[length:]))
    return None


def merged(all_results: Iterable[TestResults]) -> TestResults:
    """Of one run that wrote several reports."""
    runs = list(all_results)
    passed = frozenset[str]().union(*(run.passed for run in runs))
    failed = {name: why for run in runs for name, why in run.failed.items() if name not in passed}
    return TestResults(passed, failed, sum(run.skipped for run in runs))
