"""The tables. A change here needs a migration beside it; a test compares the two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator, TypeEngine


class Moment(TypeDecorator[datetime]):
    """UTC with microseconds. SQLite has no such type: there it is text that sorts by time."""

    impl = sa.String(27)
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(sa.String(27))

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.astimezone(UTC) if dialect.name == "postgresql" else datetime.fromisoformat(value)


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _order(name: str) -> sa.Column[int]:
    """A place in the order of all events. The database's triggers write it, whichever program runs."""
    return sa.Column(name, _NUMBER, nullable=False, server_default="0")


_IS_ACTIVE = sa.text("status IN ('in_progress', 'blocked')")
_IS_QUEUED = sa.text("claim IS NULL AND run_id IS NOT NULL")
_IS_CLAIMED = sa.text("claim IS NOT NULL")
_IS_DUE = sa.text("resume_at IS NOT NULL")

workflows = sa.Table(
    "workflows",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("issue_id", sa.Text, nullable=False),
    sa.Column("issue_title", sa.Text, nullable=False),
    sa.Column("issue_description", sa.Text, nullable=False),
    sa.Column("worktree", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("session_count", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Column("paused_at", Moment),
    sa.Column("pause_reason", sa.Text),
    sa.Column("pause_request", sa.Text),
    sa.Column("commit_at_start", sa.Text),
    sa.Column("options", sa.Text, nullable=False, server_default="{}"),
    sa.Column("run_id", sa.Text),
    sa.Column("claim", sa.Text),
    sa.Column("resume_at", Moment),
    _order("last_seq"),  # of its last event
    sa.Index("ix_workflows_last_seq", "last_seq"),
    sa.Index("ix_workflows_worktree_last_seq", "worktree", "last_seq"),
    sa.Index("ix_workflows_status_last_seq", "status", "last_seq"),
    # One active workflow a worktree, held by the database, so that no two processes can race past it.
    sa.Index(
        "uq_workflows_active_worktree",
        "worktree",
        unique=True,
        sqlite_where=_IS_ACTIVE,
        postgresql_where=_IS_ACTIVE,
    ),
    # What workers look for each second: no more rows than there is work.
    sa.Index("ix_workflows_queued", "last_seq", sqlite_where=_IS_QUEUED, postgresql_where=_IS_QUEUED),
    sa.Index("ix_workflows_claim", "claim", sqlite_where=_IS_CLAIMED, postgresql_where=_IS_CLAIMED),
    sa.Index("ix_workflows_resume_at", "resume_at", sqlite_where=_IS_DUE, postgresql_where=_IS_DUE),
)

workers = sa.Table(
    "workers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("started_mark", sa.Text),
    sa.Column("lease_seconds", sa.Float, nullable=False),
    sa.Column("seen_at", Moment, nullable=False),
)

session_snapshots = sa.Table(
    "session_snapshots",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("workflow_id", sa.Text, sa.ForeignKey("workflows.id"), nullable=False),
    sa.Column("session_number", sa.Integer, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("trigger", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("pause_reason", sa.Text),
    sa.Column("tasks_completed", sa.Integer, nullable=False),
    sa.Column("tasks_remaining", sa.Integer, nullable=False),
    sa.Column("snapshot_json", sa.Text, nullable=False),
    sa.Column("tasks", sa.LargeBinary),  # none in rows whose snapshot_json has them
    _order("seq"),  # of the last event before it
    sa.UniqueConstraint("workflow_id", "session_number"),
    sa.Index("ix_session_snapshots_session_id", "session_id"),
    sa.Index("ix_session_snapshots_workflow_id_created_at", "workflow_id", "created_at"),
)

workflow_events = sa.Table(
    "workflow_events",
    metadata,
    sa.Column("seq", _NUMBER, primary_key=True, autoincrement=True),
    sa.Column("workflow_id", sa.Text, sa.ForeignKey("workflows.id"), nullable=False),
    sa.Column("at", Moment, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("entry_json", sa.Text, nullable=False),
    sa.Index("ix_workflow_events_workflow_id", "workflow_id", "seq"),
    sqlite_autoincrement=True,  # a number is never given twice, even after the newest row is gone
)

# What is executed, where the tables above have it without its secrets. Only runners read it.
originals = sa.Table(
    "originals",
    metadata,
    sa.Column("workflow_id", sa.Text, sa.ForeignKey("workflows.id"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("written", sa.Text, nullable=False),
)

flow_sessions = sa.Table(
    "flow_sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("flow", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    sa.Column("input_json", sa.Text, nullable=False),
    sa.Column("parent_id", sa.Text),
    sa.Column("node_id", sa.Text),
    sa.Column("paused_at", Moment),
    sa.Column("reason", sa.Text),
    sa.Column("claim", sa.Integer, nullable=False),
    sa.Column("runner_json", sa.Text),
    sa.Column("record_version", sa.Integer, nullable=False),
    sa.Index("ix_flow_sessions_updated_at", "updated_at", "id"),
)

flow_records = sa.Table(
    "flow_records",
    metadata,
    sa.Column("session_id", sa.Text, sa.ForeignKey("flow_sessions.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("value_json", sa.Text, nullable=False),
    sa.Column("taken_json", sa.Text),
    sqlite_with_rowid=False,  # the rows of a run lie beside each other, in the order they are read in
)
