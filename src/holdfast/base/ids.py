"""How things are named."""

from __future__ import annotations

import os
import re
import time

SESSION_ID = re.compile(r"session-\d{8}-\d{6}(?:-\d+)?")
"""The seed's format; a second pause in the same second gets `-2`, and so on."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str, seconds: float) -> str:
    """`wf_01k9…`: sorts by time of making, unique without asking anybody.

    48 bits of milliseconds and 80 random bits, as in a ULID, in Crockford's alphabet.
    """
    return _id(prefix, seconds, os.urandom(10))


def id_of(prefix: str, seconds: float, source: str) -> str:
    """The same form for what comes from elsewhere: the same source always gets the same id."""
    import hashlib

    return _id(prefix, seconds, hashlib.sha256(source.encode(errors="surrogatepass")).digest()[:10])


def _id(prefix: str, seconds: float, rest: bytes) -> str:
    number = (int(seconds * 1000) << 80) | int.from_bytes(rest, "big")
    digits = [_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"


def session_id(seconds: float, attempt: int = 1) -> str:
    """The name of a pause; `attempt` tells apart those of the same second."""
    name = time.strftime("session-%Y%m%d-%H%M%S", time.gmtime(seconds))
    return name if attempt == 1 else f"{name}-{attempt}"


def is_session_id(text: str) -> bool:
    return SESSION_ID.fullmatch(text) is not None


def session_order(name: str) -> tuple[str, int]:
    """Sort key of session names: by second, then by the number within it."""
    parts = name.split("-")
    return "-".join(parts[:3]), int(parts[3]) if len(parts) > 3 else 1


def file_name_for(agent_session: str) -> str:
    """An agent's session id as a file name: itself where that is safe, else a part of it with a hash."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", agent_session):
        return agent_session
    import hashlib

    readable = re.sub(r"[^A-Za-z0-9]+", "-", agent_session)[:40].strip("-")
    return f"{readable}~{hashlib.sha256(agent_session.encode(errors='surrogatepass')).hexdigest()[:16]}"
