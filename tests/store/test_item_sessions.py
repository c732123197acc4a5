"""Files of item sessions: saved whole, checked both ways, never written over by mistake."""

from __future__ import annotations

import json
import logging
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.base.errors import (
    ConflictError,
    DamagedDataError,
    HoldfastError,
    InvalidInputError,
    NewerSchemaError,
    SessionNotFoundError,
)
from holdfast.model.item_session import AuditSessionState, ImproveProgress, ImproveSessionState, SessionType
from holdfast.model.snapshot import FileFingerprint
from holdfast.project.layout import ProjectLayout
from holdfast.store.item_sessions import SessionStateManager
from holdfast.store.session_files import SessionFiles
from holdfast.testing import FixedClock
from store.faults import crash_at, disk_full_at
from store.samples import at

FINGERPRINT = FileFingerprint(
    path="a.py", hash=f"sha256:{'a' * 64}", mtime_ns=1_767_700_800_123_456_789, size=3
)
DAMAGE = {
    "empty": b"",
    "truncated": b'{"schema_version": 2, "session_id": "one", "sta',
    "no JSON": b"\x00\xff rubbish",
    "a list": b"[]",
    "nothing": b"null",
    "an unknown field": b'{"schema_version": 2, "session_id": "one", "started_at": "2026-01-06T12:00:00Z", '
    b'"total_items": 1, "surprise": 1}',
    "a field missing": b'{"schema_version": 2, "session_id": "one"}',
    "a rating out of range": b'{"schema_version": 2, "session_id": "one", '
    b'"started_at": "2026-01-06T12:00:00Z", "total_items": 1, "partial_ratings": {"a.py": {"f": 5}}}',
    "a version that is no number": b'{"schema_version": "two", "session_id": "one"}',
    "a version before the first": b'{"schema_version": 0, "session_id": "one"}',
    "a snapshot of the wrong shape": b'{"session_id": "one", "file_snapshot": {"a.py": 7}}',
    "a time without end": b'{"session_id": "one", "file_snapshot": '
    b'{"a.py": {"checksum": "x", "timestamp": Infinity, "size": 1}}}',
    "nested without end": b"[" * 100_000,
}


def audit(name: str = "one", seconds: float = 0, **fields: Any) -> AuditSessionState:
    return AuditSessionState(session_id=name, started_at=at(seconds), total_items=9, **fields)


FULL_AUDIT = audit(
    current_index=4,
    file_snapshot={"a.py": FINGERPRINT},
    partial_ratings={"a.py": {"f": 4, "g": None}},
    config={"showCodeMode": "signature", "maxLines": 20},
    completed_at=at(60),
)
FULL_IMPROVE = ImproveSessionState(
    session_id="two",
    started_at=at(1),
    current_index=1,
    file_snapshot={"a.py": FINGERPRINT},
    config={"any": [1, {"thing": None}]},
    completed_at=at(61),
    transaction_id="tx_2",
    continued_from="tx_1",
    plan_items=({"filepath": "a.py", "name": "é"},),
    user_preferences={"tone": "dry"},
    progress=ImproveProgress(accepted=1, skipped=2, errors=3),
)


@pytest.fixture
def manager(tmp_path: Path, clock: FixedClock) -> SessionStateManager:
    return SessionStateManager(tmp_path, clock=clock)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return ProjectLayout(tmp_path).ensure().sessions


@pytest.mark.parametrize(
    ("state", "kind"), [(FULL_AUDIT, "audit"), (FULL_IMPROVE, "improve")], ids=["audit", "improve"]
)
def test_a_saved_session_comes_back_with_every_field(
    manager: SessionStateManager, state: AuditSessionState | ImproveSessionState, kind: SessionType
) -> None:
    assert manager.save_session_state(state, kind) == state.session_id
    assert manager.load_session_state(state.session_id, kind) == state


def test_the_file_is_named_by_kind_and_id_and_is_for_its_owner_alone(
    manager: SessionStateManager, folder: Path
) -> None:
    manager.save_session_state(audit("4f1e"), "audit")
    path = folder / "audit-session-4f1e.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_bytes())["schema_version"] == 2


def test_a_session_can_be_saved_after_every_action(manager: SessionStateManager) -> None:
    for index in range(10):
        manager.save_session_state(audit(current_index=index), "audit")
    state = manager.load_session_state("one", "audit")
    assert state.current_index == 9


def test_sessions_are_listed_newest_first_and_each_kind_apart(manager: SessionStateManager) -> None:
    for name, seconds in (("b", 5), ("a", 9), ("c", 1)):
        manager.save_session_state(audit(name, seconds), "audit")
    manager.save_session_state(FULL_IMPROVE, "improve")
    assert [state.session_id for state in manager.list_sessions("audit")] == ["a", "b", "c"]
    assert [state.session_id for state in manager.list_sessions("improve")] == ["two"]


def test_the_latest_is_the_one_started_last(manager: SessionStateManager) -> None:
    manager.save_session_state(audit("late", 9), "audit")
    manager.save_session_state(audit("early", 1), "audit")
    latest = manager.get_latest_session("audit")
    assert latest is not None
    assert latest.session_id == "late"


def test_a_project_without_sessions_has_none_and_nothing_is_made_by_asking(tmp_path: Path) -> None:
    manager = SessionStateManager(tmp_path)
    assert manager.list_sessions("audit") == []
    assert manager.get_latest_session("improve") is None
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_session_is_gone_and_the_others_are_not(manager: SessionStateManager) -> None:
    manager.save_session_state(audit("one"), "audit")
    manager.save_session_state(audit("two"), "audit")
    manager.delete_session_state("one", "audit")
    assert [state.session_id for state in manager.list_sessions("audit")] == ["two"]


@pytest.mark.parametrize("verb", ["load_session_state", "delete_session_state"])
def test_a_session_that_is_not_there_is_not_found(manager: SessionStateManager, verb: str) -> None:
    with pytest.raises(SessionNotFoundError, match="none"):
        getattr(manager, verb)("none", "audit")


def test_a_deleted_session_can_be_saved_anew(manager: SessionStateManager) -> None:
    manager.save_session_state(audit(), "audit")
    manager.delete_session_state("one", "audit")
    manager.save_session_state(audit(current_index=1), "audit")
    assert manager.load_session_state("one", "audit").current_index == 1


def test_a_session_of_another_kind_is_refused(manager: SessionStateManager) -> None:
    with pytest.raises(InvalidInputError, match="improve"):
        manager.save_session_state(audit(), "improve")


def test_an_unknown_kind_is_refused(manager: SessionStateManager) -> None:
    with pytest.raises(InvalidInputError, match="review"):
        manager.list_sessions("review")  # type: ignore[arg-type]


def test_a_state_that_was_spoiled_after_it_was_made_is_refused(
    manager: SessionStateManager, folder: Path
) -> None:
    state = audit(partial_ratings={"a.py": {"f": 4}})
    state.partial_ratings["a.py"]["f"] = 99
    with pytest.raises((InvalidInputError, ValidationError)):
        manager.save_session_state(state, "audit")
    assert not list(folder.glob("audit-*"))


@pytest.mark.parametrize(
    "name", ["../one", "..", "a/b", "/etc/passwd", "", ".", "x" * 300, "a\0b", "a\nb", "-rf", "ü"]
)
@pytest.mark.parametrize("verb", ["load_session_state", "delete_session_state"])
def test_what_is_no_id_reaches_no_file(tmp_path: Path, verb: str, name: str) -> None:
    manager = SessionStateManager(tmp_path / "project")
    ProjectLayout(tmp_path / "project").ensure()
    outside = tmp_path / "one.json"
    outside.write_text("{}")
    with pytest.raises((InvalidInputError, SessionNotFoundError)):
        getattr(manager, verb)(name, "audit")
    assert outside.exists()


@pytest.mark.parametrize("name", ["../one", "a/b", "", "x" * 300, "one\n"])
def test_a_state_cannot_carry_such_an_id(name: str) -> None:
    with pytest.raises(ValidationError):
        audit(name)


def test_a_save_by_somebody_else_in_between_is_a_conflict_and_nothing_is_lost(tmp_path: Path) -> None:
    mine, theirs = SessionStateManager(tmp_path), SessionStateManager(tmp_path)
    mine.save_session_state(audit(), "audit")
    theirs.load_session_state("one", "audit")
    theirs.save_session_state(audit(current_index=1), "audit")
    with pytest.raises(ConflictError, match="was changed by another process"):
        mine.save_session_state(audit(current_index=2), "audit")
    assert theirs.load_session_state("one", "audit").current_index == 1


def test_after_a_conflict_one_loads_and_goes_on(tmp_path: Path) -> None:
    mine, theirs = SessionStateManager(tmp_path), SessionStateManager(tmp_path)
    mine.save_session_state(audit(), "audit")
    theirs.load_session_state("one", "audit")
    theirs.save_session_state(audit(current_index=1), "audit")
    assert mine.load_session_state("one", "audit").current_index == 1
    mine.save_session_state(audit(current_index=2), "audit")
    assert theirs.load_session_state("one", "audit").current_index == 2


def test_saving_over_a_session_one_never_saw_is_a_conflict(tmp_path: Path) -> None:
    SessionStateManager(tmp_path).save_session_state(audit(current_index=5), "audit")
    with pytest.raises(ConflictError):
        SessionStateManager(tmp_path).save_session_state(audit(), "audit")


def test_saving_a_session_somebody_deleted_is_a_conflict(tmp_path: Path) -> None:
    mine = SessionStateManager(tmp_path)
    mine.save_session_state(audit(), "audit")
    SessionStateManager(tmp_path).delete_session_state("one", "audit")
    with pytest.raises(ConflictError):
        mine.save_session_state(audit(current_index=1), "audit")


@pytest.mark.parametrize(
    "look",
    [lambda manager: manager.list_sessions("audit"), lambda manager: manager.get_latest_session("audit")],
    ids=["list", "latest"],
)
def test_looking_around_does_not_turn_an_old_state_into_a_new_one(
    tmp_path: Path, look: Callable[[SessionStateManager], object]
) -> None:
    mine, theirs = SessionStateManager(tmp_path), SessionStateManager(tmp_path)
    mine.save_session_state(audit(), "audit")
    theirs.load_session_state("one", "audit")
    theirs.save_session_state(audit(current_index=1), "audit")
    look(mine)
    with pytest.raises(ConflictError):
        mine.save_session_state(audit(current_index=2), "audit")


def test_a_session_found_as_the_latest_can_be_saved(tmp_path: Path) -> None:
    SessionStateManager(tmp_path).save_session_state(audit(), "audit")
    manager = SessionStateManager(tmp_path)
    found = manager.get_latest_session("audit")
    assert found is not None
    manager.save_session_state(found.changed(current_index=3), "audit")
    assert manager.load_session_state("one", "audit").current_index == 3


SAVE_MANY = """
import sys
from holdfast.base.errors import ConflictError
from holdfast.store.item_sessions import SessionStateManager
manager, saved = SessionStateManager(sys.argv[1]), 0
while saved < 10:
    state = manager.load_session_state("one", "audit")
    try:
        manager.save_session_state(state.changed(current_index=state.current_index + 1), "audit")
    except ConflictError:
        continue
    saved += 1
"""


def test_two_processes_on_one_session_lose_no_step(tmp_path: Path, manager: SessionStateManager) -> None:
    manager.save_session_state(audit(), "audit")
    writers = [subprocess.Popen([sys.executable, "-c", SAVE_MANY, str(tmp_path)]) for _ in range(2)]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert manager.load_session_state("one", "audit").current_index == 20


@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_set_aside_as_it_is_and_told(
    manager: SessionStateManager, folder: Path, data: bytes
) -> None:
    path = folder / "audit-session-one.json"
    path.write_bytes(data)
    with pytest.raises(DamagedDataError, match=r"audit-session-one\.json.damaged-20260106-120000"):
        manager.load_session_state("one", "audit")
    assert not path.exists()
    assert (folder / "audit-session-one.json.damaged-20260106-120000").read_bytes() == data


def test_a_second_damaged_file_does_not_take_the_place_of_the_first(
    manager: SessionStateManager, folder: Path
) -> None:
    for data in (b"first", b"second"):
        (folder / "audit-session-one.json").write_bytes(data)
        with pytest.raises(DamagedDataError):
            manager.load_session_state("one", "audit")
    assert [path.read_bytes() for path in sorted(folder.glob("*.damaged-*"))] == [b"first", b"second"]


def test_a_damaged_file_is_told_and_does_not_hide_the_others(
    manager: SessionStateManager, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager.save_session_state(audit("good"), "audit")
    (folder / "audit-session-bad.json").write_bytes(b"{")
    with caplog.at_level(logging.WARNING):
        assert [state.session_id for state in manager.list_sessions("audit")] == ["good"]
    assert "audit-session-bad.json is damaged and was renamed to" in caplog.text


def test_a_save_never_goes_over_a_damaged_file(manager: SessionStateManager, folder: Path) -> None:
    manager.save_session_state(audit(), "audit")
    path = folder / "audit-session-one.json"
    path.write_bytes(b"damaged by hand")
    with pytest.raises(ConflictError):
        manager.save_session_state(audit(current_index=1), "audit")
    assert path.read_bytes() == b"damaged by hand"


def test_once_the_damaged_file_is_set_aside_the_work_can_be_saved_again(
    manager: SessionStateManager, folder: Path
) -> None:
    manager.save_session_state(audit(), "audit")
    (folder / "audit-session-one.json").write_bytes(b"damaged by hand")
    with pytest.raises(DamagedDataError):
        manager.load_session_state("one", "audit")
    manager.save_session_state(audit(current_index=1), "audit")
    assert manager.load_session_state("one", "audit").current_index == 1


def test_a_file_of_a_newer_version_is_refused_and_stays_where_it_is(
    manager: SessionStateManager, folder: Path
) -> None:
    path = folder / "audit-session-one.json"
    path.write_text('{"schema_version": 3, "session_id": "one", "what": "is to come"}')
    before = path.read_bytes()
    with pytest.raises(NewerSchemaError, match="version 3"):
        manager.load_session_state("one", "audit")
    assert manager.list_sessions("audit") == []
    assert path.read_bytes() == before


def test_a_file_without_a_version_is_read_as_the_first_one(
    manager: SessionStateManager, folder: Path
) -> None:
    (folder / "audit-session-one.json").write_text(
        json.dumps(
            {
                "session_id": "one",
                "started_at": "2025-01-06T12:00:00Z",
                "current_index": 2,
                "total_items": 3,
                "partial_ratings": {"a.py": {"f": 4, "g": None}},
                "file_snapshot": {
                    "a.py": {
                        "filepath": "a.py",
                        "timestamp": 1736164800.5,
                        "checksum": "ab" * 32,
                        "size": 10,
                    }
                },
                "config": {"showCodeMode": "complete", "maxLines": 20},
                "completed_at": None,
            }
        )
    )
    state = manager.load_session_state("one", "audit")
    assert isinstance(state, AuditSessionState)
    assert state.file_snapshot == {
        "a.py": FileFingerprint(
            path="a.py", hash=f"sha256:{'ab' * 32}", mtime_ns=1_736_164_800_500_000_000, size=10
        )
    }
    assert state.partial_ratings == {"a.py": {"f": 4, "g": None}}
    manager.save_session_state(state, "audit")
    assert json.loads((folder / "audit-session-one.json").read_bytes())["schema_version"] == 2


@given(data=st.binary(max_size=60))
def test_whatever_bytes_a_file_holds_they_are_read_or_kept(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = ProjectLayout(Path(root)).ensure().sessions
        (folder / "audit-session-one.json").write_bytes(data)
        with pytest.raises(DamagedDataError):
            SessionStateManager(root, clock=FixedClock()).load_session_state("one", "audit")
        [kept] = folder.glob("audit-session-one.json.damaged-*")
        assert kept.read_bytes() == data


def test_a_crash_at_any_step_of_a_save_leaves_the_old_state_or_the_new(tmp_path: Path) -> None:
    for step in count(1):
        manager = SessionStateManager(tmp_path / str(step))
        manager.save_session_state(audit(), "audit")
        with crash_at(step) as faults:
            manager.save_session_state(audit(current_index=1), "audit")
        state = SessionStateManager(tmp_path / str(step)).load_session_state("one", "audit")
        assert state in (audit(), audit(current_index=1))
        if not faults.happened:
            break


def test_a_full_disk_is_a_clear_error_and_leaves_the_old_state(tmp_path: Path) -> None:
    for step in count(1):
        manager = SessionStateManager(tmp_path / str(step))
        manager.save_session_state(audit(), "audit")
        with disk_full_at(step) as faults:
            try:
                manager.save_session_state(audit(current_index=1), "audit")
            except HoldfastError as error:
                assert "No space left" in error.message  # noqa: PT017 - the last step raises nothing
        if not faults.happened:
            break
        assert SessionStateManager(tmp_path / str(step)).load_session_state("one", "audit") == audit()


def test_a_save_succeeds_while_a_pause_opens_the_same_folder(
    manager: SessionStateManager, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        with SessionFiles(folder).locked():  # another process, at the worst moment
            pass
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    manager.save_session_state(audit(), "audit")
    assert manager.load_session_state("one", "audit") == audit()
