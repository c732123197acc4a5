"""One question to a model, through pydantic-ai: which model, in what form, how often, what failed."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from holdfast.base.redact import redact
from holdfast.base.text import clipped, one_line
from holdfast.findings.model_exchange import printable
from holdfast.model.message import TokenUsage

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model
    from pydantic_ai.usage import RunUsage


# ── what went wrong ───────────────────────────────────────────────────────────────────────────────

# What went wrong with a model, in words that are safe to show and to store.
#
# A server's own words are never passed on: they may hold the key it was sent, or
# whatever somebody wants read. Of those only a code made of letters is kept.

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
        (known.ModelQuotaExceededError, "quota or credit exhausted"),
        (known.ModelRateLimitError, "rate limited" + _wait(error)),
        (known.ModelOverloadedError, "the server is overloaded" + _wait(error)),
        (known.ModelUnavailableError, "the server is unavailable" + _wait(error)),
        (known.ModelServerError, "the server failed"),
        (known.ModelTimeoutError, "the connection timed out"),
        (known.ModelConnectionError, _connection(error)),
        (known.ModelRequestTimeout, "the request timed out"),
        (known.ModelAuthenticationError, "the credentials were rejected"),
        (known.ModelNotFoundError, "the server does not know this model or URL"),
        (known.ModelRequestRejectedError, "the request was rejected"),
        (known.ModelAPIError, "the call failed"),
        (known.ContentFilterError, "refused to answer"),
        (known.UnexpectedModelBehavior, "the response was not the requested JSON"),
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
    return f", retry after {wait:.0f} s" if isinstance(wait, int | float) else ""


def _connection(error: BaseException) -> str:
    phase = getattr(error, "phase", None)
    return "the server could not be reached" if phase == "connect" else "the connection was closed"


# ── the call ──────────────────────────────────────────────────────────────────────────────────────

# One question to a model, through pydantic-ai: which model, in which form, how often.
#
# pydantic-ai takes about a second to import, so everything of it is imported where it is
# used. Nothing here knows what is asked.

FORBID_MODELS = "HOLDFAST_FORBID_MODELS"
"""Set to 1, no model is called that does not run on this machine; for tests.

Read here rather than at a door: it must hold for whoever gets this far, by whichever way.
"""

_LARGEST_ANSWER = 8_000_000  # bytes; the longest answers of real models are a hundredth of it


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A pydantic-ai name ("openai:gpt-4o") or model; with `base_url`, a name on an OpenAI-like server."""

    model: Model | str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.model_name


@dataclass(frozen=True, slots=True)
class Question:
    instructions: str
    text: str
    schema: dict[str, Any]
    answer_tokens: int
    is_answer: Callable[[object], bool]
    name: str = "findings"
    """What the model is told that its answer is called."""
    lacking: str = "the response contained neither decisions nor errors"
    """Said where `is_answer` finds that it is none."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What came of a question: the JSON, or why there is none. What it cost stands in either."""

    value: object = None
    failure: str | None = None
    usage: TokenUsage | None = None


class NotAnAnswerError(Exception):
    """JSON, but not what was asked for."""


async def ask(choice: ModelChoice, question: Question, deadline: float) -> ModelAnswer:
    """Never raises, cancellation aside: whatever goes wrong with a model is an answer without a value.

    `deadline` is a reading of `time.monotonic`. It only keeps a second try from being
    made in vain; holding to it is for the caller, who can stop waiting.
    """
    usage: RunUsage | None = None
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # an advertisement, in the midst of a conversation
    try:
        from pydantic_ai.usage import RunUsage

        usage = RunUsage()
        async with opened(choice) as model:
            refuse_if_forbidden(model)
            # OpenAI enforces a schema only in its strict subset, without lengths; local servers as it is.
            strict = None if choice.base_url else True
            value = await _in_any_form(model, question, usage, strict=strict, deadline=deadline)
    except Exception as error:  # noqa: BLE001 - providers raise what they like, and none of it may cost a pause
        return ModelAnswer(
            failure=failure_text(error, choice.name, choice.api_key), usage=_tokens(usage, choice)
        )
    return ModelAnswer(value, usage=_tokens(usage, choice))


@asynccontextmanager
async def opened(choice: ModelChoice) -> AsyncGenerator[Model]:
    """The model, and its connections closed afterwards where they are ours."""
    if not isinstance(choice.model, str):
        yield choice.model
    elif choice.base_url is None:
        async with _by_name(choice.model, choice.api_key) as model:
            yield model
    else:
        async with _client(choice.base_url, choice.api_key) as client:
            yield _on_server(choice.model, client)


def refuse_if_forbidden(model: Model) -> None:
    if os.environ.get(FORBID_MODELS, "0") in ("", "0"):
        return
    if not _stays_here(model):
        raise ForbiddenModelError(f"{FORBID_MODELS} is set, and this model is remote")


def is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _stays_here(model: Model) -> bool:
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.models.wrapper import WrapperModel

    if isinstance(model, WrapperModel):
        return _stays_here(model.wrapped)
    if isinstance(model, FallbackModel):
        return all(map(_stays_here, model.models))
    return isinstance(model, FunctionModel | TestModel) or is_loopback(model.base_url or "")


def _by_name(name: str, api_key: str | None) -> Model:
    from pydantic_ai.models import infer_model
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

    def with_key(provider: str) -> Provider[Any]:
        kind: Any = infer_provider_class(provider)
        return kind(api_key=api_key)

    return infer_model(name, with_key if api_key else infer_provider)


def _on_server(name: str, client: AsyncOpenAI) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    # Servers other than OpenAI's know this limit by its older name, `max_tokens`.
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
    provider = OpenAICompatibleProvider("openai-compatible", openai_client=client, profile=profile)
    return OpenAIChatModel(name.removeprefix("openai:"), provider=provider)


def _client(base_url: str, api_key: str | None) -> AsyncOpenAI:
    """What was said in a session goes to the address that was given and nowhere else.

    So: no redirects; to this machine no proxy; and no key from the environment, which
    was meant for somebody else's server.
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    http = DefaultAsyncHttpxClient(
        trust_env=not is_loopback(base_url),
        follow_redirects=False,
        event_hooks={"response": [_cap]},
    )
    return AsyncOpenAI(base_url=base_url, api_key=api_key or "none", max_retries=0, http_client=http)


async def _cap(response: httpx2.Response) -> None:
    """An answer without end would otherwise be collected until the memory is."""
    import httpx2

    class Capped(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncGenerator[bytes]:
            left = _LARGEST_ANSWER
            async for part in whole:
                left -= len(part)
                if left < 0:
                    raise httpx2.ReadError("the response is too large")
                yield part

        async def aclose(self) -> None:
            await whole.aclose()

    whole = cast("httpx2.AsyncByteStream", response.stream)
    response.stream = Capped()


async def _in_any_form(
    model: Model, question: Question, usage: RunUsage, *, strict: bool | None, deadline: float
) -> object:
    """A schema that the server enforces; where that fails, one that the prompt asks for."""
    from pydantic_ai import NativeOutput, PromptedOutput, StructuredDict

    shape = StructuredDict(question.schema, name=question.name)
    native, prompted = NativeOutput(shape, strict=strict), PromptedOutput(shape)
    try:
        return await _patiently(lambda: _run(model, question, native, usage), deadline)
    except Exception as error:
        if not _worth_another_form(error):
            raise
    return await _patiently(lambda: _run(model, question, prompted, usage), deadline)


async def _run(model: Model, question: Question, form: Any, usage: RunUsage) -> object:
    from pydantic_ai import Agent

    # No retries at any level: each would hide from us how the time is spent.
    agent: Agent[None, Any] = Agent(
        model, output_type=form, instructions=question.instructions, retries=0, name="holdfast"
    )
    result = await agent.run(
        question.text,
        usage=usage,
        model_settings={"max_tokens": question.answer_tokens, "max_retries": 0},
        infer_name=False,
    )
    if not question.is_answer(result.output):
        raise NotAnAnswerError(question.lacking)
    return result.output


async def _patiently(run: Callable[[], Awaitable[object]], deadline: float) -> object:
    """Once more after the wait a busy server asked for, if that leaves as much time again to answer."""
    from pydantic_ai.exceptions import ModelRateLimitError, ModelUnavailableError

    try:
        return await run()
    except (ModelRateLimitError, ModelUnavailableError) as error:
        wait = error.retry_after
        if wait is None or not 0 <= wait <= (deadline - time.monotonic()) / 2:
            raise
    await asyncio.sleep(wait)
    return await run()


def _worth_another_form(error: Exception) -> bool:
    """Whether it was the form that failed: not supported, rejected, or not kept to."""
    from pydantic_ai.exceptions import (
        ContentFilterError,
        ModelAuthenticationError,
        ModelNotFoundError,
        ModelRequestRejectedError,
        UnexpectedModelBehavior,
        UserError,
    )

    final = (ContentFilterError, ModelAuthenticationError, ModelNotFoundError)
    if isinstance(error, final) or is_context_overflow(error):
        return False
    return isinstance(
        error, NotAnAnswerError | UnexpectedModelBehavior | ModelRequestRejectedError | UserError
    )


def _tokens(usage: RunUsage | None, choice: ModelChoice) -> TokenUsage | None:
    if usage is None or not usage.input_tokens + usage.output_tokens:
        return None
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return TokenUsage(
        input_tokens=max(0, usage.input_tokens - cached),  # pydantic-ai counts these in, we do not
        output_tokens=usage.output_tokens,
        cache_read=usage.cache_read_tokens,
        cache_write=usage.cache_write_tokens,
        model=choice.name,
    )
