"""What the loaders of all families share: from a model's config to a `LanguageModel`, refusing what is wrong early.

A family says how its config files are read, which stock backbone they describe, and how that becomes a model that
answers calls. Made, a loader has found and checked everything that needs no weights; `load` reads the weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from huggingface_hub.errors import StrictDataclassError
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from harness.errors import UserError, unknown
from harness.models.language_model import LanguageModel
from harness.models.loading.backbone import (
    ROTARY,
    Rotary,
    cache_bytes,
    fill_randomly,
    finish,
    parameters_of,
    weight_bytes,
    without_memory,
)
from harness.models.loading.placement import check_memory, for_random_weights, placement
from harness.models.loading.source import locate
from harness.models.loading.tokenizer import STAND_IN, stand_in_tokenizer

Weights = Literal["released", "random"]
WEIGHTS = ("released", "random")


@dataclass(kw_only=True)
class Loader(ABC):
    """A checkpoint that was found, understood, and fits the device; `load` reads its weights.

    Attributes:
      name: what records call the model.
      path: OWNER/NAME on the hub, a folder with config.json and weights, or `embedded:NAME` for one that is part of
        this package.
      revision: branch, tag or commit on the hub; None for its main branch.
      dtype: "float32", "bfloat16" or "float64".
      rotary: see `harness.models.loading.backbone.finish`.
      device: "cpu", "cuda", ..., or "auto" for the first accelerator there is.
      weights: "released", or "random" for the same architecture without any download.
      architecture: what is known of the released config files; what random weights are built from. None where the
        path holds them for sure.
      layers: with random weights, how many layers to build; None for all.
      backbone: the network; on the meta device until `load`.

    Raises:
      UserError: there is no such checkpoint, it is none of this family, or the device is missing or too small.
    """

    name: str
    path: str
    dtype: str
    device: str
    rotary: Rotary = "float32"
    revision: str | None = None
    weights: Weights = "released"
    architecture: Mapping[str, Any] | None = None
    layers: int | None = None

    def __post_init__(self) -> None:
        self._check_choices()
        self._where = placement(self.device, self.dtype)
        needs_source = not self.is_random or self.architecture is None
        self._source = locate(self.path, self.revision, "model.path") if needs_source else None
        self._read_config()
        self.backbone = self._built()
        self._tokenizer = stand_in_tokenizer() if self.is_random else self._read_tokenizer()
        check_memory(self.name, parameters_of(self.backbone), self._where)

    @property
    def is_random(self) -> bool:
        """Whether weights are made up."""
        return self.weights == "random"

    @property
    def where(self) -> str:
        """Where its files were found."""
        return str(self._source.folder) if self._source else "nowhere, weights are random"

    def load(self) -> LanguageModel:
        """Reads the weights, or makes them up.

        Raises:
          UserError: they cannot be had, or are not those of the config.
        """
        notices = []
        if self.is_random:
            asked, self._where = self._where, for_random_weights(self._where)
            if self._where != asked:
                check_memory(self.name, parameters_of(self.backbone), self._where)
                notices.append(
                    f"random weights are float32 here, not {self.dtype}: this CPU has no instructions for that and "
                    "would take at least twice as long. Times and memory are float32's"
                )
            fill_randomly(self.backbone, self._where)
            origin = {"weights": "random", "tokenizer": STAND_IN}
        else:
            origin = self._read_weights()
        finish(self.backbone, self._where, self.rotary)
        facts = {
            **origin,
            "parameters": parameters_of(self.backbone),
            "weight_bytes": weight_bytes(self.backbone),
            "cache_bytes": cache_bytes(self.backbone),
            "dtype": str(self._where.dtype).removeprefix("torch."),
            "rotary": self.rotary,
            "device": str(self._where.device),
            "attention": self.backbone.config._attn_implementation,
            "notices": notices,
        }
        return self._assemble(
            name=self.name,
            tokenizer=self._tokenizer,
            context_length=self.backbone.config.max_position_embeddings,
            has_random_weights=self.is_random,
            facts=facts,
        )

    @abstractmethod
    def _read_config(self) -> None:
        """Reads and checks the config files, or takes `architecture` where there is no source."""

    @abstractmethod
    def _build(self) -> PreTrainedModel:
        """The stock backbone that the config describes, with `layers` layers if given."""

    @abstractmethod
    def _read_tokenizer(self) -> PreTrainedTokenizerFast:
        """The released tokenizer, checked."""

    @abstractmethod
    def _read_weights(self) -> Mapping[str, Any]:
        """Fills the backbone with the released weights; gives what a manifest should say of their origin."""

    @abstractmethod
    def _assemble(self, *, facts: Mapping[str, Any], **common: Any) -> LanguageModel:
        """The language model around the filled backbone.

        Args:
          facts: what all families say; the family's own are added.
          common: further fields of the language model.
        """

    @property
    def _config_place(self) -> str:
        """Where the config was read, for messages."""
        return f"{self._source.folder / 'config.json'}" if self._source else "model.architecture"

    def _built(self) -> PreTrainedModel:
        try:
            return without_memory(self._build)
        # What transformers says to sizes that cannot be, depending on the field.
        except (StrictDataclassError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UserError(f"model: {self._config_place} describes no network ({reason}). Is it complete?") from None

    def _check_choices(self) -> None:
        if self.rotary not in ROTARY:
            raise unknown("model.rotary", self.rotary, ROTARY)
        if self.weights not in WEIGHTS:
            raise unknown("weights", self.weights, WEIGHTS)
        if self.layers is not None and not self.is_random:
            raise UserError(
                f"model.layers={self.layers}: released weights come with all layers. Add weights=random, or drop it."
            )
        if self.layers is not None and (not isinstance(self.layers, int) or self.layers < 1):
            raise UserError(f"model.layers={self.layers}: need an integer of at least 1.")
