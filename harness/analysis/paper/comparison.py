"""Published values with ours beside them: inside, outside, not run, or a direction only.

A statement covers a value, or a range; ours agrees ("inside") where our 95 % interval, or our value where it has no
interval, has a point in common with it. Another model of the same family cannot agree with a published value, so all
that is said of it is whether the difference between schedules points the same way.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.analysis.measures.time_shares import TASKS
from harness.analysis.paper.published import Published
from harness.analysis.paper.quantities import CONSTANTS, OVER_CELLS, RELATIVE, STATED, Value, value_of
from harness.analysis.study.cells import LEFT_TO_RIGHT
from harness.analysis.study.grid import INTERVALS, NotMeasured, cell_label
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.provenance import provenance
from harness.analysis.study.study import Study
from harness.analysis.style import MODELS, ORDERS, SCHEDULES, look, model_label
from harness.analysis.table import Column, Table
from harness.errors import UserError
from harness.records.bootstrap import Estimate, Statistic

INSIDE, OUTSIDE, NOT_RUN = "inside", "outside", "not run"
DIRECTION = "direction only"


class Compared(NamedTuple):
    """One published statement beside one of our values.

    Attributes:
      where: our cell, or empty.
      value: None where it has not been run.
      verdict: one of the above; a direction with whether it is the same.
    """

    published: Published
    where: str
    value: Estimate | float | None
    prompts: int | None
    verdict: str


# Of a row of the comparison.
COLUMNS = (
    Column("Place", "", lambda row: row.published.place),
    Column("Statement", "", lambda row: _statement(row.published)),
    Column("Published", "", lambda row: row.published.text()),
    Column("Our setting", "", lambda row: row.where),
    Column("Ours", "", lambda row: row.value, decimals=lambda row: row.published.decimals, is_interval=True),
    Column("n", "", lambda row: row.prompts),
    Column("Verdict", "", lambda row: row.verdict),
    Column("Id", "", lambda row: row.published.id, is_detail=True),
)


def compare_published(study: Study, statements: Sequence[Published]) -> Sequence[Compared]:
    """Every statement with all of our values that it can be compared with; at least one row each."""
    return [row for published in statements for row in _rows(study, published)]


def comparison_table(study: Study, statements: Sequence[Published]) -> Table:
    """The comparison as a table.

    Raises:
      NotMeasured: nothing of ours to compare.
    """
    rows = compare_published(study, statements)
    cells = _every_cell(study)
    if not cells:
        raise NotMeasured("no records")
    verdicts = (INSIDE, OUTSIDE, DIRECTION, NOT_RUN)
    counts = {verdict: sum(row.verdict.startswith(verdict) for row in rows) for verdict in verdicts}
    return Table(
        name="comparison",
        title="Published values and ours",
        columns=COLUMNS,
        items=rows,
        notes=[
            "Inside: our 95 % interval (our value, where it has none) and the published value or range have a point in "
            f"common. {DIRECTION.capitalize()}: another model, task or cap than the published one, so only the sign is "
            f"compared. Brackets: {INTERVALS}.",
            ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + ".",
            provenance(cells),
        ],
    )


def _rows(study: Study, published: Published) -> Sequence[Compared]:
    if published.quantity == STATED:
        return [Compared(published, "", None, None, "stated, nothing to compare")]
    if published.quantity in CONSTANTS:
        value = CONSTANTS[published.quantity]
        return [Compared(published, "every interval", value, None, _verdict(published, value))]
    cells = _cells(study, published)
    same = [cell for cell in cells if _is_same(cell, published)]
    rows = [_row(study, published, group, _verdict) for group in _groups(published, same)]
    rows = [row for row in rows if row.value is not None]
    expected = published.of if published.quantity in OVER_CELLS else len(published.models) * len(published.tasks)
    if not rows or (published.kind == "range" and len(rows) < expected):
        done = f"{len(rows)} of {expected} settings run" if rows else ""
        rows.append(Compared(published, done, None, None, NOT_RUN))
    if published.quantity in RELATIVE:
        others = [cell for cell in cells if cell not in same and _is_like(cell, published)]
        directed = [_row(study, published, group, _direction) for group in _groups(published, others)]
        rows += [row for row in directed if row.value is not None]
    return rows


def _cells(study: Study, published: Published) -> Sequence[PairedCell]:
    """Cells of the statement's family, temperature, orders and adapter, of any model and task."""
    pool = [pair.adapted for pair in study.adapters] if published.adapter else study.main
    return [
        cell
        for cell in pool
        if (not published.models or cell.family == published.family)
        and published.temperature in (None, cell.key.temperature)
        and cell.key.order in published.orders
        and cell.is_paired
    ]


def _is_same(cell: PairedCell, published: Published) -> bool:
    """Whether the cell is one of those that the statement is about."""
    model = cell.key.base_model
    return (
        model in published.models
        and cell.key.task in published.tasks
        and not cell.key.adapter_mode
        and cell.window == published.windows.get(model, cell.window)
        and published.max_new_tokens in (None, cell.key.max_new_tokens)
    )


def _is_like(cell: PairedCell, published: Published) -> bool:
    """Whether the direction of a statement may hold for the cell: a model that is not the paper's, or other limits.

    The paper's other models and tasks have statements of their own.
    """
    model = cell.key.base_model
    return model not in MODELS or (model in published.models and cell.key.task in published.tasks)


def _groups(published: Published, cells: Sequence[PairedCell]) -> Sequence[Sequence[PairedCell]]:
    """Cells that one value is about: all for counts, a model's for shares, else each alone."""
    if published.quantity.startswith("count_"):
        return [cells] if cells else []
    if not published.quantity.startswith("share_"):
        return [[cell] for cell in cells]
    by_model: dict[str, list[PairedCell]] = {}
    for cell in cells:
        by_model.setdefault(cell.key.model, []).append(cell)
    # The published averages are over both tasks; other models have what they have.
    return [
        group
        for model, group in by_model.items()
        if model not in MODELS or {cell.key.task for cell in group} == set(TASKS)
    ]


def _row(
    study: Study, published: Published, cells: Sequence[PairedCell], judge: Callable[[Published, Value], str]
) -> Compared:
    try:
        value = value_of(study, published, cells)
    except UserError:
        # A total of zero somewhere: there is no such ratio.
        value = None
    shown = value.estimate() if isinstance(value, Statistic) else value
    verdict = NOT_RUN if shown is None else judge(published, shown)
    prompts = min(len(cell.prompt_ids) for cell in cells)
    return Compared(published, _where(published, cells), shown, prompts, verdict)


def _where(published: Published, cells: Sequence[PairedCell]) -> str:
    if published.quantity.startswith("count_"):
        return f"all {published.of}"
    one = cells[0]
    if len(cells) > 1:
        return f"{model_label(one.key.model)}, {' + '.join(cell_label(cell) for cell in cells)}"
    order = "" if one.key.order == LEFT_TO_RIGHT else f", {ORDERS.get(one.key.order, one.key.order).lower()}"
    temperature = f", T = {one.key.temperature:g}" if published.temperature is None else ""
    return f"{model_label(one.key.base_model)}, {cell_label(one)}{order}{temperature}"


def _verdict(published: Published, value: Estimate | float) -> str:
    low, high = (value.low, value.high) if isinstance(value, Estimate) else (value, value)
    least, most = published.span
    return INSIDE if low <= most and high >= least else OUTSIDE


def _direction(published: Published, value: Estimate) -> str:
    neutral = RELATIVE[published.quantity]
    least, most = published.span
    if value.low <= neutral <= value.high:
        return f"{DIRECTION}: undecided, our interval includes {neutral:g}"
    if least <= neutral <= most:
        return f"{DIRECTION}: the published span includes {neutral:g}"
    return f"{DIRECTION}: {'same' if (value.value > neutral) == (least > neutral) else 'opposite'}"


def _statement(published: Published) -> str:
    """What is stated; statements that name no schedule are about the method against the baseline."""
    named = any(row.look.label in published.says for row in SCHEDULES.values())
    if published.quantity in RELATIVE and not named:
        return f"{look(published.method).label}: {published.says}"
    about = published.quantity in RELATIVE and look(published.method).label not in published.says
    return f"{look(published.method).label}: {published.says}" if about else published.says


def _every_cell(study: Study) -> Sequence[PairedCell]:
    return [*study.main, *(pair.adapted for pair in study.adapters)]
