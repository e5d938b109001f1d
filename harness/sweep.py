"""Sweeps: one run for each combination of values, through Hydra's own sweeper and launchers."""

import os
import sys
from collections.abc import Sequence

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.config import CONFIG_DIR, as_user_error


@hydra.main(config_path=str(CONFIG_DIR), config_name="config", version_base="1.3")
def _job(config: DictConfig) -> str:
    from harness.commands.run import run

    OmegaConf.resolve(config)
    return str(run(config))


def sweep(arguments: Sequence[str]) -> int:
    """Runs all combinations; `arguments` as on the command line, -m among them.

    Raises:
      UserError: an unknown name or key, or what the first failing run complains of.
    """
    # Hydra reads sys.argv, and raises instead of printing a shortened traceback only when told so here.
    sys.argv = ["python -m harness run", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        _job()
    except (HydraException, OmegaConfBaseException) as error:
        raise as_user_error(error) from None
    return 0
