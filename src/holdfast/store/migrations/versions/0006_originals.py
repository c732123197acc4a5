"""What is executed, where every copy of it lacks its secrets; there is none of workflows begun before."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "originals",
        sa.Column("workflow_id", sa.Text, sa.ForeignKey("workflows.id"), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("written", sa.Text, nullable=False),
    )
