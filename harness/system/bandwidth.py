"""What a device's memory delivers: no forward pass can be faster than its weights are read."""

from functools import cache

import torch

from harness.system.clock import stopwatch, synchronize
from harness.system.device import GB

SIZE = 1 << 28  # bytes, far more than any cache holds
REPEATS = 5


@cache
def bandwidth_gb_s(device: torch.device) -> float:
    """Memory bandwidth in GB/s: of copying a buffer, which is read once and written once. Measured once a process."""
    source = torch.ones(SIZE, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)

    def copy() -> None:
        target.copy_(source)
        synchronize(device)

    copy()
    return 2 * SIZE / GB / min(stopwatch(copy)[1] for _ in range(REPEATS))
