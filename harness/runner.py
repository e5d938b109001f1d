"""Runs one cell: decodes every prompt with every schedule, interleaved prompt by prompt, and records each response.

Decoding is timed and nothing else is: tokenizing, text, grading and files come before or after. Everything that can
be refused is refused before weights are loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.clock import TimedModel
from harness.errors import UserError
from harness.manifest import manifest, now
from harness.models.language_model import LanguageModel
from harness.records import SKIPPED, Record, stable_seed
from harness.run_folder import RunFolder
from harness.tasks.task import DataSet, Item, Task, select
from schedules.acceptance import UnsoundLogits
from schedules.call import Model
from schedules.decoding import Rule
from schedules.distributions import Truncation
from schedules.greedy import Greedy
from schedules.native import Native
from schedules.order import LeftToRight, Order
from schedules.response import Response, Stop
from schedules.sampling import Sampling, Seeded


class Schedule(Protocol):
    """What the runner asks of a schedule."""

    width: int

    def decode(
        self, model: Model, prompt: Sequence[int], rule: Rule, stop: Stop, order: Order | None = None
    ) -> Response: ...


class Observer(Protocol):
    """Told about the course of a run; a progress bar, or nothing."""

    def started(self, total: int, done: int) -> None: ...

    def recorded(self, record: Record) -> None: ...

    def finished(self) -> None: ...


@dataclass(frozen=True)
class Plan:
    """What a run will do, checked and ready, but for the model.

    Attributes:
      items: the selected prompts.
      truncation: how sampling turns logits into distributions; None for greedy decoding.
      repetitions: responses for each prompt and schedule.
      warmups: responses for each schedule that are decoded first and not recorded.
    """

    task: Task
    data: DataSet
    items: Sequence[Item]
    schedules: Mapping[str, Schedule]
    order: Order
    truncation: Truncation | None
    repetitions: int
    seed: int
    warmups: int

    @property
    def responses(self) -> int:
        """Responses to record in all."""
        return len(self.items) * self.repetitions * len(self.schedules)


def plan(
    task: Task,
    schedules: Mapping[str, Schedule],
    order: Order,
    *,
    limit: int | None,
    prompts: Sequence[str | int] | None,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int,
    warmups: int,
) -> Plan:
    """Reads the data and checks that the run makes sense.

    Raises:
      UserError: whatever is wrong with the data or the numbers.
    """
    if not schedules:
        raise UserError("schedule=[]: nothing to run. Name at least one, as in schedule=packed.")
    if not isinstance(warmups, int) or warmups < 0:
        raise UserError(f"warmups={warmups}: need an integer of at least 0.")
    if not isinstance(seed, int):
        raise UserError(f"seed={seed}: need an integer.")
    truncation = _truncation(temperature, top_k, top_p)
    if truncation is not None and not isinstance(order, LeftToRight):
        raise UserError(
            f"order={order.name} temperature={temperature}: sampling is exact left to right only. "
            "Use order=ltr or temperature=0."
        )
    data = task.source.read()
    items = select(data.items, limit, prompts)
    for item in items:
        task.prompt(item)
    return Plan(
        task=task,
        data=data,
        items=items,
        schedules=schedules,
        order=order,
        truncation=truncation,
        repetitions=1 if truncation is None else task.repetitions,
        seed=seed,
        warmups=warmups,
    )


def _truncation(temperature: float, top_k: int | None, top_p: float | None) -> Truncation | None:
    if not isinstance(temperature, int | float) or not 0 <= temperature < float("inf"):
        raise UserError(f"temperature={temperature}: need a number of at least 0; 0 decodes greedily.")
    try:
        # Truncation changes nothing at temperature 0, but what makes no sense there is refused all the same.
        truncation = Truncation(float(temperature) or 1.0, top_k, top_p)
    except ValueError as error:
        raise UserError(f"{error}.") from None
    return None if temperature == 0 else truncation


class Runner:
    """Executes a plan with a loaded model and writes its records."""

    def __init__(self, plan: Plan, model: LanguageModel, folder: RunFolder):
        if not model.model.is_same_position:
            if not isinstance(plan.order, LeftToRight):
                raise UserError(
                    f"order={plan.order.name}: {model.name} verifies causally, left to right only. Use order=ltr."
                )
            if any(isinstance(schedule, Native) for schedule in plan.schedules.values()):
                raise UserError(f"schedule=native: decodes SetDLM models only, {model.name} is none.")
            if plan.task.stop_texts:
                raise UserError(
                    f"task.stop_texts={list(plan.task.stop_texts)}: end responses of SetDLM models only, "
                    f"{model.name} is none. Use task.stop_texts=[]."
                )
        self._plan = plan
        self._model = model
        self._timed = TimedModel(model.model)
        self._folder = folder
        self._stop = Stop(plan.task.max_new_tokens, model.eos_ids, model.markers(plan.task.stop_texts))

    def run(self, config: Mapping[str, Any], observer: Observer) -> None:
        """Decodes what is not recorded yet. Interrupted at any point, it can be run again.

        Args:
          config: resolved, for the manifest.
        """
        plan = self._plan
        records = self._folder.open(manifest(config, self._model.facts, plan.data.facts))
        done = {record.key for record in records}
        observer.started(plan.responses, len(done))
        if len(done) < plan.responses:
            self._warm_up()
        for item in plan.items:
            prompt = self._encode(item)
            for repetition in range(plan.repetitions):
                for name in plan.schedules:
                    if (name, item.prompt_id, repetition) not in done:
                        record = self._respond(name, item, prompt, repetition)
                        self._folder.append(record)
                        observer.recorded(record)
        observer.finished()

    def _warm_up(self) -> None:
        """Decodes prompts that are not measured, if the data set has any, with the shapes that are."""
        measured = {item.prompt_id for item in self._plan.items}
        others = [item for item in self._plan.data.items if item.prompt_id not in measured]
        for item in (others or self._plan.items)[: self._plan.warmups]:
            prompt = self._encode(item)
            if self._fits(prompt):
                for name in self._plan.schedules:
                    self._decode(name, prompt, self._rule(seed=0))

    def _respond(self, name: str, item: Item, prompt: Sequence[int], repetition: int) -> Record:
        plan = self._plan
        record = {
            "model": self._model.name,
            "task": plan.task.name,
            "schedule": name,
            "width": plan.schedules[name].width,
            "order": plan.order.name,
            "adapter": self._model.adapter,
            "temperature": plan.truncation.temperature if plan.truncation else 0.0,
            "top_k": plan.truncation.top_k if plan.truncation else None,
            "top_p": plan.truncation.top_p if plan.truncation else None,
            "prompt_id": item.prompt_id,
            "repetition": repetition,
            "seed": stable_seed(plan.seed, item.prompt_id, repetition, name),
            "prompt_tokens": len(prompt),
            "started_at": now(),
        }
        if not self._fits(prompt):
            return Record(**record, **self._nothing(len(prompt)))
        rule = self._rule(record["seed"])
        try:
            response, timing = self._timed.time(lambda: self._decode(name, prompt, rule))
        except UnsoundLogits as error:
            raise UserError(
                f"numerics: {name} on {item.prompt_id}, {error}. Is the checkpoint intact, and the dtype wide enough?"
            ) from None
        text = self._model.text(response.tokens)
        return Record(
            **record,
            token_ids=response.tokens,
            text=text,
            tokens=len(response.tokens),
            nfe=response.nfe,
            wall_s=timing.wall_s,
            model_s=timing.model_s,
            rows=response.rows,
            adapter_rows_selected=response.adapter_rows.selected,
            adapter_rows_evaluated=response.adapter_rows.evaluated,
            accepted=[iteration.accepted for iteration in response.trace],
            stop_reason=response.stop_reason,
            verdict=plan.task.grader.grade(text, item.reference).record(),
        )

    def _decode(self, name: str, prompt: Sequence[int], rule: Rule) -> Response:
        plan = self._plan
        return plan.schedules[name].decode(self._timed, prompt, rule, self._stop, plan.order)

    def _rule(self, seed: int) -> Rule:
        """A fresh rule for one response, so that it can be reproduced alone."""
        if self._plan.truncation is None:
            return Greedy()
        return Sampling(self._plan.truncation, Seeded(seed, self._timed.device))

    def _encode(self, item: Item) -> Sequence[int]:
        task = self._plan.task
        return self._model.encode(task.prompt(item), task.thinking)

    def _fits(self, prompt: Sequence[int]) -> bool:
        return len(prompt) + self._stop.max_new_tokens <= self._model.context_length

    def _nothing(self, prompt_tokens: int) -> Mapping[str, Any]:
        """The fields of a record whose prompt does not fit; prompts are never truncated."""
        reason = (
            f"skipped: {prompt_tokens} prompt tokens and up to {self._stop.max_new_tokens} new ones "
            f"do not fit the context of {self._model.context_length}"
        )
        return {
            "token_ids": [],
            "text": "",
            "tokens": 0,
            "nfe": 0,
            "wall_s": 0.0,
            "model_s": 0.0,
            "rows": 0,
            "adapter_rows_selected": 0,
            "adapter_rows_evaluated": 0,
            "accepted": [],
            "stop_reason": SKIPPED,
            "verdict": {"correct": None, "reason": reason},
        }
