"""One pass over a session's messages, handing each to the finders."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import cast

from holdfast.base.text import unglued
from holdfast.findings.rules.actions import Action, action_of, is_absolute, step_of
from holdfast.findings.rules.commands import Checks, Commands, is_red
from holdfast.findings.rules.conversation import ConversationFinder, Reviews, purpose_of
from holdfast.findings.rules.failures import Failures
from holdfast.findings.rules.files import TouchedFiles, WrittenCode, files_read, hunk_of
from holdfast.findings.rules.git_work import GitWork, is_elsewhere
from holdfast.findings.rules.names import Names, NameSource
from holdfast.findings.rules.trail import ASKING, Stopping, Trail, stopped_by_user
from holdfast.model.frame import handed_over
from holdfast.model.gathered import AgreedPlan, Edit, Gathered
from holdfast.model.message import (
    Message,
    ReadReport,
    TodoItem,
    ToolCall,
    ToolOutcome,
    ToolResult,
    is_go_ahead,
)

# Calls that never got a result (a killed session) must not pile up.
_MOST_WAITING = 1000
_SUMMARY_KEPT = 30_000
_EDITS_KEPT = 5
_PLAN_KEPT = 12_000
_MOMENTS_KEPT = 5000
_FOOTER_SCANNED = 600
_SUBAGENT = re.compile(r"\bagentId: (\w+)")
_IN_BACKGROUND = re.compile(r"\bagent launched\b|\brunning in the background\b", re.IGNORECASE)
_UNKNOWN = Action("other", "")
_PLAN_FILE = re.compile(r"(?:^|/)plans/[^/]+\.md$")
_PLAN_REFUSED = ("Plan rejected", "User cancelled")
_PROPOSED = re.compile(r"<proposed_plan>\s*(.+?)\s*</proposed_plan>", re.DOTALL)
_NOTHING_FOUND = "Exit code 1"
"""How a search by command ends then; any other failure is told in words."""
_BY_SUBAGENT = "a sub-agent"
_ANSWERS_SCANNED = 20_000
_ANSWERED = re.compile(r'"([^"\n]{3,400})"="([^"\n]{1,400})"')
_RESULT_SOURCES: dict[str, NameSource] = {
    "shell": "printed",
    "read": "read",
    "search": "listed",
    "agent": "answered",
    "other": "answered",
}


Subagents = Mapping[str, Callable[[], Iterable[Message]]]
"""What is recorded of sub-agents beside the session itself, by their ids."""


def gather(messages: Iterable[Message], report: ReadReport, subagents: Subagents | None = None) -> Gathered:
    gatherer = _Gatherer(report, subagents or {})
    for message in messages:
        gatherer.take(message)
    gatherer.take_unreported_subagents()
    return gatherer.found()


class _Gatherer:
    def __init__(self, report: ReadReport, subagents: Subagents) -> None:
        self._report = report
        self._subagents = dict(subagents)
        self._moments: deque[tuple[str, int]] = deque(maxlen=_MOMENTS_KEPT)
        self._talk = ConversationFinder()
        self._failures = Failures()
        self._commands = Commands()
        self._files = TouchedFiles(self._located)
        self._git = GitWork()
        self._checks = Checks()
        self._trail = Trail()
        self._reviews = Reviews()
        self._names = Names()
        self._stopping = Stopping()
        self._waiting: dict[str, Action] = {}
        self._todos: tuple[TodoItem, ...] = ()
        self._todos_index = -1
        self._summary = ""
        self._compactions = 0
        self._took_over = ""
        self._newest = -1
        self._branch = ""
        self._last_step: tuple[Action, ToolOutcome] | None = None
        self._edits: deque[tuple[int, Action]] = deque(maxlen=_EDITS_KEPT)
        self._code = WrittenCode()
        self._began = ""
        self._spoken = ""  # the agent's words or thought before its next calls
        self._plan: AgreedPlan | None = None
        self._proposed = ""  # a plan that the user has not agreed to yet
        self._is_put = False  # it stood in the agent's last answer

    def take(self, message: Message) -> None:
        index = message.index
        self._newest = index
        self._began = self._began or message.at or ""
        if self._report.branch and self._report.branch != self._branch:
            self._branch = self._report.branch
            self._git.on_branch(self._branch)
        self._follow(message)
        if message.compaction:
            self._compacted(message)
            return
        todos = message.todos if message.todos is not None else _recorded_todos(message.tool_calls)
        if todos is not None:
            self._todos = todos
            self._todos_index = index
        for result in message.tool_results:
            self._result(index, result, message.subagent is not None)
        if self._subagents and message.at and message.tool_results:
            self._moments.append((message.at, index))
        if message.thinking:
            self._names.met(index, "thought", message.thinking)
            if message.subagent is None:
                self._spoken = unglued(message.thinking)
                self._trail.said(index, "thought", self._spoken)
                self._talk.reasoning.thought(index, self._spoken)
        if message.text and message.subagent is None:
            self._text(message)
        for call in message.tool_calls:
            self._call(index, call, message.subagent is not None)

    def _follow(self, message: Message) -> None:
        """Where things stand after it."""
        if message.subagent is None:
            self._stopping.take(message)
            if message.turn == "stopped":
                self._talk.interrupted()
        if message.undone_from is not None:
            self._talk.taken_back(message.undone_from)
            self._trail.taken_back(message.undone_from)
            self._stopping = Stopping()  # how things stood at that earlier point is not known

    def _compacted(self, message: Message) -> None:
        self._compactions += 1
        if message.text:
            self._summary = message.text[:_SUMMARY_KEPT]
            self._names.met(message.index, "summary", message.text)

    def _text(self, message: Message) -> None:
        index, text = message.index, message.text
        if message.role == "assistant":
            if message.injected:
                return  # the program's words in the agent's mouth
            self._talk.agent_said(index, text)
            self._trail.said(index, "said", text)
            self._spoken = text
            if proposed := _PROPOSED.search(text):
                self._proposed, self._is_put = proposed[1][:_PLAN_KEPT], True
            self._failures.commented(index, text)
            self._files.said(text)
            self._names.met(index, "said", text)
            return
        if message.role == "user" and not message.injected:
            self._agreed(index, text)
        if message.role == "system":
            self._git.linked(text)
        elif not message.injected:
            stopping = any(result.outcome == "interrupted" for result in message.tool_results)
            self._talk.user_said(index, text, stopping=stopping)
            self._trail.said(index, "user", text)
            self._names.met(index, "user", text)
        elif text.startswith("[Request interrupted"):
            self._talk.interrupted()
        else:
            self._took_over = handed_over(text) or self._took_over

    def _call(self, index: int, call: ToolCall, by_subagent: bool) -> None:
        action = self._located_action(call)
        if action.kind in ("edit", "write") and not by_subagent:
            action = _meant_for(action, purpose_of(self._spoken))
        if action.kind == "plan":
            action = replace(action, about=action.about or self._proposed)
        self._waiting[call.id] = action
        if not by_subagent:
            self._stopping.called(call, action)
            self._trail.called(index, call.id, action)
        if len(self._waiting) > _MOST_WAITING:
            del self._waiting[next(iter(self._waiting))]
        if action.kind == "todo":
            return
        for part in action.parts or (action,):
            self._named(index, part)

    def _named(self, index: int, action: Action) -> None:
        met, path = self._names.met, action.path
        if action.new:
            met(index, "new" if action.kind in ("edit", "write") else "asked", action.new, path)
        if action.old:
            met(index, "old", action.old, path)
        if action.command:
            met(index, "command", action.command)
        if action.about and action.kind not in ("edit", "write"):
            met(index, "search" if action.kind == "search" else "asked", action.about, path)
        met(index, "path", path)

    def _located_action(self, call: ToolCall) -> Action:
        action = self._placed(action_of(call))
        return replace(action, parts=tuple(map(self._placed, action.parts))) if action.parts else action

    def _placed(self, action: Action) -> Action:
        if action.path and not is_absolute(action.path):
            return replace(action, path=self._located(action.path))
        return action

    def _result(self, index: int, result: ToolResult, by_subagent: bool) -> None:
        waiting = self._waiting
        still_runs = result.outcome == "unknown"
        action = (waiting.get if still_runs else waiting.pop)(result.call_id, _UNKNOWN)
        if action.kind == "search" and result.text.strip() == _NOTHING_FOUND:
            result = ToolResult(result.call_id, "", "ok")
        if not by_subagent:
            self._trail.answered(result.call_id, result.outcome, result.text)
        if result.outcome != "ok":
            self._files.not_touched(index, action)
        if result.outcome == "interrupted":
            if not by_subagent:
                self._interrupted(action, result)
            return
        self._talk.went_on()
        if action.kind == "todo":
            return
        if not by_subagent:
            self._last_step = action, result.outcome
            if action.kind == "agent":
                self._subagent_reported(index, result.text)
        if result.outcome != "unknown" or result.text:  # else it was still running
            self._ended(index, action, result, by_subagent)

    def _interrupted(self, action: Action, result: ToolResult) -> None:
        by_user = stopped_by_user(result)
        if by_user:
            self._talk.interrupted()
        self._last_step = action, "interrupted" if by_user else "unknown"

    def _ended(self, index: int, action: Action, result: ToolResult, by_subagent: bool) -> None:
        failed = result.outcome == "error"
        if failed:
            self._failures.failed(index, action, result.text)
        else:
            self._succeeded(index, action, result.text, by_subagent)
        if action.kind == "shell":
            self._ran(index, action, result)
        self._met_in_result(index, action, result.text)
        if not by_subagent:
            self._reviews.answered(index, action, result.text)

    def _subagent_reported(self, index: int, text: str) -> None:
        """What it did is known by then; one in the background has only been started."""
        told = _SUBAGENT.search(text, max(0, len(text) - _FOOTER_SCANNED))
        if told and told[1] in self._subagents and not _IN_BACKGROUND.search(text, 0, _FOOTER_SCANNED):
            for message in self._subagents.pop(told[1])():
                self._done_by_subagent(index, message)

    def take_unreported_subagents(self) -> None:
        """What those did to files that were stopped, or ran in the background: placed by its time."""
        for read in self._subagents.values():
            for message in read():
                before = bisect_right(self._moments, message.at, key=itemgetter(0)) if message.at else 0
                after = self._moments[before - 1][1] + 1 if before else 0
                for result in message.tool_results:
                    action = self._waiting.pop(result.call_id, _UNKNOWN)
                    if result.outcome == "ok" and not is_elsewhere(action.command, self._report.cwd):
                        self._files.touched(min(after, self._newest), action, _BY_SUBAGENT)
                for call in message.tool_calls:
                    self._waiting[call.id] = self._located_action(call)
        self._subagents = {}

    def _done_by_subagent(self, index: int, message: Message) -> None:
        for result in message.tool_results:
            self._result(index, result, by_subagent=True)
        for call in message.tool_calls:
            self._call(index, call, by_subagent=True)

    def _met_in_result(self, index: int, action: Action, text: str) -> None:
        shown = files_read(action.command) if action.kind == "shell" else []
        if len(shown) == 1:
            self._names.met(index, "read", text, self._located(shown[0]))
        elif source := _RESULT_SOURCES.get(action.kind):
            self._names.met(index, source, text, action.path if action.kind == "read" else "")

    def _succeeded(self, index: int, action: Action, text: str, by_subagent: bool) -> None:
        self._failures.succeeded(index, action)
        if action.kind == "plan" and action.about and not text.startswith(_PLAN_REFUSED):
            self._plan = AgreedPlan(index, action.about[:_PLAN_KEPT])
        if action.tool.lower() in ASKING:
            for question, answer in _ANSWERED.findall(text[:_ANSWERS_SCANNED]):
                self._talk.answered(index, question, answer)
        if action.kind != "shell" or not is_elsewhere(action.command, self._report.cwd):
            self._files.touched(index, action, _BY_SUBAGENT if by_subagent else "")
        for part in action.parts or (action,):
            if part.kind in ("edit", "write"):
                self._plan_written(part)
                self._reviews.edited(part.path)
                self._git.touched(part.path)
                self._edits.append((index, part))
                self._code.edited(index, part)

    def _plan_written(self, action: Action) -> None:
        """Some agents keep the plan in a file, and then ask with no more than its name, or without."""
        if _PLAN_FILE.search(action.path):
            is_new = action.kind == "write" or action.old not in self._proposed
            whole = action.new if is_new else self._proposed.replace(action.old, action.new, 1)
            self._proposed = whole[:_PLAN_KEPT]

    def _agreed(self, index: int, text: str) -> None:
        """To a plan that stood in the agent's answer; a go-ahead is an answer to that."""
        if self._is_put and is_go_ahead(text):
            self._plan = AgreedPlan(index, self._proposed)
        self._is_put = False

    def _ran(self, index: int, action: Action, result: ToolResult) -> None:
        failed, text, ended = result.outcome == "error", result.text, result.outcome != "unknown"
        self._git.ran(index, action.command, text, failed=failed, cwd=self._report.cwd)
        self._checks.ran(index, action.command, failed, text, ended=ended)
        if ended:
            failed = failed or is_red(action.command, text)
            self._commands.ran(index, action.command, failed, text, action.about)

    def _located(self, path: str) -> str:
        """One file, one path: agents write it from the root or from where they work."""
        cwd = self._report.cwd
        return path if not cwd or is_absolute(path) else f"{cwd.rstrip('/')}/{path.removeprefix('./')}"

    def found(self) -> Gathered:
        report = self._report
        talk = self._talk
        steps, choices = talk.reasoning.steps_and_choices()
        insights, listings = talk.reasoning.found_out()
        return Gathered(
            took_over=self._took_over,
            messages=self._newest + 1,
            cwd=report.cwd,
            title=report.title,
            earlier_summary=self._summary,
            compactions=self._compactions,
            turns=talk.turns(),
            turns_dropped=talk.dropped,
            todos=self._todos,
            choices=choices,
            insights=insights,
            listings=listings,
            steps=steps,
            failures=self._failures.found(),
            commands=self._commands.found(),
            files=self._files.found(),
            tests=self._checks.test(self._files.edited_after),
            checks=self._checks.found(self._files.edited_after),
            git=self._git.found(report.branch, self._files.edited_after(self._git.last_commit_index)),
            reviews=self._reviews.found(),
            names=self._names.ranked(self._newest),
            last_words=talk.reasoning.last_words,
            last_step=step_of(*self._last_step) if self._last_step else None,
            edits=tuple(_edit(index, action) for index, action in self._edits),
            plan=self._plan,
            unused=self._code.unused(),
            happened=self._trail.found(),
            reports=self._trail.reports(),
            todos_index=self._todos_index,
            stop=self._stopping.found(),
            began=self._began,
        )


_STATUSES = ("pending", "in_progress", "completed")


def _recorded_todos(calls: Iterable[ToolCall]) -> tuple[TodoItem, ...] | None:
    """The list that was given to Holdfast's own tool, however the agent calls that."""
    given = next((call.arguments.get("todos") for call in calls if call.name.endswith("set_todos")), None)
    if not isinstance(given, list):
        return None
    found: list[TodoItem] = []
    for one in cast("list[object]", given):
        entry = cast("dict[str, object]", one) if isinstance(one, dict) else {}
        text, status = entry.get("text"), entry.get("status")
        if isinstance(text, str) and text.strip() and status in _STATUSES:
            found.append(TodoItem(text.strip(), status))
    return tuple(found)


def _meant_for(action: Action, purpose: str) -> Action:
    return replace(action, about=purpose, parts=tuple(replace(one, about=purpose) for one in action.parts))


def _edit(index: int, action: Action) -> Edit:
    return Edit(index, action.path, hunk_of(action))
