"""After the pause is safe: add what the agent's talk tells. All of this may fail and costs only itself."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from holdfast.base.clock import iso
from holdfast.base.errors import HoldfastError
from holdfast.findings import records
from holdfast.findings.rules.trail import only_looked
from holdfast.model.findings import Decision, ErrorRecord, ModelReading
from holdfast.model.gathered import Gathered, LastStep, StoppingPoint, Turn
from holdfast.model.message import asks_nothing_new
from holdfast.model.snapshot import SessionSnapshot
from holdfast.project.settings import Settings
from holdfast.resume.ledger import corrected
from holdfast.resume.snapshots import ResumeContextCompiler, ledger_at
from holdfast.sessions.compaction import facts_of
from holdfast.sessions.contexts import ReadSession, read_session
from holdfast.sessions.pause import open_store, write_again
from holdfast.sessions.threads import (
    Folder,
    asks_to_go_on,
    begins_by_going_on,
    is_aside,
    open_because,
)
from holdfast.sessions.transitions import Core
from holdfast.store.protocol import Store
from holdfast.store.session_files import SessionFiles

log = logging.getLogger("holdfast.enrich")


def enrich_snapshot(
    settings: Settings,
    snapshot_id: str,
    transcript: Path,
    agent: str | None = None,
    session_id: str | None = None,
    told: Mapping[str, Any] = MappingProxyType({}),
    cut_off: LastStep | None = None,
) -> SessionSnapshot:
    """Read the transcript and add what it tells to the snapshot, in the database and in its files.

    `told` are further fields of the snapshot, which stand in no transcript; `cut_off` is the last call
    of a session that was killed.
    """
    session = read_session(transcript, agent, session_id)
    if cut_off is not None:
        session = replace(session, found=_stopped_in(session.found, cut_off))
    return add_conversation(settings, snapshot_id, session, told)


def add_conversation(
    settings: Settings, snapshot_id: str, session: ReadSession, told: Mapping[str, Any]
) -> SessionSnapshot:
    """Add what the conversation tells, and further fields, to the snapshot and to its files."""
    with open_store(settings) as store:
        core = Core(store)
        snapshot = store.snapshot(snapshot_id)
        session = replace(session, found=_with_what_was_wanted(session.found, store, told))
        decisions, errors, reading = _findings(settings, session, snapshot)
        enriched = core.enrich(
            snapshot_id,
            decisions,
            errors,
            gathered=session.found,
            # What a model read in a shorter record would be told as of now.
            reading=reading or (ModelReading() if snapshot.reading else None),
            test_state=records.test_state(session.found, snapshot.created_at),
            reviewer_feedback=records.feedback(session.found, snapshot.created_at),
            **told,
        )
        workflow = store.workflow(enriched.workflow_id)
        report = ResumeContextCompiler().compile_with_report(enriched, workflow.issue).fidelity
        enriched = core.enrich(snapshot_id, fidelity=report)
        _rewrite_files(settings, store, snapshot_id)
    return enriched


def _with_what_was_wanted(found: Gathered, store: Store, told: Mapping[str, Any]) -> Gathered:
    """Of a session that began with a mere "go on": with the goal and the rules of what it took up."""
    name = told.get("continues")
    if not name or not begins_by_going_on(found):
        return found
    if asks_to_go_on(found) and only_looked(found, however_it_ended=True):
        return found  # of one that came to nothing, that handover is the one to read
    lines = [line for line in store.find_snapshots(str(name)) if line.session_id == name]
    before = store.snapshot(lines[0].id).gathered if len(lines) == 1 else None
    if before is None or not before.turns:
        return found
    rules = [turn.said for turn in before.turns if turn.constraint]
    first, *others = found.turns
    if before.stop.kind == "asked" and not first.asked:
        first = replace(first, asked=before.stop.words)
    return replace(
        found,
        constraints=tuple(dict.fromkeys((*before.constraints, *rules, *found.constraints))),
        # before all that is its own
        turns=(replace(_asked_for(before.turns), index=-1, asked="", after=""), first, *others),
    )


def _asked_for(turns: tuple[Turn, ...]) -> Turn:
    return next((turn for turn in reversed(turns) if not _says_little(turn)), turns[-1])


def _says_little(turn: Turn) -> bool:
    return asks_nothing_new(turn.said) or asks_to_go_on(Gathered(turns=(replace(turn, index=0),)))


def _stopped_in(found: Gathered, call: LastStep) -> Gathered:
    """Unless the record has a call without result itself, or the result of one like this."""
    ended = any(step.outcome and step.text.endswith(call.target) for step in found.happened)
    if found.stop.calls or ended or not call.target or "[redacted" in call.target:
        return found
    return replace(found, stop=StoppingPoint("in_flight", calls=(call,)))


def add_to_snapshot(settings: Settings, snapshot_id: str, told: Mapping[str, Any]) -> SessionSnapshot:
    """Add these fields alone."""
    with open_store(settings) as store:
        enriched = Core(store).enrich(snapshot_id, **told)
        _rewrite_files(settings, store, snapshot_id)
    return enriched


def join_conversation(
    settings: Settings, name: str, conversation: str | None, alive: Collection[str]
) -> None:
    """Give a wind-down, in which no talk is recorded, what was gathered of the talk that it belongs to.

    Without it, it would hide the goal and the rules of that session. `conversation` is known where
    an agent ran this; of agents that are `alive`, one may be at work on something else.
    """
    snapshot_id = str(SessionFiles(settings.layout.sessions).read(name)["id"])
    with open_store(settings) as store:
        snapshot = store.snapshot(snapshot_id)
        conversation = conversation or snapshot.conversation or _recorded_by(snapshot)
        before = None if snapshot.gathered else _talk_before(store, settings, snapshot, conversation, alive)
    told: dict[str, Any] = {"conversation": conversation} if conversation else {}
    if before is not None:
        told = {"gathered": before.gathered, "handover": before.handover, "conversation": before.conversation}
    if told:
        add_to_snapshot(settings, snapshot.id, told)


def _recorded_by(snapshot: SessionSnapshot) -> str | None:
    return snapshot.incremental_pause.agent_session if snapshot.incremental_pause else None


def _talk_before(
    store: Store,
    settings: Settings,
    snapshot: SessionSnapshot,
    conversation: str | None,
    alive: Collection[str],
) -> SessionSnapshot | None:
    """The newest session of this folder with talk in it: of that conversation; where none is known, one that
    ended while this wind-down went on, or that left work open on its branch."""
    flows = store.workflows(worktree=settings.worktree)
    lines = sorted(
        (line for flow in flows for line in store.snapshots(flow.id) if line.id != snapshot.id),
        key=lambda line: line.place,
        reverse=True,
    )
    for line in lines[:_LOOKED_AT]:
        before = store.snapshot(line.id)
        if not before.worked or before.gathered is None or before.task_dag.tasks or is_aside(before):
            continue
        if conversation is not None:
            if before.conversation == conversation:
                return before
            continue
        is_at_hand = before.conversation is not None and set(alive) <= {before.conversation}
        return before if is_at_hand and _goes_on_with(snapshot, before, settings) else None
    return None


_LOOKED_AT = 20


def _goes_on_with(snapshot: SessionSnapshot, before: SessionSnapshot, settings: Settings) -> bool:
    branch, then = (one.git_state.branch if one.git_state else None for one in (snapshot, before))
    if branch != then or snapshot.task_dag.tasks:
        return False
    pause = snapshot.incremental_pause
    noted = [one.timestamp for one in (*pause.recorded, *pause.actions_summary)] if pause else []
    ended_meanwhile = bool(noted) and min(noted) <= iso(before.created_at.timestamp())
    return ended_meanwhile or bool(open_because(before, Folder(settings.worktree)))


def with_handover(settings: Settings, snapshot_id: str, words: str) -> SessionSnapshot:
    """Add the agent's own words; a claim that the record contradicts is corrected in them."""
    with open_store(settings) as store:
        snapshot = store.snapshot(snapshot_id)
    checked, _ = corrected(words, ledger_at(snapshot))
    return add_to_snapshot(settings, snapshot_id, {"handover": checked})


def _findings(
    settings: Settings, session: ReadSession, snapshot: SessionSnapshot
) -> tuple[list[Decision], list[ErrorRecord], ModelReading | None]:
    """By rule over the whole session; where a model is set, what it makes of the newest messages as well."""
    source = session.report.session_id or "transcript"
    found, now = session.found, snapshot.created_at
    by_rule = list(records.decisions(found, source, now)), list(records.errors(found, source, now))
    if settings.model is None:
        return *by_rule, None
    from holdfast.findings.by_model import DecisionExtractor
    from holdfast.findings.model_exchange import KnownFacts

    extraction = DecisionExtractor(
        settings.model,
        base_url=settings.model_url,
        time_limit=settings.model_time_limit,
        by_rule=lambda _messages: by_rule,
        source=source,
        known=KnownFacts(
            facts=tuple(_known(snapshot.changed(gathered=found))),
            open_errors=tuple(one for one in by_rule[1] if one.resolution == "unresolved")[-_OPEN_ERRORS:],
        ),
    ).examine_sync(session.recent)
    if extraction.model_failure:
        log.warning("nothing was added by the model: %s", extraction.model_failure)
    return extraction.decisions, extraction.errors, extraction.reading


def _known(snapshot: SessionSnapshot) -> Iterator[str]:
    """What the model need not be asked, and the edits that it is asked about."""
    for fact in facts_of(snapshot):
        yield fact.text
    for edit in snapshot.gathered.edits[-_EDITS:] if snapshot.gathered else ():
        yield f"One of the newest edits, in {edit.path}: {edit.new}"


_EDITS = 3
_OPEN_ERRORS = 10


def _rewrite_files(settings: Settings, store: Store, snapshot_id: str) -> None:
    files = SessionFiles(settings.layout.sessions)
    with files.locked():  # and read there, or it could undo what somebody else wrote meanwhile
        write_again(store, files, snapshot_id)


# ── in the background ─────────────────────────────────────────────────────────────────────────────

# After a pause is safe: what the agent's own transcript tells is added to the snapshot, in its own time.


def enrich_later(settings: Settings, snapshot: SessionSnapshot, worktree: Path) -> threading.Thread | None:
    """Nobody waits for it, and what fails in it costs only the findings. None without a transcript."""
    session = snapshot.agent_session
    if session is None or session.transcript is None:
        return None
    transcript, agent = Path(session.transcript), session.agent
    one_of_many = (
        session.agent_session_id if agent == "opencode" else None
    )  # it keeps all its sessions in one database

    def enrich() -> None:
        try:
            enrich_snapshot(replace(settings, project=worktree), snapshot.id, transcript, agent, one_of_many)
        except HoldfastError as error:
            log.warning("nothing was added from the transcript: %s", error.message)
        else:
            if snapshot.handover:  # its claims can be checked now
                with_handover(replace(settings, project=worktree), snapshot.id, snapshot.handover)

    thread = threading.Thread(target=enrich, name="holdfast-enrich")
    thread.start()
    return thread
