"""The rows that figures and tables share: models by tasks, with what has not been run as an empty place.

Also the line under each of them that says on what and from how much it was made.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from harness.analysis.study.cells import LEFT_TO_RIGHT, Method
from harness.analysis.study.paired import PairedCell
from harness.analysis.style import (
    TASKS,
    _natural,
    in_order,
    models_in_order,
    task_label,
    tasks_in_order,
)
from harness.records.bootstrap import RESAMPLES

INTERVALS = f"95 % percentile intervals from {RESAMPLES:,} paired bootstrap resamples over prompts"


class NotMeasured(Exception):
    """A figure or table cannot be made from what was measured; says what is missing."""


class Place(NamedTuple):
    """One row: a model (in one window) on a task; the cell is None where it has not been run."""

    family: str
    model: str
    window: int | None
    task: str
    temperature: float
    order: str
    cell: PairedCell | None


def grid(cells: Iterable[PairedCell]) -> Sequence[Place]:
    """Every model on every task, family by family.

    Published tasks and others (such as toys) are two grids: a model that ran one of a kind is expected on all of them.

    Args:
      cells: of one temperature and order.
    """
    by_place = {(s.family, s.key.model, s.window, s.key.task): s for s in cells}
    shared = next(((s.key.temperature, s.key.order) for s in by_place.values()), ())
    places = []
    for family in sorted({family for family, *_ in by_place}):
        for is_published in (True, False):
            kind = [place for place in by_place if place[0] == family and (place[3] in TASKS) == is_published]
            tasks = tasks_in_order(task for *_, task in kind)
            for model in models_in_order(model for _, model, *_ in kind):
                windows = sorted({window for _, name, window, _ in kind if name == model}, key=lambda w: w or 0)
                places += [
                    Place(family, model, window, task, *shared, by_place.get((family, model, window, task)))
                    for window in windows
                    for task in tasks
                ]
    return places


def schedules_of(cells: Iterable[PairedCell]) -> Sequence[str]:
    """All schedules that any of the cells has, in the order in which they are shown."""
    return in_order(method.schedule for cell in cells for method in cell.methods)


def place_of(cell: PairedCell) -> Place:
    """Where a cell stands; with an adapter at its model's own place."""
    key = cell.key
    return Place(cell.family, key.base_model, cell.window, key.task, key.temperature, key.order, cell)


def cell_label(cell: PairedCell) -> str:
    """Task and, where cells differ in it, window."""
    window = f", W = {cell.window}" if cell.window else ""
    return f"{task_label(cell.key.task)}{window}"


def methods_in_order(methods: Iterable[Method]) -> Sequence[Method]:
    """Methods by schedule, then width."""
    methods = list(methods)
    schedules = in_order(method.schedule for method in methods)
    return sorted(methods, key=lambda method: (schedules.index(method.schedule), method.width))


def place_in_order(cell: PairedCell) -> Sequence[Any]:
    """Sorting key of cells: model, task, window, temperature, order; as in the paper's tables."""
    key = cell.key
    known = list(TASKS)
    task = (known.index(key.task) if key.task in known else len(known), _natural(key.task))
    order = (key.order != LEFT_TO_RIGHT, key.order)
    return cell.family, _natural(key.model), task, cell.window or 0, key.temperature, order
