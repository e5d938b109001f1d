"""Theorem 3.2 on drafters that satisfy assumption 3.1: Packed needs no more calls than Linear, prompt by prompt."""

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from schedules import Greedy, Linear, Packed, Stop
from tests.builders.table_model import TableModel, one_hot

LENGTH, WRONG, RIGHT = 60, 0, 1


def threshold_model(thresholds: list[int]) -> TableModel:
    """Position k (from 1) is proposed right exactly from contexts of at least thresholds[k - 1] output tokens."""

    def drafter(context, offset):
        known = len(context) - 1
        position = known + offset
        is_right = position <= LENGTH and known >= thresholds[position - 1]
        return one_hot(RIGHT if is_right else WRONG, 3)

    return TableModel(lambda prefix: one_hot(RIGHT, 3), drafter)


@st.composite
def monotone_thresholds(draw):
    """c*_k between 0 (right from the start) and k (never right before it is verified), independent of one another."""
    lags = draw(st.lists(st.integers(0, LENGTH), min_size=LENGTH, max_size=LENGTH))
    return [max(k - lag, 0) for k, lag in enumerate(lags, start=1)]


@settings(max_examples=300, deadline=None)
@given(thresholds=monotone_thresholds(), width=st.integers(1, 12), cap=st.integers(0, LENGTH))
def test_packed_needs_no_more_calls_than_linear(thresholds, width, cap):
    stop = Stop(cap, frozenset())
    packed = Packed(width).decode(threshold_model(thresholds), [2], Greedy(), stop)
    linear = Linear(width).decode(threshold_model(thresholds), [2], Greedy(), stop)
    assert packed.tokens == linear.tokens
    assert packed.nfe <= linear.nfe


@settings(max_examples=100, deadline=None)
@given(thresholds=monotone_thresholds(), width=st.integers(1, 12))
def test_packed_is_ahead_after_every_second_call(thresholds, width):
    stop = Stop(LENGTH, frozenset())
    packed = Packed(width).decode(threshold_model(thresholds), [2], Greedy(), stop)
    linear = Linear(width).decode(threshold_model(thresholds), [2], Greedy(), stop)
    packed_length = list(accumulate(step.accepted for step in packed.trace))
    linear_length = list(accumulate(step.accepted for step in linear.trace))
    for iteration, length in enumerate(linear_length):
        calls = min(1 + 2 * iteration, len(packed_length))
        assert packed_length[calls - 1] >= length


def test_without_the_assumption_packed_can_need_more_calls():
    # Positions proposed right from each context. Linear drafts from 1, 3, 5 and 10; context 2 is better than 3, so
    # that Packed runs ahead to 8 and never drafts from the good contexts 5 and 10: the assumption is what is missing.
    right = {1: {2}, 2: {4, 5, 6}, 3: {4}, 5: {6, 7, 8, 9}, 8: {10}, 10: {11, 12, 13, 14}}

    def drafter(context, offset):
        known = len(context) - 1
        return one_hot(RIGHT if known + offset in right.get(known, ()) else WRONG, 3)

    def calls(schedule):
        model = TableModel(lambda prefix: one_hot(RIGHT, 3), drafter)
        return schedule.decode(model, [2], Greedy(), Stop(15, frozenset())).nfe

    assert (calls(Packed(4)), calls(Linear(4))) == (11, 9)
