"""Files the agent touched, and what it did to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.findings.actions import Action
from holdfast.findings.shellfiles import files_read, files_written
from holdfast.model.gathered import FileUse

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
