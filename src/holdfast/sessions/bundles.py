"""Sessions of a project into a bundle, and out of one into another project."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.durable import read_file, replace_file, storage_errors, write_new
from holdfast.base.errors import CannotDoError, DamagedDataError, HoldfastError, NotFoundError
from holdfast.base.ids import new_id
from holdfast.base.text import Progress, each, untold
from holdfast.journal.summary import archive_name
from holdfast.model.base import ITEM_SESSION_SCHEMA, explain
from holdfast.model.entry import SnapshotImported
from holdfast.model.item_session import (
    STATE_CLASSES,
    AuditSessionState,
    ImproveSessionState,
    ItemSessionState,
    SessionType,
    merged_audit,
    same_session,
)
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import ACTIVE, NEVER_RUN_AGAIN, Workflow
from holdfast.project.formats import forked_name, origin_of
from holdfast.project.settings import Settings
from holdfast.sessions.pause import keep_end, open_store, remember_project
from holdfast.sessions.standing import may_be_undone
from holdfast.sessions.transitions import Core
from holdfast.sessions.undone import session_of
from holdfast.store.bundle import LARGEST_MEMBER, pack, unpack
from holdfast.store.documents import read_session_document, render_files
from holdfast.store.item_sessions import SessionStateManager
from holdfast.store.protocol import Store
from holdfast.store.session_files import FileSet, SessionFiles
from holdfast.undo.ledger import CarriedTransaction, from_document
from holdfast.undo.transactions import SideCar, UndoLimits

_ORIGINS = "origins.json"
log = logging.getLogger("holdfast.bundles")


@dataclass
class ImportReport:
    sessions: list[str] = field(default_factory=list[str])
    items: list[str] = field(default_factory=list[str])
    transactions: list[str] = field(default_factory=list[str])
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    already_there: list[str] = field(default_factory=list[str])
    merged: list[str] = field(default_factory=list[str])
    """Audits that were here and got ratings from there."""
    kept: list[str] = field(default_factory=list[str])
    """What differs there and stays as it is here."""


def export_bundle(
    settings: Settings,
    only: tuple[str, ...] = (),
    *,
    passphrase: str | None = None,
    for_sharing: bool = False,
    clock: Clock = system_clock,
    progress: Progress = untold,
) -> tuple[bytes, list[str], list[str]]:
    """The bundle, the names of the sessions in it, and what is wrong with those that nobody could import.

    For sharing, without copies of others' sessions that have another name here: theirs is the original.
    """
    folder = settings.layout.sessions
    files = SessionFiles(folder)
    sessions = files.session_ids() if folder.is_dir() else []
    if sessions:
        _keep_ends(settings, only)
    copies = _origins(settings).keys() if for_sharing else ()
    left_out = [name for name in sessions if copies and _snapshot_id(files, name) in copies]
    sessions = [name for name in sessions if name not in left_out]
    items = sorted(path.name for kind in STATE_CLASSES for path in folder.glob(f"{kind}-session-*.json"))
    for name in only:
        if name not in sessions and not any(item.endswith(f"-session-{name}.json") for item in items):
            raise NotFoundError(f"no such session here: {name}", hint="`holdfast snapshot list` shows them")
    sessions = [name for name in sessions if not only or name in only]
    items = [
        item for item in items if not only or any(item.endswith(f"-session-{name}.json") for name in only)
    ]
    if not sessions and not items:
        raise NotFoundError("no sessions to export here", hint="`holdfast snapshot list --all`")
    manager = SessionStateManager(settings.project, passphrase=lambda: passphrase)
    if items and manager.is_encrypted and passphrase is None:
        raise CannotDoError(
            "the sessions are stored encrypted; an unencrypted bundle would expose them",
            hint="use --encrypt with the same passphrase",
        )
    with storage_errors("read the sessions"):
        members, damaged = _readable(settings, files, sessions, progress)
        for item in items:
            members[f"items/{item}"] = manager.document(item)
    sessions = [name for name in sessions if name not in damaged]
    if damaged and (only or for_sharing or not (sessions or items)):
        # What was pushed before is whole, and would be replaced.
        raise DamagedDataError(next(iter(damaged.values())), hint="nothing was exported; restore the file")
    others = {f"sessions/{name}.json": read_file(folder / f"{name}.json") for name in left_out}
    members |= _transactions(settings, members if only else None, others, progress)
    return pack(members, to_datetime(clock()), passphrase), [*sessions, *items], [*damaged.values()]


def _keep_ends(settings: Settings, only: tuple[str, ...]) -> None:
    """A workflow may have ended before its files could tell, or under an older version."""
    try:
        with open_store(settings) as store:
            for one in store.workflows(worktree=settings.worktree, statuses=NEVER_RUN_AGAIN):
                keep_end(store, one, settings.project, only)
    except HoldfastError as error:
        log.warning("the database cannot be read: %s", error.message)


def _readable(
    settings: Settings, files: SessionFiles, names: list[str], progress: Progress
) -> tuple[dict[str, bytes], dict[str, str]]:
    """The files of the sessions that can be read, and what is wrong with the others, by name."""
    members: dict[str, bytes] = {}
    damaged: dict[str, str] = {}
    for name in each(names, "Reading sessions", progress):
        path = files.folder / f"{name}.json"
        try:
            read_session_document(files.read(name), where=str(path))
        except DamagedDataError as error:
            damaged[name] = error.message
            continue
        members[f"sessions/{name}.json"] = read_file(path)
        if (journal := _journal(settings, name)) is not None:
            members[f"journals/{name}.jsonl"] = journal
    return members, damaged


def _transactions(
    settings: Settings, only_of: dict[str, bytes] | None, left_out: dict[str, bytes], progress: Progress
) -> dict[str, bytes]:
    """What these sessions changed in files; of all but those left out, if none are named."""
    found: dict[str, bytes] = {}
    with SideCar(settings.project) as sidecar:
        names = [one.id for one in sidecar.recorded()]
        names = [one for one in names if not any(_is_linked(one, *member) for member in left_out.items())]
        if only_of is not None:
            names = _with_earlier(settings, names, only_of)
        for name in each(names, "Reading changes", progress):
            content = sidecar.carry_out(name)
            if len(content) > LARGEST_MEMBER:
                log.warning("transaction %s is too large for a bundle and was left out", name)
            else:
                found[f"transactions/{name}.json"] = content
    return found


def _with_earlier(settings: Settings, names: list[str], only_of: dict[str, bytes]) -> list[str]:
    """Those of these sessions; of a plan of which something was undone also those of the sessions before,
    and of the plan it was forked from: else its completed tasks would be taken for done."""
    found = {one for one in names if any(_is_linked(one, *member) for member in only_of.items())}
    documents = [_document(*one) for one in only_of.items() if one[0].startswith("sessions/")]
    plans = [(str(one.get("workflow_id")), int(one.get("session_number") or 0)) for one in documents]
    plans = [one for one in plans if may_be_undone(settings.layout.sidecar, one[0])]
    for plan, number in plans:
        own = [one for one in names if one.startswith(f"{plan}-s") and session_of(one, plan) <= number]
        found.update(own)
        plans += [origin for one in own if (origin := origin_of(one)) and origin not in plans]
    return [one for one in names if one in found]


def _is_linked(transaction_id: str, name: str, content: bytes) -> bool:
    if name.startswith("journals/"):
        return False
    document = _document(name, content)
    if name.startswith("items/"):
        return document.get("transaction_id") == transaction_id
    families = [f"{document.get('workflow_id')}-s{document.get('session_number')}"]
    agent = document.get("agent_session")
    if isinstance(agent, dict):
        families.append(f"{agent.get('agent')}-{agent.get('agent_session_id')}")  # pyright: ignore
    return any(transaction_id == one or transaction_id.startswith(f"{one}-") for one in families)


def _journal(settings: Settings, name: str) -> bytes | None:
    plain = settings.layout.sessions / archive_name(name)
    packed = plain.with_name(f"{plain.name}.gz")
    if plain.exists():
        return read_file(plain)
    return gzip.decompress(read_file(packed)) if packed.exists() else None


def import_bundle(
    settings: Settings,
    store: Store,
    data: bytes,
    *,
    passphrase: str | None = None,
    clock: Clock = system_clock,
    progress: Progress = untold,
) -> ImportReport:
    """All of it is checked before the first file is written; what is here already is not written again."""
    members = unpack(data, passphrase)
    sessions = [_session(name, content) for name, content in members.items() if name.startswith("sessions/")]
    items = [_item(name, content) for name, content in members.items() if name.startswith("items/")]
    carried = [
        _carried(settings, name, content)
        for name, content in members.items()
        if name.startswith("transactions/")
    ]
    if sum(one.size for one in carried) > UndoLimits().total:
        raise _refused("its transactions are too large")
    names = {snapshot.session_id for snapshot, _ in sessions}
    for name in members:
        if name.startswith("journals/") and name[len("journals/") : -len(".jsonl")] not in names:
            raise _refused(f"{name} does not belong to any session in it")
    report = ImportReport()
    settings.layout.ensure()
    workflows = _place_sessions(settings, store, sessions, members, report, clock, progress)
    transactions = _place_transactions(settings, carried, workflows, report, clock, progress)
    _place_items(settings, items, transactions, report, clock)
    remember_project(settings)
    return report


def import_sessions(
    settings: Settings,
    store: Store,
    sessions: list[tuple[SessionSnapshot, Workflow]],
    journals: dict[str, bytes],
    clock: Clock = system_clock,
    progress: Progress = untold,
) -> ImportReport:
    """Sessions of another program, whose ids are made from theirs: what is here already is left alone."""
    report = ImportReport()
    settings.layout.ensure()
    clean = [(snapshot.without_secrets(), owner.without_secrets()) for snapshot, owner in sessions]
    members = {f"journals/{name}.jsonl": journal for name, journal in journals.items()}
    _place_sessions(settings, store, clean, members, report, clock, progress)
    remember_project(settings)
    return report


def _session(name: str, content: bytes) -> tuple[SessionSnapshot, Workflow]:
    snapshot, workflow = read_session_document(_document(name, content), where=name)
    if name != f"sessions/{snapshot.session_id}.json" or snapshot.workflow_id != workflow.id:
        raise _refused(f"{name} does not contain the session it declares")
    return snapshot.without_secrets(), workflow.without_secrets()


def _carried(settings: Settings, name: str, content: bytes) -> CarriedTransaction:
    try:
        found = from_document(_document(name, content), settings.project, where=name)
    except DamagedDataError as error:
        raise _refused(error.message) from error
    if name != f"transactions/{found.id}.json":
        raise _refused(f"{name} does not contain the transaction it declares")
    return found


def _item(name: str, content: bytes) -> tuple[SessionType, ItemSessionState]:
    kind: SessionType = "audit" if name.startswith("items/audit-") else "improve"
    upgraded = ITEM_SESSION_SCHEMA.upgrade(_document(name, content), where=name)
    try:
        state = STATE_CLASSES[kind].model_validate(upgraded)
    except ValidationError as error:
        raise _refused(f"{name}: {explain(error)}") from error
    if name != f"items/{kind}-session-{state.session_id}.json":
        raise _refused(f"{name} does not contain the session it declares")
    return kind, state


def _document(name: str, content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _refused(f"{name} is not JSON in UTF-8: {error}") from None
    if not isinstance(document, dict):
        raise _refused(f"{name} is not a JSON object")
    return document  # type: ignore[return-value]


def _place_sessions(
    settings: Settings,
    store: Store,
    sessions: list[tuple[SessionSnapshot, Workflow]],
    members: dict[str, bytes],
    report: ImportReport,
    clock: Clock,
    progress: Progress,
) -> dict[str, str]:
    """Returns the ids of workflows, old to new."""
    files = SessionFiles(settings.layout.sessions)
    workflows: dict[str, str] = {}
    with files.locked():
        origins = _origins(settings)
        here = {_snapshot_id(files, name): name for name in files.session_ids()}
        here |= {origin: here[copy] for copy, origin in origins.items() if copy in here}
        oldest_first = sorted(sessions, key=lambda one: one[0].created_at)
        for snapshot, workflow in each(oldest_first, "Writing sessions", progress):
            old = snapshot.session_id
            journal = members.get(f"journals/{old}.jsonl")
            if snapshot.id in here:
                report.already_there.append(here[snapshot.id])
                _go_on_with(files, store, here[snapshot.id], workflow, workflows)
                continue
            _drop_leftover(files, old, journal)
            fresh, owner = _renamed(files, store, snapshot, workflow, workflows, clock)
            owner = owner.changed(worktree=settings.worktree)
            if fresh.id != snapshot.id:
                origins[fresh.id] = snapshot.id
                replace_file(settings.layout.folder / _ORIGINS, json.dumps(origins).encode())
            if journal is not None:
                write_new(files.folder / archive_name(fresh.session_id), journal)
            files.place(
                FileSet(
                    fresh.session_id,
                    render_files(fresh, owner),
                    becomes_latest=_is_latest(files, fresh, report),
                    to_be_indexed=True,
                )
            )
            report.sessions.append(fresh.session_id)
            if fresh.session_id != old:
                report.renamed[old] = fresh.session_id
    for known in workflows.values():
        if _is_known(store, known):
            keep_end(store, store.workflow(known), settings.project)
    return workflows


def _is_latest(files: SessionFiles, fresh: SessionSnapshot, report: ImportReport) -> bool:
    """The newest that did something, where the latest session here came with the others or there is none."""
    latest = files.latest()
    return latest is None or (fresh.worked and latest in (*report.sessions, *report.already_there))


def _go_on_with(
    files: SessionFiles, store: Store, name: str, workflow: Workflow, workflows: dict[str, str]
) -> None:
    """The rest of an import that was interrupted belongs to the workflow that its first sessions got.

    So does the end that it came to there since. A workflow that began here is ended by no bundle.
    """
    with contextlib.suppress(DamagedDataError):
        document = files.read(name)
        found = str(document.get("workflow_id"))
        begun = store.events(workflow_id=found, limit=2)
        if begun and isinstance(begun[-1].entry, SnapshotImported):
            workflows.setdefault(workflow.id, found)
            Core(store).take_in_end(str(document.get("id")), found, workflow.status)


def _drop_leftover(files: SessionFiles, name: str, journal: bytes | None) -> None:
    """Of a journal that an interrupted import placed without its session: it is about to be placed again."""
    place = files.folder / archive_name(name)
    is_alone = place.exists() and not (files.folder / f"{name}.json").exists()
    if journal is not None and is_alone and journal.startswith(read_file(place)):
        place.unlink()


def _place_transactions(
    settings: Settings,
    carried: list[CarriedTransaction],
    workflows: dict[str, str],
    report: ImportReport,
    clock: Clock,
    progress: Progress,
) -> dict[str, str]:
    """Returns the ids of those that have another one here, old to new."""
    ids: dict[str, str] = {}
    if not carried:
        return ids
    with SideCar(settings.project, clock=clock) as sidecar:
        in_order = sidecar.in_order(sorted(carried, key=lambda one: one.entries[0].at))
        for one in each(list(in_order), "Writing changes", progress):
            wanted = _name_here(one.id, workflows)
            # What a plan that came from there is undone of there, is undone of it here. Else nobody's word
            # on a folder that is not theirs counts.
            follows = any(wanted.startswith(f"{known}-s") for known in workflows.values())
            placed = sidecar.bring_in(one, wanted, ids, follows=follows)
            if placed is None:
                report.already_there.append(one.id)
                continue
            report.transactions.append(placed)
            if placed != one.id:
                ids[one.id] = report.renamed[one.id] = placed
    return ids


def _name_here(name: str, workflows: dict[str, str]) -> str:
    """Of a plan that has another id here."""
    if (origin := origin_of(name)) is not None:
        fork = name.partition("-s")[0]
        return forked_name(workflows.get(fork, fork), workflows.get(origin[0], origin[0]), origin[1])
    for old, new in workflows.items():
        name = name.replace(old, new, 1) if name.startswith(f"{old}-s") else name
    return name


def _origins(settings: Settings) -> dict[str, str]:
    """Snapshots that were taken in under a new id, to the one they have where they come from."""
    place = settings.layout.folder / _ORIGINS
    if not place.exists():
        return {}
    try:
        found = _document(_ORIGINS, read_file(place))
    except DamagedDataError as error:
        raise DamagedDataError(
            f"{place} is damaged",
            hint="delete it; sessions imported under another name may then be imported again",
        ) from error
    return {copy: str(origin) for copy, origin in found.items()}


def _snapshot_id(files: SessionFiles, name: str) -> str:
    try:
        return str(files.read(name).get("id"))
    except DamagedDataError:
        return name


def _renamed(
    files: SessionFiles,
    store: Store,
    snapshot: SessionSnapshot,
    workflow: Workflow,
    workflows: dict[str, str],
    clock: Clock,
) -> tuple[SessionSnapshot, Workflow]:
    """With new ids where the old ones are taken, on this machine or in this folder."""
    if workflow.id not in workflows:
        workflows[workflow.id] = new_id("wf", clock()) if _is_known(store, workflow.id) else workflow.id
    changes: dict[str, Any] = {"workflow_id": workflows[workflow.id]}
    if store.find_snapshots(snapshot.id):
        changes["id"] = new_id("snap", clock())
    if files.is_taken(snapshot.session_id):
        changes["session_id"] = files.free_session_id(snapshot.created_at.timestamp())
    status = "paused" if workflow.status in ACTIVE else workflow.status  # nobody runs it here
    return snapshot.changed(**changes), workflow.changed(id=workflows[workflow.id], status=status)


def _is_known(store: Store, workflow_id: str) -> bool:
    try:
        store.workflow(workflow_id)
    except NotFoundError:
        return False
    return True


def _place_items(
    settings: Settings,
    items: list[tuple[SessionType, ItemSessionState]],
    transactions: dict[str, str],
    report: ImportReport,
    clock: Clock,
) -> None:
    manager = SessionStateManager(settings.project, clock=clock)
    for kind, state in items:
        known = {one.session_id: one for one in manager.list_sessions(kind)}
        ours = known.get(state.session_id)
        if ours is not None and (ours == state or same_session(ours, state)):
            _merge_item(manager, kind, ours, state, report)
            continue
        fresh = state
        if isinstance(state, ImproveSessionState) and state.transaction_id in transactions:
            fresh = state.changed(transaction_id=transactions[state.transaction_id])
        if ours is not None:
            fresh = fresh.changed(session_id=new_id("item", clock()))
            report.renamed[state.session_id] = fresh.session_id
        manager.save_session_state(fresh, kind)
        report.items.append(fresh.session_id)


def _merge_item(
    manager: SessionStateManager,
    kind: SessionType,
    ours: ItemSessionState,
    theirs: ItemSessionState,
    report: ImportReport,
) -> None:
    """Another revision of a session that is here: an audit takes over what it lacks, all else stays."""
    name = ours.session_id
    if not isinstance(ours, AuditSessionState) or not isinstance(theirs, AuditSessionState):
        report.already_there.append(name)
        report.kept += [f"{name}: the progress differs"] if ours != theirs else []
        return
    merged, conflicts = merged_audit(ours, theirs)
    report.kept += [f"{name}: the rating of {item} differs" for item in conflicts]
    if merged == ours:
        report.already_there.append(name)
        return
    manager.save_session_state(merged, kind)
    report.merged.append(name)


def _refused(reason: str) -> DamagedDataError:
    return DamagedDataError(f"the bundle was rejected: {reason}", hint="nothing was written")
