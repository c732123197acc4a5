"""How workflows are run, by whom, and the workers' leases."""

import sqlalchemy as sa
from alembic import op

from holdfast.store.tables import Moment

revision = "0003"
down_revision = "0002"

_IS_QUEUED = sa.text("claim IS NULL AND run_id IS NOT NULL")
_IS_CLAIMED = sa.text("claim IS NOT NULL")
_IS_DUE = sa.text("resume_at IS NOT NULL")


def upgrade() -> None:
    op.add_column("workflows", sa.Column("options", sa.Text, nullable=False, server_default="{}"))
    op.add_column("workflows", sa.Column("run_id", sa.Text))
    op.add_column("workflows", sa.Column("claim", sa.Text))
    op.add_column("workflows", sa.Column("resume_at", Moment))
    op.create_index(
        "ix_workflows_queued",
        "workflows",
        ["updated_at"],
        sqlite_where=_IS_QUEUED,
        postgresql_where=_IS_QUEUED,
    )
    op.create_index(
        "ix_workflows_claim", "workflows", ["claim"], sqlite_where=_IS_CLAIMED, postgresql_where=_IS_CLAIMED
    )
    op.create_index(
        "ix_workflows_resume_at", "workflows", ["resume_at"], sqlite_where=_IS_DUE, postgresql_where=_IS_DUE
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started_mark", sa.Text),
        sa.Column("lease_seconds", sa.Float, nullable=False),
        sa.Column("seen_at", Moment, nullable=False),
    )
