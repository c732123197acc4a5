"""Commits, pushes, branches and pull requests, read from what git and its hosts printed."""

from __future__ import annotations

import re
from collections import deque

from holdfast.base.text import clipped
from holdfast.model.gathered import Commit, GitFacts

_SCANNED = 4000
_MADE = re.compile(r"^\[([^\s\]]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_SWITCHED = re.compile(r"Switched to (?:a new )?branch '([^']+)'|^On branch (\S+)", re.MULTILINE)
_UNMADE = re.compile(
    r"\bgit\b[^;&|\n]{0,200}?\s(?:commit\b[^;&|\n]{0,400}?\s(?P<amend>--amend)\b"
    r"|reset\s+(?:-\S+\s+){0,4}(?:HEAD|@)(?P<back>~\d{0,4}|\^{1,20})(?=\s|$|[;&|]))"
)
_PULL_REQUEST = re.compile(r"https?://[^\s\"')]+/(?:pull|pulls|merge_requests)/(\d+)")


def _steps_back(suffix: str) -> int:
    """Of `~`, `~3`, `^^`."""
    return int(suffix[1:] or 1) if suffix.startswith("~") else len(suffix)


class GitWork:
    def __init__(self) -> None:
        self._branch: str | None = None
        self._commits: deque[Commit] = deque(maxlen=40)
        self._pushed = -1
        self._pull_requests: dict[str, None] = {}

    def ran(self, index: int, command: str, output: str) -> None:
        """A shell command that succeeded; cheap for the many that have nothing to do with git."""
        if "git" not in command and "gh " not in command and "glab" not in command:
            return
        text = output[:_SCANNED]
        made = _MADE.findall(text) if "commit" in command or "merge" in command else ()
        if "reset" in command or (made and "--amend" in command):
            self._undone(command)
        for branch, identifier, subject in made:
            self._branch = branch if branch != "detached" else self._branch
            self._commits.append(Commit(index, identifier, clipped(subject, 120)))
        for switched, current in _SWITCHED.findall(text):
            self._branch = switched or current
        if "git push" in command or ("git" in command and " push" in command):
            self._pushed = index
        if "pr create" in command or "mr create" in command or "pr view" in command:
            self._note_links(text)

    def _undone(self, command: str) -> None:
        """An amended commit and one that was reset are no longer there; what else moves HEAD is not seen."""
        for found in _UNMADE.finditer(command[:_SCANNED]):
            back = 1 if found["amend"] else _steps_back(found["back"])
            for _ in range(min(back, len(self._commits))):
                self._commits.pop()

    def linked(self, text: str) -> None:
        self._note_links(text[:_SCANNED])

    def _note_links(self, text: str) -> None:
        for found in _PULL_REQUEST.finditer(text):
            if len(self._pull_requests) < 20:
                self._pull_requests.setdefault(found[0])

    @property
    def last_commit_index(self) -> int:
        return self._commits[-1].index if self._commits else -1

    def found(self, branch: str | None, edited_since: tuple[str, ...]) -> GitFacts:
        return GitFacts(
            branch=self._branch or (branch if branch != "HEAD" else None),
            commits=tuple(self._commits),
            pushed_index=self._pushed,
            pull_requests=tuple(self._pull_requests),
            edited_since_commit=edited_since,
        )
