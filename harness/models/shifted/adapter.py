"""Low-rank updates that only proposal rows get: they change what is drafted, never what is verified (F.2).

Layouts put all proposal rows behind the verifier rows, and verifier rows see no proposal rows, so applying the update
to the rows from some first one on leaves every verifier row bit for bit as it is without the adapter.

    mode     update computed for      applied to
    masked   every row of the call    proposal rows     (as measured in the paper, F.2)
    fused    proposal rows            proposal rows
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import PreTrainedModel

from harness.errors import UserError
from schedules.call import AdapterRows

Mode = Literal["masked", "fused"]
MODES = ("masked", "fused")


class ProposalAdapter:
    """Low-rank updates on projections of every layer, switched per call.

    Attributes:
      mode: "masked" or "fused".
      first_row: the first row that gets the update in the next forward pass; None switches the adapter off.
      projections: the wrapped projections, by the names they have in the backbone.
    """

    def __init__(
        self,
        backbone: PreTrainedModel,
        rank: int,
        scale: float,
        mode: Mode,
        targets: Sequence[str],
        dtype: torch.dtype = torch.float32,
    ):
        """Wraps the projections of `backbone` that are called as in `targets`; updates start at zero.

        Args:
          rank: of the update.
          scale: its factor, alpha / rank.
          dtype: of the update and its computation, whatever the backbone's; float32 as in peft.

        Raises:
          UserError: no such mode.
        """
        if mode not in MODES:
            raise UserError(f"adapter_mode={mode}: no such mode. Known: {', '.join(MODES)}.")
        self.mode = mode
        self.first_row: int | None = None
        self.projections: Mapping[str, AdaptedProjection] = {
            name: AdaptedProjection(module, self, rank, scale, dtype)
            for name, module in backbone.named_modules()
            if name.rpartition(".")[2] in targets
        }
        for name, adapted in self.projections.items():
            backbone.set_submodule(name, adapted)

    def rows_of(self, rows: int) -> AdapterRows:
        """Which of a call's `rows` rows the next forward pass adapts."""
        if self.first_row is None:
            return AdapterRows()
        selected = rows - self.first_row
        return AdapterRows(selected, rows if self.mode == "masked" else selected)


class AdaptedProjection(nn.Module):
    """A projection with its update.

    Attributes:
      lora_A: [rank, in].
      lora_B: [out, rank].
    """

    def __init__(self, base: nn.Linear, switch: ProposalAdapter, rank: int, scale: float, dtype: torch.dtype):
        super().__init__()
        self.base = base
        self._switch = [switch]  # in a list: the switch is no submodule
        self.scale = scale
        options = {"dtype": dtype, "device": base.weight.device}
        self.lora_A = nn.Parameter(torch.zeros(rank, base.in_features, **options))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank, **options))

    def forward(self, hidden: Tensor) -> Tensor:
        output = self.base(hidden)  # [batch, rows, out]
        switch = self._switch[0]
        first = switch.first_row
        if first is None:
            return output
        if switch.mode == "fused" and self.lora_A.dtype == output.dtype:
            # In place, and with nothing to convert: a small model's pass has hundreds of these.
            update = linear(linear(hidden[:, first:], self.lora_A), self.lora_B)
            output[:, first:].add_(update, alpha=self.scale)
            return output
        source = hidden if switch.mode == "masked" else hidden[:, first:]
        update = self.scale * (source.to(self.lora_A.dtype) @ self.lora_A.T @ self.lora_B.T)
        selected = update[:, first:] if switch.mode == "masked" else update
        adapted = (output[:, first:] + selected).to(output.dtype)
        return torch.cat([output[:, :first], adapted], dim=1)
