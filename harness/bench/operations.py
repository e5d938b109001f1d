"""How many tensor operations and device-to-host transfers decoding takes, counted where PyTorch dispatches them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedModel

from harness.running.plan import Schedule
from schedules import Greedy, Stop
from schedules.call import Model

# Methods that hand a tensor's values to the host.
TRANSFERS = {"tolist", "item", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__"}
SHORT, LONG = 40, 80  # caps of two responses, whose difference is iterations in their steady state


@dataclass(frozen=True)
class Counts:
    """Per iteration.

    Attributes:
      operations: tensor operations outside the backbone, views included.
      transfers: from the device to the host.
    """

    operations: float
    transfers: float


def counts_per_iteration(
    model: Model, backbone: PreTrainedModel | None, schedule: Schedule, prompt: Sequence[int]
) -> Counts:
    """Counts of greedy decoding in its steady state, the prompt's iteration left out.

    Args:
      backbone: whose operations are not counted; None where `model` has none.
    """

    def counted(cap: int) -> tuple[int, int, int]:
        operations, transfers = _Operations(), _Transfers()
        with _left_out(backbone, operations), operations, transfers:
            response = schedule.decode(model, prompt, Greedy(), Stop(cap, frozenset()))
        return operations.count, transfers.count, len(response.trace)

    counted(LONG)  # builds what is built once
    (few, few_transfers, few_iterations), (many, many_transfers, iterations) = counted(SHORT), counted(LONG)
    more = iterations - few_iterations
    return Counts((many - few) / more, (many_transfers - few_transfers) / more)


class _Operations(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.is_paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not self.is_paused
        return func(*args, **(kwargs or {}))


class _Transfers(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        of_tensor = args and isinstance(args[0], Tensor)
        self.count += bool(of_tensor and getattr(func, "__name__", "") in TRANSFERS)
        return func(*args, **(kwargs or {}))


@contextmanager
def _left_out(backbone: PreTrainedModel | None, operations: _Operations) -> Iterator[None]:
    """Operations from a forward pass' embedding to its head are not counted."""
    if backbone is None:
        yield
        return

    def pause(*_: Any, **__: Any) -> None:
        operations.is_paused = True

    def go_on(*_: Any, **__: Any) -> None:
        operations.is_paused = False

    first, last = backbone.get_input_embeddings(), backbone.get_output_embeddings()
    hooks = [first.register_forward_pre_hook(pause), last.register_forward_hook(go_on)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
