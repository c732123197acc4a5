"""Agents as nodes, a provider a file. Anything else that yields messages asynchronously is one, too."""
