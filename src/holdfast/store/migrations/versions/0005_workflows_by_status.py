"""Workflows by status, newest change first: the few of a rare one, without reading all."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("ix_workflows_status_updated_at", "workflows", ["status", "updated_at", "id"])
