"""What runs on every event of an agent: the standard library alone, and as little of it as possible."""
