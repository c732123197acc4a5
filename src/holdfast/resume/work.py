"""The work itself: what was recorded while winding down, files, commands, names and values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.base.text import same_command
from holdfast.model.gathered import CommandUse, FileUse, Name, Recorded
from holdfast.resume import weights
from holdfast.resume.rendering import Block, Item, Setting, code, prose, quoted, ranked, times, visible

# ── the wind-down ─────────────────────────────────────────────────────────────────────────────────

# What was recorded while the session wound down: the user's words first, then what else was noted.

SAID = "recorded user messages"
OTHERS = "recorded actions"

_LONGEST = 2_000
_KINDS = {"assistant_response": "agent", "system_event": "event", "pause_started": "at the start"}


def recorded(setting: Setting) -> list[Block]:
    said = [one for one in setting.found.recorded if one.kind == "user_message"]
    calls = [one for one in setting.found.recorded if one.kind == "tool_call"]
    notes = [one for one in setting.found.recorded if one.kind not in ("user_message", "tool_call")]
    items = [_said(setting, one, rank) for rank, one in enumerate(reversed(said))]
    items.reverse()
    return [
        Block("The user said", items, between="; "),
        Block(
            setting.label("Noted, newest first", "Noted"),
            ranked(OTHERS, (prose(_told(one), 600) for one in reversed(notes)), weights.RECORDED_NOTE, 12),
            between="; ",
        ),
        Block(
            setting.label("Tools called, newest first", "Tools called"),
            ranked(OTHERS, (prose(one.text, 240) for one in reversed(calls)), weights.RECORDED_CALL, 8),
            between="; ",
        ),
    ]


def _said(setting: Setting, one: Recorded, rank: int) -> Item:
    longest = min(_LONGEST, int(setting.room * 0.6))
    value = weights.PINNED if one.rule else weights.falling(weights.RECORDED_SAID, rank, 15)
    return Item(SAID, quoted(one.text, longest), value)


def _told(one: Recorded) -> str:
    kind = _KINDS.get(one.kind)
    return f"{kind}: {one.text}" if kind else one.text


# ── the work ──────────────────────────────────────────────────────────────────────────────────────

# The work itself: files and what was done to them, commands, names and values.

# However much room there is: too long a list tells nobody anything.
_NAMES_IN_PLAY = 170
_NAMES_BESIDE_A_FILE = 24
_LOOSE_NAMES = 40
_VALUES_IN_PLAY = 24
_COMMANDS_SHOWN = 12
_FAILING_COMMANDS_SHOWN = 4

_ROUTINE = re.compile(
    r"\b(?:tests?|lint|build|fmt|format|check|status|diff|log|push|typecheck|vet|compile|run|make|install|start)\b"
)
_ONE_SPOT = re.compile(r"[/\"']|\b(?:grep|rg|find|sed|awk|cat)\b|\b[0-9a-f]{7,40}\b")


def files(setting: Setting) -> list[Block]:
    newest = sorted(setting.found.files, key=lambda file: -file.last_index)
    changed = [file for file in newest if file.edits or file.refused]
    read = [file for file in newest if not file.edits and not file.refused]
    beside = _names_by_file(setting.found.names)
    return [
        Block(
            setting.label("Changed, newest first, with the names at work in each", "Changed"),
            [
                _file(setting, file, weights.falling(weights.EDITED_FILE, rank, 20), beside)
                for rank, file in enumerate(changed)
            ],
            between="; ",
        ),
        Block(
            setting.label("Read, not changed", "Read"),
            [
                _file(setting, file, weights.falling(_read_worth(file), rank, 7), beside)
                for rank, file in enumerate(read)
            ],
            between="; ",
        ),
    ]


def _read_worth(file: FileUse) -> float:
    return weights.READ_FILE * (1 + 0.15 * min(file.reads, 6))


def _file(setting: Setting, file: FileUse, value: float, beside: dict[str, list[Item]]) -> Item:
    label = setting.path(file.path)
    item = Item("files", label + _deeds(file) if setting.roomy else label, value)
    item.details = beside.get(file.path, [])
    if not setting.roomy:
        item.before_details, item.after_details = " (", ")"
    return item


def _deeds(file: FileUse) -> str:
    if file.deleted:
        return ", deleted"
    if file.created:
        return f", new, edited {times(file.edits - 1)} since" if file.edits > 1 else ", new"
    if not file.edits:
        return ", edit tried but not made" if file.refused else ""
    return f", edited {times(file.edits)}"


def _names_by_file(names: tuple[Name, ...]) -> dict[str, list[Item]]:
    worths = _name_worths(names)
    homes: dict[str, list[Item]] = {}
    for name in names:
        if name.path and name.text in worths and len(homes.setdefault(name.path, [])) < _NAMES_BESIDE_A_FILE:
            homes[name.path].append(_name(name, worths))
    return homes


def _name(name: Name, worths: dict[str, float]) -> Item:
    return Item("names", visible(name.text), worths[name.text], once=True)


def _name_worths(names: tuple[Name, ...]) -> dict[str, float]:
    """By rank among all names met, and by rank among those the agent talked about."""
    plain = [name for name in names if not name.value][:_NAMES_IN_PLAY]
    talked = sorted((name for name in plain if name.talked), key=lambda name: -name.talked)
    worths = {
        name.text: weights.ANY_NAME + weights.falling(weights.NAME, rank, 25)
        for rank, name in enumerate(plain)
    }
    for rank, name in enumerate(talked):
        worths[name.text] += weights.falling(weights.TALKED_NAME, rank, 9)
    return worths


def commands(setting: Setting) -> list[Block]:
    uses = setting.found.commands
    worked = _best(setting, (use for use in uses if use.runs > use.failures), 1.0)[:_COMMANDS_SHOWN]
    failed = _best(setting, (use for use in uses if use.runs == use.failures), 0.4)[:_FAILING_COMMANDS_SHOWN]
    groups = _grouped(worked) if setting.roomy else {"Commands": worked}
    return [
        *(Block(label, group, bullets=False) for label, group in groups.items()),
        Block(setting.label("Never worked", "Failing commands"), failed, bullets=False),
    ]


def _grouped(items: list[Item]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {"Build, test, check": [], "Git": [], "Other": []}
    for item in items:
        words = same_command(item.text.strip("` "))
        if words.startswith(("git ", "gh ")):
            groups["Git"].append(item)
        else:
            groups["Build, test, check" if _ROUTINE.search(words) else "Other"].append(item)
    return groups


def _best(setting: Setting, uses: Iterable[CommandUse], factor: float) -> list[Item]:
    items = [
        (Item("commands", code(use.command), factor * _command_worth(setting, use), once=True), use.command)
        for use in uses
    ]
    items.sort(key=lambda pair: (-_density(pair[0]), pair[1]))
    seen: set[str] = set()
    for item, command in items:
        bare = same_command(command)
        if bare in seen:  # the same command with another tail to its output
            item.worth *= weights.VARIANT
        seen.add(bare)
    return sorted((item for item, _ in items), key=lambda item: (-_density(item), item.text))


def _density(item: Item) -> float:
    return item.worth / (len(item.text) + 8)


def _command_worth(setting: Setting, use: CommandUse) -> float:
    """A command comes again if it was run often, lately, and is about the project, not one spot in it."""
    value = weights.COMMAND * use.runs**0.6 * 0.5 ** (setting.age(use.last_index) / 200)
    if _ROUTINE.search(use.command):
        value *= 1.5
    return value * 0.5 if _ONE_SPOT.search(use.command) else value


def names(setting: Setting) -> list[Block]:
    """Those that have no place beside a file."""
    found = setting.found.names
    homes = {file.path for file in setting.found.files}
    labels = set(setting.labels.values())
    worths = _name_worths(found)
    loose = [
        _name(name, worths)
        for name in found
        if name.text in worths and name.path not in homes and not _is_listed(name.text, labels)
    ]
    values = [name for name in found if name.value][: min(_VALUES_IN_PLAY, setting.room // 120)]
    return [
        Block(
            setting.label("Ids and numbers", "Ids"),
            [_value(setting, name, rank) for rank, name in enumerate(values)],
            bullets=False,
        ),
        Block(setting.label("Terms", "Also in play"), loose[:_LOOSE_NAMES], bullets=False),
    ]


def _is_listed(term: str, labels: set[str]) -> bool:
    """Whether a term is the path of a file that is listed anyway."""
    return "/".join(term.split("/")[-2:]) in labels


def _value(setting: Setting, name: Name, rank: int) -> Item:
    item = Item("values", visible(name.text), weights.falling(weights.VALUE, rank, 8), once=True)
    if name.gloss and setting.roomy:
        item.details = [Item("value glosses", quoted(name.gloss), weights.GLOSS)]
        item.before_details = " "
    return item
