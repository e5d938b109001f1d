"""What a run needs of a machine, looked at before anyone waits for it: one finding a line, with what to do."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import torch
from huggingface_hub import constants
from omegaconf import DictConfig, open_dict
from packaging.requirements import Requirement

from graders.code import Program
from harness.config.compose import compose
from harness.config.run_config import RunConfig
from harness.errors import UserError
from harness.models.loading.backbone import parameters_of
from harness.models.loading.placement import placement
from harness.running.build import build, find_model
from harness.system import machine
from harness.system.device import GB, device_label, memory_of

OK, WARNING, FAILS = "ok", "warning", "fails"
PAPER_DEVICE = ("A100", 80)  # product and memory in GB (E.1)
ROOM_FOR_RECORDS = 2 * GB
PROGRAM = "Here it is:\n```python\ndef add(a, b):\n    return a + b\n```\nIt adds."


@dataclass(frozen=True)
class Finding:
    """One line of the report: `status` is "ok", "warning" or "fails"."""

    what: str
    status: str
    says: str


def examine(models: Sequence[str], tasks: Sequence[str], overrides: Sequence[str]) -> Iterator[Finding]:
    """All findings, the cheap ones first.

    Args:
      models, tasks: names of configs.
      overrides: further keys, as on the command line.
    """
    yield _device()
    yield _driver()
    yield _libraries()
    yield from _graders()
    for name in models:
        yield from _model(compose([f"model={name}", *overrides]))
    for name in tasks:
        yield _task(name, compose([f"task={name}", *overrides]))
    yield _room("disk, results", Path.cwd(), ROOM_FOR_RECORDS)


def _device() -> Finding:
    device = placement("auto", "float32").device
    memory = memory_of(device)
    found = f"{device_label(device)}, {memory.free / GB:.1f} of {memory.total / GB:.1f} GB free"
    if device.type == "cpu":
        return Finding("device", WARNING, f"{found}: no accelerator; fit for the embedded models, not for the paper's")
    product, size = PAPER_DEVICE
    if product not in found or memory.total / GB < size:
        return Finding(
            "device", WARNING, f"{found}: times will not compare with the paper's, from one {product} {size}GB"
        )
    return Finding("device", OK, found)


def _driver() -> Finding:
    gpus = machine.state()["gpus"]
    busy = machine.hints(machine.state())
    versions = f"torch {torch.__version__}, CUDA {torch.version.cuda or 'none'}"
    drivers = ", ".join(sorted({f"driver {gpu['driver_version']}" for gpu in gpus})) or "no NVIDIA driver"
    if gpus and not torch.cuda.is_available():
        return Finding(
            "driver", FAILS, f"{drivers}, {versions}: torch cannot use the GPU. Install a build of torch for it"
        )
    if busy:
        return Finding("driver", WARNING, f"{drivers}, {versions}; {'; '.join(busy)}")
    return Finding("driver", OK, f"{drivers}, {versions}")


def _libraries() -> Finding:
    try:
        needed = [Requirement(one) for one in requires("packed-ss-harness") or []]
    except PackageNotFoundError:
        return Finding("libraries", WARNING, "this package is not installed, so versions are unknown. Run make venv")
    unfit, found = [], []
    for one in needed:
        if one.marker and not one.marker.evaluate({"extra": ""}):
            continue
        try:
            have = version(one.name)
        except PackageNotFoundError:
            have = None
        if have is None or not one.specifier.contains(have, prereleases=True):
            unfit.append(f"{one.name}{one.specifier} ({have or 'absent'})")
        found.append(f"{one.name} {have}")
    if unfit:
        return Finding("libraries", FAILS, f"need {', '.join(unfit)}. Run make venv")
    return Finding("libraries", OK, ", ".join(found))


def _graders() -> Iterator[Finding]:
    verdict = Program().grade(PROGRAM, {"tests": ["assert add(2, 3) == 5"], "entry_point": "add"})
    reason = verdict.reason.splitlines()[0]
    if verdict.correct:
        yield Finding("evalplus", OK, f"evalplus {version('evalplus')}: extracts a program, and the sandbox runs it")
    else:
        yield Finding(
            "evalplus", FAILS, f"a right program was graded {reason}. Try python -m harness check-task humaneval"
        )


def _model(config: RunConfig) -> Iterator[Finding]:
    what = f"model {config.model.name}"
    known = "architecture" in config.model
    need = 0
    try:
        # With random weights nothing is looked for, so the size is known before the checkpoint is there.
        loader = find_model(_with_random_weights(config) if known else config.model)
        need = parameters_of(loader.backbone) * placement("cpu", config.model.dtype).dtype.itemsize
        yield Finding(f"{what}, memory", OK, f"needs {need / GB:.1f} GB for its parameters in {config.model.dtype}")
    except UserError as error:
        yield Finding(f"{what}, memory", FAILS, str(error))
    try:
        found = find_model(config.model)
        yield Finding(f"{what}, files", OK, found.where)
    except UserError as error:
        yield Finding(f"{what}, files", FAILS, str(error))
        if known:
            yield _room(f"disk, {what}", Path(constants.HF_HUB_CACHE), need)


def _with_random_weights(config: RunConfig) -> DictConfig:
    model = config.model.copy()
    model._set_parent(config)
    with open_dict(model):
        model.weights = "random"
    return model


def _task(name: str, config: RunConfig) -> Finding:
    what = f"task {name}"
    try:
        data = build(config.task, "task").read()
    except UserError as error:
        return Finding(what, FAILS, str(error))
    if data.notices:
        return Finding(what, WARNING, "; ".join(data.notices))
    return Finding(what, OK, f"{len(data.items):,} items")


def _room(what: str, folder: Path, need_bytes: float) -> Finding:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    found = f"{free / GB:.0f} GB free in {folder}"
    if free < need_bytes:
        return Finding(what, FAILS, f"{found}, need {need_bytes / GB:.0f}. Free some, or use another disk")
    return Finding(what, OK, found)
