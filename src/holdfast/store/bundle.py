"""A bundle: sessions of a project in one file, to keep or to take to another machine.

A zip archive with `manifest.json` first, which names every other member with its size and SHA-256. A bundle
may come from anybody, so nothing in it is believed: member names are of four known forms, sizes are
bounded before and while unpacking, hashes must agree, and the whole is read and checked before the caller
gets any of it. Perhaps encrypted with a passphrase, in the format of `age`.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AwareDatetime, Field, ValidationError

from holdfast.base.errors import DamagedDataError, InvalidInputError
from holdfast.model.base import Schema, Value, explain
from holdfast.store.encryption import decrypt, encrypt, is_encrypted

BUNDLE_SCHEMA = Schema(
    "bundle",
    {1: "session documents, their journals, item sessions", 2: "transactions, too"},
    steps={1: lambda document: document},
)

LARGEST_MEMBER = 256 << 20
LARGEST_BUNDLE = 1 << 30
MOST_MEMBERS = 10_000
_LARGEST_MANIFEST = 16 << 20
_MANIFEST = "manifest.json"
_NAME = re.compile(
    r"sessions/session-\d{8}-\d{6}(?:-\d{1,6})?\.json"
    r"|journals/session-\d{8}-\d{6}(?:-\d{1,6})?\.jsonl"
    r"|transactions/[A-Za-z0-9][A-Za-z0-9_-]{0,99}\.json"
    r"|items/(?:audit|improve)-session-[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.json",
    re.ASCII,
)
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class BundleMember(Value):
    name: str
    size: int = Field(ge=0, le=LARGEST_MEMBER)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Manifest(Value):
    schema_version: Literal[2] = BUNDLE_SCHEMA.current
    made_at: AwareDatetime
    members: tuple[BundleMember, ...] = Field(max_length=MOST_MEMBERS)


def pack(members: Mapping[str, bytes], made_at: AwareDatetime, passphrase: str | None = None) -> bytes:
    if odd := [name for name in members if not _NAME.fullmatch(name)]:
        raise InvalidInputError(f"not for a bundle: {odd[0]}")
    manifest = Manifest(
        made_at=made_at,
        members=tuple(
            BundleMember(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
            for name, data in members.items()
        ),
    )
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MANIFEST, manifest.model_dump_json(indent=2))
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue() if passphrase is None else encrypt(target.getvalue(), passphrase)


def unpack(data: bytes, passphrase: str | None = None) -> dict[str, bytes]:
    """Every member by name, checked; a bundle with anything wrong about it is refused as a whole."""
    if is_encrypted(data):
        data = decrypt(data, passphrase, "the bundle")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _members(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _refused(f"it is not a bundle, or it is damaged ({error})") from error
    except (UnicodeError, ValueError, RecursionError) as error:
        raise _refused(str(error)) from error


def _members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    infos = archive.infolist()
    if len(infos) > MOST_MEMBERS + 1:
        raise _refused(f"it has more than {MOST_MEMBERS:,} members")
    names = [info.filename for info in infos]
    if len(set(names)) != len(names):
        raise _refused("duplicate member")
    if _MANIFEST not in names:
        raise _refused("it has no manifest")
    for info in infos:
        _check_info(info)
    if sum(info.file_size for info in infos) > LARGEST_BUNDLE:
        raise _refused(f"it unpacks to more than {LARGEST_BUNDLE >> 30} GB")
    manifest = _manifest(_read(archive, _MANIFEST, _LARGEST_MANIFEST))
    if sorted(names) != sorted([_MANIFEST, *(member.name for member in manifest.members)]):
        raise _refused("its manifest does not match its members")
    return {member.name: _checked(archive, member) for member in manifest.members}


def _check_info(info: zipfile.ZipInfo) -> None:
    if info.filename != _MANIFEST and not _NAME.fullmatch(info.filename):
        raise _refused(f"{info.filename[:80]!r} is not a valid name for a member")
    mode = info.external_attr >> 16
    if mode and mode & 0o170000 not in (0, 0o100000):
        raise _refused(f"{info.filename} is not a plain file")
    if info.compress_type not in _PLAIN or info.flag_bits & 0x1:
        raise _refused(f"{info.filename} uses an unsupported compression method")


def _manifest(data: bytes) -> Manifest:
    document: Any = json.loads(data.decode("utf-8"))
    if not isinstance(document, dict):
        raise _refused("its manifest is not a JSON object")
    try:
        return Manifest.model_validate(BUNDLE_SCHEMA.upgrade(document, where="the bundle"))  # type: ignore[arg-type]
    except ValidationError as error:
        raise _refused(explain(error)) from error


def _checked(archive: zipfile.ZipFile, member: BundleMember) -> bytes:
    data = _read(archive, member.name, member.size)
    if len(data) != member.size or hashlib.sha256(data).hexdigest() != member.sha256:
        raise _refused(f"{member.name} does not match the manifest")
    return data


def _read(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """A header may lie about the size: no more than so many bytes are unpacked."""
    with archive.open(name) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise _refused(f"{name} is larger than declared")
    return data


def _refused(reason: str) -> DamagedDataError:
    return DamagedDataError(f"the bundle was rejected: {reason}", hint="nothing was written")
