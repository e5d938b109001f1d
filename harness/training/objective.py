"""What a drafter is trained for: tokens behind random contexts of a model's own responses; and how well it knows them.

Early masks count most, since a draft ends at its first wrong token: mask j weighs DECAY^(j - 1).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from harness.models.causal.contexts import mask_logits
from harness.models.causal.model import CausalModel
from harness.training.responses import Example

CONTEXTS = 20  # of a response in one step
DECAY = 0.85
STRIDE = 4  # every so many contexts are evaluated
NO_TARGET = -100


def targets(example: Example, contexts: Sequence[int], width: int) -> Tensor:
    """What the masks should say, int64 [contexts, W]; NO_TARGET beyond the response's end.

    Args:
      contexts: tokens of prompt and response that are seen.
    """
    text = torch.tensor([*example.prompt, *example.response, *[NO_TARGET] * (width + 1)])
    # The token right behind a context is the verifier's own.
    places = torch.tensor(contexts)[:, None] + 1 + torch.arange(width)
    return text[places]


def drawn_contexts(example: Example, rng: torch.Generator) -> Sequence[int]:
    """Different contexts behind which at least one mask has something to say; none in a response of one token."""
    start, count = len(example.prompt), len(example.response) - 1
    return (start + torch.randperm(max(count, 0), generator=rng)[:CONTEXTS]).tolist()


def loss(model: CausalModel, example: Example, contexts: Sequence[int], width: int) -> Tensor:
    """Weighted mean cross-entropy of the masks behind `contexts`, in nats."""
    logits = mask_logits(model, [*example.prompt, *example.response], contexts, width)
    wanted = targets(example, contexts, width).to(logits.device)
    each = functional.cross_entropy(
        logits.float().flatten(0, 1), wanted.flatten(), reduction="none", ignore_index=NO_TARGET
    ).view(wanted.shape)
    weights = DECAY ** torch.arange(width, device=logits.device) * (wanted != NO_TARGET)
    return (each * weights).sum() / weights.sum()


@torch.inference_mode()
def evaluated(model: CausalModel, examples: Sequence[Example], width: int) -> Mapping[str, Any]:
    """How well the drafter drafts on `examples`, over every STRIDE-th context with W tokens behind its next.

    Returns:
      contexts: how many; accepted: mean draft tokens accepted, the verifier's own not counted; right: share of right
      tokens by mask; right_in_a_row: share of contexts where this mask and all before it are right.
    """
    found = [torch.zeros(0, width)]
    for example in examples:
        start, count = len(example.prompt), len(example.response) - width
        contexts = range(start, start + count, STRIDE)
        if contexts:
            logits = mask_logits(model, [*example.prompt, *example.response], contexts, width)
            found.append((logits.argmax(dim=-1).cpu() == targets(example, contexts, width)).float())
    right = torch.cat(found)
    in_a_row = right.cumprod(dim=1)
    contexts = right.shape[0]
    return {
        "contexts": contexts,
        "accepted": _rounded(in_a_row.sum(dim=1).mean()) if contexts else 0.0,
        "right": [_rounded(one) for one in right.mean(dim=0)] if contexts else [],
        "right_in_a_row": [_rounded(one) for one in in_a_row.mean(dim=0)] if contexts else [],
    }


def _rounded(value: Tensor) -> float:
    return round(value.item(), 4)
