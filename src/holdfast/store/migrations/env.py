"""Alembic runs this file; the connection and its transaction belong to `store/engine.py`.

The steps in `versions` are never edited once released; only added to.
"""

from alembic import context

from holdfast.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
