"""Calls, rows and tokens of a regular iteration, as recorded: what table 2 gives by formula (figure 1, D.3).

What a response spends before its first regular iteration is taken off: the prompt's rows and, where a schedule starts
from a full draft, the rows or the call that propose it (E.2).
"""

from typing import NamedTuple

from harness.analysis.measures.layout_rows import Start, start
from harness.analysis.study.cells import Method
from harness.analysis.study.paired import PairedCell
from harness.analysis.style import row_of
from harness.records.record import Record


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
    regular = [record for record in cell.records(method) if len(record.accepted) > begun.iterations]
    iterations = sum(len(record.accepted) - begun.iterations for record in regular)
    if not iterations:
        return None
    spent = zip(*(_regular(record, begun, cell.key.adapter_mode) for record in regular), strict=True)
    return Recorded(*(sum(column) / iterations for column in spent))


def _regular(record: Record, begun: Start, adapter_mode: str) -> tuple[float, ...]:
    """What a response spent in regular iterations."""
    selected = begun.selected if record.adapter else 0
    updates_prompt = record.adapter and begun.updates_prompt and not adapter_mode
    return (
        record.nfe - begun.calls,
        record.rows - record.prompt_tokens - begun.rows,
        sum(record.accepted[begun.iterations :]),
        record.adapter_rows_selected - selected,
        record.adapter_rows_evaluated - selected - (record.prompt_tokens if updates_prompt else 0),
    )


def model_ms_per_iteration(cell: PairedCell | None, method: Method) -> float | None:
    """Model execution time of an iteration, in milliseconds.

    Model time per NFE times calls per iteration: records carry no time of the single call, so the prompt's call is
    taken to last as long as any other of the response.
    """
    per_nfe = cell.value("model_per_nfe_s", method) if cell else None
    calls = row_of(method.schedule).calls
    return None if per_nfe is None or calls is None else 1000 * per_nfe * calls
