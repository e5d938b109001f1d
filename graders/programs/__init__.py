"""Programs: found in a response, cut to what counts, and run where they can do no harm."""
