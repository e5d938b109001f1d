"""Model and non-model time as shares of Linear-SS's total, tasks averaged with equal weight (F.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from harness.analysis.study.cells import LEFT_TO_RIGHT
from harness.analysis.study.paired import PairedCell
from harness.analysis.study.study import WINDOWED, Study
from harness.records.bootstrap import Statistic
from harness.records.metrics import BASELINE

# The paper's decomposition covers these two; a model that ran neither is shown on all tasks that it ran.
TASKS = ("gsm8k", "math500")


@dataclass(frozen=True)
class Share:
    """Time of one schedule in units of Linear-SS's total."""

    model: Statistic
    non_model: Statistic

    @property
    def total(self) -> Statistic:
        """Both together."""
        return self.model + self.non_model


def timed_cells(study: Study) -> Mapping[str, Sequence[PairedCell]]:
    """For each model the greedy cells whose times are averaged."""
    chosen: dict[str, list[PairedCell]] = {}
    for cell in study.cells(0.0, LEFT_TO_RIGHT):
        if cell.family != WINDOWED and cell.is_paired and cell.method(BASELINE):
            chosen.setdefault(cell.key.model, []).append(cell)
    return {model: [s for s in cells if s.key.task in TASKS] or cells for model, cells in chosen.items()}


def share(cells: Sequence[PairedCell], schedule: str) -> Share | None:
    """The schedule's times, averaged over tasks; None where it is missing on one of them."""
    shares = [_share(cell, schedule) for cell in cells]
    if not shares or None in shares:
        return None
    parts = zip(*((one.model, one.non_model) for one in shares), strict=True)
    model, non_model = (reduce(add, part).scaled(1 / len(shares)) for part in parts)
    return Share(model, non_model)


def _share(cell: PairedCell, schedule: str) -> Share | None:
    total = cell.statistic("wall_per_response_s", cell.method(BASELINE))
    model = cell.statistic("model_per_response_s", cell.method(schedule))
    non_model = cell.statistic("non_model_per_response_s", cell.method(schedule))
    return Share(model / total, non_model / total) if total and model and non_model else None
