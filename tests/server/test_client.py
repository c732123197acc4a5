"""A client that openapi-python-client generates from the document works as it is, with its types."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast.project.settings import Settings

from .harness import Served
from .test_document import DOCUMENT, KEPT

GENERATOR = Path(sys.executable).with_name("openapi-python-client")
NAME = "holdfast_client"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("client")
    settings = folder / "settings.yaml"
    settings.write_text("post_hooks: []\n")  # no formatting: that is not what is tested
    made = subprocess.run(
        [
            *(GENERATOR, "generate", "--path", KEPT, "--output-path", folder / NAME),
            *("--meta", "none", "--config", settings, "--fail-on-warning"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout
    sys.path.insert(0, str(folder))
    yield importlib.import_module(NAME)
    sys.path.remove(str(folder))
    for name in [one for one in sys.modules if one.partition(".")[0] == NAME]:
        del sys.modules[name]


def call(name: str) -> Any:
    """`actions.pause_workflow`"""
    return importlib.import_module(f"{NAME}.api.{name}")


def model(name: str) -> Any:
    return getattr(importlib.import_module(f"{NAME}.models"), name)


def test_every_operation_and_schema_is_in_it(generated: ModuleType) -> None:
    folder = Path(str(generated.__file__)).parent
    operations = {one["operationId"] for methods in DOCUMENT["paths"].values() for one in methods.values()}
    assert {path.stem for path in (folder / "api").glob("*/*.py")} - {"__init__"} == operations
    names = set(dir(importlib.import_module(f"{NAME}.models")))
    objects = {
        name for name, schema in DOCUMENT["components"]["schemas"].items() if schema.get("type") == "object"
    }
    assert objects - names == set()


def test_it_creates_lists_pauses_and_understands_refusals(
    generated: ModuleType, served: Served, settings: Settings
) -> None:
    with generated.AuthenticatedClient(base_url=served.url, token=served.token) as client:
        use(client, settings)
    with generated.AuthenticatedClient(base_url=served.url, token="wrong") as wrong:  # noqa: S106
        assert call("workflows.list_workflows").sync(client=wrong).error.code == "unauthorised"


def use(client: Any, settings: Settings) -> None:
    plan = {"issue": {"id": "C-1", "title": "By a client"}, "tasks": [{"id": "a", "run": "true"}]}
    wanted = model("CreateWorkflow").from_dict({"plan": plan})
    create = call("workflows.create_workflow")
    made = create.sync(client=client, body=wanted, idempotency_key="once")
    assert isinstance(made, model("Workflow"))
    assert (made.issue.title, made.status, made.worktree) == (
        "By a client",
        "in_progress",
        str(settings.project),
    )
    assert create.sync(client=client, body=wanted, idempotency_key="once").id == made.id
    refused = create.sync_detailed(client=client, body=wanted)
    assert refused.status_code == 409
    assert isinstance(refused.parsed, model("ErrorResponse"))
    assert refused.parsed.error.code == "held_elsewhere"

    page = call("workflows.list_workflows").sync(client=client, limit=10)
    assert isinstance(page, model("WorkflowPage"))
    assert [one.id for one in page.workflows] == [made.id]
    tasks = call("tasks.get_tasks").sync(made.id, client=client)
    assert [(one.id, one.run, one.status) for one in tasks.tasks] == [("a", "true", "pending")]
    paused = call("actions.pause_workflow").sync(
        made.id, client=client, body=model("PauseWorkflow")(reason="Lunch", wait_seconds=30.0)
    )
    assert (paused.status, paused.workflow_id) == ("paused", made.id)
    found = call("snapshots.list_snapshots").sync(made.id, client=client)
    assert [one.trigger for one in found.snapshots] == ["pause"]
    whole = call("snapshots.get_snapshot").sync(made.id, found.snapshots[0].id, client=client)
    assert whole.pause_reason == "Lunch"
    events = call("events.list_workflow_events").sync(made.id, client=client)
    kinds = [one.entry.to_dict()["type"] for one in events.events]
    assert kinds[0] == "workflow_created"
    assert kinds[-1] == "workflow_paused"
    work = call("sessions.list_work").sync(client=client)
    assert [(one.state, one.because) for one in work.items] == [("open", "Lunch")]
    missing = call("workflows.get_workflow").sync(client=client, workflow_id="none")
    assert (missing.status, missing.error.code) == (404, "not_found")
