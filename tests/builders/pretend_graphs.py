"""Recorded graphs of the pretend accelerator: `torch.cuda`'s interface, and its rules enforced.

While a graph is recorded, whatever cannot be recorded is refused: transfers, values read by the host, shapes that
depend on data, memory that moves. A replay does the recorded operations again, on the memory that they were recorded
with, and asks nobody: what a graph reads but did not make itself has to be there still, at the same address.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.builders.pretend_accelerator import OF_UNKNOWN_SHAPE, Operation, Refused, Watcher, watched

MOVES_MEMORY = {"resize_", "resize_as_", "set_"}


class PretendGraph:
    """Stands for `torch.cuda.CUDAGraph`.

    Attributes:
      replays: how often it was replayed.
    """

    def __init__(self) -> None:
        self.replays = 0
        self._steps: list[Callable[[], None]] = []

    def record(self, steps: Sequence[Callable[[], None]]) -> None:
        """Takes what a replay does."""
        self._steps = list(steps)

    def replay(self) -> None:
        """Does it again.

        Raises:
          Refused: memory that it reads was freed or moved.
        """
        self.replays += 1
        for step in self._steps:
            step()


class _Recorder(Watcher):
    def __init__(self) -> None:
        self.steps: list[Callable[[], None]] = []
        self._made: dict[int, Tensor] = {}  # by this graph, and kept by it

    def before(self, name: str, to_host: bool, to_device: bool) -> None:
        if to_host or to_device:
            raise Refused(f"{name}: {'to the host' if to_host else 'to the device'} while a graph is recorded")
        if name in OF_UNKNOWN_SHAPE or name in MOVES_MEMORY:
            raise Refused(f"{name}: memory that depends on data, or moves, while a graph is recorded")

    def after(self, operation: Operation) -> None:
        read = list(_tensors([operation.args, operation.kwargs]))
        func, results = operation.func, list(_tensors(operation.result))
        places = {tensor.untyped_storage().data_ptr() for tensor in read}
        is_alias = all(result.untyped_storage().data_ptr() in places for result in results)
        arguments = self._held([operation.args, operation.kwargs])
        self._made |= {id(result): result for result in results if all(result is not tensor for tensor in read)}
        if is_alias and not func._schema.is_mutable:
            return  # a view sees what its base holds

        def step() -> None:
            args, kwargs = _read(arguments)
            again = func(*args, **kwargs)
            if not is_alias:
                for result, new in zip(results, _tensors(again), strict=True):
                    result.copy_(new)

        self.steps.append(step)

    def _held(self, value: Any) -> Any:
        """`value` with every tensor that this graph did not make behind a `_Foreign`."""
        if isinstance(value, Tensor):
            return value if id(value) in self._made else _Foreign(value)
        if isinstance(value, (tuple, list)):
            return [self._held(one) for one in value]
        if isinstance(value, dict):
            return {name: self._held(one) for name, one in value.items()}
        return value


class _Foreign:
    """Memory that a graph reads but does not keep: it knows the address alone."""

    def __init__(self, tensor: Tensor):
        self._tensor, self._address = weakref.ref(tensor), tensor.data_ptr()

    def read(self) -> Tensor:
        tensor = self._tensor()
        if tensor is None or tensor.data_ptr() != self._address:
            raise Refused("replay: reads memory that was freed or moved since the graph was recorded")
        return tensor


@contextmanager
def recording(graph: PretendGraph) -> Iterator[None]:
    """Stands for `torch.cuda.graph`: what happens on the device meanwhile is what `graph` replays.

    Raises:
      Refused: by what happens, where a graph cannot hold it.
    """
    recorder = _Recorder()
    with watched(recorder):
        yield
    graph.record(recorder.steps)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[PretendGraph]:
    """Puts pretended graphs, and streams that do nothing, in place of `torch.cuda`'s; all graphs that are made."""

    class Stream:
        def wait_stream(self, other: "Stream") -> None:
            """Everything is done by then."""

    made: list[PretendGraph] = []

    def new_graph() -> PretendGraph:
        made.append(PretendGraph())
        return made[-1]

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", new_graph)
    monkeypatch.setattr(torch.cuda, "graph", recording)
    return made


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _read(value: Any) -> Any:
    if isinstance(value, _Foreign):
        return value.read()
    if isinstance(value, list):
        return [_read(one) for one in value]
    if isinstance(value, dict):
        return {name: _read(one) for name, one in value.items()}
    return value
