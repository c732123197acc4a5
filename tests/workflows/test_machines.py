"""Work that moves between machines through git: clones of their own, commits at each boundary."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.entry import TaskStarted, Warned, WorkCommitted
from holdfast.workflows.plan import Plan
from holdfast.workflows.worker import Here

from .harness import Workshop, plan_of


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A bare repository with one commit on main."""
    seed, bare = tmp_path / "seed", tmp_path / "origin.git"
    for arguments in (
        ("init", "--quiet", "--initial-branch=main", seed),
        ("-C", seed, "commit", "--quiet", "--allow-empty", "-m", "start"),
        ("clone", "--quiet", "--bare", seed, bare),
    ):
        subprocess.run(["git", *map(str, arguments)], check=True)
    return bare


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def at(origin: Path, *commands: str, **options: Any) -> Plan:
    return plan_of(*commands, repository=str(origin), branch="feature", **options)


def elsewhere(workshop: Workshop, home: Path) -> Workshop:
    """The same database seen from another machine, with a home of its own."""
    other = Workshop(workshop.place, workshop.database)
    other.settings = replace(workshop.settings, home=home)
    return other


def test_the_next_machine_goes_on_from_what_was_recorded(
    workshop: Workshop, origin: Path, tmp_path: Path
) -> None:
    paused = workshop.run(at(origin, "echo a > a.txt", "cat a.txt > b.txt", pause_every=1))
    assert paused.status == "paused"
    assert git(origin, "show", "feature:a.txt") == "a"
    other = elsewhere(workshop, tmp_path / "other-home")
    ended = other.resume(paused)
    assert ended.status == "completed"
    assert git(origin, "show", "feature:b.txt") == "a"
    assert git(origin, "log", "--format=%s", "feature").splitlines() == ["t2", "t1", "start"]
    kept = workshop.entries(ended, WorkCommitted)
    assert kept[-1].commit == git(origin, "rev-parse", "feature")  # type: ignore[union-attr]


def test_what_was_not_recorded_is_not_gone_on_from(workshop: Workshop, origin: Path, tmp_path: Path) -> None:
    """The machine dies in its second task, with changes that no boundary has kept."""
    plan = at(origin, "echo a > a.txt", "test -e junk && exit 1; echo b > b.txt")
    with Here(workshop.settings) as here:
        workflow = here.service.start(plan, claim="run-nowhere-1-aaa#1")
        place = _clone_of(workshop, origin)
        (place / "junk").touch()
    other = elsewhere(workshop, tmp_path / "other-home")
    ended = other.resume(workflow)
    assert ended.status == "completed"
    assert git(origin, "ls-tree", "--name-only", "feature").split() == ["a.txt", "b.txt"]
    assert [one.attempt for one in workshop.entries(ended, TaskStarted)] == [1, 1]  # type: ignore[union-attr]


def _clone_of(workshop: Workshop, origin: Path) -> Path:
    folder = workshop.settings.home / "worktrees" / "somewhere"
    subprocess.run(["git", "clone", "--quiet", str(origin), str(folder)], check=True)
    return folder


def test_a_branch_that_moved_on_is_not_written_over(workshop: Workshop, origin: Path, tmp_path: Path) -> None:
    def moved() -> str:
        other = tmp_path / "theirs"
        return (
            f"git clone -q {origin} {other} && git -C {other} checkout -q -B feature && "
            f"git -C {other} commit -q --allow-empty -m theirs && git -C {other} push -q origin feature"
        )

    ended = workshop.run(at(origin, "echo a > a.txt", moved()))
    assert ended.status == "completed"
    assert git(origin, "log", "--format=%s", "-1", "feature") == "theirs"
    warned = workshop.entries(ended, Warned)
    assert "branch feature was not updated" in warned[-1].text  # type: ignore[union-attr]
    ref = workshop.entries(ended, WorkCommitted)[-1].ref  # type: ignore[union-attr]
    assert git(origin, "show", f"{ref}:a.txt") == "a"


def test_a_repository_that_is_not_there_pauses_with_its_name(workshop: Workshop, tmp_path: Path) -> None:
    paused = workshop.run(at(tmp_path / "nowhere.git", "true"))
    assert paused.status == "paused"
    assert "its repository cannot be used" in (paused.pause_reason or "")


def test_a_push_that_fails_keeps_the_task_pending(workshop: Workshop, origin: Path, tmp_path: Path) -> None:
    away = tmp_path / "away.git"
    paused = workshop.run(at(origin, f"echo a > a.txt; mv {origin} {away}"))
    assert paused.status == "paused"
    assert "could not be saved" in (paused.pause_reason or "")
    assert workshop.tasks(paused)["t1"].status == "pending"


def _marks(path: Path, mark: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho \"$0\" >>'{mark}'\ncat\n")
    path.chmod(0o755)
    return path


def test_neither_hooks_nor_filters_nor_other_protocols(
    workshop: Workshop, origin: Path, tmp_path: Path
) -> None:
    """Of the repository that is cloned, or planted in the clone by what a task runs."""
    mark = tmp_path / "ran"
    program = _marks(tmp_path / "program", mark)
    for name in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        _marks(origin / "hooks" / name, mark)
    plant = (
        "mkdir -p .git/hooks; "
        f"for one in pre-commit post-commit pre-push; do cp {program} .git/hooks/$one; done; "
        f"git config filter.x.clean {program}; git config remote.origin.receivepack {program}; "
        "echo '* filter=x' > .gitattributes"
    )
    ended = workshop.run(at(origin, plant, "echo b > b.txt"))
    assert ended.status == "completed"
    assert git(origin, "show", "feature:b.txt") == "b"
    assert not mark.exists(), mark.read_text()


def test_filters_of_the_users_own_settings_run(
    workshop: Workshop, origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Git LFS does: without it the contents would be committed where a pointer belongs."""
    settings = tmp_path / "gitconfig"
    settings.write_text('[filter "loud"]\n\tclean = tr a-z A-Z\n\trequired = true\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    ended = workshop.run(at(origin, "echo '*.txt filter=loud' > .gitattributes; echo a > a.txt"))
    assert ended.status == "completed"
    assert git(origin, "show", "feature:a.txt") == "A"


@pytest.mark.parametrize("address", ["ext::{program} %S", "--upload-pack={program}", "evil://host/x"])
def test_a_repository_whose_address_has_a_program_run_is_not_used(
    workshop: Workshop, tmp_path: Path, address: str
) -> None:
    program = _marks(tmp_path / "program", tmp_path / "ran")
    paused = workshop.run(plan_of("true", repository=address.format(program=program), branch="feature"))
    assert paused.status == "paused"
    assert not (tmp_path / "ran").exists()
