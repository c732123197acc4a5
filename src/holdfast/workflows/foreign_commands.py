"""Commands that came from elsewhere run only after somebody has seen them.

A bundle, a shared session or files that were read back bring a plan with them. What it would run is shown
once; what the user agreed to is noted in the user's data folder, where no repository and no bundle can write.
Commands of plans that were started here need no consent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from holdfast.base.durable import private_folder, replace_file
from holdfast.base.errors import CannotDoError
from holdfast.base.neutral import without_controls
from holdfast.model.entry import SnapshotImported, WorkflowCreated
from holdfast.model.task import Task
from holdfast.store.protocol import Store

_FILE = "accepted-commands"
_SHOWN = 20


class UnconfirmedCommandsError(CannotDoError):
    """Carries the commands, for whoever can ask."""

    def __init__(self, workflow_id: str, commands: list[str]) -> None:
        self.commands = commands
        listed = "; ".join(shown(command) for command in commands[:_SHOWN])
        more = f"; and {len(commands) - _SHOWN} more" if len(commands) > _SHOWN else ""
        super().__init__(
            f"the commands of workflow {workflow_id} came from elsewhere and have not been confirmed: "
            f"{listed}{more}",
            hint=f"read them, then run `holdfast resume {workflow_id} --accept-commands` on this machine",
        )


def shown(command: str) -> str:
    return without_controls(" ".join(command.split()))


def foreign_commands(store: Store, workflow_id: str, tasks: Iterable[Task]) -> list[str]:
    """What is left to run and was not part of a plan that was started here."""
    if not store.events(workflow_id=workflow_id, types=("snapshot_imported",), limit=1):
        return []
    begun = [event.entry for event in store.events(workflow_id=workflow_id, limit=2)]
    own: set[str] = set()
    if isinstance(begun[0], WorkflowCreated) and not isinstance(begun[-1], SnapshotImported):
        own = {command for task in begun[0].task_dag.tasks for command in _commands(task)}
    left = (command for task in tasks if task.status != "completed" for command in _commands(task))
    return [command for command in dict.fromkeys(left) if command not in own]


def _commands(task: Task) -> tuple[str, ...]:
    return tuple(text for text in (task.run, task.prompt) if text)


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
