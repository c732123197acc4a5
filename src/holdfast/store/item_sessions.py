"""Files of item sessions: `audit-session-ID.json`, `improve-session-ID.json`.

A save names, without saying so, the bytes it was based on: those this manager last
read or wrote. Found otherwise on the disk, somebody else has saved meanwhile, and
the save is refused; nobody's work is written over.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.durable import (
    lock_file,
    read_file,
    replace_file,
    set_aside,
    storage_errors,
    sync_folder,
)
from holdfast.base.errors import (
    CannotDoError,
    ConflictError,
    DamagedDataError,
    InvalidInputError,
    NewerSchemaError,
    SessionNotFoundError,
)
from holdfast.model.base import ITEM_SESSION_SCHEMA, explain
from holdfast.model.item_session import SESSION_ID, STATE_CLASSES, ItemSessionState, SessionType
from holdfast.project.layout import ProjectLayout, find_project
from holdfast.store.encryption import Passphrase, SessionKey, passphrase_from_environment

log = logging.getLogger("holdfast.sessions")

_NEXT = timedelta(milliseconds=1)
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading an old or damaged document may raise."""


class SessionStateManager:
    def __init__(
        self,
        project_path: Path | str | None = None,
        *,
        clock: Clock = system_clock,
        passphrase: Passphrase = passphrase_from_environment,
    ) -> None:
        root = Path(project_path) if project_path else find_project(Path.cwd())
        self._layout = ProjectLayout(root)
        self._clock = clock
        self._seen: dict[Path, str] = {}
        self._seal = SessionKey(self._layout.folder, passphrase)

    def save_session_state(self, state: ItemSessionState, session_type: SessionType) -> str:
        """Write the whole state; returns the session's id. Refuses if the file changed under us."""
        if not isinstance(state, _state_class(session_type)):
            raise InvalidInputError(f"not a valid {session_type} session: {type(state).__name__}")
        # Validated again: a frozen model still holds dictionaries that somebody may have changed.
        checked = type(state).model_validate(state.model_dump()).without_secrets()
        data = checked.model_dump_json(indent=2).encode() + b"\n"
        self._layout.ensure()
        path = self._path(state.session_id, session_type)
        with storage_errors("save the session"), lock_file(self._lock):
            now = _fingerprint(path)
            if now != self._seen.get(path):
                raise ConflictError(
                    f"session {state.session_id} was changed by another process",
                    hint="reload it, then repeat your last step",
                )
            sealed = self._seal.close(data)
            replace_file(path, sealed)
            self._seen[path] = _hash(sealed)
        return state.session_id

    @property
    def is_encrypted(self) -> bool:
        return self._seal.is_on

    def encrypt(self, passphrase: str) -> int:
        """From now on sessions are stored encrypted, and those that are there; how many these were."""
        if self.is_encrypted:
            raise CannotDoError(
                "the sessions are already encrypted", hint="`holdfast sessions decrypt` first"
            )
        self._layout.ensure()
        self._seal.turn_on(passphrase)
        return self._rewrite(self._seal.close)

    def decrypt(self) -> int:
        """Store sessions in the clear again; needs the passphrase."""
        if not self.is_encrypted:
            raise CannotDoError("the sessions are not encrypted")
        number = self._rewrite(lambda data: data)
        self._seal.turn_off()
        return number

    def _rewrite(self, change: Callable[[bytes], bytes]) -> int:
        paths = [
            path for kind in STATE_CLASSES for path in self._layout.sessions.glob(f"{kind}-session-*.json")
        ]
        with storage_errors("rewrite the sessions"), lock_file(self._lock):
            for path in paths:
                data = change(self._seal.open(read_file(path)))
                replace_file(path, data)
                self._seen[path] = _hash(data)
        return len(paths)

    def document(self, name: str) -> bytes:
        """A session's file as it is without encryption."""
        with storage_errors("read the session"):
            return self._seal.open(read_file(self._layout.sessions / name))

    def load_session_state(self, session_id: str, session_type: SessionType) -> ItemSessionState:
        state, path, data = self._read(session_id, session_type)
        self._seen[path] = _hash(data)
        return state

    def _read(self, session_id: str, session_type: SessionType) -> tuple[ItemSessionState, Path, bytes]:
        path = self._path(session_id, session_type)
        if not path.exists():
            raise SessionNotFoundError(
                f"no such {session_type} session: {session_id}", hint="`holdfast sessions list` shows them"
            )
        with storage_errors("read the session"):
            data = read_file(path)
        return self._parse(self._seal.open(data), path, session_type), path, data

    def list_sessions(self, session_type: SessionType) -> list[ItemSessionState]:
        """Newest first. A damaged file is set aside and told about, and does not hide the others."""
        found: list[ItemSessionState] = []
        for path in sorted(self._layout.sessions.glob(f"{_state_prefix(session_type)}*.json")):
            session_id = path.name.removeprefix(_state_prefix(session_type)).removesuffix(".json")
            try:
                state, _, data = self._read(session_id, session_type)
                # Who only looks around does not lose track of the version their own work is based on.
                self._seen.setdefault(path, _hash(data))
                found.append(state)
            except (DamagedDataError, SessionNotFoundError, InvalidInputError) as error:
                log.warning("%s", error.message)
        return sorted(found, key=lambda state: (state.started_at, state.session_id), reverse=True)

    def starting_time(self) -> datetime:
        """Now; or just after the newest one started, where the clock was set back since: it is told by this
        which is the latest."""
        started = [state.started_at for kind in STATE_CLASSES for state in self.list_sessions(kind)]
        return max([to_datetime(self._clock()), *(one + _NEXT for one in started)])

    def get_latest_session(self, session_type: SessionType) -> ItemSessionState | None:
        return next(iter(self.list_sessions(session_type)), None)

    def delete_session_state(self, session_id: str, session_type: SessionType) -> None:
        path = self._path(session_id, session_type)
        if not path.exists():
            raise SessionNotFoundError(f"no such {session_type} session: {session_id}")
        with storage_errors("delete the session"), lock_file(self._lock):
            path.unlink(missing_ok=True)
            sync_folder(path.parent)
        self._seen.pop(path, None)

    @property
    def _lock(self) -> Path:
        return self._layout.sessions / ".items.lock"

    def _path(self, session_id: str, session_type: SessionType) -> Path:
        if not SESSION_ID.fullmatch(session_id):
            raise InvalidInputError(f"invalid session id: {session_id[:80]!r}")
        return self._layout.sessions / f"{_state_prefix(session_type)}{session_id}.json"

    def _parse(self, data: bytes, path: Path, session_type: SessionType) -> ItemSessionState:
        try:
            document: Any = json.loads(data)
            if not isinstance(document, dict):
                raise DamagedDataError(f"{path.name} contains no session")
            upgraded = ITEM_SESSION_SCHEMA.upgrade(document, where=path.name)  # type: ignore[arg-type]
            return _state_class(session_type).model_validate(upgraded)
        except NewerSchemaError:
            raise  # nothing is wrong with the file; it stays where it is
        except ValidationError as error:
            raise self._set_aside(path, explain(error)) from error
        except (*_MALFORMED, DamagedDataError) as error:
            raise self._set_aside(path, str(error)) from error

    def _set_aside(self, path: Path, reason: str) -> DamagedDataError:
        with storage_errors("set the damaged session aside"), lock_file(self._lock):
            kept = set_aside(path, self._clock())
        self._seen.pop(path, None)
        return DamagedDataError(
            f"{path.name} is damaged and was renamed to {kept.name}: {reason}",
            hint="start over with --new, or fix that file and rename it back",
        )


def _state_class(session_type: SessionType) -> type[Any]:
    try:
        return STATE_CLASSES[session_type]
    except KeyError:
        raise InvalidInputError(f"unknown session type {session_type!r}", hint="audit or improve") from None


def _state_prefix(session_type: SessionType) -> str:
    _state_class(session_type)
    return f"{session_type}-session-"


def _hash(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _fingerprint(path: Path) -> str | None:
    try:
        return _hash(read_file(path))
    except FileNotFoundError:
        return None
