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
from harness.models.nemotron.adapter import load_adapter
from harness.models.nemotron.model import NemotronModel
from harness.models.nemotron.names import backbone_name
from harness.models.placement import device_named, dtype_named, folder_of

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


def load(
    name: str, path: str, dtype: str, device: str, adapter: str | None = None, adapter_mode: str = "masked"
) -> LanguageModel:
    """Loads a checkpoint folder in the released layout.

    Args:
      name: what records call the model.
      path: folder with config.json, safetensors and tokenizer files; `embedded:NAME` for one that is part of this
        package.
      dtype: "float32", "bfloat16" or "float64".
      device: "cpu", "cuda", ..., or "auto" for the first accelerator there is.
      adapter: peft folder of a proposal-only adapter, relative to `path`; None for none.
      adapter_mode: see `harness.models.nemotron.adapter`.

    Raises:
      UserError: the folder is not such a checkpoint, or the device is not there.
    """
    folder = folder_of(path)
    config = read_config(folder)
    target = device_named(device)
    backbone = _backbone(config, folder, dtype_named(dtype)).to(target)
    proposal_adapter = None
    if adapter is not None:
        proposal_adapter = load_adapter(backbone, folder / adapter, adapter_mode)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    eos = config["eos_token_id"]
    return LanguageModel(
        name=name,
        model=NemotronModel(backbone, config["mask_token_id"], proposal_adapter),
        tokenizer=tokenizer,
        eos_ids=frozenset(eos if isinstance(eos, list) else [eos]),
        context_length=config["max_position_embeddings"],
        adapter=adapter,
        facts={
            "source": path,
            "adapter": adapter and {"source": adapter, "mode": adapter_mode},
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
    load_strictly(backbone, folder, backbone_name, dtype)
    # Buffers are no part of a checkpoint: the rotary frequencies are computed anew, off the meta device.
    backbone.model.rotary_emb = type(backbone.model.rotary_emb)(backbone.config)
    return backbone
