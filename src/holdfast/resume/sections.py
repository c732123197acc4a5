"""What a briefing says after its first lines: the user's words, decisions, state, work at hand, map."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from holdfast.base.text import one_line, same_command, sentences
from holdfast.model.gathered import (
    Choice,
    CommandUse,
    Failure,
    FileUse,
    Gathered,
    Happening,
    Recorded,
    Review,
    Turn,
)
from holdfast.resume import ledger as facts
from holdfast.resume.briefing import Statement
from holdfast.resume.ledger import WorkLedger
from holdfast.resume.now import goal_room, goes_on
from holdfast.resume.rendering import code, condensed, fenced, listed, prose, quoted, times

# ── what the user wants ───────────────────────────────────────────────────────────────────────────

_WHOLE_MESSAGE = 400
_OBJECTS = re.compile(
    r"^(?:no\b|nope|stop|undo|revert|that'?s (?:not|wrong)|not quite|don'?t|i (?:did not|didn'?t))",
    re.IGNORECASE,
)
_PINNED = -1
SAID = "recorded user messages"
OTHERS = "recorded actions"
_KINDS = {"assistant_response": "agent", "system_event": "event", "pause_started": "at the start"}


def wants(found: Gathered, room: int) -> Iterator[Statement]:
    yield from _given(found)
    yield from _recorded(found, room)
    turns = _without_repeats(found.turns)
    for place, turn in enumerate(turns):
        following = turns[place + 1] if place + 1 < len(turns) else None
        if following is None and len(turn.said) <= goal_room(room) and "\n" not in turn.said:
            continue  # it stands in the first line, whole
        yield _turn(turn, following, len(turns) < 3, room)
    yield from _refused(found)


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
    if found.issue:
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


def _turn(turn: Turn, following: Turn | None, is_goal: bool, room: int) -> Statement:
    is_latest = following is None
    rule = turn.constraint or turn.correction
    most = max(_WHOLE_MESSAGE, room // (4 if is_latest or is_goal else 12))
    words = _quotation(turn.said, most, is_latest)
    asked = f"{quoted(turn.asked, 420)} → " if turn.asked else ""
    least = f"{asked}{quoted(condensed(turn.said, max(225, room // 7) if is_latest else _WHOLE_MESSAGE))}"
    rank = 1 if is_latest or rule or turn.asked else 2
    return Statement(
        "wants", "user messages", f"{asked}{words}{_outcome(turn, following)}", rank, least, turn.index
    )


def _quotation(text: str, most: int, is_latest: bool) -> str:
    short = condensed(text, most)
    return f"\n{fenced(short)}\n " if "\n" in short and (len(short) > 300 or is_latest) else quoted(short)


def _outcome(turn: Turn, following: Turn | None) -> str:
    if following is None:
        return ""
    if _OBJECTS.match(following.said) and not following.said.rstrip().endswith("?"):
        return " → the user objected, see the next"
    if not turn.reported:
        return " → stopped by the user" if turn.cut_short else ""
    told = _summary(turn.reported, 260)
    return f" → {told}" if told else ""


def _summary(text: str, most: int) -> str:
    """As many whole sentences as fit; the first is cut where it is too long by itself."""
    told = ""
    for sentence in sentences(text):
        piece = prose(sentence)
        if not piece.strip("-*_ ") or piece.endswith((":", "?")) or re.match(r"(?i)(?:now )?let me\b", piece):
            continue
        if told and len(told) + len(piece) >= most:
            break
        told = f"{told} {piece}" if told else prose(piece, most)
    return told


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

_MOST_CHOICES = 6
_MOST_CAUSES = 5
_REJECTS = re.compile(
    r"^(?:no\b|nope|undo|revert|that'?s (?:not|wrong)|not quite|don'?t|i (?:did not|didn'?t))", re.IGNORECASE
)
_SET_OUT = re.compile(
    r"^(?:now )?(?:let me|let's|i'll|i will|i'm going to)\b.{0,40}\b(?:check|look|audit|read|find"
    r"|search|fix|update|run|verify|invoke)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:root cause|the (?:issue|problem|bug|cause|culprit|reason) (?:is|was)|turns out|is "
    r"caused by|this happens|because)\b",
    re.IGNORECASE,
)


def decisions(found: Gathered) -> Iterator[Statement]:
    for place, choice in enumerate(reversed(found.choices[-40:])):
        if place < 12 and (text := _choice(choice, found.turns)):
            yield Statement(
                "decisions", "decisions", text, 4 if place < _MOST_CHOICES else 8, index=choice.index
            )
    causes = [one for one in found.insights if _CAUSE.search(one.text) and not one.text.endswith("…")]
    for insight in reversed(causes[-_MOST_CAUSES:]):
        yield Statement("decisions", "findings", f"Found: {prose(insight.text, 280)}", 5, index=insight.index)


def _choice(choice: Choice, turns: tuple[Turn, ...]) -> str:
    text = prose(f"{choice.description}, {choice.rationale}" if choice.rationale else choice.description, 300)
    after = next((turn for turn in turns if turn.index > choice.index), None) if choice.index else None
    if _SET_OUT.match(text):
        return ""
    if after is not None and _REJECTS.match(after.said):
        return f"Rejected by the user ({quoted(after.said, 120)}): {text}"
    return text if choice.rationale or choice.index == 0 else ""


# ── state ─────────────────────────────────────────────────────────────────────────────────────────


def state(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    for change in found.drift:
        yield Statement("state", "changes since", f"Changed since the pause: {prose(change, 300)}", 0)
    if found.stopped_because:
        yield Statement(
            "state", "state", f"The session ended because: {quoted(found.stopped_because, 200)}", 2
        )
    yield from _git(found, ledger)
    yield from _checks(ledger)
    for text in facts.error_lines(ledger):
        yield Statement("state", "errors", text, 2)
    for place, text in enumerate(facts.task_lines(ledger)):
        yield Statement(
            "state", "open tasks" if text.startswith("Task,") else "done tasks", text, 2 if place < 20 else 5
        )
    yield from _reviews(found)
    yield from _reports(found, room)


def _git(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    for text in facts.git_lines(ledger):
        yield Statement("state", "commits" if text.startswith("Commits") else "git", text, 3)
    if text := facts.uncommitted_line(ledger):
        yield Statement(
            "state", "git", facts.uncommitted_line(ledger, 8), 3, facts.uncommitted_line(ledger, 3)
        )
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
    for report in reversed(found.reports[-3:]):
        lead = f"A sub-agent reported on {quoted(report.about, 100)}: "
        most = max(300, min(1400, room // 8))
        yield Statement(
            "state",
            "sub-agent reports",
            f"{lead}\n{fenced(condensed(report.text, most))}",
            5,
            f"{lead}{quoted(_gist(report.text), 420)}",
            report.index,
        )


_NAMED = re.compile(r"`[^`]+`|\b[a-z]\w*[A-Z_]\w+|\w\(\)")


def _gist(text: str) -> str:
    """The sentences that name something; a report without any by its beginning and end."""
    named = "\n".join(one for one in sentences(text) if _NAMED.search(one))
    return _summary(named, 400) or condensed(text, 300)


# ── the work at hand ──────────────────────────────────────────────────────────────────────────────

_GROUPS = 14
_FINISHED = ("answered", "spoke", "asked")


def half_done(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    since = _since(found)
    steps = [one for one in found.happened if one.index >= since and one.kind != "user"]
    if found.stop.kind in _FINISHED and not goes_on(found):
        yield from _closing(found, room)
        return
    groups = list(_groups(steps))
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
    yield from _hunk(found, ledger)


def _since(found: Gathered) -> int:
    """The newest message with something to do in it; "go on" belongs to the one before."""
    turns = [turn for turn in found.turns if len(turn.said) > 25] or list(found.turns)
    latest = turns[-1].index if turns else 0
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


def _group(group: list[Happening], ledger: WorkLedger) -> str:
    said = next((one for one in group if one.kind == "said"), None)
    thought = next((one for one in group if one.kind == "thought"), None)
    words = (
        quoted(_opening(said.text), 200)
        if said
        else f"(thought) {quoted(_opening(thought.text), 160)}"
        if thought
        else ""
    )
    calls = [one for one in group if one.kind not in ("said", "thought")]
    deeds = "; ".join(_deeds(calls, ledger))
    return " → ".join(part for part in (words, deeds) if part)


def _opening(text: str) -> str:
    return next((one for one in sentences(text) if len(one) > 24), one_line(text))


def _deeds(calls: list[Happening], ledger: WorkLedger) -> Iterator[str]:
    looked = [one for one in calls if one.kind in ("read", "search") and one.outcome != "error"]
    if looked:
        yield f"looked at {listed((_looked(one, ledger) for one in looked), 4)}"
    for one in calls:
        if one in looked:
            continue
        yield _deed(one, ledger)


def _looked(one: Happening, ledger: WorkLedger) -> str:
    return ledger.paths(one.text) if one.kind == "read" else code(one.text, 60)


def _deed(one: Happening, ledger: WorkLedger) -> str:
    ended = {
        "error": " failed",
        "interrupted": " was refused or stopped",
        None: " (no result recorded)",
        "unknown": " (no result recorded)",
    }.get(one.outcome, "")
    if one.kind in ("edit", "write", "delete"):
        verb = {"edit": "edited", "write": "wrote", "delete": "removed"}[one.kind]
        names = f" ({listed(map(code, one.told.split(', ')), 4)})" if one.told and one.outcome == "ok" else ""
        return f"{verb} {ledger.paths(one.text)}{names}{ended}"
    told = f": {code(one.told, 150)}" if one.told else ""
    tool = "sub-agent " if one.kind == "agent" else ""
    return f"{tool}{code(one.text, 150)}{ended}{told}"


_POINTS = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.MULTILINE)


def _plan(found: Gathered, steps: list[Happening], room: int) -> Iterator[Statement]:
    """Where the agent set out what there is to do, in points: what is not among the steps is left."""
    plans = [one for one in steps if one.kind in ("said", "thought") and len(_POINTS.findall(one.text)) > 2]
    if plans and plans[-1] is not steps[-1] and plans[-1].text[:200] != found.last_words[:200]:
        text = condensed(plans[-1].text, max(400, min(1400, room // 6)))
        lead = "The agent had set out, before the last steps above:"
        yield Statement(
            "half-done", "plans", f"{lead}\n{fenced(text)}", 4, f"{lead} {quoted(text, 300)}", plans[-1].index
        )


def _report_before(found: Gathered, room: int) -> Iterator[Statement]:
    """What a short request ("do it again") refers to."""
    if (
        len(found.turns) > 1
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
    thoughts = [one for one in steps if one.kind == "thought"]
    if thoughts and len(thoughts[-1].text) > 160 and len(_POINTS.findall(thoughts[-1].text)) < 3:
        text = condensed(thoughts[-1].text, max(300, min(1200, room // 8)))
        yield Statement(
            "half-done",
            "thoughts",
            f"The agent's last thought: {quoted(text)}",
            4,
            f"The agent's last thought: {quoted(text, 220)}",
            thoughts[-1].index,
        )


def _hunk(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    edit = found.last_edit
    if edit and edit.new.strip() and edit.path in ledger.uncommitted:
        yield Statement(
            "half-done",
            "edits",
            f"The newest edit, in {ledger.paths(edit.path)}, put in:\n{fenced(edit.new)}",
            6,
            index=edit.index,
        )


# ── map ───────────────────────────────────────────────────────────────────────────────────────────

_FILES_SHOWN = 14
_READ_SHOWN = 5
_NAMES = 4
_ROUTINE = re.compile(
    r"\b(?:tests?|lint|build|fmt|format|check|typecheck|vet|compile|make|install|start|run)\b"
)
_ONE_SPOT = re.compile(
    r"\b(?:grep|rg|find|sed|awk|cat|ls|head|tail|echo|cd|git (?:diff|show|add|log|reset"
    r"|checkout))\b|\b[0-9a-f]{7,40}\b"
)
_COMMANDS_SHOWN = 6


def map_of(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    newest = sorted(found.files, key=lambda file: -file.last_index)
    changed = [file for file in newest if file.edits and ledger.paths.is_inside(file.path)]
    changed.sort(key=lambda file: -file.last_edit_index)
    talked = {name.text for name in found.names if name.talked}
    beside = _names_by_file(found, talked)
    for place, file in enumerate(changed):
        rank = 4 if place < _FILES_SHOWN else 6
        yield Statement(
            "map", "files", _changed(file, ledger, beside), rank, ledger.paths(file.path), file.last_index
        )
    elsewhere = [file for file in newest if file.edits and not ledger.paths.is_inside(file.path)]
    read = [file for file in newest if not file.edits and file.reads]
    read.sort(key=lambda file: -(file.last_index + 12 * min(file.reads, 5)))
    for place, file in enumerate([*elsewhere[:2], *read][: _READ_SHOWN + 4]):
        rank = 5 if place < _READ_SHOWN else 7
        yield Statement(
            "map",
            "files",
            _read(file, ledger, beside),
            rank,
            f"{ledger.paths(file.path)} (read)" if not file.edits else "",
            file.last_index,
        )
    yield from _commands(found)


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


def _changed(file: FileUse, ledger: WorkLedger, beside: dict[str, list[str]]) -> str:
    deed = "removed" if file.deleted else "new" if file.created else f"edited {times(file.edits)}"
    if file.created and file.edits > 1:
        deed = f"new, edited {times(file.edits - 1)} since"
    by = f" by {file.by}" if file.by else ""
    return f"{ledger.paths(file.path)}, {deed}{by}{_named(beside.get(file.path, []))}"


def _read(file: FileUse, ledger: WorkLedger, beside: dict[str, list[str]]) -> str:
    deed = "written, outside of the repository" if file.edits else "only read"
    return f"{ledger.paths(file.path)}, {deed}{_named(beside.get(file.path, []))}"


def _named(names: list[str]) -> str:
    return f": {'; '.join(map(code, names[:_NAMES]))}" if names else ""


def _commands(found: Gathered) -> Iterator[Statement]:
    """One for each purpose: of those that differ only in what is done with their output, the newest."""
    best: dict[str, CommandUse] = {}
    for use in sorted(found.commands, key=lambda use: use.last_index):
        if use.runs > use.failures and not _ONE_SPOT.search(use.command.split("|")[0]):
            bare = same_command(use.command)
            best.pop(bare, None)
            best[bare] = use
    newest = max((use.last_index for use in best.values()), default=0)
    uses = sorted(best.values(), key=lambda use: -_use_worth(use, newest))
    for place, use in enumerate(uses[:_COMMANDS_SHOWN]):
        yield Statement(
            "map", "commands", f"Run: {code(use.command)}", 4 if place < 3 else 6, index=use.last_index
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
_SETTLED_SHOWN = 10


def earlier(found: Gathered, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    if summary := lasting(found.earlier_summary):
        most = max(600, min(2200, room // 5))
        lead = (
            "From the agent's own summary of what came before this record's window (what it "
            "called pending then is left out):"
        )
        yield Statement("earlier", "earlier summary", f"{lead}\n{fenced(condensed(summary, most))}", 5)
    still_open = set(ledger.open_errors)
    met = [
        one for one in found.failures if not one.message.startswith("CONFLICT (") and one not in still_open
    ]
    for failure in reversed(met[-_SETTLED_SHOWN:]):
        yield Statement("earlier", "errors", _settled(failure), 7, index=failure.index)


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
        "fixed": f"; it worked later{f' ({prose(failure.notes, 100)})' if failure.notes else ''}",
        "workaround": f"; {prose(failure.notes, 140)}",
        "deferred": "; put off by the agent",
        "unresolved": "; not tried again in the record" if not failure.lookup else "; it is not there",
    }[failure.resolution]
    return f"{code(failure.message, 200)} from {code(failure.doing, 90)}{ended}"
