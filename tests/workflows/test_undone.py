"""A plan knows whether what each completed task changed in files still stands, and what brings it back."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from cli.harness import PROGRAM, Place
from holdfast.base.errors import IllegalTransitionError
from holdfast.model.workflow import Workflow
from holdfast.sessions.undone import UndoneWork, judged, undone_work
from holdfast.undo.ledger import fold
from holdfast.undo.plan import touched_by
from holdfast.undo.transactions import SideCar
from holdfast.workflows.service import UndoneWorkError
from soak import repeated

from .harness import Workshop, plan_of


@pytest.fixture
def sidecar(workshop: Workshop) -> Iterator[SideCar]:
    with SideCar(workshop.project) as opened:
        yield opened


def undone(workshop: Workshop, workflow: Workflow) -> UndoneWork:
    with workshop.service() as service:
        return undone_work(service.store.workflow(workflow.id), service.tasks(workflow.id).tasks)


def states(workshop: Workshop, workflow: Workflow) -> dict[str, str]:
    return {one.task_id: one.state for one in undone(workshop, workflow).tasks}


def restore(place: Place) -> None:
    """As `status` says: each command, in its order."""
    for command in place.json("status")["workflow"]["undone"]["restore_with"]:
        program, *words = command.split()
        assert program == "holdfast"
        place.ok(*words)


FAILS = "[ -e ready ]"


def in_two_sessions(workshop: Workshop) -> Workflow:
    """t1 in the first, t2 in the second one, t3 fails in the third."""
    paused = workshop.run(plan_of("echo one > a", "echo two > b", FAILS, pause_every=1))
    workshop.resume(paused)
    return workshop.resume(paused)


def test_a_session_that_was_rolled_back_is_not_resumed(workshop: Workshop, sidecar: SideCar) -> None:
    paused = workshop.run(plan_of("echo one > a", "cat a", pause_every=1))
    rollback = sidecar.rollback(f"{paused.id}-s1")
    with pytest.raises(IllegalTransitionError, match="what completed tasks had changed was undone: t1") as no:
        workshop.resume(paused)
    assert f"`holdfast tx undo {rollback.entry.id}` restores it" in (no.value.hint or "")
    sidecar.undo(rollback.entry.id)
    assert workshop.resume(paused).status == "completed"


def test_status_and_context_say_that_a_failed_session_was_rolled_back(workshop: Workshop) -> None:
    """They named `retry` and `skip`, which are refused, and called its tasks done."""
    workshop.run(plan_of("echo one > a", "exit 3"))
    place = workshop.place
    assert "try again: holdfast retry" in place.ok("status").out
    assert "undone" not in place.ok("context", "latest").out
    place.ok("tx", "rollback", "last", "--yes")
    told = place.ok("status").out
    assert "what completed tasks had changed was undone: t1\n" in told
    assert "holdfast retry" not in told
    assert "holdfast skip" not in told
    found = place.json("status")["workflow"]["undone"]
    assert [(one["id"], one["state"], one["paths"]) for one in found["tasks"]] == [("t1", "undone", ["a"])]
    context = place.ok("context", "latest").out
    assert "What completed tasks had changed was undone: t1" in context
    (command,) = found["restore_with"]
    assert f"`{command}`" in context
    place.run("retry").failed(1, error="what completed tasks had changed was undone: t1", hint=command)
    restore(place)
    assert "try again: holdfast retry" in place.ok("status").out
    assert place.json("status")["workflow"]["undone"] is None


def test_a_completed_plan_that_was_rolled_back_says_so_from_anywhere(workshop: Workshop) -> None:
    ended = workshop.run(plan_of("echo one > a", "echo two > b"))
    place = workshop.place
    place.ok("tx", "rollback", "last", "--yes")
    assert "what completed tasks had changed was undone: t1, t2\n" in place.ok("status").out
    elsewhere = place.root / "elsewhere"
    elsewhere.mkdir()
    assert "was undone: t1, t2" in place.ok("status", ended.id, cwd=elsewhere).out


def test_of_two_sessions_rolled_back_both_are_named(workshop: Workshop) -> None:
    """`status` named one; after that was undone, `retry` ran over what the other had made."""
    flow = in_two_sessions(workshop)
    place = workshop.place
    for number in (1, 2):
        place.ok("tx", "rollback", f"{flow.id}-s{number}", "--yes")
    told = place.json("status")["workflow"]["undone"]
    assert [one["id"] for one in told["tasks"]] == ["t1", "t2"]
    assert len(told["restore_with"]) == 2
    place.ok(*told["restore_with"][0].split()[1:])
    place.run("retry").failed(1, error="was undone: t1", hint=told["restore_with"][1])
    restore(place)
    (workshop.project / "ready").touch()
    assert "✓ Workflow completed" in place.run("retry").out
    assert [(workshop.project / name).read_text() for name in "ab"] == ["one\n", "two\n"]


@pytest.mark.parametrize("how", ["last", "id", "file"])
def test_the_change_of_one_task_undone_is_seen(workshop: Workshop, sidecar: SideCar, how: str) -> None:
    flow = workshop.run(plan_of("echo one > a", "echo two > b", FAILS))
    place = workshop.place
    changes = {one.tasks[0]: one.id for one in sidecar.transaction(f"{flow.id}-s1").changes}
    words = {
        "last": ("undo", "last"),
        "id": ("undo", changes["t2"]),
        "file": ("rollback", "last", "--file", "b", "--yes"),
    }
    place.ok("tx", *words[how])
    assert "was undone: t2\n" in place.ok("status").out
    assert "was undone: t2." in place.ok("context", "latest").out
    for refused in (("retry",), ("resume",), ("skip", "t3")):
        told = place.run(*refused)
        assert (told.code, "what completed tasks had changed was undone: t2" in told.err) == (1, True)
    restore(place)
    assert (workshop.project / "b").read_text() == "two\n"
    assert states(workshop, flow) == {}


def test_of_a_change_of_two_files_one_is_undone(workshop: Workshop) -> None:
    flow = workshop.run(plan_of("echo one > a; echo two > b", FAILS))
    place = workshop.place
    place.ok("tx", "undo", "last", "--file", "b")
    assert states(workshop, flow) == {"t1": "partly_undone"}
    assert "was undone: t1 (b)\n" in place.ok("status").out
    place.run("retry").failed(1, error=r"was undone: t1 \(b\)")
    restore(place)
    (workshop.project / "ready").touch()
    assert "✓ Workflow completed" in place.run("retry").out


def test_some_lines_of_a_change_undone_are_seen(workshop: Workshop) -> None:
    (workshop.project / "a").write_text("".join(f"{number}\n" for number in range(20)))
    edit = "sed -i -e s/^2$/two/ -e s/^17$/seventeen/ a"
    flow = workshop.run(plan_of(edit, FAILS))
    workshop.place.ok("tx", "undo", "last", "--hunks", "1")
    assert states(workshop, flow) == {"t1": "partly_undone"}
    restore(workshop.place)
    assert states(workshop, flow) == {}


def test_lines_of_a_file_that_two_tasks_changed_are_of_one_of_them(workshop: Workshop) -> None:
    (workshop.project / "a").write_text("".join(f"{number}\n" for number in range(40)))
    edits = [*(f"sed -i -e s/^{number}$/x/ a" for number in (2, 35)), "sed -i -e /^20$/d a"]
    flow = workshop.run(plan_of(*edits, FAILS))
    for hunk, task in (("1", "t1"), ("3", "t2"), ("2", "t3")):
        workshop.place.ok("tx", "undo", f"{flow.id}-s1", "--hunks", hunk)
        assert states(workshop, flow) == {task: "partly_undone"}
        assert f"what completed tasks had changed was undone: {task} (a)" in workshop.place.ok("status").out
        restore(workshop.place)
        assert states(workshop, flow) == {}


def test_a_line_that_two_tasks_changed_is_of_the_later_one(workshop: Workshop) -> None:
    (workshop.project / "a").write_text("".join(f"{number}\n" for number in range(20)))
    flow = workshop.run(plan_of("sed -i -e s/^2$/x/ -e s/^17$/x/ a", "sed -i -e 0,/x/s/x/y/ a", FAILS))
    workshop.place.ok("tx", "undo", f"{flow.id}-s1", "--hunks", "1")
    assert states(workshop, flow).keys() >= {"t2"}


def test_whose_a_line_is_random_changes_tell() -> None:
    for _ in range(repeated(2_000)):
        lines = [f"old {number}" for number in range(random.randint(3, 12))]
        whose: dict[str, str | None] = dict.fromkeys(lines)
        versions: list[tuple[str | None, bytes, bytes]] = []
        for number in range(random.randint(2, 12)):
            who, before = random.choice(("t1", "t2", None)), content(lines)
            if random.random() < 0.4 and lines:
                lines.remove(random.choice(lines))
            else:
                lines.insert(random.randint(0, len(lines)), f"new {number}")
                whose[f"new {number}"] = who
            if who or random.random() < 0.5:  # what the user did between two changes is not on record
                versions.append((who, before, content(lines)))
        for line in lines:
            without = content([one for one in lines if one != line])
            assert touched_by(versions, content(lines), without) == {whose[line]}


def content(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def test_where_comparing_takes_too_long_nobody_can_tell() -> None:
    before, after = (content([f"{start + number}" for number in range(1_100)]) for start in (0, 5_000))
    assert touched_by([("t1", before, after)], after, before) == {None}
    longer = content(["the same"] * 50_000)
    assert touched_by([("t1", longer, longer + b"end\n")], longer + b"end\n", longer) == {"t1"}


def test_lines_of_two_tasks_that_ended_together_may_be_of_both(workshop: Workshop) -> None:
    """Of a file that changed while both were at work, nobody can tell."""
    (workshop.project / "a").write_text("".join(f"{number}\n" for number in range(20)))
    flow = workshop.run(plan_of("sed -i -e s/^2$/x/ a", "sed -i -e s/^17$/x/ a", FAILS))
    with SideCar(workshop.project) as sidecar:
        (found,) = [one for one in sidecar.family(flow.id) if one.id == f"{flow.id}-s1"]
        together = [one.model_copy(update={"beside": ("t9",)}) if one.tasks else one for one in found.entries]
        workshop.place.ok("tx", "undo", f"{flow.id}-s1", "--hunks", "1")
        undo = sidecar.transaction(found.id).entries[-1]
        with workshop.service() as service:
            tasks = service.tasks(flow.id).tasks[:2]
        work = judged([fold([*together, undo])], tasks, sidecar.content)
    assert {one.task_id: one.state for one in work.tasks} == {"t1": "cannot_tell", "t2": "cannot_tell"}
    assert work.facts == ("some of what was undone may have been changed by completed tasks: t1 (a), t2 (a)",)


def test_what_was_undone_before_a_task_ran_again_is_none_of_its_change(workshop: Workshop) -> None:
    """Also where it found nothing to change then."""
    tries = f"{FAILS} || {{ echo x > made; exit 1; }}"
    flow = workshop.run(plan_of("true", tries, "exit 4"))
    workshop.place.ok("tx", "rollback", "last", "--yes")
    (workshop.project / "ready").touch()
    workshop.place.run("resume")
    assert workshop.tasks(flow)["t2"].status == "completed"
    assert states(workshop, flow) == {}


def test_what_an_earlier_attempt_made_belongs_to_the_task(workshop: Workshop) -> None:
    flow = workshop.run(plan_of("echo x > made", f"echo half > b; {FAILS}", "exit 4"))
    (workshop.project / "ready").touch()
    workshop.place.run("resume")
    assert states(workshop, flow) == {}
    workshop.place.ok("tx", "undo", f"{flow.id}-s1")
    assert not (workshop.project / "b").exists()
    assert states(workshop, flow) == {"t2": "undone"}
    restore(workshop.place)
    assert states(workshop, flow) == {}


def test_the_user_may_go_on_without_it(workshop: Workshop) -> None:
    flow = workshop.run(plan_of("echo one > a", f"{FAILS}; exit 5", "true"))
    place = workshop.place
    place.ok("tx", "undo", "last")
    assert f"or continue without it: holdfast resume {flow.id} --accept-undone" in place.ok("status").out
    assert "error: what completed tasks had" in place.run("resume", "--strict", "--accept-undone").err
    resumed = place.run("resume", "--accept-undone")
    assert "warning: What completed tasks had changed was undone: t1" in resumed.err
    assert "was undone: t1" in str(workshop.entries(flow))
    told = place.ok("status").out
    assert "was undone: t1" in told, "it goes on without it, and still lacks it"
    assert "continue without it" not in told
    assert "Restore it with `holdfast tx undo" in place.ok("context", "latest").out
    assert "cannot retry" not in place.run("retry").err
    place.ok("tx", "redo", f"{flow.id}-s1")
    assert (workshop.project / "a").read_text() == "one\n"
    assert states(workshop, flow) == {}


def test_an_undo_of_an_undone_undo_is_undone_again(workshop: Workshop, sidecar: SideCar) -> None:
    flow = workshop.run(plan_of("echo one > a", FAILS))
    first = sidecar.undo(sidecar.transactions()[0].changes[0].id).entry.id
    second = sidecar.undo(first).entry.id
    assert states(workshop, flow) == {}
    sidecar.undo(second)
    assert states(workshop, flow) == {"t1": "undone"}
    restore(workshop.place)
    assert states(workshop, flow) == {}
    assert (workshop.project / "a").exists()


def test_what_waits_for_approval_is_not_approved_over_a_hole(workshop: Workshop) -> None:
    plan = workshop.project / "plan.yaml"
    plan.write_text(
        "issue: {id: W, title: Work}\ntasks:\n  - {id: t1, run: 'echo one > a'}\n"
        "  - {id: t2, run: 'cat a', depends_on: [t1], approval: true}\n"
    )
    place = workshop.place
    place.run("run", "plan.yaml")
    place.ok("tx", "undo", "last")
    assert "was undone: t1" in place.ok("status").out
    place.run("approve").failed(1, error="cannot approve .* was undone: t1", hint="holdfast tx undo ch_")
    place.run("skip", "t2").failed(1, error="cannot skip .* was undone: t1", hint="holdfast tx undo ch_")
    restore(place)
    assert "✓ Workflow completed" in place.ok("approve").out


def test_a_user_may_let_it_go_on_without_what_was_undone(workshop: Workshop) -> None:
    """As a resume does: it counts as settled from there on."""
    plan = workshop.project / "plan.yaml"
    tasks = "".join(f"  - {{id: t{n}, run: 'true', depends_on: [t1], approval: true}}\n" for n in (2, 3, 4))
    plan.write_text(f"issue: {{id: W, title: Work}}\ntasks:\n  - {{id: t1, run: 'echo one > a'}}\n{tasks}")
    workshop.place.run("run", "plan.yaml")
    workshop.place.ok("tx", "undo", "last")
    with workshop.service() as service:
        (flow,) = service.store.workflows()
        with pytest.raises(UndoneWorkError) as refused:
            service.skip(flow.id, "t2")
        assert refused.value.undone is not None
        assert refused.value.undone["is_certain"]
        service.skip(flow.id, "t2", accept_undone=True)
        assert not service.undone(service.workflow(flow.id), None)


def test_undone_while_it_runs_is_told_by_status(workshop: Workshop) -> None:
    take_back = f"{' '.join(PROGRAM)} tx undo last"
    flow = workshop.run(plan_of("echo one > a", take_back, "true"))
    assert flow.status == "completed"
    assert states(workshop, flow) == {"t1": "undone"}


def test_a_side_car_that_cannot_be_read_is_a_warning(workshop: Workshop) -> None:
    """It stood in the way of a resume, whatever had been done."""
    flow = workshop.run(plan_of("echo one > a", FAILS))
    folder = workshop.project / ".holdfast" / "sidecar"
    for branch in (folder / "refs" / "heads" / "holdfast").iterdir():
        branch.write_text("0" * 40 + "\n")
    assert "cannot tell whether what completed tasks had changed" in workshop.place.run("status").out
    (workshop.project / "ready").touch()
    resumed = workshop.place.run("resume", flow.id)
    assert "Cannot tell whether" in resumed.err
    assert "✓ Workflow completed" in resumed.out


def test_what_an_earlier_version_recorded_is_known_by_its_description(
    workshop: Workshop, sidecar: SideCar, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.undo import ledger
    from holdfast.undo.state import LedgerEntry, to_message

    def older(entry: LedgerEntry) -> str:
        subject, _, _ = to_message(entry).partition("\n\n")
        new = {"tasks", "beside", "number", "undone"}
        document = entry.model_copy(update={"schema_version": 3}).model_dump_json(exclude=new)
        return f"{subject}\n\n{document}"

    with monkeypatch.context() as earlier:
        earlier.setattr(ledger, "to_message", older)
        flow = workshop.run(plan_of("echo one > a", "echo two > b", FAILS))
        assert states(workshop, flow) == {}
        sidecar.undo(sidecar.transactions()[0].changes[0].id)
    assert states(workshop, flow) == {"t1": "undone"}
    restore(workshop.place)
    assert states(workshop, flow) == {}


def test_without_an_undo_nothing_is_opened(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = in_two_sessions(workshop)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the side-car was opened")

    monkeypatch.setattr("holdfast.sessions.undone.SideCar", refuse)
    assert not undone(workshop, flow)


# ── a copy of a plan ──────────────────────────────────────────────────────────────────────────────


def fork_of(workshop: Workshop, flow: Workflow, *words: str) -> Workflow:
    copied = workshop.place.json("fork", *words, "--workflow", flow.id)
    with workshop.service() as service:
        return service.workflow(copied["id"])


def test_a_fork_says_what_was_undone_as_the_original_does(workshop: Workshop) -> None:
    """It named no hole: the next agent was told that a change stands which had been undone."""
    flow = workshop.run(plan_of("echo one > a", "echo two > b", FAILS, "true"))
    place = workshop.place
    place.ok("tx", "undo", f"{flow.id}-s1")  # of t2
    copy = fork_of(workshop, flow, "t3")
    again = fork_of(workshop, copy)
    original = place.json("status", flow.id)["workflow"]["undone"]
    for one in (copy, again):
        assert place.json("status", one.id)["workflow"]["undone"] == original
        assert f"holdfast resume {one.id} --accept-undone" in place.ok("status", one.id).out
        name = place.json("status", one.id)["workflow"]["latest_snapshot"]
        assert "What completed tasks had changed was undone: t2." in place.ok("context", name).out
        refused = place.run("resume", one.id)
        assert refused.code == 1
        assert "had changed was undone: t2\nhint: `holdfast tx undo ch_" in refused.err
    (workshop.project / "ready").touch()
    resumed = place.run("resume", again.id, "--accept-undone")
    assert "warning: What completed tasks had changed was undone: t2" in resumed.err
    assert "✓ Workflow completed" in resumed.out
    assert "had changed was undone: t2" in place.run("resume", copy.id).err
    assert "continue without it" not in place.ok("status", again.id).out
    assert "was undone: t2" in place.ok("status", again.id).out, "it still lacks it"
    for command in original["restore_with"]:
        place.ok(*command.split()[1:])
    assert (workshop.project / "b").read_text() == "two\n"
    assert [states(workshop, one) for one in (flow, copy, again)] == [{}, {}, {}]


def test_what_is_undone_after_the_fork_is_undone_for_the_copy_too(workshop: Workshop) -> None:
    flow = workshop.run(plan_of("echo one > a", FAILS))
    copy = fork_of(workshop, flow)
    assert states(workshop, copy) == {}
    assert "t1" not in workshop.place.ok("tx", "list").out
    workshop.place.ok("tx", "undo", "last")
    assert states(workshop, copy) == states(workshop, flow) == {"t1": "undone"}


def test_a_fork_knows_nothing_of_what_the_original_did_since(workshop: Workshop) -> None:
    """Its tasks of the same name are others, and what one goes on without the other need not."""
    flow = workshop.run(plan_of("echo one > a", f"{FAILS} && echo two >> b", "exit 3"))
    copy = fork_of(workshop, flow)
    (workshop.project / "ready").touch()
    workshop.place.run("resume", flow.id)
    workshop.place.ok("tx", "undo", f"{flow.id}-s2")
    workshop.place.run("resume", copy.id)
    assert states(workshop, flow) == {"t2": "undone"}
    assert states(workshop, copy) == {}
    workshop.place.ok("tx", "undo", f"{flow.id}-s1")
    workshop.place.run("resume", flow.id, "--accept-undone")
    assert states(workshop, copy) == {"t1": "undone"}


@pytest.mark.parametrize("how", ["fork", "resume"])
def test_a_task_that_ran_again_elsewhere_and_found_nothing_to_do_stands(workshop: Workshop, how: str) -> None:
    """It ran for the first time in the copy, or since the older snapshot: its end was in no record."""
    flow = workshop.run(plan_of("echo one > a", f"{FAILS} || echo two > b", "exit 4", pause_every=1))
    workshop.resume(flow)
    with workshop.service() as service:
        first = service.snapshots(flow.id)[0]
    workshop.place.ok("tx", "rollback", f"{flow.id}-s2", "--yes")
    (workshop.project / "ready").touch()
    if how == "fork":
        flow = workshop.resume(fork_of(workshop, flow, "t2"))
    else:
        flow = workshop.resume(flow, snapshot_id=first.id)
    assert workshop.tasks(flow)["t2"].status == "completed"
    assert states(workshop, flow) == {}


def test_a_fork_from_an_older_snapshot_knows_of_its_tasks(workshop: Workshop) -> None:
    flow = in_two_sessions(workshop)
    with workshop.service() as service:
        first = service.snapshots(flow.id)[0]
    copy = fork_of(workshop, flow, "--from", first.id)
    for number in (2, 1):
        workshop.place.ok("tx", "rollback", f"{flow.id}-s{number}", "--yes")
    assert states(workshop, copy) == {"t1": "undone"}


# ── in another project ────────────────────────────────────────────────────────────────────────────


def carried(workshop: Workshop, *words: str) -> Place:
    """Another project, into which the plans, or the named session's, were taken."""
    bundle = workshop.place.root / "plans.holdfast"
    workshop.place.ok("export", bundle, *words)
    other = workshop.place.beside("other")
    other.ok("import", bundle)
    return other


def undone_in(place: Place) -> dict[str, dict[str, str]]:
    """By the number of tasks left: the plan's title is the same in all."""
    flows = [one for one in place.json("list") if one["worktree"] == str(place.project)]
    told = [place.json("status", one["id"])["workflow"] for one in flows]
    return {
        str(one["tasks_remaining"]): {
            task["id"]: task["state"] for task in (one["undone"] or {"tasks": ()})["tasks"]
        }
        for one in told
    }


@pytest.mark.parametrize("alone", [True, False])
def test_what_was_undone_is_known_where_a_plan_was_imported(workshop: Workshop, alone: bool) -> None:
    """An undo made after a later session counted as made before it: the tasks stood, it said."""
    flow = workshop.run(plan_of("echo x > made", f"echo half > b; {FAILS}", "exit 4"))
    (workshop.project / "ready").touch()
    workshop.place.run("resume")
    workshop.place.ok("tx", "undo", f"{flow.id}-s1")
    assert states(workshop, flow) == {"t2": "undone"}
    name = workshop.place.json("status", flow.id)["workflow"]["latest_snapshot"]
    other = carried(workshop, *(("--session", name) if alone else ()))
    assert undone_in(other) == {"1": {"t2": "undone"}}


@pytest.mark.parametrize("alone", [True, False])
def test_what_was_undone_is_known_where_a_fork_was_imported(workshop: Workshop, alone: bool) -> None:
    flow = workshop.run(plan_of("echo one > a", "echo two > b", FAILS, "true"))
    copy = fork_of(workshop, flow, "t2")
    workshop.place.ok("tx", "rollback", f"{flow.id}-s1", "--yes")
    name = workshop.place.json("status", copy.id)["workflow"]["latest_snapshot"]
    other = carried(workshop, *(("--session", name) if alone else ()))
    original = {} if alone else {"2": {"t1": "undone", "t2": "undone"}}
    assert undone_in(other) == {"3": {"t1": "undone"}, **original}


def test_a_fork_into_another_folder_says_what_was_undone_where_it_ran(workshop: Workshop) -> None:
    flow = workshop.run(plan_of("echo one > a", FAILS))
    workshop.place.ok("tx", "undo", "last")
    other = workshop.place.root / "other"
    other.mkdir()
    copy = fork_of(workshop, flow, "--cwd", str(other))
    said = f"in {workshop.project}, what completed tasks had changed was undone: t1"
    assert said in workshop.place.ok("status", copy.id).out
    name = workshop.place.json("status", copy.id)["workflow"]["latest_snapshot"]
    assert said in workshop.place.ok("context", name, cwd=other).out
