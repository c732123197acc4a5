"""File names and line formats that several modules share: the project folder's, and the hooks' notes.

Every hook event loads this: constants and small functions, and no import but `os`. `hooks/hook.sh` reads
some of these notes, too; a test compares the names in that script with these. A name that only one module
knows is defined there.
"""

import os

# ── the agents ────────────────────────────────────────────────────────────────────────────────────

AGENTS = ("claude-code", "codex", "gemini", "opencode")
"""One name each, everywhere."""
OLD_NAMES = {"claude": "claude-code", "gemini-cli": "gemini"}
"""Understood wherever an agent is named, also in what earlier versions stored."""


def agent_called(name: str) -> str:
    """Its one name; a name that is nobody's stays."""
    return OLD_NAMES.get(name, name)


# ── the project's folder ──────────────────────────────────────────────────────────────────────────

FOLDER = ".holdfast"
CONFIG = "config.toml"
SESSIONS = "sessions"
STATE = "state"
SIDECAR = "sidecar"
UNDO_BRANCHES = "refs/heads/holdfast"
"""In the side-car: a branch a transaction."""
SHARE = "share"
HOOKS = "hooks"
"""In the state folder: a folder of notes for each agent session."""

JOURNAL = "ACTIVE-PAUSE.jsonl"
STARTED = ".started-"
"""With a session's name: holds a proof that this user's program began its wind-down."""
LATEST = "LATEST-SESSION.txt"
ARCHIVE_MARK = "-incremental"
ARCHIVE_SUFFIX = f"{ARCHIVE_MARK}.jsonl"
UNINDEXED = ".unindexed-"
"""With a session's name: the database has not taken it yet."""
INDEXED = ".indexed-"
"""With a session's name: the database has taken it. Both hold a proof that this user's program wrote them."""
COMMIT = ".commit-"
"""With a session's name: a folder of what the database has taken, on its way to its place."""
STAGING = ".staging-"
"""With a session's name: its pause is being made, or was interrupted."""

SESSION_VARIABLES = ("HOLDFAST_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID")
"""In which an agent's shell tells its session."""
UNKNOWN_SESSION = "session-unknown"
"""Stands for the agent session where nobody told its id."""


def sessions_folder(project: str) -> str:
    return os.path.join(project, FOLDER, SESSIONS)


def journal_file(project: str) -> str:
    return os.path.join(project, FOLDER, SESSIONS, JOURNAL)


def latest_file(project: str) -> str:
    return os.path.join(project, FOLDER, SESSIONS, LATEST)


FORKED = "-of-"
"""In the name of a transaction: between the fork whose tasks are those of another plan, and that plan."""


def forked_name(fork: str, origin: str, session_number: int) -> str:
    return f"{fork}-s1{FORKED}{origin}-s{session_number}"


def origin_of(transaction: str) -> tuple[str, int] | None:
    """The plan, and up to which of its sessions, where that is all the transaction tells."""
    _, _, origin = transaction.partition(FORKED)
    plan, dash, number = origin.rpartition("-s")
    return (plan, int(number)) if dash and number.isdigit() else None


def plan_branches(sidecar: str, plan: str) -> list[str]:
    """Files that change when anything of a plan's tasks, or of those it was forked with, is undone."""
    folder = os.path.join(sidecar, UNDO_BRANCHES)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    found: dict[str, None] = {}
    plans = [plan]
    for one in plans:
        own = [name for name in names if name.startswith(f"session-{one}-s")]
        found.update(dict.fromkeys(own))
        origins = filter(None, map(origin_of, own))
        plans += [origin for origin, _ in origins if origin not in plans]
    return [os.path.join(folder, name) for name in found]


def sidecar_folder(project: str) -> str:
    return os.path.join(project, FOLDER, SIDECAR)


def ending_mark(transaction: str) -> str:
    """In the side-car: held while the last turn of an agent session is recorded."""
    return f"holdfast-ending-{transaction}"


# ── the state folder ──────────────────────────────────────────────────────────────────────────────

REMINDERS = "reminders"
REMINDERS_OWN = "reminders.own"
"""The folder's mark, and the lines that `holdfast remind` wrote: a patch can bring the other file."""
QUIET_PREFIX = "quiet-"
USAGE_PREFIX = "usage-"


def quiet_marker(session_key: str) -> str:
    return f"{QUIET_PREFIX}{session_key}"


def usage_file(session_key: str) -> str:
    return f"{USAGE_PREFIX}{session_key}.json"


def usage_lock(session_key: str) -> str:
    return f"{USAGE_PREFIX}{session_key}.lock"


UNKNOWN_EVENTS = "unknown-events"
"""In the user's data folder: what agents sent that this version does not know, agent and event a line."""


# ── the hooks' notes ──────────────────────────────────────────────────────────────────────────────

# Shared by all agent sessions of a project:

HOOK_SETTINGS = "settings"
THREADS = "threads"
"""The pieces of work in this folder, a line each; see `render_threads`."""
RECORDS = "records"
"""What agents recorded over MCP and still stands in this folder; see `render_records`."""
TAKING_UP = "taking-up.lock"
"""Locked by the session that looks which work nobody goes on with."""
COMPACTIONS = "compactions"
"""Where agents were seen to compact: agent, model, window, tokens."""

# In the folder of one agent session:

WHO = "who"
ENDED = "ended"
INDEX_SEEN = "index"
"""Git's index as it was when it was last looked whether git brought files: its path, and its time."""
TOLD_OF_FOREIGN, ENDED_BESIDE = "told ", "ended "
"""Before a session's key, of what happened while the folder was foreign."""
PROMPTS = "prompts"
MODEL = "model"
STARTED_WITH = "started-with"
USAGE = "usage"
GAUGE = "gauge"
"""The number of tokens from which on `hook.sh` must start Python."""
NOTICED = "noticed"
"""The highest level that the user was told of."""
NOTICE_DUE = "notice-due"
"""There is a level the user has not been told of."""
FULL = "full"
"""There while the window is fuller than the auto-pause level."""
WINDING = "winding"
WOUND_DOWN = "wound-down"
"""The wind-down of this session that somebody else has ended."""
STOPPED = "stopped"
EDIT_GATE = "edit-gate"
SETTLED = "settled"
SETTLING = "settling"
"""Held while a session that is over is made a snapshot, from before that begins."""
BEGUN = "begun"
"""This conversation was told what there is to go on with, or that there is nothing."""
TOOK_UP = "took-up"
"""Names the session whose handover this one was given."""
HANDOVER = "handover"
"""The agent's own words for the next session."""
STEERING = "steering"
"""What the agent's own request for a summary is to be given."""
COMPACTED = "compacted"
"""There while the summary of a compaction is still to be compared with the record; holds the tries."""
SUMMARY_SEEN = "summary-seen"
"""How the summary begins that a request of Gemini CLI held last."""
SUPPLEMENT = "supplement"
"""What the summary lacks; what was told of it is in the note below."""
SUPPLEMENT_TOLD = "supplement-told"
CHANGES = "changes"
"""What changed in the folder since the session was settled."""
CHECKS = "checks"
"""Of a session that is about to commit: what its record tells of tests, builds and linters."""
CHANGES_TOLD = "changes-told"
RECOVERED = "recovered"
"""Names the sessions that this one found killed when it started."""
TURNING = "turning"
"""There while the tree is looked at before a turn."""
TURN_OVER = "turn-over"
"""The turn ended while the tree was still looked at."""
LATE_LOOK = "late-look"
"""A tool was let go before the tree had been looked at."""
NOT_APART = "not-apart"
APART = "apart"
"""Files of which it is told apart what was done to them in this turn before a command writes them."""
"""A file was edited while nobody could record what was done to it before in the turn: names such files."""
RECORDING = "recording"
"""There while a turn's changes are watched; says which turn."""
ENDING = "ending"
"""The same, from the turn's end until it is recorded."""
UNRECORDED = "unrecorded-"
"""With a turn's number behind it: that turn was not recorded. It holds why, where there is room for that."""
TOLD_UNRECORDED = ".told"
"""Behind that, once the user knows."""
TRANSACTION = "transaction"
NAMED = "named"
"""The files and commands that this turn's tools were called with, a JSON object a line."""


def hooks_folder(state: str) -> str:
    return os.path.join(state, HOOKS)


def render_who(agent: str, session: str, transcript: str, pid: int, started: str) -> bytes:
    """Who runs an agent session, a line each; `started` tells the process from a later one of that number."""
    return "\n".join((agent, session, transcript, str(pid), started)).encode("utf-8", "surrogateescape")


def parse_who(data: bytes | None) -> tuple[str, str, str, str, str] | None:
    """As rendered: agent, session, transcript, process number, its start. None where it is not whole."""
    lines = (data or b"").decode("utf-8", "surrogateescape").split("\n")
    if len(lines) != 5:
        return None
    agent, session, transcript, pid, started = lines
    return agent_called(agent), session, transcript, pid, started


def process_in_who(data: bytes | None) -> tuple[int, str | None] | None:
    """The agent's process: its number and, where known, its start."""
    who = parse_who(data)
    return (int(who[3]), who[4] or None) if who and who[3].isdigit() else None


def render_settled(name: str, prompts: str, cause: str) -> bytes:
    """The snapshot that was made of a session, after how many prompts, and why."""
    return f"{name}\n{prompts}\n{cause}".encode()


def parse_settled(data: bytes | None) -> tuple[str, str, str]:
    """Empty texts for what is not there."""
    name, _, rest = (data or b"").decode("utf-8", "replace").partition("\n")
    prompts, _, cause = rest.partition("\n")
    return name, prompts, cause


FINISHED = "finished"
"""The state of a thread that came to its end; of a plan, what was taken back since follows it."""


class ThreadLine:
    """What a session's start needs to know of a thread."""

    __slots__ = ("branch", "has_plan", "id", "is_open", "sessions", "state", "title", "updated")

    def __init__(self, fields: list[str]) -> None:
        self.id, sessions, self.branch, status, updated, plan, self.title, self.state = fields
        self.sessions = sessions.split(" ")
        """Names: of work without a plan the one that tells where it stands, then newest first."""
        self.is_open = status == "open"
        self.updated = float(updated)
        self.has_plan = plan == "plan"


def render_threads(stamp: str, threads: list[list[str]]) -> bytes:
    """`stamp` tells which state of the sessions folder this is; no field may hold a tab or a line's end."""
    return "\n".join((stamp, *map("\t".join, threads))).encode("utf-8", "replace")


def parse_threads(data: bytes | None) -> tuple[str, list[ThreadLine]]:
    stamp, *lines = (data or b"").decode("utf-8", "replace").split("\n")
    rows = [line.split("\t") for line in lines]
    return stamp, [ThreadLine(row) for row in rows if len(row) == 8]


def render_records(rows: "list[tuple[str, str]]") -> bytes:
    """What each is, and its words, a line each."""
    return "\n".join([f"{kind}\t{' '.join(words.split())}" for kind, words in rows]).encode(
        "utf-8", "replace"
    )


def parse_records(data: bytes | None) -> list[tuple[str, str]]:
    rows = [line.partition("\t") for line in (data or b"").decode("utf-8", "replace").split("\n")]
    return [(kind, words) for kind, _, words in rows if words]


def threads_stamp(project: str) -> str:
    """Changes whenever a session is added, replaced or deleted."""
    try:
        return str(os.stat(sessions_folder(project)).st_mtime_ns)
    except FileNotFoundError:
        return ""


def render_usage_note(offset: int, tokens: int, window: int, point: int) -> bytes:
    """How far the transcript was read, how full the window was then, and where the agent compacts."""
    return b"%d %d %d %d" % (offset, tokens, window, point)


def parse_usage_note(data: bytes | None) -> tuple[int, int, int, int] | None:
    words = (data or b"").split()
    if len(words) not in (3, 4) or not all(word.isdigit() for word in words):
        return None
    offset, tokens, window, *point = map(int, words)
    return offset, tokens, window, point[0] if point else window


# ── documents that hooks write without `json` ─────────────────────────────────────────────────────


def json_template(keys: tuple[str, ...]) -> str:
    """An object with these keys, laid out as `json.dumps` does, with `%s` in place of the encoded values."""
    members = ", ".join([f'"{key}": %s' for key in keys])
    return f"{{{members}}}"


JOURNAL_KEYS = ("type", "timestamp", "session_id", "data", "context_percentage")
JOURNAL_HEAD = 160
"""Bytes that hold a journal's session id and the moment it began: enough to tell two apart."""
_JOURNAL_LINE = json_template(JOURNAL_KEYS).encode() + b"\n"
_JOURNAL_SESSION = b'"session_id": "'


def journal_line(kind: str, timestamp: str, session_id: str, data: bytes, share: float) -> bytes:
    """One action of a wind-down; `data` is a JSON object, encoded by the caller."""
    texts = [f'"{text}"'.encode() for text in (kind, timestamp, session_id)]
    return _JOURNAL_LINE % (*texts, data, repr(share).encode())


def journal_session(head: bytes) -> str | None:
    """The session id in a journal's first line, without parsing the line, which may be long."""
    _, found, rest = head.partition(_JOURNAL_SESSION)
    name, ended, _ = rest.partition(b'"')
    return name.decode("utf-8", "replace") if found and ended else None


USAGE_VERSION = 1
USAGE_COUNTS = ("input_tokens", "output_tokens", "cache_read", "cache_write")
USAGE_KEYS = (
    "session_id",
    *USAGE_COUNTS,
    "reports",
    "model",
    "context_window",
    "last_updated",
    "set_aside",
    "recent_reports",
    "previous_share",
    "schema_version",
)
"""Of a usage file, in the order in which they are written."""
