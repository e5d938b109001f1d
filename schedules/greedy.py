"""Greedy acceptance: a draft token is accepted if it is the verifier's argmax (section 3.1, equations 1 and 2)."""

import torch
from torch import Tensor

from schedules.acceptance import Accepted, Along, all_finite, emitted
from schedules.call import Draft


class Greedy:
    """Temperature 0. Ties go to the lowest token id; nothing is random."""

    is_greedy = True

    def verify(self, draft: Draft, verifier: Tensor, along: Along | None = None) -> Accepted:
        """Accepts the matching start of `draft` and one verifier token (correction or bonus).

        Args:
          draft: k tokens.
          verifier: logits, float [k + 1, vocab], or [k, vocab] where nothing may follow a full draft.
          along: makes numbers that are to travel with the result.

        Costs one device-to-host transfer.

        Raises:
          UnsoundLogits: of verifier or drafter.
        """
        rows = verifier.shape[0]
        best, predictions = verifier.max(dim=-1)  # [rows] each; NaN wins every maximum
        if not len(draft) and along is None:
            sound, *tokens = torch.cat([all_finite(best), predictions]).tolist()
            return emitted([sound, True, 0, *tokens], rows, predictions)
        matches = draft.tokens == predictions[: len(draft)]
        accepted_drafts = matches.cumprod(dim=0).sum(dim=0, keepdim=True)
        is_sound = all_finite(best)
        parts = [is_sound, draft.is_sound, accepted_drafts, predictions]
        if along is not None:
            parts.append(along(accepted_drafts))
        return emitted(torch.cat(parts).tolist(), rows, predictions)

    def draw(self, logits: Tensor) -> Draft:
        """The most likely token of every row of `logits`, float [n, vocab]."""
        best, tokens = logits.max(dim=-1)
        return Draft(tokens, is_sound=all_finite(best))
