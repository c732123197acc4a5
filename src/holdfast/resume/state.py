"""How things stand: the plan, errors, git, tests, where the work stopped and what is next."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.base.text import clipped
from holdfast.model.gathered import Commit, Failure, Gathered, GitFacts, LastStep, Stop
from holdfast.model.message import TodoItem
from holdfast.resume import weights
from holdfast.resume.rendering import (
    Block,
    Item,
    Setting,
    code,
    counted,
    fenced,
    prose,
    quoted,
    ranked,
    short_path,
    times,
)

# ── where it stopped ──────────────────────────────────────────────────────────────────────────────

# Where the session stopped, in words: no more than its record tells.

IN_ORDER: tuple[Stop, ...] = ("answered", "asked", "spoke")
"""The agent had the last word: what comes next is the user's to say."""

_STOPS: dict[Stop, str] = {
    "answered": "It ended after the agent had answered.",
    "asked": "It ended with a question of the agent to the user.",
    "spoke": "Its record ends with the agent's words.",
    "in_flight": "It ended while a call was running.",
    "working": "It ended in the middle of the agent's work, between two steps.",
    "unanswered": "It ended before the agent answered the latest request.",
    "stopped": "It ended when the user stopped the agent.",
    "failed": "It ended with an error notice of the agent's program.",
}
_NEXT: dict[Stop, str] = {
    "answered": "The agent had answered the latest request: wait for the user.",
    "spoke": "Wait for the user, unless the agent's last words announce a step that is not recorded.",
    "in_flight": "Look at what the call without a result has done before you repeat it.",
    "working": "Go on from the agent's last step: nothing followed it.",
    "unanswered": "Begin with the latest request: the agent had not answered it.",
    "stopped": "The user stopped the agent: read the latest request again before acting.",
}


def ending(found: Gathered) -> str:
    """One sentence; nothing where no conversation is known, as of a workflow's own tasks."""
    if not found.messages:
        return ""
    told = _STOPS.get(found.stop.kind, "How it ended is not recorded.")
    return f"{told} Its window had just been compacted." if found.stop.compacted else told


def advice_after(found: Gathered, has_open_tasks: bool) -> Iterator[str]:
    stop = found.stop
    if stop.kind == "asked":
        question = f": {quoted(stop.words, 300)}" if stop.words else ""
        yield f"The agent had asked the user, and has no answer yet{question}."
    elif stop.kind == "failed":
        yield f"The agent's program had said {quoted(stop.words, 200)}: go on from the last step."
    elif stop.kind == "answered" and has_open_tasks:
        yield "The agent had answered the latest request."
    elif stop.kind in _NEXT and not (stop.kind == "spoke" and has_open_tasks):
        yield _NEXT[stop.kind]


# ── how things stand ──────────────────────────────────────────────────────────────────────────────

# How things stand: the plan, errors, git, tests, where the work stopped and what is next.

_ENDINGS = {"ok": ", which succeeded", "error": ", which failed", "interrupted": ", which the user stopped"}
_EXCERPT_LINES = 14
_STEPS_TOLD = 12


def in_short(setting: Setting) -> str:
    found = setting.found
    parts: list[str] = []
    if found.todos:
        done = sum(todo.status == "completed" for todo in found.todos)
        parts.append(f"{done} of {len(found.todos)} planned tasks are done")
    if found.tests:
        parts.append("the last test run passed" if found.tests.passed else "the last test run failed")
    if unresolved := sum(_is_open(failure) for failure in found.failures):
        parts.append(f"{counted(unresolved, 'error is', 'errors are')} unresolved")
    if found.git.commits and found.git.edited_since_commit:
        edited = counted(len(found.git.edited_since_commit), "file was", "files were")
        parts.append(f"{edited} edited after the last commit")
    return f"In short: {', '.join(parts)}.\n" if parts else ""


def drift(setting: Setting) -> list[Block]:
    changes = [Item("changes since", prose(change, 300), weights.DRIFT) for change in setting.found.drift]
    return [Block(setting.label("", "Changed since the pause"), changes, between="; ")]


def plan(setting: Setting) -> list[Block]:
    todos = setting.found.todos
    at_work, waiting, done = (_texts(todos, status) for status in ("in_progress", "pending", "completed"))
    done.reverse()
    # What is done matters more while something is left: it says where the open tasks begin.
    value = weights.DONE_TODO * (3 if waiting else 1)
    return [
        Block(
            setting.label("In progress", "Next, in progress"),
            ranked("open tasks", at_work, weights.OPEN_TODO, 15),
            between="; ",
        ),
        Block("Open", ranked("open tasks", waiting, weights.OPEN_TODO, 15), between="; "),
        Block(
            f"Done ({len(done)} of {len(todos)})",
            ranked("done tasks", done, value, 10),
            bullets=False,
            between="; ",
        ),
    ]


def _texts(todos: tuple[TodoItem, ...], status: str) -> list[str]:
    return [prose(todo.text, 300) for todo in todos if todo.status == status]


def errors(setting: Setting) -> list[Block]:
    newest = [failure for failure in reversed(setting.found.failures) if not failure.lookup]
    newest.sort(
        key=lambda failure: not _is_open(failure)
    )  # rank, and with it room, goes to the open ones first
    items = [_error(setting, failure, rank) for rank, failure in enumerate(newest)]
    blocks = [
        Block(
            setting.label("Unresolved, newest first", "Open errors"),
            [item for item, failure in zip(items, newest, strict=True) if _is_open(failure)],
            between="; ",
        ),
        Block(
            setting.label("Met and settled", "Settled errors"),
            [item for item, failure in zip(items, newest, strict=True) if not _is_open(failure)],
            between="; ",
        ),
    ]
    if setting.roomy:
        blocks.append(_looked_for(setting))
    return blocks


def _is_open(failure: Failure) -> bool:
    return failure.resolution == "unresolved" and not failure.lookup


def _looked_for(setting: Setting) -> Block:
    in_vain = (
        code(short_path(failure.doing.split(" ", 1)[-1]))
        for failure in reversed(setting.found.failures)
        if failure.lookup and failure.resolution == "unresolved"
    )
    return Block("Looked for in vain", ranked("lookups", in_vain, weights.LOOKUP, 5), bullets=False)


def _error(setting: Setting, failure: Failure, rank: int) -> Item:
    length = 240 if setting.roomy else 110
    value = weights.falling(weights.OPEN_ERROR if _is_open(failure) else weights.SETTLED_ERROR, rank, 7)
    item = Item("errors", code(failure.message, length), value)
    if failure.verdict:
        item.details.append(Item("error circumstances", code(failure.verdict, length), value * 0.5))
    if setting.roomy:
        item.details.append(Item("error circumstances", _circumstances(failure), weights.ERROR_DETAIL))
    item.before_details = item.between_details = " — "
    return item


def _circumstances(failure: Failure) -> str:
    often = f", {times(failure.times)}" if failure.times > 1 else ""
    notes = prose(failure.notes, 140)
    outcomes = {"fixed": f"; fixed {notes}", "workaround": f"; {notes}", "deferred": "; put off"}
    return f"from {code(failure.doing, 110)}{often}{outcomes.get(failure.resolution, '')}".rstrip()


def git(setting: Setting) -> list[Block]:
    facts = setting.found.git
    newest = list(reversed(facts.commits))
    pushed = " (all pushed)" if newest and facts.pushed_index > newest[0].index else ""
    commits = (f"{prose(commit.identifier, 64)} {quoted(commit.subject, 80)}" for commit in newest)
    links = [prose(link, 300) for link in facts.pull_requests]
    head = [_head(facts)] if facts.head and not _is_made(facts.head, newest[:1]) else []
    blocks = [
        Block(
            setting.label("Commits made, newest first", "Commits") + pushed,
            ranked("commits", commits, weights.COMMIT, 6),
            bullets=False,
            between="; ",
        ),
        Block("HEAD at the pause", ranked("git", head, weights.COMMIT, 1), bullets=False),
        Block("Pull requests", ranked("git", links, weights.COMMIT, 6), bullets=False),
        Block(
            "May have uncommitted changes (only a git filter such as LFS can tell)",
            ranked("git", [setting.path(path) for path in facts.uncompared], weights.UNCOMMITTED, 6),
            bullets=False,
        ),
    ]
    if not setting.roomy:  # a compact briefing names the branch in its first line
        return blocks
    branch = [code(facts.branch, 120)] if facts.branch else []
    edited = [setting.path(path) for path in facts.edited_since_commit] if newest else []
    return [
        Block("Branch", ranked("git", branch, weights.BRANCH, 1), bullets=False),
        *blocks,
        Block("Edited since the last commit", ranked("git", edited, weights.UNCOMMITTED, 6), bullets=False),
    ]


def _is_made(commit: str, made: list[Commit]) -> bool:
    return any(commit.startswith(one.identifier) for one in made)


def _head(facts: GitFacts) -> str:
    """Whose commit it is nobody knows; whether it was there before is known where the start is."""
    head = code(facts.head[:12], 64)
    if not facts.head_at_start:
        return head
    if facts.head == facts.head_at_start:
        return f"{head}, as when the work began"
    return f"{head}; it was {code(facts.head_at_start[:12], 64)} when the work began"


def tests(setting: Setting) -> list[Block]:
    run = setting.found.tests
    if run is None:
        return []
    outcome = "passed (green)" if run.passed else "failed (red)"
    text = f"{code(run.command, 160)} {outcome}" if run.command else outcome
    if run.summary and setting.roomy:
        text += f", it said {code(run.summary, 120)}"
    failing = (code(name, 120) for name in run.failing)
    edited = (setting.path(path) for path in run.edited_since)
    return [
        Block("Last test run", [Item("tests", text, weights.TEST_RUN)], bullets=False),
        Block("Failing", ranked("tests", failing, weights.FAILING_TEST, 5), bullets=False),
        Block(
            setting.label("Expected to fail, as planned", "Expected to fail"),
            ranked("tests", (code(name, 120) for name in run.expected), weights.FAILING_TEST, 5),
            bullets=False,
        ),
        Block(
            setting.label("Edited since, not yet tested", "Untested"),
            ranked("tests", edited, weights.UNCOMMITTED, 6),
            bullets=False,
        ),
    ]


def next_steps(setting: Setting) -> list[Block]:
    found = setting.found
    blocks = [_steps(setting)] if setting.roomy else []
    if found.stopped_because:
        why = Item("state", quoted(found.stopped_because, 200), weights.STOPPED_BECAUSE)
        blocks.append(
            Block(setting.label("The session ended because", "Ended because"), [why], bullets=False)
        )
    if found.last_words:
        words = quoted(found.last_words, max(110, min(1200, setting.room // 10)))
        label = setting.label("The agent's last words", "Last words")
        blocks.append(Block(label, [Item("state", words, weights.LAST_WORDS)], bullets=False))
    if found.stop.calls:
        running = (_last_step(setting, call).rstrip(".") for call in found.stop.calls[-3:])
        label = setting.label("Called, with no result recorded", "No result yet")
        blocks.append(Block(label, ranked("state", running, weights.OPEN_CALL, 5), bullets=False))
    if found.last_step:
        step = _last_step(setting, found.last_step)
        label = setting.label("Its last step", "Last step")
        blocks.append(Block(label, [Item("state", step, weights.LAST_STEP)], bullets=False))
    if found.last_edit and found.last_edit.new.strip() and setting.roomy:
        label = f"Its newest edit, in {setting.path(found.last_edit.path)}, put in"
        excerpt = Item("state", _excerpt(found.last_edit.new), weights.LAST_EDIT)
        blocks.append(Block(label, [excerpt], bullets=False))
    blocks.append(Block("Next", ranked("next steps", _advice(setting), weights.NEXT_STEP, 10), between=" "))
    return blocks


def _steps(setting: Setting) -> Block:
    """What the agent announced since the user last spoke; its very last words stand by themselves."""
    found = setting.found
    since = found.turns[-1].index if found.turns else 0
    steps = [prose(step.text.rstrip(":"), 200) for step in found.steps if step.index > since][:-1]
    items = [Item("steps", step, weights.STEP) for step in steps[-_STEPS_TOLD:]]
    return Block("Steps since the latest request", items)


def _last_step(setting: Setting, step: LastStep) -> str:
    ending = _ENDINGS.get(step.outcome, "")
    if step.kind == "shell":
        return f"{code(step.target, 120)}{ending}."
    if step.kind in ("edit", "write", "read"):
        deed = "reading" if step.kind == "read" else "an edit of"
        return f"{deed} {setting.path(step.target)}{ending}."
    on = f" ({code(step.target, 120)})" if step.target else ""
    return f"a call of {prose(step.tool, 60) or 'a tool'}{on}{ending}."


def _excerpt(text: str) -> str:
    lines = text.strip("\n").split("\n")
    shown = [clipped(line, 160) for line in lines[:_EXCERPT_LINES]]
    if len(lines) > len(shown):
        shown.append("…")
    return "\n" + fenced("\n".join(shown))


def _advice(setting: Setting) -> list[str]:
    """In a compact briefing only what its other lines do not say already."""
    found = setting.found
    following = [prose(found.next_task, 300)] if found.next_task else []
    open_tasks = [*following, *_texts(found.todos, "in_progress"), *_texts(found.todos, "pending")]
    advice = list(advice_after(found, bool(open_tasks)))
    if setting.roomy:
        if open_tasks:
            is_over = found.stop.kind in ("answered", "asked") and not following
            lead = "Still open in the agent's plan:" if is_over else "Go on with"
            advice.append(f"{lead} {quoted(open_tasks[0], 120)}.")
        if found.stop.kind not in IN_ORDER and any(map(_is_open, found.failures[-3:])):
            advice.append("Settle the unresolved errors above.")
    if found.tests and found.tests.command and (found.tests.edited_since or not found.tests.passed):
        advice.append(f"Run {code(found.tests.command, 120)} again.")
    return advice
