from __future__ import annotations

import pytest

from findings.sessions import Session
from holdfast.findings.rules.files import files_read, files_written


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cat src/door.py", ["src/door.py"]),
        ("sed -n '1,80p' lib/wall.ts | head -20", ["lib/wall.ts"]),
        ("cd shed && head -n 40 /home/kim/a.go; tail b.rs", ["/home/kim/a.go", "b.rs"]),
        ("nl -ba roof.c", ["roof.c"]),
        ("grep -n x a.py", []),
        ("cat <<'E'\nhello.py\nE", []),
    ],
)
def test_files_read(command: str, paths: list[str]):
    assert files_read(command) == paths


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("cat > src/door.py <<'E'\nx\nE", ["src/door.py"]),
        ("echo x >> notes.md", ["notes.md"]),
        ("sed -i 's/a/b/' lib/wall.ts", ["lib/wall.ts"]),
        ("make | tee -a build.log", ["build.log"]),
        ("make 2>&1 >/tmp/out.txt", []),
        ("pytest 2>err.txt", []),
        ("make test", []),
    ],
)
def test_files_written(command: str, paths: list[str]):
    assert files_written(command) == paths


def test_they_count_as_touched():
    found = Session().shell("cat src/door.py").shell("sed -i 's/a/b/' src/door.py").found()
    (file,) = found.files
    assert (file.reads, file.edits) == (1, 1)
