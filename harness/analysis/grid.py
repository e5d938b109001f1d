"""The rows that figures and tables share: models by tasks, with what has not been run as an empty place.

Also the line under each of them that says on what and from how much it was made.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.analysis.appearance import (
    TASKS,
    in_order,
    look,
    model_label,
    models_in_order,
    task_label,
    tasks_in_order,
)
from harness.analysis.bootstrap import RESAMPLES
from harness.analysis.cells import Method
from harness.analysis.settings import Setting

INTERVALS = f"95 % percentile intervals from {RESAMPLES:,} paired bootstrap resamples over prompts"


class NotMeasured(Exception):
    """A figure or table cannot be made from what was measured; says what is missing."""


class Place(NamedTuple):
    """One row: a model (in one window) on a task; the setting is None where it has not been run."""

    family: str
    model: str
    window: int | None
    task: str
    setting: Setting | None


def grid(settings: Iterable[Setting]) -> Sequence[Place]:
    """Every model on every task, family by family.

    Published tasks and others (such as toys) are two grids: a model that ran one of a kind is expected on all of them.

    Args:
      settings: of one temperature and order.
    """
    by_place = {(s.family, s.key.model, s.window, s.key.task): s for s in settings}
    places = []
    for family in sorted({family for family, *_ in by_place}):
        for is_published in (True, False):
            kind = [place for place in by_place if place[0] == family and (place[3] in TASKS) == is_published]
            tasks = tasks_in_order(task for *_, task in kind)
            for model in models_in_order(model for _, model, *_ in kind):
                windows = sorted({window for _, name, window, _ in kind if name == model}, key=lambda w: w or 0)
                places += [
                    Place(family, model, window, task, by_place.get((family, model, window, task)))
                    for window in windows
                    for task in tasks
                ]
    return places


def schedules_of(settings: Iterable[Setting]) -> Sequence[str]:
    """All schedules that any of the settings has, in the order in which they are shown."""
    return in_order(method.schedule for setting in settings for method in setting.methods)


def place_of(setting: Setting, method: Method) -> tuple[str, str, str, str]:
    """The first cells of a method's row: model, task, temperature, method."""
    key = setting.key
    return model_label(key.model), task_label(key.task), f"{key.temperature:g}", look(method.schedule).label


def provenance(settings: Iterable[Setting]) -> str:
    """Device, dtype, code version and n of everything that is shown."""
    settings = list(settings)
    facts = {fact for setting in settings for fact in setting.facts}
    parts = [
        f"{name} {'; '.join(sorted(values))}"
        for name, values in (
            ("device", {fact.device for fact in facts}),
            ("dtype", {fact.dtype for fact in facts}),
            ("engine", {fact.engine for fact in facts if fact.engine}),
            ("code", {fact.code for fact in facts}),
        )
        if values
    ]
    caps = {setting.key.max_new_tokens for setting in settings}
    parts.append(f"cap {_span(caps)} tokens")
    parts.append(f"n = {_span({len(setting.prompt_ids) for setting in settings})} prompts a setting")
    repetitions = {round(setting.responses / len(setting.prompt_ids), 2) for setting in settings}
    if repetitions != {1}:
        parts.append(f"{_span(repetitions)} responses a prompt")
    mixed = sorted({name for setting in settings for name in _mixed(setting)})
    if mixed:
        parts.append(f"MIXED {', '.join(mixed)} within a comparison, as asked for")
    if any(setting.left_out or setting.skipped for setting in settings):
        parts.append("PARTIAL: prompts that not every method answered are left out")
    return " · ".join(parts)


def _mixed(setting: Setting) -> Sequence[str]:
    facts = list(setting.facts)
    return [name for index, name in enumerate(facts[0]._fields) if len({fact[index] for fact in facts}) > 1]


def _span(numbers: set[int] | set[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,g}" if low == high else f"{low:,g} to {high:,g}"
