"""Hints to the agent that the user may silence: a function each, named in the table of `fast.dispatch`."""

from __future__ import annotations

import os

from holdfast.hooks.fast import notes
from holdfast.hooks.fast.notes import winding_down
from holdfast.hooks.fast.payload import members, text
from holdfast.project import formats
from holdfast.project.trust import lines_of_ours

TYPE_CHECKING = False

if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent


# ── how often a nudge may speak ───────────────────────────────────────────────────────────────────


def is_due(event: AgentEvent, name: str, prompts: int) -> bool:
    """Whether that many prompts have passed since this nudge spoke; a question, it changes nothing."""
    return event.prompts - _told(event).get(name, -prompts) >= prompts


def spoke(event: AgentEvent, name: str) -> None:
    told = _told(event)
    told[name] = event.prompts
    notes.write(event.note("told"), "\n".join(f"{key} {value}" for key, value in told.items()).encode())


def _told(event: AgentEvent) -> dict[str, int]:
    """Read once an event: all nudges of a prompt ask."""
    known = event.told
    if known is None:
        known = {}
        for line in (notes.read(event.note("told"), 4096) or b"").decode("ascii", "replace").split("\n"):
            name, _, number = line.partition(" ")
            if number.isdigit():
                known[name] = int(number)
        event.told = known
    return known


# ── version skew ──────────────────────────────────────────────────────────────────────────────────


def version_skew(event: AgentEvent) -> str | None:
    """The plugin was written by another version of the program."""
    plugin = _plugin_version(event)
    if not plugin:
        return None
    from holdfast._version import __version__

    if plugin == __version__ or not is_due(event, "version_skew", prompts=50):
        return None
    spoke(event, "version_skew")
    return (
        f"[holdfast] The plugin is version {plugin}, the program {__version__}. "
        f"`{_how_to_update(event)}` updates it; the user has to run it."
    )


def _how_to_update(event: AgentEvent) -> str:
    """In the form it has: a second form beside it would run every hook twice."""
    root = event.environ.get("CLAUDE_PLUGIN_ROOT")
    if not root:
        return f"holdfast install {event.agent}"
    is_ours = os.path.basename(os.path.dirname(os.path.normpath(root))) == "skills"
    return "holdfast install claude-code --plugin" if is_ours else "claude plugin update holdfast@holdfast"


def _plugin_version(event: AgentEvent) -> str:
    """As the plugin says through a variable, or in its manifest; empty where there is none."""
    told = event.environ.get("HOLDFAST_PLUGIN_VERSION")
    if told:
        return told
    root = event.environ.get("CLAUDE_PLUGIN_ROOT")
    data = notes.read(os.path.join(root, ".claude-plugin", "plugin.json")) if root else None
    if data is None:
        return ""
    manifest = members(data)
    return text(manifest.get("version")) if text(manifest.get("name")) == "holdfast" else ""


# ── architecture staleness ────────────────────────────────────────────────────────────────────────

ARCHITECTURE_FILES = (
    "ARCHITECTURE.md",
    "docs/architecture.md",
    "docs/ARCHITECTURE.md",
    "DESIGN.md",
    "docs/design.md",
)
_STALE = 45 * 86_400.0


def architecture_staleness(event: AgentEvent) -> str | None:
    """The notes on the architecture are much older than the code they describe."""
    if event.prompts < 2 or not is_due(event, "architecture_staleness", prompts=200):
        return None
    last_commit = _changed(os.path.join(event.project, ".git", "logs", "HEAD"))
    for name in ARCHITECTURE_FILES:
        changed = _changed(os.path.join(event.project, name))
        if changed and last_commit - changed > _STALE:
            spoke(event, "architecture_staleness")
            days = (last_commit - changed) / 86_400
            return (
                f"[holdfast] {name} was last changed {days:.0f} days before the newest commit. "
                "Trust the code over it, and update it when this work touches what it describes."
            )
    return None


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


# ── ceremonies ────────────────────────────────────────────────────────────────────────────────────

_ASKED_BY_PROMPT = 3
_RECENT = 7 * 86_400.0


def ceremonies(event: AgentEvent) -> str | None:
    """Point to earlier work once, where the session's start could not: hooks were installed meanwhile."""
    if event.prompts > _ASKED_BY_PROMPT or not is_due(event, "ceremonies", prompts=10_000):
        return None
    if os.path.exists(event.note(formats.BEGUN)):
        return None
    paused = _changed(formats.latest_file(event.project))
    if event.now - paused > _RECENT:
        return None
    spoke(event, "ceremonies")
    return (
        "[holdfast] There is earlier work in this folder, which may not be finished. "
        "If this request belongs to it, see `holdfast threads` first."
    )


# ── context size ──────────────────────────────────────────────────────────────────────────────────


def context_size(event: AgentEvent) -> str | None:
    """Tell the agent how full its context window is, once it is worth knowing."""
    gauge = event.gauge
    if gauge is None or not event.settings.caution <= gauge.share < event.settings.auto_pause:
        return None  # above that the wind-down itself speaks
    is_warning = gauge.share >= event.settings.warning
    name = "context_size.warning" if is_warning else "context_size"
    if not is_due(event, name, prompts=5 if is_warning else 15):
        return None
    spoke(event, name)
    advice = (
        "Finish what is open before starting anything new."
        if is_warning
        else "Prefer targeted reads over whole files."
    )
    fill = f"{gauge.of_window:.0%} full ({gauge.tokens:,} of {gauge.window:,} tokens), {gauge.distance}"
    return f"[holdfast] Context is {fill}. {advice}"


# ── journal upkeep ────────────────────────────────────────────────────────────────────────────────

_OPEN_FOR_LONG = 24 * 3_600.0
_LARGE_JOURNAL = 20 * 1024 * 1024


def journal_upkeep(event: AgentEvent) -> str | None:
    """A wind-down has been open for long, or was left open by another session: suggest finishing it."""
    try:
        found = os.stat(formats.journal_file(event.project))
    except FileNotFoundError:
        return None
    if not is_due(event, "journal_upkeep", prompts=20):
        return None
    untouched = event.now - found.st_mtime
    if untouched < _OPEN_FOR_LONG and found.st_size < _LARGE_JOURNAL:
        return None
    spoke(event, "journal_upkeep")
    whose = "This session's" if winding_down(event) else "Another session's"
    return (
        f"[holdfast] {whose} wind-down journal is {_size(found.st_size)} and was last written "
        f"{untouched / 3600:.0f} h ago. `holdfast winddown finalize` turns it into a snapshot."
    )


def _size(count: int) -> str:
    return f"{count / 1_048_576:.1f} MB" if count >= 1_048_576 else f"{max(1, count // 1024)} kB"


# ── knowledge growth ──────────────────────────────────────────────────────────────────────────────

KNOWLEDGE_FILES = (
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".claude/CLAUDE.md",
    "CLAUDE.local.md",
    "CONTEXT.md",
)
_LARGE_FILE = 40_000


def knowledge_growth(event: AgentEvent) -> str | None:
    """Files that every session loads in full have grown too large."""
    if not is_due(event, "knowledge_growth", prompts=200):
        return None
    large = [
        f"{name} ({size // 1000} kB)"
        for name in KNOWLEDGE_FILES
        if (size := _file_size(event, name)) > _LARGE_FILE
    ]
    if not large:
        return None
    spoke(event, "knowledge_growth")
    return (
        f"[holdfast] These files are loaded into every session and have grown large: {', '.join(large)}. "
        "Suggest that the user move rarely needed parts into files that are read on demand."
    )


def _file_size(event: AgentEvent, name: str) -> int:
    try:
        return os.stat(os.path.join(event.project, name)).st_size
    except OSError:
        return 0


# ── machine resources ─────────────────────────────────────────────────────────────────────────────

_LITTLE_DISK = 512 * 1024 * 1024
_LITTLE_MEMORY_SHARE = 0.05


def machine_resources(event: AgentEvent) -> str | None:
    """The machine is short of disk space or memory: work may fail for a non-obvious reason."""
    if not is_due(event, "machine_resources", prompts=20):
        return None
    short = [*_disk(event.project), *_memory()]
    if not short:
        return None
    spoke(event, "machine_resources")
    return f"[holdfast] This machine is short of {' and '.join(short)}. Clean up before large builds."


def _disk(folder: str) -> list[str]:
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    return [f"disk ({free // 1_048_576} MB free)"] if free < _LITTLE_DISK else []


def _memory() -> list[str]:
    data = notes.read("/proc/meminfo", 4096)
    if data is None:
        return []
    sizes = {words[0]: int(words[1]) for words in map(bytes.split, data.split(b"\n")) if len(words) >= 2}
    total, free = sizes.get(b"MemTotal:", 0), sizes.get(b"MemAvailable:", 0)
    return [f"memory ({free // 1024} MB free)"] if total and free < total * _LITTLE_MEMORY_SHARE else []


# ── persistence ───────────────────────────────────────────────────────────────────────────────────

_PROMPTS = 20
_SECONDS = 2 * 3_600.0


def persistence(event: AgentEvent) -> str | None:
    """Nothing has been recorded for long: until then decisions exist only in the conversation."""
    if event.prompts < _PROMPTS or not is_due(event, "persistence", prompts=_PROMPTS):
        return None
    if event.now - _last_record(event) < _SECONDS:
        return None
    spoke(event, "persistence")
    return (
        f"[holdfast] {event.prompts} prompts into this session, and nothing has been recorded for hours. "
        "State "
        "the decisions made so far and why, in one message: a snapshot picks them up from there."
    )


def _last_record(event: AgentEvent) -> float:
    """When this session began or a session was last written in this project, whichever is later."""
    newest = 0.0
    for path in (
        event.note(formats.WHO),
        event.note(formats.SETTLED),
        formats.latest_file(event.project),
    ):
        try:
            newest = max(newest, os.stat(path).st_mtime)
        except FileNotFoundError:
            continue
    return newest


# ── reminders ─────────────────────────────────────────────────────────────────────────────────────


def reminders(event: AgentEvent) -> str | None:
    """Pass on what the user asked to be reminded of with `holdfast remind`; each session hears it once."""
    data = notes.read(os.path.join(event.state, formats.REMINDERS))
    if not data:
        return None
    heard = (notes.read(event.note("reminded"), 1 << 16) or b"").decode("utf-8", "replace").split("\n")
    pending = [line for line in data.decode("utf-8", "replace").split("\n") if line and line not in heard]
    if not pending:
        return None
    notes.write(event.note("reminded"), "\n".join((*heard, *pending)).encode())
    written = lines_of_ours(event.project, f"{formats.STATE}/{formats.REMINDERS_OWN}")
    known = {line.decode("utf-8", "replace") for line in written}
    own = [line for line in pending if line in known]
    told: list[str] = []
    if own:
        words = "; ".join(line.partition("\t")[2] or line for line in own)
        told.append(f"The user asked to be reminded: {words}. (`holdfast remind --done` clears this.)")
    if len(own) < len(pending):
        told.append(
            "The reminders file here has lines that `holdfast remind` did not write; they are left out. "
            "Tell the user: `holdfast remind` shows them."
        )
    return f"[holdfast] {' '.join(told)}"


# ── context load gate ─────────────────────────────────────────────────────────────────────────────

EDITING_TOOLS = (
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "write_file",
    "replace",
    "edit",
    "write",
    "apply_patch",
)
_GUIDES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "CONTRIBUTING.md")
_LOADED_BY = {
    "claude-code": ("CLAUDE.md",),
    "gemini": ("GEMINI.md",),
    "codex": ("AGENTS.md",),
    "opencode": ("AGENTS.md",),
}


def context_load_gate(event: AgentEvent) -> str | None:
    """Before the first edit: name the rules of the project that this agent does not load by itself."""
    if event.tool not in EDITING_TOOLS or not notes.create(event.note(formats.EDIT_GATE)):
        return None
    unread = [
        name
        for name in _GUIDES
        if name not in _LOADED_BY[event.agent] and os.path.exists(os.path.join(event.project, name))
    ]
    if not unread:
        return None
    return (
        f"[holdfast] First edit of this session. This project's rules are also in {', '.join(unread)}, "
        "which your program does not load automatically: read what applies before you continue, if you have "
        "not yet."
    )


# ── plan to spec ──────────────────────────────────────────────────────────────────────────────────

_PLANNING_TOOLS = ("ExitPlanMode", "exit_plan_mode", "plan_exit")
_LONG = 600


def plan_to_spec(event: AgentEvent) -> str | None:
    """A plan was approved: suggest writing it to a file, so that it outlives the session."""
    if event.tool not in _PLANNING_TOOLS:
        return None
    if len(text(event.mapping("tool_input").get("plan"))) < _LONG or not notes.create(
        event.note("spec-told")
    ):
        return None
    return (
        "[holdfast] This plan is long enough to outlive the session. Once it is approved, save it to a file "
        "in the project (docs/ or specs/) and work from that: a resumed session will find it."
    )


# ── qa before commit ──────────────────────────────────────────────────────────────────────────────

_CHECKS = (
    ("Makefile", "make test / make check"),
    ("pyproject.toml", "the tests and linters configured in pyproject.toml"),
    ("package.json", "npm test"),
    ("Cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
)


def _commits(event: AgentEvent) -> bool:
    from holdfast.hooks.guards import commits

    return commits(event.command())


def qa_before_commit(event: AgentEvent) -> str | None:
    """Before a commit: say so where the project's checks were not run on what is committed, or failed."""
    if not _commits(event):
        return None
    prompts = notes.read(event.note(formats.PROMPTS), 32) or b"0"
    if notes.read(event.note("qa-told"), 32) == prompts:
        return None  # once a prompt is enough, however many commits it makes
    notes.write(event.note("qa-told"), prompts)
    known = _known_of_checks(event)
    if known == "":
        return None  # they passed, and nothing was edited since
    named = [words for name, words in _CHECKS if os.path.exists(os.path.join(event.project, name))]
    what = named[0] if named else "the project's tests"
    return (
        f"[holdfast] About to commit, and {known}. Run {what} on exactly what is being committed first."
        if known
        else f"[holdfast] About to commit: make sure that {what} passed on exactly what is being committed."
    )


_READING_THE_RECORD = 4.0


def _known_of_checks(event: AgentEvent) -> str | None:
    """What this session's record tells of them; None where it cannot be read in time."""
    from holdfast.hooks.fast import spawn

    notes.remove(event.note(formats.CHECKS))
    notes.ensure_folder(event.folder)
    before = event.command().partition("git commit")[0][-4000:]
    words = (f"{before}git commit", event.text("transcript_path"))
    spawn.run(event, "checks", *words, wait=_READING_THE_RECORD)
    found = notes.read(event.note(formats.CHECKS), 4096)
    return None if found is None else found.decode("utf-8", "replace")


# ── post commit ───────────────────────────────────────────────────────────────────────────────────

_EVERY = 5


def post_commit(event: AgentEvent) -> str | None:
    """After a commit: ask for its reason in the conversation, where a snapshot finds it."""
    if event.name == "PostToolUseFailure" or not _commits(event):
        return None
    number = notes.count_up(event.note("commits"))
    if number % _EVERY != 1:
        return None
    return (
        "[holdfast] Committed. If this commit settles a decision (an approach chosen or rejected), state it "
        "in one sentence with the reason: the next session is told about decisions, not diffs."
    )
