"""End to end beside peers on the same weights: transformers' generate, its assisted generation, and ours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel

from harness.analysis.table import Column, Table
from harness.bench.embedded import can_compile, interleaved, load, prompts
from harness.errors import UserError
from harness.models.execution.engine import ENGINES, Eager, Engine, build_engine
from harness.models.language_model import LanguageModel
from harness.records.bootstrap import Estimate, Statistic, resampled_totals
from harness.running.plan import Schedule
from harness.system.clock import stopwatch
from schedules import Autoregressive, Greedy, Linear, Packed, Quadratic, Stop

CAP = 128
PROBED = 8  # prompts, apart from those measured, that block sizes are chosen on
SIZES: Mapping[str, Sequence[Schedule]] = {
    "linear": [Linear(width) for width in (3, 7, 15, 31)],
    "packed": [Packed(width) for width in (3, 7, 15, 31)],
    "quadratic": [Quadratic(width) for width in (3, 5, 7)],
}
GENERATE: Mapping[str, Mapping] = {
    "generate": {},
    "generate, static cache": {"cache_implementation": "static"},
    "generate, prompt lookup": {"prompt_lookup_num_tokens": 10},
}
BASE = "generate"


@dataclass(frozen=True)
class Answer:
    """One response: token ids and seconds."""

    tokens: Sequence[int]
    seconds: float


class Contestant(NamedTuple):
    """A contestant's answers, and those of whom it is compared with; None where there is none.

    Attributes:
      linear, autoregressive: with the same engine.
    """

    name: str
    own: Sequence[Answer]
    generate: Sequence[Answer]
    linear: Sequence[Answer] | None
    autoregressive: Sequence[Answer] | None

    @property
    def ms_per_token(self) -> float:
        """Ratio of totals."""
        return 1000 * sum(one.seconds for one in self.own) / sum(len(one.tokens) for one in self.own)

    def speedup(self, other: Sequence[Answer] | None) -> Estimate | None:
        """How many times faster than `other`, with its interval over prompts."""
        if other is None:
            return None
        seconds = np.array([[mine.seconds, theirs.seconds] for mine, theirs in zip(self.own, other, strict=True)])
        draws = resampled_totals(seconds)
        mine, theirs = (Statistic(float(seconds[:, column].sum()), draws[:, column]) for column in (0, 1))
        return (theirs / mine).estimate()


# Of a `Contestant`.
COLUMNS = (
    Column("contestant", "", lambda one: one.name),
    Column("ms/token", "", lambda one: one.ms_per_token, decimals=2),
    Column("x generate", "", lambda one: one.speedup(one.generate), decimals=2, is_interval=True),
    Column("x linear, same engine", "", lambda one: one.speedup(one.linear), decimals=3, is_interval=True),
    Column(
        "x autoregressive, same engine", "", lambda one: one.speedup(one.autoregressive), decimals=2, is_interval=True
    ),
)


def engines() -> Sequence[str]:
    """Engines that run here."""
    return ENGINES[: 1 + can_compile()]


def steps(repeats: int) -> int:
    """How often `peers_part` notes a measurement."""
    probed = sum(map(len, SIZES.values())) * PROBED
    return (probed + (1 + len(SIZES)) * repeats) * len(engines()) + len(GENERATE) * repeats


def peers_part(repeats: int, note: Callable[[], None]) -> Table:
    """Tokens/s of all contestants as ratios to transformers' generate.

    Args:
      repeats: prompts measured.
      note: called once a measurement.

    Raises:
      UserError: a contestant's tokens are not those of the others; speed means nothing then.
    """
    model = load()
    backbone = model.model.backbone
    measured, apart = prompts(model, repeats + 1), prompts(model, PROBED + 1, skip=repeats + 1)
    model.model.reserve(max(map(len, (*measured, *apart))) + CAP)
    contestants = {
        name: lambda number, options=options: _generated(model, backbone, measured[number + 1], options)
        for name, options in GENERATE.items()
    }
    for engine in engines():
        built = build_engine(engine, model.model.device)
        best = [_fastest(model, built, sizes, apart, note) for sizes in SIZES.values()]
        for schedule in (Autoregressive(), *best):
            name = f"{type(schedule).__name__} W={schedule.width}, {engine}"
            contestants[name] = lambda number, one=schedule, built=built: _ours(model, built, one, measured[number + 1])
    answers = interleaved(contestants, repeats, note)
    _check_alike(answers)
    return Table(
        name="peers",
        title="Tokens/s end to end, on the same weights",
        columns=COLUMNS,
        items=[_contestant(name, answers) for name in answers],
        notes=[
            f"Greedy, {repeats} prompts of toy_math, at most {CAP} tokens, one process, interleaved prompt by prompt; "
            f"block sizes chosen on {PROBED} other prompts. Intervals are paired, over prompts. All tokens are equal."
        ],
    )


def _fastest(
    model: LanguageModel, engine: Engine, sizes: Sequence[Schedule], given: Sequence[Sequence[int]], note: Callable
) -> Schedule:
    """The schedule among `sizes` with most tokens/s."""
    found = interleaved(
        {str(one.width): lambda number, one=one: _ours(model, engine, one, given[number + 1]) for one in sizes},
        PROBED,
        note,
    )
    return min(sizes, key=lambda one: sum(answer.seconds for answer in found[str(one.width)]))


def _ours(model: LanguageModel, engine: Engine, schedule: Schedule, prompt: Sequence[int]) -> Answer:
    model.model.engine = engine
    try:
        response, seconds = stopwatch(lambda: schedule.decode(model.model, prompt, Greedy(), Stop(CAP, model.eos_ids)))
    finally:
        model.model.engine = Eager()
    return Answer(list(response.tokens), seconds)


def _generated(model: LanguageModel, backbone: PreTrainedModel, prompt: Sequence[int], options: Mapping) -> Answer:
    ids = torch.tensor([prompt])

    def generate() -> Sequence[int]:
        with torch.inference_mode():
            given = backbone.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=CAP,
                do_sample=False,
                eos_token_id=sorted(model.eos_ids),
                pad_token_id=0,
                **options,
            )
        return given[0, len(prompt) :].tolist()

    return Answer(*stopwatch(generate))


def _check_alike(answers: Mapping[str, Sequence[Answer]]) -> None:
    for name, own in answers.items():
        if any(one.tokens != other.tokens for one, other in zip(own, answers[BASE], strict=True)):
            raise UserError(f"bench: {name} gives other tokens than {BASE}; their speeds cannot be compared.")


def _contestant(name: str, answers: Mapping[str, Sequence[Answer]]) -> Contestant:
    engine = name.rpartition(", ")[2]
    in_engine = {other.split()[0]: found for other, found in answers.items() if other.endswith(f", {engine}")}
    return Contestant(name, answers[name], answers[BASE], in_engine.get("Linear"), in_engine.get("Autoregressive"))
