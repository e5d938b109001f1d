"""The set-causal training objective of tiny_setdlm: any generation order, every prediction at its own position.

A sequence is prompt, response (its last token is EOS) and BEYOND_END positions that hold EOS again. The prompt comes
first in the generation order and in textual order; the rest follows sorted by position + uniform noise below a
horizon, so that no position moves by as much as the horizon. Horizon 0 is left-to-right. Each position beyond the
prompt stands there as a token and as two masks, all with its own position id, as in the calls that schedules make:

    row                    sees
    token     o_i          tokens whose rank is at most its own (the prompt among them)
    verifier  m_i          tokens whose rank is below its own, and itself
    drafter   r_i          tokens whose rank is below some cut at or before its own rank, and itself

Example, order (prompt, 2, 1), the drafter of 2 cut before rank 1 and that of 1 before rank 2 (x: the row on the left
sees the row above):

             P  o1 o2 | m1 m2 | r1 r2
        P    x  .  .  | .  .  | .  .
        o1   x  x  x  | .  .  | .  .
        o2   x  .  x  | .  .  | .  .
        m1   x  .  x  | x  .  | .  .
        m2   x  .  .  | .  x  | .  .
        r1   x  .  x  | .  .  | x  .
        r2   x  .  .  | .  .  | .  x

A drafter's cut is uniform over those at which decoding can ask for its position: the leftmost position unresolved at
the cut lies less than WINDOW before it. Predictions for positions further ahead are never asked for, and neither
drafter nor verifier has a loss there.

The positions after the end let decoding query them without harm: they are EOS whatever is seen. As in decoding, which
discards what lies beyond an accepted EOS, no row sees a token to the right of an EOS it sees, and there is no loss at
positions to the right of one. So an EOS that is accepted before the text in front of it only says "ends here or
earlier".
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from tiny_objectives import TokenizedExample
from torch import Tensor

WINDOW = 16  # the widest decoding window that the model is meant for
BEYOND_END = WINDOW - 1
HORIZONS = {0: 0.5, 8: 0.1, 16: 0.25, 32: 0.15}  # shares of the sequences; 0 is left-to-right
NO_TARGET = -100


@dataclass(frozen=True)
class SetCausalBatch:
    """Model inputs of one step, with the places where each loss is taken.

    Attributes:
      input_ids: int64 [batch, rows]; tokens, then verifier masks, then drafter masks.
      position_ids: int64 [batch, rows].
      mask: bool [batch, 1, rows, rows]; True where a row may attend.
      verifier_targets: int64 [batch, rows]; own token at verifier masks, -100 where no loss is taken.
      drafter_targets: int64 [batch, rows]; own token at drafter masks, -100 where no loss is taken.
    """

    input_ids: Tensor
    position_ids: Tensor
    mask: Tensor
    verifier_targets: Tensor
    drafter_targets: Tensor


@dataclass(frozen=True)
class _Sequences:
    """A batch of padded sequences in their generation orders; positions are textual, from 0."""

    tokens: Tensor  # int64 [batch, length]
    starts: Tensor  # int64 [batch, 1], first position after the prompt
    ends: Tensor  # int64 [batch, 1], position of the response's own EOS
    rank: Tensor  # int64 [batch, length], from 0
    leftmost: Tensor  # int64 [batch, length], leftmost position that is unresolved before each rank

    @property
    def is_end(self) -> Tensor:
        """Bool [batch, length]: the response's own EOS and everything after it, padding included."""
        return torch.arange(self.tokens.shape[1]) >= self.ends

    def seen(self, bounds: Tensor) -> Tensor:
        """Tokens of a rank below each bound, none to the right of the first EOS among them.

        Args:
          bounds: int64 [batch, rows].

        Returns:
          bool [batch, rows, length].
        """
        is_earlier = self.rank[:, None, :] < bounds[:, :, None]
        ends_so_far = (is_earlier & self.is_end[:, None, :]).cumsum(dim=2)
        return is_earlier & (ends_so_far <= 1)


@dataclass(frozen=True)
class _Masks:
    """Mask rows of a batch, verifiers and drafters."""

    positions: Tensor  # int64 [batch, masks], textual
    cuts: Tensor  # int64 [batch, masks]; a row sees the tokens of lower rank
    targets: Tensor  # int64 [batch, masks]; -100 where no loss is taken
    drafts: Tensor  # bool [batch, masks]; whether the row is a drafter

    def with_loss(self) -> "_Masks":
        """Without the rows that have no loss, as far as the fullest sequence allows."""
        has_loss = self.targets != NO_TARGET
        kept = has_loss.int().argsort(dim=1, descending=True, stable=True)[:, : int(has_loss.sum(dim=1).max())]
        return _Masks(*(getattr(self, field.name).gather(1, kept) for field in fields(self)))


def set_causal_batch(
    examples: Sequence[TokenizedExample], pad_id: int, mask_id: int, rng: torch.Generator
) -> SetCausalBatch:
    """Lays `examples` out for one step of the set-causal objective.

    Mask rows without a loss are left out where they can be: no other row sees them.
    """
    sequences = _in_random_orders(examples, pad_id, rng)
    batch, length = sequences.tokens.shape
    masks = _masks(sequences, rng).with_loss()
    # Tokens see themselves, masks do not see their token.
    bounds = torch.cat([sequences.rank + 1, masks.cuts], dim=1)
    diagonal = torch.eye(bounds.shape[1], dtype=torch.bool)
    sees_tokens = sequences.seen(bounds) | diagonal[:, :length]
    sees_masks = diagonal[:, length:].expand(batch, -1, -1)
    nothing = torch.full_like(sequences.tokens, NO_TARGET)
    return SetCausalBatch(
        input_ids=torch.cat([sequences.tokens, torch.full_like(masks.positions, mask_id)], dim=1),
        position_ids=torch.cat([torch.arange(length).expand(batch, -1), masks.positions], dim=1),
        mask=torch.cat([sees_tokens, sees_masks], dim=2)[:, None],
        verifier_targets=torch.cat([nothing, masks.targets.masked_fill(masks.drafts, NO_TARGET)], dim=1),
        drafter_targets=torch.cat([nothing, masks.targets.masked_fill(~masks.drafts, NO_TARGET)], dim=1),
    )


def _masks(sequences: _Sequences, rng: torch.Generator) -> _Masks:
    """A verifier and a drafter for each position after the prompt, with loss or without."""
    batch, length = sequences.tokens.shape
    last = sequences.ends + BEYOND_END
    positions = sequences.starts + torch.arange(int((last - sequences.starts).max()) + 1)
    exists = positions <= last
    positions = positions.clamp_max(length - 1)
    own_rank = sequences.rank.gather(1, positions)
    first_cut = torch.searchsorted(sequences.leftmost, positions - WINDOW + 1).clamp_min(sequences.starts)
    choices = (own_rank - first_cut + 1).clamp_min(1)
    earlier = (torch.rand(positions.shape, generator=rng) * choices).long().clamp_max(choices - 1)

    is_asked = (exists & (first_cut <= own_rank)).repeat(1, 2)
    cuts = torch.cat([own_rank, own_rank - earlier], dim=1)
    positions = positions.repeat(1, 2)
    is_left = torch.arange(length) < positions[:, :, None]
    sees_end_before = (sequences.seen(cuts) & sequences.is_end[:, None, :] & is_left).any(dim=2)
    targets = sequences.tokens.gather(1, positions)
    return _Masks(
        positions=positions,
        cuts=cuts,
        targets=targets.masked_fill(~is_asked | sees_end_before, NO_TARGET),
        drafts=(torch.arange(positions.shape[1]) >= own_rank.shape[1]).expand(batch, -1),
    )


def _in_random_orders(examples: Sequence[TokenizedExample], pad_id: int, rng: torch.Generator) -> _Sequences:
    tokens = [
        torch.tensor([*example.prompt, *example.response, *[example.response[-1]] * BEYOND_END]) for example in examples
    ]
    starts = torch.tensor([len(example.prompt) for example in examples])[:, None]
    ends = torch.tensor([len(example.prompt) + len(example.response) - 1 for example in examples])[:, None]
    padded = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=pad_id)
    positions = torch.arange(padded.shape[1])
    shares = torch.tensor(list(HORIZONS.values()))
    drawn = torch.multinomial(shares, len(examples), replacement=True, generator=rng)
    horizons = torch.tensor(list(HORIZONS))[drawn][:, None]
    noise = torch.rand(padded.shape, generator=rng) * horizons
    moves = (positions >= starts) & (positions <= ends + BEYOND_END)
    is_padding = positions > ends + BEYOND_END
    # Padding comes last, whatever the noise.
    keys = positions + torch.where(moves, noise, 0.0) + torch.where(is_padding, max(HORIZONS), 0)
    order = keys.argsort(dim=1, stable=True)
    return _Sequences(
        tokens=padded,
        starts=starts,
        ends=ends,
        rank=order.argsort(dim=1),
        leftmost=order.flip(1).cummin(dim=1).values.flip(1),
    )
