"""The paper's tables, and more of their kind."""
