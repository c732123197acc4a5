"""Archived journals: their names, and compression of the old ones."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from holdfast.base.durable import NO_FOLLOW, PRIVATE_FILE, open_file, sync_folder

SUFFIX = "-incremental.jsonl"


def archive_name(session_id: str) -> str:
    return f"{session_id}{SUFFIX}"


def find_archive(folder: Path, session_id: str) -> Path | None:
    """The archived journal of a session, compressed or not."""
    plain = folder / archive_name(session_id)
    packed = plain.with_name(f"{plain.name}.gz")
    return next((path for path in (plain, packed) if path.exists()), None)


def archives(folder: Path) -> Iterator[Path]:
    """Each once: a crash while compressing may leave both kinds of one."""
    plain = sorted(folder.glob(f"session-*{SUFFIX}"))
    packed = (path for path in folder.glob(f"session-*{SUFFIX}.gz") if path.with_suffix("") not in plain)
    yield from sorted((*plain, *packed))


def compress_older(folder: Path, before: float) -> list[Path]:
    """Compress the archives last written before that moment; the plain file goes once its copy is safe."""
    return [
        _compress(path) for path in sorted(folder.glob(f"session-*{SUFFIX}")) if path.stat().st_mtime < before
    ]


def _compress(path: Path) -> Path:
    target = path.with_name(f"{path.name}.gz")
    temporary = path.with_name(f".{target.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as raw:
            with (
                open_file(path) as source,
                gzip.GzipFile(path.name, "wb", 6, raw, path.stat().st_mtime) as packed,
            ):
                shutil.copyfileobj(source, packed, 1 << 20)
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    path.unlink()
    return target
