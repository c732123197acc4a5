"""The conversation: what the user said, what the agent reported, what reviewers asked for."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from holdfast.base.text import clipped, end_of, head_and_tail, one_line, sentences
from holdfast.findings.rules.actions import Action
from holdfast.findings.rules.reasoning import Reasoning
from holdfast.model.gathered import Review, Turn
from holdfast.model.message import is_go_ahead

# ── phrases ───────────────────────────────────────────────────────────────────────────────────────

# The turns of phrase by which people mark a correction, a rule.
#
# Plain English cues, none of them tied to a project. A missed one costs an item of the
# briefing; a wrong one costs a line of it.


def _any_of(*phrases: str) -> str:
    return rf"\b(?:{'|'.join(phrases)})\b"


_OPENS_CORRECTION = _any_of(
    "no", "nope", "wait", "stop", "hold on", "actually", "not quite", "that'?s (?:not|wrong)", "but", "hmm",
    "you (?:forgot|missed|broke)", "undo", "revert",
)  # fmt: skip
CORRECTION = re.compile(
    f"^{_OPENS_CORRECTION}|"
    + _any_of(
        "instead of", "rather than", "shouldn'?t", "wrong", "doesn'?t make sense", "messed up",
        "why (?:did|are|is) (?:you|this|it)", "I (?:meant|said)", "questioning", "are you sure",
        "what do I miss",
    ),
    re.IGNORECASE,
)  # fmt: skip

_RULE = _any_of(
    "always", "never", "must(?:n'?t)?", "don'?t", "do not", "make sure", "ensure", "prefer", "avoid",
    "only use", "needs? to", "has to", "please keep", "from now on", "stick to", "no need to", "without",
)  # fmt: skip
# A question is no rule, unless it asks for one ("can you make sure that …?").
CONSTRAINT = re.compile(
    rf"{_RULE}(?!.*\?\s*$)|{_any_of('make sure', 'prefer', 'stick to')}", re.IGNORECASE | re.DOTALL
)

# ── turns ─────────────────────────────────────────────────────────────────────────────────────────

# The talk: what the user said, what the agent reported, chose and found out.

_SAID_KEPT = 12_000
_PROSE_KEPT = 5000
_FIRST_KEPT, _LAST_KEPT = 10, 300


@dataclass(slots=True)
class _Said:
    index: int
    said: str
    reported: str = ""
    stopping: bool = False
    cut_short: bool = False
    before: str = ""  # what the agent had said


class ConversationFinder:
    """Keeps the newest of what was said and looks at it closely only when asked, at the end."""

    def __init__(self) -> None:
        self._first: list[_Said] = []
        self._last: deque[_Said] = deque(maxlen=_LAST_KEPT)
        self._dropped = 0
        self._open: _Said | None = None
        self.reasoning = Reasoning()

    def user_said(self, index: int, text: str, *, stopping: bool = False) -> None:
        """``stopping``: said while refusing a step the agent wanted to take."""
        said = head_and_tail(text.strip(), _SAID_KEPT)
        if not said:
            return
        if self._open and not self._open.reported and one_line(self._open.said) == one_line(said):
            return  # the queue and the line it became say the same thing twice
        before = self._open.reported if self._open else ""
        self._close()
        self._open = _Said(index, said, stopping=stopping, before=before)

    def answered(self, index: int, question: str, answer: str) -> None:
        """What the user chose where a tool of the agent had asked."""
        before = self._open.reported if self._open else ""
        self._close()
        self._open = _Said(index, answer[:_SAID_KEPT], before=question or before)

    def interrupted(self) -> None:
        if self._open:
            self._open.cut_short = True

    def taken_back(self, first: int) -> None:
        """The user undid everything from this message on."""
        self._first = [said for said in self._first if said.index < first]
        self._last = deque((said for said in self._last if said.index < first), maxlen=_LAST_KEPT)
        self.reasoning.taken_back(first)
        if self._open and self._open.index >= first:
            self._open = None

    def went_on(self) -> None:
        if self._open:
            self._open.cut_short = False

    def agent_said(self, index: int, text: str) -> None:
        said = head_and_tail(text.strip(), _PROSE_KEPT)
        if not said:
            return
        self.reasoning.said(index, said)
        if self._open and not (self._open.reported and said.endswith(":")):
            self._open.reported = said  # "Now let me run it:" reports nothing

    def _close(self) -> None:
        if self._open is None:
            return
        if len(self._first) < _FIRST_KEPT:
            self._first.append(self._open)
        else:
            self._dropped += len(self._last) == _LAST_KEPT
            self._last.append(self._open)
        self._open = None

    @property
    def dropped(self) -> int:
        return self._dropped

    def turns(self) -> tuple[Turn, ...]:
        still_open = [self._open] if self._open else []
        return tuple(_turn(said) for said in (*self._first, *self._last, *still_open))


def _turn(said: _Said) -> Turn:
    words = said.said[:2000]
    return Turn(
        said.index,
        said.said,
        said.reported,
        correction=said.stopping or bool(CORRECTION.search(words)),
        constraint=bool(CONSTRAINT.search(words)),
        cut_short=said.cut_short,
        asked=question_answered(said.before, said.said),
        after=_said_after(said.before, said.said),
    )


_LEAD_IN = re.compile(
    r"^(?:(?:good|great|ok(?:ay)?|perfect|right|now|so|next|first|then|also|finally|alright|actually|yes)\b"
    r"[,.!;:-]*\s+)*"
    r"(?:(?:let me|let's|i'll|i will|i'm going to|i (?:also )?(?:need|have|want) to|i should"
    r"|we (?:need|have) to|need to|i can)\s+)?(?:(?:also|now|first|just|then|quickly)\s+)*"
    r"(?:update the (?:todo|task)s?(?: list)? and )?(?:(?:now|then)\s+)?",
    re.IGNORECASE,
)
_MEANT = re.compile(
    r"\b(?:let me|let's|now|i'll|i will|i need|i should|need to|next|then i|going to)\b|:$", re.IGNORECASE
)
_DOES = re.compile(
    r"(?:add|fix|update|remove|rename|replace|implement|create|write|move|change|use|extract|handle|wire"
    r"|simplify|convert|refactor|drop|delete|adjust|set|pass|return|introduce|split|merge|restore|improve)\b",
    re.IGNORECASE,
)
_NO_PURPOSE = re.compile(
    r"(?:check|look|read|see|view|understand|verify|examine|find|search|run|continue|proceed|start"
    r"|(?:implement|do|fix|update|apply|make|write) (?:it|this|that|these|the (?:edits?|changes?|code)))\b",
    re.IGNORECASE,
)
# "write the new version" says nothing that the edit does not say.
_SAYS_NOTHING = re.compile(
    r"\w+ (?:(?:the|both|all|each|this|that|these|those|a|new|old|first|second|next|last|other|remaining) )*"
    r"(?:function|version|file|code|spot|location|call ?site|caller|doc|test|edit|part|place|issue|problem"
    r"|bug|error|flow|logic|imports?|one|thing)s?(?: (?:too|now|again|as well))?$",
    re.IGNORECASE,
)
_PURPOSE_LENGTH = 130


def purpose_of(words: str) -> str:
    """What an edit is for, where the agent said so right before it: "rename `cpID` in `session.go`"."""
    meant = (one for one in reversed(sentences(words[-_PROSE_KEPT:])) if _MEANT.search(one))
    purposes = (_LEAD_IN.sub("", one, count=1).rstrip(" :.…") for one in meant)
    return next((clipped(one, _PURPOSE_LENGTH) for one in purposes if _is_purpose(one)), "")


def _is_purpose(words: str) -> bool:
    if len(words) < 12 or _NO_PURPOSE.match(words) or _SAYS_NOTHING.match(words):
        return False
    return words[0].islower() or _DOES.match(words) is not None


_ANSWER_LENGTH = 300
_FEW_WORDS = 40
_AFTER_LENGTH = 220
_QUESTION_LENGTH = 240
_OPTION_LENGTH = 170


_ASKS_BACK = re.compile(
    r"(?:can|could|would|will|should|do|does|is|are|what|why|how|where|when|which) "
    r"(?:you|we|i|it|this|that|the|there|about)\b",
    re.IGNORECASE,
)


def _asked_in_passing(before: str) -> bool:
    """A question mark inside of a quotation or in brackets: nobody was asked."""
    return before[before.rindex("?") + 1 :].lstrip("*_").startswith(('"', "\u201d", "\u2019", "'", ")", "`"))


def _said_after(before: str, said: str) -> str:
    """What the agent had asked or offered when the user said a few words that are no answer to a question."""
    if len(said) > _FEW_WORDS or question_answered(before, said):
        return ""
    if "?" not in before:
        return _proposed(before) if is_go_ahead(said) else ""
    return end_of(one_line(before[: before.rindex("?") + 1].splitlines()[-1]), _AFTER_LENGTH)


def _proposed(before: str) -> str:
    """What the agent offered to do, at the end of its words; without it there is nothing to agree to."""
    told = sentences(before[-_END_OF_WORDS:])[-_LAST_SENTENCES:]
    place = next((place for place in reversed(range(len(told))) if _OFFERS.search(told[place])), None)
    if place is None:
        return ""
    lead = told[place - 1 : place] if place and len(told[place]) < _SAYS_LITTLE else []
    return clipped(one_line(" ".join((*lead, told[place]))), _AFTER_LENGTH)


_END_OF_WORDS, _LAST_SENTENCES, _SAYS_LITTLE = 1_500, 4, 50
_OFFERS = re.compile(
    r"\b(?:i(?:'ll| will|'d| would| can| could| suggest| propose| recommend| plan)|i(?:'m| am) going to"
    r"|let me know|we (?:can|could|should)|next step|ready to|if you|want me|shall|say the word|just say"
    r"|ich (?:werde|würde|kann|könnte|schlage)|soll ich|sag)\b",
    re.IGNORECASE,
)


def question_answered(before: str, said: str) -> str:
    """What the agent had asked, where these words are short enough to be no more than an answer.

    With the points that the answer names: "1. no 2. yes" answers two questions, "B" takes an option.
    """
    points = _Points.last_in(before, _POINT_MARK)
    if points and _answers_in_points(said, points):
        return "; ".join(points.told(mark) for mark in points.items)
    if "option" in said.lower():
        points = _Points.last_in(before, _OPTION_MARK)
    asked = _question(before, said)
    if not points:
        return asked
    named = [points.told(mark) for mark in _marks_named(said, points)] if len(said) <= _ANSWER_LENGTH else []
    if asked and points.holds(asked):
        return f"{points.lead} {'; '.join(points.told(mark) for mark in points.items)}".strip()
    if asked and not named and _ASKS_WHICH.search(asked):
        named = [points.told(mark) for mark in points.items]
    options = f"[{'; '.join(named)}]" if named else ""
    return f"{asked} {options}".strip()


def _question(before: str, said: str) -> str:
    if len(said) > _ANSWER_LENGTH or "?" not in before:
        return ""
    if _asked_in_passing(before) or _ASKS_BACK.match(said):
        return ""
    end = before.rindex("?") + 1
    if len(said) > 60 and (said.rstrip().endswith("?") or before[end:].strip().count("\n") > 3):
        return ""  # a question of their own, or the agent had asked in passing
    line = one_line(before[:end].splitlines()[-1].replace("**", "")).lstrip("-*> ")
    told = sentences(line)
    asked = told[-1] if told else line
    if len(asked) < 40 and len(told) > 1:  # "Which one?" needs what stands before it
        asked = f"{told[-2]} {asked}"
    return asked if len(asked) <= _QUESTION_LENGTH else f"…{end_of(asked, _QUESTION_LENGTH)}"


_ASKS_WHICH = re.compile(
    r"\b(?:which|what(?:'s| is| are| would)? (?:your|you|the)|prefer\w*|thoughts|what do you think"
    r"|how (?:would|should|do) (?:you|we|i))\b",
    re.IGNORECASE,
)
_POINT_MARK = re.compile(
    r"^[\s>|*#_-]*(?:(?:Option|Approach|Question)\s+)?\(?([A-H]|\d{1,2})[.):](?:\*\*)?:?\s+(\S.*)$",
    re.IGNORECASE,
)
_OPTION_MARK = re.compile(
    r"^[\s>|*#_-]*(?:option|approach)\s+([A-H]|\d{1,2})\b[.):]?(?:\*\*)?:?\s+(\S.*)$", re.IGNORECASE
)
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_NAMED_POINT = re.compile(
    r"^\W{0,2}([A-H]|\d{1,2})(?:\b(?!['%/:.-]?\w)|[.)])"
    r"|\b(?:option|do|go with|take|pick|choose|use|think|like|prefer|want|fix|skip|drop|number|and|,)"
    r"\s+[#(]?([A-H]|\d{1,2})\b(?!['%/:.-]?\w| (?:is|are) \w+ing)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:^|[\s,;])(\d{1,2})[.):](?=\s)")


@dataclass(frozen=True, slots=True)
class _Points:
    """The last list of numbered or lettered points in what the agent said, and what led to it."""

    lead: str
    items: dict[str, str]

    @classmethod
    def last_in(cls, text: str, mark_of: re.Pattern[str]) -> _Points | None:
        lead, items, line_before = "", dict[str, str](), ""
        lines = text.split("\n")
        # An odd number of fences: the cut in the middle took one, and the text ends outside of code.
        in_code = sum(bool(_FENCE.match(line)) for line in lines) % 2 == 1
        for line in lines:
            in_code ^= _FENCE.match(line) is not None
            found = None if in_code else mark_of.match(line)
            if found:
                mark = found[1].upper()
                if mark in ("1", "A") or not items:
                    lead, items = line_before, {}
                items.setdefault(mark, one_line(found[2].replace("**", "").strip(" |")))
            elif line.strip() and not in_code:
                line_before = one_line(line.replace("**", "")).strip("# ")
        lead = lead if lead.endswith((":", "?")) else ""
        return cls(lead, items) if len(items) > 1 else None

    def told(self, mark: str) -> str:
        return f"{mark}: {_with_its_end(self.items[mark])}"

    def holds(self, asked: str) -> bool:
        """Whether that question is itself one of the points."""
        return any(asked.endswith(text) or text.endswith(asked[-20:]) for text in self.items.values())


def _with_its_end(text: str) -> str:
    if len(text) <= _OPTION_LENGTH or not text.endswith("?"):
        return clipped(text, _OPTION_LENGTH)
    return f"{clipped(text, _OPTION_LENGTH // 2)} {end_of(text, _OPTION_LENGTH // 2)}"


def _answers_in_points(said: str, points: _Points) -> bool:
    """Answers numbered as the points were."""
    marks = list(dict.fromkeys(_NUMBERED.findall(said)))
    return len(marks) > 1 and marks[0] == "1" and all(mark in points.items for mark in marks)


def _marks_named(said: str, points: _Points) -> list[str]:
    """Of letters only capitals count: "a" is a word."""
    found = (one or other for one, other in _NAMED_POINT.findall(said))
    return [
        mark
        for mark in dict.fromkeys(found)
        if mark in points.items and points.items[mark][:_OPTION_LENGTH] not in said
    ]


# ── reviews ───────────────────────────────────────────────────────────────────────────────────────

# What reviewers asked for, and whether anybody has acted on it.

_REVIEW_SCANNED = 12_000
_MOST_COMMENTS = 8
_ASKED_FOR_REVIEW = re.compile(r"\breview", re.IGNORECASE)
_COMMENTS_READ = re.compile(r"gh (?:pr|api)\b.*(?:comments|reviews|review)")
_ANSWERS_REVIEW = re.compile(r"\b(?:address|fix|apply|respond|resolve|implement)", re.IGNORECASE)
_POINT = re.compile(r"^[ \t]*(?:[-*•]|\d+[.)])\s+(.{30,400})$", re.MULTILINE)
_ASKS = re.compile(
    r"\b(?:should|must|need|missing|consider|fix|bug|issue|incorrect|wrong|unused|duplicate|race|leak|unsafe|critical|major|minor"
    r"|high|medium|low|nit|suggest|recommend|concern|problem|fails?|broken|never|doesn'?t|isn'?t|not)\b",
    re.IGNORECASE,
)
_PRAISE = re.compile(
    r"^(?:✅|\*\*(?:Strengths?|What works)|(?:LGTM|Approved|Good|Great|Well)\b)", re.IGNORECASE
)


@dataclass(slots=True)
class _OpenReview:
    index: int
    reviewer: str
    comments: tuple[str, ...]
    left: tuple[str, ...]


class Reviews:
    def __init__(self) -> None:
        self._all: deque[_OpenReview] = deque(maxlen=10)

    def answered(self, index: int, action: Action, text: str) -> None:
        if (
            action.kind == "agent"
            and _ASKED_FOR_REVIEW.search(action.about)
            and not _ANSWERS_REVIEW.search(action.about)
        ):
            self._note(index, action.about or "a review agent", text)
        elif (
            action.kind == "shell" and "gh " in action.command and _COMMENTS_READ.search(action.command[:300])
        ):
            self._note(index, "pull request comments", text)

    def edited(self, path: str) -> None:
        """An edit of a file that a comment names counts as acting on that comment."""
        name = path.replace("\\", "/").rsplit("/", 1)[-1]
        for review in self._all:
            if name and any(name in comment for comment in review.left):
                review.left = tuple(comment for comment in review.left if name not in comment)

    def found(self) -> tuple[Review, ...]:
        return tuple(
            Review(one.index, one.reviewer, one.left or one.comments, addressed=not one.left)
            for one in self._all
        )

    def _note(self, index: int, reviewer: str, text: str) -> None:
        points = [found[1] for found in _POINT.finditer(text[:_REVIEW_SCANNED])]
        comments = [
            clipped(one_line(point), 260)
            for point in points
            if _ASKS.search(point) and not _PRAISE.match(point)
        ]
        if comments:
            kept = tuple(comments[:_MOST_COMMENTS])
            self._all.append(_OpenReview(index, clipped(one_line(reviewer), 80), kept, kept))
