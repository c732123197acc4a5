"""What the agent chose and found out, in its own words: the prose of its messages and thoughts.

Plain English cues, none of them tied to a project. A missed one costs an item of the briefing; a wrong one
costs a line of it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.base.text import clipped, head_and_tail, is_list_item, one_line, sentences
from holdfast.model.gathered import AgentStep, Choice, ChoiceKind, Insight, Listing

_TEXTS_KEPT = 300
_PROSE_KEPT = 5000
_STEPS, _CHOICES, _INSIGHTS, _LISTINGS = 30, 80, 120, 12


class Reasoning:
    """Keeps the newest of what the agent said and thought and looks at it closely only at the end."""

    def __init__(self) -> None:
        self._said: deque[tuple[int, str]] = deque(maxlen=_TEXTS_KEPT)
        self._thought: deque[tuple[int, str]] = deque(maxlen=_TEXTS_KEPT)

    def said(self, index: int, text: str) -> None:
        self._said.append((index, text))

    def thought(self, index: int, text: str) -> None:
        self._thought.append((index, head_and_tail(text, _PROSE_KEPT)))

    def taken_back(self, first: int) -> None:
        self._said = _before(first, self._said)
        self._thought = _before(first, self._thought)

    @property
    def last_words(self) -> str:
        return self._said[-1][1] if self._said else ""

    def steps_and_choices(self) -> tuple[tuple[AgentStep, ...], tuple[Choice, ...]]:
        """What the agent announced, and what it chose with its reason, oldest first."""
        steps: list[AgentStep] = []
        choices: list[Choice] = []
        for index, text in self._said:
            told = sentences(text)
            telling = next((sentence for sentence in told if len(sentence) > 24), "")
            if telling:
                steps.append(AgentStep(index, clipped(one_line(telling), 240)))
            choices += _choices(index, told)
        return tuple(steps[-_STEPS:]), tuple(choices[-_CHOICES:])

    def found_out(self) -> tuple[tuple[Insight, ...], tuple[Listing, ...]]:
        """Causes, facts and lists of what there is to do, oldest first; of two alike, the newer."""
        texts = [(index, True, text) for index, text in self._said]
        texts += [(index, False, text) for index, text in self._thought]
        insights: list[Insight] = []
        listings: list[Listing] = []
        verdicts: list[_Verdict] = []
        for index, said, text in sorted(texts, key=lambda one: one[:2]):
            verdicts += _verdicts(index, text)
            blocks = list(_blocks(text))
            insights += _insights(index, said, blocks)
            listings += _listings(index, said, blocks)
        return tuple(_newest_view(_still_held(insights, verdicts))[-_INSIGHTS:]), tuple(listings[-_LISTINGS:])


def _before(first: int, texts: Iterable[tuple[int, str]]) -> deque[tuple[int, str]]:
    return deque((one for one in texts if one[0] < first), maxlen=_TEXTS_KEPT)


# ── choices ───────────────────────────────────────────────────────────────────────────────────────


def _cue(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


CHOSEN = _cue(
    "I(?:'ll| will| am going to|'m going to)", "let'?s", "let me", "we(?:'ll| will| should| can)",
    "I (?:chose|decided|opted|went with|kept|used|recommend|should)", "decided", "chose", "my take",
    "going with", "go with", "leaning toward", "design decision", "not worth", "by design",
    "the (?:simplest|best|cleanest|right|better) (?:fix|approach|way|option|solution)",
    "renamed", "redesigned", "changed", "removed", "moved", "switched", "replaced", "reus(?:ed|ing)",
)  # fmt: skip
STATES_A_PROBLEM = _cue("the (?:issue|problem|bug|cause|error) (?:is|was)")
ONLY_LOOKING = _cue(
    "let (?:me|us)(?: also| first| now| just| quickly)* (?:run|check|look|read|see|verify|find|search|examine"
    "|view|try|test|get|confirm|start|continue|explore|understand|review|analy[sz]e|investigate|debug)"
)
REASON = _cue(
    "because", "since", "so that", "so we", "so it", "as it", "as this", "given that", "given", "due to",
    "to avoid", "to keep", "to prevent", "to make sure", "to ensure", "instead of", "rather than",
    "otherwise", "which means", "that way", "this way",
)  # fmt: skip

_KINDS: tuple[tuple[ChoiceKind, re.Pattern[str]], ...] = (
    ("skip", _cue("skip", "defer", "later", "leave (?:it|that|this)", "out of scope", "not now", "for now")),
    (
        "workaround",
        _cue("workaround", "work around", "temporary", "temporarily", "fallback", "hack", "suppress"),
    ),
    ("library", _cue("librar(?:y|ies)", "package", "dependency", "framework", "module", "plugin", "SDK")),
    (
        "architecture",
        _cue("architecture", "structure", "interface", "layer", "schema", "refactor", "extract"),
    ),
    ("clarification", _cue("you want", "you mean", "you asked", "interpret(?:ed|ing)?", "assum(?:e|ed|ing)")),
)


def choice_kind(sentence: str) -> ChoiceKind:
    for kind, cue in _KINDS:
        if cue.search(sentence):
            return kind
    return "approach"


def _choices(index: int, told: list[str]) -> Iterator[Choice]:
    for place, sentence in enumerate(told):
        if _REFERS_BACK.match(sentence) and place:
            sentence = f"{told[place - 1]} {sentence}"  # noqa: PLW2901
        if not 30 <= len(sentence) <= 400 or sentence.endswith("?") or ONLY_LOOKING.search(sentence):
            continue
        reason = REASON.search(sentence)
        if reason and not STATES_A_PROBLEM.search(sentence) and CHOSEN.search(sentence):
            yield _choice(index, sentence, reason)


_REFERS_BACK = re.compile(r"(?:This|That|It|These|Those|They|Both|So|Then|Instead)\b")


def _choice(index: int, sentence: str, reason: re.Match[str]) -> Choice:
    kind = choice_kind(sentence)
    if reason.start() < 12:  # "Since the cache is stale, let's …": the reason comes first
        return Choice(index, kind, one_line(sentence), "")
    chosen = sentence[: reason.start()].rstrip(" ,;(\u2014\u2013-")
    return Choice(index, kind, one_line(chosen), one_line(sentence[reason.start() :].rstrip(":")))


# ── how a text is built ───────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class _Block:
    """A paragraph as its sentences, or a list as its items."""

    told: list[str] = field(default_factory=list[str])
    listed: bool = False
    lead: str = ""  # of a list: the sentence that it belongs to


def _blocks(text: str) -> Iterator[_Block]:
    """Paragraphs and lists; code, tables and headings are left out."""
    open_block = _Block()
    last_sentence = ""
    in_code = False
    for raw in text.split("\n"):
        line = raw.strip()
        if line.startswith(("```", "~~~")):
            in_code = not in_code
            line, last_sentence = "", ""
        if in_code:
            continue
        item = is_list_item(line)
        told = sentences(line)
        if not line and open_block.listed:
            continue  # items may stand apart
        if not told or item != open_block.listed:
            if open_block.listed and told and raw[:1].isspace():
                open_block.told[-1] += f" {' '.join(told)}"  # an item goes on
                continue
            if open_block.told:
                yield open_block
            open_block = _Block(listed=item, lead=last_sentence if last_sentence.endswith(":") else "")
        if told:
            open_block.told += [" ".join(told)] if item else told
            last_sentence = told[-1]
    if open_block.told:
        yield open_block


# ── what was found out ────────────────────────────────────────────────────────────────────────────

_LONGEST, _SHORTEST = 440, 30
_MORE = 2
"""Sentences that may follow the telling one."""
_LEAST_SAID, _LEAST_THOUGHT = 3, 4

_CAUSE = re.compile(
    r"\broot cause\b|\bturns out\b|\bthat(?:'s| is) (?:exactly )?why\b|\bmisdiagnos|\bcaused by\b|\bculprit\b"
    r"|\bthe (?:(?:real|actual|main|core|key|only|underlying|remaining|original) )?"
    r"(?:problem|issue|bug|cause|reason|difference|catch)(?: here| now)?(?: is|:| was| are)\b"
    r"|\bthe (?:problem|issue|bug|root cause|reason|fix|difference)\b[^.:]{0,40}:"
    r"|\bsame (?:bug|issue|problem|fault|pattern)\b"
    r"|\bthis (?:explains|confirms|is the (?:bug|issue|problem))\b"
    r"|\b(?:gets?|are|is|was|were|been) (?:silently )?(?:filtered|dropped|lost|skipped|overwritten|ignored"
    r"|missing|broken|blocked|incorrectly|wrong)\b"
    r"|\b(?:fail(?:s|ed|ing)?|break(?:s|ing)?|panics?) (?:because|since|when|as|if|with)\b",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:simplest|cleanest|better|best|right|proper|correct|safest|minimal|key) "
    r"(?:fix|approach|way|solution|option|place|choice|insight|design)\b"
    r"|\bI(?:'ll| will|'ve)? (?:keep|use|kept|used|go with|went with|chose|decided|left|consolidate)\b"
    r"|\bthe fix (?:is|was)\b|\bwe (?:want|keep|use|decided)\b|\bby design\b|\bon purpose\b"
    r"|\bintentional(?:ly)?\b"
    r"|\bdeliberate(?:ly)?\b|\binstead of\b|\brather than\b|\b(?:known )?limitation\b|\bedge case\b"
    r"|\bshould (?:use|only|not|never|stay|take)\b"
    r"|\b(?:needs|need) to (?:use|also use|include|pass|be (?!done))|\bexpected behaviou?r\b"
    r"|\bmust (?:not )?\w+",
    re.IGNORECASE,
)
_REASONED = re.compile(
    r"\b(?:because|since|so that|so (?:any|it|the|we|this)|which means|this means|otherwise|to avoid|to keep"
    r"|to prevent|due to|therefore|thus|hence|even though|when|if)\b",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"\b(?:but|however|not|only|never|already|no longer|still|whereas|always)\b|n't\b", re.IGNORECASE
)
_NAME = re.compile(r"`[^`]+`|\b[a-z]\w*[A-Z_]\w+|\w\(\)|\b[\w/-]{1,100}\.[a-z]{1,4}(?::\d+)?\b|:\d+\b")
_HEDGED = re.compile(
    r"\b(?:might|may|could|maybe|perhaps|possibly|probably|likely|suspect|wonder|seems?|appears?|presumably"
    r"|not sure|i think|unclear|assum(?:e|ing)|theory|either|one of)\b|\?",
    re.IGNORECASE,
)
_SETS_OUT = re.compile(
    r"^(?:(?:ok(?:ay)?|good|great|so|and|but|perfect|now|actually|also|first|next|then|yes|right)[,.!:\s]+)*"
    r"(?:let me|let's|let us|i'll|i will|i(?:'m| am) going to|i should|i need to|i want to|i can|i have to|"
    r"we need to|we should|need to|looking at|look at)\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"\b(?:check|look|see|verify|find|search|read|understand|trace|examine|view|run|investigate|think|explore"
    r"|analy[sz]e|figure|test|start|continue|proceed)\b",
    re.IGNORECASE,
)
_OF_THE_TALK = re.compile(
    r"^(?:the user(?:'s)?\b|this is (?:a )?(?:great|good|excellent|interesting|important)"
    r"|good (?:catch|question|call)"
    r"|you(?:'re| are) (?:right|absolutely)|here(?:'s| is| are)\b|now i (?:understand|see|have)\b[^,:]*\.$"
    r"|all (?:tests|checks|\d+)\b|everything\b|tests? pass|done\b|in summary|summary\b"
    r"|i (?:see|found it)[.!]?$)",
    re.IGNORECASE,
)
_LEADS = re.compile(
    r"\b(?:problem|issue|bug|cause|reason|blocker|limitation|catch|conclusion|decision|fix|flaw|gap|insight)s?\b"
    r"[^.]{0,40}:$",
    re.IGNORECASE,
)
_IS_CODE = re.compile(r"```|:= |; err |^[^`]*[{}]\s*$|^(?:func|def|class|return|var|const|import) ")
_TAKES_BACK = re.compile(
    r"^(?:wait|hmm|hold on|but wait|no,|actually,? (?:wait|this is fine|that is fine|no))\b|re-?think"
    r"|\bdoesn't explain\b|\bon second thought\b|\bthis is fine\b|\bthat's (?:correct|fine|right) as\b",
    re.IGNORECASE,
)


def _insights(index: int, said: bool, blocks: list[_Block]) -> Iterator[Insight]:
    """Passages that tell a cause, a fact of weight or a decision; nothing that the same text takes back."""
    taken_back = max(
        (
            place
            for place, block in enumerate(blocks)
            if not block.listed and any(map(_TAKES_BACK.search, block.told))
        ),
        default=-1,
    )
    last = ""
    for place, block in enumerate(blocks):
        if block.listed:
            last = ""
            continue
        following = blocks[place + 1] if place + 1 < len(blocks) else None
        least = (_LEAST_SAID if said else _LEAST_THOUGHT) + 2 * (place < taken_back)
        for text, worth in _passages(block, following, last):
            if worth >= least and len(text) >= _SHORTEST:
                yield Insight(index, text, worth + said, said)
        last = block.told[-1]


def _passages(block: _Block, following: _Block | None, before: str) -> Iterator[tuple[str, int]]:
    told = block.told
    place = 0
    while place < len(told):
        leads = place == len(told) - 1 and _LEADS.search(told[place])
        if not _tells(told[place]) or (_worth(told[place]) < 1 and not leads):
            place += 1
            continue
        passage = [told[place]]
        earlier = told[place - 1] if place else before
        refers_back = _REFERS_BACK.match(told[place]) and len(earlier) >= _SHORTEST
        if refers_back and _tells(earlier) and not _HEDGED.search(earlier):
            passage.insert(0, earlier)
        end = place + 1
        while end < len(told) and end - place <= _MORE and _goes_on(told[end], passage):
            passage.append(told[end])
            end += 1
        if passage[-1].endswith(":"):
            passage[-1] = _with_items(passage[-1], following) if end == len(told) else ""
        text = one_line(" ".join(passage))
        if len(text) <= _LONGEST:
            yield text, _worth(text) + 2 * bool(leads)
        place = end


def _tells(sentence: str) -> bool:
    """Whether it says something of the work: no step that it sets out for, no word to the user."""
    return bool(sentence) and not (
        (_SETS_OUT.match(sentence) and (_LOOKS.search(sentence) or not _REASONED.search(sentence)))
        or _OF_THE_TALK.match(sentence)
        or _IS_CODE.search(sentence)
        or sentence.endswith("?")
    )


def _goes_on(sentence: str, passage: list[str]) -> bool:
    return (
        _tells(sentence)
        and not _HEDGED.search(sentence)
        and not _TAKES_BACK.search(sentence)
        and sum(map(len, passage)) + len(sentence) + len(passage) < _LONGEST
    )


def _with_items(lead: str, following: _Block | None) -> str:
    """A sentence that a list completes, with the list; without it there is nothing to read."""
    if following is None or not following.listed or following.lead[-20:] != lead[-20:]:
        return ""
    if any(_HEDGED.search(item) for item in following.told):
        return ""
    return f"{lead} {'; '.join(item.rstrip('.;') for item in following.told)}."


def _worth(sentence: str) -> int:
    named = len(_NAME.findall(sentence))
    worth = (
        3 * bool(_CAUSE.search(sentence))
        + 2 * bool(_DECIDED.search(sentence))
        + bool(_REASONED.search(sentence))
        + bool(_CONTRAST.search(sentence) and named)
        + min(2, named)
    )
    worth -= 2 * bool(_OF_THE_MOMENT.search(sentence))
    return worth - 4 * bool(_HEDGED.search(sentence))


_OF_THE_MOMENT = re.compile(
    r"\b(?:imports?|imported|lint(?:er)?|unused|declared|syntax error|build fails|compiles?|typo)\b",
    re.IGNORECASE,
)
"""Slips that are fixed a moment later."""


# ── what later words replace ──────────────────────────────────────────────────────────────────────

_OVERTURNS = re.compile(
    r"^(?:(?:but|so|oh|hmm)[, ]+)?(?:actually|wait|hold on|no,|not the\b)|\bthere it is\b|\bfound it\b"
    r"|\b(?:real|actual|true|root|underlying) (?:cause|issue|problem|reason|bug)\b|\bturns out\b"
    r"|\b(?:is not|isn't|was not|wasn't) the (?:issue|problem|cause|reason|bug)\b|\bnot (?:because|due to)\b"
    r"|\b(?:simplest|right|real|correct|proper) fix\b|\bI was wrong\b|\bmisdiagnos",
    re.IGNORECASE,
)
_FOUND = re.compile(r"^(?:there it is|found it|found the (?:root cause|bug|problem|issue))\b", re.IGNORECASE)
_NAMES_A_FAULT = re.compile(
    r"\bthe (?:\w+ )?(?:issue|problem|bug|cause|reason)\b[^.]{0,20}\b(?:is|was|are)\b|\bsomething is wrong\b"
    r"|\bthe (?:\w+ )?(?:issue|problem|bug|cause|reason)\b[^.]{0,20}:",
    re.IGNORECASE,
)
_SAME_HUNT = 60
"""Messages: what was looked for that long ago is another fault."""
_KEY_WORD = re.compile(r"[a-z]{6,}")
_SHARED_WORDS = 3
_VERDICT_SCANNED = 600


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Words that overturn what was thought before on the same matter; `found`: the hunt ended with them."""

    index: int
    names: frozenset[str]
    words: frozenset[str]
    found: bool = False


def _verdict(index: int, text: str, *, found: bool = False) -> _Verdict:
    names = frozenset(name.strip("`").lower() for name in _NAME.findall(text))
    return _Verdict(index, names, frozenset(_KEY_WORD.findall(text.lower())), found)


def _verdicts(index: int, text: str) -> Iterator[_Verdict]:
    told = sentences(text)
    if any(_FOUND.search(one) for one in told[:2]):
        yield _verdict(index, text[:_VERDICT_SCANNED], found=True)
    for place, one in enumerate(told):
        if _OVERTURNS.search(one):
            yield _verdict(index, " ".join(told[place : place + 2]))


def _still_held(insights: list[Insight], verdicts: list[_Verdict]) -> list[Insight]:
    """Without those that later words contradict or replace; of verdicts on one fault, the last."""
    kept: list[Insight] = []
    later = sorted(verdicts, key=lambda one: one.index)
    newer: list[_Verdict] = []  # verdicts among the insights, of the same text too
    for one in reversed(insights):
        own = _verdict(one.index, one.text)
        fault = _NAMES_A_FAULT.search(one.text) is not None
        while later and later[-1].index > one.index:
            newer.append(later.pop())
        if not any(_replaces(verdict, own, fault) for verdict in newer):
            kept.append(one)
        if fault:
            newer.append(own)
    return kept[::-1]


def _replaces(verdict: _Verdict, own: _Verdict, fault: bool) -> bool:
    if verdict.index - own.index > _SAME_HUNT:
        return False
    if fault and verdict.found and verdict.index > own.index:
        return True
    return bool(verdict.names & own.names) or len(verdict.words & own.words) >= _SHARED_WORDS


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────

_LEAST_ITEMS, _MOST_ITEMS = 3, 14
_LONGEST_ITEM = 260


def _listings(index: int, said: bool, blocks: list[_Block]) -> Iterator[Listing]:
    """What there is: places, failing tests, points to do. Guesses at a cause are none."""
    for block in blocks:
        if not block.listed or len(block.told) < _LEAST_ITEMS or _HEDGED.search(block.lead):
            continue
        told = [_THEN_LOOKS.sub("", one) for one in block.told]
        named = [one for one in told if _NAME.search(one)]
        guesses = [one for one in told if _HEDGED.search(one)]
        if len(named) * 5 >= len(told) * 3 and len(guesses) * 4 < len(told):
            items = tuple(clipped(one, _LONGEST_ITEM) for one in told[:_MOST_ITEMS])
            yield Listing(index, block.lead, items, said, len(told) - len(items))


_THEN_LOOKS = re.compile(r"(?<=\S)\s+(?:Let me|Let's|I'll|I need to|I should|Wait|Now let)\b.*$")


# ── of two that say the same ──────────────────────────────────────────────────────────────────────

_WORD = re.compile(r"\w{4,}")
_ALIKE = 0.6


def _newest_view(insights: list[Insight]) -> list[Insight]:
    """Of those that say much the same, the one that says it best; the newer where both do."""
    kept: list[tuple[Insight, set[str]]] = []
    for one in insights:
        words = set(_WORD.findall(one.text.lower()))
        alike = [other for other in kept if _is_alike(words, other[1])]
        if all(other.worth <= one.worth for other, _ in alike):
            kept = [other for other in kept if other not in alike]
            kept.append((one, words))
        kept = kept[-_INSIGHTS:]
    return [one for one, _ in kept]


def _is_alike(words: set[str], others: set[str]) -> bool:
    return len(words & others) >= _ALIKE * min(len(words), len(others))
