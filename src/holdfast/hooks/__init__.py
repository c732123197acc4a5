"""The door the coding agents knock at. Standard library only."""
