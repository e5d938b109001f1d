"""One forward pass over token rows with a mask of their own, through the stock layers of a transformers backbone.

The layers are called here one after the other. The frame that transformers puts around them (defaults, recorded
outputs, masks of its own) does nothing for such a pass, and takes a seventh of a small model's time.
"""

from dataclasses import dataclass

from torch import Tensor
from transformers import PreTrainedModel

from harness.models.cache import KeyValueCache, WholeCache


@dataclass(frozen=True)
class Rows:
    """The token rows of one forward pass.

    Attributes:
      token_ids: int64 [1, rows].
      positions: int64 [1, rows].
      mask: bool [1, 1, rows, columns]; which rows of the cache, this pass' own included, each row may attend to.
      kept: int64 [n]; rows whose logits are wanted.
    """

    token_ids: Tensor
    positions: Tensor
    mask: Tensor
    kept: Tensor


def forward_pass(backbone: PreTrainedModel, cache: KeyValueCache | WholeCache, rows: Rows) -> Tensor:
    """Logits of the rows that are kept, [n, vocab], the same as `backbone.forward` gives, bit by bit.

    Args:
      backbone: whose layers all take the same mask: Ministral3 and Qwen3 without sliding windows.
      cache: takes the keys and values of all rows.
    """
    inner = backbone.model
    hidden = inner.embed_tokens(rows.token_ids)
    rotation = inner.rotary_emb(hidden, rows.positions)
    for layer in inner.layers:
        hidden = layer(
            hidden,
            attention_mask=rows.mask,
            position_ids=rows.positions,
            cache=cache,
            position_embeddings=rotation,
        )
    return backbone.lm_head(inner.norm(hidden)[0, rows.kept])
