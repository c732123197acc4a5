from __future__ import annotations

from pathlib import Path

import click

from holdfast.base.text import counted
from holdfast.cli import common


@click.command("run")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--cwd", type=click.Path(path_type=Path), help="The worktree, instead of the project folder.")
@click.option("--driver", help="What executes the tasks, instead of the plan's driver.")
@click.option("--pause-every", type=click.IntRange(1), help="Pause after so many tasks of a session.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Pause after so many seconds.")
@click.option(
    "--force-after", type=click.FloatRange(0), help="Seconds a pause waits for a task. [default: 300]"
)
@click.option("--parallel", type=click.IntRange(1), help="Tasks side by side at most.")
@click.option("--resume-on-reset", is_flag=True, default=None, help="Go on by itself when a quota is back.")
@click.option("--detach", is_flag=True, help="Leave it to a worker and return at once.")
@common.json_option
def command(plan: Path, cwd: Path | None, detach: bool, as_json: bool, **options: object) -> int:
    """Run a plan, task by task, so that it can be paused and resumed.

    Ctrl-C pauses it at the end of the running task.

    \b
    Examples:
      holdfast run plan.yaml
      holdfast run plan.yaml --pause-every 5 --parallel 2
      holdfast run plan.yaml --detach

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
