"""Saving and loading a snapshot of a large workflow, against LangGraph's SQLite checkpointer.

LangGraph stores what it is given and gives back what it stored. Given a plain dict it
returns a plain dict, unchecked; Holdfast starts from and returns a checked `SessionSnapshot`. So
three figures stand side by side: LangGraph with the snapshot object itself, LangGraph with
the dict made from the snapshot and turned back into one, and LangGraph with the dict alone.
The bar is on those two that end with what Holdfast ends with.
"""

from __future__ import annotations

from pathlib import Path

from large_workflow import PydanticSnapshot, large_snapshot, paused_workflow
from measure import Figure, Subject, Timing, alone, compared, interleave, scratch_folder
from peers.langgraph_saver import Checkpointer

from holdfast.model.entry import WorkflowPaused
from holdfast.model.snapshot import SessionSnapshot
from holdfast.store.protocol import Change
from holdfast.store.sql import SqlStore

TOPIC = "snapshot"
BAR = 0.5


class _Ours:
    """One workflow that is paused again and again, each time with a new snapshot."""

    def __init__(self, database: Path, snapshot: SessionSnapshot) -> None:
        self._store = SqlStore(str(database))
        self._snapshot = snapshot
        self._workflow = paused_workflow(snapshot.workflow_id)
        self._store.apply(Change(self._workflow, None, (_paused(snapshot),)))
        self._next: Change | None = None

    def prepare(self) -> None:
        """The next pause as `settle` would hand it over, with nothing counted or cached yet."""
        number = self._workflow.revision
        snapshot = SessionSnapshot.model_validate(
            {**self._snapshot.model_dump(), "id": f"snap-{number:06d}", "session_number": number}
        )
        after = self._workflow.touched(self._workflow.updated_at)
        self._next = Change(after, self._workflow.revision, (_paused(snapshot),), save=snapshot)

    def save(self) -> None:
        assert self._next is not None
        self._store.apply(self._next)
        self._workflow = self._next.workflow

    def load(self) -> SessionSnapshot:
        assert self._next is not None
        assert self._next.save is not None
        return self._store.snapshot(self._next.save.id)

    def save_and_load(self) -> None:
        self.save()
        self.load()

    def check(self) -> None:
        self.prepare()
        self.save()
        assert self._next is not None
        assert self.load() == self._next.save

    def close(self) -> None:
        self._store.close()


def _paused(snapshot: SessionSnapshot) -> WorkflowPaused:
    return WorkflowPaused(
        snapshot_id=snapshot.id,
        session_id=snapshot.session_id,
        session_number=snapshot.session_number,
        trigger=snapshot.trigger,
    )


class _Theirs:
    """The same state through LangGraph, in the three ways one may hand it over."""

    def __init__(self, database: Path, snapshot: SessionSnapshot) -> None:
        self._saver = Checkpointer(database, allowed=PydanticSnapshot)
        self._document = snapshot.model_dump(mode="json")
        self._snapshot = PydanticSnapshot.model_validate(self._document)

    def plain(self) -> None:
        self._saver.put_and_get(self._document)

    def converted(self) -> SessionSnapshot:
        kept = self._saver.put_and_get(self._snapshot.model_dump(mode="json"))
        return PydanticSnapshot.model_validate(kept)

    def object(self) -> SessionSnapshot:
        return self._saver.put_and_get(self._snapshot)

    def check(self) -> None:
        assert self._saver.put_and_get(self._document) == self._document
        assert self.converted() == self._snapshot
        assert self.object() == self._snapshot

    def close(self) -> None:
        self._saver.close()


def run(quick: bool) -> list[Figure]:
    snapshot = large_snapshot(tasks=1000)
    with scratch_folder() as folder:
        ours = _Ours(folder / "holdfast.db", snapshot)
        theirs = _Theirs(folder / "langgraph.db", snapshot)
        try:
            ours.check()
            theirs.check()
            return _measure(ours, theirs, repetitions=20 if quick else 200)
        finally:
            ours.close()
            theirs.close()


def _measure(ours: _Ours, theirs: _Theirs, repetitions: int) -> list[Figure]:
    subjects = [
        Subject("LangGraph put + get, model object", theirs.object),
        Subject("LangGraph put + get, dict ↔ model", theirs.converted),
        Subject("LangGraph put + get, plain dict", theirs.plain),
        Subject("save + load, 1,000 tasks", ours.save_and_load, ours.prepare),
        Subject("save alone", ours.save, ours.prepare),
        Subject("load alone", ours.load),
    ]
    model, converted, plain, both, save, load = interleave(subjects, repetitions).values()
    peers: list[tuple[Timing, float | None]] = [(model, BAR), (converted, BAR), (plain, None)]
    return [
        *(alone(TOPIC, peer) for peer, _ in peers),
        *(compared(TOPIC, both, peer, bar) for peer, bar in peers),
        alone(TOPIC, save),
        alone(TOPIC, load),
    ]
