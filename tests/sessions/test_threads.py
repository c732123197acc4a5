"""Which sessions are one piece of work, and whether it is finished."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from holdfast.base.errors import InvalidInputError
from holdfast.model import gathered
from holdfast.model.gathered import (
    CommandUse,
    Commit,
    FileUse,
    Gathered,
    GitFacts,
    Happening,
    StoppingPoint,
    Turn,
)
from holdfast.model.git import GitState
from holdfast.model.message import TodoItem
from holdfast.model.snapshot import FileFingerprint, SessionSnapshot
from holdfast.sessions.threads import find_thread, open_because, threads_among
from store.samples import PLAN, at, snapshot, workflow

DONE = StoppingPoint("answered")
BUSY = StoppingPoint("working")


def git(branch: str = "main", uncommitted: tuple[str, ...] = (), **fields: Any) -> GitState:
    return GitState(
        branch=branch,
        commit_at_workflow_start=None,
        commit_at_snapshot="c" * 40,
        files_modified=uncommitted,
        files_staged=(),
        files_uncommitted=uncommitted,
        has_uncommitted_changes=bool(uncommitted),
        worktree="/srv/app",
        **fields,
    )


def file(path: str) -> FileUse:
    return FileUse(path, False, False, 1, 0, 0, 0, 0, 0)


def session(
    number: int,
    said: str = "Write the lexer for numbers please",
    files: tuple[str, ...] = (),
    stop: StoppingPoint = DONE,
    found: dict[str, Any] | None = None,
    prints: tuple[FileFingerprint, ...] = (),
    **fields: Any,
) -> SessionSnapshot:
    given_talk: dict[str, Any] = {"turns": (Turn(0, said),), **(found or {})}
    talk = Gathered(messages=4, files=tuple(map(file, files)), stop=stop, **given_talk)
    given: dict[str, Any] = {
        "trigger": "pause",
        "pause_reason": "the agent session ended",
        "git_state": git(),
        "gathered": talk,
        "conversation": f"c{number}",
        "files": prints,
        **fields,
    }
    return snapshot(
        id=f"snap_{number}",
        session_number=number,
        session_id=f"session-{number}",
        created_at=at(number),
        **given,
    )


def threads(*sessions: SessionSnapshot, **flow: Any) -> list[tuple[str, ...]]:
    return [one.sessions for one in threads_among((one, workflow(**flow)) for one in sessions)]


def test_a_session_that_did_no_work_belongs_to_none() -> None:
    assert threads(session(1, stop=BUSY), session(2, worked=False)) == [("session-1",)]


def test_one_conversation_is_one_thread_however_often_it_ended() -> None:
    first = session(1, files=("/srv/app/a.py",), stop=BUSY, conversation="same")
    assert threads(first, session(2, files=("b.py",), conversation="same")) == [("session-2", "session-1")]


def test_the_same_files_on_one_branch_are_one_thread() -> None:
    first = session(1, files=("/srv/app/a.py", "b.py"), stop=BUSY)
    assert len(threads(first, session(2, files=("a.py",)))) == 1
    assert len(threads(first, session(2, files=("a.py",), git_state=git("other")))) == 2
    assert len(threads(first, session(2, files=("c.py",)))) == 2


def test_what_goes_on_from_a_handover_belongs_to_it_unless_it_did_something_else() -> None:
    first = session(1, files=("a.py",), stop=BUSY)
    took: dict[str, Any] = {"continues": "session-1"}
    assert len(threads(first, session(2, "Go on", ("c.py",), **took))) == 1
    assert len(threads(first, session(2, "Now finish it and test it well", ("a.py", "c.py"), **took))) == 1
    assert (
        len(threads(first, session(2, "Please update the licence file in docs", ("LICENCE",), **took))) == 2
    )


def test_a_plan_is_one_thread_named_by_its_workflow() -> None:
    found = threads_among(
        (session(n, task_dag=PLAN, gathered=None), workflow(status="paused")) for n in (1, 2)
    )
    assert [(one.id, one.status, one.sessions) for one in found] == [
        (workflow().id, "open", ("session-2", "session-1"))
    ]
    ended = threads_among([(session(1, task_dag=PLAN), workflow(status="completed"))])
    assert ended[0].status == "finished"


def test_open_threads_come_before_finished_ones_and_newer_before_older() -> None:
    told = [
        session(1, files=("a",), stop=BUSY),
        session(2, files=("b",)),
        session(3, files=("c",), stop=BUSY),
    ]
    assert threads(*told) == [("session-3",), ("session-1",), ("session-2",)]


def test_the_title_is_the_first_request_that_says_something() -> None:
    first = session(1, "hi", stop=BUSY, conversation="same")
    (found,) = threads_among((one, workflow()) for one in (first, session(2, conversation="same")))
    assert found.title == "Write the lexer for numbers please"


RAN = CommandUse("make", 1, 0, 0, False)
LOOKED = CommandUse("git status --short | head", 1, 0, 0, False)
SCRIPT = Happening(1, "shell", "python - <<'E'\nopen('b.py', 'w')\nE", "ok")


def written(path: str, at: str, content: str = "a") -> FileFingerprint:
    moment = int(datetime.fromisoformat(at).timestamp()) * 1_000_000_000
    return FileFingerprint(path=path, hash=f"sha256:{content * 64}", mtime_ns=moment, size=1, ctime_ns=moment)


RED = gathered.TestRun(0, "pytest -q", False)
LINT = gathered.TestRun(0, "ruff check", False, kind="lint")
COMMITTED = {"todos_index": 1, "git": GitFacts(commits=(Commit(2, "1a2b3c4", "Hang the door"),))}


@pytest.mark.parametrize(
    ("told", "because"),
    [
        (session(1), ""),
        (session(1, stop=StoppingPoint("spoke")), ""),
        (session(1, files=("a.py",)), ""),
        (session(1, files=("a.py",), git_state=git(uncommitted=("b.py",))), ""),
        (session(1, git_state=git(uncommitted=("b.py",))), ""),
        (session(1, closed=True, stop=BUSY), ""),
        (session(1, git_state=git(uncommitted=("b.py",)), found={"commands": (RAN,)}), "not committed: b.py"),
        (
            session(1, git_state=git(uncommitted=("b.py",)), found={"happened": (SCRIPT,)}),
            "not committed: b.py",
        ),
        (session(1, git_state=git(uncommitted=("b.py",)), found={"commands": (LOOKED,)}), ""),
        (
            session(
                1,
                git_state=git(uncommitted=("b.py", "c.py")),
                files=(),
                found={"commands": (RAN,), "began": "2026-01-06T12:00:00.500Z"},
                prints=(written("b.py", "2026-01-06T11:59:00Z"), written("c.py", "2026-01-06T12:00:01Z")),
            ),
            "not committed: c.py",
        ),
        (session(1, files=("/srv/app/a.py",), git_state=git(uncommitted=("a.py",))), "not committed: a.py"),
        (session(1, files=("new/a.py",), git_state=git(uncommitted=("new/",))), "not committed: new/"),
        (
            session(1, files=("a.py",), git_state=git(uncommitted=("a.py",)).changed(files_uncommitted=None)),
            "not committed: a.py",
        ),
        (
            session(
                1,
                files=("/by/a/link/a.py",),
                git_state=git(uncommitted=("a.py",)),
                found={"cwd": "/by/a/link"},
            ),
            "not committed: a.py",
        ),
        (
            session(1, found={"last_words": "Two are ported. Ten modules remain: m3 to m12."}),
            "the agent's last words: Ten modules remain: m3 to m12.",
        ),
        (session(1, found={"last_words": "All are ported. Nothing remains to be done."}), ""),
        (session(1, git_state=git(operation="rebase")), "a rebase is in progress"),
        (session(1, found={"tests": RED}), "tests fail: pytest -q"),
        (session(1, found={"checks": (LINT,)}), "the linter fails: ruff check"),
        (session(1, found={"todos": (TodoItem("sew", "pending"),)}), "1 task left: sew"),
        (session(1, found={"todos": (TodoItem("Commit it", "pending"),), **COMMITTED}), ""),
        (session(1, stop=StoppingPoint("asked", "A or B?")), "the agent asked the user something: A or B?"),
        (session(1, stop=StoppingPoint()), "how it ended is not recorded"),
        (session(1, trigger="crash", pause_reason="the agent was killed"), "the agent was killed"),
        (session(1, pause_reason="lunch"), "paused: lunch"),
        (session(1, gathered=None), "paused: the agent session ended"),
    ],
)
def test_what_is_left_to_do(told: SessionSnapshot, because: str) -> None:
    assert open_because(told) == because


def test_a_thread_is_found_by_any_of_its_names() -> None:
    first = session(1, files=("a.py",), stop=BUSY)
    found = threads_among((one, workflow()) for one in (first, session(2, files=("a.py",)), session(3)))
    assert find_thread(found, "session-1") == find_thread(found, "session-2")
    assert find_thread(found, "nothing") is None
    with pytest.raises(InvalidInputError, match="ambiguous"):
        find_thread(found, "session-")


def test_gathered_without_files_hides_nothing() -> None:
    first = session(1, stop=BUSY)
    assert first.gathered is not None
    other = session(2, "Something else that has nothing to do with it", gathered=replace(first.gathered))
    assert len(threads(first, other)) == 2


LEFT = "Half done. I still have to write the tests."
ASKED = StoppingPoint("asked", "Which separator do you want?")
TODO = {"todos": (TodoItem("Write the tests", "pending"),)}
LICENCE: dict[str, Any] = {"said": "Add a licence header to export.py", "files": ("export.py",)}


def standing(*sessions: SessionSnapshot) -> tuple[str, str]:
    (found,) = threads_among((one, workflow()) for one in sessions)
    return found.status, found.state


@pytest.mark.parametrize(
    ("earlier", "words"),
    [
        ({"found": {"last_words": LEFT}}, '"I still have to write the tests."'),
        (
            {"found": {"last_words": "Begun. The tests for export.py are still missing."}},
            '"The tests for export.py',
        ),
        ({"found": TODO}, '"Write the tests"'),
        ({"stop": ASKED}, '"Which separator do you want?"'),
    ],
)
def test_what_an_earlier_session_left_keeps_the_thread_open(earlier: dict[str, Any], words: str) -> None:
    first = session(1, "Implement the exporter in export.py", ("export.py",), **earlier)
    done = {"last_words": "Added the header."}
    status, state = standing(first, session(2, **LICENCE, found=done), session(3, **LICENCE, found=done))
    assert (status, state.startswith(f"left by an earlier session: {words}")) == ("open", True)


@pytest.mark.parametrize(
    "later",
    [
        {"said": "Now write a test for it please", "files": ("export.py",)},
        {**LICENCE, "files": ("export.py", "tests/test_export.py")},
        {**LICENCE, "found": {"last_words": "Added the header; the tests are written and pass."}},
        {**LICENCE, "conversation": "c1"},
        {**LICENCE, "said": "continue", "continues": "session-1"},
        {**LICENCE, "closed": True},
    ],
)
def test_what_was_taken_up_since_is_not_left(later: dict[str, Any]) -> None:
    first = session(1, "Implement the exporter", ("export.py",), found={"last_words": LEFT, **TODO})
    assert standing(first, session(2, **later)) == ("finished", "finished")


@pytest.mark.parametrize(
    "later",
    [
        {"said": "Run the tests please", "found": {"last_words": "All 40 tests pass."}},
        {**LICENCE, "said": "Add a licence header, do not touch the tests"},
        {**LICENCE, "found": {"last_words": "Added the header. The tests are still to be written."}},
        {**LICENCE, "found": {"turns": (Turn(0, LICENCE["said"]), Turn(2, "continue"))}},
        {"said": "Why do the tests take so long?", "files": ("export.py",)},
    ],
)
def test_a_word_in_common_settles_nothing(later: dict[str, Any]) -> None:
    first = session(1, "Implement the exporter", ("export.py",), found={"last_words": LEFT})
    given: dict[str, Any] = {"files": ("export.py",), **later}
    status, state = standing(first, session(2, **given))
    assert (status, "the tests" in state.lower()) == ("open", True)


def test_of_a_rest_of_several_things_one_is_not_all() -> None:
    rest = "I still have to migrate the invoices, document the webhook and benchmark the importer."
    first = session(1, "Implement the exporter", ("export.py",), found={"last_words": rest})
    part = session(2, "Document the webhook", ("export.py",))
    assert standing(first, part)[0] == "open"
    whole = session(3, "Migrate the invoices and benchmark the importer", ("export.py",))
    assert standing(first, part, whole) == ("finished", "finished")


@pytest.mark.parametrize(
    ("said", "files", "is_one"),
    [
        ("Please go ahead with the rest of it where you left off", ("edge.py",), True),
        ("Cover the edge cases as we said", ("tests/test_edge.py",), True),
        ("Please finish the licence page", ("LICENCE",), False),
    ],
)
def test_who_holds_the_handover_and_asks_in_other_words(
    said: str, files: tuple[str, ...], is_one: bool
) -> None:
    first = session(1, "Implement the exporter", ("export.py",), found={"last_words": LEFT})
    assert len(threads(first, session(2, said, files, continues="session-1"))) == (1 if is_one else 2)


def test_a_later_list_of_tasks_takes_the_place_of_an_earlier_one() -> None:
    first = session(1, "Implement the exporter", ("export.py",), found=TODO)
    listed = {"todos": (TodoItem("Add the header", "completed"),)}
    assert standing(first, session(2, **LICENCE, found=listed)) == ("finished", "finished")


def test_what_an_earlier_session_had_not_committed_is_settled_by_git_alone() -> None:
    first = session(1, files=("export.py", "b.py"), git_state=git(uncommitted=("export.py", "b.py")))
    assert standing(first, session(2, **LICENCE, git_state=git(uncommitted=("b.py",)))) == (
        "open",
        "left by an earlier session: not committed: b.py",
    )
    assert standing(first, session(2, **LICENCE)) == ("finished", "finished")


def test_what_another_thread_had_not_committed_is_not_this_ones() -> None:
    mine = written("mine.py", "2026-01-06T11:00:00Z")
    first = session(1, files=("mine.py",), git_state=git(uncommitted=("mine.py", "new/")), prints=(mine,))
    ran: dict[str, Any] = {"found": {"commands": (RAN,)}, "git_state": git(uncommitted=("mine.py", "new/"))}
    told = threads_among((one, workflow()) for one in (first, session(2, **ran, prints=(mine,))))
    assert [(one.id, one.state) for one in told] == [
        ("session-1", "not committed: mine.py"),
        ("session-2", "finished"),
    ]
    changed = written("mine.py", "2026-01-06T11:00:00Z", "b")
    told = threads_among((one, workflow()) for one in (first, session(2, **ran, prints=(changed,))))
    assert ("session-2", "not committed: mine.py") in [(one.id, one.state) for one in told]


def test_who_goes_on_with_what_was_left_in_a_new_file_belongs_to_it() -> None:
    first = session(1, "Implement the exporter", ("export.py",), found={"last_words": LEFT})
    second = session(2, **LICENCE, continues="session-1")
    tests = session(3, "Now please write the tests for it", ("test_it.py",), continues="session-2")
    other = session(3, "Please update the manual pages", ("manual.md",), continues="session-2")
    assert standing(first, second, tests) == ("finished", "finished")
    assert threads(first, second, other) == [("session-2", "session-1"), ("session-3",)]
