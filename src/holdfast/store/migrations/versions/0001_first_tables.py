"""Workflows, their snapshots and their entries."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.tables import Moment

revision = "0001"
down_revision = None

_IS_ACTIVE = sa.text("status IN ('in_progress', 'blocked')")


def upgrade() -> None:
    op.create_table(
        "workflows",
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
    )
    op.create_index("ix_workflows_updated_at", "workflows", ["updated_at", "id"])
    op.create_index("ix_workflows_worktree_updated_at", "workflows", ["worktree", "updated_at"])
    op.create_index(
        "uq_workflows_active_worktree",
        "workflows",
        ["worktree"],
        unique=True,
        sqlite_where=_IS_ACTIVE,
        postgresql_where=_IS_ACTIVE,
    )
    op.create_table(
        "session_snapshots",
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
        sa.UniqueConstraint("workflow_id", "session_number"),
    )
    op.create_index("ix_session_snapshots_session_id", "session_snapshots", ["session_id"])
    op.create_index(
        "ix_session_snapshots_workflow_id_created_at", "session_snapshots", ["workflow_id", "created_at"]
    )
    op.create_table(
        "workflow_events",
        sa.Column(
            "seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
        ),
        sa.Column("workflow_id", sa.Text, sa.ForeignKey("workflows.id"), nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("entry_json", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_workflow_events_workflow_id", "workflow_events", ["workflow_id", "seq"])
