"""The call: one forward pass that verifies a draft and proposes continuations. Every schedule is made of calls.

    In one forward pass, verify a draft of k tokens that follows the verified prefix, and propose a continuation for
    each of a set of branches. Branch b assumes that exactly the first b draft tokens are accepted.

A schedule says *what* it wants evaluated; a model turns the call into rows, position ids and an attention mask, and
hands back logits. One `Model.evaluate` is one forward pass is one NFE, prompt processing included.

Offsets count output positions after the verified prefix, from 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from schedules.distributions import Distributions


@dataclass(frozen=True)
class Draft:
    """Draft tokens for the offsets 1..k, on the model's device.

    Attributes:
      tokens: int64 [k].
      distributions: the k distributions that the tokens were sampled from (Q in section 3.2); None where they are
        point masses (greedy decoding).
      is_sound: bool [1]; whether the logits they were drawn from were finite. Checked when the draft is verified,
        so that drawing needs no transfer. Always true for tokens that come from elsewhere.
    """

    tokens: Tensor
    distributions: Distributions | None = None
    is_sound: Tensor = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.is_sound is None:
            always = torch.ones(1, dtype=torch.bool, device=self.tokens.device)
            object.__setattr__(self, "is_sound", always)

    @classmethod
    def empty(cls, device: torch.device) -> "Draft":
        """The draft before anything was proposed: verifying it yields one token (algorithm 1, D_0)."""
        return cls(torch.empty(0, dtype=torch.int64, device=device))

    def __len__(self) -> int:
        return self.tokens.shape[0]

    def first(self, count: int) -> "Draft":
        """The first `count` tokens."""
        stored = self.distributions and self.distributions.first(count)
        return Draft(self.tokens[:count], stored, self.is_sound)


@dataclass(frozen=True)
class Window:
    """The output positions that a call of a same-position family is about (appendix C, D.2).

    Shifted verifiers need none: their calls are about the positions right after the prefix.

    Attributes:
      positions: output positions (from 1, after the prompt) in verification order; entry r - 1 has rank r.
      drafted: for each rank, whether the draft has a token there; verification ends at the first that has none.
      draft_rows: for each drafted rank, where in the draft its token is, and any number elsewhere; None where the
        draft has a token for each rank, in their order. Left to the model, so that it can send all it is told at once.
      slides: whether the oldest cached tokens, the prompt's among them, are forgotten once cached and new rows are more
        than the model was trained with, as the released native decoder does.
    """

    positions: Sequence[int]
    drafted: Sequence[bool]
    draft_rows: Sequence[int] | None = None
    slides: bool = False


@dataclass(frozen=True)
class Call:
    """What one forward pass is asked for.

    Attributes:
      width: speculative width W >= 1, the proposals wanted for each branch; 0 where nothing is ever proposed.
      draft: tokens to verify; an empty draft asks for the next token alone, None asks for no verification.
      branches: numbers of draft tokens assumed to be accepted, ascending; empty asks for no proposals.
      window: for same-position families; which tokens of the draft belong where.
    """

    width: int
    draft: Draft | None
    branches: Sequence[int] = ()
    window: Window | None = None


@dataclass(frozen=True)
class Proposals:
    """Drafter logits of one call, keyed by offset (by rank, where the call has a window).

    Attributes:
      logits: float [branches, rows, vocab]; rows that cannot survive verification need not be there.
      branches: as in the call.
      first_offsets: for each branch, the offset that its row 0 predicts; its other rows follow on.
    """

    logits: Tensor
    branches: Sequence[int]
    first_offsets: Sequence[int]

    def after(self, accepted: int) -> Tensor:
        """Logits that are still unresolved once `accepted` tokens were emitted: float [n, vocab].

        The last emitted token is the verifier's, so `accepted` - 1 draft tokens are among them, and the largest branch
        that assumes no more than those has the freshest context.
        """
        index = self._freshest(accepted)
        return self.logits[index, self.resolved(accepted) :]

    def resolved(self, accepted: int) -> int:
        """How many rows of the branch with the freshest context `accepted` tokens have resolved."""
        return max(accepted + 1 - self.first_offsets[self._freshest(accepted)], 0)

    def freshest(self, accepted_drafts: Tensor) -> Tensor:
        """All rows of the branch that `after` looks at, before the host knows which: float [rows, vocab], no transfer.

        Args:
          accepted_drafts: int64 [1], on the device.
        """
        if len(self.branches) == 1:
            return self.logits[0]
        if self.branches[-1] == len(self.branches) - 1:  # all of them, so that a branch's number is its place
            index = accepted_drafts.clamp(max=self.branches[-1])
        else:
            index = sum((accepted_drafts >= branch).long() for branch in self.branches[1:])
        return self.logits.index_select(0, index)[0]

    def _freshest(self, accepted: int) -> int:
        accepted_drafts = max(accepted - 1, 0)
        return max(i for i, branch in enumerate(self.branches) if branch <= accepted_drafts)


@dataclass(frozen=True)
class AdapterRows:
    """Token rows that a proposal-only adapter touched (table 5).

    Attributes:
      selected: rows that got the update.
      evaluated: rows that the update was computed for.
    """

    selected: int = 0
    evaluated: int = 0

    def __add__(self, other: "AdapterRows") -> "AdapterRows":
        return AdapterRows(self.selected + other.selected, self.evaluated + other.evaluated)


@dataclass(frozen=True)
class Output:
    """What one forward pass gives.

    Attributes:
      verifier: float [k + 1, vocab]; row i holds the logits for offset i + 1 given the first i draft tokens.
        [0, vocab] where the call verified nothing. With a window of u ranks, k counts the drafted ranks before
        the first that is not, and there are min(k + 1, u) rows: none beyond the window.
      proposals: one entry for each branch of the call; None without branches.
      rows: token rows evaluated, padding included (table 2).
      draft: int64 [u], what was verified at each of a window's u ranks, any token where none is drafted; None without
        a window, or a draft.
      adapter_rows: those of them that an adapter touched.
    """

    verifier: Tensor
    proposals: Proposals | None
    rows: int
    adapter_rows: AdapterRows = AdapterRows()
    draft: Tensor | None = None


class Model(Protocol):
    """A model family as schedules see it: it knows calls and prefixes, never schedules.

    Attributes:
      is_same_position: whether its verifier predicts a position from a query at that position; calls then have
        windows, the first call of a response has nothing but the prompt, and the methods of `WindowModel` are there.
    """

    device: torch.device
    is_same_position: bool

    def reserve(self, tokens: int) -> None:
        """Told once, before anything is timed: no prompt and response are longer than `tokens` together."""

    def begin(self, prompt: Sequence[int], max_new_tokens: int) -> None:
        """Forgets everything and takes `prompt` (at least one token id) as the verified prefix."""

    def evaluate(self, call: Call) -> Output:
        """One forward pass on the verified prefix; changes nothing that a later call could see."""

    def commit(self, tokens: Tensor) -> None:
        """Appends the accepted `tokens` (int64 [accepted], from the last evaluated draft and verifier)."""


class WindowModel(Model, Protocol):
    """What same-position families offer beyond `Model`."""

    def commit(self, tokens: Tensor, accepted_drafts: int | None = None) -> None:
        """Accepts `tokens` at the first ranks of the verified window; `accepted_drafts` of them are draft tokens."""

    def commit_at(self, tokens: Tensor, positions: Sequence[int]) -> None:
        """Accepts `tokens` (int64 [n]) at output `positions` without verification."""

    def forget_after(self, position: int) -> None:
        """Drops accepted tokens beyond an output position."""
