"""The parts of a briefing: each turns some of what was gathered into blocks of items."""
