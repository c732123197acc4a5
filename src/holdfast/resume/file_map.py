"""The map of a briefing: which files were changed and read, what was done to them, which commands worked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from holdfast.base.text import same_command
from holdfast.model.gathered import CommandUse, FileUse, Gathered
from holdfast.resume.briefing import Statement
from holdfast.resume.ledger import WorkLedger
from holdfast.resume.rendering import code, listed, prose, quoted

_FILES_SHOWN = 14
_READ_SHOWN = 5
_NAMES = 4
_ROUTINE = re.compile(
    r"\b(?:tests?|lint|build|fmt|format|check|typecheck|vet|compile|make|install|start|run)\b"
)
_ONE_SPOT = re.compile(
    r"\b(?:grep|rg|find|sed|awk|cat|ls|head|tail|echo|cd|chmod|mkdir|mv|cp|rm|touch|which|git (?:diff|show"
    r"|add|log|reset|checkout|status|push|fetch|branch|stash))\b|\b[0-9a-f]{7,40}\b"
)
_COMMANDS_SHOWN = 3
_LONGEST_COMMAND = 160
_PIPED = re.compile(r"\|\s*(?:head|tail)\b")


def map_of(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    newest = sorted(found.files, key=lambda file: -file.last_index)
    changed = [file for file in newest if file.edits and ledger.paths.is_inside(file.path)]
    changed.sort(key=lambda file: -file.last_edit_index)
    plain: list[FileUse] = []
    common = Counter(one for file in changed for one in file.purposes)
    everywhere = _replaced_in_many(changed)
    for (old, new), files in everywhere.items():
        where = listed((ledger.paths(file.path) for file in files), _FILES_SHOWN)
        text = f"{f'{code(old)} became ' if old else ''}{code(new)} {'' if old else 'put '}in {where}"
        yield Statement("map", "files", text, 4, index=files[0].last_index, counts=0)
    for place, file in enumerate(changed):
        own = [one for one in file.purposes if common[one] < _FOR_ALL]
        names = "" if file.deleted else _done_to(file)
        full = _changed(file, ledger, names and _done_to(file, explained=True), own, everywhere)
        if full == _marked(file, ledger):
            if not any(file in files for files in everywhere.values()):
                plain.append(file)
            continue
        rank = 4 if place < _FILES_SHOWN else 6
        short = f"{_marked(file, ledger)}{names}"
        yield Statement("map", "files", full, rank, short, file.last_index)
    if plain:
        yield _one_line_of("Also changed", plain, ledger, 4)
    elsewhere = [file for file in newest if file.edits and not ledger.paths.is_inside(file.path)]
    if elsewhere:
        yield _one_line_of("Written outside of the repository", elsewhere[:3], ledger, 5)
    asked = found.turns[-1].index if found.turns else 0
    read = [file for file in newest if not file.edits and file.reads and ledger.paths.is_inside(file.path)]
    if read := [file for file in read if file.last_index >= asked]:
        yield _one_line_of("Read for the latest request", read[:_READ_SHOWN], ledger, 5)
    yield from _commands(found, ledger)


def not_named(found: Gathered, ledger: WorkLedger, summary: str) -> Iterator[Statement]:
    """Files that were changed and that a summary does not name."""
    files = [
        file
        for file in found.files
        if file.edits
        and not file.deleted
        and ledger.paths.is_inside(file.path)
        and file.path.rsplit("/", 1)[-1] not in summary
    ]
    if files:
        yield _one_line_of("Also changed, and not named in the summary", files[-_READ_SHOWN:], ledger, 4)


def _one_line_of(lead: str, files: list[FileUse], ledger: WorkLedger, rank: int) -> Statement:
    paths = "; ".join(_marked(file, ledger) for file in files)
    return Statement("map", "files", f"{lead}: {paths}", rank, counts=len(files))


def _marked(file: FileUse, ledger: WorkLedger) -> str:
    mark = " *" if ledger.marks_uncommitted and file.path in ledger.uncommitted else ""
    return f"{ledger.paths(file.path)}{mark}"


def _done_to(file: FileUse, *, explained: bool = False) -> str:
    """What its edits brought, changed and took away, as far as their own text shows it.

    `explained`: with what their comments say of the names.
    """
    changed = [one for one in file.names if one not in file.added and one not in file.dropped]
    said = {} if not explained or _IS_TEST.search(file.path) else dict(file.told)
    parts = (("adds", file.added), ("changes", changed), ("removes", file.dropped))
    told = "; ".join(f"{verb} {_few(names, said)}" for verb, names in parts if names)
    return f": {told}" if told else ""


_IS_TEST = re.compile(r"(?:^|[/_.-])(?:tests?|specs?)(?:[/_.-]|$)", re.IGNORECASE)


def _few(names: Sequence[str], said: Mapping[str, str]) -> str:
    """Of names with something to say of them the first ones; what is told of one begins without its name."""
    ordered = sorted(names, key=lambda one: one not in said)[:_NAMES]
    explained = [one for one in ordered if one in said][:_EXPLAINED]
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    told = (
        f"{code(one)} ({_lowered(prose(said[one].removeprefix(f'{one} ').rstrip('.'), _OF_A_NAME))})"
        if one in explained
        else code(one)
        for one in ordered
    )
    return f"{', '.join(told)}{more}"


_EXPLAINED, _OF_A_NAME, _OF_A_COMMENT = 3, 110, 180


def _replaced_in_many(files: list[FileUse]) -> dict[tuple[str, str], list[FileUse]]:
    """One line changed alike in several files, as a renaming does."""
    found: dict[tuple[str, str], list[FileUse]] = {}
    for file in files:
        for one in file.replaced:
            found.setdefault(one, []).append(file)
    return {one: where for one, where in found.items() if len(where) >= _FOR_ALL}


def _changed(
    file: FileUse,
    ledger: WorkLedger,
    names: str,
    purposes: list[str],
    told_above: Collection[tuple[str, str]],
) -> str:
    deed = " (removed)" if file.deleted else " (new)" if file.created else ""
    by = f", written by {file.by}" if file.by else ""
    told = [one for one in purposes if not _PURPOSE_IN_PASSING.search(one)]
    if names:  # they say what was done; more only where it says why
        told = [one for one in told if _SAYS_WHY.search(one)][:1]
    why = "; ".join(_lowered(prose(one, 120)) for one in told[:_PURPOSES])
    edited = f". Edited to {why}" if why and not file.deleted else ""
    own = [one for one in file.replaced if one not in told_above]
    if not names and not edited and own and not file.deleted:
        one_line_each = (
            f"{code(old, _OF_A_LINE)} became {code(new, _OF_A_LINE)}"
            if old
            else f"gets {code(new, _OF_A_LINE)}"
            for old, new in own[:_PURPOSES]
        )
        edited = f": {'; '.join(one_line_each)}"
    note = "" if why or file.deleted else _note(file, bare=not names and not edited)
    return f"{_marked(file, ledger)}{deed}{by}{names}{edited}{note}"


def _note(file: FileUse, *, bare: bool) -> str:
    """What a comment says that an edit brought: why, or where nothing else is known of the file, what."""
    if file.created or _IS_TEST.search(file.path):
        return ""
    telling = [one for one in file.notes if _GIVES_A_REASON.search(one)] or [*file.notes] * bare
    return f". A new comment there: {quoted(telling[0], _OF_A_COMMENT)}" if telling else ""


_GIVES_A_REASON = re.compile(
    r" [\u2014\u2013] |\b(?:because|since|so that|so it|so we|instead of|rather than|(?<!if )only|never|must"
    r"|avoid|fall ?back|unless|regardless|otherwise|already)\b",
    re.IGNORECASE,
)


_PURPOSES, _OF_A_LINE = 2, 90
_SAYS_WHY = re.compile(r" [\u2014\u2013] |\b(?:because|since|so that|instead of|rather than|when|to avoid)\b")
_PURPOSE_IN_PASSING = re.compile(
    r"^(?:the|an?|this|these|some|both)\b|^\w+ (?:it|them|this|these|that|those|both|all|more)\b"
    r"|\b(?:unique|properly|directive|same for|step by step|(?:this|the) (?:section|part|block|edit))\b"
    r"|^(?:edit|update|fix|change|modify|refactor|make|do) (?:the )?(?:[\w`()]+ )?"
    r"(?:function|file|code|edits?|changes?|imports?)?(?: to)?$"
    r"|^\w+ (?:the )?`?[\w./-]+\.\w{1,4}`?$|\bimports?\b"
    r"|\b(?:nolint|errcheck|lint(?:er)?|unused|temporar\w+|one by one)\b|\bfor$",
    re.IGNORECASE,
)
_FOR_ALL = 3
"""What was said of so many files says nothing of one."""


def _lowered(words: str) -> str:
    return f"{words[:1].lower()}{words[1:]}"


def _commands(found: Gathered, ledger: WorkLedger) -> Iterator[Statement]:
    """One for each purpose: of those that differ only in what is done with their output, the newest."""
    best: dict[str, CommandUse] = {}
    told = " ; ".join(same_command(run.command) for run in ledger.checks)
    for use in sorted(found.commands, key=lambda use: use.last_index):
        if use.last_failed or _bare(use.command) in told or not _ROUTINE.search(use.command):
            continue
        if len(use.command) <= _LONGEST_COMMAND and not _ONE_SPOT.search(_PIPED.split(use.command)[0]):
            bare = same_command(use.command)
            best.pop(bare, None)
            best[bare] = use
    newest = max((use.last_index for use in best.values()), default=0)
    uses = sorted(best.values(), key=lambda use: -_use_worth(use, newest))
    if shown := uses[:_COMMANDS_SHOWN]:
        text = "; ".join(code(use.command, 200) for use in shown)
        yield Statement(
            "map", "commands", f"Other commands that worked when last run: {text}", 4, counts=len(shown)
        )


def _bare(command: str) -> str:
    return same_command(command).removesuffix(" 2>&1").strip()


def _use_worth(use: CommandUse, newest: int) -> float:
    worth = use.runs**0.6 * 0.5 ** ((newest - use.last_index) / 200)
    return worth / (1 + len(use.command) / 200)
