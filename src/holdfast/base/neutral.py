"""Text from elsewhere must not speak with another's voice: not to a terminal, not to an agent.

Hooks use it on every answer, so it loads nothing.
"""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_CONTROLS = (
    *(code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xE0000, 0xE0080),
)
"""What moves the cursor, sets the title or turns the direction of writing; and invisible letters."""
_TABLE = dict.fromkeys(_CONTROLS, _REPLACEMENT)

_TAGS = (
    *(
        "system",
        "assistant",
        "human",
        "antml:",
        "function_calls",
        "function_results",
        "tool_use",
        "tool_result",
    ),
    *(
        "invoke",
        "command-name",
        "command-message",
        "command-args",
        "local-command",
        "user-prompt-submit-hook",
    ),
    *(
        "user_instructions",
        "environment_context",
        "user_query",
        "thinking",
        "policy",
        "developer",
        "instructions",
    ),
    *("bash-input", "bash-stdout", "bash-stderr", "task-notification", "background-task", "new-diagnostics"),
    *("ide_", "session-start-hook", "session_context", "hook_context", "state_snapshot", "permissions"),
    *("collaboration_mode", "turn_aborted", "subagent_notification", "user_shell_command", "user_action"),
    *("|im_", "|system", "|user", "|assistant", "|start", "|end", "|eot", "sys>"),
)
"""What agents and models read as said by the system, the user or the agent itself, if it stands in `<…>`."""
_INVISIBLE = dict.fromkeys(
    (0xAD, 0x34F, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2065), *range(0xFE00, 0xFE10), 0xFEFF)
)
"""What may stand between the letters of a name and is not seen."""
_SAFE_BRACKET = "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}"


def without_controls(text: str) -> str:
    """Lines stay lines; what a terminal would obey becomes `�`, a character each."""
    if text.isascii() and text.isprintable():
        return text
    return _lone_returns(text.translate(_TABLE))


def _lone_returns(text: str) -> str:
    """A carriage return that ends no line would overwrite it."""
    if "\r" not in text:
        return text
    return "\r\n".join(line.replace("\r", _REPLACEMENT) for line in text.split("\r\n"))


def neutral(text: str) -> str:
    """The same for an agent to read: no tag in it counts as a tag of the system's. No longer than it was."""
    text = without_controls(text)
    if "<" not in text:
        return text
    return _with_brackets(text, _SAFE_BRACKET)


def neutral_json(text: str) -> str:
    """JSON that says the same, for an agent may read it as it stands."""
    return _with_brackets(text, "\\u003c") if "<" in text else text


def _with_brackets(text: str, instead: str) -> str:
    first, *rest = text.split("<")
    return first + "".join(f"{instead if _is_tag(part) else '<'}{part}" for part in rest)


def _is_tag(after: str) -> bool:
    """Whether what stands after `<` begins a tag that is not ours to open or close."""
    name = after[:60].translate(_INVISIBLE).lstrip("/ \t\n\\").lower()
    return name.startswith(_TAGS)
