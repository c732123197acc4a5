"""One router a file; `app.py` puts them together."""
