from __future__ import annotations

import re

import pytest

from findings.sessions import Session
from holdfast.model.message import asks_nothing_new, is_go_ahead


def test_a_turn_pairs_the_request_with_the_report():
    found = Session().user("Paint it").agent("Let me look:").agent("Painted it red.").user("Thanks").found()
    assert [(turn.said, turn.reported) for turn in found.turns] == [
        ("Paint it", "Painted it red."),
        ("Thanks", ""),
    ]


def test_an_announcement_does_not_replace_a_report():
    found = Session().user("Paint it").agent("Painted it red.").agent("Now let me dry it:").found()
    assert found.turns[0].reported == "Painted it red."


@pytest.mark.parametrize(
    "words", ["no, the other one", "that's wrong", "why did you drop it", "Actually use blue"]
)
def test_corrections(words: str):
    assert Session().user(words).found().turns[0].correction


@pytest.mark.parametrize("words", ["never push to main", "please make sure it dries", "don't touch the roof"])
def test_constraints(words: str):
    assert Session().user(words).found().turns[0].constraint


@pytest.mark.parametrize("words", ["do we need to dry it?", "looks good", "what is always on there?"])
def test_neither(words: str):
    turn = Session().user(words).found().turns[0]
    assert not turn.correction
    assert not turn.constraint


def test_words_that_stop_a_step_correct_it():
    found = (
        Session()
        .user("Paint")
        .tool("Bash", "refused", "interrupted", words="the small brush", command="rm x")
        .found()
    )
    assert found.turns[-1].said == "the small brush"
    assert found.turns[-1].correction


def test_stopped_means_that_nothing_followed():
    stopped = Session().user("Paint").tool("Bash", "no", "interrupted", command="x")
    assert stopped.found().turns[-1].cut_short
    assert not stopped.shell("make").found().turns[-1].cut_short


def test_the_queue_and_its_line_are_one_turn():
    assert len(Session().user("also dry it").user("also  dry it").found().turns) == 1


def test_what_the_program_wrote_is_no_turn():
    assert not Session().user("<local-command-stdout>", injected=True).found().turns


def test_a_choice_comes_with_its_reason():
    found = (
        Session()
        .agent(
            "I'll use linseed oil because it lets the wood breathe. Let me check the roof, since it leaks."
        )
        .found()
    )
    (choice,) = found.choices
    assert choice.description == "I'll use linseed oil"
    assert choice.rationale == "because it lets the wood breathe."


def test_kinds_of_choice():
    found = (
        Session()
        .agent("We'll skip the roof for now to avoid the rain. Let's take the wax library since it is small.")
        .found()
    )
    assert [choice.kind for choice in found.choices] == ["skip", "library"]


def test_findings_are_kept():
    found = Session().agent("The root cause is a clogged brush.").found()
    assert [insight.text for insight in found.insights] == ["The root cause is a clogged brush."]


def test_code_is_not_prose():
    assert not Session().agent("```\nlet's use x because y is slow, really\n```").found().choices


def test_first_and_last_turns_are_kept_of_very_many():
    session = Session()
    for number in range(500):
        session.user(f"wish {number}").agent("Done.")
    found = session.found()
    assert found.turns[0].said == "wish 0"
    assert found.turns[-1].said == "wish 499"
    assert len(found.turns) + found.turns_dropped == 500


def test_a_stated_problem_is_a_finding_not_a_choice():
    found = Session().agent("The issue is that the lid was removed because the hinge broke.").found()
    assert not found.choices
    assert len(found.insights) == 1


GO_AHEADS = """
yes | Yes, please! | ok do it | OK. | sure | weiter | Ja, mach das. | ja mach | Proceed | keep going
do that | please finish it | same again | the same again, please
go for it | let's do it | Sounds good, go ahead
carry on where you left off | can you continue? | yes to both | mach weiter | klingt gut, leg los
"go on" | \U0001f44d
"""


@pytest.mark.parametrize("words", [one.strip() for one in re.split(r"[|\n]", GO_AHEADS) if one.strip()])
def test_a_go_ahead_in_any_words(words: str):
    assert is_go_ahead(words)
    assert asks_nothing_new(words)


REQUESTS = """
no | stop | 1 | option 2 | fix lint | run the tests | yes, but use sqlite | undo it
ok but keep the old name | finish the parser | continue with the parser | ok? | why? | commit and push
ja, aber ohne Tests | revert that
mach das Fenster zu | do not push | let's discuss | start over | not now
"""


@pytest.mark.parametrize("words", [one.strip() for one in re.split(r"[|\n]", REQUESTS) if one.strip()])
def test_words_that_ask_for_something_of_their_own(words: str):
    assert not is_go_ahead(words)
    assert not asks_nothing_new(words)


@pytest.mark.parametrize("words", ["thanks!", "now commit it", "push it", "hello"])
def test_words_about_what_is_there_are_no_go_ahead_and_ask_for_nothing_new(words: str):
    assert not is_go_ahead(words)
    assert asks_nothing_new(words)


def test_what_was_offered_is_what_a_go_ahead_agrees_to():
    offered = (
        Session().user("look at the lexer").agent("It reads twice. I can merge both passes.").user("do it")
    )
    assert offered.found().turns[-1].after == "It reads twice. I can merge both passes."
    reported = Session().user("look at the lexer").agent("It is merged, and all is green.").user("ok")
    assert reported.found().turns[-1].after == ""
