"""Given acceptance: the counts that are given decide how far each iteration goes, and nothing else changes."""

import pytest
import torch

from schedules import (
    Greedy,
    Linear,
    Packed,
    Quadratic,
    Sampling,
    SamplingParams,
    SeededChoices,
    Stop,
    SyntheticAcceptance,
)
from tests.builders.setdlm import PROMPT, begun_model
from tests.builders.table_model import TableModel, one_hot

VOCAB = 50


def wrong_drafts() -> TableModel:
    """A drafter that is never right."""
    return TableModel(lambda prefix: one_hot(1, VOCAB), lambda context, offset: one_hot(2, VOCAB))


def emitted(schedule, counts, cap, rule=None):
    response = schedule.decode(
        wrong_drafts(), [7], SyntheticAcceptance(rule or Greedy(), counts), Stop(cap, frozenset())
    )
    assert len(response.tokens) == cap
    return [iteration.accepted for iteration in response.trace]


@pytest.mark.parametrize("rule", [Greedy(), Sampling(SamplingParams(1.0), SeededChoices(0, torch.device("cpu")))])
def test_linear_emits_the_counts_whatever_the_drafts_are_worth(rule):
    assert emitted(Linear(7), [1, 5, 8, 2], cap=16, rule=rule) == [1, 5, 8, 2]


def test_counts_begin_anew_when_used_up():
    assert emitted(Linear(7), [3], cap=10) == [1, 3, 3, 3]


def test_a_draft_too_short_for_its_count_is_accepted_whole():
    # Packed drafts W at first, then the W - A that are unresolved: 7, then none, then 7 - 1 of them.
    assert emitted(Packed(7), [8], cap=17) == [1, 8, 1, 7]
    assert emitted(Quadratic(3), [10], cap=9) == [1, 4, 4]


def test_a_window_ends_where_it_ends_and_gives_no_token_beyond():
    response = Packed(4).decode(begun_model(0), PROMPT, SyntheticAcceptance(Greedy(), [4]), Stop(9, frozenset()))
    assert [iteration.accepted for iteration in response.trace] == [1, 4, 1, 3]
    assert len(response.tokens) == 9


@pytest.mark.parametrize("counts", [[], [3, 0], [-1]])
def test_counts_below_one_are_refused(counts):
    with pytest.raises(ValueError, match="counts: got"):
        SyntheticAcceptance(Greedy(), counts)
