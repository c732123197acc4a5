"""How full the context window is, and when it will be full."""
