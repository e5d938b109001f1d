"""A preallocated key/value cache in which accepting tokens copies nothing.

Every forward pass writes the keys and values of all its rows behind the committed ones. Layouts put the rows that may
be accepted first, so the accepted ones already lie in place: committing moves `length`, and whatever lies behind it
is overwritten by the next pass. The backbones of transformers call nothing but `update`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

GRAIN = 64  # capacities are multiples of it


class KeyValueCache:
    """Keys and values of all layers, [1, kv_heads, capacity, head_dim] each.

    Attributes:
      length: committed rows; every row of a pass may attend to all of them from `start` on.
      start: rows before it are forgotten.
      promised: rows of the longest prompt and response to come.
      capacity: rows that there is room for.
    """

    def __init__(self, layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device):
        self.length = 0
        self.start = 0
        self.promised = 0
        self._layers = layers
        self._shape = (kv_heads, head_dim)
        self._options = {"dtype": dtype, "device": device}
        self._keys: Sequence[Tensor] = []
        self._values: Sequence[Tensor] = []
        self.capacity = 0

    def promise(self, rows: int) -> None:
        """No prompt and response will be longer than `rows` together; what was promised before still holds."""
        self.promised = max(self.promised, rows)

    def make_room(self, rows: int) -> None:
        """Makes room for a pass of `rows` behind the longest response, so that it has room at any time."""
        self.reserve(max(self.promised, self.length) + rows)

    def reserve(self, rows: int) -> None:
        """Makes room for `rows` rows in all, keeping what is committed; does nothing where there is room."""
        if rows <= self.capacity:
            return
        kv_heads, head_dim = self._shape
        capacity = -(-rows // GRAIN) * GRAIN
        grown = []
        # Ordinary tensors, wherever the first pass runs: others could be written in inference mode only.
        with torch.inference_mode(False), torch.no_grad():
            for buffers in (self._keys, self._values):
                new = [torch.zeros(1, kv_heads, capacity, head_dim, **self._options) for _ in range(self._layers)]
                for target, source in zip(new, buffers, strict=False):
                    target[:, :, : self.length] = source[:, :, : self.length]
                grown.append(new)
        self._keys, self._values = grown
        self.capacity = capacity

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, **_: Any) -> tuple[Tensor, Tensor]:
        """Writes one layer's rows behind the committed ones; gives those from `start` on and the new ones together.

        Args:
          keys, values: [1, kv_heads, rows, head_dim], keys already rotated.
          layer_idx: which layer.
        """
        end = self.length + keys.shape[2]
        self._keys[layer_idx][:, :, self.length : end] = keys
        self._values[layer_idx][:, :, self.length : end] = values
        seen = slice(self.start, end)
        return self._keys[layer_idx][:, :, seen], self._values[layer_idx][:, :, seen]

    def beside(self) -> "BesideCache":
        """What is committed, for passes whose own rows are kept nowhere."""
        committed = [[one[:, :, : self.length] for one in buffers] for buffers in (self._keys, self._values)]
        return BesideCache(*committed)

    def whole(self, rows: Tensor) -> "WholeCache":
        """The same cache for one pass of fixed shape, which writes at `rows` (int64 [rows]) and reads everything."""
        return WholeCache(self._keys, self._values, rows)


@dataclass(frozen=True)
class WholeCache:
    """A cache whose shapes do not depend on how much is committed, for compiled passes and recorded graphs.

    Attributes:
      keys, values: of all layers, [1, kv_heads, capacity, head_dim] each.
      rows: int64 [rows]; where the pass writes. Rows that no mask lets through hold whatever was there.
    """

    keys: Sequence[Tensor]
    values: Sequence[Tensor]
    rows: Tensor

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, **_: Any) -> tuple[Tensor, Tensor]:
        """As `KeyValueCache.update`, but gives all `capacity` rows."""
        self.keys[layer_idx].index_copy_(2, self.rows, keys)
        self.values[layer_idx].index_copy_(2, self.rows, values)
        return self.keys[layer_idx], self.values[layer_idx]


@dataclass(frozen=True)
class BesideCache:
    """Committed rows that a pass reads beside its own and leaves as they are; gradients go through its own.

    Attributes:
      keys, values: of all layers, [1, kv_heads, length, head_dim] each.
    """

    keys: Sequence[Tensor]
    values: Sequence[Tensor]

    def update(self, keys: Tensor, values: Tensor, layer_idx: int, **_: Any) -> tuple[Tensor, Tensor]:
        """As `KeyValueCache.update`, but writes nothing."""
        return torch.cat([self.keys[layer_idx], keys], dim=2), torch.cat([self.values[layer_idx], values], dim=2)
