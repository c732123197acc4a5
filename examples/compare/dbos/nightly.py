"""A report every night at three, once for all processes that run this."""

import threading
from datetime import datetime
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.step()
def report() -> None:
    Path("report.txt").write_text(str(datetime.now()))


@DBOS.workflow()
def nightly(scheduled: datetime, context: Any) -> None:
    report()


DBOS.launch()
DBOS.apply_schedules(
    [{"schedule_name": "nightly", "workflow_fn": nightly, "schedule": "0 3 * * *", "context": None}]
)
threading.Event().wait()
