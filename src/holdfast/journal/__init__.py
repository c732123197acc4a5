"""The wind-down log and the usage of the context window: both appended to while a session runs."""
