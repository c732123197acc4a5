"""What went wrong with a model, in words that are safe to show and to store.

A server's own words are never passed on: they may hold the key it was sent, or
whatever somebody wants read. Of those only a code made of letters is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from holdfast.base.redact import redact
from holdfast.base.text import clipped, one_line
from holdfast.findings.conversation import printable

_CODE = re.compile(r"[A-Za-z][A-Za-z_]{2,39}")
_OVERFLOW_CODES = frozenset(("context_length_exceeded", "exceed_context_size_error"))
_OVERFLOW = re.compile(
    r"maximum context length|reduce the length of the (?:messages|prompt|input)|(?:prompt|input) is too long"
    r"|exceeds? (?:the |this |its )?(?:model'?s? )?(?:available |maximum )?context (?:size|length|window)",
    re.IGNORECASE,
)
# Other statuses say other things in similar words ("too many tokens per minute").
_OVERFLOW_STATUSES = frozenset((None, 400, 413, 422, 500))
_DEEPEST_CAUSE = 8


class ForbiddenModelError(Exception):
    """The switch that keeps tests away from real models held."""


def is_context_overflow(error: BaseException) -> bool:
    """Whether a model call failed because the input did not fit the model's window.

    OpenAI and its likes say `context_length_exceeded`, llama.cpp `exceed_context_size_error`,
    others only say it in prose; pydantic-ai and the SDKs below it raise different errors for them.
    """
    return any(map(_says_overflow, _with_causes(error)))


def failure_text(error: Exception, model: str, api_key: str | None = None) -> str:
    """One line: which model, and what happened."""
    happened = _happened(error)
    if api_key:
        happened = happened.replace(api_key, "[key]")
    return f"model {clipped(one_line(printable(model)), 80)}: {happened}"


def too_late(model: str, seconds: float) -> str:
    return f"model {clipped(one_line(printable(model)), 80)}: no answer within {seconds:g} s"


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(_DEEPEST_CAUSE):
        if error is None:
            return
        yield error
        if isinstance(error, BaseExceptionGroup):
            yield from cast("BaseExceptionGroup[BaseException]", error).exceptions[:_DEEPEST_CAUSE]
        error = error.__cause__


def _says_overflow(error: BaseException) -> bool:
    if any(kind.__name__ == "ModelContextWindowExceededError" for kind in type(error).__mro__):
        return True
    # What a model said is no error of the server, and may well talk of context lengths.
    if not hasattr(error, "status_code") or getattr(error, "status_code", None) not in _OVERFLOW_STATUSES:
        return False
    words = list(_server_words(error))
    return any(word in _OVERFLOW_CODES for word in words) or any(map(_OVERFLOW.search, words))


def _server_words(error: BaseException) -> Iterator[str]:
    """Code, type and message of an error answer, wherever this error class keeps them."""
    body = getattr(error, "body", None)
    if isinstance(body, dict):
        fields = cast("dict[str, object]", body)
        inner = fields.get("error")
        for source in (fields, cast("dict[str, object]", inner) if isinstance(inner, dict) else {}):
            for name in ("code", "type", "message", "detail"):
                yield str(source.get(name) or "")[:2000]
    elif isinstance(body, str):
        yield body[:2000]
    for name in ("provider_error_code", "provider_error_type", "code", "type"):
        yield str(getattr(error, name, None) or "")[:200]


def _happened(error: Exception) -> str:
    from pydantic_ai import exceptions as known

    if isinstance(error, ForbiddenModelError):
        return str(error)
    if is_context_overflow(error):
        return "context overflow: the conversation did not fit the model's window" + _reference(error)
    for kind, words in (
        (known.ModelQuotaExceededError, "quota or credit is used up"),
        (known.ModelRateLimitError, "rate limited" + _wait(error)),
        (known.ModelOverloadedError, "the server is overloaded" + _wait(error)),
        (known.ModelUnavailableError, "the server is not available" + _wait(error)),
        (known.ModelServerError, "the server failed"),
        (known.ModelTimeoutError, "the connection timed out"),
        (known.ModelConnectionError, _connection(error)),
        (known.ModelRequestTimeout, "the request timed out"),
        (known.ModelAuthenticationError, "the credentials were refused"),
        (known.ModelNotFoundError, "the server knows no such model or address"),
        (known.ModelRequestRejectedError, "the request was rejected"),
        (known.ModelAPIError, "the call failed"),
        (known.ContentFilterError, "refused to answer"),
        (known.UnexpectedModelBehavior, "the answer was not the JSON asked for"),
    ):
        if isinstance(error, kind):
            return words + _reference(error)
    if isinstance(error, known.UserError | ImportError):  # how to set it up, in the library's own words
        return clipped(one_line(redact(printable(str(error)))[0]), 300)
    return _unforeseen(error)


def _unforeseen(error: Exception) -> str:
    if type(error).__name__ == "NotAnAnswerError":
        return str(error)
    return f"failed with {type(error).__name__}"


def _reference(error: BaseException) -> str:
    """`(HTTP 429, rate_limit_exceeded)`: what to look up."""
    status = getattr(error, "status_code", None)
    codes = [str(getattr(error, name, "")) for name in ("provider_error_code", "provider_error_type")]
    parts = [f"HTTP {status}"] if isinstance(status, int) else []
    parts += [code for code in codes if _CODE.fullmatch(code) and code != "None"][:1]
    return f" ({', '.join(parts)})" if parts else ""


def _wait(error: BaseException) -> str:
    wait = getattr(error, "retry_after", None)
    return f", asks to wait {wait:.0f} s" if isinstance(wait, int | float) else ""


def _connection(error: BaseException) -> str:
    phase = getattr(error, "phase", None)
    return "the server could not be reached" if phase == "connect" else "the connection broke off"
