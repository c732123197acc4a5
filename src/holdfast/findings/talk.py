"""The talk: what the user said, what the agent reported, chose and found out."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from holdfast.base.text import clipped, one_line, sentences
from holdfast.findings import phrases
from holdfast.model.gathered import Choice, Insight, Step, Turn

_SAID_KEPT = 6000
_PROSE_KEPT = 5000
_FIRST_KEPT, _LAST_KEPT = 10, 300
_TEXTS_KEPT = 300


@dataclass(slots=True)
class _Said:
    index: int
    said: str
    reported: str = ""
    stopping: bool = False
    cut_short: bool = False


class Talk:
    """Keeps the newest of what was said and looks at it closely only when asked, at the end."""

    def __init__(self) -> None:
        self._first: list[_Said] = []
        self._last: deque[_Said] = deque(maxlen=_LAST_KEPT)
        self._dropped = 0
        self._open: _Said | None = None
        self._texts: deque[tuple[int, str]] = deque(maxlen=_TEXTS_KEPT)

    def user_said(self, index: int, text: str, *, stopping: bool = False) -> None:
        """``stopping``: said while refusing a step the agent wanted to take."""
        said = text[:_SAID_KEPT].strip()
        if not said:
            return
        if self._open and not self._open.reported and one_line(self._open.said) == one_line(said):
            return  # the queue and the line it became say the same thing twice
        self._close()
        self._open = _Said(index, said, stopping=stopping)

    def interrupted(self) -> None:
        if self._open:
            self._open.cut_short = True

    def taken_back(self, first: int) -> None:
        """The user undid everything from this message on."""
        self._first = [said for said in self._first if said.index < first]
        self._last = deque((said for said in self._last if said.index < first), maxlen=_LAST_KEPT)
        self._texts = deque((text for text in self._texts if text[0] < first), maxlen=_TEXTS_KEPT)
        if self._open and self._open.index >= first:
            self._open = None

    def went_on(self) -> None:
        if self._open:
            self._open.cut_short = False

    def agent_said(self, index: int, text: str) -> None:
        said = text[:_PROSE_KEPT].strip()
        if not said:
            return
        self._texts.append((index, said))
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

    @property
    def last_words(self) -> str:
        return self._texts[-1][1] if self._texts else ""

    def turns(self) -> tuple[Turn, ...]:
        still_open = [self._open] if self._open else []
        return tuple(_turn(said) for said in (*self._first, *self._last, *still_open))

    def reasoning(self) -> tuple[tuple[Step, ...], tuple[Choice, ...], tuple[Insight, ...]]:
        """What the agent announced, chose and found out, oldest first."""
        steps: list[Step] = []
        choices: list[Choice] = []
        insights: list[Insight] = []
        for index, text in self._texts:
            told = sentences(text)
            telling = next((sentence for sentence in told if len(sentence) > 24), "")
            if telling:
                steps.append(Step(index, clipped(one_line(telling), 240)))
            for sentence in told:
                if (
                    not 30 <= len(sentence) <= 400
                    or sentence.endswith("?")
                    or phrases.ONLY_LOOKING.search(sentence)
                ):
                    continue
                reason = phrases.REASON.search(sentence)
                stated = phrases.STATES_A_PROBLEM.search(sentence)
                if reason and not stated and phrases.CHOSEN.search(sentence):
                    choices.append(_choice(index, sentence, reason))
                elif phrases.FOUND_OUT.search(sentence) and not sentence.endswith(":"):
                    insights.append(Insight(index, clipped(one_line(sentence), 300)))
        return tuple(steps[-30:]), tuple(choices[-80:]), tuple(insights[-80:])


def _turn(said: _Said) -> Turn:
    words = said.said[:2000]
    return Turn(
        said.index,
        said.said,
        said.reported,
        correction=said.stopping or bool(phrases.CORRECTION.search(words)),
        constraint=bool(phrases.CONSTRAINT.search(words)),
        cut_short=said.cut_short,
    )


def _choice(index: int, sentence: str, reason: re.Match[str]) -> Choice:
    kind = phrases.choice_kind(sentence)
    if reason.start() < 12:  # "Since the cache is stale, let's …": the reason comes first
        return Choice(index, kind, one_line(sentence), "")
    chosen = sentence[: reason.start()].rstrip(" ,;(\u2014\u2013-")
    return Choice(index, kind, one_line(chosen), one_line(sentence[reason.start() :].rstrip(":")))
