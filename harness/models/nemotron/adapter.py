"""The proposal-only low-rank adapter (F.2): changes what is drafted, never what is verified.

A peft adapter folder on the attention's output projections. The layouts put all proposal rows behind the verifier
rows, and verifier rows see no proposal rows, so applying the update to the rows from some first one on leaves every
verifier row bit for bit as it is without the adapter.

    mode     update computed for      applied to
    masked   every row of the call    proposal rows     (as measured in the paper, F.2)
    fused    proposal rows            proposal rows

Trade-off: as in peft, the update is computed in the adapter's own float32 whatever the backbone's dtype.
"""

import json
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import Ministral3ForCausalLM

from harness.errors import UserError
from harness.models.nemotron.names import stock_name
from schedules.call import AdapterRows

Mode = Literal["masked", "fused"]
MODES = ("masked", "fused")
TARGET = "o_proj"


class ProposalAdapter:
    """Low-rank updates on every layer's output projection, switched per call.

    Attributes:
      mode: "masked" or "fused".
      first_row: the first row that gets the update in the next forward pass; None switches the adapter off.
    """

    def __init__(self, backbone: Ministral3ForCausalLM, rank: int, scale: float, mode: Mode):
        """Wraps the output projections of `backbone`; updates start at zero.

        Args:
          rank: of the update.
          scale: its factor, alpha / rank.

        Raises:
          UserError: no such mode.
        """
        if mode not in MODES:
            raise UserError(f"adapter_mode={mode}: no such mode. Known: {', '.join(MODES)}.")
        self.mode = mode
        self.first_row: int | None = None
        self.layers = [_AdaptedProjection(layer.self_attn.o_proj, self, rank, scale) for layer in backbone.model.layers]
        for layer, adapted in zip(backbone.model.layers, self.layers, strict=True):
            layer.self_attn.o_proj = adapted

    def rows_of(self, rows: int) -> AdapterRows:
        """Which of a call's `rows` rows the next forward pass adapts."""
        if self.first_row is None:
            return AdapterRows()
        selected = rows - self.first_row
        return AdapterRows(selected, rows if self.mode == "masked" else selected)


class _AdaptedProjection(nn.Module):
    def __init__(self, base: nn.Linear, switch: ProposalAdapter, rank: int, scale: float):
        super().__init__()
        self.base = base
        self._switch = [switch]  # in a list: the switch is no submodule
        self.scale = scale
        options = {"dtype": torch.float32, "device": base.weight.device}
        self.lora_A = nn.Parameter(torch.zeros(rank, base.in_features, **options))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, **options))

    def forward(self, hidden: Tensor) -> Tensor:
        output = self.base(hidden)  # [batch, rows, out]
        switch = self._switch[0]
        first = switch.first_row
        if first is None:
            return output
        source = hidden if switch.mode == "masked" else hidden[:, first:]
        update = self.scale * (source.to(self.lora_A.dtype) @ self.lora_A.T @ self.lora_B.T)
        selected = update[:, first:] if switch.mode == "masked" else update
        adapted = (output[:, first:] + selected).to(output.dtype)
        return torch.cat([output[:, :first], adapted], dim=1)


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
    adapter = ProposalAdapter(backbone, config["r"], scale, mode)
    expected = {
        f"model.layers.{index}.self_attn.{TARGET}.{part}.weight": getattr(layer, part)
        for index, layer in enumerate(adapter.layers)
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
    if not any(layer.lora_B.any() for layer in adapter.layers):
        raise UserError(f"adapter={folder}: its update is zero everywhere. Fetch or train the adapter again.")
    return adapter


def random_adapter(backbone: Ministral3ForCausalLM, r: int, lora_alpha: int, mode: Mode) -> ProposalAdapter:
    """An adapter of that rank with random inputs and zero outputs: costs what a trained one does, changes nothing."""
    adapter = ProposalAdapter(backbone, r, lora_alpha / r, mode)
    for layer in adapter.layers:
        nn.init.normal_(layer.lora_A)
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
