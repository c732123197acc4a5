"""Steps from one schema of the database to the next. Never edited once released; only added to."""
