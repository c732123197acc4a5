"""Every error Holdfast raises on purpose, and the one table that says what it means outside.

    HoldfastError
    ├── InvalidInputError            2  the caller's words are off; nothing was changed
    │   └── InvalidFlowError         a graph that cannot be run
    ├── CannotDoError                1  right words, wrong moment
    │   ├── NotFoundError
    │   │   └── SessionNotFoundError
    │   ├── IllegalTransitionError
    │   ├── FlowChangedError         a run of a flow that looks different now
    │   ├── NodeFailedError
    │   ├── MissingExtraError        a part of Holdfast that is installed separately
    │   ├── ForeignFolderError       a `.holdfast/` that came from elsewhere
    │   ├── StorageError             the disk or the database would not take or give it
    │   └── GitError
    ├── HeldElsewhereError           3  somebody else holds it, or changed it first
    │   ├── ConflictError
    │   └── SessionAlreadyRunningError
    └── DamagedDataError             4  set aside or left as found; nothing was lost
        └── NewerSchemaError

The numbers are the program's exit codes (`EXIT_CODES`); `HTTP_STATUSES` is the same for
the server. Every error carries a `hint`: the next thing to do. Standard library only: the
hook path imports this.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class HoldfastError(Exception):
    """What went wrong, and what to do about it."""

    default_hint: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint


class InvalidInputError(HoldfastError):
    default_hint = "see `holdfast COMMAND --help`"


class InvalidFlowError(InvalidInputError):
    pass


class CannotDoError(HoldfastError):
    pass


class NotFoundError(CannotDoError):
    pass


class SessionNotFoundError(NotFoundError):
    default_hint = "`holdfast list` shows what exists"


class IllegalTransitionError(CannotDoError):
    default_hint = "`holdfast status` shows the state of the workflow"


class FlowChangedError(CannotDoError):
    default_hint = "resume it with the original flow, or start a new run"


class NodeFailedError(CannotDoError):
    """The run stopped at this node; what was completed stays so."""

    default_hint = "fix the cause, then resume the session: the node is retried"


class ForeignFolderError(CannotDoError):
    default_hint = (
        "run `holdfast trust` to inspect the folder and decide whether to trust it; otherwise move it away"
    )


EXTRAS = {
    "agents": "openai-agents",
    "apprise": "notifications",
    "dbos": "workflows",
    "fastapi": "server",
    "langgraph": "langgraph",
    "mcp": "mcp",
    "psycopg": "postgres",
    "pydantic_ai": "models",
    "pyrage": "encryption",
    "textual": "watch",
    "tree_sitter": "docs",
    "uvicorn": "server",
}
"""The extra of the package that brings a module; pyproject.toml lists what is in each."""


class MissingExtraError(CannotDoError):
    """A part of Holdfast that is installed separately."""

    def __init__(self, purpose: str, module: str) -> None:
        self.extra = EXTRAS[module]
        super().__init__(
            f"{purpose} requires the package {module.replace('_', '-')}, which is not installed",
            hint=how_to_install(self.extra),
        )


def how_to_install(extra: str) -> str:
    """The command for this installation. A tool makes its environment anew, so all extras are named."""
    import shlex

    place = sys.prefix.replace("\\", "/")
    for tool, folder in (("uv tool install --force", "/uv/tools/"), ("pipx install --force", "/pipx/venvs/")):
        if folder in place:
            extras = f"[{','.join(sorted({extra, *_extras_here()}))}]"
            origin = installed_from()
            if origin is None:
                return f"{tool} 'PACKAGE{extras}', where PACKAGE is what you installed, a file or a name"
            return f"{tool} {shlex.quote(origin + extras)}"
    return f"pip install 'holdfast[{extra}]'"


def installed_from() -> str | None:
    """The file that pip, uv or pipx noted (PEP 610), if it is still there: the name alone is another
    project's on PyPI."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        noted: dict[str, Any] = json.loads(distribution("holdfast").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    address = urlsplit(str(noted.get("url", "")))
    path = unquote(address.path)
    return path if address.scheme == "file" and Path(path).exists() else None


def _extras_here() -> set[str]:
    from importlib.util import find_spec

    def is_here(module: str) -> bool:
        try:
            return find_spec(module) is not None
        except ModuleNotFoundError:  # not even what it would be a part of
            return False

    own = {**EXTRAS, "opentelemetry.sdk": "telemetry", "pysqlite3": "sqlite"}
    del own["uvicorn"]  # which the extra `mcp` brings, too
    return {extra for module, extra in own.items() if is_here(module)}


def require_installed(purpose: str, module: str) -> None:
    """Before anything is changed that could not be finished without it."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise MissingExtraError(purpose, module)


class StorageError(CannotDoError):
    default_hint = "check free space and permissions, then run the same command again"


class GitError(CannotDoError):
    pass


class HeldElsewhereError(HoldfastError):
    pass


class ConflictError(HeldElsewhereError):
    default_hint = "reload it and repeat your change"


class SessionAlreadyRunningError(HeldElsewhereError):
    default_hint = "`holdfast status` shows who runs it"


class DamagedDataError(HoldfastError):
    default_hint = "the unreadable data was kept; see the path above"


class NewerSchemaError(DamagedDataError):
    default_hint = "upgrade holdfast to the version that wrote it, or newer"


INTERRUPTED = 130

EXIT_CODES: dict[type[HoldfastError], int] = {
    InvalidInputError: 2,
    CannotDoError: 1,
    HeldElsewhereError: 3,
    DamagedDataError: 4,
    HoldfastError: 1,
}


HTTP_STATUSES: dict[type[HoldfastError], int] = {
    InvalidInputError: 422,
    CannotDoError: 409,
    NotFoundError: 404,
    StorageError: 503,
    HeldElsewhereError: 409,
    DamagedDataError: 500,
    HoldfastError: 500,
}


def exit_code(error: HoldfastError) -> int:
    """The nearest ancestor's entry in the table."""
    return _nearest(EXIT_CODES, error)


def http_status(error: HoldfastError) -> int:
    return _nearest(HTTP_STATUSES, error)


def _nearest(table: dict[type[HoldfastError], int], error: HoldfastError) -> int:
    return next(table[kind] for kind in type(error).__mro__ if kind in table)


def kinds() -> dict[str, type[HoldfastError]]:
    """Every kind of error by its name outside: `NotFoundError` is `not_found`."""
    found: dict[str, type[HoldfastError]] = {}
    waiting: list[type[HoldfastError]] = [HoldfastError]
    while waiting:
        kind = waiting.pop()
        found[code_of(kind)] = kind
        waiting += kind.__subclasses__()
    return found


def code_of(kind: type[HoldfastError]) -> str:
    name = kind.__name__.removesuffix("Error")
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
