"""Reading checkpoints strictly: every tensor the backbone has, none that it lacks, each in its shape.

Released checkpoints name their tensors after the authors' own modules; loaders of model families rename them to the
stock backbone's names. Nothing of a checkpoint is executed.
"""

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from harness.errors import UserError

NAMES_SHOWN = 5
FORMATS = (  # index file, and the files that hold everything where there is no index; the first format found is read
    ("model.safetensors.index.json", "*.safetensors"),
    ("pytorch_model.bin.index.json", "pytorch_model*.bin"),
)


def read_config(folder: Path) -> dict[str, Any]:
    """The checkpoint's config.json.

    Raises:
      UserError: the folder or the file is missing, or the file is not a JSON object.
    """
    if not folder.is_dir():
        raise UserError(f"model: no folder {folder}. Give model.path a folder with config.json and safetensors files.")
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"model: {folder} has no config.json. Is it a checkpoint folder?") from None
    except json.JSONDecodeError as error:
        raise UserError(f"model: {path} is not JSON ({error}). Fetch the checkpoint again.") from None
    if not isinstance(config, dict):
        raise UserError(f"model: {path} holds no JSON object. Fetch the checkpoint again.")
    return config


def load_strictly(
    module: nn.Module,
    folder: Path,
    rename: Callable[[str], str | None],
    dtype: torch.dtype,
    tied: Mapping[str, str] | None = None,
) -> None:
    """Replaces all parameters of `module` (which may be on the meta device) by the checkpoint's.

    Reads safetensors, or else `.bin` files as torch saves them, of which nothing but tensors is unpickled.

    Args:
      rename: maps a checkpoint's tensor name to the module's; None drops the tensor.
      tied: module's names that share the weights of another one, which they map to. Either of the two may be absent
        from the checkpoint; where both are there they must be equal. The caller ties the module's parameters.

    Raises:
      UserError: tensors that are missing, left over or of another shape, or files that cannot be read; by name.
    """
    found = _Found({name: tensor.shape for name, tensor in module.state_dict().items()})
    for file in _weight_files(folder):
        with _opened(file) as shard:
            for released, read in shard:
                name = rename(released)
                if name is not None:
                    found.take(released, name, read, dtype)
    found.tie(tied or {})
    problems = found.problems()
    if problems:
        raise UserError(
            f"model: {folder} does not hold the expected tensors; {'; '.join(problems)}. "
            "Check that config.json and weights belong together."
        )
    module.load_state_dict(found.tensors, strict=True, assign=True)


@dataclass
class _Found:
    """What a checkpoint holds of the tensors that are expected, and what is wrong with it."""

    expected: Mapping[str, torch.Size]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    unexpected: list[str] = field(default_factory=list)
    mis_shaped: dict[str, str] = field(default_factory=dict)  # by the module's names
    untied: list[str] = field(default_factory=list)

    def take(self, released: str, name: str, read: Callable[[], Tensor], dtype: torch.dtype) -> None:
        """Keeps the tensor that is called `released` in the checkpoint and `name` in the module."""
        if name not in self.expected or name in self.tensors:
            self.unexpected.append(released)
            return
        tensor, shape = read(), self.expected[name]
        if tensor.shape == shape:
            self.tensors[name] = tensor.to(dtype)
        else:
            self.mis_shaped[name] = f"{released} {list(tensor.shape)} (need {list(shape)})"

    def tie(self, tied: Mapping[str, str]) -> None:
        """Makes tied names share a tensor, whichever of the two was there."""
        for name, source in tied.items():
            mine, other = self.tensors.get(name), self.tensors.get(source)
            if mine is not None and other is not None and not torch.equal(mine, other):
                self.untied.append(f"{name} (need what {source} holds)")
            shared = mine if other is None else other
            if shared is not None:
                self.tensors[name] = self.tensors[source] = shared

    def problems(self) -> list[str]:
        """One entry for each kind of problem there is, with names."""
        missing = [name for name in self.expected if name not in self.tensors and name not in self.mis_shaped]
        kinds = {
            "missing": missing,
            "unexpected": self.unexpected,
            "of another shape": list(self.mis_shaped.values()),
            "of other values": self.untied,
        }
        return [f"{len(names)} {what}: {_shortened(names)}" for what, names in kinds.items() if names]


@contextmanager
def _opened(file: Path) -> Iterator[Iterator[tuple[str, Callable[[], Tensor]]]]:
    """The tensors of one file: names, and functions that read them."""
    try:
        if file.suffix == ".bin":
            # Memory-mapped: a shard of several GB is not held twice.
            tensors = torch.load(file, map_location="cpu", weights_only=True, mmap=True)
            if not isinstance(tensors, dict) or not all(map(torch.is_tensor, tensors.values())):
                raise pickle.UnpicklingError("no tensors by name")
            yield ((name, partial(tensors.__getitem__, name)) for name in tensors)
        else:
            with safe_open(file, framework="pt") as shard:
                yield ((name, partial(shard.get_tensor, name)) for name in shard.keys())  # noqa: SIM118 (no mapping)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"model: cannot read {file} ({reason}). Fetch the checkpoint again.") from None


def _weight_files(folder: Path) -> list[Path]:
    for index_name, pattern in FORMATS:
        index = folder / index_name
        if index.exists():
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
            files = [folder / name for name in names]
        else:
            files = sorted(folder.glob(pattern))
        absent = [file.name for file in files if not file.exists()]
        if absent:
            raise UserError(f"model: {folder} lacks {_shortened(absent)}. Fetch the checkpoint again.")
        if files:
            return files
    patterns = " or ".join(f"{pattern} file" for _, pattern in FORMATS)
    raise UserError(f"model: {folder} lacks any {patterns}. Fetch the checkpoint again.")


def _shortened(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
