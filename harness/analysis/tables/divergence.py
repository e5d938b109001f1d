"""Tables of greedy outputs that differ between schedules (F.6): how many, and each first difference."""

from collections.abc import Sequence
from statistics import median

from harness.analysis.measures.divergence import trajectories
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import NotMeasured, cell_label
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import ORDERS, in_order, look, model_label
from harness.analysis.table import Column, Entry, Number, Table
from harness.records.metrics import BASELINE


def trajectory_table(study: Study) -> Table:
    """Every greedy cell, every method beside the baseline, which is Linear-SS, or the first method without it."""
    cells = [s for s in study.cells(0.0) if len(s.methods) > 1]
    if not cells:
        raise NotMeasured("no greedy records of two schedules on the same prompts")
    rows: list[Sequence[Entry]] = []
    for cell in cells:
        baseline = _baseline(cell)
        for schedule in in_order(method.schedule for method in cell.methods if method != baseline):
            found = trajectories(cell, baseline, cell.method(schedule))
            positions = [divergence.position for divergence in found.divergences]
            gaps = [divergence.gap for divergence in found.divergences if divergence.gap is not None]
            rows.append(
                (
                    model_label(cell.key.model),
                    cell_label(cell),
                    ORDERS.get(cell.key.order, cell.key.order),
                    f"{look(schedule).label} / {look(baseline.schedule).label}",
                    Number(found.compared),
                    Number(len(positions)),
                    Number(min(positions, default=None)),
                    Number(median(positions) if positions else None, 1),
                    Number(median(gaps) if gaps else None, 4),
                    Number(len(gaps)),
                    Number(found.labels_differ if _is_graded(cell) else None),
                )
            )
    names = (
        "Model",
        "Task",
        "Order",
        "Outputs of",
        "n",
        "Diverge",
        "First",
        "Median position",
        "Median gap",
        "Gaps known",
    )
    return Table(
        name="trajectories",
        title="Output trajectories under greedy decoding (F.6)",
        columns=[Column(name) for name in (*names, "Labels differ")],
        rows=rows,
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
    rows: list[Sequence[Entry]] = []
    cells = [s for s in study.cells(0.0) if len(s.methods) > 1]
    for cell in cells:
        baseline = _baseline(cell)
        for schedule in in_order(method.schedule for method in cell.methods if method != baseline):
            for divergence in trajectories(cell, baseline, cell.method(schedule)).divergences:
                rows.append(
                    (
                        model_label(cell.key.model),
                        cell_label(cell),
                        ORDERS.get(cell.key.order, cell.key.order),
                        f"{look(schedule).label} / {look(baseline.schedule).label}",
                        divergence.prompt_id,
                        Number(divergence.position),
                        *(Number(token) for token in divergence.tokens),
                        Number(divergence.gap, 4),
                    )
                )
    if not rows:
        raise NotMeasured(
            "no two greedy outputs for the same prompt differ" if cells else "no two schedules to compare"
        )
    names = ("Model", "Task", "Order", "Outputs of", "Prompt", "Position", "Baseline token", "Token", "Logit gap")
    return Table(
        name="divergences",
        title="First differences between greedy outputs (F.6)",
        columns=[Column(name) for name in names],
        rows=rows,
        notes=["Token ids; a dash where an output has ended, or where no gap was replayed.", provenance(cells)],
        grouped_by=4,
    )


def _baseline(cell: PairedCell) -> Method:
    return cell.method(BASELINE) or cell.methods[0]


def _is_graded(cell: PairedCell) -> bool:
    return any(cell.value("accuracy", method) is not None for method in cell.methods)
