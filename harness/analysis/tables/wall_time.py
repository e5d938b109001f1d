"""Wall time per response: its spread."""

from collections.abc import Sequence

from harness.analysis.measures.distributions import PERCENTILES, wall_percentiles
from harness.analysis.study.grid import NotMeasured, cell_label, methods_in_order
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import ORDERS, look, model_label
from harness.analysis.table import Column, Entry, Number, Table


def wall_table(study: Study) -> Table:
    """Wall time per response: its spread, for every main cell and method."""
    if not study.main:
        raise NotMeasured("no records")
    rows: list[Sequence[Entry]] = [
        (
            model_label(cell.key.model),
            cell_label(cell),
            f"{cell.key.temperature:g}",
            ORDERS.get(cell.key.order, cell.key.order),
            look(method.schedule).label,
            Number(cell.responses),
            Number(cell.value("wall_per_response_s", method), 3),
            *(Number(value, 3) for value in wall_percentiles(cell, method)),
        )
        for cell in study.main
        for method in methods_in_order(cell.methods)
    ]
    names = ("Model", "Task", "T", "Order", "Method", "Responses", "Mean (s)", *(f"p{p} (s)" for p in PERCENTILES))
    return Table(
        name="wall_percentiles",
        title="Wall time per response",
        columns=[Column(name) for name in names],
        rows=rows,
        notes=["Percentiles over responses, linearly interpolated.", provenance(study.main)],
        grouped_by=4,
    )
