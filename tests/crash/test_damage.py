"""Files that the program keeps, damaged in every way: it says so, goes on, and throws nothing away."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.harness import IDENTITY, Place
from holdfast.testing import SimulatedCrash, crash_at
from hooks.harness import AgentSession
from soak import repeated

Chance = Any  # the module `random`, whose state each run seeds

PLAN = """
issue: {id: A, title: A}
tasks:
  - {id: t1, run: echo a > a.txt}
  - {id: t2, run: echo b > b.txt, depends_on: [t1]}
"""
KINDS = {
    "snapshot": "project/.holdfast/sessions/session-*[0-9].json",
    "snapshot as YAML": "project/.holdfast/sessions/session-*[0-9].yaml",
    "latest": "project/.holdfast/sessions/LATEST-SESSION.txt",
    "journal": "project/.holdfast/sessions/ACTIVE-PAUSE.jsonl",
    "archive": "project/.holdfast/sessions/*-incremental.jsonl",
    "context": "project/.holdfast/sessions/*.context-*.md",
    "owner": "project/.holdfast/state/winddown-owner.json",
    "reminders": "project/.holdfast/state/reminders",
    "usage": "project/.holdfast/state/usage-*.json",
    "hook note": "project/.holdfast/state/hooks/*/*",
    "hooks' settings": "project/.holdfast/state/hooks/[st]*",
    "interrupted pause": "project/.holdfast/sessions/.staging-*/manifest.json",
    "undo's state": "project/.holdfast/sidecar/holdfast-state.db",
    "undo's branch": "project/.holdfast/sidecar/refs/heads/holdfast/*",
    "undo's object": "project/.holdfast/sidecar/objects/??/*",
    "mark": "project/.holdfast/mark",
    "projects": "data/projects",
    "trust record": "data/trusted/[0-9a-f]*",
    "database": "data/holdfast.db",
    "engine's database": "data/holdfast-engine.db",
    "task log": "data/logs/**/*",
    "project's settings": "project/.holdfast/config.toml",
    "bundle": "bundle",
}
COMMANDS = [
    words.split()
    for words in """
    status
    list --all
    threads
    context latest
    export ../again --force
    import ../bundle
    reindex
    winddown append tool_call --data {} --percent 0.92
    winddown summary
    winddown finalize
    winddown recover --continue
    winddown start --percent 0.9
    winddown discard --yes
    remind more
    remind
    quiet status
    usage
    stats
    sessions list
    tx list
    tx show last
    tx undo last
    tx rollback last --yes
    logs
    events
    resume --yes
    docs audit .
    doctor
    snapshot list
    snapshot show latest
    history latest journal
    trust --show
    """.strip().splitlines()
]


def _object(data: bytes) -> None:
    if not isinstance(json.loads(data), dict):
        raise ValueError("not an object")  # noqa: TRY004 - as what cannot be parsed


def _garbage(_: bytes, chance: Chance) -> bytes:
    return b"\xff\xfe" + chance.randbytes(chance.randrange(1, 400))


def _flipped(data: bytes, chance: Chance) -> bytes:
    changed = bytearray(data or b"x")
    for _ in range(chance.randrange(1, 9)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _nulls(data: bytes, chance: Chance) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + bytes(max(1, len(data) - start))


def _wrong_type(_: bytes, chance: Chance) -> bytes:
    values: list[object] = [[], {}, "x", 7, None, True, [[]], {"a": []}, -1e308, {"schema_version": 99}]
    return json.dumps(chance.choice(values)).encode() + chance.choice([b"", b"\n"])


def _wrong_value(data: bytes, chance: Chance) -> bytes:
    """One value of the document has another type."""
    try:
        document = json.loads(data)
        name = chance.choice(list(document))
    except (ValueError, IndexError, TypeError):
        return _flipped(data, chance)
    document[name] = chance.choice([None, [], {}, "x" * 300, -1, 1e400, ["\ud800"], {"a": {}}])
    return json.dumps(document).encode()


DAMAGE: dict[str, Callable[[bytes, Chance], bytes]] = {
    "cut": lambda data, chance: data[: chance.randrange(len(data) + 1)],
    "empty": lambda *_: b"",
    "flipped": _flipped,
    "nulls": _nulls,
    "garbage": _garbage,
    "wrong type": _wrong_type,
    "wrong value": _wrong_value,
    "doubled": lambda data, _: data + data,
    "one long line": lambda data, _: data.rstrip(b"\n") + b"x" * 3_000_000,
    "deep": lambda *_: b"[" * 200_000,
    "lines swapped": lambda data, chance: b"\n".join(chance.sample(lines := data.split(b"\n"), len(lines))),
}


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With every kind of file."""
    (tmp_path / "here").mkdir()
    place = Place(tmp_path / "here")
    (place.project / "a.py").write_text("def f():\n    return 1\n")
    place.git("add", "a.py")
    place.git("commit", "--quiet", "-m", "First")
    place.paused("tool_call")
    place.ok("remind", "hello")
    session = AgentSession(place.project, place.root)
    session.variables["HOLDFAST_HOME"] = str(place.home)
    session.use(100_000)
    session.start()  # it is handed the only open work, so that there is a context
    session.prompt()
    (place.root / "plan.yaml").write_text(PLAN)
    place.ok("run", place.root / "plan.yaml", "--pause-every", "1")
    place.run("docs", "audit", ".")
    place.ok("export", place.root / "bundle")
    place.started("tool_call")
    (place.project / ".holdfast" / "config.toml").write_text("[levels]\n")
    return place


UNREADABLE: dict[str, Callable[[bytes], object]] = {
    **dict.fromkeys(("snapshot", "owner", "usage"), _object),
    **dict.fromkeys(("reminders", "projects", "journal"), bytes.decode),
}
"""What these hold cannot be made anew. Whoever writes them keeps what nobody can read."""


_DISCARD = ["winddown", "discard", "--yes"]


@pytest.mark.some_of("kind")
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_told_of_and_kept(place: Place, tmp_path: Path, kind: str) -> None:
    if kind == "interrupted pause":
        with crash_at("pause.decided"), contextlib.suppress(SimulatedCrash):
            place.manager().finalize_pause()
    root, whole = place.root, tmp_path / "whole"
    shutil.copytree(root, whole, symlinks=True)
    files = [path for path in sorted(root.glob(KINDS[kind])) if path.is_file()]
    for _ in range(repeated(20, least=2)):
        path, damage = random.choice(files), random.choice(list(DAMAGE))
        data = DAMAGE[damage](path.read_bytes(), random)
        path.write_bytes(data)
        chosen = random.sample(COMMANDS, 4)
        for words in chosen:
            result = place.run(*words)
            assert "error: unexpected" not in result.err, (damage, words, result)
        assert kept(kind, data, root) or _DISCARD in chosen, (damage, path, chosen)
        shutil.rmtree(root)
        shutil.copytree(whole, root, symlinks=True)


def kept(kind: str, data: bytes, root: Path) -> bool:
    """Unless it can be read, and so written anew. A torn last line is moved to a file of its own."""
    with contextlib.suppress(ValueError, RecursionError):
        UNREADABLE.get(kind, bool)(data)
        return True
    starts = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
    if any(text.startswith(data) for text in starts):
        return True
    parts = data.rpartition(b"\n")[::2] if kind == "journal" else (data,)
    return all(any(text.startswith(part) for text in starts) for part in parts if part)
