"""Given numbers of accepted tokens instead of the verifier's, to measure what schedules cost.

What a forward pass costs does not depend on what the weights say, but how many passes a response takes does. With the
counts given, both can be had from random weights.
"""

from collections.abc import Sequence
from itertools import cycle

from torch import Tensor

from schedules.acceptance import Accepted, Along
from schedules.call import Draft
from schedules.decoding import Rule


class SyntheticAcceptance:
    """Another rule's work and transfers, with the outcome of each verification given beforehand.

    The tokens are stand-ins: all of one iteration are the verifier's first. No one should look at them.
    """

    def __init__(self, rule: Rule, counts: Sequence[int]):
        """Takes the rule whose work is done all the same, and the tokens that each iteration emits.

        Args:
          counts: at least 1 each; the first is the prompt's iteration. Begun anew when used up. Where a draft is too
            short for its count, all of it is accepted.

        Raises:
          ValueError: no counts, or one below 1.
        """
        if not counts or min(counts) < 1:
            raise ValueError(f"counts: got {list(counts)[:5]}, need integers of at least 1")
        self.is_greedy = rule.is_greedy
        self._rule = rule
        self._counts = cycle(counts)

    def verify(self, draft: Draft, verifier: Tensor, along: Along | None = None) -> Accepted:
        """Accepts as many tokens as the next count says; see `schedules.greedy` for the arguments."""
        verified = self._rule.verify(draft, verifier, along)
        rows = verifier.shape[0]
        count = min(next(self._counts), rows)
        # Without a row behind a full draft there is no bonus token: all that is emitted are draft tokens.
        accepted_drafts = count if count == rows == len(draft) else count - 1
        tokens, on_device = [verified.tokens[0]] * count, verified.on_device[:1].expand(count)
        return Accepted(tokens, on_device, accepted_drafts, verified.along)

    def draw(self, logits: Tensor) -> Draft:
        """As the other rule draws."""
        return self._rule.draw(logits)
