"""Proposals from many contexts of a known text at once, with gradients for what the drafter learns.

Once a text is known, nothing has to be verified, and what is proposed from a context depends on the tokens up to its
last one alone. So the bare model's keys and values of the text are computed once, without gradients, and masks behind
any contexts are evaluated side by side: each sees the text up to its own context, and the masks of that context.

Example: text t1 t2 t3, masks behind contexts of 2 and 3 tokens at W = 2:

                  t1 t2 t3 | M  M | M  M
        2  M      x  x  .  | x  x | .  .
           M      x  x  .  | x  x | .  .
        3  M      x  x  x  | .  . | x  x
           M      x  x  x  | .  . | x  x
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from harness.models.causal.model import CausalModel
from harness.models.execution.cache import KeyValueCache
from harness.models.execution.forward import Rows, forward_pass


def mask_logits(model: CausalModel, text: Sequence[int], contexts: Sequence[int], width: int) -> Tensor:
    """Logits of W masks behind each context, float [contexts, W, vocab]; mask j predicts the text's token c + j + 1.

    Args:
      model: with a drafter; the gradients of its parameters are kept where they are enabled.
      text: token ids.
      contexts: numbers of tokens of the text that are seen, at least one each.
    """
    device, length = model.device, max(contexts)
    cache = _cached(model, text[:length])
    rows = len(contexts) * width
    region = torch.arange(rows) // width
    seen = torch.tensor(contexts).repeat_interleave(width)  # [rows]
    offsets = torch.arange(width).repeat(len(contexts))
    sees = torch.cat([torch.arange(length) < seen[:, None], region[:, None] == region], dim=1)
    given = Rows(
        token_ids=torch.full((1, rows), model.mask_id, device=device),
        positions=(seen + offsets)[None].to(device),
        mask=sees[None, None].to(device),
        kept=torch.arange(rows, device=device),
    )
    model.adapter.first_row = 0
    logits = forward_pass(model.backbone, cache.beside(), given)
    return logits.view(len(contexts), width, -1)


@torch.no_grad()
def _cached(model: CausalModel, text: Sequence[int]) -> KeyValueCache:
    """The bare model's keys and values of `text`."""
    config, device, length = model.backbone.config, model.device, len(text)
    cache = KeyValueCache(
        config.num_hidden_layers, config.num_key_value_heads, config.head_dim, model.backbone.dtype, device
    )
    cache.reserve(length)
    model.adapter.first_row = None
    rows = Rows(
        token_ids=torch.tensor([text], device=device),
        positions=torch.arange(length, device=device)[None],
        mask=torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None],
        kept=torch.empty(0, dtype=torch.int64, device=device),
    )
    forward_pass(model.backbone, cache, rows)
    cache.length = length
    return cache
