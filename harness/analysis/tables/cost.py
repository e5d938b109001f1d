"""Tables 2, 3 and 5: what an iteration costs, and what block size is fastest."""

from collections.abc import Sequence

from harness.analysis.measures.iterations import model_ms_per_iteration, recorded
from harness.analysis.measures.layout_rows import SETDLM, Cost, cost
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import NotMeasured, methods_in_order, place_of
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import AdapterPair, Study
from harness.analysis.style import SCHEDULES, look, model_label, row_of, task_label
from harness.analysis.table import Column, Entry, Number, Table

_ADAPTER_NAMES = ("Selected, recorded", "Evaluated, recorded")


def table2(study: Study) -> Table:
    """Rows and calls of an iteration, by formula; needs no records."""
    rows: list[Sequence[Entry]] = []
    for schedule, row in SCHEDULES.items():
        if row.forms is None:
            continue
        windows = [cost(SETDLM, schedule, window, {}).rows for window in (8, 16)]
        numbers = [Number(count) for count in windows]
        rows.append((row.look.label, Number(row.calls), row.forms.nemotron, *numbers, row.forms.setdlm))
    return Table(
        name="table02",
        title="Table 2: execution cost of an iteration with cached prompt",
        columns=[
            Column("Method"),
            Column("NFE/iteration"),
            Column("Nemotron rows"),
            Column("SetDLM rows, W = 8"),
            Column("SetDLM rows, W = 16"),
            Column("SetDLM rows"),
        ],
        rows=rows,
        notes=[
            "Rows evaluated in an iteration, padding included, all calls together. B = W + 1; u unresolved positions "
            "in the window, p = 1 where an accepted token is not cached yet. By formula; table02_measured has what "
            "was run."
        ],
        grouped_by=6,
    )


def table2_measured(study: Study) -> Table:
    """The same for every method that was run, beside what its records say."""
    cells = study.main
    rows: list[Sequence[Entry]] = []
    for cell in cells:
        for method in methods_in_order(cell.methods):
            formula = _cost(cell, method)
            measured = recorded(cell, method)
            rows.append(
                (
                    *place_of(cell, method),
                    Number(method.width or None),
                    Number(row_of(method.schedule).calls),
                    Number(measured and measured.calls, 3),
                    Number(formula.rows if formula else None),
                    Number(measured and measured.rows, 1),
                )
            )
    if not rows:
        raise NotMeasured("no records")
    names = ("Model", "Task", "T", "Method", "W", "NFE/iteration", "recorded", "Rows/iteration", "rows recorded")
    return Table(
        name="table02_measured",
        title="Table 2, measured: calls and rows of an iteration, by formula and as recorded",
        columns=[Column(name) for name in names],
        rows=rows,
        notes=[
            "Recorded: means over all iterations after the prompt's call and the first draft (E.2). SetDLM's formula "
            "is for a full window with p = 1; windows shrink as positions are resolved and at the end.",
            provenance(cells),
        ],
        grouped_by=3,
    )


def table3(study: Study) -> Table:
    """The block-size probe: every cell in which a schedule was run at several widths."""
    if not study.probes:
        raise NotMeasured("no schedule was run at more than one width on the same model and task")
    rows: list[Sequence[Entry]] = []
    for cell in study.probes:
        rates = {method: cell.value("throughput", method) for method in cell.methods}
        best = _fastest(cell)
        for method in methods_in_order(cell.methods):
            formula = _cost(cell, method)
            accuracy = cell.value("accuracy", method)
            rows.append(
                (
                    *place_of(cell, method),
                    Number(method.width + 1),
                    Number(formula.rows_per_call if formula else None),
                    Number(len(cell.prompt_ids)),
                    Number(cell.value("tokens_per_response", method), 1),
                    Number(cell.value("wall_per_response_s", method), 3),
                    Number(cell.value("nfe_per_response", method), 2),
                    Number(rates[method], 1, bold=method in best),
                    Number(None if accuracy is None else 100 * accuracy, 1),
                )
            )
    names = ("Model", "Task", "T", "Method", "B", "Rows/call", "n", "Tokens", "Wall (s)", "NFE", "Tokens/s")
    return Table(
        name="table03",
        title="Table 3: block-size probe",
        columns=[Column(name) for name in (*names, "Accuracy (%)")],
        rows=rows,
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
    rows = [row for pair in study.adapters for row in _adapter_rows(pair)]
    names = ("Model", "Task", "T", "Method", "W", "Iterations", "Rows", "Selected", "Evaluated", *_ADAPTER_NAMES)
    return Table(
        name="table05",
        title="Table 5: model execution time of an iteration with a proposal-only adapter",
        columns=[Column(name) for name in (*names, "Base (ms)", "Adapter (ms)")],
        rows=rows,
        notes=[
            "Linear-SS's iteration holds both calls. Iterations: mean after the first call, with the adapter. "
            "Selected rows receive the adapter's update, evaluated rows have it computed: by layout, and as recorded "
            "after the first draft. Time of an iteration is model time per NFE times calls per iteration.",
            provenance(cell for pair in study.adapters for cell in pair if cell),
        ],
        grouped_by=3,
    )


def _adapter_rows(pair: AdapterPair) -> Sequence[Sequence[Entry]]:
    cell = pair.adapted
    rows = []
    for method in methods_in_order(cell.methods):
        formula = _cost(cell, method)
        by_layout = (formula.rows, formula.selected, formula.updated) if formula else (None,) * 3
        measured = recorded(cell, method)
        rows.append(
            (
                model_label(cell.key.base_model),
                task_label(cell.key.task),
                f"{cell.key.temperature:g}",
                look(method.schedule).label,
                Number(method.width or None),
                Number(cell.value("iterations_per_response", method), 2),
                *map(Number, by_layout),
                Number(measured and measured.selected, 1),
                Number(measured and measured.updated, 1),
                Number(model_ms_per_iteration(pair.base, method), 2),
                Number(model_ms_per_iteration(cell, method), 2),
            )
        )
    return rows


def _fastest(cell: PairedCell) -> Sequence[Method]:
    """For each schedule the width with the highest throughput."""
    return [
        max((m for m in cell.methods if m.schedule == schedule), key=lambda m: cell.value("throughput", m))
        for schedule in dict.fromkeys(method.schedule for method in cell.methods)
    ]


def _cost(cell: PairedCell, method: Method) -> Cost | None:
    return cost(cell.family, method.schedule, method.width, cell.measured[method].config)
