"""How a backbone's forward pass is executed; what it computes is the same.

    eager       operation by operation, attention over the used part of the cache      (the paper's way)
    compiled    torch.compile, once for each shape of call
    cudagraph   recorded once for each shape of call, then replayed without launching anything from the host

The last two need shapes that do not change as the response grows: they attend to the whole cache, and the mask hides
what is not in use. A prompt's call has another shape for every length of prompt: recorded graphs pad prompts, so that a
few graphs are enough; for compiled passes padding costs more than compiling saves, and prompts are processed eagerly.
"""

from collections.abc import Callable, Hashable
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from harness.errors import UserError, unknown
from harness.models.execution.cache import KeyValueCache
from harness.models.execution.forward import Rows, forward_pass

ENGINES = ("eager", "compiled", "cudagraph")
SMALLEST_BUCKET = 64  # rows


class Engine(Protocol):
    """Executes forward passes.

    Attributes:
      has_fixed_shapes: whether passes must have as many columns as the cache has room, and keep the same rows' logits
        in all calls of a shape.
      pads_prompts: whether it executes the prompts' passes too, padded to a `bucket`; otherwise they are eager.
    """

    has_fixed_shapes: bool
    pads_prompts: bool

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        """Logits of the rows that are kept, [n, vocab]; they stand until the next pass.

        Args:
          shape: what tells this pass' shapes, and the first row that an adapter changes, from those of other passes.
        """


class Eager:
    """Operation by operation."""

    has_fixed_shapes = False
    pads_prompts = False

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        return forward_pass(backbone, cache, rows)


class Compiled:
    """Compiled by torch.compile at the first pass of each shape.

    Nothing of the backbone changes between passes of one shape, a switched adapter included, so its modules are not
    checked again at every pass; checking takes a tenth of a small model's time.
    """

    has_fixed_shapes = True
    pads_prompts = False

    def __init__(self) -> None:
        self._passes: dict[Hashable, Callable[..., Tensor]] = {}

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        if shape not in self._passes:
            self._passes[shape] = torch.compile(
                forward_pass,
                fullgraph=True,
                dynamic=False,
                isolate_recompiles=True,
                options={"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe},
            )
        return self._passes[shape](backbone, cache.whole(written(cache, rows)), rows)


class CudaGraphs:
    """Recorded at the first pass of each shape, and anew where the cache's buffers are others."""

    has_fixed_shapes = True
    pads_prompts = True

    def __init__(self) -> None:
        self._graphs: dict[Hashable, _Graph] = {}
        self._capacity = 0

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        if cache.capacity != self._capacity:
            self._graphs.clear()
            self._capacity = cache.capacity
        # Not `dataclasses.astuple`, which copies tensors, the mask's whole storage among them.
        inputs = (rows.token_ids, rows.positions, rows.mask, rows.kept, written(cache, rows))
        if shape not in self._graphs:
            self._graphs[shape] = _Graph(backbone, cache, inputs)
        return self._graphs[shape].replay(inputs)


class _Graph:
    """One recorded pass with its own input buffers."""

    def __init__(self, backbone: PreTrainedModel, cache: KeyValueCache, inputs: tuple[Tensor, ...]):
        self._inputs = [tensor.clone() for tensor in inputs]
        *parts, written_rows = self._inputs
        whole = cache.whole(written_rows)
        # The first pass on a side stream sets up what must not be set up while recording.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            forward_pass(backbone, whole, Rows(*parts))
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = forward_pass(backbone, whole, Rows(*parts))

    def replay(self, inputs: tuple[Tensor, ...]) -> Tensor:
        for buffer, tensor in zip(self._inputs, inputs, strict=True):
            buffer.copy_(tensor)
        self._graph.replay()
        return self._logits


def bucket(length: int) -> int:
    """The rows that a prompt of `length` tokens is padded to: the next power of two, at least 64."""
    return max(SMALLEST_BUCKET, 1 << (length - 1).bit_length())


def written(cache: KeyValueCache, rows: Rows) -> Tensor:
    """Where a pass writes into the cache, int64 [rows]."""
    count = rows.token_ids.shape[1]
    return torch.arange(cache.length, cache.length + count, device=rows.token_ids.device)


def build_engine(name: str, device: torch.device) -> Engine:
    """The engine of that name.

    Raises:
      UserError: no such engine, or none for `device`.
    """
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "cudagraph" and device.type != "cuda":
        raise UserError(f"engine=cudagraph: needs a CUDA device, this is {device.type}. Use eager or compiled.")
    return {"eager": Eager, "compiled": Compiled, "cudagraph": CudaGraphs}[name]()
