"""A drafter for a plain causal model: low-rank updates that proposal rows alone get, and the vector of a mask.

Its folder holds two files:

    drafter.safetensors   mask_vector [hidden], and NAME.lora_A [rank, in], NAME.lora_B [out, rank] for each projection
    drafter.json          convention, rank, projections, the base model with its weights' SHA-256, how it was trained

Convention `next`: a mask predicts the token after its own position (`harness.models.causal.layout`). The update is
computed in the backbone's dtype, as all else that a proposal row goes through.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from harness.errors import UserError
from harness.models.loading.checkpoint import sha256
from harness.models.shifted.adapter import Mode, ProposalAdapter

CONVENTION = "next"
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
TENSORS, DESCRIPTION = "drafter.safetensors", "drafter.json"
MASK_VECTOR = "mask_vector"
NEEDED = ("convention", "rank", "projections", "base_model")


@dataclass(frozen=True)
class Drafter:
    """What was put on a backbone to make it propose.

    Attributes:
      adapter: switches the updates.
      mask_vector: [hidden], what a mask row starts as.
      rank: of the updates.
    """

    adapter: ProposalAdapter
    mask_vector: nn.Parameter
    rank: int

    def parameters(self) -> Mapping[str, nn.Parameter]:
        """All that a drafter learns, by the names in its file."""
        return {MASK_VECTOR: self.mask_vector} | {
            f"{name}.{part}": getattr(projection, part)
            for name, projection in self.adapter.projections.items()
            for part in ("lora_A", "lora_B")
        }

    @classmethod
    def put_on(cls, backbone: PreTrainedModel, rank: int, mode: Mode, dtype: torch.dtype) -> "Drafter":
        """A drafter around the projections and embeddings of `backbone`; updates are zero, a mask is a mean token.

        Args:
          dtype: of what it learns.
        """
        embeddings = backbone.get_input_embeddings()
        vector = nn.Parameter(embeddings.weight.detach().mean(dim=0, dtype=torch.float32).to(dtype))
        backbone.set_input_embeddings(_EmbeddingWithMask(embeddings, vector))
        return cls(ProposalAdapter(backbone, rank, 1.0, mode, PROJECTIONS, dtype), vector, rank)


class _EmbeddingWithMask(nn.Module):
    """An embedding whose ids beyond the vocabulary are masks."""

    def __init__(self, base: nn.Embedding, vector: nn.Parameter):
        super().__init__()
        self.base = base
        # In a list: it belongs to the drafter. As a parameter of this module it would be the backbone's first, and
        # the backbone's dtype is that of its first parameter.
        self._vector = [vector]

    @property
    def weight(self) -> Tensor:
        return self.base.weight

    def forward(self, token_ids: Tensor) -> Tensor:
        is_mask = token_ids >= self.base.num_embeddings
        hidden = self.base(token_ids.masked_fill(is_mask, 0))
        return torch.where(is_mask[..., None], self._vector[0].to(hidden.dtype), hidden)


@dataclass(frozen=True)
class DrafterFolder:
    """A drafter's folder that was found and whose description was understood.

    Attributes:
      description: what its drafter.json says.
    """

    path: Path
    description: Mapping[str, Any]

    def load(self, backbone: PreTrainedModel, mode: Mode) -> Drafter:
        """Puts the drafter on `backbone`, in its dtype.

        Raises:
          UserError: its tensors cannot be read, or are not this backbone's.
        """
        what = f"drafter={self.path}"
        try:
            given = load_file(self.path / TENSORS)
        except (OSError, ValueError, SafetensorError) as error:
            raise UserError(f"{what}: cannot read {TENSORS} ({error}).") from None
        drafter = Drafter.put_on(backbone, self.description["rank"], mode, backbone.dtype)
        expected = drafter.parameters()
        wrong = sorted(expected.keys() ^ given.keys()) + sorted(
            name for name in expected.keys() & given.keys() if expected[name].shape != given[name].shape
        )
        if wrong:
            raise UserError(
                f"{what}: {len(wrong)} tensors missing, unexpected or of another shape, first {wrong[0]}. "
                "Was it trained for this model?"
            )
        with torch.no_grad():
            for name, parameter in expected.items():
                if not given[name].isfinite().all():
                    raise UserError(f"{what}: {name} holds NaN or infinity. Train it again, or take an earlier one.")
                parameter.copy_(given[name])
        return drafter

    def facts(self) -> Mapping[str, Any]:
        """For the manifest."""
        said = {key: self.description[key] for key in ("convention", "rank")}
        return {"name": self.path.name, **said, "sha256": sha256(self.path / TENSORS)}

    def is_for(self, weights: Mapping[str, str]) -> bool:
        """Whether it was trained on these weights: SHA-256 by file."""
        return sorted(self.description["base_model"].get("weights_sha256", {}).values()) == sorted(weights.values())


def read_folder(folder: Path) -> DrafterFolder:
    """The drafter in `folder`, without its tensors.

    Raises:
      UserError: there is none, or one of another kind.
    """
    what = f"drafter={folder}"
    try:
        description = json.loads((folder / DESCRIPTION).read_text())
    except OSError:
        raise UserError(f"{what}: no {DESCRIPTION} there. Is it what train-drafter wrote?") from None
    except ValueError as error:
        raise UserError(f"{what}: {DESCRIPTION} is not JSON ({error}).") from None
    lacking = [key for key in NEEDED if not isinstance(description, dict) or key not in description]
    if lacking:
        raise UserError(f"{what}: {DESCRIPTION} lacks {', '.join(lacking)}. Is it what train-drafter wrote?")
    if description["convention"] != CONVENTION or sorted(description["projections"]) != sorted(PROJECTIONS):
        raise UserError(
            f"{what}: convention {description['convention']} on {', '.join(description['projections'])}; known is "
            f"{CONVENTION} on {', '.join(PROJECTIONS)}."
        )
    if type(description["rank"]) is not int or description["rank"] < 1:
        raise UserError(f"{what}: rank {description['rank']}, need an integer of at least 1.")
    if not (folder / TENSORS).exists():
        raise UserError(f"{what}: no {TENSORS} there. Is it what train-drafter wrote?")
    return DrafterFolder(folder, description)


def write_folder(
    folder: Path, drafter: Drafter, base_model: Mapping[str, Any], training: Mapping[str, Any], dtype: torch.dtype
) -> None:
    """Writes a drafter, replacing one that is there file by file.

    Args:
      base_model: what it was trained for: name, source and weights_sha256.
      training: how it was trained, and how well it drafts.
      dtype: that its tensors are stored in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: one.detach().to("cpu", dtype).contiguous() for name, one in drafter.parameters().items()}
    description = {
        "convention": CONVENTION,
        "rank": drafter.rank,
        "projections": list(PROJECTIONS),
        "base_model": base_model,
        "training": training,
    }
    _replace(folder / TENSORS, lambda path: save_file(tensors, path, metadata={"format": "pt"}))
    _replace(folder / DESCRIPTION, lambda path: path.write_text(json.dumps(description, indent=1) + "\n"))


def random_drafter(backbone: PreTrainedModel, rank: int, mode: Mode) -> Drafter:
    """A drafter of that rank with random inputs and zero outputs: costs what a trained one does."""
    drafter = Drafter.put_on(backbone, rank, mode, backbone.dtype)
    draw_inputs(drafter, torch.Generator(drafter.mask_vector.device).manual_seed(0))
    return drafter


def draw_inputs(drafter: Drafter, generator: torch.Generator) -> None:
    """Gives the updates' inputs random entries, as training starts from; the updates stay zero."""
    with torch.no_grad():
        for projection in drafter.adapter.projections.values():
            bound = projection.lora_A.shape[1] ** -0.5
            projection.lora_A.uniform_(-bound, bound, generator=generator)


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    write(partial)
    partial.replace(path)
