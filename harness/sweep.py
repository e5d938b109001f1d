"""Sweeps: one run for each combination of values, through Hydra's own sweeper and launchers.

All runs of a sweep lie in one folder, each named after what tells it from the others, so that the same sweep started
again goes on with every one of them. One run's failure leaves the others alone.
"""

import os
import re
import sys
import traceback
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from harness.analysis.runs import RUNS
from harness.commands.run import run
from harness.commands.status import status_table
from harness.config import CONFIG_DIR, as_user_error, check, with_own_schedule
from harness.errors import UserError
from harness.run_folder import RunFolder
from harness.status import statuses

RUN_DIR = "run_dir="


def sweep(arguments: Sequence[str]) -> int:
    """Runs all combinations and prints how each of them ended.

    Args:
      arguments: as on the command line, -m among them; run_dir is the folder of the whole sweep.

    Returns:
      Exit status: 0 if every run is done, else 2.

    Raises:
      UserError: an unknown name or key; nothing has run then.
    """
    given = [argument.removeprefix(RUN_DIR) for argument in arguments if argument.startswith(RUN_DIR)]
    folder = Path(given[-1]) if given else RUNS / f"{datetime.now():%Y-%m-%dT%H-%M-%S.%f}_sweep"
    rest = with_own_schedule([argument for argument in arguments if not argument.startswith(RUN_DIR)])
    names = f"hydra.job.config.override_dirname.exclude_keys=[{','.join(_the_same_everywhere(rest))}]"
    # Hydra reads sys.argv, and raises instead of printing a shortened traceback only when told so here.
    sys.argv = ["python -m harness run", *rest, f"hydra.sweep.dir={folder}", names]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        hydra.main(config_path=str(CONFIG_DIR), config_name="config", version_base="1.3")(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise as_user_error(error) from None
    if not folder.is_dir():
        raise UserError(f"{' '.join(rest)}: started no run.")
    found = statuses([folder])
    print(status_table(found))
    return 0 if found and all(one.state == "done" for one in found) else 2


def job(config: DictConfig) -> None:
    """One run of a sweep, in this process or in one that a launcher has started."""
    name = re.sub(r"[^\w.=,+-]+", "_", HydraConfig.get().job.override_dirname)
    path = Path(HydraConfig.get().sweep.dir) / name
    try:
        check(config)
        config.run_dir = str(path)
        run(config)
    except UserError as error:
        RunFolder(path).failed(str(error))
        print(f"error: {error}", file=sys.stderr)
    except Exception as error:
        RunFolder(path).failed(f"{type(error).__name__}: {error}")
        traceback.print_exc()


def _the_same_everywhere(arguments: Sequence[str]) -> Sequence[str]:
    """Keys that are no part of a run's name: those that are not swept, and the shard, which has its own folder.

    Raises:
      UserError: an argument cannot be read.
    """
    overrides = [argument for argument in arguments if not argument.startswith("-")]
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except HydraException as error:
        raise as_user_error(error) from None
    keys = [override.key_or_group for override in parsed if not override.is_sweep_override()]
    return list(dict.fromkeys([*keys, "shard"]))
