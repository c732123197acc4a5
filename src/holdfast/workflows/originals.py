"""What a session executes: its texts as they were written, found for copies that lack their secrets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from holdfast.base.durable import private_folder, replace_file
from holdfast.base.errors import CannotDoError
from holdfast.base.neutral import without_controls
from holdfast.base.redact import redact
from holdfast.model.entry import SnapshotImported, WorkflowCreated
from holdfast.model.fold import SessionFold
from holdfast.model.statuses import NOT_TO_BE_RUN
from holdfast.model.task import (
    ISSUE,
    MESSAGE,
    OPTIONS,
    Task,
    lacks_something,
    name_of,
    outputs_of,
    taken_out,
)
from holdfast.model.workflow import Issue, Workflow, WorkflowOptions
from holdfast.store.protocol import Store
from holdfast.workflows.drivers.protocol import Done, DriverFinding, TaskOutcome
from holdfast.workflows.plan import driver_of

_T = TypeVar("_T", Task, Issue, WorkflowOptions)

_ISSUE_TEXTS = ("id", "title", "description")
_OPTION_TEXTS = ("driver", "repository", "branch")
_TASK_TEXTS = ("id", "description", "run", "prompt", "driver", "junit", "until")
_EXECUTED = ("run", "prompt", "driver", "junit", "until")
_SHORTEST_SECRET = 4
"""What is shorter is a part of too many other words."""


class Originals:
    """Of one session. What is kept counts only for its own copy: a snapshot that came in from a file may
    have another plan under the same names."""

    def __init__(self, kept: Mapping[str, str], workflow: Workflow, fold: SessionFold) -> None:
        self._kept = kept
        self._secrets: dict[str, str] = {}
        self._longest_first: list[str] = []
        self.lost_values: dict[str, str] = {}
        """Of tasks whose values are here as redacted copies alone."""
        self.issue = self._written(ISSUE, workflow.issue, _ISSUE_TEXTS) or workflow.issue
        self._options = self._written(OPTIONS, workflow.options, _OPTION_TEXTS) or workflow.options
        self._options_kept = self._options is not workflow.options
        self.message = self._message(fold.resumed.message if fold.resumed else None)
        found = ((one.id, self._written(name_of(one.id), one, _TASK_TEXTS)) for one in fold.tasks().tasks)
        self._tasks = {task_id: task for task_id, task in found if task is not None}

    # ── to execute ──────────────────────────────────────────────────────────────────────────

    def task(self, copy: Task, *, is_told: bool) -> Task:
        """As it was written, with what became of it since. `is_told`: an agent reads its description, too."""
        written = self._tasks.get(copy.id)
        if written is not None:
            return written.changed(
                status=copy.status, attempts=copy.attempts, result=copy.result, approval=copy.approval
            )
        for name in (*_EXECUTED, "description") if is_told else _EXECUTED:
            if lacks_something(getattr(copy, name)):
                raise CannotDoError(
                    f"{NOT_TO_BE_RUN}only a redacted copy of its {name} is available; run its plan "
                    "again with `holdfast run`"
                )
        return copy

    def options(self) -> WorkflowOptions:
        options = self._options
        lacking = lacks_something(options.repository) or lacks_something(options.branch)
        if lacking and not self._options_kept:
            raise CannotDoError(
                f"only a redacted copy of its name is available ({options.repository}); "
                "run its plan again with `holdfast run`"
            )
        return options

    def outputs(self, task: Task) -> dict[str, str]:
        """The values that a task left in an earlier session, as it wrote them."""
        copies = task.outputs or {}
        found: dict[str, object] = json.loads(self._kept.get(outputs_of(task), "{}"))
        written = {name: str(found.get(name, text)) for name, text in copies.items()}
        if found and self._noted([taken_out(copies[name], written[name]) for name in copies]):
            return written
        if lost := next((name for name, text in copies.items() if lacks_something(text)), None):
            self.lost_values[task.id] = f"the value {lost} of task {task.id}"
        return copies

    def copied(self, task_id: str, outputs: Mapping[str, str]) -> dict[str, str]:
        """Values that a task has left, without secrets; what they lack is hidden from now on."""
        self.lost_values.pop(task_id, None)  # it has run again
        copies = {name: redact(self.hidden(text))[0] for name, text in outputs.items()}
        self._noted([taken_out(copies[name], outputs[name]) for name in outputs])
        return copies

    # ── to show ─────────────────────────────────────────────────────────────────────────────

    def hidden(self, text: str) -> str:
        """The text without the secrets that this session executes, whatever form they have there."""
        for secret in self._longest_first:
            text = text.replace(secret, self._secrets[secret])
        return self._without_cut_secret(text) if "…" in text else text

    def _without_cut_secret(self, text: str) -> str:
        """Of long output the end is kept: it may begin in the middle of a secret."""
        before, sign, rest = text.partition("…")
        for secret in self._longest_first:
            for start in range(1, len(secret) - _SHORTEST_SECRET + 1):
                if rest.startswith(secret[start:]):
                    return f"{before}{sign}{self._secrets[secret]}{rest[len(secret) - start :]}"
        return text

    def hidden_in_outcome(self, outcome: TaskOutcome) -> TaskOutcome:
        if isinstance(outcome, Done):
            return Done(self.hidden(outcome.result)) if outcome.result else outcome
        return replace(outcome, reason=self.hidden(outcome.reason))

    def hidden_in_finding(self, finding: DriverFinding) -> DriverFinding:
        text = clean = finding.model_dump_json()
        for secret in self._longest_first:
            clean = clean.replace(to_json(secret).decode()[1:-1], self._secrets[secret])
        return finding if clean == text else type(finding).model_validate_json(clean)

    # ── inside ──────────────────────────────────────────────────────────────────────────────

    def _written(self, name: str, copy: _T, texts: Sequence[str]) -> _T | None:
        kept = self._kept.get(name)
        if kept is None:
            return None
        try:
            written = type(copy).model_validate_json(kept)
        except ValidationError:
            return None
        lacks = [taken_out(getattr(copy, text), getattr(written, text)) for text in texts]
        return written if self._noted(lacks) else None

    def _message(self, copy: str | None) -> str | None:
        written = self._kept.get(MESSAGE)
        is_its_own = written is not None and self._noted([taken_out(copy, written)])
        return written if is_its_own else copy

    def _noted(self, lacks: Sequence[Mapping[str, str] | None]) -> bool:
        """Whether all are copies; if so, what they lack is a secret from now on."""
        found = [one for one in lacks if one is not None]
        if len(found) < len(lacks):
            return False
        for one in found:
            self._secrets |= {
                secret: mark for secret, mark in one.items() if len(secret.strip()) >= _SHORTEST_SECRET
            }
        self._longest_first = sorted(self._secrets, key=len, reverse=True)
        return True


# ── commands from elsewhere ────────────────────────────────────────────────────────────────────────

# Commands that came from elsewhere run only after somebody has seen them.
#
# A bundle, a shared session or files that were read back bring a plan with them. What it would run is shown
# once; what the user agreed to is noted in the user's data folder, where no repository or bundle can write.
# Commands of plans that were started here need no consent.

_FILE = "accepted-commands"


class UnconfirmedCommandsError(CannotDoError):
    """Carries the commands, for whoever can ask; a server tells its clients in words alone."""

    commands: Sequence[str] = ()
    digest = ""
    """Of exactly these commands: with it they are accepted, and no others."""

    @classmethod
    def of(cls, workflow_id: str, commands: Sequence[str], digest: str) -> Self:
        listed = "; ".join(map(shown, commands))  # all: who accepts them has read them here
        error = cls(
            f"the commands of workflow {workflow_id} came from elsewhere and have not been confirmed: "
            f"{listed}",
            hint=f"read them, then run `holdfast resume {workflow_id} --accept-commands` on this machine, "
            "or resume it in the dashboard",
        )
        error.commands, error.digest = commands, digest
        return error


def shown(command: str, between: str = " ⏎ ") -> str:
    """Line by line: joined by blanks, what follows a comment would read as a part of it."""
    return without_controls(between.join(line.rstrip() for line in command.strip().splitlines()))


def foreign_commands(
    store: Store, workflow: Workflow, tasks: Iterable[Task], constraints: Iterable[str]
) -> list[str]:
    """What is left to run or to tell an agent, and was not part of a plan that was started here."""
    if not store.events(workflow_id=workflow.id, types=("snapshot_imported",), limit=1):
        return []
    begun = [event.entry for event in store.events(workflow_id=workflow.id, limit=2)]
    own: set[str] = set()
    if isinstance(begun[0], WorkflowCreated) and not isinstance(begun[-1], SnapshotImported):
        own = set(_texts(begun[0].issue, begun[0].task_dag.tasks, begun[0].constraints, workflow.options))
    left = [task for task in tasks if task.status != "completed"]
    told = dict.fromkeys(_texts(workflow.issue, left, constraints, workflow.options))
    return [text for text in told if text not in own]


def _texts(
    issue: Issue, tasks: Iterable[Task], constraints: Iterable[str], options: WorkflowOptions
) -> Iterable[str]:
    """What a shell would run; and where an agent works, all that it is told as the user's words."""
    has_agent = False
    for task in tasks:
        yield from (text for text in (task.run, task.prompt, task.until) if text)
        if task.prompt or driver_of(task, options) != "shell":
            has_agent = True
            yield from filter(None, (task.description,))
    if has_agent:
        yield from (text for text in (issue.title, issue.description, *constraints) if text)


class AcceptedCommands:
    """Which commands of which workflow the user agreed to."""

    def __init__(self, home: Path) -> None:
        self._path = home / _FILE

    def missing(self, workflow_id: str, commands: Iterable[str]) -> list[str]:
        accepted = self._read()
        return [command for command in commands if _digest(workflow_id, command) not in accepted]

    def accept(self, workflow_id: str, commands: Iterable[str]) -> None:
        accepted = self._read() | {_digest(workflow_id, command) for command in commands}
        private_folder(self._path.parent)
        replace_file(self._path, "".join(f"{digest}\n" for digest in sorted(accepted)).encode())

    def _read(self) -> set[str]:
        try:
            return set(self._path.read_text("utf-8", "replace").split())
        except FileNotFoundError:
            return set()


def _digest(workflow_id: str, command: str) -> str:
    return hashlib.sha256(f"{workflow_id}\0{command}".encode("utf-8", "surrogateescape")).hexdigest()


def digest_of(workflow_id: str, commands: Iterable[str]) -> str:
    """Of all of these, in this order."""
    each = "".join(_digest(workflow_id, command) for command in commands)
    return hashlib.sha256(each.encode()).hexdigest()
