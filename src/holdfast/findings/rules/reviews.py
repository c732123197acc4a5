"""Review feedback: what reviewers asked for, and whether anybody has acted on it."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from holdfast.base.text import clipped, one_line
from holdfast.findings.rules.actions import Action
from holdfast.model.gathered import Review

_SCANNED = 12_000
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
class _Open:
    index: int
    reviewer: str
    comments: tuple[str, ...]
    left: tuple[str, ...]


class Reviews:
    def __init__(self) -> None:
        self._all: deque[_Open] = deque(maxlen=10)

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
        points = [found[1] for found in _POINT.finditer(text[:_SCANNED])]
        comments = [
            clipped(one_line(point), 260)
            for point in points
            if _ASKS.search(point) and not _PRAISE.match(point)
        ]
        if comments:
            kept = tuple(comments[:_MOST_COMMENTS])
            self._all.append(_Open(index, clipped(one_line(reviewer), 80), kept, kept))
