"""`serve` and `worker`: processes that go on until they are told to stop."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import click

from holdfast.base.errors import require_installed
from holdfast.cli import common
from holdfast.cli.running import answering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.server.app import Address

_FILE = click.Path(path_type=Path, dir_okay=False)
_NOT_BUILT = "not included in this build; in a clone, run `make dashboard`"


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8421,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--tls-cert", type=_FILE, help="TLS certificate, for a non-loopback address.")
@click.option("--tls-key", type=_FILE, help="Private key of the certificate.")
@click.option("--insecure", is_flag=True, help="Allow a non-loopback address without TLS.")
@click.option(
    "--allow-host", "allow_hosts", multiple=True, metavar="NAME", help="Additional host name to accept."
)
@click.option("--public-url", metavar="URL", help="Where browsers reach it, behind a TLS proxy.")
@click.option("--no-worker", is_flag=True, help="Do not start a worker.")
@common.json_option
def serve_command(no_worker: bool, as_json: bool, **options: Any) -> None:
    """Serve the dashboard and the API for this database.

    Only this machine can reach it, and only with the token in the printed link. The browser stores
    the token for this address. Ctrl-C stops the server; running workflows continue in workers.

    \b
    Examples:
      holdfast serve
      holdfast serve --port 9000
      holdfast serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --allow-host box.example.org
      holdfast serve --public-url https://holdfast.example.org
    """
    for module in ("fastapi", "uvicorn") if no_worker else ("fastapi", "uvicorn", "dbos"):
        require_installed("the server", module)
    from holdfast.server.app import Options, serve
    from holdfast.server.routes.about import is_built

    def announce(address: Address) -> None:
        if as_json:
            click.echo(json.dumps({"url": address.url, "link": address.link, "dashboard": is_built()}))
        else:
            dashboard = address.link if is_built() else _NOT_BUILT
            click.echo(f"Dashboard: {dashboard}\nAPI:       {address.url}/api\nPress Ctrl-C to stop.")

    serve(common.settings(), Options(**options, starts_workers=not no_worker), announce)


# ── worker ────────────────────────────────────────────────────────────────────────────────────────


@click.command("worker")
@click.option(
    "--concurrency",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Maximum number of concurrent sessions.",
)
@click.option("--lease", type=click.FloatRange(0.5), default=5.0, show_default=True,
              help="Seconds without a renewal before other workers take over.")  # fmt: skip
@click.option("--until-idle", is_flag=True, help="Exit when there is no work left.")
def worker_command(concurrency: int, lease: float, until_idle: bool) -> None:
    """Run queued workflows and take over from dead workers.

    Start any number of workers, on any machine that can reach the database. Ctrl-C stops at the next
    task boundary; other workers continue from there.

    \b
    Examples:
      holdfast worker
      HOLDFAST_DB=postgresql://user@host/holdfast holdfast worker --concurrency 8
    """
    from holdfast.workflows.worker import Worker

    worker = Worker(common.settings(), concurrency=concurrency, lease_seconds=lease)

    def stop() -> None:
        worker.stop()
        click.echo("Stopping at the next task boundary. Press Ctrl-C again to stop now.", err=True)

    with answering({signal.SIGINT: stop, signal.SIGTERM: stop}):
        if not until_idle:
            click.echo("Waiting for work. Press Ctrl-C to stop.", err=True)
        worker.run(until_idle=until_idle)
