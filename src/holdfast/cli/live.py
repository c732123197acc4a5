"""Live progress on a terminal: tasks, and how full the context window is. In a pipe: silence."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from holdfast.base.neutral import without_controls
from holdfast.cli import common
from holdfast.model.entry import Entry, PauseRequested, TaskFinished, TaskStarted, Warned
from holdfast.model.task import DONE, Task, TaskDAG
from holdfast.model.usage import ModelCall, UsageMetrics
from holdfast.model.workflow import Workflow

TYPE_CHECKING = False

if TYPE_CHECKING:
    from holdfast.model.workflow import Workflow


# ── the picture ───────────────────────────────────────────────────────────────────────────────────

# The picture: a line a task, a gauge, the last thing somebody said.

_MARKS = {
    "completed": ("✓", "green"),
    "failed": ("✗", "red"),
    "pending": ("○", "dim"),
    "blocked": ("■", "yellow"),
    "skipped": ("-", "dim"),
}
_MOST_LINES = 14


class Board:
    """Told of what happens from any thread; drawn a few times a second."""

    def __init__(self, workflow: Workflow, tasks: TaskDAG) -> None:
        self._title = without_controls(f"{workflow.issue.title}  (session {workflow.session_count})")
        self._limit = workflow.options.exhaustion_at
        self._tasks: dict[str, Task] = {task.id: task for task in tasks.tasks}
        self._began: dict[str, float] = {}
        self._usage: UsageMetrics | None = None
        self._said = ""
        self._spinner = Spinner("dots")

    def take(self, _workflow_id: str, what: Entry | UsageMetrics | ModelCall | str) -> None:
        if isinstance(what, str):
            self._said = what
        elif isinstance(what, UsageMetrics):
            self._usage = what
        elif isinstance(what, TaskStarted):
            self._began[what.task_id] = time.monotonic()
            self._change(what.task_id, "in_progress")
        elif isinstance(what, TaskFinished):
            is_pending = what.outcome == "interrupted" or what.retry_at is not None
            self._change(what.task_id, "pending" if is_pending else what.outcome)
        elif isinstance(what, PauseRequested):
            self._said = f"pausing at the next boundary: {what.reason or 'requested'}"
        elif isinstance(what, Warned):
            self._said = what.text

    def _change(self, task_id: str, status: str) -> None:
        self._tasks[task_id] = self._tasks[task_id].changed(status=status)

    @contextmanager
    def shown(self) -> Generator[None]:
        console = Console(file=common.terminal())
        with Live(get_renderable=self.picture, console=console, refresh_per_second=8, transient=True):
            yield

    def picture(self) -> RenderableType:
        done = sum(task.status == "completed" for task in self._tasks.values())
        parts: list[RenderableType] = [
            Text(f"{self._title}: {done} of {len(self._tasks)} tasks", style="bold")
        ]
        parts.append(self._lines())
        if self._usage is not None and self._usage.context_utilization is not None:
            parts.append(self._gauge(self._usage.context_utilization))
        if self._said:
            parts.append(Text(without_controls(self._said[:200]), style="dim", no_wrap=True))
        return Group(*parts)

    def _lines(self) -> Table:
        table = Table.grid(padding=(0, 1))
        tasks = list(self._tasks.values())
        first = next((at for at, task in enumerate(tasks) if task.status not in DONE), len(tasks))
        start = max(0, min(first - 3, len(tasks) - _MOST_LINES))
        for task in tasks[start : start + _MOST_LINES]:
            table.add_row(*self._line(task))
        hidden = len(tasks) - min(len(tasks), start + _MOST_LINES)
        if hidden:
            table.add_row("", Text(f"and {hidden} more", style="dim"), "")
        return table

    def _line(self, task: Task) -> tuple[RenderableType, Text, Text]:
        if task.status == "in_progress":
            seconds = time.monotonic() - self._began.get(task.id, time.monotonic())
            return (
                self._spinner,
                Text(_name(task)),
                Text(f"{seconds:.0f} s", style="dim"),
            )
        mark, style = _MARKS[task.status]
        return (
            Text(mark, style=style),
            Text(_name(task), style=style),
            Text(""),
        )

    def _gauge(self, share: float) -> Table:
        style = "red" if share >= self._limit else "yellow" if share >= self._limit * 0.8 else "green"
        table = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=1.0, completed=min(1.0, share), width=30, complete_style=style)
        table.add_row(Text("context"), bar, Text(f"{share:.0%} (pauses at {self._limit:.0%})"))
        return table


# ── showing it ────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def progress(here: common.Runner, workflow: Workflow, *, quiet: bool) -> Generator[None]:
    if quiet or not sys.stderr.isatty():
        yield
        return

    board = Board(workflow, here.service.tasks(workflow.id))
    here.listen(board.take)
    with board.shown():
        yield


def _name(task: Task) -> str:
    told = task.id if task.description == task.id else f"{task.id}  {task.description}"
    return without_controls(told)
