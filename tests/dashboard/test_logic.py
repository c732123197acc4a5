"""The dashboard's own tests, and that what is built is what the server may serve."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "holdfast" / "server" / "static"
MOST_SCRIPT = 100_000
"""Bytes of compressed script for the first page."""


def test_logic() -> None:
    """vitest: the event stream, the layout, formats, and that the types are those of the document."""
    ran = subprocess.run(
        ["npm", "test", "--silent"],
        cwd=ROOT / "dashboard",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


def test_nothing_inline_and_nothing_from_elsewhere() -> None:
    page = (BUILT / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)


def test_first_page_is_light() -> None:
    scripts = first_scripts()
    assert scripts
    assert sum(len(gzip.compress(path.read_bytes())) for path in scripts) < MOST_SCRIPT


def first_scripts() -> set[Path]:
    """What the list of workflows loads: the scripts of the page, and all they import outright."""
    page = (BUILT / "index.html").read_text()
    waiting = [BUILT / name.lstrip("/") for name in re.findall(r'(?:src|href)="(/[^"]+\.js)"', page)]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        imported = re.findall(r"""(?:from|import)\s*["'`](\./[^"'`]+\.js)["'`]""", path.read_text())
        waiting += [path.parent / name for name in imported]
    return found
