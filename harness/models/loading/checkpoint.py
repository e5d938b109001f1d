"""Reading checkpoints strictly: every tensor the backbone has, none that it lacks, each in its shape.

Released checkpoints name their tensors after the authors' own modules; loaders of model families rename them to the
stock backbone's names. Nothing of a checkpoint is executed. Files are mapped, not read into memory, and every tensor
goes to its device and dtype at once, so the host never holds a checkpoint twice.
"""

import hashlib
import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from harness.errors import UserError
from harness.models.loading.placement import Placement

NAMES_SHOWN = 5
FORMATS = (  # index file, and the files that hold everything where there is no index; the first format found is read
    ("model.safetensors.index.json", "*.safetensors"),
    ("pytorch_model.bin.index.json", "pytorch_model*.bin"),
)
NUMBERS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
SHA256 = re.compile("[0-9a-f]{64}")


def read_config(folder: Path) -> dict[str, Any]:
    """The checkpoint's config.json.

    Raises:
      UserError: the file is missing or not a JSON object.
    """
    path = folder / "config.json"
    if not path.exists():
        raise UserError(f"model: {folder} has no config.json. Is it a checkpoint folder?")
    return _read_object(path)


def read_generation_config(folder: Path) -> dict[str, Any]:
    """The checkpoint's generation_config.json; empty where it has none.

    Raises:
      UserError: the file is not a JSON object.
    """
    path = folder / "generation_config.json"
    return _read_object(path) if path.exists() else {}


def _read_object(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text())
    except ValueError as error:
        raise UserError(f"model: {path} is not JSON ({error}). Fetch the checkpoint again.") from None
    if not isinstance(read, dict):
        raise UserError(f"model: {path} holds no JSON object. Fetch the checkpoint again.")
    return read


def sha256(file: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def load_strictly(
    module: nn.Module,
    folder: Path,
    rename: Callable[[str], str | None],
    where: Placement,
    tied: Mapping[str, str] | None = None,
) -> Mapping[str, str]:
    """Replaces all parameters of `module` (which may be on the meta device) by the checkpoint's.

    Reads safetensors, or else `.bin` files as torch saves them, of which nothing but tensors is unpickled.

    Args:
      rename: maps a checkpoint's tensor name to the module's; None drops the tensor.
      tied: module's names that share the weights of another one, which they map to. Either of the two may be absent
        from the checkpoint; where both are there they must be equal. The caller ties the module's parameters.

    Returns:
      SHA-256 of each file of weights.

    Raises:
      UserError: tensors that are missing, left over, of another shape or kind, or not finite; files that are missing,
        left over, cannot be read, or are not what the hub has; by name.
    """
    found = _Found({name: tensor.shape for name, tensor in module.state_dict().items()}, where)
    files = _weight_files(folder)
    with ThreadPoolExecutor(max_workers=1) as beside:
        digests = beside.map(_verified_digest, files)
        for file in files:
            with _opened(file) as shard:
                for released, read in shard:
                    name = rename(released)
                    if name is not None:
                        found.take(released, name, read, file.name)
        digest_by_file = dict(zip((file.name for file in files), digests, strict=True))
    found.tie(tied or {})
    problems = found.problems()
    if problems:
        raise UserError(
            f"model: {folder} does not hold the expected tensors; {'; '.join(problems)}. "
            "Check that config.json and weights belong together, or fetch the checkpoint again."
        )
    module.load_state_dict(found.tensors, strict=True, assign=True)
    return digest_by_file


@dataclass
class _Found:
    """What a checkpoint holds of the tensors that are expected, and what is wrong with it."""

    expected: Mapping[str, torch.Size]
    where: Placement
    tensors: dict[str, Tensor] = field(default_factory=dict)
    unexpected: list[str] = field(default_factory=list)
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)  # the module's name -> kind of problem, details
    untied: list[str] = field(default_factory=list)

    def take(self, released: str, name: str, read: Callable[[], Tensor], file: str) -> None:
        """Keeps the tensor that is called `released` in the checkpoint and `name` in the module."""
        if name not in self.expected or name in self.tensors:
            self.unexpected.append(f"{released} in {file}")
            return
        tensor, shape = read(), self.expected[name]
        if tensor.shape != shape:
            self.refused[name] = "of another shape", f"{released} {list(tensor.shape)} (need {list(shape)}) in {file}"
        elif tensor.dtype not in NUMBERS:
            self.refused[name] = "of another kind", f"{released} {tensor.dtype} (need plain floats) in {file}"
        else:
            tensor = tensor.to(self.where.device, self.where.dtype)
            # Extremes carry NaN along and take no memory, as comparing every entry would.
            if not torch.stack(tensor.aminmax()).isfinite().all():
                self.refused[name] = "with NaN or infinity", f"{released} in {file}"
            self.tensors[name] = tensor

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
        kinds = {
            "missing": [name for name in self.expected if name not in self.tensors and name not in self.refused],
            "unexpected": self.unexpected,
        }
        for kind, details in self.refused.values():
            kinds.setdefault(kind, []).append(details)
        kinds["of other values"] = self.untied
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
    except torch.OutOfMemoryError:
        raise
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UserError(f"model: cannot read {file} ({reason}). Fetch the checkpoint again.") from None


def _verified_digest(file: Path) -> str:
    """SHA-256 of a file; in the hub's cache, a snapshot's large files link to blobs that are named by theirs.

    Raises:
      UserError: the file is not what its name in the cache says.
    """
    digest = sha256(file)
    published = file.resolve().name
    if SHA256.fullmatch(published) and published != digest:
        raise UserError(
            f"model: {file} has SHA-256 {digest[:12]}..., the hub's has {published[:12]}...: it is corrupted. "
            "Delete it and fetch it again."
        )
    return digest


def _weight_files(folder: Path) -> list[Path]:
    """All files of the first format that is there.

    Raises:
      UserError: none is there, or others than the index names.
    """
    for index_name, pattern in FORMATS:
        files = sorted(folder.glob(pattern))
        index = folder / index_name
        if index.exists():
            named = _named_by(index)
            _check_files(folder, index_name, named, {file.name for file in files})
            return [folder / name for name in sorted(named)]
        if files:
            return files
    patterns = " or ".join(f"{pattern} file" for _, pattern in FORMATS)
    raise UserError(f"model: {folder} lacks any {patterns}. Fetch the checkpoint again.")


def _named_by(index: Path) -> set[str]:
    try:
        return set(json.loads(index.read_text())["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"model: {index} is no index of weights ({error!r}). Fetch the checkpoint again.") from None


def _check_files(folder: Path, index_name: str, named: set[str], there: set[str]) -> None:
    if named - there:
        raise UserError(f"model: {folder} lacks {_shortened(sorted(named - there))}. Fetch the checkpoint again.")
    if there - named:
        raise UserError(
            f"model: {folder} holds {_shortened(sorted(there - named))}, which {index_name} does not name. "
            "Remove what does not belong to the checkpoint."
        )


def _shortened(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
