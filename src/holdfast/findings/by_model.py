"""Decisions and errors out of a session's messages, by rule and, if one is set, by a model."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import InvalidInputError
from holdfast.base.text import clipped, one_line
from holdfast.findings import records
from holdfast.findings.deadlines import OwnThread, ThisLoop
from holdfast.findings.gather import gather
from holdfast.findings.model_call import (
    ModelAnswer,
    ModelChoice,
    Question,
    ask,
    is_context_overflow,
    too_late,
)
from holdfast.findings.model_exchange import (
    KnownFacts,
    PromptConversation,
    answer_schema,
    conversation,
    findings_in,
    is_answer,
)
from holdfast.model.findings import Decision, ErrorRecord, Evidence, ModelReading, Observation
from holdfast.model.message import Message, ReadReport, TokenUsage

if TYPE_CHECKING:
    from pydantic_ai.models import Model


# ── merging ───────────────────────────────────────────────────────────────────────────────────────

# Findings of two extractors become one list without doubles.
#
# What is known stays as it is, in its order: same evidence, same verdict. A newcomer that
# says the same as something known only fills in what that one lacks; any other is added
# at the end. "The same" is decided by the first known one that matches, never the best,
# so that merging the same newcomers again changes nothing.

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


# ── extraction ────────────────────────────────────────────────────────────────────────────────────

# Decisions and errors out of a session's messages, by rule and, if one is set, by a model.
#
# A model adds; it is never waited for beyond its time limit, and nothing it does or fails
# to do takes away what the rules found.
#
# extractor = DecisionExtractor("openai:gpt-4o")
# decisions, errors = await extractor.extract(messages)

__all__ = ["DecisionExtractor", "Extraction", "ModelLimits", "RuleExtractor", "is_context_overflow"]

_Number = TypeVar("_Number", int, float)

RuleExtractor = Callable[[Sequence[Message]], tuple[list[Decision], list[ErrorRecord]]]


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """How much a model is shown and may answer."""

    message_chars: int = 2_000
    total_chars: int = 60_000
    items: int = 20
    answer_tokens: int = 8_000  # room for models that think first


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was found, and by whom."""

    decisions: list[Decision] = field(default_factory=list[Decision])
    errors: list[ErrorRecord] = field(default_factory=list[ErrorRecord])
    by_rule: int = 0
    by_model: int = 0
    """Found by the model alone; what both found counts as found by rule."""
    dropped: int = 0
    """Items of the model that did not hold up."""
    model_failure: str | None = None
    """Why the model added nothing, where it should have."""
    usage: TokenUsage | None = None
    reading: ModelReading | None = None
    """What the model made of it, where it was given the facts to go by."""


class DecisionExtractor:
    """`model`: none, so the rules alone; a pydantic-ai name or model; a name on the server at `base_url`."""

    def __init__(  # noqa: PLR0913 - options of a public name, each with its default
        self,
        model: Model | str | None = None,
        *,
        by_rule: RuleExtractor | None = None,
        time_limit: float = 30.0,
        max_messages: int = 50,
        base_url: str | None = None,
        api_key: str | None = None,
        limits: ModelLimits | None = None,
        clock: Clock = system_clock,
        source: str = "transcript",
        known: KnownFacts | None = None,
    ) -> None:
        if base_url is not None and not isinstance(model, str):
            raise InvalidInputError("a model server URL requires a model name")
        self._choice = None if model is None else ModelChoice(model, base_url, api_key)
        self._rules = by_rule or self._found_by_rule
        self._time_limit = _positive("time_limit", time_limit)
        self._max_messages = _positive("max_messages", max_messages)
        self._limits = limits or ModelLimits()
        self._clock = clock
        self._source = source
        self._known = known

    async def extract(
        self, messages: Sequence[Message], max_messages: int | None = None
    ) -> tuple[list[Decision], list[ErrorRecord]]:
        found = await self.examine(messages, max_messages)
        return found.decisions, found.errors

    def extract_sync(
        self, messages: Sequence[Message], max_messages: int | None = None
    ) -> tuple[list[Decision], list[ErrorRecord]]:
        found = self.examine_sync(messages, max_messages)
        return found.decisions, found.errors

    async def examine(self, messages: Sequence[Message], max_messages: int | None = None) -> Extraction:
        """As `extract`, with the counts and what became of the model."""
        asked = self._asked(messages, max_messages)
        if asked is None:
            return self._by_rule(messages)
        # A model object may hold connections that belong to the caller's loop; a name has none yet.
        call = (OwnThread if isinstance(asked.choice.model, str) else ThisLoop)(asked.work)
        try:
            found = self._by_rule(messages)  # while the model thinks
            answer = await call.wait_async(asked.deadline)
        finally:
            call.cancel()
        return self._with_model(found, asked, answer)

    def examine_sync(self, messages: Sequence[Message], max_messages: int | None = None) -> Extraction:
        """As `extract_sync`; also where an event loop runs, which it holds up for as long as it takes."""
        asked = self._asked(messages, max_messages)
        if asked is None:
            return self._by_rule(messages)
        call = OwnThread(asked.work)
        try:
            found = self._by_rule(messages)
            answer = call.wait(asked.deadline)
        finally:
            call.cancel()
        return self._with_model(found, asked, answer)

    def _found_by_rule(self, messages: Sequence[Message]) -> tuple[list[Decision], list[ErrorRecord]]:
        found, now = gather(messages, ReadReport()), to_datetime(self._clock())
        return list(records.decisions(found, self._source, now)), list(
            records.errors(found, self._source, now)
        )

    def _by_rule(self, messages: Sequence[Message]) -> Extraction:
        decisions, errors = self._rules(messages)
        return Extraction(list(decisions), list(errors), by_rule=len(decisions) + len(errors))

    def _asked(self, messages: Sequence[Message], max_messages: int | None) -> _Asked | None:
        """None where there is nobody to ask, or nothing to ask about."""
        if self._choice is None:
            return None
        limits = self._limits
        told = conversation(
            messages,
            most=self._max_messages if max_messages is None else _positive("max_messages", max_messages),
            message_chars=limits.message_chars,
            total_chars=limits.total_chars,
            known=self._known,
        )
        if not told.messages:
            return None
        question = Question(
            instructions=told.instructions(limits.items),
            text=told.text,
            schema=answer_schema(limits.items, beside_facts=self._known is not None),
            answer_tokens=limits.answer_tokens,
            is_answer=is_answer,
        )
        return _Asked(self._choice, told, question, time.monotonic() + self._time_limit)

    def _with_model(self, found: Extraction, asked: _Asked, answer: ModelAnswer | None) -> Extraction:
        if answer is None:
            return replace(found, model_failure=too_late(asked.choice.name, self._time_limit))
        if answer.failure is not None:
            return replace(found, model_failure=answer.failure, usage=answer.usage)
        items = self._limits.items
        read = findings_in(answer.value, asked.told, source=self._source, items=items, clock=self._clock)
        decisions = merge_decisions(found.decisions, read.decisions)
        merged = merge_errors(found.errors, read.errors)
        errors = [_settled(one, read.settled) for one in merged]
        closed = [new for old, new in zip(merged, errors, strict=True) if new is not old]
        return Extraction(
            decisions,
            errors,
            by_rule=found.by_rule,
            by_model=len(decisions) + len(errors) - found.by_rule,
            dropped=read.dropped,
            usage=answer.usage,
            reading=read.reading
            and read.reading.changed(settled=tuple(_told(one, read.settled[one.id]) for one in closed)),
        )


def _settled(error: ErrorRecord, by_model: Mapping[str, Observation]) -> ErrorRecord:
    """Rules found nothing that settled it; a model points at what did."""
    seen = by_model.get(error.id) if error.resolution == "unresolved" else None
    if seen is None:
        return error
    return error.changed(
        resolution="fixed",
        resolution_notes=f"as a model read the record: {seen.text}",
        evidence=_with_evidence(error.evidence, seen.evidence),
    )


def _told(error: ErrorRecord, seen: Observation) -> Observation:
    return seen.changed(text=f"{clipped(one_line(error.error_message), 200)}: {seen.text}")


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question on its way: to whom, about what, until when."""

    choice: ModelChoice
    told: PromptConversation
    question: Question
    deadline: float

    async def work(self) -> ModelAnswer:
        return await ask(self.choice, self.question, self.deadline)


def _positive(name: str, number: _Number) -> _Number:
    if not (math.isfinite(number) and number > 0):
        raise InvalidInputError(f"{name} {number}: expected a number greater than 0")
    return number
