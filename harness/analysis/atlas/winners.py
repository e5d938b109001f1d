"""Which schedule wins where: simulations of made-up drafters, from hopeless to perfect, at every tau / delta.

A made-up drafter is right about a position from all contexts that are less than some distance away. That distance is
geometric, and independent from position to position, so assumption 3.1 holds, and one number says how good it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from harness.analysis.atlas.cost_model import CostModel
from harness.analysis.atlas.methods import method, simulated
from harness.analysis.atlas.simulation import Simulated, Simulation
from harness.analysis.style import row_of
from harness.records.atlas import KINDS, Atlas, PromptAtlas, Proposed

WIDTHS = (1, 3, 7, 15, 31)
PROMPTS, LENGTH = 10, 100
# Of n proposals in a row being right: chance ** (n (n + 1) / 2). These chances space the accepted tokens evenly.
CHANCES = np.exp(-np.pi / 2 / np.linspace(0.3, 12, 30) ** 2)
RATIOS = np.geomspace(1, 1000, 61)


@dataclass(frozen=True)
class Map:
    """What every schedule reaches on a grid.

    Attributes:
      ratios: tau / delta, float64 [x].
      accepted: tokens an iteration of Linear at `width`, float64 [y], ascending.
      schedules: all that can be simulated, in the order in which they are shown.
      throughput: tokens by units of delta, float64 [y, schedules, x].
    """

    ratios: NDArray[np.float64]
    accepted: NDArray[np.float64]
    schedules: Sequence[str]
    throughput: NDArray[np.float64]
    widths: Sequence[int]
    width: int


@cache
def winners(seed: int = 0) -> Map:
    """The map; the same for the same seed."""
    schedules, accepted, best = simulated(), [], []
    for number, chance in enumerate(CHANCES):
        simulation = Simulation(made_up(chance, np.random.default_rng([seed, number])))
        linear = simulation.linear(WIDTHS[-1])
        accepted.append(linear.tokens.sum() / linear.iterations.sum())
        best.append([_throughputs(_simulated(simulation, name)) for name in schedules])
    order = np.argsort(accepted, kind="stable")
    return Map(RATIOS, np.array(accepted)[order], schedules, np.array(best)[order], WIDTHS, WIDTHS[-1])


def made_up(chance: float, rng: np.random.Generator) -> Atlas:
    """An atlas whose proposals are right up to a geometric distance.

    Args:
      chance: that a proposal which is right is right one token further away too; from 0 to below 1.
    """
    prompts = [_made_up_prompt(rng.geometric(1 - chance, LENGTH) - 1, str(number)) for number in range(PROMPTS)]
    return Atlas("made-up drafter", f"chance {chance:.2f}", prompts, PROMPTS)


def _made_up_prompt(reach: NDArray[np.int64], prompt_id: str) -> PromptAtlas:
    """`reach`: for each position, the largest distance from which it is proposed right; int64 [positions]."""
    tokens = np.ones(LENGTH, dtype=np.int32)
    proposed = {}
    for width in WIDTHS:
        distance = np.arange(1, width + 2)
        position = np.arange(LENGTH)[:, None] + distance - 1
        right = distance <= np.append(reach, np.zeros(width + 1, dtype=np.int64))[position]
        for kind in KINDS:
            offsets = width + (kind == "branch")
            one = right[:, :offsets].astype(np.int32)
            proposed[kind, width] = Proposed(one, np.ones(one.shape, dtype=np.float32))
    return PromptAtlas(prompt_id, 0, tokens, np.ones(LENGTH, dtype=np.float32), proposed)


def _simulated(simulation: Simulation, schedule: str) -> Sequence[Simulated]:
    """At every width."""
    widths = WIDTHS if row_of(schedule).drafts else [0]
    return [method(schedule, width).simulate(simulation) for width in widths]


def _throughputs(simulates: Sequence[Simulated]) -> NDArray[np.float64]:
    """Tokens by units of delta, at the best width, for every tau / delta: float64 [x]."""
    return np.array([max(CostModel(ratio, 1.0, {}).throughput("", one) for one in simulates) for ratio in RATIOS])
