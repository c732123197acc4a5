"""The order of changes beside their times: a clock that is set back makes no older workflow the newest.

Triggers keep it, so that a program of an earlier version that still runs keeps it as well.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_SEQ = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_IS_QUEUED = sa.text("claim IS NULL AND run_id IS NOT NULL")

_LAST_SEQ = (
    "UPDATE workflows SET last_seq = coalesce("
    "(SELECT max(seq) FROM workflow_events WHERE workflow_id = workflows.id), 0)"
)
_SNAPSHOT_SEQ = """
    WITH moments AS (
        SELECT workflow_id, at, seq, NULL AS id FROM workflow_events
        UNION ALL SELECT workflow_id, created_at, NULL, id FROM session_snapshots
    ), placed AS (
        SELECT id, max(seq) OVER (PARTITION BY workflow_id ORDER BY at RANGE UNBOUNDED PRECEDING) AS seq
        FROM moments
    )
    UPDATE session_snapshots SET seq = coalesce(
        (SELECT placed.seq FROM placed WHERE placed.id = session_snapshots.id), 0)
"""
# A snapshot that came late (from a file, a bundle) stands before those of its workflow that followed it.
_PLACE = """coalesce(
    (SELECT min(later.seq) FROM session_snapshots AS later
        WHERE later.workflow_id = NEW.workflow_id AND later.id <> NEW.id AND (
            later.created_at > NEW.created_at
            OR (later.created_at = NEW.created_at AND later.session_number > NEW.session_number))),
    (SELECT max(seq) FROM workflow_events), 0)"""

_SQLITE = (
    """CREATE TRIGGER workflow_events_order AFTER INSERT ON workflow_events BEGIN
        UPDATE workflows SET last_seq = NEW.seq WHERE id = NEW.workflow_id; END""",
    f"""CREATE TRIGGER session_snapshots_order AFTER INSERT ON session_snapshots BEGIN
        UPDATE session_snapshots SET seq = {_PLACE} WHERE id = NEW.id; END""",  # noqa: S608 - our own words
)
_POSTGRESQL = (
    """CREATE FUNCTION holdfast_order_workflow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE workflows SET last_seq = added.newest
        FROM (SELECT workflow_id, max(seq) AS newest FROM new_events GROUP BY workflow_id) AS added
        WHERE workflows.id = added.workflow_id;
        RETURN NULL; END $$""",
    """CREATE TRIGGER workflow_events_order AFTER INSERT ON workflow_events
        REFERENCING NEW TABLE AS new_events
        FOR EACH STATEMENT EXECUTE FUNCTION holdfast_order_workflow()""",
    f"""CREATE FUNCTION holdfast_order_snapshot() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.seq = {_PLACE};
        RETURN NEW; END $$""",
    """CREATE TRIGGER session_snapshots_order BEFORE INSERT ON session_snapshots
        FOR EACH ROW EXECUTE FUNCTION holdfast_order_snapshot()""",
)


def upgrade() -> None:
    op.add_column("workflows", sa.Column("last_seq", _SEQ, nullable=False, server_default="0"))
    op.add_column("session_snapshots", sa.Column("seq", _SEQ, nullable=False, server_default="0"))
    op.execute(_LAST_SEQ)
    op.execute(_SNAPSHOT_SEQ)
    op.drop_index("ix_workflows_updated_at", "workflows")
    op.drop_index("ix_workflows_worktree_updated_at", "workflows")
    op.drop_index("ix_workflows_status_updated_at", "workflows")
    op.drop_index("ix_workflows_queued", "workflows")
    op.create_index("ix_workflows_last_seq", "workflows", ["last_seq"])
    op.create_index("ix_workflows_worktree_last_seq", "workflows", ["worktree", "last_seq"])
    op.create_index("ix_workflows_status_last_seq", "workflows", ["status", "last_seq"])
    op.create_index(
        "ix_workflows_queued",
        "workflows",
        ["last_seq"],
        sqlite_where=_IS_QUEUED,
        postgresql_where=_IS_QUEUED,
    )
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in _SQLITE if is_sqlite else _POSTGRESQL:
        op.execute(statement)
