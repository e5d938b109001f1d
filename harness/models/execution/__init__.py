"""One forward pass over given rows, and how it is executed."""
