"""What one pass over a session finds, as plain frozen values; a snapshot keeps them.

``findings/records.py`` makes ``Decision`` and ``ErrorRecord`` of ``Choice`` and ``Failure``. At the
end: how much of it a context carries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from holdfast.model.message import TodoItem, ToolOutcome

Resolution = Literal["fixed", "workaround", "deferred", "unresolved"]
ChoiceKind = Literal["approach", "library", "architecture", "workaround", "skip", "clarification"]
CheckKind = Literal["test", "build", "lint"]
Stop = Literal[
    "answered", "asked", "spoke", "in_flight", "working", "unanswered", "stopped", "failed", "unknown"
]


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing the user said, and what the agent reported before the user spoke again."""

    index: int
    said: str
    reported: str = ""
    correction: bool = False
    constraint: bool = False
    cut_short: bool = False
    asked: str = ""  # the question or the option that these words answer
    after: str = ""  # of a few words that answer nothing: what the agent had asked by then


@dataclass(frozen=True, slots=True)
class Happening:
    """One step of the record: words, or a call with what came of it.

    ``text`` is what was said, the command, the path or what was looked for; ``told`` is what the
    result said in a line, of an edit the names of what it changed.
    """

    index: int
    kind: str  # said, thought, user, or the kind of a tool
    text: str
    outcome: ToolOutcome | None = None
    told: str = ""
    about: str = ""  # what the agent said it was for
    result: str = ""  # of the newest steps alone: what came back
    places: tuple[str, ...] = ()  # files and lines that a search or a failed check named
    may_write: bool = False  # code, as far as is known, in a way that the record does not show


@dataclass(frozen=True, slots=True)
class AgreedPlan:
    """What the agent set out in its plan mode and the user agreed to."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class SubagentReport:
    """What an agent that this one had started reported back."""

    index: int
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice the agent stated together with its reason."""

    index: int
    kind: ChoiceKind
    description: str
    rationale: str


@dataclass(frozen=True, slots=True)
class Insight:
    """A cause, a fact or a decision, as the agent put it; ``worth`` tells how much it says."""

    index: int
    text: str
    worth: int = 0
    said: bool = True  # else it was only thought


@dataclass(frozen=True, slots=True)
class Listing:
    """What the agent listed: places, failing tests, points to do."""

    index: int
    lead: str
    items: tuple[str, ...]
    said: bool = True
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class AgentStep:
    """What the agent announced before it acted."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    index: int
    doing: str
    message: str
    resolution: Resolution
    notes: str = ""
    times: int = 1
    verdict: str = ""
    lookup: bool = False  # something was only looked for


@dataclass(frozen=True, slots=True)
class CommandUse:
    command: str
    runs: int
    failures: int
    last_index: int
    last_failed: bool
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class FileUse:
    path: str
    created: bool
    deleted: bool
    edits: int
    reads: int
    refused: int
    first_index: int
    last_index: int
    last_edit_index: int
    by: str = (
        ""  # who wrote it last, where it was not an edit tool of the agent: a command, a sub-agent, others
    )
    names: tuple[str, ...] = ()  # what its edits define or change, newest first
    purposes: tuple[str, ...] = ()  # what the agent said its edits were for, newest first
    added: tuple[str, ...] = ()  # of the names: what was not there before
    dropped: tuple[str, ...] = ()  # what edits took away, newest first
    replaced: tuple[tuple[str, str], ...] = ()  # edits of one line: how it was and is, newest first
    told: tuple[tuple[str, str], ...] = ()  # names, and what a comment in an edit says of them, newest first
    notes: tuple[str, ...] = ()  # what other comments say that edits brought, newest first


@dataclass(frozen=True, slots=True)
class Edit:
    """What an edit did to a file, in the form of a diff; of much that is new only what it defines."""

    index: int
    path: str
    new: str


@dataclass(frozen=True, slots=True)
class Unused:
    """A function that an edit defines and that no edit of the session uses."""

    index: int
    path: str
    name: str


@dataclass(frozen=True, slots=True)
class LastStep:
    """The newest completed tool call: the tool, its target and its outcome."""

    kind: str
    tool: str
    target: str
    outcome: ToolOutcome


@dataclass(frozen=True, slots=True)
class StoppingPoint:
    """How the record of a session ends, as far as the record shows.

    answered    the agent had had its say, and its turn was over
    asked       the agent had asked the user something
    spoke       the agent's words come last; nothing tells whether its turn was over
    in_flight   a call had no result yet
    working     the agent was between two steps
    unanswered  the user spoke last
    stopped     by the user, in mid-turn
    failed      the turn was ended by a notice of the agent's program: an API error, a limit
    """

    kind: Stop = "unknown"
    words: str = ""  # the question, or the notice
    calls: tuple[LastStep, ...] = ()  # those without a result
    compacted: bool = False  # the window was compacted, and nothing followed


@dataclass(frozen=True, slots=True)
class TestRun:
    index: int
    command: str
    passed: bool
    failing: tuple[str, ...] = ()
    summary: str = ""
    edited_since: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()  # fail because the plan says so
    kind: CheckKind = "test"
    unsure: bool = False  # its output does not tell: cut by a pipe, or it ran in the background
    narrow: bool = False  # only a part of what there is to check


@dataclass(frozen=True, slots=True)
class Commit:
    index: int
    identifier: str
    subject: str
    pushed: bool = False
    branch: str = ""
    why: str = ""  # what its message says below the subject, as far as the command shows it


@dataclass(frozen=True, slots=True)
class StatusShown:
    """What `git status` printed, whoever had changed it."""

    index: int
    staged: tuple[str, ...] = ()
    unstaged: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GitFacts:
    branch: str | None = None
    commits: tuple[Commit, ...] = ()
    pushed_index: int = -1
    pull_requests: tuple[str, ...] = ()
    edited_since_commit: tuple[str, ...] = ()
    head: str = ""  # the commit that was checked out at the pause, whoever made it
    head_at_start: str = ""
    uncompared: tuple[str, ...] = ()  # files that may have changed: only a filter could tell
    under_way: str = ""  # a merge, rebase or cherry-pick that stopped at conflicts
    conflicts: tuple[str, ...] = ()  # its files that nobody has touched since
    rewritten: bool = False  # a rebase gave the commits other ids
    stashed: bool = False
    push_refused: bool = False  # the newest push
    root: str = ""  # of the work tree; this and what follows as it was at the pause
    uncommitted: tuple[str, ...] | None = None  # whoever changed it; None if nobody looked
    upstream: str = ""
    ahead: int = 0  # commits that the upstream lacks
    status: StatusShown | None = None  # the newest in the record, unless it was overtaken
    moved_index: int = -1  # the newest checkout, merge or pull: what was checked before it was another tree
    uncommitted_before: tuple[str, ...] = ()  # of those files, what nobody wrote to since the session began


@dataclass(frozen=True, slots=True)
class Review:
    index: int
    reviewer: str
    comments: tuple[str, ...]
    addressed: bool


@dataclass(frozen=True, slots=True)
class Name:
    """A symbol, term or value of the work: how it is written, how much it matters, where it lives.

    ``talked`` is how much of its score comes from the agent's own talk; ``gloss`` is what
    stood beside a value, a commit's subject for one.
    """

    text: str
    score: float
    path: str = ""
    value: bool = False
    talked: float = 0.0
    gloss: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What an action of a wind-down says; ``kind`` is its type, a ``rule`` is to hold from then on."""

    kind: str
    text: str
    rule: bool = False


@dataclass(frozen=True, slots=True)
class Gathered:
    issue: str = ""
    issue_text: str = ""
    constraints: tuple[str, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    recorded_said_dropped: int = 0  # user messages whose words stand in the journal alone
    recorded_dropped: int = 0  # other actions
    stopped_because: str = ""
    drift: tuple[str, ...] = ()  # how the world has changed since
    next_task: str = ""
    took_over: str = ""  # the session whose handover this one began with
    messages: int = 0
    cwd: str | None = None
    title: str | None = None
    earlier_summary: str = ""
    compactions: int = 0
    turns: tuple[Turn, ...] = ()
    turns_dropped: int = 0
    todos: tuple[TodoItem, ...] = ()
    choices: tuple[Choice, ...] = ()
    insights: tuple[Insight, ...] = ()
    listings: tuple[Listing, ...] = ()
    steps: tuple[AgentStep, ...] = ()
    failures: tuple[Failure, ...] = ()
    commands: tuple[CommandUse, ...] = ()
    files: tuple[FileUse, ...] = ()
    tests: TestRun | None = None
    git: GitFacts = field(default_factory=GitFacts)
    reviews: tuple[Review, ...] = ()
    names: tuple[Name, ...] = ()
    last_words: str = ""
    last_step: LastStep | None = None
    edits: tuple[Edit, ...] = ()  # the newest, oldest first
    plan: AgreedPlan | None = None
    unused: tuple[Unused, ...] = ()
    checks: tuple[TestRun, ...] = ()  # the newest of each kind, whole and in part, oldest first
    happened: tuple[Happening, ...] = ()  # the newest steps
    reports: tuple[SubagentReport, ...] = ()
    todos_index: int = -1  # when the plan was last changed
    stop: StoppingPoint = field(default_factory=StoppingPoint)
    began: str = ""  # when its first message was said, as its record has it


# ── the fidelity report ───────────────────────────────────────────────────────────────────────────

# The fidelity report: what a context carries, what it leaves out, where the rest is.


@dataclass(frozen=True, slots=True)
class Carried:
    category: str
    carried: int
    shortened: int  # of those carried
    left_out: int
    fetch: str


@dataclass(frozen=True, slots=True)
class Fidelity:
    characters: int
    budget: int
    categories: tuple[Carried, ...]
    redacted: int = 0

    def table(self) -> str:
        lines = [
            f"{self.characters} of {self.budget} characters used, {self.redacted} secrets removed",
            f"{'':22}{'carried':>9}{'shortened':>11}{'left out':>10}  the rest",
        ]
        for one in self.categories:
            rest = one.fetch if one.left_out or one.shortened else ""
            row = f"{one.category:22}{one.carried:9}{one.shortened:11}{one.left_out:10}  {rest}"
            lines.append(row.rstrip())
        return "\n".join(lines) + "\n"
