"""Claude Code over a long day: settings move from files to a service; compacted twice, with sub-agents."""

# ruff: noqa: E501 - what people and programs say is not broken into lines

from __future__ import annotations

from collections.abc import Iterator

from handoff.earlier import earlier_work
from handoff.filler import listing, passing, source
from handoff.story import (
    Asked,
    Case,
    Changed,
    Compacted,
    Delegated,
    Event,
    Looked,
    Ran,
    Refused,
    Said,
    Searched,
    Wrote,
    plan,
)

_EARLIER = (
    ("core/retry.py", "Give up after five attempts, not never."),
    ("core/metrics.py", "Count cache hits per module."),
    ("tools/lint_ini.py", "Warn about keys nobody reads."),
)
_READERS = ("billing", "mailer", "search", "exports", "webhooks", "reports", "login", "audit")
_SUMMARY_1 = """1. Request: move every reader of settings.ini to the settings service, one module a commit.
2. Done: `SettingsClient` in core/settings_client.py with a cache of 30 s; billing and mailer moved.
3. The user insists: no module may fail to start when the service is down.
4. Next: search, exports, webhooks, reports, login, audit."""
_SUMMARY_2 = """1. Request: move every reader of settings.ini to the settings service, one module a commit.
2. Moved: billing, mailer, search, exports, webhooks. Left: reports, login, audit.
3. `SettingsClient.get` falls back to `last_known` on disk when the service is down.
4. tests/contract/test_settings.py runs against the real service in a container."""
_REVIEW = """Findings:
- core/settings_client.py: the cache is not cleared on SIGHUP, operators will wonder why a change does nothing
- core/settings_client.py: `last_known` is written without fsync and may be empty after a crash
- modules/exports/config.py: still imports configparser, unused since the move
The rest is fine."""


def _moved(name: str, commit: str) -> Iterator[Event]:
    yield Looked(f"modules/{name}/config.py", source("python", f"{name} config", 14))
    yield Searched(f"{name}.*settings.ini", listing(f"modules/{name}", ".py:9: read_ini()", 10), "modules")
    yield Changed(f"modules/{name}/config.py", "read_ini(", f'SettingsClient.shared().get("{name}", ')
    yield Ran(f"pytest -q modules/{name}", passing((f"modules/{name}/test_config.py",), 18, 0.7))
    yield Ran(
        f"git commit -am 'Read the settings of {name} from the service'",
        f"[settings-service {commit}] Read the settings of {name} from the service\n 2 files changed, 12 insertions(+)",
    )
    yield Said(f"`{name}` is moved.")


def _first_part() -> Iterator[Event]:
    yield Asked(
        "Move all readers of settings.ini to the settings service. One module a commit, so that we can revert a single one."
    )
    yield Delegated(
        "Find the readers",
        "List every module that reads settings.ini, with the function that does it.",
        "Eight modules read it, all through read_ini(): " + ", ".join(_READERS),
        (
            Searched("read_ini", listing("modules", ".py:9: read_ini()", 60)),
            Looked("core/ini.py", source("python", "ini", 10)),
        ),
    )
    yield plan(
        doing="Write SettingsClient", left=[f"Move {name}" for name in _READERS] + ["Delete core/ini.py"]
    )
    yield Wrote("core/settings_client.py", source("python", "settings client", 12))
    yield Asked(
        "Important: no module may fail to start when the service is down. We had that once, never again."
    )
    yield Said(
        "I keep the last known values on disk and start from them, because a stale setting is better than a module that is down."
    )
    yield Ran(
        "pytest -q tests/contract",
        "E   ConnectionRefusedError: [Errno 111] Connection refused: settings:8443\n6 errors in 2.1s",
        1,
    )
    yield Ran("docker compose up -d settings", "Container settings-1  Started")
    yield Ran("pytest -q tests/contract", passing(("tests/contract/test_settings.py",), 6, 3.2))
    yield from _moved("billing", "1f0aa01")
    yield from _moved("mailer", "2b77c19")


def _second_part() -> Iterator[Event]:
    yield Compacted(_SUMMARY_1)
    yield from _moved("search", "39ce0d4")
    yield Refused(
        Changed("modules/exports/config.py", "timeout = 30", "timeout = 5"),
        "leave the timeouts alone, exports of the big customers take long",
    )
    yield from _moved("exports", "4d81b6e")
    yield from _moved("webhooks", "5aa9f30")
    yield Compacted(_SUMMARY_2)
    yield Delegated(
        "Review the settings client",
        "Review core/settings_client.py and the modules moved so far. Be critical.",
        _REVIEW,
        (Looked("core/settings_client.py", source("python", "settings client", 30)),),
    )
    yield Said("Two of the three points matter now: the missing `fsync` and the reload on `SIGHUP`.")
    yield Changed(
        "core/settings_client.py",
        "path.write_text(",
        "with durable_write(path) as target:\n    target.write(",
    )
    yield Ran(
        "pytest -q tests/contract",
        "FAILED tests/contract/test_settings.py::test_last_known_survives_crash - FileNotFoundError: last_known.json.tmp\n1 failed, 6 passed in 3.3s",
        1,
    )
    yield Changed("core/settings_client.py", "durable_write(path)", "durable_write(path, folder_sync=True)")
    yield Ran("pytest -q tests/contract", passing(("tests/contract/test_settings.py",), 7, 3.4))
    yield Ran(
        "git commit -am 'Write last_known durably'",
        "[settings-service 6c02e5d] Write last_known durably\n 1 file changed",
    )
    yield Asked(
        "reports is special: it reads settings.ini from a customer's upload, see SET-77. Skip it, and do login now."
    )
    yield plan(
        done=[f"Move {name}" for name in _READERS[:5]],
        doing="Move login",
        left=(
            "Clear the cache on SIGHUP",
            "Move audit",
            "Delete core/ini.py",
            "Remove configparser from modules/exports/config.py",
        ),
    )
    yield Looked("modules/login/config.py", source("python", "login config", 22))
    yield Said(
        "`login` caches `session_ttl` at import; I'll read it through `SettingsClient` when it is used instead."
    )
    yield Changed(
        "modules/login/config.py",
        "SESSION_TTL = read_ini(",
        "def session_ttl() -> int:\n    return SettingsClient.shared().get(",
    )
    yield Ran(
        "pytest -q modules/login",
        "FAILED modules/login/test_config.py::test_ttl_is_read_late - AttributeError: module 'login.config' has no attribute 'SESSION_TTL'\n1 failed, 21 passed in 0.9s",
        1,
    )


_AFTER: tuple[Event, ...] = (
    Changed("modules/login/config.py", "SESSION_TTL", "session_ttl()  # SettingsClient"),
    Ran("pytest -q modules/login", "22 passed"),
    Changed("core/settings_client.py", "signal", "signal.signal(SIGHUP, ...)  # SettingsClient, last_known"),
    Ran("pytest -q tests/contract", "8 passed"),
    Said("`session_ttl` is read late; `SettingsClient` clears its cache on `SIGHUP`. SET-77 stays out."),
    Changed("modules/exports/config.py", "import configparser", "# durable_write, SettingsClient"),
    Changed("core/settings_client.py", "durable_write", "durable_write(last_known)  # session_ttl"),
    Ran("git revert --no-edit 6c02e5d", "ok"),
    Ran("git rm core/ini.py", "read_ini is gone"),
)

CASE = Case(
    name="migration",
    agent="claude-code",
    folder="/srv/platform",
    branch="settings-service",
    before=(*earlier_work("python", "pytest -q tests/unit", _EARLIER), *_first_part(), *_second_part()),
    after=_AFTER,
    size=8000,
    extra={
        "decisions": ("a stale setting is better than a module that is down",),
        "review": ("the cache is not cleared on SIGHUP", "still imports configparser, unused since the move"),
    },
)
