"""Verification orders of same-position families (appendix C, E.6): which open position is checked at which rank."""

import random
from collections.abc import Mapping, Sequence
from typing import Protocol


class Order(Protocol):
    """Ranks the open positions of a window before a call is made.

    Attributes:
      name: as in records.
      needs_scores: whether `rank` looks at scores; they are computed, and travel with what verification tells.
    """

    name: str
    needs_scores: bool

    def begin(self) -> None:
        """A new response starts."""

    def rank(self, positions: Sequence[int], scores: Mapping[int, float]) -> Sequence[int]:
        """All of `positions` (given in textual order) in verification order.

        Args:
          scores: of the positions that have one: finite, higher is surer.
        """


class LeftToRight:
    """Textual order; the only one of causal verifiers."""

    name = "ltr"
    needs_scores = False

    def begin(self) -> None:
        """Nothing to forget."""

    def rank(self, positions: Sequence[int], scores: Mapping[int, float]) -> Sequence[int]:
        return positions


class Confidence:
    """Decreasing score; ties in textual order, positions without a score last in textual order (E.6).

    The score is the probability of a position's draft token when it was proposed; for Linear-SS, that of the
    verifier's most likely token in the previous iteration.
    """

    name = "confidence"
    needs_scores = True

    def begin(self) -> None:
        """Nothing to forget."""

    def rank(self, positions: Sequence[int], scores: Mapping[int, float]) -> Sequence[int]:
        return sorted(positions, key=lambda position: (position not in scores, -scores.get(position, 0.0), position))


class Random:
    """A new random order for every call, the same for every response of the same seed; for tests."""

    name = "random"
    needs_scores = False

    def __init__(self, seed: int = 0):
        self._seed = seed
        self._rng = random.Random(seed)

    def begin(self) -> None:
        self._rng = random.Random(self._seed)

    def rank(self, positions: Sequence[int], scores: Mapping[int, float]) -> Sequence[int]:
        return self._rng.sample(positions, len(positions))
