"""Text of others, put into the context so that it stays a quotation.

Tool output and file content may hold anything, a forged heading or an order to the next
agent among it. Whatever is quoted here cannot end its own quotation: an inline quotation
has no line breaks, and a mark is always longer than any run of marks inside it.
"""

from __future__ import annotations

import re

from holdfast.base.text import clipped, one_line

_TICKS = re.compile(r"`+")
# Invisible or direction-changing characters make a text look like another one.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


# What ends a line for some readers, though not for us: inside a quotation it is a blank.
_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def visible(text: str) -> str:
    return _UNSEEN.sub("", _OTHER_LINE_ENDS.sub(" ", text))


def code(text: str, most: int = 100_000) -> str:
    """One line as an inline code span that its content cannot close."""
    line = clipped(one_line(visible(text)), most)
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    if not longest:
        return f"`{line}`"
    marks = "`" * (longest + 1)
    return (
        f"{marks} {line} {marks}" if line.startswith("`") or line.endswith("`") else f"{marks}{line}{marks}"
    )


def fenced(text: str) -> str:
    """Several lines as a code block that its content cannot close."""
    body = visible(text).replace("\r", "")
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}text\n{body}\n{marks}"


def quoted(text: str, most: int = 100_000) -> str:
    """Words of a person, verbatim but for line breaks."""
    return f'"{balanced(clipped(one_line(visible(text)), most))}"'


def prose(text: str, most: int = 100_000) -> str:
    """A sentence of the agent, on one line."""
    return balanced(clipped(one_line(visible(text)), most))


def balanced(text: str) -> str:
    """A code mark that was cut in two must not swallow what follows."""
    return text + "`" if text.count("`") % 2 else text
