"""What most tables have a line for, and the columns that they share.

Columns are functions of such a line. A table's own are beside it; whoever adds one to a table's tuple of columns sees
it in every form that the table is written in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.study.cells import Method
from harness.analysis.study.grid import Place, cell_label, methods_in_order, place_of
from harness.analysis.study.paired import PairedCell
from harness.analysis.style import ORDERS, look, model_label, task_label
from harness.analysis.table import Column


@dataclass(frozen=True)
class Line:
    """A place."""

    place: Place

    @property
    def cell(self) -> PairedCell | None:
        """What was measured there."""
        return self.place.cell

    @property
    def is_measured(self) -> bool:
        """Whether there is something to show."""
        return self.cell is not None


@dataclass(frozen=True)
class MethodLine(Line):
    """A schedule in a place.

    Attributes:
      method: None where it has not been run.
      is_best: whether its tokens/s are the highest of those that it is compared with.
    """

    schedule: str
    method: Method | None
    is_best: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether there is something to show."""
        return self.method is not None

    @property
    def width(self) -> int | None:
        """Its speculative width; None where it has none."""
        return self.method.width or None if self.method else None

    def value(self, metric: str, factor: float = 1.0) -> float | None:
        """A metric in a unit of `factor` to its own; None where it is not defined."""
        value = self.cell.value(metric, self.method) if self.cell else None
        return None if value is None else factor * value


def lines_of(cell: PairedCell, line: type[MethodLine] = MethodLine, **more: Any) -> Sequence[Any]:
    """A line for each method of a cell; `more` are fields that all of them have."""
    return [line(place_of(cell), method.schedule, method, **more) for method in methods_in_order(cell.methods)]


def measured(heading: str, unit: str, metric: str, factor: float = 1.0, **how: Any) -> Column:
    """The column of a metric, in a unit of `factor` to its own; `how` is as in `Column`."""
    return Column(heading, unit, lambda line: line.value(metric, factor), **how)


# Of any line.
MODEL = Column("Model", "", lambda line: model_label(line.place.model))
TASK = Column("Task", "", lambda line: task_label(line.place.task))
TASK_AND_WINDOW = Column("Task", "", lambda line: cell_label(line.cell))
WINDOW = Column("Window", "", lambda line: line.place.window)
ORDER = Column("Order", "", lambda line: ORDERS.get(line.place.order, line.place.order))
TEMPERATURE = Column("T", "", lambda line: f"{line.place.temperature:g}")
PROMPTS = Column("n", "", lambda line: len(line.cell.prompt_ids) if line.is_measured else None)
RESPONSES = Column("Responses", "", lambda line: line.cell.responses if line.is_measured else None)
SCORED = Column("Scored", "", lambda line: line.cell.scored if line.is_measured and line.cell.is_graded else None)
# Of a method's line.
METHOD = Column("Method", "", lambda line: look(line.schedule).label)
WIDTH = Column("W", "", lambda line: line.width)
TOKENS = measured("Tokens", "", "tokens_per_response", decimals=1)
WALL = measured("Wall", "s", "wall_per_response_s", decimals=3)
NFE = measured("NFE", "", "nfe_per_response", decimals=2)
THROUGHPUT = measured("Tokens/s", "", "throughput", decimals=1, is_bold=lambda line: line.is_best)
TOKENS_PER_NFE = measured("Tokens/NFE", "", "tokens_per_nfe", decimals=3)
TIME_PER_NFE = measured("Time/NFE", "ms", "time_per_nfe_s", 1000, decimals=2)
ACCURACY = measured("Accuracy", "%", "accuracy", 100, decimals=2)
