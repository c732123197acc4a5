"""`holdfast quiet`: which session it means, and that others are not affected."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

import pytest

from .harness import PATIENCE, PROGRAM, Place, on_terminal

A = "266b3f40-6f1d-491c-aeca-825cbb3fcbc5"


def state(place: Place, session: str) -> tuple[bool, int | None]:
    found = place.json("quiet", "status", "--session-id", session)
    assert found["session_id"] == session
    return found["quiet"], found["prompts"]


def markers(place: Place) -> list[str]:
    return sorted(path.name for path in (place.project / ".holdfast" / "state").glob("quiet-*"))


def test_on_and_off(place: Place) -> None:
    assert place.ok("quiet", "status", "--session-id", A).out == f"Session {A} is not quiet.\n"
    assert markers(place) == []
    assert place.ok("quiet", "on", "--session-id", A).out == (
        f"Nudges are off in session {A}. Back on with: holdfast quiet off\n"
    )
    assert place.ok("quiet", "status", "--session-id", A).out == f"Session {A} is quiet, for 0 prompts.\n"
    assert state(place, "another") == (False, None)
    assert place.ok("quiet", "off", "--session-id", A).out == f"Nudges are back on in session {A}.\n"
    assert state(place, A) == (False, None)
    assert place.ok("quiet", "off", "--session-id", A).out == ""
    assert place.git("status", "--porcelain") == ""


def test_on_again_counts_from_zero(place: Place) -> None:
    place.ok("quiet", "on", "--session-id", A)
    (place.project / ".holdfast" / "state" / f"quiet-{A}").write_text("7")
    assert state(place, A) == (True, 7)
    place.ok("quiet", "on", "--session-id", A)
    assert state(place, A) == (True, 0)


def test_off_in_a_fresh_folder_makes_nothing(place: Place) -> None:
    before = place.tree()
    assert place.ok("quiet", "off", "--session-id", A).out == ""
    assert place.ok("quiet", "status").out == "Session session-unknown is not quiet.\n"
    assert place.tree() == before


FOUND: dict[str, tuple[list[str], Mapping[str, str], str | None, str]] = {
    "flag": (
        ["--session-id", "flag"],
        {"CLAUDE_CODE_SESSION_ID": "variable"},
        '{"session_id": "stdin"}',
        "flag",
    ),
    "variable": ([], {"CLAUDE_CODE_SESSION_ID": "variable"}, '{"session_id": "stdin"}', "variable"),
    "our variable": ([], {"HOLDFAST_SESSION_ID": "ours", "CLAUDE_CODE_SESSION_ID": "agent"}, None, "ours"),
    "stdin": ([], {}, '{"session_id": "stdin", "hook_event_name": "Stop"}\n', "stdin"),
    "empty variable": ([], {"CLAUDE_CODE_SESSION_ID": ""}, '{"session_id": "stdin"}', "stdin"),
    "large payload": ([], {}, '{"text": "' + "x" * 300_000 + '", "session_id": "stdin"}', "stdin"),
    "no JSON": ([], {}, "hello", "session-unknown"),
    "no object": ([], {}, "[1]", "session-unknown"),
    "no text": ([], {}, '{"session_id": 5}', "session-unknown"),
    "nothing": ([], {}, None, "session-unknown"),
    "odd name": (["--session-id", "../../a b/ü"], {}, None, "../../a b/ü"),
}


@pytest.mark.parametrize(("flags", "env", "stdin", "session"), FOUND.values(), ids=FOUND.keys())
def test_which_session(
    place: Place, flags: list[str], env: Mapping[str, str], stdin: str | None, session: str
) -> None:
    told = place.ok("quiet", "on", *flags, env=env, stdin=stdin).out
    assert told.startswith(f"Nudges are off in session {session}. ")
    assert len(markers(place)) == 1
    assert (
        place.ok("quiet", "status", "--session-id", session).out
        == f"Session {session} is quiet, for 0 prompts.\n"
    )


def test_a_pipe_nobody_writes_to(place: Place) -> None:
    """It must not hang: an agent may keep stdin open for as long as it lives."""
    theirs, ours = os.pipe()
    try:
        result = place.ok("quiet", "status", stdin=theirs)
    finally:
        os.close(theirs)
        os.close(ours)
    assert result.out == "Session session-unknown is not quiet.\n"


def test_a_payload_on_a_pipe_that_stays_open(place: Place) -> None:
    theirs, ours = os.pipe()
    try:
        os.write(ours, b'{"session_id": "stdin"}\n')
        result = place.ok("quiet", "status", stdin=theirs)
    finally:
        os.close(theirs)
        os.close(ours)
    assert result.out == "Session stdin is not quiet.\n"


def test_no_stdin_at_all(place: Place) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *PROGRAM, "quiet", "status"],
        cwd=place.project,
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Session session-unknown is not quiet.\n", "")


def test_a_terminal_is_not_read(place: Place) -> None:
    assert on_terminal(place, ["quiet", "status"]) == (0, "Session session-unknown is not quiet.\n")


def test_commands_are_never_silenced(place: Place) -> None:
    place.ok("quiet", "on", "--session-id", A)
    loud = place.ok("winddown", "start", "--percent", "0.9", env={"CLAUDE_CODE_SESSION_ID": A})
    assert loud.out.startswith("Wind-down started: ")
