"""A model that is nothing but two functions: schedules are tested against it with no network at all.

It answers calls as the Nemotron family does (appendix D.1, E.2): the prompt's call proposes one offset more, a sole
branch proposes for offsets 1..W, several branches for b + 2 .. b + W + 1.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from schedules.call import Call, Output, Proposals

Verifier = Callable[[tuple[int, ...]], Tensor]  # verified tokens -> logits [vocab] for the next one
Drafter = Callable[[tuple[int, ...], int], Tensor]  # context, offset after it -> logits [vocab]


class TableModel:
    """Made-up distributions behind the call protocol; records the calls that it was asked."""

    device = torch.device("cpu")
    is_same_position = False

    def __init__(self, verifier: Verifier, drafter: Drafter):
        self._verifier, self._drafter = verifier, drafter
        self.calls: list[Call] = []
        self.prefix: tuple[int, ...] = ()
        self._is_first = True

    def begin(self, prompt: Sequence[int], max_new_tokens: int) -> None:
        self.prefix, self._is_first, self.calls = tuple(prompt), True, []

    def evaluate(self, call: Call) -> Output:
        self.calls.append(call)
        draft = () if call.draft is None else tuple(call.draft.tokens.tolist())
        counts = range(0) if call.draft is None else range(len(draft) + 1)
        verifier = [self._verifier(self.prefix + draft[:count]) for count in counts]
        dropped = 0 if call.draft is None else 1
        covers_more = self._is_first or len(call.branches) > 1
        first_offsets = [branch + 1 + dropped for branch in call.branches]
        proposals = [
            [
                self._drafter(self.prefix + draft[:branch], offset - branch)
                for offset in range(first, branch + call.width + (2 if covers_more else 1))
            ]
            for branch, first in zip(call.branches, first_offsets, strict=True)
        ]
        vocab = self._verifier(self.prefix).shape[0]
        self._is_first = False
        return Output(
            verifier=torch.stack(verifier) if verifier else torch.empty(0, vocab),
            proposals=Proposals(
                torch.stack([torch.stack(rows) if rows else torch.empty(0, vocab) for rows in proposals]),
                call.branches,
                first_offsets,
            )
            if call.branches
            else None,
            rows=0,
        )

    def commit(self, tokens: Tensor) -> None:
        self.prefix += tuple(tokens.tolist())


def one_hot(token: int, vocab: int) -> Tensor:
    """Logits whose argmax is `token`."""
    logits = torch.zeros(vocab)
    logits[token] = 5.0
    return logits
