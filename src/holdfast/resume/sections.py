"""What a briefing says after its first lines: the user's words, decisions, state, errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from holdfast.base.text import clipped, end_of, is_list_item, one_line, sentences, start_of
from holdfast.model.gathered import (
    Choice,
    Commit,
    Failure,
    Gathered,
    Insight,
    Recorded,
    Review,
    Turn,
)
from holdfast.model.message import is_go_ahead, latest_request
from holdfast.resume import ledger as facts
from holdfast.resume.at_hand import (
    CODE_NAME,
    FINISHED,
    is_reported_below,
    latest_turn_at,
    points_below,
    stands_in,
)
from holdfast.resume.briefing import Statement
from holdfast.resume.ledger import WorkLedger
from holdfast.resume.now import goal_room, goes_on
from holdfast.resume.rendering import (
    code,
    condensed,
    fenced,
    gist,
    listed,
    prose,
    quoted,
    without_code,
    without_output,
)
from holdfast.resume.summary import lasting, what_lasts

# ── what the user wants ───────────────────────────────────────────────────────────────────────────

_WHOLE_MESSAGE = 400
_OBJECTS = re.compile(
    r"^(?:no\b|nope|stop(?=[,.! ]*$|[,.!])|undo|revert|that(?:'?s| is) (?:not|wrong)|not quite|don'?t"
    r"|i (?:did not|didn'?t))",
    re.IGNORECASE,
)
_PINNED = -1
_TOLD_WITH_A_TURN, _TOLD_WITH_AN_OLDER, _TOLD_WITH_AN_OLD_ONE, _OF_LATE = 400, 200, 150, 4
SAID = "recorded user messages"
OTHERS = "recorded actions"
_KINDS = {"assistant_response": "agent", "system_event": "event", "pause_started": "at the start"}


def wants(found: Gathered, ledger: WorkLedger, room: int, *, outcomes: bool = True) -> Iterator[Statement]:
    """`outcomes`: with what came of each; a summary beside it tells that better."""
    yield from _given(found)
    yield from _recorded(found, room)
    turns = distinct(found.turns)
    shown = [one.index for one in (latest_request(found.turns), found.turns[-1])] if found.turns else []
    below = found.turns[-2].index if is_reported_below(found) else -1
    brief, turns = _brief_ones(turns, answered=room >= _SMALL)
    if brief:
        said = "; ".join(quoted(turn.said) for turn in brief)
        text = f"Said earlier, in few words: {said}"
        yield Statement("wants", "user messages", text, 2, index=brief[-1].index, counts=len(brief))
    for place, turn in enumerate(turns):
        following = turns[place + 1] if place + 1 < len(turns) else None
        is_whole = len(turn.said) <= goal_room(room) and "\n" not in turn.said
        if following is None and turn.index in shown and is_whole:
            continue  # it stands in the first line, whole
        age = len(turns) - place
        if turn.index == below or (turn.reported and turn.reported == found.last_words):
            following = None  # what came of it stands in the work at hand, or in the first lines
        yield _turn(turn, following, age, room, ledger) if outcomes else _words_of(turn, age == 1, room)
    yield from _agreed_plan(found, room)
    yield from _refused(found)


def _brief_ones(turns: list[Turn], *, answered: bool) -> tuple[list[Turn], list[Turn]]:
    """Older messages of a few words that settle nothing ("commit this"), and the others.

    `answered`: there is room to tell questions with what the agent said to them.
    """
    older = turns[:-_RECENT_TURNS]
    brief = [
        turn
        for turn in older
        if len(turn.said) <= _FEW_WORDS
        and not (turn.asked or turn.constraint or turn.correction)
        and not (answered and _is_question(turn))
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
    plan = without_code(found.plan.text)  # what was done of it stands in the files
    text = condensed(plan, max(500, min(3500, room // 3 if at_work else room // 5)))
    lead = "The plan that the user agreed to:"
    least = max(300, min(2400, room // 4) if at_work else min(900, room // 10))
    short = f"{lead}\n{fenced(condensed(plan, least))}"
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
        room = (1500, 225)
        whole, short = (f"Its description: {quoted(condensed(found.issue_text, most))}" for most in room)
        yield Statement("wants", "issue", whole, 2, short)
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
    others = [one for one in found.recorded if one.kind != "user_message"]
    for number, one in reversed([*enumerate(others, 1)]):
        rank = 6 if one.kind == "tool_call" else 3
        newest = ", the newest" if number == len(others) else ""
        when = f" ({number} of {len(others)}{newest})" if len(others) > 1 else ""
        yield Statement("state", OTHERS, f"Recorded while winding down{when}: {prose(_told(one), 600)}", rank)


def _told(one: Recorded) -> str:
    kind = _KINDS.get(one.kind)
    return f"{kind}: {one.text}" if kind else one.text


def distinct(turns: Iterable[Turn]) -> list[Turn]:
    """Of words said twice, the newer; none that ask for nothing.

    What came of a mere "go on" came of what was asked before it.
    """
    newest: dict[str, Turn] = {}
    before = None
    for turn in turns:
        words = one_line(turn.said)
        if _NO_REQUEST.fullmatch(turn.said.strip()) or (is_go_ahead(turn.said) and not _asked(turn)):
            if before is not None:
                reported = turn.reported or newest[before].reported
                newest[before] = replace(newest[before], reported=reported, cut_short=turn.cut_short)
            continue
        newest[words], before = turn, words
    kept = sorted(newest.values(), key=lambda turn: turn.index)
    return [turn for turn, after in zip_longest(kept, kept[1:]) if turn and not _is_said_again(turn, after)]


def _is_said_again(turn: Turn, after: Turn | None) -> bool:
    """Whether the next message begins like it: it was sent before it was complete."""
    begins = one_line(turn.said)[:_SAME_BEGINNING]
    return after is not None and len(begins) == _SAME_BEGINNING and one_line(after.said).startswith(begins)


_SAME_BEGINNING = 60
_NO_REQUEST = re.compile(r"(?:hi|hello|hey|thanks?(?: you)?)[.! ]*", re.IGNORECASE)


def _turn(turn: Turn, following: Turn | None, age: int, room: int, ledger: WorkLedger) -> Statement:
    """`age` counts from the latest message, which is 1."""
    is_latest = age == 1
    rule = turn.constraint or turn.correction
    most = max(
        _WHOLE_MESSAGE,
        min(_LONGEST_REQUEST, room * 2 // 5) if is_latest else room // 4 if age < 3 else min(600, room // 12),
    )
    said = turn.said if is_latest else without_output(turn.said)
    words = _quotation(said, most, is_latest) if age < 3 else quoted(_beginning(said, most))
    asked = _asked(turn)
    short = quoted(condensed(said, max(225, room // 7)) if is_latest else _beginning(said, _WHOLE_MESSAGE))
    rank = 0 if is_latest else 1 if rule or turn.asked else 2
    if age >= _OLD and not turn.asked and not _is_answered(turn, following):
        following = None  # what came of it has been worked on since
    most_told = (
        _TOLD_WITH_A_TURN if age < _OF_LATE else _TOLD_WITH_AN_OLDER if age < _OLD else _TOLD_WITH_AN_OLD_ONE
    )
    return Statement(
        "wants",
        "user messages",
        f"{asked}{words}{_outcome(turn, following, most_told, ledger)}",
        rank,
        f"{asked}{short}{_outcome(turn, following, _short_outcome(age, room), ledger)}",
        turn.index,
        longer=_AFTER_THE_MAP if age >= _OLD and not turn.asked else 0,
    )


def _is_answered(turn: Turn, following: Turn | None) -> bool:
    """Whether it is a question, and the user left its answer standing."""
    doubted = following is not None and (following.correction or _DOUBTS.search(following.said))
    return _is_question(turn) and not doubted


def _is_question(turn: Turn) -> bool:
    return turn.said.rstrip(" )\"'").endswith("?")


def _short_outcome(age: int, room: int) -> int:
    if room < _SMALL:
        return 0
    return 180 if age < _OLD else 0


_LONGEST_REQUEST = 4_800
_AFTER_THE_MAP = 5
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
    return f"{quoted(turn.asked, 900)} → " if turn.asked else ""


def _quotation(text: str, most: int, is_latest: bool) -> str:
    short = condensed(text, most)
    return f"\n{fenced(short)}" if "\n" in short and (len(short) > 300 or is_latest) else quoted(short)


def _outcome(turn: Turn, following: Turn | None, most: int, ledger: WorkLedger) -> str:
    if following is None:
        return ""
    if _OBJECTS.match(following.said) and not following.said.rstrip().endswith("?") and not turn.asked:
        return " → the user objected, see the next"
    if not turn.reported:
        return " → stopped by the user" if turn.cut_short else ""
    told = facts.checked(_told_of(turn, most), ledger)
    return f"\n  → {told}" if told else ""


def _told_of(turn: Turn, most: int) -> str:
    return gist(turn.reported, most, lists=most > _TOLD_WITH_AN_OLD_ONE) if most else ""


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
_MOST_FOUND_EARLIER = 6
_REJECTS = re.compile(
    r"^(?:no\b|nope|undo|revert|that'?s (?:not|wrong)|not quite|don'?t|i (?:did not|didn'?t))", re.IGNORECASE
)


def decisions(found: Gathered, room: int) -> Iterator[Statement]:
    """What was recorded as decided, what the user turned down, what the agent had found out before."""
    for place, choice in enumerate(reversed(found.choices[-40:])):
        if text := _choice(choice, found.turns):
            yield Statement(
                "decisions", "decisions", text, 4 if place < _MOST_CHOICES else 8, index=choice.index
            )
    shown = [turn for turn in found.turns[-_OLD:-1] or found.turns if turn.reported]
    told = " ".join(_told_of(turn, _TOLD_WITH_A_TURN) for turn in shown if turn is not found.turns[-1])
    finished = found.stop.kind in FINISHED and not goes_on(found)
    told += found.last_words if finished else ""
    since = found.messages if finished else latest_turn_at(found)
    agreed = found.plan.index if found.plan else -1  # what was weighed before it stands in it
    for commit in found.git.commits[-_COMMITS_TOLD:]:
        if (why := _reason_of(commit)) and not stands_in(why, told):
            told += f" {why}"
            text = f"From the message of commit {code(commit.identifier or commit.subject)}: {quoted(why)}"
            yield Statement("decisions", "decisions", text, 5, index=commit.index)
    newest = max((one.index for one in found.insights), default=-1)
    earlier = [
        one
        for one in found.insights
        if agreed < one.index
        and one.worth >= _WORTH_KEEPING
        and (one.index < since or one.index < newest)
        and ((one.said and one.index < since) or _is_acted_on(one, found))
        and not _NO_REASON.search(one.text)
        and not _objected(one, found.turns)
        and not stands_in(one.text, told)
    ]
    for insight in _best(earlier, _MOST_FOUND_EARLIER, max(500, min(1800, room // 6))):
        who = "The agent" if insight.said else "The agent, in thought (edits followed)"
        yield Statement("decisions", "findings", f"{who}: {quoted(insight.text)}", 5, index=insight.index)


_COMMITS_TOLD, _OF_A_COMMIT = 4, 300


def _reason_of(commit: Commit) -> str:
    """The sentences of its message that say why; points that only say what are none."""
    prose_alone = "\n".join(line for line in commit.why.split("\n") if not is_list_item(line))
    told = [one for one in sentences(prose_alone) if _SAYS_WHY.search(one)]
    return clipped(" ".join(told), _OF_A_COMMIT) if told else ""


_SAYS_WHY = re.compile(
    r"\b(?:because|since|so that|due to|to (?:avoid|prevent|keep|ensure)|instead of|rather than|without this"
    r"|otherwise|previous(?:ly)?|would|caus(?:e[sd]?|ing)|fix(?:es)? (?:an? |the )?(?:issue|bug|problem))\b",
    re.IGNORECASE,
)


def _is_acted_on(one: Insight, found: Gathered) -> bool:
    """Whether later edits are about a name that it gives: by their text, else by what they changed.

    Of the edits themselves only the newest are kept; of each file, what its edits changed.
    """
    names = set(CODE_NAME.findall(one.text))
    since = [file for file in found.files if file.last_edit_index > one.index]
    is_gone = any(name in file.dropped for file in since for name in names)
    if is_gone and not (one.said or _SAYS_CAUSE.search(one.text)):
        return False
    soon = (edit for edit in found.edits if one.index < edit.index <= one.index + _SOON)
    if any(name in edit.new for edit in soon for name in names):
        return True
    changed = {name for file in since for name in file.names}
    replaced = [text for file in since for pair in file.replaced for text in pair]
    return not names.isdisjoint(changed) or any(name in text for text in replaced for name in names)


_SAYS_CAUSE = re.compile(r"\b(?:problem|issue|cause|bug|because|since|why|fix)\b", re.IGNORECASE)
_SOON = 20


def _choice(choice: Choice, turns: tuple[Turn, ...]) -> str:
    """What a workflow recorded; of what the agent said on the way only what the user turned down."""
    text = prose(f"{choice.description}, {choice.rationale}" if choice.rationale else choice.description, 300)
    place = next((place for place, turn in enumerate(turns) if turn.index > choice.index), 0)
    after, put_to_user = turns[place] if place else None, turns[place - 1].reported if place else ""
    own = after is not None and choice.description[:60] in one_line(put_to_user)
    if choice.index and after is not None and own and _REJECTS.match(after.said):
        return f"Rejected by the user ({quoted(after.said, 120)}): {text}"
    return "" if choice.index else text


def _objected(insight: Insight, turns: tuple[Turn, ...]) -> bool:
    """Whether the user's next words turned it down or doubted it."""
    after = next((turn for turn in turns if turn.index > insight.index), None)
    return after is not None and (after.correction or _DOUBTS.search(after.said) is not None)


_DOUBTS = re.compile(
    r"\b(?:but|clearly|question|not true|makes no sense|not really|still (?:the same|not|fails?|broken)"
    r"|didn'?t (?:work|help))\b",
    re.IGNORECASE,
)


def _best(insights: list[Insight], most: int, room: int) -> list[Insight]:
    """Those that say most, the newer before the older, in their order."""
    count = max(1, len(insights) - 1)

    def worth(place: int) -> float:
        one = insights[place]
        return one.worth + _FOR_THE_NEWEST * place / count - (0 if one.said else _LESS_FOR_A_THOUGHT)

    kept: list[int] = []
    for place in sorted(range(len(insights)), key=worth, reverse=True):
        thoughts = sum(not insights[each].said for each in kept)
        if not insights[place].said and thoughts >= _MOST_THOUGHTS:
            continue
        if len(kept) < most and len(insights[place].text) <= room:
            kept.append(place)
            room -= len(insights[place].text)
    return [insights[place] for place in sorted(kept)]


_NO_REASON = re.compile(
    r"\bexisting tests?\b|^(?:\W*[\w.]+\W*){1,4}\balready (?:has|have|works?|exists?|validates?)\b"
    r"|^(?:(?:another|an?)? ?(?:alternative|option)|added|tests?\b|now\b|ah\b|oh\b|good\b|looking at"
    r"|(?:but )?wait\b|actually\b|if\b|for \w+ \w+,"
    r"|let me|i see\b|however\b|we already\b|user \w+:|got it\b|recommendation\b|limitations?\b|lines? \d"
    r"|(?:should|would|could|will|has|is|are)\b"
    r"|(?:the|it|this) [^.]{0,40}\b(?:would be|must be|must have)\b)"
    r"|\bwould (?:just|only|simply)\b"
    r"|^(?!.*\b(?:problem|issue|bug|cause|because|fix)\b).*\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"
    r"|\boptions? (?:become|are)\b|\b(?:lint(?:er)?|nolint|typo|imports?|compil\w+)\b|\u2705",
    re.IGNORECASE,
)
"""What was weighed, seen, reported or fixed on the way."""
_FOR_THE_NEWEST, _LESS_FOR_A_THOUGHT, _MOST_THOUGHTS = 3, 3, 3
_WORTH_KEEPING = 4


# ── state ─────────────────────────────────────────────────────────────────────────────────────────


def state(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    for change in found.drift:
        lead = "" if change.startswith(("Cannot tell", "A later session")) else "Changed since the pause: "
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
    if found.todos_index < 0 and (text := facts.done_tasks_line(ledger)):  # a plan's own, not an agent's list
        yield Statement("state", "done tasks", text, 3)
    yield from _reviews(found)
    yield from _reports(found, room)


def _git(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    for text in facts.git_lines(ledger):
        yield Statement("state", "commits" if text.startswith("Commits") else "git", text, 3)
    if text := facts.uncommitted_line(ledger):
        yield Statement(
            "state",
            "git",
            facts.uncommitted_line(ledger, marked=True),
            3,
            facts.uncommitted_line(ledger, 3, marked=True),
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
    """In full where the latest request led to it; of an older one what it was about: the work has gone on."""
    since = latest_turn_at(found)
    rank = 0 if room > _TINY else 2
    for report in reversed(found.reports[-_REPORTS_SHOWN:]):
        lead = f"A sub-agent reported on {quoted(report.about, 100)}: "
        short = f"{lead}{quoted(_gist(report.text, max(140, min(_OF_A_REPORT, room // 20))))}"
        if report.index < since:
            yield Statement("state", "sub-agent reports", short, rank, index=report.index)
            continue
        most = max(300, min(1400, room // 8))
        full = f"{lead}\n{fenced(condensed(report.text, most))}"
        yield Statement("state", "sub-agent reports", full, rank, short, report.index)


_REPORTS_SHOWN, _TINY, _OF_A_REPORT = 2, 1500, 320


def _gist(text: str, most: int) -> str:
    """The sentences that name something; a report without any by its beginning and end."""
    return gist(_OF_ITSELF.sub("", text), most) or condensed(text, most)


_OF_ITSELF = re.compile(
    r"(?:I(?: have|'ve)? (?:now )?(?:completed|gathered|explored|analy[sz]ed|reviewed|finished)|Now I have"
    r"|All (?:unit |integration )?tests pass)\b[^.\n]*[.:]"
)


# ── earlier ───────────────────────────────────────────────────────────────────────────────────────

_SETTLED_SHOWN = 4
_TELLS_NOTHING = re.compile(
    r"CONFLICT \(|Error Trace:|Exit code|File does not exist|FAIL\b|File has not been read|String to replace"
    r"|Found \d+ matches of the string|File content \(|File has been (?:modified|unexpectedly)"
    r"|\(eval\):|--- FAIL|Request failed|command not found"
)


def earlier(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    most = max(400, min(1500, room // 8))
    if summary := what_lasts(lasting(found.earlier_summary), most):
        lead = "What came before this record's window, by the agent's own summary (it may be overtaken):"
        yield Statement("earlier", "earlier summary", f"{lead}\n{fenced(summary)}", 5)
    still_open, since = set(ledger.open_errors), latest_turn_at(found)
    met = [
        one
        for one in found.failures
        if (one.index >= since or one.resolution == "deferred")
        and not one.lookup
        and one not in still_open
        and not _TELLS_NOTHING.search(one.message)
    ]
    newest = [(one, _meant_by(one, found)) for one in reversed(met)]
    told = [_settled(one, meant) for one, meant in newest if meant or one.resolution in _ANOTHER_WAY]
    if told := told[:_SETTLED_SHOWN]:
        text = points_below("Errors met on the way, and what became of them:", told)
        yield Statement("earlier", "errors", text, 5, index=met[-1].index, counts=len(told))


_ANOTHER_WAY = ("workaround", "deferred")


def _meant_by(failure: Failure, found: Gathered) -> str:
    """What the agent made of it, said soon after."""
    soon = range(failure.index + 1, failure.index + _SOON_AFTER + 1)
    return next((one.text for one in found.insights if one.index in soon), "")


_SOON_AFTER = 4


def _settled(failure: Failure, meant: str) -> str:
    ended = {
        "fixed": "" if meant else "worked later",
        "workaround": prose(failure.notes, 80),
        "deferred": "put off by the agent",
        "unresolved": "",
    }[failure.resolution]
    told = "; ".join(part for part in (quoted(meant, 300) if meant else "", ended) if part)
    return f"{code(failure.message, 160)}{f' → {told}' if told else ''}"
