"""A briefing whose prose is the outgoing agent's own summary, and whose facts are the ledger's.

Each claim of the summary that the ledger can check is checked, and corrected where it stands. What no
record can confirm is left as the agent's word.
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
_ROOM_FOR_FACTS = 2_400
_LEAST_FOR_FACTS = 1_000
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
    """As much of it as there is room for; the longest code goes first, then the middle.

    The last two parts tell where the work stands: their code stays.
    """
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
