"""Mathematical answers: found, read, compared."""
