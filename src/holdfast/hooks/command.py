"""The one place that says how an agent calls our hook program."""

from __future__ import annotations

import os
import sys

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
