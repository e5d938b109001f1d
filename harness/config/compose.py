"""Composes configs from the package's own `conf/` and turns Hydra's complaints into one line each.

`conf/` lies beside this package in a checkout and inside it in an installed wheel.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.config.run_config import RunConfig, checked, completed, unknown_keys, with_later_keys
from harness.errors import UserError, unknown

OWN = "schedule."  # starts an override of a schedule without a config file
CHOOSING = r"(model|task|schedule|order|experiment|hydra\.searchpath)="  # starts an override that says which files
_PACKAGE = Path(__file__).parents[1]
CONFIG_DIR = next(folder for folder in (_PACKAGE / "conf", _PACKAGE.parent / "conf") if folder.is_dir())


def compose(overrides: Sequence[str], besides: Collection[str] = ()) -> RunConfig:
    """The config of one run, all interpolations and kinds of values checked.

    Args:
      overrides: as on the command line, e.g. ["task=gsm8k", "schedule=[linear,packed]", "limit=50"].
      besides: keys that can be given beside those of a run, for what an unknown one may have meant.

    Raises:
      UserError: an unknown name or key, or a value that cannot be read.
    """
    try:
        config = _composed(with_own_schedule(overrides))
        for key in unknown_keys(config):
            raise _unknown_key(key, _chosen(overrides), besides)
        return checked(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise as_user_error(error, overrides, besides) from None
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        # Hydra asserts what it expects of a group's value.
        raise UserError(f"config: {' '.join(overrides)} cannot be composed ({error!r}).") from None


def _composed(overrides: Sequence[str]) -> DictConfig:
    # Within one of Hydra's own jobs there is a Hydra already, which composes nothing else.
    here = GlobalHydra.instance()
    outer, here.hydra = here.hydra, None
    try:
        with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            return hydra_compose("config", overrides=list(overrides))
    finally:
        here.hydra = outer


def with_own_schedule(overrides: Sequence[str]) -> list[str]:
    """`overrides`, with what they say of a schedule that has no config file put among the others, by its own name.

    `schedule._target_=my_module.MySchedule schedule.width=7` becomes `my_schedule` among `schedules`. Its width is
    that of the model's partial branches where none is given.

    Raises:
      UserError: no single class is named, or one with the name of another schedule.
    """
    own = [override for override in overrides if override.startswith(OWN)]
    if not own:
        return list(overrides)
    values = dict(override.removeprefix(OWN).partition("=")[::2] for override in own)
    target = values.get("_target_", "")
    if not re.fullmatch(r"\w+(\.\w+)+", target):
        raise UserError(
            f"{own[0]}: sets up a schedule of your own, by schedule._target_=MODULE.CLASS. Those with a config file "
            "are set by schedules.NAME.KEY."
        )
    name = name_of_class(target)
    if name in names("schedule"):
        raise UserError(f"{own[0]}: would be called {name}, as a schedule of conf/schedule/ is. Rename the class.")
    settings = {"width": "${model.widths.branches}"} | values
    return [
        *(override for override in overrides if override not in own),
        *(f"+schedules.{name}.{key}={value}" for key, value in settings.items()),
    ]


def name_of_class(target: str) -> str:
    """What a schedule is called after its class: `my_module.MySchedule` is my_schedule."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", target.rpartition(".")[2]).lower()


def stored(values: Mapping[str, Any]) -> RunConfig:
    """The config in a run's manifest; keys that runs did not have yet have their defaults.

    Raises:
      UserError: a value will not do any more.
    """
    return checked(OmegaConf.create(with_defaults(values)))


def with_defaults(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config in a run's manifest, where keys that there were not yet have what the files of conf/ say.

    Keys within a model, a task or an order are those of today's file of that name, where there is one.
    """
    chosen = {group: str(values.get(group, {}).get("name")) for group in ("model", "task")}
    choices = [f"{group}={name}" for group, name in chosen.items() if name in names(group)]
    try:
        today = OmegaConf.to_container(_composed(["schedule=[]", *choices]), resolve=True)
    except (HydraException, OmegaConfBaseException):
        today = OmegaConf.to_container(_composed([]), resolve=True)
    whole = completed(values, today)
    for choice in choices:
        group = choice.partition("=")[0]
        whole[group] = _filled(whole[group], today[group])
    return whole


def _filled(values: Mapping[str, Any], today: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with the keys that only `today` has, at every depth; kinds that changed are left alone."""
    filled = {key: values.get(key, value) for key, value in today.items()} | values
    return {
        key: _filled(value, today[key])
        if isinstance(value, Mapping) and isinstance(today.get(key), Mapping) and key in values
        else value
        for key, value in filled.items()
    }


def comparable(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A run's config to compare with that of its continuation: with the keys that one of the two may lack."""
    return with_later_keys(with_defaults(values))


def as_user_error(error: Exception, overrides: Sequence[str] = (), besides: Collection[str] = ()) -> UserError:
    """What a user should read for an error of Hydra or OmegaConf; the others are as for `compose`."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        if group:
            return unknown(group, name, names(group))
    message = " ".join(str(error).split())
    if isinstance(error, OverrideParseException):
        return UserError(f"{error.override}: cannot be read as KEY=VALUE ({message.split(' See https')[0]}).")
    unknown_key = re.match(r"Could not override '([^']+)'", message)
    if unknown_key:
        return _unknown_key(unknown_key.group(1), _chosen(overrides), besides)
    return UserError(f"config: {message}")


def _chosen(overrides: Sequence[str]) -> Mapping[str, Any]:
    """The config of the model, task and schedules that `overrides` choose, all else as in the files."""
    choices = [one for one in overrides if re.match(CHOOSING, one)]
    try:
        return OmegaConf.to_container(_composed(choices), resolve=False)
    except (HydraException, OmegaConfBaseException):
        return OmegaConf.to_container(_composed([]), resolve=False)


def _unknown_key(key: str, config: Mapping[str, Any], besides: Collection[str]) -> UserError:
    """The error for a key that is not in `config`, with the nearest match among those of its part."""
    above: list[str] = []
    part: Any = config
    name, *below = key.split(".")
    while isinstance(part, Mapping) and name in part and below:
        above.append(name)
        part = part[name]
        name, *below = below
    if above and not isinstance(part, Mapping):
        is_in = ".".join(above)
        return UserError(f"{key}: no such key here. {is_in} holds one value. Did you mean {is_in}?")
    known = [str(one) for one in part]
    places = f"{'.'.join(above)} has {', '.join(known) or 'no keys'}; +{key}=... adds one."
    if not above:
        places = "Keys stand in conf/config.yaml and in the files of the chosen model, task and schedules."
        known += ["schedule", "experiment", *besides]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {'.'.join([*above, *near, *below])}?" if near else ""
    return UserError(f"{key}: no such key here. {places}{hint}")


def names(group: str) -> Iterable[str]:
    """Names of the configs in `group`."""
    return sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))


def described(group: str) -> Iterator[tuple[str, str]]:
    """Name and one-line description (the first comment that is no package line) of each config in `group`."""
    for name in names(group):
        lines = (CONFIG_DIR / group / f"{name}.yaml").read_text().splitlines()
        comments = [line[1:].strip() for line in lines if line.startswith("#")]
        yield name, next((line for line in comments if not line.startswith("@package")), "")
