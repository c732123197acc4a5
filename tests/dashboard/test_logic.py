"""The dashboard's own tests, and that what is built is what the server may serve."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "holdfast" / "server" / "static"
MOST_SENT = 100_000
"""Bytes of script and style for the first page."""


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
    """As it is sent: compressed, and to be unpacked to the file itself."""
    scripts = first_scripts()
    assert scripts
    sent = 0
    for path in scripts | set((BUILT / "assets").glob("index-*.css")):
        packed = path.with_name(f"{path.name}.gz")
        assert packed.is_file() or path.stat().st_size < 1_000
        assert not packed.is_file() or gzip.decompress(packed.read_bytes()) == path.read_bytes()
        smallest = path.with_name(f"{path.name}.br")
        sent += (smallest if smallest.is_file() else path).stat().st_size
    assert sent < MOST_SENT


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
