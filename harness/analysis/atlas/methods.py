"""Schedules at a width, to be simulated on an atlas."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.analysis.atlas.simulation import Simulated, Simulation

AUTOREGRESSIVE = "autoregressive"


class Method(NamedTuple):
    """A schedule at a width, to be simulated."""

    schedule: str
    width: int
    simulate: Callable[[Simulation], Simulated]


def methods(simulation: Simulation, more: Sequence[Method] = ()) -> Sequence[Method]:
    """The paper's schedules at every recorded width, and `more`."""
    found = [Method(AUTOREGRESSIVE, 0, Simulation.autoregressive)]
    for width in simulation.atlas.widths:
        found += [paper_method(schedule, width) for schedule in ("linear", "packed", "quadratic")]
    return [*found, *more]


def paper_method(schedule: str, width: int) -> Method:
    """Linear, Packed or Quadratic."""
    simulates: Mapping[str, Callable[[Simulation], Simulated]] = {
        "linear": lambda simulation: simulation.linear(width),
        "packed": lambda simulation: simulation.one_call(width, lambda drafted: (0,)),
        "quadratic": lambda simulation: simulation.one_call(width, lambda drafted: range(drafted + 1)),
    }
    return Method(schedule, width, simulates[schedule])
