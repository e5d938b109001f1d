"""A pretend accelerator: a device of PyTorch's whose tensors lie on the host, so that every machine has one.

It is a Python backend on PyTorch's PrivateUse1 key. What a real device punishes with waiting, or does not do at all,
is seen here: tensors of device and host are refused to be mixed, and everything that passes between the two is
counted, as is every operation. Results are those of the host's kernels.

    with watched() as traffic:
        model.evaluate(call)
    traffic.to_host, traffic.to_device, traffic.operations

Counted as a transfer to the host: copies, reading a value, and shapes that depend on data (`nonzero`, a boolean
index), for which a device has to report back. To the device: copies, `torch.tensor` with this device, and indexes that
lie on the host, which real devices copy silently. Operations are counted where PyTorch dispatches them, so a composite
one counts once in inference mode and as its parts outside.

Not pretended: streams, memory, random generators (a host generator is accepted) and speed.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "pretend"
HOST = torch.device("cpu")

aten = torch.ops.aten
READS = {"_local_scalar_dense", "item", "is_nonzero", "equal", "allclose"}
OF_UNKNOWN_SHAPE = {"nonzero", "masked_select", "unique_dim", "unique_consecutive", "_unique2", "bincount"}
COPIES = {"copy_", "_copy_from"}
# Reached without a tensor of the device: what makes one, and `torch.tensor`'s copy, which passes subclasses by.
WITHOUT_TENSORS = (
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.arange.default,
    aten.arange.start,
    aten.arange.start_step,
    aten._copy_from.default,
)
INDEXES = {"index", "index_put", "index_put_", "_index_put_impl_"}
TAKES_FROM_HOST = {*INDEXES, "where"}  # copied to the device; by `where` if they are no more than a number


class MixedDevices(RuntimeError):
    """An operation on tensors of host and device."""


class Refused(RuntimeError):
    """What may not happen while a graph is recorded."""


@dataclass
class Traffic:
    """What happened on the device.

    Attributes:
      to_host, to_device: transfers in either direction.
      operations: all that was dispatched to it, views and transfers included.
    """

    to_host: int = 0
    to_device: int = 0
    operations: int = 0

    def __sub__(self, other: "Traffic") -> "Traffic":
        return Traffic(
            self.to_host - other.to_host, self.to_device - other.to_device, self.operations - other.operations
        )


@dataclass(frozen=True)
class Operation:
    """One operation as the device was asked for it.

    Attributes:
      func: of `torch.ops`.
      args, kwargs: with host tensors in place of the device's.
      result: host tensors too.
      to_host, to_device: whether it moves data.
    """

    func: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: Any
    to_host: bool
    to_device: bool


class Watcher:
    """Sees every operation of the device."""

    def before(self, name: str, to_host: bool, to_device: bool) -> None:
        """Called first; may raise."""

    def after(self, operation: Operation) -> None:
        """Called with what was done."""


class PretendTensor(Tensor):
    """A tensor of the device, around the host tensor that holds its values."""

    host: Tensor

    @staticmethod
    def __new__(cls, host: Tensor) -> "PretendTensor":
        return torch.Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=device(),
        )

    def __init__(self, host: Tensor):
        self.host = host

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"PretendTensor({self.host})"

    def tolist(self) -> Any:
        # PyTorch knows no `tolist` of subclasses; a device's is a copy, and the host's.
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _execute(func, args, kwargs or {})


class _NotFoundByItself(_DummyBackendModule):
    def is_available(self) -> bool:
        """Only who names the device gets it: `auto` goes on meaning what this machine has."""
        return False

    def device_count(self) -> int:
        return 0


_watchers: list[Watcher] = []
_registered: list[torch.library.Library] = []  # kernels live as long as their library


def device() -> torch.device:
    """The pretend device; PyTorch is told of it at the first call."""
    if not _registered:
        _setup_privateuseone_for_python_backend(NAME, backend_module=_NotFoundByItself())
        library = torch.library.Library("aten", "IMPL", "PrivateUse1")
        for kernel in WITHOUT_TENSORS:
            library.impl(kernel, partial(_call, kernel))
        _registered.append(library)
    return torch.device(NAME, 0)


def on_device(module: nn.Module) -> nn.Module:
    """`module` itself, with its parameters and buffers moved to the device."""
    return module.to(device())


@contextmanager
def watched(*watchers: Watcher) -> Iterator[Traffic]:
    """Counts what happens on the device meanwhile, and shows it to `watchers`."""
    traffic = Traffic()
    entered = [_Counter(traffic), *watchers]
    _watchers.extend(entered)
    try:
        yield traffic
    finally:
        del _watchers[-len(entered) :]


class _Counter(Watcher):
    def __init__(self, traffic: Traffic):
        self._traffic = traffic

    def after(self, operation: Operation) -> None:
        self._traffic.operations += 1
        self._traffic.to_host += operation.to_host
        self._traffic.to_device += operation.to_device


def _call(func: Any, *args: Any, **kwargs: Any) -> Any:
    return _execute(func, args, kwargs)


def _execute(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """One operation of the device, by the host's kernel."""
    name, is_view = _described(func)
    leaves = _Leaves()
    host_args, host_kwargs = leaves.on_host(tuple(args)), leaves.on_host(dict(kwargs))
    own, others, target = leaves.own, leaves.others, leaves.target
    is_copy = name in COPIES
    if is_copy:
        source, goal = args[:2] if name == "_copy_from" else args[1::-1]
        to_host, to_device = not isinstance(goal, PretendTensor), not isinstance(source, PretendTensor)
    else:
        is_reported = name in READS | OF_UNKNOWN_SHAPE or (name in INDEXES and _is_boolean(args[1]))
        to_host = bool(own) and (is_reported or target == HOST)
        to_device = bool(others) and (target is not None or name in TAKES_FROM_HOST)
        if own and target is None and name not in INDEXES and any(tensor.dim() for tensor in others):
            raise MixedDevices(f"{name}: got tensors of {own[0].device} and of {others[0].device}")
    for watcher in _watchers:
        watcher.before(name, to_host, to_device)
    result = _run(func, name, host_args, host_kwargs)
    for watcher in _watchers:
        watcher.after(Operation(func, host_args, host_kwargs, result, to_host, to_device))
    if target == HOST or (is_copy and to_host):
        return result
    wrappers = {id(tensor.host): tensor for tensor in own}
    # As everywhere in PyTorch, a view is an inference tensor if its base is one, whatever the mode.
    is_inference = own[0].is_inference() if is_view and own else torch.is_inference_mode_enabled()
    if is_inference == torch.is_inference_mode_enabled():
        return _wrapped(result, wrappers)
    with torch.inference_mode(is_inference):
        return _wrapped(result, wrappers)


class _Leaves:
    """Tensors and devices among an operation's arguments.

    Attributes:
      own, others: tensors of the device, and of the host.
      target: the device that it names, if any.
    """

    def __init__(self) -> None:
        self.own: list[PretendTensor] = []
        self.others: list[Tensor] = []
        self.target: torch.device | None = None

    def on_host(self, value: Any) -> Any:
        """`value` with host tensors, and the host, in place of the device's."""
        if isinstance(value, PretendTensor):
            self.own.append(value)
            return value.host
        if isinstance(value, Tensor):
            self.others.append(value)
        elif isinstance(value, torch.device):
            self.target = value
            return HOST
        elif isinstance(value, (tuple, list)):
            return [self.on_host(one) for one in value]
        elif isinstance(value, dict):
            return {name: self.on_host(one) for name, one in value.items()}
        return value


@cache
def _described(func: Any) -> tuple[str, bool]:
    """An operation's name, and whether its result is a view."""
    return func._schema.name.removeprefix("aten::"), func.is_view


def _run(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if name == "_copy_from":
        return args[1].copy_(args[0])
    result = func(*args, **kwargs)
    if "device" in kwargs and any(result is arg for arg in args):
        return result.clone()  # on the host it was there already
    return result


def _wrapped(value: Any, wrappers: Mapping[int, PretendTensor]) -> Any:
    if isinstance(value, Tensor):
        return wrappers[id(value)] if id(value) in wrappers else PretendTensor(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_wrapped(one, wrappers) for one in value)
    return value


def _is_boolean(indexes: Sequence[Tensor | None]) -> bool:
    return any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in indexes)
