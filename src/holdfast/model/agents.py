"""What the coding agents are called: one name each, everywhere. Hooks load this, so it loads nothing."""

AGENTS = ("claude-code", "codex", "gemini", "opencode")
OLD_NAMES = {"claude": "claude-code", "gemini-cli": "gemini"}
"""Understood wherever an agent is named, also in what earlier versions stored."""


def agent_called(name: str) -> str:
    """Its one name; a name that is nobody's stays."""
    return OLD_NAMES.get(name, name)
