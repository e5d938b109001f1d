"""Distributions behind the means: tokens per iteration, acceptance by draft position, rate over output, wall time.

Everything comes from what records hold: tokens emitted in each iteration, calls and seconds of the response.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.analysis.study.cells import Method
from harness.analysis.study.paired import PairedCell
from harness.analysis.style import row_of

PERCENTILES = (5, 25, 50, 75, 95, 99)
POSITION_BINS = 16


def acceptance_length_shares(cell: PairedCell, method: Method) -> NDArray[np.float64]:
    """Share of iterations that emitted 0, 1, 2, ... tokens: [most + 1]; the prompt's call is left out."""
    counts = _accepted(cell, method, last=True)
    return np.bincount(counts) / len(counts) if len(counts) else np.zeros(0)


def acceptance_rates(cell: PairedCell, method: Method) -> NDArray[np.float64]:
    """Share of iterations in which draft token 1, 2, ... was accepted, and so all before it: [most].

    An iteration that emits A tokens keeps A - 1 of its draft. A response's last iteration is left out: what it emits
    is cut at EOS and at the cap.
    """
    counts = _accepted(cell, method, last=False)
    if not len(counts):
        return np.zeros(0)
    kept = np.bincount(np.maximum(counts - 1, 0))
    return (kept.sum() - np.cumsum(kept))[:-1] / len(counts)


def rate_over_output(cell: PairedCell, method: Method) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tokens/s by output position: the middle of each bin of positions, and the rate there.

    Records carry no time of the single call, so every call of a response is taken to last equally long; what changes
    over positions is how much the calls yield. Bins hold equally many positions; a bin's rate is a ratio of totals.
    """
    records = cell.records(method)
    longest = int(records["tokens"].max())
    edges = np.linspace(0, longest, min(POSITION_BINS, longest) + 1)
    tokens, seconds = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    calls = row_of(method.schedule).calls or 1
    for accepted, nfe, wall_s in zip(records["accepted"], records["nfe"], records["wall_s"], strict=True):
        per_token = np.repeat(*_seconds_per_token(accepted, nfe, wall_s, calls))
        bins = np.searchsorted(edges, np.arange(len(per_token)) + 0.5) - 1
        tokens += np.bincount(bins, minlength=len(tokens))
        seconds += np.bincount(bins, per_token, minlength=len(tokens))
    filled = seconds > 0
    return ((edges[:-1] + edges[1:]) / 2)[filled], tokens[filled] / seconds[filled]


def wall_percentiles(cell: PairedCell, method: Method) -> Sequence[float]:
    """Seconds per response at each of `PERCENTILES`."""
    return [float(value) for value in np.percentile(cell.records(method)["wall_s"], PERCENTILES)]


def _accepted(cell: PairedCell, method: Method, last: bool) -> NDArray[np.int64]:
    """Tokens emitted in each iteration after the prompt's call, with or without each response's last."""
    end = None if last else -1
    counts = [accepted[1:end] for accepted in cell.records(method)["accepted"]]
    return np.concatenate(counts) if counts else np.zeros(0, dtype=np.int64)


def _seconds_per_token(
    accepted: NDArray[np.int64], nfe: int, wall_s: float, calls: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each iteration that emitted something: seconds per token, and tokens."""
    spent = np.full(len(accepted), float(calls))
    # The prompt's iteration takes the calls that the others leave, one or two.
    spent[:1] = max(nfe - calls * (len(accepted) - 1), 1)
    emitted = accepted > 0
    seconds = wall_s * spent / spent.sum()
    return seconds[emitted] / accepted[emitted], accepted[emitted]
