"""The database is an index: what it missed or lost comes back from the session files."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.base.errors import NewerSchemaError, StorageError
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings
from holdfast.sessions.pause import (
    SessionPauseManager,
    known_projects,
    open_store,
    remember_project,
)
from holdfast.sessions.reindex import reindex, take_in_waiting
from holdfast.sessions.transitions import Core
from holdfast.store.session_files import SessionFiles
from holdfast.testing import FixedClock
from store.samples import DECISION

State = tuple[dict[str, Workflow], list[SessionSnapshot]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    project = tmp_path / "sail"
    project.mkdir()
    return Settings(project=project, home=tmp_path / "home", db=str(tmp_path / "home" / "holdfast.db"))


def other_project(settings: Settings, name: str) -> Settings:
    project = settings.project.with_name(name)
    project.mkdir()
    return Settings(project=project, home=settings.home, db=settings.db)


def pause(settings: Settings, clock: FixedClock, times: int = 1) -> list[str]:
    made: list[str] = []
    for number in range(times):
        made.append(
            SessionPauseManager(settings=settings, clock=clock).create_pause_session(f"reason {number}")
        )
        clock.advance(60)
    return made


def state(settings: Settings) -> State:
    """All that the database knows, but for what counts its own changes."""
    with open_store(settings) as store:
        flows = {flow.id: flow.changed(revision=1) for flow in store.workflows(limit=1000)}
        lines = [line for flow in flows for line in store.snapshots(flow)]
        return flows, sorted(
            (store.snapshot(line.id).changed(folded_through=0) for line in lines),
            key=lambda snapshot: (snapshot.workflow_id, snapshot.session_number),
        )


def remove(database: Path) -> None:
    for path in database.parent.glob("holdfast.db*"):
        path.unlink()


def garbage(database: Path) -> None:
    remove(database)
    database.write_bytes(b"not a database at all" * 1000)


def cut_off(database: Path) -> None:
    database.write_bytes(database.read_bytes()[: database.stat().st_size // 2])


def overwrite_all_but_the_first_page(database: Path) -> None:
    with database.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def overwrite_the_snapshots(database: Path) -> None:
    """Rubbish where the snapshots are; the list of workflows can still be read."""
    data = database.read_bytes()
    for page in range(0, len(data), 4096):
        if b'"schema_version":1' in data[page : page + 4096]:
            data = data[:page] + b"\xa5" * 4096 + data[page + 4096 :]
    database.write_bytes(data)


@pytest.mark.parametrize(
    "harm",
    [remove, garbage, cut_off, overwrite_all_but_the_first_page, overwrite_the_snapshots],
    ids=lambda harm: harm.__name__,
)
def test_a_lost_or_damaged_database_is_rebuilt_completely(
    settings: Settings, clock: FixedClock, harm: Callable[[Path], None]
) -> None:
    second = other_project(settings, "rudder")
    pause(settings, clock, 4)
    pause(second, clock, 3)
    pause(settings, clock, 2)
    before = state(settings)
    harm(Path(settings.db))
    report = reindex(settings, clock=clock)
    assert state(settings) == before
    assert (report.projects, len(report.added), report.damaged) == (2, 9, [])


def test_a_damaged_database_is_kept_under_another_name(settings: Settings, clock: FixedClock) -> None:
    pause(settings, clock)
    garbage(Path(settings.db))
    damaged = Path(settings.db).read_bytes()
    report = reindex(settings, clock=clock)
    assert report.database_set_aside is not None
    assert Path(report.database_set_aside).name == "holdfast.db.damaged-20260106-120100"
    assert Path(report.database_set_aside).read_bytes() == damaged


def test_a_database_from_the_future_is_left_alone(settings: Settings, clock: FixedClock) -> None:
    pause(settings, clock)
    import sqlalchemy as sa

    engine = sa.create_engine(f"sqlite:///{settings.db}")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(NewerSchemaError):
        reindex(settings, clock=clock)
    assert [path.name for path in settings.home.glob("*damaged*")] == []


def test_a_second_time_adds_nothing(settings: Settings, clock: FixedClock) -> None:
    pause(settings, clock, 3)
    before = state(settings)
    report = reindex(settings, clock=clock)
    assert (report.added, report.already_there, report.database_set_aside) == ([], 3, None)
    assert state(settings) == before


def test_work_goes_on_after_a_rebuild(settings: Settings, clock: FixedClock) -> None:
    pause(settings, clock, 2)
    remove(Path(settings.db))
    reindex(settings, clock=clock)
    pause(settings, clock)
    flows, snapshots = state(settings)
    assert len(flows) == 1
    assert [snapshot.session_number for snapshot in snapshots] == [1, 2, 3]


def test_projects_are_remembered_beside_the_database(settings: Settings, clock: FixedClock) -> None:
    second = other_project(settings, "rudder")
    for each in (settings, second, settings):
        pause(each, clock)
    assert known_projects(settings) == [settings.project, second.project]


def test_a_remembered_project_that_is_gone_is_passed_over(settings: Settings, clock: FixedClock) -> None:
    pause(settings, clock)
    remember_project(Settings(project=settings.project / "gone", home=settings.home, db=settings.db))
    remove(Path(settings.db))
    assert reindex(settings, clock=clock).projects == 1


def test_a_project_whose_name_is_no_unicode_is_remembered(settings: Settings, tmp_path: Path) -> None:
    odd = tmp_path / "caf\udce9"
    remember_project(Settings(project=odd, home=settings.home, db=settings.db))
    assert known_projects(settings) == [odd]


def test_a_project_whose_name_is_no_unicode_can_be_paused(settings: Settings, clock: FixedClock) -> None:
    odd = other_project(settings, "caf\udce9")
    pause(odd, clock, 2)
    before = state(odd)
    remove(Path(odd.db))
    reindex(odd, clock=clock)
    assert [snapshot.session_number for snapshot in before[1]] == [1, 2]
    assert state(odd) == before


def test_a_folder_that_was_named_is_read_as_well(settings: Settings, clock: FixedClock) -> None:
    second = other_project(settings, "rudder")
    pause(second, clock)
    remove(Path(settings.db))
    (settings.home / "projects").unlink()
    assert len(reindex(settings, [second.project], clock).added) == 1


def test_a_project_that_has_moved_takes_its_workflow_along(settings: Settings, clock: FixedClock) -> None:
    pause(settings, clock, 2)
    moved = settings.project.with_name("moved")
    settings.project.rename(moved)
    there = Settings(project=moved, home=settings.home, db=settings.db)
    reindex(there, clock=clock)
    assert pause(there, clock)
    flows, snapshots = state(there)
    assert [flow.worktree for flow in flows.values()] == [str(moved)]
    assert [snapshot.session_number for snapshot in snapshots] == [1, 2, 3]


def test_a_copy_of_a_project_leaves_the_workflow_with_the_original(
    settings: Settings, clock: FixedClock
) -> None:
    pause(settings, clock)
    copy = settings.project.with_name("copy")
    shutil.copytree(settings.project, copy)
    reindex(Settings(project=copy, home=settings.home, db=settings.db), clock=clock)
    assert [flow.worktree for flow in state(settings)[0].values()] == [str(settings.project)]


def test_a_project_that_has_moved_is_found_where_it_is(settings: Settings, clock: FixedClock) -> None:
    pause(settings, clock)
    moved = settings.project.with_name("moved")
    settings.project.rename(moved)
    remove(Path(settings.db))
    there = Settings(project=moved, home=settings.home, db=settings.db)
    reindex(there, clock=clock)
    with open_store(there) as store:
        assert [flow.worktree for flow in store.workflows()] == [str(moved)]


def test_a_damaged_session_file_is_told_and_does_not_hide_the_others(
    settings: Settings, clock: FixedClock
) -> None:
    names = pause(settings, clock, 3)
    (settings.layout.sessions / f"{names[1]}.json").write_text("{")
    remove(Path(settings.db))
    report = reindex(settings, clock=clock)
    assert report.added == [names[0], names[2]]
    [complaint] = report.damaged
    assert names[1] in complaint


def test_a_session_made_while_the_database_was_away_is_taken_in_later(
    settings: Settings, clock: FixedClock, caplog: pytest.LogCaptureFixture
) -> None:
    first = pause(settings, clock, 2)
    away = Settings(project=settings.project, home=settings.home, db=str(settings.home / "x" / "holdfast.db"))
    (settings.home / "x").write_text("in the way")
    with caplog.at_level(logging.WARNING):
        missed = pause(away, clock, 2)
    assert "not in the database yet" in caplog.text
    files = SessionFiles(settings.layout.sessions)
    assert files.unindexed() == missed
    with open_store(settings) as store:
        take_in_waiting(store, settings)
    assert files.unindexed() == []
    flows, snapshots = state(settings)
    assert [snapshot.session_id for snapshot in snapshots] == [*first, *missed]
    assert [snapshot.session_number for snapshot in snapshots] == [1, 2, 3, 4]
    assert len(flows) == 1


def test_what_was_added_to_a_snapshot_survives_a_second_reindex(
    settings: Settings, clock: FixedClock
) -> None:
    pause(settings, clock)
    with open_store(settings) as store:
        [snapshot] = store.find_snapshots("snap_")
        Core(store, clock).enrich(snapshot.id, [DECISION])
    before = state(settings)
    reindex(settings, clock=clock)
    assert state(settings) == before


def test_a_home_that_cannot_be_written_is_a_clear_error(settings: Settings, clock: FixedClock) -> None:
    settings.home.write_text("in the way")
    with pytest.raises(StorageError, match="home"):
        reindex(settings, clock=clock)
