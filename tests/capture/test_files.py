"""Fingerprints of files: what they held when a snapshot was taken."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from holdfast.capture import files
from holdfast.capture.files import fingerprint_files
from holdfast.model.git import encode_path


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_what_a_file_holds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b").write_bytes(b"")
    os.utime(tmp_path / "a", ns=(5, 1_700_000_000_123_456_789))
    first, second = fingerprint_files(tmp_path, ["a", "deep/b"])
    assert (first.path, first.hash, first.size) == ("a", sha256(b"one"), 3)
    assert first.mtime_ns == 1_700_000_000_123_456_789
    assert (second.path, second.hash, second.size) == ("deep/b", sha256(b""), 0)


def test_the_order_given_is_kept(tmp_path: Path) -> None:
    names = ["c", "a", "b"]
    for name in names:
        (tmp_path / name).touch()
    assert [one.path for one in fingerprint_files(tmp_path, iter(names))] == names


def test_what_is_not_there_is_absent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("gone", "gone/deeper", "file/below"):
        [found] = fingerprint_files(tmp_path, [path])
        assert (found.path, found.hash, found.mtime_ns, found.size) == (path, "absent", 0, 0)


def test_a_link_is_what_it_points_at_not_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    [before] = fingerprint_files(tmp_path, ["link"])
    assert before.hash == sha256(b"nowhere")
    (tmp_path / "nowhere").write_text("something now")
    assert fingerprint_files(tmp_path, ["link"])[0].hash == before.hash


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_left_out(tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        (tmp_path / "odd").mkdir()
    else:
        os.mkfifo(tmp_path / "odd")
    (tmp_path / "even").touch()
    assert [one.path for one in fingerprint_files(tmp_path, ["odd", "even"])] == ["even"]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    name = b"caf\xe9.py"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"x")
    [found] = fingerprint_files(tmp_path, [encode_path(name)])
    assert found.hash == sha256(b"x")
    found.model_dump_json()


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_FILES", 3)
    monkeypatch.setattr(files, "LARGEST_FILE", 4)
    for number in range(5):
        (tmp_path / f"f{number}").write_bytes(b"1234")
    (tmp_path / "large").write_bytes(b"12345")
    assert [one.path for one in fingerprint_files(tmp_path, ["large", "f0", "f1", "f2", "f3"])] == [
        "f0",
        "f1",
        "f2",
    ]


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it would take an hour
    assert fingerprint_files(tmp_path, ["huge"]) == ()
