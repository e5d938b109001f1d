"""The attention function of all backbones: PyTorch's scaled_dot_product_attention with boolean masks.

With a mask, transformers' own `sdpa` first copies keys and values to all heads of their group; on a CPU that copy costs
up to two thirds of a layer's attention, and the kernel does not need it. On an accelerator the kernels that take masks
do need it, so there the stock function is called. Importing this module makes the function known to transformers.
"""

from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "grouped_sdpa"
# Eager attention adds a boolean mask to the scores, and is silently wrong (transformers 5.24).
USABLE = (ATTENTION, "sdpa")


def grouped_sdpa(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """As transformers calls it.

    Args:
      query: [batch, heads, rows, head_dim].
      key, value: [batch, kv_heads, columns, head_dim].
      attention_mask: bool [batch or 1, 1, rows, columns]; None leaves it to transformers, which may mean causal.

    Returns:
      [batch, rows, heads, head_dim], and no weights.
    """
    if attention_mask is None or query.device.type != "cpu":
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **more)
    output = scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=True)
    return output.transpose(1, 2).contiguous(), None


def check_attention(backbone: PreTrainedModel) -> None:
    """Raises `ValueError` where `backbone` was built for an attention function that boolean masks mislead."""
    given = backbone.config._attn_implementation
    if given not in USABLE:
        raise ValueError(f"attention backend: got {given}, the layouts need one of {', '.join(USABLE)}")


AttentionInterface.register(ATTENTION, grouped_sdpa)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
