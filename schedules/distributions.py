"""Probability rows, sparse where top-k makes them so, and temperature with top-k and top-p truncation.

The same truncation is applied to verifier and drafter, so decoding is exact against the truncated autoregressive
distribution (section 3.2, last paragraph). All arithmetic is float32.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Distributions:
    """n distributions over a vocabulary.

    Attributes:
      probabilities: float32 [n, kept]; rows sum to 1.
      ids: int64 [n, kept], the token of each entry; None where every token has one (kept = vocab). Padding entries
        have probability 0.
    """

    probabilities: Tensor
    ids: Tensor | None = None

    def first(self, count: int) -> "Distributions":
        """The first `count` rows."""
        return Distributions(self.probabilities[:count], None if self.ids is None else self.ids[:count])

    def of(self, tokens: Tensor) -> Tensor:
        """The probability of one token a row: `tokens` int64 [n] -> float32 [n]."""
        if self.ids is None:
            return self.probabilities.gather(1, tokens[:, None])[:, 0]
        return (self.probabilities * (self.ids == tokens[:, None])).sum(dim=1)

    def tokens(self, entries: Tensor) -> Tensor:
        """The tokens at one entry a row: `entries` int64 [n] -> int64 [n]."""
        return entries if self.ids is None else self.ids.gather(1, entries[:, None])[:, 0]

    def dense_row(self, row: Tensor, vocab: int) -> Tensor:
        """Row `row` (int64 [1], on the device: no transfer) over the whole vocabulary; zeros beyond the last row.

        Returns:
          float32 [1, vocab].
        """
        count = self.probabilities.shape[0]
        if count == 0:
            return self.probabilities.new_zeros(1, vocab)
        index = row.clamp(max=count - 1)
        picked = self.probabilities.index_select(0, index) * (row < count)[:, None]
        if self.ids is None:
            return picked
        return picked.new_zeros(1, vocab).scatter_add_(1, self.ids.index_select(0, index), picked)


@dataclass(frozen=True)
class SamplingParams:
    """From logits to distributions: temperature, then top-k, then top-p on what top-k left.

    Attributes:
      temperature: above 0.
      top_k: keep this many most likely tokens; None keeps all. Ties at the edge go to the lower token id.
      top_p: keep the fewest most likely tokens that hold at least this much probability; None keeps all.
    """

    temperature: float
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        """Raises `ValueError` for numbers that make no distribution."""
        if not 0 < self.temperature < float("inf"):
            raise ValueError(f"temperature: got {self.temperature}, need a finite number above 0")
        if self.top_k is not None and (not isinstance(self.top_k, int) or self.top_k < 1):
            raise ValueError(f"top_k: got {self.top_k}, need an integer of at least 1, or null for all tokens")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p: got {self.top_p}, need a number above 0 and at most 1, or null for all tokens")

    def distributions(self, logits: Tensor) -> Distributions:
        """Distributions of `logits`, float [n, vocab].

        Rows with NaN, with positive infinity, or without any finite logit come out as NaN. Top-k stores `top_k`
        entries a row. Top-p alone stores the whole vocabulary, zeros included: how many entries would be enough
        depends on the data, and asking costs a transfer.
        """
        logits = logits.float()
        # Against the maximum first: a tiny temperature then gives zeros and -inf, never inf - inf.
        shifted = (logits - logits.amax(dim=-1, keepdim=True)) / self.temperature
        if self.top_k is None and self.top_p is None:
            return Distributions(shifted.softmax(dim=-1))
        ordered, ids = shifted.sort(dim=-1, descending=True, stable=True)
        if self.top_k is not None:
            ordered, ids = ordered[:, : self.top_k], ids[:, : self.top_k]
        probabilities = ordered.softmax(dim=-1)
        if self.top_p is not None and self.top_p < 1:
            before = probabilities.cumsum(dim=-1) - probabilities
            probabilities = probabilities * (before < self.top_p)
            probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
        if self.top_k is None:
            # In the vocabulary's order ids need not be stored, nor searched for a token's entry.
            return Distributions(torch.empty_like(probabilities).scatter_(1, ids, probabilities))
        return Distributions(probabilities, ids.contiguous())
