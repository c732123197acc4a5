"""Values: frozen, validated, no I/O. What can happen, what is saved, what state it is in."""
