"""What a session's messages tell: decisions, errors, files, commands, the user's words.

By rule, in one pass, with memory that does not grow with the session.
"""
