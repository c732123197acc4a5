"""The journal file: one JSON object a line, appended durably by any number of processes."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import math
import os
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from holdfast.base.durable import (
    NO_FOLLOW,
    append_or_undo,
    lock_descriptor,
    open_file,
    opened,
    refuse_hole,
    storage_errors,
    sync_folder,
    unlock_descriptor,
    write_new,
    write_whole,
)
from holdfast.base.errors import CannotDoError, DamagedDataError, InvalidInputError
from holdfast.base.text import parsed_with_lone_surrogates
from holdfast.project.formats import JOURNAL_HEAD, JOURNAL_KEYS, journal_session

# ── actions ───────────────────────────────────────────────────────────────────────────────────────

# One recorded action of a wind-down.

ACTION_TYPES = (
    "tool_call",
    "assistant_response",
    "user_message",
    "system_event",
    "pause_started",
    "pause_finalized",
)


@dataclass(frozen=True, slots=True)
class PauseAction:
    type: str
    timestamp: str
    session_id: str
    data: dict[str, Any]
    context_percentage: float

    def to_json_line(self) -> str:
        """Without the newline, so lines can be joined; text stays readable."""
        return json.dumps(
            {key: getattr(self, key) for key in JOURNAL_KEYS}, ensure_ascii=False, allow_nan=False
        )

    @classmethod
    def from_json_line(cls, line: str | bytes) -> PauseAction:
        """Refuses anything that is not one whole action. Keys it does not know are passed over."""
        try:
            raw = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
            may_be_cut = b"\\ud" in raw.lower()
            document = parsed_with_lone_surrogates(raw) if may_be_cut else json.loads(raw)
        except ValueError as error:  # UnicodeDecodeError is one, too
            raise DamagedDataError(f"not valid JSON: {error}") from error
        except RecursionError:
            raise DamagedDataError("invalid line: nested too deeply") from None
        if not isinstance(document, dict):
            raise DamagedDataError("not an action: expected a JSON object on each line")
        fields = cast("dict[str, Any]", document)
        missing = [key for key in JOURNAL_KEYS if key not in fields]
        if missing:
            raise DamagedDataError(f"not an action: {', '.join(missing)} missing")
        action = cls(*(fields[key] for key in JOURNAL_KEYS))
        action._check_types()
        return action

    @classmethod
    def try_parse(cls, line: bytes) -> PauseAction | None:
        try:
            return cls.from_json_line(line)
        except DamagedDataError:
            return None

    def _check_types(self) -> None:
        texts = (self.type, self.timestamp, self.session_id)
        number = self.context_percentage
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.data, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DamagedDataError("not an action: a field has the wrong type")
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DamagedDataError("not an action: context_percentage is not a number")


def check_action_type(action_type: str) -> str:
    if action_type not in ACTION_TYPES:
        raise InvalidInputError(
            f"unknown action type {action_type!r}", hint=f"one of {', '.join(ACTION_TYPES)}"
        )
    return action_type


def check_fraction(value: float) -> float:
    """Context use is a fraction: 0.90, not 90."""
    if isinstance(value, bool) or not math.isfinite(value) or not 0 <= value <= 1:
        hint = f"did you mean {value / 100:g}?" if math.isfinite(value) and 1 < value <= 100 else None
        raise InvalidInputError(f"context use must be a fraction from 0 to 1, not {value!r}", hint=hint)
    return float(value)


# ── the file ──────────────────────────────────────────────────────────────────────────────────────

# The journal file: one JSON object a line, appended durably by any number of processes.
#
# An append is one `write` on an `O_APPEND` descriptor, synced before it returns. A
# lock on the file itself (not beside it) orders appends against repair and against
# the final rename: whoever gets the lock looks whether the name still means the file.
#
# A crash in mid-write leaves a tail without a newline. The next append moves such a
# tail into `….torn` beside the journal: kept, never counted. So every line that ends
# in a newline is one that some process wrote in full.

log = logging.getLogger("holdfast.journal")

_BLOCK = 1 << 20
_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


class NotActiveError(CannotDoError):
    """There is no journal to write to."""

    default_hint = "start one with `holdfast winddown start --percent 0.90`"


def create(path: Path, first_line: bytes) -> None:
    """Make the journal with its first line, or fail because there is one already.

    Linked into place, so it never exists without that line.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        write_new(temporary, first_line)
        os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def append(path: Path, line_for: Callable[[str | None], bytes]) -> None:
    """Add one line; when this returns it survives a power cut.

    The line is made from the session id that the journal bears once we hold it: another
    wind-down may have begun since the caller looked.
    """
    with storage_errors("append to the journal"), locked(path) as (descriptor, size):
        line = line_for(journal_session(read_head(descriptor)))
        append_or_undo(descriptor, line, _size_of_whole_lines(path, descriptor, size))
        unlock_descriptor(descriptor)  # others may write while we wait for the disk
        _sync_data(descriptor)


@contextlib.contextmanager
def locked(path: Path) -> Generator[tuple[int, int]]:
    """The journal open for appending and locked, with its size. Raises `NotActiveError` if there is none."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | NO_FOLLOW)
        except FileNotFoundError:
            raise NotActiveError("no wind-down is active here") from None
        try:
            lock_descriptor(descriptor)
            ours = os.fstat(descriptor)
            if _still_named(path, ours):
                refuse_hole(descriptor, path)
                yield descriptor, ours.st_size
                return
        finally:
            os.close(descriptor)


def _still_named(path: Path, ours: os.stat_result) -> bool:
    """Whether the journal was finalised or discarded while we waited for the lock."""
    try:
        now = os.stat(path)  # noqa: PTH116 - half the cost of Path.stat on the hottest path
    except FileNotFoundError:
        return False
    return now.st_ino == ours.st_ino and now.st_dev == ours.st_dev


def read_head(descriptor: int) -> bytes:
    return os.pread(descriptor, JOURNAL_HEAD, 0)


def torn_path(path: Path) -> Path:
    return path.with_suffix(".torn")


def _size_of_whole_lines(path: Path, descriptor: int, size: int) -> int:
    """Give the file a whole last line, should it have none; returns its size then."""
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    start, tail = last_line(descriptor, size)
    if PauseAction.try_parse(tail) is not None:
        write_whole(descriptor, b"\n")  # only the newline was missing
        return size + 1
    with opened(torn_path(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_FOLLOW) as aside:
        write_whole(aside, tail + b"\n")
        os.fsync(aside)
    os.ftruncate(descriptor, start)
    log.warning(
        "a truncated line of %d bytes at the end of %s was moved to %s",
        len(tail),
        path.name,
        torn_path(path).name,
    )
    return start


def last_line(descriptor: int, end: int) -> tuple[int, bytes]:
    """Where the line that reaches to `end` begins, and its bytes."""
    tail = b""
    position = end
    while position:
        step = min(_BLOCK, position)
        position -= step
        block = os.pread(descriptor, step, position)
        newline = block.rfind(b"\n")
        if newline >= 0:
            return position + newline + 1, block[newline + 1 :] + tail
        tail = block + tail
    return 0, tail


def open_log(path: Path) -> BinaryIO:
    """The journal for reading; an archived one may be compressed."""
    if path.suffix == ".gz":
        plain = open_file(path)
        packed = gzip.GzipFile(fileobj=plain, mode="rb")
        packed.myfileobj = plain  # type: ignore[assignment] # closed along with it
        return cast("BinaryIO", packed)
    return open_file(path)


class Reader:
    """Streams the actions of a journal and counts what it had to skip."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.skipped = 0

    def __iter__(self) -> Iterator[PauseAction]:
        with storage_errors("read the journal"), open_log(self.path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                action = PauseAction.try_parse(line)
                if action is None:
                    self.skipped += 1
                    log.warning("%s: line %d is damaged and was skipped", self.path.name, number)
                else:
                    yield action


_readable = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_escaped = json.JSONEncoder(allow_nan=False).encode


def encode(document: Mapping[str, object], clean: Callable[[str], str] = str) -> bytes:
    """JSON on one line, passed through `clean`. Text stays readable unless UTF-8 cannot say it."""
    try:
        return clean(_readable(document)).encode()
    except UnicodeEncodeError:
        return clean(_escaped(document)).encode()
