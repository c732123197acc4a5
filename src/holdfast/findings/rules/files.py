"""Files the agent touched, and what it did to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.findings.rules.actions import Action
from holdfast.model.gathered import FileUse

# ── files of a shell command ──────────────────────────────────────────────────────────────────────

# Files that a shell command reads or writes, as far as its words show it.
#
# Some agents have no other tools: they look with ``sed -n`` and write with a here-document.

_SCANNED = 600
_PATH = r"""(?P<{name}>(?:[\w.@~-]+/|/)*[\w.@-]+\.\w{{1,8}})(?=[\s;|&'")]|$)"""
_READ = re.compile(
    r"(?:^|[;&|]\s*)(?:cat|head|tail|nl|less|bat|sed\s+-n)\s+(?:-\S+\s+|'[^']*'\s+|\"[^\"]*\"\s+|\d\S*\s+)*"
    + _PATH.format(name="path")
)
_WRITTEN = re.compile(
    r"(?<![0-9&>])>{1,2}\s*" + _PATH.format(name="into") + r"|\btee\s+(?:-a\s+)?" + _PATH.format(name="teed")
    + r"|\bsed\s+-i\S*\s+(?:'[^']*'|\"[^\"]*\")\s+" + _PATH.format(name="changed")
)  # fmt: skip


def files_read(command: str) -> list[str]:
    return [found["path"] for found in _READ.finditer(command, 0, _SCANNED)]


def files_written(command: str) -> list[str]:
    if ">" not in command and "tee " not in command and "sed -i" not in command:
        return []
    found = _WRITTEN.finditer(command, 0, _SCANNED)
    return [path for match in found for path in match.groups() if path and not path.startswith("/tmp/")]  # noqa: S108


# ── files of every tool ───────────────────────────────────────────────────────────────────────────

# Files the agent touched, and what it did to them.

_MOST_KEPT = 2000


@dataclass(slots=True)
class _Use:
    first_index: int
    created: bool = False
    deleted: bool = False
    edits: int = 0
    reads: int = 0
    refused: int = 0
    last_index: int = -1
    last_edit_index: int = -1


class TouchedFiles:
    def __init__(self, located: Callable[[str], str]) -> None:
        self._located = located
        self._uses: dict[str, _Use] = {}

    def touched(self, index: int, action: Action) -> None:
        if action.patched:
            for verb, path in action.patched:
                self._edited(self._use(index, path), index, created=verb == "Add", deleted=verb == "Delete")
        elif action.path and action.kind in ("edit", "write", "delete"):
            use = self._use(index, action.path)
            new_here = action.kind == "write" and not use.reads and not use.edits
            self._edited(use, index, created=new_here, deleted=action.kind == "delete")
        elif action.path and action.kind == "read":
            self._use(index, action.path).reads += 1
        elif action.kind == "shell":
            for path in files_read(action.command):
                self._use(index, path).reads += 1
            for path in files_written(action.command):
                self._edited(self._use(index, path), index, created=False, deleted=False)

    def not_touched(self, index: int, action: Action) -> None:
        """An edit that failed or that the user stopped: the file stays in view, unchanged."""
        if action.path and action.kind in ("edit", "write"):
            self._use(index, action.path).refused += 1

    @staticmethod
    def _edited(use: _Use, index: int, *, created: bool, deleted: bool) -> None:
        use.edits += 1
        use.last_edit_index = index
        use.created = use.created or created
        use.deleted = deleted

    def _use(self, index: int, written: str) -> _Use:
        path = self._located(written)
        use = self._uses.get(path)
        if use is None:
            if len(self._uses) >= _MOST_KEPT:
                self._forget_oldest()
            use = self._uses[path] = _Use(index)
        use.last_index = index
        return use

    def _forget_oldest(self) -> None:
        by_age = sorted(
            self._uses, key=lambda path: (self._uses[path].edits > 0, self._uses[path].last_index)
        )
        for path in by_age[: _MOST_KEPT // 3]:
            del self._uses[path]

    def edited_after(self, index: int) -> tuple[str, ...]:
        return tuple(path for path, use in self._uses.items() if use.last_edit_index > index)

    def found(self) -> tuple[FileUse, ...]:
        return tuple(
            FileUse(
                path,
                use.created,
                use.deleted,
                use.edits,
                use.reads,
                use.refused,
                use.first_index,
                use.last_index,
                use.last_edit_index,
            )
            for path, use in self._uses.items()
        )
