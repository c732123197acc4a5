"""Paths short enough for a briefing, long enough to be told apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from holdfast.base.text import one_line
from holdfast.resume.quote import visible

_FEWEST_PARTS = 2
_MOST_PARTS = 12


def short_paths(paths: Iterable[str]) -> dict[str, str]:
    """Each path's last two parts, or as many as make it unlike the others."""
    labels: dict[str, str] = {}
    waiting: list[str] = list(dict.fromkeys(paths))
    for parts in range(_FEWEST_PARTS, _MOST_PARTS):
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for path in waiting:
            groups[_tail(path, parts)].append(path)
        waiting = []
        for label, alike in groups.items():
            if len(alike) == 1 or parts == _MOST_PARTS - 1:
                labels.update((path, label) for path in alike)
            else:
                waiting += alike
    return labels


def short_path(path: str) -> str:
    return _tail(path, _FEWEST_PARTS)


def _tail(path: str, parts: int) -> str:
    clean = one_line(visible(path)).replace("`", "'").replace("\\", "/").rstrip("/")
    return "/".join(clean.split("/")[-parts:])[-160:] or "/"
