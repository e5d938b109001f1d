"""What decoding costs besides the model, and what the adapter's two modes cost: measured, as ratios within one run.

Everything is decoded interleaved, prompt by prompt, so that a machine's drift meets all alike. Prompts are the last
of the toy task, which no other command measures first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from harness.building import build_model
from harness.clock import TimedModel
from harness.config import compose
from harness.models.language_model import LanguageModel
from harness.tasks.toy import ToySource
from schedules import Greedy, Linear, Packed, Quadratic, Stop

SCHEDULES = {"linear": Linear(15), "packed": Packed(15), "quadratic": Quadratic(7)}
ADAPTERS = {"no adapter": (), "masked": ("masked",), "fused": ("fused",)}


@dataclass
class Samples:
    """Per-response measurements of one contestant.

    Attributes:
      host_ms: time outside the model per iteration.
      call_ms: time inside the model per forward pass.
    """

    host_ms: list[float] = field(default_factory=list)
    call_ms: list[float] = field(default_factory=list)


def host_and_model_time(prompts: int, note: Callable[[], None]) -> Mapping[str, Samples]:
    """Host time per iteration and model time per call of each schedule on tiny_nemotron.

    Args:
      note: called once a response.
    """
    model = _load()
    return _measure({name: (model, schedule) for name, schedule in SCHEDULES.items()}, prompts, note)


def adapter_modes(prompts: int, note: Callable[[], None]) -> Mapping[str, Samples]:
    """The same for Packed without an adapter and with each of its modes (F.2)."""
    contestants = {name: (_load(*mode), SCHEDULES["packed"]) for name, mode in ADAPTERS.items()}
    return _measure(contestants, prompts, note)


def medians(samples: Mapping[str, Samples]) -> Sequence[tuple[str, float, float, float, float]]:
    """Rows of (name, host ms an iteration, its ratio to the first, model ms a call, its ratio to the first)."""
    values = {name: (median(one.host_ms), median(one.call_ms)) for name, one in samples.items()}
    first_host, first_call = next(iter(values.values()))
    return [(name, host, host / first_host, call, call / first_call) for name, (host, call) in values.items()]


def _load(adapter_mode: str | None = None) -> LanguageModel:
    overrides = ["model=tiny_nemotron"]
    if adapter_mode is not None:
        overrides += ["adapter=linear_spec_lora", f"adapter_mode={adapter_mode}"]
    return build_model(compose(overrides).model)


def _measure(contestants: Mapping[str, tuple], prompts: int, note: Callable[[], None]) -> Mapping[str, Samples]:
    timed = {name: TimedModel(model.model) for name, (model, _) in contestants.items()}
    samples = {name: Samples() for name in contestants}
    items = ToySource("toy_math", 500).read().items[-prompts - 1 :]
    for index, item in enumerate(items):
        for name, (model, schedule) in contestants.items():
            prompt = model.encode(item.fields["prompt"])
            stop = Stop(128, model.eos_ids)
            response, timing = timed[name].time(
                lambda: schedule.decode(timed[name], prompt, Greedy(), stop)  # noqa: B023 (called at once)
            )
            if index == 0:
                continue  # warm-up
            iterations = len(response.trace)
            samples[name].host_ms.append(1000 * (timing.wall_s - timing.model_s) / iterations)
            samples[name].call_ms.append(1000 * timing.model_s / response.nfe)
            note()
    return samples
