"""Attention under a boolean mask: PyTorch's scaled_dot_product_attention.

With a mask, transformers' own `sdpa` first copies keys and values to all heads of their group; on a CPU that copy costs
up to two thirds of a layer's attention, and the kernel does not need it. On an accelerator the kernels that take masks
do need it.
"""

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers.integrations.sdpa_attention import repeat_kv


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scaling: float) -> Tensor:
    """What each row reads from the rows that it sees, [1, heads, rows, head_dim].

    Args:
      queries: [1, heads, rows, head_dim].
      keys, values: [1, kv_heads, columns, head_dim].
      mask: bool [1, 1, rows, columns]; every row sees at least one column.
    """
    shares_keys = queries.device.type == "cpu"
    if not shares_keys:
        group = queries.shape[1] // keys.shape[1]
        keys, values = repeat_kv(keys, group), repeat_kv(values, group)
    return scaled_dot_product_attention(queries, keys, values, attn_mask=mask, scale=scaling, enable_gqa=shares_keys)
