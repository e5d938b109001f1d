"""The trace format."""

import json
from dataclasses import asdict

import pytest

from harness.analysis.trace import Proposal, Trace, TracedIteration, read_trace
from harness.errors import UserError


def iteration(**changes) -> TracedIteration:
    """Two of three draft tokens stand, the third is corrected."""
    values = {
        "prefix_tail": ["=", "24"],
        "draft": [",", "24", "+"],
        "verifier": [",", "24", "-", "2"],
        "accepted": 3,
        "proposals": [Proposal(0, 1, [",", "24", "-", "9", "="])],
    }
    return TracedIteration(**values | changes)


def trace(*iterations: TracedIteration) -> Trace:
    return Trace("tiny_nemotron", "toy_math", "toy_math/0", "packed", 7, list(iterations) or [iteration()])


def test_what_is_written_is_read_again(tmp_path):
    (tmp_path / "trace.json").write_text(trace(iteration(), iteration(draft=[])).json())
    assert read_trace(tmp_path / "trace.json") == trace(iteration(), iteration(draft=[]))


def test_an_iteration_emits_what_stands_and_the_verifiers_token():
    assert iteration().emitted == [",", "24", "-"]
    assert iteration(accepted=1).emitted == [","]
    assert iteration(draft=[], verifier=["x"], accepted=1).emitted == ["x"]


def test_the_largest_branch_that_assumes_no_more_than_stands_is_selected():
    branches = [Proposal(0, 1, ["a"]), Proposal(2, 3, ["b"]), Proposal(3, 4, ["c"])]
    assert iteration(proposals=branches).selected == branches[1]
    assert iteration(proposals=branches, accepted=1).selected == branches[0]
    assert iteration(proposals=[]).selected is None


def test_proposals_are_keyed_by_offset():
    proposal = Proposal(0, 2, ["a", "b"])
    assert [proposal.at(offset) for offset in (1, 2, 3, 4)] == [None, "a", "b", None]


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}', json.dumps({**asdict(trace()), "schema": 2})])
def test_files_of_another_kind_are_refused_by_name(tmp_path, text):
    (tmp_path / "trace.json").write_text(text)
    with pytest.raises(UserError, match=r"trace\.json: (no trace|schema 2)"):
        read_trace(tmp_path / "trace.json")
