"""Tables 10 to 13: paired comparisons of Packed-SS with its baselines, with intervals (F.5 to F.7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.analysis.study.cells import LEFT_TO_RIGHT
from harness.analysis.study.grid import INTERVALS, NotMeasured, grid
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import WINDOWED, Study
from harness.analysis.style import RIVALS, SUBJECT, look
from harness.analysis.table import Column, Table
from harness.analysis.tables.columns import MODEL, ORDER, PROMPTS, TASK, TEMPERATURE, WINDOW, Line
from harness.records.bootstrap import Estimate


@dataclass(frozen=True)
class PairLine(Line):
    """The subject and a baseline in a place."""

    baseline: str

    def difference(self, metric: str, factor: float = 1.0) -> Estimate | None:
        """The subject's minus the baseline's, in a unit of `factor` to the metric's own."""
        return _difference(self.cell, metric, self.baseline, factor)

    def ratio(self, metric: str) -> Estimate | None:
        """The subject's as a multiple of the baseline's."""
        cell = self.cell
        found = cell and cell.ratio(metric, cell.method(SUBJECT), cell.method(self.baseline))
        return found and found.estimate()


def _ratio(heading: str, metric: str) -> Column:
    return Column(heading, "", lambda line: line.ratio(metric), decimals=3, is_interval=True)


def _accuracy(baseline: str) -> Column:
    heading = f"{look(SUBJECT).label} minus {look(baseline).label}"
    return Column(
        heading, "points", lambda line: _difference(line.cell, "accuracy", baseline, 100), decimals=2, is_interval=True
    )


# Of a `PairLine`; tables 10, 12 and 13 have them behind the columns that say where.
EFFICIENCY = (
    Column("Baseline", "", lambda line: look(line.baseline).label),
    PROMPTS,
    Column("Wall difference", "s", lambda line: line.difference("wall_per_response_s"), decimals=4, is_interval=True),
    _ratio("Throughput ratio", "throughput"),
    _ratio("Tokens/NFE ratio", "tokens_per_nfe"),
    _ratio("Time/NFE ratio", "time_per_nfe_s"),
)
# Table 11's, of a `Line`.
ACCURACIES = (TEMPERATURE, MODEL, TASK, *map(_accuracy, RIVALS))
_EXPLAINED = (
    f"Wall differences are {look(SUBJECT).label} minus baseline, mean per response; ratios are {look(SUBJECT).label} / "
    f"baseline. Brackets: {INTERVALS}."
)


def table10(study: Study) -> Table:
    """SetDLM: wall time and throughput in each window and order."""
    cells = [s for s in study.cells(0.0) if s.family == WINDOWED and _is_compared(s)]
    _need(cells, "a SetDLM model at temperature 0")
    orders = sorted({s.key.order for s in cells}, key=lambda order: (order != LEFT_TO_RIGHT, order))
    return Table(
        name="table10",
        title="Table 10: paired SetDLM efficiency comparisons",
        columns=[MODEL, TASK, WINDOW, ORDER, *EFFICIENCY],
        items=[line for order in orders for line in _pairs(s for s in cells if s.key.order == order)],
        notes=[_EXPLAINED, provenance(cells)],
        grouped_by=4,
    )


def table11(study: Study) -> Table:
    """Accuracy differences of the families that verify left to right alone, at every temperature."""
    cells = [s for s in study.cells(order=LEFT_TO_RIGHT) if s.family != WINDOWED and _is_compared(s)]
    graded = [s for s in cells if any(s.value("accuracy", method) is not None for method in s.methods)]
    _need(graded, "a task that is graded")
    temperatures = sorted({s.key.temperature for s in graded})
    return Table(
        name="table11",
        title="Table 11: paired accuracy differences",
        columns=ACCURACIES,
        items=[Line(place) for t in temperatures for place in grid(s for s in graded if s.key.temperature == t)],
        notes=[f"Percentage points. Brackets: {INTERVALS}.", provenance(graded)],
        grouped_by=2,
    )


def table12(study: Study) -> Table:
    """Efficiency under greedy decoding."""
    return _comparisons(study, "table12", 0.0)


def table13(study: Study, temperature: float = 1.0) -> Table:
    """Efficiency under sampling; the paper's at temperature 1."""
    name = "table13" if temperature == 1 else f"table13_t{temperature:g}"
    return _comparisons(study, name, temperature)


def _comparisons(study: Study, name: str, temperature: float) -> Table:
    cells = [s for s in study.cells(temperature, LEFT_TO_RIGHT) if s.family != WINDOWED and _is_compared(s)]
    _need(cells, f"temperature {temperature:g}")
    return Table(
        name=name,
        title=f"Table {12 if temperature == 0 else 13}: paired efficiency comparisons at temperature {temperature:g}",
        columns=[MODEL, TASK, *EFFICIENCY],
        items=_pairs(cells),
        notes=[f"{_EXPLAINED} Negative differences and ratios above one favour it.", provenance(cells)],
        grouped_by=2,
    )


def _pairs(cells: Iterable[PairedCell]) -> Sequence[PairLine]:
    return [PairLine(place, baseline) for place in grid(cells) for baseline in RIVALS]


def _difference(cell: PairedCell | None, metric: str, baseline: str, factor: float) -> Estimate | None:
    found = cell and cell.difference(metric, cell.method(SUBJECT), cell.method(baseline))
    return found and found.scaled(factor).estimate()


def _is_compared(cell: PairedCell) -> bool:
    """Whether the cell has the subject and something to compare it with, on prompts enough."""
    schedules = {method.schedule for method in cell.methods}
    return cell.is_paired and SUBJECT in schedules and bool(schedules & set(RIVALS))


def _need(cells: Sequence[PairedCell], where: str) -> None:
    if not cells:
        raise NotMeasured(
            f"no records of {look(SUBJECT).label} and {' or '.join(look(name).label for name in RIVALS)} "
            f"on two common prompts: {where}"
        )
