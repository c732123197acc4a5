"""The driver with a real model behind it: real figures, and a window that really fills up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.project.settings import Settings, load_settings
from holdfast.workflows.drivers.model import ModelDriver
from holdfast.workflows.drivers.protocol import Done, DriverSession, EarlierSession, Exhausted
from real_model import RealModel
from workflows.drivers.recorder import Recorder, assignment


@pytest.fixture
def settings(real_model: RealModel, tmp_path: Path) -> Settings:
    return replace(
        load_settings({}, tmp_path),
        agent_model=real_model.name,
        agent_model_url=real_model.base_url,
        context_window=real_model.context_tokens,
    )


def test_the_figures_are_the_servers_own(settings: Settings, real_model: RealModel, tmp_path: Path) -> None:
    report = Recorder()
    outcome = ModelDriver(settings).run(assignment(tmp_path, "Say hello."), report)
    assert isinstance(outcome, Done)
    assert outcome.result
    used = report.calls[0]
    assert used.prompt_tokens > 100
    assert 0 < used.completion_tokens <= real_model.context_tokens // 4
    assert used.utilization_percent == pytest.approx(used.total_tokens / real_model.context_tokens)


@pytest.mark.whole_sample
def test_the_window_fills_up_over_tasks_and_the_next_session_has_room(
    settings: Settings, real_model: RealModel, tmp_path: Path
) -> None:
    report = Recorder()
    session: DriverSession | None = None
    shares: list[float] = []
    for number in range(1, 10):
        filler = " ".join(f"{word}{number}" for word in ("apple", "pear", "plum") * 50)
        job = assignment(tmp_path, f"Remember these words: {filler}. Say only: yes.", agent_session=session)
        outcome = ModelDriver(settings).run(job, report)
        assert isinstance(outcome, Done | Exhausted)
        session = report.sessions[-1]
        shares.append(report.calls[-1].utilization_percent)
        if shares[-1] >= 0.85 or isinstance(outcome, Exhausted):
            break
    assert shares == sorted(shares)
    assert len(shares) > 1
    assert shares[-1] >= 0.6
    earlier = EarlierSession("exhaustion", session, shares[-1])
    context = "# Handover\nThe words were fruit."
    outcome = ModelDriver(settings).run(
        assignment(tmp_path, "Say only: yes.", context=context, earlier=earlier), report
    )
    assert isinstance(outcome, Done)
    assert report.calls[-1].utilization_percent < shares[-1]


def test_overrunning_the_window_by_force_is_exhaustion(settings: Settings, tmp_path: Path) -> None:
    report = Recorder()
    outcome = ModelDriver(settings).run(assignment(tmp_path, "word " * 4_000), report)
    assert isinstance(outcome, Exhausted)
    assert "context window is full" in outcome.reason
    assert report.calls == []
