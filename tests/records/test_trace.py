"""The trace format."""

import json

import pytest

from harness.errors import UserError
from harness.records.trace import FILE, Proposal, Trace, read_traces, traces_json
from tests.builders.traces import iteration, trace


def write(folder, *traces: Trace) -> None:
    (folder / FILE).write_text(json.dumps(traces_json(traces)))


def test_what_is_written_is_read_again(tmp_path):
    traces = [trace(iteration(), iteration(draft=[])), trace()]
    write(tmp_path, *traces)
    assert read_traces(tmp_path) == traces


def test_files_call_accepted_drafts_standing():
    (written,) = traces_json([trace()])["traces"][0]["iterations"]
    assert written["standing"] == 2
    assert "accepted_drafts" not in written


def test_a_run_that_was_not_replayed_has_no_traces(tmp_path):
    assert read_traces(tmp_path) == []


def test_an_iteration_emits_accepted_drafts_and_the_verifiers_token():
    assert iteration().emitted == [",", "24", "-"]
    assert iteration(positions=[7], accepted_drafts=1).emitted == [","]
    assert iteration(draft=[], verifier=["x"], positions=[1], accepted_drafts=0).emitted == ["x"]


def test_the_largest_branch_that_assumes_no_more_than_was_accepted_is_selected():
    branches = [Proposal(0, 1, ["a"]), Proposal(2, 3, ["b"]), Proposal(3, 4, ["c"])]
    assert iteration(proposals=branches).selected == branches[1]
    assert iteration(proposals=branches, positions=[7]).selected == branches[0]
    assert iteration(proposals=[]).selected is None


def test_proposals_are_keyed_by_offset():
    proposal = Proposal(0, 2, ["a", "b"])
    assert [proposal.at(offset) for offset in (1, 2, 3, 4)] == [None, "a", "b", None]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": 1}', '{"schema": 1, "traces": [{}]}', '{"schema": 2, "traces": []}']
)
def test_files_of_another_kind_are_refused_by_name(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(UserError, match=r"traces\.json: (no trace|schema 2)"):
        read_traces(tmp_path)
