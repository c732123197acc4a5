"""Alembic, driven from code: no ini file, no working folder."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    return config


def known_versions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


def upgrade(engine: sa.Engine, to: str = "head") -> None:
    """All missing steps in one transaction."""
    from holdfast.store.engine import writing

    config = _config()
    with writing(engine).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, to)
