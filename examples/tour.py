"""A guided tour in the terminal: start a wind-down, crash it, recover it, look at the snapshot.

Everything happens in a folder of its own that is removed at the end; only the program
under `.venv/bin` is used, as you would use it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("holdfast")
BOLD, DIM, END = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")


def say(text: str) -> None:
    print(f"\n{BOLD}{text}{END}", flush=True)


def run(project: Path, *command: str) -> None:
    print(f"{DIM}$ {shlex.join(command)}{END}", flush=True)
    argv = [str(PROGRAM), *command[1:]] if command[0] == "holdfast" else list(command)
    subprocess.run(argv, cwd=project, check=True, stdin=subprocess.DEVNULL)


def crash_while_recording(project: Path) -> None:
    """An agent that records what it does, and is killed in the middle of it."""
    program = """
import itertools
from holdfast import IncrementalPauseManager
manager = IncrementalPauseManager()
manager.start_incremental_pause(0.90, {"model": "claude-sonnet-4-5"})
for number in itertools.count():
    manager.append_action("tool_call", {"tool": ["Read", "Edit", "Bash"][number % 3], "number": number}, 0.91)
    print(number, flush=True)
"""
    agent = subprocess.Popen([sys.executable, "-c", program], cwd=project, stdout=subprocess.PIPE, text=True)
    with agent.stdout or nullcontext(()) as acknowledged:
        for line in acknowledged:
            if line.strip() == "11":
                break
        agent.send_signal(signal.SIGKILL)
        agent.wait()
    print(f"  process {agent.pid} recorded actions, then got SIGKILL")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-tour-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        os.environ["HOLDFAST_HOME"] = str(Path(folder, "home"))
        for name in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
            os.environ[name] = "tour@example.org" if name.endswith("EMAIL") else "Tour"
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=project, check=True)
        (project / "app.py").write_text("print('hello')\n")
        subprocess.run(["git", "add", "."], cwd=project, check=True)
        subprocess.run(["git", "commit", "-q", "-m", "First"], cwd=project, check=True)

        say("1. The context window is 90 % full. A wind-down starts, and two shells record into it.")
        run(project, "holdfast", "winddown", "start", "--percent", "0.90")
        run(
            project,
            "holdfast",
            "winddown",
            "append",
            "tool_call",
            "--data",
            '{"tool": "Edit"}',
            "--percent",
            "0.91",
        )
        run(
            project,
            "holdfast",
            "winddown",
            "append",
            "user_message",
            "--data",
            '{"message": "Wrap up"}',
            "--percent",
            "0.92",
        )
        run(project, "holdfast", "winddown", "summary")

        say("2. It is finalised: a session you can read as JSON, YAML and Markdown.")
        (project / "app.py").write_text("print('hello, world')\n")
        run(project, "holdfast", "winddown", "finalize", "-r", "the day is over")

        say("3. The next day an agent records again, and is killed.")
        crash_while_recording(project)
        run(project, "holdfast", "status")

        say("4. Nothing it was told is safe is lost. Recover it.")
        run(project, "holdfast", "winddown", "recover", "--finalize")
        run(project, "holdfast", "snapshot", "list")
        run(project, "holdfast", "snapshot", "show", "latest")

        say("5. Even the database may go: the files are enough.")
        (Path(folder, "home") / "holdfast.db").unlink()
        run(project, "holdfast", "reindex")
        run(project, "holdfast", "stats")

        say("That is all. Try it in a project of yours: holdfast winddown start --percent 0.90")


if __name__ == "__main__":
    main()
