"""The skills quiet and unquiet, as Claude Code reads them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Skill:
    description: str
    arguments: str
    answer: str


SKILLS = {
    "quiet": Skill(
        "Silence Holdfast's nudges in this session. Use when the user says: pause holdfast, pause ctx, "
        "pause context, stop the nudges, quiet mode.",
        "quiet on",
        "Holdfast's nudges are off in this session; guards go on. Back on with /holdfast:unquiet.",
    ),
    "unquiet": Skill(
        "Let Holdfast's nudges speak again in this session. Use when the user says: resume holdfast, "
        "resume ctx, resume context, turn nudges back on, unpause.",
        "quiet off",
        "Holdfast's nudges are back on in this session.",
    ),
}


def skill_text(name: str, program: str) -> str:
    """Claude Code puts its session's id in, so that exactly this session is meant."""
    skill = SKILLS[name]
    return f"""---
name: {name}
description: "{skill.description}"
allowed-tools: Bash({program} quiet:*)
---

Run this with the Bash tool, exactly as it stands:

```sh
{program} {skill.arguments} --session-id ${{CLAUDE_SESSION_ID}}
```

Then say in one line: {skill.answer}
"""
