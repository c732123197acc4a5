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
_ROOM_FOR_FACTS = 3_000


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
    return f"{summary[: found.start()].rstrip()}\n{summary[following.start() :] if following else ''}".strip()


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
        text = text.replace(block, "", 1)
        too_much -= len(block)
    return text


def correction_line(one: Correction, where: str = "below") -> str:
    return f"The summary {where} says {quoted(one.claim, 160)}; the record: {one.instead}."


def told(summary: str, ledger: WorkLedger, room: int) -> Iterator[Statement]:
    """The corrections first, then the summary in as much room as the facts leave."""
    text, corrections = corrected(without_user_messages(bare(summary)), ledger)
    for one in corrections:
        yield Statement("corrections", "corrections", correction_line(one), 0)
    most = max(int(room * 0.55), room - _ROOM_FOR_FACTS)
    if text:
        yield Statement("summary", "summary", f"\n{fenced(shown(text, most))}", 0)
