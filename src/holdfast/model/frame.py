"""How Holdfast's own words to an agent begin.

They come back in the agent's record as if the user had typed them; whoever reads a record
knows them by these beginnings and leaves them out.
"""

from __future__ import annotations

import re

HANDED_OVER = "Go on with the work that another agent was doing in this folder (paused as "
PAUSED_EARLIER = "This work was begun in an earlier session, which was paused. What follows was recorded then"
GOES_ON = "The work you see above was paused, and goes on now. What follows was recorded since"
TRIED_BEFORE = "An earlier attempt at this task failed or was cut off."
PAUSED_HERE = "Work in this folder was paused"
ANOTHER_SESSION = "Another session of this folder"
MOVED_ON = "Since then the repository moved from commit "
BRIEFING = "# Handover\nYou are taking over a coding session"
SHORT_BRIEFING = "# Handover of a coding session"
LEFT_OUT = "Left out for room: "
HANDOVER_FORM = """\
Now: the goal, where it stands, the exact next step with file and command
Decided: each choice with its reason; what was rejected, and by whom
State: what is done, half-done or failing; tests; what is not committed or pushed
Watch out: the user's rules, traps, values that are hard to find again"""
WRAP_UP = f"""\
[holdfast] The work pauses here and goes on in a new session, which does not see this conversation. Call no \
tools and start nothing new: answer with your handover alone, in at most 3,000 characters and in this form:
{HANDOVER_FORM}"""

_OPENS = (
    HANDED_OVER,
    PAUSED_EARLIER,
    GOES_ON,
    "An earlier attempt at this task ",
    "[holdfast] ",
    BRIEFING,
    SHORT_BRIEFING,
)
_WRAP_UP_OPENS = WRAP_UP.partition(":")[0]
_HANDED_OVER = re.compile(re.escape(HANDED_OVER) + r"([\w.-]{1,100})\)")
_FOLLOWS = ("## ", MOVED_ON, LEFT_OUT)


def handed_over(text: str) -> str:
    """The session that a prompt hands over; empty where it hands over none."""
    found = _HANDED_OVER.match(text)
    return found[1] if found else ""


def asks_to_wrap_up(text: str) -> bool:
    return text.startswith(_WRAP_UP_OPENS)


def without_own_words(text: str) -> str:
    """What somebody else wrote before, after and between the briefings of Holdfast in a prompt."""
    if not any(opening in text for opening in _OPENS):
        return text
    kept: list[str] = []
    ours = False
    for paragraph in _paragraphs(text):
        ours = paragraph.startswith(_OPENS) or (ours and paragraph.startswith(_FOLLOWS))
        if not ours:
            kept.append(paragraph)
    return "\n\n".join(kept)


def _paragraphs(text: str) -> list[str]:
    """Cut at blank lines, but for those in a fenced block: what is quoted there may hold anything."""
    found: list[list[str]] = [[]]
    fence = ""
    for line in text.split("\n"):
        marks = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if marks == line and len(marks) >= len(fence) else fence
        elif len(marks) >= 3 and "`" not in line[len(marks) :]:
            fence = marks
        if fence or line.strip():
            found[-1].append(line)
        else:
            found.append([])
    return ["\n".join(lines) for lines in found if lines]
