"""How a call becomes rows, positions and an attention mask in the causal family: a plain model and its drafter.

Every row predicts the token after its own position, masks as well. So the verifier's own next token needs no mask, and
a branch has W masks, all of whose predictions can survive. A regular call holds these regions, with B = W + 1; "last"
is the last verified token, whose keys and values are not cached yet. Every row also sees the cached prefix before it.

    verifier            [last, d1 .. dk, MASK ..]   B rows, causal among itself
    branch b            [MASK x W]                  all-to-all, and verifier rows 0..b; positions follow d_b
    Linear's drafting   [last | MASK x (W - 1)]     the last token's row is the bare model's and gives the first
                                                    proposal; masks see it and each other

Example, Packed at W = 2 (x: the row on the left sees the row above):

             last d1 d2 | M M
        last   x  .  .  | . .
        d1     x  x  .  | . .
        d2     x  x  x  | . .
        M      x  .  .  | x x
        M      x  .  .  | x x

The prompt's call is [prompt | MASK x W] when it verifies and proposes, [prompt | MASK x (W - 1)] when it proposes
alone, and [prompt] when it proposes nothing: prompt rows are causal, masks see the prompt and each other.

The verifier region stands first, so the rows of accepted tokens are cached where they belong; and rows of the bare
model see no mask, so what they give is the bare model's.
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
    bare = width + 1 if verifies else 1
    masks = width if verifies else width - 1  # of a branch
    rows = bare + masks * len(branches)
    sees = torch.zeros(rows, rows, dtype=torch.bool)
    sees[:bare, :bare] = torch.ones(bare, bare).tril().bool()
    offsets = [torch.arange(bare)]
    for index, branch in enumerate(branches):
        start = bare + index * masks
        sees[start : start + masks, start : start + masks] = True
        sees[start : start + masks, : branch + 1] = True
        offsets.append(torch.arange(masks) + branch + 1)
    return Layout(
        sees=sees,
        offsets=torch.cat(offsets),
        last_rows=[0],
        verifier_row=0,
        verifier_rows=bare if verifies else 0,
        proposal_start=bare,
        proposal_rows=torch.arange(bare if verifies else 0, rows),
        first_offset=2 if verifies else 1,
    )


def prompt_layout(prompt_length: int, width: int, verifies: bool, proposes: bool, padding: int = 0) -> Layout:
    """The layout of the first call, which processes the prompt; offset 0 is the prompt's last token.

    Args:
      padding: rows between the prompt and the masks, which no other row sees.
    """
    start, last = prompt_length + padding, prompt_length - 1
    masks = (width if verifies else width - 1) if proposes else 0
    rows = start + masks
    sees = torch.ones(rows, rows, dtype=torch.bool).tril()
    sees[start:, start:] = True
    sees[start:, prompt_length:start] = False
    offsets = torch.arange(rows) - last
    offsets[start:] -= padding
    proposal_rows = torch.arange(start, rows)
    if proposes and not verifies:
        proposal_rows = torch.cat([torch.tensor([last]), proposal_rows])
    return Layout(
        sees=sees,
        offsets=offsets,
        last_rows=[],
        verifier_row=last,
        verifier_rows=1 if verifies else 0,
        proposal_start=start,
        proposal_rows=proposal_rows,
        first_offset=2 if verifies else 1,
    )
