"""Runs of flows: a row a session, and an appended row for everything it completed."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.tables import Moment

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "flow_sessions",
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
    )
    op.create_index("ix_flow_sessions_updated_at", "flow_sessions", ["updated_at", "id"])
    op.create_table(
        "flow_records",
        sa.Column("session_id", sa.Text, sa.ForeignKey("flow_sessions.id"), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("value_json", sa.Text, nullable=False),
        sa.Column("taken_json", sa.Text),
        sqlite_with_rowid=False,
    )
