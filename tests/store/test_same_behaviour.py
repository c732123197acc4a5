"""Whatever is done to the store in memory and the one on SQLite, both answer the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast.base.errors import HoldfastError
from holdfast.model.workflow import VALID_TRANSITIONS, Workflow, WorkflowStatus
from holdfast.store.memory import MemoryStore
from holdfast.store.protocol import Change, Store
from holdfast.store.sql import SqlStore
from soak import repeated
from store.samples import NOTE, at, numbered, snapshot, workflow

NAMES = [f"wf_{number}" for number in range(4)]
WORKTREES = ["/one", "/two"]
SNAPSHOTS = [f"snap_{number}" for number in range(5)]
STATUSES: list[WorkflowStatus] = list(VALID_TRANSITIONS)


class Template:
    """A file with the tables in it, made once; each run works on a copy."""

    path: Path | None = None

    @classmethod
    def copy_to(cls, target: Path) -> None:
        if cls.path is None:
            folder = tempfile.TemporaryDirectory(prefix="holdfast-template-")
            cls.folder = folder
            cls.path = Path(folder.name) / "holdfast.db"
            SqlStore(str(cls.path)).close()
        shutil.copy(cls.path, target)


class Stores(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-same-")
        path = Path(self.folder.name) / "holdfast.db"
        Template.copy_to(path)
        self.memory = MemoryStore()
        self.sqlite = SqlStore(str(path))
        self.known: dict[str, Workflow] = {}
        self.moment = 0

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            self.folder.cleanup()

    def apply(self, change: Change) -> None:
        """To both; they agree on what comes of it."""
        outcomes = [self.outcome(store, change) for store in (self.memory, self.sqlite)]
        assert outcomes[0] == outcomes[1]
        if outcomes[0][0] == "recorded":
            self.known[change.workflow.id] = change.workflow

    @staticmethod
    def outcome(store: Store, change: Change) -> tuple[Any, ...]:
        try:
            events = store.apply(change)
        except HoldfastError as error:
            return (type(error), error.message, error.hint)
        return ("recorded", [(event.workflow_id, event.at, event.entry) for event in events])

    def now(self) -> Any:
        self.moment += 1
        return at(self.moment)

    @rule(name=st.sampled_from(NAMES), worktree=st.sampled_from(WORKTREES), status=st.sampled_from(STATUSES))
    def make(self, name: str, worktree: str, status: WorkflowStatus) -> None:
        if name in self.known:
            status = "paused"  # which of two reasons to refuse is told first is the store's affair
        flow = workflow(name, worktree=worktree, status=status, updated_at=self.now())
        self.apply(Change(flow, None, (NOTE,)))

    @precondition(lambda self: self.known)
    @rule(
        pick=st.integers(0, 99),
        status=st.none() | st.sampled_from(STATUSES),
        stale=st.sampled_from([0, 0, 0, 0, 1, -1]),
        entries=st.integers(1, 3),
        save=st.none() | st.tuples(st.sampled_from(SNAPSHOTS), st.integers(1, 3)),
        delete=st.none() | st.none() | st.sampled_from(SNAPSHOTS),
    )
    def change(
        self,
        pick: int,
        status: WorkflowStatus | None,
        stale: int,
        entries: int,
        save: tuple[str, int] | None,
        delete: str | None,
    ) -> None:
        flow = sorted(self.known.values(), key=lambda each: each.id)[pick % len(self.known)]
        after = flow.touched(self.now(), status=status or flow.status)
        saved = snapshot(save[0], of=flow.id, number=save[1], created_at=at(self.moment)) if save else None
        noted = tuple(numbered(self.moment * 10 + number) for number in range(entries))
        self.apply(Change(after, flow.revision + stale, noted, save=saved, delete=delete))

    @invariant()
    def both_tell_the_same(self) -> None:
        if hasattr(self, "sqlite"):
            assert told(self.memory) == told(self.sqlite)


def told(store: Store) -> list[Any]:
    events = store.events()
    middle = events[len(events) // 2].seq if events else 0
    return [
        store.workflows(),
        store.workflows(worktree="/one", limit=2),
        store.workflows(statuses={"paused", "in_progress"}),
        [store.latest_snapshot(name) for name in NAMES],
        [store.snapshots(name) for name in NAMES],
        store.find_snapshots("snap_"),
        store.find_snapshots("snap_1"),
        store.find_snapshots("session-20260106-120002"),
        [(event.workflow_id, event.at, event.entry) for event in events],
        [event.entry for event in store.events(since=middle, limit=3)],
        [event.entry for event in store.events(workflow_id="wf_1", since=middle)],
    ]


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=repeated(15), stateful_step_count=20, deadline=None)
