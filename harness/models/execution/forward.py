"""One forward pass over token rows with a mask of their own, through the modules of a stock transformers backbone.

The modules are called here, one after the other, and give bit by bit what the backbone's own `forward` gives. What
transformers puts around them (defaults, recorded outputs, masks of its own, one look-up of the attention function and
one scale of the queries for each layer) does nothing for such a pass, and takes a quarter of a small model's time.
"""

from dataclasses import dataclass

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.ministral3.modeling_ministral3 import apply_rotary_pos_emb, get_llama_4_attn_scale

from harness.models.execution.attention import attend
from harness.models.execution.cache import BesideCache, KeyValueCache, WholeCache

AnyCache = KeyValueCache | WholeCache | BesideCache


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


@dataclass(frozen=True)
class _Places:
    """What the rows' positions mean to every layer.

    Attributes:
      rotation: cosines and sines, [1, rows, head_dim] each.
      query_scale: [1, 1, rows, 1]; None in families that scale no queries by position.
    """

    rotation: tuple[Tensor, Tensor]
    query_scale: Tensor | None


def forward_pass(backbone: PreTrainedModel, cache: AnyCache, rows: Rows) -> Tensor:
    """Logits of the rows that are kept, [n, vocab].

    Args:
      backbone: of the Llama, Qwen2, Qwen3, Mistral or Ministral3 kind, without sliding windows.
      cache: takes the keys and values of all rows.
    """
    inner = backbone.model
    hidden = inner.embed_tokens(rows.token_ids)
    places = _Places(inner.rotary_emb(hidden, rows.positions), _query_scale(backbone, rows.positions))
    for layer in inner.layers:
        hidden = hidden + _attention(layer.self_attn, layer.input_layernorm(hidden), places, rows.mask, cache)
        hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
    return backbone.lm_head(inner.norm(hidden)[0, rows.kept])


def _query_scale(backbone: PreTrainedModel, positions: Tensor) -> Tensor | None:
    """Llama 4's scaling of queries by position, which Ministral3 alone has."""
    rotary = backbone.config.rope_parameters
    beta = rotary.get("llama_4_scaling_beta")
    if beta is None:
        return None
    return get_llama_4_attn_scale(positions, beta, rotary["original_max_position_embeddings"]).to(backbone.dtype)


def _attention(module: nn.Module, hidden: Tensor, places: _Places, mask: Tensor, cache: AnyCache) -> Tensor:
    """One layer's attention, [1, rows, hidden]."""
    by_head = (*hidden.shape[:2], -1, module.head_dim)
    queries, keys = module.q_proj(hidden).view(by_head), module.k_proj(hidden).view(by_head)
    values = module.v_proj(hidden).view(by_head).transpose(1, 2)
    if hasattr(module, "q_norm"):  # Qwen3
        queries, keys = module.q_norm(queries), module.k_norm(keys)
    queries, keys = apply_rotary_pos_emb(queries.transpose(1, 2), keys.transpose(1, 2), *places.rotation)
    if places.query_scale is not None:
        queries = queries * places.query_scale
    keys, values = cache.update(keys, values, module.layer_idx)
    read = attend(queries, keys, values, mask, module.scaling)
    return module.o_proj(read.transpose(1, 2).reshape(*hidden.shape[:2], -1))
