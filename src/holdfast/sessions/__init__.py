"""What can be done with a session: pause it, wind it down, enrich it, share it, read it back."""
