"""What decoding asks a device for, and whether its tokens are right: the first minute of `gpu_check.py`.

Both embedded models decode with every schedule, rule and order that they have. On a CUDA device PyTorch says whenever
the host waits for it, which every transfer in either direction does; an iteration may wait once for what was accepted,
and with SetDLM once more to send what a window is about. Elsewhere nothing is counted. `tests/builders/` counts the
same on a device that is pretended.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from harness.config.compose import compose
from harness.models.execution.engine import build_engine
from harness.models.language_model import LanguageModel
from harness.running.build import find_model
from schedules import (
    Autoregressive,
    Confidence,
    Greedy,
    LeftToRight,
    Linear,
    Native,
    Packed,
    Quadratic,
    Response,
    Sampling,
    SamplingParams,
    SeededChoices,
    Stop,
)
from schedules.order import Order

WAITED = "called a synchronizing CUDA operation"  # PyTorch's words in its synchronization debug mode
QUESTIONS = ("Tom has 12 apples and eats 5. How many are left?", "Write a short story.")
CAP = 24
SCHEDULES = {"linear": Linear(7), "packed": Packed(7), "quadratic": Quadratic(3)}
TRUNCATIONS = {
    "T=1": SamplingParams(1.0),
    "top-k": SamplingParams(1.0, top_k=20),
    "top-p": SamplingParams(1.0, top_p=0.9),
}


class Finding(NamedTuple):
    """One way to decode, tried on the device.

    Attributes:
      tokens_are_right: whether they are those of autoregressive decoding; None where they need not be.
      waits: how often the host waited for the device; None where that is not known.
      most_waits: how often it may.
      error: what PyTorch said where it could not decode at all.
    """

    way: str
    tokens_are_right: bool | None = None
    waits: int | None = None
    most_waits: int | None = None
    error: str | None = None

    @property
    def is_right(self) -> bool:
        too_often = self.waits is not None and self.waits > self.most_waits
        return self.error is None and self.tokens_are_right is not False and not too_often

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.way}: FAILED ({self.error})"
        tokens = {True: "right tokens", False: "WRONG TOKENS", None: "nothing to compare with"}[self.tokens_are_right]
        if self.waits is None:
            return f"{self.way}: {tokens}"
        verdict = "" if self.waits <= self.most_waits else ": TOO MANY"
        return f"{self.way}: {tokens}, the host waited {self.waits} times, {self.most_waits} allowed{verdict}"


class _Way(NamedTuple):
    """A name, what decodes a prompt, and whether its tokens must be autoregressive decoding's."""

    name: str
    decode: Callable[[Sequence[int]], Response]
    is_exact: bool


def findings(device: torch.device) -> Iterator[Finding]:
    """What the device does, one way to decode after the other."""
    for name in ("tiny_nemotron", "tiny_setdlm"):
        model = _load(name, device)
        yield from _tried(model, _ways(model, device), device)
    for mode in ("masked", "fused"):
        adapted = _load("tiny_nemotron", device, "adapter=linear_spec_lora", f"adapter_mode={mode}")
        ways = [_greedy(adapted, f"packed, adapter {mode}", Packed(7))]
        yield from _tried(adapted, ways, device)
    if device.type == "cuda":
        recorded = _load("tiny_nemotron", device)
        recorded.model.engine = build_engine("cudagraph", device)
        ways = [_greedy(recorded, f"{name}, recorded graphs", schedule) for name, schedule in SCHEDULES.items()]
        yield from _tried(recorded, ways, device)


def waits_for(device: torch.device, work: Callable[[], Any]) -> tuple[Any, int | None]:
    """What `work` gives, and how often the host waited for the device meanwhile; None on devices that do not tell."""
    if device.type != "cuda":
        return work(), None
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            result = work()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return result, sum(WAITED in str(one.message) for one in heard)


def lines(found: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """The findings for reading: what is wrong, or that nothing is."""
    tried = [Finding(**one) for one in found]
    if not tried:
        return ["- PARTIAL: no time for it"]
    wrong = [one for one in tried if not one.is_right]
    if wrong:
        return [f"- {one}" for one in wrong]
    counted = "" if tried[0].waits is None else ", and the host waits for the device no more often than it must"
    exact = sum(one.tokens_are_right is not None for one in tried)
    return [f"- all {len(tried)} ways to decode run, the {exact} exact ones give the right tokens{counted}"]


def _load(name: str, device: torch.device, *overrides: str) -> LanguageModel:
    words = [f"model={name}", "model.dtype=float32", f"model.device={device}", *overrides]
    return find_model(compose(words).model).load()


def _greedy(model: LanguageModel, name: str, schedule: Any, order: type[Order] = LeftToRight) -> _Way:
    is_exact = order is LeftToRight and not isinstance(schedule, Native)
    stop = Stop(CAP, model.eos_ids)
    return _Way(name, lambda prompt: schedule.decode(model.model, prompt, Greedy(), stop, order()), is_exact)


def _ways(model: LanguageModel, device: torch.device) -> Iterator[_Way]:
    has_windows = model.model.is_same_position
    yield _greedy(model, "autoregressive", Autoregressive())
    for name, schedule in SCHEDULES.items():
        yield _greedy(model, f"{name}, greedy", schedule)
        if has_windows:
            yield _greedy(model, f"{name}, greedy, confidence", schedule, Confidence)
        for rule, truncation in TRUNCATIONS.items():

            def sampled(prompt: Sequence[int], schedule: Any = schedule, params: SamplingParams = truncation):
                chance = SeededChoices(0, device)
                return schedule.decode(model.model, prompt, Sampling(params, chance), Stop(CAP, model.eos_ids))

            yield _Way(f"{name}, {rule}", sampled, is_exact=False)
    if has_windows:
        yield _greedy(model, "native", Native(8))


def _tried(model: LanguageModel, ways: Iterable[_Way], device: torch.device) -> Iterator[Finding]:
    prompts = [model.encode(question) for question in QUESTIONS]
    model.model.reserve(max(map(len, prompts)) + CAP)
    plain = _greedy(model, "autoregressive", Autoregressive())
    expected: list[Sequence[int]] = []
    for way in ways:
        try:
            expected = expected or [plain.decode(prompt).tokens for prompt in prompts]
            yield _try(model, way, prompts, expected, device)
        except RuntimeError as error:
            yield Finding(f"{model.name} {way.name}", error=str(error).partition("\n")[0])


def _try(
    model: LanguageModel,
    way: _Way,
    prompts: Sequence[Sequence[int]],
    expected: Sequence[Sequence[int]],
    device: torch.device,
) -> Finding:
    for prompt in prompts:
        way.decode(prompt)  # builds, and records, what is built once for a shape
    responses, waits = waits_for(device, lambda: [way.decode(prompt) for prompt in prompts])
    iterations = sum(len(response.trace) for response in responses)
    return Finding(
        way=f"{model.name} {way.name}",
        tokens_are_right=[one.tokens for one in responses] == list(expected) if way.is_exact else None,
        waits=waits,
        most_waits=iterations * (2 if model.model.is_same_position else 1) + len(prompts),
    )
