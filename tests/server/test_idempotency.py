"""A write that is sent twice with one key is carried out once, whatever happens in between."""

from __future__ import annotations

import contextlib
import http.client
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from cli.harness import Place
from holdfast.base.errors import StorageError
from holdfast.project.server_token import create_browser_token
from holdfast.project.settings import Settings
from holdfast.server.idempotency import KEPT_SECONDS, KeptAnswer, KeptAnswers
from holdfast.store.sql import SqlStore

from .harness import Answer, Served, serving
from .program import ServerProgram

PLAN = {"issue": {"id": "K-1", "title": "Once"}, "tasks": [{"id": "a", "run": "true"}]}
HELD = {"issue": {"id": "K-2", "title": "Held"}, "tasks": [{"id": "a", "run": "sleep 600"}]}


def create(served: Served, key: str | None, title: str = "Once", token: str = "") -> Answer:
    plan = PLAN | {"issue": {"id": "K-1", "title": title}}
    headers = {} if key is None else {"Idempotency-Key": key}
    return served.ask("POST", "/api/workflows", {"plan": plan}, headers=headers, token=token)


def workflows(served: Served) -> list[str]:
    return [one["id"] for one in served.get("/api/workflows")["workflows"]]


def test_the_same_request_again_gets_the_same_answer(served: Served) -> None:
    first = create(served, '"8e03978e-40d5-43dd-bc93-6894a57f9324"')
    again = create(served, "8e03978e-40d5-43dd-bc93-6894a57f9324")  # quotes or none
    assert (first.status, again.status, again.body) == (201, 201, first.body)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["content-type"] == first.headers["content-type"]
    assert workflows(served) == [first.data["id"]]
    conflict = create(served, "another")  # its folder holds an active workflow: the refusal is repeated, too
    assert (conflict.status, create(served, "another").body) == (409, conflict.body)
    served.ask("POST", f"/api/workflows/{first.data['id']}/cancel")
    assert create(served, "another").status == 409
    assert create(served, "a-third").status == 201


def test_a_key_belongs_to_one_request_and_one_token(served: Served, settings: Settings) -> None:
    first = create(served, "k")
    assert (create(served, "k", title="Other").status, create(served, "k", title="Other").code) == (
        422,
        "idempotency_key_reused",
    )
    moved = served.ask("POST", "/api/workflows?x=1", {"plan": PLAN}, headers={"Idempotency-Key": "k"})
    assert moved.code == "idempotency_key_reused"
    other = create_browser_token(settings.home, 0)
    assert create(served, "k", token=other).code != "idempotency_key_reused"
    assert create(served, "k", token="wrong").status == 401  # noqa: S106
    assert create(served, "k").body == first.body
    assert served.token.encode() not in (settings.home / "idempotency.db").read_bytes()


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "ü".encode().decode("latin-1")])
def test_what_is_no_key_is_refused(served: Served, key: str) -> None:
    assert create(served, key).code == "idempotency_key_invalid"
    assert workflows(served) == []


def test_reading_and_signing_in_take_no_key(served: Served) -> None:
    one = served.ask("GET", "/api/workflows", headers={"Idempotency-Key": "r"})
    create(served, None)
    assert served.ask("GET", "/api/workflows", headers={"Idempotency-Key": "r"}).body != one.body
    links = [served.ask("POST", "/api/links", headers={"Idempotency-Key": "l"}).data["link"] for _ in "12"]
    assert links[0] != links[1]


def test_what_is_no_operation_is_refused_as_that_whatever_its_key(served: Served) -> None:
    create(served, "k")
    for method, path, status in (
        ("PUT", "/api/workflows", 405),
        ("PATCH", "/api/workflows/wf_1/cancel", 405),
        ("POST", "/api/nothing", 404),
    ):
        answer = served.ask(method, path, {}, headers={"Idempotency-Key": "k"})
        assert answer.status == status, (method, path)


def test_of_many_at_once_one_is_carried_out(served: Served) -> None:
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(create(served, "race"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = [one for one in answers if one.status == 201]
    assert len({one.body for one in made}) == 1
    assert {one.code for one in answers if one.status != 201} <= {"idempotency_in_progress"}
    assert len(workflows(served)) == 1


def test_a_kill_makes_no_second_run_of_it(place: Place) -> None:
    with ServerProgram(place) as program:
        done = create(program.served(), "before")
        assert done.status == 201
        program.served().ask("POST", f"/api/workflows/{done.data['id']}/cancel")
        program.kill()
        program.start()
        served = program.served()
        assert create(served, "before").body == done.body
        assert workflows(served) == [done.data["id"]]

        held = served.ask("POST", "/api/workflows", {"plan": HELD}).data["id"]
        wait_until(lambda: served.get(f"/api/workflows/{held}/progress")["current_task_id"] == "a")
        wait = {"wait_seconds": 60}
        cut_key = {"Idempotency-Key": "cut"}
        path = f"/api/workflows/{held}/pause"
        cut = threading.Thread(target=ignoring, args=(served, path, wait, cut_key))
        cut.start()
        wait_until(lambda: requests_under_way(place.settings().home) == 1)
        assert served.ask("POST", path, wait, headers=cut_key).code == "idempotency_in_progress"
        program.kill()
        cut.join()
        program.start()
        served = program.served()
        assert served.ask("POST", path, wait, headers=cut_key).code == "idempotency_unknown"
        served.ask("POST", f"/api/workflows/{held}/cancel")


def wait_until(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not holds():
        pause.wait(0.05)


def ignoring(served: Served, path: str, body: object, headers: dict[str, str]) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        served.ask("POST", path, body, headers=headers)


def requests_under_way(home: Path) -> int:
    with closing(sqlite3.connect(home / "idempotency.db")) as database:
        return database.execute("SELECT count(*) FROM answers WHERE status IS NULL").fetchone()[0]


def test_answers_are_kept_for_a_day(tmp_path: Path) -> None:
    now = [1000.0]
    kept = KeptAnswers(tmp_path, lambda: now[0])
    assert kept.begin("k", "request") is None
    kept.finish("k", KeptAnswer(201, (("a", "b"),), b"body"))
    now[0] += KEPT_SECONDS
    assert kept.begin("k", "request") == KeptAnswer(201, (("a", "b"),), b"body")
    now[0] += 1
    assert kept.begin("k", "other") is None
    assert (tmp_path / "idempotency.db").stat().st_mode & 0o077 == 0


def test_a_damaged_file_is_named_and_nothing_is_carried_out(
    settings: Settings, sql_store: SqlStore, tmp_path: Path
) -> None:
    with serving(settings, home=tmp_path) as served:
        (settings.home / "idempotency.db").write_bytes(b"no database at all" * 100)
        refused = create(served, "k")
        assert (refused.status, refused.code) == (500, "damaged_data")
        assert "idempotency.db" in refused.data["detail"]
        assert workflows(served) == []
        assert create(served, None).status == 201
    (settings.home / "idempotency.db").unlink()
    (settings.home / "idempotency.db").mkdir()
    with pytest.raises(StorageError):
        KeptAnswers(settings.home).begin("k", "request")
    (settings.home / "idempotency.db").rmdir()
