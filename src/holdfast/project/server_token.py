"""The secret of a server, for its owner's eyes only; and the tokens that its owner gives away."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.base.clock import Clock, system_clock
from holdfast.base.durable import (
    lock_file,
    private_folder,
    read_file,
    replace_file,
    storage_errors,
    sync_folder,
    write_new,
)
from holdfast.base.errors import CannotDoError, DamagedDataError, InvalidInputError, NotFoundError

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


def same(given: str, expected: str) -> bool:
    """In a time that does not depend on how much of it is right."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


# ── tokens given away ─────────────────────────────────────────────────────────────────────────────

# For programs and people who may do less than the owner, and for the owner's browsers. Only hashes are
# stored: a token is random and long, so that nothing is gained by guessing, and one that is lost cannot
# be shown again.

SCOPES = ("read", "write")
BROWSER = "browser"
"""The scope of what a link is exchanged for: all that the owner may do, on one port."""
BROWSER_DAYS = 30
_NAME = re.compile(r"[\w.@-]{1,64}")
_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST_DAYS = 3_650


@dataclass(frozen=True)
class ScopedToken:
    name: str
    scope: str
    digest: str
    created: float
    expires: float
    """Both in seconds since 1970."""
    port: int | None = None
    """Of the one server that it opens; None: of any."""

    def __post_init__(self) -> None:
        read: dict[str, Any] = vars(self)
        if not all(isinstance(read[name], str) for name in ("name", "scope", "digest")):
            raise TypeError("names and hashes are texts")
        if self.scope not in (*SCOPES, BROWSER):
            raise ValueError(f"no such scope: {self.scope}")
        if not all(isinstance(read[name], int | float) for name in ("created", "expires")):
            raise TypeError("times are numbers")
        if not isinstance(read["port"], int | None):
            raise TypeError("a port is a number")


def scoped_tokens_file(home: Path) -> Path:
    return home / "server-tokens.json"


def scoped_tokens(home: Path) -> tuple[ScopedToken, ...]:
    path = scoped_tokens_file(home)
    try:
        document = json.loads(read_file(path))
        return tuple(ScopedToken(**one) for one in document["tokens"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise DamagedDataError(
            f"{path} cannot be read: {error}",
            hint="move it away, then create the tokens anew: `holdfast token create NAME`",
        ) from None


def create_scoped_token(
    home: Path, name: str, scope: str, lifetime: str, *, clock: Clock = system_clock
) -> tuple[str, ScopedToken]:
    """The token itself, which nobody can see again, and what is stored of it."""
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            "a token's name must be 1 to 64 letters, digits or . _ - @", hint="holdfast token create ci"
        )
    now = clock()
    token = secrets.token_urlsafe(32)
    made = ScopedToken(name, scope, _digest(token), now, now + _seconds(lifetime))
    _add(home, made)
    return token, made


def create_browser_token(home: Path, port: int, *, clock: Clock = system_clock) -> str:
    """For one browser, so that each can be logged out without the others."""
    now = clock()
    token = secrets.token_urlsafe(32)
    name, end = f"{BROWSER}-{secrets.token_hex(6)}", now + BROWSER_DAYS * _UNITS["d"]
    _add(home, ScopedToken(name, BROWSER, _digest(token), now, end, port))
    return token


def _add(home: Path, made: ScopedToken) -> None:
    private_folder(home)
    with lock_file(home / "server-tokens.lock"):
        known = scoped_tokens(home)
        if any(one.name == made.name for one in known):
            raise CannotDoError(
                f"there is a token named {made.name} already",
                hint=f"choose another name, or run `holdfast token revoke {made.name}` first",
            )
        # Nobody named those of browsers, and nobody would take the expired ones away.
        kept = (one for one in known if one.scope != BROWSER or one.expires > made.created)
        _write(home, (*kept, made))


def revoke_scoped_token(home: Path, name: str) -> None:
    private_folder(home)
    with lock_file(home / "server-tokens.lock"):
        known = scoped_tokens(home)
        kept = [one for one in known if one.name != name]
        if len(kept) == len(known):
            raise NotFoundError(f"no such token: {name}", hint="`holdfast token list` shows what exists")
        _write(home, kept)


def matching_token(home: Path, given: str) -> ScopedToken | None:
    """Read anew each time, so that a revoked token is worth nothing from that moment on."""
    digest = _digest(given)
    return next((one for one in scoped_tokens(home) if same(digest, one.digest)), None)


def _write(home: Path, tokens: Sequence[ScopedToken]) -> None:
    path = scoped_tokens_file(home)
    with storage_errors(f"write {path}"):
        replace_file(path, json.dumps({"tokens": [asdict(one) for one in tokens]}, indent=1).encode())


def _seconds(lifetime: str) -> int:
    found = re.fullmatch(r"([1-9][0-9]{0,8})([mhdw])", lifetime)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < seconds <= _LONGEST_DAYS * _UNITS["d"]:
        raise InvalidInputError(
            f"invalid --expires {lifetime}", hint="give it as 30m, 12h, 7d or 4w, at most 3650d"
        )
    return seconds


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
