"""The paired bootstrap beside scipy's, on a cell of the paper's size."""

from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray

from harness.analysis.bootstrap import RESAMPLES, resampled_totals
from harness.analysis.table import Column, Table
from harness.bench.embedded import beside
from harness.system.clock import stopwatch

PROMPTS, METHODS, REPEATS = 1319, 3, 5
TOTALS = 3  # of each method: tokens, forward passes, seconds
RATES = ((0, 2), (0, 1), (2, 1))  # throughput, tokens/NFE, time/NFE, as pairs of totals
BATCH = 1000  # scipy's resamples at a time, the fastest of 100, 1,000 and all
OURS = "ours"
# Of a `Timed`.
COLUMNS = (
    Column("method", "", lambda one: one.name),
    Column("seconds", "", lambda one: one.time, decimals=lambda one: 2 if one.name == OURS else 1),
    Column("x ours", "", lambda one: one.ratio, decimals=1),
)


def steps() -> int:
    """How often `resampling_part` notes a measurement."""
    return REPEATS + 1 + len(statistics())


def statistics() -> list[Callable[..., NDArray[np.float64]]]:
    """All that a cell's tables show: each method's rates, and those of all but the first as ratios to the first's.

    Each takes totals, [..., METHODS x TOTALS] in any leading shape.
    """

    def rate(method: int, pair: tuple[int, int]) -> Callable:
        return lambda totals: totals[..., TOTALS * method + pair[0]] / totals[..., TOTALS * method + pair[1]]

    rates = [[rate(method, pair) for pair in RATES] for method in range(METHODS)]
    ratios = [
        lambda totals, own=own, first=first: own(totals) / first(totals)
        for method in rates[1:]
        for own, first in zip(method, rates[0], strict=True)
    ]
    return [one for method in rates for one in method] + ratios


def resampling_part(note: Callable[[], None]) -> Table:
    """Seconds of 20,000 paired resamples, and of scipy's for as many.

    Args:
      note: called once a measurement.
    """
    cell = np.random.default_rng(0).gamma(2.0, 1.0, size=(PROMPTS, METHODS * TOTALS))
    asked = statistics()

    def ours() -> NDArray[np.float64]:
        totals = resampled_totals(cell)
        return np.array([np.quantile(one(totals), (0.025, 0.975)) for one in asked])

    own, own_seconds = [], []
    for _ in range(REPEATS):
        interval, seconds = stopwatch(ours)
        own.append(interval)
        own_seconds.append(seconds)
        note()
    together, together_seconds = stopwatch(
        lambda: _scipys(cell, lambda totals: np.array([one(totals) for one in asked]))
    )
    note()
    one_by_one, one_by_one_seconds = [], 0.0
    for one in asked:
        interval, seconds = stopwatch(lambda one=one: _scipys(cell, one))
        one_by_one.append(interval)
        one_by_one_seconds += seconds
        note()
    widths = own[0][:, 1] - own[0][:, 0]
    apart = max(np.abs((own[0] - theirs) / widths[:, None]).max() for theirs in (together, np.array(one_by_one)))
    return Table(
        name="resampling",
        title=f"{RESAMPLES:,} paired resamples of {PROMPTS:,} prompts, {METHODS} methods, {len(asked)} statistics",
        columns=COLUMNS,
        items=beside(
            OURS,
            {
                OURS: median(own_seconds),
                "scipy.stats.bootstrap, all in one call": together_seconds,
                "scipy.stats.bootstrap, a call each": one_by_one_seconds,
            },
        ),
        notes=[
            f"scipy vectorized, {BATCH} resamples at a time. The ends of all intervals differ by at most "
            f"{100 * apart:.1f} % of an interval, which is Monte Carlo error."
        ],
    )


def _scipys(cell: NDArray[np.float64], statistic: Callable) -> NDArray[np.float64]:
    """scipy's percentile intervals, [..., 2]."""
    from scipy.stats import bootstrap

    def of_samples(*columns: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
        return statistic(np.stack([column.sum(axis=axis) for column in columns], axis=-1))

    found = bootstrap(
        tuple(cell.T), of_samples, n_resamples=RESAMPLES, batch=BATCH, paired=True, vectorized=True,
        method="percentile", rng=np.random.default_rng(1),
    )  # fmt: skip
    return np.stack([found.confidence_interval.low, found.confidence_interval.high], axis=-1)
