"""Transactions over a project's files, kept in a git repository of our own beside the user's."""
