from __future__ import annotations

import pytest

from findings.sessions import Session
from holdfast.findings.rules.commands import is_test_command
from holdfast.model.message import TodoItem


def test_files_with_what_was_done_to_them():
    found = (
        Session()
        .tool("Write", file_path="/p/new.py", content="a")
        .edit("/p/new.py")
        .tool("Read", file_path="/p/old.py")
        .edit("/p/old.py")
        .tool("Read", file_path="/p/other.py")
        .edit("/p/wished.py", outcome="interrupted")
        .found()
    )
    files = {file.path: file for file in found.files}
    assert (files["/p/new.py"].created, files["/p/new.py"].edits) == (True, 2)
    assert (files["/p/old.py"].created, files["/p/old.py"].edits, files["/p/old.py"].reads) == (False, 1, 1)
    assert (files["/p/other.py"].edits, files["/p/other.py"].reads) == (0, 1)
    assert (files["/p/wished.py"].edits, files["/p/wished.py"].refused) == (0, 1)


def test_a_patch_names_its_files():
    patch = (
        "*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: b.py\n*** Delete File: c.py\n*** End Patch"
    )
    by_tool = Session().tool("apply_patch", input=patch).found()
    by_shell = Session().tool("shell", command=["bash", "-lc", f"apply_patch <<'E'\n{patch}\nE"]).found()
    for found in (by_tool, by_shell):
        deeds = {file.path: (file.created, file.deleted) for file in found.files}
        assert deeds == {"a.py": (True, False), "b.py": (False, False), "c.py": (False, True)}


def test_commands_with_counts():
    found = Session().shell("make").shell("make", "error", "error").shell("make").shell("x\ny").found()
    (use,) = found.commands
    assert (use.command, use.runs, use.failures, use.last_failed) == ("make", 3, 1, False)


@pytest.mark.parametrize(
    ("command", "is_test"),
    [
        ("pytest -q", True),
        ("go test ./...", True),
        ("npm run test:unit", True),
        ("mise run test 2>&1", True),
        ("cargo test --all", True),
        ("make test", True),
        ("grep -r test .", False),
        ("cat test.py", False),
        ("make", False),
        ("pytest --collect-only -q", False),
        ("python -m pytest --version", False),
        ("pytest --version && pytest -q", True),
        ("jest --listTests", False),
    ],
)
def test_test_commands(command: str, is_test: bool):
    assert is_test_command(command) is is_test


def test_a_red_run_names_what_fails():
    output = (
        "--- FAIL: TestRoof (0.1s)\nFAILED tests/test_shed.py::test_door - Leak\n1 failed, 3 passed in 2s"
    )
    run = Session().shell("pytest", output, "error").edit("src/door.py").found().tests
    assert run is not None
    assert not run.passed
    assert run.failing == ("TestRoof", "tests/test_shed.py::test_door")
    assert run.summary == "1 failed, 3 passed in 2s"
    assert run.edited_since == ("src/door.py",)


def test_a_green_run_after_it():
    run = Session().shell("pytest", "1 failed", "error").shell("pytest", "4 passed in 1s").found().tests
    assert run is not None
    assert run.passed


def test_a_failing_run_behind_a_pipe_is_red():
    run = Session().shell("go test ./... | tail -3", "--- FAIL: TestRoof\nFAIL").found().tests
    assert run is not None
    assert not run.passed


def test_git_facts():
    found = (
        Session()
        .edit("a.py")
        .shell("git commit -m 'Paint'", "[paint 1a2b3c4] Paint the shed\n 1 file changed")
        .shell("git push", "To host\n 1a2b3c4..5d6e7f8  paint -> paint")
        .shell("gh pr create --draft", "https://example.com/kim/shed/pull/12")
        .edit("b.py")
        .found(branch="main")
    )
    assert found.git.branch == "paint"
    assert [(commit.identifier, commit.subject) for commit in found.git.commits] == [
        ("1a2b3c4", "Paint the shed")
    ]
    assert found.git.pushed_index > found.git.commits[0].index
    assert found.git.pull_requests == ("https://example.com/kim/shed/pull/12",)
    assert found.git.edited_since_commit == ("b.py",)


def test_the_newest_todo_list_counts():
    found = Session().todos(TodoItem("Saw", "pending")).todos(TodoItem("Saw", "completed")).found()
    assert found.todos == (TodoItem("Saw", "completed"),)


def test_a_list_given_to_holdfasts_own_tool_counts_too():
    todos = [{"text": "Saw", "status": "in_progress"}, {"text": 5, "status": "pending"}, "x", {"text": "No"}]
    session = Session().todos(TodoItem("Plane", "pending"))
    assert session.tool("mcp_holdfast_set_todos", todos=todos).found().todos == (
        TodoItem("Saw", "in_progress"),
    )
    assert session.tool("holdfast_set_todos", todos=None).found().todos == (TodoItem("Saw", "in_progress"),)


def test_review_feedback_and_whether_it_was_acted_on():
    answer = "Findings:\n- door.py: the hinge must be oiled before use\n- Great work on the whole roof"
    reviewed = Session().tool("Task", answer, description="Review the door", prompt="look")
    (review,) = reviewed.found().reviews
    assert review.comments == ("door.py: the hinge must be oiled before use",)
    assert not review.addressed
    assert reviewed.edit("src/door.py").found().reviews[0].addressed


def test_an_edit_settles_the_comments_on_its_file_and_no_others():
    answer = "- door.py: the hinge must be oiled first\n- roof.py: a tile is missing at the north end"
    reviewed = Session().tool("Task", answer, description="Review the house", prompt="look")
    (review,) = reviewed.edit("src/door.py").found().reviews
    assert not review.addressed
    assert review.comments == ("roof.py: a tile is missing at the north end",)
    assert reviewed.edit("src/roof.py").found().reviews[0].addressed


def test_an_earlier_summary_is_kept():
    found = Session().compacted("1. The shed stands.").user("go on").found()
    assert (found.earlier_summary, found.compactions) == ("1. The shed stands.", 1)


def test_one_file_has_one_path_however_it_is_written():
    session = Session().edit("/home/kim/shed/src/door.py").edit("./src/door.py").shell("cat src/door.py")
    (file,) = session.found(cwd="/home/kim/shed").files
    assert (file.path, file.edits, file.reads) == ("/home/kim/shed/src/door.py", 2, 1)
