"""Simulates schedules on a draft atlas: exact calls, rows and accepted tokens of every prompt, without the model.

Under greedy decoding a response is, at any time, a number of verified output tokens and a draft, and a draft is known
by the region that it was proposed in: its kind, and the context that it was made from. How many of its tokens are
accepted is the run of right proposals that the atlas holds there. Regions are always made from verified contexts: that
of a branch b which was selected is the old prefix with b accepted draft tokens.

    call                           region that the next draft comes from
    prompt's                       branch, context 0
    sole branch {0}                fresh, context c
    several branches, h accepted   branch, context c + b with the largest branch b <= h
    Linear's drafting call         fresh, context c; verified by the next call

All prompts advance together, one iteration at a time; everything is an integer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.errors import UserError
from harness.records.atlas import KINDS, Atlas, Kind, PromptAtlas
from harness.records.bootstrap import Statistic, resampled_totals

Ints = NDArray[np.int64]
FRESH, BRANCH = range(len(KINDS))

# The branches of a call after which up to so many draft tokens may be accepted, ascending, 0 first.
Policy = Callable[[int], Sequence[int]]
# The same for many drafts at once, from their lengths, int64 [n], and the drafter's probabilities of their tokens,
# float32 [n, width], 0 behind their ends: bool [n, width + 1], whether there is a branch for each outcome.
Chooser = Callable[[Ints, NDArray[np.float32]], NDArray[np.bool_]]


@dataclass(frozen=True)
class Simulated:
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


def tokens_per_nfe_ratio(one: Simulated, other: Simulated) -> Statistic:
    """Tokens/NFE of one over the other's, paired over the prompts of the same atlas.

    Raises:
      UserError: fewer than two prompts.
    """
    per_prompt = np.stack([one.tokens, one.nfe, other.tokens, other.nfe], axis=1).astype(np.float64)
    draws = resampled_totals(per_prompt)
    sums = [Statistic(per_prompt[:, column].sum(), draws[:, column]) for column in range(4)]
    return (sums[0] / sums[1]) / (sums[2] / sums[3])


class Simulation:
    """An atlas, prepared for simulating schedules."""

    def __init__(self, atlas: Atlas):
        self.atlas = atlas
        self._lengths = np.array([len(prompt.tokens) for prompt in atlas.prompts])
        self._prompt_tokens = np.array([prompt.prompt_tokens for prompt in atlas.prompts])
        self._runs: dict[int, NDArray[np.int16]] = {}
        self._probabilities: dict[int, NDArray[np.float32]] = {}

    def autoregressive(self) -> Simulated:
        """One call, one token."""
        return self._collect(self._autoregressive(), calls=1, first_rows=0)

    def linear(self, width: int) -> Simulated:
        """Linear-SS: a drafting and a verifying call of W + 1 rows each, after the prompt's call."""
        return self._collect(self._linear(width), calls=2, first_rows=0)

    def one_call(self, width: int, branches: Policy) -> Simulated:
        """Packed (always {0}), Quadratic (all outcomes), and whatever a policy says between them."""
        table = _table(width, branches)
        steps = self._one_call(width, lambda drafted, _: table[drafted], looks=False)
        return self._collect(steps, calls=1, first_rows=width + 1)

    def one_call_by_confidence(self, width: int, choose: Chooser) -> Simulated:
        """The same where the drafter's own probabilities say which branches a call has."""
        return self._collect(self._one_call(width, choose, looks=True), calls=1, first_rows=width + 1)

    def _collect(self, steps: Iterator[tuple[Ints, Ints, Ints | int]], calls: int, first_rows: int) -> Simulated:
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
        return Simulated(self._lengths, nfe, rows, iterations, kept)

    def _autoregressive(self) -> Iterator[tuple[Ints, Ints, Ints | int]]:
        for verified in range(1, self._lengths.max(initial=0)):
            prompts = np.flatnonzero(self._lengths > verified)
            yield prompts, np.ones_like(prompts), 1

    def _linear(self, width: int) -> Iterator[tuple[Ints, Ints, Ints | int]]:
        runs = self._runs_of(width)
        prompts = np.flatnonzero(self._lengths > 1)
        verified = np.ones_like(prompts)
        while prompts.size:
            accepted_drafts = runs[FRESH, prompts, verified, 0]
            emitted = np.minimum(accepted_drafts + 1, self._lengths[prompts] - verified)
            yield prompts, emitted, 2 * (width + 1)
            verified = verified + emitted
            going = verified < self._lengths[prompts]
            prompts, verified = prompts[going], verified[going]

    def _one_call(self, width: int, choose: Chooser, looks: bool) -> Iterator[tuple[Ints, Ints, Ints | int]]:
        runs = self._runs_of(width)
        probabilities = self._probabilities_of(width) if looks else None
        outcomes = np.arange(width + 1)
        prompts = np.flatnonzero(self._lengths > 1)
        verified = np.ones_like(prompts)
        kind, context = np.full_like(prompts, BRANCH), np.zeros_like(prompts)
        while prompts.size:
            covered = verified - context  # offsets of the draft's region that are resolved
            drafted = np.maximum(width + kind - covered, 0)
            accepted_drafts = runs[kind, prompts, context, np.minimum(covered, width + 1)]
            emitted = np.minimum(accepted_drafts + 1, self._lengths[prompts] - verified)
            offsets = np.minimum(covered[:, None] + outcomes[:-1], width + 1)
            place = (kind[:, None], prompts[:, None], context[:, None], offsets)
            chosen = choose(drafted, None if probabilities is None else probabilities[place])
            counts = chosen.sum(axis=1)
            yield prompts, emitted, (width + 1) * (1 + counts)
            usable = chosen & (outcomes <= accepted_drafts[:, None])
            kind = (counts > 1).astype(np.int64)
            context = verified + width - usable[:, ::-1].argmax(axis=1)
            verified = verified + emitted
            going = verified < self._lengths[prompts]
            prompts, verified, kind, context = prompts[going], verified[going], kind[going], context[going]

    def _runs_of(self, width: int) -> NDArray[np.int16]:
        """Right proposals in a row: int16 [kinds, prompts, contexts, width + 2], from each offset on."""
        if width not in self._runs:
            runs = self._padded(width, np.int16, PromptAtlas.correct)
            for offset in reversed(range(width + 1)):
                runs[..., offset] *= runs[..., offset + 1] + 1
            self._runs[width] = runs
        return self._runs[width]

    def _probabilities_of(self, width: int) -> NDArray[np.float32]:
        """Of proposed tokens: float32, shaped likewise."""
        if width not in self._probabilities:
            self._probabilities[width] = self._padded(
                width, np.float32, lambda prompt, kind, width: prompt.proposed[kind, width].probabilities
            )
        return self._probabilities[width]

    def _padded(self, width: int, dtype: type, values: Callable[[PromptAtlas, Kind, int], NDArray]) -> NDArray:
        """Values of all prompts, [kinds, prompts, contexts, width + 2]; zeros where a region has none.

        Raises:
          UserError: the width was not recorded.
        """
        prompts = self.atlas.prompts
        if width not in self.atlas.widths:
            raise UserError(
                f"width={width}: not in the atlas, which has {', '.join(map(str, self.atlas.widths))}. Predictions "
                "depend on the number of masks; record an atlas with that width."
            )
        shape = (len(KINDS), len(prompts), max(self._lengths.max(initial=0), 1), width + 2)
        padded = np.zeros(shape, dtype=dtype)
        for index, prompt in enumerate(prompts):
            for number, kind in enumerate(KINDS):
                one = values(prompt, kind, width)
                padded[number, index, : one.shape[0], : one.shape[1]] = one
        return padded


def _table(width: int, branches: Policy) -> NDArray[np.bool_]:
    """For each length of draft, which outcomes have a branch: bool [width + 1, width + 1].

    Raises:
      UserError: the policy's branches make no call.
    """
    table = np.zeros((width + 1, width + 1), dtype=bool)
    for drafted in range(width + 1):
        chosen = list(branches(drafted))
        if chosen != sorted(set(chosen)) or chosen[:1] != [0] or chosen[-1] > drafted:
            raise UserError(f"branches: {chosen} for a draft of {drafted}; need 0, ascending, none beyond the draft.")
        table[drafted, chosen] = True
    return table
