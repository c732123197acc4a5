"""Puts the built dashboard and the man page into what is packaged, or ends the build.

A clone builds it when it is missing or older than its sources. A source distribution has no
sources of it: it carries the built files, which go into the wheel as they are, without Node.

The man page is made of the commands' help whenever a wheel is built. That takes click: the
commands load what else they need when they run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src/holdfast/server/static/index.html")
TOOLS = ("make", "node", "npm")


class PackageHook(BuildHookInterface[Any]):
    _man: tempfile.TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # it runs from the clone, where `make dashboard` builds it at any time
        root = Path(self.root)
        if not is_current(root):
            self._build(root)
        if not (root / PAGE).is_file():
            self._fail("the dashboard is not in this copy", "build from a clone of the repository")
        if self.target_name == "wheel":
            self._man = tempfile.TemporaryDirectory()
            page = self._man_page(root, Path(self._man.name))
            build_data["shared_data"][str(page)] = "share/man/man1/holdfast.1"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's call
        if self._man is not None:
            self._man.cleanup()

    def _man_page(self, root: Path, folder: Path) -> Path:
        # What an isolated build was given to import stands there, too.
        paths = [str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        result = subprocess.run(
            [sys.executable, "-B", "scripts/reference.py", str(folder)],
            cwd=root,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=sys.stderr,
            check=False,
        )
        if result.returncode:
            self._fail("the man page could not be made", "what is said above tells why; it needs click")
        return folder / "holdfast.1"

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
