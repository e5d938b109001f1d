"""Loads Nemotron-Labs-Diffusion checkpoints, and the embedded tiny one of the same layout, into stock Ministral3.

No remote code: the config is translated field by field, tensors are renamed. Two stock defaults would be wrong and
are overridden: pad id 11, which is this family's EOS, and EOS id 2.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import Ministral3Config, Ministral3ForCausalLM

from harness.errors import UserError
from harness.models.backbone import (
    Weights,
    check_weights,
    fill_randomly,
    finish,
    parameters_of,
    without_memory,
)
from harness.models.checkpoint import load_strictly, read_config
from harness.models.language_model import LanguageModel
from harness.models.nemotron.adapter import Mode, ProposalAdapter, load_adapter, random_adapter
from harness.models.nemotron.model import NemotronModel
from harness.models.nemotron.names import backbone_name
from harness.models.placement import check_memory, placement
from harness.models.source import locate
from harness.models.tokenizer import STAND_IN, chat_tokenizer, stand_in_tokenizer

MODEL_TYPE = "nemotron_labs_diffusion"
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
# What the layouts and the stock backbone take for granted; other values would be silently wrong.
ASSUMED = {
    "model_type": MODEL_TYPE,
    "dlm_paradigm": "bidirectional",
    "sliding_window": None,
    "attention_bias": False,
    "mlp_bias": False,
    "quantization_config": None,
}
TIED = {"lm_head.weight": "model.embed_tokens.weight"}
QUESTION = "Is it a Nemotron-Labs-Diffusion checkpoint?"


@dataclass
class NemotronLoader:
    """A checkpoint that was found, understood, and fits the device; `load` reads its weights.

    Attributes:
      name: what records call the model.
      path: OWNER/NAME on the hub, a folder with config.json, safetensors and tokenizer files, or `embedded:NAME` for
        one that is part of this package.
      revision: branch, tag or commit on the hub; None for its main branch.
      dtype: "float32", "bfloat16" or "float64".
      device: "cpu", "cuda", ..., or "auto" for the first accelerator there is.
      adapter: peft folder of a proposal-only adapter, relative to `path`; None for none.
      adapter_mode: see `harness.models.nemotron.adapter`.
      weights: "released", or "random" for the same architecture without any download.
      architecture: what is known of the released config.json; None where the path holds it for sure.
      layers: with random weights, how many layers to build; None for all.
      backbone: the network; on the meta device until `load`.

    Raises:
      UserError: there is no such checkpoint, it is none of this family, or the device is missing or too small.
    """

    name: str
    path: str
    dtype: str
    device: str
    revision: str | None = None
    adapter: str | None = None
    adapter_mode: Mode = "masked"
    weights: Weights = "released"
    architecture: Mapping[str, Any] | None = None
    layers: int | None = None

    def __post_init__(self) -> None:
        check_weights(self.weights, self.layers)
        self._where = placement(self.device, self.dtype)
        needs_source = self.weights == "released" or self.architecture is None
        self._source = locate(self.path, self.revision, "model.path") if needs_source else None
        self._config = self._read_config()
        if self.layers is not None:
            self._config["num_hidden_layers"] = self.layers
        self.backbone = without_memory(lambda: Ministral3ForCausalLM(_translated(self._config)))
        if self.weights == "random":
            self._tokenizer = stand_in_tokenizer()
        else:
            ids = (self._config["vocab_size"], self._config["mask_token_id"], self._config["bos_token_id"])
            self._tokenizer = chat_tokenizer(self._source.folder, *ids)
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
            folder = self._source.fetched("*.safetensors")
            tied = TIED if self._config["tie_word_embeddings"] else None
            digests = load_strictly(self.backbone, folder, backbone_name, self._where, tied)
            config_sha256 = hashlib.sha256((folder / "config.json").read_bytes()).hexdigest()
            origin = {**self._source.facts, "config_sha256": config_sha256, "weights_sha256": digests}
        finish(self.backbone, self._where)
        eos = self._config["eos_token_id"]
        return LanguageModel(
            name=self.name,
            model=NemotronModel(self.backbone, self._config["mask_token_id"], self._load_adapter()),
            tokenizer=self._tokenizer,
            eos_ids=frozenset(eos if isinstance(eos, Sequence) else [eos]),
            context_length=self._config["max_position_embeddings"],
            adapter=self.adapter,
            has_random_weights=self.weights == "random",
            facts={
                **origin,
                "unlike_expected": self._unlike_expected(),
                "adapter": self.adapter and {"source": self.adapter, "mode": self.adapter_mode},
                "parameters": parameters_of(self.backbone),
                "dtype": self.dtype,
                "device": str(self._where.device),
                "attention": self.backbone.config._attn_implementation,
            },
        )

    def _read_config(self) -> dict[str, Any]:
        if self._source is None:
            return dict(self.architecture)
        config = read_config(self._source.folder)
        where = self._source.folder / "config.json"
        # Null is a value for a BOS id and for a tied head.
        absent = [field for field in (*BACKBONE_FIELDS, "mask_token_id") if field not in config]
        if absent:
            raise UserError(f"model: {where} lacks {', '.join(absent)}. {QUESTION}")
        unlike = [f"{key}={config[key]}" for key, need in ASSUMED.items() if config.get(key, need) != need]
        if unlike:
            raise UserError(
                f"model: {where} has {', '.join(unlike)}, which this family's loader does not know. {QUESTION}"
            )
        return config

    def _unlike_expected(self) -> Mapping[str, Any]:
        """Fields in which the checkpoint's config is not what `architecture` says; the checkpoint's hold."""
        expected = self.architecture or {}
        return {
            key: {"expected": expected[key], "found": self._config[key]}
            for key in (*BACKBONE_FIELDS, "mask_token_id")
            if key in expected and key != "num_hidden_layers" and expected[key] != self._config[key]
        }

    def _load_adapter(self) -> ProposalAdapter | None:
        if self.adapter is None:
            return None
        if self.weights == "released":
            folder = self._source.fetched(f"{self.adapter}/*")
            return load_adapter(self.backbone, folder / self.adapter, self.adapter_mode)
        known = (self.architecture or {}).get("adapters", {})
        if self.adapter not in known:
            raise UserError(f"adapter={self.adapter}: with random weights, need one of: {', '.join(known) or 'none'}.")
        return random_adapter(self.backbone, **known[self.adapter], mode=self.adapter_mode)


def _translated(config: Mapping[str, Any]) -> Ministral3Config:
    fields = {field: config[field] for field in BACKBONE_FIELDS}
    return Ministral3Config(**fields, pad_token_id=None, attn_implementation="sdpa")
