"""Around an agent's own compaction: what its request for a summary is given, and what the summary then lacks.

The facts are the record's. A summary has a fact if its signs stand in it: a path, a branch, most words of
what the user said. What the summary claims and the record contradicts is corrected first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from holdfast.base.text import clipped, counted, one_line
from holdfast.findings.rules.trail import question_at_end
from holdfast.model.gathered import Gathered, Turn
from holdfast.model.message import latest_request
from holdfast.model.snapshot import SessionSnapshot
from holdfast.resume.ledger import WorkLedger, corrected
from holdfast.resume.snapshots import ledger_at
from holdfast.resume.summary import correction_line

LONGEST_SUPPLEMENT = 2_000
_LONGEST_STEERING = 6_000
_SAID = 400
_RULES = 12
_FILES = 12
_SHORT_ANSWER = 6
"""Words; so few say nothing without what they answer."""
_MOST_WORDS = 0.7
"""Share of the telling words of a sentence that must stand in a summary which has it."""
_WORD = re.compile(r"[^\W\d_]{4,}|\d+")

FORM = """\
Write this summary as a handover for whoever goes on, about the next job, not as a recap:
1. Now: the goal in the user's words, where it stands, the exact next action with file and command.
2. What the user wants: every rule and correction word for word; a short answer with the question it answers.
3. Decisions, each with its reason; what was rejected, and by whom.
4. State: done, half-done, failing and why; tests; git (committed? pushed?).
5. Map: the files, functions, commands and values that the next steps need.
Leave out what is settled. Say of nothing that it was done unless it was."""


@dataclass(frozen=True)
class RecordFact:
    text: str
    signs: tuple[str, ...] = ()
    """All of them stand in a summary that has this fact."""
    words: str = ""
    """Most of them do."""
    urgent: bool = False
    """To be known before the next step, whatever the summary says."""


# ── the facts ─────────────────────────────────────────────────────────────────────────────────────


def facts_of(snapshot: SessionSnapshot) -> list[RecordFact]:
    """The most important first."""
    found, ledger = snapshot.gathered or Gathered(), ledger_at(snapshot)
    return [
        *_rules(snapshot, found),
        *_in_flight(ledger),
        *_requests(found),
        *_answers(found.turns),
        *_checks(ledger),
        *_git(ledger),
        *_uncommitted(ledger),
        *_tasks(ledger),
        *_files(ledger),
    ]


def _rules(snapshot: SessionSnapshot, found: Gathered) -> Iterator[RecordFact]:
    said = (*snapshot.constraints, *found.constraints, *(one.said for one in found.turns if one.constraint))
    for words in list(dict.fromkeys(map(one_line, said)))[:_RULES]:
        yield RecordFact(f"The user's rule, word for word: {_quoted(words)}", words=words, urgent=True)


def _in_flight(ledger: WorkLedger) -> Iterator[RecordFact]:
    for call in ledger.in_flight[:3]:
        target = one_line(call.target)
        told = f"No result is recorded yet of this call: {call.tool} {_quoted(target)}"
        yield RecordFact(told, words=target)


def _requests(found: Gathered) -> Iterator[RecordFact]:
    corrections = [turn for turn in found.turns if turn.correction and not turn.constraint]
    for turn in corrections[-5:]:
        yield RecordFact(f"The user corrected: {_quoted(turn.said)}", words=turn.said)
    last = latest_request(found.turns) if found.turns else None
    if last is not None and not last.constraint and last not in corrections:
        said = last.said
        kind = "message" if last is found.turns[-1] else "request"
        yield RecordFact(f"The user's latest {kind}: {_quoted(said)}", words=said)


def _answers(turns: tuple[Turn, ...]) -> Iterator[RecordFact]:
    for before, turn in pairwise(turns):
        question = question_at_end(before.reported)
        if question and len(turn.said.split()) <= _SHORT_ANSWER:
            told = f"With {_quoted(turn.said)} the user answered: {_quoted(question)}"
            yield RecordFact(told, words=question)


_CHECKS = {"test": "test run", "build": "build", "lint": "run of the linter"}


def _checks(ledger: WorkLedger) -> Iterator[RecordFact]:
    for run in reversed(ledger.checks):
        if not run.command:
            continue
        failing = run.failing[:5] if not run.passed else ()
        named = f", failing: {', '.join(failing)}" if failing else ""
        since = f"; edited since: {', '.join(run.edited_since[:5])}" if run.edited_since else ""
        ended = "failed" if not run.passed else "showed no failure" if run.unsure else "passed"
        told = f"The last {_CHECKS[run.kind]} {ended}: {_quoted(run.command)}{named}{since}"
        yield RecordFact(told, signs=tuple(name.rpartition("::")[2] for name in failing), words=run.command)


def _git(ledger: WorkLedger) -> Iterator[RecordFact]:
    git = ledger.git
    for commit in ledger.commits[-5:]:
        told = f"Commit {commit.identifier} was made: {_quoted(commit.subject)}"
        yield RecordFact(told, words=commit.subject)
    if git.under_way:
        yield RecordFact(f"A {git.under_way} is in progress.", signs=(git.under_way,))
    if ledger.branch:
        yield RecordFact(f"The branch is {ledger.branch}.", signs=(ledger.branch,))
    if git.ahead and git.upstream and ledger.commits:
        yield RecordFact(f"Not pushed: {git.upstream} lacks {counted(git.ahead, 'commit')}.", signs=("push",))


def _uncommitted(ledger: WorkLedger) -> Iterator[RecordFact]:
    paths = ledger.not_committed[:_FILES]
    if paths:
        told = f"Changed and not committed: {', '.join(paths)}"
        yield RecordFact(told, signs=(*map(_name, paths), "commit"))


def _tasks(ledger: WorkLedger) -> Iterator[RecordFact]:
    for todo in ledger.open_tasks()[:8]:
        yield RecordFact(f"Task {todo.status.replace('_', ' ')}: {_quoted(todo.text)}", words=todo.text)


def _files(ledger: WorkLedger) -> Iterator[RecordFact]:
    for path in ledger.changed[:_FILES]:
        yield RecordFact(f"The session changed {path}", signs=(_name(path),))


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _quoted(text: str) -> str:
    return '"' + clipped(one_line(text), _SAID).replace('"', "'") + '"'


# ── before the summary ────────────────────────────────────────────────────────────────────────────


def steering(snapshot: SessionSnapshot, custom_instructions: str = "") -> str:
    """What the agent's request for a summary is given: the form of a handover, and the facts."""
    heads = [FORM]
    if custom_instructions.strip():
        heads.append("The user's own instructions for this summary hold; where they differ, follow the user.")
    facts = [fact.text for fact in facts_of(snapshot)]
    if facts:
        heads.append("Facts from the record of this session; quotations are evidence. Keep them exactly:")
    return _within(heads, facts, _LONGEST_STEERING)


def _within(heads: Iterable[str], facts: Iterable[str], most: int) -> str:
    text = "\n".join(heads)
    for fact in facts:
        line = f"\n- {fact}"
        if len(text) + len(line) <= most:
            text += line
    return text


# ── after the summary ─────────────────────────────────────────────────────────────────────────────


def urgent_facts(snapshot: SessionSnapshot) -> str:
    """What must be known at once, while nobody knows the summary yet; empty where there is nothing."""
    facts = [fact.text for fact in facts_of(snapshot) if fact.urgent]
    return _told("Recorded before the compaction:", facts, LONGEST_SUPPLEMENT // 2)


def supplement(snapshot: SessionSnapshot, summary: str, told: str = "") -> str:
    """What the summary gets wrong or lacks, and was not told already; empty where there is nothing."""
    wrong = [correction_line(one, "above") for one in corrected(summary, ledger_at(snapshot))[1]]
    lacking = [fact.text for fact in facts_of(snapshot) if not has(summary, fact) and fact.text not in told]
    heading = "The record of this session corrects or adds to the summary above:"
    return _told(heading, [*wrong, *lacking], LONGEST_SUPPLEMENT - len(told))


def _told(heading: str, facts: list[str], most: int) -> str:
    return _within([f"[holdfast] {heading}"], facts, most) if facts else ""


def has(summary: str, fact: RecordFact) -> bool:
    text = one_line(summary).lower()
    if not all(one_line(sign).lower() in text for sign in fact.signs):
        return False
    words = set(_WORD.findall(fact.words.lower()))
    known = sum(word in text for word in words)
    return known >= _MOST_WORDS * len(words) if words else bool(fact.signs) or fact.words.lower() in text
