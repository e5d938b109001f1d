"""Loads plain causal checkpoints of the kinds in KINDS into their stock backbones, and a drafter where there is one.

Configs are read as transformers reads them, old spellings of rotary fields included. What the layouts and the forward
pass do not know is refused by its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from harness.errors import UserError
from harness.models.causal.drafter import Drafter, DrafterFolder, random_drafter, read_folder
from harness.models.causal.model import NO_DRAFTER, CausalModel
from harness.models.execution.engine import build_engine
from harness.models.language_model import LanguageModel
from harness.models.loading.backbone import check_token_ids, with_fields
from harness.models.loading.checkpoint import load_strictly, read_config, read_generation_config, sha256
from harness.models.loading.loader import Loader
from harness.models.loading.source import EMBEDDED
from harness.models.loading.tokenizer import chat_tokenizer
from harness.models.shifted.adapter import Mode

# model_type of a config -> what its classes in transformers are called.
KINDS = {"llama": "Llama", "mistral": "Mistral", "ministral3": "Ministral3", "qwen2": "Qwen2", "qwen3": "Qwen3"}
ROTARY = ("default", "linear", "llama3", "yarn")  # the same at every length of the text
NEEDED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "eos_token_id")
TIED = {"lm_head.weight": "model.embed_tokens.weight"}
QUESTION = "Is it a causal language model's checkpoint?"
OWN_DRAFTER = "auto"
RANDOM_RANK = 16


@dataclass(kw_only=True)
class CausalLoader(Loader):
    """Loads one checkpoint of this family; see `Loader` for what all families share.

    Attributes:
      drafter: folder that train-drafter wrote, or the name of one that is part of this package; "auto" for the one that
        is called as the model is, if there is one; None for none.
      drafter_mode: see `harness.models.shifted.adapter`.
      engine: see `harness.models.execution.engine`.
    """

    drafter: str | None = OWN_DRAFTER
    drafter_mode: Mode = "fused"
    engine: str = "eager"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._engine = build_engine(self.engine, self._where.device)
        self._drafter_folder = None if self.is_random else _drafter_folder(self.drafter, self.name)

    @property
    def lacks(self) -> str:
        """What stands in the way of schedules that draft; nothing where there is a drafter."""
        has_drafter = self._drafter_folder or (self.is_random and self.drafter is not None)
        return "" if has_drafter else NO_DRAFTER

    def _read_config(self) -> None:
        self._config = dict(self.architecture) if self._source is None else read_config(self._source.folder)
        if self.layers is not None:
            self._config["num_hidden_layers"] = self.layers
            # One entry a layer, where a config lists their kinds.
            if isinstance(listed := self._config.get("layer_types"), list):
                self._config["layer_types"] = listed[: self.layers]
        _check_kind(self._config, self._config_place)
        with_fields(self._config, NEEDED, self._config_place, QUESTION)
        self._eos = self._config["eos_token_id"]
        if self._source is not None:
            # What ends a response of an instruct model stands there, where it is not what ends a text.
            self._eos = read_generation_config(self._source.folder).get("eos_token_id") or self._eos
        check_token_ids({"eos_token_id": self._eos}, self._config["vocab_size"], self._config_place)

    def _build(self) -> PreTrainedModel:
        kind = KINDS[self._config["model_type"]]
        fields = {
            key: value for key, value in self._config.items() if key not in ("architectures", "torch_dtype", "dtype")
        }
        config = getattr(transformers, f"{kind}Config")(**fields)
        if getattr(config, "head_dim", None) is None:
            config.head_dim = config.hidden_size // config.num_attention_heads
        _check_attention(config, self._config_place)
        config._attn_implementation = "sdpa"
        return getattr(transformers, f"{kind}ForCausalLM")(config)

    def _read_tokenizer(self) -> PreTrainedTokenizerFast:
        # No BOS to look for: ChatML templates begin every turn with it.
        return chat_tokenizer(self._source.folder, self._config["vocab_size"], mask_id=None, bos_id=None)

    def _read_weights(self) -> Mapping[str, Any]:
        folder = self._source.fetched("*.safetensors", "pytorch_model*.bin*")
        tied = TIED if self.backbone.config.tie_word_embeddings else None
        digests = load_strictly(self.backbone, folder, _stock_name, self._where, tied)
        return {**self._source.facts, "config_sha256": sha256(folder / "config.json"), "weights_sha256": digests}

    def _assemble(self, *, facts: Mapping[str, Any], **common: Any) -> LanguageModel:
        found = self._drafter_folder
        if found and not found.is_for(facts["weights_sha256"]):
            trained_for = found.description["base_model"].get("name", "another model")
            notice = f"the drafter {found.path} was trained for other weights ({trained_for}); its drafts may be worse"
            facts = {**facts, "notices": [*facts["notices"], notice]}
        drafter = self._load_drafter()
        return LanguageModel(
            **common,
            model=CausalModel(self.backbone, drafter, self._engine),
            eos_ids=frozenset(self._eos if isinstance(self._eos, Sequence) else [self._eos]),
            adapter=found.path.name if found else None,
            facts={
                **facts,
                "engine": self.engine,
                "drafter": {**found.facts(), "mode": self.drafter_mode} if found else None,
            },
        )

    def _load_drafter(self) -> Drafter | None:
        if self._drafter_folder:
            return self._drafter_folder.load(self.backbone, self.drafter_mode)
        if self.is_random and self.drafter is not None:
            return random_drafter(self.backbone, RANDOM_RANK, self.drafter_mode)
        return None


def _drafter_folder(asked: str | None, model: str) -> DrafterFolder | None:
    if asked is None:
        return None
    own = EMBEDDED / "drafters"
    named = own / (model if asked == OWN_DRAFTER else asked)
    if named.is_dir():
        return read_folder(named)
    if asked == OWN_DRAFTER:
        return None
    folder = Path(asked).expanduser()
    if not folder.is_dir():
        known = ", ".join(sorted(one.name for one in own.iterdir())) if own.is_dir() else ""
        raise UserError(f"drafter={asked}: no folder there, and no drafter of that name. Known: {known or 'none'}.")
    return read_folder(folder)


def _check_kind(config: Mapping[str, Any], where: str) -> None:
    kind = config.get("model_type")
    is_mixture = any("expert" in key and config[key] for key in config) or "moe" in f"{kind}" or kind == "mixtral"
    if is_mixture:
        raise UserError(f"model: {where} has model_type={kind}, a mixture of experts; this family has none.")
    if kind not in KINDS:
        raise UserError(f"model: {where} has model_type={kind}, whose attention this family does not know. {_known()}")
    if config.get("quantization_config") is not None:
        raise UserError(f"model: {where} has quantized weights. Give the same checkpoint in plain floats.")


def _check_attention(config: PreTrainedConfig, where: str) -> None:
    """Raises `UserError` where the attention is not full attention with plain rotary positions."""
    layer_types = {*(getattr(config, "layer_types", None) or ())} - {"full_attention"}
    window = getattr(config, "sliding_window", None)
    if layer_types or window is not None:
        found = f"sliding_window={window}" if window is not None else f"layer_types {', '.join(sorted(layer_types))}"
        raise UserError(f"model: {where} has sliding windows ({found}); layouts need every row to see the whole text.")
    rotary = config.rope_parameters
    kind, share = rotary.get("rope_type", "default"), rotary.get("partial_rotary_factor", 1.0)
    if kind not in ROTARY or share != 1.0:
        raise UserError(
            f"model: {where} has rotary positions of type {kind} on {share:g} of a head; known are "
            f"{', '.join(ROTARY)}, on all of it."
        )


def _stock_name(released: str) -> str | None:
    # Buffers that old versions saved.
    return None if released.endswith("rotary_emb.inv_freq") else released


def _known() -> str:
    return f"Known: {', '.join(KINDS)}."
