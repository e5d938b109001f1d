"""Small causal models of all five kinds with random weights."""

from pathlib import Path

import torch
import transformers
from transformers import PreTrainedModel

from harness.models.causal.drafter import Drafter
from harness.models.loading.tokenizer import stand_in_tokenizer

SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": 2,
    "pad_token_id": None,
    "initializer_range": 0.3,
    "attn_implementation": "sdpa",
}
KINDS = {
    "Llama": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True},
    "Qwen2": {"tie_word_embeddings": True},
    "Qwen3": {"head_dim": 16},
    "Mistral": {"sliding_window": None, "head_dim": 16},
    "Ministral3": {"head_dim": 16},
}


def random_backbone(kind: str, seed: int = 0, dtype: torch.dtype = torch.float32, **sizes) -> PreTrainedModel:
    """Two layers with grouped keys, and with biases that are not zero where the kind has them; vivid logits."""
    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(**SIZES | KINDS[kind] | sizes)
    if getattr(config, "head_dim", None) is None:
        config.head_dim = config.hidden_size // config.num_attention_heads
    backbone = getattr(transformers, f"{kind}ForCausalLM")(config)
    with torch.no_grad():
        for name, parameter in backbone.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    return backbone.to(dtype).eval()


def vivid_drafter(backbone: PreTrainedModel, mode: str = "fused", rank: int = 4) -> Drafter:
    """A drafter with random weights that change proposals visibly."""
    drafter = Drafter.put_on(backbone, rank, mode, backbone.dtype)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in drafter.parameters().values():
            parameter.normal_(0, 0.3, generator=generator)
    return drafter


def checkpoint(folder: Path, kind: str, seed: int = 0, **sizes) -> Path:
    """A checkpoint folder that transformers would read too, with a tokenizer of real text."""
    tokenizer = stand_in_tokenizer()
    backbone = random_backbone(kind, seed, vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id, **sizes)
    backbone.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
