"""The newest steps of a session in their order, and what sub-agents reported back."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from holdfast.base.text import clipped, head_and_tail, one_line
from holdfast.findings.rules.actions import Action
from holdfast.findings.rules.commands import check_kind, check_run
from holdfast.findings.rules.failures import telling_lines
from holdfast.findings.rules.files import names_of
from holdfast.model.gathered import Happening, SubagentReport
from holdfast.model.message import ToolOutcome

_STEPS_KEPT = 160
_RESULT_KEPT, _SEARCH_KEPT = 4000, 12_000
_WORDS_KEPT = 3000
_TOLD = 200
_RESULTS_SHOWN = 3
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
        self._calls: dict[str, _Step] = {}
        self._reports: deque[SubagentReport] = deque(maxlen=_REPORTS_KEPT)

    def said(self, index: int, kind: str, text: str) -> None:
        if words := head_and_tail(text.strip(), _WORDS_KEPT):
            self._steps.append(_Step(index, kind, words))

    def called(self, index: int, call_id: str, action: Action) -> None:
        if action.kind == "todo":
            return
        text = action.command or action.path or action.about or action.tool
        if action.kind in ("search", "agent", "other"):
            text = action.about or action.path or action.tool
        step = _Step(index, action.kind, text[:_WORDS_KEPT], action)
        self._steps.append(step)
        self._calls[call_id] = step
        if len(self._calls) > _STEPS_KEPT:
            del self._calls[next(iter(self._calls))]

    def answered(self, call_id: str, outcome: ToolOutcome, text: str) -> None:
        step = self._calls.pop(call_id, None)
        if step is None:
            return
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
        newest = [step for step in self._steps if step.outcome][-_RESULTS_SHOWN:]
        return tuple(
            Happening(
                step.index,
                step.kind,
                step.text,
                step.outcome,
                _told(step),
                one_line(step.action.about)[:_TOLD] if step.action and step.kind in _EXPLAINED else "",
                _result(step) if any(step is one for one in newest) else "",
                _places(step),
            )
            for step in self._steps
        )

    def reports(self) -> tuple[SubagentReport, ...]:
        return tuple(self._reports)


def _result(step: _Step) -> str:
    if step.kind not in ("shell", "search") or step.outcome not in ("ok", "error"):
        return ""
    lines = (line.rstrip() for line in step.result.split("\n") if not _NOISE.match(line))
    return head_and_tail("\n".join(lines), _RESULT_SHOWN)


def _told(step: _Step) -> str:
    """What came of it, in a line."""
    if step.action is None:
        return ""
    if step.outcome == "error":
        message, verdict = telling_lines(step.result)
        return clipped(verdict or message, _TOLD)
    if step.kind in ("edit", "write"):
        return ", ".join(names_of(step.action)[:4])
    if step.kind == "read":
        return step.action.lines
    return clipped(_line_of(step), _TOLD) if step.kind == "shell" else ""


def _line_of(step: _Step) -> str:
    kind = check_kind(step.text)
    if kind:
        run = check_run(step.index, step.text, False, step.result, kind)
        if run.failing:
            return f"failed: {', '.join(run.failing[:4])}"
        if run.summary or not run.passed:
            return run.summary or telling_lines(step.result)[0]
    lines = [one_line(line) for line in step.result.split("\n") if not _NOISE.match(line)]
    return clipped(" / ".join(lines), _TOLD) if len(lines) <= 3 else ""  # a listing tells nothing in a line


_PLACE = re.compile(r"^\s*((?:[\w.@-]+/|/)*[\w.@-]+\.\w{1,5})(?::(\d+))?(?=[:\s]|$)", re.MULTILINE)
_SEARCHES = re.compile(r"\b(?:grep|rg|ag)\b")
_MOST_FILES, _MOST_LINES = 14, 6


def _places(step: _Step) -> tuple[str, ...]:
    """The files that a search found, with the lines; of a failed check those that its errors name."""
    asked = step.kind == "search" or (step.kind == "shell" and _SEARCHES.search(step.text))
    ran = step.kind == "shell" and check_kind(step.text) in ("build", "lint")
    if not asked and not ran:
        return ()
    found: dict[str, list[str]] = {}
    for path, line in _PLACE.findall(step.result):
        if line or asked:
            lines = found.setdefault(path, [])
            if line and line not in lines:
                lines.append(line)
    if len(found) > _MOST_FILES:
        return ()
    return tuple(
        f"{path}{':' if lines else ''}{', '.join(lines[:_MOST_LINES])}" for path, lines in found.items()
    )
