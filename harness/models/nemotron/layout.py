"""How a call becomes rows, positions and an attention mask in the Nemotron family (appendix D.1 and E.2).

The verifier is shifted (the row of token i predicts token i + 1), the drafter is same-position (a mask row predicts
its own token). A regular call holds these regions, each of block size B = W + 1; "last" is the last verified token,
whose keys and values are not cached yet. Every row also sees the cached prefix before it.

    verifier          [last, d1 .. dk, MASK ..]   causal among itself
    Packed, Linear    [last, MASK x W]            all-to-all among itself, positions as in the verifier region
    branch b of many  [MASK x (W + 1)]            all-to-all, and verifier rows 0..b; positions follow d_b

Example, Packed at W = 2 (x: the row on the left sees the row above):

             last d1 d2 | last M M
        last   x  .  .  |   .  . .
        d1     x  x  .  |   .  . .
        d2     x  x  x  |   .  . .
        last   .  .  .  |   x  x x
        M      .  .  .  |   x  x x
        M      .  .  .  |   x  x x

The prompt's call is [prompt | MASK x (W + 1)] when it proposes and [prompt] when it does not: prompt rows are causal,
mask rows see the prompt and each other.

The verifier region stands first, so the rows of accepted tokens are cached where they belong. A branch's first mask
predicts where the correction or bonus token goes, which is never used; neither is Packed's, as one token is always
accepted.
"""

from collections.abc import Sequence

import torch

from harness.models.shifted.layout import Layout


def regular_layout(width: int, verifies: bool, branches: Sequence[int]) -> Layout:
    """The layout of every call but the first.

    Raises:
      ValueError: a branch beyond 0 without a draft to verify, or a call that asks for nothing.
    """
    branches = list(branches)
    if not verifies and branches != [0]:
        raise ValueError(f"call: verifies nothing and proposes for branches {branches}; need [0]")
    block = width + 1
    verifier_rows = block if verifies else 0
    rows = verifier_rows + block * len(branches)
    sees = torch.zeros(rows, rows, dtype=torch.bool)
    offsets = [torch.arange(verifier_rows)]
    sees[:verifier_rows, :verifier_rows] = torch.ones(verifier_rows, verifier_rows).tril().bool()
    copies_last = branches == [0]
    for index, branch in enumerate(branches):
        start = verifier_rows + index * block
        sees[start : start + block, start : start + block] = True
        if copies_last:
            offsets.append(torch.arange(block))
        else:
            sees[start : start + block, : branch + 1] = True
            offsets.append(torch.arange(block) + branch + 1)
    # A verified call emits at least one token more than the branch assumes.
    dropped = (2 if copies_last else 1) if verifies else 1
    kept = torch.arange(block)[dropped:]
    starts = verifier_rows + block * torch.arange(len(branches))
    return Layout(
        sees=sees,
        offsets=torch.cat(offsets),
        last_rows=[0, verifier_rows] if verifies and copies_last else [0],
        verifier_row=0,
        verifier_rows=verifier_rows,
        proposal_start=verifier_rows,
        proposal_rows=(starts[:, None] + kept).flatten(),
        first_offset=2 if verifies else 1,
    )


def prompt_layout(prompt_length: int, width: int, verifies: bool, proposes: bool, padding: int = 0) -> Layout:
    """The layout of the first call, which processes the prompt; offset 0 is the prompt's last token.

    Args:
      padding: rows between the prompt and the masks, which no other row sees.
    """
    start = prompt_length + padding
    rows = start + (width + 1 if proposes else 0)
    sees = torch.ones(rows, rows, dtype=torch.bool).tril()
    sees[start:, start:] = True
    sees[start:, prompt_length:start] = False
    offsets = torch.arange(rows) - (prompt_length - 1)
    offsets[start:] -= padding
    dropped = 1 if verifies else 0
    return Layout(
        sees=sees,
        offsets=offsets,
        last_rows=[],
        verifier_row=prompt_length - 1,
        verifier_rows=1 if verifies else 0,
        proposal_start=start,
        proposal_rows=torch.arange(rows)[start + dropped :],
        first_offset=1 + dropped,
    )
