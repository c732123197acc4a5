"""What the hooks leave to a process of its own: beginning a wind-down, snapshots, contexts, recovery."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from holdfast.base.clock import iso, seconds_between, system_clock, to_datetime
from holdfast.base.durable import lock_file, replace_file
from holdfast.base.errors import HoldfastError
from holdfast.hooks.fast import error_log, notes
from holdfast.hooks.fast.context import (
    LIMITS,
    ROOM_FOR_HEADING,
    context_file,
    killed_sessions,
    live_sessions,
    threads_stamp,
    undo_stamp,
)
from holdfast.hooks.fast.event import AgentEvent, file_name_for
from holdfast.hooks.fast.levels import look
from holdfast.journal import log
from holdfast.model.gathered import LastStep
from holdfast.model.policy import Trigger
from holdfast.model.snapshot import IncrementalPause, SessionSnapshot
from holdfast.project import formats
from holdfast.project.settings import Settings, load_settings, project_settings, user_config
from holdfast.project.trust import data_home
from holdfast.sessions.pause import SessionPauseManager
from holdfast.sessions.winddown import IncrementalPauseManager
from holdfast.store.session_files import SessionFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sessions.threads import Thread

_CAUSES: dict[str, tuple[Trigger, str]] = {
    "compact": ("exhaustion", "before the agent compacted its conversation"),
    "compacted": ("exhaustion", "the agent compacted its conversation"),
    "exhaustion": ("exhaustion", "the context window was nearly full"),
    "end": ("pause", "the agent session ended"),
    "asked": ("pause", "the agent asked for a pause"),
    "handoff": ("pause", "the work is handed over to another agent"),
    "crash": ("crash", "the agent was killed"),
}
_COMPACTIONS = ("compact", "compacted")
_CONTEXTS_KEPT = 10
_OF_WHO_SETTLES = (formats.ENDED, "settle.lock", "begin.lock", formats.SETTLING, formats.INDEX_SEEN)
"""Notes that tell nothing of when the session itself was at work."""
_LARGE = 512 * 1024
"""Bytes of a transcript in which nothing was done there are not."""


class SessionWork:
    """One agent session in one project."""

    def __init__(self, agent: str, session: str, project: str, reason: str = "") -> None:
        self.reason = reason
        """Why it is to be settled, where somebody said that."""
        self.agent = agent
        self.session = session
        self.project = Path(project)
        self.key = file_name_for(session)
        self.state = self.project / formats.FOLDER / formats.STATE
        self.folder = self.state / formats.HOOKS / self.key

    def note(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def settled(self) -> tuple[str, str, str]:
        """The snapshot that was made of it, after how many prompts, and why; empty where there is none."""
        return formats.parse_settled(notes.read(self.note(formats.SETTLED)))

    def cause(self, name: str) -> tuple[Trigger, str]:
        trigger, reason = _CAUSES[name]
        return trigger, self.reason or reason

    def settings(self) -> Settings:
        try:
            return project_settings(self.project)
        except HoldfastError as error:
            error_log.note(str(self.state), f"settings cannot be read, using defaults: {error.message}")
            home = Path(data_home())
            return Settings(self.project, home, os.environ.get("HOLDFAST_DB") or str(home / "holdfast.db"))

    def listen_to_warnings(self) -> None:
        """What the rooms below log belongs into the hooks' own log."""
        state = str(self.state)

        class ToLog(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                error_log.note(state, record.getMessage())

        logger = logging.getLogger("holdfast")
        logger.addHandler(ToLog(logging.WARNING))
        logger.propagate = False


def note_settings(work: SessionWork) -> bool:
    """Write the note that `holdfast.hooks.fast.levels` reads; the variables are the hook's own business."""
    environ = {name: value for name, value in os.environ.items() if name == "HOLDFAST_HOME"}
    files = [user_config(environ), work.project / formats.FOLDER / formats.CONFIG]
    lines = [f"home={environ.get('HOLDFAST_HOME', '')}", *(f"{path}={look(str(path))}" for path in files)]
    try:
        settings = load_settings({**environ, "HOLDFAST_PROJECT": str(work.project)})
    except HoldfastError as error:
        error_log.note(str(work.state), f"settings cannot be read, using defaults: {error.message}")
    else:
        # Only what is set: the hook's own variables may move the others.
        lines += [f"{name}={getattr(settings.levels, name)}" for name in sorted(settings.levels_given)]
        lines += [f"on_exhaustion={settings.on_exhaustion}", f"record_files={settings.record_files}"]
        for name in ("context_window", "compact_at"):
            lines += [f"{name}={getattr(settings, name)}"] if getattr(settings, name) else []
    note = work.state / formats.HOOKS / formats.HOOK_SETTINGS
    notes.write(str(note), "\n".join(lines).encode("utf-8", "surrogateescape"))
    return True


def begin(work: SessionWork, share: str, tokens: str, window: str, model: str) -> bool:
    """Start this session's wind-down, unless another session has one going."""
    manager = IncrementalPauseManager(settings=work.settings(), owner=_agent_process(work))
    with lock_file(work.folder / "begin.lock", wait=5):
        if notes.read(work.note(formats.WINDING)):
            return True
        if manager.is_orphaned():
            _finalise_orphan(work, manager)
        name = _own_journal(work, manager)
        if name is None and manager.is_pause_active():
            return False
        state = {
            "agent": work.agent,
            "agent_session": work.session,
            "model": model,
            "tokens_used": int(tokens),
            "context_window": int(window),
        }
        name = name or manager.start_incremental_pause(float(share), state)
        notes.write(work.note(formats.WINDING), name.encode())
    return True


def _own_journal(work: SessionWork, manager: IncrementalPauseManager) -> str | None:
    """The active wind-down, if it is this session's: its note may have been lost, or the agent began it."""
    first = next(iter(log.Reader(manager.layout.journal)), None) if manager.is_pause_active() else None
    state = first.data.get("initial_state") if first else None
    told = [state.get(key) for key in ("agent_session", "conversation")] if isinstance(state, dict) else []  # pyright: ignore
    return first.session_id if first and work.session in told else None


def _agent_process(work: SessionWork) -> int | None:
    process = formats.process_in_who(notes.read(work.note(formats.WHO)))
    return process[0] if process else None


def settle(
    work: SessionWork, cause: str, transcript: str = "", instructions: str = "", *, at: float | None = None
) -> bool:
    """Make the session a snapshot and prepare its contexts. Nothing new since the last one: refresh that.

    `instructions` are the user's own for the summary of a compaction; `at` is when the session was last
    heard of, if that is not now.
    """
    notes.ensure_folder(str(work.folder))
    if cause == "end" and os.path.exists(work.note(formats.STOPPED)):
        cause = "exhaustion"  # the stop left a process to settle it, which the session's end may overtake
    try:
        with lock_file(work.folder / "settle.lock", wait=120):
            _settle(work, cause, transcript, at)
            if cause == "compact":
                _note_steering(work, instructions)
            return True
    finally:
        notes.remove(work.note(formats.SETTLING))


def _settle(work: SessionWork, cause: str, transcript: str, at: float | None) -> None:
    _last_usage(work, transcript)
    manager = IncrementalPauseManager(settings=work.settings())
    last = notes.read(work.note(formats.WINDING), 100)
    wound_down = last or notes.read(work.note(formats.WOUND_DOWN), 100)
    name = _finalised(work, manager, cause, at) or _settled_already(work, manager, cause)
    if name is None:
        if cause != "compact" and not _was_used(work, transcript):
            return
        recorded = _ended_by_hand(work, manager, (wound_down or b"").decode("ascii", "replace").strip())
        if recorded is not None and not last:  # the agent went on: what it said of the work then is overtaken
            kept = tuple(one for one in recorded.recorded if one.type == "user_message" or not one.from_hook)
            recorded = recorded.changed(recorded=kept) if kept else None
        worked = recorded is not None or did_work(work, transcript)
        name = _paused(work, manager.settings, cause, worked=worked, at=at, recorded=recorded)
    prompts = (notes.read(work.note(formats.PROMPTS), 32) or b"0").decode()
    notes.write(work.note(formats.SETTLED), formats.render_settled(name, prompts, cause))
    is_unrecorded = cause == "crash" and work.agent in _RECORDS_NO_OPEN_CALL
    _enrich(work, manager.settings, name, transcript, _last_call(work) if is_unrecorded else None)
    prepare_contexts(work, name)
    for thread in _noted_threads(work):
        if name in thread.sessions and len(thread.sessions) > 1 and not thread.issue:
            prepare_contexts(work, thread.id, is_looked_at_since=True)


def _finalised(
    work: SessionWork, manager: IncrementalPauseManager, cause: str, at: float | None
) -> str | None:
    """This session's wind-down as a snapshot, where it has one."""
    name = _own_journal(work, manager)
    notes.remove(work.note(formats.WINDING))
    if name is None:
        return None
    trigger, reason = work.cause(cause)
    kind = "exhaustion" if cause != "crash" else trigger
    path = manager.finalize_pause(trigger=kind, reason=reason, at=_moment(at))
    return path.stem if path else None


def _ended_by_hand(work: SessionWork, manager: IncrementalPauseManager, own: str) -> IncrementalPause | None:
    """What wind-downs hold that somebody made sessions of while the agent went on: this session's `own`,
    those that are known to be of its conversation, and those that can be nobody else's."""
    newest = SessionFiles(manager.layout.sessions).session_ids()
    names = [name for name in newest if name == own or name in newest[:_LOOKED_AT]]
    found = (_taken_along(work, manager, name, name == own) for name in reversed(names))
    held = [pause for pause in (*found, _still_open(work, manager)) if pause is not None]
    if not held:
        return None
    return held[-1].changed(recorded=tuple(words for pause in held for words in pause.recorded))


_LOOKED_AT = 20


def _still_open(work: SessionWork, manager: IncrementalPauseManager) -> IncrementalPause | None:
    """The user's own wind-down, which may go on after this session: what it holds is part of this one's
    handover, and it is noted as this one's for whoever finalises it."""
    try:
        pause = manager.recorded_so_far() if _is_its_own(work, manager) else None
        if pause is None or not pause.recorded:
            return None
        manager.belongs_to(work.session)
    except HoldfastError as error:
        error_log.note(str(work.state), f"the wind-down going on was not taken along: {error.message}")
        return None
    return pause


def _is_its_own(work: SessionWork, manager: IncrementalPauseManager) -> bool:
    summary = manager.get_pause_summary()
    if summary is None or not manager.is_open_to(work.session):
        return False
    began, last = (_seconds(summary[one]) for one in ("pause_started_at", "last_updated"))
    return manager.conversation() is not None or (_is_since(work, began) and _was_alone(work, last))


def _taken_along(
    work: SessionWork, manager: IncrementalPauseManager, name: str, is_own: bool
) -> IncrementalPause | None:
    from holdfast.sessions.enrich import add_to_snapshot
    from holdfast.store.documents import read_session_document

    try:
        document = SessionFiles(manager.layout.sessions).read(name)
        snapshot, _ = read_session_document(document, where=f"{name}.json")
        pause = snapshot.incremental_pause
        if not is_own and (pause is None or pause.agent_session is not None or not pause.recorded):
            return None
        if not is_own and snapshot.conversation != work.session:
            is_free = snapshot.conversation is None and not snapshot.task_dag.tasks
            finalised = snapshot.created_at.timestamp()
            if not (is_free and _is_since(work, finalised) and _was_alone(work, finalised)):
                return None
        if snapshot.conversation is None:
            add_to_snapshot(manager.settings, snapshot.id, {"conversation": work.session})
    except HoldfastError as error:
        error_log.note(str(work.state), f"the wind-down {name} was not taken along: {error.message}")
        return None
    return pause


def _is_since(work: SessionWork, moment: float) -> bool:
    """Whether that was while this session was at work; its note was written when it began."""
    try:
        return moment >= int(os.stat(work.note(formats.WHO)).st_mtime)
    except OSError:
        return False


def _was_alone(work: SessionWork, moment: float) -> bool:
    """Nobody can tell whose it was where another session was at work in the folder, too."""
    alive = live_sessions(str(work.state))
    others = [one for one in work.folder.parent.iterdir() if one.is_dir() and one != work.folder]
    return not any(_was_at_work(one, moment, alive) for one in others)


def _was_at_work(folder: Path, moment: float, alive: Collection[str]) -> bool:
    who = _who(folder)
    if who is None or (folder / formats.WHO).stat().st_mtime > moment:
        return False
    if who[1] in alive:
        return True
    ended = folder / formats.ENDED
    return (ended.stat().st_mtime if ended.exists() else _last_active(folder)) >= moment


def _seconds(moment: str | None) -> float:
    """0 where a line that is damaged, or another program's, does not tell."""
    try:
        return seconds_between(iso(0), moment or "")
    except ValueError:
        return 0.0


def _moment(at: float | None) -> datetime | None:
    return None if at is None else to_datetime(at)


def _settled_already(work: SessionWork, manager: IncrementalPauseManager, cause: str) -> str | None:
    """The snapshot made of this session before, if nothing can have happened since and it is still there.

    After a compaction the agent goes on without a prompt.
    """
    name, prompts_then, cause_then = work.settled
    prompts = (notes.read(work.note(formats.PROMPTS), 32) or b"0").decode()
    known = name and (manager.layout.sessions / f"{name}.json").exists()
    went_on = cause_then in _COMPACTIONS and cause not in _COMPACTIONS
    return name if known and prompts_then == prompts and prompts != "0" and not went_on else None


def _was_used(work: SessionWork, transcript: str) -> bool:
    if notes.read(work.note(formats.PROMPTS), 32):
        return True
    return bool(transcript) and Path(transcript).is_file() and Path(transcript).stat().st_size > 0


def did_work(work: SessionWork, transcript: str = "") -> bool:
    """Whether this session did anything to hand over. In doubt it did: nothing may be lost by this."""
    from holdfast.findings.rules.trail import did_work as did
    from holdfast.sessions.contexts import NothingSaidError, read_session

    counted = (notes.read(work.note(formats.PROMPTS), 32) or b"0").strip()
    if os.path.exists(work.note(formats.EDIT_GATE)) or not counted.isdigit():
        return True  # a tool that edits was called, or the note is damaged
    prompts = int(counted)
    try:
        path, agent = _transcript(work, transcript)
        if agent != "opencode" and path.stat().st_size > _LARGE:
            return True
        session = read_session(path, agent, work.session)
    except NothingSaidError:
        return prompts > 0
    except (HoldfastError, OSError, ValueError):
        return True
    notices = sum(one.injected and one.text.startswith(_NOTICES) for one in session.recent)
    lags = prompts > len(session.found.turns) + notices
    return lags or did(session.found, session.recent)


_NOTICES = ("<task-notification", "{", "[{", "[\n")
"""Of a command in the background: to the hooks it is a prompt like one that a person typed."""


def _transcript(work: SessionWork, told: str) -> tuple[Path, str]:
    path = Path(told)
    if told and path.is_file():
        return path, work.agent
    from holdfast.sessions.contexts import find_transcript

    found = find_transcript(work.session, work.project, Path.home(), os.environ)
    return found.path, found.agent


def _paused(
    work: SessionWork,
    settings: Settings,
    cause: str,
    *,
    worked: bool,
    at: float | None,
    recorded: IncrementalPause | None,
) -> str:
    from holdfast.model.usage import UsageMetrics
    from holdfast.sessions.transitions import Facts

    trigger, reason = work.cause(cause)
    counts = formats.parse_usage_note(notes.read(work.note(formats.USAGE)))
    usage = None
    if counts and counts[2]:
        _, tokens, window, _ = counts
        usage = UsageMetrics(
            tokens_used=tokens,
            tokens_remaining_estimate=max(0, window - tokens),
            context_utilization=min(1.0, tokens / window),
        )
    facts = Facts(
        trigger=trigger,
        reason=reason,
        usage=usage,
        worked=worked,
        at=_moment(at),
        incremental_pause=recorded,
        conversation=work.session,  # from its first moment: another session that ends now looks for its own
    )
    return SessionPauseManager(settings=settings).pause_now(facts)


def _last_usage(work: SessionWork, transcript: str) -> None:
    """The last message was not in the transcript yet when the agent's last hook ran."""
    if work.agent not in ("claude-code", "codex") or not transcript:
        return
    from holdfast.hooks.fast.payload import quoted
    from holdfast.hooks.fast.usage import measured

    fields = {"session_id": work.session, "cwd": str(work.project), "transcript_path": transcript}
    payload = ",".join(f"{quoted(name)}:{quoted(value)}" for name, value in fields.items())
    event = AgentEvent(work.agent, "Stop", f"{{{payload}}}".encode(), os.environ)
    try:
        measured(event, event.settings)
    except OSError as error:
        error_log.note(str(work.state), f"usage of the last message is missing: {error}")


_RECORDS_NO_OPEN_CALL = ("gemini",)
"""Whose record has a call once it has ended, and not before."""


def _last_call(work: SessionWork) -> LastStep | None:
    """The newest one that a hook saw."""
    from holdfast.findings.rules.actions import action_of, step_of
    from holdfast.model.message import ToolCall

    line = (notes.read(work.note(formats.NAMED)) or b"").rpartition(b"\n")[0].rpartition(b"\n")[2]
    try:
        called = json.loads(line)
        return step_of(action_of(ToolCall("", str(called["tool"]), called["given"])), "unknown")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # none, or half a line: the power went


def _enrich(
    work: SessionWork, settings: Settings, name: str, transcript: str, cut_off: LastStep | None
) -> None:
    """Add what the conversation tells; if that fails, only the findings are missing."""
    from holdfast.sessions.contexts import NothingSaidError
    from holdfast.sessions.enrich import add_to_snapshot, enrich_snapshot, with_handover

    try:
        snapshot_id = str(SessionFiles(settings.layout.sessions).read(name)["id"])
        told = _told_by_notes(work, name)
        try:
            path, agent = _transcript(work, transcript)
            enrich_snapshot(settings, snapshot_id, path, agent, work.session, told, cut_off)
        except HoldfastError:
            add_to_snapshot(settings, snapshot_id, told)
            raise
        finally:
            if words := _own_words(work):
                with_handover(settings, snapshot_id, words)
    except NothingSaidError:
        pass
    except HoldfastError as error:
        error_log.note(str(work.state), f"nothing was added to {name} from its transcript: {error.message}")


def _told_by_notes(work: SessionWork, name: str) -> dict[str, str]:
    """What the hooks know of the session and its transcript does not tell."""
    from holdfast.base.ids import is_session_id

    continues = (notes.read(work.note(formats.TOOK_UP), 100) or b"").decode("ascii", "replace")
    told = {"conversation": work.session}
    if is_session_id(continues) and continues != name:
        told["continues"] = continues
    return told


def _own_words(work: SessionWork) -> str:
    """The agent's own handover, if nothing was asked for since it was written."""
    count, _, words = (
        (notes.read(work.note(formats.HANDOVER)) or b"").decode("utf-8", "replace").partition("\n")
    )
    prompts = (notes.read(work.note(formats.PROMPTS), 32) or b"0").decode().strip()
    return words if count == prompts else ""


def prepare_contexts(work: SessionWork, name: str, *, is_looked_at_since: bool = False) -> bool:
    """Compile the session's context once for each limit, so that a starting session only reads it.

    The first line is the commit of that moment, and of a plan what was undone until now, for the reader to
    compare.
    """
    from holdfast.resume.snapshots import ResumeContextCompiler
    from holdfast.store.documents import read_session_document

    sessions = work.settings().layout.sessions
    files = SessionFiles(sessions)
    snapshot, workflow = read_session_document(files.read(name), where=f"{name}.json")
    since = _asides_since(work, snapshot) if is_looked_at_since else ()
    stamp = ""
    if snapshot.task_dag.tasks:
        from holdfast.sessions.undone import undone_before

        stamp = f" {undo_stamp(str(work.project), workflow.id)}"
        since = (*undone_before(workflow, snapshot), *since)
    contexts: dict[str, str] = {}
    for agent, limit in LIMITS.items():
        compiled = ResumeContextCompiler(limit - ROOM_FOR_HEADING).compile_with_report(
            snapshot, workflow.issue, drift=since, worktree=work.settings().worktree
        )
        commit = (snapshot.git_state.commit_at_snapshot if snapshot.git_state else None) or ""
        contexts[context_file(str(sessions), name, agent)] = f"{commit}{stamp}\n{compiled.text}"
    with files.locked():  # whoever holds the folder may tidy up temporary files in it
        for path, text in contexts.items():
            replace_file(Path(path), text.encode())
        _drop_old_contexts(sessions, name)
    return True


def _asides_since(work: SessionWork, snapshot: SessionSnapshot) -> tuple[str, ...]:
    from holdfast.sessions.contexts import asides_since
    from holdfast.sessions.pause import open_store

    try:
        with open_store(work.settings()) as store:
            return asides_since(store, snapshot)
    except HoldfastError as error:
        error_log.note(str(work.state), f"the later sessions cannot be read: {error.message}")
        return ()


def note_threads(work: SessionWork) -> bool:
    """Write the list that a starting session reads."""
    _noted_threads(work)
    return True


def _noted_threads(work: SessionWork) -> Sequence[Thread]:
    from holdfast.sessions.contexts import records_standing
    from holdfast.sessions.pause import open_store
    from holdfast.sessions.threads import threads_in, threads_of_files

    settings = work.settings()
    stamp = threads_stamp(str(work.project))
    files = SessionFiles(settings.layout.sessions)
    try:
        if files.has_waiting_of_ours():
            found = threads_of_files(files)
        else:
            with open_store(settings) as store:
                found = threads_in(store, settings.worktree)
                records = records_standing(store, settings.worktree)
            note = work.state / formats.HOOKS / formats.RECORDS  # before the list, whose stamp speaks for it
            notes.write(str(note), formats.render_records(records))
    except HoldfastError as error:
        error_log.note(str(work.state), f"the database cannot be read, using the files: {error.message}")
        found = threads_of_files(files)
    rows = [
        [
            one.id,
            " ".join(sorted(one.sessions, key=lambda session: session != one.id)),  # the handover's first
            one.branch or "",
            one.status,
            repr(one.updated_at.timestamp()),
            "plan" if one.issue else "",
            one.title,
            one.state,
        ]
        for one in found
    ]
    note = work.state / formats.HOOKS / formats.THREADS
    notes.write(str(note), formats.render_threads(stamp, rows))
    return found


def _snapshot(work: SessionWork) -> SessionSnapshot:
    """The one that was made of this session last."""
    from holdfast.store.documents import read_session_document

    name = work.settled[0]
    document = SessionFiles(work.settings().layout.sessions).read(name)
    return read_session_document(document, where=f"{name}.json")[0]


def _note_steering(work: SessionWork, instructions: str) -> None:
    from holdfast.base.redact import redact
    from holdfast.sessions.compaction import steering

    text, _ = redact(steering(_snapshot(work), instructions))
    notes.write(work.note(formats.STEERING), text.encode())


def note_supplement(work: SessionWork, transcript: str) -> bool:
    """What the summary lacks, if the agent has written one since; else, once, what cannot wait."""
    from holdfast.base.redact import redact
    from holdfast.sessions.compaction import supplement, urgent_facts

    is_late = work.agent == "gemini"  # nothing tells of its compactions before they are over
    if is_late:
        settle(work, "compacted", transcript)
    snapshot = _snapshot(work)
    told = (notes.read(work.note(formats.SUPPLEMENT_TOLD)) or b"").decode("utf-8", "replace")
    before = snapshot.gathered.compactions if snapshot.gathered else 0
    summary = _newest_summary(work, transcript, before - is_late)
    if summary is not None:
        notes.remove(work.note(formats.COMPACTED))
        text = supplement(snapshot, summary, told)
    else:
        text = "" if told or is_late else urgent_facts(snapshot)
    notes.write(work.note(formats.SUPPLEMENT), redact(text)[0].encode())
    return True


def _newest_summary(work: SessionWork, transcript: str, before: int) -> str | None:
    """The agent's own, where its record has more of them than before the compaction."""
    from holdfast.transcripts import open_transcript

    try:
        path, agent = _transcript(work, transcript)
        found = [one.text for one in open_transcript(path, agent, work.session)[1] if one.compaction]
    except HoldfastError:
        return None
    return found[-1] if len(found) > before and found[-1].strip() else None


def note_changes(work: SessionWork) -> bool:
    """What changed in the folder since this session was settled, for the conversation that goes on."""
    from holdfast.capture.drift import find_drift

    changes = find_drift(_snapshot(work), work.project).changes
    told = "\n".join(f"- {sentence}" for sentence in changes)
    notes.write(work.note(formats.CHANGES), told.encode())
    return True


def note_checks(work: SessionWork, command: str, transcript: str = "") -> bool:
    """What the record tells of the checks before a commit; nothing where they passed on what it commits."""
    from holdfast.base.redact import redact

    try:
        told = _told_of_checks(work, command, transcript)
    except HoldfastError:
        return False  # there is no record that could be read
    notes.write(work.note(formats.CHECKS), redact(told)[0].encode())
    return True


_NO_CHECK = "this session's record shows no run of tests, build or linter"


def _told_of_checks(work: SessionWork, command: str, transcript: str) -> str:
    from holdfast.base.text import clipped
    from holdfast.findings.rules.commands import proves_check
    from holdfast.sessions.contexts import NothingSaidError, read_session

    before, chained, _ = command.partition("git commit")[0].rpartition("&&")
    if chained and proves_check(before):
        return ""  # the commit waits for it
    path, agent = _transcript(work, transcript)
    try:
        checks = read_session(path, agent, work.session).found.checks
    except NothingSaidError:
        checks = ()
    if not checks:
        return _NO_CHECK
    red = next((run for run in reversed(checks) if not run.passed), None)
    run = red or max(checks, key=lambda one: one.index)
    name = f"`{clipped(run.command, 100)}`"
    if red is not None:
        return f"{name} failed the last time it ran"
    if run.unsure:
        return f"the output of {name} does not tell whether it passed"
    if run.edited_since:
        files = ", ".join(sorted(map(os.path.basename, run.edited_since))[:_NAMED_FILES])
        return f"{name} passed, but was not run since {files} changed"
    return ""


_NAMED_FILES = 3


def _drop_old_contexts(sessions: Path, made: str) -> None:
    """They can be made again; the newest suffice, and what was just made, whatever the clock names it."""
    files = sorted(sessions.glob("session-*.context-*.md"), reverse=True)
    kept = [made]
    for path in files:
        name = path.name.partition(".")[0]
        if name not in kept:
            kept.append(name)
        if name != made and len(kept) > _CONTEXTS_KEPT:
            path.unlink(missing_ok=True)


def recover(work: SessionWork) -> bool:
    """Settle the sessions that were killed, and a journal that nobody alive writes; note their names."""
    manager = IncrementalPauseManager(settings=work.settings())
    killed = [Path(path) for path in killed_sessions(formats.hooks_folder(str(work.state)), work.key)]
    names = [_settled_killed(work, folder) for folder in sorted(killed, key=_last_active)]
    if manager.is_orphaned():
        is_told = _is_in_handover(work, manager)
        name = _finalise_orphan(work, manager)
        if name:
            prepare_contexts(work, name)
            names += [] if is_told else [name]
    notes.ensure_folder(str(work.folder))
    notes.write(work.note(formats.RECOVERED), "\n".join(filter(None, names)).encode())
    return True


def save_ended(project: Path, folders: Iterable[Path]) -> Iterator[str]:
    """Of sessions that ended when nobody could save them; the names of those that did something."""
    work = SessionWork("", formats.UNKNOWN_SESSION, str(project))
    for folder in folders:
        if name := _settled_killed(work, folder):
            yield name


def _is_in_handover(work: SessionWork, manager: IncrementalPauseManager) -> bool:
    """Whether all of the active wind-down is in what was made of its session already."""
    conversation = manager.conversation()
    if conversation is None:
        return False
    own = SessionWork(work.agent, conversation, str(work.project))
    try:
        ended = _snapshot(own).created_at.timestamp() if own.settled[0] else 0.0
    except HoldfastError:
        return False
    return ended >= manager.layout.journal.stat().st_mtime


def _settled_killed(work: SessionWork, folder: Path) -> str:
    """The name of the session that was made of it, if it did something."""
    who = _who(folder)
    at = _last_active(folder)
    held = notes.hold(str(folder / formats.SETTLING))  # others that start now wait for it, too
    try:
        has_ended = (notes.read(str(folder / formats.ENDED)) or b"killed") != b"killed"
        notes.write(str(folder / formats.ENDED), b"end" if has_ended else b"killed")
        if who is None:
            return ""
        agent, session, transcript, *_ = who
        killed = SessionWork(agent, session, str(work.project))
        settle(killed, "end" if has_ended else "crash", transcript, at=at)
    finally:
        os.close(held)
    if os.path.exists(killed.note(formats.TRANSACTION)):
        from holdfast.hooks.turns import finish_killed

        finish_killed(killed)
    name = killed.settled[0]
    return name if name and _is_worth_a_word(work, name) else ""


def _is_worth_a_word(work: SessionWork, name: str) -> bool:
    return SessionFiles(work.settings().layout.sessions).read(name).get("worked") is not False


def _who(folder: Path) -> tuple[str, str, str, str, str] | None:
    return formats.parse_who(notes.read(str(folder / formats.WHO)))


def _last_active(folder: Path) -> float:
    """When a session that was killed was last heard of: in its notes, or in its transcript."""
    who = _who(folder)
    transcripts = [Path(who[2])] if who and who[2] else []
    own = [path for path in folder.iterdir() if path.name not in _OF_WHO_SETTLES]
    times = [path.stat().st_mtime for path in (*own, *transcripts) if path.is_file()]
    return min(max(times, default=0.0) or system_clock(), system_clock())


def _finalise_orphan(work: SessionWork, manager: IncrementalPauseManager) -> str | None:
    from holdfast.sessions.enrich import join_conversation

    at = to_datetime(manager.layout.journal.stat().st_mtime)
    conversation = manager.conversation()
    path = manager.finalize_pause(trigger="crash", reason="its process ended without a pause", at=at)
    if path is None:
        return None
    try:
        alive = set(live_sessions(str(work.state))) - {work.session}
        join_conversation(manager.settings, path.stem, conversation, alive)
    except HoldfastError as error:
        error_log.note(str(work.state), f"the wind-down {path.stem} stands by itself: {error.message}")
    return path.stem


def _of_turns(name: str) -> Callable[..., bool]:
    """The side-car is loaded by nobody else."""

    def task(work: SessionWork, *words: str) -> bool:
        from holdfast.hooks import turns

        return getattr(turns, name)(work, *words)

    return task


TASKS: dict[str, Callable[..., bool]] = {
    "settings": note_settings,
    "begin": begin,
    "settle": settle,
    "recover": recover,
    "contexts": prepare_contexts,
    "threads": note_threads,
    "changes": note_changes,
    "checks": note_checks,
    "supplement": note_supplement,
    **{name: _of_turns(name) for name in ("look", "watch", "set_apart", "record", "finish")},
}
