"""Calls, rows and tokens of a regular iteration, as recorded: what table 2 gives by formula (figure 1, D.3).

What a response spends before its first regular iteration is taken off: the prompt's rows and, where a schedule starts
from a full draft, the rows or the call that propose it (E.2).
"""

from typing import NamedTuple

import numpy as np

from harness.analysis.measures.layout_rows import start
from harness.analysis.study.cells import Method
from harness.analysis.study.paired import PairedCell
from harness.analysis.style import row_of


class Recorded(NamedTuple):
    """Means over all regular iterations of a method.

    Attributes:
      calls: forward passes.
      rows: token rows evaluated, padding included.
      tokens: emitted.
      selected, updated: rows that a proposal-only adapter changed, and rows that its update was computed for.
    """

    calls: float
    rows: float
    tokens: float
    selected: float
    updated: float


def recorded(cell: PairedCell, method: Method) -> Recorded | None:
    """The means; None where no response came to a regular iteration."""
    begun = start(cell.family, method.schedule, method.width, cell.key.temperature == 0)
    records = cell.records(method)
    iterations = np.array([len(accepted) - begun.iterations for accepted in records["accepted"]], dtype=np.int64)
    regular = records[iterations > 0]
    if regular.empty:
        return None
    # What a response spent before its regular iterations is taken off.
    has_adapter = regular["adapter"].notna()
    selected = begun.selected * has_adapter
    updates_prompt = begun.updates_prompt and not cell.key.adapter_mode
    prompt = regular["prompt_tokens"] * has_adapter if updates_prompt else 0
    spent = (
        (regular["nfe"] - begun.calls).sum(),
        (regular["rows"] - regular["prompt_tokens"] - begun.rows).sum(),
        sum(int(accepted[begun.iterations :].sum()) for accepted in regular["accepted"]),
        (regular["adapter_rows_selected"] - selected).sum(),
        (regular["adapter_rows_evaluated"] - selected - prompt).sum(),
    )
    return Recorded(*(float(total / iterations[iterations > 0].sum()) for total in spent))


def model_ms_per_iteration(cell: PairedCell | None, method: Method) -> float | None:
    """Model execution time of an iteration, in milliseconds.

    Model time per NFE times calls per iteration: records carry no time of the single call, so the prompt's call is
    taken to last as long as any other of the response.
    """
    per_nfe = cell.value("model_per_nfe_s", method) if cell else None
    calls = row_of(method.schedule).calls
    return None if per_nfe is None or calls is None else 1000 * per_nfe * calls
