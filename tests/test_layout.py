"""What a newcomer may rely on: few names at the root, and no name that stands for two things."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import holdfast

SOURCE = Path(holdfast.__file__).parent


def test_the_root_of_the_package_is_small() -> None:
    found = {path.stem for path in SOURCE.glob("*.py")}
    assert found == {"__init__", "__main__", "_version", "testing"}


def test_a_public_class_name_occurs_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(SOURCE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_architecture_names_files_that_are_there() -> None:
    """A newcomer opens what it names; a name may be short for one in the folders of hooks."""
    document = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/.-]+\.(?:py|sh|tsx))`", document))
    folders = (SOURCE, SOURCE / "hooks", SOURCE / "hooks" / "fast", SOURCE.parents[1])
    assert len(named) > 60
    assert {name for name in named if not any((folder / name).exists() for folder in folders)} == set()


def test_a_module_is_read_in_one_sitting() -> None:
    long = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if len(path.read_text(encoding="utf-8").splitlines()) > 900
    }
    assert long == set()


_RESOLVE_OR_HAND_ON = frozenset(
    (
        *("project/settings.py", "project/trust.py"),  # where the entry points have it resolved
        *("journal/usage.py", "store/item_sessions.py"),  # public classes that may be made without a folder
        *("base/git.py", "workflows/lease.py"),  # what their child processes inherit
        "findings/model_call.py",  # a library's own switch, and ours that forbids models
        "store/encryption.py",  # the passphrase is kept nowhere else
        "base/clock.py",  # the clock itself, which everybody is given
    )
)
_ENTRY_POINTS = ("cli/", "client/", "hooks/", "server/", "workflows/drivers/")


def test_only_entry_points_read_the_environment_the_folder_and_the_clock() -> None:
    """What is below gets values, so that a test, a server or another program can give it others."""
    asking = {f"os.{name}" for name in ("environ", "getenv", "getcwd")}
    asking |= {"Path.cwd", "Path.home", "time.time", "datetime.now", "datetime.utcnow"}
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in asking
    }
    below = {name for name in found if not name.startswith(_ENTRY_POINTS)}
    assert below - {"undo/git.py"} == _RESOLVE_OR_HAND_ON
