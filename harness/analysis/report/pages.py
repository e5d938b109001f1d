"""What the report's template shows, as plain values: figures, tables, and a page for each cell."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
from harness.analysis.table import Column, Entry, Number, Ranged, Table
from harness.records.metrics import BASELINE


class ShownEntry(NamedTuple):
    """One entry of a shown table.

    Attributes:
      sort: what sorting compares; None sorts last.
    """

    text: str
    sort: float | str | None
    is_bold: bool
    is_number: bool


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
    rows = [[_cell(entry, text) for entry, text in row] for row in table.shown_rows()]
    return Sheet(table.shown_names(), rows, table.notes)


def _cell(entry: Entry, text: str) -> ShownEntry:
    if isinstance(entry, Number):
        return ShownEntry(text, entry.value, entry.bold, True)
    if isinstance(entry, Ranged):
        return ShownEntry(text, entry.estimate and entry.estimate.value, False, True)
    return ShownEntry(text, entry, False, False)


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


_RATIOS = (("throughput", "Tokens/s"), ("tokens_per_nfe", "Tokens/NFE"), ("time_per_nfe_s", "Time/NFE"))


def _methods_table(cell: PairedCell) -> Table:
    """All methods of a cell with their rates, and ratios to the baseline where it was measured."""
    baseline = cell.method(BASELINE)
    compared = baseline is not None and len(cell.methods) > 1
    columns = [Column(name) for name in ("Method", "W", "Responses")]
    columns += [Column(name) for name in ("Tokens/s", "Tokens/NFE", "ms/NFE", "Accuracy (%)")]
    if compared:
        columns += [Column(f"{name} / {look(BASELINE).label}", is_interval=True) for _, name in _RATIOS]
        columns.append(Column(f"Accuracy - {look(BASELINE).label} (points)", is_interval=True))
    rows = []
    for method in methods_in_order(cell.methods):
        accuracy = cell.value("accuracy", method)
        row: list[Entry] = [
            look(method.schedule).label,
            Number(method.width or None),
            Number(cell.responses),
            Number(cell.value("throughput", method), 1),
            Number(cell.value("tokens_per_nfe", method), 3),
            Number(1000 * cell.value("time_per_nfe_s", method), 2),
            Number(None if accuracy is None else 100 * accuracy, 2),
        ]
        if compared:
            ratios = [cell.ratio(metric, method, baseline) for metric, _ in _RATIOS]
            row += [Ranged(ratio and ratio.estimate(), 3) for ratio in ratios]
            difference = cell.difference("accuracy", method, baseline)
            row.append(Ranged(difference and difference.scaled(100).estimate(), 2))
        rows.append(row)
    notes = [f"Rates are ratios of totals. Brackets: {INTERVALS}."]
    return Table("cell", "Methods", columns, rows, notes)
