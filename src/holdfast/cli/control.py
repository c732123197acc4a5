"""What a person does with workflows: run, pause, resume, retry, skip, fork, approve, reject, cancel."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

import click

from holdfast.base.clock import system_clock, to_datetime
from holdfast.base.errors import ConflictError, InvalidInputError, NotFoundError
from holdfast.base.ids import file_name_for
from holdfast.base.text import counted, decode_path, shown_path
from holdfast.cli import common
from holdfast.project.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import NoReturn

    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.model.workflow import Workflow
    from holdfast.workflows.engine import Engine
    from holdfast.workflows.service import Resumed

_T = TypeVar("_T")

_detach_option = click.option(
    "--detach", is_flag=True, help="Run it in the background and return immediately."
)
_reason_option = click.option("--reason", "-r", help="Reason to record.")
_workflow_option = click.option(
    "--workflow", "workflow_id", metavar="WORKFLOW", help="Default: the one in this folder."
)
_optional_workflow = click.argument("workflow_id", metavar="[WORKFLOW]", required=False)


@click.command("run")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--cwd", type=click.Path(path_type=Path), help="Worktree to run in. Default: the project folder."
)
@click.option("--driver", help="Driver that executes the tasks. Default: the plan's.")
@click.option("--pause-every", type=click.IntRange(1), help="Pause after N tasks in a session.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    help="Interrupt and pause the session after N seconds.",
)
@click.option(
    "--force-after",
    type=click.FloatRange(0),
    help="Seconds a pause waits for the running task. [default: 300]",
)
@click.option("--parallel", type=click.IntRange(1), help="Maximum number of concurrent tasks.")
@click.option(
    "--resume-on-reset", is_flag=True, default=None, help="Resume automatically when a usage quota resets."
)
@click.option("--retries", type=click.IntRange(0), help="Automatic retries of a task that fails.")
@click.option("--keep-going", is_flag=True, default=None, help="Run independent tasks after one has failed.")
@click.option(
    "--priority", type=click.IntRange(1, 1_000_000), help="Workers begin with the lowest. [default: 100]"
)
@click.option("--every", metavar="CRON", help="Let workers run it on a schedule, in your time zone.")
@_detach_option
@common.json_option
def run_command(
    plan: Path, cwd: Path | None, every: str | None, detach: bool, as_json: bool, **options: object
) -> int:
    """Run a plan, task by task, so that it can be paused and resumed.

    Ctrl-C pauses it when the running task ends.

    \b
    Examples:
      holdfast run plan.yaml
      holdfast run plan.yaml --pause-every 5 --parallel 2
      holdfast run plan.yaml --detach
      holdfast run nightly.yaml --every "0 3 * * *"

    \b
    A plan:
      issue: {id: DEMO-1, title: Add a health endpoint}
      tasks:
        - {id: test, description: Write the test, run: "pytest -q || true"}
        - {id: code, description: Implement, depends_on: [test], run: "make"}
    """
    from holdfast.cli.running import leave_to_workers, run_here
    from holdfast.workflows.plan import read_plan

    current = common.settings()
    wanted = read_plan(plan, **options)
    if every is not None:
        given = {name: value for name, value in options.items() if value is not None}
        return _schedule(current, every, plan.absolute(), (cwd or current.worktree), given, as_json=as_json)
    with common.starting(current, detach=detach) as (service, here):
        workflow = service.start(wanted, cwd, claim=here.claim if here else None)
        started = f"Workflow {workflow.id} started"
        limit = f"  Pauses when the context window is {workflow.options.exhaustion_at:.0%} full"
        if here is None:
            how = leave_to_workers(service, current)
            watch = f"  Watch with: holdfast events {workflow.id} --follow"
            common.tell(as_json, workflow.model_dump(mode="json"), f"{started}: {how}", limit, watch)
            return 0
        if not as_json:
            tasks = counted(len(wanted.tasks.tasks), "task")
            click.echo(f"{started}: {workflow.issue.title} ({tasks})")
            click.echo(limit)
        return run_here(here, workflow, as_json=as_json)


# ── schedules ──────────────────────────────────────────────────────────────────────────────────────


def _schedule(
    current: Settings, cron: str, plan: Path, worktree: Path | str, options: object, *, as_json: bool
) -> int:
    """The plan is read anew each time; one schedule a plan and worktree."""
    from hashlib import sha256

    folder = Path(worktree).absolute()
    name = f"{plan.stem}-{sha256(f'{plan} {folder}'.encode()).hexdigest()[:6]}"
    given = {"plan": str(plan), "worktree": str(folder), "options": options}
    zone = _time_zone()
    with _engine(current) as engine:
        engine.schedule(name, cron, zone, given, now=to_datetime(system_clock()))
    document = {"schedule": name, "every": cron, "zone": zone or "UTC", **given}
    lines = (f"✓ Scheduled {name}: {cron} ({zone or 'UTC'})", "  Workers run it: holdfast worker")
    common.tell(as_json, document, *lines, f"  Remove with: holdfast schedules --remove {name}")
    return 0


@contextmanager
def _engine(current: Settings) -> Generator[Engine]:
    from holdfast.base.errors import require_installed
    from holdfast.workflows.service import OrchestratorService

    if current.server:
        raise InvalidInputError(
            "schedules are kept in the database, and --server has its own",
            hint="run this on the server's machine, or unset HOLDFAST_SERVER",
        )
    require_installed("schedules", "dbos")
    from holdfast.workflows.engine import Engine

    def nothing(*_: str) -> NoReturn:
        raise AssertionError("nothing is run here")

    with OrchestratorService(current), Engine(current.db, "schedules", nothing, concurrency=None) as engine:
        yield engine


def _time_zone() -> str | None:
    """By the name that cron expressions are read in; None: UTC."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    name = (os.environ.get("TZ") or "/etc/localtime").removeprefix(":")
    if name.startswith("/"):
        name = os.path.realpath(name).partition("zoneinfo/")[2]
    try:
        return str(ZoneInfo(name)) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidInputError(
            f"unknown time zone: {name!r}", hint='set TZ to a name such as "Europe/Berlin" or "UTC"'
        ) from None


@click.command("schedules")
@click.option("--remove", "removed", metavar="SCHEDULE", help="Remove this schedule; what it started stays.")
@common.json_option
def schedules_command(removed: str | None, as_json: bool) -> None:
    """List the plans that workers run on a schedule, and remove them.

    \b
    Examples:
      holdfast schedules
      holdfast schedules --remove nightly-1f9a3c
    """
    with _engine(common.settings()) as engine:
        known = engine.schedules()
        if removed is not None:
            if removed not in {one.name for one in known}:
                raise NotFoundError(f"no such schedule: {removed}", hint="`holdfast schedules` lists them")
            engine.unschedule(removed)
            common.tell(as_json, {"removed": removed}, f"✓ Schedule {removed} removed")
            return
        last = {one.name: engine.last_start(one.name) for one in known}
    documents = [
        {"schedule": one.name, "every": one.cron, "zone": one.zone, **one.given, "last": last[one.name]}
        for one in known
    ]
    lines = [
        f"{one.name}  {one.cron} ({one.zone})  {one.given['plan']}{_told(last[one.name])}" for one in known
    ]
    hint = 'No schedules. Make one with: holdfast run PLAN --every "0 3 * * *"'
    common.tell(as_json, documents, *(lines or [hint]))


def _told(last: tuple[datetime, str] | None) -> str:
    return f"\n  last: {last[0]:%Y-%m-%d %H:%M} UTC, {common.in_a_line(last[1])}" if last else ""


# ── resume ─────────────────────────────────────────────────────────────────────────────────────────


@click.command("resume")
@click.argument("name", metavar="[THREAD]", required=False)
@click.option("--from", "from_snapshot", metavar="SNAPSHOT", help="Resume from an older snapshot.")
@click.option(
    "--files", "with_files", is_flag=True, help="Restore the files to the snapshot of --from first."
)
@click.option("--partial", is_flag=True, help="With --files: resume even if a file cannot be restored.")
@click.option(
    "--dry-run", is_flag=True, help="With --files: show which files would be restored, and change nothing."
)
@click.option("--message", "-m", help="A message for the next session.")
@click.option(
    "--strict", is_flag=True, help="Fail unless the worktree is known to be unchanged since the pause."
)
@click.option("--accept-commands", is_flag=True, help="Run the commands that an imported session brought.")
@click.option(
    "--accept-undone", is_flag=True, help="Continue although changes of completed tasks were undone."
)
@_detach_option
@common.yes_option
@common.json_option
def resume_command(
    name: str | None,
    from_snapshot: str | None,
    message: str | None,
    strict: bool,
    accept_commands: bool,
    yes: bool,
    as_json: bool,
    **options: bool,
) -> int:
    """Resume a paused or failed workflow from its last snapshot.

    It continues where it left off, with the context of earlier sessions. A failed
    task is retried. A workflow whose process was killed is resumed the same way. Work
    without a plan, such as an agent's session or a wind-down, has nothing to run: its context is
    printed and it is marked as resumed.

    THREAD is a workflow or one of `holdfast threads`; by default, the newest open one of
    this folder and branch.

    \b
    Examples:
      holdfast resume
      holdfast resume wf_01k9… -m "use the new endpoint" --strict
      holdfast resume session-20260106-120000
      holdfast resume --from session-20260106-120000 --files
    """
    from holdfast.cli.running import run_or_leave

    current = common.settings()
    common.warn_of_abandoned(current)
    with common.starting(current, detach=options["detach"]) as (service, here):
        workflow, snapshot_id = _chosen_thread(service, current, name)
        snapshot_id = _snapshot(service, current, from_snapshot) or snapshot_id
        restore = _restoring(current, workflow, from_snapshot, **options)
        if restore and options["dry_run"]:
            return restore(service.snapshot(snapshot_id or ""))
        if here and not as_json and service.tasks(workflow.id).tasks:
            _show(service, workflow, snapshot_id, ask=not yes)
        claim = here.claim if here else None
        resume = partial(
            service.resume_workflow,
            workflow.id,
            snapshot_id=snapshot_id,
            message=message,
            strict=strict,
            claim=claim,
            accept_undone=options["accept_undone"],
            **({"restore": restore} if restore else {}),
        )
        resumed = _with_consent(resume, accept_commands)
        for sentence in resumed.drift:
            click.echo(f"warning: {sentence}", err=True)
        if resumed.is_handover:
            _note_taken_up(current, resumed)
            return _hand_over(resumed, message, as_json=as_json)
        document = resumed.workflow.model_dump(mode="json")
        said = "✓ Workflow resumed"
        return run_or_leave(service, here, resumed.workflow, said, document, as_json=as_json)


def _chosen_thread(
    service: common.Service, current: Settings, name: str | None
) -> tuple[Workflow, str | None]:
    """The workflow, and of work without a plan the snapshot of the thread that is meant."""
    from holdfast.sessions.threads import find_thread, thread_not_found, threads_in

    if name is not None and name.startswith("wf_"):
        return _chosen(service, current, name), None
    if name is None:
        workflow = _chosen(service, current, None)
        _name_the_other(service, current, workflow)
        return workflow, _newest_open(service, current, workflow)
    thread = find_thread(threads_in(service.store, current.worktree), name)
    if thread is None:
        raise thread_not_found(name)
    return service.resumable(thread.workflow_id), None if thread.issue else thread.snapshot_id


def _name_the_other(service: common.Service, current: Settings, workflow: Workflow) -> None:
    """Where a plan is meant, and something else was worked on since."""
    from holdfast.model.workflow import OPEN, RESUMABLE

    found = service.workflows(worktree=current.worktree, statuses=OPEN | RESUMABLE)
    since = takewhile(lambda flow: flow.id != workflow.id, found)
    newest = next((flow for flow in since if flow.status in OPEN), workflow)
    latest = service.store.latest_snapshot(newest.id)
    if newest.id != workflow.id and latest is not None:
        other = newest.id if service.tasks(newest.id).tasks else latest.session_id
        click.echo(
            f"{workflow.id} is the plan of this folder; `holdfast threads` lists what was worked on since, "
            f"`holdfast resume {other}` takes the newest of it",
            err=True,
        )


def _newest_open(service: common.Service, current: Settings, workflow: Workflow) -> str | None:
    """The snapshot to go on from, where there is no plan and several things were worked on."""
    from holdfast.capture.git import capture_git_state
    from holdfast.sessions.threads import threads_in

    if service.tasks(workflow.id).tasks:
        return None
    opened = [one for one in threads_in(service.store, current.worktree) if one.is_open and not one.issue]
    if len(opened) < 2:
        return opened[0].snapshot_id if opened else None
    git = capture_git_state(current.project)
    here = [one for one in opened if one.branch == (git.branch if git else None)]
    chosen = (here or opened)[0]
    click.echo(
        f"{chosen.id} is the newest of {counted(len(opened), 'open thread')}: `holdfast threads` lists them",
        err=True,
    )
    return chosen.snapshot_id


def _note_taken_up(current: Settings, resumed: Resumed) -> None:
    """Where an agent runs this, its session goes on with that one; its hooks read the note."""
    from holdfast.cli.quiet import current_session
    from holdfast.hooks.fast import notes
    from holdfast.project import formats

    session = current_session()
    if session is None or resumed.snapshot is None:
        return
    folder = current.layout.state / formats.HOOKS / file_name_for(session)
    if folder.is_dir():
        notes.write(str(folder / formats.TOOK_UP), resumed.snapshot.session_id.encode())


def _with_consent(resume: Callable[..., _T], accept_commands: bool) -> _T:
    """Commands from elsewhere are shown, and asked for where somebody can answer; `--yes` is no answer."""
    from holdfast.workflows.originals import UnconfirmedCommandsError, shown

    try:
        return resume(accept_commands=accept_commands)
    except UnconfirmedCommandsError as error:
        if not error.commands or not common.is_interactive():
            raise
        click.echo("This work came from elsewhere. It would run, or tell an agent:", err=True)
        for number, command in enumerate(error.commands, 1):
            indented = f"\n{' ' * (len(str(number)) + 4)}"
            click.echo(f"  {number}. {shown(command, indented)}", err=True)
        click.confirm("Run these commands?", default=False, abort=True, err=True)
        return resume(accept_commands=True)


def _chosen(
    service: common.Service, current: Settings, workflow_id: str | None, *, needs_plan: bool = False
) -> Workflow:
    from holdfast.cli.running import chosen_workflow
    from holdfast.model.workflow import ACTIVE, OPEN

    plan = None if workflow_id else _waiting_plan(service, current)
    try:
        open_ones = ACTIVE if needs_plan else OPEN
        workflow = plan or chosen_workflow(service, current, workflow_id, "paused", open_ones)
    except NotFoundError as error:
        failed = None if workflow_id else _waiting_plan(service, current, despite_later=True)
        if failed is None:
            raise
        named = f"`holdfast resume {failed.id}` retries the plan that failed before: {failed.issue.title}"
        raise NotFoundError(error.message, hint=named) from None
    return service.resumable(workflow.id)


def _waiting_plan(
    service: common.Service, current: Settings, *, despite_later: bool = False
) -> Workflow | None:
    from holdfast.sessions.standing import LOOKED_AT, waiting_plan

    found = service.workflows(worktree=current.worktree, limit=LOOKED_AT)
    return waiting_plan(
        found,
        lambda flow: flow.status,
        lambda flow: bool(service.tasks(flow.id).tasks),
        despite_later=despite_later,
    )


def _snapshot(service: common.Service, current: Settings, name: str | None) -> str | None:
    return common.find_snapshot(service.store, current, name).id if name else None


def _restoring(
    current: Settings,
    workflow: Workflow,
    from_snapshot: str | None,
    *,
    with_files: bool,
    partial: bool,
    dry_run: bool,
    **_: bool,
) -> Callable[[SessionSnapshot], int] | None:
    if not with_files:
        if partial or dry_run:
            raise InvalidInputError("--partial and --dry-run need --files", hint="nothing was changed")
        return None
    if from_snapshot is None or current.server:
        raise InvalidInputError(
            "--files needs --from SNAPSHOT, and the worktree on this machine",
            hint="`holdfast snapshot list` shows the snapshots",
        )
    return lambda snapshot: _restore_files(workflow, snapshot, incomplete=partial, dry_run=dry_run)


def _restore_files(workflow: Workflow, snapshot: SessionSnapshot, *, incomplete: bool, dry_run: bool) -> int:
    """What sessions after that snapshot changed is undone; it can be redone."""
    from holdfast.workflows.file_recorder import restore_files

    if snapshot.workflow_id != workflow.id:
        raise InvalidInputError(f"{snapshot.id} does not belong to {workflow.id}", hint="nothing was changed")
    worktree = Path(os.fsdecode(decode_path(workflow.worktree)))
    try:
        done = restore_files(
            worktree, workflow.id, snapshot.session_number, incomplete=incomplete, dry_run=dry_run
        )
    except ConflictError as error:
        hint = "nothing was changed or run; --partial restores what can be restored, and resumes"
        raise ConflictError(error.message, hint=error.hint if incomplete else hint) from error
    if not done:
        click.echo("no file was restored: no change since that snapshot is recorded", err=True)
    for outcome in done:
        files = counted(len([path for path in outcome.restored if not path.endswith("/")]), "file")
        told = f"restored {files}; `holdfast tx undo {outcome.entry.id}` reverts that"
        click.echo(f"would restore {files}" if dry_run else told, err=True)
        for path, reason in outcome.left.items():
            click.echo(f"left unchanged: {shown_path(path)}: {reason}", err=True)
    return 3 if any(outcome.left for outcome in done) else 0


def _show(service: common.Service, workflow: Workflow, snapshot_id: str | None, *, ask: bool) -> None:
    """What it goes on from and what that costs, before anything is spent."""
    snapshot = service.snapshot(snapshot_id) if snapshot_id else service.store.latest_snapshot(workflow.id)
    if snapshot is not None:
        click.echo(f"Resuming from session {snapshot.session_number}:")
        why = snapshot.pause_reason or snapshot.trigger
        stopped = "Failed" if snapshot.trigger == "failure" else "Paused"
        click.echo(f"  {stopped}: {snapshot.created_at:%Y-%m-%d %H:%M:%S} UTC ({common.in_a_line(why)})")
        click.echo(f"  Tasks: {snapshot.tasks_completed} done, {snapshot.tasks_remaining} remaining")
        if workflow.options.driver != "shell":
            from holdfast.resume.snapshots import ResumeContextCompiler

            text = ResumeContextCompiler().compile(snapshot, workflow.issue)
            click.echo(f"  Context: about {len(text) // 4:,} tokens")
        if ask and common.is_interactive() and workflow.options.driver != "shell":
            click.confirm("Continue?", default=True, abort=True, err=True)
    click.echo(f"\nResuming workflow {workflow.id}...")


def _hand_over(resumed: Resumed, message: str | None, *, as_json: bool) -> int:
    """What the next session should read: the user's message, and what `holdfast context` prints."""
    from holdfast.resume.snapshots import ResumeContextCompiler

    snapshot, workflow, before = resumed.snapshot, resumed.workflow, resumed.taken_up_before
    if snapshot is None:
        raise NotFoundError(f"workflow {workflow.id} has no snapshot", hint="`holdfast snapshot list`")
    compiled = ResumeContextCompiler().compile_with_report(
        snapshot, workflow.issue, drift=resumed.drift, worktree=workflow.users_folder
    )
    text = f"New message from the user: {message}\n\n{compiled.text}" if message else compiled.text
    if as_json:
        handover = {"snapshot_id": snapshot.id, "session_id": snapshot.session_id, "context": text}
        document = workflow.model_dump(mode="json")
        common.print_json({**document, "handover": {**handover, "taken_up_before": before}})
        return 0
    again = f" again; previously at {before:%Y-%m-%d %H:%M:%S} UTC" if before else ""
    click.echo(
        f"Resumed {snapshot.session_id}{again}. There is no plan to run. Continue from this context:",
        err=True,
    )
    click.echo(text, nl=False)
    return 0


# ── retry and skip ─────────────────────────────────────────────────────────────────────────────────


@click.command("retry")
@click.argument("task_id", metavar="[TASK]", required=False)
@_workflow_option
@click.option("--message", "-m", help="A message for the next session.")
@_detach_option
@common.json_option
def retry_command(
    task_id: str | None, workflow_id: str | None, message: str | None, detach: bool, as_json: bool
) -> int:
    """Retry a failed task, or all that failed, and continue.

    Other tasks that failed stay as they are.

    \b
    Examples:
      holdfast retry
      holdfast retry build -m "the disk has room again"
    """
    from holdfast.cli.running import run_or_leave

    current = common.settings()
    with common.starting(current, detach=detach) as (service, here):
        workflow = _chosen(service, current, workflow_id, needs_plan=True)
        claim = here.claim if here else None
        resumed = service.retry(workflow.id, task_id, message=message, claim=claim)
        for sentence in resumed.drift:
            click.echo(f"warning: {sentence}", err=True)
        document = resumed.workflow.model_dump(mode="json")
        said = f"✓ Retrying {f'task {task_id}' if task_id else 'what failed'}"
        return run_or_leave(service, here, resumed.workflow, said, document, as_json=as_json)


@click.command("skip")
@click.argument("task_id", metavar="TASK")
@_workflow_option
@_reason_option
@_detach_option
@common.json_option
def skip_command(
    task_id: str, workflow_id: str | None, reason: str | None, detach: bool, as_json: bool
) -> int:
    """Skip a task and continue with those that depend on it.

    The task must not be completed. Other tasks that failed stay failed.

    \b
    Examples:
      holdfast skip lint
      holdfast skip deploy -r "done by hand" --workflow wf_01k9…
    """
    from holdfast.cli.running import run_or_leave

    current = common.settings()
    with common.starting(current, detach=detach) as (service, here):
        if workflow_id is None:
            waiting = service.of_worktree(current.worktree, frozenset({"blocked"}))
            workflow_id = (waiting or _chosen(service, current, None, needs_plan=True)).id
        workflow = service.skip(workflow_id, task_id, reason, claim=here.claim if here else None)
        said = f"✓ Skipped task {task_id}"
        return run_or_leave(service, here, workflow, said, _answer(workflow), as_json=as_json)


# ── fork ───────────────────────────────────────────────────────────────────────────────────────────


@click.command("fork")
@click.argument("task_id", metavar="[TASK]", required=False)
@_workflow_option
@click.option("--from", "from_snapshot", metavar="SNAPSHOT", help="Copy the state of an older snapshot.")
@click.option("--cwd", type=click.Path(path_type=Path), help="Folder of the copy. Default: the same folder.")
@click.option("--accept-commands", is_flag=True, help="Accept the commands that an imported session brought.")
@common.json_option
def fork_command(
    task_id: str | None,
    workflow_id: str | None,
    from_snapshot: str | None,
    cwd: Path | None,
    accept_commands: bool,
    as_json: bool,
) -> None:
    """Copy a workflow, paused, to try another way from any of its tasks.

    The original stays as it is; it may be running, failed or completed. With TASK, that task and all that
    depend on it are to run again in the copy. Files are not copied: two that run at the same time need
    a folder each.

    \b
    Examples:
      holdfast fork
      holdfast fork build --from session-20260106-120000
      git worktree add ../try && holdfast fork build --cwd ../try
    """
    current = common.settings()
    with common.service_for(current) as service:
        origin = workflow_id or _newest_plan(service, current)
        fork = partial(
            service.fork,
            origin,
            task_id,
            snapshot_id=_snapshot(service, current, from_snapshot),
            worktree=cwd,
        )
        workflow = _with_consent(fork, accept_commands)
        document = workflow.model_dump(mode="json")
    lines = f"✓ Forked {origin}", f"  Continue the copy with: holdfast resume {workflow.id}"
    common.tell(as_json, document, *lines)


def _newest_plan(service: common.Service, current: Settings) -> str:
    from holdfast.model.workflow import VALID_TRANSITIONS

    found = service.workflows(worktree=current.worktree, statuses=frozenset(VALID_TRANSITIONS), limit=20)
    plan = next((workflow for workflow in found if service.tasks(workflow.id).tasks), None)
    if plan is None:
        raise NotFoundError(
            "No workflow in current directory.", hint="`holdfast list --all` lists all workflows"
        )
    return plan.id


# ── approve ────────────────────────────────────────────────────────────────────────────────────────


@click.command("approve")
@_optional_workflow
@_detach_option
@common.json_option
def approve_command(workflow_id: str | None, detach: bool, as_json: bool) -> int:
    """Approve the waiting task and continue.

    \b
    Examples:
      holdfast approve
      holdfast approve wf_01k9…
    """
    from holdfast.cli.running import run_or_leave

    current = common.settings()
    with common.starting(current, detach=detach) as (service, here):
        waiting = _waiting(service, current, workflow_id)
        workflow = service.approve(waiting, claim=here.claim if here else None)
        return run_or_leave(service, here, workflow, "✓ Approved", _answer(workflow), as_json=as_json)


def _waiting(service: common.Service, current: Settings, workflow_id: str | None) -> str:
    from holdfast.cli.running import chosen_workflow

    return workflow_id or chosen_workflow(service, current, None, "waiting", {"blocked"}).id


def _answer(workflow: Workflow) -> dict[str, str]:
    return {"status": workflow.status, "workflow_id": workflow.id}


# ── reject ────────────────────────────────────────────────────────────────────────────────────────


@click.command("reject")
@_optional_workflow
@_reason_option
@common.json_option
def reject_command(workflow_id: str | None, reason: str | None, as_json: bool) -> None:
    """Reject the task that is waiting for approval; the workflow fails.

    \b
    Examples:
      holdfast reject -r "not like this"
      holdfast reject wf_01k9…
    """
    current = common.settings()
    with common.service_for(current) as service:
        workflow = service.reject(_waiting(service, current, workflow_id), reason)
    common.tell(as_json, _answer(workflow), f"✓ Workflow {workflow.id} rejected")


# ── pause ─────────────────────────────────────────────────────────────────────────────────────────


@click.command("pause")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@click.option("--reason", "-r", help="Reason, shown when the workflow is resumed.")
@click.option("--force-after", type=click.FloatRange(0), help="Interrupt the running task after N seconds.")
@click.option("--no-wait", is_flag=True, help="Request the pause and return immediately.")
@common.json_option
def pause_command(
    workflow_id: str | None, reason: str | None, force_after: float | None, no_wait: bool, as_json: bool
) -> None:
    """Pause a running workflow at the next task boundary.

    The running task is allowed to finish. After 5 minutes, or --force-after, it is interrupted and runs
    again on resume. A snapshot is taken for resuming later.

    \b
    Examples:
      holdfast pause -r "going home"
      holdfast pause wf_01k9… --force-after 30
    """
    from holdfast.cli.running import chosen_workflow
    from holdfast.model.workflow import ACTIVE

    current = common.settings()
    with common.service_for(current) as service:
        workflow = chosen_workflow(service, current, workflow_id, "active", ACTIVE)
        if not as_json:
            click.echo(f"Pausing workflow {workflow.id}...")
        snapshot_id = service.pause_workflow(workflow.id, reason, force_after=force_after, wait=not no_wait)
    if as_json:
        status = "paused" if snapshot_id else "pausing"
        common.print_json({"status": status, "workflow_id": workflow.id, "snapshot_id": snapshot_id})
        return
    if snapshot_id is None:
        click.echo("✓ Pause requested; takes effect when the running task ends")
        return
    click.echo(f"✓ Workflow paused (snapshot: {snapshot_id})")
    click.echo(f"  Resume with: holdfast resume {workflow.id}")


# ── cancel ────────────────────────────────────────────────────────────────────────────────────────


@click.command("cancel")
@_optional_workflow
@_reason_option
@common.json_option
def cancel_command(workflow_id: str | None, reason: str | None, as_json: bool) -> None:
    """Cancel a workflow permanently; a running task is stopped, with all its processes.

    Without WORKFLOW: the active one in this folder, or the only one that could be resumed.

    \b
    Examples:
      holdfast cancel
      holdfast cancel wf_01k9… -r "done by hand"
    """
    current = common.settings()
    with common.service_for(current) as service:
        chosen = service.workflow(workflow_id or _to_cancel(service, current))
        is_elsewhere = service.is_run_elsewhere(chosen)
        workflow = service.cancel(chosen.id, reason)
    elsewhere = ("  It ran on another machine, which is still stopping its task",) if is_elsewhere else ()
    answer = {**_answer(workflow), "stopping_elsewhere": is_elsewhere}
    common.tell(as_json, answer, f"✓ Workflow {workflow.id} cancelled", *elsewhere)


def _to_cancel(service: common.Service, current: Settings) -> str:
    """It cannot be taken back, so nothing is guessed."""
    from holdfast.model.workflow import ACTIVE, OPEN, RESUMABLE

    found = service.workflows(worktree=current.worktree, statuses=OPEN | RESUMABLE, limit=20)
    chosen = [workflow for workflow in found if workflow.status in ACTIVE] or found
    if not chosen:
        raise NotFoundError(
            "No active workflow in current directory.", hint="`holdfast list --all` lists all workflows"
        )
    if len(chosen) > 1:
        names = ", ".join(workflow.id for workflow in chosen[:5])
        raise InvalidInputError(
            f"several workflows here could be cancelled: {names}", hint="name one of them"
        )
    return chosen[0].id
