"""Verification orders of same-position families (appendix C, E.6): which open position is checked at which rank."""

import copy
import math
import random
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, Self

CacheOrder = Literal["textual", "random"]
CACHE_ORDERS = ("textual", "random")
TRAINED_LENGTH = 1024  # tokens, of the released checkpoints' noise schedule


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


class CachingOrder:
    """What our orders know beside ranks: how tokens that native decoding accepts together are cached.

    Tokens in the cache see those before them, so this order changes keys and values, and what is decoded later.

    Attributes:
      cache: "textual", or "random" as the released accuracy script has it: by descending hitting times of the noise
        schedule that the checkpoints were trained with. Left positions are mostly first.
    """

    def __init__(self, cache: CacheOrder = "textual"):
        """Takes how native decoding caches.

        Raises:
          ValueError: no such order.
        """
        if cache not in CACHE_ORDERS:
            raise ValueError(f"cache: got {cache!r}, need one of {', '.join(CACHE_ORDERS)}")
        self.cache = cache
        self._cache_seed = 0

    def seeded(self, seed: int) -> Self:
        """The same for the response with this seed."""
        seeded = copy.copy(self)
        seeded._cache_seed = seed
        return seeded

    def cache_ranks(self, positions: int, width: int) -> Sequence[float]:
        """For each of the first `positions` output positions a number; ascending they are cached, in a window `width`.

        The random ones are negative hitting times in units of positions, -T = j - 2W (1 - exp(-E / k)) with E from the
        standard exponential distribution, drawn once a response.
        """
        if self.cache == "textual":
            return range(positions)
        rng, reach = random.Random(self._cache_seed), 2 * width
        rate = (TRAINED_LENGTH + reach - 1) / (3 * TRAINED_LENGTH - reach + 1)
        return [place - reach * (1 - math.exp(-rng.expovariate(1.0) / rate)) for place in range(positions)]


class LeftToRight(CachingOrder):
    """Textual order; the only one of causal verifiers."""

    name = "ltr"
    needs_scores = False

    def begin(self) -> None:
        """Nothing to forget."""

    def rank(self, positions: Sequence[int], scores: Mapping[int, float]) -> Sequence[int]:
        return positions


class Confidence(CachingOrder):
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


class Random(CachingOrder):
    """A new random order for every call, the same for every response of the same seed; for tests."""

    name = "random"
    needs_scores = False

    def __init__(self, seed: int = 0, cache: CacheOrder = "textual"):
        super().__init__(cache)
        self._seed = seed
        self._rng = random.Random(seed)

    def begin(self) -> None:
        self._rng = random.Random(self._seed)

    def rank(self, positions: Sequence[int], scores: Mapping[int, float]) -> Sequence[int]:
        return self._rng.sample(positions, len(positions))
