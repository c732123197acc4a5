"""What enrichment does to a session's files: they say what the database says, or stay as they were."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.base.errors import HoldfastError, NotFoundError
from holdfast.model.snapshot import SessionSnapshot
from holdfast.project.settings import Settings, load_settings
from holdfast.sessions.enrich import enrich_snapshot
from holdfast.sessions.pause import SessionPauseManager, open_store
from holdfast.store.documents import read_session_document
from transcripts.claude_files import answered, called, file_of, said, typed

CHOSEN = "I'll take oak for the frame"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A project that is no repository: git is not what this is about."""
    project = tmp_path / "project"
    project.mkdir()
    return load_settings({**os.environ, "HOLDFAST_PROJECT": str(project)})


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        file_of(
            typed("Build a shed", uuid="u", parentUuid=None, sessionId="s-9"),
            said(f"{CHOSEN}, because it outlasts pine by far."),
            called("c1", "Bash", command="make door"),
            answered("c1", "error: no such door", error=True),
        )
    )
    return path


def pause(settings: Settings) -> SessionSnapshot:
    name = SessionPauseManager(settings=settings).create_pause_session("lunch")
    with open_store(settings) as store:
        [line] = store.find_snapshots(name)
        return store.snapshot(line.id)


def files(settings: Settings) -> dict[str, bytes]:
    folder = settings.layout.sessions
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def document(settings: Settings, snapshot: SessionSnapshot) -> dict[str, Any]:
    return json.loads(files(settings)[f"{snapshot.session_id}.json"])


def test_files_and_database_say_the_same(settings: Settings, transcript: Path) -> None:
    before = pause(settings)
    enriched = enrich_snapshot(settings, before.id, transcript)
    with open_store(settings) as store:
        stored, workflow = store.snapshot(before.id), store.workflow(before.workflow_id)
    assert stored == enriched
    found = document(settings, before)
    assert read_session_document(found, where="x.json") == (enriched, workflow)
    assert yaml.safe_load(files(settings)[f"{before.session_id}.yaml"]) == found
    page = files(settings)[f"{before.session_id}.md"].decode()
    assert f"- {CHOSEN} Because: because it outlasts pine by far." in page
    assert "error: no such door (unresolved)" in page


def test_what_was_there_stays(settings: Settings, transcript: Path) -> None:
    before = pause(settings)
    enriched = enrich_snapshot(settings, before.id, transcript)
    added = {"decisions", "errors", "gathered", "fidelity"}
    assert enriched.model_dump(exclude=added) == before.model_dump(exclude=added)
    assert [item.evidence[0].source for item in enriched.decisions] == ["s-9"]
    assert enriched.fidelity is not None
    assert enriched.fidelity.categories


def test_the_newest_session_stays_the_newest(settings: Settings, transcript: Path) -> None:
    first, second = pause(settings), pause(settings)
    untouched = {name: data for name, data in files(settings).items() if second.session_id in name}
    enrich_snapshot(settings, first.id, transcript)
    now = files(settings)
    assert now["LATEST-SESSION.txt"].decode() == f"{second.session_id}\n"
    assert {name: data for name, data in now.items() if second.session_id in name} == untouched
    assert document(settings, first)["decisions"]


def test_no_other_file_appears(settings: Settings, transcript: Path) -> None:
    snapshot = pause(settings)
    names = set(files(settings))
    enrich_snapshot(settings, snapshot.id, transcript)
    assert set(files(settings)) == names
    assert {path.stat().st_mode & 0o777 for path in settings.layout.sessions.glob("session-*")} == {0o600}


def test_files_that_were_deleted_do_not_come_back(settings: Settings, transcript: Path) -> None:
    snapshot = pause(settings)
    for path in settings.layout.sessions.glob(f"{snapshot.session_id}.*"):
        path.unlink()
    enriched = enrich_snapshot(settings, snapshot.id, transcript)
    assert enriched.decisions
    assert not list(settings.layout.sessions.glob("session-*"))


def test_a_folder_that_is_gone_does_not_cost_what_the_database_got(
    settings: Settings, transcript: Path
) -> None:
    snapshot = pause(settings)
    shutil.rmtree(settings.layout.folder)
    with contextlib.suppress(HoldfastError):  # to say so is right
        enrich_snapshot(settings, snapshot.id, transcript)
    with open_store(settings) as store:
        assert store.snapshot(snapshot.id).decisions


def test_a_snapshot_that_is_not_there_changes_nothing(settings: Settings, transcript: Path) -> None:
    pause(settings)
    before = files(settings)
    with pytest.raises(NotFoundError):
        enrich_snapshot(settings, "snap_none", transcript)
    assert files(settings) == before


@pytest.mark.parametrize("data", [b"", b"\x00\xff garbage", b"SQLite format 3\x00 garbage"])
def test_a_transcript_that_cannot_be_read_changes_nothing(
    settings: Settings, transcript: Path, data: bytes
) -> None:
    snapshot = pause(settings)
    transcript.write_bytes(data)
    before = files(settings)
    with pytest.raises(HoldfastError):
        enrich_snapshot(settings, snapshot.id, transcript)
    assert files(settings) == before
    with open_store(settings) as store:
        assert store.snapshot(snapshot.id) == snapshot


def test_what_is_in_it_already_keeps_its_place(settings: Settings, transcript: Path) -> None:
    snapshot = pause(settings)
    enrich_snapshot(settings, snapshot.id, transcript)
    with transcript.open("ab") as more:
        more.write(file_of(said("I'll use slate for the roof, because tin is loud in the rain.")))
    enriched = enrich_snapshot(settings, snapshot.id, transcript)
    assert [item.description for item in enriched.decisions] == [CHOSEN, "I'll use slate for the roof"]
    assert len(enriched.errors) == 1
    assert len(document(settings, snapshot)["decisions"]) == 2


def test_pauses_made_and_enriched_at_once_all_get_into_the_database(
    settings: Settings, transcript: Path, any_database: str
) -> None:
    """Each changes the same workflow: what one is refused for another's sake it tries again."""
    shared = replace(settings, db=any_database)
    with open_store(shared):  # its tables are made by one

        def pause_and_enrich(_: int) -> SessionSnapshot:
            return enrich_snapshot(shared, pause(shared).id, transcript)

        with ThreadPoolExecutor(8) as pool:
            made = list(pool.map(pause_and_enrich, range(16)))
    assert not list(settings.layout.sessions.glob(".unindexed-*"))
    assert {one.workflow_id for one in made} == {made[0].workflow_id}
    assert sorted(one.session_number for one in made) == list(range(1, 17))
    for snapshot in made:
        assert [one.description for one in snapshot.decisions] == [CHOSEN]
        assert document(settings, snapshot)["session_number"] == snapshot.session_number
