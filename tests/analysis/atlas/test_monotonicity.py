"""Assumption 3.1 counted, and theorem 3.2 on drafters that satisfy it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.atlas.monotonicity import dominance, monotonicity_table, turns
from harness.analysis.atlas.simulation import Simulation
from tests.builders.atlases import made_atlas, made_prompt, threshold_prompt

lags = st.lists(st.integers(0, 40), min_size=2, max_size=40)


@settings(max_examples=150, deadline=None)
@given(st.lists(lags, min_size=1, max_size=3), st.integers(2, 12))
def test_packed_is_never_behind_where_the_assumption_holds(prompts, width):
    atlas = made_atlas(*(threshold_prompt(one, width) for one in prompts))
    counted = turns(atlas.prompts, width)
    assert (counted.wrong.sum(), counted.monotone) == (0, counted.positions)
    compared = dominance(Simulation(atlas), width)
    assert compared.holds == 1
    assert compared.is_ahead.all()


def test_a_right_proposal_that_turns_wrong_is_counted_by_distance_and_position():
    correct = np.zeros((20, 4), dtype=bool)
    correct[14, 2] = True  # position 17 from 14 tokens, 3 ahead; wrong from 15 and right again from 16
    correct[16, 0] = True
    correct[5, 1] = correct[6, 0] = True  # position 7 stays right
    counted = turns([made_prompt(correct)], width=3)
    assert (counted.right.tolist(), counted.wrong.tolist()) == ([1, 1], [0, 1])
    assert (counted.right_at.tolist(), counted.wrong_at.tolist()) == ([1, 1], [0, 1])
    assert (counted.positions, counted.monotone) == (19, 18)


def test_without_the_assumption_packed_can_need_more_calls():
    # As in the test of the schedules themselves: Packed runs past the contexts that are good to draft from.
    right = {1: {2}, 2: {4, 5, 6}, 3: {4}, 5: {6, 7, 8, 9}, 8: {10}, 10: {11, 12, 13, 14}}
    correct = np.array(
        [[context + offset in right.get(context, ()) for offset in range(1, 6)] for context in range(15)]
    )
    compared = dominance(Simulation(made_atlas(made_prompt(correct))), width=4)
    assert (compared.packed.tolist(), compared.linear.tolist(), compared.is_ahead.tolist()) == ([11], [9], [False])


def test_the_table_has_a_line_for_each_width_with_two_contexts_a_position():
    table = monotonicity_table(Simulation(made_atlas(threshold_prompt([2, 3, 1, 0, 5], 3))))
    assert table.frame["W"].tolist() == [3]
