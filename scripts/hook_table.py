"""The table of hooks in docs/hooks.md, made from the files themselves: `scripts/hook_table.py` writes it."""

from __future__ import annotations

import importlib
from pathlib import Path

from holdfast.hooks.events import EVENTS
from holdfast.hooks.fast.dispatch import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "hooks.md"
START, END = "<!-- made by scripts/hook_table.py -->", "<!-- end -->"


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


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
