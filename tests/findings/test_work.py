from __future__ import annotations

from datetime import UTC, datetime

import pytest

from findings.sessions import Session
from holdfast.findings.records import test_state
from holdfast.findings.rules.commands import check_kind
from holdfast.model.message import Message, TodoItem, ToolOutcome, ToolResult, latest_request


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


def test_a_patch_tells_of_each_file_what_an_edit_of_it_would():
    patch = """*** Begin Patch
*** Update File: shop/cart.py
@@ class Cart:
 def total(self):
     return sum(self.prices)
-def clear(self):
-    self.prices = []
+def empty(self):
+    self.prices = []
+
+def tax(self):
+    return 0.2
*** Add File: shop/vat.py
+def rate(country):
+    return RATES[country]
*** Update File: old.py
*** Move to: new.py
@@
-limit = 3
+limit = 4
@@ def allowed(count):
-    return count < limit
+    return count <= limit
*** End Patch"""
    found = Session().agent("Now let me add the sales tax.").tool("apply_patch", input=patch).found(cwd="/p")
    files = {file.path: file for file in found.files}
    cart, vat = files["/p/shop/cart.py"], files["/p/shop/vat.py"]
    assert (set(cart.added), cart.dropped, cart.purposes) == (
        {"empty", "tax"},
        ("clear",),
        ("add the sales tax",),
    )
    assert (vat.created, vat.added) == (True, ("rate",))
    assert files["/p/new.py"].names == ("allowed",)
    assert files["/p/old.py"].deleted
    assert [(one.kind, one.text) for one in found.happened[1:]] == [
        ("edit", "/p/shop/cart.py"),
        ("write", "/p/shop/vat.py"),
        ("delete", "/p/old.py"),
        ("edit", "/p/new.py"),
    ]
    hunks = {edit.path: edit.new for edit in found.edits}
    assert hunks["/p/shop/vat.py"].splitlines()[0] == "def rate(country):"
    assert "***" not in "".join(hunks.values())


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("cat shop/cart.py", ("read", "/p/shop/cart.py", "")),
        ("sed -n '1,40p' shop/cart.py", ("read", "/p/shop/cart.py", "lines 1 to 40")),
        ("nl -ba shop/cart.py | sed -n '20,60p'", ("read", "/p/shop/cart.py", "lines 20 to 60")),
        ('rg -n "def (total|tax)" shop', ("search", "def (total|tax)", "")),
        ("grep -rn 'a b' .", ("search", "a b", "")),
        ("rg total", ("search", "total", "")),
        (r'rg "\"total\" \{" shop', ("search", r'"total" \{', "")),
        ("cat shop/cart.py shop/vat.py", None),
        ("cat a.py > b.py", None),
        ("sed -i 's/a/b/' a.py", None),
        ("grep -n '<<<<' shop/cart.py", None),
        ('rg "$(make x)" .', None),
        ("rg --pre ./run total", None),
        ("rg -g '*.py' total", None),
        ("cat a.py; make", None),
        ("cat a.py\nmake", None),
        ("cat ~", None),
        ("cat -", None),
    ],
)
def test_codex_reads_and_searches_by_command(command: str, told: tuple[str, str, str] | None):
    (step,) = Session().tool("exec_command", "1: x", cmd=command).found(cwd="/p").happened
    assert (step.kind, step.text, step.told) == (told or ("shell", command, "1: x"))
    (by_bash,) = Session().shell(command).found(cwd="/p").happened
    assert by_bash.kind == "shell"


def test_what_is_done_in_a_message_comes_after_what_is_said_in_it():
    session = Session().edit("/p/a.py")
    call = session.messages[0]
    session.messages[0] = Message(0, "assistant", "Let me fix both.", tool_calls=call.tool_calls)
    said, edited = session.found().happened
    assert (said.kind, edited.kind) == ("said", "edit")
    assert said.index < edited.index


@pytest.mark.parametrize("agreed", ["Implement the plan.", "yes, go ahead"])
def test_a_plan_in_an_answer_that_the_user_takes_up(agreed: str):
    session = Session().user("add the tax").agent("<proposed_plan>\n# Tax\n- rates\n</proposed_plan>")
    assert session.found().plan is None
    found = session.user(agreed).found()
    assert found.plan is not None
    assert found.plan.text == "# Tax\n- rates"
    assert latest_request(found.turns).said == "add the tax"
    assert found.stop.kind == "unanswered"
    other = Session().agent("<proposed_plan>\n# Tax\n</proposed_plan>").user("no, leave it").agent("Fine.")
    assert other.user("go on").found().plan is None


@pytest.mark.parametrize("tool", ["exit_plan_mode", "plan_exit"])
def test_a_plan_in_a_file_that_the_user_agrees_to(tool: str):
    session = (
        Session().user("add the tax").tool("write_file", file_path="/t/plans/tax.md", content="# Tax\n- old")
    )
    session.tool("replace", file_path="/t/plans/tax.md", old_string="- old", new_string="- rates")
    assert session.tool(tool, "Plan rejected. User feedback: no").found().plan is None
    plan = session.tool(tool, "Plan approved.").found().plan
    assert plan is not None
    assert plan.text == "# Tax\n- rates"


@pytest.mark.parametrize(
    "listed",
    [
        'Found 2 matches for pattern "total":\n---\nFile: shop/cart.py\nL3: total\nL4- x\nL9: total\n---',
        "Found 2 matches\n/p/shop/cart.py:\n  Line 3: total\n  Line 9: total\n",
        "shop/cart.py:3:total\nshop/cart.py:9:total",
    ],
)
def test_a_search_names_lines_however_its_tool_lists_them(listed: str):
    (step,) = Session().tool("grep", listed, pattern="total").found(cwd="/p").happened
    assert [place.removeprefix("/p/") for place in step.places] == ["shop/cart.py:3, 9"]


def test_a_search_by_command_that_finds_nothing_has_not_failed():
    found = Session().tool("exec_command", "Exit code 1\n", "error", cmd="rg -n total shop").found()
    assert [(one.outcome, one.told) for one in found.happened] == [("ok", "no match")]
    assert found.failures == ()
    lost = Session().tool("exec_command", "Exit code 2\nrg: shop: IO error", "error", cmd="rg total shop")
    assert lost.found().happened[0].outcome == "error"


def test_lines_read_however_the_tool_names_them():
    session = Session().tool("read_file", file_path="/p/a.py", start_line=5, end_line=9)
    session.tool("read_file", file_path="/p/b.py", end_line=9).tool(
        "Read", file_path="/p/c.py", offset=5, limit=5
    )
    assert [one.told for one in session.found().happened] == ["lines 5 to 9", "lines 1 to 9", "lines 5 to 9"]


def test_a_sub_agent_that_reports_later_is_heard():
    session = Session().tool("spawn_agent", '{"agent_id": "a1"}', "unknown", message="look at the cart")
    (call_id,) = {one.id for message in session.messages for one in message.tool_calls}
    assert session.found().reports == ()
    session.agent("It looks.").messages.append(
        Message(3, "user", tool_results=(ToolResult(call_id, "The cart adds up.", "ok"),))
    )
    (report,) = session.found().reports
    assert (report.about, report.text) == ("look at the cart", "The cart adds up.")


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
        ("pip install pytest", False),
        ("cp pytest.ini /tmp", False),
        ("mkdir notes && echo 'run make test' > notes/README", False),
        ("ruff check && git commit -m 'Let make test pass'", False),
    ],
)
def test_test_commands(command: str, is_test: bool):
    assert (check_kind(command) == "test") is is_test


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("(make test) & sleep 1", ""),
        ("setsid pytest tests & disown", ""),
        ("nohup make test &", "[1] 77"),
        ("bash -c 'pytest & sleep 1'", ""),
        ("for each in a b; do pytest $each; done &", ""),
        ('tmux new -d "pytest"', ""),
        ("screen -dm pytest", ""),
        ("at now <<< pytest", "job 3 at Thu Nov 19 18:00:00 2026"),
        ("systemd-run pytest", "Running as unit: run-r1.service"),
        ("docker run -d shed pytest", "0a1b2c3d4e5f"),
        ("cargo test --no-run", "Finished `test` profile\nExecutable unittests src/lib.rs"),
        ("pytest --collect-only", "5 tests collected in 0.01s"),
        ("make -n test", "pytest"),
        ("pytest & wait", ""),
        ("pytest", "Command running in background with ID: b1. Output is being written to: /t/b1"),
        ("pytest", "3 passed\nCommand was moved to the background (ID: b1) after running for 60s."),
        (
            "pytest",
            "Command did not complete within its 60s timeout and was moved to the background (ID: b1).",
        ),
        (
            "pytest",
            "Command was manually backgrounded by user with ID: b1. Output is being written to: /t/b1",
        ),
        ("pytest", "The command had already ended when it was to be moved to the background."),
        ("pytest", "Not started: this same command, in this directory, was moved to the background"),
    ],
)
@pytest.mark.parametrize("outcome", ["ok", "error"])
def test_a_run_that_nobody_awaited_proves_nothing(command: str, output: str, outcome: ToolOutcome):
    red = Session().shell("make test", "1 failed", "error")
    found = red.shell(command, output, outcome).found()
    assert [run.command for run in found.checks if not run.passed] == ["make test"]
    assert all(run.unsure for run in found.checks if run.passed)
    assert [use.command for use in found.commands] == ["make test"]
    assert found.tests is not None
    assert not found.tests.passed
    alone = Session().shell(command, output, outcome).found()
    assert all(run.passed and run.unsure for run in alone.checks)


def test_a_call_that_had_not_ended_proves_nothing():
    found = Session().shell("make test", "collecting", "unknown").found()
    assert [run.unsure for run in found.checks] == [True]
    assert found.commands == ()
    state = test_state(found, datetime(2026, 11, 19, tzinfo=UTC))
    assert state is not None
    assert state.phase == "unknown"


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("npm run dev & sleep 3; npx playwright test", "3 passed (2s)"),
        ("docker run --rm shed pytest -q", "3 passed in 1s"),
        ("timeout 60 .venv/bin/python3.12 -m pytest -q -n0", "3 passed in 1s"),
        ("bash -lc 'cd shed && make test'", ""),
        ("make test ARGS='-k door -n 4'", ""),
        ("set -o pipefail; make test | tee log", ""),
        ("make test | tail -3; exit ${PIPESTATUS[0]}", ""),
        ("pytest", "\x1b[32m3 passed\x1b[0m in 1s"),
    ],
)
def test_a_run_that_was_awaited_counts_however_it_was_called(command: str, output: str):
    (run,) = Session().shell(command, output).found().checks
    assert run.passed
    assert not run.unsure


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("python -m unittest", "Ran 0 tests in 0.000s\n\nOK"),
        ("go test ./...", "ok  \tshed/door\t0.1s [no tests to run]"),
        ("cargo test", "running 0 tests\n\ntest result: ok. 0 passed; 0 failed"),
        ("pytest", "==== 3 skipped in 0.1s ===="),
        ("jest --passWithNoTests", "No tests found, exiting with code 0"),
        ("PYTEST_ADDOPTS=--collect-only pytest", "5 tests collected in 0.1s"),
        ("make test; ls", "door.py"),
    ],
)
def test_a_run_without_a_test_and_one_whose_end_is_lost_are_not_green(command: str, output: str):
    (run,) = Session().shell(command, output).found().checks
    assert run.unsure


def test_what_fails_after_the_tests_passed_makes_them_no_red_run():
    (run,) = (
        Session().shell("pytest -q && git push", "3 passed in 1s\nfatal: no remote", "error").found().checks
    )
    assert run.passed


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
