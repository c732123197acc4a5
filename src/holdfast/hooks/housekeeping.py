"""What keeps the records: usage, journal, snapshots, clean-up. Never silenced; a function each."""

from __future__ import annotations

import os
import time

from holdfast.hooks.fast import notes
from holdfast.hooks.fast.notes import winding_down
from holdfast.hooks.fast.payload import amount, mapping, members
from holdfast.hooks.fast.usage import (
    forget,
    last_known,
    level_of,
    measured,
    note_compaction,
    noticed,
    short_count,
)
from holdfast.project import formats
from holdfast.project.formats import (
    APART,
    ENDING,
    LATE_LOOK,
    NAMED,
    NOT_APART,
    RECORDING,
    TOLD_UNRECORDED,
    TRANSACTION,
    TURN_OVER,
    TURNING,
    UNRECORDED,
)
from holdfast.project.trust import mark_notes

TYPE_CHECKING = False

if TYPE_CHECKING:
    from holdfast.hooks.fast.dispatch import HookAnswer
    from holdfast.hooks.fast.event import AgentEvent
    from holdfast.hooks.fast.usage import Gauge


# Most events start no process: what starts one is loaded where one is.


def _run(event: AgentEvent, task: str, *words: str, wait: float) -> bool:
    from holdfast.hooks.fast import spawn

    return spawn.run(event, task, *words, wait=wait)


def _detach(event: AgentEvent, task: str, *words: str, holding: str = "") -> None:
    from holdfast.hooks.fast import spawn

    spawn.detach(event, task, *words, holding=holding)


# ── presence ──────────────────────────────────────────────────────────────────────────────────────


def presence(event: AgentEvent, answer: HookAnswer) -> None:  # noqa: ARG001
    """Record which process runs this session, so that a later one can tell whether it ended or was killed."""
    # OpenCode tells of no start where a session is continued.
    goes_on = event.moment == "prompt" and os.path.exists(event.note(formats.ENDED))
    if event.moment != "start" and not goes_on and os.path.exists(event.note(formats.WHO)):
        return
    notes.ensure_folder(event.folder)
    notes.remove(event.note(formats.ENDED))
    if event.moment == "start" and event.text("model"):
        notes.write(event.note(formats.STARTED_WITH), event.text("model").encode())
    pid, started = _agent_process(event)
    who = formats.render_who(event.agent, event.session, event.text("transcript_path"), pid, started)
    mark_notes(event.folder)
    notes.write(event.note(formats.WHO), who)


def _agent_process(event: AgentEvent) -> tuple[int, str]:
    from holdfast.base.process import identify, lasting_parent

    told = event.environ.get("CLAUDE_PID", "") if event.agent == "claude-code" else ""
    identity = identify(int(told) if told.isdigit() else lasting_parent())
    return identity["pid"], identity["started"] or ""


# ── prompt count ──────────────────────────────────────────────────────────────────────────────────


def prompt_count(event: AgentEvent, answer: HookAnswer) -> None:  # noqa: ARG001
    """Count the session's prompts; the pace of nudges goes by it."""
    event.prompts = notes.count_up(event.note(formats.PROMPTS))


# ── stale markers ─────────────────────────────────────────────────────────────────────────────────

_STALE_MARKER = 14 * 86_400.0
_STALE_TEMPORARY = 3_600.0


def stale_markers(event: AgentEvent, answer: HookAnswer) -> None:  # noqa: ARG001
    """Remove notes of old sessions."""
    before = event.now - _STALE_MARKER
    for path in _entries(formats.hooks_folder(event.state)):
        if os.path.isdir(path) and path != event.folder and _newest(path) < before:
            _remove_folder(path)
    for path in _entries(event.state):
        name = os.path.basename(path)
        is_marker = name.startswith(formats.QUIET_PREFIX) and not name.endswith(".tmp")
        if (is_marker and _changed(path) < before) or (
            name.endswith(".tmp") and _changed(path) < event.now - _STALE_TEMPORARY
        ):
            os.unlink(path)


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return float("inf")


def _newest(folder: str) -> float:
    return max(map(_changed, (folder, *_entries(folder))))


def _remove_folder(folder: str) -> None:
    for path in _entries(folder):
        os.unlink(path)
    os.rmdir(folder)


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────


def usage(event: AgentEvent, answer: HookAnswer) -> None:  # noqa: ARG001
    """Read what the agent last reported about its context window."""
    if event.moment == "compacted" or (
        event.moment == "start" and event.text("source") in ("compact", "clear")
    ):
        forget(event)
    elif event.moment == "compact":
        note_compaction(event)
    elif event.moment in ("start", "before_tool") or _has_own_window(event):  # no model call since then
        event.gauge = last_known(event)
    else:
        event.gauge = measured(event, event.settings) or last_known(event)


def _has_own_window(event: AgentEvent) -> bool:
    """Codex tells of the sub-agent's; Claude Code names the session's transcript all the same."""
    return event.is_subagent and event.agent == "codex"


# ── level notice ──────────────────────────────────────────────────────────────────────────────────

_LEVEL_NOTICES = (
    "",
    "Holdfast: context {used} used, {distance}.",
    "Holdfast: context {used} used, {distance}. A good moment to finish what is open.",
    "Holdfast: {distance}. Everything is recorded from here on. {then}",
    "Holdfast: {distance}. The next session in this folder can go on from what was recorded.",
)

_WHAT_FOLLOWS = {
    "advise": "The agent is asked to wrap up.",
    "stop": "The run stops at the next tool boundary.",
}


def level_notice(event: AgentEvent, answer: HookAnswer) -> None:
    """Tell the user, once a level, how near the next compaction is; also in the middle of a long turn."""
    gauge = event.gauge
    if gauge is None or event.is_subagent:
        return
    level = level_of(gauge, event.settings)
    if level > noticed(event):
        notes.write(event.note(formats.NOTICED), b"%d" % level)
        answer.notice = _LEVEL_NOTICES[level].format(
            used=f"{gauge.of_window:.0%}",
            distance=gauge.distance,
            then=_WHAT_FOLLOWS[event.settings.on_exhaustion],
        )
    notes.remove(event.note(formats.NOTICE_DUE))


# ── journal ───────────────────────────────────────────────────────────────────────────────────────

_RETRY_AFTER = 60.0
"""Seconds; another session's wind-down may be in the way of ours for long."""


def journal(event: AgentEvent, answer: HookAnswer) -> None:  # noqa: ARG001
    """From the auto-pause level on, record what happens: tool calls, prompts, responses, incidents."""
    if not winding_down(event) and not _begun(event):
        return
    from holdfast.hooks.fast import journal

    kind, data = _action(event)
    share = event.gauge.of_window if event.gauge else _last_share(event)
    journal.append(event, kind, data, share)


def _begun(event: AgentEvent) -> bool:
    """Begin a wind-down where the window is full enough; whether there is one now."""
    gauge = event.gauge
    if gauge is None or gauge.share < event.settings.auto_pause or event.moment == "compact":
        return False
    held = notes.read(event.note("held-since"), 32) or b"0"
    if event.now - float(held) < _RETRY_AFTER:
        return False
    model = (notes.read(event.note(formats.MODEL), 200) or b"").decode("utf-8", "replace")
    words = (repr(min(1.0, gauge.of_window)), str(gauge.tokens), str(gauge.window), model)
    _run(event, "begin", *words, wait=6.0)
    if winding_down(event):
        return True
    notes.write(event.note("held-since"), repr(event.now).encode())
    return False


def _last_share(event: AgentEvent) -> float:
    known = last_known(event)
    return known.of_window if known else 0.0


def _action(event: AgentEvent) -> tuple[str, str]:
    from holdfast.hooks.fast import journal

    if event.moment == "after_tool":
        return "tool_call", journal.tool_data(event)
    if event.moment == "prompt":
        return "user_message", journal.text_data("prompt", event.text("prompt"))
    if event.moment == "response":
        said = event.text("last_assistant_message") or event.text("prompt_response")
        return "assistant_response", journal.text_data("text", said)
    return "system_event", journal.event_data(
        event.name, next((text for name in _DETAILS if (text := event.text(name))), "")
    )


_DETAILS = ("error", "trigger", "last_assistant_message", "task_subject", "prompt", "agent_type")
"""What an event is about, in the first of these that it has."""


# ── wind down ─────────────────────────────────────────────────────────────────────────────────────

_STOPS_AT = {
    "claude-code": "batch",
    "codex": "before_tool",
    "gemini": "before_tool",
    "opencode": "before_tool",
}
"""Where each agent can be stopped without losing the result of a tool that ran."""


def wind_down(event: AgentEvent, answer: HookAnswer) -> None:
    """At the boundary after the auto-pause level was reached: ask the agent to wrap up, or stop it there."""
    gauge = event.gauge
    if gauge is None or event.is_subagent or gauge.share < event.settings.auto_pause:
        return  # a sub-agent is work in flight: it finishes
    if event.settings.on_exhaustion == "stop":
        if event.moment == _STOPS_AT[event.agent]:
            _stop(event, answer, gauge)
        elif event.moment == "prompt":
            notes.remove(event.note(formats.STOPPED))
        return
    if event.moment in ("after_tool", "prompt"):
        _advise(event, answer, gauge)


def _stop(event: AgentEvent, answer: HookAnswer, gauge: Gauge) -> None:
    from holdfast.model.frame import HANDOVER_FORM

    answer.stop = (
        f"Holdfast: the context window is {gauge.of_window:.0%} full ({gauge.distance}), so the run stops "
        "here. The session is recorded and a snapshot is taken; a new session in this folder starts with its "
        f"context. Do not call any more tools; end with a handover in this form:\n{HANDOVER_FORM}"
    )
    if notes.create(event.note(formats.STOPPED)):
        transcript = event.text("transcript_path")
        _detach(event, "settle", "exhaustion", transcript, holding=event.note(formats.SETTLING))


def _advise(event: AgentEvent, answer: HookAnswer, gauge: Gauge) -> None:
    level = "critical" if gauge.share >= event.settings.critical else "auto-pause"
    if not notes.create(event.note(f"advised-{level}")):
        return
    from holdfast.model.frame import HANDOVER_FORM

    answer.context.append(
        f"[holdfast] The context window is {gauge.of_window:.0%} full ({gauge.tokens:,} of {gauge.window:,} "
        f"tokens), {gauge.distance}; from here on every action is recorded. Wrap up now: finish the current "
        "step, leave the files in a working state, and do not start anything new. Then hand over in your own "
        f"words, in at most 3,000 characters:\n\n{event.program} note handover <<'EOF'\n"
        f"{HANDOVER_FORM}\nEOF\n\n"
        "The next session in this folder receives it, checked against the record."
    )
    if event.agent not in _LET_US_STEER:
        answer.context.append(_FORM_OF_A_SUMMARY)


_LET_US_STEER = ("claude-code", "opencode")
"""Whose request for a summary takes a word of ours; in that of the others stands what was said before it."""
_FORM_OF_A_SUMMARY = (
    "[holdfast] Should you be asked to summarise this conversation, write the summary in the same form, as "
    "a handover for whoever goes on and not as a recap: the user's rules and corrections word for word, a "
    "short answer with the question it answers, each decision with its reason, the exact next action; say of "
    "nothing that it was done unless it was."
)


# ── file changes ──────────────────────────────────────────────────────────────────────────────────

_LONGEST_WAIT = 5.0
_SOONEST_TOOL = 1.0
"""Seconds from a prompt."""
_STALE_LOOK = 60.0
_LONGEST_NAME = 64 * 1024
_PLACES = ("file_path", "filePath", "path", "absolute_path", "notebook_path")
_NAMING = (*_PLACES, "command", "cmd", "input", "patchText")
_EDITING = ("Edit", "MultiEdit", "Write", "NotebookEdit", "write_file", "replace", "edit", "write")
_LONGEST_NOTE = 16 << 20
_MOST_WORDS = 200
_BETWEEN_WORDS = str.maketrans(dict.fromkeys(";|&<>()\"'=`", " "))
_WRITERS = (
    *(">", "tee", "cp ", "mv ", "rm ", "ln ", "install", "rsync", "truncate", "restore", "sed ", "perl "),
)
"""In a command that writes to files, or removes them, by their names."""
ONLY_READING = (
    *("Read", "Glob", "Grep", "read_file", "list_directory", "glob", "grep_search", "search_file_content"),
    *("write_todos", "update_plan", "read", "list", "grep", "todowrite", "todoread"),
)
"""Tools that change no file; not all there are."""


def file_changes(event: AgentEvent, answer: HookAnswer) -> None:
    """Record what a turn of the agent changes in files."""
    if event.moment in ("prompt", "response"):
        _tell_unrecorded(event, answer)
    if event.moment == "before_tool":
        _wait_for_the_look(event)
        if any(os.path.exists(event.note(one)) for one in (RECORDING, TURNING)):
            _set_apart(event)
            _note_named(event)
    elif event.moment in ("response", "incident"):
        _end_turn(event)
    elif event.moment == "end":
        if os.path.exists(event.note(TRANSACTION)) or os.path.exists(event.note(TURNING)):
            _leave_ending(event, "finish")
    elif event.settings.record_files and _in_git(event.project):
        notes.remove(event.note(TURN_OVER))
        if event.moment == "start":
            _detach(event, "look")
        elif notes.create(event.note(TURNING)) or _is_stale(event.note(TURNING)):
            _detach(event, "watch", str(event.prompts))


def _tell_unrecorded(event: AgentEvent, answer: HookAnswer) -> None:
    """Once: the user may take for recorded what cannot be undone."""
    try:
        names = [name for name in os.listdir(event.folder) if name.startswith(UNRECORDED)]
    except FileNotFoundError:
        return
    for name in names:
        turn = name.removeprefix(UNRECORDED)
        if turn.isdecimal():
            reason = (notes.read(event.note(name), 300) or b"no space left").decode("utf-8", "replace")
            os.replace(event.note(name), event.note(name + TOLD_UNRECORDED))
            told = f"what turn {turn} changed in files was not recorded and cannot be undone: {reason}"
            answer.notice = f"{answer.notice}\n{told}" if answer.notice else f"holdfast: {told}"


def _end_turn(event: AgentEvent) -> None:
    if os.path.exists(event.note(TURNING)):
        # What is changed from here on is the user's: whoever looks at the tree must not go on to watch it.
        notes.create(event.note(TURN_OVER))
    try:
        os.replace(event.note(RECORDING), event.note(ENDING))
    except FileNotFoundError:
        return  # nothing is watched, or the one who looks has seen the note
    _leave_ending(event, "record")


def _leave_ending(event: AgentEvent, task: str) -> None:
    """The agent may be gone before our turn in the side-car comes: others see there that it is no crash."""
    name = (notes.read(event.note(TRANSACTION), 200) or b"").decode("ascii", "replace")
    folder = formats.sidecar_folder(event.project)
    mark = os.path.join(folder, formats.ending_mark(name)) if name and os.path.isdir(folder) else ""
    _detach(event, task, holding=mark)


def _wait_for_the_look(event: AgentEvent) -> None:
    """Only within the second after the prompt: hardly any model calls a tool sooner, so nobody feels it.

    After that the look goes on beside the tool, and the record says that what a tool changed meanwhile may
    be missing from it.
    """
    if event.tool in ONLY_READING:
        return
    mark = event.note(TURNING)
    left = min(_SOONEST_TOOL, _SOONEST_TOOL - _age(mark))
    if notes.lasts(lambda: os.path.exists(mark), left):
        notes.create(event.note(LATE_LOOK))
        if _is_stale(mark):
            notes.remove(mark)


def _set_apart(event: AgentEvent) -> None:
    """What was done in this turn to a file that a tool now changes for the first time, as its own change."""
    if event.tool not in _EDITING:
        _set_apart_of_command(event)
        return
    cwd, given = event.text("cwd") or event.project, event.mapping("tool_input")
    named = [given[key] for key in _PLACES if isinstance(given.get(key), str)]
    changed = [one for one in named if not _is_older(os.path.join(cwd, one), event.note(RECORDING))]
    if not changed or _was_edited(event, changed):
        return
    paths = [os.path.join(cwd, one) for one in changed]
    if _is_busy(event) or not _run(event, "set_apart", "", *paths, wait=_LONGEST_WAIT):
        before = (notes.read(event.note(NOT_APART)) or b"").decode("utf-8", "replace").split("\n")
        names = dict.fromkeys((*filter(None, before), *map(os.path.basename, changed)))
        notes.write(event.note(NOT_APART), "\n".join(names).encode("utf-8", "replace"))


def _set_apart_of_command(event: AgentEvent) -> None:
    """Which of the files in its words a command writes, is looked at closely only where one has changed."""
    words = _words_of(_command(event))
    changed = [
        place
        for place in _places_of(words, event.text("cwd") or event.project)
        if place.startswith(f"{event.project}/")
        and os.path.isfile(place)
        and not _is_older(place, event.note(RECORDING))
    ]
    done = (notes.read(event.note(APART), _LONGEST_NOTE) or b"") if changed else b""
    left = [place for place in changed if os.fsencode(place) not in done.split(b"\0")]
    if left and not _is_busy(event):
        from holdfast.hooks.fast.journal import without_secrets

        _run(event, "set_apart", without_secrets(_as_named(event)), *left, wait=_LONGEST_WAIT)


def _command(event: AgentEvent) -> str:
    given = event.mapping("tool_input")
    told = next((given[key] for key in ("command", "cmd") if isinstance(given.get(key), str)), "")
    return told if len(told) <= _LONGEST_NAME and _may_write(told) else ""


def _may_write(command: str) -> bool:
    return any(sign in command for sign in _WRITERS)


def _words_of(command: str) -> list[str]:
    """Without what a shell would make of them: a name that is quoted, or put together, is not seen."""
    words = command.translate(_BETWEEN_WORDS).split()
    return [word for word in words if not word.startswith("-")][:_MOST_WORDS]


def _places_of(words: list[str], folder: str) -> list[str]:
    """Wherever a word may be a file: in the folder that the command begins in, or goes to."""
    entered = (words[number] for number, before in enumerate(words[:-1], 1) if before == "cd")
    folders = [folder, *(os.path.join(folder, one) for one in entered)]
    places = (os.path.abspath(os.path.join(one, word)) for one in folders for word in words)
    return list(dict.fromkeys(places))


def _is_busy(event: AgentEvent) -> bool:
    """Whoever looks at the tree has the side-car for as long as that takes; only where that is over at once,
    as in a small tree, it is waited for."""
    lock = os.path.join(formats.sidecar_folder(event.project), "holdfast.lock")
    return notes.lasts(lambda: notes.is_locked(lock), _SOONEST_TOOL)


def _is_older(path: str, other: str) -> bool:
    """Or one of them is not there."""
    try:
        return os.lstat(path).st_ctime_ns < os.lstat(other).st_mtime_ns
    except (OSError, ValueError):
        return True


def _was_edited(event: AgentEvent, paths: list[str]) -> bool:
    """Whether a tool has edited one of these in this turn: then it is that one's change that is seen."""
    for line in (notes.read(event.note(NAMED), _LONGEST_NOTE) or b"").splitlines():
        try:
            called = members(line)
        except ValueError:
            continue  # half a line: the power went
        if called.get("tool") in _EDITING and not set(paths).isdisjoint(_texts(called.get("given"))):
            return True
    return False


def _texts(given: object) -> list[str]:
    return [one for one in mapping(given).values() if isinstance(one, str)]


def _note_named(event: AgentEvent) -> None:
    """Whose a change is, where several sessions work in this folder at once, this tells later."""
    told = _as_named(event)
    if not told:
        return
    from holdfast.hooks.fast.journal import without_secrets

    line = without_secrets(told).encode() + b"\n"
    descriptor = os.open(event.note(NAMED), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _as_named(event: AgentEvent) -> str:
    """The call, as far as it names files; empty where it does not."""
    from holdfast.hooks.fast.payload import as_json

    given = event.mapping("tool_input")
    named = {key: given[key] for key in _NAMING if key in given and _is_short(given[key])}
    called = {"tool": event.tool, "cwd": event.text("cwd"), "id": event.text("tool_use_id"), "given": named}
    return as_json(called) if named else ""


def _is_short(value: object) -> bool:
    """Text is measured before it is written as JSON: of 20 MB that takes a second."""
    from holdfast.hooks.fast.payload import as_json

    return (not isinstance(value, str) or len(value) <= _LONGEST_NAME) and len(
        as_json(value)
    ) <= _LONGEST_NAME


def _is_stale(path: str) -> bool:
    """Left by a process that was killed."""
    return _age(path) > _STALE_LOOK


def _age(path: str) -> float:
    """Infinite of what is not there."""
    try:
        return time.time() - os.stat(path).st_mtime
    except FileNotFoundError:
        return float("inf")


def _in_git(project: str) -> bool:
    """Elsewhere nobody says which files are work, and reading all there are may take for ever."""
    while not os.path.exists(f"{project}/.git"):
        parent = os.path.dirname(project)
        if parent == project:
            return False
        project = parent
    return True


# ── snapshot ──────────────────────────────────────────────────────────────────────────────────────

_WAIT = 50.0


def snapshot(event: AgentEvent, answer: HookAnswer) -> None:
    """Take a snapshot before a compaction (the agent waits for it) and at the session's end."""
    notes.ensure_folder(event.folder)
    transcript = event.text("transcript_path")
    if event.moment == "end":
        notes.write(event.note(formats.ENDED), event.text("reason").encode() or b"end")
        _detach(event, "settle", "end", transcript, holding=event.note(formats.SETTLING))
        return
    if not _run(event, "settle", "compact", transcript, event.text("custom_instructions"), wait=_WAIT):
        raise TimeoutError("the snapshot before compaction was not taken in time")
    form = notes.read(event.note(formats.STEERING))
    if form:  # stands in the request for the summary, where the agent allows it
        answer.context.append(form.decode("utf-8", "replace"))


# ── resume context ────────────────────────────────────────────────────────────────────────────────


def resume_context(event: AgentEvent, answer: HookAnswer) -> None:
    """Tell a new session of the work there is to go on with; save first what a crash left behind."""
    from holdfast.hooks.fast import context

    source = "compact" if event.moment == "compacted" else event.text("source") or "startup"
    if source == "compact":
        for name in ("advised-auto-pause", "advised-critical", formats.STOPPED, "held-since"):
            notes.remove(event.note(name))
        words = context.compared(event, is_first=True)
        answer.context += [words] if words else []
    elif source == "resume":
        context.settle_orphans(event)
        words = context.changed_since(event)
        answer.context += [words] if words else []
    elif source == "startup":
        context.settle_orphans(event)
        told = context.open_work(event)
        answer.context += [*context.asides(event, "".join(told)), *told]
    elif source == "clear":  # a clean start is what was asked for, but what the user forbade holds
        answer.context += context.records(event, [])
    # fork: the conversation is there already


def supplement(event: AgentEvent, answer: HookAnswer) -> None:
    """After a compaction, once the agent has written its summary down: add what that lacks or gets wrong."""
    if event.is_subagent:
        return
    if event.moment == "model":
        _notice_compaction(event)
        return
    if not os.path.exists(event.note(formats.COMPACTED)):
        return
    from holdfast.hooks.fast import context

    words = context.compared(event, is_first=False)
    if words:
        answer.context.append(words)


_SUMMARY_OF_GEMINI = b"<state_snapshot>"


def _notice_compaction(event: AgentEvent) -> None:
    """Gemini CLI has no event for it; from then on its requests hold the summary."""
    at = event.data.find(_SUMMARY_OF_GEMINI) if event.agent == "gemini" else -1
    if at < 0:
        return
    opening = event.data[at : at + 300]
    if notes.read(event.note(formats.SUMMARY_SEEN), 300) != opening:
        notes.write(event.note(formats.SUMMARY_SEEN), opening)
        notes.write(event.note(formats.COMPACTED), b"0")


# ── status line ───────────────────────────────────────────────────────────────────────────────────

_CELLS = 10
_WORTH_SHOWING = 50
_WORTH_SHOWING_USD = 0.005


def status_line(event: AgentEvent, answer: HookAnswer) -> None:
    """The context gauge for the agent's status line."""
    gauge = event.gauge
    if gauge is None:
        answer.status = "holdfast: no model call yet"
        return
    filled = min(_CELLS, round(gauge.of_window * _CELLS))
    words = [f"holdfast {'▰' * filled}{'▱' * (_CELLS - filled)} {gauge.of_window:.0%}"]
    words += [f"{short_count(gauge.tokens)}/{short_count(gauge.window)}", gauge.distance]
    words += [*_cost(event), *_rate_limits(event)]
    settings = event.settings
    for name, bound in (("critical", settings.critical), ("winding down", settings.auto_pause)):
        if gauge.share >= bound:
            words.append(name)
            break
    if os.path.exists(os.path.join(event.state, formats.quiet_marker(event.key))):
        words.append("quiet")
    answer.status = " · ".join(words)


def _cost(event: AgentEvent) -> list[str]:
    spent = amount(event.mapping("cost").get("total_cost_usd"))
    return [f"${spent:.2f}"] if spent >= _WORTH_SHOWING_USD else []


def _rate_limits(event: AgentEvent) -> list[str]:
    """Once half of one is used up."""
    found: list[str] = []
    limits = event.mapping("rate_limits")
    for key, name in (("five_hour", "5 h"), ("seven_day", "7 d")):
        used = amount(mapping(limits.get(key)).get("used_percentage"))
        if used >= _WORTH_SHOWING:
            found.append(f"{name} limit {used:.0f}%")
    return found
