"""Where sessions are kept: a database for what is settled, files for what must travel."""
