"""Shell commands: which worked, how often, and how checks (tests, builds, linters) ended."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from holdfast.base.text import clipped, head_and_tail, one_line, same_command
from holdfast.model.gathered import CheckKind, CommandUse, TestRun

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


# ── checks ────────────────────────────────────────────────────────────────────────────────────────

# Tests, builds and linters, and their verdict: from what they printed. The exit code of a pipe is
# that of its last program, and what runs in the background has not ended yet.

_SCANNED = 16_000
_MOST_FAILING = 20
_COMMAND_SCANNED = 300
_MOST_CHECKS = 40

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
_BUILD_COMMAND = re.compile(
    r"\b(?:go (?:build|vet|install)|cargo (?:build|check)|(?:npm|pnpm|yarn|bun)(?: run)? "
    r"[\w:-]*build[\w:-]*|tsc|make(?: (?:all|build))?"
    r"|gradlew? (?:build|assemble)|mvn (?:package|compile|install)|dotnet build|swift build|zig "
    r"build|cmake --build"
    r"|docker (?:compose )?build|mise run [\w:-]*build[\w:-]*|just [\w:-]*build[\w:-]*)(?=\s|$|[;&|])"
)
_LINT_COMMAND = re.compile(
    r"\b(?:golangci-lint|ruff|flake8|pylint|mypy|pyright|eslint|biome|stylelint|clippy|shellcheck|rubocop|staticcheck"
    r"|(?:npm|pnpm|yarn|bun|mise|make|just|task)(?: run)? [\w:-]*(?:lint|typecheck|type-check"
    r"|check)[\w:-]*)(?=\s|$|[;&|])"
)
_NARROWED = re.compile(
    r"\s(?:-run|-k|-t|--filter|--testNamePattern|--grep|-g|--tests|--test|--lib|-m)[ =]\S|::"
    r"|\s\S*(?:_test|\.test|\.spec|test_)\w*\.\w+"
    r"|\s\.{0,2}/?[\w-]+(?:/[\w.-]+)+(?:/(?!\.\.\.)[\w.-]*)?(?=\s|$)"
)
_CUT = re.compile(r"\|\s*(?:grep|rg|sed|awk|cut|wc|jq|sort)\b")
_FIRST_LINES = re.compile(r"\|\s*head\b(?:\s+-n?\s*(\d{1,5}))?")
_LINES_OF_HEAD = 10
_PIPED = re.compile(r"(?<!\|)\|(?!\|)|\|\|\s*(?:true|echo|:)|;\s*(?:echo|true|:)\b")
_BACKGROUND = re.compile(r"(?<!&)&\s*$|\bnohup\b")
_ONLY_STARTED = re.compile(r"\A\W{0,20}Command\b[^\n]{0,80}\bbackground", re.IGNORECASE)
"""What agents answer to a command that goes on by itself."""
_ASKS = re.compile(
    r"\s(?:--(?:co|collect-only|version|help|list-?[tT]ests|fixtures|markers)|-h|-list)(?=[\s=]|$)"
)
"""What such a program is asked for when it checks nothing."""
_CHAIN = re.compile(r"(&&|\|\||;)")
_GREEN = re.compile(
    r"\b[1-9]\d* (?:passed|passing)\b|^ok\s|^PASS\b|test result: ok|\bOK \(|^OK$|\b0 (?:issues"
    r"|errors|problems|failures)\b"
    r"|All checks passed|BUILD SUCCESS|no issues found|\b0 failed\b|Success: no issues",
    re.MULTILINE | re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"\d+ (?:passed|failed|passing|failing|errors?)\b|test result:|Tests:\s|Ran \d+ tests?"
    r"|^FAIL\b|^ok\s|^PASS$",
    re.IGNORECASE,
)
_SUMMARY_LINES = 40  # from the end: that is where every runner sums up
_RED = re.compile(
    r"--- FAIL|^FAIL\b|\b[1-9]\d* (?:tests? )?failed\b|\b[1-9]\d* failing\b|^FAILED\b|FAILED \("
    r"|\bBUILD FAILED\b|\[build failed\]"
    r"|test result: FAILED|^Found [1-9]\d* errors?\b|^[1-9]\d* issues?[:.]|\b[1-9]\d* problems? "
    r"\(|^make: \*\*\*"
    r"|ERROR task failed",
    re.MULTILINE,
)
# A passing run may print such lines, too: they count where the exit code does not.
_RED_LINE = re.compile(r"^error(?:\[E\d+\])?: |^\S+\.\w{1,4}:\d+:\d+: (?!warning)", re.MULTILINE)


def check_kinds(command: str) -> tuple[CheckKind, ...]:
    """What a command checks, the widest first; a chain of commands may check several things."""
    first_line = same_command(command.split("\n", 1)[0][:_COMMAND_SCANNED])
    if _ASKS.search(first_line):
        first_line = "".join(one for one in _CHAIN.split(first_line) if not _ASKS.search(one))
    if _OTHER_WORK.match(first_line):
        return ()
    tests = "test" in first_line and _TEST_COMMAND.search(first_line)
    found: list[CheckKind] = ["test"] if tests else []
    if _LINT_COMMAND.search(first_line):
        found.append("lint")
    if _BUILD_COMMAND.search(first_line):
        found.append("build")
    return tuple(found)


def check_kind(command: str) -> CheckKind | None:
    return next(iter(check_kinds(command)), None)


def is_test_command(command: str) -> bool:
    return check_kind(command) == "test"


def check_run(index: int, command: str, failed: bool, output: str, kind: CheckKind) -> TestRun:
    text = head_and_tail(output, _SCANNED)
    failing = _without_parents(next(filter(None, found.groups()), "") for found in _FAILING.finditer(text))
    summaries = [one_line(line) for line in text.split("\n")[-_SUMMARY_LINES:] if _SUMMARY.search(line)]
    told = [line for line in summaries if _RED.search(line)] or summaries
    red = bool(failing or _RED.search(text)) or (failed and not _ends_in_search(command))
    if not red and _RED_LINE.search(text) and not _GREEN.search(text):
        red = bool(_PIPED.search(command[:_COMMAND_SCANNED]))
    first_line = same_command(command.split("\n", 1)[0][:_COMMAND_SCANNED])
    return TestRun(
        index,
        command,
        not red,
        failing[:_MOST_FAILING],
        clipped(_red_lines(text) if red and not failing else told[-1] if told else "", _SUMMARY_KEPT),
        kind=kind,
        unsure=not red and not _is_proven(command, text),
        narrow=bool(_NARROWED.search(first_line)),
    )


def _without_parents(names: Iterable[str]) -> tuple[str, ...]:
    """Of a test and its parts, the parts: go names both."""
    found = dict.fromkeys(names)
    return tuple(one for one in found if not any(other.startswith(f"{one}/") for other in found))


def _red_lines(text: str) -> str:
    """What a failed run complains of: the places in the code, or else its verdict."""
    lines = [one_line(line) for line in text.split("\n")]
    at = list(dict.fromkeys(clipped(line, _COMPLAINT) for line in lines if _RED_LINE.search(line)))
    if at:
        more = f" (and {len(at) - _COMPLAINTS} more)" if len(at) > _COMPLAINTS else ""
        return " / ".join(at[:_COMPLAINTS]) + more
    if said := [clipped(line, _COMPLAINT) for line in lines if _ASSERTS.match(line)]:
        return " / ".join(said[-_COMPLAINTS:])  # the names of the tests were cut away
    return next((line for line in lines if _RED.search(line)), "")


_ASSERTS = re.compile(
    r"[\w./-]{0,200}test[\w./-]{0,80}\.\w{1,4}:\d+: .*"
    r"\b(?:got|want|expected|should|unexpected|failed)\b",
    re.IGNORECASE,
)
_COMPLAINT, _COMPLAINTS = 150, 4
_SUMMARY_KEPT = _COMPLAINT * _COMPLAINTS + 40


def _is_proven(command: str, text: str) -> bool:
    """Whether a run without a failure in its output is known to have passed."""
    line = command[:_COMMAND_SCANNED]
    if _BACKGROUND.search(line) or _CUT.search(line) or _ONLY_STARTED.search(text):
        return False
    head = _FIRST_LINES.search(line)
    if head and text.rstrip("\n").count("\n") + 1 >= int(head[1] or _LINES_OF_HEAD):
        return False  # there was more, or there may have been
    return not _PIPED.search(line) or bool(_GREEN.search(text))


def _ends_in_search(command: str) -> bool:
    """`… | grep` fails where it finds nothing."""
    return bool(re.search(r"\|\s*(?:grep|rg)\b[^|]*$", command[-_COMMAND_SCANNED:]))


def is_red(command: str, output: str) -> bool:
    """Whether a check says that it failed, whatever a pipe made of its exit code."""
    if "|" not in command:
        return False
    return any(not check_run(0, command, False, output, kind).passed for kind in check_kinds(command))


class Checks:
    """The newest run of each kind, whole and in part; output is looked at only when somebody asks."""

    def __init__(self) -> None:
        self._newest: OrderedDict[tuple[CheckKind, str], tuple[int, str, bool, str]] = OrderedDict()

    def ran(self, index: int, command: str, failed: bool, output: str) -> None:
        for kind in check_kinds(command):
            key = (kind, same_command(command))
            self._newest.pop(key, None)
            self._newest[key] = (index, command, failed, head_and_tail(output, _SCANNED))
            if len(self._newest) > _MOST_CHECKS:
                self._newest.popitem(last=False)

    @property
    def last_test_index(self) -> int:
        return max((run[0] for (kind, _), run in self._newest.items() if kind == "test"), default=-1)

    def test(self, edited_since: tuple[str, ...]) -> TestRun | None:
        """The newest run of tests."""
        runs = [run for (kind, _), run in self._newest.items() if kind == "test"]
        return replace(check_run(*runs[-1], "test"), edited_since=edited_since) if runs else None

    def found(self, edited_after: Callable[[int], tuple[str, ...]]) -> tuple[TestRun, ...]:
        """What still counts: of each kind the newest, and before it a wider one that it does not settle."""
        kept: dict[int, TestRun] = {}
        for kind in ("test", "lint", "build"):
            runs = [check_run(*run, kind) for (one, _), run in self._newest.items() if one == kind]
            for run in _still_counts(runs):
                kept.setdefault(run.index, run)
        counting = _without_outdated(sorted(kept.values(), key=lambda run: run.index))
        return tuple(replace(run, edited_since=edited_after(run.index)) for run in counting)


def _still_counts(runs: list[TestRun]) -> list[TestRun]:
    if not runs:
        return []
    newest = runs[-1]
    wider = next((run for run in reversed(runs) if not run.narrow), None)
    return [newest] if wider is None or wider is newest or not newest.narrow else [wider, newest]


def _without_outdated(runs: list[TestRun]) -> list[TestRun]:
    """Tests build what they test; and a run that proves nothing counts only while it is the newest."""
    tested = max((run.index for run in runs if run.kind == "test"), default=-1)
    return [
        run
        for run in runs
        if not (run.kind == "build" and run.index < tested)
        and not (run.unsure and (run is not runs[-1] or run.kind != "test"))
    ]
