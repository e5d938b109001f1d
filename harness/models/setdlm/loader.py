"""Loads SetDLM checkpoints, and the embedded tiny one of the same layout, into stock Qwen3.

A checkpoint folder holds weights and a config.json that only points at a base model; sizes of the backbone, tokenizer
and chat template are the base model's. No remote code: tensors lose a prefix, and the mask that the authors' module
stores beside them is dropped. The head is tied to the embeddings, whether the checkpoint has both or one of them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from harness.errors import UserError
from harness.models.checkpoint import load_strictly, read_config
from harness.models.language_model import LanguageModel
from harness.models.placement import device_named, dtype_named, folder_of
from harness.models.setdlm.model import SetDlmModel

PREFIX = "backbone.model."
NOT_OF_THE_BACKBONE = ("static_attention_mask",)
TIED = {"lm_head.weight": "model.embed_tokens.weight"}
CHECKPOINT_FIELDS = ("backbone_config", "mask_token_id", "eos_token_id")
BASE_FIELDS = (
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
)


def load(
    name: str,
    path: str,
    dtype: str,
    device: str,
    base: str | None = None,
    eos_tokens: Sequence[str] | None = None,
) -> LanguageModel:
    """Loads a checkpoint folder in the released layout. Matrix products in float32 are then exact: TF32 is off.

    Args:
      name: what records call the model.
      path: folder with config.json and weights, safetensors or `.bin`; `embedded:NAME` for one that is part of this
        package.
      dtype: "float32", "bfloat16" or "float64".
      device: "cpu", "cuda", ..., or "auto" for the first accelerator there is.
      base: folder of the base model with its config.json and tokenizer; None for the one that the checkpoint names,
        if it is a folder inside the checkpoint.
      eos_tokens: tokens that end a response; None for the one that the checkpoint names.

    Raises:
      UserError: the folders are not such a checkpoint and its base model, or the device is not there.
    """
    folder = folder_of(path)
    config = _with_fields(read_config(folder), CHECKPOINT_FIELDS, folder, "Is it a SetDLM checkpoint?")
    base_folder = _base_folder(config, folder, base)
    number_type, target = dtype_named(dtype), device_named(device)
    tokenizer = _tokenizer(base_folder, config["mask_token_id"])
    backbone = _backbone(config, folder, base_folder, number_type).to(target)
    torch.set_float32_matmul_precision("highest")
    return LanguageModel(
        name=name,
        model=SetDlmModel(backbone, config["mask_token_id"]),
        tokenizer=tokenizer,
        eos_ids=_eos_ids(tokenizer, config["eos_token_id"], eos_tokens),
        context_length=backbone.config.max_position_embeddings,
        facts={
            "source": path,
            "base": base or _named_base(config),
            "config_sha256": _sha256(folder / "config.json"),
            "base_config_sha256": _sha256(base_folder / "config.json"),
            "parameters": sum(parameter.numel() for parameter in backbone.parameters()),
            "dtype": dtype,
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "device": str(target),
            "attention": backbone.config._attn_implementation,
        },
    )


def _base_folder(config: dict[str, Any], folder: Path, base: str | None) -> Path:
    if base is not None:
        found = folder_of(base)
        if not found.is_dir():
            raise UserError(
                f"model.base={base}: no such folder. Give it the base model's folder with config.json and tokenizer."
            )
        return found
    named = _named_base(config)
    if not (folder / named).is_dir():
        raise UserError(
            f"model: {folder / 'config.json'} names the base model {named}, which is no folder inside {folder}. "
            f"Give model.base a folder with config.json and tokenizer of {named}."
        )
    return folder / named


def _named_base(config: dict[str, Any]) -> str:
    return config["backbone_config"].get("pretrained_model_name_or_path", "(none)")


def _backbone(config: dict[str, Any], folder: Path, base_folder: Path, dtype: torch.dtype) -> Qwen3ForCausalLM:
    base = read_config(base_folder)
    # Base models of before transformers 5 give the frequency base alone.
    rotary = base.get("rope_parameters") or {"rope_type": "default", "rope_theta": base.get("rope_theta")}
    base = _with_fields(base | rotary, (*BASE_FIELDS, "rope_theta"), base_folder, "Is it a Qwen3 model?")
    if base.get("use_sliding_window") or base.get("rope_scaling"):
        raise UserError(f"model: {base_folder / 'config.json'} has a sliding window or rope_scaling; need neither.")
    fields = {field: base[field] for field in BASE_FIELDS}
    layers = config["backbone_config"].get("num_layers") or 0
    if layers > 0:
        fields["num_hidden_layers"] = layers
    with torch.device("meta"):
        backbone = Qwen3ForCausalLM(
            Qwen3Config(
                **fields,
                rope_parameters=rotary,
                bos_token_id=None,
                eos_token_id=None,
                pad_token_id=None,
                attn_implementation="sdpa",
            )
        )
    load_strictly(backbone, folder, _stock_name, dtype, TIED if fields["tie_word_embeddings"] else None)
    backbone.tie_weights()
    # Buffers are no part of a checkpoint: the rotary frequencies are computed anew, off the meta device.
    backbone.model.rotary_emb = type(backbone.model.rotary_emb)(backbone.config)
    return backbone


def _stock_name(released: str) -> str | None:
    """The stock backbone's name of a released tensor; None for what no backbone has."""
    return None if released in NOT_OF_THE_BACKBONE else released.removeprefix(PREFIX)


def _tokenizer(base_folder: Path, mask_id: int) -> PreTrainedTokenizerFast:
    if not (base_folder / "tokenizer.json").exists():
        raise UserError(f"model: {base_folder} has no tokenizer.json. Is it the base model's folder?")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(base_folder)
    if tokenizer.chat_template is None:
        raise UserError(f"model: the tokenizer in {base_folder} has no chat template. Is it the base model's folder?")
    if tokenizer.mask_token_id not in (None, mask_id):
        raise UserError(
            f"model: mask token {mask_id} in the checkpoint, {tokenizer.mask_token_id} in the tokenizer of "
            f"{base_folder}. Check that model.path and model.base belong together."
        )
    return tokenizer


def _eos_ids(tokenizer: PreTrainedTokenizerFast, released: int, eos_tokens: Sequence[str] | None) -> frozenset[int]:
    if eos_tokens is None:
        return frozenset([released])
    vocabulary = tokenizer.get_vocab()
    unknown = [token for token in eos_tokens if token not in vocabulary]
    if unknown or not eos_tokens:
        raise UserError(f"model.eos_tokens={list(eos_tokens)}: need at least one token, all in the vocabulary.")
    return frozenset(vocabulary[token] for token in eos_tokens)


def _with_fields(config: dict[str, Any], needed: Sequence[str], folder: Path, question: str) -> dict[str, Any]:
    absent = [field for field in needed if config.get(field) is None]
    if absent:
        raise UserError(f"model: {folder / 'config.json'} lacks {', '.join(absent)}. {question}")
    return config


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
