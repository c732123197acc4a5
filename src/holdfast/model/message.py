"""One message of an agent's session, whichever agent wrote it.

Readers in ``transcripts/`` turn each agent's own file into a stream of these.
They are plain slotted dataclasses, neither pydantic models nor frozen: a session file
may hold a gigabyte, and the stream must cost little more than parsing its JSON (a frozen
one takes three times as long to make). Nobody changes one that was passed on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from holdfast.model.gathered import Turn

Role = Literal["user", "assistant", "system"]
ToolOutcome = Literal["ok", "error", "interrupted", "unknown"]
TurnState = Literal["open", "ended", "stopped", "failed"]


@dataclass(slots=True)
class ToolCall:
    """A tool the agent called: what it asked for."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class ToolResult:
    """What came back; joined to its call by ``call_id``."""

    call_id: str
    text: str
    outcome: ToolOutcome


@dataclass(slots=True)
class TokenUsage:
    """Tokens of one model call, already de-duplicated by the reader."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    model: str | None = None

    @property
    def context(self) -> int:
        """How much of the window was filled when the call ended."""
        return self.input_tokens + self.cache_read + self.cache_write + self.output_tokens


@dataclass(frozen=True, slots=True)
class TodoItem:
    text: str
    status: Literal["pending", "in_progress", "completed"]


@dataclass(slots=True)
class Message:
    """One step of the conversation, in file order.

    ``index`` is its position in the stream: the evidence that decisions and
    errors cite. ``text`` is what was said; thinking is kept apart, since it is
    not part of the talk. ``todos`` is the whole list as of this message, where
    the message changed it. A ``compaction`` message carries the agent's own
    summary as text and marks that what came before it left the window.
    """

    index: int
    role: Role
    text: str = ""
    thinking: str = ""
    at: str | None = None
    id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    usage: TokenUsage | None = None
    todos: tuple[TodoItem, ...] | None = None
    subagent: str | None = None
    compaction: bool = False
    injected: bool = False  # put there by the agent's program, not typed by the user
    undone_from: int | None = None  # the user took back every message from this index on
    turn: TurnState | None = None  # how the agent's turn stands after it, where the record says so


@dataclass(slots=True)
class ReadReport:
    """What a reader met on its way; filled while the stream is consumed."""

    agent: str = ""
    session_id: str | None = None
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    title: str | None = None  # a name for the session, where the agent gave it one
    lines: int = 0
    torn: int = 0
    unknown: int = 0
    duplicated: int = 0
    oversized: int = 0
    taken_back: int = 0  # messages the user had already undone, left out of the stream
    unknown_types: dict[str, int] = field(default_factory=dict[str, int])


# ── short words ────────────────────────────────────────────────────────────────────────────

# Which short words of a user ask for nothing new: they let the work go on that was asked for before.
#
# It is told by the form: few words, and none of them names an object of work. A word that is not known
# here is taken for one, unless it only does something to "it". English and German.


def _known_as(text: str) -> frozenset[str]:
    return frozenset(text.split("|"))


_ASSENTS = _known_as(
    "absolutely|accepted|agree|agreed|alright|approve|approved|aye|certainly|completely|correct|"
    "definitely|exactly|fine|good|great|indeed|k|kk|lgtm|nice|ok|okay|okey|okidoki|perfect|right|"
    "sounds|sure|true|y|ya|yea|yeah|yep|yes|yup|ja|jap|jawohl|jep|jo|jup|einverstanden|genau|gern|"
    "gerne|gut|klar|klingt|natürlich|passt|prima|richtig|sicher|stimmt|super"
)
_GOES_ON = _known_as(
    "begin|carry|complete|continue|continuing|do|does|finish|go|going|keep|proceed|proceeding|resume|"
    "start|try|weiter|weitermachen|weitergehen|weiterarbeiten|fortfahren|fahr|fahre|geh|leg|leit|los|"
    "mach|mache|machen|macht|machs|starte|tu"
)
_SAYS_NOTHING = _known_as(
    "a|again|ahead|all|an|and|any|anyway|are|as|at|back|be|before|begun|both|but|by|can|cheers|could|"
    "danke|done|each|earlier|end|everything|first|for|from|have|hello|here|hey|hi|i|if|in|is|it|its|"
    "job|just|last|left|let|lets|like|likewise|looks|may|me|mentioned|more|my|next|now|of|off|on|once|"
    "one|or|other|our|out|pick|plan|planned|please|pls|point|previously|proposal|proposed|put|"
    "recommended|remaining|remains|rest|said|same|should|so|still|step|steps|such|suggested|"
    "suggestion|task|tasks|thank|thanks|that|the|them|then|there|these|they|thing|things|this|those|"
    "till|to|today|too|until|up|us|want|was|way|we|well|were|what|whatever|where|which|will|with|work|"
    "works|would|yesterday|you|your|described|discussed|alle|allem|alles|also|auch|auf|beide|beides|"
    "besprochen|bis|bitte|da|damit|dann|das|davon|dem|den|der|die|dies|diese|doch|du|ein|eine|einfach|"
    "einmal|ende|es|fertig|fort|geplant|habe|hier|ich|ihr|ist|jetzt|kannst|können|könnt|mal|mir|mit|"
    "nächste|nächsten|noch|nochmal|nun|nur|ruhig|schritt|sollst|und|vorgeschlagen|vorher|war|wie|wir|"
    "zu|zum"
)
_POINTS_BACK = _known_as(
    "it|that|this|them|these|those|all|both|everything|das|es|dies|diese|beide|beides|alles"
)
_TAKES_BACK = _known_as(
    "no|not|nope|never|stop|wait|undo|revert|cancel|drop|remove|delete|abort|forget|ignore|skip|why|"
    "how|who|explain|nein|nicht|kein|keine|stopp|halt|warte|zurück|abbrechen|lösche|entferne|warum"
)
_KNOWN = _ASSENTS | _GOES_ON | _SAYS_NOTHING
_GOES_AHEAD = frozenset((*_ASSENTS, *_GOES_ON, "ahead", "again", "same", "pick", "nochmal"))
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NAMES_SOMETHING = re.compile(r"[\d`/\\_#@<>{}=\"\u201c]|\w\.\w")
_THUMBS_UP = re.compile(
    r"[\s\U0001f44d\U0001f44c\U0001f3fb-\U0001f3ff\U0001f64f\U0001f680\U0001f4af\u2705\u2714\ufe0f.!]+"
)
_MOST_WORDS = 8
_PLAN_TAKEN_UP = "Implement the plan."
"""What Codex writes for a user who chooses to."""


def is_go_ahead(said: str) -> bool:
    """Whether it says no more than "yes" or "go on", in whatever words."""
    if said == _PLAN_TAKEN_UP:
        return True
    words = _words(said)
    if words is None:
        return bool(said.strip()) and _THUMBS_UP.fullmatch(said) is not None
    if said.rstrip().endswith("?") and _GOES_ON.isdisjoint(words):
        return False
    return _KNOWN.issuperset(words) and not _GOES_AHEAD.isdisjoint(words)


def asks_nothing_new(said: str) -> bool:
    """Whether it names no object of work of its own: a go-ahead, a thank-you, or "now commit it"."""
    words = _words(said)
    if words is None or is_go_ahead(said):
        return words is not None or is_go_ahead(said)
    if said.rstrip().endswith("?") or not _TAKES_BACK.isdisjoint(words):
        return False
    unknown = [place for place, word in enumerate(words) if word not in _KNOWN]
    return not unknown or (
        len(unknown) == 1 and unknown[0] + 1 < len(words) and words[unknown[0] + 1] in _POINTS_BACK
    )


def latest_request(turns: Sequence[Turn]) -> Turn:
    """The newest message that is more than a go-ahead or a thank-you; where none is, the newest."""
    return next((turn for turn in reversed(turns) if not _is_bare(turn.said)), turns[-1])


def _is_bare(said: str) -> bool:
    words = _words(said)
    is_courtesy = words is not None and _KNOWN.issuperset(words) and not said.rstrip().endswith("?")
    return is_courtesy or is_go_ahead(said)


def _words(said: str) -> list[str] | None:
    """Of a message that is short enough; None where there are none, or something but words."""
    said = said.strip(' \t\n"')  # one agent's command line puts what is typed into quotes
    if len(said) > _LONGEST or _NAMES_SOMETHING.search(said):
        return None
    words = [one.replace("\u2019", "'") for one in _WORD.findall(said.lower())]
    words = [one.removesuffix("'s").replace("'", "") for one in words]
    return words if 0 < len(words) <= _MOST_WORDS else None


_LONGEST = 60
