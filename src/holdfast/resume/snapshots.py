"""A snapshot as findings, so that it is rendered like a transcript; and all of one kind that it holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from holdfast.base.clock import seconds_between
from holdfast.base.errors import InvalidInputError
from holdfast.base.file_stamps import ABSENT, GRAIN_NS
from holdfast.base.text import clipped, decode_path, one_line
from holdfast.model.gathered import (
    Choice,
    Failure,
    Gathered,
    GitFacts,
    Recorded,
    Review,
    TestRun,
)
from holdfast.model.message import TodoItem
from holdfast.model.statuses import DONE
from holdfast.resume.ledger import WorkLedger, corrected, ledger_of
from holdfast.resume.rendering import DEFAULT_BUDGET, fenced, quoted

if TYPE_CHECKING:
    from holdfast.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
    from holdfast.model.git import GitState
    from holdfast.model.snapshot import FileFingerprint, IncrementalPause, SessionSnapshot
    from holdfast.model.task import Task
    from holdfast.model.workflow import Issue
    from holdfast.resume.compiler import Compiled

# ── all of one kind ───────────────────────────────────────────────────────────────────────────────

# All of one kind that a snapshot holds, for a reader who needs more than the context told.


def history(snapshot: SessionSnapshot, category: str) -> str:
    """As text, a record a paragraph. Raises `InvalidInputError` for a category there is not."""
    tell = _CATEGORIES.get(category.replace("_", "-"))
    if tell is None:
        raise InvalidInputError(f"unknown category: {category!r}", hint=f"one of: {', '.join(CATEGORIES)}")
    return "".join(f"{line}\n" for line in tell(snapshot)) or f"No {category} in {snapshot.session_id}.\n"


def _decisions(snapshot: SessionSnapshot) -> Iterable[str]:
    for item in snapshot.decisions:
        yield f"- [{item.decision_type}] {item.description}"
        if item.rationale:
            yield f"  Because: {item.rationale}"
        if item.alternatives_considered:
            yield f"  Instead of: {'; '.join(item.alternatives_considered)}"


def _errors(snapshot: SessionSnapshot) -> Iterable[str]:
    # Unresolved ones first: they are why somebody looks.
    for item in sorted(snapshot.errors, key=lambda error: error.resolution != "unresolved"):
        yield f"- {item.resolution.upper()}: {item.error_type}: {item.error_message}"
        if item.context:
            yield f"  While: {item.context}"
        if item.resolution_notes:
            yield f"  Then: {item.resolution_notes}"


def _feedback(snapshot: SessionSnapshot) -> Iterable[str]:
    for item in snapshot.reviewer_feedback or ():
        verdict = "approved" if item.approved else "addressed" if item.addressed else "NOT ADDRESSED"
        yield f"- {item.reviewer_persona} ({item.severity}, {verdict})"
        yield from (f"  - {comment}" for comment in item.comments)


def _git_lines(snapshot: SessionSnapshot) -> Iterable[str]:
    git = snapshot.git_state
    if git is not None:
        yield f"Branch: {git.branch or '(detached)'}"
        yield f"Commit: {git.commit_at_snapshot or 'none yet'}"
        yield f"Uncommitted: {git.uncommitted_summary or 'nothing'}"
        yield from (f"- {path}" for path in git.files_modified)
        yield from (f"- {path} (cannot tell whether it changed)" for path in git.files_uncompared)
    if snapshot.gathered:
        yield from (f"- commit {one.identifier} {one.subject}" for one in snapshot.gathered.git.commits)
        yield from (f"- edited {one.path}" for one in snapshot.gathered.files if one.edits or one.created)


def _tasks(snapshot: SessionSnapshot) -> Iterable[str]:
    for task in snapshot.task_dag.tasks:
        yield f"- {task.status}: [{task.id}] {task.description}"
        if task.result:
            yield f"  {task.result}"
    own = snapshot.gathered.todos if snapshot.gathered else ()
    yield from (f"- {todo.status}: {todo.text}" for todo in own or snapshot.todos)


def _test_lines(snapshot: SessionSnapshot) -> Iterable[str]:
    state = snapshot.test_state
    if state is None:
        return
    yield f"Phase: {state.phase}"
    if state.last_test_command:
        yield f"Last run: {state.last_test_command}"
    if state.last_test_output_summary:
        yield f"It said: {state.last_test_output_summary}"
    yield from (f"- failing: {name}" for name in state.failing_tests)
    yield from (f"- expected to fail: {name}" for name in state.expected_failures)


def _journal(snapshot: SessionSnapshot) -> Iterable[str]:
    """What was said and run; a wind-down's own lines are in its archive, which the door adds."""
    found = snapshot.gathered
    if found is None:
        return
    for turn in found.turns:
        yield f"- user: {turn.said}"
        if turn.reported:
            yield f"  agent: {turn.reported}"
    for command in found.commands:
        ended = "failed" if command.last_failed else "worked"
        yield f"- ran {command.runs} times, last {ended}: {command.command}"


_CATEGORIES: dict[str, Callable[[SessionSnapshot], Iterable[str]]] = {
    "decisions": _decisions,
    "errors": _errors,
    "reviewer-feedback": _feedback,
    "git-changes": _git_lines,
    "tasks": _tasks,
    "tests": _test_lines,
    "journal": _journal,
}
CATEGORIES = tuple(_CATEGORIES)


# ── a snapshot as findings ────────────────────────────────────────────────────────────────────────

# A snapshot as findings, so that it is rendered by the same hand as a transcript.
#
# What a pass over the agent's talk found is the ground; what the workflow itself knows (its
# plan, what it recorded, git, tests, reviews) is surer and goes on top.


def gathered_from(snapshot: SessionSnapshot, issue: Issue | None, drift: Iterable[str] = ()) -> Gathered:
    base = snapshot.gathered or Gathered()
    issue = None if issue and issue.says_nothing else issue
    git = snapshot.git_state
    return replace(
        base,
        issue=f"{issue.id}: {issue.title}" if issue else base.issue,
        issue_text=issue.description if issue else base.issue_text,
        constraints=tuple(dict.fromkeys((*base.constraints, *snapshot.constraints))),
        **_recorded(snapshot.incremental_pause, base),
        stopped_because=snapshot.pause_reason or base.stopped_because or _TRIGGERS[snapshot.trigger],
        drift=tuple(drift),
        next_task=_next_task(snapshot),
        cwd=base.cwd or (git.worktree if git else None),
        todos=tuple(map(_todo, snapshot.task_dag.tasks)) or base.todos or snapshot.todos,
        choices=_merged_choices(base.choices, snapshot.decisions),
        failures=_merged_failures(base.failures, snapshot.errors),
        git=replace(_git(base.git, git), uncommitted_before=_written_before(base.began, snapshot.files)),
        tests=_tests(snapshot.test_state, base.tests) if snapshot.test_state else base.tests,
        checks=_checks(snapshot.test_state, base),
        reviews=tuple(map(_review, snapshot.reviewer_feedback or ())) or base.reviews,
    )


_TRIGGERS = {
    "pause": "a pause was requested",
    "task_complete": "the configured number of tasks was completed",
    "exhaustion": "the context window was nearly full",
    "timeout": "its time limit was reached",
    "crash": "its process ended without a pause",
    "failure": "a task failed",
}


def ledger_at(snapshot: SessionSnapshot) -> WorkLedger:
    """The facts of its session. Of a file that no record names, nobody knows who changed it."""
    return ledger_of(gathered_from(snapshot, None))


def _recorded(pause: IncrementalPause | None, talk: Gathered) -> dict[str, Any]:
    """What was recorded on purpose, and of the hooks' own record what the transcript lacks; oldest first."""
    if pause is None:
        return {}
    said = {one_line(words) for turn in talk.turns for words in (turn.said, talk.last_words)}
    in_transcript = pause.agent_session is not None and talk.messages > 0
    words = tuple(
        Recorded(one.type, one.text, one.rule)
        for one in sorted(pause.recorded, key=lambda one: one.timestamp)
        if one_line(one.text) not in said and not (in_transcript and one.from_hook)
    )
    if in_transcript:
        return {"recorded": words}
    return {
        "recorded": words,
        "recorded_said_dropped": pause.said_dropped,
        "recorded_dropped": pause.others_dropped,
    }


def _next_task(snapshot: SessionSnapshot) -> str:
    task = snapshot.task_dag.by_id.get(snapshot.next_task_id or "")
    if task is None:
        return ""
    name = quoted(f"[{task.id}] {task.description}", 300)
    if task.approval:
        return f"leave {name} alone until the user has approved it (`holdfast approve`)."
    return f"go on with {name}."


def _todo(task: Task) -> TodoItem:
    text = f"[{task.id}] {task.description}"
    if task.status in ("failed", "blocked"):
        text += f" ({task.status}{': ' + task.result if task.result else ''})"
    elif task.status == "skipped":
        text += " (skipped by the user)"
    elif task.approval and task.status == "pending":
        text += " (needs the user's approval)"
    status = "completed" if task.status in DONE else "pending"
    return TodoItem(text, "in_progress" if task.status == "in_progress" else status)


def _merged_choices(known: tuple[Choice, ...], recorded: Iterable[Decision]) -> tuple[Choice, ...]:
    said = {choice.description for choice in known}
    added = (
        Choice(0, item.decision_type, item.description, item.rationale)
        for item in recorded
        if item.description not in said
    )
    return (*known, *added)


def _merged_failures(known: tuple[Failure, ...], recorded: Iterable[ErrorRecord]) -> tuple[Failure, ...]:
    """What rules left open may have been settled by somebody who read on."""
    recorded = tuple(recorded)
    settled = {item.error_message: item for item in recorded if item.resolution != "unresolved"}
    known = tuple(
        replace(failure, resolution=item.resolution, notes=failure.notes or item.resolution_notes or "")
        if failure.resolution == "unresolved" and (item := settled.get(failure.message))
        else failure
        for failure in known
    )
    met = {failure.message for failure in known}
    added = (
        Failure(
            0,
            item.context or item.error_type,
            item.error_message,
            item.resolution,
            item.resolution_notes or "",
        )
        for item in recorded
        if item.error_message not in met
    )
    return (*known, *added)


def _git(known: GitFacts, state: GitState | None) -> GitFacts:
    if state is None:
        return known
    return replace(
        known,
        branch=state.branch or known.branch,
        head=state.commit_at_snapshot or "",
        head_at_start=state.commit_at_workflow_start or "",
        uncompared=state.files_uncompared,
        under_way=state.operation or "",
        root=_root(state.worktree),
        uncommitted=_uncommitted(state),
        upstream=state.upstream or "",
        ahead=state.ahead or 0,
    )


def _root(worktree: str | None) -> str:
    """Nothing where it is no path: a snapshot may be damaged, and only the work tree's own paths need it."""
    try:
        return os.fsdecode(decode_path(worktree)) if worktree else ""
    except InvalidInputError:
        return ""


def _moved_to(folder: str, cwd: str, root: str) -> str:
    """Where the folder of the record is now; nothing where it is in its place, by one name or the other."""
    if not folder or not cwd or any(_overlap(folder, one) for one in (cwd, root) if one):
        return ""
    inner = PurePath(cwd).relative_to(root) if root and _is_inside(cwd, root) else PurePath()
    is_inner = folder.endswith(f"/{inner}")  # the project is that part of its repository
    return folder if is_inner else str(PurePath(folder, inner))


def _overlap(one: str, other: str) -> bool:
    return _is_inside(one, other) or _is_inside(other, one)


def _is_inside(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _uncommitted(state: GitState) -> tuple[str, ...]:
    if not state.has_uncommitted_changes:
        return ()
    # Older snapshots do not tell committed changes from others.
    return state.files_modified if state.files_uncommitted is None else state.files_uncommitted


def _written_before(began: str, files: Iterable[FileFingerprint]) -> tuple[str, ...]:
    """Nobody can set back the time at which a file was last changed; of what was removed it is not known."""
    try:
        moment = seconds_between("1970-01-01T00:00:00Z", began)
    except ValueError:
        return ()
    return tuple(
        one.path
        for one in files
        if one.hash != ABSENT
        and one.ctime_ns is not None
        and max(one.ctime_ns, one.mtime_ns) + GRAIN_NS < moment * 1e9
    )


def _tests(state: TestState, told: TestRun | None) -> TestRun:
    same_run = told is not None and told.command == state.last_test_command
    return replace(
        told if told and same_run else TestRun(0, state.last_test_command or "", passed=False),
        passed=not state.failing_tests and state.phase != "red",
        failing=tuple(name for name in state.failing_tests if name not in state.expected_failures),
        summary=state.last_test_output_summary or "",
        expected=state.expected_failures,
    )


def _checks(state: TestState | None, base: Gathered) -> tuple[TestRun, ...]:
    """The workflow's own word on its tests counts; of builds and linters only the record tells."""
    if state is None:
        return base.checks
    return (*(run for run in base.checks if run.kind != "test"), _tests(state, base.tests))


def _review(feedback: ReviewerFeedback) -> Review:
    return Review(0, feedback.reviewer_persona, feedback.comments, feedback.addressed or feedback.approved)


def _own_words(words: str, most: int) -> str:
    """What the outgoing agent wrote for the next session, as a quotation that it cannot close."""
    return _aside(_OWN_WORDS, words, most)


def _reading(snapshot: SessionSnapshot, most: int) -> str:
    """What a model read in the record; where the ledger knows better, corrected."""
    reading = snapshot.reading
    if reading is None:
        return ""
    lines = [f"Now: {reading.now.text}"] if reading.now else []
    for lead, found in (
        ("Cause", reading.causes),
        ("Uncommitted edit", reading.edits),
        ("The user's answer", reading.answers),
        ("Settled, though no rule saw it", reading.settled),
    ):
        lines += [f"{lead}: {one.text}" for one in found]
    return _aside(_READING, corrected("\n".join(lines), ledger_at(snapshot))[0], most)


def _aside(heading: str, words: str, most: int) -> str:
    room = most - len(heading) - 20
    if not words or room < _FEW:
        return ""
    return f"\n{heading}\n{fenced(clipped(words, room))}\n"


_OWN_WORDS = "## In the outgoing agent's own words, checked against the record where it tells"
_READING = "## As a model read the record, checked against it where it tells"
_FEW = 200


class ResumeContextCompiler:
    """The context of a snapshot: what the session that goes on from it reads first."""

    def __init__(self, max_chars: int = DEFAULT_BUDGET) -> None:
        self.max_chars = max_chars

    def compile(
        self,
        snapshot: SessionSnapshot,
        issue: Issue | None = None,
        *,
        drift: Iterable[str] = (),
        worktree: str = "",
    ) -> str:
        return self.compile_with_report(snapshot, issue, drift=drift, worktree=worktree).text

    def compile_with_report(
        self,
        snapshot: SessionSnapshot,
        issue: Issue | None = None,
        *,
        drift: Iterable[str] = (),
        worktree: str = "",
    ) -> Compiled:
        """`worktree` is the workflow's: where the folder is now, should it have moved since."""
        from holdfast.resume.compiler import compile_context  # all sections, for which the facts have no use

        own = _own_words(snapshot.handover or "", self.max_chars // 2)
        own += _reading(snapshot, self.max_chars // 4)
        found = gathered_from(snapshot, issue, drift)
        room = self.max_chars - len(own)
        moved_to = _moved_to(_root(worktree), found.cwd or "", found.git.root)
        compiled = compile_context(
            found, room, snapshot.session_id, edits=snapshot.context_edits, moved_to=moved_to
        )
        if not own:
            return compiled
        head, mark, rest = compiled.text.partition("\n## ")
        text = f"{head}{own}{mark}{rest}"
        fidelity = replace(compiled.fidelity, characters=len(text), budget=self.max_chars)
        return replace(compiled, text=text, fidelity=fidelity)

    def get_detailed_history(self, snapshot: SessionSnapshot, category: str) -> str:
        """All there is of one kind, which the context may have left out."""
        return history(snapshot, category)
