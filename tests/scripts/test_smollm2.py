"""GGUF's names and row order of a Llama, undone."""

import pytest
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

pytest.importorskip("gguf", reason="make smollm2 installs it")
from scripts.smollm2 import halves_apart, stock_name


def test_names_are_the_stock_backbones():
    assert stock_name("blk.12.ffn_gate.weight") == "model.layers.12.mlp.gate_proj.weight"
    assert stock_name("token_embd.weight") == "model.embed_tokens.weight"


def test_rows_of_a_head_in_pairs_become_two_halves():
    rows = torch.arange(2 * 4)[:, None].numpy()
    assert halves_apart(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_a_rotation_turns_the_pairs_that_stood_together():
    interleaved = torch.arange(4.0)[:, None].numpy()
    head = torch.from_numpy(halves_apart(interleaved, 1))[:, 0].view(1, 1, 1, 4)
    quarter = torch.tensor([0.0, 1.0, 0.0, 1.0]).view(1, 1, 4), torch.tensor([1.0, 0.0, 1.0, 0.0]).view(1, 1, 4)
    turned, _ = apply_rotary_pos_emb(head, head, *quarter)
    # The first pair, rows 0 and 1 of the file, is turned by 90 degrees; the second stays.
    assert turned.flatten().tolist() == [-1.0, 2.0, 0.0, 3.0]
