"""Experiments of several cells: what `cells` in conf/experiment/ says, one run for each combination of values.

A cell is written as on the command line, so that it can be run, or submitted, alone. Its run folder is named by what
it is and not by the experiment, so that tables that show the same cells share their runs.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException
from omegaconf import DictConfig

from harness.config import as_user_error, compose

CELLS = Path("results/runs/cells")
GROUPS = ("model", "task", "schedule")
EXPERIMENT = "experiment="


@dataclass(frozen=True)
class Cell:
    """One run.

    Attributes:
      overrides: as on the command line, without `run_dir`.
      run_dir: where it is written, and continued if it is there; None for a new folder.
    """

    overrides: Sequence[str]
    run_dir: Path | None = None

    @property
    def command(self) -> Sequence[str]:
        """All arguments of its run."""
        return [*self.overrides, *([f"run_dir={self.run_dir}"] if self.run_dir else [])]

    def config(self) -> DictConfig:
        """Its config, composed."""
        return compose(self.command)


def cells_of(arguments: Sequence[str]) -> Sequence[Cell]:
    """The cells of the experiment that `arguments` name; none where it has none, or none is named.

    What else stands among `arguments` holds in every cell, in place of the cell's own value.

    Raises:
      UserError: no such experiment, or values that cannot be read.
    """
    if not any(argument.startswith(EXPERIMENT) for argument in arguments):
        return []
    given = [argument for argument in arguments if not argument.startswith(EXPERIMENT)]
    grids = compose(arguments).cells.values()
    everywhere = {_key(override) for override in given}
    combinations = [
        (*(override for override in combination if _key(override) not in everywhere), *given)
        for grid in grids
        for combination in _product(grid.split())
    ]
    return [Cell(overrides, CELLS / _name(overrides)) for overrides in dict.fromkeys(combinations)]


def _product(overrides: Iterable[str]) -> Iterable[Sequence[str]]:
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except OverrideParseException as error:
        raise as_user_error(error) from None
    choices = [
        [f"{one.key_or_group}={value}" for value in one.sweep_string_iterator()]
        if one.is_sweep_override()
        else [one.input_line]
        for one in parsed
    ]
    return product(*choices)


def _key(override: str) -> str:
    return override.split("=", 1)[0].lstrip("+~")


def _name(overrides: Sequence[str]) -> str:
    """MODEL_TASK_SCHEDULES, and what else is set."""
    values = {_key(override): override.partition("=")[2] for override in overrides}
    parts = [values[group] for group in GROUPS if group in values]
    parts += [f"{key.rpartition('.')[2]}-{value}" for key, value in values.items() if key not in GROUPS]
    return "_".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts)
