"""The clock of runs. Wall time is synchronized with the device; model time costs no extra syncs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from schedules.call import Call, Model, Output
from schedules.response import Response


@dataclass(frozen=True)
class Timing:
    """What one response took.

    Attributes:
      wall_s: seconds from before the prompt is handed to the model to after the last token, device-synchronized.
      calls_s: the parts of it inside forward passes, one by one.
      memory_bytes: the most that tensors took of the device's memory meanwhile, weights included; None where the
        device does not count.
    """

    wall_s: float
    calls_s: Sequence[float]
    memory_bytes: int | None = None

    @property
    def model_s(self) -> float:
        """Seconds inside forward passes."""
        return sum(self.calls_s)


T = TypeVar("T")


def stopwatch(work: Callable[[], T]) -> tuple[T, float]:
    """What `work` gives and how many seconds it took, for work that ends on the host."""
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def synchronize(device: torch.device) -> None:
    """Waits until `device` has done what it was asked for; a CPU always has."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


class TimedModel:
    """A model whose forward passes are timed: by device events on an accelerator, else by the host's clock."""

    def __init__(self, model: Model):
        self._model = model
        self.device = model.device
        self.is_same_position = model.is_same_position
        self._on_host = model.device.type == "cpu"
        self._calls_s: list[float] = []
        self._events: list[tuple[Any, Any]] = []

    def begin(self, prompt: Sequence[int], max_new_tokens: int) -> None:
        """Hands the prompt on."""
        self._model.begin(prompt, max_new_tokens)

    def evaluate(self, call: Call) -> Output:
        """One timed forward pass."""
        if self._on_host:
            output, seconds = stopwatch(lambda: self._model.evaluate(call))
            self._calls_s.append(seconds)
            return output
        before, after = (torch.Event(self.device, enable_timing=True) for _ in range(2))
        before.record()
        output = self._model.evaluate(call)
        after.record()
        self._events.append((before, after))
        return output

    def commit(self, *accepted: Any) -> None:
        """Hands the accepted tokens on."""
        self._model.commit(*accepted)

    def commit_at(self, tokens: Tensor, positions: Sequence[int]) -> None:
        """Hands tokens that were accepted without verification on."""
        self._model.commit_at(tokens, positions)

    def forget_after(self, position: int) -> None:
        """Hands the new end on."""
        self._model.forget_after(position)

    def time(self, work: Callable[[], Response]) -> tuple[Response, Timing]:
        """Runs `work`, which decodes with this model; gives its result and what it took."""
        self._calls_s = []
        self._events.clear()
        counts_memory = self.device.type == "cuda"
        if counts_memory:
            torch.cuda.reset_peak_memory_stats(self.device)
        synchronize(self.device)
        began = time.perf_counter()
        result = work()
        synchronize(self.device)
        wall_s = time.perf_counter() - began
        on_device_s = [before.elapsed_time(after) / 1000 for before, after in self._events]
        memory_bytes = torch.cuda.max_memory_allocated(self.device) if counts_memory else None
        return result, Timing(wall_s, self._calls_s or on_device_s, memory_bytes)
