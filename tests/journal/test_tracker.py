from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import ContextUsageTracker
from holdfast.base.errors import DamagedDataError, InvalidInputError, NewerSchemaError
from holdfast.journal.usage import UsageState, parse_state, tracked_sessions
from holdfast.model.policy import Level, Levels
from holdfast.project.layout import ProjectLayout
from holdfast.testing import FixedClock

SESSION = "266b3f40-6f1d-491c-aeca-825cbb3fcbc5"


@pytest.fixture
def tracker(tmp_path: Path) -> ContextUsageTracker:
    return ContextUsageTracker(tmp_path, session_id=SESSION, clock=FixedClock())


def state_file(tmp_path: Path, session: str = SESSION) -> Path:
    return ProjectLayout(tmp_path).state / f"usage-{session}.json"


def test_a_new_session_is_empty_and_asking_writes_nothing(
    tracker: ContextUsageTracker, tmp_path: Path
) -> None:
    assert tracker.get_current_state().percentage_used == 0
    assert list(tmp_path.iterdir()) == []


def test_deltas_add_up(tracker: ContextUsageTracker) -> None:
    tracker.update_usage(input_tokens=50_000, output_tokens=15_000)
    state = tracker.update_usage(input_tokens=1_000, cache_read=20_000, cache_write=4_000)
    assert state.total_tokens == 90_000
    assert state.percentage_used == pytest.approx(45.0)
    assert tracker.get_current_state() == state


def test_a_cumulative_report_replaces_what_was_there(tracker: ContextUsageTracker) -> None:
    states = [
        tracker.update_usage(input_tokens=total, report="cumulative") for total in (10_000, 30_000, 60_000)
    ]
    assert states[-1].total_tokens == 60_000


def test_a_context_that_was_compacted_may_shrink(tracker: ContextUsageTracker) -> None:
    tracker.update_usage(input_tokens=190_000, report="cumulative")
    assert tracker.update_usage(input_tokens=20_000, report="cumulative").percentage_used == pytest.approx(10)


def test_a_report_that_is_repeated_counts_once(tracker: ContextUsageTracker) -> None:
    states = [tracker.update_usage(input_tokens=1_000, report_id="msg_1") for _ in range(3)]
    assert [(state.input_tokens, state.reports) for state in states] == [(1_000, 1)] * 3


def test_the_memory_for_repeated_reports_is_bounded(tracker: ContextUsageTracker) -> None:
    state = [tracker.update_usage(input_tokens=1, report_id=f"msg_{number}") for number in range(200)][-1]
    assert state.input_tokens == 200
    assert len(state.recent_reports) < 100


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (139_999, Level.NORMAL),
        (140_000, Level.CAUTION),
        (170_000, Level.WARNING),
        (180_000, Level.AUTO_PAUSE),
        (190_000, Level.CRITICAL),
        (250_000, Level.CRITICAL),
    ],
)
def test_levels_begin_where_they_are_said_to(tracker: ContextUsageTracker, tokens: int, level: Level) -> None:
    tracker.update_usage(input_tokens=tokens)
    assert tracker.level() == level
    assert tracker.should_auto_pause() == (level >= Level.AUTO_PAUSE)


def test_a_level_is_crossed_once_on_the_way_up(tracker: ContextUsageTracker) -> None:
    crossed = [tracker.crossed(tracker.update_usage(input_tokens=45_000)) for _ in range(4)]
    assert crossed == [None, None, None, Level.AUTO_PAUSE]
    assert tracker.crossed(tracker.update_usage(input_tokens=1)) is None


def test_levels_can_be_configured(tmp_path: Path) -> None:
    tracker = ContextUsageTracker(tmp_path, levels=Levels(0.1, 0.2, 0.3, 0.4))
    tracker.update_usage(input_tokens=60_000)
    assert tracker.level() == Level.AUTO_PAUSE


def test_the_window_is_the_models(tmp_path: Path) -> None:
    tracker = ContextUsageTracker(tmp_path, model="gemini-2.5-pro")
    assert tracker.update_usage(input_tokens=104_858).percentage_used == pytest.approx(10, abs=0.01)


def test_sessions_in_one_project_do_not_mix(tmp_path: Path) -> None:
    first = ContextUsageTracker(tmp_path, session_id="one")
    second = ContextUsageTracker(tmp_path, session_id="two")
    first.update_usage(input_tokens=100)
    assert second.get_current_state().total_tokens == 0
    second.update_usage(input_tokens=7)
    assert (first.get_current_state().total_tokens, second.get_current_state().total_tokens) == (100, 7)
    assert set(tracked_sessions(ProjectLayout(tmp_path))) == {"one", "two"}


@given(st.text(min_size=1, max_size=300))
def test_any_session_id_is_a_file_of_its_own_inside_the_folder(
    tmp_path_factory: pytest.TempPathFactory, session: str
) -> None:
    root = tmp_path_factory.mktemp("ids")
    ContextUsageTracker(root, session_id=session).update_usage(input_tokens=1)
    ContextUsageTracker(root, session_id=session + "x").update_usage(input_tokens=2)
    assert ContextUsageTracker(root, session_id=session).get_current_state().input_tokens == 1
    outside = [path for path in root.rglob("*") if path.is_file() and root / ".holdfast" not in path.parents]
    assert outside == []


@pytest.mark.parametrize("tokens", [-1, 1.5, True, "10"])
def test_what_is_no_count_is_refused_and_changes_nothing(tracker: ContextUsageTracker, tokens: int) -> None:
    tracker.update_usage(input_tokens=5)
    with pytest.raises(InvalidInputError):
        tracker.update_usage(input_tokens=tokens)
    assert tracker.get_current_state().input_tokens == 5


def sound_document() -> dict[str, object]:
    return json.loads(json.dumps(asdict(UsageState(SESSION, input_tokens=150_000, reports=3))))


DAMAGE = {
    "empty": b"",
    "truncated": json.dumps(sound_document()).encode()[:40],
    "no JSON": b"\x00\xff\x00",
    "another kind of JSON": b"[1, 2]",
    "unknown key": json.dumps({**sound_document(), "surprise": 1}).encode(),
    "missing key": json.dumps({"session_id": SESSION}).encode(),
    "wrong type": json.dumps({**sound_document(), "input_tokens": "150000"}).encode(),
    "negative": json.dumps({**sound_document(), "input_tokens": -1}).encode(),
    "newer": json.dumps({**sound_document(), "schema_version": 2, "later": True}).encode(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_state_is_set_aside_and_reported_and_never_reads_as_empty(
    tracker: ContextUsageTracker, tmp_path: Path, kind: str
) -> None:
    ProjectLayout(tmp_path).ensure()
    state_file(tmp_path).write_bytes(DAMAGE[kind])
    for _ in range(2):  # asking again does not make it known
        with pytest.raises(DamagedDataError, match="unknown"):
            tracker.get_current_state()
    kept = list(state_file(tmp_path).parent.glob("*.damaged-*"))
    assert [path.read_bytes() for path in kept] == [DAMAGE[kind]]


@pytest.mark.parametrize("kind", DAMAGE)
def test_an_update_after_damage_counts_and_says_that_it_is_not_all(
    tracker: ContextUsageTracker, tmp_path: Path, kind: str
) -> None:
    ProjectLayout(tmp_path).ensure()
    state_file(tmp_path).write_bytes(DAMAGE[kind])
    state = tracker.update_usage(input_tokens=10)
    assert (state.input_tokens, state.is_complete) == (10, False)
    assert tracker.get_current_state().set_aside is not None
    assert tracker.update_usage(input_tokens=160_000, report="cumulative").is_complete


def test_a_state_of_a_newer_version_is_told_apart() -> None:
    with pytest.raises(NewerSchemaError):
        parse_state(DAMAGE["newer"])


@given(st.binary(max_size=300) | st.from_regex(rb"\{.*\}", fullmatch=True))
def test_any_bytes_are_a_state_or_damaged(data: bytes) -> None:
    with contextlib.suppress(DamagedDataError):
        parse_state(data)


def test_four_processes_lose_no_update(tmp_path: Path) -> None:
    program = (
        "import sys; from holdfast import ContextUsageTracker\n"
        f"tracker = ContextUsageTracker(sys.argv[1], session_id={SESSION!r})\n"
        "for number in range(250): tracker.update_usage(input_tokens=1, output_tokens=2)\n"
    )
    updaters = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(4)]
    assert [updater.wait() for updater in updaters] == [0] * 4
    state = ContextUsageTracker(tmp_path, session_id=SESSION).get_current_state()
    assert (state.reports, state.input_tokens, state.output_tokens) == (1_000, 1_000, 2_000)
