"""The attention function: transformers' own, without its copies."""

import pytest
import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from harness.models.attention import grouped_sdpa


class Layer(nn.Module):
    num_key_value_groups = 3
    is_causal = True


@pytest.mark.parametrize("masked", [True, False], ids=["mask", "no mask"])
@pytest.mark.parametrize("rows", [1, 5])
def test_it_equals_transformers_own(rows, masked):
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 6, rows, 8, generator=generator)
    key, value = torch.randn(2, 1, 2, 5, 8, generator=generator).unbind()
    mask = (torch.rand(1, 1, rows, 5, generator=generator) < 0.5) | torch.eye(rows, 5, dtype=torch.bool)
    ours, theirs = (
        attend(Layer(), query, key, value, mask if masked else None, scaling=0.3)[0]
        for attend in (grouped_sdpa, sdpa_attention_forward)
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)
