"""The joint training objective of tiny_nemotron: a causal half and a block-masked half in one sequence.

    row              sees
    clean  c_i       clean rows 0..i (ordinary causal attention, shifted next-token loss)
    noisy  n_i       clean rows before its block, and every noisy row of its own block (same-position loss)

Blocks of the noisy half mirror the layouts that the schedules ask for: the last verified token followed by masks
(Linear and Packed), or masks only (Quadratic's branches and the first call). Blocks reach past the end of the
response, as they do in decoding, so their width gives nothing away about where a response ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BlockMix:
    """What the blocks of the noisy half look like.

    Attributes:
      sizes: block sizes, drawn evenly, one for each row of the batch.
      fully_masked_share: of the rows; the others mask each block at a random rate.
      clean_first_share: of the blocks; their first token is the last verified one.
    """

    sizes: Sequence[int]
    fully_masked_share: float
    clean_first_share: float


JOINT_MIX = BlockMix(sizes=(4, 8, 16, 32), fully_masked_share=0.6, clean_first_share=0.7)


@dataclass(frozen=True)
class TokenizedExample:
    """Token ids of one training conversation; the response ends with the end-of-turn token."""

    prompt: Sequence[int]
    response: Sequence[int]


@dataclass(frozen=True)
class JointBatch:
    """Model inputs of one step, with the places where each loss is taken.

    Attributes:
      input_ids: int64 [batch, rows], clean half first.
      position_ids: int64 [batch, rows].
      mask: bool [batch, 1, rows, rows]; True where a row may attend.
      causal_targets: int64 [batch, rows]; next token at clean rows, -100 where no loss is taken.
      masked_targets: int64 [batch, rows]; own token at masked rows, -100 where no loss is taken.
      depths: int64 [batch, rows]; a noisy row's distance from its block's first, 0 at clean rows.
      clean_rows: number of rows of the clean half.
    """

    input_ids: Tensor
    position_ids: Tensor
    mask: Tensor
    causal_targets: Tensor
    masked_targets: Tensor
    depths: Tensor
    clean_rows: int


def joint_batch(
    examples: Sequence[TokenizedExample], pad_id: int, mask_id: int, rng: torch.Generator, mix: BlockMix = JOINT_MIX
) -> JointBatch:
    """Lays `examples` out for one step of the joint objective.

    The noisy half covers the last prompt token, the response, and the longest block's positions beyond it.
    """
    batch = len(examples)
    tokens = [torch.tensor([*example.prompt, *example.response]) for example in examples]
    starts = torch.tensor([len(example.prompt) - 1 for example in examples])[:, None]
    ends = torch.tensor([len(sequence) for sequence in tokens])[:, None]
    clean = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=pad_id)
    clean_positions = torch.arange(clean.shape[1]).expand(batch, -1)

    noisy_length = int((ends - starts).max()) + max(mix.sizes)
    noisy_positions = starts + torch.arange(noisy_length)
    in_response = (noisy_positions > starts) & (noisy_positions < ends)
    padded = torch.nn.functional.pad(clean, (0, noisy_length), value=pad_id)
    originals = padded.gather(1, noisy_positions)

    sizes = torch.tensor(mix.sizes)[torch.randint(len(mix.sizes), (batch, 1), generator=rng)]
    offsets = (torch.rand(batch, 1, generator=rng) * sizes).long()
    blocks = (torch.arange(noisy_length) + offsets) // sizes
    block_starts = (starts - offsets + blocks * sizes).clamp_min(starts)
    is_masked = _masked_places(noisy_positions, blocks, block_starts, mix, rng) | (noisy_positions >= ends)

    noisy_rows_see_clean = clean_positions[:, None, :] < block_starts[:, :, None]
    noisy_rows_see_noisy = blocks[:, :, None] == blocks[:, None, :]
    causal = torch.ones(clean.shape[1], clean.shape[1], dtype=torch.bool).tril().expand(batch, -1, -1)
    unseen = torch.zeros(batch, clean.shape[1], noisy_length, dtype=torch.bool)
    mask = torch.cat(
        [
            torch.cat([causal, unseen], dim=2),
            torch.cat([noisy_rows_see_clean, noisy_rows_see_noisy], dim=2),
        ],
        dim=1,
    )

    next_tokens = torch.nn.functional.pad(clean[:, 1:], (0, 1), value=pad_id)
    predicts_response = (clean_positions >= starts) & (clean_positions < ends - 1)
    nothing = torch.full_like(clean, -100)
    return JointBatch(
        input_ids=torch.cat([clean, originals.masked_fill(is_masked, mask_id)], dim=1),
        position_ids=torch.cat([clean_positions, noisy_positions], dim=1),
        mask=mask[:, None],
        causal_targets=torch.cat(
            [next_tokens.masked_fill(~predicts_response, -100), torch.full_like(originals, -100)], 1
        ),
        masked_targets=torch.cat([nothing, originals.masked_fill(~(is_masked & in_response), -100)], dim=1),
        depths=torch.cat([torch.zeros_like(clean), noisy_positions - block_starts], dim=1),
        clean_rows=clean.shape[1],
    )


def _masked_places(
    positions: Tensor, blocks: Tensor, block_starts: Tensor, mix: BlockMix, rng: torch.Generator
) -> Tensor:
    """Which noisy rows are masked: bool [batch, noisy_length]."""
    batch, length = positions.shape
    block_count = int(blocks.max()) + 1
    rates = torch.rand(batch, block_count, generator=rng)
    rates[torch.rand(batch, generator=rng) < mix.fully_masked_share] = 1.0
    is_masked = torch.rand(batch, length, generator=rng) < rates.gather(1, blocks)
    keeps_first = torch.rand(batch, block_count, generator=rng) < mix.clean_first_share
    is_first = positions == block_starts
    return torch.where(is_first, ~keeps_first.gather(1, blocks), is_masked)
