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
        ("pytest -q | head -20", "3 passed in 1s", "passed"),  # all of it was shown
        ("pytest -q | head -20", "3 passed in 1s\n" * 20, "unsure"),
        ("pytest -q | grep pass", "3 passed in 1s", "unsure"),
        ("make test &", "", "unsure"),
        ("npm test || true", "", "unsure"),
        (
            "pytest -q",
            "Command running in background with ID: b1. Output is being written to: /t/b1",
            "unsure",
        ),
        ("make test", "Command was moved to the background (PID: 7)", "unsure"),
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
    assert (
        'finish the task "Hang the door" (edited since the list was last updated: `src/wall.py`)'
        in text.replace("Finish", "finish")
    )
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


_OPTIONS = """Two ways:

**A) Oak**
- lasts

**B) Pine, painted twice**
- cheap

Oak is here already, and pine would have to be brought.
Which do you prefer?"""
_QUESTIONS = """```
a door
```
### Questions
1. **Hinge**: left or right?
2. How many keys shall there be?
3. Paint it?

Shall I begin?"""


@pytest.mark.parametrize(
    ("before", "said", "asked"),
    [
        (_OPTIONS, "B", "Which do you prefer? [B: Pine, painted twice]"),
        (_OPTIONS, "I'd like it to be A, and green", "Which do you prefer? [A: Oak; B: Pine, painted twice]"),
        (_OPTIONS, "it must last", "Which do you prefer? [A: Oak; B: Pine, painted twice]"),
        (
            _QUESTIONS,
            "1. left 2. two, and one for the neighbour 3. no",
            "1: Hinge: left or right?; 2: How many keys shall there be?; 3: Paint it?",
        ),
        (_QUESTIONS, "yes", "Shall I begin?"),
        (
            "Do you want to:\n- A) Hang the door\n- B) Something else?",
            "oil it first",
            "Do you want to: A: Hang the door; B: Something else?",
        ),
        ("It holds 50 kg.\n1. Nail it\n2. Glue it\nI would glue it.", "do 2", "[2: Glue it]"),
        ("1. Nail it\n2. Glue it\nBoth hold 50 kg.\nShall I?", "50 is enough", "Shall I?"),
    ],
)
def test_an_answer_carries_the_options_and_questions_it_names(before: str, said: str, asked: str):
    assert question_answered(before, said) == asked


def test_a_failed_run_names_the_parts_that_failed_and_every_place():
    output = "--- FAIL: TestDoor (0.1s)\n    --- FAIL: TestDoor/left (0.1s)\n--- FAIL: TestRoof (0s)\nFAIL"
    assert check_run(1, "go test ./...", False, output, "test").failing == ("TestDoor/left", "TestRoof")
    places = "\n".join(f"door.go:{line}:2: too wide (fit)" for line in range(1, 7))
    run = check_run(1, "golangci-lint run", True, places, "lint")
    assert run.summary.startswith("door.go:1:2: too wide (fit) / door.go:2:2: too wide (fit) / door.go:3:2")
    assert run.summary.endswith("door.go:4:2: too wide (fit) (and 2 more)")


def test_a_failed_run_whose_names_were_cut_away_is_told_by_what_was_expected():
    said = '    hooks.go:1: Hook output\n    door_test.go:441: after the turn: got "2", want "1"\n'
    output = f"{said}FAIL\nFAIL\tshed"
    assert check_run(1, "go test ./... | tail -60", False, output, "test").summary == (
        'door_test.go:441: after the turn: got "2", want "1"'
    )


def test_a_new_branch_and_a_pull_that_brings_nothing_are_the_same_tree():
    session = Session().shell("make test", "3 passed in 1s")
    for command in (
        "git checkout -b side",
        "git switch -c side",
        "git checkout door.py",
        "git checkout -- door",
    ):
        assert session.shell(command).found().git.moved_index == -1
    assert session.shell("git pull", "Already up to date.").found().git.moved_index == -1
    assert session.shell("git pull", "Updating 1a2b3c4..5d6e7f8").found().git.moved_index > 0


def test_a_pull_request_of_others_is_not_the_sessions():
    found = (
        Session()
        .shell(
            "gh pr view --json title,url,body",
            "https://example.com/k/s/pull/7 after https://example.com/k/s/pull/1",
        )
        .shell("gh pr view 9 --json body", "see https://example.com/k/s/pull/9")
        .found()
    )
    assert found.git.pull_requests == ("https://example.com/k/s/pull/7",)
