"""What a newcomer may rely on: few names at the root, and no name that stands for two things."""

from __future__ import annotations

import ast
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
