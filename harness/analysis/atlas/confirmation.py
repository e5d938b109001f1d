"""Real runs of what simulation recommends: every method of the records beside the best Packed and the best Quadratic.

Wall time is what a simulation cannot know. Rates are ratios of totals over the prompts that all methods answered; a
rival is the width with the most tokens/s among those measured.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from harness.analysis.atlas.methods import ENDS
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import INTERVALS
from harness.analysis.style import look
from harness.analysis.table import Column, Table
from harness.errors import UserError
from harness.records.bootstrap import Statistic, resampled_totals

COUNTED = ("tokens", "nfe", "rows", "wall_s")


class Measured(NamedTuple):
    """A method's totals over the prompts that all methods answered; from `tokens` on as in `COUNTED`."""

    method: Method
    prompts: int
    tokens: Statistic
    nfe: Statistic
    rows: Statistic
    wall_s: Statistic

    @property
    def throughput(self) -> Statistic:
        """Tokens/s."""
        return self.tokens / self.wall_s


# Of a `Measured`; ratios to both rivals follow.
MEASURED = (
    Column("Method", "", lambda one: look(one.method.schedule).label),
    Column("W", "", lambda one: one.method.width or None),
    Column("Responses", "", lambda one: one.prompts),
    Column("Tokens/NFE", "", lambda one: one.tokens.value / one.nfe.value, decimals=3),
    Column("Rows/NFE", "", lambda one: one.rows.value / one.nfe.value, decimals=1),
    Column("Tokens/s", "", lambda one: one.throughput.value, decimals=1),
)


def confirmation_table(records: pd.DataFrame) -> Table:
    """Tokens/NFE, rows and tokens/s as measured, with the ratio of tokens/s to both rivals.

    Args:
      records: greedy responses, as in `harness.records.frame`, one for each prompt and method.

    Raises:
      UserError: fewer than two prompts that all methods answered.
    """
    responses = records.drop_duplicates(["schedule", "width", "prompt_id"], keep="last")
    methods = responses[["schedule", "width"]].drop_duplicates()
    # [prompts, counted x methods], without prompts that some method has not answered.
    wide = responses.pivot(index="prompt_id", columns=["schedule", "width"], values=list(COUNTED)).dropna()
    if len(wide) < 2:
        raise UserError(f"costs: {len(wide)} prompts were answered by every method there; need at least 2.")
    order = [(name, *method) for method in methods.itertuples(index=False, name=None) for name in COUNTED]
    per_prompt = wide[order].to_numpy(dtype=np.float64)
    draws = resampled_totals(per_prompt)
    totals = [Statistic(per_prompt[:, column].sum(), draws[:, column]) for column in range(per_prompt.shape[1])]
    own = [totals[start : start + len(COUNTED)] for start in range(0, len(totals), len(COUNTED))]
    names = (Method(*method) for method in methods.itertuples(index=False, name=None))
    measured = [Measured(method, len(wide), *one) for method, one in zip(names, own, strict=True)]
    return Table(
        name="confirmation",
        title="Measured, beside the fastest Packed and Quadratic",
        columns=[*MEASURED, *(_over(rival, _fastest(rival, measured)) for rival in ENDS)],
        items=measured,
        notes=[f"Measured, interleaved where they are of one run. Brackets: {INTERVALS}."],
    )


def _fastest(schedule: str, measured: Sequence[Measured]) -> Measured | None:
    """Its width with the most tokens/s; None where it was not measured."""
    widths = [one for one in measured if one.method.schedule == schedule]
    return max(widths, key=lambda one: one.throughput.value, default=None)


def _over(schedule: str, rival: Measured | None) -> Column:
    """Tokens/s over those of a rival, which is a width of `schedule`; dashes where there is none."""
    name = look(schedule).label + (f" W = {rival.method.width}" if rival else "")
    return Column(
        f"Tokens/s / {name}",
        "",
        lambda one: rival and (one.throughput / rival.throughput).estimate(),
        decimals=3,
        is_interval=True,
    )
