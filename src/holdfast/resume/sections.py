"""What a briefing says after its first lines: the user's words, decisions, state, work at hand, map."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from holdfast.base.text import end_of, one_line, same_command, start_of
from holdfast.model.gathered import (
    Choice,
    CommandUse,
    Failure,
    FileUse,
    Gathered,
    Happening,
    Insight,
    Recorded,
    Review,
    Turn,
)
from holdfast.resume import ledger as facts
from holdfast.resume.briefing import Statement
from holdfast.resume.ledger import WorkLedger
from holdfast.resume.now import goal_room, goes_on, title_of
from holdfast.resume.rendering import (
    code,
    conclusion,
    condensed,
    fenced,
    finding,
    gist,
    listed,
    prose,
    quoted,
)

# ── what the user wants ───────────────────────────────────────────────────────────────────────────

_WHOLE_MESSAGE = 400
_OBJECTS = re.compile(
    r"^(?:no\b|nope|stop(?=[,.! ]*$|[,.!])|undo|revert|that'?s (?:not|wrong)|not quite|don'?t"
    r"|i (?:did not|didn'?t))",
    re.IGNORECASE,
)
_PINNED = -1
_TOLD_WITH_A_TURN = 520
SAID = "recorded user messages"
OTHERS = "recorded actions"
_KINDS = {"assistant_response": "agent", "system_event": "event", "pause_started": "at the start"}


def wants(found: Gathered, room: int, *, outcomes: bool = True) -> Iterator[Statement]:
    """`outcomes`: with what came of each; a summary beside it tells that better."""
    yield from _given(found)
    yield from _recorded(found, room)
    turns = _without_repeats(found.turns)
    brief, turns = _brief_ones(turns)
    if brief:
        said = "; ".join(quoted(turn.said) for turn in brief)
        text = f"Said earlier, in few words: {said}"
        yield Statement("wants", "user messages", text, 2, index=brief[-1].index, counts=len(brief))
    for place, turn in enumerate(turns):
        following = turns[place + 1] if place + 1 < len(turns) else None
        if following is None and len(turn.said) <= goal_room(room) and "\n" not in turn.said:
            continue  # it stands in the first line, whole
        age = len(turns) - place
        yield _turn(turn, following, age, room) if outcomes else _words_of(turn, age == 1, room)
    yield from _agreed_plan(found, room)
    yield from _refused(found)


def _brief_ones(turns: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    """Older messages of a few words that settle nothing ("commit this"), and the others."""
    older = turns[:-_RECENT_TURNS]
    brief = [
        turn
        for turn in older
        if len(turn.said) <= _FEW_WORDS and not (turn.asked or turn.constraint or turn.correction)
    ]
    return brief, [turn for turn in turns if turn not in brief]


_RECENT_TURNS = 5
_FEW_WORDS = 60


def _agreed_plan(found: Gathered, room: int) -> Iterator[Statement]:
    """It is what the work follows, until something else was asked for."""
    if found.plan is None:
        return
    at_work = not any(
        turn.index > found.plan.index and len(turn.said) > _WHOLE_MESSAGE for turn in found.turns
    )
    text = condensed(found.plan.text, max(500, min(3500, room // 3 if at_work else room // 5)))
    lead = "The plan that the user agreed to:"
    least = max(300, min(2400, room // 4) if at_work else min(900, room // 10))
    short = f"{lead}\n{fenced(condensed(found.plan.text, least))}"
    yield Statement("wants", "plans", f"{lead}\n{fenced(text)}", 1 if at_work else 5, short, found.plan.index)


def _given(found: Gathered) -> Iterator[Statement]:
    """What the work is for, and the rules that hold for all of it."""
    if found.took_over:
        before = f"holdfast context {found.took_over}"
        yield Statement(
            "wants",
            "requests",
            f"The session began with the handover of {prose(found.took_over)}; {code(before)} prints it.",
            1,
        )
    if found.issue and found.turns:  # without talk it is the goal
        yield Statement("wants", "issue", f"Issue: {prose(found.issue, 300)}", 1)
    if found.issue_text:
        text = quoted(condensed(found.issue_text, 1500))
        yield Statement(
            "wants",
            "issue",
            f"Its description: {text}",
            2,
            f"Its description: {quoted(condensed(found.issue_text, 225))}",
        )
    for rule in found.constraints:
        yield Statement("wants", "rules", f"Holds throughout: {quoted(rule, 2000)}", _PINNED)


def _recorded(found: Gathered, room: int) -> Iterator[Statement]:
    """What was recorded while the session wound down."""
    for place, one in enumerate(found.recorded):
        if one.kind == "user_message":
            text = quoted(condensed(one.text, min(2000, int(room * 0.6))))
            yield Statement(
                "wants", SAID, f"Said while winding down: {text}", _PINNED if one.rule else 1, index=place
            )
    for one in reversed(found.recorded):
        if one.kind != "user_message":
            rank = 6 if one.kind == "tool_call" else 3
            yield Statement("state", OTHERS, f"Recorded while winding down: {prose(_told(one), 600)}", rank)


def _told(one: Recorded) -> str:
    kind = _KINDS.get(one.kind)
    return f"{kind}: {one.text}" if kind else one.text


def _without_repeats(turns: Iterable[Turn]) -> list[Turn]:
    """Of words said twice, the newer."""
    newest = {one_line(turn.said): turn for turn in turns}
    return sorted(newest.values(), key=lambda turn: turn.index)


def _turn(turn: Turn, following: Turn | None, age: int, room: int) -> Statement:
    """`age` counts from the latest message, which is 1."""
    is_latest = following is None
    rule = turn.constraint or turn.correction
    most = max(_WHOLE_MESSAGE, room * 2 // 5 if is_latest else room // 4 if age < 3 else min(600, room // 12))
    words = _quotation(turn.said, most, is_latest) if age < 3 else quoted(_beginning(turn.said, most))
    asked = _asked(turn)
    short = quoted(
        condensed(turn.said, max(225, room // 7)) if is_latest else _beginning(turn.said, _WHOLE_MESSAGE)
    )
    rank = 0 if is_latest else 1 if rule or turn.asked else 2
    if age >= _OLD and not turn.asked:  # what came of it has been worked on since
        following = None
    return Statement(
        "wants",
        "user messages",
        f"{asked}{words}{_outcome(turn, following, _TOLD_WITH_A_TURN if age < 5 else 280)}",
        rank,
        f"{asked}{short}{_outcome(turn, following, _short_outcome(age, room))}",
        turn.index,
    )


def _short_outcome(age: int, room: int) -> int:
    if room < _SMALL:
        return 0
    return 180 if age < 9 else 110


_SMALL = 5_000
_OLD = 6


def _words_of(turn: Turn, is_latest: bool, room: int) -> Statement:
    words = condensed(turn.said, max(_WHOLE_MESSAGE, room // 6)) if is_latest else None
    text = f"{_asked(turn)}{quoted(words or _beginning(turn.said, _WHOLE_MESSAGE))}"
    rules = is_latest or turn.constraint or turn.correction or bool(turn.asked)
    return Statement("wants", "user messages", text, 1 if rules else 4, "", turn.index)


def _beginning(text: str, most: int) -> str:
    """What older words were about their beginning says; how they end is kept for what is asked there."""
    if len(text) <= most:
        return text
    return f"{start_of(one_line(text), most - 100)} […] {end_of(one_line(text), 90)}"


def _asked(turn: Turn) -> str:
    if turn.after:
        return f"(after the agent's {quoted(turn.after)}) "
    return f"{quoted(turn.asked, 420)} → " if turn.asked else ""


def _quotation(text: str, most: int, is_latest: bool) -> str:
    short = condensed(text, most)
    return f"\n{fenced(short)}" if "\n" in short and (len(short) > 300 or is_latest) else quoted(short)


def _outcome(turn: Turn, following: Turn | None, most: int) -> str:
    if following is None:
        return ""
    if _OBJECTS.match(following.said) and not following.said.rstrip().endswith("?") and not turn.asked:
        return " → the user objected, see the next"
    if not turn.reported:
        return " → stopped by the user" if turn.cut_short else ""
    told = gist(turn.reported, most) if most else ""
    return f" → {told}" if told else ""


def _refused(found: Gathered) -> Iterator[Statement]:
    """Only where the user then had it another way: what was done after all is not refused."""
    done = {one.text for one in found.happened if one.outcome == "ok"}
    for one in found.happened:
        if one.text in done:
            continue
        if one.outcome == "interrupted" and one.kind in ("shell", "edit", "write", "delete"):
            deed = "" if one.kind == "shell" else "an edit of "
            text = f"The user refused or stopped {deed}{code(one.text, 160)}"
            yield Statement("wants", "refused steps", text, 2, index=one.index)


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────

_MOST_CHOICES = 4
_MOST_CAUSES = 3
_REJECTS = re.compile(
    r"^(?:no\b|nope|undo|revert|that'?s (?:not|wrong)|not quite|don'?t|i (?:did not|didn'?t))", re.IGNORECASE
)
_SET_OUT = re.compile(
    r"^(?:now )?(?:let me|let's|i'll|i will|i'm going to)\b.{0,40}\b(?:check|look|audit|read|find"
    r"|search|fix|update|run|verify|invoke|start|begin)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:root cause|the (?:issue|problem|bug|cause|culprit|reason) (?:is|was)|turns out|is "
    r"caused by|this happens|because)\b",
    re.IGNORECASE,
)


_LEAD_IN = re.compile(
    r"^(?:now )?(?:let me|let's|i'll|i will|i should|i need to|we (?:can|should|need to)) ", re.IGNORECASE
)
_SINCE_WHEN = re.compile(
    r"\bsince (?:the )?(?:last|then|yesterday|today|session start)\b|^later\b", re.IGNORECASE
)


def decisions(found: Gathered) -> Iterator[Statement]:
    known = " ".join(gist(turn.reported, _TOLD_WITH_A_TURN) for turn in found.turns[:-1])
    for place, choice in enumerate(reversed(found.choices[-40:])):
        if place < 8 and (text := _choice(choice, found.turns)) and choice.description not in known:
            yield Statement(
                "decisions", "decisions", text, 4 if place < _MOST_CHOICES else 8, index=choice.index
            )
    causes = [one for one in found.insights if _CAUSE.search(one.text) and not one.text.endswith("…")]
    since = _since(found)
    causes = [one for one in causes if one.text not in known and one.index >= since]
    for insight in reversed(_longest(causes)[-_MOST_CAUSES:]):
        text = f"The agent's diagnosis, unchecked: {quoted(insight.text, 280)}"
        yield Statement("decisions", "findings", text, 5, index=insight.index)


def _longest(insights: list[Insight]) -> list[Insight]:
    """Of two that say the same, the one that says more."""
    return [
        one for one in insights if not any(one.text in other.text for other in insights if other is not one)
    ]


def _choice(choice: Choice, turns: tuple[Turn, ...]) -> str:
    text = prose(f"{choice.description}, {choice.rationale}" if choice.rationale else choice.description, 300)
    after = next((turn for turn in turns if turn.index > choice.index), None) if choice.index else None
    if _SET_OUT.match(text) or _SINCE_WHEN.search(text):
        return ""
    told = _LEAD_IN.sub("", text, count=1)
    text = told if told == text else f"{told[:1].upper()}{told[1:]}"
    if after is not None and _REJECTS.match(after.said):
        return f"Rejected by the user ({quoted(after.said, 120)}): {text}"
    stated = choice.rationale and re.match(r"[A-Z`]", text) and not text.endswith((":", "…", "either"))
    return text if stated or choice.index == 0 else ""


# ── state ─────────────────────────────────────────────────────────────────────────────────────────


def state(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    for change in found.drift:
        lead = "" if change.startswith("Cannot tell") else "Changed since the pause: "
        yield Statement("state", "changes since", f"{lead}{prose(change, 300)}", 0)
    if found.stopped_because and found.messages:  # without talk it is the first thing that is told
        yield Statement(
            "state", "state", f"The session ended because: {quoted(found.stopped_because, 200)}", 2
        )
    yield from _git(found, ledger)
    yield from _checks(ledger)
    for text in facts.error_lines(ledger):
        yield Statement("state", "errors", text, 2)
    if waiting := ledger.open_tasks():
        few = facts.open_tasks_line(ledger, 4)
        text = facts.open_tasks_line(ledger, 20)
        yield Statement("state", "open tasks", text, 2, few, counts=len(waiting))
        if text := facts.done_tasks_line(ledger):
            yield Statement("state", "done tasks", text, 3)
    yield from _reviews(found)
    yield from _reports(found, room)


def _git(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    for text in facts.git_lines(ledger):
        yield Statement("state", "commits" if text.startswith("Commits") else "git", text, 3)
    if text := facts.uncommitted_line(ledger):
        yield Statement(
            "state", "git", facts.uncommitted_line(ledger, 8), 3, facts.uncommitted_line(ledger, 3)
        )
    since = _steps_since(found, ledger.git.status.index) if ledger.git.status else 0
    if since <= _NEW and (text := facts.status_line(ledger, since, 8)):
        yield Statement("state", "git", text, 3, facts.status_line(ledger, since, 3))
    git = found.git
    if git.head and not any(git.head.startswith(one.identifier or "?") for one in git.commits[-1:]):
        yield Statement("state", "git", f"HEAD at the pause: {_head(git.head, git.head_at_start)}", 4)
    if git.uncompared:
        names = listed(map(ledger.paths, git.uncompared), 6)
        yield Statement(
            "state",
            "git",
            f"May have uncommitted changes (only a git filter such as LFS can tell): {names}",
            4,
        )


_NEW = 40
"""Steps; what git showed before that has mostly been overtaken."""


def _steps_since(found: Gathered, index: int) -> int:
    return sum(1 for one in found.happened if one.index > index and one.outcome)


def _head(head: str, at_start: str) -> str:
    """Whose commit it is nobody knows; whether it was there before is known where the start is."""
    if not at_start:
        return code(head[:12])
    if head == at_start:
        return f"{code(head[:12])}, as when the work began"
    return f"{code(head[:12])}; it was {code(at_start[:12])} when the work began"


def _checks(ledger: WorkLedger) -> Iterator[Statement]:
    for text in facts.check_lines(ledger):
        yield Statement("state", "tests", text, 3)


def _reviews(found: Gathered) -> Iterator[Statement]:
    """Those that the workflow itself keeps: whether others were acted on cannot be told by rule."""
    for review in found.reviews:
        if is_told(review):
            for comment in review.comments:
                yield Statement(
                    "state",
                    "review comments",
                    f"Not acted on, from {prose(review.reviewer, 60)}: {quoted(comment, 240)}",
                    4,
                )


def is_told(review: Review) -> bool:
    return not review.addressed and not review.index


def _reports(found: Gathered, room: int) -> Iterator[Statement]:
    """In full where the latest request led to it; the work has gone on from an older one."""
    since = _since(found)
    for report in reversed(found.reports[-3:]):
        lead = f"A sub-agent reported on {quoted(report.about, 100)}: "
        told = _gist(report.text)
        if report.index < since and len(told) < _TELLS_SOMETHING:
            continue
        short = f"{lead}{quoted(told, 420)}"
        most = max(300, min(1400, room // 8))
        full = f"{lead}\n{fenced(condensed(report.text, most))}" if report.index >= since else short
        yield Statement("state", "sub-agent reports", full, 5, short, report.index)


def _gist(text: str) -> str:
    """The sentences that name something; a report without any by its beginning and end."""
    return gist(_OF_ITSELF.sub("", text), 400) or condensed(text, 300)


_TELLS_SOMETHING = 60
_OF_ITSELF = re.compile(
    r"(?:I(?: have|'ve)? (?:now )?(?:completed|gathered|explored|analy[sz]ed|reviewed|finished)|Now I have"
    r"|All (?:unit |integration )?tests pass)\b[^.\n]*[.:]"
)


# ── the work at hand ──────────────────────────────────────────────────────────────────────────────

_GROUPS = 8
_FINISHED = ("answered", "spoke", "asked")


def half_done(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    since = _since(found)
    steps = [one for one in found.happened if one.index >= since and one.kind != "user"]
    if found.stop.kind in _FINISHED and not goes_on(found):
        yield from _closing(found, room)
        return
    groups = list(_joined(_groups(steps)))
    shown = groups[-_GROUPS:]
    if len(groups) > len(shown):
        yield Statement("half-done", "steps", f"({len(groups) - len(shown)} steps before these)", 6)
    for place, group in enumerate(shown):
        age = len(shown) - 1 - place
        yield Statement(
            "half-done", "steps", _group(group, ledger), 3 if age < 3 else 5, index=group[0].index
        )
    yield from _plan(found, steps, room)
    yield from _thought(steps, room)
    yield from _report_before(found, room)
    yield from _unused(found, ledger, since)
    yield from _last_result(steps, room)
    yield from _hunks(found, ledger, since, room)


def _since(found: Gathered) -> int:
    """The newest message with something to do in it; "go on" belongs to the one before."""
    turns = [turn for turn in found.turns if len(turn.said) > 25] or list(found.turns)
    latest = turns[-1].index if turns else 0
    if found.plan and found.plan.index > latest:
        return found.plan.index
    if found.stop.kind == "unanswered" and len(turns) > 1:
        return turns[-2].index
    return latest


def _closing(found: Gathered, room: int) -> Iterator[Statement]:
    """The agent's closing words say best what it has done."""
    if len(found.last_words) > 150:
        text = condensed(found.last_words, max(400, min(1800, room // 5)))
        yield Statement(
            "half-done",
            "state",
            f"The agent's closing words:\n{fenced(text)}",
            3,
            f"The agent's closing words: {quoted(text, 300)}",
        )


def _groups(steps: list[Happening]) -> Iterator[list[Happening]]:
    """Words and the calls that followed them."""
    group: list[Happening] = []
    for one in steps:
        if one.kind in ("said", "thought") and any(step.kind not in ("said", "thought") for step in group):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _joined(groups: Iterable[list[Happening]]) -> Iterator[list[Happening]]:
    """What follows without a word of its own belongs to the words before."""
    open_group: list[Happening] = []
    for group in groups:
        words = [one for one in group if one.kind in ("said", "thought")]
        if open_group and all(finding(one.text)[1] < 0 for one in words):
            open_group = [*open_group, *(one for one in group if one not in words)]
            continue
        if open_group:
            yield open_group
        open_group = group
    if open_group:
        yield open_group


def _group(group: list[Happening], ledger: WorkLedger) -> str:
    words = [one for one in group if one.kind in ("said", "thought")]
    calls = [one for one in group if one.kind not in ("said", "thought")]
    said = max(words, key=lambda one: (finding(one.text)[1], one.kind == "said"), default=None)
    told, worth = finding(said.text) if said else ("", 0)
    if said and calls and worth < 0:
        told = ""  # "Let me look at this": the call says it
    lead = quoted(told, 260) if told else ""
    return " → ".join(part for part in (lead, "; ".join(_deeds(calls, ledger))) if part)


def _deeds(calls: list[Happening], ledger: WorkLedger) -> Iterator[str]:
    looked = [one for one in calls if one.kind in ("read", "search") and one.outcome != "error"]
    if looked:
        yield f"looked at {listed((_looked(one, ledger) for one in looked), 2)}"
    yield from dict.fromkeys(_deed(one, ledger) for one in calls if one not in looked)


def _looked(one: Happening, ledger: WorkLedger) -> str:
    return ledger.paths(one.text) if one.kind == "read" else code(one.text, 60)


_ENDED = {
    "error": " failed",
    "interrupted": " was refused or stopped",
    None: " (no result recorded)",
    "unknown": " (no result recorded)",
}
_LONG_COMMAND = 100


def _deed(one: Happening, ledger: WorkLedger) -> str:
    ended = _ENDED.get(one.outcome, "")
    if one.kind in ("edit", "write", "delete"):
        verb = {"edit": "edited", "write": "wrote", "delete": "removed"}[one.kind]
        names = f" ({listed(map(code, one.told.split(', ')), 4)})" if one.told and one.outcome == "ok" else ""
        return f"{verb} {ledger.paths(one.text)}{names}{ended}"
    if one.kind == "plan":
        return f"put its plan {quoted(title_of(one.text), 120)} to the user{ended}"
    told = f": {code(one.told, 150)}" if one.told else ""
    tool = "sub-agent " if one.kind == "agent" else ""
    what = code(one.text, 240)
    if one.about and len(one.text) > _LONG_COMMAND and not one.text.startswith(("git ", "printf")):
        what = f"{prose(one.about, 100)} ({code(one.text, 60)})"
    return f"{tool}{what}{ended}{told}"


_POINTS = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.MULTILINE)
_WANDERS = re.compile(r"\b(?:wait\b|hmm|re-?think|doesn't explain|on second thought)", re.IGNORECASE)


def _plan(found: Gathered, steps: list[Happening], room: int) -> Iterator[Statement]:
    """Where the agent set out what there is to do, in points: what is not among the steps is left."""
    plans = [
        one
        for one in steps
        if one.kind in ("said", "thought")
        and len(_POINTS.findall(one.text)) > 2
        and not _WANDERS.search(one.text)
    ]
    if plans and plans[-1] is not steps[-1] and plans[-1].text[:200] != found.last_words[:200]:
        text = conclusion(plans[-1].text, max(400, min(1400, room // 6)))
        lead = "The agent had set out, before the last steps above:"
        yield Statement(
            "half-done", "plans", f"{lead}\n{fenced(text)}", 4, f"{lead} {quoted(text, 300)}", plans[-1].index
        )


def _report_before(found: Gathered, room: int) -> Iterator[Statement]:
    """What a short request ("do it again") refers to."""
    if (
        found.stop.kind != "unanswered"  # then they are the last words
        and len(found.turns) > 1
        and len(found.turns[-1].said) < _SHORT_REQUEST
        and len(found.turns[-2].reported) > 200
    ):
        text = condensed(found.turns[-2].reported, max(400, min(1400, room // 6)))
        lead = "Before the latest message the agent had reported:"
        yield Statement(
            "half-done",
            "reports",
            f"{lead}\n{fenced(text)}",
            4,
            f"{lead} {quoted(text, 300)}",
            found.turns[-2].index,
        )


_SHORT_REQUEST = 70


def _thought(steps: list[Happening], room: int) -> Iterator[Statement]:
    """What the agent had in mind at the end, where it kept it to itself."""
    thoughts = [one for one in steps if one.kind in ("said", "thought")][-1:]
    if (
        thoughts
        and thoughts[-1].kind == "thought"
        and len(thoughts[-1].text) > 160
        and len(_POINTS.findall(thoughts[-1].text)) < 3
    ):
        text = conclusion(thoughts[-1].text, max(300, min(1200, room // 8)))
        yield Statement(
            "half-done",
            "thoughts",
            f"The agent's last thought: {quoted(text)}",
            4,
            f"The agent's last thought: {quoted(text, 220)}",
            thoughts[-1].index,
        )


def _unused(found: Gathered, ledger: WorkLedger, since: int) -> Iterator[Statement]:
    for one in [one for one in found.unused if one.index >= since][-3:]:
        text = f"Defined in {ledger.paths(one.path)}, and no edit so far uses it: {code(one.name)}"
        yield Statement("half-done", "edits", text, 3, index=one.index)


def _last_result(steps: list[Happening], room: int) -> Iterator[Statement]:
    """What came back last, where a line could not tell it: nobody need ask for it again."""
    last = next((one for one in reversed(steps) if one.outcome), None)
    if last and len(last.result) > _TOLD_IN_A_LINE and last.kind in ("shell", "search"):
        text = condensed(last.result, max(300, min(900, room // 12)))
        yield Statement(
            "half-done",
            "results",
            f"The last result, of {code(last.text, 120)}:\n{fenced(text)}",
            5,
            index=last.index,
        )


_TOLD_IN_A_LINE = 160


def _hunks(found: Gathered, ledger: WorkLedger, since: int, room: int) -> Iterator[Statement]:
    """What the newest edits put in, while nothing has been committed since."""
    open_edits = [one for one in found.edits if one.path in ledger.uncommitted and one.new.strip()]
    for age, edit in enumerate(reversed(open_edits)):
        if age and edit.index < since:
            break
        lead = f"{'The newest edit' if not age else 'The edit before it'}, in {ledger.paths(edit.path)}:"
        text = condensed(edit.new, max(300, min(1200, room // 8)))
        yield Statement(
            "half-done", "edits", f"{lead}\n{fenced(text)}", 4 if not age else 6, index=edit.index
        )
        if age == _HUNKS - 1:
            break


_HUNKS = 3


# ── map ───────────────────────────────────────────────────────────────────────────────────────────

_FILES_SHOWN = 14
_READ_SHOWN = 6
_NAMES = 4
_ROUTINE = re.compile(
    r"\b(?:tests?|lint|build|fmt|format|check|typecheck|vet|compile|make|install|start|run)\b"
)
_ONE_SPOT = re.compile(
    r"\b(?:grep|rg|find|sed|awk|cat|ls|head|tail|echo|cd|chmod|mkdir|mv|cp|rm|touch|which|git (?:diff|show"
    r"|add|log|reset|checkout|status|push|fetch|branch|stash))\b|\b[0-9a-f]{7,40}\b"
)
_COMMANDS_SHOWN = 6
_LONGEST_COMMAND = 160
_PIPED = re.compile(r"\|\s*(?:head|tail)\b")


def map_of(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    newest = sorted(found.files, key=lambda file: -file.last_index)
    changed = [file for file in newest if file.edits and ledger.paths.is_inside(file.path)]
    changed.sort(key=lambda file: -file.last_edit_index)
    talked = {name.text for name in found.names if name.talked}
    beside = _names_by_file(found, talked)
    plain: list[FileUse] = []
    common = Counter(one for file in changed for one in file.purposes)
    for place, file in enumerate(changed):
        names = _named(beside.get(file.path, []))
        own = [one for one in file.purposes if common[one] < _FOR_ALL]
        full = _changed(file, ledger, names, own)
        if full == ledger.paths(file.path):
            plain.append(file)
            continue
        yield Statement(
            "map",
            "files",
            full,
            4 if place < _FILES_SHOWN else 6,
            f"{ledger.paths(file.path)}{names}",
            file.last_index,
        )
    if plain:
        yield _one_line_of("Also changed", plain[:_FILES_SHOWN], ledger, 4)
    elsewhere = [file for file in newest if file.edits and not ledger.paths.is_inside(file.path)]
    if elsewhere:
        yield _one_line_of("Written outside of the repository", elsewhere[:3], ledger, 5)
    read = [file for file in newest if not file.edits and file.reads and ledger.paths.is_inside(file.path)]
    read.sort(key=lambda file: -(file.last_index + 12 * min(file.reads, 5)))
    if read:
        yield _one_line_of("Also read", read[:_READ_SHOWN], ledger, 5)
    yield from _commands(found, ledger)


def not_named(found: Gathered, ledger: WorkLedger, summary: str) -> Iterator[Statement]:
    """Files that were changed and that a summary does not name."""
    files = [
        file
        for file in found.files
        if file.edits
        and not file.deleted
        and ledger.paths.is_inside(file.path)
        and file.path.rsplit("/", 1)[-1] not in summary
    ]
    if files:
        yield _one_line_of("Also changed, and not named in the summary", files[-_READ_SHOWN:], ledger, 4)


def _one_line_of(lead: str, files: list[FileUse], ledger: WorkLedger, rank: int) -> Statement:
    paths = "; ".join(ledger.paths(file.path) for file in files)
    return Statement("map", "files", f"{lead}: {paths}", rank, counts=len(files))


def _names_by_file(found: Gathered, talked: set[str]) -> dict[str, list[str]]:
    beside: dict[str, list[str]] = {}
    for name in found.names:
        if name.path and not name.value and name.talked:
            beside.setdefault(name.path, []).append(name.text.removesuffix("()"))
    for file in found.files:
        own = list(file.names)
        both = [one for one in own if one in talked or f"{one}()" in talked]
        beside[file.path] = list(dict.fromkeys((*both, *beside.get(file.path, [])[:2], *own)))[:_NAMES]
    return beside


def _changed(file: FileUse, ledger: WorkLedger, names: str, purposes: list[str]) -> str:
    deed = " (removed)" if file.deleted else " (new)" if file.created else ""
    by = f", written by {file.by}" if file.by else ""
    why = "; ".join(_lowered(prose(one, 150)) for one in purposes[:_PURPOSES])
    edited = f". Edited to {why}" if why and not file.deleted else ""
    return f"{ledger.paths(file.path)}{deed}{by}{names}{edited}"


_PURPOSES = 3
_FOR_ALL = 3
"""What was said of so many files says nothing of one."""


def _lowered(words: str) -> str:
    return f"{words[:1].lower()}{words[1:]}"


def _named(names: list[str]) -> str:
    return f": {', '.join(map(code, names[:_NAMES]))}" if names else ""


def _commands(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    """One for each purpose: of those that differ only in what is done with their output, the newest."""
    best: dict[str, CommandUse] = {}
    red = {same_command(run.command) for run in ledger.checks if not run.passed or run.unsure}
    for use in sorted(found.commands, key=lambda use: use.last_index):
        if use.last_failed or same_command(use.command) in red:
            continue
        if len(use.command) <= _LONGEST_COMMAND and not _ONE_SPOT.search(_PIPED.split(use.command)[0]):
            bare = same_command(use.command)
            best.pop(bare, None)
            best[bare] = use
    newest = max((use.last_index for use in best.values()), default=0)
    uses = sorted(best.values(), key=lambda use: -_use_worth(use, newest))
    if shown := uses[:_COMMANDS_SHOWN]:
        text = "; ".join(code(use.command, 200) for use in shown)
        yield Statement(
            "map", "commands", f"Commands that worked when last run: {text}", 4, counts=len(shown)
        )


def _use_worth(use: CommandUse, newest: int) -> float:
    worth = use.runs**0.6 * 0.5 ** ((newest - use.last_index) / 200)
    return worth * (3 if _ROUTINE.search(use.command) else 1) / (1 + len(use.command) / 200)


# ── earlier ───────────────────────────────────────────────────────────────────────────────────────

_SECTION = re.compile(r"(?:#+ *)?(?:\*\*)?(?:\d+\. +)?(?:\*\*)?([A-Z][\w ,/&'-]{3,50})(?:\*\*)?:(?:\*\*)?")
_LONGEST_TITLE = 80
_OUTDATED = re.compile(
    r"pending|current work|next step|user messages|files and code|open tasks", re.IGNORECASE
)
_SETTLED_SHOWN = 8
_TELLS_NOTHING = re.compile(r"CONFLICT \(|Error Trace:|Exit code|File does not exist|FAIL\b")


def earlier(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    if summary := lasting(found.earlier_summary):
        most = max(400, min(900, room // 10))
        lead = (
            "From the agent's own summary of what came before this record's window (what it "
            "called pending then is left out; what it says may have been overtaken since):"
        )
        yield Statement("earlier", "earlier summary", f"{lead}\n{fenced(_first_lines(summary, most))}", 7)
    still_open = set(ledger.open_errors)
    met = [
        one
        for one in found.failures
        if not one.lookup and one not in still_open and not _TELLS_NOTHING.match(one.message)
    ]
    if met:
        newest = [_settled(failure) for failure in reversed(met[-_SETTLED_SHOWN:])]
        text = f"Errors met: {'; '.join(newest)}"
        yield Statement("earlier", "errors", text, 5, index=met[-1].index, counts=len(newest))


def _first_lines(text: str, most: int) -> str:
    """As far as there is room: older words with holes in them are worse than fewer."""
    kept: list[str] = []
    left = most
    for line in text.split("\n"):
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join(kept).strip() or condensed(text, most)


def lasting(summary: str) -> str:
    """The parts of a summary that do not go out of date: what was wanted, found out and decided."""
    kept: list[str] = []
    outdated = False
    for line in summary.split("\n"):
        title = _SECTION.fullmatch(line.strip()) if len(line) < _LONGEST_TITLE else None
        if title and not line.startswith((" ", "\t", "-")):
            outdated = bool(_OUTDATED.search(title[1]))
        if not outdated and not _WAS_OPEN.search(line):
            kept.append(line)
    return "\n".join(kept).strip()


_WAS_OPEN = re.compile(
    r"in progress|not yet|haven'?t|still need|pending|remaining|to ?do\b|next step|currently", re.IGNORECASE
)


def _settled(failure: Failure) -> str:
    ended = {
        "fixed": "worked later",
        "workaround": prose(failure.notes, 80),
        "deferred": "put off by the agent",
        "unresolved": "",
    }[failure.resolution]
    return f"{code(failure.message, 130)}{f' ({ended})' if ended else ''}"
