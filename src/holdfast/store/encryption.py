"""Encryption in the format of `age`: with a passphrase, or for a key that a passphrase locks.

A passphrase takes a second to work on, by design: too long after every action of a session. So stored
sessions are written for a key pair of the project: `key.pub` suffices to write, and `key.age`, which the
passphrase opens, is asked for once to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.base.durable import read_file, replace_file, storage_errors, sync_folder
from holdfast.base.errors import CannotDoError, DamagedDataError, InvalidInputError, require_installed

_AGE = b"age-encryption.org/"
_TOO_SLOW = "Excessive work parameter"
_ATTEMPTS = 10
"""age measures the machine's speed first, for a moment: on a busy one that can come out far too low."""
Passphrase = Callable[[], str | None]


def is_encrypted(data: bytes) -> bool:
    return data.startswith(_AGE)


def encrypt(data: bytes, passphrase: str) -> bytes:
    return _age().passphrase.encrypt(data, _not_empty(passphrase))


def decrypt(data: bytes, passphrase: str | None, what: str) -> bytes:
    """`what` was encrypted, for the words of the error."""
    if passphrase is None:
        raise CannotDoError(
            f"{what} is encrypted",
            hint="set HOLDFAST_PASSPHRASE, or run it on a terminal to be asked for the passphrase",
        )
    age = _age()
    for _ in range(_ATTEMPTS):
        try:
            return age.passphrase.decrypt(data, _not_empty(passphrase))
        except age.DecryptError as error:
            if _TOO_SLOW not in str(error):
                raise CannotDoError(
                    f"{what} could not be decrypted: {error}",
                    hint="check the passphrase; nothing was changed",
                ) from None
    raise CannotDoError(
        f"{what} could not be decrypted: this machine seems much slower than the one that encrypted it",
        hint="run the same command again when the machine is less busy; nothing was changed",
    )


def passphrase_from_environment() -> str | None:
    return os.environ.get("HOLDFAST_PASSPHRASE")


class SessionKey:
    """Of a project's stored sessions; off until `turn_on`."""

    def __init__(self, folder: Path, passphrase: Passphrase = passphrase_from_environment) -> None:
        self._public, self._secret = folder / "key.pub", folder / "key.age"
        self._passphrase = passphrase
        self._identity: Any = None

    @property
    def is_on(self) -> bool:
        return self._public.exists()

    def turn_on(self, passphrase: str) -> None:
        """From now on what is written is sealed."""
        identity = _age().x25519.Identity.generate()
        with storage_errors("write the key"):
            replace_file(self._secret, encrypt(str(identity).encode(), passphrase))
            replace_file(self._public, f"{identity.to_public()}\n".encode())
        self._identity = identity

    def turn_off(self) -> None:
        """The secret key goes last: until then what is sealed can be opened."""
        with storage_errors("remove the key"):
            self._public.unlink(missing_ok=True)
            self._secret.unlink(missing_ok=True)
            sync_folder(self._public.parent)

    def close(self, data: bytes) -> bytes:
        if not self.is_on:
            return data
        age = _age()
        try:
            recipient = age.x25519.Recipient.from_str(read_file(self._public).decode().strip())
        except (OSError, ValueError, age.RecipientError) as error:
            raise DamagedDataError(
                f"the key of the sessions cannot be read: {error}", hint=f"see {self._public}"
            ) from None
        return age.encrypt(data, [recipient])

    def open(self, data: bytes) -> bytes:
        """As it was before it was sealed; what never was is given back."""
        if not is_encrypted(data):
            return data
        identity = self._unlocked()
        age = _age()
        try:
            return age.decrypt(data, [identity])
        except age.DecryptError as error:
            raise CannotDoError(
                f"the session could not be decrypted: {error}",
                hint="it was not encrypted with the key in .holdfast/key.age",
            ) from None

    def _unlocked(self) -> Any:
        if self._identity is None:
            try:
                sealed = read_file(self._secret)
            except FileNotFoundError:
                raise CannotDoError(
                    "the session is encrypted, and its key .holdfast/key.age is gone",
                    hint="restore the key from a backup; without it the session cannot be read",
                ) from None
            text = decrypt(sealed, self._passphrase(), "the session").decode()
            self._identity = _age().x25519.Identity.from_str(text)
        return self._identity


def _not_empty(passphrase: str) -> str:
    if not passphrase:
        raise InvalidInputError("the passphrase is empty", hint="use a non-empty passphrase")
    return passphrase


def _age() -> Any:
    require_installed("encryption", "pyrage")
    import pyrage  # pyright: ignore[reportMissingTypeStubs]

    return pyrage
