"""Traces of made-up models, where every draft and prediction is known."""

from itertools import pairwise

import pytest

from harness.running.watched_model import WatchedModel, traced_iterations
from schedules import Autoregressive, Greedy, Linear, Packed, Quadratic, Stop
from tests.builders.table_model import TableModel, one_hot

VOCAB = 50
PROMPT = [7]


def traced(schedule, correct_up_to: int, cap: int, eos: int = VOCAB - 1):
    """Iterations of a model that counts 1, 2, 3, ... and whose proposals are right for so many offsets, else 0."""
    watched = WatchedModel(
        TableModel(
            lambda prefix: one_hot(len(prefix), VOCAB),
            lambda context, offset: one_hot(len(context) + offset - 1 if offset <= correct_up_to else 0, VOCAB),
        )
    )
    response = schedule.decode(watched, PROMPT, Greedy(), Stop(cap, frozenset({eos})))
    seconds = [0.25] * response.nfe
    return traced_iterations(response, watched.seen, seconds, PROMPT, str, is_greedy=True)


def test_packed_shows_draft_prediction_and_proposals_of_each_iteration():
    first, second, *_ = traced(Packed(4), correct_up_to=3, cap=8)
    assert (first.prefix_tail, first.draft, first.verifier) == (["7"], [], ["1"])
    assert (second.prefix_tail, second.draft, second.verifier) == (
        ["7", "1"],
        ["2", "3", "0", "0"],
        ["2", "3", "4", "5", "6"],
    )
    assert (second.positions, second.accepted_drafts, second.emitted) == ([2, 3, 4], 2, ["2", "3", "4"])
    (proposal,) = second.proposals
    assert (proposal.branch, proposal.first_offset, proposal.tokens) == (0, 2, ["3", "4", "0"])


def test_what_the_selected_proposal_holds_beyond_the_emitted_tokens_is_the_next_draft():
    for schedule in (Packed(4), Quadratic(4)):
        iterations = traced(schedule, correct_up_to=3, cap=12)
        for before, after in pairwise(iterations):
            selected = before.selected
            held = [selected.at(offset) for offset in range(before.accepted + 1, selected.last_offset + 1)]
            assert after.draft == held


def test_both_calls_of_linear_are_one_iteration():
    _, second, *_ = traced(Linear(4), correct_up_to=3, cap=9)
    assert (second.draft, second.accepted_drafts, second.emitted) == (["2", "3", "4", "0"], 3, ["2", "3", "4", "5"])
    assert (second.calls, second.seconds) == (2, 0.5)
    (proposal,) = second.proposals
    assert (proposal.tokens, proposal.is_draft) == (second.draft, True)
    assert second.selected is None


@pytest.mark.parametrize("schedule", [Linear(4), Packed(4), Quadratic(3)])
def test_an_end_inside_the_draft_leaves_no_token_of_the_verifiers_own(schedule):
    last = traced(schedule, correct_up_to=100, cap=20, eos=3)[-1]
    assert last.emitted[-1] == "3"
    assert last.accepted_drafts == last.accepted


def test_the_gap_is_that_of_the_two_largest_logits():
    watched = WatchedModel(TableModel(lambda prefix: one_hot(1, VOCAB) + 3 * one_hot(2, VOCAB), None))
    Autoregressive().decode(watched, PROMPT, Greedy(), Stop(1, frozenset()))
    assert [seen.gap for seen in watched.seen] == [10.0]
