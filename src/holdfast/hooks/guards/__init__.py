"""What keeps a tool call from running; never silenced."""
