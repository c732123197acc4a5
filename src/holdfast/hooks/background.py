"""The heavy work behind the hooks: `background.py TASK AGENT SESSION PROJECT [WORD…]`.

Tasks: `settings` (read the settings files), `begin` (a wind-down), `settle` (make a snapshot of the
session), `recover` (what killed sessions left), `contexts` (prepare a session's contexts), `look`, `watch`,
`record` and `finish` (what its turns change in files).
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str]) -> int:
    task, agent, session, project, *words = arguments
    from holdfast.base.process import learn_of_children
    from holdfast.hooks.background_tasks import TASKS, SessionWork
    from holdfast.hooks.fast import error_log

    learn_of_children()
    if not os.path.isdir(project):
        return 1  # removed or renamed since: it must not come back
    work = SessionWork(agent, session, project)
    try:
        work.listen_to_warnings()
        return 0 if TASKS[task](work, *words) else 1
    except Exception as error:  # noqa: BLE001 - nobody is there to hear it; it is written down
        error_log.note(str(work.state), error_log.describe(error, f"{task} of {agent} session {session}"))
        return 1


if __name__ == "__main__":
    sys.path[0] = __file__.rpartition("/holdfast/hooks/")[0] or "."
    raise SystemExit(main(sys.argv[1:]))
