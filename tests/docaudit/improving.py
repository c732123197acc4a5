"""An improvement run without terminal and model; as a program, one that is killed at a fault point."""

from __future__ import annotations

import sys
from pathlib import Path

from holdfast.docaudit.audit import rank
from holdfast.docaudit.improve import Improvement, accept_all
from holdfast.docaudit.items import CodeItem
from holdfast.docaudit.languages import Source
from holdfast.docaudit.propose import Proposal, Proposer, Style
from holdfast.docaudit.search import analyse_files, find_files
from holdfast.docaudit.sessions import ItemSessions
from holdfast.testing import die_at
from holdfast.undo.transactions import SideCar

FILES = {
    "a.py": "def first(a):\n    if a:\n        return 1\n\ndef second():\n    return 2\n",
    "b.js": "function third() {}\r\n",
}
DOCUMENTED = {
    "a.py": 'def first(a):\n    """Documents first."""\n    if a:\n        return 1\n\n'
    'def second():\n    """Documents second."""\n    return 2\n',
    "b.js": "/** Documents third. */\r\nfunction third() {}\r\n",
}


class Scripted(Proposer):
    """Says the same of everything."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def propose(
        self,
        item: CodeItem,
        source: Source,  # noqa: ARG002
        style: Style,  # noqa: ARG002
        *,
        before: str | None = None,  # noqa: ARG002
        wish: str = "",  # noqa: ARG002
    ) -> Proposal:
        self.asked.append(item.name)
        return Proposal(f"Documents {item.name}.")


def make_project(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_bytes(text.encode())


def contents(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_bytes().decode() for name in FILES}


def sessions_of(project: Path) -> ItemSessions:
    return ItemSessions(project, "improve", ".")


def begin(project: Path, sidecar: SideCar) -> Improvement:
    analysis = analyse_files(project, find_files(project, "."))
    return Improvement.start(sessions_of(project), sidecar, analysis, rank(analysis.items, {}), {})


def go_on(project: Path, sidecar: SideCar) -> tuple[Improvement, list[str]]:
    sessions = sessions_of(project)
    return Improvement.resume(sessions, sidecar, sessions.latest())


if __name__ == "__main__":
    root, point, after, undo = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4] == "undo"
    with SideCar(root) as opened:
        session, _ = go_on(root, opened)
        die_at(point, after=after)
        if undo:
            session.undo()
        else:
            accept_all(session, Scripted())
            session.finish()
