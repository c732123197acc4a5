"""The hook program: one event in, everything due at its moment done, one answer out."""

from __future__ import annotations

import os
import sys

from holdfast.base.neutral import neutral
from holdfast.hooks.fast.payload import as_json
from holdfast.hooks.fast.quiet import is_quiet, marker_path, reminder
from holdfast.project import formats

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.hooks.fast.event import AgentEvent


HOUSEKEEPING = {
    "presence": (
        "start",
        "prompt",
        "before_tool",
        "after_tool",
        "batch",
        "model",
        "response",
        "status",
        "compact",
    ),
    "prompt_count": ("prompt",),
    "stale_markers": ("start", "end"),
    "usage": (
        *("start", "prompt", "after_tool", "batch", "model", "response", "status", "before_tool"),
        *("compact", "compacted"),
    ),
    "level_notice": ("prompt", "after_tool", "response"),
    "journal": ("prompt", "after_tool", "response", "report", "incident", "compact"),
    "wind_down": ("prompt", "before_tool", "after_tool", "batch"),
    "file_changes": ("start", "prompt", "before_tool", "response", "incident", "end"),
    "snapshot": ("compact", "end"),
    "resume_context": ("start", "compacted"),
    "supplement": ("prompt", "after_tool", "model"),
    "status_line": ("status",),
}
RUNNERS_OWN = frozenset(
    (
        *("prompt_count", "level_notice", "journal", "wind_down", "file_changes", "snapshot"),
        *("resume_context", "supplement"),
    )
)
"""Housekeeping that the runner of a workflow does itself: the pause of its tasks is not the agent's."""
GUARDS = {
    "dangerous_commands": ("before_tool",),
    "unpinned_program": ("before_tool",),
}
NUDGES = {
    "context_size": ("prompt",),
    "ceremonies": ("prompt",),
    "persistence": ("prompt",),
    "journal_upkeep": ("prompt",),
    "reminders": ("prompt",),
    "version_skew": ("prompt",),
    "machine_resources": ("prompt",),
    "knowledge_growth": ("prompt",),
    "architecture_staleness": ("prompt",),
    "context_load_gate": ("before_tool",),
    "qa_before_commit": ("before_tool",),
    "plan_to_spec": ("before_tool",),
    "post_commit": ("after_tool",),
}

KINDS = {"housekeeping": HOUSEKEEPING, "guards": GUARDS, "nudges": NUDGES}
"""In the order in which they run."""

WORDS = {
    "qa_before_commit": b"commit",
    "post_commit": b"commit",
    "plan_to_spec": b"lan",
}
"""A word without which a payload does not concern that one: its file is not even loaded then."""


# ── answer ─────────────────────────────────────────────────────────────────────────────────────────

# What a hook says back, and how each agent wants it said.


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


def rendered(event: AgentEvent, answer: HookAnswer) -> str:
    """What goes to stdout."""
    if answer.status is not None:
        return answer.status + "\n"
    if event.agent == "opencode":
        return _for_plugin(event, answer)
    if answer.blocked is not None:
        return _denying(event, answer.blocked)
    if answer.stop is not None:
        return _stopping(event, answer.stop)
    if answer.quiet_line and not answer.context and not answer.notice and event.agent != "gemini":
        return neutral(answer.quiet_line) + "\n"  # on a prompt, plain text is context for the model
    if event.moment == "compact":
        return (
            _joined(event, answer.context) + "\n" if answer.context and event.agent == "claude-code" else ""
        )
    told = [*([answer.quiet_line] if answer.quiet_line else []), *answer.context]
    parts: dict[str, object] = {"systemMessage": neutral(answer.notice)} if answer.notice else {}
    if told and event.moment in _CAN_TELL:
        parts["hookSpecificOutput"] = {"hookEventName": event.name, "additionalContext": _joined(event, told)}
    return _line(parts) if parts else ""


_CAN_TELL = ("start", "prompt", "before_tool", "after_tool", "compacted")
"""Moments at which what we say reaches the model."""


def _line(document: dict[str, object]) -> str:
    return as_json(document) + "\n"


def _joined(event: AgentEvent, told: list[str]) -> str:
    """Names, titles and reminders in it may come from anywhere."""
    whole = "\n\n".join(told)
    if "`holdfast " in whole and event.program != "holdfast":
        whole += f"\n\n[holdfast] It is not on the PATH here: in place of `holdfast`, run `{event.program}`."
    return neutral(whole)


def _denying(event: AgentEvent, reason: str) -> str:
    """This tool call may not run. An error exit would do, but people see that as a broken hook."""
    reason = neutral(reason)
    if event.agent == "gemini":
        return _line({"decision": "deny", "reason": reason})
    denied = {"hookEventName": event.name, "permissionDecision": "deny"}
    return _line({"hookSpecificOutput": {**denied, "permissionDecisionReason": reason}})


def _stopping(event: AgentEvent, reason: str) -> str:
    if event.agent == "codex":  # knows no stop between tools; a denied tool makes the model end its turn
        return _denying(event, reason)
    return _line({"continue": False, "stopReason": neutral(reason)})


def _for_plugin(event: AgentEvent, answer: HookAnswer) -> str:
    parts: dict[str, object] = {
        "deny": answer.blocked,
        "stop": answer.stop,
        "notice": answer.notice or answer.quiet_line,
        "context": _joined(event, answer.context),
    }
    told = {name: words for name, words in parts.items() if words}
    return _line(told) if told else ""


# ── dispatch ──────────────────────────────────────────────────────────────────────────────────────

# One event, all that is due at its moment: housekeeping, then guards, then nudges.
#
# The only place that knows of quiet mode. Each part may fail by itself; that is noted and costs only it.

if TYPE_CHECKING:
    Rule = Callable[..., Any]

TASK_OF = "HOLDFAST_WORKFLOW"
"""Names the workflow whose task the agent executes, as drivers tell whatever they start."""


def dispatch(event: AgentEvent) -> HookAnswer:
    answer = HookAnswer()
    if event.is_gone:
        _guards_alone(event, answer)
        return answer
    if event.foreign:
        _without_folder(event, answer)
        return answer
    if event.moment == "start" and (found := _passed_over(event)):
        answer.context.append(f"[holdfast] The folder {found[0]} is ignored: {found[1]}. {_ONLY_THE_USER}")
    is_task = bool(event.environ.get(TASK_OF))
    for name in _due(HOUSEKEEPING, event):
        if is_task and name in RUNNERS_OWN:
            continue
        _attempt(event, "housekeeping", name, lambda rule: rule(event, answer))
    _guards_alone(event, answer)
    _note_index(event)
    if answer.blocked or answer.stop:
        return answer
    if event.moment in _WITH_NUDGES:
        _nudge(event, answer)
    return answer


def _note_index(event: AgentEvent) -> None:
    """For the shell in front, which starts us again once git has written its index anew."""
    if not os.path.isdir(event.folder):
        return
    if event.marks.index is None:  # the folder has just been made
        event.marks.foreign_because(event.project)
    path, written = event.marks.index or ("", 0)
    note = event.note(formats.INDEX_SEEN)
    try:
        if os.path.exists(note) and os.stat(note).st_mtime_ns == written:
            return
        from holdfast.hooks.fast import notes

        notes.write(note, f"{path}\n".encode("utf-8", "surrogateescape"))
        os.utime(note, ns=(written, written))
    except OSError as error:
        _note(event, error, "noting git's index")


def _passed_over(event: AgentEvent) -> tuple[str, str] | None:
    from holdfast.hooks.fast.event import passed_over

    return passed_over(event)


_ONLY_THE_USER = (
    "Only the user may trust it, by running `holdfast trust` in a terminal. Do not run that yourself."
)


def _guards_alone(event: AgentEvent, answer: HookAnswer) -> None:
    """They need no notes. Where the project's folder is gone, anything else would make it again."""
    for name in _due(GUARDS, event):
        _attempt(event, "guards", name, lambda rule: _guard(event, answer, rule))


def _without_folder(event: AgentEvent, answer: HookAnswer) -> None:
    """Everything but the guards would read or write a folder that came from elsewhere."""
    _guards_alone(event, answer)
    if event.moment == "status":
        answer.status = "holdfast: not trusted here"
    elif event.moment == "start" or (answer.blocked is None and _is_to_be_told(event)):
        answer.context.append(
            f"[holdfast] The .holdfast folder here is ignored and nothing is recorded: {event.foreign}. "
            + _ONLY_THE_USER
        )
        if event.moment not in ("start", "prompt"):
            answer.notice = (
                f"holdfast: nothing is recorded from now on: {event.foreign}; see `holdfast trust --show`"
            )


def _is_to_be_told(event: AgentEvent) -> bool:
    """On every prompt, and at the first thing that the agent does, of a session that was recorded before."""
    if event.moment not in _TELLS_OF_FOREIGN or not _was_recorded(event):
        return False
    if event.moment == "end":
        event.marks.note_session(event.project, formats.ENDED_BESIDE + event.key)
        return False
    is_news = event.marks.note_session(event.project, formats.TOLD_OF_FOREIGN + event.key)
    return is_news or event.moment == "prompt"


_TELLS_OF_FOREIGN = ("prompt", "before_tool", "after_tool", "response", "end")


def _was_recorded(event: AgentEvent) -> bool:
    """Whether the folder was ours when the session began: what git brought since ended the recording."""
    from os.path import exists, join

    state = join(event.project, formats.FOLDER, formats.STATE)
    return exists(join(formats.hooks_folder(state), event.key, formats.WHO))


_WITH_NUDGES = frozenset(moment for moments in NUDGES.values() for moment in moments)


def _due(table: dict[str, tuple[str, ...]], event: AgentEvent) -> list[str]:
    return [
        name
        for name, moments in table.items()
        if event.moment in moments and (name not in WORDS or WORDS[name] in event.data)
    ]


def _guard(event: AgentEvent, answer: HookAnswer, rule: Rule) -> None:
    if answer.blocked is None:
        answer.blocked = rule(event)


def _nudge(event: AgentEvent, answer: HookAnswer) -> None:
    marker = marker_path(event.state, event.key)
    if is_quiet(marker):
        if event.moment == "prompt":
            answer.quiet_line = _quiet_line(event, marker)
        return

    def tell(rule: Rule) -> None:
        words = rule(event)
        if words:
            answer.context.append(words)

    for name in _due(NUDGES, event):
        _attempt(event, "nudges", name, tell)


def _quiet_line(event: AgentEvent, marker: str) -> str | None:
    try:
        return reminder(marker, event.note("quiet-prompts"), prompt_identity(event))
    except Exception as error:  # noqa: BLE001 - as below
        _note(event, error, "the quiet reminder")
        return None


def prompt_identity(event: AgentEvent) -> str:
    """What tells two prompts apart, as far as the agent says; empty where every call counts as one."""
    stamp = event.text("prompt_id") or event.text("turn_id") or event.text("message_id")
    return stamp or event.text("timestamp")


def _attempt(event: AgentEvent, kind: str, name: str, use: Callable[[Rule], None]) -> None:
    try:
        use(_rule(kind, name))
    except Exception as error:  # noqa: BLE001 - a hook's part ends here; the agent must not feel it
        _note(event, error, f"{event.agent} {event.name} {kind}/{name}")


def _note(event: AgentEvent, error: Exception, doing: str) -> None:
    from holdfast.hooks.fast import error_log

    error_log.note(event.state, error_log.describe(error, doing))


def _rule(kind: str, name: str) -> Rule:
    path = f"holdfast.hooks.{kind}"
    __import__(path)
    rule: Rule = getattr(sys.modules[path], name)
    return rule


# ── program ───────────────────────────────────────────────────────────────────────────────────────

# The hook program's frame: whatever happens inside, the agent goes on.

_LONGEST = 8
"""Seconds after which a hook gives itself up; some moments wait for a snapshot."""
_LONGER = {"SessionStart": 28, "session.created": 28, "session.compacted": 28, "PreCompact": 55}
_LONGER["session.compacting"] = 55
USAGE = "usage: holdfast-hook AGENT EVENT < payload.json\n"


def run(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] in ("-h", "--help"):
        os.write(2 if len(arguments) != 2 else 1, USAGE.encode())
        return 0
    agent, name = arguments
    agent = formats.agent_called(agent)
    _give_up_after(_LONGER.get(name, _LONGEST))
    try:
        return _answered(agent, name)
    except Exception as error:  # noqa: BLE001 - a hook ends here, and may not be felt
        _note_failure(error, agent, name)
        return 0


def _answered(agent: str, name: str) -> int:
    from holdfast.hooks.fast.event import MOMENTS

    data = _stdin()
    if name not in MOMENTS.get(agent, ()):
        _note_unknown(agent, name)
        return 0  # an agent newer than we are
    from holdfast.hooks.fast.event import AgentEvent

    event = AgentEvent(agent, name, data, os.environ)
    output = rendered(event, dispatch(event))
    if output:
        _write(1, output)
    return 0


def _note_unknown(agent: str, name: str) -> None:
    """For `holdfast doctor`; once is enough. Beside no project: this one may have no folder of ours yet."""
    from holdfast.hooks.fast import notes
    from holdfast.project.trust import data_home

    home = data_home()
    os.makedirs(home, 0o700, exist_ok=True)
    path = os.path.join(home, formats.UNKNOWN_EVENTS)
    line = f"{agent[:40]} {name[:60]}".encode("utf-8", "replace")
    known = (notes.read(path, 1 << 14) or b"").split(b"\n")
    if line not in known:
        notes.write(path, b"\n".join([*known[-50:], line]).strip())


def _stdin() -> bytes:
    blocks: list[bytes] = []
    while block := os.read(0, 1 << 20):
        blocks.append(block)
    return b"".join(blocks)


def _write(descriptor: int, text: str) -> None:
    view = memoryview(text.encode("utf-8", "replace"))
    while view:
        view = view[os.write(descriptor, view) :]


def _give_up_after(seconds: int) -> None:
    """`signal` itself loads `enum`; its C core is built in."""
    core: Any = __import__("_signal")
    if hasattr(core, "alarm"):  # not on Windows
        core.signal(core.SIGALRM, _give_up)
        core.alarm(seconds)


def _give_up(*_: object) -> None:
    try:
        from holdfast.hooks.fast import error_log
        from holdfast.hooks.fast.event import project_of, state_folder

        state = state_folder(project_of(sys.argv[1], "", os.environ))
        error_log.note(state, f"{' '.join(sys.argv[1:3])}: timed out")
    finally:
        os._exit(0)


def _note_failure(error: Exception, agent: str, name: str) -> None:
    from holdfast.hooks.fast import error_log
    from holdfast.hooks.fast.event import project_of, state_folder

    try:
        state = state_folder(project_of(agent, "", os.environ))
    except OSError:
        return
    error_log.note(state, error_log.describe(error, f"{agent} {name}"))
