"""What became of the repository: commits, pushes, merges, read from what git and its hosts printed.

Only of the session's own repository: a commit in another folder is not its work. What moves HEAD
without saying so (the user in another terminal) is not seen.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from itertools import islice

from holdfast.base.text import clipped, one_line
from holdfast.findings.rules.actions import is_absolute
from holdfast.model.gathered import Commit, GitFacts, StatusShown

_SCANNED = 6000
_MOST_CONFLICTS = 60
_MADE = re.compile(r"^\[([^\s\]]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_SWITCHED = re.compile(r"Switched to (?:a new )?branch '([^']+)'|^On branch (\S+)", re.MULTILINE)
_GIT = r"\bgit\b(?:\s+-[cC]\s+\S+)*\s+"
_UNMADE = re.compile(
    _GIT + r"(?:commit\b[^;&|\n]{0,400}?\s(?P<amend>--amend)\b"
    r"|reset\s+(?:-\S+\s+){0,4}(?:HEAD|@)(?P<back>~\d{0,4}|\^{1,20})(?=\s|$|[;&|])"
    r"|reset\s+(?:--(?:hard|soft|mixed|keep|merge)\s+)(?P<to>[\w./@{}-]+))"
)
_COMMIT = re.compile(_GIT + r"commit\b")
_QUIET = re.compile(r"\s(?:-q|--quiet)\b")
_MESSAGE = re.compile(r"\s-[a-z]*m\s*(?:\"\$\(cat <<-?\s*'?(\w+)'?\n)?[\"']?(?P<subject>[^\n\"']{3,200})")
_PUSH = re.compile(_GIT + r"push\b(?![^;&|\n]*(?:--dry-run|\s-n\b|--delete|\s-d\b))")
_PUSHED = re.compile(r"^ ?[ +*=!-]?\s*(?:\S+\.\.\.?\S+|\[new (?:branch|tag)\])\s+\S+ -> ", re.MULTILINE)
_PUSH_DONE = re.compile(r"Everything up-to-date|set up to track", re.IGNORECASE)
_REFUSED = re.compile(r"\[(?:remote )?rejected\]|^error: failed to push|^fatal: ", re.MULTILINE)
_UP_TO_DATE = re.compile(r"Your branch is up to date with '")
_STOPPED = re.compile(
    r"^CONFLICT \(|Automatic merge failed|^error: could not apply|unmerged paths", re.MULTILINE
)
_STOP_MARKS = ("CONFLICT (", "merge failed", "could not apply", "unmerged paths")
_OVER_MARKS = ("Successfully rebased", "working tree clean", "Already up to date", "Fast-forward")
_CONFLICT = re.compile(
    r"^CONFLICT \([^)]*\): (?:Merge conflict in (\S+)|(\S+) (?:deleted|added|renamed))", re.MULTILINE
)
_BOTH = re.compile(r"^\s*both (?:modified|added):\s+(\S+)|^(?:UU|AA|DU|UD) (\S+)$", re.MULTILINE)
_OVER = re.compile(
    r"Successfully rebased|nothing to commit, working tree clean|^Already up to date|Fast-forward",
    re.MULTILINE,
)
_STILL = re.compile(r"(?:still merging|You have unmerged paths|rebase in progress|cherry-picking commit)")
_DOING = re.compile(
    _GIT + r"(merge|rebase|cherry-pick|pull|stash|revert)\b(?:\s+(--continue|--abort|--skip|--quit))?"
)
_STASH = re.compile(_GIT + r"stash\b(?:\s+(push|save|pop|apply|drop|list|show|clear|-\S+))?")
_ASKS_BRANCH = re.compile(r"^(?:cd \S+ && )?git (?:branch --show-current|rev-parse --abbrev-ref HEAD)\s*$")
_ELSEWHERE = re.compile(r"(?:^|[;&|(]\s*)cd\s+(?P<cd>[^\s;&|]+)|\bgit\s+-C\s+(?P<dir>[^\s;&|]+)")
_PULL_REQUEST = re.compile(r"https?://[^\s\"')]+/(?:pull|pulls|merge_requests)/(\d+)")
_OPENS_REQUEST = re.compile(r"\b(?:pr|mr) create\b")
_SHOWS_OWN_REQUEST = re.compile(
    r"\b(?:pr|mr) (?:view|edit|ready)\b(?!\s+[\w#/:.]|[^;&|]*\s--repo\b|[^;&|]*\s-R\b)"
)
"""Without a number it is the one of the branch that is checked out."""


_MOVES = re.compile(
    _GIT
    + r"(?:checkout|switch)\s+(?!--\s|-[bcBC]\s|[\w./-]*\.\w{1,4}(?:\s|$))|"
    + _GIT
    + r"(?:merge|rebase|pull|cherry-pick)\b"
)
"""Not `git checkout FILE`, nor a new branch, which begins where the work tree is."""
_UP_TO_DATE_ALREADY = re.compile(r"^Already up to date|is up to date\.$", re.MULTILINE)
_STATUS = re.compile(_GIT + r"status\b")
_OVERTAKES = re.compile(
    _GIT + r"(?:commit|stash|reset|restore|checkout|switch|rm|mv|clean|pull|merge|rebase)\b"
)
_STATUS_PARTS = {
    "Changes to be committed:": "staged",
    "Changes not staged for commit:": "unstaged",
    "Untracked files:": "untracked",
}
_STATUS_LINE = re.compile(r"(?:(?:modified|new file|deleted|typechange|copied|renamed):\s+(?:.+ -> )?)?(.+)")


def status_shown(index: int, output: str) -> StatusShown | None:
    """The long form alone: it says by itself what is staged and what is not."""
    parts: dict[str, list[str]] = {"staged": [], "unstaged": [], "untracked": []}
    part = ""
    for line in output.split("\n"):
        if line.strip() in _STATUS_PARTS:
            part = _STATUS_PARTS[line.strip()]
        elif line.startswith("\t") and part and (found := _STATUS_LINE.fullmatch(line.strip())):
            parts[part].append(found[1])
        elif line and not line.startswith((" ", "\t")):
            part = ""
    shown = {name: tuple(paths[:_MOST_CONFLICTS]) for name, paths in parts.items()}
    return StatusShown(index, **shown) if any(shown.values()) else None


def _steps_back(suffix: str) -> int:
    """Of `~`, `~3`, `^^`."""
    return int(suffix[1:] or 1) if suffix.startswith("~") else len(suffix)


def is_elsewhere(command: str, cwd: str | None) -> bool:
    """Whether the command works in a folder that is not the session's; in doubt it does."""
    for found in _ELSEWHERE.finditer(command[:_SCANNED]):
        place = (found["cd"] or found["dir"]).strip("\"'").rstrip("/")
        if is_absolute(place):
            if not cwd or not (place == cwd or place.startswith(f"{cwd}/") or cwd.startswith(f"{place}/")):
                return True
        elif place.startswith(("..", "$", "-")):
            return True
    return False


_HEREDOC = re.compile(r"<<-?[ ]?['\"]?(\w+)['\"]?\n")
_TRAILER = re.compile(r"^[A-Z][\w-]+: \S", re.MULTILINE)
_BODY_KEPT = 1200


def _body_of(command: str) -> str:
    """What a message says below its first line, a paragraph a line; where it stands in the command."""
    opened = _HEREDOC.search(command[:_SCANNED])
    if opened is None:
        return ""
    message = command[opened.end() : opened.end() + 2 * _BODY_KEPT].partition(f"\n{opened[1]}")[0]
    paragraphs = [one for one in message.split("\n\n")[1:] if not _TRAILER.match(one.strip())]
    return "\n".join(map(one_line, paragraphs))[:_BODY_KEPT]


def _has(text: str, marks: tuple[str, ...]) -> bool:
    return any(mark in text for mark in marks)


class GitWork:
    def __init__(self) -> None:
        self._branch: str | None = None
        self._commits: deque[Commit] = deque(maxlen=40)
        self._pushed = -1
        self._refused = False
        self._pull_requests: dict[str, None] = {}
        self._under_way = ""
        self._conflicts: dict[str, None] = {}
        self._rewritten = False
        self._stashed = 0
        self._last_commit = -1
        self._status: StatusShown | None = None
        self._moved = -1

    def ran(
        self, index: int, command: str, output: str, *, failed: bool = False, cwd: str | None = None
    ) -> None:
        """A shell command that ended; cheap for the many that have nothing to do with git."""
        if "git" not in command and "gh " not in command and "glab" not in command:
            return
        if is_elsewhere(command, cwd):
            return
        text = output if len(output) <= _SCANNED else f"{output[: _SCANNED // 2]}\n{output[-_SCANNED // 2 :]}"
        self._commit(index, command, text, failed)
        self._look(index, command[:_SCANNED], output)
        for switched, current in _SWITCHED.findall(text) if "branch" in text else ():
            self._branch = switched or current
        if _ASKS_BRANCH.match(command) and len(text.split()) == 1:
            self._branch = text.strip()
        self._merge(command, text, failed)
        if _PUSH.search(command[:_SCANNED]):
            self._push(index, command, text, failed)
        elif _UP_TO_DATE.search(text) and self._commits:
            self._all_pushed(index)
        if not failed and (found := _STASH.search(command[:_SCANNED])):
            self._stash(found[1] or "push")
        if not failed and _OPENS_REQUEST.search(command):
            self._note_links(text)
        elif not failed and _SHOWS_OWN_REQUEST.search(command) and not self._pull_requests:
            self._note_links(text, most=1)  # its description may name others

    def _look(self, index: int, command: str, output: str) -> None:
        if _OVERTAKES.search(command):
            self._status = None
        if _MOVES.search(command) and not _UP_TO_DATE_ALREADY.search(output[:_SCANNED]):
            self._moved = index
        if _STATUS.search(command) and len(output) <= _SCANNED:
            self._status = status_shown(index, output)

    def _commit(self, index: int, command: str, text: str, failed: bool) -> None:
        commits = _COMMIT.search(command[:_SCANNED])
        made = _MADE.findall(text) if commits or "merge" in command or "cherry-pick" in command else []
        why = _body_of(command[commits.end() :]) if commits else ""
        if commits and "--amend" in command and not why and self._commits:
            why = self._commits[-1].why
        if not failed and ("reset" in command or (made and "--amend" in command)):
            self._undone(command)
        for branch, identifier, subject in made:
            self._branch = branch if branch != "detached" else self._branch
            self._made(Commit(index, identifier, clipped(subject, 120), branch=branch, why=why))
        if commits and not made and not failed and _QUIET.search(command[commits.end() :]):
            if "--amend" in command:
                self._undone(command)
            found = _MESSAGE.search(command, commits.end())
            self._made(
                Commit(
                    index,
                    "",
                    clipped(one_line(found["subject"]), 120) if found else "",
                    branch=self._branch or "",
                    why=why,
                )
            )

    def _made(self, commit: Commit) -> None:
        self._commits.append(commit)
        self._last_commit = commit.index
        if self._under_way != "rebase":
            self._closed()

    def _undone(self, command: str) -> None:
        """An amended commit and one that was reset are no longer there."""
        for found in _UNMADE.finditer(command[:_SCANNED]):
            if found["to"]:
                self._reset_to(found["to"])
                continue
            back = 1 if found["amend"] else _steps_back(found["back"])
            for _ in range(min(back, len(self._commits))):
                self._commits.pop()

    def _reset_to(self, target: str) -> None:
        if target in ("HEAD", "@"):
            return
        kept = list(self._commits)
        for place, commit in enumerate(kept):
            if commit.identifier and commit.identifier.startswith(target[:7]):
                self._commits = deque(kept[: place + 1], maxlen=40)
                return
        self._commits = deque(
            (one for one in kept if one.pushed), maxlen=40
        )  # to a branch, or to an older commit

    def _merge(self, command: str, text: str, failed: bool) -> None:
        doing = _DOING.search(command[:_SCANNED])
        verb = doing[1] if doing else ""
        # A plain search is far cheaper, and most output has none of these.
        if (
            _has(text, _STOP_MARKS)
            and _STOPPED.search(text)
            and (verb in ("merge", "rebase", "cherry-pick", "pull", "stash", "revert") or _STILL.search(text))
        ):
            self._under_way = "merge" if verb in ("", "pull") else verb
            pairs: list[tuple[str, str]] = [*_CONFLICT.findall(text), *_BOTH.findall(text)]
            for one, other in pairs[:_MOST_CONFLICTS]:
                self._conflicts.setdefault((one or other).rstrip(".,"))
        elif doing and doing[2] in ("--abort", "--quit") and not failed:
            self._closed()
        elif (
            not failed
            and ((_has(text, _OVER_MARKS) and _OVER.search(text)) or (doing and doing[2] == "--continue"))
            and not _STILL.search(text)
        ):
            self._rewritten = self._rewritten or ("Successfully rebased" in text and bool(self._commits))
            self._closed()

    def _closed(self) -> None:
        self._under_way = ""
        self._conflicts.clear()

    def on_branch(self, branch: str) -> None:
        """As the agent's own record notes it."""
        if branch != "HEAD":
            self._branch = branch

    def touched(self, path: str) -> None:
        """A file was edited or added: its conflict, if it had one, is taken for resolved."""
        for name in [one for one in self._conflicts if path == one or path.endswith(f"/{one}")]:
            del self._conflicts[name]

    def _push(self, index: int, command: str, text: str, failed: bool) -> None:
        self._refused = failed or bool(_REFUSED.search(text))
        told = _PUSHED.search(text) or _PUSH_DONE.search(text)
        silent = not text.strip() and "|" not in command and "&" not in command.replace("&&", "")
        if not self._refused and (told or silent):
            self._all_pushed(index)

    def _all_pushed(self, index: int) -> None:
        self._pushed = index
        self._commits = deque((replace(one, pushed=True) for one in self._commits), maxlen=40)

    def _stash(self, verb: str) -> None:
        if verb in ("push", "save") or verb.startswith("-"):
            self._stashed += 1
        elif verb in ("pop", "drop", "apply"):
            self._stashed = max(0, self._stashed - 1)
        elif verb == "clear":
            self._stashed = 0

    def linked(self, text: str) -> None:
        self._note_links(text[:_SCANNED])

    def _note_links(self, text: str, most: int = 20) -> None:
        for found in islice(_PULL_REQUEST.finditer(text), most):
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
            under_way=self._under_way,
            conflicts=tuple(self._conflicts),
            rewritten=self._rewritten,
            stashed=self._stashed > 0,
            push_refused=self._refused,
            status=self._status,
            moved_index=self._moved,
        )
