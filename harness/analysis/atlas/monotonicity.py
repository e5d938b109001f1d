"""Assumption 3.1 measured: how often a right proposal turns wrong with more context; and how far theorem 3.2 holds.

The assumption says that of one position, the proposals made from ever longer contexts are wrong up to a threshold and
right from there on. The theorem follows from it: after as many calls, Packed's prefix is at least as long as Linear's.
Real drafters break the assumption now and then, and whether the theorem's bound breaks with it is a matter of prompts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.analysis.atlas.methods import method
from harness.analysis.atlas.simulation import Simulated, Simulation
from harness.analysis.style import SUBJECT
from harness.analysis.table import Column, Table
from harness.records.atlas import PromptAtlas
from harness.records.metrics import BASELINE

BIN = 16  # output positions of a bin


@dataclass(frozen=True)
class Turns:
    """Right proposals that one more token of context was given for, and those of them that it made wrong.

    Attributes:
      right, wrong: int64 [distances]; by how far the position was ahead of its shorter context, from 2 on. The
        nearest position ahead is the correction's by the time that the context has grown.
      right_at, wrong_at: int64 [bins]; by the position, in bins of `BIN`.
      positions, monotone: output positions, and those whose proposals do as the assumption says.
    """

    right: NDArray[np.int64]
    wrong: NDArray[np.int64]
    right_at: NDArray[np.int64]
    wrong_at: NDArray[np.int64]
    positions: int
    monotone: int

    @property
    def share(self) -> float:
        """Of right proposals, how many one more token turns wrong."""
        return self.wrong.sum() / max(self.right.sum(), 1)

    @property
    def monotone_share(self) -> float:
        """Of output positions, how many do as the assumption says."""
        return self.monotone / max(self.positions, 1)


@dataclass(frozen=True)
class Dominance:
    """Packed beside Linear, prompt by prompt.

    Attributes:
      packed, linear: int64 [prompts]; calls.
      is_ahead: bool [prompts]; whether Packed's prefix is at least as long after every iteration of Linear's.
    """

    packed: NDArray[np.int64]
    linear: NDArray[np.int64]
    is_ahead: NDArray[np.bool_]

    @property
    def holds(self) -> float:
        """Share of prompts for which Packed needs no more calls."""
        return float((self.packed <= self.linear).mean())

    @property
    def calls_ratio(self) -> float:
        """Packed's calls over Linear's, of all prompts together."""
        return self.packed.sum() / self.linear.sum()


def turns(prompts: Sequence[PromptAtlas], width: int) -> Turns:
    """Counts over all positions and contexts of the regions that Linear and Packed draft in."""
    longest = max(len(prompt.tokens) for prompt in prompts)
    right, wrong = np.zeros(width - 1, dtype=np.int64), np.zeros(width - 1, dtype=np.int64)
    right_at, wrong_at = np.zeros(longest // BIN + 1, dtype=np.int64), np.zeros(longest // BIN + 1, dtype=np.int64)
    positions = monotone = 0
    for prompt in prompts:
        # No schedule drafts so from the bare prompt.
        correct = prompt.correct("fresh", width)[1:]
        before, after = correct[:-1, 1:], correct[1:, :-1]
        turned = before & ~after
        right += before.sum(axis=0)
        wrong += turned.sum(axis=0)
        # Row c, column d of `before` is position c + d + 3: contexts start at 1, distances at 2.
        position = np.add.outer(np.arange(before.shape[0]), np.arange(width - 1)) + 3
        right_at += np.bincount(position[before] // BIN, minlength=len(right_at))[: len(right_at)]
        wrong_at += np.bincount(position[turned] // BIN, minlength=len(wrong_at))[: len(wrong_at)]
        known = max(len(prompt.tokens) - 1, 0)
        positions += known
        monotone += known - len(np.unique(position[turned]))
    return Turns(right, wrong, right_at, wrong_at, positions, monotone)


def dominance(simulation: Simulation, width: int) -> Dominance:
    """Simulates both schedules."""
    packed, linear = (method(name, width).simulate(simulation) for name in (SUBJECT, BASELINE))
    packed_lengths, linear_lengths = _lengths(packed), _lengths(linear)
    ahead = [_is_ahead(one, other) for one, other in zip(packed_lengths, linear_lengths, strict=True)]
    return Dominance(packed.nfe, linear.nfe, np.array(ahead))


class Checked(NamedTuple):
    """Assumption and theorem at one width."""

    width: int
    turns: Turns
    dominance: Dominance


# Of a `Checked`.
CHECKED = (
    Column("W", "", lambda one: one.width),
    Column("Right, one token earlier", "", lambda one: one.turns.right.sum()),
    Column("Turned wrong", "%", lambda one: 100 * one.turns.share, decimals=2),
    Column("Monotone positions", "%", lambda one: 100 * one.turns.monotone_share, decimals=2),
    Column("Packed calls / Linear's", "", lambda one: one.dominance.calls_ratio, decimals=3),
    Column("Prompts: no more calls", "%", lambda one: 100 * one.dominance.holds, decimals=1),
    Column("Prompts: never behind", "%", lambda one: 100 * float(one.dominance.is_ahead.mean()), decimals=1),
)


def monotonicity_table(simulation: Simulation) -> Table:
    """A line for each recorded width at which a position can be seen from two contexts."""
    return Table(
        name="monotonicity",
        title="Assumption 3.1 and theorem 3.2, measured",
        columns=CHECKED,
        items=[
            Checked(width, turns(simulation.atlas.prompts, width), dominance(simulation, width))
            for width in _widths(simulation)
        ],
        notes=[
            "Assumption 3.1: a position's proposals stay right as contexts grow. Theorem 3.2: Packed's prefix is never "
            "behind Linear's after as many calls, so that it needs no more.",
            simulation.atlas.label,
        ],
    )


def _widths(simulation: Simulation) -> Sequence[int]:
    return [width for width in simulation.atlas.widths if width > 1]


def _lengths(simulated: Simulated) -> Sequence[NDArray[np.int64]]:
    return [np.cumsum(accepted) for accepted in simulated.accepted]


def _is_ahead(packed: NDArray[np.int64], linear: NDArray[np.int64]) -> bool:
    """Iteration t of Linear, from 0, ends with call 1 + 2t; Packed's call of that number is its iteration's."""
    calls = np.minimum(1 + 2 * np.arange(len(linear)), len(packed))
    return bool((packed[calls - 1] >= linear).all()) if len(packed) else True
