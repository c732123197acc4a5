"""The first lines of a briefing: the goal, where the work stands, and exactly what comes next."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.base.text import clipped, end_of, one_line, same_command, sentences, start_of
from holdfast.model.gathered import Gathered, Happening, LastStep, Stop, TestRun, Turn, Unused
from holdfast.model.message import is_go_ahead, latest_request
from holdfast.resume.briefing import Statement
from holdfast.resume.ledger import WorkLedger, checked, is_a_run
from holdfast.resume.rendering import code, condensed, finding, listed, prose, quoted, without_output
from holdfast.resume.summary import TOLD_ABOVE, next_step

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


def now(found: Gathered, ledger: WorkLedger, room: int, summarised: str = "") -> Iterator[Statement]:
    """`summarised`: the agent's own summary, which stands below and knows better what was to come."""
    goal = _goal(found, room)
    if goal:
        yield Statement(
            "now", "requests", f"Goal: {goal}", 0, index=found.turns[-1].index if found.turns else 0
        )
    if (found.messages or found.stopped_because) and not (summarised and _is_known_better(found, summarised)):
        compacted = " The window had just been compacted." if found.stop.compacted else ""
        yield Statement("now", "state", f"Stopped: {_stopped(found, ledger)}{compacted}", 0)
    steps = list(_next(found, ledger))
    words = None if summarised else _words(found)
    if words and not any(one_line(words.text) in step for step in steps):
        full = quoted(checked(_both_ends(words.text, max(150, min(460, room // 12))), ledger))
        since = sum(one.index > words.index for one in found.happened if one.outcome)
        lead = f"{_LEAD[words.kind]}{f' ({since} steps before the end)' if since > 2 else ''}"
        yield Statement(
            "now", "state", f"{lead}: {full}", 0, f"{lead}: {quoted(words.text, 150)}", words.index
        )
    if summarised:
        steps = [] if found.stop.kind == "in_flight" else list(_certain(found, ledger))
        told = next_step(summarised)
        steps.append(
            f"by the summary below: {quoted(told)}"
            if 0 < len(told) <= TOLD_ABOVE
            else "what the summary below ends with, its next step."
        )
    if steps or (goal and found.messages):
        steps = [one for one in steps if one not in _GENERAL or len(steps) == 1]
        yield Statement("now", "next steps", f"Next:{_in_order(steps[:3])}", 0)


def _in_order(steps: list[str]) -> str:
    if len(steps) < 2:
        return f" {steps[0] if steps else 'go on with that goal from the last step.'}"
    return "".join(f"\n  {place}. {step[:1].upper()}{step[1:]}" for place, step in enumerate(steps, 1))


# A summary is written after the record's last line: how that line reads is out of date beside it.
_KNOWN_BETTER = ("spoke", "working", "unknown")


def _is_known_better(found: Gathered, summary: str) -> bool:
    """Also of a call without result, where the summary knows of it."""
    called = (call.target.rsplit("/", 1)[-1] for call in found.stop.calls)
    return found.stop.kind in _KNOWN_BETTER or (
        found.stop.kind == "in_flight" and any(same_command(one) in summary for one in called if one)
    )


_LEAD = {"said": "The agent's last words", "thought": "The agent's last thought"}


# ── the goal ──────────────────────────────────────────────────────────────────────────────────────


def goal_room(room: int) -> int:
    """How much of the latest message stands in the first line."""
    return max(225, min(700, room // 8))


def _goal(found: Gathered, room: int) -> str:
    if not found.turns:
        return prose(found.issue, 300)
    latest, request = found.turns[-1], latest_request(found.turns)
    whole = len(request.said) <= goal_room(room) and "\n" not in request.said.strip()
    most = _BEGINNING if room > _ROOMY else goal_room(room) // 2
    words = quoted(request.said) if whole else f"{quoted(request.said, most)} (whole below)"
    words += _in_answer_to(request)
    agreed = found.plan if found.plan and found.plan.index >= latest.index else None
    if request is not latest and not (agreed and agreed.index == latest.index):
        words += f"; to go on with it the user said last {quoted(latest.said)}{_in_answer_to(latest)}"
    if len(request.said) >= _SHORT_REQUEST or room <= 1500:
        return words
    if agreed:
        return f"{words}; the plan that the user then agreed to: {quoted(title_of(agreed.text), 160)}"
    before = _request_before(found.turns[: found.turns.index(request) + 1])
    return f"{words}; before that: {quoted(condensed(without_output(before.said), 240))}" if before else words


def _in_answer_to(turn: Turn) -> str:
    if turn.after:
        return f", said after the agent's {quoted(turn.after)}"
    return f", in answer to {quoted(turn.asked, _QUESTIONS)}" if turn.asked else ""


_BEGINNING, _ROOMY = 140, 5_000
_QUESTIONS = 560


def title_of(plan: str) -> str:
    return next((line.strip("#* ") for line in plan.split("\n") if line.strip("#* ")), "")


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
    return f"because {quoted(found.stopped_because, 200)}." if found.stopped_because else _NOT_KNOWN


_NOT_KNOWN = "how it ended is not recorded."
_ENDINGS: dict[Stop, str] = {
    "failed": "the agent's program ended the turn with {words}.",
    "unanswered": "the user's latest message is not acted on yet.",
    "stopped": "the user stopped the agent.",
    "spoke": "right after the agent's words; the step that they announce is not in the record.",
    "working": "in mid-task.",
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
    worked = ", done" if step.outcome == "ok" and step.kind in ("edit", "write") else ""
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
    stop, doing = found.stop, ""
    if stop.kind in ("answered", "spoke") and not goes_on(found):
        if found.next_task:
            yield found.next_task
        yield from _when_finished(found, ledger)
        return
    intention = _intention(found, ledger) if stop.kind not in ("unanswered", "stopped") else ""
    reply = list(_reply(found, ledger))
    if stop.kind == "in_flight" and stop.calls and stop.calls[-1].kind in _LOOKING:
        if found.next_task:
            yield found.next_task
        yield from reply
        doing = _doing(_since_asked(found), ledger)
        yield _look_again(stop.calls[-1], found, ledger, doing)
        reply, intention = [], "" if reply or doing else intention
    else:
        yield from _certain(found, ledger)
    if stop.kind == "asked":
        return
    since = found.turns[-1].index if found.turns else 0
    unused = [one for one in found.unused if one.index >= since] if ledger.task_at_work() is None else []
    if unused and not _only_looking(found):
        yield _use(unused, found, ledger)
    elif intention:
        yield intention
    if _only_looking(found):
        if not intention:
            yield _from_there(found, ledger)
        yield from reply
        return
    running = [call.target for call in stop.calls if _is_check(call.target, ledger)]
    again = same_command(running[-1]) if running else ""
    thought = "" if intention else _thought_on(ledger.red, found)
    yield from _from_ledger(ledger, again, thought, planned=bool(found.next_task or doing))
    yield from reply


def _use(unused: list[Unused], found: Gathered, ledger: WorkLedger) -> str:
    """What was defined for nobody yet, what the agent had announced, and where it had looked for that."""
    path, steps = unused[-1].path, _since_asked(found)
    names = listed((code(one.name) for one in unused), 3)
    looks = [one.told for one in steps if one.kind == "read" and one.text == path and one.told]
    at = f"; read there: {listed(looks[-_LOOKS_NAMED:])}" if looks else ""
    spoken = _spoken(steps)
    plan = _announcement(spoken.text) if spoken else ""
    words = f". The agent had announced: {quoted(plan, 300)}" if _ANNOUNCES.search(plan) else "."
    where = f"(defined in {ledger.paths(path)}{at})"
    return f"use {names} where that was meant to be: no edit so far does {where}{words}"


_LOOKS_NAMED = 4


_FILES_LEFT = 6


def staged(found: Gathered, ledger: WorkLedger) -> tuple[list[str], list[str]] | None:
    """Of what was written and not committed: the files that `git add` has named since the latest request,
    and the others. None where it named none of them, or all.
    """
    named = ""
    for step in _since_asked(found):
        if step.kind == "shell" and _UNSTAGES.search(step.text):
            named = ""
        if step.kind == "shell" and _STAGES.search(step.text):
            named += f" {step.text} "
    if not named or _STAGES_ALL.search(named):
        return None
    words = {word.removeprefix("./") for word in _PATH.findall(named)}
    files = [ledger.paths.short(path) for path in reversed(ledger.uncommitted)]
    done = [path for path in files if path in words or any(word.endswith(f"/{path}") for word in words)]
    left = [path for path in files if path not in done]
    return (done, left) if done and left else None


_STAGES, _UNSTAGES = re.compile(r"\bgit add\b"), re.compile(r"\bgit (?:reset\b|restore --staged|rm --cached)")
_STAGES_ALL = re.compile(r"\bgit add (?:-\w+ )*(?:-A|-u|--all|--update|\.|\*)(?:\s|$)|[*]|\[redacted")
_PATH = re.compile(r"[\w./@+-]+")


def _from_there(found: Gathered, ledger: WorkLedger) -> str:
    last = next((one for one in reversed(found.happened) if one.outcome), None)
    if last is not None and last.kind == "shell" and "git add" in last.text:
        sides = staged(found, ledger)
        rest = listed(map(code, sides[1]), _FILES_LEFT) if sides else ""
        where = f" with what `git add` has not named yet: {rest}" if rest else " from there"
        return f"see with `git status` what is staged by now, and go on with the user's request{where}."
    return _FROM_THERE


def _reply(found: Gathered, ledger: WorkLedger) -> Iterator[str]:
    """A question is answered with words, whatever was done on the way."""
    latest = found.turns[-1] if found.turns else None
    if latest is None or found.stop.kind == "unanswered" or not _QUESTION.search(latest.said):
        return
    said = [one.text for one in found.happened if one.kind == "said" and one.index > latest.index]
    if all(len(text) < _AN_ANSWER for text in said):
        seen = any(one.places or one.result for one in found.happened if one.index > latest.index)
        where = "; what was found stands under the work at hand" if seen else ""
        passed = [run for run in ledger.checks if run.index > latest.index]
        done = passed and passed[-1].passed and not passed[-1].edited_since
        report = ", and report what was changed: the newest check passed after the last edit" if done else ""
        yield f"answer the user's question{report}; no answer to it is recorded{where}."


_QUESTION = re.compile(
    r"\b(?:what|why|how|where|which|when|who)\b(?! (?:about|if)\b)[^?\n]{8,}\?[\s)\"']*$", re.IGNORECASE
)
_AN_ANSWER = 200


def _only_looking(found: Gathered) -> bool:
    """Whether the latest request has led to no edit, and the list of tasks is not about it."""
    since = found.turns[-1].index if found.turns else 0
    return (
        found.stop.kind in ("working", "in_flight")
        and found.todos_index < since
        and all(file.last_edit_index < since for file in found.files)
    )


def _certain(found: Gathered, ledger: WorkLedger) -> Iterator[str]:
    """What the record itself shows to be next."""
    stop = found.stop
    if found.next_task:
        yield found.next_task
    if stop.kind == "asked":
        yield "wait for the user's answer."
    if stop.kind == "in_flight" and stop.calls:
        yield _after_call(stop.calls[-1], found, ledger)
    if stop.kind in ("unanswered", "stopped") and found.turns:
        yield _asked_last(found.turns[-1])


def _asked_last(latest: Turn) -> str:
    if is_go_ahead(latest.said) and (put := latest.asked or latest.after):
        return f"do what the user agreed to with {quoted(latest.said)}: {quoted(put, 300)}."
    if len(latest.said) <= _SHORT_REQUEST:
        return f"do what the user wrote last: {quoted(latest.said)}."
    return "do what the user wrote last (the goal above)."


def _after_call(call: LastStep, found: Gathered, ledger: WorkLedger) -> str:
    if call.kind in ("edit", "write", "delete"):
        return f"look whether {ledger.paths(call.target)} was written, and finish that edit."
    if call.kind in _LOOKING:
        return _look_again(call, found, ledger)
    if call.kind == "shell" and _is_check(call.target, ledger):
        return (
            f"run {code(call.target, 300)} again: what it said is not recorded{_said_before(call, ledger)}."
        )
    if call.kind == "shell":
        return (
            f"run {code(call.target, 300)} again if it only checks; otherwise look first at what it has done."
        )
    return f"find out what became of {_call(call, ledger)}."


def _look_again(call: LastStep, found: Gathered, ledger: WorkLedger, doing: str = "") -> str:
    """What it was for, and the look as a means to that."""
    if places := _found_before(call, found, ledger):
        lead = f"{doing.rstrip('.')}: " if doing else "go on from "
        return f"{lead}what {_call(call, ledger)} had found before: {places}."
    spoken = _spoken(_since_asked(found))
    plan = _announcement(spoken.text) if spoken else ""
    if doing:
        aim = f" ({quoted(plan, 200)})" if _ANNOUNCES.search(plan) and plan[:60] not in doing else ""
        looking = f"it was just looking with {_call(call, ledger)}{aim}: repeat that, no result is recorded"
        return f"{doing.rstrip('.')}; {looking}."
    if not _ANNOUNCES.search(plan):
        return f"repeat {_call(call, ledger)}, which only looks."
    return f"go on with {quoted(plan, 300)}: the result of {_call(call, ledger)} is not recorded, repeat it."


def _said_before(call: LastStep, ledger: WorkLedger) -> str:
    """What the same check said when it ran before, where it was red."""
    runs = [run for run in ledger.checks if same_command(run.command) == same_command(call.target)]
    if not runs or runs[-1].passed or not (runs[-1].failing or runs[-1].summary):
        return ""
    return f" (in the run before, {_complaint(runs[-1].failing, runs[-1].summary)})"


def _found_before(call: LastStep, found: Gathered, ledger: WorkLedger) -> str:
    """The places that the same search found, of files that nobody has written since."""
    same = next((one for one in reversed(found.happened) if one.places and one.text == call.target), None)
    edited = same is not None and any(file.last_edit_index > same.index for file in found.files)
    return "" if same is None or edited else _places_of(same, ledger)


def _places_of(look: Happening, ledger: WorkLedger) -> str:
    return listed((code(place) for place in map(ledger.paths.short, look.places)), _PLACES_NAMED)


_PLACES_NAMED = 8


def _is_check(command: str, ledger: WorkLedger) -> bool:
    return any(same_command(run.command) == same_command(command) for run in ledger.checks)


def _intention(found: Gathered, ledger: WorkLedger) -> str:
    """What the agent had announced and had not done when the record ends."""
    steps = _since_asked(found)
    if not steps:
        return ""
    last = steps[-1]
    spoken = _spoken(steps)
    if spoken is None:
        return ""
    plan = _announcement(spoken.text)
    if spoken is last:
        newest = next((one for one in reversed(steps) if one.kind in (*_WRITING, "read")), None)
        at = f" (it had just {_DID[newest.kind]} {ledger.paths(newest.text)})" if newest else ""
        told = f"{quoted(plan, 300)}{at}"
        return f"do what the agent had announced when the record ends, unless it is done by now: {told}."
    looks = last.kind in _LOOKING or (last.outcome == "ok" and last.kind == "shell" and _only_looking(found))
    if looks and plan:
        return _after_a_look(found, steps, plan, ledger)
    if last.outcome == "error":
        return f"settle what just failed: {code(last.told, 200)}."
    return _rest_of(spoken, steps, ledger) if last.kind in ("edit", "write") else ""


def _since_asked(found: Gathered) -> list[Happening]:
    asked = max((one.index for one in found.happened if one.kind == "user"), default=-1)
    return [one for one in found.happened if one.index > asked]


def _rest_of(spoken: Happening, steps: list[Happening], ledger: WorkLedger) -> str:
    """Where more than one edit was announced: one was made, and nothing tells whether it was all."""
    told = sentences(spoken.text)[-1:] or [""]
    several = _SEVERAL.search(told[0]) or (spoken.kind == "said" and _TWO_DEEDS.search(told[0]))
    if not several:
        return ""
    what = told[0] if len(told[0]) > _SHORT_PLAN else clipped(one_line(spoken.text), 300)
    edited = [one.text for one in steps if one.index > spoken.index and one.kind in _WRITING]
    since = listed(map(ledger.paths, edited), 4)
    return f"finish what the agent had announced: {quoted(what, 300)} (edited since: {since})."


_DID = {"edit": "edited", "write": "written", "delete": "removed", "read": "read"}
_SEVERAL = re.compile(
    r"\b(?:both|all|each|every|remaining|several|callers?|call sites?|everywhere)\b", re.IGNORECASE
)
_TWO_DEEDS = re.compile(r"`[^`]+`.*,? and (?:then |also )?\w+ .*`[^`]+`")


def _after_a_look(found: Gathered, steps: list[Happening], plan: str, ledger: WorkLedger) -> str:
    """What the look was for; where the agent did not say, what it was changing, or had found by then."""
    last = steps[-1]
    if last.outcome and finding(plan)[1] > 0 and _ANNOUNCES.search(plan):
        on = ledger.paths(last.text) if last.kind == "read" else code(last.text, 120)
        places = f", which found {_places_of(last, ledger)}" if last.places else ""
        return f"go on from the result of {on}{places}; it was for: {quoted(plan, 300)}."
    if any(one.kind in _WRITING for one in steps):
        return _doing(steps, ledger)
    told = [one for one in found.insights if one.index >= steps[0].index]
    if told:
        at = f" (the newest look was at {ledger.paths(last.text)})" if last.kind == "read" else ""
        return f"go on with the user's request from what was found last: {quoted(told[-1].text, 400)}{at}."
    newest = [finding(one.text) for one in steps if one.kind in ("said", "thought")][-_NEWEST_WORDS:]
    said, worth = max(reversed(newest), key=lambda one: one[1], default=("", 0))
    return (
        f"go on with the user's request from what was found last: {quoted(said, 300)}." if worth > 0 else ""
    )


def _doing(steps: list[Happening], ledger: WorkLedger) -> str:
    """What the agent last said it would change, and what was edited since.

    Where that was one thing and is done, what it had told the user before of several.
    """
    edits, done = dict[str, None](), False
    for one in reversed(steps):
        if one.kind in _WRITING and one.outcome == "ok":
            edits[one.text] = None
        told = sentences(one.text) if one.kind in ("said", "thought") else []
        if meant := next((sentence for sentence in reversed(told) if _MEANS.match(sentence)), ""):
            several = _SEVERAL.search(meant) or _PLURAL.search(meant)
            if (edits and not several) or (done and one.kind != "said"):
                done = True
                continue
            since = f" (edited since: {listed(map(ledger.paths, edits), 4)})" if edits else ""
            return f"go on with what the agent was doing: {quoted(meant, 300)}{since}."
    return ""


_WRITING = ("edit", "write", "delete")
_MEANS = re.compile(
    r"(?:now |so |then |next,? )?(?:let me|let's|i'll|i will|i need to|i should|we need to)"
    r"(?: also| now| first)* (?:check and |find and |go and )?"
    r"(?:update|fix|change|add|remove|rename|replace|handle|make|rewrite|implement|move|convert|restore)\b"
    r"(?! (?:it|this|that|these|them)\b).{20}",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\b(?:the|these|those|other) (?:[\w-]+ )?[a-z]+[^s\W]s\b")
_NEWEST_WORDS = 4


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


def _when_finished(found: Gathered, ledger: WorkLedger) -> Iterator[str]:
    waiting = ledger.open_tasks()
    if waiting and found.todos_index >= (found.turns[-1].index if found.turns else 0):
        yield f"wait for the user; still open in the agent's plan: {prose(waiting[0].text, 160)}."
    elif ledger.red is not None and ledger.red.index > (found.turns[-1].index if found.turns else 0):
        yield f"wait for the user; {code(ledger.red.command, 120)} is red."
    elif left := named_as_left(found.last_words):
        yield _go_on_with(left)
    else:
        yield "wait for the user; the agent's last words say how it left the latest request."


def named_as_left(last_words: str) -> str:
    """What the agent itself called left, when it ended its turn."""
    told = next((one for one in reversed(sentences(last_words)) if _LEFT.search(one)), "")
    return "" if _NOTHING_LEFT.search(told) else told


_LEFT = re.compile(
    r"\b(?:remain(?:s|ing)?|still (?:to|needs?|has|have|missing|open)|not (?:yet )?(?:done|finished|begun"
    r"|implemented|started)|(?:i'll|i will|will) (?:then )?(?:continue|go on|proceed|do)|left to \w+"
    r"|to be (?:done|corrected|fixed|written)|to-?do|next,? i)\b",
    re.IGNORECASE,
)
_NOTHING_LEFT = re.compile(r"\b(?:nothing|none|no)\b", re.IGNORECASE)


def _go_on_with(left: str) -> str:
    """An agent's own next step is the next step; about what it only calls open, the user decides."""
    words = quoted(one_line(left), 300)
    if _OWN_NEXT_STEP.search(left):
        return f"do what the agent said it would do next, unless it is done: {words}."
    return f"wait for the user; the agent called this left: {words}."


_OWN_NEXT_STEP = re.compile(
    r"\b(?:i(?:'ll| will)|i still (?:have|need) to|next,? i|i (?:have|need) (?:yet )?to)\b"
    r"(?!.*\b(?:if|once|when|unless) you\b)",
    re.IGNORECASE,
)


def _thought_on(red: TestRun | None, found: Gathered) -> str:
    """What the agent said about a failure that is not fixed yet."""
    if red is None or red.edited_since:
        return ""
    words = [one.text for one in found.happened if one.kind in ("said", "thought") and one.index > red.index]
    told = [one for text in words for one in [finding(text)] if one[1] >= 0]
    return f"; the agent thought: {quoted(told[-1][0], 200)}" if told else ""


def _from_ledger(ledger: WorkLedger, running: str, thought: str, *, planned: bool) -> Iterator[str]:
    """`running`: a check that is to be run again anyway; `thought`: the agent's on what failed; `planned`:
    what the agent was at, or the next task of the plan, is named already."""
    red = ledger.red
    if red is not None and same_command(red.command) != running:
        again = (
            f"run {code(red.command, 160)} again"
            if red.edited_since
            else f"make {code(red.command, 160)} pass"
        )
        why = f" ({_complaint(red.failing, red.summary)}{thought})" if red.failing or red.summary else ""
        if alone := _passed_alone(red, ledger):
            why = f" ({listed(map(code, red.failing), 4)} had failed in it, and passed since in {alone})"
        elif red.edited_since and (left := _not_edited(red)):
            places = listed(map(code, left), 3)
            why = f" and settle what it said of files that were not edited since: {places}"
        yield f"{again}{why}{_whole_after(red, ledger)}{_then_others(red, ledger)}."
    if ledger.git.under_way:
        left = (
            f"resolve the conflicts in {listed(map(ledger.paths, ledger.git.conflicts), 6)}, then "
            if ledger.git.conflicts
            else ""
        )
        yield f"{left}conclude the {ledger.git.under_way} once the checks pass."
    task = ledger.task_at_work()
    if not planned:
        yield from _tasks(ledger)
    if red is None and ledger.checks and ledger.checks[-1].edited_since:
        wide = [one.command for one in reversed(ledger.checks) if not one.narrow] or [
            ledger.checks[-1].command
        ]
        run = " and ".join(list(dict.fromkeys(code(same_command(one), 120) for one in wide))[:2])
        yield f"run {run}: not run since the last edits."
    elif red is None and ledger.checks and ledger.uncommitted and not ledger.git.under_way and task is None:
        yield _FROM_THE_LAST_STEP
    elif not ledger.checks and ledger.uncommitted and not any(is_a_run(one) for one in ledger.open_tasks()):
        yield (
            f"check what was written (no test or build is recorded): "
            f"{listed(map(ledger.paths, ledger.uncommitted[-3:]))}."
        )


_FROM_THE_LAST_STEP = (
    "go on from the last step (the newest checks passed after the last edit; no commit of it is recorded)."
)
_FROM_THERE = "go on with the user's request from there."
_GENERAL = (_FROM_THE_LAST_STEP, _FROM_THERE)
"""Said only where there is nothing better."""


def _passed_alone(red: TestRun, ledger: WorkLedger) -> str:
    """The newer and narrower run in which all that had failed passed."""
    for run in reversed(ledger.checks):
        whole = all(name.split("/", 1)[0] in run.command for name in red.failing)
        sure = run.passed and not run.unsure and not run.edited_since
        if run.index > red.index and run.narrow and sure and red.failing and whole:
            return code(same_command(run.command), 160)
    return ""


def _not_edited(red: TestRun) -> list[str]:
    """What a failed check said of files that nobody has edited since."""
    said = [(part, _PLACE.match(part)) for part in red.summary.split(" / ")]
    return [
        clipped(part, 160)
        for part, found in said
        if found and not any(path.endswith(found[1].removeprefix("./")) for path in red.edited_since)
    ]


_PLACE = re.compile(r"([\w./@-]{1,200}\.\w{1,5}):\d+")


def _tasks(ledger: WorkLedger) -> Iterator[str]:
    """The list as the agent left it, moved on by what was plainly written for its tasks since."""
    waiting = ledger.open_tasks()
    begun = [one for one in waiting if ledger.files_for(one)]
    fresh = next((one for one in waiting if one not in begun), None)
    task = ledger.task_at_work()
    if begun:
        files = dict.fromkeys(path for one in begun for path in ledger.files_for(one))
        of = " and ".join(quoted(one.text, 120) for one in begun[:3])
        written = f"{of}: written in {listed(map(ledger.paths, files), 3)} since the list was last updated"
        if fresh:
            yield f"take up the next task of the plan, {quoted(fresh.text, 200)} ({written})."
        else:
            yield f"check what was written for the last open tasks ({written})."
    elif task is not None:
        files = listed(map(ledger.paths, ledger.edited_since_plan), 4)
        since = f" (edited since the list was last updated: {files})" if files else ""
        yield f"finish the task {quoted(task.text, 200)}{since}."
    elif fresh:
        yield f"take up the next task of the plan, {quoted(fresh.text, 200)}."


def _whole_after(red: TestRun, ledger: WorkLedger) -> str:
    if not red.narrow:
        return ""
    whole = next((run for run in reversed(ledger.checks) if run.kind == red.kind and not run.narrow), None)
    return f", then the whole: {code(same_command(whole.command), 120)}" if whole else ""


def _then_others(red: TestRun, ledger: WorkLedger) -> str:
    """The checks of other kinds, whose newest run was before the newest edits."""
    newest = {run.kind: run for run in ledger.checks if run.kind != red.kind and not run.narrow}
    stale = [code(same_command(run.command), 120) for run in newest.values() if run.edited_since]
    return f"; then run {' and '.join(stale)}: not run since the last edits" if stale else ""


def _complaint(failing: tuple[str, ...], summary: str) -> str:
    return (
        f"it failed: {listed(map(code, failing), 4)}"
        if failing
        else f"it said {code(_first_of(summary), 160)}"
    )


def _first_of(summary: str) -> str:
    """The state has them all."""
    first, *others = summary.split(" / ")
    return f"{first} (and {len(others)} more below)" if others else first
