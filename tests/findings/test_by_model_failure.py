"""Telling an overflow of the window from every other failure."""

from __future__ import annotations

import pytest
from pydantic_ai.exceptions import (
    FallbackExceptionGroup,
    ModelContextWindowExceededError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)

from findings.model_samples import SESSION
from findings.scripted_model import ScriptedModel, fails
from holdfast.findings.by_model import DecisionExtractor, is_context_overflow

LLAMA = {"code": 400, "message": "request (9 tokens) exceeds…", "type": "exceed_context_size_error"}
OPENAI = {"code": "context_length_exceeded", "message": "too long", "type": "invalid_request_error"}


@pytest.mark.parametrize(
    "error",
    [
        ModelHTTPError(400, "m", LLAMA),
        ModelHTTPError(400, "m", {"error": LLAMA}),
        ModelHTTPError(400, "m", OPENAI),
        ModelHTTPError(413, "m", "prompt is too long: 210000 tokens > 200000 maximum"),
        ModelHTTPError(400, "m", {"message": "This model's maximum context length is 8192 tokens."}),
        ModelHTTPError(500, "m", {"message": "the request exceeds the available context size"}),
        ModelContextWindowExceededError("m", "no room"),
        FallbackExceptionGroup("all failed", [ValueError(), ModelHTTPError(400, "m", LLAMA)]),
    ],
)
def test_an_overflow_is_recognised(error: Exception) -> None:
    assert is_context_overflow(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("context_length_exceeded"),
        UnexpectedModelBehavior("the agent hit context_length_exceeded", "maximum context length"),
        ModelHTTPError(429, "m", {"message": "maximum context length per minute"}),
        ModelHTTPError(400, "m", {"message": "unknown field"}),
        ModelHTTPError(400, "m", None),
        TimeoutError(),
    ],
)
def test_other_failures_are_not(error: Exception) -> None:
    assert not is_context_overflow(error)


@pytest.mark.parametrize("body", [LLAMA, OPENAI])
def test_either_wording_ends_the_attempt_and_is_said(body: dict[str, object]) -> None:
    with ScriptedModel(fails(400, body)).running() as server:
        extractor = DecisionExtractor("scripted", base_url=server.base_url)
        said = extractor.examine_sync(SESSION).model_failure
    assert said
    assert "context overflow" in said
    assert len(server.requests) == 1
