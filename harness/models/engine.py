"""How a backbone's forward pass is executed; what it computes is the same.

    eager       operation by operation, attention over the used part of the cache      (the paper's way)
    compiled    torch.compile, once for each shape of call
    cudagraph   recorded once for each shape of call, then replayed without launching anything from the host

The last two need shapes that do not change as the response grows: they attend to the whole cache, and the mask hides
what is not in use. The prompt's call is executed eagerly by all three: its shape is another for every prompt.
"""

from collections.abc import Hashable
from dataclasses import astuple
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from harness.errors import UserError, unknown
from harness.models.cache import KeyValueCache
from harness.models.forward import Rows, forward_pass

ENGINES = ("eager", "compiled", "cudagraph")


class Engine(Protocol):
    """Executes forward passes.

    Attributes:
      has_fixed_shapes: whether passes must have as many columns as the cache has room, and keep the same rows' logits
        in all calls of a shape.
    """

    has_fixed_shapes: bool

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        """Logits of the rows that are kept, [n, vocab]; they stand until the next pass.

        Args:
          shape: what all passes with the same shapes have in common.
        """


class Eager:
    """Operation by operation."""

    has_fixed_shapes = False

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        return forward_pass(backbone, cache, rows)


class Compiled:
    """Compiled by torch.compile at the first pass of each shape."""

    has_fixed_shapes = True

    def __init__(self) -> None:
        # One compilation for each shape, more than dynamo's own limit; beyond it, passes would be eager unnoticed.
        torch._dynamo.config.recompile_limit = 1000
        torch._dynamo.config.accumulated_recompile_limit = 1000
        self._pass = torch.compile(forward_pass, fullgraph=True, dynamic=False)

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        return self._pass(backbone, cache.whole(written(cache, rows)), rows)


class CudaGraphs:
    """Recorded at the first pass of each shape, and anew where the cache's buffers are others."""

    has_fixed_shapes = True

    def __init__(self) -> None:
        self._graphs: dict[Hashable, _Graph] = {}
        self._capacity = 0

    def forward(self, backbone: PreTrainedModel, cache: KeyValueCache, rows: Rows, shape: Hashable) -> Tensor:
        if cache.capacity != self._capacity:
            self._graphs.clear()
            self._capacity = cache.capacity
        inputs = (*astuple(rows), written(cache, rows))
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
