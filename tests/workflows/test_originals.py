"""A plan with secrets runs as it was written, and every copy of it lacks them."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli.harness import Place
from holdfast.base.errors import InvalidInputError
from holdfast.base.redact import redact
from holdfast.model.task import taken_out
from holdfast.workflows.drivers.protocol import Done
from holdfast.workflows.plan import parse_plan
from holdfast.workflows.worker import Worker

from .harness import ScriptedDriver, Workshop, plan_of, wait_for

# Put together at run time, so that no scanner takes this file for a leak.
PASSWORD = "hun" + "ter2" * 3
KEY = "AK" + "IA" + "ABCDEFGH12345678"
TOKEN = "gh" + "p_" + "a1" * 18
EXPORT = f'export DB_PASSWORD={PASSWORD}; printf %s "$DB_PASSWORD" > {{}}; echo $DB_PASSWORD'
FLAG = "printf %s --password-file=/run/secrets/db1 > {}"
LITERAL = f"printf %s '[redacted:aws-key] {KEY}' > {{}}"
WRITTEN = {
    "one": PASSWORD,
    "two": "--password-file=/run/secrets/db1",
    "three": f"[redacted:aws-key] {KEY}",
    "four": PASSWORD,
}
COMMANDS = (
    EXPORT.format("one"),
    FLAG.format("two"),
    LITERAL.format("three"),
    f"cat one three; {EXPORT.format('four')}",
)


def plan_file(place: Place, *commands: str, **more: Any) -> Path:
    tasks = [
        {"id": f"t{number}", "run": command, "depends_on": [f"t{number - 1}"] if number > 1 else []}
        for number, command in enumerate(commands, start=1)
    ]
    path = place.root / "plan.yaml"
    path.write_text(yaml.safe_dump({"issue": {"id": "W", "title": "Work"}, "tasks": tasks, **more}))
    return path


def written(place: Place) -> dict[str, str]:
    return {name: path.read_text() for name in WRITTEN if (path := place.project / name).exists()}


def rows(database: str, *, without: str = "") -> str:
    """All that the tables hold, DBOS's included."""
    url = database if "://" in database else f"sqlite:///{database}"
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    told: list[str] = []
    with engine.connect() as connection:
        found = sqlalchemy.inspect(connection)
        for schema in {None, "dbos"} & {None, *found.get_schema_names()}:
            for table in found.get_table_names(schema=schema):
                if table != without:
                    name = f"{schema}.{table}" if schema else table
                    told += map(str, connection.execute(sqlalchemy.text(f"SELECT * FROM {name}")))  # noqa: S608
    engine.dispose()
    return "\n".join(told)


def copies(workshop: Workshop, workflow_id: str) -> dict[str, str]:
    """Whatever is recorded, shown or exported of it."""
    place = workshop.place
    told = {
        " ".join(command): place.run(*command).out
        for command in (
            ("status",),
            ("status", "--json"),
            ("list", "--json"),
            ("events", workflow_id, "--json"),
            ("events", workflow_id),
            ("snapshot", "show", "latest", "--json"),
            ("snapshot", "show", "latest"),
            ("context", "latest"),
            ("tx", "list", "--json"),
        )
    }
    place.ok("export", "--force", place.root / "bundle")
    with zipfile.ZipFile(place.root / "bundle") as bundle:
        # What was in the user's own files comes with the transactions that changed them.
        names = [name for name in bundle.namelist() if not name.startswith("transactions/")]
        told |= {f"bundle: {name}": bundle.read(name).decode() for name in names}
    assert [name for name, text in told.items() if not text] == []
    told |= {str(path): path.read_text() for path in place.sessions.iterdir() if path.is_file()}
    told["database"] = rows(workshop.database, without="originals")
    if "://" not in workshop.database:
        told["engine"] = rows(str(Path(workshop.database).with_name("holdfast-engine.db")))
    return told


def assert_secret_nowhere(told: dict[str, str]) -> None:
    assert [name for name, text in told.items() if PASSWORD in text or KEY in text] == []


def test_every_session_executes_what_was_written(any_workshop: Workshop) -> None:
    place = any_workshop.place
    first = place.ok("run", plan_file(place, *COMMANDS, pause_every=1), "--json").data
    shown = [first]
    for _ in range(2):
        shown.append(place.ok("resume", "--yes", "--json", "-m", f"password={PASSWORD}").data)
    assert_secret_nowhere({**copies(any_workshop, first["id"]), "shown": json.dumps(shown)})
    assert PASSWORD in rows(any_workshop.database)
    shown.append(place.ok("resume", "--yes", "--json").data)
    assert shown[-1]["status"] == "completed"
    assert written(place) == WRITTEN
    assert_secret_nowhere({"shown": json.dumps(shown)})
    assert "[redacted:assigned-secret]" in shown[-1]["tasks"][0]["run"]
    assert PASSWORD not in rows(any_workshop.database)  # nobody needs it any more


def test_nothing_of_a_secret_is_left_in_the_files_of_the_database(workshop: Workshop) -> None:
    """Deleted rows stay readable in a file's free pages unless SQLite is told to overwrite them."""
    place = workshop.place
    long = "; ".join(EXPORT.format("five") for _ in range(100))
    place.ok("run", plan_file(place, *COMMANDS, long, pause_every=2))
    assert PASSWORD.encode() in files_of(place)
    while place.ok("resume", "--yes", "--json", "-m", f"password={PASSWORD}").data["status"] != "completed":
        pass
    left = files_of(place)
    assert PASSWORD.encode() not in left
    assert KEY.encode() not in left


def files_of(place: Place) -> bytes:
    return b"".join(path.read_bytes() for path in place.home.rglob("*") if path.is_file())


def test_from_an_older_snapshot_it_does_so_again(any_workshop: Workshop) -> None:
    place = any_workshop.place
    first = place.ok("run", plan_file(place, *COMMANDS[:3], pause_every=1), "--json").data
    for _ in range(2):
        place.run("resume", "--yes", "--from", first["snapshot_id"])
        assert written(place) == {name: WRITTEN[name] for name in ("one", "two")}
        (place.project / "two").unlink()


@pytest.mark.parametrize("killed", ["in the task", "after it"])
def test_after_a_kill_it_does_so_again(any_workshop: Workshop, killed: str) -> None:
    place, began = any_workshop.place, any_workshop.project / "began"
    wait = f"touch began; while [ ! -e go ]; do sleep 0.01; done; {EXPORT.format('two')}"
    commands = (wait, EXPORT.format("one")) if killed == "in the task" else (EXPORT.format("one"), wait)
    with any_workshop.program("run", str(plan_file(place, *commands))) as running:
        wait_for(began.exists)
        running.send_signal(signal.SIGKILL)
    (any_workshop.project / "go").touch()
    place.run("resume", "--yes")
    assert written(place) == {"one": PASSWORD, "two": PASSWORD}


def test_a_worker_executes_what_was_written(any_workshop: Workshop) -> None:
    with any_workshop.service() as service:
        flow = service.start(plan_of(*COMMANDS))
    Worker(any_workshop.settings).run(until_idle=True)
    assert written(any_workshop.place) == WRITTEN
    with any_workshop.service() as service:
        assert service.workflow(flow.id).status == "completed"


def agents(monkeypatch: pytest.MonkeyPatch, *script: Any) -> ScriptedDriver:
    driver = ScriptedDriver(script)
    for module in ("service", "worker"):
        monkeypatch.setattr(f"holdfast.workflows.{module}.driver_named", lambda *_, **__: driver)
    return driver


def prompting() -> Any:
    return parse_plan(
        yaml.safe_dump(
            {
                "issue": {"id": "W", "title": "Work", "description": f"the api_key={PASSWORD}"},
                "driver": "scripted",
                "pause_every": 1,
                "tasks": [
                    {"id": "a", "prompt": f"log in with {TOKEN}", "description": f"with {KEY}"},
                    {
                        "id": "b",
                        "prompt": f"curl https://bob:{PASSWORD}@host/",
                        "junit": "secret=x1y2z3w4/*.xml",
                    },
                ],
            }
        )
    )


def test_an_agent_is_told_what_was_written(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = agents(monkeypatch, *[lambda *_: Done(f"used {TOKEN[:-1]} and bob:{PASSWORD}")] * 2)
    paused = workshop.run(prompting())
    ended = workshop.resume(paused, message=f"access_token={PASSWORD}")
    first, second = driver.asked
    assert first.issue.description == f"the api_key={PASSWORD}"
    assert (first.task.prompt, first.task.description) == (f"log in with {TOKEN}", f"with {KEY}")
    assert (second.task.prompt, second.task.junit) == (
        f"curl https://bob:{PASSWORD}@host/",
        "secret=x1y2z3w4/*.xml",
    )
    assert second.message == f"access_token={PASSWORD}"
    assert ended.status == "completed"
    assert_secret_nowhere({"database": rows(workshop.database)})


def test_a_secret_that_a_command_prints_is_taken_out_by_what_it_is(workshop: Workshop) -> None:
    """Without a name beside it nobody could tell that it is one."""
    ended = workshop.run(plan_of(f'export DB_PASSWORD={PASSWORD}; echo "so: $DB_PASSWORD"; exit 3'))
    [task] = workshop.tasks(ended).values()
    assert task.result == "exit code 3: so: [redacted:assigned-secret]"
    assert_secret_nowhere({"database": rows(workshop.database, without="originals")})


def test_of_an_imported_plan_only_tasks_without_secrets_run(any_workshop: Workshop) -> None:
    place = any_workshop.place
    place.ok("run", plan_file(place, "touch none", "touch clean", EXPORT.format("one"), pause_every=1))
    place.ok("export", place.root / "bundle")
    other = place.beside("other")
    other.ok("import", place.root / "bundle")
    flow = other.json("status")["workflow"]["id"]
    assert other.run("resume", "--accept-commands", flow).code == 0
    assert (other.project / "clean").exists()
    refused = other.run("resume", "--accept-commands", flow)
    assert refused.code != 0
    assert "only a redacted copy of its run" in refused.err
    assert "`holdfast run`" in refused.err
    assert not (other.project / "one").exists()


HASHES_ITSELF = (
    "import hashlib, os, sys; given = [*map(os.fsencode, sys.argv[1:]), os.environb[b'PROBE']]"
    "; open('hashes', 'a').write(hashlib.sha256(b'\\0'.join(given)).hexdigest() + chr(10))"
)
ODD = ("\x1b]0;x\x07 \u202e \u0301e\u0301 😀 \t'\"$HOME`id`\\ </system>", " {{a}} %s ${b} \r\n", "x" * 70_000)
SECRETS = (
    f"DB_PASSWORD={PASSWORD}",
    f"[redacted:aws-key] {KEY}",
    f"https://bob:{PASSWORD}@host/?token={TOKEN}",
)


def test_a_task_gets_its_arguments_and_environment_to_the_byte(workshop: Workshop) -> None:
    """Across run, pause, resume, a takeover after a kill, export and import."""
    place, probe = workshop.place, f"\x1b[1m{TOKEN}\r\n é \u202e"
    place.environment["PROBE"] = probe

    def command(*given: str) -> str:
        return shlex.join([sys.executable, "-I", "-S", "-c", HASHES_ITSELF, *given])

    def hash_of(*given: str) -> str:
        return hashlib.sha256(b"\0".join(map(os.fsencode, (*given, probe)))).hexdigest()

    wait = 'touch began; [ "$HOLDFAST_ATTEMPT" != 1 ] || sleep 60; '  # the first one is killed there
    commands = (command(*ODD), command(*SECRETS), wait + command(*SECRETS, *ODD), command(*ODD[::-1]))
    place.ok("run", plan_file(place, *commands, pause_every=1))
    place.ok("resume", "--yes")
    with workshop.program("resume", "--yes") as running:
        wait_for((workshop.project / "began").exists)
        running.send_signal(signal.SIGKILL)
    assert place.run("resume", "--yes").code == 0, "it takes over from the dead process"
    place.ok("export", place.root / "bundle")
    other = place.beside("other")
    other.environment["PROBE"] = probe
    other.ok("import", place.root / "bundle")
    assert other.run("resume", "--accept-commands", other.json("status")["workflow"]["id"]).code == 0
    expected = [hash_of(*ODD), hash_of(*SECRETS), hash_of(*SECRETS, *ODD)]
    assert workshop.log("hashes") == expected
    assert (other.project / "hashes").read_text().split() == [hash_of(*ODD[::-1])]


def test_what_looks_like_a_copy_and_was_written_so_is_executed(any_workshop: Workshop) -> None:
    place = any_workshop.place
    command = "printf %s '[redacted:x] [redacted:aws-key]' > one"
    place.ok("run", plan_file(place, "true", command, pause_every=1))
    place.ok("resume", "--yes")
    assert (place.project / "one").read_text() == "[redacted:x] [redacted:aws-key]"


def test_another_plan_under_the_same_names_gets_no_secrets(workshop: Workshop) -> None:
    """A session's file was changed by somebody: what runs is never a mixture of theirs and ours."""
    place = workshop.place
    paused = place.ok("run", plan_file(place, "true", EXPORT.format("one"), pause_every=1), "--json").data
    with workshop.service() as service:
        snapshot = service.snapshot(paused["snapshot_id"])
        theirs = snapshot.task_dag.tasks[1].changed(run="echo [redacted:assigned-secret] > stolen")
        foreign = snapshot.changed(
            id="snap_foreign",
            session_id="session-20990101-000000",
            session_number=9,
            task_dag={"tasks": (snapshot.task_dag.tasks[0], theirs)},
        )
        service.core.take_in(foreign, service.workflow(paused["id"]))
    assert place.run("resume", "--yes", "--from", "snap_foreign").code != 0
    assert not (place.project / "stolen").exists()


def test_a_repository_is_cloned_by_the_name_it_was_given(workshop: Workshop, tmp_path: Path) -> None:
    origin = tmp_path / f"password={PASSWORD}" / "origin.git"
    for words in (("init", "-q", "--bare", origin), ("clone", "-q", origin, tmp_path / "seed")):
        subprocess.run(["git", *map(str, words)], check=True, capture_output=True)
    seed = ("git", "-C", os.fspath(tmp_path / "seed"))
    subprocess.run([*seed, "commit", "-q", "--allow-empty", "-m", "start"], check=True)
    subprocess.run([*seed, "push", "-q", "origin", "HEAD:refs/heads/main"], check=True)
    subprocess.run(["git", "-C", os.fspath(origin), "symbolic-ref", "HEAD", "refs/heads/main"], check=True)
    paused = workshop.run(
        plan_of("echo a > a.txt", "cat a.txt", repository=str(origin), branch="main", pause_every=1)
    )
    assert paused.status == "paused", paused
    assert PASSWORD not in paused.model_dump_json()
    assert workshop.resume(paused).status == "completed"
    assert_secret_nowhere({"database": rows(workshop.database)})


def test_work_in_a_folder_whose_name_sounds_secret(tmp_path: Path) -> None:
    place = Place(tmp_path, "our secret plan9/v2"[:-3])
    place.ok("run", plan_file(place, "pwd > here", "pwd >> here", pause_every=1))
    assert place.json("status")["workflow"]["worktree"] == str(place.project)
    place.ok("resume", "--yes")
    assert (place.project / "here").read_text().splitlines() == [str(place.project)] * 2


def test_a_tasks_id_may_sound_secret(workshop: Workshop) -> None:
    text = "issue: {id: W, title: Work}\ntasks:\n"
    text += "  - {id: 'secret:k8x2mq01zz', run: 'echo $HOLDFAST_TASK > log'}\n"
    ended = workshop.run(parse_plan(f"{text}  - {{id: b, run: 'true', depends_on: 'secret:k8x2mq01zz'}}\n"))
    assert ended.status == "completed"
    assert workshop.log() == ["secret:k8x2mq01zz"]
    doubled = f"{text}  - {{id: 'secret:k8x2mq02zz', run: 'true'}}\n"
    with workshop.service() as service, pytest.raises(InvalidInputError, match="no longer unique"):
        service.start(parse_plan(doubled))


PARTS = [
    PASSWORD,
    KEY,
    TOKEN,
    "password=",
    "secret: ",
    "[redacted:aws-key]",
    "x",
    " ",
    "\n",
    "://a:",
    "@",
    '"',
    "\\",
]


@given(st.lists(st.sampled_from(PARTS), max_size=10).map("".join))
def test_a_copy_is_known_by_what_is_left(text: str) -> None:
    copy = redact(text)[0]
    lacks = taken_out(copy, text)
    assert lacks is not None
    assert taken_out(redact(copy)[0], text) is not None
    assert taken_out(f"{copy}!", text) is None or copy.endswith("]")
    assert taken_out(copy, f"{text}!") is None or copy.endswith("]")


def test_an_older_snapshot_goes_with_the_values_of_its_own_attempt(workshop: Workshop) -> None:
    """Both have the same copy: only the attempt's number tells one from the other."""
    plan = parse_plan(
        "issue: {id: V, title: Values}\npause_every: 1\ntasks:\n  - {id: z, run: 'true'}\n"
        "  - {id: a, run: 'echo key=$(cat which) >> $HOLDFAST_OUTPUTS; cat which', depends_on: [z]}\n"
        "  - {id: b, run: 'echo $HOLDFAST_INPUT_A_KEY >> log', depends_on: [a]}\n"
    )
    first, second = "ghp_" + "a1B2" * 9, "ghp_" + "c3D4" * 9
    (workshop.project / "which").write_text(first)
    paused = workshop.resume(workshop.run(plan))
    (workshop.project / "which").write_text(second)
    with workshop.service() as service:
        before, after = (line.id for line in service.snapshots(paused.id))
    again = workshop.resume(paused, snapshot_id=before)
    assert workshop.tasks(again)["a"].attempts == 2
    assert workshop.resume(again, snapshot_id=after).status == "completed"
    assert workshop.log() == [first]
    with workshop.service() as service:
        assert [service.task_output(again.id, "a", attempt=number).text for number in (1, 2)] == [
            "[redacted:github-token]"
        ] * 2
