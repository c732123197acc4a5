from __future__ import annotations

from typing import Any

import click

from holdfast.base.text import counted
from holdfast.cli import common


@click.group("share")
def command() -> None:
    """Share this project's sessions through a git remote.

    They lie under a ref of their own there (refs/holdfast/sessions), which no clone fetches by itself.

    \b
    Examples:
      holdfast share push --encrypt
      holdfast share pull upstream
    """


@command.command()
@click.argument("remote", default="origin")
@click.option("--session", "only", multiple=True, metavar="ID", help="Only this one; can be given again.")
@click.option("--encrypt", is_flag=True, help="With a passphrase: HOLDFAST_PASSPHRASE, or asked for.")
@common.json_option
def push(remote: str, only: tuple[str, ...], encrypt: bool, as_json: bool) -> None:
    """Put this project's sessions on the REMOTE, in place of those this copy has put there before."""
    from holdfast.sessions.bundles import export_bundle

    current = common.settings()
    passphrase = common.passphrase(confirm=True) if encrypt else None
    data, names = export_bundle(current, only, passphrase=passphrase)
    _shared(remote).push(data)
    document = {"remote": remote, "bytes": len(data), "sessions": names, "encrypted": encrypt}
    told = f"Shared {counted(len(names), 'session')} through {remote} ({len(data):,} bytes)"
    common.tell(as_json, document, told)


@command.command()
@click.argument("remote", default="origin")
@common.json_option
def pull(remote: str, as_json: bool) -> None:
    """Take in the sessions that others have put on the REMOTE; each bundle is checked like any other."""
    from holdfast.sessions.bundles import import_bundle
    from holdfast.sessions.reindex import take_in_waiting
    from holdfast.store.encryption import is_encrypted

    current = common.settings()
    shared = _shared(remote)
    reports: list[dict[str, Any]] = []
    with common.store_for(current) as store:
        for fetched in shared.pull():
            if shared.is_taken_in(fetched):
                continue
            passphrase = common.passphrase() if is_encrypted(fetched.data) else None
            report = import_bundle(current, store, fetched.data, passphrase=passphrase)
            shared.note_taken_in(fetched)
            reports.append({"from": fetched.name, **vars(report)})
        take_in_waiting(store, current)
    number = sum(len(one["sessions"]) + len(one["items"]) for one in reports)
    told = f"Imported {counted(number, 'session')} from {counted(len(reports), 'other')}"
    common.tell(as_json, reports, told)


def _shared(remote: str) -> Any:
    import time

    from holdfast.sessions.sharing import Shared

    current = common.settings()
    current.layout.ensure()
    return Shared(current.project, current.layout.folder, remote, time.time)
