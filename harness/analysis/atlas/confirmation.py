"""Real runs of what simulation recommends: every method of the records beside the best Packed and the best Quadratic.

Wall time is what a simulation cannot know. Rates are ratios of totals over the prompts that all methods answered; a
rival is the width with the most tokens/s among those measured.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from harness.analysis.bootstrap import Statistic, resampled_totals
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import INTERVALS
from harness.analysis.style import look
from harness.analysis.table import Column, Number, Ranged, Table
from harness.errors import UserError
from harness.records.record import Record

RIVALS = ("packed", "quadratic")
COUNTED = ("tokens", "nfe", "rows", "wall_s")


def confirmation_table(records: Sequence[Record]) -> Table:
    """Tokens/NFE, rows and tokens/s as measured, with the ratio of tokens/s to both rivals.

    Args:
      records: greedy, one response for each prompt and method.

    Raises:
      UserError: fewer than two prompts that all methods answered.
    """
    by_method: dict[Method, dict[str, Record]] = {}
    for record in records:
        by_method.setdefault(Method(record.schedule, record.width), {})[record.prompt_id] = record
    prompts = sorted(set.intersection(*(set(one) for one in by_method.values())))
    if len(prompts) < 2:
        raise UserError(f"costs: {len(prompts)} prompts were answered by every method there; need at least 2.")
    per_prompt = np.array(
        [[getattr(one[prompt], name) for one in by_method.values() for name in COUNTED] for prompt in prompts],
        dtype=np.float64,
    )
    draws = resampled_totals(per_prompt)
    totals = [Statistic(per_prompt[:, column].sum(), draws[:, column]) for column in range(per_prompt.shape[1])]
    own = [totals[start : start + len(COUNTED)] for start in range(0, len(totals), len(COUNTED))]
    sums = {method: dict(zip(COUNTED, one, strict=True)) for method, one in zip(by_method, own, strict=True)}
    throughput = {method: one["tokens"] / one["wall_s"] for method, one in sums.items()}
    best = {rival: _fastest(rival, throughput) for rival in RIVALS}
    columns = [Column(name) for name in ("Method", "W", "Responses", "Tokens/NFE", "Rows/NFE", "Tokens/s")]
    columns += [Column(f"Tokens/s / {_name(best[rival]) or look(rival).label}", is_interval=True) for rival in RIVALS]
    rows = []
    for method, one in sums.items():
        ratios = [best[rival] and (throughput[method] / throughput[best[rival]]).estimate() for rival in RIVALS]
        rows.append(
            [
                look(method.schedule).label,
                Number(method.width or None),
                Number(len(prompts)),
                Number(one["tokens"].value / one["nfe"].value, 3),
                Number(one["rows"].value / one["nfe"].value, 1),
                Number(throughput[method].value, 1),
                *(Ranged(ratio, 3) for ratio in ratios),
            ]
        )
    notes = [f"Measured, interleaved where they are of one run. Brackets: {INTERVALS}."]
    return Table("confirmation", "Measured, beside the fastest Packed and Quadratic", columns, rows, notes)


def _fastest(schedule: str, throughput: Mapping[Method, Statistic]) -> Method | None:
    """Its width with the most tokens/s; None where it was not measured."""
    widths = [method for method in throughput if method.schedule == schedule]
    return max(widths, key=lambda method: throughput[method].value, default=None)


def _name(method: Method | None) -> str:
    return f"{look(method.schedule).label} W = {method.width}" if method else ""
