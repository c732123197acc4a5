"""A briefing whose prose is the outgoing agent's own summary, and whose facts are the ledger's.

Each claim of the summary that the ledger can check is checked, and corrected where it stands. What no
record can confirm is left as the agent's word. Of an older summary, the parts that last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.resume.briefing import Statement
from holdfast.resume.ledger import Correction, WorkLedger, corrected
from holdfast.resume.rendering import condensed, fenced, quoted, visible

_ANALYSIS = re.compile(
    r"<analysis>.*?</analysis>|^\s*Analysis:\s*\n.*?(?=^\s*Summary:\s*$)", re.DOTALL | re.MULTILINE
)
_FRAME = re.compile(
    r"^This session is being continued from a previous conversation[^\n]*\n|</?summary>|^\s*Summary:\s*$"
    r"|^If you need specific details from before compaction.*\Z|^Please continue the conversation "
    r"from where.*\Z",
    re.MULTILINE | re.DOTALL,
)
_SAID_SECTION = re.compile(r"^[ \t]*(?:#+ *)?(?:\d+\. *)?(?:\*\*)?All [Uu]ser [Mm]essages", re.MULTILINE)
_NEXT_TITLE = re.compile(r"^(?:#+ *)?(?:\*\*)?\d+\. *(?:\*\*)?[A-Z]", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^[ \t]*```.*?^[ \t]*```[ \t]*\n", re.DOTALL | re.MULTILINE)
_LONGEST = 60_000
_ROOM_FOR_FACTS = 3_400
_LEAST_FOR_FACTS = 2_600
_ROOM_FOR_NOTES = 900
_SHORTEST_NOTE = 50


def bare(summary: str) -> str:
    """The summary itself: without the agent's notes for it and the program's words around it."""
    text = visible(summary[:_LONGEST]).replace("\r", "")
    return re.sub(r"\n{3,}", "\n\n", _FRAME.sub("", _ANALYSIS.sub("", text))).strip()


def without_user_messages(summary: str) -> str:
    """The record has the user's words themselves."""
    found = _SAID_SECTION.search(summary)
    if not found:
        return summary
    following = _NEXT_TITLE.search(summary, found.end())
    return (
        f"{summary[: found.start()].rstrip()}\n\n{summary[following.start() :] if following else ''}".strip()
    )


_NEXT_STEP = re.compile(
    r"^[ \t]*(?:#+ *)?(?:\d+\. *)?(?:\*\*)?(?:Optional )?Next Steps?(?:\*\*)?:?(?:\*\*)?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)


def next_step(summary: str) -> str:
    """What it names as the next step, where it has a part of that title."""
    found = _NEXT_STEP.search(text := bare(summary))
    if not found:
        return ""
    following = _NEXT_TITLE.search(text, found.end())
    return text[found.end() : following.start() if following else len(text)].strip()


_CONCEPTS = re.compile(r"^(?:#+ *)?(?:\*\*)?\d+\. *(?:\*\*)?Key (?:Technical )?Concepts\b", re.MULTILINE)
_FILES = re.compile(r"^(?:#+ *)?(?:\*\*)?\d+\. *(?:\*\*)?[^\n]*\b(?:Files|Code)\b[^\n]*$", re.MULTILINE)
_SHORT_CODE = 10
_SEE_FILE = "(code left out: see the file)"
TOLD_ABOVE = 500


def for_a_reader(summary: str) -> str:
    """Without what stands elsewhere: the user's words, long code of files, a next step that is told above."""
    text = without_user_messages(bare(summary))
    if 0 < len(next_step(summary)) <= TOLD_ABOVE and (found := _NEXT_STEP.search(text)):
        following = _NEXT_TITLE.search(text, found.end())
        text = f"{text[: found.start()].rstrip()}\n\n{text[following.start() :] if following else ''}".strip()
    if part := _FILES.search(text):
        following = _NEXT_TITLE.search(text, part.end())
        end = following.start() if following else len(text)
        text = text[: part.end()] + _CODE_BLOCK.sub(_short_code, text[part.end() : end]) + text[end:]
    return text


def _short_code(block: re.Match[str]) -> str:
    lines = block[0].count("\n")
    return block[0] if lines <= _SHORT_CODE + 2 else f"{_indent(block[0])}{_SEE_FILE}\n"


def notes_left(summary: str, most: int) -> str:
    """Lines of the agent's notes for its summary that name what the summary itself does not."""
    notes = _ANALYSIS.search(summary[:_LONGEST].replace("\r", ""))
    told = bare(summary)
    lines = (line.strip() for line in notes[0].split("\n")) if notes else ()
    kept: list[str] = []
    for line in lines:
        names = _MARKED.findall(line)
        new = names and not any(name in told for name in names)
        if new and len(line) > _SHORTEST_NOTE and len(line) < most:
            kept.append(line)
            most -= len(line) + 1
    return "\n".join(kept)


_MARKED = re.compile(r"`([^`]{3,60})`")


def shown(summary: str, most: int) -> str:
    """As much of it as there is room for; its list of concepts goes first, the longest code, then the middle.

    The last two parts tell where the work stands: their code stays.
    """
    if len(summary) > most and (part := _CONCEPTS.search(summary)):
        following = _NEXT_TITLE.search(summary, part.end())
        summary = f"{summary[: part.start()]}{summary[following.start() :] if following else ''}"
    if len(summary) <= most:
        return summary
    titles = [found.start() for found in _NEXT_TITLE.finditer(summary)]
    end = titles[-2] if len(titles) > 1 else len(summary)
    return condensed(_less_code(summary[:end], len(summary) - most) + summary[end:], most)


def _less_code(text: str, too_much: int) -> str:
    """Without its longest blocks of code, as many as must go."""
    for block in sorted(_CODE_BLOCK.findall(text), key=len, reverse=True):
        if too_much <= 0:
            break
        text = text.replace(block, f"{_indent(block)}[…]\n", 1)
        too_much -= len(block)
    return text


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def correction_line(one: Correction, where: str = "below") -> str:
    return f"The summary {where} says {quoted(one.claim, 160)}; the record: {one.instead}."


def told(summary: str, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    """The corrections first, then the summary in as much room as the facts leave."""
    text, corrections = corrected(for_a_reader(summary), ledger)
    for one in corrections:
        yield Statement("corrections", "corrections", correction_line(one), 0)
    freed = len(summary) - len(text)
    most = max(int(room * 0.55), room - max(_LEAST_FOR_FACTS, min(_ROOM_FOR_FACTS, freed)))
    if text:
        yield Statement("summary", "summary", f"\n{fenced(shown(text, most))}", 0)
    if notes := notes_left(summary, _ROOM_FOR_NOTES):
        lead = "From the agent's notes for that summary, what stands in them alone:"
        yield Statement("summary", "notes", f"{lead}\n{fenced(visible(notes))}", 5)


# ── what lasts of an older one ────────────────────────────────────────────────────────────────────

_SECTION = re.compile(r"(?:#+ *)?(?:\*\*)?(?:\d+\. +)?(?:\*\*)?([A-Z][\w ,/&'-]{3,50})(?:\*\*)?:(?:\*\*)?")
_LONGEST_TITLE = 80
_OUTDATED = re.compile(
    r"pending|current work|next step|user messages|files and code|open tasks", re.IGNORECASE
)
_WHY = re.compile(r"decision|decided|insight|finding|learn", re.IGNORECASE)
_FENCED = re.compile(r"^[ \t]*```.*?^[ \t]*```[ \t]*\n?", re.DOTALL | re.MULTILINE)


def what_lasts(summary: str, most: int) -> str:
    """What was wanted and decided: what was then found out and fixed is done, or was refuted since."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in _FENCED.sub("", summary).split("\n"):
        title = _SECTION.fullmatch(line.strip()) if len(line) < _LONGEST_TITLE else None
        if title and not line.startswith((" ", "\t", "-")):
            parts.append((title[1], []))
        parts[-1][1].append(line)
    wanted = parts[1][1] if len(parts) > 1 else parts[0][1]
    told = [_first_lines(wanted[1:] if len(parts) > 1 else wanted, most * 2 // 3)]
    left = most - len(told[0])
    why = [lines for title, lines in parts if _WHY.search(title) and lines is not wanted]
    told += [_first_lines(lines, left // len(why)) for lines in why]
    return "\n".join(filter(None, told)).strip("\n")


def _first_lines(lines: list[str], most: int) -> str:
    """As far as there is room."""
    kept: list[str] = []
    left = most
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        if line.strip():
            kept.append(line)
    while len(kept) > 1 and kept[-1].rstrip("* ").endswith(":"):
        kept.pop()  # what it leads to does not follow
    return "\n".join(kept).strip("\n") or condensed("\n".join(lines), most)


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
