"""Threads: the pieces of work in a folder, each with the sessions that belong to it.

A thread is computed from snapshots, never stored. Sessions belong together where they are one conversation of
an agent, where one goes on from the other's handover, where they change the same files on a branch, or where
they run the same plan. A session that did no work belongs to none, and one that only looked says nothing of
where the work stands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.base.errors import HoldfastError, InvalidInputError, NotFoundError
from holdfast.base.text import clipped, counted, decode_path, one_line, sentences
from holdfast.findings.rules.trail import only_looked, only_shows
from holdfast.model.gathered import Gathered
from holdfast.model.message import asks_nothing_new, is_go_ahead
from holdfast.model.statuses import OPEN
from holdfast.project.formats import FINISHED
from holdfast.project.layout import ProjectLayout
from holdfast.resume.now import named_as_left
from holdfast.resume.rendering import quoted
from holdfast.resume.snapshots import ledger_at

if TYPE_CHECKING:
    from holdfast.model.git import GitState
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.model.workflow import Workflow
    from holdfast.store.protocol import SnapshotSummary, Store
    from holdfast.store.session_files import SessionFiles

_LOOKED_AT = 40
"""Newest sessions of a folder that did something; what nobody touched in so many others is history."""
_FOLDERS = 10
_LOOKED_AT_EACH = 10
"""Of several folders at once."""
_TITLE = 90
_STATE = 160
_ASIDE = 80
_LEFT_TOLD = 3
_MOST_LEFT = 6
_LEFT_WORDS = 120
_FEW_WORDS = 4
"""A request of so many words at most ("go on") says nothing of what is worked on."""
_ENDED_BY_ITSELF = ("the agent session ended", "the work is handed over to another agent")


@dataclass(frozen=True, kw_only=True)
class Thread:
    """One piece of work, as its newest session left it."""

    __pydantic_config__ = {"extra": "forbid", "json_schema_serialization_defaults_required": True}  # noqa: RUF012 - pydantic reads it

    id: str = field(
        metadata={"description": "Name of its newest session, or the id of its workflow if it has a plan"}
    )
    title: str
    status: Literal["open", "finished"]
    state: str = field(metadata={"description": "Where it stands, in a few words"})
    needs: Literal["answer", "repair"] | None = field(
        default=None,
        metadata={"description": "What a person is to do: answer its agent, or see to what failed"},
    )
    left: tuple[str, ...] = field(
        default=(), metadata={"description": "What is open in it, if it has no plan"}
    )
    branch: str | None = field(metadata={"description": "Null outside of git and on a detached HEAD"})
    worktree: str
    files: tuple[str, ...] = field(
        metadata={"description": "Files its sessions changed, the newest session's first"}
    )
    issue: str | None = field(default=None, metadata={"description": "Id of the issue, if it has a plan"})
    workflow_id: str
    snapshot_id: str = field(metadata={"description": "Snapshot of its newest session"})
    sessions: tuple[str, ...] = field(metadata={"description": "Names of its sessions, newest first"})
    updated_at: datetime
    taken_up_at: datetime | None = field(
        default=None,
        metadata={
            "description": "When `resume` last printed its handover, if nothing was recorded of it since"
        },
    )

    @property
    def is_open(self) -> bool:
        return self.status == "open"

    @property
    def document(self) -> dict[str, Any]:
        """In JSON, as the API has it."""
        times = {name: _written(getattr(self, name)) for name in ("updated_at", "taken_up_at")}
        return {**vars(self), **times}


def _written(moment: datetime | None) -> str | None:
    return moment and moment.isoformat().replace("+00:00", "Z")


@dataclass
class _Group:
    """The sessions of one thread, oldest first."""

    members: list[tuple[SessionSnapshot, Workflow]]
    files: dict[str, None] = field(default_factory=dict[str, None])
    conversations: set[str] = field(default_factory=set[str])

    @property
    def newest(self) -> SessionSnapshot:
        return self.members[-1][0]

    @property
    def worktree(self) -> str:
        return self.members[-1][1].worktree

    def take(self, snapshot: SessionSnapshot, workflow: Workflow) -> None:
        self.members.append((snapshot, workflow))
        self.files = dict.fromkeys((*ledger_at(snapshot).changed, *self.files))
        if snapshot.conversation:
            self.conversations.add(snapshot.conversation)

    @property
    def at_work(self) -> tuple[SessionSnapshot, Workflow]:
        """The newest that did more than to look: it says where the work stands."""
        working = (one for one in reversed(self.members) if not is_aside(one[0]))
        return next(working, self.members[-1])

    def since(self, snapshot: SessionSnapshot) -> list[SessionSnapshot]:
        members = [one for one, _ in self.members]
        return members[next(number for number, one in enumerate(members, 1) if one is snapshot) :]


# ── which sessions belong together ────────────────────────────────────────────────────────────────


def threads_among(sessions: Iterable[tuple[SessionSnapshot, Workflow]]) -> list[Thread]:
    """Of sessions in their order: open ones first, then the newest; what did no work is left out."""
    groups = _groups(sessions)
    by_folder: dict[str, list[_Group]] = {}
    for group in groups:
        by_folder.setdefault(group.worktree, []).append(group)
    folders = {worktree: Folder(worktree, own) for worktree, own in by_folder.items()}
    found = [_thread(group, folders[group.worktree]) for group in reversed(groups)]
    return sorted(found, key=lambda thread: not thread.is_open)


def _groups(sessions: Iterable[tuple[SessionSnapshot, Workflow]]) -> list[_Group]:
    """The one that was worked on last is the last."""
    groups: list[_Group] = []
    for snapshot, workflow in sessions:
        if not snapshot.worked:
            continue
        group = next((one for one in reversed(groups) if _belongs(snapshot, one)), None)
        if group is None and _came_to_nothing(snapshot):
            group = next((one for one in reversed(groups) if _is_beside(snapshot, workflow, one)), None)
        if group is None:
            group = _Group([])
            groups.append(group)
        group.take(snapshot, workflow)
        groups.remove(group)
        groups.append(group)
    return groups


def _belongs(snapshot: SessionSnapshot, group: _Group) -> bool:
    newest = group.newest
    if snapshot.task_dag.tasks or newest.task_dag.tasks:
        return snapshot.workflow_id == newest.workflow_id and bool(newest.task_dag.tasks)
    if snapshot.conversation in group.conversations:
        return True
    changed = set(ledger_at(snapshot).changed)
    shares = not changed.isdisjoint(group.files)
    if any(member.session_id == snapshot.continues for member, _ in group.members):
        if is_aside(snapshot) or shares or not group.files:
            return True
        is_about_it = _is_about_what_is_left(snapshot, group)
        return is_about_it or _settles(snapshot, newest) or (bool(changed) and _goes_on(snapshot))
    return shares and _branch(snapshot) == _branch(newest)


def _is_beside(snapshot: SessionSnapshot, workflow: Workflow, group: _Group) -> bool:
    is_plan = bool(group.newest.task_dag.tasks)
    return not is_plan and group.worktree == workflow.worktree and _branch(snapshot) == _branch(group.newest)


def is_aside(snapshot: SessionSnapshot) -> bool:
    """A session that changed and decided nothing and left nothing to do: it hides no work that is open."""
    found = snapshot.gathered
    if found is None or snapshot.task_dag.tasks or snapshot.incremental_pause is not None:
        return False
    if _came_to_nothing(snapshot):
        return True
    is_over = snapshot.trigger == "pause" and snapshot.pause_reason in _ENDED_BY_ITSELF
    return is_over and only_looked(found) and not _announced(found.last_words)


def _came_to_nothing(snapshot: SessionSnapshot) -> bool:
    """It was told to go on with what there was, and was cut off before it did: the handover still holds."""
    found = snapshot.gathered
    return found is not None and asks_to_go_on(found) and only_looked(found, however_it_ended=True)


def asks_to_go_on(found: Gathered) -> bool:
    """Whether all that was asked for in it is to continue with what there was."""
    own = [turn.said for turn in found.turns if turn.index >= 0]
    return bool(own) and all(map(_says_to_go_on, own))


def begins_by_going_on(found: Gathered) -> bool:
    """Whether its first message asked for what there was, whatever came after it."""
    own = [turn.said for turn in found.turns if turn.index >= 0]
    return bool(own) and _says_to_go_on(own[0])


def _says_to_go_on(said: str) -> bool:
    few = len(said.split()) <= _FEW_WORDS and _CONTINUES.search(said) is not None
    return few or _only_continues(said)


def aside_told(snapshot: SessionSnapshot) -> str:
    """In one line: what was said may matter all the same."""
    found = snapshot.gathered
    said = [quoted(turn.said.strip(' \t\n"'), _ASIDE) for turn in found.turns[-2:]] if found else []
    answer = quoted(found.last_words, _ASIDE) if found and found.last_words else ""
    told = [f"the user said {' and '.join(said)}"] if said else []
    told += [f"the agent answered {answer}"] if answer else []
    told += [_STOPPED[found.stop.kind]] if found and found.stop.kind in _STOPPED else []
    if not snapshot.worked and snapshot.pause_reason:
        told = [f"it was paused because {quoted(snapshot.pause_reason, _ASIDE)}"]
    return f"A later session changed nothing ({snapshot.session_id}): {', '.join(told) or 'nothing was said'}"


def _settles(snapshot: SessionSnapshot, before: SessionSnapshot) -> bool:
    """Whether what the earlier one had not committed is committed now."""
    then, now = ledger_at(before).not_committed, ledger_at(snapshot).git.uncommitted
    return bool(then) and now is not None and not set(then) & set(now)


def _goes_on(snapshot: SessionSnapshot) -> bool:
    """Whether all that was asked for is to continue."""
    turns = snapshot.gathered.turns if snapshot.gathered else ()
    return bool(turns) and (len(turns[0].said.split()) <= _FEW_WORDS or _only_continues(turns[0].said))


def _branch(snapshot: SessionSnapshot) -> str | None:
    return snapshot.git_state.branch if snapshot.git_state else None


# ── where a thread stands ─────────────────────────────────────────────────────────────────────────


def _thread(group: _Group, folder: Folder) -> Thread:
    snapshot, workflow = group.at_work
    if has_plan := bool(snapshot.task_dag.tasks):
        because = _plan_open_because(snapshot, workflow)
    else:
        because = open_because(snapshot, folder, group.since(snapshot))
    if not because:
        because = next(
            (f"left by an earlier session: {told}" for _, told in _left_earlier(group, folder)), ""
        )
    return Thread(
        id=workflow.id if has_plan else snapshot.session_id,
        title=clipped(_title(group), _TITLE),
        status="open" if because else "finished",
        state=clipped(one_line(because), _STATE) or _ended(workflow),
        needs=_needed_of_person(snapshot) if because else None,
        left=() if has_plan or not because else tuple(_open_items(group, folder)),
        branch=_branch(snapshot),
        worktree=workflow.worktree,
        files=tuple(group.files),
        issue=workflow.issue.id if has_plan else None,
        workflow_id=workflow.id,
        snapshot_id=snapshot.id,
        sessions=tuple(member.session_id for member, _ in reversed(group.members)),
        updated_at=group.newest.created_at,
    )


def _needed_of_person(snapshot: SessionSnapshot) -> Literal["answer", "repair"] | None:
    stop = snapshot.gathered.stop.kind if snapshot.gathered else ""
    if stop == "asked":
        return "answer"
    return "repair" if stop == "failed" or snapshot.task_dag.count("failed") else None


def _open_items(group: _Group, folder: Folder) -> list[str]:
    """Each once, what is most certain first; what its own end says before what earlier sessions left."""
    snapshot, _ = group.at_work
    red = ledger_at(snapshot).red
    items = [f"{_RED[red.kind]}: {red.command}" if red is not None else ""]
    items += _left_words(snapshot)
    items.append(_uncommitted_told(snapshot, group.since(snapshot), folder))
    items += [told for _, told in _left_earlier(group, folder)]
    return [clipped(one_line(item), _LEFT_WORDS) for item in dict.fromkeys(items) if item][:_MOST_LEFT]


def _ended(workflow: Workflow) -> str:
    return "cancelled" if workflow.status == "cancelled" else FINISHED


def _title(group: _Group) -> str:
    """The first thing that was asked for, and says something; else why the work was paused."""
    first, workflow = group.members[0]
    if first.task_dag.tasks:
        return one_line(workflow.issue.title)
    said = [
        turn.said
        for member, _ in group.members
        for turn in (member.gathered.turns if member.gathered else ())
    ]
    telling = [words for words in said if not asks_nothing_new(words)] or said[:1]
    telling = next((words for words in telling if len(words.split()) > _FEW_WORDS), "".join(telling[:1]))
    return one_line(telling or first.pause_reason or workflow.issue.title)


def _plan_open_because(snapshot: SessionSnapshot, workflow: Workflow) -> str:
    if workflow.status not in OPEN and workflow.status != "failed":
        return ""
    left = counted(snapshot.tasks_remaining, "task")
    return f"{workflow.status.replace('_', ' ')}, {left} left"


def open_because(
    snapshot: SessionSnapshot, folder: Folder | None = None, later: Sequence[SessionSnapshot] = ()
) -> str:
    """Why the work of a session without a plan is not finished; empty where all says that it is.

    What it had not committed may be committed by now: `later` ones of its thread have seen that, or the
    folder shows it.
    """
    found = snapshot.gathered
    if snapshot.closed:
        return ""
    if snapshot.trigger != "pause":
        return snapshot.pause_reason or f"ended by {snapshot.trigger}"
    if found is None or snapshot.pause_reason not in _ENDED_BY_ITSELF:
        return f"paused: {snapshot.pause_reason}" if snapshot.pause_reason else "paused"
    return (
        _stopped(snapshot)
        or _left_over(snapshot, folder)
        or _uncommitted_told(snapshot, later, folder)
        or _announced(found.last_words)
    )


def _announced(last_words: str) -> str:
    told = named_as_left(last_words)
    return f"the agent's last words: {told}" if told else ""


_STOPPED = {
    "asked": "the agent asked the user something",
    "in_flight": "a call had no result yet",
    "working": "the agent was in the middle of it",
    "unanswered": "the user's last message was not answered",
    "stopped": "the user stopped the agent",
    "failed": "the agent's program reported an error",
    "unknown": "how it ended is not recorded",
}


def _stopped(snapshot: SessionSnapshot) -> str:
    stop = snapshot.gathered.stop if snapshot.gathered else None
    if stop is None or stop.kind in ("answered", "spoke"):
        return ""
    said = stop.words or ", ".join(call.target for call in stop.calls)
    return f"{_STOPPED[stop.kind]}{f': {said}' if said else ''}"


# What an earlier session of the thread left, and no later one shows done. In doubt it is told, not dropped.


def _left_earlier(group: _Group, folder: Folder | None = None) -> Iterator[tuple[SessionSnapshot, str]]:
    """Each with the session that left it, the newest first."""
    at_work, _ = group.at_work
    if at_work.closed or at_work.task_dag.tasks:
        return
    members = [one for one, _ in group.members]
    place = next(number for number, one in enumerate(members) if one is at_work)
    for number in reversed(range(place)):
        earlier, later = members[number], members[number + 1 :]
        if earlier.closed:
            return
        if is_aside(earlier) or any(_takes_up(one, earlier) for one in later):
            continue
        for told in _left_by(earlier, later, folder):
            yield earlier, told


def _is_about_what_is_left(snapshot: SessionSnapshot, group: _Group) -> bool:
    """By a word: in doubt it belongs to it, where what is left stays told until more than that is done."""
    at_work, _ = group.at_work
    left = [*_left_words(at_work), *(told for _, told in _left_earlier(group))]
    wanted = _stems(" ".join(left)) - _stems(" ".join(group.files))
    said = (turn.said for turn in snapshot.gathered.turns) if snapshot.gathered else ()
    return bool(wanted & _stems(" ".join((*said, *ledger_at(snapshot).changed))))


def _takes_up(later: SessionSnapshot, earlier: SessionSnapshot) -> bool:
    """Whether its own end says where all that the earlier one left stands."""
    if later.conversation and later.conversation == earlier.conversation:
        return True
    turns = later.gathered.turns if later.gathered else ()
    return not is_aside(later) and bool(turns) and _only_continues(turns[0].said)


_CONTINUES = re.compile(
    r"\b(?:continue|carry on|go (?:on|ahead)|keep going|proceed|resume|finish|the rest|pick (?:it )?up"
    r"|left off|weiter\w*)\b",
    re.IGNORECASE,
)
_SAYS_NO_MORE = re.compile(
    r"carry|keep|ahead|proce\w*|resum|rest|pick|wher|yesterday|last|session|befor|stop\w*|just|everyth\w*|task"
    r"|previou|again|weiter\w*"
)
"""A stem."""


def _only_continues(said: str) -> bool:
    """It asks for nothing by name, but for what was left."""
    by_its_stems = _CONTINUES.search(said) and all(_SAYS_NO_MORE.fullmatch(stem) for stem in _stems(said))
    return bool(by_its_stems) or is_go_ahead(said)


def _left_by(
    earlier: SessionSnapshot, later: Sequence[SessionSnapshot], folder: Folder | None
) -> Iterator[str]:
    ledger = ledger_at(earlier)
    has_a_new_list = any(one.gathered and one.gathered.todos for one in later)
    left = _left_words(earlier, with_tasks=not has_a_new_list)
    done = _stems(" ".join(_taken_up(later)))
    own = _stems(" ".join(ledger.changed))  # every session of the thread may name its files
    for words in left:
        wanted = _stems(words)
        wanted = wanted - own or wanted
        if not wanted or len(wanted & done) < _MOST_OF_IT * len(wanted):
            yield quoted(words, _LEFT_WORDS)
    if told := _uncommitted_told(earlier, later, folder):
        yield told


def _left_words(snapshot: SessionSnapshot, *, with_tasks: bool = True) -> list[str]:
    """The question it asked, the rest that it named, its open tasks."""
    found = snapshot.gathered
    if found is None:
        return []
    question = found.stop.words if found.stop.kind == "asked" else ""
    tasks = [todo.text for todo in ledger_at(snapshot).open_tasks()] if with_tasks else []
    return [words for words in dict.fromkeys((question, named_as_left(found.last_words), *tasks)) if words]


_MOST_OF_IT = 0.6


def _taken_up(later: Sequence[SessionSnapshot]) -> Iterator[str]:
    """What they were asked to do, what they said at last that they did, and the files they changed."""
    for one in later:
        if one.gathered is None or is_aside(one):
            continue
        told = [sentence for turn in one.gathered.turns for sentence in sentences(turn.said)]
        yield from filter(_tells_of_doing, (*told, *sentences(one.gathered.last_words)))
        yield from (todo.text for todo in one.gathered.todos)
        yield from ledger_at(one).changed


_NOT_DONE = re.compile(
    r"\b(?:not|n't|never|no|without|skip\w*|later|leave|left|ignor\w+|except|only)\b|n't\b", re.IGNORECASE
)
_LOOKS_AT = re.compile(
    r"\b(?:run|runs|ran|rerun|running|pass(?:es|ed|ing)?|fail(?:s|ed|ing)?|green|red|check(?:s|ed)?|look|show|list|read"
    r"|see|review(?:ed)?|explain|why|what|which|where|how)\b|\?\s*$",
    re.IGNORECASE,
)
_DOES = re.compile(
    r"\b(?:writ\w+|wrote|add\w*|implement\w*|creat\w+|fix\w*|updat\w+|port(?:s|ed|ing)?|mak\w+|made|finish\w*"
    r"|complet\w+|cover\w*|document(?:s|ed|ing)?|migrat\w+|remov\w+|renam\w+|build|built|extend\w*|done)\b",
    re.IGNORECASE,
)


def _tells_of_doing(sentence: str) -> bool:
    """Who runs the tests has not written any."""
    if _NOT_DONE.search(sentence) or named_as_left(sentence):
        return False
    return not _LOOKS_AT.search(sentence) or _DOES.search(sentence) is not None


_STEM = re.compile(r"[^\W\d_]{4,}")
_ENDING = re.compile(r"(?<=.{4})(?:ings?|ed|es|e|s)$")
_SAYS_NOTHING = re.compile(
    r"still|have|need|remain|left|open|miss|done|finish|begun|start|todo|implement|write|writ|written|continu"
    r"|next|then|will|would|should|shall|could|this|that|thes|thos|them|they|with|from|into|what|which|when"
    r"|your|ther|also|only|more|some|other|make|made|file|code|work|want|pleas|been|must|first"
)
"""A stem."""


def _stems(text: str) -> set[str]:
    stems = {_ENDING.sub("", word) for word in _STEM.findall(text.lower())}
    return {one for one in stems if not _SAYS_NOTHING.fullmatch(one)}


def left_told(store: Store, snapshot: SessionSnapshot) -> tuple[str, ...]:
    """What earlier sessions of its thread left open, in one line."""
    if snapshot.task_dag.tasks or not snapshot.worked:
        return ()
    worktree = store.workflow(snapshot.workflow_id).worktree
    flows = store.workflows(worktree=worktree)
    groups = _groups(_stored(store, _lines(store, flows), _LOOKED_AT))
    group = next((one for one in groups if one.at_work[0].id == snapshot.id), None)
    left = list(_left_earlier(group, Folder(worktree, groups)))[:_LEFT_TOLD] if group else []
    told = "; ".join(f"{words} ({session.session_id})" for session, words in left)
    return (f"Left by earlier sessions of this work, and not seen to be done since: {told}",) if told else ()


_RED = {"test": "tests fail", "build": "the build fails", "lint": "the linter fails"}


def _left_over(snapshot: SessionSnapshot, folder: Folder | None) -> str:
    ledger = ledger_at(snapshot)
    if todo := ledger.open_tasks():
        return f"{counted(len(todo), 'task')} left: {todo[0].text}"
    if ledger.red is not None:
        return f"{_RED[ledger.red.kind]}: {ledger.red.command}"
    if ledger.git.under_way and (folder is None or folder.is_under_way(snapshot)):
        return f"a {ledger.git.under_way} is in progress"
    return ""


# What was not committed: git is asked once more, since the user commits at any time.


class Folder:
    """What git shows of a folder now; it is asked once, and only where something depends on it. And what the
    threads in it had left there."""

    def __init__(self, worktree: str, groups: Sequence[_Group] = ()) -> None:
        self._worktree = worktree
        self._groups = groups

    def left_by_others(self, snapshot: SessionSnapshot, path: str) -> bool:
        """Whether a session of another thread had that file uncommitted before, as it is in this one."""
        for group in self._groups:
            members = [one for one, _ in group.members]
            if any(one is snapshot for one in members):
                continue
            before = [one for one in members if one.created_at < snapshot.created_at]
            if any(_is_same_in(one, snapshot, path) for one in before):
                return True
        return False

    @cached_property
    def _now(self) -> tuple[Path, GitState] | None:
        """With the root of the work tree; None where nobody can tell: the folder is gone, or another's."""
        from holdfast.capture.git import seen_git_state

        try:
            folder = Path(os.fsdecode(decode_path(self._worktree)))
            found = seen_git_state(folder) if folder.is_dir() else None
            return (
                (Path(os.fsdecode(decode_path(found.worktree or self._worktree))), found) if found else None
            )
        except HoldfastError:
            return None

    def _at(self, snapshot: SessionSnapshot) -> tuple[Path, GitState] | None:
        """If it is the work tree that this was in."""
        is_same = self._now and snapshot.git_state and snapshot.git_state.worktree == self._now[1].worktree
        return self._now if is_same else None

    def is_under_way(self, snapshot: SessionSnapshot) -> bool:
        """The merge or rebase of then; in doubt it is."""
        now = self._at(snapshot)
        return now is None or now[1].operation is not None

    def settled(self, snapshot: SessionSnapshot, paths: Sequence[str]) -> tuple[set[str], set[str]] | None:
        """Of what was not committed then: what is committed by now, and what git shows no change of, nor a
        commit: somebody took it back or put it aside."""
        found, then = self._at(snapshot), snapshot.git_state
        if found is None or then is None:
            return None
        root, now = found
        changed = (*(now.files_uncommitted or ()), *now.files_uncompared)
        gone = {path for path in paths if not any(_overlap(path, one) for one in changed)}
        if not gone:
            return set(), set()
        from holdfast.capture.git import committed_of

        try:
            done = committed_of(root, gone, besides=then.commit_at_snapshot, since=snapshot.created_at)
        except HoldfastError:
            return None
        return set(done), gone - done


def _is_same_in(one: SessionSnapshot, other: SessionSnapshot, path: str) -> bool:
    """Of a folder that is not tracked as a whole nobody knows what is in it: then who had it first has it."""
    if one.git_state is None or path not in (one.git_state.files_uncommitted or ()):
        return False
    then, now = (next((file.hash for file in each.files if file.path == path), "") for each in (one, other))
    return then == now


def _overlap(one: str, other: str) -> bool:
    """A folder that is not tracked as a whole is one path, with a slash at its end."""
    return one == other or any(a.endswith("/") and b.startswith(a) for a, b in ((one, other), (other, one)))


def _uncommitted_told(
    snapshot: SessionSnapshot, later: Sequence[SessionSnapshot], folder: Folder | None
) -> str:
    ledger = ledger_at(snapshot)
    own = {
        path: _within(path, ledger.changed)
        for path in ledger.not_committed
        if ledger.changed or _may_be_by_command(snapshot, path, folder)
    }
    seen = [paths for one in later if (paths := ledger_at(one).git.uncommitted) is not None]
    if seen:
        own = {
            path: left
            for path, files in own.items()
            if (left := [one for one in files if any(_overlap(one, shown) for shown in seen[-1])])
        }
    files = [one for left in own.values() for one in left]
    done, gone = (folder.settled(snapshot, files) if folder and files else None) or (set[str](), set[str]())
    still = [path for path, left in own.items() if not done.union(gone).issuperset(left)]
    if still:
        return f"not committed: {', '.join(still[:3])}"
    missing = [path for path, left in own.items() if not gone.isdisjoint(left)]
    return f"{_GONE}: {', '.join(missing[:3])}" if missing else ""


_GONE = "not committed then, and git shows no change of it now"


def _may_be_by_command(snapshot: SessionSnapshot, path: str, folder: Folder | None) -> bool:
    """A file that no record names: in doubt it is, where a command ran that does more than to show."""
    found = snapshot.gathered
    if found is None:
        return True
    ran = [
        *(one.command for one in found.commands),
        *(one.text for one in found.happened if one.kind == "shell"),
    ]
    return not all(map(only_shows, ran)) and (folder is None or not folder.left_by_others(snapshot, path))


def _within(path: str, changed: Sequence[str]) -> list[str]:
    """The files of the session in a folder that is not tracked as a whole."""
    return [one for one in changed if path.endswith("/") and one.startswith(path)] or [path]


# ── where they are read from ──────────────────────────────────────────────────────────────────────


def threads_in(store: Store, worktree: str | None = None) -> list[Thread]:
    """Of one folder; else of those that were worked in last."""
    most = _LOOKED_AT if worktree is not None else _LOOKED_AT_EACH
    found: list[Thread] = []
    places: dict[tuple[str, str], tuple[int, datetime, int]] = {}
    for folder, flows in _by_folder(store, worktree).items():
        lines = _lines(store, flows)
        places |= {(folder, line.session_id): line.place for line, _ in lines}
        found += [_marked(store, thread) for thread in threads_among(_stored(store, lines, most))]
    found.sort(key=lambda thread: places[thread.worktree, thread.sessions[0]], reverse=True)
    return sorted(found, key=lambda thread: not thread.is_open)


def folders_looked_at(store: Store) -> Collection[str]:
    """Where `threads_in` looks for threads if no folder is named."""
    return _by_folder(store, None)


def _by_folder(store: Store, worktree: str | None) -> dict[str, list[Workflow]]:
    by_folder: dict[str, list[Workflow]] = {}
    for flow in store.workflows(worktree=worktree):
        by_folder.setdefault(flow.worktree, []).append(flow)
    return dict(list(by_folder.items())[:_FOLDERS])


def _marked(store: Store, thread: Thread) -> Thread:
    if thread.issue and thread.state == FINISHED:
        return _with_undone(store, thread)
    if not thread.is_open or thread.issue:
        return thread
    events = store.events(workflow_id=thread.workflow_id, types=("handover_taken_up",))
    for event in reversed(events):
        if getattr(event.entry, "snapshot_id", None) == thread.snapshot_id:
            return replace(thread, taken_up_at=event.at)
    return thread


def _with_undone(store: Store, thread: Thread) -> Thread:
    """A plan that came to its end, of which something was taken back since."""
    from holdfast.sessions.standing import may_be_undone
    from holdfast.sessions.transitions import Core
    from holdfast.sessions.undone import undone_work

    folder = Path(os.fsdecode(decode_path(thread.worktree)))
    if not may_be_undone(ProjectLayout(folder).sidecar, thread.workflow_id):
        return thread
    flow = store.workflow(thread.workflow_id)
    facts = undone_work(flow, Core(store).fold(flow).tasks().tasks, also_accepted=True).facts
    return replace(thread, state=clipped("; ".join((FINISHED, *facts)), _STATE))


def _lines(store: Store, flows: Sequence[Workflow]) -> list[tuple[SnapshotSummary, Workflow]]:
    """Newest first, as they came."""
    lines = [(line, flow) for flow in flows for line in _needed(store.snapshots(flow.id))]
    return sorted(lines, key=lambda one: one[0].place, reverse=True)


def _stored(
    store: Store, lines: Iterable[tuple[SnapshotSummary, Workflow]], most: int
) -> list[tuple[SessionSnapshot, Workflow]]:
    """The newest that did something, and what came between them; oldest first."""
    found: list[tuple[SessionSnapshot, Workflow]] = []
    worked = 0
    for line, flow in lines:
        found.append((store.snapshot(line.id), flow))
        worked += found[-1][0].worked
        if worked >= most:
            break
    return found[::-1]


def _needed(lines: Sequence[SnapshotSummary]) -> Sequence[SnapshotSummary]:
    """Of a plan the newest alone: it tells where the plan stands."""
    newest = max(lines, key=lambda line: (line.created_at, line.session_number), default=None)
    has_plan = newest is not None and newest.tasks_completed + newest.tasks_remaining > 0
    return [newest] if newest is not None and has_plan else lines


def threads_of_files(files: SessionFiles) -> list[Thread]:
    """As the folder's own files tell it, where the database is away."""
    return threads_among(_filed(files))  # files have no other order than their times


def _filed(files: SessionFiles) -> list[tuple[SessionSnapshot, Workflow]]:
    from holdfast.store.documents import read_session_document

    found: list[tuple[SessionSnapshot, Workflow]] = []
    worked = 0
    for name in files.session_ids():
        if not files.may_stand_in(name):
            continue  # a patch or an archive may have brought it
        try:
            found.append(read_session_document(files.read(name), where=f"{name}.json"))
        except HoldfastError:
            continue  # damaged: `doctor` tells of it
        worked += found[-1][0].worked
        if worked >= _LOOKED_AT:
            break
    return sorted(found, key=lambda one: (one[0].created_at, one[0].session_number))


def find_thread(threads: Sequence[Thread], name: str) -> Thread | None:
    """By its id or the beginning of it, the name of any of its sessions, or its issue."""
    exact = [one for one in threads if name in (one.id, one.issue) or name in one.sessions]
    begun = [one for one in threads if name and (one.id.startswith(name) or _starts(one, name))]
    found = exact or begun
    if len(found) > 1:
        raise InvalidInputError(
            f"{name} is ambiguous: it matches {len(found)} threads", hint="`holdfast threads` shows them"
        )
    return found[0] if found else None


def _starts(thread: Thread, name: str) -> bool:
    return any(session.startswith(name) for session in thread.sessions)


def thread_not_found(name: str) -> NotFoundError:
    return NotFoundError(f"no such thread or workflow: {name}", hint="`holdfast threads` shows them")
