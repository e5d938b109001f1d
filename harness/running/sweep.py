"""Runs the cells of an experiment or a sweep through one of Hydra's launchers: here, one by one, or as cluster jobs.

Hydra sweeps over one key, the cell's number; each job runs that cell. One cell's failure leaves the others alone.
"""

import os
import sys
from collections.abc import Callable, Sequence

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from harness.config.cells import PlannedCell
from harness.config.compose import CONFIG_DIR, as_user_error
from harness.config.run_config import RunConfig

# Runs a cell: its number from 1, the cell, and its config.
Job = Callable[[int, PlannedCell, RunConfig], None]


def sweep(cells: Sequence[PlannedCell], settings: Sequence[str], job: Job) -> None:
    """Has `job` run each of `cells`, in this process or in those that a launcher starts.

    Args:
      settings: Hydra's, as on the command line, e.g. ["hydra/launcher=submitit_local"].

    Raises:
      UserError: an unknown name or key, and nothing has run.
    """
    # Composed here: a name that is not there is found before anything runs, and in a job Hydra composes nothing else.
    configs = [cell.config() for cell in cells]

    def numbered(config: DictConfig) -> None:
        job(config.cell, cells[config.cell - 1], configs[config.cell - 1])

    numbers = ",".join(str(number) for number in range(1, len(cells) + 1))
    # Hydra reads sys.argv, and raises instead of printing a shortened traceback only when told so here.
    settings = [*settings, f"hydra.sweep.dir={cells[0].parent}", f"cell={numbers}"]
    sys.argv = ["python -m harness run", "--multirun", *settings]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(config_path=str(CONFIG_DIR), config_name="config", version_base="1.3")(numbered)()
    except (HydraException, OmegaConfBaseException) as error:
        raise as_user_error(error) from None
