"""`holdfast winddown finalize --transcript`: the pause is safe first, then the talk is looked at."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from findings.scripted_model import Reply, ScriptedModel, fails, hangs, raw, says
from holdfast.sessions.enrich import enrich_snapshot
from holdfast.sessions.pause import open_store
from transcripts import claude_files as claude

from .harness import Place, tree_of
from .test_context import (
    AGENTS,
    BROKEN,
    CHOICE,
    LATEST,
    LINT,
    NEEDED,
    SECRETS,
    assert_not_in,
    enriched,
    ran_tool,
    session_file,
    talk,
    with_name,
)

LIMIT = 0.5
CHOSEN = CHOICE.split(", because", maxsplit=1)[0]


def stored(place: Place, name: str) -> dict[str, Any]:
    """The snapshot as the database has it."""
    with open_store(place.settings()) as store:
        [line] = store.find_snapshots(name)
        return store.snapshot(line.id).model_dump(mode="json")


def documents(place: Place, name: str) -> dict[str, Any]:
    """The snapshot as the database and as both machine-readable files have it."""
    text = (place.sessions / f"{name}.json").read_text(encoding="utf-8")
    return {
        "database": stored(place, name),
        "json": json.loads(text),
        "yaml": yaml.safe_load((place.sessions / f"{name}.yaml").read_text(encoding="utf-8")),
    }


def enrich(place: Place, name: str, file: Path, **settings: Any) -> dict[str, Any]:
    """What `finalize` does after the pause, in this process: starting the program costs more."""
    enrich_snapshot(place.settings(**settings), stored(place, name)["id"], file)
    return stored(place, name)


def finalised(place: Place, transcript: Path, *options: str, **how: Any) -> str:
    """Paused with what the session file tells, by the program."""
    name = place.started("tool_call")
    place.ok("winddown", "finalize", "--transcript", transcript, *options, **how)
    return name


FOUND = ("decisions", "errors", "test_state", "reviewer_feedback", "gathered", "fidelity")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_snapshot_holds_what_the_session_told(place: Place, agent: str) -> None:
    name = finalised(place, session_file(place, agent))
    document = documents(place, name)
    assert document["yaml"] == document["json"]
    found = document["database"]
    for field in FOUND:
        assert document["json"][field] == found[field]
    [decision] = found["decisions"]
    assert decision["description"] == CHOSEN
    assert "rust" in decision["rationale"]
    assert decision["evidence"][0]["source"] == "s-1"
    assert decision["evidence"][0]["messages"]
    errors = {error["resolution"]: error for error in found["errors"]}
    assert errors["fixed"]["error_message"].endswith(LINT)
    assert errors["unresolved"]["error_message"].endswith(BROKEN)
    assert errors["unresolved"]["context"] == "pytest -q"
    assert all(error["evidence"][0]["messages"] for error in found["errors"])
    assert found["test_state"]["phase"] == "red"
    assert found["test_state"]["failing_tests"] == ["tests/test_door.py::test_opens"]
    assert found["gathered"]["turns"][-1]["said"] == LATEST
    assert [todo["status"] for todo in found["gathered"]["todos"]] == [
        "completed",
        "in_progress",
        "pending",
    ]
    categories = {row["category"]: row for row in found["fidelity"]["categories"]}
    assert categories["open tasks"]["carried"] == 2
    page = (place.sessions / f"{name}.md").read_text(encoding="utf-8")
    assert "hinges of brass" in page
    assert f"{BROKEN} (unresolved)" in page
    if agent == "claude-code":
        [feedback] = found["reviewer_feedback"]
        assert (feedback["reviewer_persona"], feedback["addressed"]) == ("review the door", False)


def test_what_is_said_and_printed(place: Place) -> None:
    place.started("tool_call")
    result = place.ok("winddown", "finalize", "--transcript", session_file(place, "claude-code"))
    assert place.shown(result.out) == (
        "Paused: SESSION-1\n"
        "  PROJECT/.holdfast/sessions/SESSION-1.json\n"
        "See it with: holdfast snapshot show SESSION-1\n"
    )


def test_everything_stays_private(place: Place) -> None:
    finalised(place, session_file(place, "claude-code"))
    modes = {name: mode for name, (mode, _) in tree_of(place.project / ".holdfast").items()}
    assert {mode for mode in modes.values() if mode.startswith("-")} == {"-rw-------"}
    assert {mode for mode in modes.values() if mode.startswith("d")} == {"drwx------"}


def test_the_committed_files_hold_it_too(place: Place) -> None:
    name = finalised(place, session_file(place, "claude-code"), "--commit")
    committed = json.loads(place.git("show", f"HEAD:.holdfast/sessions/{name}.json"))
    assert committed["decisions"]


def test_archive_only_has_no_snapshot_to_add_to(place: Place) -> None:
    place.started()
    result = place.ok(
        "winddown", "finalize", "--archive-only", "--transcript", session_file(place, "claude-code")
    )
    assert result.out.startswith("Journal kept: ")


# ── a session file that cannot be read costs the findings alone ────────────────────────────


ODD_FILES = {
    "empty": b"",
    "damaged database": b"SQLite format 3\x00" + b"\xff" * 5000,
    "damaged archive": b"\x1f\x8b\x08\x00garbage",
    "garbage": bytes(range(256)) * 20,
}


def test_session_files_that_cannot_be_read(place: Place) -> None:
    for name, data in ODD_FILES.items():
        (place.root / name).write_bytes(data)
    paused_all_the_same(place, list(ODD_FILES))


def test_session_files_that_are_not_there(place: Place) -> None:
    """Whoever calls this may have been told a wrong path; that is no reason not to pause."""
    (place.root / "folder").mkdir()
    paused_all_the_same(place, ["missing", "folder"])


def paused_all_the_same(place: Place, names: list[str]) -> None:
    runs = place.many(
        *(
            words
            for name in names
            for words in (
                ["winddown", "start", "--percent", "0.9"],
                ["winddown", "finalize", "--transcript", str(place.root / name)],
                ["context"],
            )
        )
    )
    for name, started, result, context in zip(names, runs[::3], runs[1::3], runs[2::3], strict=True):
        assert result.code == 0, result
        assert result.lines[0] == f"Paused: {started.out.split()[2]}"
        assert re.fullmatch(f"warning: nothing was added from .*{name}: .+\n", result.err), result
        assert context.code == 0
    assert len(place.json("snapshot", "list")) == len(names)


def test_a_damaged_middle_costs_only_itself(place: Place) -> None:
    file = session_file(place, "claude-code")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:3], b"\xff\x00garbage\n", *lines[3:], b'{"torn']))
    assert stored(place, enriched(place, file))["decisions"]


def test_a_database_that_is_away_costs_only_the_findings(place: Place) -> None:
    """The files are the pause. What the database misses it gets later."""
    name = place.started("tool_call")
    env = {"HOLDFAST_DB": "/dev/null/none.db"}
    result = place.run("winddown", "finalize", "--transcript", session_file(place, "claude-code"), env=env)
    assert result.code == 0, result
    assert result.lines[0] == f"Paused: {name}"
    assert all(line.startswith("warning: ") for line in result.err.splitlines())
    assert place.latest() == f"{name}\n"


def test_a_key_whose_end_is_missing_does_not_stop_the_pause(place: Place) -> None:
    """`head -2 key.pem`: a beginning without an end, in the middle of what is stored as JSON."""
    start = "-----BEGIN " + "RSA PRIVATE KEY-----"
    file = talk(
        place,
        claude.typed(f"The file begins with {start} and then breaks off"),
        *ran_tool(1, f"error: {start} MIIEowIBAAKCAQEA1x2y3z", error=True, command="head -2 key.pem"),
        claude.typed("Go on"),
    )
    name = finalised(place, file)
    found = stored(place, name)
    assert "MIIEowIBAAKCAQEA" not in json.dumps(found)
    assert found["gathered"]["turns"][-1]["said"] == "Go on"


def test_a_key_whose_end_is_missing_does_not_damage_the_journal(place: Place) -> None:
    start = "-----BEGIN " + "RSA PRIVATE KEY-----"
    place.started()
    data = json.dumps({"output": f"{start}\nMIIEowIBAAKCAQEA1x2y3z", "tool": "Bash"})
    place.ok("winddown", "append", "tool_call", "--data", data, "--percent", "0.92")
    assert "MIIEowIBAAKCAQEA" not in place.journal.read_text()
    [_, action] = place.manager().get_recorded_actions()
    assert action.data["tool"] == "Bash"


def key_block(kind: str, *head: str) -> str:
    body = [f"MIIEowIBAAKCAQEA{number:02d}x2y3z+/Qw" for number in range(4)]
    return "\n".join((f"-----BEGIN {kind}-----", *head, *body, "=aB3d", f"-----END {kind}-----"))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(key_block("OPENSSH " + "PRIVATE KEY"), id="plain"),
        pytest.param(
            key_block("RSA " + "PRIVATE KEY", "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,0F", ""),
            id="encrypted",
        ),
        pytest.param(
            key_block("PGP " + "PRIVATE KEY BLOCK", "Version: GnuPG v2.0.22 (GNU/Linux)", ""), id="pgp"
        ),
    ],
)
def test_a_whole_key_is_taken_out_however_deep_it_is_packed(place: Place, block: str, depth: int) -> None:
    """Tools hand on JSON in JSON: line ends are escaped once more at every depth."""
    packed = block
    for _ in range(depth - 1):
        packed = json.dumps({"content": packed})
    place.started()
    place.manager().append_action("tool_call", {"out": packed, "tool": "Bash"}, 0.92)
    assert "MIIEowIBAAKCAQEA" not in place.journal.read_text()
    [_, action] = place.manager().get_recorded_actions()
    assert action.data["tool"] == "Bash"


# ── secrets ────────────────────────────────────────────────────────────────────────────────


def everything_written(place: Place) -> str:
    """Every byte under the project's and the user's data folder, and the rows of the database."""
    texts = [
        path.read_bytes().decode("latin-1")
        for folder in (place.project / ".holdfast", place.home)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    with closing(sqlite3.connect(place.database)) as connection:
        texts += connection.iterdump()
    return "\n".join(texts)


def test_secrets_are_nowhere_on_the_disk(place: Place) -> None:
    lines: list[dict[str, Any]] = []
    for number, kind in enumerate(SECRETS):
        named = with_name(kind)
        todo = {"content": f"Use {named}", "status": "pending"}
        lines += [
            claude.typed(f"Use {named} for it"),
            claude.said(f"I'll put {named} into the file, because the server wants it."),
            *ran_tool(10 * number, f"error: no {named}", error=True, command=f"deploy {kind} --key {named}"),
            *ran_tool(10 * number + 1, f"FAILED a - {named}", error=True, command=f"pytest # {named}"),
            *ran_tool(10 * number + 2, "ok", tool="Write", file_path=f"/p/{kind}", content=f"K='{named}'\n"),
            *ran_tool(
                10 * number + 3, f"- should not show {named} to all", tool="Task", description="review"
            ),
            *ran_tool(10 * number + 4, "ok", tool="TodoWrite", todos=[todo]),
        ]
    everything = " ".join(map(with_name, SECRETS))
    manager = place.manager()
    manager.start_incremental_pause(0.9, {"note": everything})
    manager.append_action("tool_call", {"out": everything}, 0.91)
    journal = place.journal.read_text()
    result = place.ok(
        "winddown", "finalize", "--transcript", talk(place, *lines), "-r", f"because of {everything}"
    )
    written = everything_written(place)
    shown = place.many(["context"], ["context", "--json"], ["snapshot", "show", "latest"], ["status"])
    for secret, label in SECRETS.values():
        for text in (journal, written, result.out, *(one.out for one in shown)):
            assert_not_in(text, secret)
        assert f"[redacted:{label}]" in written


def test_the_report_of_a_snapshot_says_how_many_secrets_were_taken_out(place: Place) -> None:
    """X4. They are gone before the snapshot is stored; what is printed there still stands for them."""
    named = with_name("github")
    name = enriched(place, talk(place, claude.typed(f"Use {named} for it")))
    told = place.run("context", "--report")
    count = told.out.count("[redacted:")  # it is the goal, and the next step
    assert count == 2
    assert re.match(rf"\d+ of \d+ characters used, {count} secrets removed\n", told.err), told.err
    assert stored(place, name)["fidelity"]["redacted"] == count


# ── again, and again ───────────────────────────────────────────────────────────────────────


def test_twice_adds_nothing_twice(place: Place) -> None:
    file = session_file(place, "claude-code")
    name = enriched(place, file)
    before, context = documents(place, name), place.ok("context").out
    enrich(place, name, file)
    after = documents(place, name)
    for where, document in after.items():
        for field in FOUND:
            assert document[field] == before[where][field], (where, field)
    assert place.ok("context").out == context


def test_a_session_that_went_on_is_told_anew(place: Place) -> None:
    """Enriched early, then again when the talk is longer: errors that were open may be settled."""
    file = session_file(place, "claude-code")
    name = enriched(place, file)
    with file.open("ab") as more:
        more.write(claude.file_of(*ran_tool(9, "4 passed in 0.1s", command="pytest -q")))
    found = enrich(place, name, file)
    assert [error["resolution"] for error in found["errors"]] == ["fixed", "fixed"]
    assert found["test_state"]["phase"] == "green"
    context = place.ok("context").out
    assert "Unresolved" not in context
    assert "passed (green)" in context


def test_the_next_pause_carries_the_findings_forward(place: Place) -> None:
    before = stored(place, enriched(place, session_file(place, "claude-code")))
    after = stored(place, place.paused("tool_call", reason="supper"))
    for field in ("decisions", "errors", "test_state", "reviewer_feedback"):
        assert after[field] == before[field]
    context = place.ok("context").out
    for text in ("hinges of brass", "it is stuck", "The latch is missing", "supper"):
        assert text in context


def test_a_second_session_adds_to_the_first(place: Place) -> None:
    enriched(place, session_file(place, "claude-code"))
    said = "I'll use oak for the frame, because it outlasts pine by far."
    found = stored(place, enriched(place, talk(place, claude.said(said), claude.typed("Now the frame"))))
    assert [item["description"] for item in found["decisions"]] == [CHOSEN, "I'll use oak for the frame"]
    assert len(found["errors"]) == 2
    context = place.ok("context").out
    for text in ("Now the frame", "hinges of brass", "it is stuck"):
        assert text in context


def test_a_lost_database_is_rebuilt_with_the_findings(place: Place) -> None:
    enriched(place, session_file(place, "claude-code"))
    context = place.ok("context").out
    for path in place.home.glob("holdfast.db*"):
        path.unlink()
    _, again = place.many(["reindex"], ["context"])
    assert again.out == context
    assert [text for text in NEEDED if text not in context] == []


# ── a model adds; it never takes away, and it is never waited for ──────────────────────────


def with_model(url: str, limit: float = 20.0) -> dict[str, str]:
    return {
        "HOLDFAST_MODEL": "scripted",
        "HOLDFAST_MODEL_URL": url,
        "HOLDFAST_MODEL_TIME_LIMIT": str(limit),
        "HOLDFAST_FORBID_MODELS": "1",  # but for those on this machine
    }


ADDED = {
    "decision_type": "library",
    "description": "Keep the latch of the old gate",
    "rationale": "It still closes well",
    "alternatives_considered": ["a new latch"],
    "messages": [1],
}
WENT_WRONG = {
    "error_type": "Measurement",
    "error_message": "The frame is two fingers too narrow",
    "context": "hanging the door",
    "resolution": "deferred",
    "resolution_notes": "plane it later",
    "messages": [13],
}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(says({"decisions": [ADDED], "errors": [WENT_WRONG]})).running() as running:
        yield running


def test_a_model_adds_what_it_sees(place: Place, model: ScriptedModel) -> None:
    name = finalised(place, session_file(place, "claude-code"), env=with_model(model.base_url))
    assert len(model.requests) == 1
    assert LATEST in json.dumps(model.requests[0])
    for document in documents(place, name).values():
        assert [item["description"] for item in document["decisions"]] == [
            CHOSEN,
            ADDED["description"],
        ]
        added = document["decisions"][1]
        assert added["alternatives_considered"] == ["a new latch"]
        assert added["evidence"][0]["messages"] == [1]
        assert WENT_WRONG["error_message"] in {error["error_message"] for error in document["errors"]}
        assert len(document["errors"]) == 3
    context = place.ok("context").out
    assert "Keep the latch of the old gate" in context
    assert "two fingers too narrow" in context


def note(text: str, *messages: int) -> dict[str, Any]:
    return {"text": text, "messages": list(messages)}


def test_a_model_is_given_the_facts_and_asked_for_what_takes_a_reader(place: Place) -> None:
    reading: dict[str, Any] = {
        "decisions": [ADDED],
        "now": [note("The hinge hangs askew; next, plane gate.py and run the linter", 13)],
        "causes": [note("The frame was measured along the outer edge", 13)],
        "edits": [note("gate.py takes the new width, the check of it is missing", 13)],
        "answers": [note("With its short answer the user chose the old latch", 1)],
        "verdicts": [],
    }
    file = session_file(place, "claude-code")
    with ScriptedModel(says(reading), says({"decisions": []}), says("rubbish")).running() as model:
        name = finalised(place, file, env=with_model(model.base_url))
        asked = json.dumps(model.requests[0])
        assert "<facts-" in asked
        assert "The user's latest message" in asked
        for document in documents(place, name).values():
            assert document["reading"]["now"]["text"] == reading["now"][0]["text"]
            assert document["reading"]["now"]["evidence"][0]["messages"] == [13]
        context = place.ok("context").out
        for kind in ("now", "causes", "edits", "answers"):
            assert reading[kind][0]["text"] in context
        assert context.index("## As a model read the record") < context.index("## Now")
        # What was read in a record that went on since is not told as of now.
        after = enrich(place, name, file, model="scripted", model_url=model.base_url)
        assert after["reading"]["now"] is None
        assert "As a model read" not in place.ok("context").out


def test_a_model_closes_an_error_that_rules_left_open(place: Place) -> None:
    """By what came after it: what it says of the error itself closes nothing."""
    file = talk(
        place,
        claude.typed("Build it"),
        *ran_tool(1, "make: *** [gate.o] Error 1", error=True, command="make gate"),
        claude.said("The compiler was too old, and the image has a new one now."),
    )
    verdict = {"error": "E1", "open": False, "how": "the image has a new compiler", "messages": [4]}
    with ScriptedModel(says({"decisions": [], "verdicts": [verdict]})).running() as model:
        name = enriched(place, file, model="scripted", model_url=model.base_url)
        [error] = stored(place, name)["errors"]
        assert error["resolution"] == "fixed"
        assert "as a model read the record: the image has a new compiler" in error["resolution_notes"]
        assert "gate.o" in json.dumps(model.requests[0])
    told = "Settled, though no rule saw it: make: *** [gate.o] Error 1: the image has a new compiler"
    assert told in place.ok("context").out, "it does not vanish on a model's word"


def test_the_same_answer_twice_adds_nothing_twice(place: Place, model: ScriptedModel) -> None:
    file = session_file(place, "claude-code")
    settings = {"model": "scripted", "model_url": model.base_url}
    name = enriched(place, file, **settings)
    before = stored(place, name)
    after = enrich(place, name, file, **settings)
    assert len(model.requests) == 2
    for field in ("decisions", "errors"):
        assert [item | {"timestamp": 0} for item in after[field]] == [
            item | {"timestamp": 0} for item in before[field]
        ]
        assert len(after[field]) == {"decisions": 2, "errors": 3}[field]


def test_a_model_is_shown_no_secret(place: Place, model: ScriptedModel) -> None:
    named = with_name("github")
    file = talk(place, claude.typed(f"Use {named}"), *ran_tool(1, named, command=f"x {named}"))
    enriched(place, file, model="scripted", model_url=model.base_url)
    assert model.requests
    assert_not_in(json.dumps(model.requests), SECRETS["github"][0])


def test_a_model_that_hangs(place: Place) -> None:
    name = place.started("tool_call")
    file = session_file(place, "claude-code")
    with ScriptedModel(hangs).running() as model:
        result = place.run(
            "winddown", "finalize", "--transcript", file, env=with_model(model.base_url, LIMIT)
        )
    assert result.code == 0, result
    assert result.lines[0] == f"Paused: {name}"
    assert re.fullmatch("warning: nothing was added by the model: .+\n", result.err), result
    assert_by_rule(stored(place, name))
    assert [text for text in NEEDED if text not in place.ok("context").out] == []


def assert_by_rule(found: dict[str, Any]) -> None:
    assert [item["description"] for item in found["decisions"]] == [CHOSEN]
    assert len(found["errors"]) == 2
    assert found["gathered"]["turns"][-1]["said"] == LATEST


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(says("rubbish"), id="rubbish"),
        pytest.param(says(None, refusal="I will not"), id="refusal"),
        pytest.param(fails(500), id="broken"),
        pytest.param(fails(401), id="no key"),
        pytest.param(raw(b"<html>"), id="no JSON"),
        pytest.param(None, id="nobody there"),
    ],
)
def test_a_model_that_is_of_no_use(
    place: Place, reply: Reply | None, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as taken, ScriptedModel(reply or hangs).running() as model:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        url = model.base_url if reply else f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        name = enriched(
            place, session_file(place, "claude-code"), model="scripted", model_url=url, model_time_limit=5.0
        )
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "nothing was added by the model"
    ]
    assert_by_rule(stored(place, name))


@pytest.mark.parametrize("limit", ["0", "-1", "soon", "nan"])
def test_a_time_limit_that_is_none_does_not_cost_the_pause(place: Place, limit: str) -> None:
    """Either the setting is refused before anything is done, or the pause is made."""
    name = place.started("tool_call")
    env = {**with_model("http://127.0.0.1:9/v1"), "HOLDFAST_MODEL_TIME_LIMIT": limit}
    result = place.run("winddown", "finalize", "--transcript", session_file(place, "claude-code"), env=env)
    if result.code:
        result.failed(2, error="(?i)time.limit")
        assert place.journal.exists()
    else:
        assert place.latest() == f"{name}\n"


def test_context_asks_no_model(place: Place, model: ScriptedModel) -> None:
    file: Path = session_file(place, "claude-code")
    place.ok("context", "--transcript", file, env=with_model(model.base_url))
    assert model.requests == []
