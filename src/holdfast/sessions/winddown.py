"""`IncrementalPauseManager`: record what happens while a session runs out, then make it a snapshot."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from holdfast.base.clock import Clock, iso, seconds_between, system_clock
from holdfast.base.durable import (
    keep_if_damaged,
    open_file,
    read_file,
    replace_file,
    storage_errors,
    sync_folder,
)
from holdfast.base.errors import HeldElsewhereError, HoldfastError, InvalidInputError
from holdfast.base.ids import is_session_id, session_id
from holdfast.base.process import ProcessIdentity, identify, is_alive
from holdfast.journal import log, summary
from holdfast.journal.log import PauseAction, check_action_type, check_fraction
from holdfast.journal.summary import ActionTexts, Digest, Tally
from holdfast.journal.windows import context_window
from holdfast.project import formats
from holdfast.project.settings import Settings, project_settings
from holdfast.project.trust import forget_starts, note_start
from holdfast.store.session_files import Closing, FileSet, SessionFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from holdfast.model.policy import Trigger
    from holdfast.model.snapshot import IncrementalPause
    from holdfast.sessions.pause import SessionPauseManager
    from holdfast.sessions.transitions import Facts

_logger = logging.getLogger("holdfast.winddown")

_DAY = 86_400.0
_SAYS_NOTHING = frozenset(("agent", "model", "tokens_used", "tokens_total", "context_window", "conversation"))
"""Of the state at the start: what does not tell of any work. An agent's session does."""

_OWN_RECORD = (
    "`holdfast note handover` records it for your own session; "
    "`holdfast winddown finalize` ends this wind-down if that session is over"
)
_KEPT_WORK = (
    "`holdfast winddown finalize` ends it and keeps what it recorded; "
    "only that session, or the user in a terminal, can discard it"
)


class IncrementalPauseManager:
    """One wind-down a project at a time; any number of processes append to it.

    Its journal is `.holdfast/sessions/ACTIVE-PAUSE.jsonl`; that file being there is
    what "active" means.
    """

    def __init__(
        self,
        project_path: Path | str | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock = system_clock,
        owner: int | None = None,
    ) -> None:
        """`owner` is the process whose end makes the wind-down an orphan; by default this one."""
        self.settings = project_settings(project_path, settings)
        self.layout = self.settings.layout
        self._files = SessionFiles(self.layout.sessions)
        self._journal = self.layout.journal
        self._clock = clock
        self._owner = owner or os.getpid()
        self._tally = Tally(self._journal)

    def is_pause_active(self) -> bool:
        return self._journal.exists()

    def check_start(self, context_percentage: float, initial_state: dict[str, Any]) -> None:
        """Raises what `start_incremental_pause` would say to these values."""
        check_fraction(context_percentage)
        _as_json(initial_state)

    def start_incremental_pause(self, context_percentage: float, initial_state: dict[str, Any]) -> str:
        """Begin a wind-down and return its session id. Refused while one is active."""
        share = check_fraction(context_percentage)
        data = _as_json({"context_percentage": share, "initial_state": initial_state})
        self.layout.ensure()
        with self._files.locked():
            if self.is_pause_active():
                self._refuse_another(_conversation_of(initial_state))
                raise HeldElsewhereError(
                    f"a wind-down is already active: {self._session_id()}",
                    hint="`holdfast winddown finalize`, `discard` or `recover`",
                )
            name = self._files.free_session_id(self._clock())
            self._own(name)
            with storage_errors("note whose wind-down it is"):
                note_start(str(self.layout.folder), name)
            log.create(self._journal, self._line("pause_started", data, share, name))
        return name

    def append_action(
        self,
        action_type: str,
        action_data: dict[str, Any],
        context_percentage: float,
        *,
        conversation: str | None = None,
    ) -> None:
        """Record one action; when this returns, it survives a crash of anything.

        `conversation` is the agent's session that says it: to the wind-down of another it is refused.
        """
        check_action_type(action_type)
        share = check_fraction(context_percentage)
        data = _as_json(action_data)

        def line(name: str | None) -> bytes:
            self._refuse_another(conversation)
            return self._line(action_type, data, share, self._valid_name(name))

        log.append(self._journal, line)

    def _refuse_another(self, conversation: str | None, hint: str = _OWN_RECORD) -> None:
        """It would be told as if the one that winds down had said it."""
        if not self.is_open_to(conversation):
            raise HeldElsewhereError(
                f"the active wind-down belongs to another agent session: {self.conversation()}", hint=hint
            )

    def is_open_to(self, conversation: str | None) -> bool:
        """Whether what that agent's session says belongs into the active wind-down: it began it, or no
        session is known to have."""
        return conversation is None or self.conversation() in (None, conversation)

    def get_recorded_actions(self) -> list[PauseAction]:
        """All actions so far; damaged lines are skipped with a warning. Empty where none is active."""
        return list(log.Reader(self._journal)) if self.is_pause_active() else []

    def conversation(self) -> str | None:
        """The agent's session that began the active wind-down, or during which the user did."""
        if not self.is_pause_active():
            return None
        return self._begun_by() or self._noted_as(self._session_id())

    def _noted_as(self, name: str) -> str | None:
        told = self._owner_record(name).get("conversation")
        return told if isinstance(told, str) else None

    def belongs_to(self, conversation: str) -> None:
        """Note whose the active wind-down is, where its journal does not tell."""
        if self._begun_by() is None:
            name = self._session_id()
            told = {"session_id": name, "conversation": conversation}
            self._write_owner({**self._owner_record(name), **told})

    def recorded_so_far(self) -> IncrementalPause | None:
        """What the active wind-down holds by now; it goes on."""
        try:
            with log.locked(self._journal):
                reader = log.Reader(self._journal)
                digest, recorded = taken_in(reader)
                return journal_in_snapshot(digest, recorded, reader.skipped)
        except log.NotActiveError:
            return None

    def _begun_by(self) -> str | None:
        first = next(iter(log.Reader(self._journal)), None) if self.is_pause_active() else None
        digest = Digest().take([first] if first else [])
        return _conversation_of(_initial_state(digest))

    def get_pause_summary(self) -> dict[str, Any] | None:
        """Where the wind-down stands; None where none is active. Costs little however long it is."""
        try:
            tally = self._tally.advance()
        except FileNotFoundError:
            return None
        first, last = tally.first, tally.last
        start = first.context_percentage if first else 0.0
        return {
            "session_id": self._session_id(),
            "action_count": tally.lines,
            "duration_seconds": self._seconds_since(first),
            "context_range": (start, last.context_percentage if last else start),
            "pause_started_at": first.timestamp if first else None,
            "last_action_type": last.type if last else None,
            "last_updated": last.timestamp if last else None,
        }

    def finalize_pause(
        self,
        create_full_snapshot: bool = True,
        *,
        trigger: Trigger | None = None,
        reason: str | None = None,
        commit: bool = False,
        at: datetime | None = None,
        worked: bool = False,
    ) -> Path | None:
        """Make the wind-down a session; returns its JSON file (or the archive alone).

        None where no wind-down is active. On any error the journal is as it was, and
        the next attempt starts from there. `at` says when the session was last heard of, if not now;
        `worked`, that something was done in it, whatever the journal holds.
        """
        try:
            name = self._archive(create_full_snapshot, trigger, reason, at, worked)
        except log.NotActiveError:
            return None
        self._compress_old_archives()
        if not create_full_snapshot:
            return summary.find_archive(self.layout.sessions, name)
        if commit:
            self._pauses.commit(name)
        return self.layout.sessions / f"{name}.json"

    def _archive(
        self, full: bool, trigger: Trigger | None, reason: str | None, at: datetime | None, worked: bool
    ) -> str:
        pauses = self._pauses
        if not self.is_pause_active():
            raise log.NotActiveError("no wind-down is active here")
        # Sessions that end together wait for each other here; appending waits for the journal alone.
        with pauses.locked(), log.locked(self._journal):
            reader = log.Reader(self._journal)
            digest, recorded = taken_in(reader)
            name = self._name_for_files(digest)
            closing_action = self._closing_action(digest, name)
            digest.add(closing_action)
            closing = Closing(self._journal.name, summary.archive_name(name), closing_action.to_json_line())
            if not full:
                self._files.place(FileSet(name, closing=closing, becomes_latest=False))
                self._forget_start()
                return name
            facts = self._facts(digest, recorded, reader.skipped, name, trigger, reason)
            # A reason alone is nothing to go on with: it would hide the handover of a session with work.
            worked = worked or reader.skipped > 0 or _holds_something(digest)
            pauses.pause(replace(facts, at=at, worked=worked), closing)
            self._forget_start()
        return name

    def _forget_start(self) -> None:
        """The next one that begins does it as well."""
        with contextlib.suppress(OSError):
            forget_starts(str(self.layout.folder))

    def commit(self, name: str) -> str:
        """Commit a session's files to the project's repository."""
        return self._pauses.commit(name)

    def discard_pause(self, *, conversation: str | None = None) -> bool:
        """Throw the wind-down away; whether there was one.

        `conversation` is the agent's session that does: that of another which still lives is refused.
        """
        try:
            with log.locked(self._journal):
                if not self.is_orphaned():
                    self._refuse_another(conversation, _KEPT_WORK)
                self._journal.unlink()
                log.torn_path(self._journal).unlink(missing_ok=True)
                self._forget_start()
                sync_folder(self._journal.parent)
        except log.NotActiveError:
            return False
        return True

    def is_orphaned(self) -> bool:
        """Whether the wind-down was left behind by a process that is gone."""
        return self.is_pause_active() and not is_alive(self._owner_of(self._session_id()))

    def continue_pause(self) -> str:
        """Take over an orphaned wind-down and go on appending to it; returns its session id."""
        name = self._session_id()
        self._own(name)
        return name

    @property
    def _owner_file(self) -> Path:
        return self.layout.state / "winddown-owner.json"

    def _own(self, name: str) -> None:
        self._write_owner({**self._owner_record(name), "session_id": name, **identify(self._owner)})

    def _write_owner(self, record: dict[str, Any]) -> None:
        with storage_errors("record who is winding down"):
            keep_if_damaged(self._owner_file, lambda data: json.loads(data)["session_id"])
            replace_file(self._owner_file, json.dumps(record).encode())

    def _owner_of(self, name: str) -> ProcessIdentity:
        """Who started or took over that wind-down; nobody (process 0) where it is not known."""
        record = self._owner_record(name)
        try:
            return {"pid": int(record["pid"]), "started": record["started"]}
        except (ValueError, KeyError, TypeError, OverflowError):
            return {"pid": 0, "started": None}  # no word on the owner reads as: gone

    def _owner_record(self, name: str) -> dict[str, Any]:
        """Empty where nothing is recorded of that wind-down."""
        try:
            record = json.loads(read_file(self._owner_file))
        except (OSError, ValueError, RecursionError):
            return {}
        is_its = isinstance(record, dict) and cast("dict[str, Any]", record).get("session_id") == name
        return cast("dict[str, Any]", record) if is_its else {}

    @property
    def _pauses(self) -> SessionPauseManager:
        from holdfast.sessions.pause import SessionPauseManager

        return SessionPauseManager(settings=self.settings, clock=self._clock)

    def _line(self, kind: str, data: bytes, share: float, name: str) -> bytes:
        """The data is encoded before the journal is locked."""
        return formats.journal_line(kind, iso(self._clock()), name, data, share)

    def _session_id(self) -> str:
        """The active wind-down's id, from its first line; a journal without one is named by its age."""
        try:
            with open_file(self._journal) as file:
                return self._valid_name(formats.journal_session(file.read(formats.JOURNAL_HEAD)))
        except FileNotFoundError:
            raise log.NotActiveError("no wind-down is active here") from None

    def _valid_name(self, name: str | None) -> str:
        return name if name and is_session_id(name) else session_id(self._journal.stat().st_mtime)

    def _name_for_files(self, digest: Digest) -> str:
        """The journal's own id, unless a session of that name is already there."""
        name = self._valid_name(digest.first.session_id if digest.first else None)
        taken = any(self.layout.sessions.glob(f"{name}.*")) or summary.find_archive(
            self.layout.sessions, name
        )
        return self._files.free_session_id(self._clock()) if taken else name

    def _closing_action(self, digest: Digest, name: str) -> PauseAction:
        share = digest.last.context_percentage if digest.last else 0.0
        data: dict[str, Any] = {
            "action_count": digest.action_count + 1,
            "tool_calls": digest.by_type["tool_call"],
            "duration_seconds": self._seconds_since(digest.first),
        }
        return PauseAction("pause_finalized", iso(self._clock()), name, data, share)

    def _facts(
        self,
        digest: Digest,
        recorded: ActionTexts,
        skipped: int,
        name: str,
        trigger: Trigger | None,
        reason: str | None,
    ) -> Facts:
        from holdfast.model.usage import UsageMetrics
        from holdfast.sessions.transitions import Facts

        window = self._window(digest)
        share = digest.context_range[1]
        used = round(share * window)
        return Facts(
            trigger=trigger or self._trigger(digest.context_range[0]),
            reason=reason,
            session_id=name,
            usage=UsageMetrics(
                tokens_used=used,
                tokens_remaining_estimate=max(0, window - used),
                context_utilization=share,
                tool_calls=digest.by_type["tool_call"],
                session_duration_seconds=round(digest.duration_seconds),
            ),
            incremental_pause=journal_in_snapshot(digest, recorded, skipped),
            # From its first moment: another session that ends now takes along what is nobody's.
            conversation=_conversation_of(_initial_state(digest)) or self._noted_as(self._session_id()),
        )

    def _trigger(self, share_at_start: float) -> Trigger:
        from holdfast.model.policy import Level

        return "exhaustion" if self.settings.levels.at(share_at_start) >= Level.AUTO_PAUSE else "pause"

    def _window(self, digest: Digest) -> int:
        """The model's window: as the state at the start tells it, else as configured."""
        told = _initial_state(digest)
        for key in ("context_window", "tokens_total"):
            window = told.get(key)
            if isinstance(window, int) and window > 0:
                return window
        model = told.get("model")
        return self.settings.context_window or context_window(model if isinstance(model, str) else None)

    def _seconds_since(self, first: PauseAction | None) -> int:
        if first is None:
            return 0
        try:
            return max(0, round(seconds_between(first.timestamp, iso(self._clock()))))
        except ValueError:
            return 0

    def _compress_old_archives(self) -> None:
        """Housekeeping after the work is safe; its failure is not the pause's."""
        before = self._clock() - self.settings.compress_after_days * _DAY
        try:
            with self._files.locked():
                summary.compress_older(self.layout.sessions, before)
        except (OSError, HoldfastError) as error:
            _logger.warning("old journals were not compressed: %s", error)


def taken_in(actions: Iterable[PauseAction]) -> tuple[Digest, ActionTexts]:
    """A journal, read once: what it amounts to, and what its actions say."""
    digest, recorded = Digest(), ActionTexts(_is_rule, _by_user)
    for action in actions:
        digest.add(action)
        recorded.add(action)
    return digest, recorded


def journal_in_snapshot(digest: Digest, recorded: ActionTexts, skipped: int) -> IncrementalPause:
    from holdfast.model.snapshot import ActionGlimpse, IncrementalPause
    from holdfast.model.snapshot import RecordedWords as Stored

    agent_session = _initial_state(digest).get("agent_session")
    return IncrementalPause(
        action_count=digest.action_count,
        duration_seconds=round(digest.duration_seconds),
        context_range=digest.context_range,
        tool_calls=digest.by_type["tool_call"],
        actions_summary=tuple(
            ActionGlimpse(type=action.type, timestamp=action.timestamp) for action in digest.latest
        ),
        recorded=tuple(
            Stored(
                type=one.type,
                timestamp=one.timestamp,
                text=one.text,
                rule=one.rule,
                from_hook=one.from_hook,
            )
            for one in recorded.kept()
        ),
        said_dropped=recorded.said_dropped,
        others_dropped=recorded.others_dropped,
        agent_session=agent_session if isinstance(agent_session, str) else None,
        skipped_lines=skipped,
    )


def _initial_state(digest: Digest) -> dict[str, Any]:
    state: Any = digest.first.data.get("initial_state") if digest.first else None
    return cast("dict[str, Any]", state) if isinstance(state, dict) else {}


def _conversation_of(state: dict[str, Any]) -> str | None:
    told = (state.get(key) for key in ("conversation", "agent_session"))
    return next((one for one in told if isinstance(one, str)), None)


def _holds_something(digest: Digest) -> bool:
    """Whether the journal tells of anything but its own start and end. In doubt, it does."""
    of_itself = digest.by_type["pause_started"] + digest.by_type["pause_finalized"]
    return digest.action_count > of_itself or not _SAYS_NOTHING.issuperset(_initial_state(digest))


def _is_rule(text: str) -> bool:
    from holdfast.findings.rules.conversation import CONSTRAINT

    return CONSTRAINT.search(text) is not None


def _by_user(text: str) -> str:
    from holdfast.transcripts.fields import told

    words, is_programs = told(text)
    return "" if is_programs else words


def _as_json(data: dict[str, Any]) -> bytes:
    if not isinstance(data, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInputError("an action's data must be an object (a dict)")
    from holdfast.base.redact import redact  # its patterns take a while, and looking needs none

    try:
        return log.encode(data, clean=lambda text: redact(text)[0])
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the action's data cannot be serialised as JSON: {error}") from None
