"""The one place that says how an agent calls our hook program."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

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
    if os.name == "nt" or event not in _OFTEN_NOTHING_TO_DO:
        return [sys.executable, "-I", "-S", "-c", _PYTHON_IF_THERE, ENTRY, agent, event]
    return ["/bin/sh", "-c", _SHELL_IF_THERE, WRAPPER, sys.executable, agent, event]


_OFTEN_NOTHING_TO_DO = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "BeforeTool",
    "AfterTool",
    "tool.execute.before",
    "tool.execute.after",
)


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
    matcher: str | None = None
    """Tools it is for, in the agent's own pattern; None: all of them, or an event without tools."""
    timeout: int = 10
    """Seconds; an installer converts where an agent counts in milliseconds."""
    is_status_line: bool = False
    """Registered as the status line, not as a hook."""


_CLAUDE_WATCHED = "Bash|Edit|MultiEdit|Write|NotebookEdit|ExitPlanMode"

EVENTS: dict[str, tuple[HookEvent, ...]] = {
    "claude": (
        HookEvent("SessionStart", "puts the resume context in; settles an orphan", timeout=30),
        HookEvent("UserPromptSubmit", "nudges, quiet reminder, usage"),
        HookEvent("PreToolUse", "guards; nudges before commits and edits", matcher=_CLAUDE_WATCHED),
        HookEvent("PostToolUse", "journal, usage, advice to wrap up"),
        HookEvent("PostToolUseFailure", "journal, usage, advice to wrap up"),
        HookEvent("PostToolBatch", "the boundary where a run is stopped if so configured"),
        HookEvent("Stop", "journals the response; usage"),
        HookEvent("StopFailure", "journals the failure of the model's API"),
        HookEvent("PreCompact", "snapshot before compaction", timeout=60),
        HookEvent("SessionEnd", "snapshot and clean-up, detached", timeout=10),
        HookEvent("statusLine", "prints the context gauge", is_status_line=True),
    ),
    "codex": (
        HookEvent("SessionStart", "puts the resume context in; settles an orphan", timeout=30),
        HookEvent("UserPromptSubmit", "nudges, quiet reminder, usage"),
        HookEvent("PreToolUse", "guards; nudges; denies tools if a stop is configured"),
        HookEvent("PostToolUse", "journal, usage, advice to wrap up"),
        HookEvent("PostModelRequest", "usage of each model call"),
        HookEvent("PreCompact", "snapshot before compaction", timeout=60),
        HookEvent("Stop", "journals the response"),
        HookEvent("Interrupt", "journals the interruption", timeout=3),
        HookEvent("SessionEnd", "snapshot and clean-up, detached", timeout=3),
    ),
    # PreCompress is left out on purpose: it fires before every model call and says nothing.
    "gemini": (
        HookEvent("SessionStart", "puts the resume context in; settles an orphan", timeout=30),
        HookEvent("BeforeAgent", "nudges, quiet reminder"),
        HookEvent("BeforeTool", "guards; nudges; the boundary where a run is stopped"),
        HookEvent("AfterTool", "journal, advice to wrap up"),
        HookEvent("AfterModel", "usage of each model call"),
        HookEvent("AfterAgent", "journals the response"),
        HookEvent("SessionEnd", "snapshot and clean-up, detached"),
    ),
    "opencode": (
        HookEvent("session.created", "puts the resume context in; settles an orphan", timeout=30),
        HookEvent("chat.message", "nudges, quiet reminder"),
        HookEvent("tool.execute.before", "guards; nudges; denies tools if a stop is configured"),
        HookEvent("tool.execute.after", "journal, advice to wrap up"),
        HookEvent("message.updated", "usage of each finished assistant message"),
        HookEvent(
            "session.compacting", "snapshot before compaction; `context` goes to the model", timeout=60
        ),
        HookEvent("session.compacted", "puts the resume context back in", timeout=30),
        HookEvent("session.idle", "journals the end of a turn"),
        HookEvent("session.deleted", "snapshot and clean-up, detached"),
    ),
}
"""A test keeps this and the dispatcher together."""
