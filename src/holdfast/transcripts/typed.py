"""What of a user's message a person wrote, and what the agent's program put there.

Programs hand the model much in the user's name: notices of background tasks, feedback of hooks,
reminders, output of local commands, Holdfast's own briefings. None of it is a request.
Where it cannot be told, the words count as the user's.
"""

from __future__ import annotations

import re
from typing import cast

import orjson

from holdfast.model.frame import without_own_words
from holdfast.transcripts.fields import mapping_of

_REMINDER = "system-reminder"
_ELEMENT = re.compile(
    rf"<({_REMINDER}|task-notification|new-diagnostics|user-prompt-submit-hook|session-start-hook"
    r"|post-tool-use-hook|ide_opened_file|ide_selection|ide_diagnostics|local-command-stdout"
    r"|local-command-stderr|local-command-caveat|bash-stdout|bash-stderr|teammate-message"
    r"|cross-session-message|channel-message|mcp-resource-update|mcp-polling-update)(?:\s[^<>]{0,300})?>"
)
_HOOK_FEEDBACK = re.compile(
    r"(?:(?:Pre|Post|User|Session|Sub|Stop|Permission|Notif)\w{0,20}(?::[\w-]{1,60})? hook "
    r"(?:feedback|success|blocking error|additional context):"
    r"|Operation stopped by hook: |Caveat: The messages below |\[Request interrupted by user"
    r"|\[Image: (?:source|original) |Base directory for this skill: |Tool loaded\.\Z"
    r"|Full transcript available at: |Read the output file to retrieve )"
)
_TASK_NOTICE = re.compile(r'\[?\s*\{\s*"\w+"\s*:')
_TASK_KEYS = frozenset(("task_id", "taskId", "task_Id"))
_MACHINE_KEYS = frozenset(("output_file", "output_file_path", "outputFile", "tool_use_id", "task_type"))
"""Nobody types these."""
_PLAIN_NOTICE = _TASK_KEYS | {"status", "summary"}
_STATUSES = ("running", "completed", "failed", "killed", "stopped", "cancelled", "timed_out")
_AFTER_A_NOTICE = ("Read the output file", "Full transcript available", "<")
_LONGEST_NOTICE = 100_000
# Typed by the user, but to the program: nothing the next agent has to act on.
_PROGRAM_COMMANDS = frozenset(
    (
        *("/add-dir", "/agents", "/clear", "/compact", "/compress", "/config", "/effort", "/exit", "/export"),
        *("/hooks", "/login", "/logout", "/mcp", "/model", "/models", "/output-style", "/permissions"),
        *("/plugin", "/quit", "/rename", "/resume", "/statusline", "/theme", "/vim"),
    )
)
# The others take a name or two: a sentence behind them was meant for the agent.
_TAKE_A_TEXT = frozenset(("/clear", "/compact", "/compress", "/exit", "/quit", "/rename"))
_FEW_ARGUMENTS = 3
# With words behind them these may as well be commands of the user's own.
_BARE_PROGRAM_COMMANDS = frozenset(
    (
        *("/bashes", "/bug", "/context", "/copy", "/cost", "/diff", "/doctor", "/extensions", "/fast"),
        *("/feedback", "/help", "/ide", "/keybindings", "/memory", "/new", "/plugins", "/redo"),
        *("/release-notes", "/reload-plugins", "/rewind", "/sandbox", "/sessions", "/settings", "/skills"),
        *("/stats", "/status", "/tasks", "/terminal-setup", "/themes", "/todos", "/tools", "/undo"),
        *("/upgrade", "/usage"),
    )
)


def is_program_command(typed: str) -> bool:
    """Of a command and its arguments, as typed."""
    name, _, arguments = typed.partition(" ")
    if name in _PROGRAM_COMMANDS:
        return name in _TAKE_A_TEXT or len(arguments.split()) <= _FEW_ARGUMENTS
    return not arguments and name in _BARE_PROGRAM_COMMANDS


def told(text: str) -> tuple[str, bool]:
    """What a person wrote of a message, or else what the program did; and whether it was the program."""
    own = without_own_words(text)
    own = _without_elements(own).strip() if "<" in own else own.strip()
    if own and not (_HOOK_FEEDBACK.match(own) or _is_task_notice(own) or _is_command(own)):
        return own, False
    left = text.strip()
    return ("" if left.startswith(f"<{_REMINDER}>") else left), True


def _without_elements(text: str) -> str:
    kept: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while found := _ELEMENT.search(text, at):
        name = found[1]
        end = -1 if name in unclosed else text.find(f"</{name}>", found.end())
        if end >= 0:
            kept.append(text[at : found.start()])
            at = end + len(name) + len("</>")
        elif name == _REMINDER or not (unclosed or "".join((*kept, text[at : found.start()])).strip()):
            return "".join((*kept, text[at : found.start()]))  # cut short: it reaches to the end
        else:  # a person writes about it
            unclosed.add(name)
            kept.append(text[at : found.end()])
            at = found.end()
    return "".join((*kept, text[at:]))


def _is_command(text: str) -> bool:
    """As it stands in a queue: bare, while a command that was run is recorded in tags."""
    return text.startswith("/") and "\n" not in text and is_program_command(text)


def _is_task_notice(text: str) -> bool:
    if not _TASK_NOTICE.match(text) or len(text) > _LONGEST_NOTICE:
        return False
    notice, _, rest = text.partition("}\n")
    try:
        found: object = orjson.loads(f"{notice}}}" if rest else text)
    except (orjson.JSONDecodeError, RecursionError):
        return False
    notices: list[object] = cast("list[object]", found) if isinstance(found, list) else [found]
    return (
        bool(notices)
        and all(map(_names_a_task, notices))
        and (not rest or rest.lstrip().startswith(_AFTER_A_NOTICE))
    )


def _names_a_task(notice: object) -> bool:
    """A task of the user's may have an id and a status, too; a notice has no more, or what nobody types."""
    fields = mapping_of(notice)
    keys = fields.keys()
    is_plain = keys <= _PLAIN_NOTICE and fields.get("status") in _STATUSES
    return not _TASK_KEYS.isdisjoint(keys) and (is_plain or not _MACHINE_KEYS.isdisjoint(keys))
