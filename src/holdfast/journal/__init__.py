"""The crash-safe wind-down log: append, read, repair, archive."""
