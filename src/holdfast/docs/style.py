"""How a project documents: the form most of its texts have, their length, and good examples of it."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.docs.items import CodeItem

_FORMS = {
    "google": re.compile(
        r"^(?:Args|Arguments|Returns|Raises|Yields|Attributes|Example|Examples):\s*$", re.MULTILINE
    ),
    "numpy": re.compile(
        r"^(?:Parameters|Returns|Raises|Yields|Attributes|Examples)\n-{3,}\s*$", re.MULTILINE
    ),
    "sphinx": re.compile(r"^:(?:param|type|returns?|rtype|raises)\b", re.MULTILINE),
    "tags": re.compile(r"^@(?:param|returns?|throws|example|template)\b", re.MULTILINE),
}
_MEANINGS = {
    "google": "Google style: sections like `Args:` and `Returns:` with indented entries",
    "numpy": "NumPy style: sections like `Parameters` underlined with dashes",
    "sphinx": "Sphinx style: fields like `:param name:` and `:returns:`",
    "tags": "JSDoc tags like `@param name` and `@returns`",
    "plain": "plain prose, without sections, fields or tags",
}
STYLES = tuple(_MEANINGS)
_MOST_EXAMPLES = 3
_LONGEST_EXAMPLE = 700


@dataclass(frozen=True)
class Style:
    name: str
    lines: int
    """How long its documentation usually is."""
    examples: tuple[str, ...]

    def description(self) -> str:
        usual = "one line" if self.lines == 1 else f"about {self.lines} lines"
        return f"{_MEANINGS[self.name]}; usually {usual}"


def style_of(
    items: Iterable[CodeItem],
    like: CodeItem,
    ratings: Mapping[str, Mapping[str, int | None]] | None = None,
    chosen: str | None = None,
) -> Style:
    """That of the items in the language of `like`; examples are of its kind, well rated, and near to it."""
    family = _family(like.language)
    texts = [one for one in items if one.documentation and _family(one.language) == family]
    texts = [one for one in texts if (one.filepath, one.name) != (like.filepath, like.name)]
    forms = Counter(form_of(one.documentation or "") for one in texts)
    name = chosen or _usual(forms, family)
    lines = [(one.documentation or "").count("\n") + 1 for one in texts if one.kind == like.kind]

    def worth(item: CodeItem) -> tuple[int, int, int, int]:
        rating = (ratings or {}).get(item.filepath, {}).get(item.name)
        return (
            form_of(item.documentation or "") == name,
            rating or 2,
            item.kind == like.kind,
            item.filepath == like.filepath,
        )

    short = [one for one in texts if len(one.documentation or "") <= _LONGEST_EXAMPLE]
    best = sorted(short, key=worth, reverse=True)[:_MOST_EXAMPLES]
    return Style(
        name,
        round(statistics.median(lines)) if lines else 1,
        tuple(f"{one.kind} {one.name}:\n{one.documentation}" for one in best),
    )


def form_of(documentation: str) -> str:
    return next((name for name, form in _FORMS.items() if form.search(documentation)), "plain")


def _usual(forms: Counter[str], family: str) -> str:
    """Short texts are plain in every style: a form that a fifth of them have is the project's."""
    shaped = [(count, name) for name, count in forms.items() if name != "plain"]
    if shaped and max(shaped)[0] * 5 >= forms.total():
        return max(shaped)[1]
    return "plain" if forms or family == "python" else "tags"


def _family(language: str) -> str:
    return "python" if language == "python" else "javascript"
