"""The host's part of decoding: microseconds, tensor operations and transfers of each schedule per iteration."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from harness.analysis.table import Column, Number, Table
from harness.bench.embedded import interleaved, load, prompts
from harness.bench.operations import counts_per_iteration
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
COLUMNS = ("schedule", "W", "stored: µs/iteration", "ratio", "operations", "transfers")
TINY = ("tiny model: host ms/iteration", "ratio", "model ms/call", "operations", "transfers")


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
    rows = []
    base_us = median(free["linear"])
    base_ms = median(host for host, _ in tiny["linear"])
    for name, schedule in SCHEDULES.items():
        beside_stored = counts_per_iteration(stored, None, schedule, [1])
        beside_tiny = counts_per_iteration(model.model, model.model.backbone, schedule, given[0])
        microseconds = median(free[name])
        host_ms, call_ms = (median(values) for values in zip(*tiny[name], strict=True))
        rows.append(
            (name, str(schedule.width), Number(microseconds), Number(microseconds / base_us, 2),
             Number(beside_stored.operations, 1), Number(beside_stored.transfers, 1),
             Number(host_ms, 3), Number(host_ms / base_ms, 2), Number(call_ms, 2),
             Number(beside_tiny.operations, 1), Number(beside_tiny.transfers, 1))
        )  # fmt: skip
    return Table(
        name="host",
        title="Host time of an iteration",
        columns=[Column(name) for name in (*COLUMNS, *TINY)],
        rows=rows,
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


def _tiny_ms(model: LanguageModel, schedule: Schedule, prompt: Sequence[int]) -> tuple[float, float]:
    timed = TimedModel(model.model)
    response, timing = timed.time(lambda: schedule.decode(timed, prompt, Greedy(), Stop(128, model.eos_ids)))
    return 1000 * (timing.wall_s - timing.model_s) / len(response.trace), 1000 * timing.model_s / response.nfe
