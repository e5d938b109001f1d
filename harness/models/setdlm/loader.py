"""Loads SetDLM checkpoints, and the embedded tiny one of the same layout, into stock Qwen3.

A checkpoint folder holds weights and a config.json that only points at a base model; sizes of the backbone, tokenizer
and chat template are the base model's. No remote code: tensors lose a prefix, and the mask that the authors' module
stores beside them is dropped. The head is tied to the embeddings, whether the checkpoint has both or one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from harness.errors import UserError
from harness.models.language_model import LanguageModel
from harness.models.loading.backbone import check_token_ids, with_fields
from harness.models.loading.checkpoint import load_strictly, read_config, sha256
from harness.models.loading.loader import Loader
from harness.models.loading.source import Source, locate
from harness.models.loading.tokenizer import chat_tokenizer
from harness.models.setdlm.model import SetDlmModel

PREFIX = "backbone.model."
NOT_OF_THE_BACKBONE = ("static_attention_mask",)
TIED = {"lm_head.weight": "model.embed_tokens.weight"}
LENGTH = 1024  # of the release's own config class, where config.json does not say
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


@dataclass(kw_only=True)
class SetDlmLoader(Loader):
    """Loads one checkpoint of this family; see `Loader` for what all families share. Weights may be `.bin` files.

    Attributes:
      base: the base model's config.json and tokenizer: OWNER/NAME on the hub, or a folder; None for the one that the
        checkpoint names, if it is a folder inside the checkpoint.
      base_revision: as `revision`, of the base model.
      eos_tokens: tokens that end a response; None for the one that the checkpoint names.
    """

    base: str | None = None
    base_revision: str | None = None
    eos_tokens: Sequence[str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._eos_ids = self._make_eos_ids()

    def _read_config(self) -> None:
        if self._source is None:
            self._config, base, where = dict(self.architecture), self.architecture, "model.architecture"
        else:
            self._config = read_config(self._source.folder)
            with_fields(self._config, CHECKPOINT_FIELDS, self._config_place, "Is it SetDLM's?")
            _check_backbone_config(self._config["backbone_config"], self._config_place)
            self._base = self._locate_base()
            base, where = read_config(self._base.folder), self._base.folder
        self._fields = _translated(base, where)
        ids = {key: self._config[key] for key in ("mask_token_id", "eos_token_id")}
        check_token_ids(ids, self._fields["vocab_size"], self._config_place)
        layers = self.layers or self._config.get("backbone_config", {}).get("num_layers") or 0
        if layers > 0:
            self._fields["num_hidden_layers"] = layers

    def _build(self) -> Qwen3ForCausalLM:
        return Qwen3ForCausalLM(Qwen3Config(**self._fields))

    def _read_tokenizer(self) -> PreTrainedTokenizerFast:
        return chat_tokenizer(self._base.folder, self._fields["vocab_size"], self._config["mask_token_id"], bos_id=None)

    def _read_weights(self) -> Mapping[str, Any]:
        folder = self._source.fetched("*.safetensors", "pytorch_model*")
        tied = TIED if self._fields["tie_word_embeddings"] else None
        digests = load_strictly(self.backbone, folder, _stock_name, self._where, tied)
        return {
            **self._source.facts,
            "config_sha256": sha256(folder / "config.json"),
            "weights_sha256": digests,
            "base": self._base.facts | {"config_sha256": sha256(self._base.folder / "config.json")},
        }

    def _assemble(self, *, facts: Mapping[str, Any], **common: Any) -> LanguageModel:
        return LanguageModel(
            **common,
            model=SetDlmModel(self.backbone, self._config["mask_token_id"], self._config.get("length", LENGTH)),
            eos_ids=self._eos_ids,
            facts={**facts, "float32_matmul_precision": torch.get_float32_matmul_precision()},
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

    def _make_eos_ids(self) -> frozenset[int]:
        if self.eos_tokens is None or self.is_random:
            return frozenset([self._config["eos_token_id"]])
        vocabulary = self._tokenizer.get_vocab()
        unknown = [token for token in self.eos_tokens if token not in vocabulary]
        if unknown or not self.eos_tokens:
            raise UserError(
                f"model.eos_tokens={list(self.eos_tokens)}: need at least one token, all in the vocabulary."
            )
        return frozenset(vocabulary[token] for token in self.eos_tokens)


def _check_backbone_config(given: Any, where: str) -> None:
    known = {"num_layers": int, "pretrained_model_name_or_path": str}
    if not isinstance(given, dict) or not all(isinstance(given.get(key), kind | None) for key, kind in known.items()):
        raise UserError(f"model: {where} has backbone_config={given}, need num_layers and a path. Is it SetDLM's?")


def _translated(base: Mapping[str, Any], where: str | Path) -> dict[str, Any]:
    """The stock config's fields from the base model's config.json."""
    # Base models of before transformers 5 give the frequency base alone.
    rotary = base.get("rope_parameters") or {"rope_type": "default", "rope_theta": base.get("rope_theta")}
    if not isinstance(rotary, dict):
        raise UserError(f"model: {where} has rope_parameters={rotary}, need an object. Is it a Qwen3 model?")
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
