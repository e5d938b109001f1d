"""Distributions behind the means: tokens per iteration, acceptance by draft position, rate over output, wall time.

Everything comes from what records hold: tokens emitted in each iteration, calls and seconds of the response.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.analysis.appearance import ORDERS, look, methods_in_order, model_label, setting_label
from harness.analysis.cells import Method
from harness.analysis.cost import CALLS
from harness.analysis.grid import NotMeasured, provenance
from harness.analysis.settings import Setting
from harness.analysis.study import Study
from harness.analysis.table import Column, Entry, Number, Table
from harness.records import Record

PERCENTILES = (5, 25, 50, 75, 95, 99)
POSITION_BINS = 16


def accepted_shares(setting: Setting, method: Method) -> NDArray[np.float64]:
    """Share of iterations that emitted 0, 1, 2, ... tokens: [most + 1]; the prompt's call is left out."""
    counts = _accepted(setting, method, last=True)
    return np.bincount(counts) / len(counts) if len(counts) else np.zeros(0)


def standing_shares(setting: Setting, method: Method) -> NDArray[np.float64]:
    """Share of iterations in which draft token 1, 2, ... stood, all before it standing too: [most].

    An iteration that emits A tokens keeps A - 1 of its draft. A response's last iteration is left out: what it emits
    is cut at EOS and at the cap.
    """
    counts = _accepted(setting, method, last=False)
    if not len(counts):
        return np.zeros(0)
    kept = np.bincount(np.maximum(counts - 1, 0))
    return (kept.sum() - np.cumsum(kept))[:-1] / len(counts)


def rate_over_output(setting: Setting, method: Method) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tokens/s by output position: the middle of each bin of positions, and the rate there.

    Records carry no time of the single call, so every call of a response is taken to last equally long; what changes
    over positions is how much the calls yield. Bins hold equally many positions; a bin's rate is a ratio of totals.
    """
    records = setting.records(method)
    longest = max(record.tokens for record in records)
    edges = np.linspace(0, longest, min(POSITION_BINS, longest) + 1)
    tokens, seconds = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for record in records:
        per_token = np.repeat(*_seconds_per_token(record, CALLS.get(method.schedule, 1)))
        bins = np.searchsorted(edges, np.arange(len(per_token)) + 0.5) - 1
        tokens += np.bincount(bins, minlength=len(tokens))
        seconds += np.bincount(bins, per_token, minlength=len(tokens))
    filled = seconds > 0
    return ((edges[:-1] + edges[1:]) / 2)[filled], tokens[filled] / seconds[filled]


def wall_percentiles(setting: Setting, method: Method) -> Sequence[float]:
    """Seconds per response at each of `PERCENTILES`."""
    seconds = [record.wall_s for record in setting.records(method)]
    return [float(value) for value in np.percentile(seconds, PERCENTILES)]


def wall_table(study: Study) -> Table:
    """Wall time per response: its spread, for every main setting and method."""
    if not study.main:
        raise NotMeasured("no records")
    rows: list[Sequence[Entry]] = [
        (
            model_label(setting.key.model),
            setting_label(setting),
            f"{setting.key.temperature:g}",
            ORDERS.get(setting.key.order, setting.key.order),
            look(method.schedule).label,
            Number(setting.responses),
            Number(setting.value("wall_per_response_s", method), 3),
            *(Number(value, 3) for value in wall_percentiles(setting, method)),
        )
        for setting in study.main
        for method in methods_in_order(setting.methods)
    ]
    names = ("Model", "Task", "T", "Order", "Method", "Responses", "Mean (s)", *(f"p{p} (s)" for p in PERCENTILES))
    return Table(
        name="wall_percentiles",
        title="Wall time per response",
        columns=[Column(name) for name in names],
        rows=rows,
        notes=["Percentiles over responses, linearly interpolated.", provenance(study.main)],
        grouped_by=4,
    )


def _accepted(setting: Setting, method: Method, last: bool) -> NDArray[np.int64]:
    """Tokens emitted in each iteration after the prompt's call, with or without each response's last."""
    end = None if last else -1
    counts = [np.asarray(record.accepted[1:end], dtype=np.int64) for record in setting.records(method)]
    return np.concatenate(counts) if counts else np.zeros(0, dtype=np.int64)


def _seconds_per_token(record: Record, calls: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each iteration that emitted something: seconds per token, and tokens."""
    accepted = np.asarray(record.accepted, dtype=np.int64)
    spent = np.full(len(accepted), float(calls))
    # The prompt's iteration takes the calls that the others leave, one or two.
    spent[:1] = max(record.nfe - calls * (len(accepted) - 1), 1)
    emitted = accepted > 0
    seconds = record.wall_s * spent / spent.sum()
    return seconds[emitted] / accepted[emitted], accepted[emitted]
