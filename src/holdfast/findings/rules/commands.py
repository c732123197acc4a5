"""Shell commands: which worked, how often, how tests ended, what git and its hosts were told."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace

from holdfast.base.text import clipped, head_and_tail, one_line, same_command
from holdfast.model.gathered import CommandUse, Commit, GitFacts, TestRun

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


# ── git ───────────────────────────────────────────────────────────────────────────────────────────

# Commits, pushes, branches and pull requests, read from what git and its hosts printed.

_GIT_SCANNED = 4000
_MADE = re.compile(r"^\[([^\s\]]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_SWITCHED = re.compile(r"Switched to (?:a new )?branch '([^']+)'|^On branch (\S+)", re.MULTILINE)
_UNMADE = re.compile(
    r"\bgit\b[^;&|\n]{0,200}?\s(?:commit\b[^;&|\n]{0,400}?\s(?P<amend>--amend)\b"
    r"|reset\s+(?:-\S+\s+){0,4}(?:HEAD|@)(?P<back>~\d{0,4}|\^{1,20})(?=\s|$|[;&|]))"
)
_PULL_REQUEST = re.compile(r"https?://[^\s\"')]+/(?:pull|pulls|merge_requests)/(\d+)")


def _steps_back(suffix: str) -> int:
    """Of `~`, `~3`, `^^`."""
    return int(suffix[1:] or 1) if suffix.startswith("~") else len(suffix)


class GitWork:
    def __init__(self) -> None:
        self._branch: str | None = None
        self._commits: deque[Commit] = deque(maxlen=40)
        self._pushed = -1
        self._pull_requests: dict[str, None] = {}

    def ran(self, index: int, command: str, output: str) -> None:
        """A shell command that succeeded; cheap for the many that have nothing to do with git."""
        if "git" not in command and "gh " not in command and "glab" not in command:
            return
        text = output[:_GIT_SCANNED]
        made = _MADE.findall(text) if "commit" in command or "merge" in command else ()
        if "reset" in command or (made and "--amend" in command):
            self._undone(command)
        for branch, identifier, subject in made:
            self._branch = branch if branch != "detached" else self._branch
            self._commits.append(Commit(index, identifier, clipped(subject, 120)))
        for switched, current in _SWITCHED.findall(text):
            self._branch = switched or current
        if "git push" in command or ("git" in command and " push" in command):
            self._pushed = index
        if "pr create" in command or "mr create" in command or "pr view" in command:
            self._note_links(text)

    def _undone(self, command: str) -> None:
        """An amended commit and one that was reset are no longer there; what else moves HEAD is not seen."""
        for found in _UNMADE.finditer(command[:_GIT_SCANNED]):
            back = 1 if found["amend"] else _steps_back(found["back"])
            for _ in range(min(back, len(self._commits))):
                self._commits.pop()

    def linked(self, text: str) -> None:
        self._note_links(text[:_GIT_SCANNED])

    def _note_links(self, text: str) -> None:
        for found in _PULL_REQUEST.finditer(text):
            if len(self._pull_requests) < 20:
                self._pull_requests.setdefault(found[0])

    @property
    def last_commit_index(self) -> int:
        return self._commits[-1].index if self._commits else -1

    def found(self, branch: str | None, edited_since: tuple[str, ...]) -> GitFacts:
        return GitFacts(
            branch=self._branch or (branch if branch != "HEAD" else None),
            commits=tuple(self._commits),
            pushed_index=self._pushed,
            pull_requests=tuple(self._pull_requests),
            edited_since_commit=edited_since,
        )
