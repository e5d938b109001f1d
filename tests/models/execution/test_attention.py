"""Attention under a mask: transformers' own, without its copies."""

import pytest
import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from harness.models.execution.attention import attend


class Layer(nn.Module):
    num_key_value_groups = 3
    is_causal = True


@pytest.mark.parametrize("rows", [1, 5])
def test_it_equals_transformers_own(rows):
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 6, rows, 8, generator=generator)
    key, value = torch.randn(2, 1, 2, 5, 8, generator=generator).unbind()
    mask = (torch.rand(1, 1, rows, 5, generator=generator) < 0.5) | torch.eye(rows, 5, dtype=torch.bool)
    theirs, _ = sdpa_attention_forward(Layer(), query, key, value, mask, scaling=0.3)
    torch.testing.assert_close(attend(query, key, value, mask, 0.3), theirs.transpose(1, 2), rtol=1e-6, atol=1e-6)


def test_an_accelerator_would_get_keys_for_every_head():
    queries, keys = torch.empty(1, 6, 4, 8, device="meta"), torch.empty(1, 2, 5, 8, device="meta")
    mask = torch.ones(1, 1, 4, 5, dtype=torch.bool, device="meta")
    assert attend(queries, keys, keys, mask, 0.3).shape == queries.shape
