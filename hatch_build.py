"""Puts the built dashboard into what is packaged, or ends the build.

A clone builds it when it is missing or older than its sources. A source distribution has no
sources of it: it carries the built files, which go into the wheel as they are, without Node.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src/holdfast/server/static/index.html")
TOOLS = ("make", "node", "npm")


class DashboardHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's call
        if version == "editable":
            return  # it runs from the clone, where `make dashboard` builds it at any time
        root = Path(self.root)
        if not is_current(root):
            self._build(root)
        if not (root / PAGE).is_file():
            self._fail("the dashboard is not in this copy", "build from a clone of the repository")

    def _build(self, root: Path) -> None:
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            self._fail(
                f"the package holds the dashboard, and building that needs: {', '.join(missing)}",
                "install Node 20.19 or newer (with npm) and make, from your system or https://nodejs.org",
            )
        self.app.display_waiting("Building the dashboard")
        # What the tools say goes to stderr: stdout is the one who asked for the build's.
        result = subprocess.run(
            ["make", "dashboard"], cwd=root, env=surroundings(), stdout=sys.stderr, check=False
        )
        if result.returncode:
            self._fail(
                "the dashboard could not be built", "what is said above tells why; it needs the network once"
            )

    def _fail(self, problem: str, hint: str) -> NoReturn:
        self.app.abort(f"error: {problem}\nhint: {hint}")
        raise SystemExit(1)


def is_current(root: Path) -> bool:
    """Whether nothing that the page is made from is newer; in a source distribution there is nothing."""
    page = root / PAGE
    made = page.stat().st_mtime if page.is_file() else 0.0
    return all(path.stat().st_mtime <= made for path in sources(root / "dashboard"))


def sources(dashboard: Path) -> Iterator[Path]:
    """As the Makefile has them."""
    for folder in ("src", "public"):
        yield from (path for path in (dashboard / folder).rglob("*") if path.is_file())
    for pattern in ("*.html", "*.ts", "tsconfig.json", "package.json", "package-lock.json"):
        yield from dashboard.glob(pattern)


def surroundings() -> dict[str, str]:
    """Without what a `make` around this build tells its own children."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"
    }
