"""`SideCar.write`: one file exchanged and recorded, or left as somebody else made it."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.base.errors import (
    CannotDoError,
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
)
from holdfast.undo.transactions import SideCar

from .trees import START, tree_of

BEFORE = START["b"].encode()


@pytest.fixture
def tx(sidecar: SideCar) -> str:
    return sidecar.begin("s1").id


def test_written_recorded_and_undone(sidecar: SideCar, project: Path, tx: str) -> None:
    (project / "b").chmod(0o751)
    before = tree_of(project)
    entry = sidecar.write(tx, "b", BEFORE, b"new\n", "Rewrite b")
    assert (project / "b").read_bytes() == b"new\n"
    assert (project / "b").stat().st_mode & 0o777 == 0o751
    assert entry.description == "Rewrite b"
    assert entry.doubt == ""
    sidecar.undo(entry.id)
    assert tree_of(project) == before


def test_what_somebody_changed_stays_and_is_theirs(sidecar: SideCar, project: Path, tx: str) -> None:
    (project / "b").write_text("mine\n")
    with pytest.raises(ConflictError, match="was changed in the meantime"):
        sidecar.write(tx, "b", BEFORE, b"new\n")
    assert (project / "b").read_text() == "mine\n"
    assert sidecar.transaction(tx).changes == ()
    assert sidecar.write(tx, "b", b"mine\n", b"new\n") is not None  # and nothing is left behind


def test_links_missing_files_and_places_that_are_not_ours(sidecar: SideCar, project: Path, tx: str) -> None:
    (project / "link").symlink_to("b")
    for path in ("link", "nowhere"):
        with pytest.raises(ConflictError):
            sidecar.write(tx, path, BEFORE, b"new\n")
    for path in ("../out", ".git/config", ".holdfast/config.toml"):
        with pytest.raises(InvalidInputError):
            sidecar.write(tx, path, BEFORE, b"new\n")
    assert (project / "b").read_bytes() == BEFORE


def test_nothing_to_write_and_nobody_to_write_for(sidecar: SideCar, tx: str) -> None:
    with pytest.raises(CannotDoError, match="already has that content"):
        sidecar.write(tx, "b", BEFORE, BEFORE)
    sidecar.commit(tx)
    with pytest.raises(IllegalTransitionError):
        sidecar.write(tx, "b", BEFORE, b"new\n")
