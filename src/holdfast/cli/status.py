"""`status`, `watch`, `threads`, `list`, `stats`, `usage`: where the work stands, and what it used."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from holdfast.base.errors import CannotDoError, DamagedDataError, HoldfastError
from holdfast.base.text import counted, decode_path
from holdfast.cli import common
from holdfast.model.statuses import NEVER_RUN_AGAIN, is_lost
from holdfast.project import formats
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings

TYPE_CHECKING = False

if TYPE_CHECKING:
    from holdfast.client.service import RemoteStore
    from holdfast.journal.usage import ContextUsageTracker
    from holdfast.model.workflow import Workflow
    from holdfast.sessions.standing import JournalStats
    from holdfast.sessions.threads import Thread
    from holdfast.store.protocol import SnapshotSummary
    from holdfast.store.sql import SqlStore
    from holdfast.workflows.experience import DriverRecord


_LAST_LINES = 5


@click.command("status")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@common.json_option
def status_command(workflow_id: str | None, as_json: bool) -> None:
    """Show the status of the work in this folder.

    \b
    Examples:
      holdfast status
      holdfast status wf_01k9… --json
    """
    report = status_report(common.settings(), workflow_id)
    if as_json:
        common.print_json(report)
    else:
        _print(report)


def status_report(current: Settings, workflow_id: str | None) -> dict[str, Any]:
    return {
        "project": current.worktree,
        **_workflows_here(current, workflow_id),
        "winddown": _winddown(current),
        "usage": _usage(current),
        "ignored": _ignored(current),
    }


def _ignored(current: Settings) -> dict[str, Any] | None:
    found = common.left_out(current)
    return found and {**vars(found), "reason": found.told}


def _workflows_here(current: Settings, workflow_id: str | None) -> dict[str, dict[str, Any] | None]:
    """The named workflow, or the newest one and beside it the plan that waits or failed before it."""
    from holdfast.sessions.standing import read_standing, read_waiting_plan

    here = current.worktree
    workflow, plan = common.answered(
        current,
        lambda reader: (read_standing(reader, here, workflow_id), read_waiting_plan(reader, here)),
        lambda store: (stored_standing(store, here, workflow_id), stored_waiting_plan(store, here)),
    )
    is_another = workflow_id is None and workflow and plan and plan["id"] != workflow["id"]
    for one in (workflow, plan):
        if one is not None:
            one["undone"] = _undone(current, one)
    return {"workflow": workflow, "plan": plan if is_another else None}


def _undone(current: Settings, workflow: dict[str, Any]) -> dict[str, Any] | None:
    """What was undone of its completed tasks, and what restores it."""
    from holdfast.sessions.standing import may_be_undone

    sidecar = ProjectLayout(Path(os.fsdecode(decode_path(workflow["worktree"])))).sidecar
    if not (workflow["tasks_completed"] and may_be_undone(sidecar, workflow["id"])):
        return None
    from holdfast.sessions.transitions import Core
    from holdfast.sessions.undone import undone_work

    with common.store_for(current) as store:
        flow = store.workflow(workflow["id"])
        tasks = Core(store).fold(flow).tasks().tasks
    if work := undone_work(flow, tasks):
        return work.document
    document = undone_work(flow, tasks, also_accepted=True).document
    return document and {**document, "is_certain": False}  # the plan goes on without it


def stored_standing(
    store: SqlStore | RemoteStore, worktree: str, workflow_id: str | None
) -> dict[str, Any] | None:
    """The same of any store."""
    from holdfast.sessions.standing import LOOKED_AT, chosen

    if workflow_id is not None:
        return _described(store, store.workflow(workflow_id))
    workflow = chosen(store.workflows(worktree=worktree, limit=LOOKED_AT), lambda flow: flow.status)
    return _described(store, workflow) if workflow else None


def stored_waiting_plan(store: SqlStore | RemoteStore, worktree: str) -> dict[str, Any] | None:
    from holdfast.sessions.standing import LOOKED_AT, waiting_plan

    def has_plan(flow: Workflow) -> bool:
        return any(line.tasks_completed + line.tasks_remaining for line in store.snapshots(flow.id))

    found = store.workflows(worktree=worktree, limit=LOOKED_AT)
    plan = waiting_plan(found, lambda flow: flow.status, has_plan)
    return _described(store, plan) if plan else None


def _described(store: SqlStore | RemoteStore, workflow: Workflow) -> dict[str, Any]:
    """As it stands now, not as it stood at the last pause."""
    from holdfast.sessions.standing import described
    from holdfast.sessions.transitions import Core

    snapshots = store.snapshots(workflow.id)
    latest = max(snapshots, key=lambda line: (line.created_at, line.session_number), default=None)
    fold = Core(store).fold(workflow)
    return described(
        workflow.model_dump(mode="json"),
        fold.tasks().tasks,
        snapshots=len(snapshots),
        latest=(latest.session_id, latest.session_number) if latest else None,
        context_utilization=fold.usage.context_utilization,
        abandoned=_is_abandoned(store, workflow),
        taken_up_at=_taken_up(store, latest) if latest else None,
        retries={task_id: one.at.isoformat().replace("+00:00", "Z") for task_id, one in fold.retries.items()},
    )


def _taken_up(store: SqlStore | RemoteStore, latest: SnapshotSummary) -> str | None:
    from holdfast.sessions.transitions import Core

    moment = Core(store).taken_up(latest)
    return moment and moment.isoformat().replace("+00:00", "Z")


def _is_abandoned(store: SqlStore | RemoteStore, workflow: Workflow) -> bool:
    if workflow.claim is None:
        return False
    from holdfast.model.statuses import is_gone
    from holdfast.store.sql import SqlStore

    if not isinstance(store, SqlStore):
        return store.is_abandoned(workflow.id)
    return is_gone(workflow.claim, store.leases.all())


def _winddown(current: Settings) -> dict[str, Any] | None:
    if not current.layout.journal.exists():
        return None
    from holdfast.sessions.winddown import IncrementalPauseManager

    manager = IncrementalPauseManager(settings=current)
    summary = manager.get_pause_summary()
    return {**summary, "orphaned": manager.is_orphaned()} if summary else None


def _usage(current: Settings) -> list[dict[str, Any]]:
    if not any(current.layout.state.glob("usage-*.json")):  # then nothing need be loaded for it
        return []
    from holdfast.journal.usage import tracked_sessions

    found: list[dict[str, Any]] = []
    for session_id in tracked_sessions(current.layout):
        try:
            found.append(describe(tracker_for(current, session_id)))
        except HoldfastError as error:
            found.append({"session_id": session_id, "error": error.message})
    return found


def _print(report: dict[str, Any]) -> None:
    click.echo(f"Project:   {report['project']}")
    workflow = report["workflow"]
    if workflow is None:
        click.echo("Workflow:  none yet")
    else:
        _print_workflow(workflow)
    if report["plan"]:
        _print_workflow(report["plan"], "Plan:")
    winddown = report["winddown"]
    if winddown:
        click.echo(f"Wind-down: {winddown['session_id']}, {counted(winddown['action_count'], 'action')}")
        if winddown["orphaned"]:
            click.echo("           abandoned by a dead process: holdfast winddown recover")
    for line in report["usage"]:
        if "error" in line:
            click.echo(f"Usage:     {line['session_id']}: {line['error']}")
        else:
            used = f"{line['percentage_used']:.1f} % of {line['context_window']:,} tokens"
            common.print_line(f"Usage:     {line['session_id']}: {used}, ", line["level"])
    if ignored := report["ignored"]:
        click.echo(f"Ignored:   {ignored['reason']}: {ignored['command']}")
    elif workflow is None and winddown is None and not report["usage"]:
        click.echo(f"Start with: {common.first_step()}")


def _print_workflow(workflow: dict[str, Any], label: str = "Workflow:") -> None:
    click.echo(f"{label:10} {workflow['issue']['title']}  ({workflow['id']})")
    common.print_line("Status:    ", _status_line(workflow))
    if workflow["latest_snapshot"]:
        click.echo(f"Snapshot:  {workflow['latest_snapshot']}  (session {workflow['latest_session']})")
    if workflow["tasks_completed"] or workflow["tasks_remaining"]:
        click.echo(f"Tasks:     {workflow['tasks_completed']} done, {workflow['tasks_remaining']} remaining")
    context = _context(workflow)
    if context:
        click.echo(f"Context:   {context}")
    for task in workflow["failed_tasks"]:
        _print_failed(task)
    _print_under_way(workflow)
    if workflow["waiting_task_id"]:
        click.echo(f"Waiting:   for your approval of {common.in_a_line(workflow['waiting_task_id'])}")
    for line in _ways_on(workflow):
        click.echo(f"           {line}")


def _ways_on(workflow: dict[str, Any]) -> Iterator[str]:
    name = workflow["id"]
    if workflow["waiting_task_id"]:
        yield f"approve: holdfast approve {name}"
        yield f"or reject: holdfast reject {name}"
    undone = workflow["undone"]
    if undone:
        yield from map(common.in_a_line, undone["facts"])
        yield from (f"restore it: {command}" for command in undone["restore_with"])
    if undone and undone["is_certain"]:  # nothing else works before that
        if workflow["status"] in ("failed", "paused"):
            yield f"or continue without it: holdfast resume {name} --accept-undone"
    elif workflow["status"] == "failed":
        yield from _ways_on_from_failure(workflow)
    elif workflow["status"] == "paused" and workflow["tasks_remaining"]:
        yield f"continue: holdfast resume {name}"
    elif workflow["status"] == "paused" and workflow["latest_snapshot"] and not workflow["tasks_completed"]:
        yield f"its handover: holdfast context {workflow['latest_snapshot']}"
        yield "all open work: holdfast threads"
    if workflow["abandoned"]:
        yield f"it does not seem to be running: holdfast resume {name}"


def _print_under_way(workflow: dict[str, Any]) -> None:
    from datetime import datetime

    for task in workflow["retrying_tasks"]:
        _print_failed(task, "Retrying:")
        seconds = datetime.fromisoformat(task["retry_at"]).timestamp() - time.time()
        click.echo(f"           next attempt {f'in {common.duration(seconds)}' if seconds >= 1 else 'now'}")
    if workflow["running_task_ids"]:
        click.echo(f"Running:   {', '.join(map(common.in_a_line, workflow['running_task_ids']))}")


def _print_failed(task: dict[str, Any], label: str = "Failed:") -> None:
    first, *output = (task["reason"] or "no reason given").splitlines()
    click.echo(f"{label:10} {task['id']} (attempt {task['attempt']}): {common.in_a_line(first)}")
    for line in output[-_LAST_LINES:]:
        click.echo(f"             {common.in_a_line(line)}")


def _ways_on_from_failure(workflow: dict[str, Any]) -> Iterator[str]:
    if any(is_lost(task["reason"]) for task in workflow["failed_tasks"]):
        yield "its text is not on this machine: run the plan again with `holdfast run`"
    else:
        yield f"try again: holdfast retry --workflow {workflow['id']}"
    for task in workflow["failed_tasks"][:1]:
        yield f"or without it: holdfast skip {shlex.quote(task['id'])} --workflow {workflow['id']}"


def _context(workflow: dict[str, Any]) -> str:
    """How full the window is; of work that can go on, also where it pauses."""
    share = workflow["context_utilization"]
    known = [] if share is None else [f"{share:.0%} of the window"]
    if workflow["tasks_remaining"] and workflow["status"] not in NEVER_RUN_AGAIN:
        known.append(f"pauses at {workflow['options']['exhaustion_at']:.0%}")
    return ", ".join(known)


def _status_line(workflow: dict[str, Any]) -> str:
    from datetime import datetime

    moment = workflow["paused_at"] or workflow["updated_at"]
    passed = time.time() - datetime.fromisoformat(moment).timestamp()
    taken_up = workflow["status"] == "paused" and workflow["taken_up_at"]
    since = time.time() - datetime.fromisoformat(taken_up).timestamp() if taken_up else 0.0
    mark = f"; taken up {common.ago(since)}" if taken_up else ""
    told_below = workflow["status"] == "failed" and workflow["failed_tasks"]
    reason = f": {workflow['pause_reason']}" if workflow["pause_reason"] and not told_below else ""
    return f"{workflow['status']}, {common.ago(passed)}{reason}{mark}"


# ── watch ─────────────────────────────────────────────────────────────────────────────────────────


@click.command("watch")
def watch_command() -> None:
    """Watch this folder's work, with keys to pause, resume and undo.

    Shows how full each context window is and how it filled, the workflow, and the open threads. It looks once
    a second and changes nothing by itself.

    \b
    Examples:
      holdfast watch
    """
    from holdfast.base.errors import require_installed

    require_installed("holdfast watch", "textual")
    if not common.is_interactive():
        raise CannotDoError("holdfast watch needs a terminal", hint="`holdfast status` shows the same once")
    current = common.settings()  # what is wrong with it is said before the screen is taken
    from holdfast.cli.watch import WatchScreen

    WatchScreen(current).run()


# ── threads ───────────────────────────────────────────────────────────────────────────────────────


def _nothing_recorded(current: Settings) -> str:
    """A plan that has not paused yet has left nothing to go on from."""
    with common.store_for(current) as store:
        flows = store.workflows(worktree=current.worktree, statuses=frozenset({"in_progress", "blocked"}))
    if flows:
        return f"No pause recorded in this folder yet; {flows[0].id} is at work here: holdfast status"
    if ignored := common.left_out(current):
        return f"No work recorded in this folder yet; {ignored.told}: {ignored.command}"
    return f"No work recorded in this folder yet. Start with: {common.first_step()}"


@click.command("threads")
@click.option("--all", "everything", is_flag=True, help="Include finished work.")
@click.option("--done", "closed", metavar="THREAD", help="Close a thread: nothing is left to do.")
@common.json_option
def threads_command(everything: bool, closed: str | None, as_json: bool) -> None:
    """List the open pieces of work in this folder.

    Sessions that worked on the same thing are one thread: the same conversation, plan, files on a branch, or
    a handover that was taken up. `holdfast resume THREAD` prints the handover of one.

    \b
    Examples:
      holdfast threads
      holdfast threads --all --json
      holdfast threads --done session-20260106-120000
    """
    from holdfast.sessions.threads import threads_in

    current = common.settings()
    common.warn_of_abandoned(current)
    here = current.worktree
    found = common.answered(
        current, lambda reader: threads_in(reader.store, here), lambda store: threads_in(store, here)
    )
    if closed is not None:
        _close(current, found, closed, as_json=as_json)
        return
    shown = [one for one in found if everything or one.is_open]
    common.tell_table(
        as_json,
        [one.document for one in shown],
        "No open work in this folder." if found else _nothing_recorded(current),
        ("THREAD", "BRANCH", "STATUS", "CHANGED (UTC)", "TITLE", "STATE"),
        lambda one: (
            one["id"],
            one["branch"],
            one["status"],
            one["updated_at"][:16].replace("T", " "),
            one["title"],
            one["state"]
            + (f"; taken up {one['taken_up_at'][:16]}".replace("T", " ") if one["taken_up_at"] else ""),
        ),
    )


def _close(current: Settings, found: list[Thread], name: str, *, as_json: bool) -> None:
    from holdfast.base.errors import InvalidInputError
    from holdfast.sessions.enrich import add_to_snapshot
    from holdfast.sessions.threads import find_thread, thread_not_found

    thread = find_thread(found, name)
    if thread is None:
        raise thread_not_found(name)
    if thread.issue:
        raise InvalidInputError(
            f"{thread.id} has a plan: it is closed by ending its workflow",
            hint=f"`holdfast cancel {thread.id}` ends it",
        )
    if current.server is not None:
        raise InvalidInputError("--done works on a local database only", hint="run it without --server")
    add_to_snapshot(current, thread.snapshot_id, {"closed": True})
    common.tell(as_json, {"closed": thread.id}, f"✓ Closed {thread.id}: {thread.title}")


# ── list ──────────────────────────────────────────────────────────────────────────────────────────


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Include all projects.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="Maximum number to show."
)
@common.json_option
def list_command(everywhere: bool, limit: int, as_json: bool) -> None:
    """List workflows, most recently changed first.

    \b
    Examples:
      holdfast list
      holdfast list --all --json
    """
    current = common.settings()
    worktree = None if everywhere else current.worktree
    found = common.answered(
        current,
        lambda reader: reader.workflows(worktree, limit),
        lambda store: [
            workflow.model_dump(mode="json") for workflow in store.workflows(worktree=worktree, limit=limit)
        ],
    )
    common.tell_table(
        as_json,
        found,
        "No workflows yet."
        if everywhere
        else "No workflows in this folder. Use `--all` to include all projects.",
        ("WORKFLOW", "STATUS", "SESSIONS", "CHANGED (UTC)", "TITLE", "WORKTREE"),
        lambda workflow: (
            workflow["id"],
            workflow["status"],
            workflow["session_count"],
            workflow["updated_at"][:16].replace("T", " "),
            workflow["issue"]["title"],
            workflow["worktree"],
        ),
    )


# ── stats and usage ───────────────────────────────────────────────────────────────────────────────

_MOST_WORKFLOWS = 10


@click.command("stats")
@click.option("--workflows", is_flag=True, help="Show statistics of the tasks of all workflows instead.")
@common.json_option
def stats_command(workflows: bool, as_json: bool) -> None:
    """Summarise the recorded actions by type and tool, with the time to exhaustion.

    \b
    Examples:
      holdfast stats
      holdfast stats --workflows --json
    """
    if workflows:
        _workflows(as_json)
        return
    stats = _of_journals(common.settings())
    if as_json:
        common.print_json(vars(stats))
    elif not stats.journals:
        click.echo("No actions recorded in this project yet.")
        drivers, pauses = _of_workflows(common.settings())
        if drivers:
            click.echo("Tasks of all workflows:")
            _print_tasks(drivers, pauses)
    else:
        _print_stats(stats)


def _of_journals(current: Settings) -> JournalStats:
    if current.server is None:
        from holdfast.sessions.standing import journal_stats

        return journal_stats(current.layout)
    from holdfast.client.service import RemoteService

    with RemoteService(current) as service:
        return service.journal_stats()


def _of_workflows(current: Settings) -> tuple[Sequence[DriverRecord], dict[str, int]]:
    if current.server is not None:
        from holdfast.client.service import RemoteService

        with RemoteService(current) as service:
            return service.workflow_stats()
    from holdfast.sessions.pause import open_store
    from holdfast.workflows.experience import Experience, pauses_by_trigger

    with open_store(current) as store:
        return Experience.of(store).drivers, pauses_by_trigger(store)


def _workflows(as_json: bool) -> None:
    """How long tasks take, how much of the window they need, and what ends sessions."""
    from dataclasses import asdict

    drivers, pauses = _of_workflows(common.settings())
    if as_json:
        common.print_json({"drivers": [asdict(one) for one in drivers], "pauses": pauses})
        return
    if not drivers:
        click.echo("No workflow task has finished yet.")
        return
    _print_tasks(drivers, pauses)


def _print_tasks(drivers: Sequence[DriverRecord], pauses: dict[str, int]) -> None:
    from holdfast.workflows.experience import MOST_TASKS

    common.print_table(
        (
            "DRIVER",
            "TASKS",
            "FAILED",
            "SECONDS (MEDIAN)",
            "80% WITHIN",
            "WINDOW (MEDIAN)",
            "80% WITHIN",
        ),
        [
            (
                one.driver,
                one.tasks,
                one.failed,
                f"{one.seconds_median:.1f}",
                f"{one.seconds_high:.1f}",
                None if one.share_median is None else f"{one.share_median:.0%}",
                None if one.share_high is None else f"{one.share_high:.0%}",
            )
            for one in drivers
        ],
    )
    if pauses:
        click.echo()
        common.print_table(("PAUSED BY", "SESSIONS"), list(pauses.items()))
    click.echo(f"\nCounted: the last {MOST_TASKS} tasks and sessions of all workflows.")


def _print_stats(stats: JournalStats) -> None:
    click.echo(f"{stats.actions} actions in {stats.journals} wind-downs")
    if stats.skipped_lines:
        click.echo(f"{stats.skipped_lines} damaged lines skipped")
    click.echo()
    common.print_table(("TYPE", "ACTIONS"), stats.by_type.most_common())
    if stats.by_tool:
        click.echo()
        common.print_table(("TOOL", "CALLS"), stats.by_tool.most_common())
    click.echo()
    if stats.context_per_action is not None:
        click.echo(f"Context per action:   {stats.context_per_action:.2%}")
    if stats.mean_duration_seconds is not None:
        click.echo(f"Mean wind-down:       {common.duration(stats.mean_duration_seconds)}")
    if stats.active_session is not None:
        left = stats.seconds_to_exhaustion
        shown = common.duration(left) if left is not None else "unknown (not growing, or too few actions)"
        click.echo(f"Time to exhaustion:   {shown}  ({stats.active_session})")


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────


@click.command("usage")
@click.option(
    "--session", "session_id", metavar="ID", help="One agent session. Default: all in this project."
)
@common.json_option
def usage_command(session_id: str | None, as_json: bool) -> None:
    """Show how full the context window is, by agent session and workflow.

    \b
    Examples:
      holdfast usage
      holdfast usage --session 266b3f40-6f1d-491c-aeca-825cbb3fcbc5 --json
    """
    current = common.settings()
    if session_id is not None:
        state = describe(tracker_for(current, session_id))
        _show([state if as_json else {**state, _FILLING: _how_it_filled(current, state)}], as_json)
        return
    from holdfast.journal.usage import tracked_sessions

    states: list[dict[str, Any]] = []
    damaged: DamagedDataError | None = None
    for found in list(tracked_sessions(current.layout)):
        try:
            state = describe(tracker_for(current, found))
            states.append(state if as_json else {**state, _FILLING: _how_it_filled(current, state)})
        except DamagedDataError as error:
            damaged = error
    _show([*states, *_of_recent_workflows(current, as_json)], as_json)
    if damaged is not None:  # the others are shown first, then this one is told
        raise damaged


_FILLING = "filling"
"""How full the window was at the latest model calls: drawn, and in no document."""
_MOST_BARS = 16
_END_LOOKED_AT = 1 << 20


def _how_it_filled(current: Settings, state: dict[str, Any]) -> list[float]:
    """As the end of the session's own file tells it; empty where its agent writes no such file."""
    from holdfast.base.ids import file_name_for
    from holdfast.hooks.fast import notes, usage

    folder = current.layout.state / formats.HOOKS / file_name_for(state["session_id"])
    who = formats.parse_who(notes.read(str(folder / formats.WHO), 8192))
    reader = {"claude-code": usage.claude_usage, "codex": usage.codex_usage}.get(who[0] if who else "")
    if who is None or reader is None:
        return []
    calls: dict[str, int] = {}
    for number, line in enumerate(_last_lines(Path(who[2]))):
        if found := reader(line):  # a message is repeated on several lines
            calls[found.report_id or str(number)] = found.total
    return [total / state["context_window"] for total in calls.values()]


def _last_lines(path: Path) -> list[bytes]:
    """None where it is no plain file: who opened a pipe would wait for ever."""
    try:
        if not path.is_file():
            return []
        with path.open("rb") as file:
            start = max(0, path.stat().st_size - _END_LOOKED_AT)
            file.seek(start)
            lines = file.read(_END_LOOKED_AT).split(b"\n")
    except (OSError, ValueError):
        return []
    return lines[start > 0 :]  # the first one begins in the middle


def _of_recent_workflows(current: Settings, as_json: bool) -> list[dict[str, Any]]:
    """The newest session of each workflow in this folder whose tasks asked a model."""
    found = common.answered(
        current,
        lambda reader: [
            (workflow, [entry["usage"] for entry in reader.entries(workflow["id"], 0) if "usage" in entry])
            for workflow in reader.workflows(current.worktree, _MOST_WORKFLOWS)
        ],
        lambda store: [
            (workflow.model_dump(mode="json"), _reported(store, workflow.id))
            for workflow in store.workflows(worktree=current.worktree, limit=_MOST_WORKFLOWS)
        ],
    )
    return [
        {**_described_usage(workflow, usages[-1], current), **({} if as_json else _filling_of(usages))}
        for workflow, usages in found
        if usages
    ]


def _filling_of(usages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    shares = [one["context_utilization"] for one in usages]
    return {_FILLING: [share for share in shares if share is not None]}


def _reported(store: SqlStore | RemoteStore, workflow_id: str) -> list[dict[str, Any]]:
    events = store.events(workflow_id=workflow_id, types=["usage_reported"])
    return [event.entry.model_dump(mode="json")["usage"] for event in events]


def _described_usage(workflow: dict[str, Any], usage: dict[str, Any], current: Settings) -> dict[str, Any]:
    share = usage["context_utilization"]
    return {
        "session_id": workflow["id"],
        "percentage_used": None if share is None else round(share * 100, 2),
        "level": None if share is None else current.levels.at(share).label,
        "total_tokens": usage["tokens_used"],
        "context_window": None,
        "reports": usage["llm_calls"],
        "cost_usd": usage["cost_usd"],
        "model": None,
        "last_updated": workflow["updated_at"],
        "complete": True,
    }


def tracker_for(current: Settings, session_id: str) -> ContextUsageTracker:
    from holdfast.journal.usage import ContextUsageTracker

    return ContextUsageTracker(
        current.project, session_id=session_id, context_window=current.context_window, levels=current.levels
    )


def describe(tracker: ContextUsageTracker) -> dict[str, Any]:
    state = tracker.get_current_state()
    return {
        "session_id": state.session_id,
        "percentage_used": round(state.percentage_used, 2),
        "level": tracker.levels.at(state.share).label,
        "total_tokens": state.total_tokens,
        "context_window": state.context_window,
        "input_tokens": state.input_tokens,
        "output_tokens": state.output_tokens,
        "cache_read": state.cache_read,
        "cache_write": state.cache_write,
        "reports": state.reports,
        "model": state.model,
        "last_updated": state.last_updated,
        "complete": state.is_complete,
        "set_aside": state.set_aside,
    }


def _used(state: dict[str, Any]) -> str | None:
    if state["percentage_used"] is None:
        return None
    return f"{'' if state['complete'] else 'at least '}{state['percentage_used']:.1f} %"


def _spark_line(state: dict[str, Any]) -> str | None:
    """Of many calls some, evenly, with the last."""
    shares: list[float] = state[_FILLING]
    step = -(-len(shares) // _MOST_BARS) or 1
    return common.spark_line(shares[::-1][::step][::-1]) if len(shares) > 1 else None


def _show(states: list[dict[str, Any]], as_json: bool) -> None:
    has_lines = not as_json and any(map(_spark_line, states))
    common.tell_table(
        as_json,
        states,
        f"No usage reported in this project yet. Start with: {common.first_step()}",
        ("SESSION", "USED", "LEVEL", "TOKENS", "WINDOW", "REPORTS", "MODEL", *(["FILLED"] * has_lines)),
        lambda state: (
            state["session_id"],
            _used(state),
            state["level"],
            f"{state['total_tokens']:,}",
            None if state["context_window"] is None else f"{state['context_window']:,}",
            state["reports"],
            state["model"],
            *([_spark_line(state)] * has_lines),
        ),
    )
