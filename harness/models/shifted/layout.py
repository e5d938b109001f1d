"""What a layout is: how a call becomes rows, positions and an attention mask, for verifiers that are shifted."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """The shape of one call; the same for every prefix of any length.

    Attributes:
      sees: bool [rows, rows]; which rows of the call each row may attend to.
      offsets: int64 [rows]; positions relative to the last verified token, which has offset 0.
      last_rows: rows that hold the last verified token.
      verifier_row: the row that predicts offset 1; the k rows after it predict the offsets behind k draft tokens.
      verifier_rows: rows from `verifier_row` on that verify; 0 where the call verifies nothing.
      proposal_start: the first row of the proposal regions, which reach to the last row.
      proposal_rows: int64 [branches x kept]; mask rows whose predictions can survive, branch by branch.
      first_offset: offset, from the branch's start, that the first of them predicts.
    """

    sees: Tensor
    offsets: Tensor
    last_rows: Sequence[int]
    verifier_row: int
    verifier_rows: int
    proposal_start: int
    proposal_rows: Tensor
    first_offset: int

    @property
    def rows(self) -> int:
        """Token rows evaluated, padding included."""
        return self.sees.shape[0]
