"""Tables 2, 3 and 5: what an iteration costs, and what block size is fastest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from harness.analysis.measures.iterations import Recorded, model_ms_per_iteration, recorded
from harness.analysis.measures.layout_rows import SETDLM, Cost, cost
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import NotMeasured, methods_in_order
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import SCHEDULES, ScheduleRow, look, row_of
from harness.analysis.table import Column, Table
from harness.analysis.tables.columns import (
    ACCURACY,
    METHOD,
    MODEL,
    NFE,
    PROMPTS,
    SCORED,
    TASK,
    TEMPERATURE,
    THROUGHPUT,
    TOKENS,
    WALL,
    WIDTH,
    MethodLine,
    lines_of,
    measured,
)


class FormulaLine(NamedTuple):
    """A schedule whose row says what an iteration costs in general."""

    schedule: str
    row: ScheduleRow

    def setdlm_rows(self, window: int) -> int:
        """Rows of SetDLM's iteration in a full window."""
        return cost(SETDLM, self.schedule, window, {}).rows


@dataclass(frozen=True)
class IterationLine(MethodLine):
    """With what an iteration costs.

    Attributes:
      base: the same cell without an adapter, where that was run.
    """

    base: PairedCell | None = None

    @property
    def calls(self) -> int | None:
        """Of an iteration, by construction; None where the schedule is not the paper's."""
        return row_of(self.schedule).calls

    @cached_property
    def formula(self) -> Cost | None:
        """By layout; None where there is no formula."""
        return cost(self.place.family, self.schedule, self.method.width, self.cell.measured[self.method].config)

    @cached_property
    def recorded(self) -> Recorded | None:
        """Means over all iterations; None where there was none."""
        return recorded(self.cell, self.method)


# Of a `FormulaLine`.
FORMULAS = (
    Column("Method", "", lambda line: line.row.look.label),
    Column("NFE/iteration", "", lambda line: line.row.calls),
    Column("Nemotron rows", "", lambda line: line.row.forms.nemotron),
    Column("SetDLM rows, W = 8", "", lambda line: line.setdlm_rows(8)),
    Column("SetDLM rows, W = 16", "", lambda line: line.setdlm_rows(16)),
    Column("SetDLM rows", "", lambda line: line.row.forms.setdlm),
)
# Of an `IterationLine`.
ITERATIONS = (
    MODEL,
    TASK,
    TEMPERATURE,
    METHOD,
    WIDTH,
    Column("NFE/iteration", "", lambda line: line.calls),
    Column("recorded", "", lambda line: line.recorded and line.recorded.calls, decimals=3),
    Column("Rows/iteration", "", lambda line: line.formula and line.formula.rows),
    Column("rows recorded", "", lambda line: line.recorded and line.recorded.rows, decimals=1),
)
# Of an `IterationLine`.
PROBED = (
    MODEL,
    TASK,
    TEMPERATURE,
    METHOD,
    Column("B", "", lambda line: line.method.width + 1),
    Column("Rows/call", "", lambda line: line.formula and line.formula.rows_per_call),
    PROMPTS,
    TOKENS,
    WALL,
    NFE,
    THROUGHPUT,
    replace(ACCURACY, decimals=1),
    SCORED,
)
# Of an `IterationLine` with an adapter.
ADAPTED = (
    MODEL,
    TASK,
    TEMPERATURE,
    METHOD,
    WIDTH,
    measured("Iterations", "", "iterations_per_response", decimals=2),
    Column("Rows", "", lambda line: line.formula and line.formula.rows),
    Column("Selected", "", lambda line: line.formula and line.formula.selected),
    Column("Evaluated", "", lambda line: line.formula and line.formula.updated),
    Column("Selected, recorded", "", lambda line: line.recorded and line.recorded.selected, decimals=1),
    Column("Evaluated, recorded", "", lambda line: line.recorded and line.recorded.updated, decimals=1),
    Column("Base", "ms", lambda line: model_ms_per_iteration(line.base, line.method), decimals=2),
    Column("Adapter", "ms", lambda line: model_ms_per_iteration(line.cell, line.method), decimals=2),
)


def table2(study: Study) -> Table:
    """Rows and calls of an iteration, by formula; needs no records."""
    return Table(
        name="table02",
        title="Table 2: execution cost of an iteration with cached prompt",
        columns=FORMULAS,
        items=[FormulaLine(schedule, row) for schedule, row in SCHEDULES.items() if row.forms],
        notes=[
            "Rows evaluated in an iteration, padding included, all calls together. B = W + 1; u unresolved positions "
            "in the window, p = 1 where an accepted token is not cached yet. By formula; table02_measured has what "
            "was run."
        ],
        grouped_by=6,
    )


def table2_measured(study: Study) -> Table:
    """The same for every method that was run, beside what its records say."""
    if not study.main:
        raise NotMeasured("no records")
    return Table(
        name="table02_measured",
        title="Table 2, measured: calls and rows of an iteration, by formula and as recorded",
        columns=ITERATIONS,
        items=[line for cell in study.main for line in lines_of(cell, IterationLine)],
        notes=[
            "Recorded: means over all iterations after the prompt's call and the first draft (E.2). SetDLM's formula "
            "is for a full window with p = 1; windows shrink as positions are resolved and at the end.",
            provenance(study.main),
        ],
        grouped_by=3,
    )


def table3(study: Study) -> Table:
    """The block-size probe: every cell in which a schedule was run at several widths."""
    if not study.probes:
        raise NotMeasured("no schedule was run at more than one width on the same model and task")
    return Table(
        name="table03",
        title="Table 3: block-size probe",
        columns=PROBED,
        items=[
            replace(line, is_best=line.method in best)
            for cell, best in ((cell, _fastest(cell)) for cell in study.probes)
            for line in lines_of(cell, IterationLine)
        ],
        notes=[
            "Every row of a model and task uses the same prompts. Tokens, wall time and NFE are means per response, "
            "prompt processing included; tokens/s is a ratio of totals. Rows/call is the largest call after the "
            "first. Bold marks each method's fastest block size.",
            provenance(study.probes),
        ],
        grouped_by=4,
    )


def fastest_blocks(study: Study) -> Sequence[str]:
    """Each probe's fastest block size of every schedule, in words."""
    several = len(study.probes) > 1
    return [
        (f"{cell.key}: " if several else "") + f"{look(method.schedule).label} B = {method.width + 1}"
        for cell in study.probes
        for method in methods_in_order(_fastest(cell))
    ]


def table5(study: Study) -> Table:
    """Model time of an iteration with and without an adapter, beside the rows that the adapter touches."""
    if not study.adapters:
        raise NotMeasured("no records with an adapter")
    return Table(
        name="table05",
        title="Table 5: model execution time of an iteration with a proposal-only adapter",
        columns=ADAPTED,
        items=[line for pair in study.adapters for line in lines_of(pair.adapted, IterationLine, base=pair.base)],
        notes=[
            "Linear-SS's iteration holds both calls. Iterations: mean after the first call, with the adapter. "
            "Selected rows receive the adapter's update, evaluated rows have it computed: by layout, and as recorded "
            "after the first draft. Time of an iteration is model time per NFE times calls per iteration.",
            provenance(cell for pair in study.adapters for cell in pair if cell),
        ],
        grouped_by=3,
    )


def _fastest(cell: PairedCell) -> Sequence[Method]:
    """For each schedule the width with the highest throughput."""
    return [
        max((m for m in cell.methods if m.schedule == schedule), key=lambda m: cell.value("throughput", m))
        for schedule in dict.fromkeys(method.schedule for method in cell.methods)
    ]
