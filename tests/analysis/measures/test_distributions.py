"""Distributions against counts done by hand."""

import numpy as np
import pytest

from harness.analysis.measures.distributions import (
    acceptance_length_shares,
    acceptance_rates,
    rate_over_output,
    wall_percentiles,
)
from harness.analysis.study.cells import Method
from harness.analysis.study.study import read_study
from tests.builders.synthetic_runs import record, write_run

PACKED, LINEAR = Method("packed", 31), Method("linear", 31)


def cell_of(tmp_path, *records):
    write_run(tmp_path / "run", records)
    (cell,) = read_study([tmp_path]).main
    return cell


def test_the_prompts_call_is_no_iteration_with_a_draft(tmp_path):
    cell = cell_of(tmp_path, record(accepted=[1, 3, 1]), record(prompt_id="p1", accepted=[1, 3, 3]))
    assert acceptance_length_shares(cell, PACKED).tolist() == [0, 0.25, 0, 0.75]


def test_a_draft_token_stands_if_more_tokens_than_its_position_are_emitted(tmp_path):
    """Iterations that count: 3 and 1 tokens, then 4; the last of each response is cut and does not."""
    cell = cell_of(tmp_path, record(accepted=[1, 3, 1, 9]), record(prompt_id="p1", accepted=[1, 4, 9]))
    np.testing.assert_allclose(acceptance_rates(cell, PACKED), [2 / 3, 2 / 3, 1 / 3])


def test_responses_of_one_iteration_have_no_distribution(tmp_path):
    cell = cell_of(tmp_path, record(accepted=[1]), record(prompt_id="p1", accepted=[1]))
    assert len(acceptance_length_shares(cell, PACKED)) == len(acceptance_rates(cell, PACKED)) == 0


def test_rates_follow_what_iterations_yield(tmp_path):
    """Four calls of a second: 1 token, then 1, 2 and 4: the last tokens come four times as fast as the first."""
    one = {"tokens": 8, "nfe": 4, "wall_s": 4.0, "accepted": [1, 1, 2, 4]}
    cell = cell_of(tmp_path, record(**one), record(prompt_id="p1", **one))
    positions, rates = rate_over_output(cell, PACKED)
    np.testing.assert_allclose(positions, np.arange(8) + 0.5)
    np.testing.assert_allclose(rates, [1, 1, 2, 2, 4, 4, 4, 4])


def test_rates_count_two_calls_an_iteration_where_there_are_two(tmp_path):
    one = {"schedule": "linear", "tokens": 3, "nfe": 3, "wall_s": 3.0, "accepted": [1, 2]}
    cell = cell_of(tmp_path, record(**one), record(prompt_id="p1", **one))
    np.testing.assert_allclose(rate_over_output(cell, LINEAR)[1], [1, 1, 1])


def test_rates_over_all_positions_hold_all_tokens_and_all_seconds(tmp_path):
    records = [
        record(prompt_id=f"p{i}", tokens=40 + i, nfe=9, wall_s=1.0 + i, accepted=[1] + [5] * 7 + [4 + i])
        for i in (0, 1)
    ]
    cell = cell_of(tmp_path, *records)
    _, rates = rate_over_output(cell, PACKED)
    width = 41 / len(rates)
    # The last bin is reached by one response only, so its tokens are counted apart.
    assert width * len(rates) == pytest.approx(41)
    assert rates.min() > 0


def test_percentiles_are_over_responses(tmp_path):
    cell = cell_of(tmp_path, *(record(prompt_id=f"p{i}", wall_s=float(i + 1)) for i in range(101)))
    assert wall_percentiles(cell, PACKED) == pytest.approx([6, 26, 51, 76, 96, 100])
