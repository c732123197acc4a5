"""The one place that says how an agent calls our hook program."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from holdfast.hooks.fast.event import MOMENTS

_HERE = os.path.dirname(os.path.abspath(__file__))
WRAPPER = os.path.join(_HERE, "hook.sh")
ENTRY = os.path.join(_HERE, "entry.py")
# Python and some shells end with 2 where their script is gone, and 2 is an agent's word for "blocked":
# once Holdfast is off the machine, hooks left behind must not stop every prompt and tool.
_SHELL_IF_THERE = '[ -r "$0" ] || { cat >/dev/null; exit 0; }; . "$0"'
_PYTHON_IF_THERE = (
    "import os,sys;__file__=sys.argv.pop(1)"
    ";os.path.exists(__file__) or sys.exit();exec(open(__file__).read())"
)


def hook_command(agent: str, event: str) -> list[str]:
    """Absolute words to run for an event; join them with `shlex.join` where an agent wants one string.

    The interpreter is the one that runs this, never a shim. Of tool events many need nothing: a
    shell sees that before Python is started. Others, and where there is no POSIX shell, go to
    Python at once.
    """
    if os.name == "nt" or MOMENTS.get(agent, {}).get(event) not in ("before_tool", "after_tool", "batch"):
        return [sys.executable, "-I", "-S", "-c", _PYTHON_IF_THERE, ENTRY, agent, event]
    return ["/bin/sh", "-c", _SHELL_IF_THERE, WRAPPER, sys.executable, agent, event]


# ── events ────────────────────────────────────────────────────────────────────────────────────────

# Which hook events each agent sends us, and how an installer registers them.
#
# Not on the path of a hook: only `install`, the documents and the tests read this.
#
# OpenCode has no hook commands; its plugin calls the same program and speaks one form for all events:
# in goes `{"session_id", "cwd", "prompt"?, "tool_name"?, "tool_input"?, "tool_response"?, "model"?,
# "context_window"?, "usage"? {"input", "output", "reasoning", "cache_read", "cache_write"}}`, and out
# comes nothing or `{"context"?: text for the model, "deny"?: why a tool may not run, "stop"?: why to
# end the turn now, "notice"?: a line for the user}`.


class HookEvent(NamedTuple):
    name: str
    """As the agent calls it; also the second argument of the hook program."""
    does: str
    matcher: str | None
    """Tools it is for, in the agent's own pattern; None: all of them, or an event without tools."""
    timeout: int
    """Seconds; an installer converts where an agent counts in milliseconds."""
    is_status_line: bool
    """Registered as the status line, not as a hook."""


_DOES = {
    "start": "tells of open work; after compaction adds what the summary lacks",
    "prompt": "nudges, quiet reminder, usage; after compaction what the summary lacks",
    "before_tool": "guards; nudges; stops a run if configured (in Claude Code: `PostToolBatch`)",
    "after_tool": "journal, usage, advice to wrap up; after compaction what the summary lacks",
    "batch": "stops a run if configured",
    "model": "usage of each model call",
    "response": "journals the response; usage",
    "report": "journals sub-agents and their reports, tasks and their ends",
    "incident": "journals what interrupted the turn",
    "compact": "snapshot before compaction; form and facts for the summary",
    "compacted": "adds what the summary lacks",
    "end": "snapshot and clean-up, in the background",
    "status": "prints the context gauge",
}
_SECONDS = {"start": 30, "compacted": 30, "compact": 60}
_CODEX_SECONDS = {"incident": 3, "end": 3}
_CLAUDE_WATCHED = "Bash|Edit|MultiEdit|Write|NotebookEdit|ExitPlanMode"


def _event(agent: str, name: str, moment: str) -> HookEvent:
    seconds = {**_SECONDS, **(_CODEX_SECONDS if agent == "codex" else {})}
    matcher = _CLAUDE_WATCHED if name == "PreToolUse" and agent == "claude-code" else None
    return HookEvent(name, _DOES[moment], matcher, seconds.get(moment, 10), moment == "status")


EVENTS = {
    agent: tuple(_event(agent, name, moment) for name, moment in moments.items())
    for agent, moments in MOMENTS.items()
}
