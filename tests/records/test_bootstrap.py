"""The paired bootstrap against a slow loop, against SciPy and, in a slow test, against known truth."""

import numpy as np
import pytest
from scipy import stats

from harness.errors import UserError
from harness.records import bootstrap
from harness.records.bootstrap import RESAMPLES, Statistic, resampled_indices, resampled_totals


def totals_per_prompt(prompts: int, columns: int = 6, seed: int = 3) -> np.ndarray:
    """Skewed positive numbers of very different sizes, as tokens and seconds are."""
    generator = np.random.default_rng(seed)
    return generator.lognormal(size=(prompts, columns)) * 10.0 ** np.arange(columns)


def slow_totals(per_prompt: np.ndarray, indices: np.ndarray) -> list[list[float]]:
    """What a resample's totals are, said as plainly as possible."""
    found = []
    for drawn in indices:
        sums = [0.0] * per_prompt.shape[1]
        for prompt in drawn:
            for column in range(per_prompt.shape[1]):
                sums[column] += per_prompt[prompt, column]
        found.append(sums)
    return found


@pytest.mark.parametrize(("prompts", "resamples"), [(2, 50), (3, 1), (37, 300)])
def test_totals_equal_a_slow_loop_over_the_same_indices(prompts, resamples):
    per_prompt = totals_per_prompt(prompts)
    indices = np.concatenate(list(resampled_indices(prompts, resamples, seed=9)))
    found = resampled_totals(per_prompt, resamples, seed=9)
    np.testing.assert_allclose(found, slow_totals(per_prompt, indices), rtol=1e-12)


def test_ratios_of_resampled_totals_equal_a_slow_loop():
    per_prompt = totals_per_prompt(25)
    indices = np.concatenate(list(resampled_indices(25, 200, seed=1)))
    totals = resampled_totals(per_prompt, 200, seed=1)
    slow = [(a / b) / (c / d) for a, b, c, d, *_ in slow_totals(per_prompt, indices)]
    np.testing.assert_allclose((totals[:, 0] / totals[:, 1]) / (totals[:, 2] / totals[:, 3]), slow, rtol=1e-12)


def test_chunks_add_up_to_the_resamples_whatever_their_size(monkeypatch):
    monkeypatch.setattr(bootstrap, "CHUNK_DRAWS", 35)
    chunks = list(resampled_indices(10, 17))
    assert [len(chunk) for chunk in chunks] == [3, 3, 3, 3, 3, 2]
    assert {int(index) for chunk in chunks for index in chunk.flat} <= set(range(10))


def test_chunks_bound_the_memory_of_the_largest_cell():
    chunk = next(resampled_indices(1319))
    assert chunk.size <= bootstrap.CHUNK_DRAWS
    assert chunk.size * 8 <= 4 << 20


def test_resamples_depend_on_the_seed_alone():
    first, again, other = (resampled_totals(totals_per_prompt(20), 100, seed) for seed in (4, 4, 5))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_each_prompt_is_drawn_equally_often():
    """With 400,000 draws of 20 prompts a fair count lies within 5 standard deviations but for 1 time in 10^5."""
    drawn = np.concatenate([chunk.ravel() for chunk in resampled_indices(20)])
    counts = np.bincount(drawn, minlength=20)
    assert np.abs(counts - RESAMPLES).max() < 5 * np.sqrt(RESAMPLES)


def test_intervals_agree_with_scipy_within_monte_carlo_error():
    """Paired, percentile, vectorized, the same resamples count; bounds of two runs differ by Monte Carlo error alone.

    The bounds of 20,000 resamples scatter by about 1.5 % of the interval's length; 10 % is 5 such differences.
    """
    per_prompt = totals_per_prompt(60, columns=4)

    def ratio(a, b, c, d, axis=-1):
        return (a.sum(axis) / b.sum(axis)) / (c.sum(axis) / d.sum(axis))

    theirs = stats.bootstrap(
        tuple(per_prompt.T), ratio, paired=True, vectorized=True, method="percentile",
        n_resamples=RESAMPLES, batch=2000, rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    totals, sums = resampled_totals(per_prompt), per_prompt.sum(axis=0)
    one, other = (Statistic(sums[i] / sums[i + 1], totals[:, i] / totals[:, i + 1]) for i in (0, 2))
    ours = (one / other).estimate()
    assert ours.value == pytest.approx(ratio(*per_prompt.T), rel=1e-12)
    tolerance = 0.1 * (theirs.high - theirs.low)
    assert ours[1:] == pytest.approx((theirs.low, theirs.high), abs=tolerance)


def test_one_prompt_is_refused_with_its_number():
    with pytest.raises(UserError, match="at least 2 prompts; there are 1"):
        resampled_totals(np.ones((1, 3)))


def test_no_prompt_is_refused():
    with pytest.raises(UserError, match="there are 0"):
        resampled_totals(np.ones((0, 3)))


def test_a_ratio_to_a_total_of_zero_is_refused():
    one, zero = Statistic(1.0, np.ones(4)), Statistic(1.0, np.array([1.0, 0.0, 1.0, 1.0]))
    with pytest.raises(UserError, match="zero"):
        one / zero


def test_statistics_are_paired_by_resample():
    one, other = Statistic(6.0, np.array([4.0, 8.0])), Statistic(2.0, np.array([2.0, 4.0]))
    assert (one / other).draws.tolist() == [2.0, 2.0]
    assert (one - other).draws.tolist() == [2.0, 4.0]
    assert (one + other).scaled(10).shifted(1).draws.tolist() == [61.0, 121.0]


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say():
    """2,000 cells with known throughput ratio, 164 prompts each: coverage between 93.5 and 96.5 %.

    Were it exactly 95 %, its Monte Carlo error would be 0.49 %, and 1 run in 500 would fall outside.
    """
    trials, prompts, covered = 2000, 164, 0
    truth = 1.05
    for trial in range(trials):
        generator = np.random.default_rng([77, trial])
        # Tokens vary between prompts; calls vary with them and on their own, differently for each method.
        tokens = generator.gamma(4.0, 60.0, prompts)
        wall = [tokens * rate * generator.gamma(9.0, 1 / 9, prompts) for rate in (truth, 1.0)]
        totals = resampled_totals(np.column_stack([tokens, *wall]), seed=trial)
        ratio = Statistic(wall[0].sum() / wall[1].sum(), totals[:, 1] / totals[:, 2]).estimate()
        covered += ratio.low <= truth <= ratio.high
    assert 0.935 <= covered / trials <= 0.965
