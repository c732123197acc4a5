"""Files that reach a folder of the user's own past git's index, as `git apply` and `git restore` bring them.

The folder is marked, and git says nothing of them: its own ignore file hides them. Each file has to prove
by itself that this user's program wrote it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from cli.harness import Place
from hooks.harness import AgentSession

WORDS = "EVIL words of a stranger"
PLAN = f"""issue: {{id: EVIL-1, title: "{WORDS}"}}
tasks: [{{id: t1, run: "true"}}, {{id: t2, run: "touch pwned"}}]
"""


@pytest.fixture
def victim(tmp_path: Path) -> Place:
    """A folder that is marked, and nothing else in it."""
    (tmp_path / "user").mkdir()
    place = Place(tmp_path / "user")
    place.git("commit", "--quiet", "--allow-empty", "-m", "first")
    place.ok("winddown", "start", "--percent", "0.9")
    place.ok("winddown", "discard", "--yes")
    return place


def agent_of(place: Place) -> AgentSession:
    session = AgentSession(place.project, place.root)
    session.variables["HOLDFAST_HOME"] = str(place.home)
    return session


def plant(place: Place, name: str, text: str) -> Path:
    path = place.project / ".holdfast" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def strangers_session(tmp_path: Path, victim: Place) -> str:
    """A paused session with its marker, planted; returns its name."""
    (tmp_path / "stranger").mkdir()
    stranger = Place(tmp_path / "stranger")
    (stranger.project / "plan.yaml").write_text(PLAN)
    stranger.run("run", "plan.yaml", "--pause-every", "1")
    (name,) = (path.stem for path in stranger.sessions.glob("session-*.json"))
    for kind in (".json", ".yaml", ".md"):
        shutil.copy(stranger.sessions / f"{name}{kind}", victim.sessions)
    plant(victim, f"sessions/.unindexed-{name}", "")
    os.environ["HOLDFAST_HOME"] = str(victim.home)
    while time.strftime("%Y%m%d-%H%M%S", time.gmtime()) in name:
        time.sleep(0.01)  # one of the user's of the same second would have the same name
    return name


def test_a_planted_session_is_told_to_no_agent(victim: Place, strangers_session: str) -> None:
    told = agent_of(victim).start()
    assert WORDS not in told.out
    assert strangers_session not in told.out
    assert WORDS not in victim.run("status").out


def test_a_planted_session_is_told_to_no_agent_beside_one_that_waits(
    victim: Place, strangers_session: str
) -> None:
    env = {"HOLDFAST_DB": str(victim.root / "home")}  # a folder: it cannot be opened
    victim.run("winddown", "start", "--percent", "0.9", env=env)
    victim.run(
        "winddown", "append", "user_message", "--data", '{"text": "mine"}', "--percent", "0.9", env=env
    )
    assert victim.run("winddown", "finalize", env=env).code == 0
    told = agent_of(victim).start()
    assert WORDS not in told.out
    assert strangers_session not in told.out


def test_without_a_database_a_planted_session_is_neither_told_nor_gone_on_with(
    victim: Place, strangers_session: str
) -> None:
    plant(victim, "sessions/LATEST-SESSION.txt", f"{strangers_session}\n")
    session = agent_of(victim)
    session.variables["HOLDFAST_DB"] = str(victim.root / "home")
    told = session.start()
    assert WORDS not in told.out
    victim.run("winddown", "start", "--percent", "0.9", env=session.variables)
    assert victim.run("winddown", "finalize", env=session.variables).code == 0
    mine = (victim.sessions / f"{(victim.latest() or '').strip()}.json").read_text()
    assert WORDS not in mine
    assert "pwned" not in mine


def test_without_a_database_a_session_of_ours_is_still_told(victim: Place) -> None:
    victim.ok("winddown", "start", "--percent", "0.9")
    victim.ok("winddown", "append", "user_message", "--data", '{"text": "mine alone"}', "--percent", "0.9")
    victim.ok("winddown", "finalize")
    name = (victim.latest() or "").strip()
    session = agent_of(victim)
    session.variables["HOLDFAST_DB"] = str(victim.root / "home")
    assert name in session.start().out


REMINDER = f"2026-01-01T00:00:00.000Z\t{WORDS}\n"


def test_a_planted_reminder_is_not_told_as_the_users(victim: Place) -> None:
    plant(victim, "state/reminders", REMINDER)
    session = agent_of(victim)
    session.start()
    told = session.prompt().context
    assert WORDS not in told
    assert "`holdfast remind` did not write" in told
    assert "holdfast remind" not in session.prompt().out, "said once"
    listed = victim.run("remind")
    assert listed.out == "No reminders.\n"
    assert "1 reminder not written by" in listed.err


def test_reminders_of_the_user_are_told_beside_a_planted_one(victim: Place) -> None:
    victim.ok("remind", "call them")
    with (victim.project / ".holdfast" / "state" / "reminders").open("a") as file:
        file.write(REMINDER)
    victim.run("remind", "write to them")
    session = agent_of(victim)
    session.start()
    told = session.prompt().context
    assert WORDS not in told
    assert "reminded: call them; write to them." in told


@pytest.mark.parametrize("own", ["", "\n", "0" * 32 + "\n"])
def test_a_planted_list_of_own_reminders_proves_nothing(victim: Place, own: str) -> None:
    plant(victim, "state/reminders", REMINDER)
    plant(victim, "state/reminders.own", own + REMINDER)
    assert WORDS not in agent_of(victim).prompt().out


def test_reminders_are_accepted_by_trust(victim: Place) -> None:
    plant(victim, "state/reminders", REMINDER)
    assert WORDS in victim.run("trust", "--show").out
    assert victim.run("trust", "--yes").code == 0
    assert WORDS in victim.ok("remind").out
    assert f"reminded: {WORDS}" in agent_of(victim).prompt().context
    assert "ignored" not in victim.ok("trust").out


MODEL = "head -c 20000000 /dev/zero > model.bin"


@pytest.mark.parametrize("part", ["set-aside", "stage", "objects", "refs", "info"])
def test_nothing_below_the_side_car_is_followed_as_a_link(victim: Place, tmp_path: Path, part: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (victim.project / "plan.yaml").write_text(
        f"issue: {{id: A, title: A}}\ntasks: [{{id: t, run: {MODEL}}}]\n"
    )
    assert victim.run("run", "plan.yaml").code == 0
    place = victim.project / ".holdfast" / "sidecar" / part
    if place.exists():
        place.rename(tmp_path / "away")
    place.symlink_to(outside)
    result = victim.run("tx", "rollback", "last", "--yes")
    assert result.code == 1, result
    assert f"{part} is a symbolic link" in result.err
    assert list(outside.iterdir()) == []
    assert (victim.project / "model.bin").stat().st_size == 20_000_000


@pytest.mark.parametrize("what", ["objects gone", "complete"])
def test_a_planted_side_car_is_said_and_not_used(victim: Place, tmp_path: Path, what: str) -> None:
    sidecar = victim.project / ".holdfast" / "sidecar"
    subprocess.run(["git", "init", "--quiet", "--bare", sidecar], check=True)
    if what == "objects gone":
        shutil.rmtree(sidecar / "objects")
    plan = 'issue: {id: A, title: A}\ntasks: [{id: t, run: "echo x >>done"}]\n'
    (victim.project / "plan.yaml").write_text(plan)
    result = victim.run("run", "plan.yaml")
    assert (result.code, "warning: ignoring" in result.err) == (0, True), result
    assert "folder sidecar was not created by you" in result.err
    sidecar.rename(tmp_path / "away")
    assert victim.run("run", "plan.yaml").err == ""
    assert victim.json("tx", "list")


def test_reindex_takes_in_no_session_that_a_patch_brought(victim: Place, strangers_session: str) -> None:
    """Its help says that it is safe at any time, and the next session start told the stranger's handover."""
    for marker in ("", f".unindexed-{strangers_session}"):
        (victim.sessions / marker).unlink() if marker else None
        told = victim.run("reindex")
        assert (told.code, "0 sessions added" in told.out) == (0, True), told
        assert f"{strangers_session} in {victim.project} was left out" in told.err
        assert WORDS not in victim.run("status").out + (agent_of(victim).start().context or "")
    assert strangers_session in victim.run("trust", "--yes").out
    assert "1 session added" in victim.ok("reindex").out


def test_what_an_earlier_version_wrote_is_taken_over_once(victim: Place) -> None:
    """It left no proofs; what is planted after the new version looked first has none either."""
    (victim.project / "plan.yaml").write_text("issue: {id: A, title: A}\ntasks: [{id: t, run: touch done}]\n")
    victim.ok("run", "plan.yaml")
    name = victim.paused("user_message", reason="enough for today")
    victim.ok("winddown", "start", "--percent", "0.9")
    for path in (victim.project / ".holdfast").rglob("*"):
        if path.name.startswith((".indexed-", ".started-")):
            path.unlink()
    (victim.project / ".holdfast" / "sidecar" / "mark").unlink()
    (record,) = (victim.home / "trusted").glob("*[0-9a-f]")
    record.write_text(record.read_text().replace("proves", ""))
    assert "enough for today" in victim.ok("context", "latest").out
    assert victim.json("tx", "list")
    assert (victim.latest(), victim.ok("winddown", "append", "tool_call", "--percent", "0.91").out) == (
        f"{name}\n",
        "",
    )
    (victim.project / ".holdfast" / "sidecar" / "mark").unlink()
    assert "folder sidecar was not created by you" in victim.run("tx", "list").err


def test_a_side_car_is_accepted_by_trust(victim: Place) -> None:
    (victim.project / "plan.yaml").write_text("issue: {id: A, title: A}\ntasks: [{id: t, run: touch done}]\n")
    assert victim.run("run", "plan.yaml").code == 0
    (victim.project / ".holdfast" / "sidecar" / "mark").unlink()  # as an earlier version left it
    assert "warning: ignoring" in victim.run("tx", "list").err
    assert victim.run("trust", "--yes").code == 0
    assert victim.json("tx", "list")


_LINE = (
    '{"type": "%s", "timestamp": "2026-01-06T12:00:00.000Z", "session_id": "session-20260106-120000", '
    '"data": {"prompt": "%s"}, "context_percentage": 0.9}\n'
)
JOURNAL = _LINE % ("pause_started", WORDS) + _LINE % ("user_message", WORDS)


def strange(start: str) -> str:
    return JOURNAL.replace("session-20260106-120000", start)


@pytest.mark.parametrize("journal", [JOURNAL, f"damaged\n{JOURNAL}", "", strange("x/../../mark")])
def test_a_planted_journal_is_no_wind_down(victim: Place, journal: str) -> None:
    (victim.sessions / ".started-x").mkdir()
    path = plant(victim, "sessions/ACTIVE-PAUSE.jsonl", journal)
    told = agent_of(victim).start()
    assert WORDS not in told.out
    assert "ACTIVE-PAUSE.jsonl was not created by you" in told.context
    for words in ("status", "context latest", "winddown finalize", "stats"):
        result = victim.run(*words.split())
        assert WORDS not in result.out, words
        assert "ACTIVE-PAUSE.jsonl was not created by you" in result.err
    assert path.read_text() == journal
    path.unlink()
    assert victim.run("status").err == "", "once it is gone, all is as before"


def test_a_planted_journal_is_accepted_by_trust(victim: Place) -> None:
    plant(victim, "sessions/ACTIVE-PAUSE.jsonl", JOURNAL)
    assert victim.run("trust", "--yes").code == 0
    assert "session-20260106-120000, 2 actions" in victim.ok("status").out
    assert victim.run("winddown", "finalize").code == 0


def test_the_proof_of_one_wind_down_is_none_of_the_next(victim: Place) -> None:
    name = victim.started("tool_call")
    victim.ok("winddown", "finalize")
    plant(victim, "sessions/ACTIVE-PAUSE.jsonl", strange(name))
    assert "ACTIVE-PAUSE.jsonl was not created by you" in victim.run("status").err


def test_a_foreign_folder_below_does_not_hide_the_users_own(victim: Place) -> None:
    sub = victim.project / "sub"
    (sub / ".holdfast" / "sessions").mkdir(parents=True)
    (sub / ".holdfast" / "sessions" / "x").write_text("x")
    (sub / "deeper").mkdir()
    victim.git("add", "--force", "sub")
    victim.git("commit", "--quiet", "-m", "as a pull brings it")
    victim.ok("remind", "mine")
    for folder in (sub, sub / "deeper"):
        listed = victim.run("remind", cwd=folder)
        assert listed.out == "mine\n", listed
        assert listed.err.count("warning: ignoring") == 1
        assert str(sub / ".holdfast") in listed.err
    session = agent_of(victim)
    told = session.fire("SessionStart", source="startup", cwd=str(sub)).context
    assert str(sub / ".holdfast") in told
    assert "mine" in session.fire("UserPromptSubmit", prompt="go on", cwd=str(sub)).context
    assert victim.run("remind").err == ""


def test_planted_notes_of_an_agent_session_are_not_settled(victim: Place) -> None:
    """They name a transcript: a session would be made of it, as that of an agent that was killed."""
    line = {"type": "user", "isSidechain": False, "uuid": "u1", "sessionId": "evil"}
    said = {**line, "timestamp": "2026-01-06T12:00:00.000Z", "message": {"role": "user", "content": WORDS}}
    transcript = victim.project / "evil.jsonl"
    transcript.write_text(json.dumps(said) + "\n")
    who = f"claude-code\nevil\n{transcript}\n\n"
    for name, text in (
        ("who", who),
        ("prompts", "3"),
        ("handover", f"3\n{WORDS}"),
        ("transaction", "claude"),
    ):
        plant(victim, f"state/hooks/evil/{name}", text)
    session = agent_of(victim)
    told = session.start().out + session.prompt("Go on").out
    assert WORDS not in told
    assert "was interrupted" not in told
    assert not list(victim.sessions.glob("session-*.json"))
    assert WORDS not in victim.ok("status").out + victim.ok("threads").out
    session.fire("SessionEnd", reason="other")
    assert "evil" not in victim.run("quiet", "status").out


def test_a_planted_share_is_said_and_not_used(victim: Place, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "remote.git"], check=True)
    victim.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    victim.paused("tool_call", reason="enough for today")
    share = victim.project / ".holdfast" / "share"
    subprocess.run(["git", "init", "--quiet", "--bare", "--template=", share], check=True)
    (share / "name").write_text("copy_0123456789abcdef")
    for words in (("share", "push"), ("share", "pull")):
        result = victim.run(*words)
        assert (result.code, "folder share was not created by you" in result.err) == (1, True), result
    assert not list((tmp_path / "remote.git" / "refs").glob("holdfast/*"))
    share.rename(tmp_path / "away")
    assert victim.ok("share", "push").out.startswith("Shared 1 session")
    assert victim.ok("share", "push").out.startswith("Shared 1 session")
