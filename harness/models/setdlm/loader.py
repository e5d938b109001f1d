"""Loads SetDLM checkpoints, and the embedded tiny one of the same layout, into stock Qwen3.

A checkpoint folder holds weights and a config.json that only points at a base model; sizes of the backbone, tokenizer
and chat template are the base model's. No remote code: tensors lose a prefix, and the mask that the authors' module
stores beside them is dropped. The head is tied to the embeddings, whether the checkpoint has both or one of them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from harness.errors import UserError
from harness.models.backbone import (
    Weights,
    check_weights,
    fill_randomly,
    finish,
    parameters_of,
    with_fields,
    without_memory,
)
from harness.models.checkpoint import load_strictly, read_config
from harness.models.language_model import LanguageModel
from harness.models.placement import check_memory, placement
from harness.models.setdlm.model import SetDlmModel
from harness.models.source import Source, locate
from harness.models.tokenizer import STAND_IN, chat_tokenizer, stand_in_tokenizer

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


@dataclass
class SetDlmLoader:
    """A checkpoint that was found, understood, and fits the device; `load` reads its weights.

    Attributes:
      name: what records call the model.
      path: OWNER/NAME on the hub, a folder with config.json and weights (safetensors or `.bin`), or `embedded:NAME`
        for one that is part of this package.
      revision: branch, tag or commit on the hub; None for its main branch.
      dtype: "float32", "bfloat16" or "float64".
      device: "cpu", "cuda", ..., or "auto" for the first accelerator there is.
      base: the base model's config.json and tokenizer: OWNER/NAME on the hub, or a folder; None for the one that the
        checkpoint names, if it is a folder inside the checkpoint.
      base_revision: as `revision`, of the base model.
      eos_tokens: tokens that end a response; None for the one that the checkpoint names.
      weights: "released", or "random" for the same architecture without any download.
      architecture: what is known of both config.json files; what random weights are built from.
      layers: with random weights, how many layers to build; None for all.
      backbone: the network; on the meta device until `load`.

    Raises:
      UserError: there is no such checkpoint or base model, they are none of this family, or the device is missing or
        too small.
    """

    name: str
    path: str
    dtype: str
    device: str
    revision: str | None = None
    base: str | None = None
    base_revision: str | None = None
    eos_tokens: Sequence[str] | None = None
    weights: Weights = "released"
    architecture: Mapping[str, Any] | None = None
    layers: int | None = None

    def __post_init__(self) -> None:
        check_weights(self.weights, self.layers)
        self._where = placement(self.device, self.dtype)
        needs_source = self.weights == "released" or self.architecture is None
        self._source = locate(self.path, self.revision, "model.path") if needs_source else None
        if self._source is None:
            self._base, self._config, base = None, dict(self.architecture), dict(self.architecture)
        else:
            self._config = read_config(self._source.folder)
            with_fields(self._config, CHECKPOINT_FIELDS, self._source.folder / "config.json", "Is it SetDLM's?")
            self._base = self._locate_base()
            base = read_config(self._base.folder)
        fields = _translated(base, self._base.folder if self._base else "model.architecture")
        layers = self.layers or self._config.get("backbone_config", {}).get("num_layers") or 0
        if layers > 0:
            fields["num_hidden_layers"] = layers
        self.backbone = without_memory(lambda: Qwen3ForCausalLM(Qwen3Config(**fields)))
        self._tokenizer = self._make_tokenizer(fields["vocab_size"])
        self._eos_ids = self._make_eos_ids()
        check_memory(self.name, parameters_of(self.backbone) * self._where.dtype.itemsize, self._where.device)

    @property
    def where(self) -> str:
        """Where its files were found."""
        return str(self._source.folder) if self._source else "nowhere, weights are random"

    def load(self) -> LanguageModel:
        """Reads the weights, or makes them up.

        Raises:
          UserError: they cannot be had, or are not those of the config.
        """
        if self.weights == "random":
            fill_randomly(self.backbone, self._where)
            origin = {"weights": "random", "tokenizer": STAND_IN}
        else:
            folder = self._source.fetched("*.safetensors", "pytorch_model*")
            tied = TIED if self.backbone.config.tie_word_embeddings else None
            digests = load_strictly(self.backbone, folder, _stock_name, self._where, tied)
            origin = {
                **self._source.facts,
                "config_sha256": _sha256(folder / "config.json"),
                "weights_sha256": digests,
                "base": self._base.facts | {"config_sha256": _sha256(self._base.folder / "config.json")},
            }
        finish(self.backbone, self._where)
        return LanguageModel(
            name=self.name,
            model=SetDlmModel(self.backbone, self._config["mask_token_id"]),
            tokenizer=self._tokenizer,
            eos_ids=self._eos_ids,
            context_length=self.backbone.config.max_position_embeddings,
            has_random_weights=self.weights == "random",
            facts={
                **origin,
                "parameters": parameters_of(self.backbone),
                "dtype": self.dtype,
                "float32_matmul_precision": torch.get_float32_matmul_precision(),
                "device": str(self._where.device),
                "attention": self.backbone.config._attn_implementation,
            },
        )

    def _locate_base(self) -> Source:
        if self.base is not None:
            return locate(self.base, self.base_revision, "model.base")
        folder, named = self._source.folder, self._config["backbone_config"].get("pretrained_model_name_or_path")
        if not named or not (folder / named).is_dir():
            raise UserError(
                f"model: {folder / 'config.json'} names the base model {named}, which is no folder inside {folder}. "
                f"Give model.base a folder with config.json and tokenizer of {named}."
            )
        return Source(named, folder / named)

    def _make_tokenizer(self, vocab_size: int) -> PreTrainedTokenizerFast:
        if self.weights == "random":
            return stand_in_tokenizer()
        return chat_tokenizer(self._base.folder, vocab_size, self._config["mask_token_id"], bos_id=None)

    def _make_eos_ids(self) -> frozenset[int]:
        if self.eos_tokens is None or self.weights == "random":
            return frozenset([self._config["eos_token_id"]])
        vocabulary = self._tokenizer.get_vocab()
        unknown = [token for token in self.eos_tokens if token not in vocabulary]
        if unknown or not self.eos_tokens:
            raise UserError(
                f"model.eos_tokens={list(self.eos_tokens)}: need at least one token, all in the vocabulary."
            )
        return frozenset(vocabulary[token] for token in self.eos_tokens)


def _translated(base: Mapping[str, Any], where: str | Path) -> dict[str, Any]:
    """The stock config's fields from the base model's config.json."""
    # Base models of before transformers 5 give the frequency base alone.
    rotary = base.get("rope_parameters") or {"rope_type": "default", "rope_theta": base.get("rope_theta")}
    with_fields({**base, **rotary}, (*BASE_FIELDS, "rope_theta"), where, "Is it a Qwen3 model?")
    if base.get("use_sliding_window") or base.get("rope_scaling") or base.get("attention_bias"):
        raise UserError(f"model: {where} has a sliding window, rope_scaling or attention_bias; need none of them.")
    return {field: base[field] for field in BASE_FIELDS} | {
        "rope_parameters": dict(rotary),
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
        "attn_implementation": "sdpa",
    }


def _stock_name(released: str) -> str | None:
    """The stock backbone's name of a released tensor; None for what no backbone has."""
    return None if released in NOT_OF_THE_BACKBONE else released.removeprefix(PREFIX)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
