"""What a briefing says of the work at hand: the last steps, what they found, the newest edit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest

from holdfast.base.text import clipped, counted, one_line
from holdfast.model.gathered import (
    Gathered,
    Happening,
    Insight,
    Listing,
)
from holdfast.model.message import asks_nothing_new
from holdfast.resume import ledger as facts
from holdfast.resume.briefing import LUXURY, Statement
from holdfast.resume.ledger import WorkLedger
from holdfast.resume.now import goes_on, staged, title_of
from holdfast.resume.rendering import (
    code,
    conclusion,
    condensed,
    fenced,
    gist,
    listed,
    prose,
    quoted,
)

FINISHED = ("answered", "spoke", "asked")
_STEPS_SHOWN, _STEPS_AT_LEAST = 6, 3


def half_done(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    since = latest_turn_at(found)
    steps = [one for one in found.happened if one.index >= since and one.kind != "user"]
    if found.stop.kind in FINISHED and not goes_on(found):
        yield from _closing(found, ledger, room)
        return
    whole = _set_out(found, steps, room)
    thought = None if whole else _last_thought(found, steps)
    yield from _found_out(found, since, whole or thought)
    if thought:
        after = sum(1 for one in steps if one.outcome and one.index > thought.index)
        ago = f", {counted(after, 'step')} before the end" if after else ""
        lead = f"The agent's last thought{ago} (its own view, checked by nothing):"
        text = conclusion(thought.text, _plan_room(room))
        short = f"{lead} {quoted(clipped(one_line(thought.text), 300))}"
        yield Statement("half-done", "findings", f"{lead}\n{fenced(text)}", 3, short, thought.index)
    if whole:
        after = sum(1 for one in steps if one.outcome and one.index > whole.index)
        ago = f", {counted(after, 'step')} before the end" if after else ""
        lead = f"The agent had set out{ago}:"
        text = f"{lead}\n{fenced(conclusion(whole.text, _plan_room(room)))}"
        yield Statement("half-done", "plans", text, 4, index=whole.index)
    listings = [] if whole else [one for one in _listed(found, since, room) if one.index != _at(thought)]
    yield from listings
    yield from _report_before(found, ledger, room)
    yield from _places(steps, ledger, " ".join(one.text for one in listings))
    yield from _staged(found, ledger)
    yield from _last_steps(steps, ledger)
    yield from _unused(found, ledger, since)
    yield from _last_results(steps, room)
    yield from _newest_edit(found, ledger, since, room)


def latest_turn_at(found: Gathered) -> int:
    """The newest message with something to do in it; "go on" belongs to the one before."""
    turns = [turn for turn in found.turns if len(turn.said) > 25 and not asks_nothing_new(turn.said)]
    turns = turns or list(found.turns)
    latest = turns[-1].index if turns else 0
    if found.plan and found.plan.index > latest:
        return found.plan.index
    if found.stop.kind == "unanswered" and len(turns) > 1:
        return turns[-2].index
    return latest


def _closing(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    """The agent's closing words say best what it has done."""
    if len(found.last_words) > 150:
        text = facts.checked(condensed(found.last_words, max(400, min(1800, room // 5))), ledger)
        yield Statement(
            "half-done",
            "state",
            f"The agent's closing words:\n{fenced(text)}",
            3,
            f"The agent's closing words: {quoted(text, 300)}",
        )


def _found_out(found: Gathered, since: int, whole: Happening | None) -> Iterator[Statement]:
    """The last verdict on the latest request: those before it led to it, or were wrong."""
    told = whole.index + 1 if whole and _VERDICT.search(whole.text) else 0
    settled = max(since, _reported_at(found), _passed_at(found), told)
    new = [
        one
        for one in found.insights
        if one.index >= settled and _is_whole(one.text) and not one.text.startswith("I see the ")
    ]
    last = next((one for one in reversed(new) if whole is None or one.index != whole.index), None)
    if last is None or stands_in(last.text, found.last_words):
        return
    sure = _is_borne_out(last, found)
    lead = "The agent had found out" if sure else "The agent's newest view (nothing later bears it out)"
    yield Statement("half-done", "findings", f"{lead}: {quoted(last.text)}", 2, index=last.index)


_VERDICT = re.compile(r"\b(?:problem|issue|cause|bug|fault|fix|found it|there it is)\b", re.IGNORECASE)


def _passed_at(found: Gathered) -> int:
    """What was thought before a test passed led to it."""
    return max((run.index for run in found.checks if run.kind == "test" and run.passed), default=-1)


def _reported_at(found: Gathered) -> int:
    """Where the user has spoken since: what the agent thought before it reported is settled."""
    said = [one.index for one in found.happened if one.kind == "said"]
    over = found.stop.kind == "unanswered" and said and len(found.last_words) > _SHORTEST_REPORT
    return said[-1] if over else -1


_SHORTEST_REPORT = 150


def _is_whole(text: str) -> bool:
    """No sentence that was cut, and none in which the agent still wavers."""
    return text.endswith((".", "!", ":", ")", "`", '"')) and not _WANDERS.search(text)


def _is_borne_out(one: Insight, found: Gathered) -> bool:
    """Whether a later edit, run or statement is about a name that it gives."""
    names = set(CODE_NAME.findall(one.text))
    later = (step for step in found.happened if step.index > one.index and step.kind not in _NO_EVIDENCE)
    shown = [f"{step.text} {step.told}" for step in later if step.outcome in (None, "ok")]
    shown += [edit.new for edit in found.edits if edit.index > one.index]
    return any(name in text for text in shown for name in names)


CODE_NAME = re.compile(r"\b[a-z]\w*[A-Z_]\w+|\b[A-Z][a-z]+[A-Z]\w+|[\w-]{2,80}\.[a-z]{1,4}\b")
_NO_EVIDENCE = ("thought", "user", "read", "search")


def points_below(lead: str, points: Iterable[str]) -> str:
    return "".join((lead, *(f"\n  - {point}" for point in points)))


def _plan_room(room: int) -> int:
    return max(400, min(1500, room // 6))


_POINTS = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.MULTILINE)
_WANDERS = re.compile(r"\b(?:wait\b|hmm|re-?think|doesn't explain|on second thought)", re.IGNORECASE)


def _set_out(found: Gathered, steps: list[Happening], room: int) -> Happening | None:
    """The newest words in which the agent set out in points what there is; a thought where it is sure."""
    plans = [
        one
        for one in steps
        if one.kind == "said"
        and len(_POINTS.findall(one.text)) > 2
        and not _WANDERS.search(one.text)
        and len(one.text) <= _plan_room(room)
        and not _is_worked_through(one.index, one.text, found)
    ]
    return plans[-1] if plans and plans[-1].text[:200] != found.last_words[:200] else None


def _last_thought(found: Gathered, steps: list[Happening]) -> Happening | None:
    """What the agent had made of it all when it last thought, where it has said nothing since."""
    words = [one for one in steps if one.kind in ("said", "thought")]
    if not words or words[-1].kind != "thought" or found.stop.kind not in ("in_flight", "working"):
        return None
    return words[-1] if len(words[-1].text) >= _SHORTEST_THOUGHT else None


_SHORTEST_THOUGHT = 300


def _at(step: Happening | None) -> int:
    return -1 if step is None else step.index


def _listed(found: Gathered, since: int, room: int) -> Iterator[Statement]:
    """The lists of the newest words that name places or tests, else of the newest; and such a list before."""
    new = [
        one
        for one in found.listings
        if one.index >= since
        and one.lead
        and not _WANDERS.search(one.lead)
        and not stands_in(" ".join(one.items), _shown_of(found.last_words))
        and not _is_worked_through(one.index, " ".join(one.items), found)
    ]
    named = [one for one in new if sum(bool(_PLACE.search(item)) for item in one.items) * 2 > len(one.items)]
    newest = (named or new)[-1:]
    together = [one for one in new if newest and one.index == newest[0].index][-_LISTS_TOGETHER:]
    before = [one for one in named if one not in together][-1:] if len(together) == 1 else []
    for one in (*before, *together):
        items: list[str] = []
        left = max(300, min(1100, room // 8))
        for item in one.items:
            left -= len(item)
            if left < 0:
                break
            items.append(item)
        yield Statement("half-done", "plans", _list_of(one, items), 4, index=one.index, counts=len(items))


_LISTS_TOGETHER = 3


def _is_worked_through(index: int, text: str, found: Gathered) -> bool:
    """Whether the files that it names, one of many at most excepted, were edited since."""
    names = set(_FILE.findall(text))
    edited = [file.path for file in found.files if file.last_edit_index > index]
    left = sum(not any(path.endswith(name) for path in edited) for name in names)
    return len(names) > 1 and left <= (len(names) >= _MANY_FILES)


_MANY_FILES = 5
_FILE = re.compile(r"[\w./-]*\w\.[a-z]{1,4}\b")


def _shown_of(words: str) -> str:
    """Of the last words what the first lines quote."""
    return (
        words if len(words) <= _WORDS_SHOWN else f"{words[: _WORDS_SHOWN // 2]} {words[-_WORDS_SHOWN // 2 :]}"
    )


_WORDS_SHOWN = 460


def _list_of(one: Listing, items: list[str]) -> str:
    more = len(one.items) - len(items) + one.left_out
    lead = prose(one.lead.rstrip(":"), 160)
    what = "planned" if _PLANS.match(lead) else f"listed ({quoted(lead)})"
    return points_below(f"The agent {what}:", [*map(prose, items), *([f"and {more} more"] if more else [])])


_PLACE = re.compile(r"\w\.\w{1,4}:\d|\bTest[A-Z]|\btest_\w|`[\w./-]+\.\w{1,4}`")
_PLANS = re.compile(
    r"(?:ok,? |so |now )?(?:let me (?:create|plan|do|first|also need)|i (?:need|should|will|have) to|i'll"
    r"|i should|steps)\b",
    re.IGNORECASE,
)


def _places(steps: list[Happening], ledger: WorkLedger, listed_above: str) -> Iterator[Statement]:
    """Where the newest search found something, and what a failed check names; not what was edited since."""
    searches = 0
    edits = [one for one in steps if one.kind in ("edit", "write")]
    for one in reversed([one for one in steps if one.outcome][-_STEPS_SEARCHED:]):
        checked = one.kind == "shell" and "grep" not in one.text
        edited = {each.text for each in edits if each.index > one.index}
        places = [place for place in one.places if not any(map(_of_file(place), edited))]
        if not checked and (_LOOKS_UP.search(one.text) or _lines_in(places) > _MOST_LINES):
            continue
        if places and sum(_file_in(place) in listed_above for place in places) * 2 > len(places):
            searches += 1
            continue
        older = searches and not checked and (edited or len(places) > _FEW_PLACES)
        if not places or older or (searches >= _SEARCHES_SHOWN and not checked):
            continue
        where = listed((code(place) for place in map(ledger.paths.short, places)), _PLACES_SHOWN)
        what = f"{code(one.text, 100)} {'named' if checked else 'found'}"
        since = " (not edited since)" if edited else ""
        yield Statement("half-done", "results", f"{what}{since}: {where}", 4, index=one.index)
        searches += 1
        if checked:
            return


_LOOKS_UP = re.compile(r"\b(?:func|def|class|type|fn|interface|struct)\b|^(?!(?:git )?(?:grep|rg)\b).*\|")
"""Where something is defined, and what was picked out of another program's output: no places of work."""
_MOST_LINES = 10


def _lines_in(places: list[str]) -> int:
    return sum(1 + place.count(",") for place in places)


def _of_file(place: str) -> Callable[[str], bool]:
    path = _LINES_AT_END.sub("", place).removeprefix("./")
    return lambda edited: edited.endswith(path)


def _file_in(place: str) -> str:
    return _LINES_AT_END.sub("", place).rsplit("/", 1)[-1]


_STEPS_SEARCHED, _SEARCHES_SHOWN, _FEW_PLACES = 15, 3, 4
_LINES_AT_END = re.compile(r":[\d, ]+$")
_PLACES_SHOWN = 12


def _staged(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    """Of a staging file by file: how far it has come."""
    if sides := staged(found, ledger):
        done, left = (listed(map(code, paths), _FILES_STAGED) for paths in sides)
        text = f"Since the latest request `git add` has named {done}, and of what was written not yet {left}."
        yield Statement("half-done", "steps", text, 2)


_FILES_STAGED = 12


def _last_steps(steps: list[Happening], ledger: WorkLedger) -> Iterator[Statement]:
    deeds = list(_deeds([one for one in steps if one.kind not in ("said", "thought")], ledger))
    if not deeds:
        return
    before = len(deeds) - _STEPS_SHOWN
    lead = f"The last steps, oldest first{f' ({before} before these)' if before > 0 else ''}:"
    text = points_below(lead, deeds[-_STEPS_SHOWN:])
    short = points_below("The last steps, oldest first:", deeds[-_STEPS_AT_LEAST:])
    yield Statement("half-done", "steps", text, 3, short, steps[-1].index)


def _deeds(calls: list[Happening], ledger: WorkLedger) -> Iterator[str]:
    """A line each; what was only looked at in between is gathered in one."""
    looked: list[Happening] = []
    last = ""
    for one, following in zip_longest(calls, calls[1:]):
        if one.told and following and following.told == one.told and following.kind == one.kind == "shell":
            continue  # the same was run again, or seen again in another way
        if one.kind in ("read", "search") and one.outcome != "error":
            looked.append(one)
            continue
        if looked:
            yield f"looked at {listed((_looked(each, ledger) for each in looked), 4)}"
            looked = []
        deed = _deed(one, ledger)
        if deed != last:
            yield deed
        last = deed
    if looked:
        yield f"looked at {listed((_looked(each, ledger) for each in looked), 4)}"


def _looked(one: Happening, ledger: WorkLedger) -> str:
    where = f" ({one.told})" if one.told else ""
    return f"{ledger.paths(one.text) if one.kind == 'read' else code(one.text, 60)}{where}"


_ENDED = {
    "error": " failed",
    "interrupted": " was refused or stopped",
    None: " (no result recorded)",
    "unknown": " (no result recorded)",
}
_COMMENT = re.compile(r"^(?:\s*#[^\n]*\n)+")
_LONG_COMMAND, _RESULT_IN_A_LINE = 100, 360


def _deed(one: Happening, ledger: WorkLedger) -> str:
    ended = _ENDED.get(one.outcome, "")
    if one.kind in ("edit", "write", "delete"):
        verb = {"edit": "edited", "write": "wrote", "delete": "removed"}[one.kind]
        names = f" ({listed(map(code, one.told.split(', ')), 4)})" if one.told and one.outcome == "ok" else ""
        return f"{verb} {ledger.paths(one.text)}{names}{ended}"
    if one.kind == "plan":
        return f"put its plan {quoted(title_of(one.text), 120)} to the user{ended}"
    told = f": {code(one.told, _RESULT_IN_A_LINE)}" if one.told else ""
    tool = "sub-agent " if one.kind == "agent" else ""
    what = code(one.text, 240)
    if one.about and len(one.text) > _LONG_COMMAND and not one.text.startswith(("git ", "printf")):
        what = f"{prose(one.about, 100)} ({code(_COMMENT.sub('', one.text), 110)})"
    return f"{tool}{what}{ended}{told}"


def is_reported_below(found: Gathered) -> bool:
    return (
        not (found.stop.kind in FINISHED and not goes_on(found))
        and found.stop.kind != "unanswered"  # then they are the last words
        and len(found.turns) > 1
        and len(found.turns[-1].said) < _SHORT_REQUEST
        and len(found.turns[-2].reported) > 200
        and not (found.plan and found.plan.index > found.turns[-2].index)  # it came of that report
    )


def _report_before(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    """What a short request ("do it again") refers to."""
    if is_reported_below(found):
        before = found.turns[-2]
        text = facts.checked(condensed(before.reported, max(400, min(1400, room // 6))), ledger)
        lead = "Before the latest message the agent had reported:"
        short = f"{lead} {quoted(facts.checked(gist(before.reported, 300), ledger))}"
        yield Statement("half-done", "reports", f"{lead}\n{fenced(text)}", 3, short, before.index)


_SHORT_REQUEST = 70


def _unused(found: Gathered, ledger: WorkLedger, since: int) -> Iterator[Statement]:
    for one in [one for one in found.unused if one.index >= since][-3:]:
        text = f"Defined in {ledger.paths(one.path)}, and no edit so far uses it: {code(one.name)}"
        yield Statement("half-done", "edits", text, 3, index=one.index)


def _last_results(steps: list[Happening], room: int) -> Iterator[Statement]:
    """What came back last, where a line could not tell it: nobody need ask for it again."""
    newest = [one for one in steps if one.outcome][-_RESULTS_SHOWN:]
    for place, last in enumerate(newest, 1):
        told = last.told or last.places or last.kind not in ("shell", "search") or _is_diff(last.result)
        if told or len(last.result) <= _TOLD_IN_A_LINE or any(one.kind in _WRITES for one in newest[place:]):
            continue
        text = _ends_of(last.result, max(300, min(700, room // 14)))
        lead = "The last result" if place == len(newest) else "What came back"
        rank = 5 if place == len(newest) else LUXURY
        about = f"{prose(last.about, 80)}, " if last.about and len(last.text) > _LONG_COMMAND else ""
        yield Statement(
            "half-done",
            "results",
            f"{lead}, of {about}{code(last.text, 120)}:\n{fenced(text)}",
            rank,
            index=last.index,
        )


def _is_diff(result: str) -> bool:
    """The middle of one tells nothing."""
    lines = result.split("\n")
    return sum(line.startswith(("+", "-", "@@")) for line in lines) * 2 > len(lines)


def _ends_of(result: str, most: int) -> str:
    """Its first lines and its last ones, whole."""
    lines = [clipped(line, _LONGEST_LINE) for line in result.split("\n") if line.strip()]
    first: list[str] = []
    left = most * 2 // 3
    while lines and len(lines[0]) < left:
        left -= len(lines[0]) + 1
        first.append(lines.pop(0))
    last: list[str] = []
    left += most // 3
    while lines and len(lines[-1]) < left:
        left -= len(lines[-1]) + 1
        last.insert(0, lines.pop())
    return "\n".join((*first, *(["…"] if lines else []), *last))


_RESULTS_SHOWN, _LONGEST_LINE = 3, 160
_WRITES = ("edit", "write", "delete")
_TOLD_IN_A_LINE = 160


def _newest_edit(found: Gathered, ledger: WorkLedger, since: int, room: int) -> Iterator[Statement]:
    """While nothing has been committed since; what it defines stands in the map as well."""
    edit = next((one for one in reversed(found.edits) if one.path in ledger.uncommitted), None)
    if edit is None or not edit.new.strip() or edit.index < since:
        return
    text = condensed(edit.new, max(300, min(1200, room // 8)))
    if not all(_DEFINES.match(line) for line in text.split("\n") if line.strip(" \t…")):
        told = f"The newest edit, in {ledger.paths(edit.path)}:\n{fenced(text)}"
        yield Statement("half-done", "edits", told, 4, index=edit.index)


_DEFINES = re.compile(r"\s*(?:export |async |pub )*(?:func|def|class|type|function|fn) ")


_WORD = re.compile(r"[`\w./-]{4,}")
_MOSTLY = 0.7


def stands_in(text: str, told: str) -> bool:
    """Whether most of its words are there already."""
    words = set(_WORD.findall(text))
    return len(words & set(_WORD.findall(told))) >= _MOSTLY * len(words)
