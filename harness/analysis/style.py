"""How schedules, models and tasks are called and shown, and what each schedule is: one row of `SCHEDULES`.

Everything that tables, figures and simulations know of a schedule stands in its row: its name and look, the calls of an
iteration with their branches, and how the paper's table 2 and figure 1 show it. What an iteration costs by formula
follows from it (`harness.analysis.measures.layout_rows`), and how it is simulated on an atlas
(`harness.analysis.atlas.methods`).

Colours are Okabe and Ito's, which colour-blind readers tell apart; they differ in lightness too, and hatches tell
bars apart in print without colour.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

DASH = "–"

# Of a schedule's config and the most draft tokens that can be accepted: the branches of a call, in order.
Branches = Callable[[Mapping[str, Any], int], Sequence[int]]


class Look(NamedTuple):
    """How a schedule is shown."""

    label: str
    colour: str
    hatch: str
    marker: str
    line: str


class CallShape(NamedTuple):
    """What one call of an iteration is for.

    Attributes:
      verifies: whether it verifies a draft, or the prefix alone where a schedule drafts nothing.
      branches: that it proposes for; None where it proposes nothing.
    """

    verifies: bool
    branches: Branches | None = None


class Forms(NamedTuple):
    """Rows of an iteration in general (table 2): B = W + 1; u positions in the window, p tokens not cached yet."""

    nemotron: str
    setdlm: str


class Schematic(NamedTuple):
    """How figure 1 draws an iteration.

    Attributes:
      calls: the regions of each call; those that begin with "draft" are coloured, and the last of more than three
        stands for several.
      height: of the boxes; a box with one region has 1.
      predictions: drafter and verifier predictions of an iteration, unused ones included.
      width: W where nothing was measured: that of the paper's main cells (section 4.1).
    """

    calls: Sequence[Sequence[str]]
    height: float
    predictions: str
    width: int


class Example(NamedTuple):
    """What a schedule is set to where nobody says, for one whose width does not say all.

    Attributes:
      says: the same in words.
      config: by width.
    """

    says: str
    config: Callable[[int], Mapping[str, Any]]


@dataclass(frozen=True)
class ScheduleRow:
    """Everything that is known of a schedule.

    Attributes:
      look: its name and how it is drawn.
      iteration: the calls of one iteration, in their order; empty where they are not known.
      has_formula: whether rows of an iteration follow from its width and config.
      forms: these rows in general; rows of the registry that have them make up table 2.
      schematic: its drawing; those that have one make up figure 1.
      role: in the paper's main comparison; None for schedules that are not in it.
      example: None where a schedule is whole with its width.
    """

    look: Look
    iteration: Sequence[CallShape] = ()
    has_formula: bool = True
    forms: Forms | None = None
    schematic: Schematic | None = None
    role: Literal["subject", "rival"] | None = None
    example: Example | None = None

    @property
    def calls(self) -> int | None:
        """Calls of an iteration; None where they are not known."""
        return len(self.iteration) or None

    @property
    def drafts(self) -> bool:
        """Whether any call proposes anything."""
        return any(call.branches for call in self.iteration)

    @property
    def branches(self) -> Branches | None:
        """The branch policy of a one-call schedule, which verifies and proposes at once; None for all others."""
        return self.iteration[0].branches if len(self.iteration) == 1 and self.iteration[0].verifies else None


def _prefix_alone(config: Mapping[str, Any], outcomes: int) -> Sequence[int]:
    return (0,)


def _every_outcome(config: Mapping[str, Any], outcomes: int) -> Sequence[int]:
    return range(outcomes + 1)


def _those_named(config: Mapping[str, Any], outcomes: int) -> Sequence[int]:
    return [branch for branch in sorted(set(config.get("branches") or (0,))) if branch <= outcomes]


# In the order in which they are shown.
SCHEDULES: dict[str, ScheduleRow] = {
    "autoregressive": ScheduleRow(
        look=Look("Autoregressive", "#D9D9D9", "", "v", ":"),
        iteration=[CallShape(verifies=True)],
    ),
    "linear": ScheduleRow(
        look=Look("Linear-SS", "#858585", "", "o", "-"),
        iteration=[CallShape(verifies=False, branches=_prefix_alone), CallShape(verifies=True)],
        forms=Forms("2B", "p + 3u"),
        schematic=Schematic(
            calls=(("verify the draft:\nsome are accepted",), ("draft after the\nnew tokens",)),
            height=1.0,
            predictions="2W + 1",
            width=31,
        ),
        role="rival",
    ),
    "quadratic": ScheduleRow(
        look=Look("Quadratic-SS", "#E69F00", "////", "^", "--"),
        iteration=[CallShape(verifies=True, branches=_every_outcome)],
        forms=Forms("B(B + 1)", "p + 2u + u²"),
        schematic=Schematic(
            calls=(("verify the draft", "draft as if 0 accepted", "draft as if 1 accepted", "draft as if W accepted"),),
            height=1.95,
            predictions="(W + 1)²",
            width=7,
        ),
        role="rival",
    ),
    "packed": ScheduleRow(
        look=Look("Packed-SS", "#0072B2", "", "s", "-"),
        iteration=[CallShape(verifies=True, branches=_prefix_alone)],
        forms=Forms("2B", "p + 3u"),
        schematic=Schematic(
            calls=(("verify the draft", "draft after the\nold prefix"),), height=1.25, predictions="≤ 2W", width=31
        ),
        role="subject",
    ),
    "branches": ScheduleRow(
        look=Look("Partial branches", "#CC79A7", "\\\\\\\\", "P", "-."),
        iteration=[CallShape(verifies=True, branches=_those_named)],
        example=Example("0 and W / 2", lambda width: {"branches": [0, (width + 1) // 2]}),
    ),
    "native": ScheduleRow(
        look=Look("Native", "#56B4A0", "....", "D", (0, (5, 1, 1, 1, 1, 1))),
        iteration=[CallShape(verifies=False, branches=_prefix_alone)],
        # Each call caches as many tokens as the one before it was sure of.
        has_formula=False,
    ),
}
SUBJECT = next(name for name, row in SCHEDULES.items() if row.role == "subject")
RIVALS = tuple(name for name, row in SCHEDULES.items() if row.role == "rival")

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


def row_of(schedule: str) -> ScheduleRow:
    """The row of any schedule; of one without a row nothing is known, and it is called by its own name."""
    if schedule in SCHEDULES:
        return SCHEDULES[schedule]
    digest = hashlib.sha256(schedule.encode()).digest()
    colour = _OTHERS[digest[0] % len(_OTHERS)]
    return ScheduleRow(Look(schedule, colour, _OTHER_HATCHES[digest[1] % len(_OTHER_HATCHES)], "X", "-"))


def look(schedule: str) -> Look:
    """The look of any schedule."""
    return row_of(schedule).look


def model_label(model: str) -> str:
    """A model's name for readers."""
    return MODELS.get(model, model)


def task_label(task: str) -> str:
    """A task's name for readers."""
    return TASKS.get(task, task)


def in_order(schedules: Iterable[str]) -> Sequence[str]:
    """Schedules in the order in which they are always shown: that of their rows, then those without one by name."""
    known = list(SCHEDULES)
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
