"""What sessions changed in files, over the API: the same as `holdfast tx`, and the same refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project.settings import Settings
from holdfast.undo.transactions import SideCar

from .harness import Served


@pytest.fixture
def project(settings: Settings) -> Path:
    folder = settings.project
    (folder / "a").write_text("".join(f"{number}\n" for number in range(30)))
    with SideCar(folder) as sidecar:
        sidecar.begin("s1", transaction_id="first")
        sidecar.watch("first")
        text = (folder / "a").read_text()
        (folder / "a").write_text("top\n" + text + "end\n")
        (folder / "made" / "deep").mkdir(parents=True)
        (folder / "made" / "deep" / "b").write_text("new\n")
        sidecar.record("first", "worked")
    return folder


def test_look_preview_undo_and_redo(served: Served, project: Path) -> None:
    (listed,) = served.get("/api/transactions")["transactions"]
    assert (listed["id"], listed["files"], listed["changes"]) == ("first", ["a", "made/deep/b"], 1)
    detail = served.get("/api/transactions/first")
    assert [one["kind"] for one in detail["entries"]] == ["begin", "change"]
    assert detail["entries"][1]["files"][1] == {"path": "made/deep/b", "kind": "added"}
    hunks = served.get("/api/transactions/first/diff")["hunks"]
    assert [(one["number"], one["path"]) for one in hunks] == [(1, "a"), (2, "a"), (3, "made/deep/b")]
    assert hunks[1]["lines"][-1] == "+end"
    before = (project / "a").read_text()

    def post(action: str, **body: object) -> dict[str, object]:
        answer = served.ask("POST", f"/api/transactions/first/{action}", body)
        assert answer.status == 200, answer
        return answer.data

    planned = post("undo", dry_run=True)
    assert (planned["restored"], planned["entry"]) == (["a", "made/deep/b"], None)
    assert (project / "a").read_text() == before
    assert post("undo", hunks=[2])["restored"] == ["a"]
    assert (project / "a").read_text() == before.removesuffix("end\n")
    assert post("redo")["restored"] == ["a"]
    assert post("undo", everything=True, files=["made/deep/b"])["restored"] == ["made/deep/b"]
    assert not (project / "made").exists()
    assert post("undo", everything=True)["restored"] == ["a"]
    assert served.get("/api/transactions/first")["status"] == "rolled-back"


def test_refusals(served: Served, project: Path) -> None:
    (project / "a").write_text("mine\n")

    def refused(method: str, path: str, body: object = None) -> tuple[int, str]:
        answer = served.ask(method, f"/api/transactions{path}", body)
        return answer.status, answer.data["error"]["message"]

    assert refused("POST", "/first/undo") == (
        409,
        "cannot be undone without losing changes: a (it has since been changed in the same places)",
    )
    assert refused("POST", "/first/undo", {"hunks": [9]}) == (404, "no such hunk: 9")
    assert refused("POST", "/first/undo", {"files": ["other"]})[0] == 404
    assert refused("POST", "/first/undo", {"change": "ch_other"})[0] == 404
    assert refused("POST", "/first/redo")[0] == 404
    assert refused("GET", "/other")[0] == 404
    assert refused("GET", f"?project={project.parent}")[0] == 404
    assert refused("GET", "?project=relative")[0] == 422
    assert refused("POST", "/first/undo", {"hunks": [True]})[0] == 422
    assert (project / "a").read_text() == "mine\n"
    assert not (project.parent / ".holdfast").exists()
    partly = served.ask("POST", "/api/transactions/first/undo", {"partial": True})
    assert (partly.data["restored"], list(partly.data["left"])) == (["made/deep/b"], ["a"])
