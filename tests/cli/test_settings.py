"""Settings: flags, then variables, then the project's file, then the user's; and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.journal.usage import ContextUsageTracker
from holdfast.project.layout import ProjectLayout

from .harness import Place


def configure(place: Place, *, user: str | None = None, project: str | None = None) -> None:
    if user is not None:
        (place.home / "config.toml").write_text(user)
    if project is not None:
        ProjectLayout(place.project).ensure()
        (place.project / ".holdfast" / "config.toml").write_text(project)


USER = "context_window = 400_000\n[levels]\ncaution = 0.2\n"
PROJECT = "context_window = 300_000\n"

LAYERS: dict[str, tuple[str | None, str | None, Mapping[str, str], tuple[int, str]]] = {
    "defaults": (None, None, {}, (200_000, "normal")),
    "user": (USER, None, {}, (400_000, "caution")),
    "project over user": (USER, PROJECT, {}, (300_000, "caution")),
    "variable over files": (USER, PROJECT, {"HOLDFAST_CONTEXT_WINDOW": "125000"}, (125_000, "caution")),
    "one level by variable": (None, None, {"HOLDFAST_LEVELS_CAUTION": "0.5"}, (200_000, "caution")),
    "the lower levels give way": (None, None, {"HOLDFAST_LEVELS_AUTO_PAUSE": ".5"}, (200_000, "auto-pause")),
    "lower levels that are set stay": (
        "[levels]\ncaution = 0.3\n",
        None,
        {"HOLDFAST_LEVELS_WARNING": "0.4"},
        (200_000, "warning"),
    ),
    "the higher levels give way": (None, None, {"HOLDFAST_LEVELS_CAUTION": "0.99"}, (200_000, "normal")),
    "an empty variable is none": (USER, None, {"HOLDFAST_CONTEXT_WINDOW": ""}, (400_000, "caution")),
}


@pytest.mark.parametrize(("user", "project", "env", "expected"), LAYERS.values(), ids=LAYERS.keys())
def test_layers(
    place: Place, user: str | None, project: str | None, env: Mapping[str, str], expected: tuple[int, str]
) -> None:
    """Seen in the window of a session that did not report yet, and in the level of one that is half full."""
    ContextUsageTracker(place.project, session_id="half").update_usage(100_000)
    configure(place, user=user, project=project)
    new, half = (place.json("usage", "--session", name, env=env)[0] for name in ("new", "half"))
    assert (new["context_window"], half["level"]) == expected


WRONG: dict[str, tuple[str | None, str | None, Mapping[str, str], str]] = {
    "bad TOML, project": (None, "context_window = = 1", {}, r"project/\.holdfast/config\.toml: .*line 1"),
    "bad TOML, user": ("[levels\n", None, {}, r"data/config\.toml: "),
    "unknown key": (None, "colour = 1", {}, r"project/\.holdfast/config\.toml: unknown setting 'colour'"),
    "unknown level": (None, "[levels]\nlow = 0.1", {}, "unknown setting 'levels.low'"),
    "levels is no table": (None, "levels = 1", {}, "unknown setting 'levels'"),
    "wrong type": (None, 'context_window = "many"', {}, r"config\.toml: context_window = 'many'"),
    "zero": (None, "context_window = 0", {}, "expected a positive integer"),
    "truth": (None, "compress_after_days = true", {}, "expected a number"),
    "infinite": (None, "context_window = inf", {}, "context_window = inf"),
    "words that are none": ("claude_args = [1]", None, {}, "expected a list of strings"),
    "an open quote": (None, None, {"HOLDFAST_CODEX_ARGS": "--model 'x"}, "No closing quotation"),
    "a price below nothing": ("[prices.ours]\ninput = -1\noutput = 1", None, {}, "expected a number from 0"),
    "half a price": ("[prices.ours]\ninput = 1", None, {}, 'the price of "ours" lacks output'),
    "unknown price": ("[prices.ours]\nlunch = 1", None, {}, "unknown price 'prices.ours.lunch'"),
    "a project's price": (
        None,
        "[prices.ours]\ninput = 1\noutput = 1",
        {},
        "a project cannot set prices.ours",
    ),
    "no time": (None, "command_time_limit = 0", {}, "expected a number greater than 0"),
    "db is no text": ("db = 5", None, {}, "db = 5: expected a string"),
    "variable": (
        None,
        None,
        {"HOLDFAST_CONTEXT_WINDOW": "many"},
        "HOLDFAST_CONTEXT_WINDOW: context_window = 'many'",
    ),
    "levels out of order": (None, "[levels]\nwarning = 0.95\nauto_pause = 0.9", {}, "levels must increase"),
    "levels above 1": (
        None,
        None,
        {"HOLDFAST_LEVELS_CRITICAL": "95"},
        "levels must increase, greater than 0 and at most 1",
    ),
    "level at 0": (None, None, {"HOLDFAST_LEVELS_CAUTION": "0"}, "levels must increase"),
    "a level that is no number": (None, None, {"HOLDFAST_LEVELS_CRITICAL": "nan"}, "levels|LEVELS"),
    "days that are no number": (None, "compress_after_days = nan", {}, "compress_after_days = nan"),
    "a level that was set gives way to none": (
        "[levels]\ncaution = 0.6",
        None,
        {"HOLDFAST_LEVELS_AUTO_PAUSE": "0.5"},
        "levels must increase",
    ),
    "across files": ("[levels]\ncaution = 0.5", "[levels]\nwarning = 0.4", {}, "levels must increase"),
}


@pytest.mark.parametrize(("user", "project", "env", "error"), WRONG.values(), ids=WRONG.keys())
def test_refused(
    place: Place, user: str | None, project: str | None, env: Mapping[str, str], error: str
) -> None:
    configure(place, user=user, project=project)
    before = place.tree()
    result = place.run("winddown", "start", "--percent", "0.9", env=env)
    result.failed(2, error=error)
    assert result.err.count("\nhint: ") == 1
    assert place.tree() == before


def test_levels_decide_the_trigger(place: Place) -> None:
    configure(place, project="[levels]\nauto_pause = 0.93\n")
    assert place.started()
    place.manager().finalize_pause()
    assert place.json("snapshot", "show", "latest")["trigger"] == "pause"


def test_a_database_by_path(place: Place) -> None:
    configure(place, user=f'db = "{place.home}/other.db"\n')
    place.ok("list")
    assert (place.home / "other.db").exists()
    place.ok("list", env={"HOLDFAST_DB": f"sqlite:///{place.home}/third.db"})
    assert (place.home / "third.db").exists()
    assert not place.database.exists()


# ── which project ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
def elsewhere(place: Place) -> Place:
    place.paused("tool_call")
    return place.beside("elsewhere")


def test_project_by_flag(place: Place, elsewhere: Place) -> None:
    before = {name for name in place.tree() if name.startswith("elsewhere")}
    assert elsewhere.json("--project", place.project, "status")["project"] == str(place.project)
    assert len(elsewhere.json("--project", "../project", "list")) == 1
    assert elsewhere.json("list") == []
    assert {name for name in place.tree() if name.startswith("elsewhere")} == before


def test_project_by_variable(place: Place, elsewhere: Place) -> None:
    ours = {"HOLDFAST_PROJECT": str(place.project)}
    assert len(elsewhere.json("list", env=ours)) == 1
    assert len(elsewhere.json("list", env={"HOLDFAST_PROJECT": "../project"})) == 1
    assert elsewhere.json("--project", ".", "list", env=ours) == []


def test_a_project_behind_a_link_is_the_same(place: Place) -> None:
    place.paused("tool_call")
    link = place.root / "link"
    link.symlink_to(place.project)
    assert len(place.json("--project", link, "list")) == 1
    assert len(place.json("list", cwd=link)) == 1
    assert len(place.json("list", env={"HOLDFAST_PROJECT": str(link)})) == 1


@pytest.mark.parametrize("how", ["flag", "variable", "a file"])
def test_a_project_that_is_not_there(place: Place, how: str) -> None:
    """A slip of the finger makes no folder."""
    (place.root / "file").touch()
    before = place.tree()
    name = str(place.root / ("file" if how == "a file" else "nowhere"))
    flags = [] if how == "variable" else ["--project", name]
    env = {"HOLDFAST_PROJECT": name} if how == "variable" else {}
    result = place.run(*flags, "winddown", "start", "--percent", "0.9", env=env)
    assert result.code in (1, 2)
    result.failed(result.code, error=name)
    assert place.tree() == before


def test_the_users_own_folders(place: Place) -> None:
    """Without HOLDFAST_HOME, data goes where the system wants a user's data."""
    env = {
        "HOLDFAST_HOME": "",
        "XDG_DATA_HOME": str(place.root / "xdg-data"),
        "XDG_CONFIG_HOME": str(place.root / "xdg"),
    }
    place.ok("list", env=env)
    assert not place.database.exists()
    assert [path for path in place.tree() if path.endswith("/holdfast.db")]
