"""Many requests made from the document itself: no 5xx, and no answer that it does not describe."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import positive_data_acceptance

from holdfast.project.settings import load_settings
from holdfast.store.sql import SqlStore
from soak import QUICK, repeated
from store.samples import ONE_OF_EACH, full_snapshot, full_workflow, new, snapshot, workflow

from .harness import TOKEN, Served, serving
from .test_document import DOCUMENT

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
    folder = tmp_path_factory.mktemp("schema")
    project = folder / "project"
    project.mkdir()
    database = folder / "holdfast.db"
    shutil.copy(empty_sqlite_file, database)
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
