"""A session that runs in this terminal: what is seen of it, how Ctrl-C pauses it, how its end is told."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

import click

from holdfast.base.errors import INTERRUPTED, CannotDoError, NotFoundError
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.project.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.workflow import Workflow


def chosen_workflow(
    service: common.Service, current: Settings, workflow_id: str | None, wanted: str, statuses: Any
) -> Workflow:
    """The named one, or the one of this folder; `wanted` says what it should have been."""
    if workflow_id is not None:
        return service.workflow(workflow_id)
    found = service.of_worktree(current.worktree, frozenset(statuses))
    if found is None:
        raise NotFoundError(
            f"No {wanted} workflow in current directory.", hint="`holdfast list --all` lists all workflows"
        )
    return found


def run_here(here: common.Runner, workflow: Workflow, *, as_json: bool) -> int:
    """Run the session to its end and tell how it ended; the exit code."""
    with _signals(here, workflow) as interrupted:
        while True:
            with _shown(here, workflow, quiet=as_json):
                ended = here.run(workflow)
            if interrupted.is_set() or not _waited_for_quota(here, ended):
                break
            workflow = here.service.resume_workflow(ended.id, claim=here.claim).workflow
    return tell_end(here.service, ended, as_json=as_json, interrupted=interrupted.is_set())


def _shown(here: common.Runner, workflow: Workflow, *, quiet: bool) -> AbstractContextManager[None]:
    """With the picture of it on a terminal; a base install that uses a server has nothing to draw it with."""
    if find_spec("rich") is None:
        return nullcontext()
    from holdfast.cli.live import progress

    return progress(here, workflow, quiet=quiet)


def _waited_for_quota(here: common.Runner, workflow: Workflow) -> bool:
    """Whether it is time to go on with a workflow that was to continue by itself."""
    if workflow.status != "paused" or workflow.resume_at is None or here.claim is None:
        return False  # with no claim of ours, a server's worker goes on with it
    click.echo(
        f"Paused: {workflow.pause_reason}. It resumes automatically; press Ctrl-C to leave it paused.",
        err=True,
    )
    here.resting.set()
    try:
        while (left := workflow.resume_at.timestamp() - time.time()) > 0:
            if here.quit.wait(min(left, 1.0)) or here.service.workflow(workflow.id).status != "paused":
                return False
    finally:
        here.resting.clear()
    return True


def run_or_leave(
    service: common.Service,
    here: common.Runner | None,
    workflow: Workflow,
    said: str,
    document: Any,
    *,
    as_json: bool,
) -> int:
    """Say that it goes on, and see to it: in this terminal, or by leaving it to a worker."""
    if here is None:
        how = leave_to_workers(service, service.settings)
        common.tell(as_json, document, f"{said}: {how}")
        return 0
    if not as_json:
        click.echo(said)
    return run_here(here, workflow, as_json=as_json)


def tell_end(service: common.Service, workflow: Workflow, *, as_json: bool, interrupted: bool = False) -> int:
    if as_json:
        common.print_json(described(service, workflow))
    else:
        _print_end(service, workflow)
    if workflow.status == "failed":
        raise CannotDoError(
            f"workflow {workflow.id} failed: {_reason(service, workflow)}",
            hint=f"`holdfast retry --workflow {workflow.id}` retries the failed task, "
            f"`holdfast skip TASK --workflow {workflow.id}` continues without it",
        )
    return INTERRUPTED if interrupted else 0


def described(service: common.Service, workflow: Workflow) -> dict[str, Any]:
    from holdfast.model.workflow import RESUMABLE

    latest = service.store.latest_snapshot(workflow.id)
    tasks = service.tasks(workflow.id)
    return {
        **workflow.model_dump(mode="json"),
        "snapshot_id": latest.id if latest and workflow.status in RESUMABLE else None,
        "tasks": [task.model_dump(mode="json") for task in tasks.tasks],
    }


def _print_end(service: common.Service, workflow: Workflow) -> None:
    tasks = service.tasks(workflow.id)
    if workflow.status == "completed":
        click.echo(f"✓ Workflow completed ({counted(tasks.count('completed'), 'task')})")
    elif workflow.status == "paused":
        latest = service.store.latest_snapshot(workflow.id)
        click.echo(f"✓ Workflow paused (snapshot: {latest.id if latest else 'none'})")
        click.echo(f"  Reason: {workflow.pause_reason or 'a pause was requested'}")
        done = tasks.count("completed")
        click.echo(f"  Tasks: {done} done, {len(tasks.tasks) - done} remaining")
        if workflow.resume_at:
            click.echo(f"  A worker resumes it at {workflow.resume_at:%Y-%m-%d %H:%M} UTC")
        click.echo(f"  Resume with: holdfast resume {workflow.id}")
    elif workflow.status == "blocked":
        waiting = service.waiting_for_approval(workflow)
        what = f"{waiting.id} ({waiting.description})" if waiting else "a task"
        click.echo(f"Workflow {workflow.id} is waiting for approval of task {what}")
        click.echo(f"  Approve with: holdfast approve {workflow.id}")
    elif workflow.status == "cancelled":
        click.echo(f"Workflow {workflow.id} was cancelled")


def _reason(service: common.Service, workflow: Workflow) -> str:
    from holdfast.model.task import failure_of

    return failure_of(service.tasks(workflow.id).tasks) or workflow.pause_reason or "see its events"


@contextmanager
def _signals(here: common.Runner, workflow: Workflow) -> Generator[threading.Event]:
    """First Ctrl-C: pause at the task's end. Second, or a TERM: cut it off and pause. Third: out."""
    interrupted = threading.Event()

    def ask() -> None:
        here.service.pause_workflow(workflow.id, "interrupted from the keyboard", wait=False)

    def on_interrupt() -> None:
        if interrupted.is_set():
            here.quit.set()
            click.echo("Interrupting the running task.", err=True)
            return
        interrupted.set()
        if here.resting.is_set():
            here.quit.set()  # nothing runs: it only waits
            return
        click.echo("Pausing when the running task ends. Press Ctrl-C again to interrupt it.", err=True)
        # A database that keeps us waiting shall not keep the next Ctrl-C waiting.
        threading.Thread(target=ask, daemon=True).start()

    def on_terminate() -> None:
        interrupted.set()
        here.quit.set()

    answers = {signal.SIGINT: on_interrupt, signal.SIGTERM: on_terminate}
    # Whoever pressed Ctrl-C once more while it ends shall not lose what it has to say.
    with answering(answers, out_now=here.quit.is_set, deaf_after=interrupted.is_set):
        yield interrupted


def leave_to_workers(service: common.Service, current: Settings) -> str:
    """Who will run what was just queued: a worker that is there, or one that is started for it."""
    if current.server is not None:
        return "handled by the server"
    if service.has_workers():
        return "handled by a worker"
    from holdfast.workflows.lease import start_worker

    start_worker(current)
    return "running in the background"


# ── signals ───────────────────────────────────────────────────────────────────────────────────────

# Signals, answered outside of what they interrupted.
#
# A handler runs between two instructions of the main thread, which may be in the midst of writing to
# the stream, or hold the lock of the event, that an answer needs: it would fail or wait for itself.
# So a handler only notes its number in a pipe, and a thread of its own reads that and answers.


def _never() -> bool:
    return False


@contextmanager
def answering(
    answers: Mapping[signal.Signals, Callable[[], object]],
    *,
    out_now: Callable[[], bool] = _never,
    deaf_after: Callable[[], bool] = _never,
) -> Generator[None]:
    """Within this, each of these signals is answered by its function, one after the other.

    A Ctrl-C is KeyboardInterrupt, right where the program is, once `out_now` says so (it is asked
    in the handler: it may look at a flag and no more). Whatever came is answered when this ends;
    afterwards the signals do what they did before, or nothing if `deaf_after` says so.
    """
    noted, note = os.pipe()

    def handler(number: int, _frame: object) -> None:
        if number == signal.SIGINT and out_now():
            raise KeyboardInterrupt
        os.write(note, bytes([number]))

    def answer() -> None:
        while number := os.read(noted, 1):
            answers[signal.Signals(number[0])]()

    answerer = threading.Thread(target=answer, name="holdfast-signals", daemon=True)
    answerer.start()
    before = {number: signal.signal(number, handler) for number in answers}
    try:
        yield
    finally:
        for number in answers:
            signal.signal(number, signal.SIG_IGN)
        os.close(note)
        answerer.join()
        os.close(noted)
        if not deaf_after():
            for number, previous in before.items():
                signal.signal(number, previous)
