"""Who is there to run work: a row a process, kept fresh on the database's own clock.

Machines disagree about the time; they all agree with the database. A row that was not
renewed for longer than its lease belongs to a process that is dead, cut off or stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from holdfast.model.statuses import Lease
from holdfast.store.engine import database_errors
from holdfast.store.sqlite import LEASE_AGE
from holdfast.store.tables import workers

_COLUMNS = ("id", "kind", "host", "pid", "started_mark", "lease_seconds")
_SQLITE = ("strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')", LEASE_AGE)
_POSTGRES = (
    "clock_timestamp()",
    "CAST(extract(epoch FROM clock_timestamp() - seen_at) AS double precision)",
)


class Leases:
    def __init__(self, reading: sa.Engine, writing: sa.Engine, database: str) -> None:
        self._reading, self._writing, self._database = reading, writing, database
        now, age = _SQLITE if reading.dialect.name == "sqlite" else _POSTGRES
        self._now: sa.ColumnElement[str] = sa.literal_column(now)
        self._age: sa.ColumnElement[float] = sa.literal_column(age)

    def add(self, lease: Lease) -> None:
        row = {name: getattr(lease, name) for name in _COLUMNS}
        self._change(workers.insert().values(**row, seen_at=self._now))

    def renew(self, worker_id: str) -> bool:
        """Whether the row was still there; if not, somebody took its owner for dead."""
        return self._change(workers.update().where(workers.c.id == worker_id).values(seen_at=self._now)) == 1

    def remove(self, worker_id: str) -> None:
        self._change(workers.delete().where(workers.c.id == worker_id))

    def remove_expired(self, worker_id: str) -> bool:
        """Take the row of a dead process away; of several who try, one is told that it did."""
        is_expired = self._age > workers.c.lease_seconds
        return self._change(workers.delete().where(workers.c.id == worker_id, is_expired)) == 1

    def all(self) -> Sequence[Lease]:
        columns = [workers.c[name] for name in _COLUMNS]
        with database_errors(self._database), self._reading.connect() as connection:
            rows = connection.execute(sa.select(*columns, self._age.label("age"))).mappings()
            return [Lease(**row) for row in rows]

    def _change(self, statement: sa.UpdateBase) -> int:
        """How many rows it met."""
        with database_errors(self._database), self._writing.begin() as connection:
            return connection.execute(statement).rowcount
