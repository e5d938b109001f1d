"""What the report's template shows, as plain values: figures, tables, and a page for each cell."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from harness.analysis import canvas
from harness.analysis.catalogue import Product, attempt, products
from harness.analysis.report.outputs import Prompt, prompts_of
from harness.analysis.study.cells import Method
from harness.analysis.study.grid import INTERVALS, cell_label, methods_in_order
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import look
from harness.analysis.table import Column, ShownEntry, Table
from harness.analysis.tables.columns import (
    ACCURACY,
    METHOD,
    RESPONSES,
    SCORED,
    THROUGHPUT,
    TIME_PER_NFE,
    TOKENS_PER_NFE,
    WIDTH,
    lines_of,
)
from harness.records.bootstrap import Estimate, Statistic
from harness.records.metrics import BASELINE


@dataclass(frozen=True)
class Sheet:
    """A table to show."""

    columns: Sequence[str]
    rows: Sequence[Sequence[ShownEntry]]
    notes: Sequence[str]


@dataclass(frozen=True)
class Item:
    """A figure (`image`, a data URI), a table, or what is missing."""

    name: str
    what: str
    image: str = ""
    sheet: Sheet | None = None
    missing: str = ""


@dataclass(frozen=True)
class Page:
    """A cell's page."""

    anchor: str
    title: str
    label: str
    facts: Sequence[tuple[str, str]]
    sheet: Sheet
    prompts: Sequence[Prompt]
    notices: Sequence[str]


def items_of(study: Study) -> Sequence[Item]:
    """Every product, made or missing."""
    return canvas.styled(lambda: [_item(product, study) for product in products(study).values()])


def pages_of(study: Study) -> Sequence[Page]:
    """A page for each main cell and each with an adapter."""
    cells = [*study.main, *(pair.adapted for pair in study.adapters)]
    started = {run.path: run.started_at for run in study.runs}
    return [_page(number, cell, started) for number, cell in enumerate(cells, start=1)]


def _item(product: Product, study: Study) -> Item:
    made = attempt(product, study)
    if isinstance(made, Figure):
        return Item(product.name, product.what, image=_data_uri(canvas.png(made)))
    if isinstance(made, Table):
        return Item(product.name, product.what, sheet=_sheet(made))
    return Item(product.name, product.what, missing=made)


def _data_uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _sheet(table: Table) -> Sheet:
    return Sheet(table.shown_names(), table.shown_rows(), table.notes)


def _page(number: int, cell: PairedCell, started: Mapping) -> Page:
    prompts, notices = prompts_of(cell)
    key = cell.key
    label = f"{key.base_model}, {cell_label(cell)}, T = {key.temperature:g}, {key.order}"
    folders = sorted({folder for one in cell.measured.values() for folder in one.folders})
    facts = [
        ("Measured on", provenance([cell])),
        *(("Run", f"{folder}, started {started[folder]}") for folder in folders),
        *(("Schedule", f"{method}: {_config(cell, method)}") for method in methods_in_order(cell.methods)),
    ]
    return Page(
        anchor=f"cell-{number}",
        title=f"{key}" + (f", window {cell.window}" if cell.window else ""),
        label=f"{label}, {key.adapter} {key.adapter_mode}".strip() if key.adapter else label,
        facts=facts,
        sheet=_sheet(_methods_table(cell)),
        prompts=prompts,
        notices=[*cell.notices, *notices],
    )


def _config(cell: PairedCell, method: Method) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(cell.measured[method].config.items()))


# Of a `MethodLine`.
RATES = (
    METHOD,
    WIDTH,
    RESPONSES,
    THROUGHPUT,
    TOKENS_PER_NFE,
    replace(TIME_PER_NFE, heading="ms/NFE", unit=""),
    ACCURACY,
    SCORED,
)


def _methods_table(cell: PairedCell) -> Table:
    """All methods of a cell with their rates, and ratios to the baseline where it was measured."""
    baseline = cell.method(BASELINE)
    compared = _compared(baseline) if baseline is not None and len(cell.methods) > 1 else ()
    notes = [f"Rates are ratios of totals. Brackets: {INTERVALS}."]
    return Table("cell", "Methods", [*RATES, *compared], lines_of(cell), notes)


def _compared(baseline: Method) -> Sequence[Column]:
    """Of a `MethodLine`: what it is beside the baseline."""

    def ratio(name: str, metric: str) -> Column:
        return Column(
            f"{name} / {look(BASELINE).label}",
            "",
            lambda line: _estimate(line.cell.ratio(metric, line.method, baseline)),
            decimals=3,
            is_interval=True,
        )

    return (
        ratio("Tokens/s", "throughput"),
        ratio("Tokens/NFE", "tokens_per_nfe"),
        ratio("Time/NFE", "time_per_nfe_s"),
        Column(
            f"Accuracy - {look(BASELINE).label}",
            "points",
            lambda line: _estimate(line.cell.difference("accuracy", line.method, baseline), 100),
            decimals=2,
            is_interval=True,
        ),
    )


def _estimate(statistic: Statistic | None, factor: float = 1.0) -> Estimate | None:
    return statistic and statistic.scaled(factor).estimate()
