"""A device's memory and name."""

import gc
from typing import NamedTuple

import psutil
import torch

GB = 1e9  # as makers of devices and checkpoints count


class Memory(NamedTuple):
    """Memory of a device in bytes."""

    free: int
    total: int


def memory_of(device: torch.device) -> Memory:
    """Free and total memory of `device`; the host's for devices that share it."""
    if device.type == "cuda":
        # What an earlier model of this process left to the allocator is free.
        gc.collect()
        torch.cuda.empty_cache()
        return Memory(*torch.cuda.mem_get_info(device))
    host = psutil.virtual_memory()
    return Memory(host.available, host.total)


def device_label(device: torch.device) -> str:
    """The device with its product name, where it has one."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
