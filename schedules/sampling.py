"""Speculative sampling: rejection against the stored distribution each draft token came from (section 3.2, B.2).

A draft token d is accepted with probability min(1, p(d) / q(d)), where q is the distribution that d was drawn from,
however old its context. The first rejection draws a correction from the normalized positive part of p - q; a draft
that is accepted whole draws a bonus token from p (algorithm 2). Lemma B.3: the emitted token has distribution p.
"""

from typing import Protocol

import torch
from torch import Tensor

from schedules.acceptance import Accepted, Along, all_finite, emitted
from schedules.call import Draft
from schedules.distributions import Distributions, SamplingParams


class RandomChoices(Protocol):
    """The two kinds of random choice that sampling makes."""

    def accepts(self, probabilities: Tensor) -> Tensor:
        """Independent yes or no for each of `probabilities`, float32 [n] -> bool [n]; 1 is always yes."""

    def choose(self, weights: Tensor) -> Tensor:
        """One entry a row, in proportion to `weights`, float32 [n, m] >= 0 -> int64 [n]."""


class SeededChoices:
    """Chance from one `torch.Generator`, which lives on the model's device."""

    def __init__(self, seed: int, device: torch.device):
        self._generator = torch.Generator(device).manual_seed(seed)

    def accepts(self, probabilities: Tensor) -> Tensor:
        uniform = torch.rand(probabilities.shape, generator=self._generator, device=probabilities.device)
        return uniform < probabilities

    def choose(self, weights: Tensor) -> Tensor:
        if weights.shape[0] == 0:
            return torch.empty(0, dtype=torch.int64, device=weights.device)
        return torch.multinomial(weights, 1, generator=self._generator)[:, 0]


class Sampling:
    """Temperature above 0, optionally truncated; both sides alike."""

    is_greedy = False

    def __init__(self, truncation: SamplingParams, chance: RandomChoices):
        self._truncation = truncation
        self._chance = chance

    def verify(self, draft: Draft, verifier: Tensor, along: Along | None = None) -> Accepted:
        """Accepts the start of `draft` that survives rejection, and one token drawn by the verifier.

        Args:
          draft: k tokens with the distributions they were drawn from.
          verifier: logits, float [k + 1, vocab], or [k, vocab] where nothing may follow a full draft.
          along: makes numbers that are to travel with the result.

        Costs one device-to-host transfer.

        Raises:
          UnsoundLogits: of verifier or drafter.
        """
        rows, vocab = verifier.shape
        p = self._truncation.distributions(verifier)
        is_accepted = self._chance.accepts(self._acceptance(p, draft))
        accepted_drafts = is_accepted.cumprod(dim=0).sum(dim=0, keepdim=True)
        correction = self._chance.choose(self._correction_weights(p, draft, accepted_drafts, vocab))
        is_sound = all_finite(p.probabilities.flatten())
        tokens = torch.cat([draft.tokens, correction]).scatter(0, accepted_drafts, correction)  # [k + 1]
        parts = [is_sound, draft.is_sound, accepted_drafts, tokens]
        if along is not None:
            parts.append(along(accepted_drafts))
        return emitted(torch.cat(parts).tolist(), rows, tokens)

    def draw(self, logits: Tensor) -> Draft:
        """One token for every row of `logits`, float [n, vocab], stored with the distribution it came from."""
        q = self._truncation.distributions(logits)
        is_sound = all_finite(q.probabilities.flatten())
        entries = self._chance.choose(q.probabilities.nan_to_num(nan=1.0))
        return Draft(q.tokens(entries), q, is_sound)

    def _acceptance(self, p: Distributions, draft: Draft) -> Tensor:
        """min(1, p / q) of each draft token, float32 [k]."""
        if draft.distributions is None:
            if len(draft):
                raise ValueError("draft: its tokens come without the distributions that they were sampled from")
            return p.probabilities.new_empty(0)
        ratio = p.first(len(draft)).of(draft.tokens) / draft.distributions.of(draft.tokens)
        # 0 / 0 says that q underflowed where p is 0 too: such a token must not be accepted.
        return ratio.nan_to_num(nan=0.0).clamp(max=1.0)

    def _correction_weights(self, p: Distributions, draft: Draft, accepted_drafts: Tensor, vocab: int) -> Tensor:
        """What is drawn from behind the accepted drafts, float32 [1, vocab].

        The residual for the correction of a rejected token; p for the bonus token behind a full draft.
        """
        rows = p.probabilities.shape[0]
        p_row = p.dense_row(accepted_drafts.clamp(max=rows - 1), vocab).nan_to_num(nan=1.0)
        if draft.distributions is None:
            return p_row
        residual = (p_row - draft.distributions.dense_row(accepted_drafts, vocab)).clamp(min=0.0)
        # A rejection needs p < q somewhere, so p > q elsewhere; in floating point that may be lost.
        return torch.where(residual.sum() > 0, residual, p_row)
