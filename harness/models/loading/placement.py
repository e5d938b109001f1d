"""What a model is loaded onto: the values of `dtype` and `device` in conf/model/, and whether it fits there."""

from typing import NamedTuple

import torch

from harness.errors import UserError
from harness.system import machine
from harness.system.device import GB, device_label, memory_of

DTYPES = ("float32", "bfloat16", "float64")
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # as Linux names them, on x86 and ARM


class Placement(NamedTuple):
    """Where parameters live and as what."""

    device: torch.device
    dtype: torch.dtype


def placement(device: str, dtype: str) -> Placement:
    """The device and the dtype of these names; device `auto` is the first accelerator there is, else the CPU.

    Raises:
      UserError: there is no such dtype, or no such device here.
    """
    if dtype not in DTYPES:
        raise UserError(f"model.dtype={dtype}: no such dtype. Known: {', '.join(DTYPES)}.")
    return Placement(_device_named(device), getattr(torch, dtype))


def for_random_weights(where: Placement) -> Placement:
    """`where`, but float32 in place of bfloat16 on a CPU without instructions for it.

    Such a CPU emulates bfloat16 products at half of float32's speed or less (on AVX2 9 GFLOP/s a core, against 17 to 27
    at 32 to 72 rows), so nobody would run them there.
    """
    is_emulated = where.device.type == "cpu" and where.dtype == torch.bfloat16
    if is_emulated and not BFLOAT16_FLAGS & machine.processor_flags():
        return where._replace(dtype=torch.float32)
    return where


def check_memory(name: str, parameters: int, where: Placement) -> None:
    """Raises `UserError` where a model's parameters do not fit the device's free memory."""
    need_bytes, device = parameters * where.dtype.itemsize, where.device
    memory = memory_of(device)
    if need_bytes > memory.free:
        kind = "GPU memory" if device.type == "cuda" else "memory"
        raise UserError(
            f"model={name}: needs about {need_bytes / GB:.1f} GB of {kind} for its parameters, {device_label(device)} "
            f"has {memory.free / GB:.1f} of {memory.total / GB:.1f} GB free. Free some, or use another device with "
            "model.device=NAME, or a smaller model."
        )


def _device_named(name: str) -> torch.device:
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise UserError(f"model.device={name}: no such device. Use auto, cpu, cuda, cuda:1, ...") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"model.device={name}: {torch.cuda.device_count() or 'no'} CUDA devices here. Use model.device=cpu or auto."
        )
    return device
