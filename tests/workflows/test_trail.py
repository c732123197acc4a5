"""What tasks change in files is recorded, task by task, and can be taken back."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cli.harness import PROGRAM
from holdfast.base.process import identify
from holdfast.model.entry import Warned
from holdfast.model.workflow import Workflow
from holdfast.undo.ledger import Transaction
from holdfast.undo.state import LedgerEntry
from holdfast.undo.transactions import SideCar

from .harness import Workshop, plan_of, wait_for


@pytest.fixture
def sidecar(workshop: Workshop) -> Iterator[SideCar]:
    with SideCar(workshop.project) as opened:
        yield opened


def the_only(sidecar: SideCar) -> Transaction:
    (found,) = sidecar.transactions()
    return found


def changes(entry: LedgerEntry) -> list[str]:
    return [change.path for change in entry.changes]


def test_every_task_is_one_change_of_the_sessions_transaction(workshop: Workshop, sidecar: SideCar) -> None:
    project = workshop.project
    (project / "mine").write_text("mine\n")
    ended = workshop.run(
        plan_of("echo one > a; mkdir -p deep/er", "true", "rm mine; echo two >> a; echo x > deep/er/b")
    )
    found = the_only(sidecar)
    assert (found.id, found.session_id, found.status) == (f"{ended.id}-s1", f"{ended.id}-s1", "committed")
    assert [(one.description, changes(one), one.doubt) for one in found.changes] == [
        ("t1", ["a", "deep/", "deep/er/"], ""),
        ("t3", ["a", "deep/er/b", "mine"], ""),
    ]
    sidecar.undo(found.changes[1].id)
    assert ((project / "a").read_text(), (project / "mine").read_text()) == ("one\n", "mine\n")
    assert not (project / "deep" / "er" / "b").exists()


def test_the_command_line_takes_a_session_back(workshop: Workshop) -> None:
    ended = workshop.run(plan_of("echo one > a", "echo two > b"))
    place = workshop.place
    assert place.json("tx", "list")[0]["files"] == ["a", "b"]
    assert " t2\n" in place.ok("tx", "show", f"{ended.id}-s1").out
    place.ok("tx", "undo", "last")
    assert not (workshop.project / "b").exists()
    place.ok("tx", "rollback", ended.id, "--yes")
    assert not (workshop.project / "a").exists()
    assert place.json("tx", "list")[0]["status"] == "rolled-back"


def test_what_a_failed_task_did_is_recorded(workshop: Workshop, sidecar: SideCar) -> None:
    ended = workshop.run(plan_of("echo half > a; exit 3"))
    assert ended.status == "failed"
    assert [changes(one) for one in the_only(sidecar).changes] == [["a"]]
    assert the_only(sidecar).status == "committed"


def test_a_session_that_changes_nothing_leaves_no_transaction(workshop: Workshop, sidecar: SideCar) -> None:
    workshop.run(plan_of("true", "true"))
    assert sidecar.transactions() == []


def test_the_next_session_continues_the_one_before(workshop: Workshop, sidecar: SideCar) -> None:
    paused = workshop.run(plan_of("echo one > a", "echo two > b", pause_every=1))
    assert the_only(sidecar).status == "committed"
    (workshop.project / "a").write_text("the user's\n")
    workshop.resume(paused)
    later, first = sidecar.transactions()
    assert (later.id, later.continued_from) == (f"{paused.id}-s2", first.id)
    assert [changes(one) for one in later.changes] == [["b"]]


def test_rolled_back_while_it_runs(workshop: Workshop, sidecar: SideCar) -> None:
    take_back = f"{' '.join(PROGRAM)} tx rollback --yes"
    ended = workshop.run(plan_of("echo one > a", take_back, "echo two > b"))
    assert ended.status == "completed"
    second, first = sidecar.transactions()
    assert (first.status, second.status) == ("rolled-back", "committed")
    assert [changes(one) for one in second.changes] == [["b"]]
    assert not (workshop.project / "a").exists()


def test_rolled_back_while_a_task_runs_its_own_change_is_recorded(
    workshop: Workshop, sidecar: SideCar
) -> None:
    """The watch ended with the rollback: what the task had made was the user's, and no undo knew it."""
    take_back = f"echo two > b; {' '.join(PROGRAM)} tx rollback --yes; echo three > c"
    ended = workshop.run(plan_of("echo one > a", take_back, "echo four > d"))
    assert ended.status == "completed"
    second, first = sidecar.transactions()
    assert (first.status, second.status) == ("rolled-back", "committed")
    assert [(one.description, changes(one), one.doubt) for one in second.changes] == [
        ("t2", ["b", "c"], ""),
        ("t3", ["d"], ""),
    ]
    sidecar.rollback(second.id)
    assert not [name for name in "abcd" if (workshop.project / name).exists()]


def test_a_session_after_an_undone_rollback_has_a_transaction_of_its_own(
    workshop: Workshop, sidecar: SideCar
) -> None:
    """It went on in the restored one, and `resume --from --files` found nothing that came later."""
    paused = workshop.run(plan_of("echo one > a", "echo two > b", "exit 3", pause_every=1))
    place = workshop.place
    rollback = sidecar.rollback(f"{paused.id}-s1")
    sidecar.undo(rollback.entry.id)
    assert the_only(sidecar).status == "committed"
    workshop.resume(paused)
    later = sidecar.transaction(f"{paused.id}-s2")
    assert ([changes(one) for one in later.changes], later.continued_from) == ([["b"]], f"{paused.id}-s1")
    first = next(one for one in place.json("snapshot", "list") if one["session_number"] == 1)
    place.run("resume", "--from", first["session_id"], "--files", "--yes")
    restored = sidecar.transaction(f"{paused.id}-s2")
    assert [one.kind for one in restored.entries] == ["begin", "change", "commit", "undo"]
    assert changes(restored.entries[-1]) == ["b"]


def test_one_enormous_file_does_not_keep_the_others_from_being_recorded(
    workshop: Workshop, sidecar: SideCar
) -> None:
    enormous = workshop.project / "disk.img"
    enormous.touch()
    os.truncate(enormous, 20 << 30)
    ended = workshop.run(plan_of("echo one > a", "rm disk.img"))
    found = the_only(sidecar)
    assert (ended.status, [changes(one) for one in found.changes]) == ("completed", [["a"]])
    assert found.uncovered == ("too large to read: disk.img",)


def test_what_cannot_be_recorded_is_said_in_the_terminal(workshop: Workshop) -> None:
    place = workshop.place
    plan = "issue: {id: W, title: Work}\ntasks:\n  - {id: t1, run: 'echo one > a'}\n"
    (place.project / "plan.yaml").write_text(plan)
    place.ok("winddown", "start", "--percent", "0.9")
    place.ok("winddown", "discard")
    (place.project / ".holdfast" / "sidecar").write_text("in the way\n")
    told = place.run("run", "plan.yaml")
    assert (told.code, (place.project / "a").read_text()) == (0, "one\n")
    assert "file changes made by tasks are not recorded" in told.err


def test_killed_before_it_changed_anything_the_next_session_is_recorded(
    workshop: Workshop, sidecar: SideCar
) -> None:
    """The transaction without changes was dropped while the next one was made to follow it."""
    plan = workshop.project / "plan.yaml"
    hold = 'if [ "$HOLDFAST_ATTEMPT" = 1 ]; then touch ../ready; sleep 60; fi; echo one > a'
    plan.write_text(f"issue: {{id: W, title: Work}}\ntasks:\n  - {{id: t1, run: '{hold}'}}\n")
    with workshop.program("run", "plan.yaml") as process:
        wait_for((workshop.project.parent / "ready").exists)
        process.send_signal(signal.SIGKILL)
        process.wait()
    workshop.place.ok("resume")
    assert [changes(one) for one in the_only(sidecar).changes] == [["a"]]


def test_killed_in_a_task_what_it_did_is_in_doubt_and_the_next_session_has_its_own(
    workshop: Workshop, sidecar: SideCar
) -> None:
    plan = workshop.project / "plan.yaml"
    hold = 'if [ "$HOLDFAST_ATTEMPT" = 1 ]; then echo half > b; touch ../ready; sleep 60; fi; echo two > b'
    plan.write_text(
        "issue: {id: W, title: Work}\ntasks:\n"
        f"  - {{id: t1, run: 'echo one > a'}}\n  - {{id: t2, depends_on: [t1], run: '{hold}'}}\n"
    )
    with workshop.program("run", "plan.yaml") as process:
        wait_for((workshop.project.parent / "ready").exists)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert the_only(sidecar).status == "in-progress"
    workshop.place.ok("resume")
    later, first = sidecar.transactions()
    assert [one.status for one in (first, later)] == ["committed", "committed"]
    assert (later.continued_from, [changes(one) for one in later.changes]) == (first.id, [["b"]])
    assert [(changes(one), bool(one.doubt)) for one in first.changes] == [(["a"], False), (["b"], True)]
    with SideCar(workshop.project) as other:
        other.rollback(later.id)
        other.rollback(first.id, doubtful=True)
    assert not (workshop.project / "b").exists()


def test_tasks_side_by_side_are_named_together(workshop: Workshop, sidecar: SideCar) -> None:
    wait = "while [ ! -e b ]; do sleep 0.01; done"
    ended = workshop.run(plan_of(f"echo one > a; {wait}", "echo two > b", chained=False, parallel=2))
    assert ended.status == "completed"
    found = the_only(sidecar).changes
    assert sorted(path for one in found for path in changes(one)) == ["a", "b"]
    assert "beside" in found[0].description or ";" in found[0].description


@pytest.mark.parametrize("broken", ["file", "locked", "newer"])
def test_a_side_car_that_cannot_record_costs_its_record_alone(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    folder = workshop.project / ".holdfast" / "sidecar"
    folder.parent.mkdir()
    if broken == "file":
        folder.write_text("in the way")
    else:
        with SideCar(workshop.project) as sidecar:
            sidecar.collect()
    if broken == "newer":
        subprocess.run(
            ["python3", "-c", f"import sqlite3; sqlite3.connect({str(folder / 'holdfast-state.db')!r})"
             ".execute('PRAGMA user_version = 99')"],
            check=True,
        )  # fmt: skip
    if broken == "locked":
        from holdfast.base.durable import lock_file
        from holdfast.workflows import file_recorder

        monkeypatch.setattr(file_recorder, "PATIENCE", 0.05)
        with lock_file(folder / "holdfast.lock"):
            ended = workshop.run(plan_of("echo one > a", "echo two > b"))
    else:
        ended = workshop.run(plan_of("echo one > a", "echo two > b"))
    assert ended.status == "completed"
    told = [entry.text for entry in workshop.entries(ended, Warned) if isinstance(entry, Warned)]
    assert told
    assert all("not recorded" in text for text in told)
    assert len(told) == len(set(told))


def test_switched_off_nothing_is_recorded(workshop: Workshop) -> None:
    workshop.settings = replace(workshop.settings, record_files=False)
    assert workshop.run(plan_of("echo one > a")).status == "completed"
    assert not (workshop.project / ".holdfast" / "sidecar").exists()


def test_another_session_in_the_same_tree_makes_it_doubtful_and_loses_nothing(
    workshop: Workshop, sidecar: SideCar
) -> None:
    other = sidecar.take_up("another", owner=identify(os.getppid()))
    ended = workshop.run(plan_of("echo one > a"))
    found = sidecar.transaction(f"{ended.id}-s1").changes
    assert [(changes(one), one.doubt) for one in found] == [(["a"], "another was also watching it")]
    assert sidecar.finish(other) is None


def test_ignored_files_and_folders_are_left_out(workshop: Workshop, sidecar: SideCar) -> None:
    (workshop.project / ".gitignore").write_text("build/\n*.log\n")
    build = "mkdir -p build/deep; echo x > build/deep/x; echo x > y.log"
    late = "echo '*.tmp' > .gitignore; echo x > z.log; echo x > z.tmp"
    workshop.run(plan_of(build, f"{build}; echo one > a", late))
    assert [changes(one) for one in the_only(sidecar).changes] == [
        ["a"],
        [".gitignore", "build/", "build/deep/", "build/deep/x", "y.log", "z.log"],
    ]


def test_a_folder_without_git(workshop: Workshop, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    workshop.settings = replace(workshop.settings, project=plain)
    ended: Workflow = workshop.run(plan_of("mkdir -p x/y", "true", "echo one > x/y/a"))
    with SideCar(plain) as sidecar:
        assert [changes(one) for one in sidecar.transaction(f"{ended.id}-s1").changes] == [
            ["x/", "x/y/"],
            ["x/y/a"],
        ]
