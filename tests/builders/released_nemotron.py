"""Checkpoints in the layout of the released ones (sharded, BF16, their key names), and what they compute by hand."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from harness.models.loading.source import EMBEDDED

TOKENIZER = EMBEDDED / "tiny_nemotron"
MASK, EOS = 3, 2
# Of the 8B's config.json every field that is known, with small sizes; the query width is not the hidden size, and
# positions pass original_max_position_embeddings at once, so that the query scaling is not 1.
CONFIG = {
    "architectures": ["NemotronLabsDiffusionModel"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_implementation": "sdpa",
    "block_size": 32,
    "bos_token_id": 790,
    "dlm_paradigm": "bidirectional",
    "dtype": "bfloat16",
    "eos_token_id": EOS,
    "head_dim": 16,
    "hidden_act": "silu",
    "hidden_size": 48,
    "intermediate_size": 80,
    "mask_token_id": MASK,
    "max_position_embeddings": 1024,
    "mlp_bias": False,
    "model_type": "nemotron_labs_diffusion",
    "num_attention_heads": 8,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 1000000.0,
        "factor": 16.0,
        "original_max_position_embeddings": 8,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "llama_4_scaling_beta": 0.1,
    },
    "sliding_window": None,
    "tie_word_embeddings": False,
    "transformers_version": "5.0.0",
    "use_cache": False,
    "vocab_size": 800,
}
Config = Mapping[str, Any]
Tensors = dict[str, Tensor]


def released_tensors(config: Config = CONFIG, seed: int = 0) -> Tensors:
    """Random BF16 tensors by their released names: nine a layer, and three."""
    generator = torch.Generator().manual_seed(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    shapes = {"encoder.embed_tokens": (config["vocab_size"], hidden), "diffusion_head": (config["vocab_size"], hidden)}
    norms = ["encoder.norm"]
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layers.{layer}"
        norms += [f"{name}.input_layernorm", f"{name}.post_attention_layernorm"]
        shapes |= {f"{name}.mlp.{part}_proj": (inner, hidden) for part in ("gate", "up")}
        shapes |= {f"{name}.mlp.down_proj": (hidden, inner), f"{name}.self_attn.o_proj": (hidden, queries)}
        shapes |= {f"{name}.self_attn.q_proj": (queries, hidden)}
        shapes |= {f"{name}.self_attn.{part}_proj": (keys, hidden) for part in ("k", "v")}
    tensors = {f"{name}.weight": torch.randn(shape, generator=generator) * 0.3 for name, shape in shapes.items()}
    tensors |= {f"{name}.weight": 1 + 0.3 * torch.randn(hidden, generator=generator) for name in norms}
    return {name: tensor.bfloat16() for name, tensor in tensors.items()}


def write_checkpoint(folder: Path, tensors: Tensors, config: Config = CONFIG, shards: int = 3) -> Path:
    """A folder with config.json, shards with their index, tokenizer and chat template."""
    folder.mkdir(parents=True)
    names = sorted(tensors)
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        members = names[shard::shards]
        save_file({name: tensors[name] for name in members}, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(members, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    (folder / "config.json").write_text(json.dumps(config))
    for file in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(TOKENIZER / file, folder / file)
    return folder


def logits_by_hand(tensors: Tensors, ids: Tensor, positions: Tensor, sees: Tensor, config: Config = CONFIG) -> Tensor:
    """What the network computes, written down from its description, in float64 and without a cache.

    Args:
      ids, positions: int64 [rows].
      sees: bool [rows, rows].

    Returns:
      float64 [rows, vocab].
    """
    weights = {name.removesuffix(".weight"): tensor.double() for name, tensor in tensors.items()}
    rows, head_dim = len(ids), config["head_dim"]
    angles = positions.double()[:, None] * yarn_frequencies(config)
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]  # complex [rows, 1, head_dim / 2]
    rope = config["rope_parameters"]
    blocks = (positions // rope["original_max_position_embeddings"]).double()
    query_scale = 1 + rope["llama_4_scaling_beta"] * torch.log(1 + blocks)

    def normed(hidden: Tensor, name: str) -> Tensor:
        return weights[name] * hidden / (hidden.square().mean(-1, keepdim=True) + config["rms_norm_eps"]).sqrt()

    def heads(hidden: Tensor, name: str) -> Tensor:
        return (hidden @ weights[name].T).view(rows, -1, head_dim)

    def rotated(vectors: Tensor) -> Tensor:
        first, second = vectors.chunk(2, dim=-1)
        turned = torch.complex(first, second) * turn
        return torch.cat([turned.real, turned.imag], dim=-1)

    hidden = weights["encoder.embed_tokens"][ids]
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layers.{layer}"
        source = normed(hidden, f"{name}.input_layernorm")
        queries = rotated(heads(source, f"{name}.self_attn.q_proj")) * query_scale[:, None, None]
        keys, values = rotated(heads(source, f"{name}.self_attn.k_proj")), heads(source, f"{name}.self_attn.v_proj")
        group = queries.shape[1] // keys.shape[1]
        keys, values = (one.repeat_interleave(group, dim=1) for one in (keys, values))
        scores = torch.einsum("qhd,khd->hqk", queries, keys) / math.sqrt(head_dim)
        shares = scores.masked_fill(~sees, -math.inf).softmax(dim=-1)
        mixed = torch.einsum("hqk,khd->qhd", shares, values).reshape(rows, -1)
        hidden = hidden + mixed @ weights[f"{name}.self_attn.o_proj"].T
        source = normed(hidden, f"{name}.post_attention_layernorm")
        gate, up = (source @ weights[f"{name}.mlp.{part}_proj"].T for part in ("gate", "up"))
        hidden = hidden + (gate * torch.sigmoid(gate) * up) @ weights[f"{name}.mlp.down_proj"].T
    return normed(hidden, "encoder.norm") @ weights["diffusion_head"].T


def yarn_frequencies(config: Config) -> Tensor:
    """Rotary frequencies: fast ones as they are, slow ones divided by the factor, a ramp between (YaRN)."""
    rope, half = config["rope_parameters"], config["head_dim"] // 2

    def pair_that_turns(times: float) -> float:
        return (
            half
            * math.log(rope["original_max_position_embeddings"] / (times * 2 * math.pi))
            / math.log(rope["rope_theta"])
        )

    low = max(math.floor(pair_that_turns(rope["beta_fast"])), 0)
    high = min(math.ceil(pair_that_turns(rope["beta_slow"])), config["head_dim"] - 1)
    pairs = torch.arange(half, dtype=torch.float64)
    plain = rope["rope_theta"] ** (-pairs / half)
    slow = ((pairs - low) / max(high - low, 0.001)).clamp(0, 1)
    return plain * (1 - slow) + plain / rope["factor"] * slow
