"""All of one kind that a snapshot holds, for a reader who needs more than the context told."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from holdfast.base.errors import InvalidInputError
from holdfast.model.snapshot import SessionSnapshot


def history(snapshot: SessionSnapshot, category: str) -> str:
    """As text, a record a paragraph. Raises `InvalidInputError` for a category there is not."""
    tell = _CATEGORIES.get(category.replace("_", "-"))
    if tell is None:
        raise InvalidInputError(
            f"there is no history of {category!r}", hint=f"one of: {', '.join(CATEGORIES)}"
        )
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


def _git(snapshot: SessionSnapshot) -> Iterable[str]:
    git = snapshot.git_state
    if git is not None:
        yield f"Branch: {git.branch or '(detached)'}"
        yield f"Commit: {git.commit_at_snapshot or 'none yet'}"
        yield f"Uncommitted: {git.uncommitted_summary or 'nothing'}"
        yield from (f"- {path}" for path in git.files_modified)
    if snapshot.gathered:
        yield from (f"- commit {one.identifier} {one.subject}" for one in snapshot.gathered.git.commits)
        yield from (f"- edited {one.path}" for one in snapshot.gathered.files if one.edits or one.created)


def _tasks(snapshot: SessionSnapshot) -> Iterable[str]:
    for task in snapshot.task_dag.tasks:
        yield f"- {task.status}: [{task.id}] {task.description}"
        if task.result:
            yield f"  {task.result}"
    if snapshot.gathered:
        yield from (f"- {todo.status}: {todo.text}" for todo in snapshot.gathered.todos)


def _tests(snapshot: SessionSnapshot) -> Iterable[str]:
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
    "git-changes": _git,
    "tasks": _tasks,
    "tests": _tests,
    "journal": _journal,
}
CATEGORIES = tuple(_CATEGORIES)
