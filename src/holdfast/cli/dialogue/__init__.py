"""Conversations at a terminal that walk through items: single keys, nothing lost at any prompt."""
