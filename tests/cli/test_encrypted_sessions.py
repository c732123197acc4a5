"""Sessions of audits and improvements, stored encrypted."""

from __future__ import annotations

import zlib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionStateManager
from holdfast.base.errors import CannotDoError
from holdfast.model.item_session import AuditSessionState
from holdfast.store.encryption import decrypt, encrypt

from .harness import Place
from .test_own_sessions import MONDAY, own
from .test_tx import run_tasks

__all__ = ["own"]
SECRET = {"HOLDFAST_PASSPHRASE": "correct horse"}


def content_of(path: Path) -> bytes:
    """As it is, and as git packs it."""
    data = path.read_bytes()
    with suppress(zlib.error):
        data += zlib.decompress(data)
    return data


def stored(place: Place) -> list[bytes]:
    return [path.read_bytes() for path in sorted(place.sessions.glob("*-session-*.json"))]


def test_encrypted_and_decrypted_again(own: Place) -> None:
    plain = stored(own)
    assert own.run("sessions", "encrypt", env=SECRET).out.startswith("Encrypted 2 sessions")
    assert all(data.startswith(b"age-encryption.org/") for data in stored(own))
    own.run("sessions", "list").failed(1, error="is encrypted", hint="HOLDFAST_PASSPHRASE")
    own.run("sessions", "list", env={"HOLDFAST_PASSPHRASE": "wrong"}).failed(
        1, error="could not be decrypted"
    )
    assert "improve" in own.run("sessions", "list", env=SECRET).out
    own.run("sessions", "encrypt", env=SECRET).failed(1, error="already encrypted")
    assert own.run("sessions", "decrypt", env=SECRET).out == "Decrypted 2 sessions\n"
    assert stored(own) == plain
    own.run("sessions", "decrypt", env=SECRET).failed(1, error="not encrypted")


def test_writing_needs_no_passphrase_and_reading_asks_once(
    own: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def passphrase() -> str:
        asked.append(1)
        return "correct horse"

    SessionStateManager(own.project).encrypt("correct horse")
    manager = SessionStateManager(own.project)
    state = AuditSessionState(session_id="third", started_at=MONDAY, total_items=1)
    manager.save_session_state(state, "audit")
    with pytest.raises(CannotDoError, match="is encrypted"):
        manager.load_session_state("third", "audit")
    reading = SessionStateManager(own.project, passphrase=passphrase)
    assert {one.session_id for one in reading.list_sessions("audit")} == {"first", "third"}
    assert reading.load_session_state("third", "audit") == state
    assert asked == [1]
    assert not list(own.sessions.glob("*damaged*"))


def test_a_bundle_does_not_give_them_away(own: Place) -> None:
    own.run("sessions", "encrypt", env=SECRET)
    file = own.root / "b.holdfast"
    own.run("export", file).failed(1, error="stored encrypted", hint="--encrypt")
    assert own.run("export", file, "--encrypt", env=SECRET).code == 0
    other = own.beside("other")
    assert other.run("import", file, env=SECRET).lines[0] == "Imported 2 sessions"


def test_without_its_key_a_session_is_not_taken_for_damaged(own: Place) -> None:
    own.run("sessions", "encrypt", env=SECRET)
    (own.project / ".holdfast" / "key.age").unlink()
    before = stored(own)
    own.run("sessions", "list", env=SECRET).failed(1, error=r"key.age is gone")
    assert stored(own) == before


def test_a_busy_machine_does_not_pass_for_a_wrong_passphrase(monkeypatch: pytest.MonkeyPatch) -> None:
    """age refuses where its look at the machine's speed, a moment long, came out too low."""
    pyrage: Any = import_module("pyrage")
    sealed, refusals = encrypt(b"told", "secret"), ["Excessive work parameter for passphrase."] * 3
    opened = pyrage.passphrase.decrypt

    def busy(data: bytes, passphrase: str) -> bytes:
        if refusals:
            raise pyrage.DecryptError(refusals.pop())
        return opened(data, passphrase)

    monkeypatch.setattr(pyrage.passphrase, "decrypt", busy)
    assert decrypt(sealed, "secret", "it") == b"told"
    refusals += ["Excessive work parameter for passphrase."] * 100
    with pytest.raises(CannotDoError, match="much slower") as refused:
        decrypt(sealed, "secret", "it")
    assert "passphrase" not in (refused.value.hint or "")


def test_what_stays_readable_is_named(own: Place) -> None:
    manager = SessionStateManager(own.project)
    state = manager.list_sessions("audit")[0]
    manager.save_session_state(state.changed(config={"word": "planted-word"}), "audit")
    assert run_tasks(own, "echo planted-word | tee made-by-a-task; rm made-by-a-task").code == 0
    own.ok("winddown", "start", "--percent", "0.9")
    note = '{"tool": "Read", "note": "planted-word"}'
    own.ok("winddown", "append", "tool_call", "--data", note, "--percent", "0.91")
    own.ok("export", "before.holdfast")
    done = own.run("sessions", "encrypt", env=SECRET)
    assert done.code == 0
    named = [
        part for line in done.err.splitlines() for part in line.partition(": ")[2].split(": ")[-1].split(", ")
    ]
    holding = [
        path
        for folder in (own.project, own.home)
        for path in folder.rglob("*")
        if path.is_file() and (b"planted-word" in content_of(path) or path.suffix == ".holdfast")
    ]
    assert str(own.project / "before.holdfast") in named
    named = [name.partition(" (")[0] for name in named]
    assert own.home / "holdfast.db" in holding
    assert any("logs" in path.parts for path in holding)
    assert "" not in named
    assert [path for path in holding if not any(str(path).startswith(name) for name in named)] == []
    own.environment |= SECRET
    own.ok("export", "after.holdfast", "--encrypt")
    own.ok("sessions", "decrypt")
    assert "after.holdfast" not in own.run("sessions", "encrypt").err
