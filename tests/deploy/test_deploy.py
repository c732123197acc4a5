"""The files in deploy/: their commands are understood, run, and do what the pages say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from cli.harness import PATIENCE, Place
from holdfast.cli.main import cli
from server.program import ServerProgram

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))


def understood(words: list[str]) -> None:
    """As click reads it, without running it."""
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    command.make_context(words[0], words[1:])


@pytest.mark.parametrize("name", sorted(set(COMPOSE["services"]) - {"db"}))
def test_the_commands_of_the_containers_are_understood(name: str) -> None:
    understood(COMPOSE["services"][name]["command"])


def test_compose_has_a_server_two_workers_and_a_database_that_only_this_machine_reaches() -> None:
    services = COMPOSE["services"]
    kinds = sorted(service["command"][0] for service in services.values() if "command" in service)
    assert kinds == ["serve", "worker", "worker"]
    assert [port for service in services.values() for port in service.get("ports", [])] == [
        "127.0.0.1:8421:8421"
    ]
    named = {volume.partition(":")[0] for service in services.values() for volume in service["volumes"]}
    assert named == set(COMPOSE["volumes"])
    assert re.search(r"^POSTGRES_PASSWORD=$", (DEPLOY / "env.example").read_text(), re.MULTILINE)


def test_the_container_has_what_its_command_needs() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    (default,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    understood(yaml.safe_load(default))
    assert "[server,postgres]" in text
    assert re.search(r"^USER holdfast$", text, re.MULTILINE)


def test_the_volumes_belong_to_who_writes_to_them() -> None:
    """A named volume takes its owner from the folder of the image, and is root's where there is none."""
    _, _, after = (DEPLOY / "Containerfile").read_text().partition("USER holdfast\nWORKDIR /home/holdfast\n")
    mounted = {
        volume.partition(":")[2]
        for name, service in COMPOSE["services"].items()
        if name != "db"
        for volume in service["volumes"]
    }
    assert (
        mounted
        == {"/home/holdfast/data"}
        == set(re.findall(r"^ENV HOLDFAST_HOME=(.*)$", after, re.MULTILINE))
    )
    assert re.search(r"^RUN mkdir -m 700 data$", after, re.MULTILINE)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_the_units_run_commands_that_there_are(unit: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
    understood(shlex.split(line)[1:])


def test_the_server_of_the_containers_and_two_workers_run_a_plan_on_postgresql(
    tmp_path: Path, postgres_url: str
) -> None:
    """The commands of compose.yaml; the port alone is another."""
    place = Place(tmp_path)
    place.environment["HOLDFAST_DB"] = postgres_url
    (place.project / "plan.yaml").write_text(
        "issue: {id: one, title: One}\ntasks:\n  - {id: a, description: A, run: echo done >> ran}\n"
    )
    options = COMPOSE["services"]["server"]["command"][1:]
    worker = [*COMPOSE["services"]["worker-1"]["command"], "--until-idle"]
    with ServerProgram(place, *options) as server:
        assert server.served().ask("GET", "/", token=None).status == 200
        started = place.run("run", "plan.yaml", "--detach", "--json")
        assert started.code == 0, started
        with ThreadPoolExecutor(2) as pool:
            assert [one.code for one in pool.map(lambda _: place.run(*worker), range(2))] == [0, 0]
        assert place.run("status", "--json").data["workflow"]["status"] == "completed"
        assert re.search(r"session_taken +by worker-\S+-\d+-\w+$", place.ok("events").out, re.MULTILINE)
    assert (place.project / "ran").read_text() == "done\n"


# ── the handover in a pull request ────────────────────────────────────────────────────────────────


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With the program on the PATH."""
    place = Place(tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    program = tools / "holdfast"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m holdfast "$@"\n')
    program.chmod(0o755)
    place.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
    return place


def script(place: Place, name: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [DEPLOY / name, *words],
        cwd=place.project,
        env={**place.environment, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_where_nothing_was_recorded_the_handover_is_empty_and_stops_no_commit(place: Place) -> None:
    done = script(place, "handover")
    assert (done.returncode, done.stdout) == (0, "")
    assert script(place, "handover", "no-such-session").returncode == 1


def test_the_handover_is_shown_and_cannot_break_out(place: Place) -> None:
    words = "Use `a` and ```b``` </details> @everybody ![x](y)"
    assert place.run("winddown", "start", "--percent", "0.9").code == 0
    place.run("winddown", "append", "user_message", "--data", f'{{"text": "{words}"}}', "--percent", "0.9")
    assert place.run("winddown", "finalize").code == 0
    done = script(place, "handover")
    assert done.returncode == 0
    first, _, *rest = done.stdout.splitlines()
    assert first == "<!-- holdfast handover -->"
    fences = [line for line in rest if re.fullmatch(r"`{4,}(text)?", line)]
    assert [fences[0].removesuffix("text"), fences[0]] == [fences[-1], f"{fences[-1]}text"]
    assert len(fences) == 2
    inside = done.stdout.partition(fences[0])[2].rpartition(fences[-1])[0]
    assert "@everybody" in inside
    assert place.run("context", "latest", "--max-chars", "20000").out.strip() == inside.strip()


def test_the_hook_writes_the_handover_and_leaves_one_that_is_current(place: Place) -> None:
    (hook,) = yaml.safe_load((DEPLOY.parent / ".pre-commit-hooks.yaml").read_text())
    program, *words = shlex.split(hook["entry"])
    assert (DEPLOY.parent / program).samefile(DEPLOY / "handover")
    place.paused("tool_call")
    assert script(place, "handover", *words).returncode == 0
    file = place.project / "HANDOVER.md"
    before = (file.read_text(), file.stat().st_mtime_ns)
    assert script(place, "handover", *words).returncode == 0
    assert (file.read_text(), file.stat().st_mtime_ns) == before


GH = """#!/bin/sh
printf '%s\\n' "$*" >>"$CALLS"
case "$*" in *--paginate*) printf '%s' "$FOUND" ;; esac
"""


@pytest.mark.parametrize(
    ("found", "last"),
    [
        ("", "api --method POST repos/ada/door/issues/7/comments --field body=@HANDOVER.md"),
        ("42\n43\n", "api --method PATCH repos/ada/door/issues/comments/42 --field body=@HANDOVER.md"),
    ],
)
def test_the_action_keeps_one_comment(place: Place, tmp_path: Path, found: str, last: str) -> None:
    gh = tmp_path / "tools" / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    calls = tmp_path / "calls"
    given = {"CALLS": str(calls), "FOUND": found, **ACTION}
    place.paused("tool_call")
    assert script(place, "handover", "--output", "HANDOVER.md").returncode == 0
    done = script(place, "github/comment", **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert calls.read_text().splitlines()[-1] == last


ACTION = {"HANDOVER": "HANDOVER.md", "PULL_REQUEST": "7", "REPOSITORY": "ada/door"}


def test_the_action_posts_no_file_but_a_handover(place: Place, tmp_path: Path) -> None:
    gh = tmp_path / "tools" / "gh"
    gh.write_text(GH)
    gh.chmod(0o755)
    calls = tmp_path / "calls"
    given = {"CALLS": str(calls), "FOUND": "", **ACTION}
    file = place.project / "HANDOVER.md"
    assert script(place, "github/comment", **given).returncode == 0  # there is none
    file.write_text("the password is hinge\n")
    assert script(place, "github/comment", **given).returncode == 1
    file.write_text("<!-- holdfast handover -->\n" + "x" * 60_000)
    assert script(place, "github/comment", **given).returncode == 1
    file.unlink()
    (place.project / "secret").write_text("<!-- holdfast handover -->\n")
    file.symlink_to("secret")
    assert script(place, "github/comment", **given).returncode == 0
    assert not calls.exists()


def test_the_action_runs_the_script_with_what_it_needs() -> None:
    action: Any = yaml.safe_load((DEPLOY / "github/action.yml").read_text())
    (step,) = action["runs"]["steps"]
    assert step["run"].endswith("/comment")
    assert set(ACTION) | {"GH_TOKEN"} == set(step["env"])
    assert shutil.which(str(DEPLOY / "github/comment"))
