"""Nodes that failed, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.base.errors import HoldfastError, NodeFailedError


class Failure(NamedTuple):
    node_id: str
    error: BaseException


def node_failed(session_id: str, failures: Sequence[Failure]) -> NodeFailedError:
    first = failures[0]
    others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return NodeFailedError(
        f"node {first.node_id!r} of session {session_id} failed{others}: {told(first.error)}",
        hint=first.error.hint if isinstance(first.error, HoldfastError) else None,
    )


def told(error: BaseException) -> str:
    """An error in one line: ours as they are, others with their kind."""
    if isinstance(error, HoldfastError):
        return error.message
    return f"{type(error).__name__}: {error}".rstrip(": ")
