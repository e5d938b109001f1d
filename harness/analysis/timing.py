"""Model and non-model time as shares of Linear-SS's total, tasks averaged with equal weight (F.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

from harness.analysis.bootstrap import Statistic
from harness.analysis.cells import LEFT_TO_RIGHT
from harness.analysis.settings import BASELINE, Setting
from harness.analysis.study import WINDOWED, Study

# The paper's decomposition covers these two; a model that ran neither is shown on all tasks that it ran.
TASKS = ("gsm8k", "math500")


@dataclass(frozen=True)
class Share:
    """Time of one schedule in units of Linear-SS's total."""

    model: Statistic
    non_model: Statistic

    @property
    def total(self) -> Statistic:
        """Both together."""
        return self.model + self.non_model


def timed_settings(study: Study) -> Mapping[str, Sequence[Setting]]:
    """For each model the greedy settings whose times are averaged."""
    chosen: dict[str, list[Setting]] = {}
    for setting in study.settings(0.0, LEFT_TO_RIGHT):
        if setting.family != WINDOWED and setting.is_paired and setting.method(BASELINE):
            chosen.setdefault(setting.key.model, []).append(setting)
    return {model: [s for s in settings if s.key.task in TASKS] or settings for model, settings in chosen.items()}


def share(settings: Sequence[Setting], schedule: str) -> Share | None:
    """The schedule's times, averaged over tasks; None where it is missing on one of them."""
    shares = [_share(setting, schedule) for setting in settings]
    if not shares or None in shares:
        return None
    parts = zip(*((one.model, one.non_model) for one in shares), strict=True)
    model, non_model = (reduce(add, part).scaled(1 / len(shares)) for part in parts)
    return Share(model, non_model)


def _share(setting: Setting, schedule: str) -> Share | None:
    total = setting.statistic("wall_per_response_s", setting.method(BASELINE))
    model = setting.statistic("model_per_response_s", setting.method(schedule))
    non_model = setting.statistic("non_model_per_response_s", setting.method(schedule))
    return Share(model / total, non_model / total) if total and model and non_model else None
