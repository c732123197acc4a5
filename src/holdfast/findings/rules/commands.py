"""Shell commands and test runs: which worked, which failed, how often."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from holdfast.base.text import clipped, head_and_tail, one_line, same_command
from holdfast.model.gathered import CommandUse, TestRun

# A longer command is a script of the moment; nobody runs it again word for word.
_LONGEST = 300
_MOST_KEPT = 1500


@dataclass(slots=True)
class _Use:
    runs: int = 0
    failures: int = 0
    last_index: int = -1
    last_failed: bool = False
    purpose: str = ""


class Commands:
    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}

    def ran(self, index: int, command: str, failed: bool, purpose: str = "") -> None:
        if not command or len(command) > _LONGEST or "\n" in command:
            return
        use = self._uses.get(command)
        if use is None:
            if len(self._uses) >= _MOST_KEPT:
                self._forget_oldest()
            use = self._uses[command] = _Use()
        use.runs += 1
        use.failures += failed
        use.last_index = index
        use.last_failed = failed
        use.purpose = purpose or use.purpose

    def _forget_oldest(self) -> None:
        by_age = sorted(
            self._uses, key=lambda command: (self._uses[command].runs > 1, self._uses[command].last_index)
        )
        for command in by_age[: _MOST_KEPT // 3]:
            del self._uses[command]

    def found(self) -> tuple[CommandUse, ...]:
        return tuple(
            CommandUse(command, use.runs, use.failures, use.last_index, use.last_failed, use.purpose)
            for command, use in self._uses.items()
        )


# ── test runs ─────────────────────────────────────────────────────────────────────────────────────

# Test runs and their outcome.

_SCANNED = 16_000
_MOST_FAILING = 20
_COMMAND_SCANNED = 300

_TEST_COMMAND = re.compile(
    r"\b(?:pytest|unittest|nosetests|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|playwright test)\b"
    r"|\b(?:go|cargo|npm|pnpm|yarn|bun|deno|mix|dotnet|swift|zig|gradle|gradlew|mvn|make|just|task|mise run"
    r"|rake|sbt|bazel)"
    r"\s+(?:[\w:-]+\s+)?(?:run\s+)?[\w:-]*test[\w:-]*"
)
_OTHER_WORK = re.compile(r"(?:grep|rg|find|ls|cat|sed|head|tail|git|gh|glab|wc|echo|jq|curl)\b")
_FAILING = re.compile(
    r"--- FAIL: (\S+)"  # go
    r"|^FAILED (\S+)"  # pytest
    r"|^test (\S+) \.\.\. FAILED"  # cargo
    r"|^[ \t]*[\u2715\u2717\u00d7]\s+(.{3,100}?)(?: \(\d+ ?ms\))?$"  # jest, vitest
    r"|^[ \t]+\d+\) (.{3,100})$",  # mocha, rspec
    re.MULTILINE,
)
_SUMMARY = re.compile(
    r"\d+ (?:passed|failed|passing|failing|errors?)\b|test result:|Tests:\s|Ran \d+ tests?"
    r"|^FAIL\b|^ok\s|^PASS$",
    re.IGNORECASE,
)
_SUMMARY_LINES = 40  # from the end: that is where every runner sums up
_RED = re.compile(
    r"--- FAIL|^FAIL\b|\b[1-9]\d* failed\b|\b[1-9]\d* failing\b|FAILED \(|\bBUILD FAILED\b", re.MULTILINE
)


def is_test_command(command: str) -> bool:
    if "test" not in command:
        return False
    first_line = same_command(command.split("\n", 1)[0][:_COMMAND_SCANNED])
    return not _OTHER_WORK.match(first_line) and bool(_TEST_COMMAND.search(first_line))


def test_run(index: int, command: str, failed: bool, output: str) -> TestRun:
    text = head_and_tail(output, _SCANNED)
    failing = dict.fromkeys(next(filter(None, found.groups()), "") for found in _FAILING.finditer(text))
    summaries = [one_line(line) for line in text.split("\n")[-_SUMMARY_LINES:] if _SUMMARY.search(line)]
    passed = not failed and not failing and not _RED.search(text)
    return TestRun(
        index,
        command,
        passed,
        tuple(failing)[:_MOST_FAILING],
        clipped(summaries[-1], 160) if summaries else "",
    )


class TestRuns:
    """The newest run; its output is looked at only when somebody asks."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    def __init__(self) -> None:
        self._newest: tuple[int, str, bool, str] | None = None

    def ran(self, index: int, command: str, failed: bool, output: str) -> None:
        self._newest = (index, command, failed, head_and_tail(output, _SCANNED))

    def found(self, edited_since: tuple[str, ...]) -> TestRun | None:
        return replace(test_run(*self._newest), edited_since=edited_since) if self._newest else None

    @property
    def last_index(self) -> int:
        return self._newest[0] if self._newest else -1
