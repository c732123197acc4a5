"""What the documents say holds: examples run, links lead somewhere, tables are complete."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.harness import PATIENCE, start_program
from fork_server import READ_AT_START
from holdfast.cli.main import COMMANDS
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import _SETTINGS, load_settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "bench" / "README.md"])
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(document: Path, language: str) -> list[str]:
    return [code for kind, code in _BLOCK.findall(document.read_text(encoding="utf-8")) if kind == language]


PYTHON = [
    pytest.param(code, id=f"{document.name}-{number}")
    for document in DOCUMENTS
    for number, code in enumerate(blocks(document, "python"))
]
SHELL = [
    pytest.param(line.partition(" #")[0].strip(), id=f"{document.name}: {line[:50].strip()}")
    for document in DOCUMENTS
    for code in blocks(document, "sh")
    for line in code.splitlines()
    if line.startswith("holdfast ")
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".git").mkdir()  # enough to be found as a project
    return folder


@pytest.mark.parametrize("code", PYTHON)
def test_a_python_example_runs(code: str, project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("line", SHELL)
def test_a_shell_example_is_understood(line: str, project: Path) -> None:
    """Wrong usage is exit code 2; that a session of that name is not there is not the example's fault."""
    code, _, said = run(line, project)
    assert code in (0, 1), said


def test_the_first_success_of_the_readme_is_one(project: Path) -> None:
    (lines,) = [code for code in blocks(ROOT / "README.md", "sh") if "winddown finalize" in code]
    results = [run(line, project) for line in lines.splitlines()]
    assert {code for code, _, _ in results} == {0}, results
    assert "context is full" in results[-1][1]


@pytest.mark.whole_sample
def test_the_crash_to_try_ends_well(project: Path) -> None:
    """As it stands on the page, with bash: killed in the middle, resumed, nothing done twice."""
    (script,) = blocks(ROOT / "docs/tasks/laptop-died.md", "bash")
    program = project.parent / "bin" / "holdfast"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m holdfast "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, **READ_AT_START, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("first\nslow\n"), done.stdout + done.stderr


def run(line: str, project: Path) -> tuple[int, str, str]:
    """Exit code, output and errors."""
    with start_program(
        shlex.split(line)[1:], cwd=project, env={**os.environ, **READ_AT_START}, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()  # or its end is awaited for ever
            raise
    return process.returncode, out, err


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_every_setting_stands_in_the_documents() -> None:
    told = set(
        re.findall(
            r"^\| `([a-z_.]+)` \| `HOLDFAST_", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE
        )
    )
    assert told == set(_SETTINGS)


def test_the_example_of_a_settings_file_is_one(project: Path) -> None:
    (example,) = [
        code for code in blocks(ROOT / "docs" / "settings.md", "toml") if ".holdfast/config" in code
    ]
    ProjectLayout(project).ensure()
    (project / ".holdfast" / "config.toml").write_text(example)
    assert load_settings({"HOLDFAST_HOME": os.environ["HOLDFAST_HOME"]}, project).context_window == 1_000_000


def test_every_command_stands_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if not re.search(rf"`[^`]*\b{name}\b", text)] == []
