"""Token use of one agent session, counted by any number of processes at once.

The state is a small file per agent session. An update reads, adds and replaces it
under a lock. What cannot be read is set aside, and from then on the count is known
to be incomplete; it is never quietly taken for an empty window.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from holdfast.base.clock import Clock, iso, system_clock
from holdfast.base.durable import lock_file, read_file, replace_file, set_aside, storage_errors
from holdfast.base.errors import DamagedDataError, InvalidInputError, NewerSchemaError
from holdfast.base.ids import file_name_for
from holdfast.journal.prices import cost_of
from holdfast.journal.windows import context_window
from holdfast.model.message import Message, TokenUsage
from holdfast.model.policy import Level, Levels
from holdfast.project.formats import (
    UNKNOWN_SESSION,
    USAGE_COUNTS,
    USAGE_KEYS,
    USAGE_PREFIX,
    USAGE_VERSION,
    usage_file,
    usage_lock,
)
from holdfast.project.layout import ProjectLayout, find_project
from holdfast.project.settings import Price

log = logging.getLogger("holdfast.usage")

_REMEMBERED_REPORTS = 64


@dataclass(frozen=True)
class UsageState:
    """What one agent session has in its window, as far as it was reported."""

    session_id: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reports: int = 0
    model: str | None = None
    context_window: int = 200_000
    last_updated: str | None = None
    set_aside: str | None = None
    """Name of the damaged state that was set aside; the counts are only what came after it."""
    recent_reports: tuple[str, ...] = ()
    previous_share: float = field(default=0.0, repr=False)
    schema_version: int = USAGE_VERSION
    levels: Levels = field(default=Levels(), repr=False, compare=False)

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens + self.cache_read + self.cache_write

    @property
    def share(self) -> float:
        """Of the window, 0.0 to 1.0; above that where the window was overrun."""
        return self.total_tokens / self.context_window

    @property
    def percentage_used(self) -> float:
        return self.share * 100

    @property
    def is_complete(self) -> bool:
        return self.set_aside is None

    # Under the names that claude-mpm's tracker has for them, for programs that move from it.

    @property
    def cumulative_input_tokens(self) -> int:
        return self.input_tokens

    @property
    def cumulative_output_tokens(self) -> int:
        return self.output_tokens

    @property
    def cache_creation_tokens(self) -> int:
        return self.cache_write

    @property
    def cache_read_tokens(self) -> int:
        return self.cache_read

    @property
    def threshold_reached(self) -> str | None:
        level = self.levels.at(self.share)
        return level.name.lower() if level else None

    @property
    def auto_pause_active(self) -> bool:
        return self.levels.at(self.share) >= Level.AUTO_PAUSE


class ContextUsageTracker:
    """Counts one agent session's tokens against its model's window."""

    def __init__(
        self,
        project_path: Path | str | None = None,
        *,
        session_id: str = UNKNOWN_SESSION,
        model: str | None = None,
        context_window: int | None = None,
        levels: Levels | None = None,
        clock: Clock = system_clock,
    ) -> None:
        root = Path(project_path) if project_path else find_project(Path.cwd())
        self.session_id = session_id
        self.levels = levels or Levels()
        self._layout = ProjectLayout(root)
        self._model = model
        self._window = context_window
        self._clock = clock
        if context_window is not None and context_window <= 0:
            raise InvalidInputError(f"a context window must be at least one token, not {context_window}")

    def update_usage(
        self,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cache_read: int = 0,
        cache_write: int = 0,
        *,
        report: Literal["delta", "cumulative"] = "delta",
        report_id: str | None = None,
        model: str | None = None,
        cache_creation: int = 0,
    ) -> UsageState:
        """Take in one report and return the new state.

        A `delta` is added; a `cumulative` report is the running total and replaces
        what was there. A report whose id was seen before changes nothing: some agents
        repeat the usage of a message on each of its lines. `cache_creation` is another name of `cache_write`.
        """
        _check_counts({"cache_write": cache_write, "cache_creation": cache_creation})
        written = cache_write + cache_creation
        counts: dict[str, int] = dict(
            zip(USAGE_COUNTS, (input_tokens, output_tokens, cache_read, written), strict=True)
        )
        _check_counts(counts)
        self._layout.ensure()
        with storage_errors("record usage"), lock_file(self._lock):
            state = self._read_or_set_aside()
            if report_id is not None and report_id in state.recent_reports:
                return state
            state = self._counted(state, counts, report, report_id, model)
            replace_file(self._path, _encoded(state))
        return state

    def get_current_state(self) -> UsageState:
        """The state as of the last report. Raises if it is damaged: unknown is not empty."""
        if not self._path.exists():
            return self._empty()
        with storage_errors("read usage"), lock_file(self._lock):
            state = self._read_or_set_aside()
            if state.set_aside and state.reports == 0:
                replace_file(self._path, _encoded(state))
        if state.set_aside and state.reports == 0:
            raise DamagedDataError(
                f"the usage of session {self.session_id} is unknown: "
                f"its state was damaged and renamed to {state.set_aside}",
                hint="it is available again after the next model call",
            )
        return state

    def reset_session(self, new_session_id: str | None = None) -> UsageState:
        """The window is empty: a conversation begins anew, under the same id unless another is given."""
        self.session_id = new_session_id or self.session_id
        self._layout.ensure()
        with storage_errors("record usage"), lock_file(self._lock):
            state = replace(self._read_or_set_aside(), **dict.fromkeys(USAGE_COUNTS, 0), reports=0)
            state = replace(state, recent_reports=(), previous_share=0.0, last_updated=iso(self._clock()))
            replace_file(self._path, _encoded(state))
        return state

    def check_thresholds(self, state: UsageState | None = None) -> str | None:
        """The highest level that was reached, such as `auto_pause`; None below all of them."""
        level = self.levels.at((state or self.get_current_state()).share)
        return level.name.lower() if level else None

    def get_usage_summary(self) -> dict[str, Any]:
        """The state as a document."""
        state = self.get_current_state()
        return {
            "session_id": state.session_id,
            "total_tokens": state.total_tokens,
            "budget": state.context_window,
            "percentage_used": round(state.percentage_used, 2),
            "threshold_reached": state.threshold_reached,
            "auto_pause_active": state.auto_pause_active,
            "breakdown": {
                "input_tokens": state.input_tokens,
                "output_tokens": state.output_tokens,
                "cache_creation_tokens": state.cache_write,
                "cache_read_tokens": state.cache_read,
            },
            "last_updated": state.last_updated,
        }

    def level(self) -> Level:
        return self.levels.at(self.get_current_state().share)

    def should_auto_pause(self) -> bool:
        return self.level() >= Level.AUTO_PAUSE

    def crossed(self, state: UsageState) -> Level | None:
        """The level the last report took the session into, if it rose into a new one."""
        now = self.levels.at(state.share)
        return now if now > self.levels.at(state.previous_share) else None

    def _counted(
        self, state: UsageState, counts: dict[str, int], report: str, report_id: str | None, model: str | None
    ) -> UsageState:
        if report == "delta":
            counts = {name: getattr(state, name) + count for name, count in counts.items()}
        seen = (
            (*state.recent_reports, report_id)[-_REMEMBERED_REPORTS:] if report_id else state.recent_reports
        )
        model = model or self._model or state.model
        return replace(
            state,
            **counts,
            reports=state.reports + 1,
            model=model,
            context_window=self._window or context_window(model),
            last_updated=iso(self._clock()),
            set_aside=None if report == "cumulative" else state.set_aside,
            recent_reports=seen,
            previous_share=state.share,
            levels=self.levels,
        )

    def _empty(self) -> UsageState:
        return UsageState(
            self.session_id,
            model=self._model,
            context_window=self._window or context_window(self._model),
            levels=self.levels,
        )

    def _read_or_set_aside(self) -> UsageState:
        """Call with the lock held."""
        if not self._path.exists():
            return self._empty()
        try:
            return replace(parse_state(read_file(self._path)), levels=self.levels)
        except DamagedDataError as error:
            kept = set_aside(self._path, self._clock())
            log.warning("usage of session %s: %s; kept as %s", self.session_id, error.message, kept.name)
            return replace(self._empty(), set_aside=kept.name)

    @property
    def _path(self) -> Path:
        return self._layout.state / usage_file(file_name_for(self.session_id))

    @property
    def _lock(self) -> Path:
        return self._layout.state / usage_lock(file_name_for(self.session_id))


def tracked_sessions(layout: ProjectLayout) -> Iterator[str]:
    """Ids of the sessions with a usage state here, most recently updated first."""
    paths = sorted(layout.state.glob(usage_file("*")), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in paths:
        try:
            yield parse_state(read_file(path)).session_id
        except DamagedDataError:
            yield path.name.removeprefix(USAGE_PREFIX).removesuffix(".json")


def _encoded(state: UsageState) -> bytes:
    return json.dumps({key: getattr(state, key) for key in USAGE_KEYS}).encode()


def parse_state(data: bytes) -> UsageState:
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedDataError(f"the usage state is not valid JSON ({error})") from error
    if not isinstance(document, dict):
        raise DamagedDataError("the usage state is not a JSON object")
    known = cast("dict[str, Any]", document)
    version = known.get("schema_version")
    if isinstance(version, int) and version > USAGE_VERSION:
        raise NewerSchemaError(f"the usage state was written by a newer holdfast (version {version})")
    if odd := sorted(set(USAGE_KEYS) ^ known.keys()):
        raise DamagedDataError(f"the usage state has missing or unknown keys: {', '.join(odd)}")
    if wrong := sorted(name for name, kind in _KINDS.items() if not kind(known[name])):
        raise DamagedDataError(f"the usage state contains values of the wrong type: {', '.join(wrong)}")
    known["recent_reports"] = tuple(known["recent_reports"])
    return UsageState(**known)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_optional_text(value: object) -> bool:
    return value is None or isinstance(value, str)


_KINDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys((*USAGE_COUNTS, "reports"), _is_count),
    **dict.fromkeys(("model", "last_updated", "set_aside"), _is_optional_text),
    "session_id": _is_text,
    "context_window": lambda value: _is_count(value) and value > 0,
    "recent_reports": lambda value: isinstance(value, list) and all(map(_is_text, cast("list[Any]", value))),
    "previous_share": lambda value: isinstance(value, int | float) and math.isfinite(value),
}


def _check_counts(counts: dict[str, int]) -> None:
    for name, count in counts.items():
        if not _is_count(count):
            raise InvalidInputError(f"{name} must be a token count, not {count!r}")


# How much fits, and when the window will be full.

_SAFE_CHARACTERS_PER_TOKEN = 3.0


def characters_for(tokens: int) -> int:
    """How long a text may be that must fit into so many tokens."""
    return int(tokens * _SAFE_CHARACTERS_PER_TOKEN)


def seconds_until_full(samples: Sequence[tuple[float, float]], *, full: float = 1.0) -> float | None:
    """From (seconds, share) samples in order; None where the share does not grow.

    A least-squares line through all of them: one large tool result must not decide it.
    """
    if len(samples) < 2:
        return None
    mean_time = sum(time for time, _ in samples) / len(samples)
    mean_share = sum(share for _, share in samples) / len(samples)
    spread = sum((time - mean_time) ** 2 for time, _ in samples)
    if spread == 0:
        return None
    slope = sum((time - mean_time) * (share - mean_share) for time, share in samples) / spread
    if slope <= 0:
        return None
    return max(0.0, (full - samples[-1][1]) / slope)


# What an agent's session has used, out of its own record.


@dataclass(frozen=True, slots=True)
class RecordedUsage:
    """Null is what cannot be told: no usage in the record, a window just compacted, no price."""

    model: str | None
    tokens: int
    """In and out, cached ones included."""
    context_tokens: int | None
    context_window: int
    cost_usd: float | None
    cost_is_partial: bool

    @property
    def share(self) -> float | None:
        return None if self.context_tokens is None else self.context_tokens / self.context_window


@dataclass(slots=True)
class UsageTally:
    """Sub-agents count towards tokens and cost; the window is the session's own."""

    models: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Input, output, read from the cache, written to it; by the model's name, of an unnamed one as ``""``."""
    in_window: int | None = None
    model: str | None = None

    def count(self, message: Message) -> None:
        is_own = message.subagent is None
        if message.compaction and is_own:
            self.in_window = None
        if (used := message.usage) is None:
            return
        name = used.model or self.model
        counts = (used.input_tokens, used.output_tokens, used.cache_read, used.cache_write)
        before = self.models.get(name or "", (0, 0, 0, 0))
        self.models[name or ""] = [old + new for old, new in zip(before, counts, strict=True)]
        if is_own and not message.compaction:
            self.in_window, self.model = used.context, name

    def recorded(self, prices: Mapping[str, Price] | None = None, window: int | None = None) -> RecordedUsage:
        totals = [TokenUsage(*counts[:4], model=name or None) for name, counts in self.models.items()]
        costs = [cost_of(used, prices) for used in totals]
        priced = [cost for cost in costs if cost is not None]
        return RecordedUsage(
            model=self.model,
            tokens=sum(used.context for used in totals),
            context_tokens=self.in_window,
            context_window=window or context_window(self.model),
            cost_usd=sum(priced) if priced else None,
            cost_is_partial=0 < len(priced) < len(costs),
        )


def session_usage(
    messages: Iterable[Message], model: str | None = None, prices: Mapping[str, Price] | None = None
) -> RecordedUsage:
    tally = UsageTally(model=model)
    for message in messages:
        tally.count(message)
    return tally.recorded(prices)
