"""Composes configs from the package's own `conf/` and turns Hydra's complaints into one line each.

`conf/` lies beside this package in a checkout and inside it in an installed wheel.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.errors import UserError, unknown

_INSTALLED = Path(__file__).parent / "conf"
CONFIG_DIR = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1] / "conf"


def compose(overrides: Sequence[str]) -> DictConfig:
    """The config of one run, all interpolations checked.

    Args:
      overrides: as on the command line, e.g. ["task=gsm8k", "schedule=[linear,packed]", "limit=50"].

    Raises:
      UserError: an unknown name or key, or a value that cannot be read.
    """
    try:
        with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            config = hydra_compose("config", overrides=list(overrides))
        OmegaConf.resolve(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise as_user_error(error) from None
    return config


def as_user_error(error: Exception) -> UserError:
    """What a user should read for an error of Hydra or OmegaConf."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if group:
            return unknown(group, name, names(group))
    message = " ".join(str(error).split())
    if isinstance(error, OverrideParseException):
        return UserError(f"{error.override}: cannot be read as KEY=VALUE ({message.split(' See https')[0]}).")
    unknown_key = re.match(r"Could not override '([^']+)'", message)
    if unknown_key:
        return _unknown_key(unknown_key.group(1))
    return UserError(f"config: {message}")


def _unknown_key(key: str) -> UserError:
    known = [str(known) for known in OmegaConf.load(CONFIG_DIR / "config.yaml") if known not in ("defaults", "hydra")]
    near = difflib.get_close_matches(key, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return UserError(
        f"{key}: no such key here. Keys stand in conf/config.yaml and in the files of the chosen model, task and "
        f"schedules; +{key}=... adds one.{hint}"
    )


def names(group: str) -> Iterable[str]:
    """Names of the configs in `group`."""
    return sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))


def described(group: str) -> Iterator[tuple[str, str]]:
    """Name and one-line description (the first comment that is no package line) of each config in `group`."""
    for name in names(group):
        lines = (CONFIG_DIR / group / f"{name}.yaml").read_text().splitlines()
        comments = [line[1:].strip() for line in lines if line.startswith("#")]
        yield name, next((line for line in comments if not line.startswith("@package")), "")
