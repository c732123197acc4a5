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
    *("|im_", "|system", "|user", "|assistant", "|start", "|end", "|eot", "sys>"),
)
"""What agents and models read as said by the system, the user or the agent itself, if it stands in `<…>`."""
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
    first, *rest = text.split("<")
    return first + "".join(f"{_SAFE_BRACKET if _is_tag(part) else '<'}{part}" for part in rest)


def _is_tag(after: str) -> bool:
    """Whether what stands after `<` begins a tag that is not ours to open or close."""
    name = after[:60].lstrip("/ \t\n\\").lower()
    return name.startswith(_TAGS)
