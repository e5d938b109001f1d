"""Rotary frequencies in float32 and rounded to the weights' dtype: as stock loading and stock casting give them."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import Ministral3ForCausalLM, PreTrainedModel, Qwen3ForCausalLM

from harness.models.execution.cache import KeyValueCache
from harness.models.execution.forward import Rows, forward_pass
from harness.models.loading.backbone import finish
from harness.models.loading.placement import Placement
from tests.builders.nemotron import random_backbone as random_nemotron
from tests.builders.setdlm import random_backbone as random_setdlm

POSITIONS = 500
CPU = torch.device("cpu")
FAMILIES = {"nemotron": (random_nemotron, Ministral3ForCausalLM), "setdlm": (random_setdlm, Qwen3ForCausalLM)}


def causal_logits(backbone: PreTrainedModel, ids: Tensor) -> Tensor:
    """Logits of all rows of one causal pass, float32 [rows, vocab]."""
    config, rows = backbone.config, len(ids)
    cache = KeyValueCache(
        config.num_hidden_layers, config.num_key_value_heads, config.head_dim, backbone.dtype, backbone.device
    )
    cache.reserve(rows)
    mask = torch.ones(1, 1, rows, rows, dtype=torch.bool).tril()
    with torch.inference_mode():
        return forward_pass(
            backbone, cache, Rows(ids[None], torch.arange(rows)[None], mask, torch.arange(rows))
        ).float()


@pytest.mark.parametrize("family", FAMILIES)
def test_each_choice_is_what_one_of_the_two_stock_ways_computes(tmp_path: Path, family):
    """bfloat16, positions up to 500: the two ways differ many times more than we do from either."""
    build, stock = FAMILIES[family]
    build(0).save_pretrained(tmp_path)
    ways = {
        "float32": stock.from_pretrained(tmp_path, dtype=torch.bfloat16),
        "as_cast": stock.from_pretrained(tmp_path, dtype=torch.float32).to(torch.bfloat16),
    }
    ids = torch.randint(40, (POSITIONS,), generator=torch.Generator().manual_seed(1))
    expected, ours = {}, {}
    for rotary, reference in ways.items():
        with torch.inference_mode():
            expected[rotary] = reference.eval()(input_ids=ids[None], use_cache=False).logits[0].float()
        backbone = build(0, torch.bfloat16)
        finish(backbone, Placement(CPU, torch.bfloat16), rotary)
        assert torch.equal(backbone.model.rotary_emb.inv_freq, reference.model.rotary_emb.inv_freq)
        ours[rotary] = causal_logits(backbone, ids)

    def distance(one: Tensor, other: Tensor) -> float:
        """Of the last hundred positions, on average."""
        return float((one - other)[-100:].abs().mean())

    apart = distance(expected["float32"], expected["as_cast"])
    for rotary in ways:
        assert 5 * distance(ours[rotary], expected[rotary]) < apart
    assert (ours["float32"].argmax(dim=-1) != ours["as_cast"].argmax(dim=-1)).any()


def test_in_float32_there_is_no_difference():
    backbone = random_nemotron(0)
    finish(backbone, Placement(CPU, torch.float32), "float32")
    frequencies = backbone.model.rotary_emb.inv_freq
    finish(backbone, Placement(CPU, torch.float32), "as_cast")
    assert torch.equal(backbone.model.rotary_emb.inv_freq, frequencies)
