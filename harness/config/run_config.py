"""What a run can be told: the keys of conf/config.yaml, each with its kind and what its value must be.

One definition for the command line, the plan and the manifest. What a key means and its default stand in
conf/config.yaml, for those who read it there; a new key is a line in there and a field here.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, get_args

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from harness.errors import UserError

KINDS = {int: "an integer", float: "a number", str: "a text", type(None): "null"}


def at_least(least: int, more: str = "") -> Callable[[Any], str]:
    """A check: what is needed where a number is smaller, or nothing."""
    return lambda value: "" if value is None or value >= least else f"need an integer of at least {least}{more}."


def one_of(*known: str) -> Callable[[Any], str]:
    """A check: what is needed where a text is another, or nothing."""
    return lambda value: "" if value in known else f"need one of {', '.join(known)}."


def _is_temperature(value: float) -> str:
    return "" if 0 <= value < float("inf") else "need a number of at least 0; 0 decodes greedily."


def key(
    check: Callable[[Any], str] = lambda value: "", *, is_place: bool = False, shapes_atlas: bool = False
) -> Mapping[str, Any]:
    """What is known of a key beside its kind.

    Args:
      check: what is needed where a value of the right kind will not do.
      is_place: whether it says where things lie, or what is shown; a run goes on with another one.
      shapes_atlas: whether an atlas depends on it.
    """
    return {"check": check, "is_place": is_place, "shapes_atlas": shapes_atlas, "is_group": False}


def group(*, shapes_atlas: bool = False) -> Mapping[str, Any]:
    """The same for a key that holds the config of a thing, as the chosen files say it."""
    return {**key(shapes_atlas=shapes_atlas), "is_group": True}


@dataclass
class RunConfig:
    """The config of one run, as `harness.config.compose` gives it.

    `Any` is checked where it is used: prompts where the data are known, acceptance where runs are.
    """

    model: Any = field(metadata=group(shapes_atlas=True))
    task: Any = field(metadata=group(shapes_atlas=True))
    schedules: Any = field(metadata=group())
    order: Any = field(metadata=group())
    cells: Any = field(metadata=group())
    cell: int | None = field(metadata=key())
    weights: str = field(metadata=key(shapes_atlas=True))
    engine: str = field(metadata=key())
    acceptance: Any = field(metadata=key())
    acceptance_tokens: int | None = field(metadata=key(at_least(1, ", or null")))
    adapter: str | None = field(metadata=key(shapes_atlas=True))
    adapter_mode: str = field(metadata=key())
    drafter: str | None = field(metadata=key())
    seed: int = field(metadata=key())
    temperature: float = field(metadata=key(_is_temperature, shapes_atlas=True))
    top_k: int | None = field(metadata=key())
    top_p: float | None = field(metadata=key())
    limit: int | None = field(metadata=key(at_least(0, ", or null for all prompts"), shapes_atlas=True))
    prompts: Any = field(metadata=key(shapes_atlas=True))
    data_dir: str | None = field(metadata=key(is_place=True))
    shard: str | None = field(metadata=key())
    on_error: str = field(metadata=key(one_of("stop", "skip")))
    warmups: int = field(metadata=key(at_least(0)))
    drift_prompts: int = field(metadata=key(at_least(0)))
    samples: int = field(metadata=key(at_least(0), is_place=True))
    run_dir: str | None = field(metadata=key(is_place=True))


KEYS: Mapping[str, Field] = {one.name: one for one in fields(RunConfig)}
# What may differ between the first start of a run and its continuation; data files are known by their content.
PLACES = (
    *(name for name, one in KEYS.items() if one.metadata["is_place"]),
    "task.data_files",
    "task.source.data_files",
    "task.source.data_dir",
)
# Keys that the files of a group have had only since runs were recorded, with what those runs did.
LATER_KEYS: Mapping[str, Mapping[str, Any]] = {
    "model": {"rotary": "float32"},
    "order": {"cache": "textual"},
}
SHAPING_ATLASES = tuple(name for name, one in KEYS.items() if one.metadata["shapes_atlas"])


def checked(config: DictConfig) -> RunConfig:
    """`config` as a `RunConfig`, resolved.

    Raises:
      UserError: a key whose value is missing or will not do, and what is needed; or one that no run has.
      OmegaConfBaseException: an interpolation leads nowhere.
    """
    missing = OmegaConf.missing_keys(config)
    if missing:
        raise UserError(f"{min(missing)}=???: needs a value.")
    typed = OmegaConf.structured(RunConfig)
    for name, one in KEYS.items():
        value = config[name]
        shown = "null" if value is None else value
        if one.metadata["is_group"]:
            if not OmegaConf.is_dict(value):
                raise UserError(f"{name}={shown}: need a name, as `python -m harness list` shows them.")
            typed[name] = value
            continue
        try:
            typed[name] = value
        except OmegaConfBaseException:
            kinds = " or ".join(KINDS[kind] for kind in get_args(one.type) or (one.type,))
            raise UserError(f"{name}={shown}: need {kinds}.") from None
        need = one.metadata["check"](typed[name])
        if need:
            raise UserError(f"{name}={_plain(value)}: {need}")
    # Last, so that what refers to these values gets them in their kinds.
    OmegaConf.resolve(typed)
    return typed


def with_later_keys(values: Mapping[str, Any]) -> dict[str, Any]:
    """A config to compare with one of another version: groups have all of `LATER_KEYS`."""
    return {**values, **{name: keys | values[name] for name, keys in LATER_KEYS.items() if name in values}}


def completed(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The config in a manifest with the keys that runs did not have yet when it was written, in today's order."""
    return {name: values[name] if name in values else defaults[name] for name in KEYS}


def unknown_keys(config: DictConfig) -> Collection[str]:
    """Keys at the top of `config` that no run has."""
    return [str(name) for name in config if name not in KEYS]


def _plain(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, float) else value
