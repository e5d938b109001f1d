"""The paired bootstrap over prompts (E.5): resampled totals of every method and column by one matrix product.

A resample draws as many prompts as there are, with replacement. How often each prompt was drawn, times what each
prompt adds to each total, summed over prompts, is the resample's total: [resamples, prompts] x [prompts, columns].
All responses to a prompt stay together because they are summed before; methods are paired because they are columns
of the same product. Any ratio of totals can then be formed from resampled totals without going back to prompts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError

RESAMPLES = 20_000
CONFIDENCE = 0.95
SEED = 0
# Draws held at once, as integers and as counts: a megabyte, which stays in a core's own cache. Four times as many take
# three times as long where another process shares the larger caches.
CHUNK_DRAWS = 1 << 16


class Estimate(NamedTuple):
    """A value and its 95 % percentile interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Statistic:
    """A number from the data, with the same number from each resample.

    Statistics over the same resamples can be subtracted and divided: that is the pairing.

    Attributes:
      draws: float64 [resamples].
    """

    value: float
    draws: NDArray[np.float64]

    def __add__(self, other: "Statistic") -> "Statistic":
        return Statistic(self.value + other.value, self.draws + other.draws)

    def __sub__(self, other: "Statistic") -> "Statistic":
        return Statistic(self.value - other.value, self.draws - other.draws)

    def __truediv__(self, other: "Statistic") -> "Statistic":
        if other.value == 0 or not other.draws.all():
            raise UserError("a ratio's lower total is zero in the data or in a resample; there is no ratio to report.")
        return Statistic(self.value / other.value, self.draws / other.draws)

    def scaled(self, factor: float) -> "Statistic":
        """The same number in another unit."""
        return Statistic(self.value * factor, self.draws * factor)

    def shifted(self, by: float) -> "Statistic":
        """The same number from another origin."""
        return Statistic(self.value + by, self.draws + by)

    def estimate(self) -> Estimate:
        """The value with its percentile interval."""
        tail = (1 - CONFIDENCE) / 2
        low, high = np.quantile(self.draws, (tail, 1 - tail))
        return Estimate(float(self.value), float(low), float(high))


def resampled_indices(prompts: int, resamples: int = RESAMPLES, seed: int = SEED) -> Iterator[NDArray[np.uint32]]:
    """Which prompts each resample holds: uint32 [some, prompts] at a time, `resamples` rows in all.

    Depends on nothing but the arguments.
    """
    generator = np.random.default_rng(seed)
    step = max(CHUNK_DRAWS // prompts, 1)
    for start in range(0, resamples, step):
        # Half the width takes half the time, and drawing is most of the bootstrap.
        yield generator.integers(prompts, size=(min(step, resamples - start), prompts), dtype=np.uint32)


def resampled_totals(
    per_prompt: NDArray[np.float64], resamples: int = RESAMPLES, seed: int = SEED
) -> NDArray[np.float64]:
    """Totals over the prompts of each resample.

    Args:
      per_prompt: [prompts, columns]; what each prompt adds to each total.

    Returns:
      [resamples, columns].

    Raises:
      UserError: fewer than two prompts, which say nothing about the variation between prompts.
      ValueError: not two-dimensional.
    """
    if per_prompt.ndim != 2:
        raise ValueError(f"per_prompt: {per_prompt.ndim} dimensions, need 2")
    prompts = len(per_prompt)
    if prompts < 2:
        raise UserError(f"an interval over prompts needs at least 2 prompts; there are {prompts}.")
    chunks = (_counts(indices) @ per_prompt for indices in resampled_indices(prompts, resamples, seed))
    return np.concatenate(list(chunks))


def _counts(indices: NDArray[np.uint32]) -> NDArray[np.float64]:
    """How often each row of `indices` holds each prompt: [rows, prompts]."""
    rows, prompts = indices.shape
    flat = indices + prompts * np.arange(rows)[:, None]
    return np.bincount(flat.ravel(), minlength=rows * prompts).reshape(rows, prompts).astype(np.float64)
