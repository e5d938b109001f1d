"""What a run will do: read and checked before weights are loaded, so that mistakes cost no time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from harness.errors import UserError
from harness.records.shard import WHOLE, Shard, read_shard
from harness.running.synthetic_acceptance import Acceptance, read_acceptance
from harness.tasks.task import DataSet, Item, Task, select
from schedules.call import Model
from schedules.decoding import Rule
from schedules.distributions import SamplingParams
from schedules.greedy import Greedy
from schedules.native import Native
from schedules.order import LeftToRight, Order
from schedules.response import Response, Stop
from schedules.sampling import Sampling, SeededChoices

ON_ERROR = ("stop", "skip")


class Schedule(Protocol):
    """What the runner asks of a schedule."""

    width: int

    def decode(
        self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, order: Order | None = None
    ) -> Response: ...


@dataclass(frozen=True)
class Plan:
    """What a run will do, checked and ready, but for the model.

    Attributes:
      items: the selected prompts, of all shards.
      shard: which of them are this run's own.
      truncation: how sampling turns logits into distributions; None for greedy decoding.
      repetitions: responses for each prompt and schedule.
      warmups: responses for each schedule, at most, that are decoded first and not recorded.
      drift_prompts: prompts, at most, that are decoded again at the end.
      on_error: "stop" or "skip" where memory runs out.
      acceptance: token counts given instead of verified ones; None verifies.
    """

    task: Task
    data: DataSet
    items: Sequence[Item]
    shard: Shard
    schedules: Mapping[str, Schedule]
    order: Order
    truncation: SamplingParams | None
    repetitions: int
    seed: int
    warmups: int
    drift_prompts: int
    on_error: str
    acceptance: Acceptance | None = None

    @property
    def own_items(self) -> Sequence[Item]:
        """The prompts of this shard."""
        return self.shard.part(self.items)

    @property
    def max_new_tokens(self) -> int:
        """The longest that a response may get, in tokens."""
        given = self.acceptance.tokens if self.acceptance else None
        return self.task.max_new_tokens if given is None else min(self.task.max_new_tokens, given)

    @property
    def responses(self) -> int:
        """Responses to record in this shard."""
        return len(self.own_items) * self.repetitions * len(self.schedules)

    def rule(self, seed: int, device: torch.device) -> Rule:
        """A fresh rule for one response, so that it can be reproduced alone."""
        return Greedy() if self.truncation is None else Sampling(self.truncation, SeededChoices(seed, device))

    def facts(self) -> Mapping[str, Any]:
        """For the manifest: all that says which records a whole run has."""
        return {
            "prompts": [item.prompt_id for item in self.items],
            "repetitions": self.repetitions,
            "schedules": list(self.schedules),
            "shard": None if self.shard == WHOLE else str(self.shard),
        }


def plan(
    task: Task,
    schedules: Mapping[str, Schedule],
    order: Order,
    *,
    limit: int | None,
    prompts: Sequence[str | int] | None,
    shard: str | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    warmups: int,
    drift_prompts: int,
    on_error: str,
    acceptance: Any,
    acceptance_tokens: int | None,
) -> Plan:
    """Reads the data and checks that the run makes sense.

    Raises:
      UserError: whatever is wrong with the data or the numbers.
    """
    if not schedules:
        raise UserError("schedule=[]: nothing to run. Name at least one, as in schedule=packed.")
    for name, value in (("warmups", warmups), ("drift_prompts", drift_prompts)):
        if type(value) is not int or value < 0:
            raise UserError(f"{name}={value}: need an integer of at least 0.")
    if type(seed) is not int:
        raise UserError(f"seed={seed}: need an integer.")
    if on_error not in ON_ERROR:
        raise UserError(f"on_error={on_error}: need one of {', '.join(ON_ERROR)}.")
    truncation = _truncation(temperature, top_k, top_p)
    if truncation is not None and not isinstance(order, LeftToRight):
        raise UserError(
            f"order={order.name} temperature={temperature}: sampling is exact left to right only. "
            "Use order=ltr or temperature=0."
        )
    synthetic = read_acceptance(acceptance, acceptance_tokens)
    if synthetic and any(isinstance(schedule, Native) for schedule in schedules.values()):
        raise UserError("acceptance: schedule=native verifies nothing, so no counts can be given. Leave it out.")
    part = read_shard(shard)
    data = task.source.read()
    items = select(data.items, limit, prompts)
    for item in items:
        task.prompt(item)
    return Plan(
        task=task,
        data=data,
        items=items,
        shard=part,
        schedules=schedules,
        order=order,
        truncation=truncation,
        repetitions=1 if truncation is None else task.repetitions,
        seed=seed,
        warmups=warmups,
        drift_prompts=drift_prompts,
        on_error=on_error,
        acceptance=synthetic,
    )


def _truncation(temperature: float, top_k: int | None, top_p: float | None) -> SamplingParams | None:
    if not isinstance(temperature, int | float) or not 0 <= temperature < float("inf"):
        raise UserError(f"temperature={temperature:g}: need a number of at least 0; 0 decodes greedily.")
    try:
        # Truncation changes nothing at temperature 0, but what makes no sense there is refused all the same.
        truncation = SamplingParams(float(temperature) or 1.0, top_k, top_p)
    except ValueError as error:
        raise UserError(f"{error}.") from None
    return None if temperature == 0 else truncation
