"""`holdfast share`: sessions through a git remote, and nothing of the user's repository changed by it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from holdfast import SessionStateManager
from holdfast.model.item_session import AuditSessionState

from .harness import Place
from .test_own_sessions import MONDAY


@pytest.fixture
def remote(place: Place) -> Path:
    folder = place.root / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
    place.git("remote", "add", "origin", str(folder))
    place.paused("tool_call", reason="context is full")
    return folder


@pytest.fixture
def colleague(remote: Path, tmp_path: Path) -> Place:
    """On another machine: with a database of their own."""
    (tmp_path / "elsewhere").mkdir()
    other = Place(tmp_path / "elsewhere")
    other.git("remote", "add", "origin", str(remote))
    return other


def test_there_and_back(place: Place, colleague: Place, remote: Path) -> None:
    before = place.git("for-each-ref"), place.git("status", "--porcelain")
    assert place.ok("share", "push").out.startswith("Shared 1 session through origin")
    assert (place.git("for-each-ref"), place.git("status", "--porcelain")) == before
    (report,) = colleague.json("share", "pull")
    assert len(report["sessions"]) == 1
    assert "context is full" in colleague.ok("context", "latest").out
    assert colleague.json("share", "pull") == []
    assert place.json("share", "pull") == []  # one's own is no news


def test_what_is_undone_of_a_plan_after_it_was_shared_is_known_there(place: Place, colleague: Place) -> None:
    tasks = [{"id": name, "description": name, "run": f"echo x > {name}"} for name in ("a", "b")]
    plan = place.project / "plan.yaml"
    plan.write_text(json.dumps({"issue": {"id": "P", "title": "t"}, "driver": "shell", "tasks": tasks}))
    place.ok("run", plan, "--pause-every", "1")
    place.ok("share", "push")
    colleague.ok("share", "pull")
    assert "was undone" not in colleague.ok("status").out
    (made,) = (one["id"] for one in place.json("tx", "list"))
    place.ok("tx", "rollback", made, "--yes")
    place.ok("share", "push")
    (report,) = colleague.json("share", "pull")
    assert report["transactions"] == [made]
    there, here = (one.json("tx", "show", made) for one in (colleague, place))
    assert there["status"] == here["status"] == "rolled-back"
    assert [one["id"] for one in there["entries"]] == [one["id"] for one in here["entries"]]
    assert "what completed tasks had changed was undone: a" in colleague.ok("status").out
    # What a colleague undoes of their copy says nothing of the folder in which the plan was run.
    colleague.json("share", "push")
    assert place.json("share", "pull")[0]["transactions"] == []
    place.ok("tx", "redo", made)
    place.ok("share", "push")
    colleague.ok("share", "pull")
    assert "was undone" not in colleague.ok("status").out


def test_everybody_has_a_place_of_their_own(place: Place, colleague: Place, remote: Path) -> None:
    place.ok("share", "push")
    colleague.paused("tool_call", reason="theirs")
    colleague.ok("share", "push", str(remote))
    place.ok("share", "push")
    (report,) = place.json("share", "pull")
    assert len(report["sessions"]) == 1
    listed = subprocess.run(
        ["git", "-C", remote, "ls-tree", "refs/holdfast/sessions"], capture_output=True, text=True, check=True
    )
    assert len(listed.stdout.splitlines()) == 2


def test_encrypted(place: Place, colleague: Place) -> None:
    secret = {"HOLDFAST_PASSPHRASE": "correct horse"}
    place.run("share", "push", "--encrypt", env=secret)
    colleague.run("share", "pull").failed(1, error="is encrypted", hint="PASSPHRASE")
    colleague.run("share", "pull", env={"HOLDFAST_PASSPHRASE": "wrong"}).failed(1, error="decrypted")
    assert colleague.run("share", "pull", env=secret).out == "Imported 1 session from 1 other\n"


def test_what_cannot_be_done(place: Place, remote: Path) -> None:
    place.run("share", "pull").failed(1, error="no sessions have been shared")
    place.run("share", "push", "nowhere").failed(1, error="no such git remote: nowhere")
    place.run("share", "push", "--", "--upload-pack=x").failed(2, error="is not a remote")
    place.run("share", "push", str(place.root / "gone")).failed(1, error="gone")


def test_rubbish_on_the_remote_is_refused_and_nothing_is_written(place: Place, colleague: Place) -> None:
    place.ok("share", "push")
    share = place.project / ".holdfast" / "share"
    rubbish = share / "rubbish"
    rubbish.write_text("no bundle")

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", share, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    blob = git("hash-object", "-w", "rubbish")
    git("update-index", "--add", "--cacheinfo", f"100644,{blob},copy_0000000000000.holdfast")
    git("update-index", "--add", "--cacheinfo", f"120000,{blob},evil")
    commit = git("-c", "user.name=E", "-c", "user.email=e@x", "commit-tree", git("write-tree"), "-m", "x")
    git("push", "--quiet", "--force", str(place.root / "remote.git"), f"{commit}:refs/holdfast/sessions")
    assert colleague.run("share", "pull").code == 4


def audit(place: Place, **ratings: int | None) -> None:
    """What an audit of one file has come to in this copy."""
    os.environ["HOLDFAST_HOME"] = str(place.home)
    manager = SessionStateManager(place.project)
    known = manager.list_sessions("audit")
    state = known[0] if known else AuditSessionState(session_id="the-audit", started_at=MONDAY, total_items=4)
    assert isinstance(state, AuditSessionState)
    rated = {**state.partial_ratings.get("a.py", {}), **ratings}
    fresh = state.changed(partial_ratings={"a.py": rated}, current_index=len(rated))
    manager.save_session_state(fresh, "audit")


def test_an_audit_shared_to_and_fro_is_one_and_its_ratings_meet(
    place: Place, colleague: Place, tmp_path: Path, remote: Path
) -> None:
    third = place.beside("third")  # in the same home as the first
    third.git("remote", "add", "origin", str(remote))
    everybody = (place, colleague, third)
    audit(place, one=1)
    for _ in range(2):
        for copy in everybody:
            if (copy.project / ".holdfast").is_dir():
                copy.ok("share", "push")
            for other in everybody:
                other.run("share", "pull")
    audit(colleague, two=2, four=None)
    audit(place, three=3, four=4)
    for copy in (*everybody, *everybody):
        copy.ok("share", "push")
        copy.ok("share", "pull")
    for copy in everybody:
        os.environ["HOLDFAST_HOME"] = str(copy.home)
        (state,) = SessionStateManager(copy.project).list_sessions("audit")
        assert isinstance(state, AuditSessionState)
        assert state.partial_ratings == {"a.py": {"one": 1, "two": 2, "three": 3, "four": 4}}
        assert state.current_index == 4
        assert len(list(copy.sessions.glob("session-*.json"))) == 1
        for report in copy.json("share", "pull"):
            assert not any(
                report[kind] for kind in ("sessions", "items", "transactions", "renamed", "merged")
            )
    audit(place, one=4)
    place.ok("share", "push")
    assert (
        "left as it is here: the-audit: the rating of a.py: one differs" in colleague.ok("share", "pull").out
    )


def test_what_was_ended_since_it_was_pulled_is_ended_there_too(place: Place, colleague: Place) -> None:
    (place.project / "plan.yaml").write_text(
        "issue: {id: X, title: Work}\ntasks:\n  - {id: t1, run: 'test -e ok'}\n"
    )
    assert place.run("run", "plan.yaml").code != 0
    place.ok("share", "push")
    colleague.ok("share", "pull")
    (place.project / "ok").touch()
    assert place.run("retry").code == 0
    flow = next(one["id"] for one in place.json("list") if one["status"] == "completed")
    place.ok("share", "push")
    assert colleague.json("share", "pull")[0]["sessions"] == []
    [there] = [one for one in colleague.json("list") if one["id"] == flow]
    assert there["status"] == "completed"
