"""What keeps a tool call from running, whichever program would do the damage. Never silenced."""

from __future__ import annotations

import os
import sys

from holdfast.base.command_line import (
    DEEPEST_TEXT,
    DYNAMIC,
    LONGEST_COMMAND,
    RUN_TEXT,
    SHELLS,
    Simple,
    all_programs,
    command_text,
    feeding,
    letters,
    parse,
    past_options,
    printed_text,
    program_of,
    real_program,
    texts_run_by,
    with_fed,
)
from holdfast.hooks.command_place import (
    CommandPlace,
    has_tracked_changes,
    literals,
    path_in,
    python_calls,
)
from holdfast.project.formats import FOLDER

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.hooks.fast.event import AgentEvent


_DISKS = ("sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "loop", "mapper/")
_PRECIOUS_FILES = ("/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/fstab", "/proc/sysrq-trigger")
_PROTECTED_BRANCHES = ("main", "master", "trunk", "production", "release")


Refusal = tuple[str, str]
"""Why a command may not run, and what would be allowed in its place."""

_NAME_THEM = "name the exact files or folders inside the project"
_READ_FIRST = "download it to a file, read it, and run the file"
_OWN_BRANCH = "push to a branch of your own, or ask the user to do it"
_SAVE_FIRST = "`git stash` or commit first, or name the files whose changes may go"
_NOTHING_INSTEAD = "ask the user to do it"


def is_disk(target: str) -> bool:
    path = os.path.normpath(target)
    return path.startswith("/dev/") and path[5:].startswith(_DISKS)


def why_not_write(target: str, place: CommandPlace) -> Refusal | None:
    path = place.resolved(target)
    if is_disk(path):
        return f"it overwrites the disk {path}", "write to a file inside the project"
    if path in _PRECIOUS_FILES:
        return f"it overwrites {path}", "write to a file inside the project"
    return None


def why_not_run(name: str, words: list[str], place: CommandPlace) -> Refusal | None:
    rule = PROGRAMS.get(name)
    if rule is not None:
        return rule[0](words, place)
    if name.startswith(_FORMATTERS) or name in _DISK_TOOLS:
        return _disk_tool(name, words)
    if name in _POWER:
        return None if "--help" in words else ("it shuts the machine down", _NOTHING_INSTEAD)
    if DYNAMIC in name or any(sign in name for sign in "*?["):
        return _hidden(words, place)
    return None


_FORMATTERS = ("mkfs", "mke2fs", "newfs")
_DISK_TOOLS = ("wipefs", "fdisk", "sfdisk", "sgdisk", "parted", "blkdiscard", "hdparm", "mkswap", "badblocks")
_POWER = ("shutdown", "reboot", "halt", "poweroff")


def _is_recursive(words: list[str]) -> bool:
    return "--recursive" in words or any(letter in letters(words) for letter in "rR")


def _vital(words: list[str], place: CommandPlace) -> str | None:
    return next((word.replace(DYNAMIC, "$…") for word in words if place.is_vital(word)), None)


def _rm(words: list[str], place: CommandPlace) -> Refusal | None:
    if "--no-preserve-root" in words:
        return "it may delete the whole system", _NAME_THEM
    refusal = _tee(words, place)
    if refusal or not _is_recursive(words):
        return refusal
    target = _vital(words, place)
    if target is not None:
        return f"it deletes {target} recursively", _NAME_THEM
    target = next((word for word in words if place.holds_history(word)), None)
    if target is not None:
        return f"it deletes this project's git repository ({target})", _NAME_THEM
    if any(map(place.is_all_of_it, words)) and place.has_changes(place.root):
        return "it deletes everything in this project, uncommitted changes with it", _SAVE_FIRST
    return None


def _rimraf(words: list[str], place: CommandPlace) -> Refusal | None:
    return _rm(["-r", *words], place)


def _change_all(words: list[str], place: CommandPlace) -> Refusal | None:
    target = _vital(words, place)
    if target is not None and _is_recursive(words):
        return f"it changes the owner or permissions of everything in {target}", _NAME_THEM
    return None


def _find(words: list[str], place: CommandPlace) -> Refusal | None:
    begins = [at for at, word in enumerate(words) if word.startswith(("-", "(", "!")) and len(word) > 2]
    start = [word for word in words[: begins[0] if begins else None] if not word.startswith("-")] or ["."]
    where = _vital(start, place)
    removes = "-delete" in words
    conditions = list(words)
    for at, word in enumerate(words):
        run = words_until_end(words[at + 1 :]) if word in _FIND_RUNS else []
        removes = removes or _removes(run)
        refusal = _danger_of(Simple(run, [], [], None), place, 1) if run else None
        if refusal:
            return refusal
        conditions[at + 1 : at + 1 + len(run)] = [""] * len(run)
    if not removes:
        return None
    if where:
        return f"it deletes the files it finds under {where}", _NAME_THEM
    options = {word for word in conditions if word.startswith("-")}
    if options <= _FIND_ALL and any(place.is_project_or_history(word) for word in start):
        return "it deletes everything in this project, its git repository with it", _NAME_THEM
    named = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "-name"]
    if (
        named == [".git"]
        and _FIND_ALL | {"-name", "-prune", "-maxdepth"} >= options
        and place.root in map(place.resolved, start)
    ):
        return "it deletes this project's git repository", _NAME_THEM
    return None


_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FIND_ALL = frozenset(
    (
        "-delete",
        "-depth",
        "-mindepth",
        "-maxdepth",
        "-type",
        "-print",
        "-print0",
        "-L",
        "-H",
        "-P",
        "-xdev",
        "-mount",
        *_FIND_RUNS,
    )
)
"""With these alone nothing that counts is left out."""


def words_until_end(words: list[str]) -> list[str]:
    ends = [at for at, word in enumerate(words) if word in (";", "+")]
    return words[: ends[0] if ends else None]


def _removes(words: list[str]) -> bool:
    """Also in the text that a shell is given."""
    if not words:
        return False
    inside = [one.words for text, *_ in texts_run_by(Simple(words, [], [], None)) for one in parse(text)]
    return any(one and os.path.basename(one[0]) in ("rm", "shred", "unlink") for one in [words, *inside])


def _dd(words: list[str], place: CommandPlace) -> Refusal | None:
    outputs = (word[3:] for word in words if word.startswith("of="))
    return next((why for word in outputs if (why := why_not_write(word, place))), None)


def _move(words: list[str], place: CommandPlace) -> Refusal | None:
    plain = [word for word in words if not word.startswith("-")]
    target = _vital(plain[:-1], place)
    if target is not None:
        return f"it moves {target} away", _NAME_THEM
    return why_not_write(plain[-1], place) if plain else None


def _copy(words: list[str], place: CommandPlace) -> Refusal | None:
    plain = [word for word in words if not word.startswith("-")]
    return why_not_write(plain[-1], place) if plain else None


def _tee(words: list[str], place: CommandPlace) -> Refusal | None:
    return next((why for word in words if (why := why_not_write(word, place))), None)


def _shred(words: list[str], place: CommandPlace) -> Refusal | None:
    hit = next((word for word in words if is_disk(word) or place.is_vital(word)), None)
    return (f"it wipes {hit}", _NAME_THEM) if hit else None


def _rsync(words: list[str], place: CommandPlace) -> Refusal | None:
    only_shows = "--dry-run" in words or "--list-only" in words or "n" in letters(words)
    if only_shows or not any(word.startswith("--delete") for word in words):
        return None
    target = _vital(words[-1:], place)
    if (
        target is None
        and place.resolved(words[-1]) == place.root
        and not any(".git" in word for word in words)
    ):
        target = "this project, its git repository with them"
    return (f"it deletes the contents of {target}", _NAME_THEM) if target else None


def _kill(words: list[str], place: CommandPlace) -> Refusal | None:  # noqa: ARG001 - one form for all rules
    if words[:1] == ["-s"]:
        words = words[1:]
    if words[:1] and words[0].removeprefix("-").removeprefix("SIG") in _MILD_SIGNALS:
        words = [word for word in words if word != "1"]
    plain = [word for word in words[1:] if word in ("-1", "1")]
    return ("it kills every process, or init", "name the process ids you started") if plain else None


_MILD_SIGNALS = ("0", "HUP", "USR1", "USR2", "CHLD", "WINCH", "CONT")


def _crontab(words: list[str], place: CommandPlace) -> Refusal | None:  # noqa: ARG001
    if "r" not in letters(words):
        return None
    return "it deletes all scheduled jobs", "`crontab -l` into a file, edit that, and load it again"


def _systemctl(words: list[str], place: CommandPlace) -> Refusal | None:  # noqa: ARG001
    ends = ("poweroff", "reboot", "halt", "kexec", "emergency", "rescue")
    verb = next((word for word in words if not word.startswith("-")), "")
    ends_it = verb in ends or (
        verb in ("start", "isolate") and any(word.removesuffix(".target") in ends for word in words)
    )
    return ("it shuts the machine down", _NOTHING_INSTEAD) if ends_it else None


def _init(words: list[str], place: CommandPlace) -> Refusal | None:  # noqa: ARG001
    return ("it shuts the machine down", _NOTHING_INSTEAD) if words[:1] in (["0"], ["6"]) else None


def _disk_tool(name: str, words: list[str]) -> Refusal | None:
    if any(word in ("-l", "--list", "--help", "-h", "--version") for word in words):
        return None
    disk = next((word for word in words if is_disk(word)), None)
    return (f"{name} wipes or rewrites the disk {disk}", "use an image file") if disk else None


def _hidden(words: list[str], place: CommandPlace) -> Refusal | None:
    """A program whose name only the shell will know, given the words of a deletion."""
    target = _vital(words, place)
    if target is not None and _is_recursive(words):
        return f"it hides which program operates on {target}", _NAME_THEM
    return None


def _git(words: list[str], place: CommandPlace) -> Refusal | None:
    folder, (verb, *rest) = _git_verb(words)
    if "--help" in rest:
        return None
    if verb == "push":
        return _git_push(rest, place.branch)
    place = place.after_cd(folder)
    if verb == "clean":
        return _git_clean(rest, place)
    if verb not in _GIT_VERBS:
        return None
    if _discards_all(verb, rest, place):
        # A path is of the folder it is given in, which may have nothing to lose.
        named = [word for word in rest if verb in ("checkout", "restore") and _means_all(word, place)]
        return _LOSES_ALL if place.has_changes(place.cwd, *named) else None
    patterns = [word for word in rest if "*" in word and not word.startswith("-")]
    if patterns and verb in ("checkout", "restore") and not _keeps_changes(verb, rest):
        named = ", ".join(patterns)
        told = f"it discards every uncommitted change of {named}"
        return (told, _SAVE_FIRST) if place.has_changes(place.cwd, *patterns) else None
    return None


_LOSES_ALL = ("it discards every uncommitted change here", _SAVE_FIRST)


def _git_clean(rest: list[str], place: CommandPlace) -> Refusal | None:
    """Of files that git does not track nobody else has a copy."""
    short = letters(rest)
    if not ("f" in short or "--force" in rest) or "n" in short or "i" in short or "--dry-run" in rest:
        return None
    named = [word for word in rest if not word.startswith("-") and not _means_all(word, place)]
    if any(word.startswith(("-e", "--exclude")) for word in rest):
        named = []  # what is left out is no path
    ignored = "x" in short or "X" in short
    keeps_ours = any(FOLDER in word for word in rest) or not os.path.isdir(os.path.join(place.root, FOLDER))
    if ignored and not named and not keeps_ours:
        return f"it deletes Holdfast's record of this work ({FOLDER})", f"`git clean … -e {FOLDER}`"
    if not named and "X" not in short and place.has_changes(place.cwd, untracked=True):
        return "it deletes every file that git does not track yet", "`git stash -u` first, or name the files"
    return None


_GIT_VERBS = ("push", "checkout", "restore", "reset", "switch", "clean")


_GIT_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path")
"""Those before the verb whose value is a word of its own."""


def _git_verb(words: list[str]) -> tuple[str | None, list[str]]:
    """Where git is told to go first, and the verb with what follows it; an empty one where there is none."""
    folder: str | None = None
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "-C" and at + 1 < len(words):
            folder = words[at + 1]
        at += 2 if words[at] in _GIT_OPTIONS else 1
    return folder, words[at:] or [""]


def commits(command: str) -> bool:
    """Whether git makes a commit in it: not where that is only printed, asked about or tried out."""
    for simple in all_programs(command):
        words = program_of(simple)
        if words and os.path.basename(words[0]) == "git":
            _, (verb, *rest) = _git_verb(words[1:])
            if verb == "commit" and _ONLY_SHOWS.isdisjoint(_without_values(rest)):
                return True
    return False


_ONLY_SHOWS = frozenset(("--help", "-h", "--dry-run", "--short", "--long", "--porcelain"))
_WITH_VALUE = ("--message", "--file", "--author", "--date", "--template", "--trailer", "--cleanup")


def _without_values(words: list[str]) -> list[str]:
    """The options of `git commit`, without the texts that belong to them."""
    kept: list[str] = []
    at = 0
    while at < len(words) and words[at] != "--":
        word = words[at]
        kept.append(word)
        short = word.startswith("-") and not word.startswith("--")
        at += 2 if word in _WITH_VALUE or (short and word[-1] in "mFCct") else 1
    return kept


def _discards_all(verb: str, rest: list[str], place: CommandPlace) -> bool:
    short = letters(rest)
    if verb == "reset":
        return "--hard" in rest
    if verb == "switch":
        return "--discard-changes" in rest or "--force" in rest or "f" in short
    if any(word in _IN_PART for word in rest):
        return False
    if verb == "checkout" and "--" not in rest and ("--force" in rest or "f" in short):
        return True
    if _keeps_changes(verb, rest):
        return False
    return any(_means_all(word, place) for word in rest)


_IN_PART = ("-p", "--patch", "--ours", "--theirs")


def _keeps_changes(verb: str, rest: list[str]) -> bool:
    """In part, or of the index alone."""
    short = letters(rest)
    only_index = "--staged" in rest or "S" in short
    in_part = any(word in _IN_PART for word in rest)
    return in_part or (verb == "restore" and only_index and "--worktree" not in rest and "W" not in short)


def _means_all(word: str, place: CommandPlace) -> bool:
    return word in (":/", ":/*", "*", "./*") or (
        not word.startswith("-") and DYNAMIC not in word and place.resolved(word) in (place.cwd, place.root)
    )


def _saves_changes(words: list[str], added: bool) -> bool:
    """Whether what follows on the line finds nothing to lose."""
    _, (verb, *rest) = _git_verb(words[1:])
    if verb == "stash":
        return rest[:1] in ([], ["push"], ["save"]) or rest[0].startswith("-")
    if verb == "commit" and "--dry-run" not in rest:
        return added or "--all" in rest or "a" in letters([word for word in rest if word != "--amend"])
    return False


def _git_push(rest: list[str], branch: Callable[[], str]) -> Refusal | None:
    if "--dry-run" in rest or "n" in letters([word for word in rest if not word.startswith("-o")]):
        return None
    refs = [word for word in rest if not word.startswith("-")][1:]
    forced = "--force" in rest or "f" in letters([word for word in rest if word != "--force-with-lease"])
    deletes = "--delete" in rest or "-d" in rest
    if "--mirror" in rest:
        return "it mirrors this repository and deletes whatever exists only on the remote", _OWN_BRANCH
    for ref in refs:
        aimed = ref.removeprefix("+").rpartition(":")[2].removeprefix("refs/heads/")
        if aimed in ("HEAD", "@"):
            aimed = branch()
        if (aimed in _PROTECTED_BRANCHES or aimed == "*") and (
            forced or deletes or ref.startswith(("+", ":"))
        ):
            return f"it rewrites or deletes the shared branch {aimed}", _OWN_BRANCH
    if forced and not refs and "--tags" not in rest and branch() in _PROTECTED_BRANCHES:
        return f"it rewrites the shared branch {branch()}", _OWN_BRANCH
    return None


if TYPE_CHECKING:
    ProgramRule = Callable[[list[str], CommandPlace], Refusal | None]

_ON_DEVICES = ("/dev", "/etc", "/proc")
PROGRAMS: dict[str, tuple[ProgramRule, tuple[str, ...]]] = {
    "rm": (_rm, ("rm",)),
    "srm": (_rm, ("srm",)),
    "rimraf": (_rimraf, ("rimraf",)),
    "chmod": (_change_all, ("chmod",)),
    "chown": (_change_all, ("chown",)),
    "chgrp": (_change_all, ("chgrp",)),
    "find": (_find, ("-delete", "-exec", "-ok")),
    "dd": (_dd, _ON_DEVICES),
    "mv": (_move, ("mv",)),
    "cp": (_copy, _ON_DEVICES),
    "tee": (_tee, _ON_DEVICES),
    "truncate": (_tee, _ON_DEVICES),
    "unlink": (_tee, _ON_DEVICES),
    "shred": (_shred, ("shred",)),
    "rsync": (_rsync, ("rsync",)),
    "kill": (_kill, ("kill",)),
    "crontab": (_crontab, ("crontab",)),
    "systemctl": (_systemctl, ("systemctl",)),
    "init": (_init, ("init",)),
    "telinit": (_init, ("telinit",)),
    "git": (_git, _GIT_VERBS),
}
"""The rule of each program, and the words without one of which a plain command line does it no harm."""


def telling_words() -> list[str]:
    """Words that `hook.sh` leaves to Python: without any of them a plain command harms nothing."""
    of_programs = [word for _, words in PROGRAMS.values() for word in words]
    named = (
        *_FORMATTERS,
        *_DISK_TOOLS,
        *_POWER,
        *RUN_TEXT,
        *_FETCHERS,
        "eval",
        "source",
        "xargs",
        "parallel",
    )
    return sorted(
        {*of_programs, *named, "commit", "holdfast"}
    )  # a nudge and the other guard want the last two


# ── one-line programs ─────────────────────────────────────────────────────────────────────────────

_REMOVERS = ("rmtree(", "remove_tree(", "rm_rf(", "rm_rf ", "rm_r(", "rmSync(", "rmdirSync(", ".rm(")
_STARTERS = (
    *("system(", "system ", "popen(", "Popen(", "exec(", "exec ", "spawn(", "shell_exec(", "passthru("),
    *("execSync(", "execFileSync(", "spawnSync(", "execFile("),
    *("subprocess.run(", "subprocess.call(", "check_call(", "check_output("),
)


def why_not_script(text: str, place: CommandPlace, name: str = "") -> Refusal | None:
    """A one-line program that removes a vital folder by its own means."""
    if name.startswith("python") and any(word in text for word in _TELLING_OF_PYTHON):
        found = python_calls(text)
        if found is not None:
            refusals = (_of_python_call(words, place, removes=removes) for removes, words in found)
            return next((why for why in refusals if why), None)
    for call in (*_REMOVERS, *_STARTERS):
        for after in text.split(call)[1:_MOST_CALLS]:
            refusal = _of_call(after, place, starts=call in _STARTERS)
            if refusal:
                return refusal
    return None


_MOST_CALLS = 100
_TELLING_OF_PYTHON = (
    "rmtree",
    "remove_tree",
    "system",
    "open",
    "subprocess",
    "check_",
    "getoutput",
    "exec",
    "eval",
)


def _of_python_call(words: list[str], place: CommandPlace, *, removes: bool) -> Refusal | None:
    if not removes:
        return _started(words, place)
    for target in words:
        if place.is_vital(target) or place.is_project_or_history(target):
            return f"it deletes {target} recursively", _NAME_THEM
    return None


def _started(words: list[str], place: CommandPlace) -> Refusal | None:
    """A whole line, or a program with its words."""
    if len(words) == 1:
        return danger(words[0], place, 1)
    return _danger_of(Simple(words, [], [], None), place, 1) if words else None


def _of_call(after: str, place: CommandPlace, *, starts: bool) -> Refusal | None:
    if not starts:
        target = path_in(after)
        return (f"it deletes {target} recursively", _NAME_THEM) if target and place.is_vital(target) else None
    return _started(literals(after), place)


# ── dangerous commands ────────────────────────────────────────────────────────────────────────────

_FETCHERS = ("curl", "wget", "fetch", "aria2c")
_DECODERS = ("base64", "base32", "xxd", "openssl", "rev", "tr", "gunzip", "zcat")


def dangerous_commands(event: AgentEvent) -> str | None:
    """Keep a shell command from destroying the system, the home folder, a disk or shared history."""
    command = event.command()
    if not command:
        return None
    place = CommandPlace(
        event.text("cwd") or event.project, _branch(event), has_tracked_changes, event.project
    )
    refusal = danger(command, place)
    if refusal is None:
        return None
    why, instead = refusal
    return (
        f"holdfast: this command was blocked: {why}. Allowed instead: {instead}. "
        "If the user wants exactly this, they can run it by hand."
    )


def danger(command: str, place: CommandPlace, depth: int = 0, given: Sequence[str] = ()) -> Refusal | None:
    """Why the command may not run; None where nothing speaks against it. `given` are `$0`, `$1` … in it."""
    if len(command) > LONGEST_COMMAND:
        return _TOO_LONG
    if depth > DEEPEST_TEXT:
        return _TOO_DEEP
    if _is_fork_bomb(command):
        return "it is a fork bomb", _NOTHING_INSTEAD
    try:
        programs = parse(command, place.cwd, given)
    except RecursionError:
        return _TOO_DEEP
    if sum(len(simple.words) for simple in programs) > _MOST_WORDS:
        return _TOO_LONG
    fetches = added = False
    for simple in programs:  # what a substitution runs comes before the program that is given its output
        fetches = simple.fetches = fetches or _hides_text(program_of(simple))
        added = added or " ".join(simple.words[:2]) == "git add"
        if "".join(simple.words[:1]) == "git" and _saves_changes(simple.words, added):
            place = CommandPlace(place.cwd, place.branch, root=place.root)
        refusal = _danger_of(simple, place, depth)
        if refusal:
            return refusal
    return None


_MOST_WORDS = 20_000
_TOO_LONG = ("it is too long to analyse", "write the text to a file with your editing tool and use the file")
_TOO_DEEP = ("it is nested too deeply to analyse", "run its parts one by one")


def _branch(event: AgentEvent) -> Callable[[], str]:
    def current() -> str:
        from holdfast.hooks.fast.context import current_branch

        return current_branch(event.project)

    return current


_LONGEST_BOMB = 500


def _is_fork_bomb(command: str) -> bool:
    tight = "".join(command.split())
    opening = tight.find("(){")
    while opening >= 0:
        start = opening
        while start and (tight[start - 1].isalnum() or tight[start - 1] in "_:."):
            start -= 1
        name = tight[start:opening]
        body = tight[opening + 3 : opening + _LONGEST_BOMB].partition("}")[0]
        if name and f"{name}|{name}" in body and "&" in body:
            return True
        opening = tight.find("(){", opening + 1)
    return False


def _danger_of(simple: Simple, place: CommandPlace, depth: int) -> Refusal | None:
    place = place.after_cd(simple.folder)
    for target in simple.writes:
        refusal = why_not_write(target, place)
        if refusal:
            return refusal
    words, is_fed = real_program(simple.words)
    if not words:
        return None
    name = os.path.basename(words[0])
    if is_fed:
        source = feeding(simple)
        found = program_of(source) if source else []
        if found and os.path.basename(found[0]) == "find" and name != "find":
            refusal = _find([*found[1:], "-exec", *words, "{}", ";"], place)
            if refusal:
                return refusal
        words = [words[0], *with_fed(simple, words[1:])]
    refusal = _runs_text(name, words, simple, place, depth)
    return refusal or why_not_run(name, words[1:], place)


_UNSEEN_DOWNLOAD = ("it runs downloaded code without inspection", _READ_FIRST)


def _runs_text(
    name: str, words: list[str], simple: Simple, place: CommandPlace, depth: int
) -> Refusal | None:
    """Shells, `eval` and interpreters that are given a program as text."""
    if name == "eval":
        return _of_text(" ".join(words[1:]), simple, place, depth)
    if name == "trap":
        return _of_text(words[1], simple, place, depth) if len(words) > 2 else None
    if name in RUN_TEXT:
        return _of_shell(name, words, simple, place, depth)
    if name in ("source", "."):
        reads = _reads_output(words) or (simple.after is not None and words[1:2] == ["/dev/stdin"])
        return _UNSEEN_DOWNLOAD if simple.fetches and reads else None
    if name.startswith(_INTERPRETERS):
        return _of_interpreter(words, simple, place)
    return None


def _reads_output(words: list[str]) -> bool:
    """Whether it is given what another program prints, as in `<(curl …)`."""
    return any(word.startswith(DYNAMIC + "<") for word in words[1:])


def _of_interpreter(words: list[str], simple: Simple, place: CommandPlace) -> Refusal | None:
    name = os.path.basename(words[0])
    refusal = next((why for word in words[1:] if (why := why_not_script(word, place, name))), None)
    options = [word for word in words[1:] if word.startswith("-")]
    program = next((word for word in words[1:] if not word.startswith("-")), "")
    if refusal or program not in ("", "/dev/stdin") or any(word not in _MERE_OPTIONS for word in options):
        return refusal
    source: Simple | None = simple.after
    printed = printed_text(program_of(source)) if source else None
    refusal = next(
        (why for text in (*simple.reads, printed or "") if (why := why_not_script(text, place, name))), None
    )
    while source is not None and refusal is None:
        fetcher = os.path.basename((program_of(source) or [""])[0])
        refusal = _UNSEEN_DOWNLOAD if fetcher in _FETCHERS else None
        source = source.after
    return refusal


_INTERPRETERS = ("python", "perl", "ruby", "node", "php", "awk", "gawk", "mawk")
_MERE_OPTIONS = ("-", "-u", "-I", "-E", "-s", "-S", "-B", "-O", "-i", "-w")
"""With these alone it reads its program from where it is fed."""


def _of_shell(name: str, words: list[str], simple: Simple, place: CommandPlace, depth: int) -> Refusal | None:
    if name in SHELLS and _only_checks(words):
        return None
    given = command_text(words, name in SHELLS)
    if given:
        return _of_text(given[0], simple, place, depth, given[1:])
    if simple.fetches and _reads_output(words):
        return _UNSEEN_DOWNLOAD
    if name == "ssh":
        return None
    for body in simple.reads:
        refusal = _of_text(body, simple, place, depth)
        if refusal:
            return refusal
    return _of_pipe(simple, place, depth) if name in SHELLS and _reads_program(words) else None


def _reads_program(words: list[str]) -> bool:
    """Whether a shell takes its program from where it is fed: it is named no script, or told so."""
    rest = past_options(words[1:], "oO")
    own = words[1 : len(words) - len(rest)]
    return "s" in letters(own) or rest[:1] in ([], ["-"], ["/dev/stdin"])


def _only_checks(words: list[str]) -> bool:
    """`bash -n` reads its input and runs nothing of it."""
    own: list[str] = []
    for word in words[1:]:
        if not word.startswith(("-", "+")) or word == "--":
            break
        own.append(word)
    return "n" in letters(own) and not any(word.startswith("+") for word in own)


def _of_text(
    text: str, simple: Simple, place: CommandPlace, depth: int, given: Sequence[str] = ()
) -> Refusal | None:
    if text.strip() == DYNAMIC and simple.fetches:
        return "it runs the output of another command without inspection", _READ_FIRST
    return danger(text, place, depth + 1, given)


def _hides_text(words: list[str]) -> bool:
    """Whether nobody can tell from the line what comes out; `tr -d` only leaves characters out."""
    name = os.path.basename(words[0]) if words else ""
    if name == "tr" and not {"d", "s"}.isdisjoint(letters(words[1:])):
        return False
    return name in _FETCHERS or name in _DECODERS


def _of_pipe(simple: Simple, place: CommandPlace, depth: int) -> Refusal | None:
    """What is piped into a shell: downloads and decoded text are refused, plain text is looked at."""
    source = simple.after
    while source is not None:
        words = real_program(source.words)[0]
        if _hides_text(words):
            return "it pipes downloaded or decoded text into a shell without inspection", _READ_FIRST
        text = printed_text(words)
        if text is not None:
            return danger(text, place, depth + 1)
        source = source.after
    return None


# ── unpinned program ──────────────────────────────────────────────────────────────────────────────

_NAMES = ("holdfast", "holdfast-hook")
_FETCHING = (
    ("uvx",),
    ("uv", "tool", "run"),
    ("uv", "x"),
    ("pipx", "run"),
    ("npx",),
    ("bunx",),
    ("pnpm", "dlx"),
)


def unpinned_program(event: AgentEvent) -> str | None:
    """Keep the agent from running a copy of Holdfast other than the installed one.

    A copy fetched on the fly (`uvx holdfast`) or lying about (`./holdfast`) may be of any version, or of
    anybody.
    """
    command = event.command()
    if any(_trusts_a_folder(simple) for simple in all_programs(command)):
        return "holdfast: this command was blocked: only the user may trust a folder. Ask them to do it."
    why = unpinned(command, event.text("cwd") or event.project)
    if why is None:
        return None
    return f"holdfast: this command was blocked: {why}. Run the installed program: `holdfast …`."


def _trusts_a_folder(simple: Simple) -> bool:
    """In doubt it does: `$(which holdfast) trust` names a program that only the shell will know."""
    words, is_fed = real_program(simple.words)
    name = os.path.basename(words[0]) if words else ""
    if name == "find":
        runs = (words_until_end(words[at + 1 :]) for at, word in enumerate(words) if word in _FIND_RUNS)
        return any(_trusts_a_folder(Simple(run, [], [], None)) for run in runs)
    if name.startswith(_INTERPRETERS[0]) and "-m" in words:
        words = words[words.index("-m") + 1 :]
        name = words[0] if words else ""
    given = with_fed(simple, words[1:]) if is_fed else words[1:]
    asks = "trust" in given and "--show" not in given
    return asks and (name == DYNAMIC or name in _NAMES)


def unpinned(command: str, cwd: str) -> str | None:
    for simple in parse(command):
        words = simple.words
        for start in _FETCHING:
            if tuple(words[: len(start)]) == start and any(word in _NAMES for word in words[len(start) :]):
                return "it fetches an unpinned copy of Holdfast"
        if words and "/" in words[0] and os.path.basename(words[0]) in _NAMES:
            path = os.path.realpath(os.path.join(cwd, os.path.expanduser(words[0])))
            if os.path.dirname(path) not in _known_places(cwd):
                return f"{words[0]} is not the installed Holdfast"
    return None


def _known_places(cwd: str) -> tuple[str, ...]:
    """Beside our own interpreter, and a project's own environment, which its lock file pins."""
    environment = [os.path.realpath(os.path.join(cwd, name, "bin")) for name in (".venv", "venv")]
    return (os.path.dirname(os.path.abspath(sys.executable)), os.path.dirname(sys.executable), *environment)
