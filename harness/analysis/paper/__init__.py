"""The paper's own numbers beside ours."""
