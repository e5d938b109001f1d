"""What families share whose verifier is causal and shifted: calls on rows, and updates for proposal rows alone."""
