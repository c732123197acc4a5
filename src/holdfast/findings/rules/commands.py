"""Shell commands: which worked, how often, and how checks (tests, builds, linters) ended."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from holdfast.base.command_line import DYNAMIC, RUNNERS, WRAPPERS, Simple, control_flow, is_assignment
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

    def ran(self, index: int, command: str, failed: bool, output: str = "", purpose: str = "") -> None:
        if not command or len(command) > _LONGEST or "\n" in command or _only_started(command, output):
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

_WITH_VALUE = r"-(?:[CfF]|pl|-(?:prefix|filter|dir|directory|cwd|manifest-path|file|workspace|workdir))"
"""Options that stand between a program and what it is to run, with a name behind them."""
_TEST_COMMAND = re.compile(
    r"\b(?:pytest|unittest|nosetests|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|playwright test"
    r"|busted)\b"
    r"|\b(?:go|cargo|npm|pnpm|yarn|bun|deno|mix|dotnet|swift|zig|gradlew?|mvnw?|make|just|task|mise run"
    r"|rake|sbt|bazel|rails|hatch|rye|pdm|composer|turbo|nx|cabal|stack|lein|meson|flutter|dart|manage\.py)\s+"
    rf"(?:{_WITH_VALUE}[= ]\S+\s+|-(?!{_WITH_VALUE[1:]}\s)\S+\s+){{0,6}}"
    r"(?:\w[\w:-]*\s+)?(?:run\s+)?[\w:-]*test[\w:-]*"
    r"|\bmvnw?\s+(?:[^\s'\"]+\s+){0,6}verify\b|\bnode\s+(?:-\S+\s+){0,6}--test(?=\s|$)"
    r"|\bnx\s+(?:run-many|affected)\s[^'\"]*\btest\b|\bxcodebuild\s(?:[^'\"]*\s)?test\b"
    r"|\bbats\s+\S|\bprove\s+(?:-|t\b|\S+\.t\b)"
)
_FAILING = re.compile(
    r"--- FAIL: (\S+)"  # go
    r"|^FAILED (\S+)"  # pytest
    r"|^ERROR (\S+\.py(?:::\S+)?)(?= - |$)"
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
    r"\b(?:golangci-lint|ruff|flake8|pylint|mypy|pyright|eslint|biome|stylelint|(?:cargo )?clippy|shellcheck"
    r"|rubocop|staticcheck"
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
_ONLY_STARTED = re.compile(
    r"^\W{0,20}(?:The )?Command\b[^\n]{0,120}\bbackground|^\W{0,20}(?:<\w+>)?Not started: this same command",
    re.IGNORECASE | re.MULTILINE,
)
"""What agents answer to a command that goes on by itself, behind what it had printed by then."""
_ANSWER_SCANNED = 1500


def _goes_on(output: str) -> bool:
    return bool(_ONLY_STARTED.search(head_and_tail(output, _ANSWER_SCANNED)))


_COLORS = re.compile(r"\x1b\[[\d;]*m")
_SOME_RAN = re.compile(
    r"\b[1-9]\d* (?:passed|passing|pass|failed|failing|xfailed|xpassed|ok|successful)\b"
    r"|^ok\s(?!.*\[no tests to run\])|^(?:---\s)?PASS\b|Ran [1-9]\d* tests?|^OK \([1-9]|^test .* \.\.\. ok$"
    r"|^(?:\S+ )?(?=[sxX]*\.)[.sxX]+[ \t]*\[ *\d+%\]|% tests passed, \d+ tests failed out of [1-9]"
    r"|^(?:[#\u2139] )?pass [1-9]|Tests run: (?!(\d+),[^\n]{0,80}Skipped: \1\b)[1-9]|\bPassed:?\s+[1-9]"
    r"|\b(?!(\d+) \w+,[^\n]{0,80}\b\2 (?:pending|skips|skipped)\b)[1-9]\d* (?:examples?|runs|tests?), "
    r"|^> Task \S*:[\w-]*test(?: UP-TO-DATE| FROM-CACHE)?$|Executed [1-9]\d* tests?"
    r"|\"Action\":\"pass\".*\"Test\":",
    re.MULTILINE | re.IGNORECASE,
)
_NONE_RAN = re.compile(
    r"\bno (?:tests?|examples) (?:ran|run|found|to run|files?|were|was|collected|executed|specified)\b"
    r"|\bno test is available\b|\bcollected 0 items\b|\btests? (?:are|is) skipped\b|\b\d+ tests collected\b"
    r"|^[^\w\n]*(?:(?:running|ran|executed) )?0 (?:passed|passing|tests?(?! failed)|examples|runs)\b"
    r"|test result: ok\. 0 passed|^(?:[#\u2139] )?tests 0$|\bTests run: (?:0,|(\d+),[^\n]{0,80}Skipped: \1\b)"
    r"|\b(\d+) examples?, 0 failures, \2 pending"
    r"|^[^\w\n]*(?:Tests:?\s+)?\d+ (?:skipped|deselected)\b|^> Task \S*:[\w-]*test NO-SOURCE",
    re.MULTILINE | re.IGNORECASE,
)
"""It counts where nothing says that another part of the run had tests."""
_SUMS_UP = re.compile(
    r"(?:\S*python[\d.]* -m |(?:uv|poetry|pdm|hatch|pipenv) run |\S*/)?pytest\b|(?:go|cargo) test\b"
)
"""These say what passed: where they printed something else, they ran nothing to its end."""
_GREEN = re.compile(
    r"\b[1-9]\d* (?:passed|passing)\b|^ok\s|^PASS\b|test result: ok|\bOK \(|^OK$|\b0 (?:issues"
    r"|errors|problems|failures)\b"
    r"|All checks passed|BUILD SUCCESS|no issues found|\b0 failed\b|Success: no issues"
    r"|^100% tests passed|^Passed!|All tests passed|^Result: PASS|^(?:[#\u2139] )?fail 0$|^ *0 fail$",
    re.MULTILINE | re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"\b\d+ (?:passed|failed|passing|failing|errors?)\b|test result:|Tests:\s|Ran \d+ tests?"
    r"|^FAIL\b|^ok\s|^PASS$",
    re.IGNORECASE,
)
_TOLD = re.compile(f"(?im:{_SUMMARY.pattern}|{_GREEN.pattern})")
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
_RED_SUMMARY = re.compile(
    r"^[= ]{0,80}[1-9]\d* errors? in \d|^!+ Interrupted: [1-9]|^(?:[#\u2139] )?[Ff]ail:? +[1-9]"
    r"|^ *[1-9]\d* fail$"
    r"|^[= ]{0,80}\d+ [a-z]+(?:,| /) (?:[^\n]{0,120}[ (])?[1-9]\d* (?:failures?|errors?)\b"
    r"|^[1-9]\d* failures?\b"
    r"|\bBUILD FAILURE\b|\b(?:Failures|Errors|Failed): +[1-9]|^[ \t]*Failed!|^(?:FAILURES|ERRORS)!"
    r"|^Result: FAIL|Failed: Total \d+|Total \d+, Failed [1-9]|, with [1-9]\d* failures?\b"
    r"|\+\d+ -[1-9]\d*: "
    r"|\*\* TEST FAILED \*\*"
    r"|^npm (?:ERR!|error) (?:code (?:\d+|ELIFECYCLE)\b|Test failed)|^error: test failed"
    r"|\b[1-9]\d* fails locally"
    r"|^not ok \d+(?!.*# (?:TODO|SKIP))",
    re.MULTILINE,
)
_RED_LINE = re.compile(r"^error(?:\[E\d+\])?: |^\S+\.\w{1,4}:\d+:\d+: (?!warning)", re.MULTILINE)


# ── what the shell waits for ──────────────────────────────────────────────────────────────────────

# An exit code tells of a check only where the check is the program that is run, and the shell waits for it.
# Behind a program that is not known to wait (`tmux`, `at`, `docker run`) only what was printed tells.

_SHELL_SCANNED = 4000
_REDIRECTED = re.compile(r"(?<![<>&\d])1?>>?\s*[^\s&>]|&>")


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SENDING_OFF = _words_of("parallel run0 setsid systemd-run watch")
_WAITING = (WRAPPERS.keys() | RUNNERS.keys()) - _SENDING_OFF | _words_of(
    ". arch asdf bun bwrap cargo chrt composer conda corepack coverage dbus-run-session deno direnv doppler "
    "dotenv dotnet eval faketime firejail go gtimeout mamba micromamba nix nix-shell node op perl php "
    "pipx pixi pnpx pre-commit py pypy python ruby script setarch source taskset time xvfb-run"
)
"""Programs that run another one, wait for it and end with its exit code."""
_OTHER_WORK = _words_of(
    "[ [[ ack ag apk apt apt-get awk bat brew cat cd chmod chown code cp curl cut diff dnf du echo egrep "
    "emacs export fd fgrep file find gh git glab grep head jobs jq kill killall less ln ls man mkdir more "
    "mv nano pacman pgrep pip pip3 pkill printf ps readlink realpath rg rm rsync scp sed set sort stat "
    "tail tar tee test touch tree type unset unzip vi vim wc wget whereis which yum zip"
)
"""Programs that only read, write or name what a check is called."""
_NOT_RUN = _words_of(
    "a add cache config create get help i in info init inject install list lock outdated remove rm show "
    "sync un uninstall update upgrade view why"
)
"""Words before the name of a check with which it is not run."""
_TAKING_CODE = ("python", "pypy", "py", "node", "deno", "bun", "ruby", "perl", "php")
_ASKS = re.compile(
    r"\s(?:--(?:co|collect-only|version|help|list|list-?[tT]ests|list-?envs|fixtures|markers|setup-(?:plan|only)"
    r"|no-?run|dry-run|just-print|recon|show-only|notest|(?:compile|build|install)-only)|-h|-list|--list-\w+"
    r"|-DskipTests|-Dmaven\.test\.skip)(?=[\s=]|$)"
    r"|\b(?:make|gmake|just|rake|task)\s(?:[^'\"]*\s)?-n(?=\s|$)|\bg?make\s(?:[^'\"]*\s)?-[tq](?=\s|$)"
    r"|\bgo test\s(?:[^'\"]*\s)?-[cn](?=\s|$)|\bctest\s(?:[^'\"]*\s)?-N\b|\b(?:tox|nox)\s(?:[^'\"]*\s)?-l\b"
    r"|\b(?:nextest|vitest) list\b"
)
"""What such a program is asked for when it checks nothing."""


@dataclass(slots=True)
class _Part:
    """One program of a command line."""

    text: str
    """As it is written."""
    words: list[str]
    program: str
    runs: bool
    """It does not only set a variable."""
    is_awaited: bool = True
    is_lost: bool = False
    """Whether the line's exit code is that of a later program."""


class _Line:
    """The programs that a shell would run, for which of them it would wait, and whose exit code counts."""

    def __init__(self, command: str) -> None:
        self.parts: list[_Part] = []
        self._lists = [0]  # where the list began that a `&` would send off, for each level
        self._waiting = ("", 0, 0)  # the sign that ended parts whose exit code is lost if another follows
        self._put_in = (0, 0)  # the parts whose output the next one is given as words
        for one in control_flow(command[:_SHELL_SCANNED]):
            if isinstance(one, str):
                self._ended_by(one)
            else:
                self._add(_part_of(one))
        if _HANDS_BACK.match(self.parts[-1].text if self.parts else "") and (
            "PIPESTATUS" in command or "|" not in command
        ):
            for part in self.parts:
                part.is_lost = False

    def _add(self, part: _Part) -> None:
        sign, start, end = self._waiting
        if sign and not (sign == "||" and _FAILS.match(part.text)) and not self._is_strict(sign):
            for before in self.parts[start:end]:
                before.is_lost = True
        if part.runs:
            for before in self.parts[slice(*self._put_in)]:
                before.is_lost = True
        self._waiting, self._put_in = ("", 0, 0), (0, 0)
        self.parts.append(part)

    def _is_strict(self, sign: str) -> bool:
        """Whether the shell was told to end where one fails."""
        told = [part.text for part in self.parts if part.text.startswith("set ")]
        if sign in ("|", "|&"):
            return any("pipefail" in text for text in told)
        return sign in _ENDS_LIST and any(_ENDS_AT_ONCE.match(text) for text in told)

    def _ended_by(self, sign: str) -> None:
        lists, parts = self._lists, self.parts
        if sign in ("(", "$("):
            lists.append(len(parts))
        elif sign in (")", "$)"):
            begin = lists.pop()
            self._waiting, self._put_in = ("", 0, 0), (begin, len(parts)) if sign == "$)" else (0, 0)
        elif sign == "&":
            for part in parts[lists[-1] :]:
                part.is_awaited = False
            lists[-1] = len(parts)
        elif sign != "&&":
            self._waiting = (sign, lists[-1], len(parts)) if not self._waiting[0] else self._waiting
            if sign in _ENDS_LIST:
                lists[-1] = len(parts)


_ENDS_LIST = (";", ";;", "\n")


def _part_of(simple: Simple) -> _Part:
    words = simple.written
    while len(words) > 1 and is_assignment(words[0]):
        words = words[1:]
    program = _program((simple.words or words)[0])
    return _Part(one_line(" ".join(simple.written)), words, program, bool(simple.words))


def _program(word: str) -> str:
    """`.venv/bin/python3.12` is `python`."""
    name = re.split(r"[/\\]", word)[-1]
    return re.sub(r"[\d.]+$|\.(?:exe|cmd|sh)$", "", name) or name


_Way = Literal["", "awaited", "handed on", "sent off"]


def _way_of(part: _Part, check: re.Pattern[str]) -> _Way:
    """How the part runs what the pattern names; not at all where it only names it."""
    if _ASKS.search(part.text):
        return ""
    program = part.program
    line = one_line(" ".join((program, *part.words[1:])))
    found = check.search(line)
    if found is None or program in _OTHER_WORK or _is_only_named(program, line[: found.start()], found[0]):
        return ""
    if not part.is_awaited:
        return "sent off"
    return "awaited" if found.start() == 0 or program in _WAITING or DYNAMIC in program else "handed on"


def _is_only_named(program: str, before: str, named: str) -> bool:
    words = before.split()
    if program in _TAKING_CODE and any(word in ("-c", "-e") for word in words):
        return True
    others = (_program(word) in _OTHER_WORK for word in words)
    named = re.sub(rf"{_WITH_VALUE}[= ]\S+", "", named)
    return any(others) or not _NOT_RUN.isdisjoint((*words, *named.split()[1:]))


_CHECKS: tuple[tuple[CheckKind, re.Pattern[str]], ...] = (
    ("test", _TEST_COMMAND),
    ("lint", _LINT_COMMAND),
    ("build", _BUILD_COMMAND),
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a command line runs of checks."""

    awaited: frozenset[CheckKind] = frozenset()
    handed_on: frozenset[CheckKind] = frozenset()
    """To a program that may not have waited for them: what was printed tells."""
    sent_off: frozenset[CheckKind] = frozenset()
    by_exit: frozenset[CheckKind] = frozenset()
    """Of these the exit code tells, a failure only where no other program comes after it (`at_end`)."""
    at_end: frozenset[CheckKind] = frozenset()
    told: Mapping[CheckKind, _Told] = field(default_factory=dict[CheckKind, "_Told"])
    """Where the line prints the exit code of these."""


@lru_cache(maxsize=64)  # asked several times about one command
def _asked(command: str) -> _Asked:
    names = tuple(one for one in _CHECKS if one[1].search(command, 0, _SHELL_SCANNED))
    if not names:
        return _Asked()
    parts = _Line(command).parts
    found: list[tuple[CheckKind, _Way, _Part]] = [
        (kind, _way_of(part, check), part) for kind, check in names for part in parts
    ]

    def those(holds: Callable[[_Way, _Part], bool]) -> frozenset[CheckKind]:
        return frozenset[CheckKind](kind for kind, way, part in found if holds(way, part))

    awaited = those(lambda way, _: way == "awaited")
    handed_on = those(lambda way, _: way == "handed on") - awaited
    sent_off = those(lambda way, _: way == "sent off") - awaited - handed_on
    if any(part.is_awaited and _WAITS.match(part.text) for part in parts):
        return _Asked(handed_on=awaited | handed_on | sent_off)
    lost = those(lambda way, part: way == "awaited" and part.is_lost)
    at_end = those(lambda way, part: way != "" and part is parts[-1])
    told: dict[CheckKind, _Told] = {
        kind: line for kind, way, part in found if way == "awaited" and (line := _told_of(part, parts))
    }
    return _Asked(awaited, handed_on, sent_off, awaited - lost, at_end, told)


_Told = tuple[str, int]


def _told_of(part: _Part, parts: list[_Part]) -> _Told | None:
    """The printed line with the exit code of a part, as a pattern, and which of those lines, from the end."""
    at = next(place for place, one in enumerate(parts) if one is part)
    has_pipefail = any(one.text.startswith("set ") and "pipefail" in one.text for one in parts[:at])
    for place, later in enumerate(parts[at + 1 :], at + 1):
        if echo := _TELLS_EXIT.fullmatch(later.text):
            is_its = place == at + 1 or has_pipefail or echo[2] != "$?"
            pattern = rf"^{re.escape(echo[1])}(\d{{1,3}}){re.escape(echo[3])}\s*$"
            return (pattern, -sum(one.text == later.text for one in parts[place:])) if is_its else None
    return None


def _is_all_sent_off(command: str) -> bool:
    """Whether nothing that the shell waited for says how it went."""
    parts = _Line(command).parts if _SENDS_OFF.search(command) else []
    return any(not part.is_awaited for part in parts) and all(
        not part.is_awaited or _IDLE.match(part.text) for part in parts
    )


_SENDS_OFF = re.compile(r"(?<![&|<>])&(?![&>])")
_TELLS_EXIT = re.compile(
    r"echo\s+[\"']?([^$\"'`\\]*)(\$\?|\$\{PIPESTATUS(?:\[0\])?\}|\$\{pipestatus\[1\]\})([^$\"'`\\]*)[\"']?"
)
_HANDS_BACK = re.compile(r"exit\s+[\"']?\$")
_FAILS = re.compile(r"(?:false|(?:exit|return) [1-9]\d*)(?!\S)")
_ENDS_AT_ONCE = re.compile(r"set -\w*e")
_WAITS = re.compile(r"(?:wait|fg)\b")
_IDLE = re.compile(r"(?:sleep|disown|echo|printf|true|:|jobs|exit)(?!\S)")


def check_kinds(command: str) -> tuple[CheckKind, ...]:
    """What a command checks, or has checked by somebody else; a chain may check several."""
    asked = _asked(command)
    found = asked.awaited | asked.handed_on | asked.sent_off
    return tuple(kind for kind, _ in _CHECKS if kind in found)


def proves_check(command: str) -> bool:
    """Whether a command that ends well has passed a check."""
    return bool(_asked(command).by_exit)


def check_kind(command: str) -> CheckKind | None:
    return next(iter(check_kinds(command)), None)


def check_run(
    index: int, command: str, failed: bool, output: str, kind: CheckKind, ended: bool = True
) -> TestRun:
    text = _COLORS.sub("", head_and_tail(output, _SCANNED))
    asked = _asked(command)
    code = _exit_told(asked, kind, text)
    by_exit = kind in asked.by_exit or code == 0
    ended = ended and not _goes_on(text)
    failed = failed and ended and kind in asked.by_exit and (kind in asked.at_end or not _GREEN.search(text))
    failing = _without_parents(next(filter(None, found.groups()), "") for found in _FAILING.finditer(text))
    summaries = [one_line(line) for line in text.split("\n")[-_SUMMARY_LINES:] if _SUMMARY.search(line)]
    told = [line for line in summaries if _RED.search(line)] or summaries
    red = bool(failing or _RED.search(text)) or (failed and not _ends_in_search(command))
    if not red and not by_exit:
        red = bool(code or _RED_SUMMARY.search(text) or (_RED_LINE.search(text) and not _GREEN.search(text)))
    first_line = same_command(command.split("\n", 1)[0][:_COMMAND_SCANNED])
    return TestRun(
        index,
        command,
        not red,
        failing[:_MOST_FAILING],
        clipped(_red_lines(text) if red and not failing else told[-1] if told else "", _SUMMARY_KEPT),
        kind=kind,
        unsure=not red and not (ended and _is_proven(command, text, kind, by_exit)),
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
    return next((line for red in (_RED, _RED_SUMMARY) for line in lines if red.search(line)), "")


_ASSERTS = re.compile(
    r"[\w./-]{0,200}test[\w./-]{0,80}\.\w{1,4}:\d+: .*"
    r"\b(?:got|want|expected|should|unexpected|failed)\b",
    re.IGNORECASE,
)
_COMPLAINT, _COMPLAINTS = 150, 4
_SUMMARY_KEPT = _COMPLAINT * _COMPLAINTS + 40


def _exit_told(asked: _Asked, kind: CheckKind, text: str) -> int | None:
    """The exit code that the line prints of a check: its own of several, and 0 only where all are."""
    pattern, place = asked.told.get(kind, ("", 0))
    codes = [int(found[1]) for found in re.finditer(pattern, text, re.MULTILINE)] if pattern else []
    if not any(codes):
        return 0 if codes else None
    return (codes[place] if -place <= len(codes) else 0) or None


def _is_proven(command: str, text: str, kind: CheckKind, by_exit: bool) -> bool:
    """Whether a run without a failure in its output is known to have passed."""
    line, asked = command[:_COMMAND_SCANNED], _asked(command)
    if kind in asked.sent_off or _CUT.search(line):
        return False
    if kind == "test" and _ran_no_test(command, text):
        return False
    head = _FIRST_LINES.search(line)
    if head and text.rstrip("\n").count("\n") + 1 >= int(head[1] or _LINES_OF_HEAD):
        return False  # there was more, or there may have been
    return by_exit or bool(_GREEN.search(text))


def _ran_no_test(command: str, text: str) -> bool:
    """A runner that found none, skipped all or only listed them ends well, too."""
    if _SOME_RAN.search(text):
        return False
    silent = not text.strip() or _REDIRECTED.search(command[:_COMMAND_SCANNED])
    return bool(_NONE_RAN.search(text)) or bool(not silent and _SUMS_UP.match(same_command(command)))


def _ends_in_search(command: str) -> bool:
    """`… | grep` fails where it finds nothing."""
    return bool(re.search(r"\|\s*(?:grep|rg)\b[^|]*$", command[-_COMMAND_SCANNED:]))


def is_red(command: str, output: str) -> bool:
    """Whether a check says that it failed, whatever a pipe made of its exit code."""
    if not any(sign in command for sign in "|;\n"):
        return False
    return any(not check_run(0, command, False, output, kind).passed for kind in check_kinds(command))


def _only_started(command: str, output: str) -> bool:
    """Whether nothing is known to have come to its end, or nothing was asked for but a list."""
    if _goes_on(output) or _is_all_sent_off(command):
        return True
    asked = _asked(command)
    if asked.awaited:
        return False
    return bool(asked.sent_off or (asked.handed_on and not _TOLD.search(output))) or _only_asks(command)


def _only_asks(command: str) -> bool:
    names_check = any(pattern.search(command, 0, _SHELL_SCANNED) for _, pattern in _CHECKS)
    return names_check and any(_ASKS.search(part.text) for part in _Line(command).parts)


@dataclass(frozen=True, slots=True)
class _Run:
    index: int
    command: str
    failed: bool
    output: str
    kind: CheckKind
    ended: bool

    def read(self) -> TestRun:
        return check_run(self.index, self.command, self.failed, self.output, self.kind, self.ended)


class Checks:
    """The newest run of each kind, whole and in part; output is looked at only when somebody asks."""

    def __init__(self) -> None:
        self._newest: OrderedDict[tuple[CheckKind, str, bool], _Run] = OrderedDict()

    def ran(self, index: int, command: str, failed: bool, output: str, *, ended: bool = True) -> None:
        asked = _asked(command)
        text = head_and_tail(output, _SCANNED)
        for kind in check_kinds(command):
            if kind in asked.handed_on and not _TOLD.search(text):
                continue  # somebody else may run it, or nobody
            started = not ended or kind in asked.sent_off or _goes_on(text)
            key = (kind, same_command(command), started)
            self._newest.pop(key, None)
            self._newest[key] = _Run(index, command, failed, text, kind, not started)
            if len(self._newest) > _MOST_CHECKS:
                self._newest.popitem(last=False)

    def test(self, edited_after: Callable[[int], tuple[str, ...]]) -> TestRun | None:
        """The newest run of tests that came to an end, or else the newest."""
        runs = [run for run in self._newest.values() if run.kind == "test"]
        newest = next((run for run in reversed(runs) if run.ended), runs[-1] if runs else None)
        return replace(newest.read(), edited_since=edited_after(newest.index)) if newest else None

    def found(self, edited_after: Callable[[int], tuple[str, ...]]) -> tuple[TestRun, ...]:
        """What still counts: of each kind the newest, and before it a wider one that it does not settle."""
        kept: dict[int, TestRun] = {}
        for kind in ("test", "lint", "build"):
            runs = [run.read() for run in self._newest.values() if run.kind == kind]
            for run in _still_counts(runs):
                kept.setdefault(run.index, run)
        counting = _without_outdated(sorted(kept.values(), key=lambda run: run.index))
        return tuple(replace(run, edited_since=edited_after(run.index)) for run in counting)


def _still_counts(runs: list[TestRun]) -> list[TestRun]:
    if not runs:
        return []
    newest = runs[-1]
    if newest.unsure and len(runs) > 1:  # what was known before still is
        return [*_still_counts([run for run in runs[:-1] if not run.unsure]), newest]
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
