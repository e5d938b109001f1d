"""Where a model's files lie and what it is loaded onto: the values of `path`, `dtype` and `device` in conf/model/."""

from pathlib import Path

import torch

from harness.errors import UserError

DTYPES = ("float32", "bfloat16", "float64")
EMBEDDED = Path(__file__).parent / "embedded"


def folder_of(path: str) -> Path:
    """The folder that `path` means: itself, or for `embedded:NAME` one that is part of this package."""
    return EMBEDDED / path.removeprefix("embedded:") if path.startswith("embedded:") else Path(path)


def dtype_named(name: str) -> torch.dtype:
    """One of DTYPES.

    Raises:
      UserError: there is no such dtype.
    """
    if name not in DTYPES:
        raise UserError(f"model.dtype={name}: no such dtype. Known: {', '.join(DTYPES)}.")
    return getattr(torch, name)


def device_named(name: str) -> torch.device:
    """The device called `name`; `auto` is the first accelerator there is, else the CPU.

    Raises:
      UserError: the device is not there.
    """
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise UserError(f"model.device={name}: no such device. Use auto, cpu, cuda, cuda:1, ...") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"model.device={name}: no CUDA device here. Use model.device=cpu or auto.")
    return device
