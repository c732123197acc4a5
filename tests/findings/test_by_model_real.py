"""A real model on a real server: the protocol, the counts and the overflow are its own."""

from __future__ import annotations

import asyncio

import pytest

from findings.model_samples import SESSION
from holdfast.findings.by_model import DecisionExtractor, ModelLimits, is_context_overflow
from holdfast.findings.model_call import ModelChoice, opened
from holdfast.findings.model_exchange import KnownFacts
from holdfast.model.findings import ModelReading
from holdfast.model.message import Message
from real_model import RealModel

# One core of a busy machine: a few words take it seconds.
PATIENT = 150.0
BRIEF = ModelLimits(items=1, answer_tokens=400)


@pytest.mark.whole_sample
@pytest.mark.parametrize("known", [None, KnownFacts(("The branch is main.",))], ids=["alone", "facts"])
def test_it_answers_with_findings_that_hold_or_with_none(
    real_model: RealModel, known: KnownFacts | None
) -> None:
    extractor = DecisionExtractor(
        real_model.name, base_url=real_model.base_url, time_limit=PATIENT, limits=BRIEF, known=known
    )
    found = extractor.examine_sync(SESSION)
    assert found.usage, found.model_failure
    assert 100 < found.usage.context < 2 * real_model.context_tokens
    assert 0 < found.usage.output_tokens <= 2 * BRIEF.answer_tokens
    shown = {message.index for message in SESSION}
    reading = found.reading or ModelReading()
    noted = (reading.now, *reading.causes, *reading.edits, *reading.answers, *reading.settled)
    for one in (*found.decisions, *found.errors, *filter(None, noted)):
        assert {number for part in one.evidence for number in part.messages} <= shown
    assert found.by_rule + found.by_model == len(found.decisions) + len(found.errors)


def test_a_conversation_too_long_for_its_window_is_called_that(real_model: RealModel) -> None:
    extractor = DecisionExtractor(real_model.name, base_url=real_model.base_url, time_limit=PATIENT)
    long = [Message(index, "assistant", f"step {index} of the work " * 50) for index in range(20)]
    found = extractor.examine_sync(long)
    assert found.model_failure
    assert "context overflow" in found.model_failure
    assert "exceed_context_size_error" in found.model_failure
    assert found.decisions == []


def test_its_overflow_is_recognised_as_raised(real_model: RealModel) -> None:
    async def overflow() -> Exception:
        from pydantic_ai import Agent

        async with opened(ModelChoice(real_model.name, real_model.base_url)) as model:
            with pytest.raises(Exception) as raised:  # noqa: PT011 - which one it is differs by version
                await Agent(model).run("word " * 4 * real_model.context_tokens)
        return raised.value

    error = asyncio.run(overflow())
    assert is_context_overflow(error)
    wrapped = RuntimeError("wrapped")
    wrapped.__cause__ = error
    assert is_context_overflow(wrapped)
