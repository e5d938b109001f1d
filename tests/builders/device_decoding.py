"""Every way to decode, on the host and on the pretend accelerator: its tokens on both, and what passed between them.

    python -m tests.builders.device_decoding

prints the numbers of the table in `docs/speed.md`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from harness.models.nemotron.adapter import random_adapter
from harness.models.nemotron.model import NemotronModel
from harness.models.setdlm.model import SetDlmModel
from schedules import (
    Autoregressive,
    Branches,
    Confidence,
    Greedy,
    LeftToRight,
    Linear,
    Native,
    Packed,
    Quadratic,
    Random,
    Response,
    Sampling,
    SamplingParams,
    SeededChoices,
    Stop,
)
from schedules.call import Model
from schedules.decoding import Rule
from schedules.order import Order
from tests.builders import nemotron, setdlm
from tests.builders.pretend_accelerator import HOST, Traffic, on_device, watched

PROMPT = (7, 11, 5, 23, 8)
CAP = 9
LONGEST = 100  # tokens of prompt and response
WIDTH = 4
SCHEDULES = {
    "autoregressive": Autoregressive(),
    "linear": Linear(WIDTH),
    "packed": Packed(WIDTH),
    "quadratic": Quadratic(WIDTH),
    "branches": Branches(WIDTH, [0, 2]),
    "native": Native(WIDTH, threshold=0.3),
}
# Chance comes from a generator on the host: a pretended device has none of its own, and the host must draw the same.
RULES: dict[str, Callable[[], Rule]] = {
    "greedy": Greedy,
    "T=1": lambda: Sampling(SamplingParams(1.0), SeededChoices(5, HOST)),
    "top-k": lambda: Sampling(SamplingParams(1.0, top_k=6), SeededChoices(5, HOST)),
    "top-p": lambda: Sampling(SamplingParams(1.0, top_p=0.8), SeededChoices(5, HOST)),
}
ORDERS: dict[str, Callable[[], Order]] = {"ltr": LeftToRight, "confidence": Confidence, "random": Random}


@dataclass(frozen=True)
class Way:
    """One way to decode.

    Attributes:
      family, schedule, rule, order: names, as in the tables of this module.
      adapter: its mode; None without one.
    """

    family: str
    schedule: str
    rule: str = "greedy"
    order: str = "ltr"
    adapter: str | None = None

    def __str__(self) -> str:
        parts = (self.family, self.schedule, self.rule, self.order, self.adapter)
        return " ".join(part for part in parts if part)

    def decode(self, model: Model, cap: int = CAP) -> Response:
        """A response of `cap` tokens, the same at every call."""
        stop = Stop(cap, frozenset())
        return SCHEDULES[self.schedule].decode(model, PROMPT, RULES[self.rule](), stop, ORDERS[self.order]())


WAYS = [
    *(
        Way("nemotron", schedule, rule, adapter=adapter)
        for schedule in SCHEDULES
        for rule in RULES
        for adapter in (None, "masked", "fused")
        if schedule != "native"
    ),
    *(
        Way("setdlm", schedule, rule, order)
        for schedule in SCHEDULES
        for rule in RULES
        for order in ORDERS
        if (rule == "greedy" or order == "ltr") and (schedule != "native" or (rule, order) == ("greedy", "ltr"))
    ),
]


def build(family: str, adapter: str | None = None, is_on_device: bool = False) -> Model:
    """A small model with random weights, told how long responses are; the same on host and device."""
    backbone = (setdlm if family == "setdlm" else nemotron).random_backbone(0)
    adapted = adapter and random_adapter(backbone, 4, 8, adapter)
    if adapted:
        for layer in adapted.projections.values():
            torch.nn.init.normal_(layer.lora_B)
    if is_on_device:
        on_device(backbone)
    if family == "setdlm":
        model = SetDlmModel(backbone, setdlm.MASK_ID)
    else:
        model = NemotronModel(backbone, nemotron.MASK_ID, adapted)
    model.reserve(LONGEST)
    return model


@dataclass(frozen=True)
class Counted:
    """A response on the device.

    Attributes:
      traffic: of the whole response, on a model that has decoded it once before.
      backbone_operations: those of `traffic.operations` that are forward passes, from the embedding to the head.
    """

    response: Response
    traffic: Traffic
    backbone_operations: int

    @property
    def iterations(self) -> int:
        return len(self.response.trace)


def counted(way: Way, model: Model, cap: int = CAP) -> Counted:
    """Decodes on the device; shapes that are built once are built before anything is counted."""
    way.decode(model, cap)
    passes = []
    with watched() as traffic:
        first, last = model.backbone.get_input_embeddings(), model.backbone.get_output_embeddings()
        hooks = [
            first.register_forward_pre_hook(lambda *_: passes.append(-traffic.operations)),
            last.register_forward_hook(lambda *_: passes.append(traffic.operations)),
        ]
        try:
            response = way.decode(model, cap)
        finally:
            for hook in hooks:
                hook.remove()
    return Counted(response, traffic, sum(passes))


# What the page shows.
SHOWN = [
    *(Way("nemotron", schedule) for schedule in ("autoregressive", "linear", "packed", "quadratic")),
    Way("nemotron", "packed", "top-p"),
    *(Way("setdlm", schedule) for schedule in ("autoregressive", "linear", "packed", "quadratic", "native")),
    Way("setdlm", "packed", "top-p"),
    *(Way("setdlm", schedule, order="confidence") for schedule in ("linear", "packed", "quadratic")),
]


def rows(ways: Sequence[Way]) -> Iterator[tuple[str, str, str, str]]:
    """For each way: its name; transfers to the host and to the device, and operations outside the backbone.

    An iteration, over a response of 27 tokens; the prompt, which is one transfer more, is left out.
    """
    for way in ways:
        model = build(way.family, is_on_device=True)
        way.decode(model, 3 * CAP)  # the cache grows to the largest shape, and smaller ones are built anew
        found = counted(way, model, 3 * CAP)
        traffic, outside = found.traffic, found.traffic.operations - found.backbone_operations
        numbers = (traffic.to_host, traffic.to_device - 1, outside)
        yield str(way), *(f"{number / found.iterations:.1f}" for number in numbers)


if __name__ == "__main__":
    for row in rows(SHOWN):
        print(f"| {' | '.join(row)} |")
