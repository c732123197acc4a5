"""The ledger: what was done and where it stands, from what was printed and from nothing else."""

from __future__ import annotations

import pytest

from findings.sessions import Session
from holdfast.findings.rules.commands import check_run
from holdfast.findings.rules.conversation import question_answered
from holdfast.findings.rules.files import files_written
from holdfast.model.message import TodoItem
from holdfast.resume.compiler import compile_context
from holdfast.resume.ledger import WorkLedger, facts, ledger_of

COMMIT = ("git commit -m door", "[main 1a2b3c4] Hang the door")


def ledger(session: Session) -> WorkLedger:
    return ledger_of(session.found())


@pytest.mark.parametrize(
    ("command", "output", "verdict"),
    [
        ("pytest -q", "3 passed in 1s", "passed"),
        ("pytest -q | tail -5", "1 failed, 2 passed in 1s", "failed"),
        ("go test ./... 2>&1 | tail -3", "ok  \tshed/door\t0.2s", "passed"),
        ("pytest -q | head -20", "3 passed in 1s", "unsure"),
        ("make test &", "", "unsure"),
        ("npm test || true", "", "unsure"),
        ("go build ./... 2>&1 | tail", "door.go:4:2: undefined: hinge", "failed"),
    ],
)
def test_a_verdict_comes_from_the_output_and_not_from_a_pipe(command: str, output: str, verdict: str):
    run = check_run(1, command, False, output, "test")
    assert verdict == ("failed" if not run.passed else "unsure" if run.unsure else "passed")


def test_a_smaller_run_that_passes_settles_no_larger_one_that_failed():
    red = Session().shell("go test ./...", "--- FAIL: TestDoor (0.1s)\nFAIL", "error")
    assert ledger(red.shell("go test -run TestDoor ./door", "ok  \tshed/door\t0.1s")).red is not None
    assert ledger(red.shell("go test ./...", "ok  \tshed/door\t0.1s")).red is None


def test_a_list_of_tasks_that_may_be_behind_says_so():
    session = Session().user("Build it").todos(TodoItem(text="Hang the door", status="in_progress"))
    assert not ledger(session).plan_is_older
    later = session.edit("src/wall.py")
    assert ledger(later).plan_is_older
    text = compile_context(later.found(), 6000).text
    assert "written since the list was last updated: it may be done" in text
    assert 'last updated its list (files were written since): "Hang the door" (in progress)' in text


@pytest.mark.parametrize(
    ("said", "objects"), [("no, not the roof", True), ("hmm, actually B)", False), ("no roof at all?", False)]
)
def test_only_an_objection_is_called_one(said: str, objects: bool):
    session = Session().user("Paint the door").agent("Painted.").user(said).agent("I see.")
    assert ("the user objected" in compile_context(session.found(), 6000).text) == objects


def test_a_push_that_was_refused_is_none():
    made = Session().shell(*COMMIT)
    refused = " ! [rejected]  main -> main (fetch first)\nerror: failed to push some refs"
    assert [one.identifier for one in ledger(made.shell("git push | tail", refused)).unpushed] == ["1a2b3c4"]
    assert ledger(made.shell("git push", "   0a..1a  main -> main")).unpushed == ()


def test_a_commit_in_another_folder_is_not_of_this_session():
    assert ledger(Session().shell("cd ../house && git commit -m x", "[main 9f8e7d6] x")).commits == ()


def test_a_merge_is_open_until_it_is_concluded_and_its_conflicts_until_they_are_touched():
    stopped = (
        "CONFLICT (content): Merge conflict in src/door.py\nCONFLICT (content): Merge conflict in src/wall.py"
    )
    session = Session().shell("git merge side", stopped, "error").edit("src/door.py")
    assert ledger(session).git.conflicts == ("src/wall.py",)
    assert any("is not concluded" in text for text in facts(ledger(session)))
    assert ledger(session.shell("git commit --no-edit", "[main 1a2b3c4] Merge side")).git.under_way == ""


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("mv src/door.py src/gate.py", ["src/door.py", "src/gate.py"]),
        ("git rm src/door.py", ["src/door.py"]),
        ("sed -i -e 's/a/b/' a.py b.py", ["a.py", "b.py"]),
        ("git apply <<'E'\n--- a/src/door.py\n+++ b/src/door.py\nE", ["src/door.py"]),
        ("git checkout src/door.py", []),
    ],
)
def test_what_a_command_writes(command: str, paths: list[str]):
    assert files_written(command) == paths


@pytest.mark.parametrize(
    ("before", "said", "asked"),
    [
        ("Done. Shall I paint it, too?", "yes", "Done. Shall I paint it, too?"),
        (
            "A) Oak\nB) Pine\n\nWhich wood do you want for the door frame?",
            "B",
            "Which wood do you want for the door frame? [B: Pine]",
        ),
        ("All done.", "thanks", ""),
        ("Which one?", "first tell me why the old hinge was taken off and who has it now, will you?", ""),
    ],
)
def test_a_short_answer_carries_its_question(before: str, said: str, asked: str):
    assert question_answered(before, said) == asked
