"""What differs between the embedded models: backbone, objective, and the released layout that each is saved in."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from set_causal import SetCausalBatch, set_causal_batch
from tiny_objectives import JointBatch, TokenizedExample, joint_batch
from transformers import (
    Ministral3Config,
    Ministral3ForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from harness.models.nemotron.loader import BACKBONE_FIELDS

VOCAB_SIZE = 768
MAX_POSITIONS = 2048
SIZES = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": MAX_POSITIONS,
}

Batch = JointBatch | SetCausalBatch


@dataclass(frozen=True)
class Recipe:
    """How one embedded model is made.

    Attributes:
      build: a backbone with fresh weights.
      lay_out: examples, pad id, mask id and generator to the inputs of one step.
      loss_weights: weight of each loss; loss `x` is taken where the batch's `x_targets` are not -100.
      predicts_masks: whether the mask token keeps its logit; as released, SetDLM never predicts it.
      export: writes model and tokenizer to a folder in the released layout, all but training.json.
    """

    build: Callable[[PreTrainedTokenizerFast], PreTrainedModel]
    lay_out: Callable[[Sequence[TokenizedExample], int, int, torch.Generator], Batch]
    loss_weights: Mapping[str, float]
    predicts_masks: bool
    export: Callable[[PreTrainedModel, PreTrainedTokenizerFast, Path], None]


def build_nemotron(tokenizer: PreTrainedTokenizerFast) -> Ministral3ForCausalLM:
    """tiny_nemotron's backbone with fresh weights, 1.8 million parameters."""
    return Ministral3ForCausalLM(
        Ministral3Config(
            **SIZES,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=None,
            rope_parameters={
                "rope_type": "yarn",  # as released; factor 1 leaves all frequencies as they are
                "rope_theta": 10000.0,
                "factor": 1.0,
                "original_max_position_embeddings": MAX_POSITIONS,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.1,
            },
        )
    )


def export_nemotron(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes the layout of the released Nemotron-Labs-Diffusion checkpoints."""
    tensors = {}
    for name, tensor in model.state_dict().items():
        released = name.replace("model.", "encoder.", 1).replace("lm_head.", "diffusion_head.", 1)
        tensors[released] = tensor.contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    fields = {key: config[key] for key in BACKBONE_FIELDS} | {
        "model_type": "nemotron_labs_diffusion",
        "architectures": ["NemotronLabsDiffusionModel"],
        "dlm_paradigm": "bidirectional",
        "mask_token_id": tokenizer.mask_token_id,
        "block_size": 32,
        "use_cache": False,
        "dtype": "float32",
    }
    _write_json(folder / "config.json", fields)
    tokenizer.save_pretrained(folder)


def build_setdlm(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """tiny_setdlm's backbone with fresh weights, 1.7 million parameters, head tied to the embeddings."""
    return Qwen3ForCausalLM(
        Qwen3Config(
            **SIZES,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=None,
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        )
    )


def export_setdlm(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes the layout of the released SetDLM checkpoints, without the static attention mask.

    As released, config.json only points at a base model, which gives the backbone's sizes and the tokenizer. Here
    that is the folder `backbone` beside it.
    """
    # The head is stored as well as the embeddings that it shares its weights with; safetensors wants copies for that.
    tensors = {f"backbone.model.{name}": tensor.clone() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    fields = {
        "architectures": ["SetDLM"],
        "model_type": "bd3lm",
        "length": MAX_POSITIONS,
        "vocab_size": len(tokenizer),
        "mask_token_id": tokenizer.mask_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.eos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "backbone_config": {
            "pretrained_model_name_or_path": "backbone",
            "num_layers": model.config.num_hidden_layers,
        },
        "torch_dtype": "float32",
    }
    _write_json(folder / "config.json", fields)
    model.config.save_pretrained(folder / "backbone")
    tokenizer.save_pretrained(folder / "backbone")


def _write_json(path: Path, fields: Mapping) -> None:
    path.write_text(json.dumps(fields, indent=2) + "\n")


RECIPES = {
    "tiny_nemotron": Recipe(
        build=build_nemotron,
        lay_out=joint_batch,
        loss_weights={"causal": 1.0, "masked": 0.3},
        predicts_masks=True,
        export=export_nemotron,
    ),
    "tiny_setdlm": Recipe(
        build=build_setdlm,
        lay_out=set_causal_batch,
        loss_weights={"verifier": 1.0, "drafter": 0.5},
        predicts_masks=False,
        export=export_setdlm,
    ),
}
