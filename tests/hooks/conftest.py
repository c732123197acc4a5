from __future__ import annotations

from pathlib import Path

import pytest

from hooks.harness import AgentSession


@pytest.fixture
def session(tmp_path: Path) -> AgentSession:
    """A session of Claude Code in a folder that knows no Holdfast yet."""
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir()
    return AgentSession(project, home)
