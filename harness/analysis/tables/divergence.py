"""Tables of greedy outputs that differ between schedules (F.6): how many, and each first difference."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from harness.analysis.measures.divergence import Divergence, Trajectories, trajectories
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import NotMeasured, place_of
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import in_order, look
from harness.analysis.table import Column, Table
from harness.analysis.tables.columns import MODEL, ORDER, TASK_AND_WINDOW, Line
from harness.records.metrics import BASELINE


@dataclass(frozen=True)
class OutputsLine(Line):
    """The outputs of a schedule beside the baseline's."""

    schedule: str
    baseline: str
    found: Trajectories

    @property
    def positions(self) -> Sequence[int]:
        """Of all first differences, from 1."""
        return [divergence.position for divergence in self.found.divergences]

    @property
    def gaps(self) -> Sequence[float]:
        """Of those that were replayed."""
        return [divergence.gap for divergence in self.found.divergences if divergence.gap is not None]

    @property
    def labels_differ(self) -> int | None:
        """Responses that one has right and the other wrong; None where nothing is graded."""
        is_graded = any(self.cell.value("accuracy", method) is not None for method in self.cell.methods)
        return self.found.labels_differ if is_graded else None


@dataclass(frozen=True)
class DivergenceLine(OutputsLine):
    """One of their first differences."""

    divergence: Divergence


_WHERE = (
    MODEL,
    TASK_AND_WINDOW,
    ORDER,
    Column("Outputs of", "", lambda line: f"{look(line.schedule).label} / {look(line.baseline).label}"),
)
# Of an `OutputsLine`.
TRAJECTORIES = (
    *_WHERE,
    Column("n", "", lambda line: line.found.compared),
    Column("Diverge", "", lambda line: len(line.positions)),
    Column("First", "", lambda line: min(line.positions, default=None)),
    Column("Median position", "", lambda line: float(median(line.positions)) if line.positions else None, decimals=1),
    Column("Median gap", "", lambda line: median(line.gaps) if line.gaps else None, decimals=4),
    Column("Gaps known", "", lambda line: len(line.gaps)),
    Column("Labels differ", "", lambda line: line.labels_differ),
)
# Of a `DivergenceLine`.
DIVERGENCES = (
    *_WHERE,
    Column("Prompt", "", lambda line: line.divergence.prompt_id),
    Column("Position", "", lambda line: line.divergence.position),
    Column("Baseline token", "", lambda line: line.divergence.tokens[0]),
    Column("Token", "", lambda line: line.divergence.tokens[1]),
    Column("Logit gap", "", lambda line: line.divergence.gap, decimals=4),
)


def trajectory_table(study: Study) -> Table:
    """Every greedy cell, every method beside the baseline, which is Linear-SS, or the first method without it."""
    cells = _cells(study)
    if not cells:
        raise NotMeasured("no greedy records of two schedules on the same prompts")
    return Table(
        name="trajectories",
        title="Output trajectories under greedy decoding (F.6)",
        columns=TRAJECTORIES,
        items=[line for cell in cells for line in _lines(cell)],
        notes=[
            "Diverge: responses whose token ids differ; positions count output tokens from 1. Gap: between the top two "
            "logits at the first difference, where it was replayed. Labels differ: right in one, wrong in the other. "
            "Different verification orders are different trajectories even in exact arithmetic.",
            provenance(cells),
        ],
        grouped_by=3,
    )


def divergence_table(study: Study) -> Table:
    """Every first difference: where to look, and what a replay needs."""
    cells = _cells(study)
    lines = [
        DivergenceLine(line.place, line.schedule, line.baseline, line.found, divergence)
        for cell in cells
        for line in _lines(cell)
        for divergence in line.found.divergences
    ]
    if not lines:
        raise NotMeasured(
            "no two greedy outputs for the same prompt differ" if cells else "no two schedules to compare"
        )
    return Table(
        name="divergences",
        title="First differences between greedy outputs (F.6)",
        columns=DIVERGENCES,
        items=lines,
        notes=["Token ids; a dash where an output has ended, or where no gap was replayed.", provenance(cells)],
        grouped_by=4,
    )


def _cells(study: Study) -> Sequence[PairedCell]:
    return [s for s in study.cells(0.0) if len(s.methods) > 1]


def _lines(cell: PairedCell) -> Sequence[OutputsLine]:
    baseline = _baseline(cell)
    return [
        OutputsLine(place_of(cell), name, baseline.schedule, trajectories(cell, baseline, cell.method(name)))
        for name in in_order(method.schedule for method in cell.methods if method != baseline)
    ]


def _baseline(cell: PairedCell) -> Method:
    return cell.method(BASELINE) or cell.methods[0]
