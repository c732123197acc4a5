"""An improvement run: a plan of items, each proposed, then accepted, edited, skipped or undone.

What is accepted is written through the side-car, as a change of the session's own transaction. Before a file
is written, the session says so on the disk: whatever happens then, resuming tells whether it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.base.clock import to_datetime
from holdfast.base.errors import (
    CannotDoError,
    DamagedDataError,
    HoldfastError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
)
from holdfast.base.faults import fault_point
from holdfast.base.text import Progress, untold
from holdfast.docaudit.audit import AuditOutcome, Pending, PlanItem, text_hash
from holdfast.docaudit.items import CodeItem, analyse
from holdfast.docaudit.languages import Source, SourceError, read_source
from holdfast.docaudit.propose import Proposal, Proposer, style_of
from holdfast.docaudit.search import Analysis, analyse_files, find_files
from holdfast.docaudit.sessions import (
    PATH,
    ItemSessions,
    drift_since,
    fingerprints,
    new_session_id,
)
from holdfast.docaudit.splice import splice
from holdfast.model.git import decode_path
from holdfast.model.item_session import ImproveProgress, ImproveSessionState
from holdfast.model.snapshot import FileFingerprint
from holdfast.model.task import lacks_something
from holdfast.undo.transactions import SideCar
from holdfast.undo.worktree import blob_id


class Improvement:
    """The plan with what became of each item; the current one is the first that is open."""

    def __init__(
        self,
        sessions: ItemSessions,
        sidecar: SideCar,
        state: ImproveSessionState,
        analysis: Analysis,
        plan: Sequence[PlanItem],
    ) -> None:
        self.sessions = sessions
        self.sidecar = sidecar
        self.state = state
        self.analysis = analysis
        self.plan = list(plan)

    # ── beginning and going on ─────────────────────────────────────────────────────────────

    @classmethod
    def start(
        cls,
        sessions: ItemSessions,
        sidecar: SideCar,
        analysis: Analysis,
        plan: Sequence[PlanItem],
        preferences: dict[str, Any],
    ) -> Improvement:
        session_id = new_session_id()
        files = dict.fromkeys(item.filepath for item in plan)
        state = ImproveSessionState(
            session_id=session_id,
            transaction_id=sidecar.begin(session_id).id,
            started_at=sessions.manager.starting_time(),
            file_snapshot=fingerprints(sessions.project, files, clock=sessions.clock),
            user_preferences=preferences,
            config={PATH: sessions.scope},
        )
        improvement = cls(sessions, sidecar, state, analysis, plan)
        improvement._save(improvement.plan)
        return improvement

    @classmethod
    def resume(
        cls,
        sessions: ItemSessions,
        sidecar: SideCar,
        state: ImproveSessionState,
        progress: Progress = untold,
    ) -> tuple[Improvement, list[str]]:
        plan = _read_plan(state)
        _check_transaction(sessions, sidecar, state)
        files = find_files(sessions.project, sessions.scope)
        analysis = analyse_files(sessions.project, files, progress=progress)
        improvement = cls(sessions, sidecar, state, analysis, plan)
        notices = improvement._catch_up()
        improvement._go_on()
        return improvement, notices

    def _go_on(self) -> None:
        """After a committed transaction, in a new one that continues it; if there is anything left to do."""
        if self.current is None:
            return
        going_on = self.sidecar.resume(self.state.transaction_id).id
        if going_on != self.state.transaction_id:
            before = self.state.transaction_id
            self.state = self.state.changed(transaction_id=going_on, continued_from=before)
            self._save(self.plan)

    def _catch_up(self) -> list[str]:
        """Take in what happened since the last save: to our own last write, to our changes, to the files."""
        notices: list[str] = []
        snapshot = dict(self.state.file_snapshot)
        plan = [self._settled(item, snapshot, notices) for item in self.plan]
        standing = {
            change.id
            for transaction in self.sidecar.transactions()
            if transaction.session_id == self.state.session_id
            for change in transaction.changes
        }
        taken_back = [one for one in plan if one.change_id is not None and one.change_id not in standing]
        for item in taken_back:
            notices.append(
                f"the documentation of {item.name} has been undone in the meantime; it is open again"
            )
        plan = [_reopened(item) if item in taken_back else item for item in plan]
        for item in plan:
            if item.withheld and item.outcome is None:
                notices.append(
                    f"the text for {item.name} contained a secret and was not saved: write it again"
                )
        drift = drift_since(self.sessions.project, snapshot, self._present(plan), clock=self.sessions.clock)
        left = [item for item in plan if self._still_there(item, drift.modified, drift.deleted, notices)]
        left = [_changed_under(item) if item.filepath in drift.modified else item for item in left]
        self._save(left, drift.snapshot)
        return notices

    def _present(self, plan: Sequence[PlanItem]) -> list[str]:
        known = set(self.analysis.files)
        return [path for path in dict.fromkeys(item.filepath for item in plan) if path in known]

    def _settled(self, item: PlanItem, snapshot: dict[str, FileFingerprint], notices: list[str]) -> PlanItem:
        """The write that a crash came into: done, with the change that holds it, or not done."""
        if item.pending is None:
            return item
        try:
            data = read_source(self.sessions.project, item.filepath).data
        except SourceError:
            return item.changed(pending=None)
        if _sha256(data) != item.pending.after:
            return item.changed(pending=None)
        snapshot.update(fingerprints(self.sessions.project, [item.filepath], clock=self.sessions.clock))
        notices.append(f"the documentation of {item.name} was written before the interruption")
        return item.changed(
            pending=None,
            outcome="accepted",
            change_id=self._change_that_wrote(item, data),
            step=self._next_step,
        )

    def _change_that_wrote(self, item: PlanItem, data: bytes) -> str | None:
        changes = self.sidecar.transaction(self.state.transaction_id).changes
        written = blob_id(data)
        for change in reversed(changes):
            for path in change.changes:
                if path.path == item.filepath and path.after is not None and path.after.oid == written:
                    return change.id
        return None

    def _still_there(
        self, item: PlanItem, modified: Sequence[str], deleted: Sequence[str], notices: list[str]
    ) -> bool:
        if item.outcome == "accepted":
            return True
        if item.filepath in deleted:
            notices.append(f"{item.name} was dropped: {item.filepath} was deleted or excluded")
            return False
        if item.filepath not in modified:
            return True
        today = next((one for one in self.analysis.in_file(item.filepath) if one.name == item.name), None)
        if today is None:
            notices.append(f"{item.name} was dropped: it is no longer in {item.filepath}")
            return False
        if today.documentation is not None and text_hash(today.documentation) != item.documented:
            notices.append(f"{item.name} was dropped: it has been documented in the meantime")
            return False
        return True

    # ── questions ──────────────────────────────────────────────────────────────────────────

    @property
    def current(self) -> PlanItem | None:
        return next((item for item in self.plan if item.outcome is None), None)

    @property
    def done(self) -> int:
        return sum(item.outcome is not None for item in self.plan)

    @property
    def _next_step(self) -> int:
        return max((item.step for item in self.plan), default=0) + 1

    def look(self, item: PlanItem) -> tuple[Source, CodeItem]:
        """The file and the item in it, as they are now."""
        source = read_source(self.sessions.project, item.filepath)
        today = next((one for one in analyse(source) if one.name == item.name), None)
        if today is None:
            raise NotFoundError(f"{item.name} is no longer in {item.filepath}", hint="skip this item")
        return source, today

    # ── what the user decides ──────────────────────────────────────────────────────────────

    def propose(self, item: PlanItem, proposer: Proposer, wish: str = "") -> Proposal:
        """Ask, and keep the answer: an interruption does not have it asked again."""
        source, today = self.look(item)
        chosen = self.state.user_preferences.get("style")
        style = style_of(self.analysis.items, today, chosen=chosen)
        found = proposer.propose(today, source, style, before=item.proposal if wish else None, wish=wish)
        if found.text is not None:
            self.keep(item, found.text)
        return found

    def keep(self, item: PlanItem, text: str) -> PlanItem:
        return self._put(item.changed(proposal=text))

    def accept(self, item: PlanItem, text: str) -> None:
        """Write it into the file; a refusal leaves file and item as they are."""
        source = read_source(self.sessions.project, item.filepath)
        spliced = splice(source, item.name, text)
        pending = Pending(before=_sha256(source.data), after=_sha256(spliced.data))
        item = self._put(item.changed(proposal=text, pending=pending))
        fault_point("docs.pending")
        try:
            entry = self.sidecar.write(
                self.state.transaction_id,
                decode_path(item.filepath),
                source.data,
                spliced.data,
                f"Document {item.name}",
            )
        except HoldfastError:
            self._put(item.changed(pending=None))
            raise
        fault_point("docs.written")
        today = fingerprints(self.sessions.project, [item.filepath], clock=self.sessions.clock)
        self._decide(item.changed(pending=None, change_id=entry.id), "accepted", today)

    def skip(self, item: PlanItem) -> None:
        self._decide(item, "skipped")

    def undo(self) -> PlanItem | None:
        """Open the item that was decided last; what was written for it is taken out of the file again."""
        decided = [item for item in self.plan if item.outcome is not None]
        if not decided:
            return None
        last = max(decided, key=lambda item: item.step)
        today: dict[str, FileFingerprint] = {}
        if last.change_id is not None:
            self.sidecar.undo(last.change_id, doubtful=True)
            fault_point("docs.undone")
            today = fingerprints(self.sessions.project, [last.filepath], clock=self.sessions.clock)
        return self._put(_reopened(last), today)

    def finish(self) -> None:
        """All is decided: the changes are meant to stay, and can still be undone."""
        if self.current is None and self.state.completed_at is None:
            if self.sidecar.transaction(self.state.transaction_id).status == "in-progress":
                self.sidecar.commit(self.state.transaction_id)
            fault_point("docs.committed")
            self.state = self.state.changed(completed_at=to_datetime(self.sessions.clock()))
            self._save(self.plan)

    def count(self, outcome: AuditOutcome) -> int:
        return sum(item.outcome == outcome for item in self.plan)

    # ── keeping ────────────────────────────────────────────────────────────────────────────

    def _decide(
        self, item: PlanItem, outcome: AuditOutcome, files: dict[str, FileFingerprint] | None = None
    ) -> None:
        self._put(item.changed(outcome=outcome, step=self._next_step), files)

    def _put(self, item: PlanItem, files: dict[str, FileFingerprint] | None = None) -> PlanItem:
        same: Callable[[PlanItem], bool] = lambda one: (one.filepath, one.name) == (item.filepath, item.name)  # noqa: E731
        self._save(
            [item if same(one) else one for one in self.plan], {**self.state.file_snapshot, **(files or {})}
        )
        return item

    def _save(self, plan: list[PlanItem], snapshot: dict[str, FileFingerprint] | None = None) -> None:
        done = sum(item.outcome is not None for item in plan)
        accepted = sum(item.outcome == "accepted" for item in plan)
        state = self.state.changed(
            plan_items=tuple(_for_disk(item).model_dump(mode="json") for item in plan),
            current_index=done,
            progress=ImproveProgress(accepted=accepted, skipped=done - accepted),
            file_snapshot=self.state.file_snapshot if snapshot is None else snapshot,
            completed_at=self.state.completed_at if done == len(plan) else None,
        )
        self.sessions.manager.save_session_state(state, "improve")
        self.state, self.plan = state, plan


def accept_all(session: Improvement, proposer: Proposer) -> dict[str, str]:
    """Each item once; those without a usable proposal are skipped, and the reasons told."""
    failures: dict[str, str] = {}
    while (item := session.current) is not None:
        failure = None
        try:
            text = item.proposal
            if text is None:
                found = session.propose(item, proposer)
                text, failure = found.text, found.failure
            if text is not None:
                session.accept(item, text)
        except (CannotDoError, InvalidInputError) as error:
            failure = error.message
        if failure:
            failures[f"{item.filepath}:{item.name}"] = failure
            session.skip(item)
    return failures


def _read_plan(state: ImproveSessionState) -> list[PlanItem]:
    try:
        return [PlanItem.model_validate(_without_copy(item)) for item in state.plan_items]
    except ValueError as error:
        raise DamagedDataError(
            f"the plan of session {state.session_id} has an unknown format",
            hint="start over with --new",
        ) from error


def _without_copy(item: dict[str, Any]) -> dict[str, Any]:
    """Before proposals were withheld, a copy without their secrets was kept: that is nothing to write."""
    is_copy = "withheld" not in item and lacks_something(item.get("proposal"))
    return {**item, "proposal": None, "withheld": True} if is_copy else item


def _for_disk(item: PlanItem) -> PlanItem:
    """A proposal with a secret is left out: a copy without it would be written into the file one day."""
    if item.proposal is None:
        return item
    lacks = item.without_secrets().proposal != item.proposal
    return item.changed(proposal=None if lacks else item.proposal, withheld=lacks)


def _check_transaction(sessions: ItemSessions, sidecar: SideCar, state: ImproveSessionState) -> None:
    """A session whose transaction is gone or was rolled back cannot go on; the error names what helps."""
    hint = f"`holdfast docs improve {sessions.scope} --new`; `holdfast sessions list` shows the others"
    try:
        transaction = sidecar.transaction(state.transaction_id)
    except NotFoundError as error:
        raise NotFoundError(
            f"{error.message}; session {state.session_id} cannot be resumed", hint=hint
        ) from error
    if transaction.status == "rolled-back":
        raise IllegalTransitionError(
            f"cannot resume session {state.session_id}: transaction {transaction.id} has been rolled back",
            hint=hint,
        )


def _reopened(item: PlanItem) -> PlanItem:
    return item.changed(outcome=None, change_id=None, pending=None, step=0)


def _changed_under(item: PlanItem) -> PlanItem:
    """In a file that changed: what was proposed or skipped was about other code."""
    return item if item.outcome == "accepted" else _reopened(item).changed(proposal=None)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
