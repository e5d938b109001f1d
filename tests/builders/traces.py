"""Made-up traces."""

from harness.records.trace import Proposal, Trace, TracedIteration


def iteration(**changes) -> TracedIteration:
    """Two of three draft tokens are accepted, the third is corrected."""
    values = {
        "prefix_tail": ["=", "24"],
        "draft": [",", "24", "+"],
        "verifier": [",", "24", "-", "2"],
        "positions": [7, 8, 9],
        "accepted_drafts": 2,
        "proposals": [Proposal(0, 1, [",", "24", "-", "9", "="])],
    }
    return TracedIteration(**values | changes)


def trace(*iterations: TracedIteration) -> Trace:
    tokens = ["a", "b", "c", "d", "=", "24", ",", "24", "-"]
    return Trace("tiny_nemotron", "toy_math", "toy_math/0", "packed", 7, 0.0, tokens, list(iterations) or [iteration()])
