"""Sessions shared through a git remote: everybody's bundle under a ref of our own, in nobody's way.

`refs/holdfast/sessions` of the remote holds one bundle for every copy of the project that pushed. A push
replaces one's own and leaves the others; two at once are two commits. What is fetched is a bundle like any
other: checked as a whole before anything is taken in. The user's repository is asked for the address alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.base.durable import private_folder, read_file, replace_file, storage_errors
from holdfast.base.errors import ConflictError, GitError, InvalidInputError, NotFoundError
from holdfast.base.git import repository_settings
from holdfast.base.ids import new_id
from holdfast.capture.git import change_repository, reach_remote
from holdfast.project.formats import SHARE
from holdfast.project.trust import mark_part

REF = "refs/holdfast/sessions"
_FETCHED = "refs/holdfast/fetched"
_ROUNDS = 5
_ENTRY = re.compile(r"100644 blob ([0-9a-f]{40,64})\t(copy_[0-9A-Za-z]{10,40}\.holdfast)")
_HERE = "."
_OWN_SETTING = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|ignorecase|precomposeunicode|symlinks|logallrefupdates)"
    r"|core\.sharedrepository|receive\.denynonfastforwards|extensions\.(objectformat|refstorage)"
)
_AUTHOR = ("-c", "user.name=Holdfast", "-c", "user.email=holdfast@localhost")


@dataclass(frozen=True)
class Fetched:
    name: str
    blob: str
    data: bytes


class Shared:
    """The remote's ref, seen through a small repository of our own in `.holdfast/share`."""

    def __init__(self, project: Path, folder: Path, remote: str, clock: Callable[[], float]) -> None:
        self._folder = folder / SHARE
        private_folder(self._folder)
        with storage_errors("mark the folder of shared sessions"):
            mark_part(str(folder), SHARE)
        self._address = _address(project, remote)
        if not (self._folder / "HEAD").exists():
            # Private whatever the umask; git keeps to it for all that it makes there later.
            self._git("init", "--quiet", "--bare", "--template=", "--shared=0600", ".")
        self._refuse_foreign_settings()
        self._name = self._own_name(clock)

    def push(self, bundle: bytes) -> None:
        with storage_errors("write the bundle"):
            replace_file(self._folder / "bundle", bundle)
        try:
            blob = self._git("hash-object", "-w", "--no-filters", "bundle").strip()
        finally:
            (self._folder / "bundle").unlink(missing_ok=True)
        for _ in range(_ROUNDS):
            tip = self._fetch()
            commit = self._commit(tip, {**self._files(tip), self._name: blob})
            try:
                self._exchange("push", "--quiet", "--", self._address, f"{commit}:{REF}")
            except GitError as error:
                if not _is_race(error):
                    raise
                continue
            return
        raise ConflictError("too many concurrent pushes", hint="run the same command again")

    def _commit(self, tip: str | None, files: dict[str, str]) -> str:
        self._git("read-tree", "--empty")
        for name, blob in files.items():
            self._git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
        tree = self._git("write-tree").strip()
        parents = ("-p", tip) if tip else ()
        return self._git(*_AUTHOR, "commit-tree", tree, *parents, "-m", "Sessions").strip()

    def pull(self) -> list[Fetched]:
        """What others pushed."""
        tip = self._fetch()
        if tip is None:
            raise NotFoundError("no sessions have been shared there yet", hint="`holdfast share push`")
        found: list[Fetched] = []
        for name, blob in self._files(tip).items():
            if name != self._name:
                found.append(Fetched(name, blob, self._content(blob)))
        return found

    def is_taken_in(self, fetched: Fetched) -> bool:
        return (self._folder / f"seen-{fetched.blob}").exists()

    def note_taken_in(self, fetched: Fetched) -> None:
        with storage_errors("record what was imported"):
            replace_file(self._folder / f"seen-{fetched.blob}", b"")

    def _content(self, blob: str) -> bytes:
        from holdfast.undo.git import run_git

        return run_git(self._folder, "cat-file", "blob", blob)

    def _fetch(self) -> str | None:
        listed = self._exchange("ls-remote", "--", self._address, REF).split()
        if not listed:
            return None
        self._exchange("fetch", "--quiet", "--no-tags", "--", self._address, f"+{REF}:{_FETCHED}")
        return self._git("rev-parse", "--verify", _FETCHED).strip()

    def _files(self, tip: str | None) -> dict[str, str]:
        """Names that are none of ours are left out: anybody may have pushed anything."""
        if tip is None:
            return {}
        found = (_ENTRY.fullmatch(line) for line in self._git("ls-tree", tip).splitlines())
        return {match[2]: match[1] for match in found if match}

    def _own_name(self, clock: Callable[[], float]) -> str:
        place = self._folder / "name"
        if not place.exists():
            with storage_errors("name this copy"):
                replace_file(place, new_id("copy", clock()).encode())
        return f"{read_file(place).decode().strip()}.holdfast"

    def _refuse_foreign_settings(self) -> None:
        """Git obeys what it finds in this folder: one line could have the sessions sent elsewhere."""
        listed = repository_settings(self._folder, _HERE)
        foreign = {one.name for one in listed if one.is_foreign and not _OWN_SETTING.fullmatch(one.name)}
        if foreign or (self._folder / "commondir").exists():
            raise GitError(
                "the repository in .holdfast/share has settings that were not made by Holdfast"
                + (f": {', '.join(sorted(foreign))[:200]}" if foreign else ""),
                hint="delete the folder .holdfast/share and run the same command again to recreate it",
            )

    def _git(self, *arguments: str) -> str:
        return change_repository(self._folder, *arguments, git_dir=_HERE)

    def _exchange(self, command: str, *arguments: str) -> str:
        return reach_remote(self._folder, self._address, command, *arguments, git_dir=_HERE)


def _address(project: Path, remote: str) -> str:
    """Of a remote that the user's repository knows by name; else an address itself."""
    if remote.startswith("-"):
        raise InvalidInputError(f"{remote} is not a remote")
    try:
        return change_repository(project, "remote", "get-url", "--", remote).strip()
    except GitError:
        if "/" in remote or ":" in remote:
            return remote
        raise NotFoundError(
            f"no such git remote: {remote}", hint="`git remote -v` lists them; or give a URL"
        ) from None


def _is_race(error: GitError) -> bool:
    return any(word in error.message for word in ("fetch first", "non-fast-forward", "rejected", "lock"))
