"""Tables 4 and 6 to 9: absolute measurements, means per response and rates from totals (F.2, F.4, F.5)."""

from collections.abc import Sequence

from harness.analysis.study.cells import LEFT_TO_RIGHT, NATIVE, Method
from harness.analysis.study.grid import NotMeasured, Place, grid, methods_in_order, schedules_of
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import WINDOWED, Study
from harness.analysis.style import ORDERS, look, model_label, task_label
from harness.analysis.table import Column, Entry, Number, Table

_MEASURED = ("Tokens", "Wall (s)", "NFE", "Tokens/s", "Tokens/NFE", "Time/NFE (ms)", "Accuracy (%)")
_DETAILS = ("Responses", "Cap", "Device", "Dtype", "Engine", "Code")
_MEANS = "Tokens, wall time and NFE are means per response; rates are ratios of totals."


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
    rows = [row for place in grid(cells) for row in _rows(place, schedules_of(cells))]
    return Table(
        name="table08",
        title="Table 8: SetDLM absolute measurements, left-to-right verification and native decoding",
        columns=_columns("Model", "Task", "Window"),
        rows=rows,
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
    rows = []
    for order, cells in by_order.items():
        # Native decoding has no order; it stands with left-to-right verification.
        schedules = [name for name in schedules_of(cells) if name != NATIVE or order == LEFT_TO_RIGHT]
        rows += [(ORDERS.get(order, order), *row) for place in grid(cells) for row in _rows(place, schedules)]
    every = [cell for cells in by_order.values() for cell in cells]
    return Table(
        name="table09",
        title="Table 9: SetDLM absolute measurements by verification order",
        columns=_columns("Order", "Model", "Task", "Window"),
        rows=rows,
        notes=[f"{_MEANS} Bold marks the highest tokens/s within each window and order.", provenance(every)],
        grouped_by=4,
    )


def table4(study: Study) -> Table:
    """With and without a proposal-only adapter, model and non-model time apart."""
    if not study.adapters:
        raise NotMeasured("no records with an adapter")
    rows: list[Sequence[Entry]] = []
    for pair in study.adapters:
        for cell in pair:
            rows += _adapter_rows(cell) if cell else []
    names = ("Tokens", "NFE", "Model (s)", "Non-model (s)", "Wall (s)", "Tokens/s", "Accuracy (%)")
    return Table(
        name="table04",
        title="Table 4: decoding with a proposal-only adapter",
        columns=[Column(name) for name in ("Model", "Task", "T", "Adapter", "Method", "W", "n", *names)],
        rows=rows,
        notes=[
            "Means per response; model execution time and non-model decoder time add up to wall time. Tokens/s is a "
            "ratio of totals; bold marks the highest with the same adapter.",
            provenance(cell for pair in study.adapters for cell in pair if cell),
        ],
        grouped_by=4,
    )


def _absolute(study: Study, name: str, title: str, temperature: float) -> Table:
    cells = [s for s in study.cells(temperature, LEFT_TO_RIGHT) if s.family != WINDOWED]
    if not cells:
        raise NotMeasured(f"no records at temperature {temperature:g}")
    rows = [_without_window(row) for place in grid(cells) for row in _rows(place, schedules_of(cells))]
    return Table(
        name=name,
        title=title,
        columns=_columns("Model", "Task"),
        rows=rows,
        notes=[f"{_MEANS} Bold marks the highest tokens/s within each model and task.", provenance(cells)],
        grouped_by=2,
    )


def _columns(*leading: str) -> Sequence[Column]:
    shown = [Column(name) for name in (*leading, "Method", "W", "n", *_MEASURED)]
    return [*shown, *(Column(name, is_detail=True) for name in _DETAILS)]


def _without_window(row: Sequence[Entry]) -> Sequence[Entry]:
    return (*row[:2], *row[3:])


def _rows(place: Place, schedules: Sequence[str]) -> Sequence[Sequence[Entry]]:
    """One row for each schedule of a place; dashes where it has not been run."""
    cell = place.cell
    rates = {name: cell.value("throughput", cell.method(name)) if cell else None for name in schedules}
    best = max((rate for rate in rates.values() if rate is not None), default=None)
    rows = []
    for name in schedules:
        method = cell.method(name) if cell else None
        leading = (model_label(place.model), task_label(place.task), Number(place.window), look(name).label)
        rows.append((*leading, *_measured(cell, method, rates[name] == best)))
    return rows


def _measured(cell: PairedCell | None, method: Method | None, is_best: bool) -> Sequence[Entry]:
    if cell is None or method is None:
        return [Number(None)] * (2 + len(_MEASURED)) + [""] * len(_DETAILS)
    facts = [" / ".join(sorted(set(values))) for values in zip(*cell.measured[method].facts, strict=True)]
    device, dtype, code, engine, _ = facts
    return (
        Number(method.width or None),
        Number(len(cell.prompt_ids)),
        Number(cell.value("tokens_per_response", method), 1),
        Number(cell.value("wall_per_response_s", method), 3),
        Number(cell.value("nfe_per_response", method), 2),
        Number(cell.value("throughput", method), 1, bold=is_best),
        Number(cell.value("tokens_per_nfe", method), 3),
        Number(_scaled(cell.value("time_per_nfe_s", method), 1000), 2),
        Number(_scaled(cell.value("accuracy", method), 100), 2),
        Number(cell.responses),
        Number(cell.key.max_new_tokens),
        device,
        dtype,
        engine,
        code,
    )


def _adapter_rows(cell: PairedCell) -> Sequence[Sequence[Entry]]:
    rates = {method: cell.value("throughput", method) for method in cell.methods}
    return [
        (
            model_label(cell.key.base_model),
            task_label(cell.key.task),
            f"{cell.key.temperature:g}",
            " ".join(filter(None, (cell.key.adapter, cell.key.adapter_mode))) or "none",
            look(method.schedule).label,
            Number(method.width or None),
            Number(len(cell.prompt_ids)),
            Number(cell.value("tokens_per_response", method), 1),
            Number(cell.value("nfe_per_response", method), 2),
            Number(cell.value("model_per_response_s", method), 3),
            Number(cell.value("non_model_per_response_s", method), 3),
            Number(cell.value("wall_per_response_s", method), 3),
            Number(rates[method], 1, bold=rates[method] == max(rates.values())),
            Number(_scaled(cell.value("accuracy", method), 100), 2),
        )
        for method in methods_in_order(cell.methods)
    ]


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value
