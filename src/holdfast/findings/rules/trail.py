"""The newest steps of a session in their order, where it stopped, and whether it did any work at all."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from holdfast.base.command_line import SHELLS, Simple, all_programs, past_options, program_of
from holdfast.base.text import clipped, head_and_tail, is_list_item, one_line, sentences
from holdfast.findings.rules.actions import Action, action_of, step_of
from holdfast.findings.rules.commands import check_kind, check_run
from holdfast.findings.rules.failures import telling_lines
from holdfast.findings.rules.files import names_of
from holdfast.model.gathered import Gathered, Happening, Stop, StoppingPoint, SubagentReport
from holdfast.model.message import Message, ToolCall, ToolOutcome, ToolResult, is_go_ahead

# ── the newest steps ──────────────────────────────────────────────────────────────────────────────

_STEPS_KEPT = 160
_RESULT_KEPT, _SEARCH_KEPT = 4000, 12_000
_WORDS_KEPT = 3000
_TOLD, _TOLD_OF_NEWEST = 200, 360
_RESULTS_SHOWN, _TOLD_AT_LENGTH = 3, 8
_LINES_TOLD, _LINES_TOLD_OF_NEWEST = 3, 12
_RESULT_SHOWN = 1200
_REPORTS_KEPT = 6
_REPORT_KEPT = 6000
_EXPLAINED = ("shell", "edit", "write")
_FOOTER = re.compile(r"\n*agentId: .*$|\n*<usage>.*$", re.DOTALL)
_NOISE = re.compile(r"^(?:Exit code:? \d+|\[[\w:.-]+\] \$ .*|Shell cwd was reset.*|[-=─\s]*)$")


@dataclass(slots=True)
class _Step:
    index: int
    kind: str
    text: str
    action: Action | None = None
    outcome: ToolOutcome | None = None
    result: str = ""


class Trail:
    def __init__(self) -> None:
        self._steps: deque[_Step] = deque(maxlen=_STEPS_KEPT)
        self._calls: dict[str, list[_Step]] = {}
        self._reports: deque[SubagentReport] = deque(maxlen=_REPORTS_KEPT)
        self._said_at = -1

    def said(self, index: int, kind: str, text: str) -> None:
        self._said_at = index
        if words := head_and_tail(text.strip(), _WORDS_KEPT):
            self._steps.append(_Step(index, kind, words))

    def called(self, index: int, call_id: str, action: Action) -> None:
        if action.kind == "todo":
            return
        index += index == self._said_at  # of one message, what is done comes after what is said
        steps = [_step(index, part) for part in action.parts or (action,)]
        self._steps.extend(steps)
        self._calls[call_id] = steps
        if len(self._calls) > _STEPS_KEPT:
            del self._calls[next(iter(self._calls))]

    def answered(self, call_id: str, outcome: ToolOutcome, text: str) -> None:
        """One that is still at work is heard of again."""
        steps = self._calls.get(call_id, ()) if outcome == "unknown" else self._calls.pop(call_id, ())
        for step in steps:
            self._ended(step, outcome, text)

    def _ended(self, step: _Step, outcome: ToolOutcome, text: str) -> None:
        step.outcome = outcome
        step.result = head_and_tail(text, _SEARCH_KEPT if step.kind == "search" else _RESULT_KEPT)
        if step.kind == "agent" and outcome == "ok" and step.action:
            report = _FOOTER.sub("", text[:_REPORT_KEPT]).strip()
            about = clipped(one_line(step.action.about or step.action.new), 120)
            if report:
                self._reports.append(SubagentReport(step.index, about, report))

    def taken_back(self, first: int) -> None:
        self._steps = deque((step for step in self._steps if step.index < first), maxlen=_STEPS_KEPT)

    def found(self) -> tuple[Happening, ...]:
        newest = [step for step in self._steps if step.outcome][-_TOLD_AT_LENGTH:]
        last = newest[-_RESULTS_SHOWN:]
        return tuple(
            Happening(
                step.index,
                step.kind,
                step.text,
                step.outcome,
                _told(step, at_length=any(step is one for one in newest)),
                one_line(step.action.about)[:_TOLD] if step.action and step.kind in _EXPLAINED else "",
                _result(step) if any(step is one for one in last) else "",
                _places(step),
                step.kind == "agent" or (step.kind == "shell" and may_write_code(step.text)),
            )
            for step in self._steps
        )

    def reports(self) -> tuple[SubagentReport, ...]:
        return tuple(self._reports)


def _step(index: int, action: Action) -> _Step:
    text = action.command or action.path or action.about or action.tool
    if action.kind in ("search", "agent", "other"):
        text = action.about or action.path or action.tool
    return _Step(index, action.kind, text[:_WORDS_KEPT], action)


def _result(step: _Step) -> str:
    if step.kind not in ("shell", "search") or step.outcome not in ("ok", "error"):
        return ""
    lines = (line.rstrip() for line in step.result.split("\n") if not _NOISE.match(line))
    return head_and_tail("\n".join(lines), _RESULT_SHOWN)


def _told(step: _Step, *, at_length: bool = False) -> str:
    """What came of it, in a line; of the newest steps in a longer one."""
    if step.action is None:
        return ""
    if step.outcome == "error":
        message, verdict = telling_lines(step.result)
        return clipped(verdict or message, _TOLD)
    if step.kind in ("edit", "write"):
        return ", ".join(names_of(step.action)[:4])
    if step.kind == "read":
        return step.action.lines
    if step.kind == "search":
        return "no match" if _NO_MATCH.match(step.result) and step.outcome == "ok" else ""
    most = _LINES_TOLD_OF_NEWEST if at_length else _LINES_TOLD
    return (
        clipped(_line_of(step, most), _TOLD_OF_NEWEST if at_length else _TOLD) if step.kind == "shell" else ""
    )


def _line_of(step: _Step, most: int) -> str:
    kind = check_kind(step.text)
    if kind:
        run = check_run(step.index, step.text, False, step.result, kind)
        if run.failing:
            return f"failed: {', '.join(run.failing[:4])}"
        if run.summary or not run.passed:
            return run.summary or telling_lines(step.result)[0]
    lines = [one_line(line) for line in step.result.split("\n") if not _NOISE.match(line)]
    told = " / ".join(line for line in lines if line)
    if len(lines) <= _LINES_TOLD:
        return clipped(told, _TOLD)
    return told if len(lines) <= most and len(told) <= _TOLD_OF_NEWEST else ""  # half a listing tells nothing


_NO_MATCH = re.compile(r"\s*(?:No (?:matches|files|results)\b.*|Found 0 .*)?\s*$")


def _with_paths(listed: str) -> str:
    """Some tools name a file once, above the lines that were found in it."""
    path, lines = "", list[str]()
    for line in listed.split("\n"):
        if found := _HEADS_LINES.match(line):
            path = found[1] or found[2]
        elif found := _LINE_BELOW.match(line):
            lines.append(f"{path}:{found[1]}:" if path else line)
        else:
            lines.append(line)
    return "\n".join(lines)


_HEADS_LINES = re.compile(r"(?:File: (\S[^\n]*?)|(?=/)(\S[^\n]*?):)$")
_LINE_BELOW = re.compile(r"(?:L|  Line )(\d+):")
_PLACE = re.compile(r"^[ \t]*((?:[\w.@-]+/|/)*[\w.@-]+\.\w{1,5})(?::(\d+))?(?=[:\s]|$)", re.MULTILINE)
_SEARCHES = re.compile(r"\b(?:grep|rg|ag)\b")
_MOST_FILES, _MOST_LINES = 14, 6


def _places(step: _Step) -> tuple[str, ...]:
    """The files that a search found, with the lines; of a failed check those that its errors name."""
    asked = step.kind == "search" or (step.kind == "shell" and _SEARCHES.search(step.text))
    ran = step.kind == "shell" and check_kind(step.text) in ("build", "lint")
    if not asked and not ran:
        return ()
    found: dict[str, list[str]] = {}
    for path, line in _PLACE.findall(_with_paths(step.result) if step.kind == "search" else step.result):
        if line or asked:
            lines = found.setdefault(path, [])
            if line and line not in lines:
                lines.append(line)
    if len(found) > _MOST_FILES:
        return ()
    return tuple(
        f"{path}{':' if lines else ''}{', '.join(lines[:_MOST_LINES])}" for path, lines in found.items()
    )


# ── where it stopped ──────────────────────────────────────────────────────────────────────────────

_TAIL = 3000
_QUESTION_KEPT = 400
_NOTICE_KEPT = 300
_MOST_OPEN = 100
# Who is asked for a handover by the agent itself runs inside one of its calls.
_OURS = re.compile(r"\bholdfast\s+(?:context|handoff|pause|snapshot|winddown)\b")
# Tools by which an agent asks the user something, and waits.
ASKING = (
    *("askuserquestion", "ask_user", "question", "request_user_input"),
    *("exitplanmode", "exit_plan_mode", "plan_exit"),
)
_NOT_BY_THE_USER = ("<tool_use_error>Sibling tool call errored", "Sibling tool call errored")
_AFTER_A_QUESTION = ("let me know", "tell me", "just say", "please let me know", "happy to")


class Stopping:
    def __init__(self) -> None:
        self._kind: Stop = "unknown"
        self._said = ""  # the end of what the agent said, or the notice of its program
        self._open: dict[str, Action] = {}
        self._stale: set[str] = set()
        self._asks: str | None = None
        self._compacted = False

    def take(self, message: Message) -> None:
        """A message, but for its calls."""
        if message.compaction:
            self._compacted = True
            return
        for result in message.tool_results:
            self._answered(result)
        if message.role == "assistant" and not message.injected:
            self._agent(message)
        elif message.role == "user" and message.text:
            self._user(message)
        if message.turn is not None:
            self._turned(message)

    def called(self, call: ToolCall, action: Action) -> None:
        self._kind = "in_flight"
        self._asks = _question_put(call) if call.name.lower() in ASKING else None
        if len(self._open) < _MOST_OPEN:
            self._open[call.id] = action

    def _agent(self, message: Message) -> None:
        self._compacted = False
        for call_id in self._stale:
            self._open.pop(call_id, None)
        self._stale.clear()
        self._kind = "spoke" if message.text.strip() else "working"
        self._said = message.text[-_TAIL:]

    def _user(self, message: Message) -> None:
        # Either the user went on without these results, or the program did for the user.
        self._stale.update(self._open)
        if not message.injected:
            self._kind, self._compacted = "unanswered", False

    def _answered(self, result: ToolResult) -> None:
        if result.outcome == "unknown":
            self._stale.add(result.call_id)  # still running: until the agent goes on without it
            return
        self._open.pop(result.call_id, None)
        made_before_the_request = self._kind == "unanswered" and result.call_id in self._stale
        self._stale.discard(result.call_id)
        if stopped_by_user(result):
            self._kind = "stopped"
        elif not made_before_the_request:
            self._kind = "in_flight" if self._open else "working"

    def _turned(self, message: Message) -> None:
        if message.turn == "stopped":
            self._kind = "stopped"
        elif message.turn == "failed":
            self._kind, self._said = "failed", message.text[:_TAIL]
        elif self._kind == "spoke":
            self._kind = "answered" if message.turn == "ended" else "working"

    def found(self) -> StoppingPoint:
        kind, compacted = self._kind, self._compacted
        if kind in ("answered", "spoke"):
            question = question_at_end(self._said)
            return StoppingPoint("asked" if question else kind, question, compacted=compacted)
        if kind == "in_flight" and self._asks is not None:
            return StoppingPoint("asked", self._asks, compacted=compacted)
        steps = (step_of(action, "unknown") for action in self._open.values())
        calls = tuple(step for step in steps if not _OURS.search(step.target[:_TAIL]))
        if kind == "in_flight" and not calls:
            kind = "working"
        words = clipped(one_line(self._said), _NOTICE_KEPT) if kind == "failed" else ""
        return StoppingPoint(kind, words, calls, compacted)


def stopped_by_user(result: ToolResult) -> bool:
    """A call that merely has no result says nothing of who ended it."""
    return (
        result.outcome == "interrupted" and bool(result.text) and not result.text.startswith(_NOT_BY_THE_USER)
    )


def question_at_end(text: str) -> str:
    """The question that a text ends with, its list of options aside; else nothing."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for line in reversed(lines):
        told = sentences(line)
        if told and told[-1].lower().startswith(_AFTER_A_QUESTION) and len(told) > 1:
            told.pop()
        if told and told[-1].rstrip("*_`\"') ").endswith("?"):
            return clipped(told[-1], _QUESTION_KEPT)
        if not is_list_item(line):
            return ""
    return ""


def _question_put(call: ToolCall) -> str:
    """What a tool asks the user; agents differ in how they wrap it."""
    listed: object = call.arguments.get("questions")
    one_by_one = cast(list[object], listed) if isinstance(listed, list) else []
    asked = [call.arguments, *(cast(dict[str, Any], one) for one in one_by_one if isinstance(one, dict))]
    words = " ".join(text for one in asked if isinstance(text := one.get("question"), str))
    return clipped(one_line(words[:_TAIL]), _QUESTION_KEPT)


# ── whether anything was done ─────────────────────────────────────────────────────────────────────

# Whether a session did anything that the next one could need. In doubt, it did.

_FEW_TURNS = 5
_FEW_WORDS = 600
"""Characters, of the agent; who says more may have planned or explained something."""
_FEW_WORDS_OF_A_USER = 2
_SHORT_QUESTION = 12
"""Words."""
_STATES_SOMETHING = re.compile(
    r"[,;:\n]|[.!?]\s|\b(?:we|us|our|i|i'd|always|never|only|must|should|shall|please|remember|mind|keep|use|make"
    r"|not|no|don't|let's|(?:can|could|would|will) (?:you|u))\b",
    re.IGNORECASE,
)
"""In a question: it may be a rule or a decision that is put as one."""
_POINT = re.compile(r"^[ \t]*[-*•+][ \t]|(?:^|\s)\d{1,2}[.)]\s", re.MULTILINE)
_QUOTED = r"'[^'\n]*'|\"[^\"$`\\\n]*\""
"""Nothing in it is run by the shell."""
_WORD = rf"(?:[\w./:=+%@,~^*?\[\]{{}}-]|{_QUOTED})+"
_ONLY_LOOKS = re.compile(
    rf"""(?:
    (?:cal|uptime|whoami|hostname|uname|pwd|cd|ls|cat|head|tail|wc|echo|which|file|stat|du|df|grep|rg|jq
        |git[ ](?:blame|diff|log|ls-files|rev-parse|show|status)
        |(?:[\w./-]*python[\d.]*(?:[ ]-P)?[ ]-m[ ])?[\w./-]*holdfast[ ](?:status|context|threads|history|list
            |sessions|usage|stats|doctor|events|logs|snapshot[ ](?:list|show)|tx[ ](?:list|show|diff)))
        (?:[ \t]+(?!['"-]*-['"]*(?:output|fix|done|pre)){_WORD})*
    |(?:sort|tree)(?:[ \t]+(?!['"-]*-['"]*(?:\w*o|compress)){_WORD})*
    |date(?:[ \t]+(?!['"-]*-['"]*s){_WORD})*
    |find(?:[ \t]+(?!['"]?-(?:delete|exec|ok|fprint|fls)){_WORD})*
    |sed[ ]-n[ ](['"]?)\d+(?:,(?:\d+|\$))?p\1(?:[ \t]+(?!['"]?-){_WORD})*
    |uniq(?:[ ]-[cdiu]+)*
    |git[ ]branch(?:[ ](?:-[avr]+|--list|--all|--show-current))*
    |git[ ]remote(?:[ ]-v)?
    |[\w./-]+[ ]--version
    )""",
    re.VERBOSE,
)
_READS_THE_WEB = frozenset(("webfetch", "websearch", "web_fetch", "web_search", "google_web_search"))


def did_work(found: Gathered, messages: Sequence[Message]) -> bool:
    """`messages` are the newest ones; of a session that has more, it is not asked any further."""
    return (
        found.messages > len(messages)
        or _left_something(found)
        or _begins_with_a_summary(messages)
        or _said_much(found, messages)
        or any(found_out(one.text) for one in messages if one.role == "assistant" and one.turn != "failed")
        or not _only_asks(found)
        or not _is_over(found, messages)
        or any(_may_change(call) for message in messages for call in message.tool_calls)
    )


_FEW_LOOKS = 4
_LOOKING = ("said", "thought", "user", "read", "search", "shell")
_LOOKS_AT_ERRORS = re.compile(r"[ \t]+2>(?:/dev/null|&1)")
_QUOTED_OR_THEN = re.compile(rf"{_QUOTED}|(?P<then>[ \t]*(?:&&|\|\||[;|\n])[ \t\n]*)")


def only_looked(found: Gathered, *, however_it_ended: bool = False) -> bool:
    """Whether a session changed, decided and found out nothing: some talk, or a look or two.

    It may have been worth having, but it is not what the next session goes on with while other work is open.
    """
    steps = [one for one in found.happened if one.kind not in ("said", "thought", "user")]
    by_agent = [one.text for one in found.happened if one.kind == "said"]
    is_plan = not steps and any(len(_POINT.findall(text)) > 1 for text in by_agent)
    return not (
        _left_something(found)
        or found.plan is not None
        or found.reports
        or found.earlier_summary
        or found.compactions
        or len(found.turns) > _FEW_TURNS
        or len(steps) > _FEW_LOOKS
        or sum(map(len, by_agent)) > _FEW_WORDS
        or is_plan
        or any(map(found_out, (*by_agent, found.last_words)))
        or not all(map(_looks, found.happened))
        or any(file.edits or file.created or file.deleted for file in found.files)
        or any(call.kind not in ("read", "search") for call in found.stop.calls)
        or not (however_it_ended or found.stop.kind in ("answered", "spoke", *(() if steps else ("asked",))))
    )


_IS_A_CAUSE = re.compile(
    r"\b(?:causes?|caused|culprit|because|due to|bugs?|regression|race condition|deadlocks?|leaks?"
    r"|off[- ]by[- ]one)\b|\b(?:problem|reason|fault|mistake|fix)(?:: | (?:is|was|lies)\b)",
    re.IGNORECASE,
)
_IS_A_PLACE = re.compile(r"\b[A-Za-z_]\w*\(\)|\b[\w/-]+\.[a-z]{1,4}:\d+|\b[A-Za-z_]\w*(?:::|#)[A-Za-z_]\w*")


def found_out(text: str) -> bool:
    """Whether an answer, however short, names a cause, or a function or a line in the code."""
    return bool(_IS_A_CAUSE.search(text) or _IS_A_PLACE.search(text))


def _looks(step: Happening) -> bool:
    if step.kind != "shell":
        return step.kind in _LOOKING
    return only_shows(step.text)


def only_shows(command: str) -> bool:
    """Each part of it; a part of a quotation is none that is known."""
    return all(map(_ONLY_LOOKS.fullmatch, _parts(_LOOKS_AT_ERRORS.sub("", command.strip()))))


_WRITES_NO_CODE = re.compile(
    r"""\[ | ag | awk | bat | basename | cat | cd | cmp | column | command | crontab | curl | cut |
        date | df | diff | dig | dirname | docker | du | echo | egrep | env | exit | export | false
        | fd | fgrep | file | gh | grep | head | hostname | id | jobs | journalctl | jq | kill |
        kubectl | less | ls | lsof | man | mkdir | more | mysql | nc | netstat | nl | nproc | open |
        pgrep | ping | pkill | podman | popd | printenv | printf | ps | psql | pushd | pwd | read |
        readlink | realpath | redis-cli | return | rg | seq | set | sha256sum | shasum | sleep |
        sort | sqlite3 | ss | ssh | stat | strings | systemctl | tail | test | time | top | tr |
        tree | true | type | ulimit | umask | uname | uniq | unset | uptime | wait | watch | wc |
        which | whoami | xxd | yes""",
    re.VERBOSE,
)
_GIT_WRITES_NO_CODE = re.compile(
    r"""add | blame | branch | cat-file | check-ignore | clone | commit | config | describe | diff | fetch |
        for-each-ref | grep | init | log | ls-files | ls-remote | ls-tree | merge-base | name-rev | notes |
        push | reflog | remote | rev-list | rev-parse | shortlog | show | show-ref | status | symbolic-ref |
        tag | worktree""",
    re.VERBOSE,
)


_IS_PROGRAM = re.compile(r"[\w.+-]+")
_FORMATS = re.compile(r"(?:^|[\s:-])(?:fmt|format|fix|write|update|u)\b(?!-check|=false)")


def may_write_code(command: str) -> bool:
    """Whether a program in it is not known to leave the project's code alone; a check does."""
    return not only_shows(command) and any(map(_may_write, all_programs(command)))


def _may_write(simple: Simple) -> bool:
    words = program_of(simple)
    name = words[0].rpartition("/")[2] if words else ""
    if name == "git":
        verb = next((one for one in past_options(words[1:], "Cc") if not one.startswith("-")), "")
        return not _GIT_WRITES_NO_CODE.fullmatch(verb)
    if not _IS_PROGRAM.fullmatch(name) or name in ("for", *SHELLS):
        return False  # what a loop or a shell is given to run stands beside it
    if name == "sed":
        return any(one.startswith(("-i", "--in-place")) for one in words)
    if "--help" in words or (_WRITES_NO_CODE.fullmatch(name) and "-delete" not in words):
        return False
    told = " ".join(words)
    return bool(_FORMATS.search(told)) or not (only_shows(told) or check_kind(told))


def _parts(command: str) -> Iterator[str]:
    """What stands between the operators that are in no quotes."""
    begin = 0
    for found in _QUOTED_OR_THEN.finditer(command):
        if found["then"]:
            yield command[begin : found.start()]
            begin = found.end()
    yield command[begin:]


def _left_something(found: Gathered) -> bool:
    git = found.git
    told = (found.todos, found.choices, found.insights, found.constraints, git.commits, git.pull_requests)
    is_ruled = any(turn.constraint or turn.correction for turn in found.turns)
    return any(told) or is_ruled or found.tests is not None


def _begins_with_a_summary(messages: Sequence[Message]) -> bool:
    """The first part of the conversation stands in the summary alone."""
    seen = next((one for one in messages if one.compaction or not one.injected), None)
    return seen is not None and seen.compaction


def _said_much(found: Gathered, messages: Sequence[Message]) -> bool:
    by_agent = [one.text for one in messages if one.role == "assistant"]
    is_listed = any(len(_POINT.findall(text)) > 1 for text in by_agent)
    return len(found.turns) > _FEW_TURNS or sum(map(len, by_agent)) > _FEW_WORDS or is_listed


def _only_asks(found: Gathered) -> bool:
    """What the user says beyond plain questions and "go on" may be a decision or a rule, in any language."""
    # One agent's command line puts what is typed into quotes.
    return all(_is_plain_question(turn.said.strip(' \t\n"')) for turn in found.turns)


def _is_plain_question(said: str) -> bool:
    words = len(said.split())
    if is_go_ahead(said):
        return True
    is_short = said.endswith("?") and words <= _SHORT_QUESTION
    return words <= _FEW_WORDS_OF_A_USER or (is_short and _STATES_SOMETHING.search(said) is None)


def _is_over(found: Gathered, messages: Sequence[Message]) -> bool:
    """A session that was killed, or whose record lags behind, may have been about to do anything.

    One that ran into a limit or was stopped by the user before it did something has done nothing.
    """
    if found.stop.kind in ("failed", "stopped"):
        return True
    talk = [one for one in messages if one.role == "assistant" or (one.role == "user" and not one.injected)]
    if not talk:
        return True  # the program's own commands alone, such as `/clear`
    return talk[-1].role == "assistant" and bool(talk[-1].text) and not talk[-1].tool_calls


def _may_change(call: ToolCall) -> bool:
    action = action_of(call)
    if action.kind == "shell":
        return not only_shows(action.command)
    return action.kind not in ("read", "search") and call.name.lower() not in _READS_THE_WEB
