"""Record the terminal for the documentation: .venv/bin/python scripts/recording.py [FILE]

The commands really run, in a folder of their own that is removed at the end. What they print becomes
docs/pictures/recording.svg, which any browser plays.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = Path(sys.executable).with_name("holdfast")
TARGET = ROOT / "docs" / "pictures" / "recording.svg"

PLAN = """\
issue: {id: shop-7, title: Translate the shop}
tasks:
  - id: extract
    run: sleep 1; echo 'hello = Hello' > en.txt
  - id: translate
    run: sleep 2; echo 'hello = Bonjour' > fr.txt
    depends_on: [extract]
  - id: check
    run: grep -c = fr.txt
    depends_on: [translate]
"""

COLUMNS, ROWS = 96, 24
_CHARACTER, _LINE = 8.4, 19
_LONGEST_REST = 1.5
_PROMPT = "\033[32m$\033[0m "
_COLOURS = {
    "31": "#ff7b72",
    "32": "#7ee787",
    "33": "#e3b341",
    "34": "#79c0ff",
    "35": "#d2a8ff",
    "36": "#56d4dd",
}
_CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|[\r\n]|[^\x1b\r\n]+|\x1b")

Cell = tuple[str, str]
"""A character and how it looks, as codes joined by `;`."""


class Screen:
    """As much of a terminal as the program's output needs."""

    def __init__(self) -> None:
        self.lines: list[list[Cell]] = [[]]
        self.row = self.column = 0
        self.look = ""

    def write(self, text: str) -> None:
        for found in _CONTROL.finditer(text):
            part = found.group()
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self._down()
            elif found.group(2):
                self._control(found.group(1), found.group(2))
            else:
                self._put(part)

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def _control(self, value: str, kind: str) -> None:
        if kind == "m":
            self.look = "" if value in ("", "0") else ";".join(filter(None, (self.look, value)))
        elif kind == "A":
            self.row = max(0, self.row - int(value or 1))
        elif kind == "K":
            self.lines[self.row] = []

    def _put(self, text: str) -> None:
        line = self.lines[self.row]
        line += [(" ", "")] * (self.column - len(line))
        line[self.column : self.column + len(text)] = [(letter, self.look) for letter in text]
        self.column += len(text)

    def shown(self) -> tuple[tuple[Cell, ...], ...]:
        return tuple(tuple(line) for line in self.lines[-ROWS:])


class Recording:
    """What stands on the screen, and from which second on."""

    def __init__(self, project: Path) -> None:
        self.frames: list[tuple[float, tuple[tuple[Cell, ...], ...]]] = []
        self._screen = Screen()
        self._project = project
        self._time = 0.0

    def type(self, command: str) -> None:
        self._screen.write(_PROMPT)
        for letters in re.findall(".{1,4}", command):
            self._screen.write(letters)
            self._keep(0.12)
        self._keep(0.4)
        self._screen.write("\r\n")

    def run(self, command: str, *, killed_at: str | None = None) -> None:
        """`killed_at`: it gets SIGKILL once this text is printed, as when a laptop dies."""
        self.type(command)
        for passed, text in _outputs(command, self._project, killed_at):
            self._screen.write(text)
            self._keep(min(passed, _LONGEST_REST))
        if killed_at:
            self._screen.write("\r\n\033[31mKilled\033[0m\r\n")
        self._keep(1.5)

    def _keep(self, passed: float) -> None:
        self._time += passed
        shown = self._screen.shown()
        if not self.frames or self.frames[-1][1] != shown:
            self.frames.append((self._time, shown))

    @property
    def length(self) -> float:
        return self._time + 4


def _outputs(command: str, folder: Path, killed_at: str | None) -> Iterator[tuple[float, str]]:
    """What it prints, with the seconds that have passed since the last time."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvp("sh", ["sh", "-c", f"exec {command}"])  # noqa: S606 - these are ours
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    before, seen = time.monotonic(), ""
    while data := _read(terminal):
        now = time.monotonic()
        text = data.decode(errors="replace")
        yield now - before, text
        before, seen = now, seen + text
        if killed_at and killed_at in seen:
            os.kill(child, signal.SIGKILL)
            killed_at = None
    os.waitpid(child, 0)
    os.close(terminal)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how Linux tells that the other end is closed
        return b""


# ── the picture ───────────────────────────────────────────────────────────────────────────────────


def picture(recording: Recording) -> str:
    width, height = COLUMNS * _CHARACTER + 32, ROWS * _LINE + 32
    length = recording.length
    ends = [start for start, _ in recording.frames[1:]] + [length]
    frames = "\n".join(
        _frame(number, start / length, end / length, shown)
        for number, ((start, shown), end) in enumerate(zip(recording.frames, ends, strict=True))
        if end > start
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">
<title>A run that is killed, its status, and how it goes on</title>
<style>text{{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#d0d7de;white-space:pre}}
g{{opacity:0;animation:{length:.1f}s step-end infinite}}
@media (prefers-reduced-motion:reduce){{g{{animation:none!important}}g:last-of-type{{opacity:1}}}}</style>
<rect width="100%" height="100%" rx="10" fill="#0d1117"/>
{frames}
</svg>
"""


def _frame(number: int, start: float, end: float, shown: tuple[tuple[Cell, ...], ...]) -> str:
    lines = "".join(
        f'<text x="16" y="{30 + row * _LINE}">{_spans(line)}</text>'
        for row, line in enumerate(shown)
        if any(letter != " " for letter, _ in line)
    )
    after = f"{end:.3%}{{opacity:0}}" if end < 1 else ""
    before = "0%{opacity:0}" if start > 0 else ""
    steps = f"@keyframes f{number}{{{before}{start:.3%}{{opacity:1}}{after}}}"
    return f'<style>{steps}</style><g style="animation-name:f{number}">{lines}</g>'


def _spans(line: tuple[Cell, ...]) -> str:
    spans: list[str] = []
    done = 0
    for place in range(1, len(line) + 1):
        if place == len(line) or line[place][1] != line[done][1]:
            spans.append(_span("".join(letter for letter, _ in line[done:place]), line[done][1]))
            done = place
    return "".join(spans).rstrip()


def _span(text: str, look: str) -> str:
    codes = look.split(";")
    styles = [f"fill:{_COLOURS[code]}" for code in codes if code in _COLOURS]
    styles += ["font-weight:bold"] * ("1" in codes) + ["opacity:.6"] * ("2" in codes)
    return f'<tspan style="{";".join(styles)}">{escape(text)}</tspan>' if styles else escape(text)


def record(project: Path) -> Recording:
    recording = Recording(project)
    recording.run("cat plan.yaml")
    recording.run("holdfast run plan.yaml", killed_at="1 of 3 tasks")
    recording.run("holdfast status")
    recording.run("holdfast resume")
    recording.run("holdfast tx rollback last --yes")
    return recording


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-recording-") as folder:
        project = Path(folder, "shop")
        project.mkdir()
        os.environ |= {
            "HOME": folder,
            "HOLDFAST_HOME": str(Path(folder, "data")),
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        os.environ.pop("NO_COLOR", None)
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=project, check=True)
        (project / "plan.yaml").write_text(PLAN)
        recording = record(project)
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_text(picture(recording), encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()
