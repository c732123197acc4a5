"""What keeps the books: usage, journal, snapshots, clean-up; never silenced."""
