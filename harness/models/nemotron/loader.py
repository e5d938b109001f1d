"""Loads Nemotron-Labs-Diffusion checkpoints, and the embedded tiny one of the same layout, into stock Ministral3.

No remote code: the config is translated field by field, tensors are renamed. Two stock defaults would be wrong and
are overridden: pad id 11, which is this family's EOS, and EOS id 2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import Ministral3Config, Ministral3ForCausalLM, PreTrainedTokenizerFast

from harness.errors import UserError
from harness.models.execution.engine import build_engine
from harness.models.language_model import LanguageModel
from harness.models.loading.backbone import check_token_ids, with_fields
from harness.models.loading.checkpoint import load_strictly, read_config, sha256
from harness.models.loading.loader import Loader
from harness.models.loading.tokenizer import chat_tokenizer
from harness.models.nemotron.adapter import load_adapter, random_adapter
from harness.models.nemotron.model import NemotronModel
from harness.models.nemotron.names import backbone_name
from harness.models.shifted.adapter import Mode, ProposalAdapter

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
NULLABLE = ("bos_token_id", "tie_word_embeddings")  # null says that there is none
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


@dataclass(kw_only=True)
class NemotronLoader(Loader):
    """Loads one checkpoint of this family; see `Loader` for what all families share.

    Attributes:
      adapter: peft folder of a proposal-only adapter, relative to `path`; None for none.
      adapter_mode: see `harness.models.shifted.adapter`.
      engine: see `harness.models.execution.engine`.
    """

    adapter: str | None = None
    adapter_mode: Mode = "masked"
    engine: str = "eager"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._engine = build_engine(self.engine, self._where.device)

    def _read_config(self) -> None:
        self._config = dict(self.architecture) if self._source is None else _checked_config(self._source.folder)
        if self.layers is not None:
            self._config["num_hidden_layers"] = self.layers
        ids = {key: self._config[key] for key in ("mask_token_id", "eos_token_id")}
        check_token_ids(ids, self._config["vocab_size"], self._config_place)
        if self.is_random and self.adapter is not None:
            known = (self.architecture or {}).get("adapters", {})
            if self.adapter not in known:
                need = ", ".join(known) or "none"
                raise UserError(f"adapter={self.adapter}: with random weights, need one of: {need}.")

    def _build(self) -> Ministral3ForCausalLM:
        fields = {field: self._config[field] for field in BACKBONE_FIELDS}
        return Ministral3ForCausalLM(Ministral3Config(**fields, pad_token_id=None, attn_implementation="sdpa"))

    def _read_tokenizer(self) -> PreTrainedTokenizerFast:
        ids = (self._config["vocab_size"], self._config["mask_token_id"], self._config["bos_token_id"])
        return chat_tokenizer(self._source.folder, *ids)

    def _read_weights(self) -> Mapping[str, Any]:
        folder = self._source.fetched("*.safetensors")
        tied = TIED if self._config["tie_word_embeddings"] else None
        digests = load_strictly(self.backbone, folder, backbone_name, self._where, tied)
        return {**self._source.facts, "config_sha256": sha256(folder / "config.json"), "weights_sha256": digests}

    def _assemble(self, *, facts: Mapping[str, Any], **common: Any) -> LanguageModel:
        eos = self._config["eos_token_id"]
        return LanguageModel(
            **common,
            model=NemotronModel(self.backbone, self._config["mask_token_id"], self._load_adapter(), self._engine),
            eos_ids=frozenset(eos if isinstance(eos, Sequence) else [eos]),
            adapter=self.adapter,
            facts={
                **facts,
                "engine": self.engine,
                "unlike_expected": self._unlike_expected(),
                "adapter": self.adapter and {"source": self.adapter, "mode": self.adapter_mode},
            },
        )

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
        if not self.is_random:
            folder = self._source.fetched(f"{self.adapter}/*")
            return load_adapter(self.backbone, folder / self.adapter, self.adapter_mode)
        return random_adapter(self.backbone, **self.architecture["adapters"][self.adapter], mode=self.adapter_mode)


def _checked_config(folder: Path) -> dict[str, Any]:
    config = read_config(folder)
    where = folder / "config.json"
    absent = [field for field in NULLABLE if field not in config]
    if absent:
        raise UserError(f"model: {where} lacks {', '.join(absent)}. {QUESTION}")
    with_fields(
        config, [field for field in (*BACKBONE_FIELDS, "mask_token_id") if field not in NULLABLE], where, QUESTION
    )
    unlike = [f"{key}={config[key]}" for key, need in ASSUMED.items() if config.get(key, need) != need]
    if unlike:
        raise UserError(f"model: {where} has {', '.join(unlike)}, which this family's loader does not know. {QUESTION}")
    return config
