"""From composed configs to objects: the one place where Hydra's `_target_` is followed."""

from collections.abc import Mapping
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate
from omegaconf import DictConfig

from harness.config.run_config import RunConfig
from harness.errors import UserError
from harness.running.plan import Plan, plan

# Keys of a model's yaml that are read by others, not by its loader.
NOT_FOR_LOADERS = ("widths",)


def build(config: DictConfig, what: str, **more: Any) -> Any:
    """The object that `config` describes by its `_target_`.

    Args:
      what: the config's name in messages, as a user would override it.

    Raises:
      UserError: the values are refused, or no such class can be imported.
    """
    try:
        return instantiate(config, **more)
    except InstantiationException as error:
        cause = error.__cause__
        if isinstance(cause, UserError):
            raise cause from None
        if cause is None or isinstance(cause, (ValueError, TypeError, ImportError, AttributeError)):
            message = " ".join(str(cause or error).split())
            raise UserError(f"{what}: {message}") from None
        raise cause from None


def build_schedules(configs: Mapping[str, DictConfig]) -> Mapping[str, Any]:
    """All schedules of a run by name, in the order in which they were asked for.

    Raises:
      UserError: one cannot be built, or is none.
    """
    built = {name: build(config, f"schedules.{name}") for name, config in configs.items()}
    for name, schedule in built.items():
        if not callable(getattr(schedule, "decode", None)):
            raise UserError(f"schedules.{name}={configs[name]}: need the _target_ of a schedule.")
    return built


def build_plan(config: RunConfig) -> Plan:
    """What a config asks to be run, read and checked.

    Raises:
      UserError: anything wrong with the config or the data.
    """
    task, order = build(config.task, "task"), build(config.order, "order")
    return plan(config, task, build_schedules(config.schedules), order)


def find_model(config: DictConfig) -> Any:
    """The loader that a model config describes: what it needs was found, no weights are read yet."""
    loader = {key: value for key, value in config.items() if key not in NOT_FOR_LOADERS}
    return build(DictConfig(loader, parent=config._get_parent()), "model", _convert_="all")


def build_model(config: DictConfig) -> Any:
    """The loaded model that a model config describes."""
    return find_model(config).load()
