"""What all parts of the bench share: interleaved repeats, prompts, and the embedded model."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from harness.config.compose import compose
from harness.models.language_model import LanguageModel
from harness.running.build import build_model
from harness.tasks.toy import ToySource

T = TypeVar("T")
TASK, ITEMS = "toy_math", 500


class Timed(NamedTuple):
    """A contestant's time, in whatever unit, beside that of the one that all are compared with."""

    name: str
    time: float
    base: float

    @property
    def ratio(self) -> float:
        """How many times as long."""
        return self.time / self.base


def beside(base: str, times: Mapping[str, float]) -> Sequence[Timed]:
    """All contestants, with the time of the one called `base`."""
    return [Timed(name, time, times[base]) for name, time in times.items()]


def load(*overrides: str) -> LanguageModel:
    """tiny_nemotron on the CPU."""
    return build_model(compose(["model=tiny_nemotron", "model.device=cpu", *overrides]).model)


def can_compile() -> bool:
    """Whether torch.compile works here: for a CPU it needs a C++ compiler."""
    return shutil.which("g++") is not None


def prompts(model: LanguageModel, count: int, skip: int = 0) -> Sequence[Sequence[int]]:
    """Token ids of `count` prompts from the end of toy_math's test items, which runs measure last; `skip` of the very
    last are left for something else."""
    items = ToySource(TASK, ITEMS).read().items
    return [model.encode(item.fields["prompt"]) for item in items[ITEMS - skip - count : ITEMS - skip]]


def interleaved(
    contestants: Mapping[str, Callable[[int], T]], repeats: int, note: Callable[[], None]
) -> Mapping[str, Sequence[T]]:
    """What each contestant gives in each of `repeats` rounds; a machine's drift then meets all alike.

    Round -1 comes first and is a warm-up, which is dropped.

    Args:
      contestants: called with the number of the round.
      note: called once a measurement.
    """
    found: dict[str, list[T]] = {name: [] for name in contestants}
    for round_ in range(-1, repeats):
        for name, contestant in contestants.items():
            result = contestant(round_)
            if round_ >= 0:
                found[name].append(result)
                note()
    return found
