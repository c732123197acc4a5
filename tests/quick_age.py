"""Encryption with a passphrase in a quick run: by age's format, without the second that age spends on it.

age makes a passphrase as expensive to try as this machine can bear, and says in the file how expensive it
was. What is written here says little, and is opened by age itself as any other file.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import b64encode
from importlib import import_module
from typing import Any

from soak import QUICK

_VERSION = b"age-encryption.org/v1"
_COST = 10  # of two, as an exponent; age itself takes 17 or more
_CHUNK = 64 << 10


def use_quick_age() -> None:
    if QUICK:
        pyrage: Any = import_module("pyrage")
        pyrage.passphrase.encrypt = encrypt


def encrypt(data: bytes, passphrase: str) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    key, salt, nonce = (os.urandom(16) for _ in range(3))
    locked_by = hashlib.scrypt(
        passphrase.encode(), salt=_VERSION + b"/scrypt" + salt, n=1 << _COST, r=8, p=1, dklen=32
    )
    locked = ChaCha20Poly1305(locked_by).encrypt(bytes(12), key, None)
    header = b"%s\n-> scrypt %s %d\n%s\n---" % (_VERSION, _text(salt), _COST, _text(locked))
    signed = hmac.digest(_derived(key, b"", b"header"), header, "sha256")
    sealing = ChaCha20Poly1305(_derived(key, nonce, b"payload"))
    chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)] or [b""]
    sealed = [
        sealing.encrypt(number.to_bytes(11) + bytes([number == len(chunks) - 1]), chunk, None)
        for number, chunk in enumerate(chunks)
    ]
    return b"".join([header, b" ", _text(signed), b"\n", nonce, *sealed])


def _derived(key: bytes, salt: bytes, purpose: bytes) -> bytes:
    """HKDF, of one block."""
    return hmac.digest(hmac.digest(salt, key, "sha256"), purpose + b"\x01", "sha256")


def _text(data: bytes) -> bytes:
    return b64encode(data).rstrip(b"=")
