"""What the proposal-only adapter costs in its two modes (F.2)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median

from harness.analysis.table import Column, Table
from harness.bench.embedded import beside, interleaved, load, prompts
from harness.models.language_model import LanguageModel
from harness.system.clock import TimedModel
from schedules import Greedy, Packed, Stop

ADAPTER = "adapter=linear_spec_lora"
CONTESTANTS: Mapping[str, Sequence[str]] = {
    "no adapter": (),
    "masked": (ADAPTER, "adapter_mode=masked"),
    "fused": (ADAPTER, "adapter_mode=fused"),
}
WIDTH = 15
# Of a `Timed`.
COLUMNS = (
    Column("adapter", "", lambda one: one.name),
    Column("model ms/call", "", lambda one: one.time, decimals=2),
    Column("x none", "", lambda one: one.ratio, decimals=3),
)


def steps(repeats: int) -> int:
    """How often `adapters_part` notes a measurement."""
    return len(CONTESTANTS) * repeats


def adapters_part(repeats: int, note: Callable[[], None]) -> Table:
    """Time of Packed's forward pass without an adapter and with each of its modes.

    Args:
      repeats: responses of each.
      note: called once a measurement.
    """
    models = {name: load(*overrides) for name, overrides in CONTESTANTS.items()}
    given = prompts(models["no adapter"], repeats + 1)
    found = interleaved({name: partial(_call_ms, model, given) for name, model in models.items()}, repeats, note)
    return Table(
        name="adapters",
        title=f"Packed's forward pass with the proposal-only adapter, W = {WIDTH}",
        columns=COLUMNS,
        items=beside("no adapter", {name: median(ms) for name, ms in found.items()}),
        notes=[f"Medians of {repeats} interleaved responses. Masked computes the update for all rows, as in F.2."],
    )


def _call_ms(model: LanguageModel, given: Sequence[Sequence[int]], number: int) -> float:
    timed = TimedModel(model.model)
    stop = Stop(128, model.eos_ids)
    response, timing = timed.time(lambda: Packed(WIDTH).decode(timed, given[number + 1], Greedy(), stop))
    return 1000 * timing.model_s / response.nfe
