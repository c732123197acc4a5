"""A plan file: YAML or JSON, read strictly. Every refusal names the line it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.model.base import Value, explain
from holdfast.model.task import Task, TaskDAG
from holdfast.model.workflow import Issue, WorkflowOptions

_T = TypeVar("_T", bound=Value | Task)

_ISSUE_KEYS = ("id", "title", "description")
TASK_KEYS = (
    *("id", "description", "depends_on", "run", "prompt", "driver", "approval", "review", "junit"),
    *("retries", "timeout", "until", "max"),
)
_OPTION_KEYS = tuple(WorkflowOptions.model_fields)
_PLAN_KEYS = ("issue", "tasks", "constraints", *_OPTION_KEYS)
_LARGEST_PLAN = 16 << 20


@dataclass(frozen=True)
class Plan:
    issue: Issue
    tasks: TaskDAG
    constraints: tuple[str, ...] = ()
    options: WorkflowOptions = field(default_factory=WorkflowOptions)


def driver_of(task: Task, options: WorkflowOptions) -> str:
    """A task names its driver, or its command says it is the shell's, or the plan's driver takes it."""
    return task.driver or ("shell" if task.run and not task.prompt else options.driver)


def has_nul(task: Task) -> bool:
    """Whether no process could be started with it."""
    return any("\0" in (text or "") for text in (task.id, task.run, task.prompt, task.until))


def read_plan(path: Path, **options: Any) -> Plan:
    """The plan in a file; `options` given on the command line win over the file's."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(
            f"no such plan: {path}", hint="see `holdfast run --help` for an example"
        ) from None
    except OSError as error:
        raise InvalidInputError(f"the plan {path} cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_PLAN:
        raise InvalidInputError(f"the plan {path} is larger than {_LARGEST_PLAN >> 20} MB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: not valid UTF-8 at byte {error.start}") from None
    return parse_plan(text, str(path), **options)


def parse_plan(text: str, name: str = "plan", **options: Any) -> Plan:
    try:
        root = _compose(text)
        return _Reader(name).plan(root, {key: value for key, value in options.items() if value is not None})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark else name
        raise InvalidInputError(f"{where}: {error.problem or error.context}", hint=_HINT) from None
    except yaml.YAMLError as error:
        raise InvalidInputError(f"{name}: {error}", hint=_HINT) from None
    except RecursionError:
        raise InvalidInputError(f"{name}: nested too deeply", hint=_HINT) from None


class _PlanLoader(yaml.SafeLoader):
    """JSON escapes what lies beyond `\\uffff` as two surrogates, which YAML leaves apart."""

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node = super().compose_scalar_node(anchor)
        try:
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise yaml.MarkedYAMLError(
                problem="a lone surrogate is not a character", problem_mark=node.start_mark
            ) from None
        return node


def _compose(text: str) -> yaml.Node | None:
    loader = _PlanLoader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


_HINT = "a plan has `issue`, `tasks` and optionally `driver`; see docs/workflows.md"


class _Reader:
    """Goes over the nodes of the document rather than over its values: nodes know their lines."""

    def __init__(self, name: str) -> None:
        self._name = name

    def plan(self, root: yaml.Node | None, options: dict[str, Any]) -> Plan:
        if root is None:
            raise InvalidInputError(f"{self._name} is empty", hint=_HINT)
        fields = self._fields(root, "the plan", _PLAN_KEYS)
        for needed in ("issue", "tasks"):
            if needed not in fields:
                raise self._refused(root, f"the plan has no {needed!r}")
        given = {key: self._plain(node) for key, node in fields.items() if key in _OPTION_KEYS}
        chosen = self._valid(
            lambda: WorkflowOptions.model_validate({**given, **options}, strict=False), fields, root
        )
        return Plan(
            issue=self._issue(fields["issue"]),
            tasks=self._tasks(fields["tasks"], chosen),
            constraints=self._constraints(fields.get("constraints")),
            options=chosen,
        )

    def _issue(self, node: yaml.Node) -> Issue:
        fields = self._fields(node, "the issue", _ISSUE_KEYS)
        values = {key: self._text(value, key) for key, value in fields.items()}
        for needed in ("id", "title"):
            if needed not in values:
                raise self._refused(node, f"the issue has no {needed!r}")
        return Issue(**values)

    def _constraints(self, node: yaml.Node | None) -> tuple[str, ...]:
        return () if node is None else tuple(self._text(one, "constraint") for one in self._items(node))

    def _tasks(self, node: yaml.Node, options: WorkflowOptions) -> TaskDAG:
        nodes = list(self._items(node))
        if not nodes:
            raise self._refused(node, "the plan has no tasks")
        tasks: dict[str, Task] = {}
        lines: dict[str, yaml.Node] = {}
        for one in nodes:
            task = self._task(one, options)
            if task.id in tasks:
                first = lines[task.id].start_mark.line + 1
                raise self._refused(one, f"duplicate task id {task.id!r}; first defined on line {first}")
            tasks[task.id], lines[task.id] = task, one
        self._refuse_bad_order(tasks, lines)
        return TaskDAG(tasks=tuple(tasks.values()))

    def _task(self, node: yaml.Node, options: WorkflowOptions) -> Task:
        fields = self._fields(node, "a task", TASK_KEYS)
        if "id" not in fields:
            raise self._refused(node, "a task has no 'id'")
        values = {key: self._plain(value) for key, value in fields.items()}
        values["id"] = self._text(fields["id"], "id")
        values.setdefault("description", values["id"])
        depends_on = fields.get("depends_on")
        if depends_on is not None:
            is_one = isinstance(depends_on, yaml.ScalarNode)
            needed = [depends_on] if is_one else list(self._items(depends_on))
            values["depends_on"] = tuple(self._text(one, "depends_on") for one in needed)
        task = self._valid(lambda: Task.model_validate(values, strict=False), fields, node)
        if has_nul(task):
            raise self._refused(node, f"task {task.id!r} contains a NUL character")
        self._refuse_without_work(task, options, node)
        return task

    def _refuse_without_work(self, task: Task, options: WorkflowOptions, node: yaml.Node) -> None:
        driver = driver_of(task, options)
        if driver == "shell" and not (task.run or "").strip():
            raise self._refused(
                node,
                f"task {task.id!r} has no command",
                hint='the shell driver requires one: run: "make test"',
            )
        if driver != "shell" and not (task.prompt or task.run or "").strip():
            raise self._refused(
                node, f"task {task.id!r} has no prompt", hint=f'{driver} needs one: prompt: "Review it"'
            )

    def _refuse_bad_order(self, tasks: dict[str, Task], lines: dict[str, yaml.Node]) -> None:
        for task in tasks.values():
            for needed in task.depends_on:
                if needed not in tasks:
                    raise self._refused(
                        lines[task.id],
                        f"task {task.id!r} depends on {needed!r}, which does not exist",
                        hint=f"known tasks: {', '.join(list(tasks)[:20])}",
                    )
        try:
            TopologicalSorter({task.id: task.depends_on for task in tasks.values()}).prepare()
        except CycleError as error:
            circle: list[str] = error.args[1]
            raise self._refused(
                lines[circle[0]], f"tasks have a circular dependency: {' → '.join(circle)}"
            ) from None

    def _fields(self, node: yaml.Node, what: str, known: tuple[str, ...]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self._refused(node, f"{what} must be a mapping of `name: value` pairs")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = self._text(key, "a name")
            if name not in known:
                raise self._refused(
                    key, f"{what} has an unknown key {name!r}", hint=f"known: {', '.join(known)}"
                )
            if name in found:
                raise self._refused(key, f"{what} has the key {name!r} twice")
            found[name] = value
        return found

    def _items(self, node: yaml.Node) -> Iterator[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._refused(node, "expected a list")
        yield from node.value

    def _text(self, node: yaml.Node, what: str) -> str:
        """As it is written, so that an id of 007 stays one; no list, no mapping."""
        if not isinstance(node, yaml.ScalarNode) or not str(node.value).strip():
            raise self._refused(node, f"{what} must be text")
        if "\0" in node.value:
            raise self._refused(node, f"{what} contains a NUL character")
        return str(node.value)

    def _plain(self, node: yaml.Node) -> Any:
        loader = yaml.SafeLoader("")
        try:
            return loader.construct_object(node, deep=True)  # pyright: ignore[reportUnknownMemberType] - untyped
        finally:
            loader.dispose()

    def _valid(self, make: Callable[[], _T], fields: dict[str, yaml.Node], node: yaml.Node) -> _T:
        try:
            return make()
        except ValidationError as error:
            about = str(next(iter(error.errors()[0]["loc"]), ""))
            raise self._refused(fields.get(about, node), explain(error)) from None

    def _refused(self, node: yaml.Node, complaint: str, hint: str = _HINT) -> InvalidInputError:
        return InvalidInputError(f"{self._name}:{node.start_mark.line + 1}: {complaint}", hint=hint)
