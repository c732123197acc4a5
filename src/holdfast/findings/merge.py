"""Findings of two extractors become one list without doubles.

What is known stays as it is, in its order: same evidence, same verdict. A newcomer that
says the same as something known only fills in what that one lacks; any other is added
at the end. "The same" is decided by the first known one that matches, never the best,
so that merging the same newcomers again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from holdfast.model.findings import Decision, ErrorRecord, Evidence

_SIMILAR = 0.7
# Two who point at the same message need to share less of the wording.
_SIMILAR_ON_SAME_MESSAGE = 0.5
_FEWEST_WORDS = 3
_SHORTEST_PART = 20

_WORD = re.compile(r"[\w.+#/'-]*\w")
_COMMON = frozenset(
    ("a", "an", "and", "as", "at", "be", "been", "by", "for", "from", "had", "has", "have", "i", "i'll", "in",
     "into", "is", "it", "it's", "its", "let", "let's", "of", "on", "or", "our", "so", "that", "the", "their",
     "them", "then", "there", "these", "they", "this", "to", "was", "we", "we'll", "were", "will", "with",
     "would", "you", "your")
)  # fmt: skip
_NEGATIONS = frozenset(
    ("avoid", "can't", "cannot", "didn't", "doesn't", "don't", "instead", "never", "no", "not", "skip",
     "without", "won't")
)  # fmt: skip
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
_LABEL = re.compile(r"^(?:error|fatal|failed|failure|exception)\s*:\s*")

_Finding = TypeVar("_Finding", Decision, ErrorRecord)


def merge_decisions(known: Iterable[Decision], found: Iterable[Decision]) -> list[Decision]:
    return _merged(known, found, same_decision, _fill_decision)


def merge_errors(known: Iterable[ErrorRecord], found: Iterable[ErrorRecord]) -> list[ErrorRecord]:
    return _merged(known, found, same_error, _fill_error)


def same_decision(one: Decision, other: Decision) -> bool:
    """Whether two descriptions say the same, in whatever words around it."""
    if _plain(one.description) == _plain(other.description):
        return True
    ours, theirs = _words(one.description), _words(other.description)
    if bool(ours & _NEGATIONS) != bool(theirs & _NEGATIONS) or _numbers_differ(ours, theirs):
        return False
    fewer = min(len(ours), len(theirs))
    if fewer < _FEWEST_WORDS:
        return False
    shared = len(ours & theirs)
    if shared / len(ours | theirs) >= _SIMILAR:
        return True
    return _on_same_message(one, other) and shared / fewer >= _SIMILAR_ON_SAME_MESSAGE


def same_error(one: ErrorRecord, other: ErrorRecord) -> bool:
    """Whether two texts are one error's: alike but for spelling, or one a part of the other."""
    ours, theirs = _error_text(one.error_message), _error_text(other.error_message)
    if ours == theirs:
        return True
    shorter, longer = sorted((ours, theirs), key=len)
    return len(shorter) >= _SHORTEST_PART and shorter in longer


def _merged(
    known: Iterable[_Finding],
    found: Iterable[_Finding],
    same: Callable[[_Finding, _Finding], bool],
    fill: Callable[[_Finding, _Finding], _Finding],
) -> list[_Finding]:
    merged = list(known)
    for finding in found:
        place = next((at for at, one in enumerate(merged) if same(one, finding)), None)
        if place is None:
            merged.append(finding)
        else:
            merged[place] = fill(merged[place], finding)
    return merged


def _fill_decision(known: Decision, found: Decision) -> Decision:
    return known.changed(
        rationale=known.rationale or found.rationale,
        alternatives_considered=known.alternatives_considered or found.alternatives_considered,
        evidence=_with_evidence(known.evidence, found.evidence),
    )


def _fill_error(known: ErrorRecord, found: ErrorRecord) -> ErrorRecord:
    """How it ended is the known one's to say; notes on another ending would contradict it."""
    agreed = known.resolution == found.resolution
    return known.changed(
        context=known.context or found.context,
        resolution_notes=known.resolution_notes or (found.resolution_notes if agreed else None),
        evidence=_with_evidence(known.evidence, found.evidence),
    )


def _with_evidence(known: tuple[Evidence, ...], found: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """What the known one rests on, then what else was pointed at.

    The first entry is what a finding is recognised by, so none is ever put first.
    """
    places = _places(known)
    return known and known + tuple(one for one in found if not _places((one,)) <= places)


def _places(evidence: tuple[Evidence, ...]) -> set[tuple[str, int]]:
    return {(one.source, number) for one in evidence for number in one.messages}


def _on_same_message(one: Decision, other: Decision) -> bool:
    return not _places(one.evidence[:1]).isdisjoint(_places(other.evidence[:1]))


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .!,;:`'\"")


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower().replace("\u2019", "'"))) - _COMMON


def _numbers_differ(ours: set[str], theirs: set[str]) -> bool:
    """`30 s` and `60 s` make two decisions of otherwise equal words."""
    mine = {word for word in ours if any(character.isdigit() for character in word)}
    yours = {word for word in theirs if any(character.isdigit() for character in word)}
    return not (mine <= yours or yours <= mine)


def _error_text(text: str) -> str:
    return _LABEL.sub("", _ADDRESS.sub("0x", _plain(text)))
