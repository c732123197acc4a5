"""The tools a model is given: what they do, and that files stay in the worktree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.workflows.drivers.model_tools import WorktreeTools
from workflows.drivers.recorder import Recorder, assignment


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    folder = tmp_path / "worktree"
    folder.mkdir()
    (tmp_path / "secret").write_text("gold")
    return folder


def tools(worktree: Path, seconds: float = 30, most: int = 16_000) -> WorktreeTools:
    return WorktreeTools(assignment(worktree), Recorder(), seconds, most)


def test_files_are_written_read_edited_and_listed(worktree: Path) -> None:
    at_hand = tools(worktree)
    assert at_hand.write_file("src/app.py", "a = 1\nb = 2\n") == "wrote 12 characters to src/app.py"
    assert at_hand.read_file("src/app.py") == "a = 1\nb = 2\n"
    assert at_hand.read_file("src/app.py", first_line=2, line_count=1).startswith("b = 2\n[…")
    assert at_hand.edit_file("src/app.py", "b = 2", "b = 3") == "edited src/app.py"
    assert (worktree / "src" / "app.py").read_text() == "a = 1\nb = 3\n"
    assert at_hand.list_files() == "src/app.py"
    assert at_hand.list_files("src") == "src/app.py"


@pytest.mark.parametrize(
    ("old", "times"), [("gone", 0), ("twice", 2), ("", 0)], ids=["missing", "doubled", "empty"]
)
def test_an_edit_must_be_of_one_place(worktree: Path, old: str, times: int) -> None:
    (worktree / "file").write_text("twice twice")
    assert f"occurs {times} times" in tools(worktree).edit_file("file", old, "x")
    assert (worktree / "file").read_text() == "twice twice"


OUTSIDE = [
    "/etc/passwd",
    "../secret",
    "src/../../secret",
    "",
    "a\0b",
    "..",
    "link/secret",
    "link",
    "file-link",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_nothing_outside_is_read_or_written(worktree: Path, name: str) -> None:
    (worktree / "link").symlink_to(worktree.parent)
    (worktree / "file-link").symlink_to(worktree.parent / "secret")
    at_hand = tools(worktree)
    answers = [
        at_hand.read_file(name),
        at_hand.write_file(name, "mine"),
        at_hand.edit_file(name, "gold", "lead"),
        at_hand.list_files(name),
    ]
    assert all(answer.startswith("error: ") for answer in answers)
    assert "gold" not in "".join(answers)
    assert (worktree.parent / "secret").read_text() == "gold"
    assert sorted(path.name for path in worktree.parent.iterdir()) == ["secret", "worktree"]


_PARTS = st.sampled_from(["..", ".", "link", "src", "secret", "~", "", "worktree", "new"])


@given(st.lists(_PARTS, min_size=1, max_size=6).map("/".join))
def test_no_name_however_made_leads_out(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    around = tmp_path_factory.mktemp("around")
    worktree = around / "worktree"
    (worktree / "src").mkdir(parents=True)
    (around / "secret").write_text("gold")
    (worktree / "link").symlink_to(around)
    (worktree / "src" / "link").symlink_to("../../secret")
    at_hand = tools(worktree)
    assert "gold" not in at_hand.read_file(name)
    at_hand.write_file(name, "mine")
    assert (around / "secret").read_text() == "gold"
    assert sorted(path.name for path in around.iterdir()) == ["secret", "worktree"]


@pytest.mark.parametrize(
    "name", [".git/config", ".holdfast/config.toml", "sub/.git/hooks/pre-commit", ".GIT/x", "."]
)
def test_gits_and_our_own_files_are_not_written(worktree: Path, name: str) -> None:
    assert "not to be written" in tools(worktree).write_file(name, "x")
    assert list(worktree.iterdir()) == []


def test_a_link_within_the_worktree_is_followed(worktree: Path) -> None:
    (worktree / "real").write_text("here")
    (worktree / "link").symlink_to("real")
    assert tools(worktree).read_file("link") == "here"


def test_a_pipe_holds_nobody_up(worktree: Path) -> None:
    os.mkfifo(worktree / "pipe")
    assert tools(worktree).read_file("pipe") == "error: pipe is not a file"


def test_what_is_long_is_clipped_with_a_sign(worktree: Path) -> None:
    (worktree / "long").write_text("\n".join(f"line {number}" for number in range(1, 1001)))
    at_hand = tools(worktree, most=200)
    answer = at_hand.read_file("long")
    assert len(answer) < 300
    sign = answer.splitlines()[-1]
    assert "characters left out; read on with first_line=" in sign
    first = int(sign.rpartition("=")[2].rstrip("]"))
    assert f"line {first}" in at_hand.read_file("long", first_line=first)
    printed = at_hand.run_command("seq 1 100000")
    assert printed.startswith("exit code 0\n1\n2\n")
    assert printed.endswith("\n100000")
    assert "bytes left out]" in printed
    assert len(printed) < 300


def test_a_thousand_files_are_not_all_listed(worktree: Path) -> None:
    for number in range(600):
        (worktree / f"{number:03}").touch()
    (worktree / ".git").mkdir()
    (worktree / ".git" / "HEAD").touch()
    answer = tools(worktree).list_files()
    assert answer.startswith("000\n001\n")
    assert "more than 500 files" in answer.splitlines()[-1]


def test_files_that_are_no_text(worktree: Path) -> None:
    (worktree / "bytes").write_bytes(b"caf\xe9 \x00")
    at_hand = tools(worktree)
    assert at_hand.read_file("bytes").startswith("caf\ufffd")
    assert "not valid UTF-8" in at_hand.edit_file("bytes", "caf", "tea")
    assert (worktree / "bytes").read_bytes() == b"caf\xe9 \x00"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("echo out; echo err >&2", "exit code 0\nout\nerr"),
        ("exit 3", "exit code 3"),
        ("cat", "exit code 0"),
        ("pwd -P | grep -c worktree", "exit code 0\n1"),
    ],
)
def test_how_a_command_ends(worktree: Path, command: str, answer: str) -> None:
    assert tools(worktree).run_command(command) == answer


def test_a_command_has_a_time_limit(worktree: Path) -> None:
    answer = tools(worktree, seconds=0.3).run_command("echo begun; sleep 300")
    assert answer.startswith("ended after 0.3 s, which is the limit\nbegun")


def test_a_worktree_that_is_gone_is_said(worktree: Path) -> None:
    at_hand = tools(worktree / "gone")
    assert at_hand.run_command("true").startswith("error: No such file")
    assert at_hand.read_file("x").startswith("error: No such file")
