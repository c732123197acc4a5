"""Files the agent touched, and what it did to them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import zip_longest
from typing import TypeVar

from holdfast.base.text import one_line, sentences
from holdfast.findings.rules.actions import Action
from holdfast.model.gathered import FileUse, Unused

# ── files of a shell command ──────────────────────────────────────────────────────────────────────

# Files that a shell command reads or writes, as far as its words show it.
#
# Some agents have no other tools: they look with ``sed -n`` and write with a here-document.

_SCANNED = 2000
_PATCH_SCANNED = 20_000
_PATH = r"""(?P<{name}>(?:[\w.@~-]+/|/)*[\w.@-]+\.\w{{1,8}})(?=[\s;|&'")]|$)"""
_READ = re.compile(
    r"(?:^|[;&|]\s*)(?:cat|head|tail|nl|less|bat|sed\s+-n)\s+(?:-\S+\s+|'[^']*'\s+|\"[^\"]*\"\s+|\d\S*\s+)*"
    + _PATH.format(name="path")
)
_WRITTEN = re.compile(
    r"(?<![0-9&>=-])>{1,2}\s*"
    + _PATH.format(name="into")
    + r"|\btee\s+(?:-a\s+)?"
    + _PATH.format(name="teed")
)
_ONE = r"(?:[\w.@~-]+/|/)*[\w.@-]+"
_DONE_TO = re.compile(
    r"(?:^|[;&|(]\s*)(?P<verb>sed\s+(?:-E\s+|-r\s+)?-i(?:\s+''|\.\w+)?(?:\s+-[Ee])?|perl\s+-\w*i\w*\s+-\w+|git\s+mv|mv|git\s+rm|rm|git\s+checkout"
    r"|git\s+restore)\s+(?P<rest>(?:'[^']*'|\"[^\"]*\"|[^;&|\n'\"])+)"
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_FILE = re.compile(rf"(?<!\S)(?!-){_ONE}\.\w{{1,8}}(?=\s|$)")
_PATCH_HEAD = re.compile(r"^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)


def files_read(command: str) -> list[str]:
    return [found["path"] for found in _READ.finditer(command, 0, _SCANNED)]


def files_written(command: str) -> list[str]:
    """By a redirection, `tee`, `sed -i`, `mv` (both ends), `rm`, `git apply` of a patch in the command."""
    return [path for path, _ in _shell_writes(command)]


def _shell_writes(command: str) -> list[tuple[str, bool]]:
    """Each path, and whether it is gone."""
    found: list[tuple[str, bool]] = []
    if ">" in command or "tee " in command:
        matches = _WRITTEN.finditer(command, 0, _SCANNED)
        found += [(path, False) for match in matches for path in match.groups() if path]
    for match in _DONE_TO.finditer(command, 0, _SCANNED):
        found += _done_to(" ".join(match["verb"].split()), match["rest"])
    if "git apply" in command or "patch -p" in command:
        found += [(path, False) for path in _PATCH_HEAD.findall(command[:_PATCH_SCANNED])]
    return [(path, gone) for path, gone in found if not path.startswith(("/tmp/", "/dev/"))]  # noqa: S108


def _done_to(verb: str, rest: str) -> list[tuple[str, bool]]:
    paths = _FILE.findall(
        _QUOTED.sub(" ", rest) if verb.startswith(("sed", "perl")) else rest.replace('"', " ")
    )
    if verb.endswith("mv"):
        return [(path, place < len(paths) - 1) for place, path in enumerate(paths)] if len(paths) > 1 else []
    if verb == "git rm" and "--cached" in rest:
        return []  # it leaves the file alone
    if verb.startswith("git ") and not verb.endswith("rm"):
        return []  # it takes changes back; what is left cannot be told from the command
    return [(path, verb.endswith("rm")) for path in paths]


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
    by: str = ""
    names: dict[str, None] = field(default_factory=dict[str, None])
    added: dict[str, None] = field(default_factory=dict[str, None])
    dropped: dict[str, None] = field(default_factory=dict[str, None])
    replaced: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])
    purposes: dict[str, int] = field(default_factory=dict[str, int])  # and at which edit
    told: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[str, None] = field(default_factory=dict[str, None])


class TouchedFiles:
    def __init__(self, located: Callable[[str], str]) -> None:
        self._located = located
        self._uses: dict[str, _Use] = {}

    def touched(self, index: int, action: Action, by: str = "") -> None:
        for part in action.parts:
            self.touched(index, part, by)
        if action.parts:
            return
        if action.path and action.kind in ("edit", "write", "delete"):
            use = self._use(index, action.path)
            new_here = action.kind == "write" and not use.reads and not use.edits
            self._edited(use, index, by, created=new_here, deleted=action.kind == "delete")
            _keep(use, action, known=action.kind == "write" and not use.created)
        elif action.path and action.kind == "read":
            self._use(index, action.path).reads += 1
        elif action.kind == "shell":
            for path in files_read(action.command):
                self._use(index, path).reads += 1
            for path, gone in _shell_writes(action.command):
                use = self._use(index, path)
                self._edited(use, index, by or "a command", created=False, deleted=gone)
                for _, old, new in _SUBSTITUTED.findall(action.command[:_SCANNED]):
                    _renamed(use, old, new)

    def said(self, text: str) -> None:
        """What was renamed by somebody whose edits are in no record, a sub-agent for one."""
        for old, new in _SAID_RENAMED.findall(text[:_EDIT_SCANNED]):
            for use in self._uses.values():
                _renamed(use, old, new)

    def not_touched(self, index: int, action: Action) -> None:
        """An edit that failed or that the user stopped: the file stays in view, unchanged."""
        for part in action.parts or (action,):
            if part.path and part.kind in ("edit", "write"):
                self._use(index, part.path).refused += 1

    @staticmethod
    def _edited(use: _Use, index: int, by: str, *, created: bool, deleted: bool) -> None:
        """What a sub-agent did in the background may be heard of late."""
        if index >= use.last_edit_index:
            use.by, use.deleted = by, deleted
        use.edits += 1
        use.last_edit_index = max(index, use.last_edit_index)
        use.created = use.created or created

    def _use(self, index: int, written: str) -> _Use:
        path = self._located(written)
        use = self._uses.get(path)
        if use is None:
            if len(self._uses) >= _MOST_KEPT:
                self._forget_oldest()
            use = self._uses[path] = _Use(index)
        use.last_index = max(index, use.last_index)
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
                use.by,
                tuple(reversed(use.names)),
                tuple(one for one, at in reversed(use.purposes.items()) if use.edits - at < _NEWEST_EDITS),
                tuple(reversed(use.added)),
                tuple(reversed(use.dropped)),
                tuple(reversed(use.replaced)),
                tuple(reversed(use.told.items())),
                tuple(reversed(use.notes)),
            )
            for path, use in self._uses.items()
        )


# ── what an edit changes ──────────────────────────────────────────────────────────────────────────

_NAMES_KEPT = 8
_PURPOSES_KEPT = 5
_EDIT_SCANNED = 12_000
_DEFINES = re.compile(
    r"^[ \t+]*(?:(?:export|default|pub(?:\([^)]*\))?|public|private|protected|static|async"
    r"|abstract|final|override)\s+)*"
    r"(?:func|def|class|type|function|fn|interface|struct|enum|trait|impl|module|object)\s+(?:\([^)\n]*\)\s*)?([A-Za-z_]\w{2,150})"
    r"|^[ \t+]*(?:export\s+)?(?:const|let|var"
    r"|val)\s+([A-Za-z_]\w{2,150})\s*(?::[^=\n]+)?=\s*(?:async\s*)?(?:\(|function\b)",
    re.MULTILINE,
)
_NO_WORK = re.compile(
    r"^\s*(?:$|[{}()\[\];,]+$|//|#(?!\[)|/?\*|<!--|import\b|from \S+ import\b|using\b|use \w+::"
    r"|package\b|require\b|\"[\w./-]+\"$)"
)
_HUNK_LINES = 24
_HUNK_LINE = 160


def names_of(action: Action) -> list[str]:
    """What an edit defines or changes, as far as its own text shows: the new first.

    What only stands beside it, to say where it belongs, is as it was.
    """
    new, old = _parts(action.new), _parts(action.old)
    return [name for name in {**new, **old} if new.get(name) != old.get(name)][:_NAMES_KEPT]


def _parts(text: str) -> dict[str, str]:
    """Each definition with what follows it, up to the next one and its comments."""
    found: dict[str, list[str]] = {}
    part: list[str] = []
    for line in text[:_EDIT_SCANNED].split("\n"):
        if name := next(_defines(line), ""):
            part = found.setdefault(name, [])
        part.append(line)
    for lines in found.values():
        while _SAYS_NOTHING.match(lines[-1]):
            lines.pop()
    return {name: "\n".join(lines) for name, lines in found.items()}


_SAYS_NOTHING = re.compile(r"\s*(?:$|//|#|/?\*)")


def _defines(text: str) -> Iterator[str]:
    return (match[1] or match[2] for match in _DEFINES.finditer(text[:_EDIT_SCANNED]))


def _defined_beyond(text: str) -> set[str]:
    """What a long text defines behind the part that is scanned; by the line, which no text makes slow."""
    lines = (line[:_HUNK_LINE] for line in text[_EDIT_SCANNED - _HUNK_LINE :].split("\n"))
    found = map(_DEFINES.match, lines if len(text) > _EDIT_SCANNED else ())
    return {match[1] or match[2] for match in found if match}


_ONE_NAME = re.compile(r"[A-Za-z_]\w{2,150}")
_SAID_RENAMED = re.compile(
    r"(?<!be )(?<!not )(?<!n't )\brenamed (?:from )?`([A-Za-z_]\w{2,150})(?:\(\))?` (?:to|into|as|→) "
    r"`([A-Za-z_]\w{2,150})(?:\(\))?`"
)
_SUBSTITUTED = re.compile(r"\bs([/|#])(?:\\b|\\<)?([A-Za-z_]\w{2,150})(?:\\b|\\>)?\1([A-Za-z_]\w{2,150})\1g")


def _renamed(use: _Use, old: str, new: str) -> None:
    """A name that an edit brought and that has another since goes by that one."""
    for names in (use.added, use.names):
        if old in names:
            kept = dict.fromkeys(new if name == old else name for name in names)
            names.clear()
            names.update(kept)


def _replaced(old: str, new: str) -> tuple[str, str] | None:
    """The line that an edit changed, where it was one; the first that it put in, where it took out none."""
    if not old or not new or len(old) + len(new) > _SHORT_EDIT:
        return None
    before, after = old.split("\n"), new.split("\n")
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    if not before:
        first = next((line for line in map(one_line, after) if not _NO_WORK.match(line)), "")
        return ("", first) if 0 < len(first) <= _SHORT_LINE else None
    if len(before) != 1 or len(after) != 1:
        return None
    was, now = one_line(before[0]), one_line(after[0])
    fits = 0 < len(was) <= _SHORT_LINE and 0 < len(now) <= _SHORT_LINE
    return None if not fits or _NO_WORK.match(was) or _NO_WORK.match(now) else (was, now)


_SHORT_EDIT, _SHORT_LINE = 3000, 100


def hunk_of(action: Action) -> str:
    """What an edit takes out and puts in, as `diff` shows it; of much that is new only what it defines."""
    old, new = action.old[:_EDIT_SCANNED].split("\n"), action.new[:_EDIT_SCANNED].split("\n")
    if not action.old:
        return _shown(new if len(new) <= _HUNK_LINES else _defined(new))
    lines = [line for line in unified_diff(old, new, lineterm="", n=1) if not line.startswith(_DIFF_HEADS)]
    changed = [line for line in lines if line[:1] in "+-" and not _NO_WORK.match(line[1:])]
    if not changed:
        return _shown(lines)
    return _shown(
        lines if len(lines) <= _HUNK_LINES else _defined([line[1:] for line in lines if line[0] == "+"])
    )


_DIFF_HEADS = ("--- ", "+++ ", "@@ ")


def _defined(lines: list[str]) -> list[str]:
    """The lines that define something; where there are none, all from the first that does any work."""
    defined = [line.rstrip() for line in lines if _DEFINES.match(line)]
    if len(defined) > 1:
        return defined
    first = next((place for place, line in enumerate(lines) if not _NO_WORK.match(line)), 0)
    return lines[first:]


def _shown(lines: list[str]) -> str:
    shown = [line[:_HUNK_LINE] for line in lines[:_HUNK_LINES]]
    return "\n".join([*shown, "…"] if len(lines) > _HUNK_LINES else shown).strip("\n")


def _keep(use: _Use, action: Action, *, known: bool) -> None:
    """What the edit did, besides what earlier ones had done; the code in a document defines nothing.

    `known`: it writes the whole of a file that was there, so that nothing tells what is new.
    """
    if action.about:
        _set_last(use.purposes, action.about, use.edits, _PURPOSES_KEPT)
    if action.path.endswith(_PROSE):
        return
    _keep_comments(use, action)
    if _ONE_NAME.fullmatch(action.old) and _ONE_NAME.fullmatch(action.new):
        _renamed(use, action.old, action.new)
    _put_last(use.names, reversed(names_of(action)), _NAMES_KEPT)
    if one := _replaced(action.old, action.new):
        _put_last(use.replaced, _joined_to(use.replaced, one), _PURPOSES_KEPT)
    if known:
        return
    new, old = dict.fromkeys(_defines(action.new)), dict.fromkeys(_defines(action.old))
    still, before = _defined_beyond(action.new), _defined_beyond(action.old)
    gone = [name for name in old if name not in new and name not in still]
    fresh = [name for name in new if name not in old and name not in before]
    _put_last(use.dropped, (name for name in gone if name not in use.added), _NAMES_KEPT)
    _put_last(use.added, reversed(fresh), _ADDED_KEPT)
    for name in gone:
        use.added.pop(name, None)
        use.names.pop(name, None)
        use.told.pop(name, None)
    for name in new:
        use.dropped.pop(name, None)


def _joined_to(replaced: dict[tuple[str, str], None], one: tuple[str, str]) -> list[tuple[str, str]]:
    """A line that is changed again is told by how it was at first; one that is as it was, not at all."""
    before = next((known for known in replaced if known[1] == one[0] and known[0]), None)
    if before is None:
        return [one]
    del replaced[before]
    return [] if before[0] == one[1] else [(before[0], one[1])]


_ADDED_KEPT = 24
_NEWEST_EDITS = 3
"""Of a file edited many times, what its first edits were for says nothing of what it is now."""
_Kept = TypeVar("_Kept")
_Value = TypeVar("_Value")


def _put_last(kept: dict[_Kept, None], texts: Iterable[_Kept], most: int) -> None:
    for text in texts:
        _set_last(kept, text, None, most)


def _set_last(kept: dict[_Kept, _Value], key: _Kept, value: _Value, most: int) -> None:
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > most:
        del kept[next(iter(kept))]


# ── what the comments of an edit say ──────────────────────────────────────────────────────────────

_COMMENT = re.compile(
    r"\s*(?://+!?|#(?![!\[]|(?:include|define|if|else|endif|pragma)\b)|--)(?:\s(?P<words>.*)|$)"
)
_DOCSTRING = re.compile(r"\s*[rR]?(?:\"\"\"|''')(?P<words>[^\"']{12,})")
_NO_SENTENCE = re.compile(
    r"^\W*(?:nolint|noqa|eslint|type:|pylint|ts-|todo|fixme|copyright|license|spdx|see\b|e\.?g|step \d|\d)"
    r"|[;{}=]\s*$|\w\([^)]*\)\s*$|[─═=_-]{4}",
    re.IGNORECASE,
)
_LEAST_SAID, _MOST_SAID, _LEAST_WORDS = 30, 260, 6
_COMMENTS_KEPT, _TOLD_KEPT, _WRAPPED = 4, 24, 60


def _keep_comments(use: _Use, action: Action) -> None:
    """What the edit says of what it defines, and why; a comment that is taken out says nothing more."""
    new, old = action.new[:_EDIT_SCANNED].split("\n"), action.old[:_EDIT_SCANNED].split("\n")
    before, after = dict(_comments(old)), dict(_comments(new))
    for words, name in before.items():
        if words not in after:
            use.notes.pop(words, None)
            if use.told.get(name) == words:
                del use.told[name]
    for words, name in after.items():
        if words in before:
            continue
        if name:
            _set_last(use.told, name, words, _TOLD_KEPT)
        else:
            _set_last(use.notes, words, None, _COMMENTS_KEPT)


def _comments(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The first sentence of each comment, with the name that it documents; else with none."""
    words: list[str] = []
    defined = ""
    for line in lines:
        found = _COMMENT.match(line[:_HUNK_LINE])
        if found:
            words.append(found["words"] or "")
            continue
        name = next(_defines(line[:_HUNK_LINE]), "")
        if words and line.strip() and (said := _first_said(words)):
            is_of_it = not line[:1].isspace() or said.startswith(name)
            yield said, name if is_of_it else ""
        if (doc := _DOCSTRING.match(line[:_HUNK_LINE])) and defined and (said := _first_said([doc["words"]])):
            yield said, defined
        words, defined = [], name


def _first_said(lines: list[str]) -> str:
    """A line that is not full ends a sentence where the next one begins with a capital."""
    whole = ""
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        whole += f"{line} "
        ends = not following or (len(line) < _WRAPPED and following[:1].isupper())
        if ends and len(whole) > _LEAST_SAID:
            break
    said = (sentences(whole.strip()) or [""])[0]
    fits = _LEAST_SAID <= len(said) <= _MOST_SAID and len(said.split()) >= _LEAST_WORDS
    return "" if not fits or _NO_SENTENCE.search(said) else said


# ── what is not wired up yet ──────────────────────────────────────────────────────────────────────

_FUNCTION = re.compile(
    r"^[ \t]*(?:export |async |pub )*(?:func(?: \([^)\n]*\))?|def|function|fn) ([A-Za-z_]\w{3,150})",
    re.MULTILINE,
)
_CALLED_BY_OTHERS = re.compile(r"(?i:test|main$|init$)|_")
_WRITTEN_KEPT = 60
_PROSE = (".md", ".txt", ".rst", ".adoc")


class WrittenCode:
    """The newest edits, to tell which functions they define and do not use."""

    def __init__(self) -> None:
        self._texts: deque[tuple[int, str, str, str]] = deque(maxlen=_WRITTEN_KEPT)

    def edited(self, index: int, action: Action) -> None:
        if not action.path.endswith(_PROSE):
            self._texts.append((index, action.path, action.old[:_EDIT_SCANNED], action.new[:_EDIT_SCANNED]))

    def unused(self) -> tuple[Unused, ...]:
        found = {
            match[1]: Unused(index, path, match[1])
            for index, path, _, new in self._texts
            for match in _FUNCTION.finditer(new)
            if not _CALLED_BY_OTHERS.match(match[1]) and "test" not in path.lower()
        }
        there = {match[1] for _, _, old, _ in self._texts for match in _FUNCTION.finditer(old)}
        every = "\n".join(new for _, _, _, new in self._texts)
        return tuple(one for name, one in found.items() if name not in there and _only_defined(name, every))


def _only_defined(name: str, every: str) -> bool:
    """A comment that names it is no use of it."""
    at = every.find(name)
    while at >= 0:
        end = every.find("\n", at)
        line = every[every.rfind("\n", 0, at) + 1 : end if end >= 0 else len(every)]
        if _IN_CODE.match(line) and not _FUNCTION.match(line) and name in _WORDS.findall(line):
            return False
        at = every.find(name, at + len(name))
    return True


_IN_CODE = re.compile(r"(?![ \t]*(?://|#|\*|\"\"\"))")
_WORDS = re.compile(r"\w+")
