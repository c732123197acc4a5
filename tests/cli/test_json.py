"""Every command with `--json` prints what docs/formats.md names, and its times in one format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from holdfast.cli.main import cli
from holdfast.undo.transactions import SideCar

from .harness import Place
from .test_context import kept_session

FORMATS = Path(__file__).parents[2] / "docs" / "formats.md"
FORMAT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z")
LOOKS_LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*")
NAMED_AS_A_TIME = re.compile(r".+_at|at|began|started|updated|timestamp")
NO_TIMES = {"exhaustion_at": "a share of the window"}
ELSEWHERE = {"rewind": "prints what `tx undo` prints", "serve": "prints an address and stays"}
PLAN = """
issue: {id: T-1, title: Times}
tasks:
  - {id: first, run: "true"}
  - {id: second, run: "true", depends_on: [first], approval: true}
  - {id: third, run: "true", depends_on: [second], approval: true}
"""
STORY = """
run plan.yaml | status | list | events | logs first | reject | threads | usage | snapshot show latest
retry --detach | pause --no-wait | cancel | run plan.yaml | skip second | approve --detach | cancel
fork second | cancel
winddown start --percent 0.9 | winddown append tool_call --percent 0.91 | winddown summary | stats
winddown finalize | winddown recover | snapshot list | resume | resume
snapshot diff latest latest | history latest tasks | context latest | snapshot delete latest --yes
sessions list | handoff --to codex --session claude-code-1 | note handover words.md
remind buy milk | quiet status | tx list | tx show first | tx undo first | tx redo first | tx rollback first
docs audit src | docs plan src | docs improve src --yes | sessions delete --all --force
token create ci --expires 7d | token list | token revoke ci
schedules | doctor | prune --dry-run | reindex | trust
export all.holdfast | import all.holdfast | share push origin | share pull origin
"""


def test_all_commands_print_times_in_one_format(place: Place) -> None:
    prepare(place)
    lines = [line.split() for line in re.split(r"[|\n]", STORY) if line.strip()]
    results = place.many(*([*line, "--json"] for line in lines))
    times = [
        (" ".join(line), path, value)
        for line, result in zip(lines, results, strict=True)
        for path, value in times_in(result.data if result.out else None)
    ]
    assert [one for one in times if not (isinstance(one[2], str) and FORMAT.fullmatch(one[2]))] == []
    told = {line for line, result in zip(map(tuple, lines), results, strict=True) if result.out}
    assert [name for name in with_json() if not any(line[: len(name)] == name for line in told)] == [
        (name,) for name in ELSEWHERE
    ]
    assert len(times) > 40  # so that this test sees some
    lists = {
        name
        for name in with_json()
        for line, result in zip(lines, results, strict=True)
        if result.out and tuple(line[: len(name)]) == name and isinstance(result.data, list)
    }
    text = FORMATS.read_text(encoding="utf-8")
    told_as_lists = re.search(r"^Lists are arrays.*?: (.*?)\. Everything", text, re.MULTILINE | re.DOTALL)
    assert told_as_lists
    assert {" ".join(name) for name in lists} == set(re.findall(r"`([a-z ]+)`", told_as_lists[1]))

    for line, result in zip(lines, results, strict=True):
        documents = (
            result.data if result.out and isinstance(result.data, list) else [result.data] * bool(result.out)
        )
        known = [names for command, names in names_told(text) if line[: len(command)] == command]
        for names, document in ((names, document) for names in known for document in documents):
            assert sorted(document) == sorted(names), line
    told_of = [tuple(command) for command, _ in names_told(text)]
    assert {one for one in with_json() if one not in told_of} == {
        *(("history",), ("schedules",), ("share", "pull"), ("snapshot", "show"), ("usage",)),
        *((name,) for name in ELSEWHERE),
    }


def names_told(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Each command of the table in the documentation, with the names that it prints."""
    workflow: list[str] = []
    before: list[str] = []
    for commands, told in re.findall(r"^\| (`[a-z ]+`(?:, `[a-z ]+`)*) \| (.*) \|$", text, re.MULTILINE):
        names = re.findall(r"`(\w+)`", told)
        workflow = names if told.startswith("a workflow:") else workflow
        names += workflow if told.startswith("a workflow, and") else []
        names += before if told.startswith("the same, and") else []
        before = names
        if names:
            yield from ((command.split(), names) for command in re.findall(r"`([a-z ]+)`", commands))


def test_what_is_followed_is_a_document_a_line(place: Place) -> None:
    (place.project / "plan.yaml").write_text("issue: {id: X, title: X}\ntasks: [{id: a, run: echo hello}]\n")
    place.ok("run", "plan.yaml")
    for line in (["events", "--follow"], ["logs", "a", "--follow"]):
        told = [json.loads(one) for one in place.ok(*line, "--json").out.splitlines()]
        assert told
        assert all(isinstance(one, dict) for one in told)


def prepare(place: Place) -> None:
    for name, text in {"plan.yaml": PLAN, "words.md": "Go on.", "src/x.py": '"""All told."""\n'}.items():
        (place.project / name).parent.mkdir(exist_ok=True)
        (place.project / name).write_text(text)
    place.git("init", "--quiet", "--bare", str(place.root / "remote"))
    place.git("remote", "add", "origin", str(place.root / "remote"))
    for agent in ("claude-code", "codex", "gemini", "opencode"):
        kept_session(place, agent, f"{agent}-1")
    with SideCar(place.project) as sidecar:
        sidecar.begin("s1", transaction_id="first")
        sidecar.watch("first")
        (place.project / "made").write_text("agent\n")
        sidecar.record("first", "touch made")


def with_json(group: click.Group = cli, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from with_json(command, (*before, name))
        if any("--json" in parameter.opts for parameter in command.params):
            yield (*before, name)


def times_in(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """What is named as a time or looks like one, wherever it stands in the document."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from times_in(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from times_in(inner, key)
    elif (
        value is not None
        and key not in NO_TIMES
        and (NAMED_AS_A_TIME.fullmatch(key) or looks_like_one(value))
    ):
        yield key, value


def looks_like_one(value: Any) -> bool:
    return isinstance(value, str) and LOOKS_LIKE_A_TIME.fullmatch(value) is not None
