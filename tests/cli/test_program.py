"""The program as a whole: help, unknown words, tracebacks, and readers that went away."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

import click
import pytest

from holdfast import __version__
from holdfast.cli.main import COMMANDS, cli

from .harness import PATIENCE, PROGRAM, Place
from .test_context import kept_session


def every_command() -> list[list[str]]:
    found: list[list[str]] = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        found.append([name])
        if isinstance(command, click.Group):
            found += [[name, inner] for inner in command.commands]
    return found


def test_alone_it_shows_where_the_work_stands(place: Place) -> None:
    assert place.ok().out == place.ok("status").out + "Commands:  holdfast --help\n"


def test_help(place: Place) -> None:
    shown = place.ok("--help").out
    assert shown == place.ok("-h").out
    assert shown.startswith("Usage: holdfast [OPTIONS] [COMMAND] [ARGS]...\n")
    assert "holdfast install claude-code" in shown
    assert "Exit codes: 0 success" in shown
    listed = [line.split()[0] for line in shown.split("Commands:\n")[1].splitlines() if line[2:3].isalpha()]
    assert set(COMMANDS) <= set(listed)


def test_every_command_has_help_with_an_example(place: Place) -> None:
    commands = every_command()
    results = place.many(*([*command, "--help"] for command in commands))
    for command, result in zip(commands, results, strict=True):
        assert (result.code, result.err) == (0, ""), command
        assert result.out.startswith(f"Usage: holdfast {' '.join(command)} "), command
        if len(command) == 1:
            assert f"Examples:\n    holdfast {command[0]}" in result.out, command


def test_help_goes_before_the_rest(place: Place) -> None:
    before = place.tree()
    assert place.ok("winddown", "start", "--percent", "90", "--help").out.startswith("Usage: ")
    assert place.tree() == before


def test_version(place: Place) -> None:
    assert place.ok("--version").out == f"holdfast {__version__}\n"
    assert place.ok("--project", ".", "--version").out == f"holdfast {__version__}\n"


WRONG: dict[str, tuple[Sequence[str], str, str]] = {
    "near": (["stats_"], r"No such command 'stats_'.* Did you mean 'stats'\?$", "see `holdfast --help`"),
    "nearer": (
        ["snapshots"],
        r"No such command 'snapshots'.* Did you mean 'snapshot'\?$",
        "see `holdfast --help`",
    ),
    "far": (["quux"], r"No such command 'quux'\.?$", "see `holdfast --help`"),
    "option": (["--loud"], "No such option:? '?--loud", "see `holdfast --help`"),
    "argument": (["list", "more"], "unexpected extra argument", "see `holdfast list --help`"),
    "within": (["sessions", "delete"], "give the sessions", "see `holdfast sessions delete --help`"),
    "choice": (["handoff"], r"Choose from: claude-code, codex, gemini, opencode$", "see `holdfast handoff"),
    "missing": (["snapshot", "show"], "Missing argument 'SNAPSHOT'", "see `holdfast snapshot show --help`"),
}


@pytest.mark.parametrize(("arguments", "error", "hint"), WRONG.values(), ids=WRONG.keys())
def test_wrong_words(place: Place, arguments: Sequence[str], error: str, hint: str) -> None:
    place.run(*arguments).failed(2, error=error, hint=hint)


@pytest.mark.parametrize("arguments", [[], ["winddown"], ["quiet"]])
def test_no_command_shows_help(place: Place, arguments: Sequence[str]) -> None:
    result = place.run(*arguments)
    assert result.code in (0, 2)
    assert "Commands:" in result.out + result.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["winddown", "finalize"], 1), (["winddown", "append", "quux", "--percent", "0.9"], 2)],
)
def test_debug_shows_where_it_happened(place: Place, arguments: Sequence[str], code: int) -> None:
    """The traceback comes on top; what a script relies on stays as it was."""
    plain = place.run(*arguments)
    assert "Traceback" not in plain.err
    debug = place.run("--debug", *arguments)
    assert "Traceback (most recent call last)" in debug.err
    assert (plain.code, debug.code) == (code, code)


def test_errors_leave_stdout_to_programs(place: Place) -> None:
    place.run("snapshot", "show", "latest", "--json").failed(1, error="nothing has been paused")


def test_into_head(place: Place) -> None:
    place.paused("tool_call")
    done = subprocess.run(
        [
            "bash",
            "-c",
            '"$@" | head -1; exit "${PIPESTATUS[0]}"',
            "bash",
            *PROGRAM,
            "snapshot",
            "show",
            "latest",
        ],
        cwd=place.project,
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert place.shown(done.stdout) == "# SESSION-1\n"


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["winddown", "summary"], ["stats"]])
def test_a_reader_that_went_away(place: Place, arguments: Sequence[str]) -> None:
    place.started("tool_call")
    theirs, ours = os.pipe()
    os.close(theirs)
    try:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            cwd=place.project,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=ours,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE,
        )
    finally:
        os.close(ours)
    assert (done.returncode, done.stderr) == (0, b"")


def test_work_is_done_though_the_reader_went_away(place: Place) -> None:
    name = place.started("tool_call")
    theirs, ours = os.pipe()
    os.close(theirs)
    try:
        subprocess.run(
            [*PROGRAM, "winddown", "finalize"],
            cwd=place.project,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=ours,
            check=False,
            timeout=PATIENCE,
        )
    finally:
        os.close(ours)
    assert place.latest() == f"{name}\n"


def test_output_that_a_terminal_cannot_show(place: Place) -> None:
    place.paused("tool_call")
    result = place.run("snapshot", "show", "latest", env={"PYTHONIOENCODING": "ascii"})
    assert result.code == 0, result


def completed(place: Place, line: str) -> list[str]:
    script = """
        eval "$(holdfast completion bash)"
        read -ra COMP_WORDS <<<"$1"
        [[ $1 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _holdfast_completion holdfast
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    tools = place.root / "tools"
    tools.mkdir(exist_ok=True)
    program = tools / "holdfast"
    program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    environment = {**place.environment, "PATH": f"{tools}:{place.environment['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script, "bash", line], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_shell_completes_commands_and_options(place: Place) -> None:
    assert completed(place, "holdfast sta") == ["stats", "status"]
    assert completed(place, "holdfast winddown ") == [
        *("append", "discard", "finalize", "recover", "start", "summary")
    ]
    assert completed(place, "holdfast resume --fr") == ["--from"]


def test_completion_is_printed_for_each_shell(place: Place) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_HOLDFAST_COMPLETE" in place.ok("completion", shell).out
    place.run("completion", "csh").failed(2, error="'csh' is not one of")


@pytest.mark.parametrize(("shell", "words"), [("zsh", "holdfast sta"), ("fish", "holdfast sta")])
def test_a_shell_that_is_not_here_is_answered_in_its_form(place: Place, shell: str, words: str) -> None:
    """What the printed function asks for, and the form in which it reads the answer."""
    position = {"zsh": "1", "fish": "sta"}[shell]
    asked = {"_HOLDFAST_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": position}
    answer = place.run(env=asked).out
    assert ("plain" in answer, "status" in answer, "winddown" in answer) == (True, True, False)


def test_everything_is_private_whatever_the_umask(place: Place) -> None:
    shutil.rmtree(place.home)
    (place.project / "plan.yaml").write_text(
        "issue: {id: X, title: W}\ntasks:\n  - {id: t1, run: 'echo hi > made'}\n"
    )
    kept_session(place, "claude-code", "claude-1")
    place.git("init", "--quiet", "--bare", str(place.root / "remote.git"))
    before = os.umask(0)
    try:
        for command in (
            ("handoff", "--to", "codex"),
            ("winddown", "start", "--percent", "0.9"),
            ("winddown", "append", "tool_call", "--data", "{}", "--percent", "0.9"),
            ("winddown", "finalize"),
            ("remind", "x"),
            ("run", "plan.yaml"),
            ("note", "handover", "plan.yaml"),
            ("docs", "audit", "."),
            ("token", "create", "laptop"),
            ("tx", "undo", "last", "--dry-run"),
            ("share", "push", str(place.root / "remote.git")),
            ("export", str(place.root / "bundle")),
        ):
            done = subprocess.run(
                [*PROGRAM, *command],
                cwd=place.project,
                env=place.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=PATIENCE,
            )
            assert done.returncode == 0, done
    finally:
        os.umask(before)
    made = [place.home, *place.home.rglob("*"), *(place.project / ".holdfast").rglob("*")]
    made.append(place.root / "bundle")
    assert any(path.parent.parent.name == "objects" for path in made), "git's objects are among them"
    assert [str(path) for path in made if path.stat().st_mode & 0o077] == []
    assert (place.project / "made").stat().st_mode & 0o777 == 0o666, (
        "the user's own files are as the user wants"
    )
