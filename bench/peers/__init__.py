"""Other programs, called the way their own users call them. Not type-checked: most ship no types."""
