"""`serve` and `worker`, which go on until they are told to stop; `token`: who else may use the server."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from holdfast.base.clock import iso, system_clock
from holdfast.base.errors import require_installed
from holdfast.cli import common
from holdfast.cli.running import answering
from holdfast.project.server_token import (
    SCOPES,
    ScopedToken,
    create_scoped_token,
    revoke_scoped_token,
    scoped_tokens,
)

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
@click.option("--link", "new_link", is_flag=True, help="Print a new link of the running server, and exit.")
@common.json_option
def serve_command(no_worker: bool, new_link: bool, as_json: bool, **options: Any) -> None:
    """Serve the dashboard and the API for this database.

    Only this machine can reach it. The printed link lets one browser in, once, within 15 minutes;
    `--link` prints another one. Ctrl-C stops the server; running workflows continue in workers.

    \b
    Examples:
      holdfast serve
      holdfast serve --port 9000
      holdfast serve --port 9000 --link
      holdfast serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem --allow-host box.example.org
      holdfast serve --public-url https://holdfast.example.org
    """
    if new_link:
        _print_new_link(options, as_json)
        return
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


def _print_new_link(options: dict[str, Any], as_json: bool) -> None:
    from holdfast.client.service import connection_for

    current = common.settings()
    scheme = "https" if options["tls_cert"] else "http"
    host = f"[{options['host']}]" if ":" in options["host"] else options["host"]
    url = current.server or f"{scheme}://{host}:{options['port']}"
    connection = connection_for(replace(current, server=url))
    try:
        found = connection.post("links")
    finally:
        connection.close()
    common.tell(as_json, found, f"Dashboard: {found['link']}")


# ── token ─────────────────────────────────────────────────────────────────────────────────────────


@click.group("token")
def token_command() -> None:
    """Give others limited access to the server, and take it back.

    The owner's own token is not among these.

    \b
    Examples:
      holdfast token create ci --scope read --expires 7d
      holdfast token list
      holdfast token revoke ci
    """


@token_command.command("create")
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), default="read", show_default=True,
              help="read: see everything, change nothing; write: all that the API can do.")  # fmt: skip
@click.option("--expires", default="30d", show_default=True, metavar="TIME", help="30m, 12h, 7d or 4w.")
@common.json_option
def create_token(name: str, scope: str, expires: str, as_json: bool) -> None:
    """Create a token and print it, once: only its hash is stored."""
    token, made = create_scoped_token(common.settings().home, name, scope, expires)
    document = {"token": token, **_shown(made)}
    common.tell(
        as_json,
        document,
        token,
        f"Named {name}, scope {scope}, expires {document['expires']}. It is not shown again.",
    )


@token_command.command("list")
@common.json_option
def list_tokens(as_json: bool) -> None:
    """List tokens by name, without the tokens themselves."""
    rows = [_shown(one) for one in scoped_tokens(common.settings().home)]
    lines = [f"{row['name']}  {row['scope']}  {row['state']} until {row['expires']}" for row in rows]
    common.tell(as_json, rows, *(lines or ["No tokens. Create one with `holdfast token create NAME`."]))


@token_command.command("revoke")
@click.argument("name")
@common.json_option
def revoke_token(name: str, as_json: bool) -> None:
    """End a token at once, in connections that are open as well."""
    revoke_scoped_token(common.settings().home, name)
    common.tell(as_json, {"revoked": name}, f"Revoked {name}.")


def _shown(token: ScopedToken) -> dict[str, str]:
    return {
        "name": token.name,
        "scope": token.scope,
        "state": "valid" if token.expires > system_clock() else "expired",
        "created": iso(token.created),
        "expires": iso(token.expires),
    }


# ── worker ────────────────────────────────────────────────────────────────────────────────────────


def _end_at_once(reason: str) -> None:
    """The engine's threads wait for the database, and would be waited for."""
    click.echo(f"error: {reason}\nhint: what it ran goes on with the next worker", err=True)
    os._exit(1)


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

    worker = Worker(common.settings(), concurrency=concurrency, lease_seconds=lease, give_up=_end_at_once)

    def stop() -> None:
        worker.stop()
        click.echo("Stopping at the next task boundary. Press Ctrl-C again to stop now.", err=True)

    with answering({signal.SIGINT: stop, signal.SIGTERM: stop}):
        if not until_idle:
            click.echo("Waiting for work. Press Ctrl-C to stop.", err=True)
        worker.run(until_idle=until_idle)
