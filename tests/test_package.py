"""What `python -m build` and `pip install` make of a clone: never a package without the dashboard."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import threading
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from playwright.sync_api import expect

from cli.harness import PATIENCE, PROGRAM, Place
from cli.terminal import Terminal
from cli.test_context import session_file
from cli.test_enrichment import with_model
from e2e.browser import chromium
from findings.scripted_model import ScriptedModel, says
from holdfast.base.errors import MissingExtraError
from holdfast.cli.main import COMMANDS
from server.program import ServerProgram
from workflows.test_tracing import Collector

ROOT = Path(__file__).parents[1]
STATIC = Path("src/holdfast/server/static")
PAGE = STATIC / "index.html"

NPM = f"""#!/bin/sh
echo "$@" >>"$0.log"
[ "$1" = run ] || exit 0
mkdir -p ../{STATIC} && echo built >../{PAGE}
"""
"""In place of the real one, which `make test` has run by now."""


def clone(folder: Path, *, has_dashboard: bool = True) -> Path:
    """A copy of this one; the dashboard's files are newer than their sources, as if just built."""
    left_out = shutil.ignore_patterns("__pycache__", "node_modules", *([] if has_dashboard else ["static"]))
    for name in ("dashboard", "scripts", "src", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=left_out, copy_function=shutil.copy)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    return folder


def python(folder: Path, *arguments: str, tools: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PATH": tools},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def build(folder: Path, target: str, *, tools: str) -> subprocess.CompletedProcess[str]:
    return python(folder, "-m", "hatchling", "build", "--target", target, tools=tools)


def built(folder: Path, target: str, *, tools: str) -> Path:
    result = build(folder, target, tools=tools)
    assert result.returncode == 0, result.stderr
    (made,) = (folder / "dist").iterdir()
    return made


@pytest.fixture
def no_tools(tmp_path: Path) -> str:
    """A PATH without Node."""
    folder = tmp_path / "no-tools"
    folder.mkdir()
    return str(folder)


@pytest.mark.whole_sample
def test_an_installed_package_serves_the_dashboard(tmp_path: Path, no_tools: str) -> None:
    assert (ROOT / PAGE).is_file(), "`make dashboard` builds what is packaged here"
    program = installed(wheel_by_way_of_sdist(tmp_path, no_tools), tmp_path / "venv")
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]  # nothing from this clone
    with ServerProgram(place, "--no-worker", program=[str(program)]) as server:
        page = server.served().ask("GET", "/", token=None)
        assert (page.status, page.body) == (200, (ROOT / PAGE).read_bytes())
        assert re.search(rb'src="/assets/[^"]+\.js"', page.body)
        for path in (ROOT / STATIC).rglob("*.*"):
            name = path.relative_to(ROOT / STATIC).as_posix()
            answer = server.served().ask("GET", f"/{name}", token=None)
            assert (answer.status, answer.body) == (200, path.read_bytes()), name
        with chromium() as browser:
            page = browser.new_page()
            page.goto(server.link)
            expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible(timeout=60_000)
            assert page.url == f"{server.url.removesuffix('/api')}/"


def wheel_by_way_of_sdist(tmp_path: Path, no_tools: str) -> Path:
    """As `python -m build` makes it, without Node: nothing is built twice."""
    sdist = built(clone(tmp_path / "clone"), "sdist", tools=no_tools)
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert not (unpacked / "dashboard").exists()
    return built(unpacked, "wheel", tools=no_tools)


def installed(wheel: Path, folder: Path) -> Path:
    """The program of a wheel in an environment that borrows the dependencies of this one."""
    venv.create(folder, symlinks=True)
    its_python = folder / "bin" / "python"
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", str(its_python), "install"]
    subprocess.run([*pip, *options, str(wheel)], check=True, timeout=PATIENCE)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    where = subprocess.check_output(
        [its_python, "-c", "import holdfast; print(holdfast.__file__)"], cwd=folder, text=True
    )
    assert Path(where.strip()).is_relative_to(packages)
    return folder / "bin" / "holdfast"


def test_an_installed_package_has_the_man_page(tmp_path: Path, no_tools: str) -> None:
    program = installed(wheel_by_way_of_sdist(tmp_path, no_tools), tmp_path / "venv")
    page = program.parents[1] / "share/man/man1/holdfast.1"  # where `man` looks for what is in this bin/
    manual = page.read_text()
    assert manual.startswith(".TH HOLDFAST 1")
    assert [name for name in COMMANDS if f'.SH "HOLDFAST {name.upper()}"' not in manual] == []


def test_the_man_page_is_made_with_click_alone(tmp_path: Path) -> None:
    """No dependency of the program is asked for where a wheel is built."""
    build_needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert [Requirement(line).name for line in build_needs] == ["click", "hatchling"]
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "click").symlink_to(Path(str(distribution("click").locate_file("click"))))
    made = subprocess.run(
        [tmp_path / "venv/bin/python", "-B", ROOT / "scripts/reference.py", tmp_path / "man"],
        env={"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "20"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert max(map(len, (tmp_path / "man/holdfast.1").read_text().splitlines())) > 60


@pytest.mark.some_of("target", "state", number=2)
@pytest.mark.parametrize("target", ["sdist", "wheel"])
@pytest.mark.parametrize("state", ["missing", "outdated"])
def test_a_build_that_cannot_make_the_dashboard_says_what_it_needs(
    tmp_path: Path, no_tools: str, target: str, state: str
) -> None:
    folder = clone(tmp_path / "clone", has_dashboard=state == "outdated")
    if state == "outdated":
        os.utime(folder / PAGE, (0, 0))
    result = build(folder, target, tools=no_tools)
    assert result.returncode == 1
    assert re.search(r"^error: .*dashboard.*node.*npm\nhint: .*Node 20", result.stderr, re.MULTILINE)
    assert "Traceback" not in result.stderr
    assert not list((folder / "dist").glob("*"))


def test_a_copy_with_neither_the_dashboard_nor_its_sources_is_no_package(
    tmp_path: Path, no_tools: str
) -> None:
    folder = clone(tmp_path / "clone", has_dashboard=False)
    shutil.rmtree(folder / "dashboard")
    result = build(folder, "wheel", tools=no_tools)
    assert result.returncode == 1
    assert "error: the dashboard is not in this copy\nhint: " in result.stderr


def test_a_missing_dashboard_is_built(tmp_path: Path) -> None:
    folder = clone(tmp_path / "clone", has_dashboard=False)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in {"node": "#!/bin/sh\n", "npm": NPM}.items():
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    (folder / "dashboard/node_modules").mkdir()  # as `npm ci` would
    wheel = built(folder, "wheel", tools=f"{tools}:{os.environ['PATH']}")
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read("holdfast/server/static/index.html") == b"built\n"
    calls = (tools / "npm.log").read_text().splitlines()
    assert [call.split(" --")[0] for call in calls] == ["ci", "run"]


def test_a_clone_works_without_node_and_says_how_to_get_the_dashboard(tmp_path: Path, no_tools: str) -> None:
    folder = clone(tmp_path / "clone", has_dashboard=False)
    made = python(folder, "-c", "import hatchling.build as b; b.build_editable('.')", tools=no_tools)
    assert made.returncode == 0, made.stderr
    place = Place(tmp_path)
    server = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0", "--no-worker"],
        cwd=place.project,
        env={**place.environment, "PYTHONPATH": str(folder / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    said = [server.stdout.readline() for _ in range(3)]
    server.terminate()
    server.communicate(timeout=PATIENCE)
    assert said[0] == "Dashboard: not included in this build; in a clone, run `make dashboard`\n"
    assert said[1].startswith("API:       http://127.0.0.1:")
    assert "token" not in "".join(said)


def requirements(found: Distribution, extras: tuple[str, ...]) -> Iterator[Distribution]:
    """What pip would install for it beside itself, by its own account."""
    for line in found.requires or ():
        wanted = Requirement(line)
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            needed = distribution(wanted.name)
            yield needed
            yield from requirements(needed, tuple(wanted.extras))


def packages(*extras: str) -> dict[str, Distribution]:
    return {found.name: found for found in requirements(distribution("holdfast"), extras)}


def environment_of(folder: Path, *extras: str) -> list[str]:
    """The program in an environment with just what `pip install holdfast[EXTRAS]` brings."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "holdfast.pth").write_text(str(ROOT / "src"))
    for found in packages(*extras).values():
        for top in {file.parts[0] for file in found.files or () if ".." not in file.parts}:
            origin = Path(str(found.locate_file(top)))
            if origin.name != "__pycache__" and not (site / top).exists():
                (site / top).symlink_to(origin)
    return [str(folder / "bin" / "python"), "-m", "holdfast"]


MEGABYTE = 1_000_000


def unpacked(found: Distribution) -> int:
    """Bytes of what its wheel holds; the bytecode that an installer may compile is not counted."""
    files = (Path(str(found.locate_file(file))) for file in found.files or () if file.suffix != ".pyc")
    return sum(file.stat().st_size for file in files if file.is_file())


def own_files() -> int:
    """Of the package as it is installed: of this clone only a link is."""
    files = (file for file in (ROOT / "src").rglob("*") if file.is_file() and file.suffix != ".pyc")
    return sum(file.stat().st_size for file in files)


def test_the_base_is_small() -> None:
    found = packages()
    assert len({"holdfast", *found}) <= 16
    assert own_files() + sum(map(unpacked, found.values())) <= 40 * MEGABYTE


FRAMEWORKS = {"langgraph", "openai-agents"}
"""Adapters to what a program is built on; nobody wants all of these."""


def test_every_extra_is_part_of_all() -> None:
    extras = set(distribution("holdfast").metadata.get_all("Provides-Extra") or ()) - FRAMEWORKS
    assert packages("all").keys() == packages(*extras).keys()


def test_the_base_does_what_one_person_needs(tmp_path: Path) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "venv")
    for line in (
        ["winddown", "start", "--percent", "0.9"],
        ["winddown", "append", "tool_call", "--data", '{"tool": "Read"}', "--percent", "0.91"],
        ["winddown", "finalize"],
        ["context", "latest"],
        ["status"],
        [],
        ["list"],
        ["tx", "list"],
        ["sessions", "list"],
        ["doctor"],
        ["install", "claude-code", "--dry-run"],
        ["export", "out.bundle"],
    ):
        done = place.run(*line)
        assert done.code == 0, (line, done.err)


SOURCE = "def f(x):\n    return x\n"
PLAN = "issue: {id: one, title: One}\ntasks:\n  - {id: a, description: A, run: touch done}\n"
ASKS_FOR = {
    "docs": (["docs", "audit", "--json", "a.py"], '"f"'),
    "encryption": (["export", "--encrypt", "out.bundle"], "out.bundle"),
    "sqlite": (["winddown", "start", "--percent", "0.9"], "Wind-down started"),
    "workflows": (["run", "plan.yaml"], "Workflow completed"),
}


@pytest.mark.some_of("extra", number=2)
@pytest.mark.parametrize("extra", ASKS_FOR)
def test_an_extra_brings_all_that_its_commands_need(tmp_path: Path, extra: str) -> None:
    """In an environment with the base and this extra alone."""
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "venv", extra)
    (place.project / "a.py").write_text(SOURCE)
    (place.project / "plan.yaml").write_text(PLAN)
    place.environment["HOLDFAST_PASSPHRASE"] = "door hinge"  # noqa: S105 - of this test
    line, told = ASKS_FOR[extra]
    if extra == "encryption":
        place.paused("tool_call")  # there is something to export
    done = place.run(*line)
    assert (done.code, told in done.out) == (0, True), done


@pytest.mark.some_of("extra")
@pytest.mark.parametrize("extra", ["langgraph", "pydantic-ai"])
def test_the_extra_for_a_framework_runs_its_example(tmp_path: Path, extra: str) -> None:
    """The third, openai-agents, is not in the environment that these borrow from."""
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    its_python, *_ = environment_of(tmp_path / "venv", extra)
    example = ROOT / "examples" / "adapters" / f"with_{extra.replace('-', '_')}.py"
    done = subprocess.run(
        [its_python, str(example)],
        cwd=place.project,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr, "session-" in done.stdout) == (0, "", True)


def test_the_extra_for_mcp_answers_an_agent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    done = subprocess.run(
        [*environment_of(tmp_path / "venv", "mcp"), "mcp"],
        cwd=place.project,
        env=place.environment,
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "holdfast", done.stderr


def test_the_extra_for_notifications_sends_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "venv", "notifications")
    received: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        place.environment["HOLDFAST_NOTIFY"] = f"json://127.0.0.1:{server.server_port}/"
        listening = threading.Thread(target=server.serve_forever)
        listening.start()
        done = place.run("doctor", "--notify")
        server.shutdown()
        listening.join()
    assert (done.code, len(received)) == (0, 1), done
    assert b"Holdfast" in received[0]


def test_the_extra_for_postgresql_keeps_sessions_there(tmp_path: Path, postgres_url: str) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.environment["HOLDFAST_DB"] = postgres_url
    place.program = environment_of(tmp_path / "venv", "postgres")
    place.ok("winddown", "start", "--percent", "0.9")
    place.ok("winddown", "append", "tool_call", "--data", '{"tool": "Read"}', "--percent", "0.91")
    place.ok("winddown", "finalize", "--reason", "lunch")
    assert [one["pause_reason"] for one in place.json("list")] == ["lunch"]
    assert not place.database.exists()


def test_the_extra_for_watching_shows_the_screen(tmp_path: Path) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "venv", "watch")
    place.paused("tool_call", reason="lunch")
    with Terminal(place, "watch") as terminal:
        terminal.wait("OPEN THREAD")
        terminal.wait("lunch")
        terminal.type("q")
        assert terminal.end() == 0


def test_the_extra_for_models_asks_one(tmp_path: Path) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "venv", "models")
    talk = session_file(place, "claude-code")
    place.started("tool_call")
    with ScriptedModel(says({"decisions": [], "errors": []})).running() as model:
        place.ok("winddown", "finalize", "--transcript", talk, env=with_model(model.base_url))
        assert len(model.requests) == 1


def test_the_extra_for_telemetry_sends_spans(tmp_path: Path) -> None:
    """Of a run, which is another extra's."""
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "venv", "telemetry", "workflows")
    (place.project / "plan.yaml").write_text(PLAN)
    with closing(Collector()) as collector:
        place.ok("run", "plan.yaml", env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint})
        assert len(collector.named("invoke_workflow")) == 1


def test_the_extra_for_the_server_serves(tmp_path: Path) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    program = environment_of(tmp_path / "venv", "server")
    with ServerProgram(place, "--no-worker", program=program) as server:
        assert server.served().ask("GET", "/", token=None).status == 200


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("/home/ada/.local/share/uv/tools/holdfast", "uv tool install --force '"),
        ("/home/ada/.local/share/pipx/venvs/holdfast", "pipx install --force '"),
        ("/home/ada/project/.venv", "pip install 'holdfast[watch]'"),
    ],
)
def test_the_hint_is_for_the_tool_that_installed_it(
    monkeypatch: pytest.MonkeyPatch, prefix: str, told: str
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    assert (MissingExtraError("watch", "textual").hint or "").startswith(told)


def test_the_hint_names_the_file_it_was_installed_from_and_keeps_its_extras(tmp_path: Path) -> None:
    """The name alone would install another project's package; a tool's environment is made anew each time."""
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    folder = tmp_path / "uv" / "tools" / "holdfast"
    place.program = environment_of(folder, "encryption")
    (site,) = folder.glob("lib/python*/site-packages")
    wheel = tmp_path / "my files" / "holdfast-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    noted = site / "holdfast-0.1.0.dist-info"
    noted.mkdir()
    (noted / "METADATA").write_text("Metadata-Version: 2.4\nName: holdfast\nVersion: 0.1.0\n")
    (noted / "direct_url.json").write_text(json.dumps({"url": wheel.as_uri(), "archive_info": {}}))
    command = f"uv tool install --force '{wheel}[encryption,watch]'"
    assert place.run("watch").err.splitlines()[1] == f"hint: {command}"
    assert "'[encryption,mcp]'" in place.ok("install", "claude-code").out.replace(str(wheel), "")
    wheel.unlink()
    assert "'PACKAGE[encryption,watch]', where PACKAGE is" in place.run("watch").err


def test_a_copy_that_uvx_made_for_once_is_not_installed_in_an_agent(tmp_path: Path) -> None:
    """Its folder may be removed at any time, and the hooks would do nothing from then on."""
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "cache" / "archive-v0" / "K5lGKGdafXg4Z9e1")
    home = Path(place.environment["HOME"])
    place.run("install", "claude-code").failed(1, error="temporary", hint="uv tool install")
    assert not list(home.rglob("*"))
    assert "Would create " in place.ok("install", "claude-code", "--dry-run").out


@pytest.mark.some_of("extra", "line", number=2)
@pytest.mark.parametrize(
    ("extra", "line"),
    [
        ("server", ["serve", "--port", "0"]),
        ("workflows", ["worker", "--until-idle"]),
        ("workflows", ["run", "plan.yaml"]),
        ("docs", ["docs", "audit", "a.py"]),
    ],
)
def test_what_is_not_installed_is_named_and_changes_nothing(
    tmp_path: Path, extra: str, line: list[str]
) -> None:
    place = Place(tmp_path)
    del place.environment["PYTHONPATH"]
    place.program = environment_of(tmp_path / "venv")
    (place.project / "a.py").write_text(SOURCE)
    (place.project / "plan.yaml").write_text(PLAN)
    done = place.run(*line)
    assert done.code == 1
    assert f"hint: pip install 'holdfast[{extra}]'" in done.err
    assert not (place.project / "done").exists()
    assert place.run("list", "--json").out.strip() == "[]"
