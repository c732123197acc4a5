"""The ledger: the facts of a session that can be checked, and how each is put in a sentence.

It says no more than the record shows. What cannot be told from it is said to be unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.base.text import counted, one_line, sentences
from holdfast.model.gathered import Commit, Failure, Gathered, GitFacts, Happening, LastStep, TestRun
from holdfast.model.message import TodoItem
from holdfast.resume.rendering import Paths, code, listed, prose, quoted

_RECENT = 60  # messages: an older failure that nothing took up again is not what comes next
_SAID_ELSEWHERE = re.compile(r"^CONFLICT \(|Automatic merge failed")
_FEW_FILES = 5
_CHECK_WORDS = {"test": "tests", "build": "build", "lint": "linter"}
_TASK_IS_A_RUN = re.compile(
    r"\b(?:run|verify|check)\b.{0,40}\b(?:tests?|lint(?:er)?|build|suite|checks?)\b|^(?:test|lint|build)\b",
    re.IGNORECASE,
)
_TASK_IS_A_COMMIT = re.compile(r"^(?:git )?commit\b", re.IGNORECASE)
_TASK_IS_A_PUSH = re.compile(r"^(?:git )?push\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WorkLedger:
    """What was done and where it stands, after every step has been replayed."""

    branch: str
    commits: tuple[Commit, ...]  # that still stand, oldest first
    git: GitFacts
    uncommitted: tuple[str, ...]  # written by the session since its last commit
    checks: tuple[TestRun, ...]
    tasks: tuple[TodoItem, ...]
    open_errors: tuple[Failure, ...]
    in_flight: tuple[LastStep, ...]
    paths: Paths
    changed: tuple[str, ...] = ()  # by the session itself, from the work tree's root
    not_committed: tuple[str, ...] = ()  # of its changes, as the work tree showed at the pause
    edited_since_plan: tuple[str, ...] = ()
    """Files written after the agent last updated its list of tasks, the newest first."""
    written_for: tuple[tuple[TodoItem, tuple[str, ...]], ...] = ()
    """Open tasks that edits since then were plainly made for, and those files."""
    removed: frozenset[str] = frozenset()
    had_subagents: bool = False
    has_map: bool = True
    """Whether the files that were changed are listed beside it."""
    users_commit: str = ""
    """What the user said of a commit of their own after the last edit."""
    may_have_written: tuple[tuple[int, str], ...] = ()
    """What else may have changed code, in words, and where in the record that was."""

    @property
    def plan_is_older(self) -> bool:
        """Whether the agent's list of tasks may be behind what was done."""
        return bool(self.edited_since_plan)

    @property
    def red(self) -> TestRun | None:
        """The newest check that failed and that no check as wide has passed since."""
        return next((run for run in reversed(self.checks) if not run.passed), None)

    @property
    def marks_uncommitted(self) -> bool:
        """Whether there are too many for a line, so that they are marked where files are listed."""
        return self.has_map and self.git.uncommitted is None and len(self.uncommitted) > _FEW_FILES

    @property
    def unpushed(self) -> tuple[Commit, ...]:
        return tuple(one for one in self.commits if not one.pushed)

    @property
    def red_test(self) -> TestRun | None:
        return next((run for run in reversed(self.checks) if run.kind == "test" and not run.passed), None)

    def task_at_work(self) -> TodoItem | None:
        return next((one for one in self.tasks if one.status == "in_progress"), None)

    def open_tasks(self) -> list[TodoItem]:
        return [one for one in self.tasks if one.status != "completed"]

    def files_for(self, task: TodoItem) -> tuple[str, ...]:
        return next((paths for one, paths in self.written_for if one is task), ())


def ledger_of(found: Gathered) -> WorkLedger:
    git = found.git
    paths = Paths(found.cwd)
    edited = git.edited_since_commit if git.commits else _all_edited(found)
    running = tuple(path for call in found.stop.calls if (path := _writes(call)))
    tasks = tuple(_reconciled(todo, found) for todo in found.todos)
    changed = _changed(found)
    edited_at = {file.path: file.last_edit_index for file in found.files}
    return WorkLedger(
        branch=git.branch or "",
        commits=git.commits,
        git=git,
        uncommitted=tuple(path for path in dict.fromkeys((*running, *edited)) if paths.is_inside(path)),
        checks=tuple(
            _of_this_project(run, paths) for run in found.checks or ((found.tests,) if found.tests else ())
        ),
        tasks=tasks,
        open_errors=tuple(failure for failure in found.failures if _is_open(failure, found)),
        in_flight=found.stop.calls,
        paths=paths,
        changed=changed,
        not_committed=tuple(_not_committed(found, changed)),
        edited_since_plan=tuple(
            path
            for path in reversed(_all_edited(found))
            if found.todos_index >= 0 and edited_at[path] > found.todos_index
        ),
        written_for=tuple(_written_for(tasks, found)),
        removed=frozenset(file.path for file in found.files if file.deleted),
        had_subagents=bool(found.reports),
        users_commit=_users_commit(found),
        may_have_written=tuple(_may_have_written(found)),
    )


def _may_have_written(found: Gathered) -> Iterator[tuple[int, str]]:
    for step in found.happened:
        if step.may_write:
            ran = f"{code(one_line(step.text), 80)} ran"
            yield step.index, "a sub-agent worked" if step.kind == "agent" else ran


def _users_commit(found: Gathered) -> str:
    edited = max((file.last_edit_index for file in found.files if file.edits), default=-1)
    after = (turn.said for turn in found.turns if turn.index > edited and _COMMITTED.search(turn.said))
    return next(after, "")


_COMMITTED = re.compile(
    r"\b(?:i|we)(?:'ve| have)?(?: just| already| now)? (?:commit(?:ted)?|merged|pushed|squashed|amended"
    r"|made (?:a|the|one) (?:new )?(?:commit|one)|put \w+ (?:\w+ )?(?:in|into) (?:one|a) commit"
    r"|reset the commit)\b",
    re.IGNORECASE,
)


def _all_edited(found: Gathered) -> tuple[str, ...]:
    used = sorted((file for file in found.files if file.edits), key=lambda file: file.last_edit_index)
    return tuple(file.path for file in used)


def _changed(found: Gathered) -> tuple[str, ...]:
    root = f"{found.git.root.rstrip('/')}/" if found.git.root else ""
    written = [one.path for one in found.files if one.edits or one.created or one.deleted]
    if root and found.cwd and not f"{found.cwd}/".startswith(root):
        # The agent came to the folder by a link: where all its paths begin is then the same place.
        written = [path.removeprefix(f"{found.cwd.rstrip('/')}/") for path in written]
    return tuple(dict.fromkeys(path.removeprefix(root) for path in written))


def _not_committed(found: Gathered, changed: tuple[str, ...]) -> Iterator[str]:
    """Where only commands may have changed files, in doubt all that was written since the session began."""
    ran = found.commands or any(step.kind == "shell" for step in found.happened)
    before = found.git.uncommitted_before
    for path in found.git.uncommitted or ():
        if any(_covers(path, one) for one in changed) or (ran and not changed and path not in before):
            yield path


def _covers(path: str, changed: str) -> bool:
    return changed.startswith(path) if path.endswith("/") else path == changed


def _writes(call: LastStep) -> str:
    return call.target if call.kind in ("edit", "write", "delete") else ""


def _of_this_project(run: TestRun, paths: Paths) -> TestRun:
    return replace(run, edited_since=tuple(path for path in run.edited_since if paths.is_code(path)))


def _is_open(failure: Failure, found: Gathered) -> bool:
    """Of the latest work, and settled by nothing. For checks the verdict of the newest run counts."""
    if failure.resolution != "unresolved" or failure.lookup:
        return False
    if not failure.index:
        return True  # recorded by the workflow itself
    since = found.turns[-1].index if found.turns else 0
    told = any(run.command == failure.doing and failure.message[:60] in run.summary for run in found.checks)
    if told or _SAID_ELSEWHERE.search(failure.message):
        return False
    recent = failure.index >= max(since, found.messages - _RECENT)
    by_hand = failure.doing.startswith(("Edit", "Write", "Read", "MultiEdit"))
    return recent and not by_hand and failure.index > _last_green(found)


def _last_green(found: Gathered) -> int:
    return max((run.index for run in found.checks if run.passed and not run.unsure), default=-1)


def is_a_run(todo: TodoItem) -> bool:
    return bool(_TASK_IS_A_RUN.search(todo.text))


def _reconciled(todo: TodoItem, found: Gathered) -> TodoItem:
    """A task that later evidence shows done: the plan was not kept up to the end."""
    if todo.status == "completed":
        return todo
    if _TASK_IS_A_COMMIT.search(todo.text):
        done = any(one.index > found.todos_index for one in found.git.commits)
    elif _TASK_IS_A_PUSH.search(todo.text):
        done = found.git.pushed_index > found.todos_index >= 0
    elif is_a_run(todo):
        done = any(run.index > found.todos_index and run.passed and not run.unsure for run in found.checks)
    else:
        return todo
    return replace(todo, status="completed") if done and found.todos_index >= 0 else todo


_IDENTIFIER = re.compile(r"\b[A-Za-z_]+(?:[a-z0-9][A-Z_]|_)\w*\b|\b[\w-]+\.[a-z]{1,5}\b")
_WORD = re.compile(r"[A-Z]?[a-z]{3,}")
_SAYS_NOTHING = frozenset(
    (
        *(
            "add",
            "update",
            "implement",
            "create",
            "fix",
            "write",
            "make",
            "use",
            "with",
            "from",
            "that",
            "thi",
        ),
        *("for", "the", "and", "into", "function", "file", "code", "new", "change", "support", "handle"),
    )
)
_ENOUGH_IN_COMMON = 0.6


def _written_for(tasks: tuple[TodoItem, ...], found: Gathered) -> Iterator[tuple[TodoItem, tuple[str, ...]]]:
    """The open tasks from the first on that something was written for after the list was last updated."""
    waiting = [task for task in tasks if task.status != "completed"]
    since = [
        step
        for step in found.happened
        if step.kind in ("edit", "write") and step.outcome == "ok" and step.index >= found.todos_index >= 0
    ]
    meant = [(step.text, _meant_for(step, waiting)) for step in since]
    for task in waiting:
        paths = dict.fromkeys(path for path, tasks_of_it in meant if task in tasks_of_it)
        if not paths:
            return
        yield task, tuple(paths)


def _meant_for(step: Happening, tasks: list[TodoItem]) -> list[TodoItem]:
    """The tasks whose own names the edit has; else the one that most of its words are of."""
    text = f"{step.told} {step.about} {step.text.rsplit('/', 1)[-1]}"
    every = Counter(name for task in tasks for name in _names(task.text))
    own = [task for task in tasks if any(every[name] == 1 for name in _names(task.text) & _names(text))]
    alike = [task for task in tasks if _is_alike(task.text, text)]
    return own or (alike if len(alike) == 1 else [])


def _is_alike(task: str, text: str) -> bool:
    wanted = _plain_words(task)
    shared = wanted & _plain_words(text)
    return len(shared) >= 2 and len(shared) >= _ENOUGH_IN_COMMON * len(wanted)


def _names(text: str) -> set[str]:
    return {name.lower() for name in _IDENTIFIER.findall(text)}


def _plain_words(text: str) -> set[str]:
    return {word.lower().removesuffix("s") for word in _WORD.findall(text)} - _SAYS_NOTHING


# ── in words ──────────────────────────────────────────────────────────────────────────────────────


def git_lines(ledger: WorkLedger) -> Iterator[str]:
    git = ledger.git
    if git.under_way:
        left = (
            f"; not touched since: {listed(ledger.paths(one) for one in git.conflicts)}"
            if git.conflicts
            else ""
        )
        yield f"A {git.under_way} stopped at conflicts and is not concluded in the record{left}."
    if ledger.commits:
        made = "; ".join(_commit(one, ledger.branch) for one in reversed(ledger.commits[-8:]))
        others = " Sub-agents may have made others." if ledger.had_subagents else ""
        yield f"Commits of this session: {made}. {_pushed(ledger)}{others}"
    if git.push_refused:
        yield "The newest push was refused."
    if git.stashed:
        yield "Something is stashed (`git stash list`)."
    if git.pull_requests:
        yield f"Pull request: {'; '.join(prose(one, 200) for one in git.pull_requests[-3:])}."


def _commit(commit: Commit, branch: str) -> str:
    where = f" (on {code(commit.branch)})" if commit.branch not in ("", "detached", branch) else ""
    return (
        f"{code(commit.identifier) if commit.identifier else '(id not shown)'} "
        f"{quoted(commit.subject, 90)}{where}"
    )


def _pushed(ledger: WorkLedger) -> str:
    waiting, git = ledger.unpushed, ledger.git
    rewritten = " A rebase has given commits other ids since." if git.rewritten else ""
    if not waiting:
        return f"All pushed.{rewritten}"
    if len(waiting) == len(ledger.commits):
        return f"No push of {'it' if len(waiting) == 1 else 'them'} in the record.{rewritten}"
    return (
        f"Not pushed, as far as the record shows: "
        f"{'; '.join(code(one.identifier) for one in waiting)}.{rewritten}"
    )


def uncommitted_line(ledger: WorkLedger, most: int = 12, *, marked: bool = False) -> str:
    """`marked`: where the files are listed elsewhere as well, many are only counted."""
    if ledger.git.uncommitted is not None:
        return _at_the_pause(ledger, ledger.git.uncommitted, most)
    paths = [
        f"{ledger.paths(path)}{' (removed)' if path in ledger.removed else ''}" for path in ledger.uncommitted
    ]
    if not paths:
        return "Nothing was written after the last commit." if ledger.commits else ""
    lead = (
        "Written after the agent's last commit" if ledger.commits else "Written, and no commit by the agent"
    )
    if ledger.users_commit:
        lead += f" (the user has spoken of committing since: {quoted(ledger.users_commit, 140)})"
    if marked and ledger.marks_uncommitted:
        newest = listed(list(reversed(paths))[:3])
        return f"{lead}: {len(paths)} files, marked * in the map, the newest: {newest}."
    return f"{lead}: {listed(reversed(paths), most)}."


def status_line(ledger: WorkLedger, since: int, most: int) -> str:
    """What git itself had shown: it also knows what sub-agents and the user changed. `since` counts steps."""
    shown = ledger.git.status
    if shown is None or ledger.git.uncommitted is not None:
        return ""
    parts = (
        ("staged", shown.staged),
        ("changed and not staged", shown.unstaged),
        ("untracked", shown.untracked),
    )
    told = "; ".join(f"{name}: {listed(map(code, paths), most)}" for name, paths in parts if paths)
    return f"The newest `git status` ({counted(since, 'step')} before the end) showed {told}."


def _at_the_pause(ledger: WorkLedger, uncommitted: tuple[str, ...], most: int) -> str:
    """As git showed it. Who changed what the record does not name is not said: a command, or the user."""
    own = set(ledger.not_committed)
    named = [_in_folder(path, ledger) for path in ledger.not_committed]
    others = [_in_folder(path, ledger) for path in uncommitted if path not in own]
    if not named:
        told = f"Not committed at the pause, as git showed it: {listed(others, most)}"
        return f"{told if others else 'Git showed nothing uncommitted at the pause'}."
    besides = f"; besides what the record names: {listed(others, most)}" if others else ""
    return f"Not committed at the pause: {listed(named, most)}{besides}."


def _in_folder(path: str, ledger: WorkLedger) -> str:
    """As the other paths of a briefing."""
    whole = _whole(path, ledger)
    return ledger.paths(whole) if ledger.paths.short(whole) else code("./")


def _whole(path: str, ledger: WorkLedger) -> str:
    """Git has them from the top of its work tree."""
    return f"{ledger.git.root.rstrip('/')}/{path}" if ledger.git.root else path


def check_lines(ledger: WorkLedger) -> Iterator[str]:
    """A part that passed before the last edits says nothing of how things stand, where there is more."""
    wide = [run for run in ledger.checks if not (run.narrow and run.passed and run.edited_since)]
    told: set[tuple[str, ...]] = set()
    for run in reversed(wide or ledger.checks):
        if not run.failing or run.failing not in told:
            yield _check(run, ledger)
        told.add(run.failing)


def _check(run: TestRun, ledger: WorkLedger) -> str:
    what = f"{code(run.command, 160)}" if run.command else f"The {_CHECK_WORDS[run.kind]}"
    if not run.passed:
        said = f", which said {code(run.summary, 400)}" if run.summary else ""
        names = f": {listed(map(code, run.failing), 8)}" if run.failing else said
        text = f"{what} failed (red){names}"
    elif run.unsure:
        text = f"{what} showed no failure, but its output was cut or not awaited: not proven"
    else:
        text = f"{what} passed (green)"
    if run.expected:
        text += f"; expected to fail: {listed(map(code, run.expected), 5)}"
    if run.edited_since:
        text += f"; written since: {listed((ledger.paths(path) for path in run.edited_since), 2)}"
    elif run.passed and not run.unsure:
        text += ", no edit is recorded since"
    if 0 <= run.index < ledger.git.moved_index:
        text += "; before the newest checkout or merge"
    elif run.passed and not run.unsure and not run.edited_since:
        text += _may_be_out_of_date(run, ledger)
    return f"{text}."


def _may_be_out_of_date(run: TestRun, ledger: WorkLedger) -> str:
    """What may have changed the code since, though no edit is known: the newest such command, and files
    that git showed and the record does not name."""
    since = [what for index, what in ledger.may_have_written if index > run.index]
    own = {*ledger.not_committed, *ledger.git.uncommitted_before}
    others = [
        _in_folder(path, ledger)
        for path in ledger.git.uncommitted or ()
        if path not in own and ledger.paths.is_code(_whole(path, ledger))
    ]
    ran = f", but {since[-1]}" if since else ""
    return ran + (f"; when {listed(others, 3)} changed is not known" if others else "")


def open_tasks_line(ledger: WorkLedger, most: int) -> str:
    waiting = ledger.open_tasks()
    when = " when the agent last updated its list (files were written since)" if ledger.plan_is_older else ""
    more = f"; and {len(waiting) - most} more" if len(waiting) > most else ""
    finished = len(ledger.tasks) - len(waiting)
    done = f"; {finished} of its {len(ledger.tasks)} were done" if finished else ""
    return f"Open tasks{when}: {'; '.join(_task(one, ledger) for one in waiting[:most])}{more}{done}"


def _task(todo: TodoItem, ledger: WorkLedger) -> str:
    at_work = " (in progress)" if todo.status == "in_progress" else ""
    for_it = ledger.files_for(todo)
    since = f" (written for it since: {listed(map(ledger.paths, for_it), 3)})" if for_it else ""
    return f"{quoted(todo.text, 300)}{at_work}{since}"


def done_tasks_line(ledger: WorkLedger) -> str:
    finished = [one.text for one in ledger.tasks if one.status == "completed"]
    newest = "; ".join(quoted(one, 90) for one in finished[-4:])
    return f"Tasks done: {len(finished)}, the last ones: {newest}" if finished else ""


def error_lines(ledger: WorkLedger) -> Iterator[str]:
    for failure in reversed(ledger.open_errors[-12:]):
        also = f" ({code(failure.verdict, 160)})" if failure.verdict else ""
        yield f"Open error, from {code(failure.doing, 120)}: {code(failure.message, 240)}{also}"


def facts(ledger: WorkLedger) -> list[str]:
    """Everything the ledger is sure of, a sentence each, the most pressing first."""
    found = [f"Branch: {code(ledger.branch)}."] if ledger.branch else []
    found += git_lines(ledger)
    if line := uncommitted_line(ledger):
        found.append(line)
    tasks = [open_tasks_line(ledger, 20)] if ledger.open_tasks() else []
    return [*found, *check_lines(ledger), *error_lines(ledger), *tasks]


# ── what an agent claims ──────────────────────────────────────────────────────────────────────────

_IN_FUTURE = re.compile(
    r"\b(?:if|once|when|until|unless|before|after|should|would|will|must|to be|yet to|needs?|needed|todo"
    r"|pending|next|then|remaining|to (?:make|get|see)|ensure|verif(?:y|ies)|confirm|run|expect|check"
    r"|ask(?:s|ed)?|want(?:s|ed)?|request(?:s|ed)?|told|says?|said|claim(?:s|ed)?)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|no|never|nothing|none|without|except|fail\w*|un(?:committed|pushed|tested|clear|known))\b|n't\b",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,;:()\u2013\u2014]| - | (?:but|so|while|although) ")


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence of an agent, and what the record shows instead."""

    claim: str
    instead: str


def corrected(words: str, ledger: WorkLedger) -> tuple[str, list[Correction]]:
    """The words of an agent with the record's after each claim that it contradicts.

    A sentence that may mean something else is no claim; what no record can tell stays the agent's word.
    """
    lines: list[str] = []
    found: list[Correction] = []
    in_code = False
    for line in words.split("\n"):
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        wrong = [] if in_code else [one for said in sentences(line) for one in _contradictions(said, ledger)]
        found += wrong
        lines.append(_in_place(line, wrong))
    return "\n".join(lines), found


def checked(words: str, ledger: WorkLedger) -> str:
    """Words of an agent that are quoted, with the record's beside what it contradicts."""
    return corrected(words, ledger)[0]


def _in_place(line: str, wrong: list[Correction]) -> str:
    for one in wrong:
        note = f" [the record: {one.instead}]"
        said = line.replace(one.claim, one.claim + note, 1)
        line = said if said != line else line + note
    return line


def _contradictions(sentence: str, ledger: WorkLedger) -> Iterator[Correction]:
    for claim, denial, check in _CLAIMS:
        found = claim.search(sentence)
        if found is None or _IN_FUTURE.search(sentence, 0, found.start()):
            continue
        if (denial or not _DENIED.search(_clause(sentence, found))) and (instead := check(ledger)):
            yield Correction(sentence, instead)


def _clause(sentence: str, found: re.Match[str]) -> str:
    start = max((end.end() for end in _CLAUSE_END.finditer(sentence, 0, found.start())), default=0)
    end = _CLAUSE_END.search(sentence, found.end())
    return sentence[start : end.start() if end else len(sentence)]


def _claims_pushed(ledger: WorkLedger) -> str:
    git = ledger.git
    if git.upstream:
        return f"{code(git.upstream)} lacks {counted(git.ahead, 'commit')}" if git.ahead else ""
    waiting = [one for one in ledger.unpushed if one.identifier]
    if waiting and len(waiting) == len(ledger.commits):
        return f"no push of {listed(code(one.identifier) for one in waiting[-3:])} is recorded"
    return ""


def _claims_unpushed(ledger: WorkLedger) -> str:
    if ledger.git.upstream:
        return "" if ledger.git.ahead else f"{code(ledger.git.upstream)} has all commits"
    return "all commits of the session were pushed" if ledger.commits and not ledger.unpushed else ""


def _claims_green(ledger: WorkLedger) -> str:
    """Only where tests are known to have failed and nothing was written since that may have mended them."""
    red = ledger.red_test
    if red is None or not red.command or not red.failing or red.edited_since:
        return ""
    return f"the newest run of {code(red.command, 120)} failed"


def _claims_staged(ledger: WorkLedger) -> str:
    shown = ledger.git.status
    if shown is None or shown.staged or not shown.unstaged:
        return ""
    if any(one.index > shown.index for one in ledger.commits):
        return ""
    return f"the newest `git status` showed as not staged: {listed(map(code, shown.unstaged), 6)}"


def _claims_committed(ledger: WorkLedger) -> str:
    if ledger.git.uncommitted is not None:
        return (
            f"not committed: {listed(map(code, ledger.not_committed), 6)}"
            if ledger.changed and ledger.not_committed
            else ""
        )
    written = listed((ledger.paths(path) for path in reversed(ledger.uncommitted)), 6)
    lead = "written after the last commit" if ledger.commits else "no commit is recorded of"
    return f"{lead}: {written}" if written else ""


def _claims_uncommitted(ledger: WorkLedger) -> str:
    newest = ledger.commits[-1] if ledger.commits else None
    left = ledger.uncommitted if ledger.git.uncommitted is None else ledger.git.uncommitted
    if newest is None or not newest.identifier or left:
        return ""
    return f"committed as {code(newest.identifier)}; nothing is left uncommitted after it"


def _claims_merged(ledger: WorkLedger) -> str:
    return f"the {ledger.git.under_way} is not concluded in the record" if ledger.git.under_way else ""


def _claim(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_CLAIMS = (
    # the claim, whether it is itself a denial, what contradicts it
    (
        _claim(
            r"(?<!\w)(?:and|was|were|been|successfully|is|are|have|has|i|we|all|everything|✅) pushed\b"
            r"(?! (?:back|for|onto|into|through|on the|an?)\b)|^\W*(?:\w+: )?pushed\b"
            r"|\bpushed (?:[\w`./-]+ ){0,3}to (?:origin|remote|the remote|upstream|github|gitlab)\b"
        ),
        False,
        _claims_pushed,
    ),
    (
        _claim(r"\b(?:not (?:yet )?(?:been )?pushed|unpushed|needs? to be pushed|ahead of `?origin)\b"),
        True,
        _claims_unpushed,
    ),
    (
        _claim(
            r"\b(?:all|the) (?:the )?(?:tests|suite)\b(?: \w+)? pass(?:es|ed|ing)?\b(?! individually)"
            r"|\b(?:tests|suite) (?:is|are)(?: \w+)? green\b"
        ),
        False,
        _claims_green,
    ),
    (
        _claim(
            r"^\W*(?:\w+: )?(?:(?:all|the|my|these) )*(?:everything|changes|work|it)(?: \w+){0,4} committed\b"
            r"|\bclean (?:working|work) ?tree\b"
        ),
        False,
        _claims_committed,
    ),
    (
        _claim(
            r"\b(?:changes|files|work) (?:are|is|remain) (?:still )?(?:uncommitted|not (?:yet )?committed)\b"
        ),
        True,
        _claims_uncommitted,
    ),
    (
        _claim(
            r"\b(?:changes|files|everything|work|all) (?:(?:is|are|was|were|have been) )?(?:now )?staged\b"
            r"(?! (?:rollout|build|release))"
        ),
        False,
        _claims_staged,
    ),
    (
        _claim(
            r"\bmerge (?:is |was )?(?:completed?|concluded|finished)\b"
            r"|\ball conflicts (?:are |were )?resolved\b"
        ),
        False,
        _claims_merged,
    ),
)
