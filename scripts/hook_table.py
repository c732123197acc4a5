"""What is made from the hooks' own tables: that in docs/hooks.md, and the telling words in hook.sh."""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path

from holdfast.hooks.events import EVENTS, WRAPPER
from holdfast.hooks.fast.dispatch import KINDS
from holdfast.hooks.guards import telling_words

PAGE = Path(__file__).parents[1] / "docs" / "hooks.md"
START, END = "<!-- made by scripts/hook_table.py -->", "<!-- end -->"
SCRIPT = Path(WRAPPER)
WORDS_START, WORDS_END = "        # made by scripts/hook_table.py\n", "        # end\n"


def table() -> str:
    lines = ["| kind | name | at | does |", "|---|---|---|---|"]
    for kind, members in KINDS.items():
        for name, moments in members.items():
            rule = getattr(importlib.import_module(f"holdfast.hooks.{kind}"), name)
            does = " ".join((rule.__doc__ or "").split())
            lines.append(f"| {kind.removesuffix('s')} | `{name}` | {', '.join(moments)} | {does} |")
    lines += ["", "| agent | event | tools | does |", "|---|---|---|---|"]
    for agent, events in EVENTS.items():
        for event in events:
            tools = (event.matcher or "").replace("|", ", ")
            lines.append(f"| {agent} | `{event.name}` | {tools} | {event.does} |")
    return "\n".join(lines)


def with_table(page: str) -> str:
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


def with_words(script: str) -> str:
    """A word of letters must stand by itself; one with a sign in it may be part of another."""
    before, _, rest = script.partition(WORDS_START)
    _, _, after = rest.partition(WORDS_END)
    words = " | ".join(
        f"*[!A-Za-z0-9]{word}[!A-Za-z0-9]*" if word.isalnum() else f"*{word}*" for word in telling_words()
    )
    lines = textwrap.wrap(words, 100, break_long_words=False, break_on_hyphens=False)
    patterns = " \\\n            ".join(lines)
    choice = f'        case " $value " in\n        {patterns}) hand_over ;;\n        esac\n'
    return f"{before}{WORDS_START}{choice}{WORDS_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    SCRIPT.write_text(with_words(SCRIPT.read_text(encoding="utf-8")), encoding="utf-8")
