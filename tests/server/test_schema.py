"""Many requests made from the document itself: no 5xx, and no answer that it does not describe.

One by one; and in chains, where what one request made or found is what the next one is about.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import (
    ensure_resource_availability,
    negative_data_rejection,
    positive_data_acceptance,
)

from holdfast.project.settings import load_settings
from holdfast.store.sql import SqlStore
from soak import QUICK, repeated
from store.samples import ONE_OF_EACH, full_snapshot, full_workflow, new, snapshot, workflow

from .harness import TOKEN, Served, serving
from .test_document import DOCUMENT, OPERATIONS
from .test_work import keep_session

CASES = repeated(15)
"""Requests an operation."""

# Every request here has the token: one made to lack it would be answered. `test_security.py` asks without.
schema = schemathesis.openapi.from_dict({**DOCUMENT, "security": []})
# All that each parameter may be is worked out before the first test: in every worker, so not in a quick run.
schema.config.phases.coverage.enabled = schema.config.phases.examples.enabled = not QUICK
_PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
_turns = itertools.count()


@schema.hook
def map_path_parameters(_: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Most names anybody makes up are of nothing: every second request is about something that is there."""
    if path_parameters and next(_turns) % 2:
        known = {"workflow_id": full_workflow().id, "snapshot_id": full_snapshot().id}
        return {name: known.get(name, value) for name, value in path_parameters.items()}
    return path_parameters


@pytest.fixture(scope="module")
def filled(empty_sqlite_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for all of them, with something of everything in it."""
    with serving_something(empty_sqlite_file, tmp_path_factory.mktemp("schema")) as served:
        yield served


@contextmanager
def serving_something(empty: Path, folder: Path) -> Generator[Served]:
    project = folder / "project"
    project.mkdir()
    database = folder / "holdfast.db"
    shutil.copy(empty, database)
    home = replace(load_settings({"HOLDFAST_HOME": str(folder)}, project), project=project, db=str(database))
    store = SqlStore(str(database))
    store.apply(new(full_workflow(), *ONE_OF_EACH, save=full_snapshot()))
    store.apply(new(workflow("wf_2"), save=snapshot("snap_2", of="wf_2")))
    with serving(home, home=folder) as served:
        yield served
    store.close()


@schema.parametrize()  # pyright: ignore[reportUntypedFunctionDecorator] - the library's own
@settings(
    max_examples=CASES,
    suppress_health_check=_PATIENT,
)
def test_no_answer_that_the_document_does_not_describe(case: Any, filled: Served) -> None:
    # What a plan may say is more than a schema can tell (a circle, a driver there is not): 422 is right then.
    case.call_and_validate(
        base_url=filled.url,
        headers={"Authorization": f"Bearer {TOKEN}"},
        excluded_checks=[positive_data_acceptance],
    )


# ── with state ────────────────────────────────────────────────────────────────────────────────────

# What one request made or found is what the next ones are about. Without requests that are wrong on purpose:
# these are asked above.

stateful = schemathesis.openapi.from_dict({**DOCUMENT, "security": []})
stateful.config.generation.modes = [schemathesis.GenerationMode.POSITIVE]
ROUNDS = repeated(4)
NOT_MEANT = [positive_data_acceptance, negative_data_rejection, ensure_resource_availability]
"""They judge a request by how it was made up, and it was made another one since."""
REQUESTS = 5
"""An operation and round."""


class Known:
    """Names of what is there, the newest last; a request's own choice picks one."""

    def __init__(self) -> None:
        self.workflows = [full_workflow().id, "wf_2"]
        self.snapshots = {full_workflow().id: [full_snapshot().id], "wf_2": ["snap_2"]}
        self.session = "0b8f5c1e-6a4f-4a53-9f0e-0d6f3a1c2b4d"

    def learn(self, operation: str, told: Any) -> None:
        if operation in ("POST /api/workflows", "POST /api/workflows/{workflow_id}/fork"):
            self.workflows.append(told["id"])
        elif operation == "GET /api/workflows/{workflow_id}/snapshots":
            for one in told["snapshots"]:
                names = self.snapshots.setdefault(one["workflow_id"], [])
                names += [] if one["id"] in names else [one["id"]]

    def in_path(self, given: dict[str, Any]) -> dict[str, Any]:
        owners = list(self.snapshots) if "snapshot_id" in given else self.workflows
        owner = _picked(owners, given.get("workflow_id"))
        found = {"workflow_id": owner, "session_id": self.session}
        if "snapshot_id" in given:
            owner = owner if "workflow_id" in given else _picked(owners, given["snapshot_id"])
            found["snapshot_id"] = _picked(self.snapshots[owner], given["snapshot_id"])
        return {name: found.get(name, value) for name, value in given.items()}

    def in_query(self, given: dict[str, Any]) -> dict[str, Any]:
        """A project, a cursor or an attempt that nothing told is of nothing."""
        made_up = ("project", "worktree", "cursor", "change", "snapshot_id", "attempt")
        every = [name for names in self.snapshots.values() for name in names]
        found = {"before": every[0], "after": every[-1], "task_id": full_snapshot().task_dag.tasks[0].id}
        return {name: found.get(name, value) for name, value in given.items() if name not in made_up}

    @staticmethod
    def in_body(operation: str, body: Any) -> Any:
        """What a plan may say is more than a schema can tell; a folder holds one active workflow."""
        if operation != "POST /api/workflows" or not isinstance(body, dict):
            return body
        tasks = [{"id": "a", "run": "true", "approval": True}, {"id": "b", "run": "true"}]
        return {"plan": {"issue": {"id": "S-1", "title": "With state"}, "tasks": tasks}}


def _picked(names: list[str], given: object) -> str:
    return names[crc32(str(given).encode(errors="replace")) % len(names)]


def test_of_requests_about_what_is_there_more_than_a_third_is_done(
    empty_sqlite_file: Path, tmp_path: Path
) -> None:
    known = Known()
    answers: Counter[int] = Counter()
    done: set[str] = set()
    operations: list[Any] = [cast("Any", one).ok() for one in stateful.get_all_operations()]
    keep_session(tmp_path, str(tmp_path / "project"), known.session, 1_000)
    with serving_something(empty_sqlite_file, tmp_path) as served:

        def ask(case: Any) -> None:
            name = case.operation.label
            case.path_parameters = known.in_path(case.path_parameters or {})
            case.query = known.in_query(case.query or {})
            case.body = known.in_body(name, case.body)
            response = case.call(base_url=served.url, headers={"Authorization": f"Bearer {TOKEN}"})
            case.validate_response(response, excluded_checks=NOT_MEANT)
            answers[response.status_code] += 1
            if response.status_code < 300:
                done.add(name)
                known.learn(name, response.json())

        for _ in range(ROUNDS):
            for operation in operations:
                if operation.method != "delete":  # what is there stays there for the others
                    _requests_of(operation, ask)
    good = sum(number for status, number in answers.items() if status < 300)
    assert 3 * good > answers.total() >= REQUESTS * 40, answers
    assert not any(status >= 500 for status in answers), answers
    assert len(done) > len(OPERATIONS) * 2 // 3, sorted(done)


def _requests_of(operation: Any, ask: Callable[[Any], None]) -> None:
    def asked(case: Any) -> None:
        ask(case)

    given(case=operation.as_strategy())(
        settings(
            max_examples=REQUESTS,
            derandomize=QUICK,  # few requests: whose share of good answers would be a matter of chance
            phases=[Phase.generate],
            suppress_health_check=_PATIENT,
            deadline=None,
            database=None,
        )(asked)
    )()
