"""The turns of phrase by which people and agents mark a correction, a rule, a choice, a reason.

Plain English cues, none of them tied to a project. A missed one costs an item of the
briefing; a wrong one costs a line of it.
"""

from __future__ import annotations

import re

from holdfast.model.gathered import ChoiceKind


def _any_of(*phrases: str) -> str:
    return rf"\b(?:{'|'.join(phrases)})\b"


def _cue(*phrases: str) -> re.Pattern[str]:
    return re.compile(_any_of(*phrases), re.IGNORECASE)


_OPENS_CORRECTION = _any_of(
    "no", "nope", "wait", "stop", "hold on", "actually", "not quite", "that'?s (?:not|wrong)", "but", "hmm",
    "you (?:forgot|missed|broke)", "undo", "revert",
)  # fmt: skip
CORRECTION = re.compile(
    f"^{_OPENS_CORRECTION}|"
    + _any_of(
        "instead of", "rather than", "shouldn'?t", "wrong", "doesn'?t make sense", "messed up",
        "why (?:did|are|is) (?:you|this|it)", "I (?:meant|said)",
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
FOUND_OUT = _cue(
    "the (?:issue|problem|root cause|bug|cause|reason|culprit|error) (?:is|was|here)", "root cause",
    "turns out", "is caused", "because", "this (?:means|happens|explains)", "I found",
    "I see (?:the|that|now)", "confirmed", "it looks like", "doesn'?t (?:work|exist|support)", "is already",
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
