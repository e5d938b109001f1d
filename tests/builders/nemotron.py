"""Small Nemotron-like models with random weights."""

import torch
from transformers import Ministral3Config, Ministral3ForCausalLM

from harness.models.nemotron.model import NemotronModel

MASK_ID = 3


def random_backbone(seed: int, dtype: torch.dtype = torch.float32, vocab: int = 40) -> Ministral3ForCausalLM:
    """Two layers whose query width differs from the hidden size, grouped keys, yarn positions; vivid logits."""
    torch.manual_seed(seed)
    config = Ministral3Config(
        vocab_size=vocab,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=2,
        pad_token_id=None,
        initializer_range=0.3,
        attn_implementation="sdpa",
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 1e4,
            "factor": 4.0,
            "original_max_position_embeddings": 64,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    )
    return Ministral3ForCausalLM(config).to(dtype).eval()


def random_model(seed: int, dtype: torch.dtype = torch.float32) -> NemotronModel:
    """A model around `random_backbone`."""
    return NemotronModel(random_backbone(seed, dtype), MASK_ID)


@torch.no_grad()
def plain_greedy(backbone: Ministral3ForCausalLM, prompt: list[int], cap: int, eos: frozenset[int]) -> list[int]:
    """Greedy decoding one token at a time with plain causal calls and no cache: the slow, obvious reference."""
    tokens = list(prompt)
    while len(tokens) - len(prompt) < cap:
        logits = backbone(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]
        tokens.append(int(logits.argmax()))
        if tokens[-1] in eos:
            break
    return tokens[len(prompt) :]
