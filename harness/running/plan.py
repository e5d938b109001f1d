"""What a run will do: read and checked before weights are loaded, so that mistakes cost no time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from harness.config.run_config import RunConfig
from harness.errors import UserError
from harness.records.shard import WHOLE, Shard, read_shard
from harness.running.synthetic_acceptance import Acceptance, read_acceptance
from harness.tasks.task import DataSet, Item, Task, select
from schedules.call import Model
from schedules.decoding import Rule
from schedules.distributions import SamplingParams
from schedules.greedy import Greedy
from schedules.native import Native
from schedules.order import CachingOrder, LeftToRight, Order
from schedules.response import Response, Stop
from schedules.sampling import Sampling, SeededChoices


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
      config: that it was made from.
      items: the selected prompts, of all shards.
      shard: which of them are this run's own.
      sampling: how logits become distributions; None for greedy decoding.
      repetitions: responses for each prompt and schedule.
      acceptance: what is accepted instead of what verification says; None verifies.
    """

    config: RunConfig
    task: Task
    data: DataSet
    items: Sequence[Item]
    shard: Shard
    schedules: Mapping[str, Schedule]
    order: Order
    sampling: SamplingParams | None
    repetitions: int
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
        return Greedy() if self.sampling is None else Sampling(self.sampling, SeededChoices(seed, device))

    def order_of(self, seed: int) -> Order:
        """The order for one response; what is random in it beside its own seed comes from the response's."""
        return self.order.seeded(seed) if isinstance(self.order, CachingOrder) else self.order

    def facts(self) -> Mapping[str, Any]:
        """For the manifest: all that says which records a whole run has."""
        return {
            "prompts": [item.prompt_id for item in self.items],
            "repetitions": self.repetitions,
            "schedules": list(self.schedules),
            "shard": None if self.shard == WHOLE else str(self.shard),
        }


def plan(config: RunConfig, task: Task, schedules: Mapping[str, Schedule], order: Order) -> Plan:
    """Reads the data and checks that the run makes sense.

    Args:
      task, schedules, order: built from `config`.

    Raises:
      UserError: whatever is wrong with the data or the numbers.
    """
    if not schedules:
        raise UserError("schedule=[]: nothing to run. Name at least one, as in schedule=packed.")
    sampling = _sampling(config)
    if sampling is not None and not isinstance(order, LeftToRight):
        raise UserError(
            f"order={order.name} temperature={config.temperature}: sampling is exact left to right only. "
            "Use order=ltr or temperature=0."
        )
    acceptance = read_acceptance(config.acceptance, config.acceptance_tokens)
    if acceptance and any(isinstance(schedule, Native) for schedule in schedules.values()):
        raise UserError("acceptance: schedule=native verifies nothing, so no counts can be given. Leave it out.")
    caches_randomly = isinstance(order, CachingOrder) and order.cache == "random"
    if caches_randomly and not any(isinstance(schedule, Native) for schedule in schedules.values()):
        raise UserError("order.cache=random: only schedule=native has such a choice. Use order.cache=textual.")
    shard = read_shard(config.shard)
    data = task.read()
    items = select(data.items, config.limit, config.prompts)
    for item in items:
        task.prompt(item)
    return Plan(
        config=config,
        task=task,
        data=data,
        items=items,
        shard=shard,
        schedules=schedules,
        order=order,
        sampling=sampling,
        repetitions=1 if sampling is None else task.repetitions,
        acceptance=acceptance,
    )


def _sampling(config: RunConfig) -> SamplingParams | None:
    try:
        # They change nothing at temperature 0, but what makes no sense there is refused all the same.
        sampling = SamplingParams(config.temperature or 1.0, config.top_k, config.top_p)
    except ValueError as error:
        raise UserError(f"{error}.") from None
    return None if config.temperature == 0 else sampling
