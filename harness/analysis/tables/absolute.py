"""Tables 4 and 6 to 9: absolute measurements, means per response and rates from totals (F.2, F.4, F.5)."""

from collections.abc import Sequence
from dataclasses import replace

from harness.analysis.study.cells import LEFT_TO_RIGHT, NATIVE
from harness.analysis.study.grid import NotMeasured, Place, grid, schedules_of
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import WINDOWED, Study
from harness.analysis.table import Column, Table
from harness.analysis.tables.columns import (
    ACCURACY,
    METHOD,
    MODEL,
    NFE,
    ORDER,
    PROMPTS,
    RESPONSES,
    SCORED,
    TASK,
    TEMPERATURE,
    THROUGHPUT,
    TIME_PER_NFE,
    TOKENS,
    TOKENS_PER_NFE,
    WALL,
    WIDTH,
    WINDOW,
    MethodLine,
    lines_of,
    measured,
)


def _fact(heading: str, name: str) -> Column:
    """One of the facts about a method's records; all of them, where they are of several."""
    return Column(heading, "", lambda line: " / ".join(_facts(line, name)), is_detail=True)


def _facts(line: MethodLine, name: str) -> Sequence[str]:
    facts = line.cell.measured[line.method].facts if line.is_measured else ()
    return sorted({getattr(one, name) for one in facts})


# Of a `MethodLine`; tables 6 to 9 have them behind the columns that say where.
MEASURED = (
    METHOD,
    WIDTH,
    PROMPTS,
    TOKENS,
    WALL,
    NFE,
    THROUGHPUT,
    TOKENS_PER_NFE,
    TIME_PER_NFE,
    ACCURACY,
    SCORED,
    replace(RESPONSES, is_detail=True),
    Column("Cap", "", lambda line: line.cell.key.max_new_tokens if line.is_measured else None, is_detail=True),
    _fact("Device", "device"),
    _fact("Dtype", "dtype"),
    _fact("Engine", "engine"),
    _fact("Code", "code"),
)
# Table 4's, of a `MethodLine`.
ADAPTED = (
    MODEL,
    TASK,
    TEMPERATURE,
    Column("Adapter", "", lambda line: _adapter(line.cell)),
    METHOD,
    WIDTH,
    PROMPTS,
    TOKENS,
    NFE,
    measured("Model", "s", "model_per_response_s", decimals=3),
    measured("Non-model", "s", "non_model_per_response_s", decimals=3),
    WALL,
    THROUGHPUT,
    ACCURACY,
    SCORED,
)
_MEANS = (
    "Tokens, wall time and NFE are means per response; rates are ratios of totals. Accuracy is over the responses that "
    "every method has a verdict on."
)


def table6(study: Study) -> Table:
    """Greedy decoding."""
    return _absolute(study, "table06", "Table 6: absolute measurements at temperature 0", 0.0)


def table7(study: Study, temperature: float = 1.0) -> Table:
    """Sampling; the paper's at temperature 1."""
    name = "table07" if temperature == 1 else f"table07_t{temperature:g}"
    return _absolute(study, name, f"Table 7: absolute measurements at temperature {temperature:g}", temperature)


def table8(study: Study) -> Table:
    """SetDLM, left-to-right verification and native decoding."""
    cells = [s for s in study.cells(0.0, LEFT_TO_RIGHT) if s.family == WINDOWED]
    if not cells:
        raise NotMeasured("no greedy records of a SetDLM model with left-to-right verification")
    return Table(
        name="table08",
        title="Table 8: SetDLM absolute measurements, left-to-right verification and native decoding",
        columns=[MODEL, TASK, WINDOW, *MEASURED],
        items=_lines(cells, schedules_of(cells)),
        notes=[f"{_MEANS} Bold marks the highest tokens/s within each window.", provenance(cells)],
        grouped_by=3,
    )


def table9(study: Study) -> Table:
    """SetDLM in every verification order."""
    by_order = {
        order: [s for s in study.cells(0.0, order) if s.family == WINDOWED]
        for order in sorted({s.key.order for s in study.main}, key=lambda order: (order != LEFT_TO_RIGHT, order))
    }
    by_order = {order: cells for order, cells in by_order.items() if cells}
    if not by_order:
        raise NotMeasured("no greedy records of a SetDLM model")
    lines: list[MethodLine] = []
    for order, cells in by_order.items():
        # Native decoding has no order; it stands with left-to-right verification.
        lines += _lines(cells, [name for name in schedules_of(cells) if name != NATIVE or order == LEFT_TO_RIGHT])
    every = [cell for cells in by_order.values() for cell in cells]
    return Table(
        name="table09",
        title="Table 9: SetDLM absolute measurements by verification order",
        columns=[ORDER, MODEL, TASK, WINDOW, *MEASURED],
        items=lines,
        notes=[f"{_MEANS} Bold marks the highest tokens/s within each window and order.", provenance(every)],
        grouped_by=4,
    )


def table4(study: Study) -> Table:
    """With and without a proposal-only adapter, model and non-model time apart."""
    if not study.adapters:
        raise NotMeasured("no records with an adapter")
    cells = [cell for pair in study.adapters for cell in pair if cell]
    return Table(
        name="table04",
        title="Table 4: decoding with a proposal-only adapter",
        columns=ADAPTED,
        items=[line for cell in cells for line in _marked(lines_of(cell))],
        notes=[
            "Means per response; model execution time and non-model decoder time add up to wall time. Tokens/s is a "
            "ratio of totals; bold marks the highest with the same adapter.",
            provenance(cells),
        ],
        grouped_by=4,
    )


def _absolute(study: Study, name: str, title: str, temperature: float) -> Table:
    cells = [s for s in study.cells(temperature, LEFT_TO_RIGHT) if s.family != WINDOWED]
    if not cells:
        raise NotMeasured(f"no records at temperature {temperature:g}")
    return Table(
        name=name,
        title=title,
        columns=[MODEL, TASK, *MEASURED],
        items=_lines(cells, schedules_of(cells)),
        notes=[f"{_MEANS} Bold marks the highest tokens/s within each model and task.", provenance(cells)],
        grouped_by=2,
    )


def _lines(cells: Sequence[PairedCell], schedules: Sequence[str]) -> Sequence[MethodLine]:
    """A line for each schedule of each place, also where it has not been run."""
    return [line for place in grid(cells) for line in _marked([_line(place, name) for name in schedules])]


def _line(place: Place, schedule: str) -> MethodLine:
    return MethodLine(place, schedule, place.cell.method(schedule) if place.cell else None)


def _marked(lines: Sequence[MethodLine]) -> Sequence[MethodLine]:
    """The same with the fastest marked."""
    rates = [line.value("throughput") for line in lines]
    best = max((rate for rate in rates if rate is not None), default=None)
    return [replace(line, is_best=rate is not None and rate == best) for line, rate in zip(lines, rates, strict=True)]


def _adapter(cell: PairedCell) -> str:
    return " ".join(filter(None, (cell.key.adapter, cell.key.adapter_mode))) or "none"
