"""Runs the cells of an experiment or a sweep through one of Hydra's launchers: here, one by one, or as cluster jobs.

Hydra sweeps over one key, the cell's number; each job runs that cell. One cell's failure leaves the others alone.
"""

import os
import sys
import traceback
from collections.abc import Sequence

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from harness.commands.run import run
from harness.commands.status import status_table
from harness.config import CONFIG_DIR, as_user_error
from harness.errors import UserError
from harness.experiments import Cell
from harness.run_folder import RunFolder
from harness.status import cell_statuses


def sweep(cells: Sequence[Cell], settings: Sequence[str]) -> None:
    """Runs `cells` and prints how each of them ended.

    Args:
      settings: Hydra's, as on the command line, e.g. ["hydra/launcher=submitit_local"].

    Raises:
      UserError: an unknown name or key, and nothing has run; or some cells are not done.
    """
    # Composed here: a name that is not there is found before anything runs, and in a job Hydra composes nothing else.
    configs = [cell.config() for cell in cells]

    def job(config: DictConfig) -> None:
        cell = cells[config.cell - 1]
        print(f"\n== cell {config.cell} of {len(cells)}: {' '.join(cell.overrides)}", file=sys.stderr)
        _run(configs[config.cell - 1], cell)

    numbers = ",".join(str(number) for number in range(1, len(cells) + 1))
    # Hydra reads sys.argv, and raises instead of printing a shortened traceback only when told so here.
    folder = cells[0].parent
    sys.argv = ["python -m harness run", "--multirun", *settings, f"hydra.sweep.dir={folder}", f"cell={numbers}"]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(config_path=str(CONFIG_DIR), config_name="config", version_base="1.3")(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise as_user_error(error) from None
    found = cell_statuses(cells)
    print(status_table(found))
    undone = sum(one.state != "done" for one in found)
    if undone:
        raise UserError(
            f"{undone} of {len(found)} cells are not done, see above. "
            f"The same command with run_dir={folder} runs what is missing."
        )


def _run(config: DictConfig, cell: Cell) -> None:
    """One cell, in this process or in one that a launcher has started."""
    try:
        run(config)
    except UserError as error:
        RunFolder(cell.folder).failed(str(error))
        print(f"PARTIAL: not run: {error}", file=sys.stderr)
    except Exception as error:
        RunFolder(cell.folder).failed(f"{type(error).__name__}: {error}")
        traceback.print_exc()
