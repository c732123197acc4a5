"""A plan as a graph of tasks.

A workflow may have thousands of tasks, and each pause writes and reads them all. So a task is a
value of msgspec, which does that several times as fast as pydantic (docs/decisions/0016). To
callers, and inside other values, it behaves like any other of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Self, TypeVar, get_type_hints

import msgspec
from msgspec import Meta, structs
from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from holdfast.base.redact import redact
from holdfast.model.base import Value
from holdfast.model.statuses import DONE, REMAINING, PlanFacts, TaskStatus

__all__ = ["DONE", "REMAINING", "Task", "TaskDAG", "TaskStatus", "failure_of"]


_ROUNDS = 10


class _Checked(msgspec.StructMeta):
    """msgspec checks what it reads; this makes `Task(...)` check what it is given, in pydantic's words."""

    if not TYPE_CHECKING:  # a type checker shall see the fields

        def __call__(cls, **fields: Any) -> Task:  # noqa: N805 - of a class of classes
            return _adapter().validate_python(fields)


class Task(
    msgspec.Struct,
    metaclass=_Checked,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    array_like=True,  # the packed form has no names: a new field goes to the end, with a default
    gc=False,  # it holds nothing but texts and numbers, so no circle can begin here
):
    id: Annotated[str, Meta(min_length=1)]
    description: str
    status: TaskStatus = "pending"
    depends_on: tuple[str, ...] = ()
    run: Annotated[str | None, Meta(description="Shell command, for the shell driver")] = None
    prompt: Annotated[str | None, Meta(description="Prompt, for the agent drivers")] = None
    driver: Annotated[str | None, Meta(description="Driver of this task, if not the plan's")] = None
    approval: Annotated[bool, Meta(description="Whether it requires approval before it starts")] = False
    review: Annotated[bool, Meta(description="Whether its result is a review of the work so far")] = False
    junit: Annotated[str | None, Meta(description="Path of its JUnit XML report, in the worktree")] = None
    attempts: Annotated[int, Meta(ge=0, description="Number of times it was started")] = 0
    result: Annotated[str | None, Meta(description="Outcome in one line")] = None
    retries: Annotated[
        Annotated[int, Meta(ge=0), Field(ge=0)] | None,
        Meta(description="Automatic retries after a failure, if not the plan's"),
    ] = None
    timeout: Annotated[
        Annotated[float, Meta(gt=0), Field(gt=0)] | None,
        Meta(description="Seconds after which an attempt is interrupted and counts as failed"),
    ] = None
    until: Annotated[
        str | None, Meta(description="Shell command that must succeed; until then the task is repeated")
    ] = None
    max: Annotated[
        Annotated[int, Meta(ge=1), Field(ge=1)] | None,
        Meta(description="How often it is run at most, with `until`"),
    ] = None
    outputs: Annotated[
        dict[str, str] | None, Meta(description="Values it left for the tasks that depend on it")
    ] = None

    @property
    def rounds(self) -> int:
        """How often it may run until its condition holds."""
        return (self.max or _ROUNDS) if self.until else 1

    def changed(self, **changes: Any) -> Self:
        """A copy with these fields changed, validated like any other."""
        return type(self).model_validate({**structs.asdict(self), **changes})

    def without_secrets(self) -> Self:
        """Itself, or where it holds a secret a copy with `[redacted:…]` in its place."""
        clean, found = redact(self.model_dump_json())
        return type(self).model_validate_json(clean) if found else self

    # What callers know from pydantic's values; the options are those of `TypeAdapter`.

    @classmethod
    def model_validate(cls, value: object, **options: Any) -> Self:
        return _adapter().validate_python(value, **options)

    @classmethod
    def model_validate_json(cls, text: str | bytes, **options: Any) -> Self:
        return _adapter().validate_json(text, **options)

    @classmethod
    def model_json_schema(cls, **options: Any) -> dict[str, Any]:
        return _adapter().json_schema(**options)

    def model_dump(self, **options: Any) -> dict[str, Any]:
        return _documents().dump_python(structs.asdict(self), **options)

    def model_dump_json(self, **options: Any) -> str:
        return _documents().dump_json(structs.asdict(self), **options).decode()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """As with pydantic, `update` is not validated; nothing in a task could be copied deeper."""
        return structs.replace(self, **(update or {}))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        document = handler.generate_schema(_document_type())
        from_document = core_schema.no_info_after_validator_function(_from_document, document)
        return core_schema.json_or_python_schema(
            json_schema=from_document,
            python_schema=core_schema.no_info_wrap_validator_function(_task_or_document, from_document),
            serialization=core_schema.plain_serializer_function_ser_schema(
                structs.asdict, return_schema=document
            ),
        )


def _from_document(fields: dict[str, Any]) -> Task:
    if fields.get("max") is not None and not fields.get("until"):
        raise ValueError("`max` counts the rounds of `until`, which is missing")
    return msgspec.StructMeta.__call__(Task, **fields)


def _task_or_document(value: object, read: core_schema.ValidatorFunctionWrapHandler) -> Task:
    return value if isinstance(value, Task) else read(value)


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Task, config=ConfigDict(title="Task"))


@cache
def _documents() -> TypeAdapter[Any]:
    return TypeAdapter(_document_type())


@cache
def _document_type() -> Any:
    """A task in JSON and YAML, for pydantic: the same fields by name."""
    hints = get_type_hints(Task, include_extras=True)
    fields = {field.name: _described(hints[field.name], field) for field in structs.fields(Task)}
    make: Any = TypedDict  # a type checker expects a name for it here
    document = make("Task", fields)
    document.__pydantic_config__ = Value.model_config
    document.__module__ = __name__
    document.__get_pydantic_json_schema__ = _whole_where_written
    return document


def _whole_where_written(schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    """What is read may leave fields out; what is written has them all, as pydantic says of its own."""
    found = handler(schema)
    described = handler.resolve_ref_schema(found)
    if handler.mode == "serialization":
        described["required"] = list(described["properties"])
    return found


def _described(annotation: Any, field: structs.FieldInfo) -> Any:
    limits: dict[str, Any] = {}
    for meta in getattr(annotation, "__metadata__", ()):
        limits |= {name: value for name in _LIMITS if (value := getattr(meta, name)) is not None}
    if field.required:
        return Annotated[annotation, Field(**limits)]
    return NotRequired[Annotated[annotation, Field(default=field.default, **limits)]]


_LIMITS = ("description", "min_length", "ge")
"""What the fields above say by `Meta`; it is called the same with pydantic."""


def failure_of(tasks: Iterable[Task]) -> str | None:
    """Which of these failed and why, in a sentence; None where none did."""
    failed = [f"task {task.id}: {task.result or 'failed'}" for task in tasks if task.status == "failed"]
    return "; ".join(failed) or None


_PACKER = msgspec.msgpack.Encoder()
_UNPACKER = msgspec.msgpack.Decoder(tuple[Task, ...])


class TaskDAG(PlanFacts, Value):
    """All tasks of a workflow, in plan order, with their statuses.

    Rejects duplicate ids, unknown dependencies and cycles, so every instance can be run.
    """

    tasks: tuple[Task, ...] = ()

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        """Out of what `packed` made, checked like any other; `ValueError` where it is anything else."""
        try:
            tasks = _UNPACKER.decode(data)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise ValueError(f"tasks: {error}") from error
        return cls.model_construct(tasks=tasks)._checked()

    def packed(self) -> bytes:
        """The tasks for a database: little more than half of their JSON, and read several times as fast."""
        return _PACKER.encode(self.tasks)

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        return self._checked()

    def _checked(self) -> Self:
        known = self.by_id
        if len(known) != len(self.tasks):
            seen: set[str] = set()
            doubled = next(task.id for task in self.tasks if task.id in seen or seen.add(task.id))
            raise ValueError(f"duplicate task id {doubled!r}")
        if self._in_order():
            return self
        for task in self.tasks:
            for needed in task.depends_on:
                if needed not in known:
                    raise ValueError(f"task {task.id!r} depends on {needed!r}, which does not exist")
        try:
            TopologicalSorter({task.id: task.depends_on for task in self.tasks}).prepare()
        except CycleError as error:
            raise ValueError(f"tasks have a circular dependency: {' → '.join(error.args[1])}") from None
        return self

    def _in_order(self) -> bool:
        """Whether each task stands behind all it needs, as in most plans: then all is well."""
        before: set[str] = set()
        behind, add = before.issuperset, before.add
        for task in self.tasks:
            if task.depends_on and not behind(task.depends_on):
                return False
            add(task.id)
        return True

    def ready(self) -> Iterator[Task]:
        """Tasks that could start now, in plan order."""
        known = self.by_id
        for task in self.tasks:
            if task.status == "pending" and all(known[needed].status in DONE for needed in task.depends_on):
                yield task

    def updated(self, changes: Mapping[str, Mapping[str, object]]) -> TaskDAG:
        """A copy in which the named tasks have these fields; the shape stays, so it is not checked again."""
        tasks = tuple(task.changed(**changes[task.id]) if task.id in changes else task for task in self.tasks)
        return TaskDAG.model_construct(tasks=tasks)


# What is executed, where every copy of it lacks its secrets.
#
# A command, a prompt, a message or a repository's URL may hold one. Whatever is shown, exported or
# recorded of it has `[redacted:…]` in its place. The original is kept under a name beside the record,
# for whoever runs the task and for nobody else.

ISSUE, OPTIONS, MESSAGE = "issue", "options", "message"

_MARK = "[redacted:"
_TAKEN_OUT = re.compile(r"\[redacted:[a-z-]+\]")
_T = TypeVar("_T", bound=Value | Task)


def name_of(task_id: str) -> str:
    """By its id as the copies have it."""
    return f"task {task_id}"


def outputs_of(task: Task) -> str:
    """Of the values that this attempt left for later tasks."""
    return f"outputs {task.id} {task.attempts}"


def lacks_something(text: str | None) -> bool:
    return _MARK in (text or "")


def marks_in(text: str) -> list[str]:
    """What stands in it instead of secrets, or looks like that."""
    return _TAKEN_OUT.findall(text)


def original(name: str, written: _T, copy: _T) -> dict[str, str]:
    """What has to be kept beside the copy: nothing, where it says it all.

    Text that looks like a copy though it was written so is kept, too: it shall be executed as it is.
    """
    text = written.model_dump_json()
    return {name: text} if written != copy or lacks_something(text) else {}


def taken_out(copy: str | None, written: str | None) -> dict[str, str] | None:
    """What the copy lacks, with what stands there instead; None where it is a copy of something else."""
    if copy is None or written is None:
        return {} if copy == written else None
    marks, (first, *parts) = marks_in(copy), _TAKEN_OUT.split(copy)
    if not parts:
        return {} if copy == written else None
    last, start, end = parts.pop(), len(first), len(written)
    end -= len(last)
    if start > end or not (written.startswith(first) and written.endswith(last)):
        return None
    found: dict[str, str] = {}
    for mark, part in zip(marks, parts, strict=False):
        at = written.find(part, start, end)
        if at < 0:
            return None
        found[written[start:at]] = mark
        start = at + len(part)
    return {**found, written[start:end]: marks[-1]}
