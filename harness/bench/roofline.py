"""Where the time of a forward pass goes, beside what the memory's bandwidth alone would allow."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

from torch import nn

from harness.analysis.study.runs import Reads
from harness.analysis.table import Column, Table
from harness.bench.embedded import interleaved, load, prompts
from harness.bench.host import SCHEDULES
from harness.models.language_model import LanguageModel
from harness.models.loading.backbone import cache_bytes, weight_bytes
from harness.running.plan import Schedule
from harness.system.bandwidth import bandwidth_gb_s
from harness.system.clock import TimedModel, stopwatch
from schedules import Greedy, Stop

CAP, REPEATS = 96, 8
PARTS = ("head", "attention", "projections", "rest of the backbone", "around the backbone")


def steps() -> int:
    """How often `roofline_part` notes a measurement."""
    return 2 * len(SCHEDULES) * REPEATS


@dataclass(frozen=True)
class Split:
    """Milliseconds of a forward pass.

    Attributes:
      total: wall time of a response by its forward passes.
      limit: to read the weights and the cache once.
      parts: by those of PARTS, in a run whose modules are watched.
    """

    name: str
    width: int
    total: float
    limit: float
    parts: Mapping[str, float]


def _part(name: str) -> Column:
    return Column(name, "", lambda one: one.parts[name], decimals=2)


# Of a `Split`.
COLUMNS = (
    Column("schedule", "", lambda one: one.name),
    Column("W", "", lambda one: str(one.width)),
    Column("measured", "", lambda one: one.total, decimals=2),
    Column("bandwidth limit", "", lambda one: one.limit, decimals=3),
    Column("measured / limit", "", lambda one: one.total / one.limit, decimals=1),
    *map(_part, PARTS),
)


def roofline_part(note: Callable[[], None]) -> Table:
    """Time per NFE of each schedule at the paper's width, its parts, and the limit.

    Args:
      note: called once a measurement.
    """
    model = load()
    given = prompts(model, REPEATS + 1)
    bandwidth = bandwidth_gb_s(model.model.device)
    plain = interleaved({name: partial(_plain, model, one, given) for name, one in SCHEDULES.items()}, REPEATS, note)
    with _Watched(model) as watched:
        split = interleaved(
            {name: partial(_split, model, watched, one, given) for name, one in SCHEDULES.items()}, REPEATS, note
        )
    context = len(given[0]) + CAP // 2
    backbone = model.model.backbone
    limit_ms = Reads(weight_bytes(backbone), cache_bytes(backbone), bandwidth).ms(context)
    splits = []
    for name, schedule in SCHEDULES.items():
        total = median(plain[name])
        shares = [median(values) for values in zip(*split[name], strict=True)]
        # Watching takes time of its own: the parts are shares, which are applied to the undisturbed time.
        scale = total / sum(shares)
        parts = {part: share * scale for part, share in zip(PARTS, shares, strict=True)}
        splits.append(Split(name, schedule.width, total, limit_ms, parts))
    return Table(
        name="roofline",
        title="Time of a forward pass, in ms",
        columns=COLUMNS,
        items=splits,
        notes=[
            f"Limit: weights and a cache of {context} tokens read once at {bandwidth:.0f} GB/s (copying; smaller "
            "models stay in the processor's caches, which are faster). Rest of the backbone: norms, rotation, "
            "activations, and starting all operations. Around it: inputs, verification, drafting."
        ],
    )


def _plain(model: LanguageModel, schedule: Schedule, given: Sequence[Sequence[int]], number: int) -> float:
    timed = TimedModel(model.model)
    stop = Stop(CAP, model.eos_ids)
    response, timing = timed.time(lambda: schedule.decode(timed, given[number + 1], Greedy(), stop))
    return 1000 * timing.wall_s / response.nfe


def _split(
    model: LanguageModel, watched: "_Watched", schedule: Schedule, given: Sequence[Sequence[int]], number: int
) -> Sequence[float]:
    watched.seconds.clear()
    stop = Stop(CAP, model.eos_ids)
    response, wall_s = stopwatch(lambda: schedule.decode(model.model, given[number + 1], Greedy(), stop))
    took = watched.seconds
    attention = took["self_attn"] - took["of attention"]
    projections = took["of attention"] + took["mlp"]
    known = took["lm_head"] + attention + projections
    parts = (took["lm_head"], attention, projections, took["backbone"] - known, wall_s - took["backbone"])
    return [1000 * part / response.nfe for part in parts]


class _Watched:
    """While entered, adds up the seconds inside the backbone's modules."""

    def __init__(self, model: LanguageModel):
        self.seconds: dict[str, float] = defaultdict(float)
        self._backbone = model.model.backbone
        self._hooks: list = []

    def __enter__(self) -> "_Watched":
        self._watch("backbone", self._backbone.get_input_embeddings(), self._backbone.lm_head)
        self._watch("lm_head", self._backbone.lm_head)
        for layer in self._backbone.model.layers:
            self._watch("self_attn", layer.self_attn.q_proj, layer.self_attn.o_proj)
            for part in (
                layer.self_attn.q_proj,
                layer.self_attn.k_proj,
                layer.self_attn.v_proj,
                layer.self_attn.o_proj,
            ):
                self._watch("of attention", part)
            for part in (layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj):
                self._watch("mlp", part)
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _watch(self, name: str, first: nn.Module, last: nn.Module | None = None) -> None:
        """Adds up the time from where `first` begins to where `last`, by default itself, ends."""
        began: list[float] = []

        def start(*_: object, **__: object) -> None:
            began.append(perf_counter())

        def end(*_: object, **__: object) -> None:
            self.seconds[name] += perf_counter() - began.pop()

        self._hooks += [first.register_forward_pre_hook(start), (last or first).register_forward_hook(end)]
