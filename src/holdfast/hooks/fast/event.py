"""One hook event: who sent it, at which moment of a session, and where that session's notes are kept."""

import os
import sys
import time

from holdfast.hooks.fast.payload import mapping, members, text
from holdfast.project import trust
from holdfast.project.formats import FOLDER, STATE, UNKNOWN_SESSION, WHO, hooks_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.hooks.fast.levels import HookSettings
    from holdfast.hooks.fast.usage import Gauge

MOMENTS = {
    "claude-code": {
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before_tool",
        "PostToolUse": "after_tool",
        "PostToolUseFailure": "after_tool",
        "PostToolBatch": "batch",
        "Stop": "response",
        "StopFailure": "incident",
        "SubagentStart": "report",
        "SubagentStop": "report",
        "TaskCreated": "report",
        "TaskCompleted": "report",
        "PreCompact": "compact",
        "SessionEnd": "end",
        "statusLine": "status",
    },
    "codex": {
        "SessionStart": "start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "before_tool",
        "PostToolUse": "after_tool",
        "PostModelRequest": "model",
        "SubagentStart": "report",
        "SubagentStop": "report",
        "PreCompact": "compact",
        "Stop": "response",
        "Interrupt": "incident",
        "SessionEnd": "end",
    },
    # PreCompress is left out on purpose: it fires before every model call and says nothing.
    "gemini": {
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "BeforeTool": "before_tool",
        "AfterTool": "after_tool",
        "AfterModel": "model",
        "AfterAgent": "response",
        "SessionEnd": "end",
    },
    "opencode": {
        "session.created": "start",
        "chat.message": "prompt",
        "tool.execute.before": "before_tool",
        "tool.execute.after": "after_tool",
        "message.updated": "model",
        "session.compacting": "compact",
        "session.compacted": "compacted",
        "session.idle": "response",
        "session.deleted": "end",
    },
}
"""What an agent's event means to us. The moments are the same for all agents."""

_SAFE_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

_PLAIN_WORD = _SAFE_SIGNS | frozenset("/=:,@%+")


class AgentEvent:
    """Reads nothing but the payload until asked."""

    def __init__(self, agent: str, name: str, data: bytes, environ: "Mapping[str, str]") -> None:
        self.agent = agent
        self.name = name
        self.moment = MOMENTS[agent][name]
        self.data = data
        self.fields = members(data)
        if self.moment == "prompt" and self.is_subagent:
            self.moment = "report"  # its task: not the user's words, and no turn of the session
        self.environ = environ
        self.now = time.time()
        self.session = text(self.fields.get("session_id")) or UNKNOWN_SESSION
        start = _start_of(agent, text(self.fields.get("cwd")), environ)
        self.project = _project_from(start, environ)
        self.key = file_name_for(self.session)
        self.marks = marks = trust.Trust()
        self.foreign = marks.foreign_because(self.project)
        """Why the project's `.holdfast` is ignored, if it is."""
        own = os.path.join(self.project, FOLDER)
        self.state = os.path.join(marks.nowhere if self.foreign else own, STATE)
        self.folder = os.path.join(hooks_folder(self.state), self.key)
        """Notes on this agent session alone."""
        self.is_gone = not os.path.isdir(start) and not os.path.exists(self.note(WHO))
        """Whether the folder it works in was removed, and no project above it knows this session."""
        if self.is_gone:
            self.state = os.path.join(marks.nowhere, STATE)
            self.folder = os.path.join(hooks_folder(self.state), self.key)
        self.gauge: Gauge | None = None
        """How full the window is, once housekeeping has looked."""
        self.prompts = 0
        """Which prompt of the session this is, once counted."""
        self.told: dict[str, int] | None = None
        """At which prompt each nudge spoke last, once one asked."""
        self._settings: HookSettings | None = None

    @property
    def settings(self) -> "HookSettings":
        if self._settings is None:
            from holdfast.hooks.fast.levels import settings_for

            self._settings = settings_for(self)
        return self._settings

    def text(self, name: str) -> str:
        return text(self.fields.get(name))

    def mapping(self, name: str) -> "dict[str, Any]":
        return mapping(self.fields.get(name))

    @property
    def is_subagent(self) -> bool:
        return bool(self.text("agent_id"))

    @property
    def tool(self) -> str:
        return self.text("tool_name")

    def command(self) -> str:
        """The shell command of this tool call; empty where it is none."""
        given = self.mapping("tool_input").get("command")
        if isinstance(
            given, list
        ):  # `["bash", "-lc", "make test"]`: each entry is one word, whatever is in it
            return " ".join(map(_as_word, given))  # pyright: ignore[reportUnknownArgumentType]
        return text(given)

    def note(self, name: str) -> str:
        return os.path.join(self.folder, name)

    @property
    def program(self) -> str:
        """How the agent's shell starts Holdfast: by its name where that is on the path, else by its place."""
        folders = self.environ.get("PATH", "").split(os.pathsep)
        if any(folder and os.access(os.path.join(folder, "holdfast"), os.X_OK) for folder in folders):
            return "holdfast"
        beside = os.path.join(os.path.dirname(sys.executable), "holdfast")
        if os.access(beside, os.X_OK):
            return _as_word(beside)
        return f"{_as_word(sys.executable)} -P -m holdfast"


def _as_word(entry: object) -> str:
    word = str(entry)
    if word and word.isascii() and _PLAIN_WORD.issuperset(word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def project_of(agent: str, cwd: str, environ: "Mapping[str, str]") -> str:
    """The folder whose `.holdfast` this session uses: as the command line finds it."""
    return _project_from(_start_of(agent, cwd, environ), environ)


def _project_from(start: str, environ: "Mapping[str, str]") -> str:
    return start if environ.get("HOLDFAST_PROJECT") else trust.nearest_project(start)


def passed_over(event: "AgentEvent") -> "tuple[str, str] | None":
    """A foreign folder below the project, which a command in this folder might have meant."""
    if event.environ.get("HOLDFAST_PROJECT"):
        return None
    return trust.passed_over(_start_of(event.agent, event.text("cwd"), event.environ), event.project)


def _start_of(agent: str, cwd: str, environ: "Mapping[str, str]") -> str:
    # Claude Code's own word does not move when the agent changes folder in mid-session.
    return os.path.realpath(
        environ.get("HOLDFAST_PROJECT")
        or (agent == "claude-code" and environ.get("CLAUDE_PROJECT_DIR"))
        or cwd
        or os.getcwd()
    )


def state_folder(project: str) -> str:
    return os.path.join(trust.Trust().folder_of(project), STATE)


def file_name_for(session: str) -> str:
    """As `holdfast.base.ids` does it, which needs `re`; most ids need no change."""
    if len(session) <= 100 and session[0].isalnum() and session.isascii() and _SAFE_SIGNS.issuperset(session):
        return session
    from holdfast.base.ids import file_name_for as careful

    return careful(session)
