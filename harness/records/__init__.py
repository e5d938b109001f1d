"""Files of runs, and what is counted in them: the only room that knows how they look."""
