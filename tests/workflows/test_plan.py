"""Plans as people write them, and what they are told about those that cannot be run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.model.workflow import WorkflowOptions
from holdfast.workflows.plan import driver_of, parse_plan, read_plan

PLAN = """\
issue: {id: DEMO-1, title: Add a health endpoint, description: Long text}
driver: claude-code
constraints: [Never force-push.]
tasks:
  - {id: t1, description: Write the test, run: "pytest -q || true"}
  - {id: t2, description: Implement, depends_on: [t1], prompt: "Make it pass"}
  - {id: t3, depends_on: t2, prompt: "Review it", driver: codex, approval: true}
"""


def test_a_plan_is_read() -> None:
    plan = parse_plan(PLAN)
    assert plan.issue.title == "Add a health endpoint"
    assert plan.constraints == ("Never force-push.",)
    assert [(task.id, task.description, task.depends_on) for task in plan.tasks.tasks] == [
        ("t1", "Write the test", ()),
        ("t2", "Implement", ("t1",)),
        ("t3", "t3", ("t2",)),
    ]
    assert [driver_of(task, plan.options) for task in plan.tasks.tasks] == ["shell", "claude-code", "codex"]
    assert plan.tasks.by_id["t3"].approval


def test_json_is_a_plan_too() -> None:
    plan = parse_plan(
        '{"issue": {"id": "1", "title": "T"}, "pause_every": 2, "tasks": [{"id": "a", "run": "true"}]}'
    )
    assert plan.options == WorkflowOptions(pause_every=2)


@pytest.mark.parametrize("title", ["emoji \U0001f600", "\U00010000\U0010ffff", "\ufeffmark", "plain"])
def test_json_may_escape_every_character(title: str) -> None:
    given = {"issue": {"id": "1", "title": title}, "tasks": [{"id": title, "run": f"echo {title}"}]}
    plan = parse_plan(json.dumps(given))
    task = plan.tasks.tasks[0]
    assert (plan.issue.title, task.id, task.run) == (title, title, f"echo {title}")


def test_what_the_command_line_says_wins() -> None:
    assert parse_plan("timeout: 5\n" + PLAN, timeout=9.0, parallel=None).options.timeout == 9.0


HEAD = "issue: {id: D, title: T}\n"
REFUSED = {
    "no mapping": ("- a\n", r"plan:1: the plan must be"),
    "no issue": ("tasks: []\n", r"plan:1: the plan has no 'issue'"),
    "half a character": (r'issue: {id: a, title: "x\ud83d"}', r"plan:1: a lone surrogate"),
    "half a character in an id": (
        HEAD + 'tasks:\n  - {id: "\\ude00", run: a}\n',
        r"plan:3: a lone surrogate",
    ),
    "no title": ("issue:\n  id: a\ntasks: []\n", r"plan:2: the issue has no 'title'"),
    "no tasks": (HEAD, r"plan:1: the plan has no 'tasks'"),
    "empty tasks": (HEAD + "tasks: []\n", r"plan:2: the plan has no tasks"),
    "tasks no list": (HEAD + "tasks: nothing\n", r"plan:2: expected a list"),
    "unknown key": (HEAD + "colour: red\ntasks: []\n", r"plan:2: the plan has an unknown key 'colour'"),
    "unknown task key": (
        HEAD + "tasks:\n  - id: a\n    cmd: x\n",
        r"plan:4: a task has an unknown key 'cmd'",
    ),
    "doubled key": (HEAD + HEAD + "tasks: []\n", r"plan:2: the plan has the key 'issue' twice"),
    "no id": (HEAD + "tasks:\n  - {run: a}\n", r"plan:3: a task has no 'id'"),
    "no command": (HEAD + "tasks:\n  - {id: a}\n", r"plan:3: task 'a' has no command"),
    "no prompt": (HEAD + "driver: codex\ntasks:\n  - {id: a}\n", r"plan:4: task 'a' has no prompt"),
    "doubled id": (
        HEAD + "tasks:\n  - {id: a, run: x}\n  - {id: a, run: y}\n",
        r"plan:4: duplicate task id 'a'; first defined on line 3",
    ),
    "unknown dependency": (
        HEAD + "tasks:\n  - {id: a, run: x}\n  - {id: b, run: y, depends_on: [c]}\n",
        r"plan:4: task 'b' depends on 'c', which does not exist",
    ),
    "cycle": (
        HEAD + "tasks:\n  - {id: a, run: x, depends_on: [b]}\n  - {id: b, run: y, depends_on: [a]}\n",
        r"plan:[34]: tasks have a circular dependency: \w → \w → \w",
    ),
    "itself": (
        HEAD + "tasks:\n  - {id: a, run: x, depends_on: [a]}\n",
        r"plan:3: .* circular dependency: a → a",
    ),
    "no number": (HEAD + "pause_every: often\ntasks:\n  - {id: a, run: x}\n", r"plan:2: pause_every: "),
    "yaml": (HEAD + "tasks: [\n", r"plan:\d: "),
    "empty": ("", "plan is empty"),
    "a tab": (HEAD + "tasks:\n\t- a\n", r"plan:3: "),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED.keys())
def test_a_bad_plan_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError, match=complaint) as refused:
        parse_plan(text)
    assert refused.value.hint


@given(st.text(alphabet=st.sampled_from("abit:[]{}-,\n \"'&*!|>%@`#\t\0\x85é"), max_size=60))
def test_no_text_makes_it_stumble(text: str) -> None:
    try:
        plan = parse_plan(text)
    except InvalidInputError:
        return  # in our words: no other error gets out
    assert plan.tasks.tasks


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such plan"):
        read_plan(tmp_path / "plan.yaml")
    (tmp_path / "plan.yaml").write_bytes(b"issue: \xff\xfe")
    with pytest.raises(InvalidInputError, match="not valid UTF-8"):
        read_plan(tmp_path / "plan.yaml")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_plan(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        'issue: {id: A, title: B}\ntasks:\n  - {id: "a\\0b", run: x}\n',
        'issue: {id: A, title: B}\ntasks:\n  - {id: a, run: "x\\0y"}\n',
    ],
)
def test_nul_characters_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"plan:3: .*NUL"):
        parse_plan(text)


def test_deep_nesting_is_refused_in_our_words() -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_plan("[" * 5000)
    assert refused.value.message == "plan: nested too deeply"
