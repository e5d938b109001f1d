"""The host's part of decoding: microseconds, tensor operations and transfers of each schedule per iteration."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from harness.analysis.table import Column, Table
from harness.bench.embedded import interleaved, load, prompts
from harness.bench.operations import Counts, counts_per_iteration
from harness.bench.stored import StoredModel
from harness.models.language_model import LanguageModel
from harness.running.plan import Schedule
from harness.system.clock import TimedModel
from schedules import Autoregressive, Greedy, Linear, Packed, Quadratic, Stop

# At the paper's widths, as far as the stored logits go.
SCHEDULES: Mapping[str, Schedule] = {
    "autoregressive": Autoregressive(),
    "linear": Linear(31),
    "packed": Packed(31),
    "quadratic": Quadratic(7),
}
POSITIONS, STORED_REPEATS = 400, 15


class Hosted(NamedTuple):
    """A schedule's time outside the model, a median, with its counts; beside both models.

    Attributes:
      stored_us, tiny_ms: of an iteration, and Linear's.
      call_ms: of the embedded model's forward pass.
    """

    name: str
    width: int
    stored_us: float
    linear_us: float
    beside_stored: Counts
    tiny_ms: float
    linear_ms: float
    call_ms: float
    beside_tiny: Counts


class Spent(NamedTuple):
    """By one response of the embedded model: outside it in an iteration, and in a forward pass."""

    host_ms: float
    call_ms: float


# Of a `Hosted`.
COLUMNS = (
    Column("schedule", "", lambda one: one.name),
    Column("W", "", lambda one: str(one.width)),
    Column("stored: µs/iteration", "", lambda one: one.stored_us),
    Column("ratio", "", lambda one: one.stored_us / one.linear_us, decimals=2),
    Column("operations", "", lambda one: one.beside_stored.operations, decimals=1),
    Column("transfers", "", lambda one: one.beside_stored.transfers, decimals=1),
    Column("tiny model: host ms/iteration", "", lambda one: one.tiny_ms, decimals=3),
    Column("ratio", "", lambda one: one.tiny_ms / one.linear_ms, decimals=2),
    Column("model ms/call", "", lambda one: one.call_ms, decimals=2),
    Column("operations", "", lambda one: one.beside_tiny.operations, decimals=1),
    Column("transfers", "", lambda one: one.beside_tiny.transfers, decimals=1),
)


def host_part(repeats: int, note: Callable[[], None]) -> Table:
    """Beside a model that costs nothing, and beside the embedded one.

    Args:
      repeats: responses of each schedule by the embedded model.
      note: called once a measurement; `steps` of them in all.
    """
    stored = StoredModel(POSITIONS, width=31)
    model = load()
    given = prompts(model, repeats + 1)
    free = interleaved(
        {name: lambda _, one=one: _stored_us(stored, one) for name, one in SCHEDULES.items()}, STORED_REPEATS, note
    )
    tiny = interleaved(
        {name: lambda number, one=one: _tiny_ms(model, one, given[number + 1]) for name, one in SCHEDULES.items()},
        repeats,
        note,
    )
    return Table(
        name="host",
        title="Host time of an iteration",
        columns=COLUMNS,
        items=[
            Hosted(
                name=name,
                width=schedule.width,
                stored_us=median(free[name]),
                linear_us=median(free["linear"]),
                beside_stored=counts_per_iteration(stored, None, schedule, [1]),
                tiny_ms=median(one.host_ms for one in tiny[name]),
                linear_ms=median(one.host_ms for one in tiny["linear"]),
                call_ms=median(one.call_ms for one in tiny[name]),
                beside_tiny=counts_per_iteration(model.model, model.model.backbone, schedule, given[0]),
            )
            for name, schedule in SCHEDULES.items()
        ],
        notes=[
            "Stored: a model that hands out stored logits at once. Host: outside forward passes. Operations: tensor "
            "operations outside the backbone, views included. Ratios are to Linear; medians of interleaved responses."
        ],
    )


def steps(repeats: int) -> int:
    """How often `host_part` notes a measurement."""
    return len(SCHEDULES) * (STORED_REPEATS + repeats)


def _stored_us(model: StoredModel, schedule: Schedule) -> float:
    timed = TimedModel(model)
    response, timing = timed.time(lambda: schedule.decode(timed, [1], Greedy(), Stop(POSITIONS, frozenset())))
    return 1e6 * (timing.wall_s - timing.model_s) / len(response.trace)


def _tiny_ms(model: LanguageModel, schedule: Schedule, prompt: Sequence[int]) -> Spent:
    timed = TimedModel(model.model)
    response, timing = timed.time(lambda: schedule.decode(timed, prompt, Greedy(), Stop(128, model.eos_ids)))
    host_ms = 1000 * (timing.wall_s - timing.model_s) / len(response.trace)
    return Spent(host_ms, 1000 * timing.model_s / response.nfe)
