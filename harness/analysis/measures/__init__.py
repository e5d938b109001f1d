"""Numbers behind tables and figures that are more than a ratio of totals."""
