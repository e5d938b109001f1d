"""Cells: the runs that one command stands for, one for each combination of values.

They come from an experiment, whose `cells` in conf/experiment/ are written as on the command line, from KEY=A,B given
with -m, or from both. Each cell is a command of its own, which can be run, or submitted, alone. The run folder of an
experiment's cell is named by what it is and not by the experiment, so that tables that show the same cells share runs.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path

from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from harness.config.compose import CONFIG_DIR, as_user_error, compose
from harness.config.run_config import PLACES, RunConfig
from harness.errors import UserError
from harness.records.places import RUNS
from harness.records.shard import shard_folder

CELLS = RUNS / "cells"
SWEEP = ("-m", "--multirun")
GROUPS = ("model", "task", "schedule")
LONGEST_NAME = 200  # bytes; file systems take 255
SEARCHPATH = "hydra.searchpath"
# Of the command and not of a cell; a cell's shard has its own folder inside the cell's.
NOT_IN_CELLS = ("experiment", "cell", "run_dir")


@dataclass(frozen=True)
class PlannedCell:
    """One run.

    Attributes:
      overrides: as on the command line, without `run_dir`.
      parent: folder of all cells of its command; None for one that stands alone and gets a new folder.
      name: of its own folder in there.
    """

    overrides: Sequence[str]
    parent: Path | None = None
    name: str = ""

    @property
    def run_dir(self) -> Path | None:
        """Where it is written, and continued if it is there; None for a new folder."""
        return self.parent and self.parent / self.name

    @property
    def command(self) -> Sequence[str]:
        """All arguments of its run."""
        return [*self.overrides, *([f"run_dir={self.run_dir}"] if self.run_dir else [])]

    @property
    def folder(self) -> Path | None:
        """The folder of its records: `run_dir`, or its shard's place in there."""
        return self.run_dir and shard_folder(self.run_dir, _values(self.overrides).get("shard"))

    def config(self) -> RunConfig:
        """Its config, composed."""
        return compose(self.command)


def cells_of(arguments: Sequence[str]) -> Sequence[PlannedCell]:
    """The cells that `arguments` stand for; none where they are one run.

    What stands among `arguments` holds in every cell, in place of the cell's own value; Hydra's own settings
    (`hydra_settings`) are no part of cells.

    Raises:
      UserError: no such experiment, values that cannot be read, or several values without -m.
    """
    words = [argument for argument in arguments if argument not in SWEEP]
    is_sweep = len(words) < len(arguments)
    given = _parsed(words)
    values = _values(words)
    named = [one.input_line for one in given if _key(one.input_line) in ("experiment", SEARCHPATH)]
    grids = list(compose(named).cells.values()) if "experiment" in values else []
    if not grids and "cell" in values:
        raise UserError(f"cell={values['cell']}: only an experiment has cells. Name one, as in experiment=table6.")
    if not grids and not is_sweep:
        return []
    listed = next((one for one in given if one.is_sweep_override()), None)
    if listed and not is_sweep:
        raise UserError(f"{listed.input_line}: several values are several runs of each cell. Add -m for that.")
    dropped = NOT_IN_CELLS if grids else NOT_IN_CELLS[1:]
    own = [one for one in given if _key(one.input_line) not in dropped and not _is_hydras(one.input_line)]
    everywhere = {_key(one.input_line) for one in own}
    combinations = [
        combination
        for grid in grids or [""]
        for combination in _product(
            [*(one for one in _parsed(grid.split()) if _key(one.input_line) not in everywhere), *own]
        )
    ]
    tasks = {_values(each).get("task") for each in combinations}
    if "task.data_files" in values and len(tasks) > 1:
        raise UserError(
            f"task.data_files={values['task.data_files']}: one file, and {len(tasks)} tasks. Name the folder with all "
            "of them, as in data_dir=DIR."
        )
    parent = Path(values["run_dir"]) if "run_dir" in values else CELLS if grids else _new_folder()
    tells_apart = None if grids else {_key(one.input_line) for one in own if one.is_sweep_override()}
    cells = [PlannedCell(each, parent, _name(each, tells_apart)) for each in dict.fromkeys(combinations)]
    return [cells[_number(values["cell"], len(cells)) - 1]] if "cell" in values else cells


def hydra_settings(arguments: Sequence[str]) -> Sequence[str]:
    """Those of `arguments` that are Hydra's own, a launcher's among them."""
    return [argument for argument in arguments if _is_hydras(argument)]


def _is_hydras(override: str) -> bool:
    # Where to look for configs besides belongs to every cell.
    return re.match(r"[+~]*hydra[./=](?!searchpath)", override) is not None


def _parsed(overrides: Sequence[str]) -> Sequence[Override]:
    try:
        # The loader is for values such as glob(toy_*).
        with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            loader = GlobalHydra.instance().config_loader()
        return OverridesParser.create(loader).parse_overrides(list(overrides))
    except HydraException as error:
        raise as_user_error(error) from None


def _product(overrides: Iterable[Override]) -> Iterable[Sequence[str]]:
    try:
        choices = [
            [f"{one.get_key_element()}={value}" for value in one.sweep_string_iterator()]
            if one.is_sweep_override()
            else [one.input_line]
            for one in overrides
        ]
    except HydraException as error:
        raise as_user_error(error) from None
    return product(*choices)


def _key(override: str) -> str:
    return override.split("=", 1)[0].lstrip("+~")


def _values(overrides: Iterable[str]) -> Mapping[str, str]:
    return {_key(override): override.partition("=")[2] for override in overrides}


def _name(overrides: Sequence[str], tells_apart: set[str] | None) -> str:
    """MODEL_TASK_SCHEDULES, and what else is set; of the keys that tell cells apart, where not all do.

    Different values give different names, which any file system takes: what cannot stand in a name, or is too long, is
    followed by a digest of it.
    """
    values = {
        key: value
        for key, value in _values(overrides).items()
        if key != "shard" and (key in tells_apart if tells_apart is not None else key not in PLACES)
    }
    parts = [_part(values[group]) for group in GROUPS if group in values]
    parts += [f"{key.rpartition('.')[2]}-{_part(value)}" for key, value in values.items() if key not in GROUPS]
    name = "_".join(parts)
    return name if len(name.encode()) <= LONGEST_NAME else f"{name[: LONGEST_NAME // 4]}_{_digest(name)}"


def _part(value: str) -> str:
    """A value as a part of a name: itself where it is plain, or a list of plain ones."""
    readable = re.sub(r"[^\w.]+", "-", value, flags=re.ASCII).strip("-")
    is_plain = re.fullmatch(r"[\w.]+|\[[\w.]+(,[\w.]+)*\]", value, flags=re.ASCII)
    return readable if is_plain else f"{readable}-{_digest(value)}".strip("-")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _new_folder() -> Path:
    return RUNS / f"{datetime.now():%Y-%m-%dT%H-%M-%S.%f}_sweep"


def _number(text: str, total: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= total:
        raise UserError(f"cell={text}: need a number from 1 to {total}, as --dry-run lists them.")
    return int(text)
