"""Has the work behind a hook forked; read by a hook of a quick run before it begins.

The hook is a process as its agent starts it. What it leaves to another one would load all of the program,
which takes ten times as long as the work.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

    from holdfast.hooks.fast.event import AgentEvent


def install(tests: str, address: str) -> None:
    from holdfast.hooks.fast import notes, spawn

    def start(event: AgentEvent, task: str, words: tuple[str, ...], *kept: int) -> subprocess.Popen[bytes]:
        sys.path.append(tests)
        import fork_server

        fork_server.use_running(address)
        nothing = fork_server.subprocess.DEVNULL
        return fork_server.ForkedBackground(
            [task, event.agent, event.session, event.project, *words],
            cwd=os.curdir,
            env=spawn._environ(),
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            start_new_session=True,
            pass_fds=kept,
        )

    def run(event: AgentEvent, task: str, *words: str, wait: float) -> bool:
        process = start(event, task, words)
        import subprocess

        try:
            return process.wait(wait) == 0
        except subprocess.TimeoutExpired:
            return False

    def detach(event: AgentEvent, task: str, *words: str, holding: str = "") -> None:
        kept = [notes.hold(holding)] if holding else []
        try:
            start(event, task, words, *kept)
        finally:
            for descriptor in kept:
                os.close(descriptor)

    spawn.run, spawn.detach = run, detach
