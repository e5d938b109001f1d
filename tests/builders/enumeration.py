"""Exact distributions of sampled continuations: every random choice of a schedule is enumerated.

`Scripted` replays a list of choices and stops at the first one that is not in it; `continuations` then tries every
option there. What follows a draw depends on the verified prefix and the distributions drawn from alone (nothing else
is pending at that moment), so equal situations are explored once.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tests.builders.table_model import TableModel


class _Undecided(Exception):
    def __init__(self, probabilities: Sequence[float], situation):
        self.probabilities, self.situation = probabilities, situation


class Scripted:
    """Chance that follows a script of option numbers."""

    def __init__(self, script: Sequence[int], model: TableModel):
        self._script, self._model = list(script), model

    def accepts(self, probabilities: Tensor) -> Tensor:
        # One choice: how many tests in a row succeed. What comes after the first failure is never looked at.
        chances, all_so_far = [], 1.0
        for probability in probabilities.tolist():
            chances.append(all_so_far * (1 - probability))
            all_so_far *= probability
        accepted = self._next([*chances, all_so_far])
        return torch.arange(len(probabilities)) < accepted

    def choose(self, weights: Tensor) -> Tensor:
        rows = weights.double()
        situation = (self._model.prefix, tuple(map(tuple, rows.tolist())))
        chosen = []
        for index, row in enumerate((rows / rows.sum(dim=1, keepdim=True)).tolist()):
            chosen.append(self._next(row, situation if index == 0 and self._model.is_drawing else None))
        return torch.tensor(chosen, dtype=torch.int64)

    def _next(self, probabilities: Sequence[float], situation=None) -> int:
        if not self._script:
            raise _Undecided(probabilities, situation)
        return self._script.pop(0)


def continuations(decode: Callable[[Scripted, TableModel], Sequence[int]], make_model: Callable[[], TableModel]):
    """The exact distribution of `decode`'s tokens: {tokens: probability}."""
    known: dict = {}

    def explore(script: list[int]) -> dict[tuple[int, ...], float]:
        model = make_model()
        try:
            return {tuple(decode(Scripted(script, model), model)): 1.0}
        except _Undecided as choice:
            probabilities, situation = choice.probabilities, choice.situation
        if situation is not None and situation in known:
            return known[situation]
        result: dict[tuple[int, ...], float] = defaultdict(float)
        for option, probability in enumerate(probabilities):
            if probability > 0:
                for tokens, share in explore([*script, option]).items():
                    result[tokens] += probability * share
        if situation is not None:
            known[situation] = result
        return result

    return dict(explore([]))


def autoregressive(verifier, prompt: Sequence[int], cap: int, eos: frozenset[int], probabilities):
    """The distribution of plain sampling, by multiplying conditionals: {tokens: probability}."""
    result: dict[tuple[int, ...], float] = defaultdict(float)
    pending = [((), 1.0)]
    while pending:
        tokens, share = pending.pop()
        if len(tokens) == cap or (tokens and tokens[-1] in eos):
            result[tokens] += share
            continue
        row = probabilities(verifier((*prompt, *tokens))[None])[0].double().tolist()
        pending += [((*tokens, token), share * probability) for token, probability in enumerate(row) if probability > 0]
    return dict(result)


def distance(one: dict, other: dict) -> float:
    """Largest difference of a probability."""
    return max(abs(one.get(tokens, 0.0) - other.get(tokens, 0.0)) for tokens in one.keys() | other.keys())
