"""What a device's memory delivers."""

import torch

from harness.clock import stopwatch

GB = 1e9
SIZES = {"cpu": 1 << 28, "cuda": 1 << 31}  # bytes, far larger than any cache
REPEATS = 5


def bandwidth_gb_s(device: torch.device) -> float:
    """Memory bandwidth in GB/s: of copying a buffer, which is read once and written once."""
    size = SIZES.get(device.type, SIZES["cpu"])
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)
        synchronize(device)

    copy()
    return 2 * size / GB / min(stopwatch(copy)[1] for _ in range(REPEATS))


def synchronize(device: torch.device) -> None:
    """Waits for what the device was asked for."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)
