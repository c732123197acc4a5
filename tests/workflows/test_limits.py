"""Which workflow goes first, and how much of a driver or a model all workers may use together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOSClient
from pydantic_ai import RunUsage

from cli.harness import Place
from holdfast.base.errors import InvalidInputError
from holdfast.model.usage import UsageMetadata
from holdfast.project.settings import Limit, load_settings
from holdfast.store.engine import engine_database
from holdfast.workflows import engine, worker
from holdfast.workflows.drivers.protocol import Assignment, Done, Report, TaskOutcome
from holdfast.workflows.worker import Here, Worker

from .harness import ScriptedDriver, Workshop, plan_of

PERIOD = 1.5


@pytest.fixture(autouse=True)
def short_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "PERIOD", PERIOD)


def queued(workshop: Workshop, *commands: str, **options: Any) -> None:
    """A workflow a command, each in a folder of its own."""
    with workshop.service() as service:
        for number, command in enumerate(commands):
            folder = workshop.place.root / f"f{number}"
            folder.mkdir()
            priority = options.get("priorities", [100] * 9)[number]
            service.start(plan_of(command, priority=priority), folder)


def permits(workshop: Workshop, queue: str) -> list[int]:
    """When each was given, in milliseconds, in order."""
    database = engine_database(workshop.database)
    client = DBOSClient(system_database_url=database if "://" in database else f"sqlite:///{database}")
    try:
        found = client.list_workflows(queue_name=queue)
        return sorted(one.dequeued_at for one in found if one.dequeued_at)
    finally:
        client.destroy()


def limited(workshop: Workshop, **limits: Limit) -> None:
    workshop.settings = replace(workshop.settings, limits=limits)


def test_workers_begin_with_the_lowest_priority(any_workshop: Workshop) -> None:
    log = any_workshop.project / "log"
    queued(any_workshop, *(f"echo {name} >> {log}" for name in "cab"), priorities=(300, 1, 100))
    Worker(any_workshop.settings, concurrency=1).run(until_idle=True)
    assert any_workshop.log() == ["a", "b", "c"]


def test_so_many_sessions_of_a_driver_run_at_a_time(any_workshop: Workshop) -> None:
    log = any_workshop.project / "log"
    queued(any_workshop, *[f"echo begin >> {log}; sleep 0.2; echo end >> {log}"] * 3)
    limited(any_workshop, shell=Limit(sessions=1))
    Worker(any_workshop.settings, concurrency=4).run(until_idle=True)
    assert any_workshop.log() == ["begin", "end"] * 3


def test_tasks_wait_for_their_minute(any_workshop: Workshop) -> None:
    limited(any_workshop, shell=Limit(requests_per_minute=2))
    assert any_workshop.run(plan_of("true", "true", "true", "true", "true")).status == "completed"
    given = permits(any_workshop, "holdfast.requests.shell")
    assert len(given) == 5
    assert all(later - earlier >= PERIOD * 999 for earlier, later in zip(given, given[2:], strict=False))


def test_what_a_call_has_used_is_waited_for_before_the_next(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uses(tokens: int) -> Callable[[Assignment, Report], TaskOutcome]:
        def work(_assignment: Assignment, report: Report) -> TaskOutcome:
            report.turn("big")
            report.usage(UsageMetadata.from_pydantic_ai_usage(RunUsage(input_tokens=tokens)))
            return Done()

        return work

    driver = ScriptedDriver([uses(2_000), uses(10), uses(10)])
    monkeypatch.setattr(worker, "driver_named", lambda name, settings: driver)
    limited(workshop, big=Limit(tokens_per_minute=1_000))
    assert workshop.run(plan_of("true", "true", "true")).status == "completed"
    given = permits(workshop, "holdfast.tokens.big")
    assert len(given) == 120 + 2, "two minutes' worth, and two small ones"
    assert given[-2] - given[0] >= 2 * PERIOD * 999


def test_who_waits_can_be_paused_and_stopped(workshop: Workshop) -> None:
    limited(workshop, shell=Limit(requests_per_minute=1))
    workshop.run(plan_of("true"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "PERIOD", 3600.0)
        with Here(workshop.settings) as here:
            waiting = here.service.start(plan_of("echo a >> log", timeout=1.0), claim=here.claim)
            assert here.run(waiting).status == "paused"
    assert workshop.log() == []
    # A busy machine may need longer than the plan's second for its one command: that is a pause, too.
    assert any(workshop.resume(waiting).status == "completed" for _ in range(60))
    assert workshop.log() == ["a"]


def test_limits_are_the_users_to_set(place: Place) -> None:
    config = Path(place.environment["HOLDFAST_HOME"]) / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(
        "[limits.claude-code]\nsessions = 2\n[limits.'openai:gpt-4.1']\nrequests_per_minute = 50\n"
        "tokens_per_minute = 200_000\n"
    )
    found = load_settings(place.environment, place.project).limits
    assert found == {
        "claude-code": Limit(sessions=2),
        "openai:gpt-4.1": Limit(requests_per_minute=50, tokens_per_minute=200_000),
    }
    for wrong in ("[limits.shell]\nsessions = 0\n", "[limits.shell]\nspeed = 1\n", "limits = 3\n"):
        config.write_text(wrong)
        with pytest.raises(InvalidInputError):
            load_settings(place.environment, place.project)
