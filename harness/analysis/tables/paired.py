"""Tables 10 to 13: paired comparisons of Packed-SS with its baselines, with intervals (F.5 to F.7)."""

from collections.abc import Sequence

from harness.analysis.bootstrap import Statistic
from harness.analysis.study.cells import LEFT_TO_RIGHT
from harness.analysis.study.grid import INTERVALS, NotMeasured, Place, grid
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import WINDOWED, Study
from harness.analysis.style import ORDERS, RIVALS, SUBJECT, look, model_label, task_label
from harness.analysis.table import Column, Entry, Number, Ranged, Table


def table10(study: Study) -> Table:
    """SetDLM: wall time and throughput in each window and order."""
    cells = [s for s in study.cells(0.0) if s.family == WINDOWED and _is_compared(s)]
    _need(cells, "a SetDLM model at temperature 0")
    rows = []
    for order in sorted({s.key.order for s in cells}, key=lambda order: (order != LEFT_TO_RIGHT, order)):
        for place in grid(s for s in cells if s.key.order == order):
            leading = (model_label(place.model), task_label(place.task), Number(place.window), ORDERS.get(order, order))
            rows += [(*leading, *row) for row in _efficiency(place)]
    return Table(
        name="table10",
        title="Table 10: paired SetDLM efficiency comparisons",
        columns=[Column("Model"), Column("Task"), Column("Window"), Column("Order"), *_EFFICIENCY],
        rows=rows,
        notes=[_EXPLAINED, provenance(cells)],
        grouped_by=4,
    )


def table11(study: Study) -> Table:
    """Accuracy differences of the families that verify left to right alone, at every temperature."""
    cells = [s for s in study.cells(order=LEFT_TO_RIGHT) if s.family != WINDOWED and _is_compared(s)]
    graded = [s for s in cells if any(s.value("accuracy", method) is not None for method in s.methods)]
    _need(graded, "a task that is graded")
    rows = []
    for temperature in sorted({s.key.temperature for s in graded}):
        for place in grid(s for s in graded if s.key.temperature == temperature):
            differences = [_difference(place.cell, "accuracy", baseline, 100) for baseline in RIVALS]
            rows.append((f"{temperature:g}", model_label(place.model), task_label(place.task), *differences))
    names = [f"{look(SUBJECT).label} minus {look(baseline).label} (points)" for baseline in RIVALS]
    return Table(
        name="table11",
        title="Table 11: paired accuracy differences",
        columns=[Column("T"), Column("Model"), Column("Task"), *(Column(name, is_interval=True) for name in names)],
        rows=rows,
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


_EFFICIENCY = (
    Column("Baseline"),
    Column("n"),
    Column("Wall difference (s)", is_interval=True),
    Column("Throughput ratio", is_interval=True),
    Column("Tokens/NFE ratio", is_interval=True),
    Column("Time/NFE ratio", is_interval=True),
)
_EXPLAINED = (
    f"Wall differences are {look(SUBJECT).label} minus baseline, mean per response; ratios are {look(SUBJECT).label} / "
    f"baseline. Brackets: {INTERVALS}."
)


def _comparisons(study: Study, name: str, temperature: float) -> Table:
    cells = [s for s in study.cells(temperature, LEFT_TO_RIGHT) if s.family != WINDOWED and _is_compared(s)]
    _need(cells, f"temperature {temperature:g}")
    rows = [
        (model_label(place.model), task_label(place.task), *row) for place in grid(cells) for row in _efficiency(place)
    ]
    return Table(
        name=name,
        title=f"Table {12 if temperature == 0 else 13}: paired efficiency comparisons at temperature {temperature:g}",
        columns=[Column("Model"), Column("Task"), *_EFFICIENCY],
        rows=rows,
        notes=[f"{_EXPLAINED} Negative differences and ratios above one favour it.", provenance(cells)],
        grouped_by=2,
    )


def _efficiency(place: Place) -> Sequence[Sequence[Entry]]:
    cell = place.cell
    return [
        (
            look(baseline).label,
            Number(len(cell.prompt_ids) if cell else None),
            _difference(cell, "wall_per_response_s", baseline, 1),
            *(_ratio(cell, metric, baseline) for metric in ("throughput", "tokens_per_nfe", "time_per_nfe_s")),
        )
        for baseline in RIVALS
    ]


def _difference(cell: PairedCell | None, metric: str, baseline: str, factor: float) -> Ranged:
    if cell is None:
        return _ranged(None)
    statistic = cell.difference(metric, cell.method(SUBJECT), cell.method(baseline))
    return _ranged(statistic and statistic.scaled(factor), decimals=4 if factor == 1 else 2)


def _ratio(cell: PairedCell | None, metric: str, baseline: str) -> Ranged:
    return _ranged(cell and cell.ratio(metric, cell.method(SUBJECT), cell.method(baseline)))


def _ranged(statistic: Statistic | None, decimals: int = 3) -> Ranged:
    return Ranged(statistic.estimate() if statistic else None, decimals)


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
