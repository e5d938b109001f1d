"""How a call becomes rows and an attention mask in the SetDLM family (appendix D.2).

Verifier and drafter both predict at the position of a mask row. A call about a window of u ranks holds these regions,
and every rank has its own textual position in all of them:

    N  accepted tokens that are not cached yet: the correction token, if any   causal among themselves
    O  the draft, MASK where it has no token                                   u rows if the call verifies
    M  masks for verifier predictions                                          u rows if the call verifies
    R  masks for draft predictions                                             u rows for each branch

Every row also sees the cached prompt and accepted tokens, and itself, and all but N see N. Besides, O and M rows see
the O rows of earlier ranks, and the R rows of branch b see the O rows of ranks 1..b: as if the first b draft tokens
were accepted. O rows without a draft token are seen by nobody else.

Example, Quadratic at u = 2 with one row in N and both ranks drafted (x: the row on the left sees the row above).
Packed has the regions N to R0 of it; Linear first asks for [N | R0], then, N being cached, for [O | M].

             N | O1 O2 | M1 M2 | R01 R02 | R11 R12
        N    x | .  .  | .  .  | .   .   | .   .
        O1   x | x  .  | .  .  | .   .   | .   .
        O2   x | x  x  | .  .  | .   .   | .   .
        M1   x | .  .  | x  .  | .   .   | .   .
        M2   x | x  .  | .  x  | .   .   | .   .
        R01  x | .  .  | .  .  | x   .   | .   .
        R02  x | .  .  | .  .  | .   x   | .   .
        R11  x | x  .  | .  .  | .   .   | x   .
        R12  x | x  .  | .  .  | .   .   | .   x

Example, [O | M] at u = 3 where rank 2 has no draft token:

             O1 O2 O3 | M1 M2 M3
        O1   x  .  .  | .  .  .
        O2   x  x  .  | .  .  .
        O3   x  .  x  | .  .  .
        M1   .  .  .  | x  .  .
        M2   x  .  .  | .  x  .
        M3   x  .  .  | .  .  x

N and O stand first, so that the rows of accepted tokens are cached where they belong.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """The shape of one call; the same for every window of `ranks` ranks, whatever is cached.

    Attributes:
      ranks: u, positions in the window.
      context_rows: p, rows of N.
      draft_rows: rows of O, and as many of M after them: u, or 0 where the call verifies nothing.
      sees: bool [rows, rows]; rows of the call that each row may attend to where nothing is drafted.
      sees_drafted: bool [rows, draft_rows]; O rows that it may attend to as well where they hold a draft token.
      slots: int64 [rows]; which position a row has in [those of N, those of ranks 1..u].
      proposal_rows: int64 [branches x kept]; R rows whose predictions can survive, branch by branch.
      first_rank: rank that the first of them predicts.
    """

    ranks: int
    context_rows: int
    draft_rows: int
    sees: Tensor
    sees_drafted: Tensor
    slots: Tensor
    proposal_rows: Tensor
    first_rank: int

    @property
    def rows(self) -> int:
        """Token rows evaluated (table 2)."""
        return self.sees.shape[0]

    @property
    def draft_columns(self) -> slice:
        """Where O stands."""
        return slice(self.context_rows, self.context_rows + self.draft_rows)

    def sees_drafts(self, drafted: Tensor | bool) -> Tensor:
        """O rows that each row may attend to: bool [rows, draft_rows].

        Args:
          drafted: bool [draft_rows]; whether a rank has a draft token, or one answer for all.
        """
        return self.sees[:, self.draft_columns] | (self.sees_drafted & drafted)

    def to(self, device: torch.device) -> "Layout":
        """The same with its tensors on `device`."""
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: tensor.to(device) for name, tensor in tensors.items() if torch.is_tensor(tensor)})


def window_layout(ranks: int, context_rows: int, verifies: bool, branches: Sequence[int]) -> Layout:
    """The layout of a call about a window.

    Args:
      ranks: u >= 1, positions in the window.
      context_rows: p, accepted tokens that are not cached yet.
      verifies: whether the call has a draft to verify, and thus the regions O and M.
      branches: numbers of draft tokens assumed to be accepted, one region R for each.

    Raises:
      ValueError: no rank, a branch without anything left to propose, a branch beyond 0 without a draft, or a call
        that asks for nothing.
    """
    branches = list(branches)
    if ranks < 1 or not all(0 <= branch < ranks for branch in branches):
        raise ValueError(f"call: {ranks} ranks and branches {branches}; need branches from 0 to ranks - 1")
    if not verifies and branches != [0]:
        raise ValueError(f"call: verifies nothing and proposes for branches {branches}; need [0]")
    draft_rows = ranks if verifies else 0
    first_proposal = context_rows + 2 * draft_rows
    rows = first_proposal + ranks * len(branches)
    sees = torch.eye(rows, dtype=torch.bool)
    sees[:, :context_rows] = torch.ones(rows, context_rows).tril().bool()
    sees_drafted = torch.zeros(rows, draft_rows, dtype=torch.bool)
    if verifies:
        earlier = torch.ones(ranks, ranks).tril(-1).bool()
        sees_drafted[context_rows:first_proposal] = earlier.repeat(2, 1)
    for index, branch in enumerate(branches):
        start = first_proposal + ranks * index
        sees_drafted[start : start + ranks, :branch] = True
    # A verified call accepts rank 1 whatever it finds.
    dropped = 1 if verifies else 0
    starts = first_proposal + ranks * torch.arange(len(branches))
    slots = context_rows + torch.arange(ranks).repeat(2 * verifies + len(branches))
    return Layout(
        ranks=ranks,
        context_rows=context_rows,
        draft_rows=draft_rows,
        sees=sees,
        sees_drafted=sees_drafted,
        slots=torch.cat([torch.arange(context_rows), slots]),
        proposal_rows=(starts[:, None] + torch.arange(ranks)[dropped:]).flatten(),
        first_rank=1 + dropped,
    )
