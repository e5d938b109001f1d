"""How schedules, models and tasks are called and shown: one name, colour, hatch and marker everywhere.

Colours are Okabe and Ito's, which colour-blind readers tell apart; they differ in lightness too, and hatches tell
bars apart in print without colour.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

DASH = "–"


class Look(NamedTuple):
    """How a schedule is shown."""

    label: str
    colour: str
    hatch: str
    marker: str
    line: str


LOOKS = {
    "autoregressive": Look("Autoregressive", "#D9D9D9", "", "v", ":"),
    "linear": Look("Linear-SS", "#858585", "", "o", "-"),
    "quadratic": Look("Quadratic-SS", "#E69F00", "////", "^", "--"),
    "packed": Look("Packed-SS", "#0072B2", "", "s", "-"),
    "branches": Look("Partial branches", "#CC79A7", "\\\\\\\\", "P", "-."),
    "native": Look("Native", "#56B4A0", "....", "D", (0, (5, 1, 1, 1, 1, 1))),
}
# For schedules that are not ours: the name alone decides, so a schedule looks the same in every figure.
_OTHERS = ("#F0E442", "#D55E00", "#56B4E9", "#AA4499", "#882255", "#999933")
_OTHER_HATCHES = ("xxxx", "++++", "oooo", "----")

MODELS = {
    "nemotron3b": "Nemotron 3B",
    "nemotron8b": "Nemotron 8B",
    "setdlm_smax16": "SetDLM smax16",
    "setdlm_smax32": "SetDLM smax32",
}
TASKS = {
    "mbpp": "MBPP",
    "humaneval": "HumanEval",
    "gsm8k": "GSM8K",
    "math500": "MATH-500",
    "writingbench": "WritingBench",
}
ORDERS = {"ltr": "LTR", "confidence": "Confidence"}


def look(schedule: str) -> Look:
    """The look of any schedule."""
    if schedule in LOOKS:
        return LOOKS[schedule]
    digest = hashlib.sha256(schedule.encode()).digest()
    colour = _OTHERS[digest[0] % len(_OTHERS)]
    return Look(schedule, colour, _OTHER_HATCHES[digest[1] % len(_OTHER_HATCHES)], "X", "-")


def model_label(model: str) -> str:
    """A model's name for readers."""
    return MODELS.get(model, model)


def task_label(task: str) -> str:
    """A task's name for readers."""
    return TASKS.get(task, task)


def in_order(schedules: Iterable[str]) -> Sequence[str]:
    """Schedules in the order in which they are always shown: ours first."""
    known = list(LOOKS)
    return sorted(set(schedules), key=lambda name: (known.index(name) if name in known else len(known), name))


def models_in_order(models: Iterable[str]) -> Sequence[str]:
    """Models by name, numbers in them as numbers: 3b before 14b."""
    return sorted(set(models), key=_natural)


def tasks_in_order(tasks: Iterable[str]) -> Sequence[str]:
    """Tasks in the paper's order, others after them by name."""
    known = list(TASKS)
    return sorted(set(tasks), key=lambda name: (known.index(name) if name in known else len(known), _natural(name)))


def _natural(name: str) -> Sequence[Any]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
