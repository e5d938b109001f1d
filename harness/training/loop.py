"""What trainings share: the learning rate, one step down, and a file that a killed training goes on from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def rate(step: int, steps: int, peak: float, warmup: int) -> float:
    """Learning rate with linear warm-up and cosine decay to 2 % of the peak."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


def descend(optimizer: torch.optim.Optimizer, parameters: Sequence[Tensor], loss: Tensor, rate: float) -> None:
    """One step of `optimizer` at learning rate `rate`; gradients are cut to norm 1."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()


@dataclass
class Progress:
    """How far a training is: `history` holds what was noted of some of its steps, `commands` each start."""

    step: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    commands: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    """The file that a training goes on from, and what it holds besides the progress.

    Attributes:
      tensors: what is learned, by name; restored in place.
    """

    path: Path
    tensors: Mapping[str, Tensor]
    optimizer: torch.optim.Optimizer
    rng: torch.Generator

    def restore(self) -> Progress:
        """Puts everything back as it was saved; a fresh start where nothing was."""
        if not self.path.exists():
            return Progress()
        state = torch.load(self.path, weights_only=True, map_location="cpu")
        with torch.no_grad():
            for name, tensor in self.tensors.items():
                tensor.copy_(state["tensors"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rng.set_state(state["rng"])
        return Progress(state["step"], state["history"], state["seconds"], state["commands"])

    def save(self, progress: Progress) -> None:
        """Replaces the file in one move."""
        state = {
            "tensors": {name: tensor.detach() for name, tensor in self.tensors.items()},
            "optimizer": self.optimizer.state_dict(),
            "rng": self.rng.get_state(),
            **asdict(progress),
        }
        partial = self.path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.path)
