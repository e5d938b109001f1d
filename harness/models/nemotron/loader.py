"""Loads Nemotron-Labs-Diffusion checkpoints, and the embedded tiny one of the same layout, into stock Ministral3.

No remote code: the config is translated field by field, tensors are renamed. Two stock defaults would be wrong and
are overridden: pad id 11, which is this family's EOS, and EOS id 2.
"""

import hashlib
from pathlib import Path
from typing import Any

import torch
from transformers import Ministral3Config, Ministral3ForCausalLM, PreTrainedTokenizerFast

from harness.errors import UserError
from harness.models.checkpoint import load_strictly, read_config
from harness.models.language_model import LanguageModel
from harness.models.nemotron.model import NemotronModel

BACKBONE_FIELDS = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "max_position_embeddings",
    "rms_norm_eps",
    "tie_word_embeddings",
    "rope_parameters",
    "bos_token_id",
    "eos_token_id",
)
EMBEDDED = Path(__file__).parents[1] / "embedded"


def load(name: str, path: str, dtype: str, device: str) -> LanguageModel:
    """Loads a checkpoint folder in the released layout.

    Args:
      name: what records call the model.
      path: folder with config.json, safetensors and tokenizer files; `embedded:NAME` for one that is part of this
        package.
      dtype: "float32", "bfloat16" or "float64".
      device: "cpu", "cuda", ..., or "auto" for the first accelerator there is.

    Raises:
      UserError: the folder is not such a checkpoint, or the device is not there.
    """
    folder = EMBEDDED / path.removeprefix("embedded:") if path.startswith("embedded:") else Path(path)
    config = read_config(folder)
    target = _device(device)
    backbone = _backbone(config, folder, getattr(torch, dtype)).to(target)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    eos = config["eos_token_id"]
    return LanguageModel(
        name=name,
        model=NemotronModel(backbone, config["mask_token_id"]),
        tokenizer=tokenizer,
        eos_ids=frozenset(eos if isinstance(eos, list) else [eos]),
        context_length=config["max_position_embeddings"],
        facts={
            "source": path,
            "config_sha256": hashlib.sha256((folder / "config.json").read_bytes()).hexdigest(),
            "parameters": sum(parameter.numel() for parameter in backbone.parameters()),
            "dtype": dtype,
            "device": str(target),
            "attention": backbone.config._attn_implementation,
        },
    )


def _backbone(config: dict[str, Any], folder: Path, dtype: torch.dtype) -> Ministral3ForCausalLM:
    absent = [field for field in (*BACKBONE_FIELDS, "mask_token_id") if field not in config]
    if absent:
        raise UserError(
            f"model: {folder / 'config.json'} lacks {', '.join(absent)}. Is it a Nemotron-Labs-Diffusion checkpoint?"
        )
    fields = {field: config[field] for field in BACKBONE_FIELDS}
    with torch.device("meta"):
        backbone = Ministral3ForCausalLM(Ministral3Config(**fields, pad_token_id=None, attn_implementation="sdpa"))
    load_strictly(backbone, folder, _stock_name, dtype)
    # Buffers are no part of a checkpoint: the rotary frequencies are computed anew, off the meta device.
    backbone.model.rotary_emb = type(backbone.model.rotary_emb)(backbone.config)
    return backbone


def _stock_name(released: str) -> str | None:
    """The stock backbone's name of a released tensor; None for what a text model does not need."""
    name = released.removeprefix("model.")
    if name.endswith("inv_freq") or "lora_" in name or "linear_spec" in name:
        return None
    if name.startswith("encoder."):
        return "model." + name.removeprefix("encoder.")
    if name.startswith("diffusion_head."):
        return "lm_head." + name.removeprefix("diffusion_head.")
    return released


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    device = torch.device(name)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"model.device={name}: no CUDA device here. Use model.device=cpu or auto.")
    return device
