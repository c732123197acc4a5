"""What the next agent reads: the first lines for each way a session stops, and what each line rests on."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from findings.sessions import Session
from holdfast.base.text import unglued
from holdfast.findings.rules.conversation import purpose_of
from holdfast.model.message import Message, TodoItem, ToolCall
from holdfast.resume.compiler import compile_context
from holdfast.resume.rendering import condensed, gist


def told(session: Session, size: int = 8000, summary: str = "") -> str:
    return compile_context(session.found(), size, summary=summary).text


def line(text: str, start: str) -> str:
    """With what stands indented below it."""
    return next((one for one in re.split(r"\n(?!  )", text) if one.startswith(f"- {start}")), "")


# ── what is next ──────────────────────────────────────────────────────────────────────────────────


def test_the_list_of_tasks_is_moved_on_by_what_was_written_for_it():
    session = (
        Session()
        .user("Build the lanes")
        .todos(
            TodoItem(text="Add sessionLanes field to Model", status="in_progress"),
            TodoItem(text="Implement computeSessionLanes function", status="pending"),
            TodoItem(text="Update renderNode to show lanes", status="pending"),
        )
        .agent("Now let me add the sessionLanes field to Model.")
        .edit("list/view.go", "sessionLanes map[int]Lane")
        .agent("Next the function:")
        .edit("list/view.go", "func computeSessionLanes() {\n}")
    )
    following = line(told(session), "Next:")
    assert 'ake up the next task of the plan, "Update renderNode to show lanes"' in following
    assert (
        '("Add sessionLanes field to Model" and "Implement computeSessionLanes function": written in'
        in following
    )


def test_a_look_is_followed_by_what_it_had_found():
    session = (
        Session()
        .user("can we check whether other places have the same fault?")
        .shell("grep -rn Getwd .", "common.go:555: filepath.Join(cwd, file)")
        .agent("Lines 555 and 576 use `filepath.Join(cwd, file)` because `file` is relative to the root.")
        .tool("Read", "package strategy", file_path="strategy/common.go")
        .agent("Let me see what function this is in:")
        .tool("Read", "func checkRewind() {", file_path="strategy/common.go")
    )
    following = line(told(session), "Next:")
    assert 'from what was found last: "Lines 555 and 576 use' in following
    assert "2." not in following  # no check of what nobody wrote


def test_a_look_among_edits_is_followed_by_what_the_agent_was_changing():
    session = (
        Session()
        .user("the tests are red")
        .agent("I need to update the tests to expect the suffixed branch name.")
        .edit("rewind_test.go")
        .agent("These are right as they are.")
        .tool("Grep", "", pattern="entire/")
    )
    following = line(told(session), "Next:")
    assert (
        '"I need to update the tests to expect the suffixed branch name." (edited since: `rewind_test.go`)'
        in following
    )


def test_a_question_is_to_be_answered_whatever_was_done_on_the_way():
    asked = Session().user("where is `entire/sessions` still referenced?")
    looked = asked.agent("Let me search.").tool("Grep", "a.go:1", pattern="entire/sessions").edit("a.go")
    assert "nswer the user's question" in line(told(looked), "Next:")
    answered = looked.agent("It is referenced in three places: " + "a.go names it in a comment. " * 9)
    assert "nswer the user's question" not in line(told(answered.edit("b.go")), "Next:")
    request = Session().user("how about the changes in common?").edit("a.go")
    assert "nswer the user's question" not in line(told(request), "Next:")


def test_what_the_agent_thought_of_a_failure_stands_with_it():
    session = (
        Session()
        .user("merge main")
        .edit("a.go")
        .shell("go build ./...", "a.go:407:1: syntax error: unexpected keyword type", "error")
        .agent("There's a syntax error - I likely missed a closing brace.")
        .tool("Read", "package a", file_path="a.go")
    )
    assert "the agent thought: \"There's a syntax error - I likely missed" in line(told(session), "Next:")


def test_what_was_staged_is_looked_at_first():
    session = Session().user("stage the type changes again").shell("git add -p a.go", "")
    assert "`git status`" in line(told(session), "Next:")


def test_what_git_showed_of_the_work_of_others_is_told_until_it_is_overtaken():
    shown = (
        'On branch main\nChanges to be committed:\n  (use "git restore" to unstage)\n'
        "\tmodified:   lib/door.go\n\trenamed:    a.go -> b.go\n\nChanges not staged for commit:\n"
        "\tdeleted:    old.go\n\nUntracked files:\n\tnew.go\n\nno changes added"
    )
    session = Session().user("go on").shell("git status", shown).shell("make", "ok")
    told_of_it = line(told(session), "The newest `git status`")
    assert "(1 steps" not in told_of_it
    assert (
        "staged: `lib/door.go`; `b.go`; changed and not staged: `old.go`; untracked: `new.go`." in told_of_it
    )
    assert "git status" not in line(told(session.shell("git commit -qm x", "")), "The newest")


def test_lost_line_breaks_of_thoughts_are_put_back():
    glued = "Nothing is left to commitLet me look at a.go.The node.Children field is set.I see 2. It works"
    assert unglued(glued).split("\n") == [
        "Nothing is left to commit",
        "Let me look at a.go.",
        "The node.Children field is set.",
        "I see 2. It works",
    ]


def test_words_of_an_earlier_request_are_no_plan_for_the_latest():
    session = (
        Session()
        .user("fix the filter")
        .agent("I'll filter by branch. Let me update both callers.")
        .user("can you explain how the lanes are drawn?")
        .edit("list/view.go")
    )
    assert "both callers" not in line(told(session), "Next:")


def test_a_check_that_was_running_is_run_again_and_named_once():
    session = Session().user("make it pass").shell("make test", "1 failed", "error").edit("a.py")
    session._add(role="assistant", tool_calls=(_call("make test"),))
    following = line(told(session), "Next:")
    assert following == (
        "- Next: run `make test` again: what it said is not recorded (in the run before, it said `1 failed`)."
    )


def test_a_look_that_was_running_comes_after_what_it_was_for():
    session = (
        Session()
        .user("the tests are red")
        .agent("They expect the old names. Let me update the tests to expect the suffixed names.")
        .edit("rewind_test.go")
        ._add(role="assistant", thinking="Now let me check and fix the other failing tests in the same way.")
        .tool("Grep", "3 matches", pattern="should exist")
        ._add(role="assistant", thinking="Let me look for the branch checks with hashes.")
    )
    session._add(role="assistant", tool_calls=(ToolCall("running", "Grep", {"pattern": "entire/"}),))
    first = line(told(session), "Next:").split("\n")[1]
    assert '"Now let me check and fix the other failing tests in the same way."' in first
    assert 'looking with Grep `entire/` ("Let me look for the branch checks with hashes."): repeat' in first


def test_a_question_comes_before_the_look_that_was_running():
    session = Session().user("how is it possible that his tests pass with this fault?")
    session.agent("Let me look at how the trailer is written.")
    session._add(role="assistant", tool_calls=(ToolCall("running", "Read", {"file_path": "hooks.go"}),))
    first, second = line(told(session), "Next:").split("\n")[1:3]
    assert "Answer the user's question" in first
    assert '"Let me look at how the trailer is written.": the result of read of `hooks.go`' in second


def test_the_last_thought_is_told_as_a_thought_until_the_agent_speaks():
    thought = "The check was relaxed: it reads the trailer as text. " * 8
    session = Session().user("why do his tests pass?").shell("gh pr diff", "+ text")
    session._add(role="assistant", thinking=thought)
    read = ("Read", "func amend() {")
    text = told(session.tool(*read, file_path="hooks.go"))
    assert "The agent's last thought, 1 step before the end (its own view, checked by nothing):" in text
    assert "it reads the trailer as text" in text
    spoken = told(session.agent("Now I look at the other hook.").tool(*read, file_path="other.go"))
    assert "last thought" not in spoken


def _call(command: str):
    from holdfast.model.message import ToolCall

    return ToolCall("running", "Bash", {"command": command})


def test_the_end_of_long_words_is_kept():
    """There an agent says what it will do."""
    words = "The test wants two ids. " * 200 + "The fix: clear `pending`, and update `amend` to use `last`."
    text = told(Session().user("go").agent(words).edit("hooks.go"))
    assert "update `amend` to use `last`" in line(text, "The agent's last words")
    following = line(text, "Next:")
    assert (
        'announced: "The fix: clear `pending`, and update `amend` to use `last`." (edited since' in following
    )


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────


def test_the_plan_that_the_user_agreed_to_is_what_the_work_follows():
    plan = "# Plan: Hang the door\n\n## Verification\n1. `make test` is green"
    asked = Session().user("ok, let's implement this")
    agreed = asked.tool("ExitPlanMode", "User has approved your plan.", plan=plan).edit("door.py")
    text = told(agreed)
    assert line(text, "Goal:").endswith('the plan that the user then agreed to: "Plan: Hang the door"')
    assert "The plan that the user agreed to:\n```text\n# Plan: Hang the door" in text


def test_a_plan_in_the_answer_is_followed_once_the_user_takes_it_up():
    session = Session().user("hang a door").agent("<proposed_plan>\n# Plan: Hang the door\n</proposed_plan>")
    goal = line(told(session.user("Implement the plan.").edit("door.py")), "Goal:")
    assert goal.endswith('"hang a door"; the plan that the user then agreed to: "Plan: Hang the door"')


def test_a_plan_that_the_user_turned_down_is_none():
    refused = Session().user("go").tool("ExitPlanMode", "no", "interrupted", plan="# Plan: Paint it")
    assert "agreed to" not in told(refused)


# ── questions ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "said", "shown"),
    [
        ("Shall I paint it?", "yes", '"Shall I paint it?" → "yes"'),
        ("Shall I paint it?", "can we have a rule?", '(after the agent\'s "Shall I paint it?") '),
        ('Most ask ("which one made it?"). So do we.', "ok, do it", "(after the agent's"),
        ("Shall I paint it?", "can you rather look into the other shed, where the same thing happens?", ""),
    ],
)
def test_only_an_answer_is_shown_as_one(before: str, said: str, shown: str):
    text = told(Session().user("start").agent(before).user(said).agent("Well.").user("go on " * 20))
    assert shown in text
    assert ("→ " + f'"{said}"' in text) == (" → " in shown)


# ── the work at hand ──────────────────────────────────────────────────────────────────────────────


def test_the_newest_edit_is_shown_as_a_diff():
    text = told(Session().user("turn it").edit("door.py", "a\nhinge = 'left'\nb", "a\nhinge = 'right'\nb"))
    assert "-hinge = 'right'\n+hinge = 'left'" in text


def test_of_a_long_new_file_what_it_defines_is_shown():
    body = "\n".join(f"def test_{name}():\n    assert {name}\n" for name in ("opens", "shuts", "locks") * 5)
    session = Session().user("test it").tool("Write", "done", file_path="test_door.py", content=body)
    text = told(session)
    assert "`test_door.py` (new): adds `test_opens`, `test_shuts`, `test_locks`" in text
    assert "assert opens" not in text


@pytest.mark.parametrize(
    ("words", "purpose"),
    [
        ("Good. Now let me add the field to Model and compute it.", "add the field to Model and compute it"),
        (
            "I need to rename `a` to `b` in view.go. Let me do this step by step.",
            "rename `a` to `b` in view.go",
        ),
        ("Fix bug 3 - remove the clearing in SaveChanges:", "Fix bug 3 - remove the clearing in SaveChanges"),
        ("Let me look at the file.", ""),
        ("Now let me write the new version:", ""),
        ("Let me fix both locations.", ""),
        ("The others test legacy names, so they need special attention now.", ""),
        ("", ""),
    ],
)
def test_what_an_edit_was_for_is_told_where_the_agent_said_so(words: str, purpose: str):
    assert purpose_of(words) == purpose


def test_the_map_says_what_a_file_was_changed_for():
    text = told(Session().user("go").agent("Now let me turn the hinge around.").edit("door.py"))
    assert "`door.py`. Edited to turn the hinge around" in text


def test_the_map_says_what_was_added_changed_and_removed():
    session = (
        Session()
        .user("go")
        .edit(
            "door.py",
            "def hang():\n    pass\n\ndef oil():\n    pass",
            "def hang():\n    return\n\ndef saw():",
        )
        .edit("wall.py", "x\nheight = wall.height()\ny", "x\nheight = 3\ny")
    )
    text = told(session)
    assert "`door.py`: adds `oil`; changes `hang`; removes `saw`" in text
    assert "`wall.py`: `height = 3` became `height = wall.height()`" in text


def test_a_line_that_was_put_in_is_shown_where_nothing_else_tells_of_it():
    text = told(Session().user("go").edit("a.go", "x := 1\n\ny := two()\nz := 3", "x := 1\nz := 3"))
    assert "`a.go`: gets `y := two()`" in text


def test_what_was_taken_back_is_neither_added_nor_removed():
    session = Session().user("go").edit("door.py", "def oil():", "").edit("door.py", "", "def oil():")
    assert "`oil`" not in told(session).split("## Map")[1]


def test_what_only_moved_behind_a_long_text_is_not_removed():
    lines = "\n".join(f"    step({number})" for number in range(2000))
    session = (
        Session().user("go").edit("door.go", f"func oil() {{\n{lines}\n}}\nfunc hang() {{", "func hang() {")
    )
    the_map = told(session).split("## Map")[1]
    assert "adds `oil`" in the_map
    assert "removes" not in the_map
    back = (
        Session().user("go").edit("door.go", "func hang() {", f"func oil() {{\n{lines}\n}}\nfunc hang() {{")
    )
    assert "removes `oil`" in told(back)
    assert "adds" not in told(back).split("## Map")[1]


@pytest.mark.parametrize(
    "rename",
    [
        lambda session: session.edit("door.go", "Door", "RedDoor"),
        lambda session: session.shell("sed -i 's/RedDoor/Door/g' door.go"),
        lambda session: session.agent(
            "The sub-agent is done. The type was renamed from `RedDoor` to `Door`."
        ),
    ],
)
def test_the_map_names_what_stands_after_the_last_edit(rename: Callable[[Session], Session]):
    session = Session().user("go").edit("door.go", "type RedDoor struct {\n}\ntype Hinge struct {", "")
    the_map = told(rename(session)).split("## Map")[1]
    assert "adds `Door`, `Hinge`" in the_map or "adds `Hinge`, `Door`" in the_map
    assert "adds `RedDoor`" not in the_map


def test_what_should_be_renamed_has_its_old_name_still():
    session = Session().user("go").edit("door.go", "type RedDoor struct {\n}", "")
    text = told(session.agent("It should be renamed from `RedDoor` to `Door`."))
    assert "adds `RedDoor`" in text


def test_a_renaming_in_many_files_is_told_once():
    session = Session().user("rename it")
    for name in ("a.go", "b.go", "c.go"):
        session.edit(name, "state.LastTime = now()", "state.LastAt = now()")
    text = told(session).split("## Map")[1]
    assert text.count("became") == 1
    assert "`state.LastAt = now()` became `state.LastTime = now()` in `c.go`; `b.go`; `a.go`" in text


def test_a_line_that_is_changed_again_is_told_by_how_it_was_at_first():
    session = Session().user("go").edit("a.go", "size = 2", "size = 1").edit("a.go", "size = 3", "size = 2")
    assert "`size = 1` became `size = 3`" in told(session)
    assert "became" not in told(session.edit("a.go", "size = 1", "size = 3"))


def test_text_that_repeats_itself_does_not_hold_the_reader_up():
    """Each would take a pattern that looks back the age of the world, or some minutes."""
    session = Session().user("go on with it, please").agent("The bug is in " + "a/" * 20_000)
    session.tool("Grep", "\n" * 20_000, pattern="x").edit("a.go", "func a()\n" * 60 + "x", "")
    assert told(session)


def test_where_a_search_found_something_is_told_but_for_what_was_edited_since():
    shown = "a.go:12: old(x)\na.go:40: old(y)\nb.go:7: old(z)\nc.go:9: old(q)"
    session = (
        Session().user("replace old").tool("Grep", shown, pattern="old\\(").edit("b.go", "new(z)", "old(z)")
    )
    assert "`old\\(` found (not edited since): `a.go:12, 40`; `c.go:9`" in told(session)


def test_only_a_search_for_places_of_work_is_told_with_what_it_found():
    """Where something is defined, a match in half the files, and what was picked out of a log are none."""
    many = "\n".join(f"a{number}.go:{number}: hinge" for number in range(1, 12))
    for pattern, found in (("func hinge", "a.go:3: func hinge() {"), ("hinge", many)):
        assert " found: " not in told(Session().user("oil them").tool("Grep", found, pattern=pattern))
    log = (
        Session().user("oil them").shell('make log | grep -A 5 "hinge"', "a_test.go:3: hinge\na_test.go:9: x")
    )
    assert " found: " not in told(log)


def test_a_list_whose_files_were_all_edited_since_is_left_out():
    lead = "Core changes:\n\n- `a.go` gets the method\n- `b.go` calls it\n- `c.go` loses its field"
    session = Session().user("move the method to the interface").agent(lead).edit("a.go").edit("b.go")
    assert "`c.go` loses its field" in told(session.agent("Next the field."))
    assert "loses its field" not in told(session.edit("c.go").agent("Now the tests are to follow."))


def test_what_the_agent_found_out_stands_with_the_work_at_hand_and_lists_as_lists():
    session = (
        Session()
        .user("why are the tests of the session red?")
        .agent("Let me look. The bug is in `listAll`: it looks for the old name, so the session is dropped.")
        .agent("These tests need the new name:\n- `TestDoor` in `a.go`\n- `TestWall` in `b.go`\n- `TestRoof`")
        .tool("Read", "package a", file_path="a.go")
        .agent("Next the first of them:")
        .edit("a.go", "func listAll() {\n    name()", "func listAll() {\n    old()")
    )
    text = told(session)
    assert 'The agent had found out: "The bug is in `listAll`: it looks for the old name, so the' in text
    assert "\n- The agent had set out, 2 steps before the end:\n" in text


def test_a_hypothesis_that_was_given_up_is_not_told():
    session = (
        Session()
        .user("why are the tests of the session red?")
        .agent("The issue is that `parseLine` checks for `user`, because the transcript has `human` lines.")
        .tool("Read", "package a", file_path="a.go")
        .agent("There it is! The folder is a symbolic link, so that `realPath` is never equal to `tempDir`.")
        .tool("Read", "package b", file_path="b.go")
        .agent("Now the test:")
        .tool("Read", "package c", file_path="c.go")
    )
    assert "parseLine" not in told(session)


def test_what_nothing_bears_out_is_called_a_thought():
    session = (
        Session()
        .user("why are the tests of the session red?")
        .agent("The bug is in `listAll`: it looks for the old name, so the session is dropped.")
        .tool("Read", "package a", file_path="a.go")
        .agent("Now I look at the rest of the package that is there.")
        .tool("Read", "package b", file_path="b.go")
    )
    assert 'newest view (nothing later bears it out): "The bug is in `listAll`' in told(session)


def test_a_finding_that_was_cut_is_not_told():
    cut = "The bug is in `listAll` because it looks for the old name. The `pendingName` is used in listSess"
    session = Session().user("why are the tests of the session red?").agent(cut)
    session.tool("Read", "package a", file_path="a.go").agent("Now the next of the files that are there:")
    text = told(session.tool("Read", "package b", file_path="b.go"))
    assert "newest view" not in text
    assert "had found out" not in text


def test_a_report_of_the_agent_is_corrected_where_it_is_quoted():
    status = "On branch x\nChanges not staged for commit:\n\tmodified:   door.py\n"
    report = "I have turned the hinge around in `door.py`, and here is how it stands now, in short. " * 3
    session = (
        Session()
        .user("turn the hinge around, so that the door opens to the garden and no more to the road")
        .edit("door.py")
        .shell("git status", status)
        .agent(f"{report}\n\n- Lint passes\n- Changes staged but not committed")
        .user("is the fault elsewhere, too?")
        .tool("Grep", "", pattern="hinge")
    )
    text = told(session)
    assert (
        "- Changes staged but not committed [the record: the newest `git status` showed as not staged" in text
    )


def test_a_next_step_names_its_object():
    assert 'do what the user wrote last: "hang the door"' in told(Session().user("hang the door"))
    asked = Session().user("hang the door").tool("Grep", "a.go:3: hinge\nb.go:7: hinge", pattern="hinge")
    asked.messages.append(
        Message(
            index=len(asked.messages),
            role="assistant",
            tool_calls=(ToolCall("c9", "Grep", {"pattern": "hinge"}),),
        )
    )
    following = line(told(asked), "Next:")
    assert "`hinge` had found before: `a.go:3`; `b.go:7`" in following
    several = Session().user("hang the door").agent("Now I update both callers.").edit("door.py")
    following = line(told(several), "Next:")
    assert 'announced: "Now I update both callers." (edited since: `door.py`).' in following


def test_a_file_that_was_removed_is_called_removed():
    text = told(Session().user("go").edit("door.py").shell("rm door.py"))
    assert "`door.py` (removed)" in line(text, "Written")


def test_a_function_that_nothing_uses_yet_is_named():
    asked = Session().user("open it from both sides")
    defined = asked.edit("door.go", "func openInside() {\n}", "")
    assert "no edit so far uses it: `openInside`" in told(defined)
    following = line(told(defined), "Next:")
    assert (
        "Use `openInside` where that was meant to be: no edit so far does (defined in `door.go`)" in following
    )
    used = defined.edit("main.go", "openInside()", "")
    assert "no edit so far uses it" not in told(used)


def test_a_function_that_was_there_before_is_not_called_unused():
    session = Session().user("go").edit("door.go", "func shutDoor() { oil() }", "func shutDoor() { }")
    assert "no edit so far uses it" not in told(session)


def test_a_command_whose_output_was_red_is_not_said_to_have_worked():
    red = Session().user("go").shell("make test | tail -5", "--- FAIL: TestDoor (0.1s)\nFAIL")
    text = told(red.shell("make lint", "0 issues.").shell("npm start", "listening"))
    worked = line(text, "Other commands that worked")
    assert "`npm start`" in worked
    assert "make lint" not in worked, "it stands in the state"
    assert "make test" not in worked


# ── what is not said twice, and what is left out ──────────────────────────────────────────────────


def test_many_uncommitted_files_are_marked_where_they_are_listed():
    session = Session().user("hang the doors")
    for number in range(7):
        session.edit(f"door{number}.py", f"def open{number}():\n    pass", "")
    text = told(session)
    assert "no commit by the agent: 7 files, marked * in the map, the newest: `door6.py`;" in text
    assert text.count(" *:") == 7


def test_a_commit_that_the_user_speaks_of_is_told_beside_the_uncommitted_files():
    session = Session().user("hang the door").edit("door.py").agent("Done, the door hangs.")
    text = told(session.user("ok, I put everything into one commit, are the hinges right?"))
    assert '(the user has spoken of committing since: "ok, I put everything into one commit' in text


def test_a_greeting_and_what_was_sent_before_it_was_complete_are_left_out():
    begun = "and if the door is closed, does the lock close as well, or does it"
    session = Session().user("hi").agent("Hello.").user(begun).user(f"{begun} need a key?").agent("A key.")
    text = told(session.user("hang the door").agent("I hang it.").user("and oil it, with the green oil"))
    assert '"hi"' not in text
    assert f'"{begun}"' not in text
    assert "Left out" not in text


def test_only_the_last_verdict_is_told():
    session = (
        Session()
        .user("why are the tests of the session red?")
        .agent("The bug is in `parseHinge`: it reads the wrong line, so the width is lost.")
        .tool("Read", "package a", file_path="a.go")
        .agent("The width is lost because `cutBoard` rounds it down, and never up as it should.")
        .tool("Read", "func cutBoard() {", file_path="b.go")
        .agent("Next the file of the board, `cutBoard` is called there:")
        .tool("Read", "package c", file_path="c.go")
    )
    text = told(session)
    assert 'The agent had found out: "The width is lost because `cutBoard` rounds it down' in text
    assert "parseHinge" not in text


def test_what_was_thought_before_a_test_passed_is_settled():
    session = (
        Session()
        .user("make the test of the hinge pass")
        .agent("The width is lost because `cutBoard` rounds it down, and never up as it should.")
        .edit("b.go")
        .shell("go test ./...", "ok  \tshed/door\t0.2s")
    )
    assert "newest view" not in told(session)
    assert "had found out" not in told(session)


def test_a_search_is_told_with_what_it_found_or_that_it_found_nothing():
    session = (
        Session()
        .user("where is the hinge named?")
        .tool("Grep", "door.go:3:hinge\ndoor.go:9:hinge", pattern="hinge")
        .tool("Grep", "No matches found", pattern="latch")
    )
    text = told(session)
    assert "`hinge` found: `door.go:3, 9`" in text
    assert "`latch` (no match)" in text


def test_a_short_result_of_several_lines_is_told_with_its_step():
    session = (
        Session()
        .user("is the width right?")
        .shell("cat width.json", '{\n"left": 3,\n"right": 4,\n"top": 5\n}')
    )
    assert '{ / "left": 3, / "right": 4, / "top": 5 / }' in line(told(session), "The last steps")


def test_an_older_report_of_a_sub_agent_is_told_in_whole_sentences_even_in_little_room():
    report = "I read it. " + "`openDoor` calls `turnKey`, and `turnKey` calls `oilHinge` in lock.py. " * 3
    session = (
        Session()
        .user("look how the lock works, in detail please")
        .tool("Task", report, description="Read the lock")
    )
    session.agent("The lock is read now.").user("then hang the door, and use the new hinge").edit("door.py")
    for size in (8000, 1600):
        assert 'reported on "Read the lock": "`openDoor` calls `turnKey`, and' in told(session, size)


def test_what_an_older_summary_says_of_errors_is_left_out():
    summary = (
        "1. Primary Request and Intent:\n   - Hang a green door\n"
        "4. Errors and fixes:\n   - The hinge was bent\n"
        "5. Key Decisions:\n   - Oak, because it lasts\n"
    )
    text = told(Session().compacted(summary).user("now oil the hinge").agent("I oil it:").edit("door.py"))
    assert "Hang a green door" in text
    assert "Oak, because it lasts" in text
    assert "bent" not in text


def test_what_came_back_is_told_by_its_first_and_last_lines():
    hundred = "\n".join(f"{number} boards of oak, sawn and planed" for number in range(100))
    session = Session().user("how many boards are there?").shell("cat boards", hundred)
    text = told(session.shell("git log -1", "1a2b3c4 Plane the boards"))
    assert "What came back, of `cat boards`:\n```text\n0 boards of oak" in text
    assert "\n…\n" in text
    assert "\n99 boards of oak, sawn and planed\n```" in text
    diff = "@@ -1,9 +1,9 @@\n" + "+a board of oak, sawn and planed\n" * 30
    assert "last result" not in told(Session().user("what is in it?").shell("git show", diff))


def test_a_run_before_a_merge_says_so():
    green = Session().user("go").shell("make test", "3 passed in 1s")
    assert "before the newest checkout" not in told(green.shell("git checkout door.py"))
    assert "passed (green), no edit is recorded since; before the newest checkout or merge." in told(
        green.shell("git merge side", "Merge made by the 'ort' strategy.")
    )


@pytest.mark.parametrize(
    "command",
    [
        "cp other.py app.py",
        "git stash pop",
        "python gen.py",
        "git apply x.diff",
        "git revert HEAD --no-edit",
        "black .",
        "cd src && ruff check --fix .",
        "make fmt",
        "patch -p1 < x",
        "find . -name '*.orig' -delete",
        "timeout 9 bash -c 'python gen.py'",
    ],
)
def test_after_a_green_run_a_command_that_may_have_changed_code_is_named(command: str):
    green = Session().user("go").shell("pytest -q", "3 passed in 1s").shell(command, "3 passed in 2s")
    assert f"no edit is recorded since, but `{command}` ran." in told(green.shell("git status", "clean"))


@pytest.mark.parametrize(
    "command",
    [
        "git add -A && git commit -m 'Hang the door' && git push",
        "git commit -F - <<'E'\nHang the door\n\nIt sticks; black . helps\nE",
        "cd src; grep -rn door . | head -3 2>/dev/null",
        "git -C src log --oneline",
        "gh pr create --title 'A door'",
        "sleep 5; pytest -q tests/door",
    ],
)
def test_what_leaves_code_alone_is_not_named(command: str):
    text = told(Session().user("go").shell("make test", "3 passed in 1s").shell(command, "3 passed in 2s"))
    assert "no edit is recorded since" in text
    assert "but `" not in text


def test_what_git_showed_beside_the_record_may_be_newer_than_a_green_run():
    session = Session().user("go").edit("door.py").shell("pytest -q", "3 passed in 1s")
    found = session.tool("Task", "I refactored it.", description="Tidy up", prompt="Tidy up").found()
    git = replace(found.git, uncommitted=("door.py", "hinge.py", "old.py"), uncommitted_before=("old.py",))
    text = compile_context(replace(found, git=git), 8000).text
    expected = "no edit is recorded since, but a sub-agent worked; when `hinge.py` changed is not known."
    assert expected in text


def test_the_same_failing_test_is_told_once():
    red = "--- FAIL: TestDoor (0.1s)\nFAIL"
    session = Session().user("go").shell("make test", red).shell("go test -run TestDoor ./...", red)
    assert line(told(session), "`go test -run TestDoor ./...` failed (red): `TestDoor`")
    assert not line(told(session), "`make test` failed")


def test_beside_a_summary_the_state_comes_before_older_words_and_refers_to_no_map():
    session = Session()
    for number in range(30):
        session.user(f"and paint board {number} of the long wall, with the green of the door, twice")
        session.edit(f"board{number % 8}.py")
    session.shell("make test", "--- FAIL: TestDoor (0.1s)\nFAIL")
    text = told(
        session,
        3500,
        "1. Primary Request:\n   - Paint the wall\n2. Key Technical Concepts:\n   - Paint\n" * 9,
    )
    assert "`make test` failed (red): `TestDoor`" in text
    assert "marked *" not in text
    assert "no commit by the agent: `board5.py`;" in text


def test_one_edit_that_was_announced_and_made_is_not_the_next_step():
    session = (
        Session()
        .user("hang the door and see that the build is green")
        .shell("make build", "door.go:3:2: undefined: hinge", "error")
        .agent("Now I need to add the hinge to the frame in frame.go.")
        .edit("frame.go")
        .tool("Grep", "door.go:3: hinge", pattern="hinge")
    )
    following = line(told(session), "Next:")
    assert "add the hinge" not in following
    assert "`make build`" in following


def test_what_the_last_words_say_is_not_said_again_with_the_message_they_answer():
    report = "The commit has both: the hinge, because it was bent, and the lock of the door of oak. " * 3
    session = Session().user("see that the hinge and the lock are both in the commit").agent(report)
    text = told(session.user("push it now, please, and then tell me"))
    assert "The agent's last words: \"The commit has both" in text
    assert "→" not in line(text, '"see that the hinge')


@pytest.mark.parametrize(
    "words",
    [
        "The cleanest fix would be to only use `FilesTouched`, because the list grows.",
        "Should use the root and not `cwd`, since it fails in a folder below.",
        "The issue must be in how `repo.Log()` iterates, because it stops early.",
        "So `IsOnMain` would just compare `GetBranch()` because that is the fix.",
        "Limitation: if the branch is `trunk`, the fix must not be used because it fails.",
    ],
)
def test_what_was_only_proposed_or_supposed_is_no_decision(words: str):
    session = Session().user("what is wrong here?").agent(words).user("then build it as we said").edit("a.go")
    text = told(session)
    assert words[:20] not in text[text.find("## Decisions") :] if "## Decisions" in text else True


def test_a_thing_that_was_only_seen_is_no_decision():
    seen = "The branch `entire/a1b2c3d4` is there, but `listAll` never shows it in the list."
    why = "The lock is lost because `openDoor` reads `turnKey` only once, and never again."
    session = Session()
    for text in (seen, why):
        session.user("look at the list of all doors and locks, please").agent(text)
    for number in range(7):
        session.user(f"and then paint board {number} of the long wall green").agent("Painted.")
    text = told(session.user("hang the door"))
    assert "turnKey" in text
    assert "a1b2c3d4" not in text


# ── long texts ────────────────────────────────────────────────────────────────────────────────────


def test_a_block_of_code_is_kept_whole_or_left_out():
    text = (
        "# Title\n\nWhat it is about.\n\n```go\n" + "line of code\n" * 60 + "```\n\n" + "Some words.\n" * 30
    )
    short = condensed(text, 720)
    assert short.startswith("# Title")
    assert "```" not in short


def test_a_report_is_told_by_its_reasons():
    report = (
        "Done.\n\nI moved it. The old place is gone because `init` ran twice. Nothing else changed there."
    )
    assert gist(report, 60) == "The old place is gone because `init` ran twice."


# ── beside a summary ──────────────────────────────────────────────────────────────────────────────

_SUMMARY = """<analysis>
- the third option that the user chose then meant `lazyHinge`
- the door is `door.py`
</analysis>
<summary>
1. Intent:
   Hang the door in `door.py`.

9. Optional Next Step:
   Run `make test`, then commit.
</summary>"""


def test_beside_a_summary_its_next_step_counts_and_the_records_last_words_do_not():
    session = Session().user("hang it").edit("door.py").agent("Need to add the import.")
    text = told(session, summary=_SUMMARY)
    assert line(text, "Next:") == '- Next: by the summary below: "Run `make test`, then commit."'
    assert "Need to add the import" not in text


def test_beside_a_summary_nothing_is_said_twice_and_long_code_is_left_to_its_file():
    code = "```go\n" + "line()\n" * 30 + "```\n"
    files = f"3. Files and Code Sections:\n   - `door.py`\n{code}   - `wall.py`\n\n9. Optional"
    text = told(Session().user("hang it").edit("door.py"), summary=_SUMMARY.replace("9. Optional", files))
    assert "line()" not in text
    assert "(code left out: see the file)" in text
    assert text.count("Run `make test`, then commit.") == 1


def test_beside_a_summary_stands_what_it_does_not_name():
    text = told(Session().user("hang it").edit("door.py").edit("hinge.py"), summary=_SUMMARY)
    assert "not named in the summary: `hinge.py`" in text
    assert "then meant `lazyHinge`" in text
    assert "- the door is `door.py`" not in text


def test_a_line_between_two_gaps_is_left_out_unless_it_is_a_heading():
    lines = ["Build a shed.", "It is for the garden."]
    for number in range(12):
        lines += [f"## Part {number}", "Oak is sawn. " * 9, "You must plane it.", "Then it dries. " * 9]
    short = condensed("\n".join([*lines, "Your task: begin."]), 900)
    assert "## Part 1" in short
    assert "Your task: begin." in short
    assert "[…]\nYou must plane it. […]" not in short


# ── what was done, and why ────────────────────────────────────────────────────────────────────────

LOCK = """// turnKey opens the lock from the inside.
// It does not need the key.
func turnKey() {
	// Wait for the bolt, because it falls late in winter
	wait()
}
"""


def test_the_map_says_what_was_put_into_a_file_in_the_words_of_its_comments():
    text = told(Session().user("open it from inside").edit("lock.go", LOCK, ""))
    assert "- `lock.go`: adds `turnKey` (opens the lock from the inside)" in text
    assert 'A new comment there: "Wait for the bolt, because it falls late in winter"' in text


def test_a_function_that_only_stands_beside_an_edit_is_not_called_changed():
    beside = "func shut() {\n\tbang()\n}\n"
    session = Session().user("open it").edit("lock.go", f"{beside}\n{LOCK}", beside)
    assert "`shut`" not in told(session)
    assert "changes `shut`" in told(session.edit("lock.go", beside.replace("bang", "click"), beside))


def test_what_the_first_of_many_edits_was_for_is_not_told_of_the_last():
    session = Session().user("build the door").agent("Now let me add the old brass handle to the door.")
    session.edit("door.py", "a = 1")
    assert "Edited to add the old brass handle" in told(session)
    for number in range(4):
        session = session.agent("Next:").edit("door.py", f"a = {number}")
    assert "brass handle" not in line(told(session), "`door.py`")


def test_the_reason_in_the_message_of_a_commit_is_told():
    message = (
        "Oil the hinge\n\nThe door was stuck in the frame\nbecause the oak had swollen in the rain.\n\n"
        "- Add oil\n\nCo-Authored-By: Ann <ann@example.com>"
    )
    command = f"git commit -m \"$(cat <<'EOF'\n{message}\nEOF\n)\""
    session = Session().user("oil it and commit").edit("door.py")
    session = session.shell(command, "[main abc1234] Oil the hinge\n 1 file changed")
    reason = 'commit `abc1234`: "The door was stuck in the frame because the oak had swollen in the rain."'
    assert reason in told(session)
    amended = session.edit("door.py").shell(
        "git commit --amend --no-edit", "[main abc1235] Oil the hinge\n 1 file changed"
    )
    assert reason.replace("1234", "1235") in told(amended)


def test_a_cause_that_was_only_thought_counts_where_it_was_acted_on():
    cause = (
        "The root cause is that `turnKey` is called before `oilHinge`, so the bolt breaks when it is cold."
    )
    session = Session().user("the bolt of the front door breaks, find out why and repair it")
    thought = session._add(role="assistant", thinking=cause)
    assert cause not in told(thought).partition("## Decisions")[2].partition("## State")[0]
    acted = thought.edit("lock.go", "oilHinge(); turnKey()", "turnKey(); oilHinge()")
    later = (
        acted.agent("Repaired.").user("now paint the whole front door green, in two coats").edit("paint.go")
    )
    assert f'The agent, in thought (edits followed): "{cause}"' in told(later)
    for number in range(8):  # of which only the newest are kept
        later = later.edit(f"wall{number}.go")
    assert cause in told(later)


def test_a_thought_about_what_was_removed_since_is_overtaken():
    seen = "The `turnKey` function must only be called by `oilHinge`, which means that it never turns twice."
    session = Session().user("the bolt of the front door breaks, find out why and repair it")
    session = session._add(role="assistant", thinking=seen)
    kept = session.edit("lock.go", "func turnKey() { oil() }", "func turnKey() {}")
    kept = kept.agent("Repaired.").user("now paint the whole front door green, in two coats").edit("a.go")
    assert seen in told(kept).partition("## Decisions")[2].partition("## State")[0]
    session = session.edit("lock.go", "func slideBolt() {}", "func turnKey() {}")
    session = (
        session.agent("Repaired.").user("now paint the whole front door green, in two coats").edit("a.go")
    )
    assert seen not in told(session).partition("## Decisions")[2].partition("## State")[0]


def test_what_the_agent_said_comes_before_what_it_thought():
    thoughts = [
        f"The root cause in `lock{number}.go` is `turnKey{number}`: the bolt breaks because it has no oil."
        for number in range(5)
    ]
    session = Session().user("the bolts of all doors break, find out why and repair them")
    for number, thought in enumerate(thoughts):
        session = session._add(role="assistant", thinking=thought)
        session = session.edit(f"lock{number}.go", f"func turnKey{number}() {{}}")
    said = "I keep `slideBolt()` as it is because `closeGate()` and `openGate()` need it, too."
    session = session.agent(
        f"{said}\n\nAll five bolts hold now. The doors close again, and every hinge was oiled."
    )
    session = session.user("now paint the whole front door green, in two coats, and start at the top")
    decided = (
        told(session.agent("The paint:").edit("a.go")).partition("## Decisions")[2].partition("## State")[0]
    )
    assert 0 < sum(thought[:40] in decided for thought in thoughts) <= 3


def test_a_word_of_assent_is_no_part_of_a_reason():
    words = "So the `bolt_at` tag must be renamed in `bolt.go`, because nobody has stored files with it."
    (found,) = Session().agent(f"Got it. {words}").found().insights
    assert found.text == words


def test_an_old_question_keeps_its_answer():
    session = (
        Session()
        .user("does the lock of the cellar door need oil?")
        .agent("Yes. The lock of the cellar door needs oil, because it is made of iron.")
    )
    for number in range(8):
        session = session.user(f"now build the door of room number {number}, please").agent(
            "It is built now."
        )
    assert "needs oil, because it is made of iron" in told(session)


def test_output_that_was_pasted_into_a_message_is_cut_to_the_errors_that_differ():
    pasted = "\n".join(
        f"Error: doors/room{number}/Door.go:{number}:1: hinge returns an interface" for number in range(30)
    )
    session = Session().user(f"the check of the pull request still fails\n{pasted}\nRan the linter in 7 ms")
    text = told(session.agent("Done.").user("now paint the whole front door green, in two coats"))
    assert "the check of the pull request still fails" in text
    assert text.count("hinge returns an interface") == 2  # in the goal, and among the user's words


def test_a_plan_is_told_without_its_longer_code():
    code = "\n".join(f"    board_{number} = saw(oak)" for number in range(40))
    plan = f"# A door\nSaw the oak.\n```python\n{code}\n```\nThen plane it."
    session = Session().user("plan a door").tool("ExitPlanMode", "approved", plan=plan)
    text = told(session.user("go").edit("door.py"))
    assert "Then plane it." in text
    assert "board_7" not in text


def test_what_a_check_said_of_files_that_nobody_edited_since_is_named():
    said = "door.go:3:1: unused hinge\nlock.go:7:1: unused key"
    session = Session().user("lint it").shell("golangci-lint run", said, "error").edit("lock.go")
    following = line(told(session), "Next:")
    assert "of files that were not edited since: `door.go:3:1: unused hinge`" in following
    assert "lock.go:7:1" not in following


def test_a_failed_test_that_has_passed_alone_since_is_not_called_failing():
    red = Session().user("test it").shell("go test ./...", "--- FAIL: TestDoor (0.1s)\nFAIL", "error")
    alone = red.edit("door.go").shell("go test -run TestDoor ./door", "ok  \tshed/door\t0.1s")
    following = line(told(alone), "Next:")
    assert "`go test ./...` again (`TestDoor` had failed in it, and passed since in" in following


# ── a go-ahead ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("words", ["yes", "Please finish it.", "ok do it", "weiter", "same again"])
def test_a_go_ahead_leaves_the_goal_as_it_was(words: str):
    session = (
        Session()
        .user("Write a lexer for dates. Never use regular expressions.")
        .edit("lexer.py")
        .agent("Weeks are missing. Shall I add them, too?")
        .user(words)
        .edit("weeks.py")
        .user("ok")
        .edit("days.py")
    )
    text = told(session)
    goal = line(text, "Goal:")
    assert goal.startswith('- Goal: "Write a lexer for dates. Never use regular expressions."')
    assert 'the user said last "ok"' in goal
    assert f'"Weeks are missing. Shall I add them, too?" → "{words}"' in text


def test_what_was_agreed_to_is_the_next_step():
    session = (
        Session()
        .user("Write a lexer for dates")
        .edit("lexer.py")
        .agent("Dates work. Shall I add weeks as well as quarters?")
        .user("yes please")
    )
    following = line(told(session), "Next:")
    assert 'agreed to with "yes please": "' in following
    assert 'Shall I add weeks as well as quarters?"' in following


def test_what_came_of_a_go_ahead_came_of_the_request_before_it():
    session = (
        Session()
        .user("Write a lexer for dates, times and everything that people may write on a calendar sheet")
        .agent("I begin with the dates.")
        .user("go ahead")
        .edit("lexer.py")
        .agent("The lexer reads dates and times because both have the same separators.")
        .user("Now document what the lexer accepts, with one example for each of its rules")
        .agent("I write the examples:")
        .edit("lexer.md")
    )
    assert "→ The lexer reads dates and times" in told(session)


@pytest.mark.parametrize("words", ["push it", "ok, let's implement this", "now commit that"])
def test_an_order_about_what_is_there_is_what_was_asked_for_last(words: str):
    session = Session().user("Write a lexer for dates").edit("lexer.py").agent("It is written.").user(words)
    goal = line(told(session), "Goal:")
    assert goal.startswith(f'- Goal: "{words}"')
    assert 'before that: "Write a lexer for dates"' in goal


# ── half-done work ────────────────────────────────────────────────────────────────────────────────


def staging(*commands: str) -> str:
    session = Session().user("Rename the bolts")
    for name in ("lock.go", "hinge.go", "door.go"):
        session = session.edit(f"src/{name}")
    session = session.agent("Renamed.").user("now stage me only the hunks that rename a bolt, one by one")
    for command in commands:
        session = session.shell(command, "done")
    return told(session)


def test_what_is_staged_so_far_and_what_is_not_is_told():
    text = staging("git add src/hinge.go", "git reset HEAD", "printf 'y' | git add -p src/lock.go")
    assert (
        "`git add` has named `src/lock.go`, and of what was written not yet `src/door.go`; `src/hinge.go`"
        in text
    )
    assert "what `git add` has not named yet: `src/door.go`; `src/hinge.go`." in line(text, "Next:")


@pytest.mark.parametrize(
    "command", ["git add -A", "git add .", "git add src/lock.go src/hinge.go src/door.go"]
)
def test_where_all_may_be_staged_no_rest_is_told(command: str):
    assert "has named" not in staging(command)


def test_a_report_of_a_commit_to_push_is_overtaken_by_the_push():
    session = (
        Session()
        .user("commit the lexer that you have just written and tell me how far the branch is by now")
        .edit("lexer.py")
        .shell("git commit -am Lexer", "[main 1a2b3c4] Lexer")
        .agent("Committed, because all is green. The branch is 1 commit ahead of origin.")
        .user("then push the branch and look whether the build of it on the server works, too")
        .shell("git push", "   0a..1a  main -> main")
        .agent("I look at the build:")
        .shell("gh run list", "queued")
    )
    text = told(session)
    assert "1 commit ahead of origin" not in text or "all commits of the session were pushed]" in text


def test_a_check_of_another_kind_that_is_out_of_date_is_run_after_the_red_one():
    session = (
        Session()
        .user("the lexer forgets weeks, repair that and leave everything else in it as it is")
        .shell("ruff check", "All checks passed!")
        .edit("lexer.py")
        .shell("pytest", "FAILED tests/test_lexer.py::test_weeks - assert 1 == 2\n1 failed", outcome="error")
    )
    assert "; then run `ruff check`: not run since the last edits." in line(told(session), "Next:")
    again = line(told(session.shell("ruff check", "All checks passed!")), "Next:")
    assert "pytest" in again
    assert "ruff" not in again
