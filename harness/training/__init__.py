"""Training drafters for plain causal models."""
