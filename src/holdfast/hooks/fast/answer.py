"""What a hook says back, and how each agent wants it said."""

from holdfast.base.neutral import neutral
from holdfast.hooks.fast.payload import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent


class HookAnswer:
    __slots__ = ("blocked", "context", "notice", "quiet_line", "status", "stop")

    def __init__(self) -> None:
        self.context: list[str] = []
        """For the model to read."""
        self.blocked: str | None = None
        """Why a guard keeps the tool from running."""
        self.stop: str | None = None
        """Why the run ends at this boundary."""
        self.quiet_line: str | None = None
        self.notice: str | None = None
        """For the user to see, in the agent's own way."""
        self.status: str | None = None
        """The whole output of a status line."""


def rendered(event: "AgentEvent", answer: HookAnswer) -> str:
    """What goes to stdout."""
    if answer.status is not None:
        return answer.status + "\n"
    if event.agent == "opencode":
        return _for_plugin(answer)
    if answer.blocked is not None:
        return _denying(event, answer.blocked)
    if answer.stop is not None:
        return _stopping(event, answer.stop)
    if answer.quiet_line and not answer.context and not answer.notice and event.agent != "gemini":
        return neutral(answer.quiet_line) + "\n"  # on a prompt, plain text is context for the model
    if event.moment == "compact":
        return _joined(answer.context) + "\n" if answer.context and event.agent == "claude" else ""
    told = [*([answer.quiet_line] if answer.quiet_line else []), *answer.context]
    parts: dict[str, object] = {"systemMessage": neutral(answer.notice)} if answer.notice else {}
    if told and event.moment in _CAN_TELL:
        parts["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": _joined(told)}
    return _line(parts) if parts else ""


_CAN_TELL = ("start", "prompt", "before_tool", "after_tool", "compacted")
"""Moments at which what we say reaches the model."""


def _line(document: "dict[str, object]") -> str:
    return as_json(document) + "\n"


def _joined(told: list[str]) -> str:
    """Names, titles and reminders in it may come from anywhere."""
    return neutral("\n\n".join(told))


def _denying(event: "AgentEvent", reason: str) -> str:
    """This tool call may not run. An error exit would do, but people see that as a broken hook."""
    reason = neutral(reason)
    if event.agent == "gemini":
        return _line({"decision": "deny", "reason": reason})
    denied = {"hookEventName": event.name, "permissionDecision": "deny"}
    return _line({"hookSpecificOutput": {**denied, "permissionDecisionReason": reason}})


def _stopping(event: "AgentEvent", reason: str) -> str:
    if event.agent == "codex":  # knows no stop between tools; a denied tool makes the model end its turn
        return _denying(event, reason)
    return _line({"continue": False, "stopReason": neutral(reason)})


def _for_plugin(answer: HookAnswer) -> str:
    parts: dict[str, object] = {
        "deny": answer.blocked,
        "stop": answer.stop,
        "notice": answer.notice or answer.quiet_line,
        "context": _joined(answer.context),
    }
    told = {name: words for name, words in parts.items() if words}
    return _line(told) if told else ""
