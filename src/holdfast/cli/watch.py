"""What `watch` shows: how full the windows are, the workflow, what is open; and keys to act on it."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from holdfast.base.errors import HoldfastError
from holdfast.base.neutral import without_controls
from holdfast.cli import common
from holdfast.project.settings import Settings

_SECONDS = 1.0
_THREADS_EVERY = 5
"""Looks: the threads take a while to put together, and change seldom."""
_REMEMBERED = 60
_WIDTH = 30


@dataclass(frozen=True)
class Look:
    """What there is to see at one moment."""

    work: str
    gauges: tuple[tuple[str, float, str], ...]
    """Name, share of the window, the same in words."""
    problem: str = ""


def look(current: Settings) -> Look:
    from holdfast.cli.status import status_report

    try:
        report = status_report(current, None)
    except HoldfastError as error:
        return Look("", (), error.message)
    return Look(_work(report), tuple(_gauges(report)))


def _work(report: dict[str, Any]) -> str:
    workflow, winddown = report["workflow"], report["winddown"]
    lines: list[str] = []
    if workflow is not None:
        done, left = workflow["tasks_completed"], workflow["tasks_remaining"]
        tasks = f", {done} of {done + left} tasks" if done + left else ""
        running = f", running {workflow['current_task_id']}" if workflow["current_task_id"] else ""
        lines.append(f"{workflow['issue']['title']}: {workflow['status']}{tasks}{running}")
    if winddown:
        orphaned = ", abandoned: holdfast winddown recover" if winddown["orphaned"] else ""
        lines.append(f"Winding down: {winddown['session_id']}, {winddown['action_count']} actions{orphaned}")
    return "\n".join(lines) or f"Nothing recorded here yet. Start with: {common.first_step()}"


def _gauges(report: dict[str, Any]) -> list[tuple[str, float, str]]:
    workflow = report["workflow"]
    found: list[tuple[str, float, str]] = []
    if workflow is not None and workflow["context_utilization"] is not None:
        share = float(workflow["context_utilization"])
        found.append((workflow["id"], share, f"{share:.0%}"))
    for one in report["usage"]:
        if "error" in one:
            found.append((one["session_id"], 0.0, one["error"]))
        else:
            share = one["percentage_used"] / 100
            words = f"{share:.0%} of {one['context_window']:,} tokens, {one['level']}"
            found.append((one["session_id"], share, words))
    return found


def gauge(share: float) -> str:
    filled = min(_WIDTH, max(0, round(share * _WIDTH)))
    return "█" * filled + "░" * (_WIDTH - filled)


def open_threads(current: Settings) -> list[tuple[str, str, str]]:
    """Name, title and state of each."""
    from holdfast.sessions.threads import threads_in

    with common.store_for(current) as store:
        found = threads_in(store, current.worktree)
    return [(one.id, one.title, one.state) for one in found if one.is_open]


def run_command(current: Settings, words: Sequence[str]) -> tuple[int, str]:
    """A command of ours, as the user would have typed it: with all its checks, and its words."""
    program = [sys.executable, "-P", "-m", "holdfast", "--project", str(current.project), *words]
    done = subprocess.run(
        program, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    return done.returncode, without_controls((done.stdout + done.stderr).strip())


def plain(text: str, style: str = "") -> Text:
    """What stands in files of a project is no markup and steers no terminal."""
    return Text(without_controls(text), style=style)


class Confirm(ModalScreen[bool]):
    BINDINGS: ClassVar[Any] = [
        Binding("enter,y", "dismiss(True)", "Undo it"),
        Binding("escape,n,q", "dismiss(False)", "Leave it"),
    ]

    def __init__(self, told: str) -> None:
        super().__init__()
        self._told = told

    def compose(self) -> ComposeResult:
        yield VerticalScroll(Static(plain(self._told)))
        yield Footer()


class WatchScreen(App[None]):
    TITLE = "Holdfast"
    CSS = "#work, #gauges { height: auto; padding: 1 2 0 2; } #threads { height: 1fr; margin: 1 2; }"
    BINDINGS: ClassVar[Any] = [
        Binding("p", "pause", "Pause"),
        Binding("r", "resume", "Resume"),
        Binding("u", "undo", "Undo…"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings
        self._history: dict[str, deque[float]] = {}
        self._looks = 0

    def compose(self) -> ComposeResult:
        yield Static(id="work")
        yield Static(id="gauges")
        table: DataTable[Any] = DataTable[Any](id="threads", cursor_type="row")
        table.add_columns("OPEN THREAD", "TITLE", "STATE")
        yield table
        yield Footer()

    def on_mount(self) -> None:
        self.set_interval(_SECONDS, self.look)
        self.look()

    def look(self) -> None:
        self.run_worker(self._look, thread=True, group="look", exclusive=True)

    def _look(self) -> None:
        seen = look(self._settings)
        threads = None
        if self._looks % _THREADS_EVERY == 0:
            try:
                threads = open_threads(self._settings)
            except HoldfastError as error:
                seen = Look(seen.work, seen.gauges, seen.problem or error.message)
        self._looks += 1
        self.call_from_thread(self._show, seen, threads)

    def _show(self, seen: Look, threads: list[tuple[str, str, str]] | None) -> None:
        work = plain(seen.work, "bold")
        if seen.problem:
            work.append_text(plain(f"\n{seen.problem}", "red"))
        self.query_one("#work", Static).update(work)
        shown = Text()
        for name, share, words in seen.gauges:
            past = self._history.setdefault(name, deque(maxlen=_REMEMBERED))
            past.append(share)
            style = "red" if share >= self._settings.levels.auto_pause else ""
            style = style or ("yellow" if share >= self._settings.levels.caution else "green")
            shown.append_text(plain(f"{name[:20]:20}  "))
            shown.append_text(Text(gauge(share), style=style))
            shown.append_text(plain(f"  {words}  "))
            shown.append_text(Text(f"{common.spark_line(past)}\n", style="dim"))
        self.query_one("#gauges", Static).update(shown)
        if threads is not None:
            table = cast("DataTable[Any]", self.query_one("#threads"))
            table.clear()
            for thread in threads:
                table.add_row(*map(plain, thread))

    def _run(self, words: Sequence[str]) -> None:
        def run() -> None:
            code, told = run_command(self._settings, words)
            severity = "error" if code else "information"
            self.call_from_thread(self.notify, told or "done", severity=severity, markup=False)
            self.call_from_thread(self.look)

        self.run_worker(run, thread=True)

    def action_pause(self) -> None:
        self._run(["pause", "--no-wait", "--reason", "paused from holdfast watch"])

    def action_resume(self) -> None:
        self._run(["resume", "--detach"])

    def action_undo(self) -> None:
        def preview() -> None:
            code, told = run_command(self._settings, ["tx", "undo", "--dry-run"])
            if code:
                self.call_from_thread(self.notify, told, severity="error", markup=False)
            else:
                self.call_from_thread(self.push_screen, Confirm(told), answered)

        def answered(is_wanted: bool | None) -> None:
            if is_wanted:
                self._run(["tx", "undo"])

        self.run_worker(preview, thread=True)
