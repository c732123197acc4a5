"""Live progress on a terminal: tasks, and how full the context window is. In a pipe: silence."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.workflow import Workflow


@contextmanager
def progress(here: common.Runner, workflow: Workflow, *, quiet: bool) -> Generator[None]:
    if quiet or not sys.stderr.isatty():
        yield
        return
    from holdfast.cli.live.board import Board

    board = Board(workflow, here.service.tasks(workflow.id))
    here.listen(board.take)
    with board.shown():
        yield
