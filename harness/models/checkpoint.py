"""Reading checkpoints strictly: every tensor the backbone has, none that it lacks, each in its shape.

Released checkpoints name their tensors after the authors' own modules; loaders of model families rename them to the
stock backbone's names. Nothing of a checkpoint is executed.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from harness.errors import UserError

NAMES_SHOWN = 5


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


def load_strictly(module: nn.Module, folder: Path, rename: Callable[[str], str | None], dtype: torch.dtype) -> None:
    """Replaces all parameters of `module` (which may be on the meta device) by the checkpoint's.

    Args:
      rename: maps a checkpoint's tensor name to the module's; None drops the tensor.

    Raises:
      UserError: tensors that are missing, left over or of another shape, or files that cannot be read; by name.
    """
    expected = {name: tensor.shape for name, tensor in module.state_dict().items()}
    tensors: dict[str, Tensor] = {}
    unexpected, mis_shaped = [], []
    for file in _weight_files(folder):
        try:
            with safe_open(file, framework="pt") as shard:
                for released in shard.keys():  # noqa: SIM118 (not a mapping)
                    name = rename(released)
                    if name is None:
                        continue
                    if name not in expected:
                        unexpected.append(released)
                        continue
                    tensor = shard.get_tensor(released)
                    if tensor.shape != expected[name]:
                        mis_shaped.append(f"{released} {list(tensor.shape)} (need {list(expected[name])})")
                        continue
                    tensors[name] = tensor.to(dtype)
        except (SafetensorError, OSError) as error:
            raise UserError(f"model: cannot read {file} ({error}). Fetch the checkpoint again.") from None
    wrong_shape_names = {rename(entry.split(" ")[0]) for entry in mis_shaped}
    missing = [name for name in expected if name not in tensors and name not in wrong_shape_names]
    problems = [
        f"{len(names)} {what}: {_shortened(names)}"
        for what, names in (
            ("missing", missing),
            ("unexpected", unexpected),
            ("of another shape", mis_shaped),
        )
        if names
    ]
    if problems:
        raise UserError(
            f"model: {folder} does not hold the expected tensors; {'; '.join(problems)}. "
            "Check that config.json and weights belong together."
        )
    module.load_state_dict(tensors, strict=True, assign=True)


def _weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        files = [folder / name for name in names]
    else:
        files = sorted(folder.glob("*.safetensors"))
    absent = [file.name for file in files if not file.exists()]
    if absent or not files:
        raise UserError(
            f"model: {folder} lacks {_shortened(absent) or 'any *.safetensors file'}. Fetch the checkpoint again."
        )
    return files


def _shortened(names: list[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
