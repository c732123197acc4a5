"""The first lines of a briefing: the goal, where the work stands, and exactly what comes next."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.base.text import clipped, end_of, one_line, same_command, sentences, start_of
from holdfast.model.gathered import Gathered, Happening, LastStep, Stop, TestRun, Turn
from holdfast.resume.briefing import Statement
from holdfast.resume.ledger import WorkLedger
from holdfast.resume.rendering import code, condensed, listed, prose, quoted

_SHORT_REQUEST = 70
_SHORT_PLAN = 40  # "Let me check:" says nothing by itself
_ANNOUNCES = re.compile(
    r"\b(?:let me|let's|now (?:let|i|we|to|the|update|add|fix|run|handle|check)|i'?ll|i will|i "
    r"need to|i should|we need to|need to|next[,:]? "
    r"|going to|i also need|then i|still need)\b|:$",
    re.IGNORECASE,
)
_GLUED = re.compile(r"(?<=[.)\w])(?=(?:Actually|Let me|Now let|But wait)\b)")
_DONE = {
    "ok": "",
    "error": " failed",
    "interrupted": " was refused or stopped by the user",
    "unknown": " has no result",
}
_LOOKING = ("read", "search")


def now(found: Gathered, ledger: WorkLedger, room: int, *, summarised: bool = False) -> Iterator[Statement]:
    """`summarised`: the agent's own summary stands below. It knows better than rules what was to come."""
    goal = _goal(found, room)
    if goal:
        yield Statement(
            "now", "requests", f"Goal: {goal}", 0, index=found.turns[-1].index if found.turns else 0
        )
    if found.messages or found.stopped_because:
        compacted = " The window had just been compacted." if found.stop.compacted else ""
        known = " The summary may tell it." if summarised and found.stop.kind == "in_flight" else ""
        yield Statement("now", "state", f"Stopped: {_stopped(found, ledger)}{known}{compacted}", 0)
    words = _words(found)
    if words:
        full = quoted(_both_ends(words.text, max(150, min(460, room // 12))))
        yield Statement(
            "now",
            "state",
            f"{_LEAD[words.kind]}: {full}",
            0,
            f"{_LEAD[words.kind]}: {quoted(words.text, 150)}",
            words.index,
        )
    steps = list(_next(found, ledger))
    if summarised:
        steps = [] if found.stop.kind == "in_flight" else list(_certain(found, ledger))
        steps.append("what the summary below names as the current work and the next step.")
    if steps or goal:
        text = " Then: ".join(steps[:3]) or "go on with that goal from the last step."
        yield Statement("now", "next steps", f"Next: {text}", 0)


_LEAD = {"said": "The agent's last words", "thought": "The agent's last thought"}


# ── the goal ──────────────────────────────────────────────────────────────────────────────────────


def goal_room(room: int) -> int:
    """How much of the latest message stands in the first line."""
    return max(225, min(700, room // 8))


def _goal(found: Gathered, room: int) -> str:
    if not found.turns:
        return prose(found.issue, 300)
    latest = found.turns[-1]
    whole = len(latest.said) <= goal_room(room)
    words = (
        quoted(latest.said) if whole else f"{quoted(latest.said, goal_room(room) // 2)} (more of it below)"
    )
    if latest.asked:
        words += f", in answer to {quoted(latest.asked, 260)}"
    before = _request_before(found.turns) if len(latest.said) < _SHORT_REQUEST else None
    return f"{words}; before that: {quoted(condensed(before.said, 240))}" if before and room > 1500 else words


def _request_before(turns: tuple[Turn, ...]) -> Turn | None:
    return next(
        (one for one in reversed(turns[:-1]) if len(one.said) >= _SHORT_REQUEST),
        turns[-2] if len(turns) > 1 else None,
    )


# ── where it stopped ──────────────────────────────────────────────────────────────────────────────


def _stopped(found: Gathered, ledger: WorkLedger) -> str:
    stop = found.stop
    if stop.kind == "in_flight" and stop.calls:
        calls = listed((_call(call, ledger) for call in stop.calls[-3:]), 3)
        return f"{calls} was called; no result is recorded."
    if stop.kind == "asked":
        question = f": {quoted(stop.words, 300)}" if stop.words else ""
        return f"the agent has asked the user and has no answer yet{question}."
    if stop.kind == "answered":
        return "the agent had finished its turn; nothing was running."
    if stop.kind == "spoke" and not goes_on(found):
        return "the record ends with the agent's words; whether its turn was over is not recorded."
    if stop.kind in _ENDINGS:
        told = _ENDINGS[stop.kind].format(words=quoted(stop.words, 200))
        return f"{told} {_last_step(found, ledger)}".strip()
    return prose(found.stopped_because, 200) or "how it ended is not recorded."


_ENDINGS: dict[Stop, str] = {
    "failed": "the agent's program ended the turn with {words}.",
    "unanswered": "the user's latest message is not acted on yet.",
    "stopped": "the user stopped the agent.",
    "spoke": "right after the agent's words, before the step they announce.",
    "working": "between two steps.",
}


def _call(call: LastStep, ledger: WorkLedger) -> str:
    if call.kind in ("edit", "write", "delete", "read"):
        return f"{call.kind} of {ledger.paths(call.target)}"
    if call.kind == "shell":
        return code(call.target, 300)
    return f"{prose(call.tool, 60)} {code(call.target, 200)}" if call.target else prose(call.tool, 60)


def _last_step(found: Gathered, ledger: WorkLedger) -> str:
    step = next((one for one in reversed(found.happened) if one.outcome), None)
    if step is None or step.outcome is None:
        return _last_known(found, ledger)
    deed = {
        "edit": "edit of ",
        "write": "writing of ",
        "delete": "removal of ",
        "read": "reading of ",
        "search": "search for ",
    }.get(step.kind, "")
    on = ledger.paths(step.text) if step.kind in ("edit", "write", "delete", "read") else code(step.text, 200)
    told = (
        f": {code(step.told, 160)}" if (step.told and step.kind == "shell") or step.outcome == "error" else ""
    )
    worked = ", which worked" if step.outcome == "ok" and step.kind in ("edit", "write") else ""
    return (
        f"The last step was the {deed}{on}{_DONE[step.outcome]}{worked}{told}."
        if deed
        else f"The last step was {on}{_DONE[step.outcome]}{told}."
    )


def _last_known(found: Gathered, ledger: WorkLedger) -> str:
    return f"The last step was {_call(found.last_step, ledger)}." if found.last_step else ""


def _words(found: Gathered) -> Happening | None:
    """The agent's last words; where it only thought since, the thought."""
    said = next((one for one in reversed(found.happened) if one.kind == "said"), None)
    if said is None:
        return Happening(-1, "said", found.last_words) if found.last_words else None
    return said


def goes_on(found: Gathered) -> bool:
    """Whether the agent's last words announce a step that is not recorded."""
    told = sentences(found.last_words)
    return found.stop.kind == "spoke" and bool(told) and bool(_ANNOUNCES.search(told[-1]))


def _both_ends(text: str, most: int) -> str:
    """How it begins, and how it ends: there an agent says what it will do."""
    line = one_line(text)
    if len(line) <= most:
        return line
    told = sentences(text)
    end = end_of(told[-1] if told else line, most // 2)
    return f"{start_of(line, most - len(end))} … {end}"


# ── what is next ──────────────────────────────────────────────────────────────────────────────────


def _next(found: Gathered, ledger: WorkLedger) -> Iterator[str]:
    """In this order: the call in flight, what the user asked last, what the agent had announced, a red
    check, the task at work, what is not checked."""
    stop = found.stop
    if stop.kind in ("answered", "spoke") and not goes_on(found):
        if found.next_task:
            yield f"go on with {quoted(found.next_task, 300)}."
        yield from _when_finished(found, ledger)
        return
    yield from _certain(found, ledger)
    if stop.kind == "asked":
        return
    if stop.kind not in ("unanswered", "stopped") and (intention := _intention(found)):
        yield intention
    yield from _from_ledger(ledger)


def _certain(found: Gathered, ledger: WorkLedger) -> Iterator[str]:
    """What the record itself shows to be next."""
    stop = found.stop
    if found.next_task:
        yield f"go on with {quoted(found.next_task, 300)}."
    if stop.kind == "asked":
        yield "wait for the user's answer."
    if stop.kind == "in_flight" and stop.calls:
        yield _after_call(stop.calls[-1], ledger)
    if stop.kind in ("unanswered", "stopped") and found.turns:
        yield "do what the user wrote last (the goal above)."


def _after_call(call: LastStep, ledger: WorkLedger) -> str:
    if call.kind in ("edit", "write", "delete"):
        return f"look whether {ledger.paths(call.target)} was written, and finish that edit."
    if call.kind in _LOOKING:
        return f"repeat {_call(call, ledger)}: it only looks."
    if call.kind == "shell":
        return (
            f"run {code(call.target, 300)} again if it only checks; otherwise look first at what it has done."
        )
    return f"find out what became of {_call(call, ledger)}."


def _intention(found: Gathered) -> str:
    """What the agent had announced and had not done when the record ends."""
    steps = [one for one in found.happened if one.kind != "user"]
    if not steps:
        return ""
    last = steps[-1]
    spoken = _spoken(steps)
    if spoken is None:
        return ""
    plan = _announcement(spoken.text)
    if spoken is last:
        return f"do what the agent had announced last, unless it is done: {quoted(plan, 300)}."
    if last.kind in _LOOKING and plan:
        return f"go on with what that look was for: {quoted(plan, 300)}."
    if last.outcome == "error":
        return f"settle what just failed: {code(last.told, 200)}."
    return (
        f"go on from {quoted(plan, 240)}."
        if plan and last.kind in ("edit", "write") and _is_many(spoken.text)
        else ""
    )


def _spoken(steps: list[Happening]) -> Happening | None:
    """What the agent said before its last calls; or thought, where that says more of what it will do."""
    words: list[Happening] = []
    for one in reversed(steps):
        if one.kind in ("said", "thought"):
            words.append(one)
        elif words:
            break
    return max(words, key=lambda one: len(_announcement(one.text)), default=None) if words else None


def _announcement(text: str) -> str:
    """The sentence in which the agent says what it will do; the last one, where there are several."""
    told = [one for part in sentences(text) for one in _GLUED.split(part) if len(one) > 12]
    at = next(
        (place for place in reversed(range(len(told))) if _ANNOUNCES.search(told[place])), len(told) - 1
    )
    plan = (
        " ".join(told[max(0, at - 1) : at + 1])
        if at > 0 and len(told[at]) < _SHORT_PLAN
        else "".join(told[at : at + 1])
    )
    return clipped(one_line(plan or text), 300)


def _is_many(text: str) -> bool:
    """Whether what was announced is more than one edit."""
    return bool(
        re.search(
            r"\b(?:both|all|each|every|remaining|several|callers?|call sites?|everywhere)\b"
            r"|\n\s*(?:\d+[.)]|[-*]) ",
            text,
        )
    )


def _when_finished(found: Gathered, ledger: WorkLedger) -> Iterator[str]:
    waiting = ledger.open_tasks()
    if waiting and found.todos_index >= (found.turns[-1].index if found.turns else 0):
        yield f"wait for the user; still open in the agent's plan: {prose(waiting[0].text, 160)}."
    elif ledger.red is not None and ledger.red.index > (found.turns[-1].index if found.turns else 0):
        yield f"wait for the user; {code(ledger.red.command, 120)} is red."
    else:
        yield "nothing is left to do of the latest request: wait for the user."


def _from_ledger(ledger: WorkLedger) -> Iterator[str]:
    red = ledger.red
    if red is not None:
        again = (
            f"run {code(red.command, 160)} again"
            if red.edited_since
            else f"make {code(red.command, 160)} pass"
        )
        why = f" ({_complaint(red.failing, red.summary)})" if red.failing or red.summary else ""
        yield f"{again}{why}{_whole_after(red, ledger)}."
    if ledger.git.under_way:
        left = (
            f"resolve the conflicts in {listed(map(ledger.paths, ledger.git.conflicts), 6)}, then "
            if ledger.git.conflicts
            else ""
        )
        yield f"{left}conclude the {ledger.git.under_way} once the checks pass."
    task = ledger.task_at_work()
    if task is not None:
        yield (
            f"see whether the task {quoted(task.text, 200)} is done (files were written after the plan was "
            "last updated), else finish it."
            if ledger.plan_is_older
            else f"finish the task {quoted(task.text, 200)}."
        )
    elif waiting := ledger.open_tasks():
        yield f"take up the next task of the plan, {quoted(waiting[0].text, 200)}."
    if red is None and ledger.checks and ledger.checks[-1].edited_since:
        commands = dict.fromkeys(code(run.command, 120) for run in reversed(ledger.checks) if not run.narrow)
        yield (
            f"check what was written since: "
            f"{' and '.join(list(commands)[:2]) or code(ledger.checks[-1].command, 120)}."
        )
    elif red is None and ledger.checks and ledger.uncommitted and not ledger.git.under_way and task is None:
        yield (
            "go on from the last step (the newest checks passed after the last edit; no commit of it is in "
            "the record)."
        )
    elif not ledger.checks and ledger.uncommitted:
        yield (
            f"check what was written (no test or build is recorded): "
            f"{listed(map(ledger.paths, ledger.uncommitted[-3:]))}."
        )


def _whole_after(red: TestRun, ledger: WorkLedger) -> str:
    if not red.narrow:
        return ""
    whole = next((run for run in reversed(ledger.checks) if run.kind == red.kind and not run.narrow), None)
    return f", then the whole: {code(same_command(whole.command), 120)}" if whole else ""


def _complaint(failing: tuple[str, ...], summary: str) -> str:
    return f"it failed: {listed(map(code, failing), 4)}" if failing else f"it said {code(summary, 160)}"
