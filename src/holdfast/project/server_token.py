"""The one secret of a server: made at its first start, for its owner's eyes only."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
from pathlib import Path

from holdfast.base.durable import private_folder, storage_errors, sync_folder, write_new
from holdfast.base.errors import DamagedDataError, InvalidInputError, NotFoundError

_SHORTEST = 32


def token_file(home: Path) -> Path:
    return home / "server-token"


def made_token(home: Path) -> str:
    """The token; a new one where there is none yet. Of several first starts one makes it."""
    private_folder(home)
    path = token_file(home)
    if not path.exists():
        # Whole before it has its name, so that nobody reads half of it.
        written = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        with storage_errors(f"write {path}"):
            try:
                write_new(written, secrets.token_urlsafe(32).encode() + b"\n")
                with contextlib.suppress(FileExistsError):
                    path.hardlink_to(written)
            finally:
                written.unlink(missing_ok=True)
            sync_folder(home)
    return read_token(home)


def read_token(home: Path) -> str:
    path = token_file(home)
    try:
        with path.open(encoding="ascii") as source:
            others_may_read = path.stat().st_mode & 0o077
            token = source.read(1000).strip()
    except FileNotFoundError:
        raise NotFoundError(
            f"no token found in {path}", hint="start `holdfast serve` once, or set HOLDFAST_SERVER_TOKEN"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedDataError(
            f"{path} cannot be read: {error}", hint="delete it; a new one is created"
        ) from None
    if others_may_read:
        raise InvalidInputError(
            f"{path} is readable by other users", hint=f"delete it, and a new one is created: rm {path}"
        )
    if len(token) < _SHORTEST:
        raise DamagedDataError(f"{path} holds no token", hint="delete it; a new one is created")
    return token


def browser_token(token: str, port: int) -> str:
    """What a browser keeps: it opens the server on this port and no other, unlike the token itself."""
    return hmac.digest(token.encode(), f"holdfast dashboard on port {port}".encode(), hashlib.sha256).hex()


def same(given: str, expected: str) -> bool:
    """In a time that does not depend on how much of it is right."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
