"""How far run folders are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from harness.config.cells import PlannedCell
from harness.config.compose import with_defaults
from harness.config.run_config import PLACES
from harness.errors import UserError
from harness.records.folder import RunFolder, folders_with
from harness.records.identity import config_differences
from harness.records.lock import is_held
from harness.records.shard import own_prompts
from harness.text import SHOWN

HOLD_RUNS = ("manifest.json", "error.txt")


@dataclass(frozen=True)
class Status:
    """One run folder.

    Attributes:
      cell: model, task, schedules and what else tells it from others.
      recorded, expected: responses, those passed over included.
      state: "done", "running", "partial", "failed", "damaged", "other" where a cell's folder holds a run of another
        config, or "missing" where a cell was not started.
      reason: the first line of what went wrong, or nothing.
    """

    path: Path
    cell: str
    recorded: int
    expected: int
    state: str
    reason: str = ""


def statuses(paths: Iterable[Path]) -> Sequence[Status]:
    """Of all run folders at and below `paths`, in the order of their names.

    Raises:
      UserError: one of `paths` does not exist.
    """
    return [status(folder) for folder in folders_with(HOLD_RUNS, paths)]


def cell_statuses(cells: Iterable[PlannedCell]) -> Sequence[Status]:
    """Of the run folders of an experiment's cells, shards one by one; only runs of the cells' configs are theirs."""
    found: list[Status] = []
    for cell in cells:
        asked = OmegaConf.to_container(cell.config(), resolve=True)
        below = folders_with(HOLD_RUNS, [cell.folder]) if cell.folder.is_dir() else []
        found += [status(folder, asked) for folder in below] or [
            Status(cell.folder, " ".join(cell.overrides), 0, 0, "missing")
        ]
    return found


def status(path: Path, asked: Mapping[str, Any] | None = None) -> Status:
    """Of one run folder, read without changing it.

    Args:
      asked: the config that its run should have; None for any.
    """
    folder = RunFolder(path)
    if not folder.manifest_file.exists():
        return Status(path, "", 0, 0, "failed", _error(folder))
    try:
        manifest = folder.read_manifest()
        plan, config = manifest["plan"], manifest["config"]
        expected = len(own_prompts(plan)) * plan["repetitions"] * len(plan["schedules"])
        recorded = len({record.key for record in folder.records()})
        cell = f"{config['model']['name']} {config['task']['name']} {','.join(plan['schedules'])}"
        details = [f"T={config['temperature']:g}", plan["shard"] and f"shard {plan['shard']}"]
    except UserError as error:
        return Status(path, "", 0, 0, "damaged", str(error))
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        return Status(path, "", 0, 0, "damaged", f"{type(error).__name__}: {error}")
    cell = " ".join([cell, *filter(None, details)])
    # A cell's folder may hold its shards.
    differing = config_differences(with_defaults(config), asked, (*PLACES, "shard")) if asked else []
    if differing:
        reason = "; ".join(f"{key} was {one!r}, is {other!r}" for key, one, other in differing[:SHOWN])
        return Status(path, cell, recorded, expected, "other", f"holds a run of another config: {reason}")
    if recorded == expected:
        return Status(path, cell, recorded, expected, "done")
    if is_held(path):
        return Status(path, cell, recorded, expected, "running")
    reason = _error(folder)
    if reason:
        return Status(path, cell, recorded, expected, "failed", reason)
    return Status(path, cell, recorded, expected, "partial")


def _error(folder: RunFolder) -> str:
    """The first line of what went wrong last, if anything did."""
    try:
        return folder.error_file.read_text().split("\n", 1)[0]
    except OSError:
        return ""
