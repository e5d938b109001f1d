"""Greedy acceptance: a draft token stands if it is the verifier's argmax (section 3.1, equations 1 and 2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from schedules.call import Draft


@dataclass(frozen=True)
class Accepted:
    """The tokens of one verification: the draft tokens that stand and the verifier's own.

    Attributes:
      tokens: token ids on the host.
      on_device: the same, int64 [accepted].
    """

    tokens: Sequence[int]
    on_device: Tensor


class Greedy:
    """Temperature 0. Ties go to the lowest token id; nothing is random."""

    drafts_in_prompt_call = True  # E.2: at temperature 0 the first call already proposes

    def verify(self, draft: Draft, verifier: Tensor) -> Accepted:
        """Accepts the matching start of `draft` and one verifier token (correction or bonus).

        Args:
          draft: k tokens.
          verifier: logits, float [k + 1, vocab].

        Costs one device-to-host transfer.
        """
        predictions = verifier.argmax(dim=-1)  # [k + 1]
        matches = draft.tokens == predictions[: len(draft)]
        standing = matches.cumprod(dim=0).sum(dim=0, keepdim=True)
        count, *tokens = torch.cat([standing, predictions]).tolist()
        return Accepted(tokens[: count + 1], predictions[: count + 1])

    def draw(self, logits: Tensor) -> Draft:
        """The most likely token of every row of `logits`, float [n, vocab]."""
        return Draft(logits.argmax(dim=-1))
