"""The paper's figures, and more of their kind."""
