"""Model families: the only room that builds rows, positions and masks."""
