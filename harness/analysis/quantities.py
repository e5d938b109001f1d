"""What the published numbers are numbers of, computed from our settings; one function for each kind of quantity.

Those of `OF_A_SETTING` have a value in every setting; those of `OVER_SETTINGS` are about several at once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harness.analysis.bootstrap import CONFIDENCE, RESAMPLES, Statistic
from harness.analysis.cells import Method
from harness.analysis.cost import Cost, cost
from harness.analysis.cost_tables import model_ms_per_iteration
from harness.analysis.published import Published
from harness.analysis.settings import BASELINE, Setting
from harness.analysis.study import Study
from harness.analysis.timing import share
from harness.analysis.trajectories import distinct_labels, distinct_outputs

Value = Statistic | float | None

# The three schedules whose outputs and labels F.6 compares.
COMPARED = ("linear", "quadratic", "packed")
# What tells one schedule from another: these have a direction even where the model is not the published one.
RELATIVE = {"gain": 0.0, "difference": 0.0, "order_gain": 0.0, "ratio": 1.0, "share_model": 1.0, "share_total": 1.0,
            "share_non_model_ratio": 1.0}  # fmt: skip


class Subject(NamedTuple):
    """What a value is about.

    Attributes:
      settings: usually one; those averaged, or the orders compared, otherwise.
    """

    settings: Sequence[Setting]

    @property
    def setting(self) -> Setting:
        return self.settings[0]


def value_of(study: Study, published: Published, settings: Sequence[Setting]) -> Value:
    """The quantity of a statement in one setting, or over several; None where they do not have it."""
    if published.quantity in OVER_SETTINGS:
        return OVER_SETTINGS[published.quantity](study, published, settings)
    return OF_A_SETTING[published.quantity](settings[0], published)


def _gain(setting: Setting, published: Published) -> Value:
    ratio = _ratio(setting, published)
    return ratio and ratio.shifted(-1).scaled(100)


def _ratio(setting: Setting, published: Published) -> Statistic | None:
    return setting.ratio(published.metric, *_pair(setting, published))


def _difference(setting: Setting, published: Published) -> Value:
    difference = setting.difference(published.metric, *_pair(setting, published))
    return difference and difference.scaled(_scale(published))


def _mean(setting: Setting, published: Published) -> Value:
    mean = setting.statistic(published.metric, setting.method(published.method))
    return mean and mean.scaled(_scale(published))


def _model_ms(setting: Setting, published: Published) -> Value:
    method = setting.method(published.method)
    per_nfe = setting.statistic("model_per_nfe_s", method)
    value = method and model_ms_per_iteration(setting, method)
    return per_nfe.scaled(value / per_nfe.value) if per_nfe and value else None


def _outputs_differ(setting: Setting, published: Published) -> Value:
    methods = _compared(setting)
    return float(distinct_outputs(setting, methods)) if methods else None


def _labels_differ(setting: Setting, published: Published) -> Value:
    methods = _compared(setting)
    is_graded = methods and all(setting.value("accuracy", method) is not None for method in methods)
    return float(distinct_labels(setting, methods)) if is_graded else None


def _of_cost(part: Callable[[Cost], int]) -> Callable[[Setting, Published], Value]:
    def of(setting: Setting, published: Published) -> Value:
        method = setting.method(published.method)
        if method is None:
            return None
        found = cost(setting.family, method.schedule, method.width, setting.measured[method].config)
        return float(part(found)) if found else None

    return of


def _width(more: int) -> Callable[[Setting, Published], Value]:
    def of(setting: Setting, published: Published) -> Value:
        method = setting.method(published.method)
        return float(method.width + more) if method else None

    return of


def _config(setting: Setting, published: Published) -> Value:
    method = setting.method(published.method)
    found = setting.measured[method].config.get(published.key) if method else None
    return float(found) if isinstance(found, int | float) else None


def _share(part: str) -> Callable[[Study, Published, Sequence[Setting]], Value]:
    def of(study: Study, published: Published, settings: Sequence[Setting]) -> Value:
        time = share(settings, published.method)
        if time is None or part != "non_model_ratio":
            return time and getattr(time, part)
        return time.non_model / share(settings, BASELINE).non_model

    return of


def _order_gain(study: Study, published: Published, settings: Sequence[Setting]) -> Value:
    """The same prompts are resampled alike in both orders, so the ratio is paired."""
    setting = settings[0]
    place = setting.key._replace(order="confidence")
    other = next((s for s in study.main if s.key == place and s.window == setting.window), None)
    if other is None or other.prompt_ids != setting.prompt_ids:
        return None
    one, base = (s.statistic(published.metric, s.method(published.method)) for s in (other, setting))
    return (one / base).shifted(-1).scaled(100) if one and base else None


def _count(holds: Callable[[Statistic], bool]) -> Callable[[Study, Published, Sequence[Setting]], Value]:
    """How many comparisons hold; None unless all were made."""

    def of(study: Study, published: Published, settings: Sequence[Setting]) -> Value:
        ratios = [
            setting.ratio(published.metric, setting.method(published.method), setting.method(baseline))
            for setting in settings
            for baseline in published.baselines
        ]
        measured = [ratio for ratio in ratios if ratio]
        return float(sum(map(holds, measured))) if len(measured) == published.of else None

    return of


def _count_highest(study: Study, published: Published, settings: Sequence[Setting]) -> Value:
    """Settings of one schedule alone, and those without this one, have no highest."""
    count = measured = 0
    for setting in settings:
        rates = {method.schedule: setting.value(published.metric, method) for method in setting.methods}
        if published.method in rates and len(rates) > 1:
            measured += 1
            count += rates[published.method] == max(rates.values())
    return float(count) if measured == published.of else None


def _pair(setting: Setting, published: Published) -> tuple[Method | None, Method | None]:
    return setting.method(published.method), setting.method(published.baselines[0])


def _compared(setting: Setting) -> Sequence[Method]:
    methods = [setting.method(schedule) for schedule in COMPARED]
    return [] if None in methods else methods


def _scale(published: Published) -> float:
    return 100.0 if published.metric == "accuracy" else 1.0


OF_A_SETTING: Mapping[str, Callable[[Setting, Published], Value]] = {
    "gain": _gain,
    "ratio": _ratio,
    "difference": _difference,
    "mean": _mean,
    "model_ms_per_iteration": _model_ms,
    "outputs_differ": _outputs_differ,
    "labels_differ": _labels_differ,
    "rows": _of_cost(lambda one: one.rows),
    "rows_per_call": _of_cost(lambda one: one.rows_per_call),
    "adapter_selected": _of_cost(lambda one: one.selected),
    "adapter_evaluated": _of_cost(lambda one: one.updated),
    "prompts": lambda setting, published: float(len(setting.prompt_ids)),
    "repetitions": lambda setting, published: setting.responses / len(setting.prompt_ids),
    "cap": lambda setting, published: float(setting.key.max_new_tokens),
    "block_size": _width(1),
    "width": _width(0),
    "config": _config,
}
OVER_SETTINGS: Mapping[str, Callable[[Study, Published, Sequence[Setting]], Value]] = {
    "share_model": _share("model"),
    "share_total": _share("total"),
    "share_non_model_ratio": _share("non_model_ratio"),
    "order_gain": _order_gain,
    "count_highest": _count_highest,
    "count_higher": _count(lambda ratio: ratio.value > 1),
    "count_lower": _count(lambda ratio: ratio.value < 1),
    "count_above": _count(lambda ratio: ratio.estimate().low > 1),
    "count_below": _count(lambda ratio: ratio.estimate().high < 1),
    "count_including": _count(lambda ratio: ratio.estimate().low <= 1 <= ratio.estimate().high),
}
CONSTANTS = {"resamples": float(RESAMPLES), "confidence": 100 * CONFIDENCE}
STATED = "stated"
