"""Forward passes through a backbone's modules: what the backbone itself gives, bit by bit."""

import pytest
import torch

from harness.models.execution.cache import KeyValueCache
from harness.models.execution.forward import Rows, forward_pass
from tests.builders.nemotron import random_backbone
from tests.builders.setdlm import random_backbone as random_setdlm_backbone


@pytest.mark.parametrize("build", [random_backbone, random_setdlm_backbone], ids=["nemotron", "setdlm"])
@torch.inference_mode()
def test_modules_one_after_the_other_give_the_backbones_own_logits(build):
    backbone = build(3)
    config = backbone.config
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    sees = (torch.rand(7, 7, generator=torch.Generator().manual_seed(0)) < 0.5).tril() | torch.eye(7, dtype=torch.bool)
    positions, kept = torch.tensor([[0, 1, 2, 2, 3, 9, 20]]), torch.tensor([6, 0, 3])
    cache = KeyValueCache(
        config.num_hidden_layers, config.num_key_value_heads, config.head_dim, backbone.dtype, backbone.device
    )
    cache.reserve(7)
    found = forward_pass(backbone, cache, Rows(tokens, positions, sees[None, None], kept))
    stock = backbone(
        input_ids=tokens,
        attention_mask=sees[None, None],
        position_ids=positions,
        use_cache=False,
        logits_to_keep=kept,
    ).logits[0]
    assert torch.equal(found, stock)
