"""Replays schedules on a draft atlas: exact calls, rows and accepted tokens of every prompt, without the model.

Under greedy decoding a response is, at any time, a number of verified output tokens and a draft, and a draft is known
by the region that it was proposed in: its kind, and the context that it was made from. How many of its tokens stand
is the run of right proposals that the atlas holds there. Regions are always made from verified contexts: that of a
branch b which was selected is the old prefix with b draft tokens that stood.

    call                           region that the next draft comes from
    prompt's                       branch, context 0
    sole branch {0}                fresh, context c
    several branches, h stood      branch, context c + b with the largest branch b <= h
    Linear's drafting call         fresh, context c; verified by the next call

All prompts advance together, one iteration at a time; everything is an integer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.analysis.atlas import KINDS, Atlas
from harness.errors import UserError

Ints = NDArray[np.int64]
FRESH, BRANCH = range(len(KINDS))

# The branches of a call after which up to so many draft tokens may stand, ascending, 0 first.
Policy = Callable[[int], Sequence[int]]


@dataclass(frozen=True)
class Replayed:
    """What a schedule did with every prompt of an atlas.

    Attributes:
      tokens, nfe, rows, iterations: int64 [prompts]; as in records, the prompt's call included.
      steps: of each iteration, the prompts that had one and the tokens that it emitted, int64 each.
    """

    tokens: Ints
    nfe: Ints
    rows: Ints
    iterations: Ints
    steps: Sequence[tuple[Ints, Ints]] = field(repr=False)

    @property
    def accepted(self) -> Sequence[Sequence[int]]:
        """Tokens emitted in each iteration of each prompt, as in records."""
        lists: list[list[int]] = [[] for _ in self.nfe]
        for prompts, emitted in self.steps:
            for prompt, count in zip(prompts.tolist(), emitted.tolist(), strict=True):
                lists[prompt].append(count)
        return lists

    @property
    def tokens_per_nfe(self) -> float:
        """Ratio of totals."""
        return self.tokens.sum() / self.nfe.sum()


class AtlasReplay:
    """An atlas, prepared for replays."""

    def __init__(self, atlas: Atlas):
        self.atlas = atlas
        self._lengths = np.array([len(prompt.tokens) for prompt in atlas.prompts])
        self._prompt_tokens = np.array([prompt.prompt_tokens for prompt in atlas.prompts])
        self._runs: dict[int, NDArray[np.int16]] = {}

    def autoregressive(self) -> Replayed:
        """One call, one token."""
        return self._collect(self._autoregressive(), calls=1, first_rows=0)

    def linear(self, width: int) -> Replayed:
        """Linear-SS: a drafting and a verifying call of W + 1 rows each, after the prompt's call."""
        return self._collect(self._linear(width), calls=2, first_rows=0)

    def one_call(self, width: int, branches: Policy) -> Replayed:
        """Packed (always {0}), Quadratic (all outcomes), and whatever a policy says between them."""
        return self._collect(self._one_call(width, branches), calls=1, first_rows=width + 1)

    def _collect(self, steps: Iterator[tuple[Ints, Ints, Ints | int]], calls: int, first_rows: int) -> Replayed:
        """Adds up (prompts, emitted, rows) of each iteration behind the prompt's."""
        begun = np.flatnonzero(self._lengths)
        nfe = (self._lengths > 0).astype(np.int64)
        iterations = nfe.copy()
        rows = (self._prompt_tokens + first_rows) * nfe
        kept = [(begun, np.ones_like(begun))]
        for prompts, emitted, evaluated in steps:
            iterations[prompts] += 1
            nfe[prompts] += calls
            rows[prompts] += evaluated
            kept.append((prompts, emitted))
        return Replayed(self._lengths, nfe, rows, iterations, kept)

    def _autoregressive(self) -> Iterator[tuple[Ints, Ints, Ints | int]]:
        for verified in range(1, self._lengths.max(initial=0)):
            prompts = np.flatnonzero(self._lengths > verified)
            yield prompts, np.ones_like(prompts), 1

    def _linear(self, width: int) -> Iterator[tuple[Ints, Ints, Ints | int]]:
        runs = self._runs_of(width)
        prompts = np.flatnonzero(self._lengths > 1)
        verified = np.ones_like(prompts)
        while prompts.size:
            standing = runs[FRESH, prompts, verified, 0]
            emitted = np.minimum(standing + 1, self._lengths[prompts] - verified)
            yield prompts, emitted, 2 * (width + 1)
            verified = verified + emitted
            going = verified < self._lengths[prompts]
            prompts, verified = prompts[going], verified[going]

    def _one_call(self, width: int, branches: Policy) -> Iterator[tuple[Ints, Ints, Ints | int]]:
        runs = self._runs_of(width)
        counts, best = _tables(width, branches)
        prompts = np.flatnonzero(self._lengths > 1)
        verified = np.ones_like(prompts)
        kind, context = np.full_like(prompts, BRANCH), np.zeros_like(prompts)
        while prompts.size:
            covered = verified - context  # offsets of the draft's region that are resolved
            drafted = np.maximum(width + kind - covered, 0)
            standing = runs[kind, prompts, context, np.minimum(covered, width + 1)]
            emitted = np.minimum(standing + 1, self._lengths[prompts] - verified)
            yield prompts, emitted, (width + 1) * (1 + counts[drafted])
            kind = (counts[drafted] > 1).astype(np.int64)
            context = verified + best[drafted, standing]
            verified = verified + emitted
            going = verified < self._lengths[prompts]
            prompts, verified, kind, context = prompts[going], verified[going], kind[going], context[going]

    def _runs_of(self, width: int) -> NDArray[np.int16]:
        """Right proposals in a row: int16 [kinds, prompts, contexts, width + 2], from each offset on."""
        if width not in self._runs:
            prompts = self.atlas.prompts
            if width not in self.atlas.widths:
                raise UserError(
                    f"width={width}: not in the atlas, which has {', '.join(map(str, self.atlas.widths))}. Predictions "
                    "depend on the number of masks; record an atlas with that width."
                )
            shape = (len(KINDS), len(prompts), max(self._lengths.max(initial=0), 1), width + 2)
            runs = np.zeros(shape, dtype=np.int16)
            for index, prompt in enumerate(prompts):
                for number, kind in enumerate(KINDS):
                    correct = prompt.correct(kind, width)
                    runs[number, index, : correct.shape[0], : correct.shape[1]] = correct
            for offset in reversed(range(width + 1)):
                runs[..., offset] *= runs[..., offset + 1] + 1
            self._runs[width] = runs
        return self._runs[width]


def _tables(width: int, branches: Policy) -> tuple[Ints, Ints]:
    """For each length of draft, how many branches there are; and which is the freshest if h of its tokens stand.

    Returns:
      int64 [width + 1] and [width + 1, width + 1].

    Raises:
      UserError: the policy's branches make no call.
    """
    counts = np.zeros(width + 1, dtype=np.int64)
    best = np.zeros((width + 1, width + 1), dtype=np.int64)
    for drafted in range(width + 1):
        chosen = list(branches(drafted))
        if chosen != sorted(set(chosen)) or chosen[:1] != [0] or chosen[-1] > drafted:
            raise UserError(f"branches: {chosen} for a draft of {drafted}; need 0, ascending, none beyond the draft.")
        counts[drafted] = len(chosen)
        for standing in range(drafted + 1):
            best[drafted, standing] = max(branch for branch in chosen if branch <= standing)
    return counts, best
