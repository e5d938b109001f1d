"""A model that answers every call at once from stored logits: what is left is the host's own time."""

from collections.abc import Sequence

import torch
from torch import Tensor

from schedules.call import Call, Output, Proposals

VOCAB = 2048
RIGHT = 0.7  # of the drafter's tokens


class StoredModel:
    """Shifted verifier and drafter with one logit row for each output position, whatever the prompt; branches 0 to k.

    The drafter is wrong at 30 % of the positions, the same for every schedule.
    """

    is_same_position = False
    device = torch.device("cpu")

    def __init__(self, positions: int, width: int):
        """Takes how many output positions there are, and the largest speculative width."""
        generator = torch.Generator().manual_seed(0)
        rows = positions + 2 * width + 2
        self._verifier = torch.randn(rows, VOCAB, generator=generator)
        right = torch.rand(rows, 1, generator=generator) < RIGHT
        drafter = torch.where(right, self._verifier, torch.randn(rows, VOCAB, generator=generator))
        self._drafter = drafter
        self._length = 0

    def reserve(self, tokens: int) -> None:
        """Nothing grows here."""

    def begin(self, prompt: Sequence[int], max_new_tokens: int) -> None:
        """Starts a response."""
        self._length = 0

    def evaluate(self, call: Call) -> Output:
        """Slices of what is stored: no copy, no arithmetic."""
        drafted = 0 if call.draft is None else len(call.draft)
        verifier = self._verifier[self._length : self._length + drafted + 1]
        first = 1 if call.draft is None else 2
        if call.draft is None:
            verifier = verifier[:0]
        proposals = None
        if call.branches:
            kept = call.width - first + 1 if call.draft is None else call.width
            # [positions, vocab, kept]: window i holds the rows of positions i, i + 1, ...
            windows = self._drafter.unfold(0, kept, 1).transpose(1, 2)
            start = self._length + first - 1
            last = call.branches[-1]
            proposals = Proposals(
                windows[start : start + last + 1], call.branches, [branch + first for branch in call.branches]
            )
        return Output(verifier=verifier, proposals=proposals, rows=0)

    def commit(self, tokens: Tensor) -> None:
        """Moves on."""
        self._length += tokens.shape[0]
