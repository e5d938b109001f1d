"""The proposal-only adapter of the released 8B (F.2): a peft folder on the attention's output projections.

Trade-off: as in peft, the update is computed in the adapter's own float32 whatever the backbone's dtype.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import Ministral3ForCausalLM

from harness.errors import UserError
from harness.models.nemotron.names import stock_name
from harness.models.shifted.adapter import Mode, ProposalAdapter

TARGET = "o_proj"


def load_adapter(backbone: Ministral3ForCausalLM, folder: Path, mode: Mode) -> ProposalAdapter:
    """Puts a peft adapter folder on `backbone`; keys may carry the released or the stock names.

    Raises:
      UserError: the folder is no LoRA on the output projections of just these layers, or its update is zero.
    """
    config = _read_config(folder)
    scale = config["lora_alpha"] / (config["r"] ** 0.5 if config.get("use_rslora") else config["r"])
    try:
        tensors = load_file(folder / "adapter_model.safetensors")
    except (OSError, ValueError) as error:
        raise UserError(f"adapter={folder}: cannot read adapter_model.safetensors ({error}).") from None
    adapter = ProposalAdapter(backbone, config["r"], scale, mode, [TARGET])
    expected = {
        f"{name}.{part}.weight": getattr(projection, part)
        for name, projection in adapter.projections.items()
        for part in ("lora_A", "lora_B")
    }
    given = {stock_name(name.removeprefix("base_model.model.")): tensor for name, tensor in tensors.items()}
    wrong = sorted(expected.keys() ^ given.keys()) + sorted(
        name for name in expected.keys() & given.keys() if expected[name].shape != given[name].shape
    )
    if wrong:
        raise UserError(
            f"adapter={folder}: {len(wrong)} tensors missing, unexpected or of another shape, first {wrong[0]}. "
            "Does the adapter belong to this model?"
        )
    with torch.no_grad():
        for name, parameter in expected.items():
            parameter.copy_(given[name])
    if not any(projection.lora_B.any() for projection in adapter.projections.values()):
        raise UserError(f"adapter={folder}: its update is zero everywhere. Fetch or train the adapter again.")
    return adapter


def random_adapter(backbone: Ministral3ForCausalLM, r: int, lora_alpha: int, mode: Mode) -> ProposalAdapter:
    """An adapter of that rank with random inputs and zero outputs: costs what a trained one does, changes nothing."""
    adapter = ProposalAdapter(backbone, r, lora_alpha / r, mode, [TARGET])
    for projection in adapter.projections.values():
        nn.init.normal_(projection.lora_A)
    return adapter


def _read_config(folder: Path) -> dict:
    path = folder / "adapter_config.json"
    try:
        config = json.loads(path.read_text())
    except OSError:
        raise UserError(f"adapter={folder}: no adapter_config.json there. Is it a peft adapter folder?") from None
    except json.JSONDecodeError as error:
        raise UserError(f"adapter={folder}: adapter_config.json is not JSON ({error}).") from None
    for key in ("r", "lora_alpha", "target_modules"):
        if key not in config:
            raise UserError(f"adapter={folder}: adapter_config.json lacks {key}.")
    targets = config["target_modules"]
    targets = [targets] if isinstance(targets, str) else list(targets)
    others = {"use_dora": False, "bias": "none", "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {}}
    unsupported = [key for key, plain in others.items() if config.get(key, plain) not in (plain, None)]
    if targets != [TARGET] or unsupported:
        raise UserError(
            f"adapter={folder}: adapts {', '.join(targets)} with {', '.join(unsupported) or 'plain LoRA'}; "
            f"only plain LoRA on {TARGET} is supported."
        )
    return config
