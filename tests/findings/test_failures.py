from __future__ import annotations

import pytest

from findings.sessions import Session
from holdfast.base.text import same_command
from holdfast.findings.rules.failures import telling_lines

BROKEN = "Exit code 2\n$ make paint\nshed.c:4:9: undefined: brush\nmake: *** [paint] Error 1"


def test_the_same_command_succeeding_later_fixes_it():
    found = (
        Session()
        .shell("make paint", BROKEN, "error")
        .edit("src/shed.c")
        .shell("make paint 2>&1 | tail -5")
        .found()
    )
    (failure,) = found.failures
    assert (failure.resolution, failure.notes) == ("fixed", "after edits to shed.c")
    assert failure.message == "shed.c:4:9: undefined: brush"
    assert failure.verdict == "make: *** [paint] Error 1"
    assert failure.doing == "make paint"


def test_another_form_of_the_command_is_a_workaround():
    found = (
        Session()
        .shell("npm install --strict", "npm ERR! nope", "error")
        .shell("npm install --legacy")
        .found()
    )
    assert found.failures[0].resolution == "workaround"
    assert "npm install --legacy" in found.failures[0].notes


def test_left_for_later_is_deferred_and_nothing_at_all_unresolved():
    deferred = (
        Session()
        .shell("make lint", "warning: error in shed", "error")
        .agent("That one is pre-existing.")
        .found()
    )
    assert deferred.failures[0].resolution == "deferred"
    alone = Session().shell("make lint", "fatal: no shed", "error").agent("Hm.").found()
    assert alone.failures[0].resolution == "unresolved"


def test_the_same_failure_again_is_counted_not_repeated():
    found = (
        Session().shell("make", "fatal: no shed", "error").shell("make", "fatal: no shed", "error").found()
    )
    (failure,) = found.failures
    assert failure.times == 2


def test_a_failed_edit_is_fixed_by_a_later_edit_of_the_file():
    session = Session().tool("Edit", "String to replace not found", "error", file_path="a.py", old_string="q")
    assert session.edit("a.py").found().failures[0].resolution == "fixed"


def test_a_file_that_is_not_there_is_a_lookup():
    found = Session().tool("Read", "File does not exist.", "error", file_path="src/gone.py").found()
    assert found.failures[0].lookup


def test_what_the_user_refused_is_no_failure():
    assert not Session().tool("Bash", "refused", "interrupted", command="rm -r shed").found().failures


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("Exit code 1\n\n$ pytest\n--- FAIL: TestShed (0.1s)", ("--- FAIL: TestShed (0.1s)", "")),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: too blue',
            ("ValueError: too blue", ""),
        ),
        ("CONFLICT in a.py\nmerge failed; fix it", ("CONFLICT in a.py", "merge failed; fix it")),
        ("<tool_use_error>Name not found</tool_use_error>", ("Name not found", "")),
        ("just words", ("just words", "")),
        ("", ("", "")),
    ],
)
def test_the_line_that_tells(output: str, lines: tuple[str, str]):
    assert telling_lines(output) == lines


def test_the_same_command_whatever_becomes_of_its_output():
    assert (
        same_command("cd /home/kim && make test 2>&1 | tail -20") == same_command("make  test") == "make test"
    )


def test_memory_stays_bounded():
    session = Session()
    for number in range(700):
        session.shell(f"make part{number}", f"error {number}", "error")
    assert len(session.found().failures) == 300
