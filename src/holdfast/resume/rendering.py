"""How a briefing is written down: quotations, paths, lists, long texts cut in the middle."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.base.text import clipped, end_of, is_list_item, one_line, sentences, start_of

SMALLEST_BUDGET = 200
DEFAULT_BUDGET = 9_500
"""What Claude Code takes whole; the others take as much or more, or cut it themselves."""

# ── quotations ────────────────────────────────────────────────────────────────────────────────────

# Text of others, put into the context so that it stays a quotation.
#
# Tool output and file content may hold anything, a forged heading or an order to the next
# agent among it. Whatever is quoted here cannot end its own quotation: an inline quotation
# has no line breaks, and a mark is always longer than any run of marks inside it.

_TICKS = re.compile(r"`+")
# Invisible or direction-changing characters make a text look like another one.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


# What ends a line for some readers, though not for us: inside a quotation it is a blank.
_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def visible(text: str) -> str:
    return _UNSEEN.sub("", _OTHER_LINE_ENDS.sub(" ", text))


def code(text: str, most: int = 100_000) -> str:
    """One line as an inline code span that its content cannot close."""
    line = clipped(one_line(visible(text)), most)
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    if not longest:
        return f"`{line}`"
    marks = "`" * (longest + 1)
    return (
        f"{marks} {line} {marks}" if line.startswith("`") or line.endswith("`") else f"{marks}{line}{marks}"
    )


def fenced(text: str) -> str:
    """Several lines as a code block that its content cannot close."""
    body = visible(text).replace("\r", "")
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}text\n{body}\n{marks}"


def quoted(text: str, most: int = 100_000) -> str:
    """Words of a person, verbatim but for line breaks."""
    return f'"{balanced(clipped(one_line(visible(text)), most))}"'


def prose(text: str, most: int = 100_000) -> str:
    """A sentence of the agent, on one line."""
    return balanced(clipped(one_line(visible(text)), most))


def balanced(text: str) -> str:
    """A code mark that was cut in two must not swallow what follows."""
    return text + "`" if text.count("`") % 2 else text


# ── paths and lists ───────────────────────────────────────────────────────────────────────────────

_TEMPORARY = ("/tmp/", "/private/tmp/", "/var/folders/", "/dev/")  # noqa: S108
_PROSE_FILES = (".md", ".txt", ".rst", ".adoc")


class Paths:
    """Paths as the repository has them; what is outside of it keeps its whole path."""

    def __init__(self, root: str | None) -> None:
        self._root = f"{root.rstrip('/')}/" if root else ""

    def __call__(self, path: str) -> str:
        return code(self.short(path), 200)

    def short(self, path: str) -> str:
        clean = path.replace("\\", "/")
        return clean.removeprefix(self._root) if self._root else clean

    def is_inside(self, path: str) -> bool:
        """Whether it belongs to the work: a scratch file and another folder's file do not."""
        if self._root and path.startswith(self._root):
            return not path.startswith(f"{self._root}.claude/plans/")
        if path.startswith(_TEMPORARY) or "/.claude/" in path:
            return False
        return not path.startswith(("/", "~")) or not self._root

    def is_code(self, path: str) -> bool:
        return self.is_inside(path) and not path.endswith(_PROSE_FILES)


def listed(texts: Iterable[str], most: int = 12) -> str:
    every = list(dict.fromkeys(texts))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return "; ".join(every[:most]) + more


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


# ── long texts ────────────────────────────────────────────────────────────────────────────────────

_GAP = "[…]"
_TOO_SHORT_FOR_AN_OUTLINE = 700
_HEADING = re.compile(r"^\s*(?:#{1,6} |\*\*[^*]+\*\*:?\s*$|[A-Z][\w ,'-]{2,60}:\s*$)")
_ORDERS = re.compile(
    r"\b(?:must|never|always|don'?t|do not|only|make sure|ensure|should|please|your task|need to"
    r"|needs to|instead"
    r"|implement|fix|add|remove|rename|update|write|create|use|keep|avoid|can you|could you)\b",
    re.IGNORECASE,
)


def condensed(text: str, most: int) -> str:
    """A long text cut in the middle: its beginning and its end, then orders and headings between them."""
    if len(text) <= most:
        return text
    lines = [line.rstrip() for line in text.split("\n")]
    if len(lines) < 6 or most < _TOO_SHORT_FOR_AN_OUTLINE:
        half = (most - len(_GAP) - 2) // 2
        return f"{start_of(text, half)} {_GAP} {end_of(text, half)}"
    units = list(_units(lines))
    kept: set[int] = set()
    left = most
    for unit in (*_as_far_as(units, lines, most // 3), *_as_far_as(units[::-1], lines, most // 4)):
        left -= 0 if unit[0] in kept else _cost(unit, lines)
        kept.update(unit)
    for unit in _by_weight(units, lines):
        cost = _cost(unit, lines) + len(_GAP) + 1
        if unit[0] not in kept and cost <= left:
            kept.update(unit)
            left -= cost
    return _with_gaps(lines, _not_alone(kept, lines)) or clipped(text, most)


def _not_alone(kept: set[int], lines: list[str]) -> set[int]:
    """Without lines that stand between two gaps: only a heading says something there."""
    told = [place for place, line in enumerate(lines) if line.strip()]
    alone = {
        place
        for before, place, after in zip(told, told[1:], told[2:], strict=False)
        if before not in kept and after not in kept and not _HEADING.match(lines[place])
    }
    return kept - alone


def _as_far_as(units: list[list[int]], lines: list[str], room: int) -> Iterator[list[int]]:
    """Those from one end on that fit, blocks of code left out that do not."""
    for unit in units:
        cost = _cost(unit, lines) + len(_GAP)
        if len(unit) > 1:  # code comes last, where there is room for it
            continue
        if cost > room:
            return
        if cost <= room:
            room -= cost
            yield unit


def _cost(unit: list[int], lines: list[str]) -> int:
    return sum(len(lines[place]) + 1 for place in unit)


def conclusion(text: str, most: int) -> str:
    """A long thought: how it begins, and as much as there is room for of what it comes to."""
    if len(text) <= most:
        return text
    begin = start_of(text, most // 5)
    return f"{begin} {_GAP} {end_of(text, most - len(begin) - len(_GAP) - 2)}"


def without_code(text: str) -> str:
    """A long text without its longer blocks of code; the line that leads to one shows the gap."""
    lines = text.split("\n")
    units = list(_units(lines))
    kept = {place for unit in units if len(unit) <= _SHORT_BLOCK for place in unit}
    return text if len(kept) == sum(map(len, units)) else _with_gaps(lines, kept)


_SHORT_BLOCK = 4


def _by_weight(units: list[list[int]], lines: list[str]) -> list[list[int]]:
    """Orders, headings, what stands under those, the rest; blocks of code as a whole: half tells nothing."""

    places = [one[0] for one in units]
    opening = {place for before, place in itertools.pairwise(places) if _HEADING.match(lines[before])}

    def weight(unit: list[int]) -> int:
        if len(unit) > 1:
            return 4
        line = lines[unit[0]]
        if _ORDERS.search(line):
            return 0
        return 1 if _HEADING.match(line) else 2 if unit[0] in opening else 3

    return sorted(units, key=weight)


def _units(lines: list[str]) -> Iterator[list[int]]:
    block: list[int] = []
    for place, line in enumerate(lines):
        mark = line.lstrip().startswith("```")
        if mark or block:
            block.append(place)
            if mark and len(block) > 1:
                yield block
                block = []
        elif line.strip():
            yield [place]
    if block:
        yield block


def _with_gaps(lines: list[str], kept: set[int]) -> str:
    """Marked at the end of the line before: a mark of its own after every other line would be a sieve."""
    out: list[str] = []
    told = [place for place, line in enumerate(lines) if line.strip()]
    after = dict(itertools.pairwise(told))
    for place, line in enumerate(lines):
        if place in kept and line.endswith(":") and after.get(place) not in kept:
            if out and not out[-1].endswith(_GAP):
                out[-1] = f"{out[-1]} {_GAP}"
        elif place in kept:
            out.append(line)
        elif line.strip() and not out:
            out.append(_GAP)
        elif line.strip() and not out[-1].endswith(_GAP):
            fence = out[-1].lstrip().startswith("```")
            out[-1:] = [out[-1], _GAP] if fence else [f"{out[-1]} {_GAP}"]
    return "\n".join(out)


def without_output(said: str) -> str:
    """A message without the output that was pasted into it, but for the errors that differ."""
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    pasted = [line for line in lines if _OUTPUT.match(line)]
    if len(pasted) < _PASTED or len(pasted) * 2 < len(lines):
        return said
    alike: dict[str, str] = {}
    for line in pasted:
        if _COMPLAINS.search(line):
            alike.setdefault(_PLACE_IN.sub("", line)[:_ALIKE_FROM], line)
    shown = [lines[0], *[*alike.values()][:_ERRORS_QUOTED]]
    kept = [clipped(one, _OF_OUTPUT) for one in lines if one in shown or one not in pasted]
    return f"{' '.join(kept)} […]"


_PASTED, _ERRORS_QUOTED, _OF_OUTPUT, _ALIKE_FROM = 5, 2, 200, 40
_OUTPUT = re.compile(
    r"\S{40,}|[{}\[\]^|$]|\d{2,4}[-:/]\d\d|[\w./@-]+:\d+|\S+=\S|\d+ \w+:?$|\* \w+: \d+$"
    r"|(?i:error|warn(?:ing)?|info|debug|fatal|panic|caused by)\b\W*[:\[]|(?:FAIL|ok|Ran)\s|-{3} |Running \["
    r"|at \S+[(:]|(?:func|def|class|return|import|from) \S|Traceback|File \""
)
_COMPLAINS = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|panic|exception|denied|cannot|not found)\b", re.IGNORECASE
)
_PLACE_IN = re.compile(r"[\w./@-]*/[\w./@-]+|\b[A-Za-z]+[A-Z]\w*|\d+")


# ── what tells most ───────────────────────────────────────────────────────────────────────────────

_NAMED = re.compile(r"`[^`]+`|\b[a-z]\w*[A-Z_]\w+|\w\(\)")
_EMPTY_TALK = re.compile(
    r"^(?:(?:done|good (?:call|question|catch|point|idea)"
    r"|got it|great|perfect|ok(?:ay)?|sure|yes|no problem|you(?:'re| are| raise)\b[^.]*"
    r"|this is (?:a )?(?:great|good|excellent|interesting)[^.]*"
    r"|i see|good|that makes sense|makes sense|here(?:'s| is| are)\b[^.]*|found it)[.!,]*\s*)$"
    r"|^(?:now |ok,? |good,? |great,? )?(?:let me|let's|i'll|i will|i need to|now i)\b|[:?]$"
    r"|^(?:should|would|could|may|might)\b",
    re.IGNORECASE,
)
_REASONED = re.compile(
    r"\b(?:because|since|so that|root cause|turns out|to avoid|to keep|otherwise|instead of|rather than"
    r"|which means|by design|caused by|the (?:issue|problem|bug|cause|reason|fix) (?:is|was)|misleading"
    r"|would (?:break|fail|be))\b",
    re.IGNORECASE,
)


def gist(text: str, most: int, *, lists: bool = True) -> str:
    """The whole sentences and named points that tell most, in their order.

    Without `lists` sentences alone: in few words a point does not show what its list is about.
    """
    units = [unit for unit in _tellable(text) if lists or not unit.level]
    if not units and not lists:
        return ""
    if not units:
        told = (one for one in map(prose, sentences(text)) if one.strip("-*_ "))
        return _from_the_start([one for one in told if not _EMPTY_TALK.search(one)], most)
    worths = [_worth(unit.text) - unit.level + (place == 0) for place, unit in enumerate(units)]
    order = sorted(range(len(units)), key=lambda place: (-worths[place], place))
    kept: set[int] = set()
    left = most
    for place in order:
        if len(units[place].text) < left:
            kept.add(place)
            left -= len(units[place].text) + 2
    return _joined([units[place] for place in sorted(kept)], left) or prose(units[order[0]].text, most)


@dataclass(frozen=True, slots=True)
class _Unit:
    text: str
    level: int = 0  # of a point in a list: how deep it stands
    lead: str = ""  # of such a point: what the list is about


def _tellable(text: str) -> Iterator[_Unit]:
    """Whole sentences, and points of lists that name something."""
    in_code = False
    lead = ""
    for line in text.split("\n"):
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        told = [] if in_code else [prose(one) for one in sentences(line)]
        if told and is_list_item(line.strip()):
            point = " ".join(told)
            if _is_told(point) and not _UNDECIDED.search(lead):
                yield _Unit(point.rstrip(";,."), 2 if line[:1].isspace() else 1, lead)
        elif told:
            lead = told[-1] if told[-1].endswith(":") else ""
            for one in told:
                if _WHOLE_SENTENCE.search(one) and not _EMPTY_TALK.search(one):
                    yield _Unit(one)


def _is_told(point: str) -> bool:
    """Whether a point says something by itself, of something that has a name."""
    words = _WORDS.findall(_NAMED.sub("", point))
    return (
        len(words) > 3
        and len(point) < _LONGEST_POINT
        and bool(_NAMED.search(point))
        and point[-1] not in ":?"
    )


_WORDS = re.compile(r"[A-Za-z]{2,}")
_LONGEST_POINT = 220
_UNDECIDED = re.compile(
    r"\b(?:options?|alternatives?|approaches|choices|either|could)\b"
    r"|^\W*(?:where|legend|example|scenario|navigation|symbols?|rules)\b",
    re.IGNORECASE,
)
_BARE_LEAD = re.compile(
    r"(?:summary|changes?|here|result|this|now|let me|what|files?|key|details|status)\b", re.IGNORECASE
)


def _joined(units: list[_Unit], left: int) -> str:
    told = ""
    lead = ""
    for place, unit in enumerate(units):
        if unit.lead and unit.lead != lead and len(unit.lead) < left and not _BARE_LEAD.match(unit.lead):
            told += f"{' ' if told else ''}{unit.lead}"
            left -= len(unit.lead)
        lead = unit.lead
        goes_on = place + 1 < len(units) and units[place + 1].level and units[place + 1].lead == lead
        told += f"{' ' if told else ''}{unit.text}{'' if not unit.level else ';' if goes_on else '.'}"
    return told


_WHOLE_SENTENCE = re.compile(r"^[A-Z`\"'(].{20,}(?<!\.\.)[.!]$")


def _from_the_start(points: list[str], most: int) -> str:
    told = ""
    for point in points:
        if told and len(told) + len(point) + 2 > most:
            break
        told = f"{told}{' ' if told.endswith('.') else '; '}{point}" if told else prose(point, most)
    return told


_APPROVES = re.compile(r"(?:good|great|perfect|ok(?:ay)?|excellent)\b", re.IGNORECASE)


def _says_something(sentence: str) -> bool:
    return _WHOLE_SENTENCE.search(sentence) is not None and not _EMPTY_TALK.search(sentence)


def _worth(sentence: str) -> int:
    return (
        2 * bool(_REASONED.search(sentence)) + bool(_NAMED.search(sentence)) - bool(_APPROVES.match(sentence))
    )


def finding(text: str) -> tuple[str, int]:
    """The sentence that says most of what was found or meant, and how much that is; below 0 it is nothing."""
    told = [one for one in sentences(text) if len(one) > 24] or [one_line(text)]
    worth = [(_worth(one) if _says_something(one) else -1, -place) for place, one in enumerate(told)]
    best = max(worth)
    return told[-best[1]], best[0]
