"""Settings: flags, then `HOLDFAST_*`, then `.holdfast/config.toml`, then the user's config file.

A project's file may set levels, windows, budgets and recording. Addresses, databases, models, tokens,
notifications and programs are the user's to choose: a project is often somebody else's work.

Resolved once by a door and passed down. Standard library only, and TOML is read only
where a file is there, since every command comes through here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isnan
from pathlib import Path
from typing import Any

from holdfast.base.errors import InvalidInputError
from holdfast.base.text import encode_path
from holdfast.model.policy import Levels
from holdfast.model.thresholds import LEVELS, WORKFLOW_PAUSE
from holdfast.project.formats import CONFIG
from holdfast.project.layout import ProjectLayout, find_project
from holdfast.project.trust import data_home


@dataclass(frozen=True)
class Limit:
    """Of a driver or a model, for all workers of one database together; None is none."""

    sessions: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


@dataclass(frozen=True)
class Price:
    """Of a model, in dollars for a million tokens; a cache without a price costs what input does."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True)
class Settings:
    project: Path
    home: Path
    """The user's data folder."""
    db: str
    """A path (SQLite) or a `postgresql://` URL."""
    levels: Levels = field(default_factory=Levels)
    levels_given: frozenset[str] = frozenset()
    """Those of the levels that somebody set; the others are at their defaults, or gave way."""
    context_window: int | None = None
    compact_at: int | None = None
    """Tokens at which agents compact, where the table of `model.thresholds` is wrong about yours."""
    compress_after_days: float = 7.0
    model: str | None = None
    """Adds decisions and errors after a pause; a pydantic-ai name, or one on the server at `model_url`."""
    model_url: str | None = None
    model_time_limit: float = 30.0
    notify: tuple[str, ...] = ()
    """Where notices of pauses and ends go, as apprise takes it; none by default."""
    on_exhaustion: str = "advise"
    """What hooks do from the auto-pause level on: `advise` the agent to wrap up, or `stop` it."""
    claude_args: tuple[str, ...] = ("--permission-mode", "acceptEdits")
    """Further words for `claude` when it executes tasks: permissions, the model."""
    codex_args: tuple[str, ...] = ("--sandbox", "workspace-write")
    """Further words for `codex exec`, likewise."""
    gemini_args: tuple[str, ...] = ("--approval-mode", "auto_edit")
    opencode_args: tuple[str, ...] = ()
    agent_model: str | None = None
    """Works off tasks of the driver `model`; where it is not set, `model` does."""
    agent_model_url: str | None = None
    command_time_limit: float = 600.0
    """Seconds for one command of the driver `model`."""
    record_files: bool = True
    """Whether what workflows and agents change in files is recorded, so that it can be taken back."""
    limits: Mapping[str, Limit] = field(default_factory=dict[str, Limit])
    """By the name of a driver, or of a model as `agent_model` has it."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """By the name of the model, before those of the table that Holdfast brings."""
    spans_to: str | None = None
    """OpenTelemetry's endpoint, as its own variables name it."""
    server: str | None = None
    """Address of a server that commands talk to, in place of the database."""
    server_token: str | None = field(default=None, repr=False)

    @property
    def worktree(self) -> str:
        """The project folder as text, also where its name is not valid UTF-8."""
        return encode_path(os.fsencode(self.project))

    @property
    def auto_pause_given(self) -> bool:
        return "auto_pause" in self.levels_given

    @property
    def exhaustion_at(self) -> float:
        """The share of the window at which a workflow pauses whose plan does not say it."""
        return self.levels.auto_pause if self.auto_pause_given else WORKFLOW_PAUSE

    @property
    def layout(self) -> ProjectLayout:
        return ProjectLayout(self.project, self.home)


def _positive_int(value: Any) -> int:
    number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else 0
    if number <= 0:
        raise ValueError("expected a positive integer")
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError("expected a number")  # noqa: TRY004 - all faults of a setting are ValueErrors
    number = float(value)
    if isnan(number):
        raise ValueError("expected a number")
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("expected a string")
    return value


def _words(value: Any) -> tuple[str, ...]:
    """A list of words, or a line as a shell would split it."""
    if isinstance(value, str):
        import shlex

        return tuple(shlex.split(value))
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):  # pyright: ignore[reportUnknownVariableType]
        raise ValueError("expected a list of strings")
    return tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _positive(value: Any) -> float:
    number = _number(value)
    if number <= 0:
        raise ValueError("expected a number greater than 0")
    return number


def _number_from_0(value: Any) -> float:
    number = _number(value)
    if not 0 <= number < inf:
        raise ValueError("expected a number from 0")
    return number


def _yes_or_no(value: Any) -> bool:
    """A boolean in a file; in a variable, as people write it."""
    known = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False}
    found = {**known, "0": False}.get(str(value).lower())
    if found is None:
        raise ValueError("expected true or false")
    return found


def _advise_or_stop(value: Any) -> str:
    if value not in ("advise", "stop"):
        raise ValueError('expected "advise" or "stop"')
    return value


def _texts(value: Any) -> tuple[str, ...]:
    """A list in a file; in a variable, several with spaces between."""
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):  # type: ignore[union-attr]
        raise ValueError("expected a list of strings")
    return tuple(found)  # type: ignore[arg-type]


_SETTINGS: dict[str, Callable[[Any], Any]] = {
    "db": _text,
    "context_window": _positive_int,
    "compact_at": _positive_int,
    "compress_after_days": _number,
    "model": _text,
    "model_url": _text,
    "model_time_limit": _number,
    "notify": _texts,
    "on_exhaustion": _advise_or_stop,
    "claude_args": _words,
    "codex_args": _words,
    "gemini_args": _words,
    "opencode_args": _words,
    "agent_model": _text,
    "agent_model_url": _text,
    "command_time_limit": _positive,
    "record_files": _yes_or_no,
    "server": _text,
    "server_token": _text,
    **{f"levels.{name}": _number for name in LEVELS},
}

_LIMITS = "limits."
_LIMIT_KINDS = tuple(Limit.__dataclass_fields__)
_PRICES = "prices."
_PRICE_KINDS = tuple(Price.__dataclass_fields__)

_OF_A_PROJECT = frozenset(
    (
        *("context_window", "compact_at", "compress_after_days", "model_time_limit", "command_time_limit"),
        *("on_exhaustion", "record_files"),
        *(name for name in _SETTINGS if name.startswith("levels.")),
    )
)
"""What the file in a project's folder may set."""


def load_settings(
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    *,
    project_file: bool = True,
    **flags: Any,
) -> Settings:
    """Settings for work in `cwd`. `flags` are the command line's, by setting name; None means not given.

    Without `project_file`, what the project's own file says is left out.
    """
    environ = os.environ if environ is None else environ
    given = environ.get("HOLDFAST_PROJECT")
    project = Path(given).resolve() if given else find_project((cwd or Path.cwd()).resolve())
    if not project.is_dir():
        raise InvalidInputError(f"no such folder: {project}", hint="see --project and HOLDFAST_PROJECT")
    home = Path(environ["HOLDFAST_HOME"]).absolute() if environ.get("HOLDFAST_HOME") else Path(data_home())
    user_file = user_config(environ)
    values: dict[str, Any] = {}
    for source in (
        _from_file(user_file),
        _from_project(ProjectLayout(project, home).config, user_file) if project_file else {},
        _from_environ(environ),
        {name: value for name, value in flags.items() if value is not None},
    ):
        values.update(source)
    levels = {
        name.removeprefix("levels."): values.pop(name) for name in list(values) if name.startswith("levels.")
    }
    limits = {name: values.pop(name) for name in list(values) if name.startswith(_LIMITS)}
    prices = {name: values.pop(name) for name in list(values) if name.startswith(_PRICES)}
    values.setdefault("db", str(home / "holdfast.db"))
    return Settings(
        project=project,
        home=home,
        levels=Levels.given(levels) if levels else Levels(),
        levels_given=frozenset(levels),
        limits={name: Limit(**kinds) for name, kinds in _by_name(limits, _LIMITS).items()},
        spans_to=_spans_to(environ),
        prices={name: _price(name, kinds, user_file) for name, kinds in _by_name(prices, _PRICES).items()},
        **values,
    )


def _by_name(given: Mapping[str, Any], table: str) -> dict[str, dict[str, Any]]:
    """Of `table.NAME.kind`, where a name may hold full stops."""
    found: dict[str, dict[str, Any]] = {}
    for setting, value in given.items():
        name, _, kind = setting.removeprefix(table).rpartition(".")
        found.setdefault(name, {})[kind] = value
    return found


def _price(name: str, kinds: dict[str, float], file: Path) -> Price:
    if missing := [kind for kind in ("input", "output") if kind not in kinds]:
        raise InvalidInputError(
            f'{file}: the price of "{name}" lacks {" and ".join(missing)}', hint="see docs/settings.md"
        )
    return Price(**kinds)


def _spans_to(environ: Mapping[str, str]) -> str | None:
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return None
    names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    return next((environ[name] for name in names if environ.get(name)), None)


def user_config(environ: Mapping[str, str]) -> Path:
    """The user's own settings, for all projects."""
    home = environ.get("HOLDFAST_HOME")
    if home:
        return Path(home).absolute() / CONFIG
    from platformdirs import user_config_path

    return user_config_path("holdfast", appauthor=False) / CONFIG


def project_settings(project_path: Path | str | None, settings: Settings | None = None) -> Settings:
    """Settings for a project given by path, by settings, or by where we are."""
    if settings is not None:
        return settings
    if project_path is None:
        return load_settings()
    root = Path(project_path).absolute()
    return replace(load_settings(cwd=root), project=root)


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _SETTINGS:
        variable = f"HOLDFAST_{name.replace('.', '_').upper()}"
        if environ.get(variable):
            found[name] = _checked(name, environ[variable], variable)
    return found


def _from_project(path: Path, user_file: Path) -> dict[str, Any]:
    if path.is_symlink():
        raise InvalidInputError(
            f"{path} is a symbolic link", hint="replace it with a regular file, or remove it"
        )
    values = _from_file(path)
    for name in values.keys() - _OF_A_PROJECT:
        raise InvalidInputError(
            f"{path}: a project cannot set {name}", hint=f"set it in {user_file}, for all your projects"
        )
    return values


_LARGEST = 1 << 20


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        if path.stat().st_size > _LARGEST:
            raise InvalidInputError(f"{path} is too large to hold settings", hint="look what is in it")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: {error}", hint="fix the file; nothing was changed") from None
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    values = {name: _checked(name, value, str(path)) for name, value in _flattened(document).items()}
    if "db" in values and "://" not in values["db"]:
        values["db"] = str(path.parent / values["db"])  # relative to the file that says it
    return values


def _flattened(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            flat.update(_flattened(value, f"{prefix}{name}."))  # type: ignore[arg-type]
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _checked(name: str, value: Any, where: str) -> Any:
    check = _SETTINGS.get(name)
    for table, kinds, of_its in (
        (_LIMITS, _LIMIT_KINDS, _positive_int),
        (_PRICES, _PRICE_KINDS, _number_from_0),
    ):
        if name.startswith(table) and name.count(".") > 1:
            if name.rpartition(".")[2] not in kinds:
                raise InvalidInputError(
                    f"{where}: unknown {table[:-2]} {name!r}", hint=f"known: {', '.join(kinds)}"
                )
            check = of_its
    if check is None:
        raise InvalidInputError(
            f"{where}: unknown setting {name!r}", hint=f"known: {', '.join(sorted(_SETTINGS))}"
        )
    try:
        return check(value)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(
            f"{where}: {name} = {value!r}: {error}", hint="see docs/settings.md"
        ) from None
