"""The resume context: what the next agent reads, within a budget."""
