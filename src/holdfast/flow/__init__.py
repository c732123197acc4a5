"""Flows: graphs of nodes that run in this process, and that can be paused and resumed anywhere."""
