"""What loaders do with a stock backbone: build it without memory, fill it, put it on its device."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import PreTrainedModel

from harness.errors import UserError
from harness.models.loading.placement import Placement

Rotary = Literal["float32", "as_cast"]
ROTARY = ("float32", "as_cast")
INITIAL_DEVIATION = 0.02  # of random weights, as trained models start


def without_memory(build: Callable[[], PreTrainedModel]) -> PreTrainedModel:
    """The backbone that `build` gives, on the meta device and in evaluation mode."""
    with torch.device("meta"):
        return build().eval()


def parameters_of(backbone: PreTrainedModel) -> int:
    """Number of parameters; a tied head counts once."""
    return sum(parameter.numel() for parameter in backbone.parameters())


def weight_bytes(backbone: PreTrainedModel) -> int:
    """Bytes of weights that every forward pass reads: of embeddings that are no head as well, a few rows alone."""
    embeddings, head = backbone.get_input_embeddings().weight, backbone.get_output_embeddings().weight
    looked_up = 0 if embeddings is head else embeddings.numel()
    return (parameters_of(backbone) - looked_up) * backbone.dtype.itemsize


def cache_bytes(backbone: PreTrainedModel) -> int:
    """Bytes of keys and values of one cached token."""
    config = backbone.config
    return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * backbone.dtype.itemsize


def fill_randomly(backbone: PreTrainedModel, where: Placement) -> None:
    """Gives every matrix independent normal entries, and every norm ones; the same on every call.

    What a forward pass costs does not depend on what the weights say.
    """
    backbone.to(where.dtype).to_empty(device=where.device)
    generator = torch.Generator(where.device).manual_seed(0)
    with torch.no_grad():
        for parameter in backbone.parameters():
            if parameter.ndim == 1:
                parameter.fill_(1.0)
            else:
                parameter.normal_(0.0, INITIAL_DEVIATION, generator=generator)


def finish(backbone: PreTrainedModel, where: Placement, rotary: Rotary) -> None:
    """Makes a filled backbone ready: buffers on the device, float32 products exact.

    Buffers are no part of a checkpoint: the rotary frequencies are computed anew, off the meta device, in float32
    whatever the dtype.

    Args:
      rotary: "float32" keeps them so, as `from_pretrained(..., dtype=...)` does; "as_cast" rounds them to the weights'
        dtype, as `from_pretrained(...).to(dtype)` does with all buffers.
    """
    backbone.tie_weights()
    dtype = where.dtype if rotary == "as_cast" else torch.float32
    backbone.model.rotary_emb = type(backbone.model.rotary_emb)(backbone.config).to(where.device, dtype)
    torch.set_float32_matmul_precision("highest")  # no TF32 (E.1)


def with_fields(config: Mapping[str, Any], needed: Sequence[str], where: str | Path, question: str) -> None:
    """Raises `UserError` where `config` lacks one of `needed`, or has null for it.

    Args:
      where: the file that it was read from.
      question: what the user should ask themselves.
    """
    absent = [field for field in needed if config.get(field) is None]
    if absent:
        raise UserError(f"model: {where} lacks {', '.join(absent)}. {question}")


def check_token_ids(ids: Mapping[str, Any], vocab_size: Any, where: str | Path) -> None:
    """Raises `UserError` where one of `ids`, each an id or a list of them, is none of the vocabulary's.

    Args:
      vocab_size: as the config has it.
      where: the file that they were read from.
    """
    if type(vocab_size) is not int:
        raise UserError(f"model: {where} has vocab_size={vocab_size}, need an integer.")
    for key, value in ids.items():
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(type(one) is int and one in range(vocab_size) for one in listed):
            raise UserError(
                f"model: {where} has {key}={value}, need ids from 0 to {vocab_size - 1}. Does it belong to the weights?"
            )
