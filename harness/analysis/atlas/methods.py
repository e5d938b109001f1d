"""Schedules at a width, to be simulated on an atlas: what their rows say of an iteration's calls."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness.analysis.atlas.simulation import Simulated, Simulation
from harness.analysis.style import RIVALS, SCHEDULES, SUBJECT, ScheduleRow, row_of

# The one-call schedules of the paper's comparison: no branch beside the prefix, and all of them.
ENDS = tuple(name for name in (SUBJECT, *RIVALS) if SCHEDULES[name].branches)


class Method(NamedTuple):
    """A schedule at a width, to be simulated."""

    schedule: str
    width: int
    simulate: Callable[[Simulation], Simulated]


def methods(simulation: Simulation, more: Sequence[Method] = ()) -> Sequence[Method]:
    """All schedules that are whole with their width, at every recorded one, and `more`."""
    names = [name for name in simulated() if row_of(name).example is None]
    found = [method(name, 0) for name in names if not row_of(name).drafts]
    for width in simulation.atlas.widths:
        found += [method(name, width) for name in names if row_of(name).drafts]
    return [*found, *more]


def simulated() -> Sequence[str]:
    """Schedules that can be simulated, in the order in which they are shown."""
    return [name for name, row in SCHEDULES.items() if _simulate(row, 1, {})]


def method(schedule: str, width: int, config: Mapping[str, Any] | None = None) -> Method:
    """One of `simulated`.

    Args:
      config: of the schedule; None where its width says all, and for its example.
    """
    row = row_of(schedule)
    if config is None:
        config = row.example.config(width) if row.example else {}
    simulate = _simulate(row, width, config)
    assert simulate, f"{schedule} cannot be simulated"
    return Method(schedule, width, simulate)


def _simulate(row: ScheduleRow, width: int, config: Mapping[str, Any]) -> Callable[[Simulation], Simulated] | None:
    match row.iteration:
        case [(True, None)]:
            return Simulation.autoregressive
        case [(False, _), (True, None)]:
            return lambda simulation: simulation.linear(width)
        case [(True, branches)]:
            return lambda simulation: simulation.one_call(width, partial(branches, config))
    return None
