"""What was recorded while the session wound down: the user's words first, then what else was noted."""

from __future__ import annotations

from holdfast.model.gathered import Recorded
from holdfast.resume import worth
from holdfast.resume.outline import Block, Item
from holdfast.resume.quote import prose, quoted
from holdfast.resume.setting import Setting, ranked

SAID = "recorded user messages"
OTHERS = "recorded actions"

_LONGEST = 2_000
_KINDS = {"assistant_response": "agent", "system_event": "event", "pause_started": "at the start"}


def recorded(setting: Setting) -> list[Block]:
    said = [one for one in setting.found.recorded if one.kind == "user_message"]
    calls = [one for one in setting.found.recorded if one.kind == "tool_call"]
    notes = [one for one in setting.found.recorded if one.kind not in ("user_message", "tool_call")]
    items = [_said(setting, one, rank) for rank, one in enumerate(reversed(said))]
    items.reverse()
    return [
        Block("The user said", items, between="; "),
        Block(
            setting.label("Noted, newest first", "Noted"),
            ranked(OTHERS, (prose(_told(one), 600) for one in reversed(notes)), worth.RECORDED_NOTE, 12),
            between="; ",
        ),
        Block(
            setting.label("Tools called, newest first", "Tools called"),
            ranked(OTHERS, (prose(one.text, 240) for one in reversed(calls)), worth.RECORDED_CALL, 8),
            between="; ",
        ),
    ]


def _said(setting: Setting, one: Recorded, rank: int) -> Item:
    longest = min(_LONGEST, int(setting.room * 0.6))
    value = worth.PINNED if one.rule else worth.falling(worth.RECORDED_SAID, rank, 15)
    return Item(SAID, quoted(one.text, longest), value)


def _told(one: Recorded) -> str:
    kind = _KINDS.get(one.kind)
    return f"{kind}: {one.text}" if kind else one.text
