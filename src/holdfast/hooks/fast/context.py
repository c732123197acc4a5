"""What a session is told when it starts; contexts and the list of threads are prepared at others' ends."""

import os
import time

from holdfast.hooks.fast import notes, spawn
from holdfast.model import frame
from holdfast.project import formats
from holdfast.project.trust import are_own_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent

LIMITS = {"claude-code": 9_500, "codex": 5_000, "gemini": 20_000, "opencode": 20_000}
"""Characters that each agent takes whole."""
ROOM_FOR_HEADING = 500
_LONGEST_SAVING = 10.0
HANDED_OVER = "HOLDFAST_HANDED_OVER"
"""Names the session whose context a hand-over has put into the first prompt already."""


def context_file(sessions: str, name: str, agent: str) -> str:
    return os.path.join(sessions, f"{name}.context-{LIMITS[agent]}.md")


# ── a new session ─────────────────────────────────────────────────────────────────────────────────

_MOST_LINES = 5
_RECENT = 14 * 86_400.0
"""Older work is named, but not handed over unasked."""


def open_work(event: "AgentEvent") -> list[str]:
    """The handover, where this session plainly goes on with the only open thread of its branch; else a line
    for each thread; and what was recorded here. A conversation is told once."""
    notes.ensure_folder(event.folder)
    is_new = notes.create(event.note(formats.BEGUN)) or event.session == formats.UNKNOWN_SESSION
    given = event.environ.get(HANDED_OVER)
    if given:  # the first prompt brings it
        notes.write(event.note(formats.TOOK_UP), given.encode())
        return []
    return records(event, _opened(event)) if is_new else []


def _opened(event: "AgentEvent") -> list[str]:
    found = threads(event)
    opened = [one for one in found if one.is_open]
    if not opened:
        return [_finished(found[0])] if found and event.now - found[0].updated < _RECENT else []
    branch = current_branch(event.project)
    here = [one for one in opened if one.branch == branch]
    if len(here) == 1 and event.now - here[0].updated < _RECENT and not _is_held_by_a_plan(here[0]):
        return _handed_over(event, here[0], len(opened) - 1)
    return [_listed(event, here + [one for one in opened if one not in here])]


def threads_stamp(project: str) -> str:
    """Of the sessions, and of the commits: the user may have committed what one of them had left."""
    sessions = formats.threads_stamp(project)
    own, common = _git_folders(project)
    if not sessions or not own:
        return sessions
    moves = _size(os.path.join(own, "logs", "HEAD"))
    tables = _text(os.path.join(common, "reftable", "tables.list")).replace("\n", ",")
    return f"{sessions} {_head(project)}{tables} {moves}"


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _is_held_by_a_plan(thread: formats.ThreadLine) -> bool:
    """Running, or waiting for approval: its handover is of an earlier pause, and says what others do now."""
    return thread.has_plan and not thread.state.startswith(("paused", "failed"))


def threads(event: "AgentEvent") -> list[formats.ThreadLine]:
    """The threads of this folder. Read anew only where a session has come or gone or something was committed;
    what runs a plan also goes on without that, and what a finished one changed may be undone."""
    path = os.path.join(formats.hooks_folder(event.state), formats.THREADS)
    stamp, found = formats.parse_threads(notes.read(path))
    now = threads_stamp(event.project)
    if not now or (stamp == now and not any(one.has_plan for one in _told_first(found))):
        return found if now else []
    spawn.run(event, "threads", wait=15.0)
    return formats.parse_threads(notes.read(path))[1]


def _told_first(found: list[formats.ThreadLine]) -> list[formats.ThreadLine]:
    return [one for one in found if one.is_open] or found[:1]


def _handed_over(event: "AgentEvent", thread: formats.ThreadLine, others: int) -> list[str]:
    name = thread.sessions[0]
    holder = _take_up(event, thread)
    if holder is not None:
        return [
            f"[holdfast] The paused session {name} of this folder was resumed by another session that is "
            f"still open ({holder}). `holdfast context {name}` prints it if you also need it."
        ]
    words = _worded(event, thread, frame.PAUSED_HERE)
    if not words:
        return []
    more = f"\n\n[holdfast] Also open here: {others} more, `holdfast threads` lists them." if others else ""
    return [words[: LIMITS[event.agent] - len(more)] + more]


def _finished(thread: formats.ThreadLine) -> str:
    """A plan has an end; of a conversation the record tells only that it left nothing open."""
    ended = "was cancelled" if thread.state == "cancelled" else "is finished"
    told = f"The last work in this folder {ended}" if thread.has_plan else _LEFT_NOTHING_OPEN
    undone = thread.state.partition(f"{formats.FINISHED}; ")[2] if thread.has_plan else ""
    since = f"; {_quoted(undone)}" if undone else ""
    return (
        f"[holdfast] {told}: {_quoted(thread.title)}{since} "
        f"(`holdfast context {thread.sessions[0]}` prints its handover)."
    )


_LEFT_NOTHING_OPEN = "The last session in this folder left nothing open, as far as its record shows"


def _listed(event: "AgentEvent", opened: list[formats.ThreadLine]) -> str:
    lines = [_line(event, one) for one in opened[:_MOST_LINES]]
    if len(opened) > _MOST_LINES:
        lines.append(f"- and {len(opened) - _MOST_LINES} more: `holdfast threads`")
    return (
        "[holdfast] Open work in this folder. If the user's request belongs to one of these, run "
        "`holdfast resume THREAD` first and read what it prints; otherwise leave it alone.\n"
        + "\n".join(lines)
    )


def _line(event: "AgentEvent", thread: formats.ThreadLine) -> str:
    where = f" on {_quoted(thread.branch)}" if thread.branch else ""
    holder = _holder(event, thread)
    state = f"another session is at work on it ({holder})" if holder else _quoted(thread.state)
    plan = "; a plan of commands: only the user resumes it" if thread.has_plan else ""
    return f"- `{thread.id}`{where}: {_quoted(thread.title)}; {state}{plan}"


def _quoted(text: str) -> str:
    """What others may have written, as a quotation that it cannot close."""
    return '"' + text.replace('"', "'") + '"'


# ── what agents recorded ──────────────────────────────────────────────────────────────────────────

_MOST_OF_RECORDS = 2_500
_LONGEST_RECORD = 600


def records(event: "AgentEvent", told: list[str]) -> list[str]:
    """What was recorded here on purpose holds whether or not work is open; what was told already is left out.
    Said before a handover, it takes of the room of that."""
    if not os.path.isdir(formats.hooks_folder(event.state)):
        return told
    threads(event)
    found = formats.parse_records(
        notes.read(os.path.join(formats.hooks_folder(event.state), formats.RECORDS))
    )
    known = " ".join(" ".join(told).split())
    lines = [
        f"- {kind}: {_quoted(words[:_LONGEST_RECORD])}" for kind, words in found if words[:60] not in known
    ]
    if not lines:
        return told
    words = "\n".join([_RECORDED, *lines])[:_MOST_OF_RECORDS]
    room = LIMITS[event.agent] - len(words) - 2 * len(told)
    return [words, *(one[: max(0, room)] for one in told)]


_RECORDED = "[holdfast] Recorded by earlier sessions here, oldest first; later ones override earlier ones:"


# ── after a compaction ────────────────────────────────────────────────────────────────────────────

_TRIES = 5


def compared(event: "AgentEvent", *, is_first: bool) -> str | None:
    """What the summary lacks or gets wrong; while that is not written down yet, what cannot wait."""
    tries = 0 if is_first else notes.count_in(notes.read(event.note(formats.COMPACTED), 32) or b"")
    for name in (formats.SUPPLEMENT, *((formats.SUPPLEMENT_TOLD,) if is_first else ())):
        notes.remove(event.note(name))
    notes.write(event.note(formats.COMPACTED), b"%d" % (tries + 1))
    spawn.run(event, "supplement", event.text("transcript_path"), wait=5.0)
    found = notes.read(event.note(formats.SUPPLEMENT))
    if tries + 1 >= _TRIES:
        notes.remove(event.note(formats.COMPACTED))  # the agent keeps its summary to itself
    if not found:
        return None
    told = notes.read(event.note(formats.SUPPLEMENT_TOLD)) or b""
    notes.write(event.note(formats.SUPPLEMENT_TOLD), told + found)
    return found.decode("utf-8", "replace")


# ── a conversation that its agent resumes ─────────────────────────────────────────────────────────


def changed_since(event: "AgentEvent") -> str | None:
    """What changed in the folder since this conversation was last settled, if that was not told yet."""
    if not notes.read(event.note(formats.SETTLED), 100):
        return None
    spawn.run(event, "changes", wait=15.0)
    found = notes.read(event.note(formats.CHANGES))
    if not found or found == notes.read(event.note(formats.CHANGES_TOLD)):
        return None
    notes.write(event.note(formats.CHANGES_TOLD), found)
    return "[holdfast] Changed in this folder since this conversation was last active:\n" + found.decode(
        "utf-8", "replace"
    )


# ── sessions that ended or were killed ────────────────────────────────────────────────────────────


def settle_orphans(event: "AgentEvent") -> None:
    """Make a snapshot of the sessions that were killed: nobody else did.

    The snapshot of one that has just ended is being made beside us: that is waited for, a while.
    """
    begun = time.monotonic()
    notes.remove(event.note(formats.RECOVERED))
    notes.lasts(lambda: _being_saved(event), _LONGEST_SAVING)
    if _has_orphan(event):
        spawn.run(event, "recover", wait=begun + 25.0 - time.monotonic())


def asides(event: "AgentEvent", told_already: str) -> list[str]:
    """A word on the sessions that were just there to settle and that nothing else was said of."""
    told: list[str] = []
    if _being_saved(event):
        told.append(
            f"[holdfast] {frame.ANOTHER_SESSION} ended just now and is still being saved: "
            "`holdfast context latest` will print it shortly."
        )
    names = (notes.read(event.note(formats.RECOVERED)) or b"").decode("ascii", "replace").split()
    others = [f"`holdfast context {name}`" for name in names if name not in told_already]
    if others:
        shown = ", ".join(others[-3:])
        told.append(f"[holdfast] {frame.ANOTHER_SESSION} was interrupted: {shown} prints it.")
    return told


def _being_saved(event: "AgentEvent") -> bool:
    """Whether a session of this folder has ended, and a process lives that makes its snapshot."""
    folder = formats.hooks_folder(event.state)
    paths = [os.path.join(folder, name, formats.SETTLING) for name in _sessions(folder)]
    return any(_is_held(path) for path in paths if os.path.exists(path))


def _is_held(path: str) -> bool:
    from pathlib import Path

    from holdfast.base.durable import is_held

    return is_held(Path(path))


def _was_cut_off(folder: str) -> bool:
    """Whether who settled it is gone, and had not come to its end: that removes the mark first."""
    mark = os.path.join(folder, formats.SETTLING)
    return os.path.exists(mark) and not _is_held(mark) and os.path.exists(mark)


def _sessions(folder: str) -> list[str]:
    """The agent sessions that have notes here which this user's program made."""
    return [name for name in _names(folder) if are_own_notes(os.path.join(folder, name))]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def undo_stamp(project: str, workflow_id: str) -> str:
    """Changes when anything that a plan's tasks changed is undone or restored."""
    branches = formats.plan_branches(formats.sidecar_folder(project), workflow_id)
    return ",".join(_text(branch)[:12] for branch in branches)


def _worded(event: "AgentEvent", thread: formats.ThreadLine, why: str) -> str | None:
    name = thread.sessions[0]
    path = context_file(formats.sessions_folder(event.project), name, event.agent)
    data = notes.read(path)
    if data is not None and thread.has_plan:
        stamp = data.partition(b"\n")[0].partition(b" ")[2].decode("ascii", "replace")
        if stamp != undo_stamp(event.project, thread.id):
            data = None
    if data is None:
        spawn.run(event, "contexts", name, wait=20.0)
        data = notes.read(path)
    if data is None:
        return None
    heading = (
        f"[holdfast] {why} ({name}). What follows was recorded then; check it against the files before "
        f"relying on it. More: `holdfast history {name} decisions|errors|tasks|journal`.\n\n"
    )
    first, _, compiled = data.decode("utf-8", "replace").partition("\n")
    return (heading + _moved_on(event, first.partition(" ")[0]) + compiled)[: LIMITS[event.agent]]


def _moved_on(event: "AgentEvent", commit: str) -> str:
    """A word of warning where the repository is at another commit than it was then."""
    now = _head(event.project)
    if not now or not commit or now == commit:
        return ""
    before = commit[:10]
    return f"{frame.MOVED_ON}{before} to {now[:10]}: `git log {before}..`.\n\n"


def _git_folders(project: str) -> tuple[str, str]:
    """The folder with HEAD, and the one with the branches: they differ in a linked worktree."""
    while not os.path.exists(os.path.join(project, ".git")):
        parent = os.path.dirname(project)
        if parent == project:
            return "", ""
        project = parent
    git = os.path.join(project, ".git")
    linked = _text(git).removeprefix("gitdir: ") if os.path.isfile(git) else ""
    own = os.path.join(project, linked) if linked else git
    common = _text(os.path.join(own, "commondir")) if linked else ""
    return own, os.path.join(own, common) if common else own


def _text(path: str) -> str:
    return (notes.read(path, 4096) or b"").decode("utf-8", "replace").strip()


def current_branch(project: str) -> str:
    """Empty where there is none."""
    head = _text(os.path.join(_git_folders(project)[0], "HEAD"))
    branch = head.removeprefix("ref: refs/heads/")
    return branch if branch != head else ""


def _head(project: str) -> str:
    """The commit that is checked out, where that can be told without starting git; else nothing."""
    own, common = _git_folders(project)
    head = _text(os.path.join(own, "HEAD"))
    reference = head.removeprefix("ref: ")
    return head if reference == head else _text(os.path.join(common, reference))


def _take_up(event: "AgentEvent", thread: formats.ThreadLine) -> str | None:
    """Note that this session goes on with it; the other that does, where one is alive."""
    with notes.Locked(os.path.join(formats.hooks_folder(event.state), formats.TAKING_UP)):
        holder = _holder(event, thread)
        if holder is None:
            notes.write(event.note(formats.TOOK_UP), thread.sessions[0].encode())
    return holder


def _holder(event: "AgentEvent", thread: formats.ThreadLine) -> str | None:
    """The live agent session that this work is, or that goes on with it."""
    folder = formats.hooks_folder(event.state)
    for key in _sessions(folder):
        if key == event.key:
            continue
        note = os.path.join(folder, key)
        own = formats.parse_settled(notes.read(os.path.join(note, formats.SETTLED), 100))[0]
        if {own, _text(os.path.join(note, formats.TOOK_UP))}.isdisjoint(thread.sessions):
            continue
        if _is_open(event, key):
            return key
    return None


def _is_open(event: "AgentEvent", key: str) -> bool:
    folder = os.path.join(formats.hooks_folder(event.state), key)
    return not os.path.exists(os.path.join(folder, formats.ENDED)) and _is_alive(folder)


def live_sessions(state: str) -> list[str]:
    """Ids of the agent sessions that are at work in this folder."""
    folder = formats.hooks_folder(state)
    folders = [os.path.join(folder, key) for key in _sessions(folder)]
    alive = [
        one for one in folders if not os.path.exists(os.path.join(one, formats.ENDED)) and _is_alive(one)
    ]
    known = [formats.parse_who(notes.read(os.path.join(one, formats.WHO), 8192)) for one in alive]
    return [who[1] for who in known if who]


def _is_alive(folder: str) -> bool:
    process = formats.process_in_who(notes.read(os.path.join(folder, formats.WHO), 8192))
    if process is None:
        return False
    from holdfast.base.process import is_alive

    return is_alive({"pid": process[0], "started": process[1]})


def _has_orphan(event: "AgentEvent") -> bool:
    """A session whose process ended unexpectedly, or a journal that nobody alive is writing."""
    if os.path.exists(formats.journal_file(event.project)):
        return True  # whether it is one is looked at where it can be settled
    return any(True for _ in killed_sessions(formats.hooks_folder(event.state), event.key))


def killed_sessions(folder: str, besides: str) -> "Iterator[str]":
    """Folders of sessions that had prompts and are not alive, and did not end, or whose settling did not."""
    for name in _sessions(folder):
        path = os.path.join(folder, name)
        if name == besides or not os.path.exists(os.path.join(path, formats.PROMPTS)):
            continue
        if (os.path.exists(os.path.join(path, formats.ENDED)) and not _was_cut_off(path)) or _is_alive(path):
            continue
        yield path


if TYPE_CHECKING:
    from collections.abc import Iterator
