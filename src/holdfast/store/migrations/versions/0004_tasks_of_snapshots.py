"""The tasks of a snapshot in a column of their own; in older rows they stay where they are."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("session_snapshots", sa.Column("tasks", sa.LargeBinary))
