"""Decodes some of a run's prompts again to write down what records do not hold: traces, and logit gaps (F.6)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.models.language_model import LanguageModel
from harness.records.logit_gaps import first_difference
from harness.records.metrics import BASELINE
from harness.records.record import Record
from harness.records.trace import Trace
from harness.running.plan import Plan
from harness.running.watched_model import WatchedModel, traced_iterations
from harness.system.clock import TimedModel
from schedules.autoregressive import Autoregressive
from schedules.greedy import Greedy
from schedules.response import Stop


@dataclass(frozen=True)
class Place:
    """Where a greedy output parts from the baseline's.

    Attributes:
      context: output token ids before it, which both have.
      position: from 1.
    """

    prompt_id: str
    context: Sequence[int]
    position: int


def partings(records: Sequence[Record]) -> Sequence[Place]:
    """First differences from the output of Linear-SS, or of the first schedule without it; each place once."""
    names = [record.schedule for record in records]
    baseline = BASELINE if BASELINE in names else names[0]
    outputs = {record.prompt_id: record.token_ids for record in records if record.schedule == baseline}
    pairs = [(record, outputs[record.prompt_id]) for record in records if record.prompt_id in outputs]
    places = {
        (record.prompt_id, position): Place(record.prompt_id, output[: position - 1], position)
        for record, output in pairs
        for position, _ in first_difference(output, record.token_ids)
    }
    return list(places.values())


class Replay:
    """A run's plan with its model, watched."""

    def __init__(self, plan: Plan, model: LanguageModel):
        self._plan = plan
        self._model = model
        self._items = {item.prompt_id: item for item in plan.items}

    def trace(self, record: Record) -> tuple[Trace, bool]:
        """The trace of a recorded response, and whether it has the recorded tokens again."""
        trace, tokens = self.decode(record.schedule, record.prompt_id, record.seed)
        return trace, list(tokens) == list(record.token_ids)

    def decode(self, schedule: str, prompt_id: str, seed: int) -> tuple[Trace, Sequence[int]]:
        """The trace of a response, and its token ids."""
        plan, timed = self._plan, TimedModel(self._model.model)
        watched = WatchedModel(timed)
        prompt = self._prompt(prompt_id)
        stop = Stop(plan.task.max_new_tokens, self._model.eos_ids, self._model.markers(plan.task.stop_texts))
        rule, order = plan.rule(seed, watched.device), plan.order_of(seed)
        response, timing = timed.time(lambda: plan.schedules[schedule].decode(watched, prompt, rule, stop, order))
        seen, seconds = watched.seen, timing.calls_s
        trace = Trace(
            model=self._model.name,
            task=plan.task.name,
            prompt_id=prompt_id,
            schedule=schedule,
            width=plan.schedules[schedule].width,
            temperature=plan.sampling.temperature if plan.sampling else 0.0,
            tokens=[self._piece(token) for token in response.tokens],
            iterations=traced_iterations(response, seen, seconds, prompt, self._piece, rule.is_greedy),
        )
        return trace, response.tokens

    def gaps(self, places: Iterable[Place], note: Callable[[], None]) -> Sequence[dict[str, Any]]:
        """The gap between the two largest logits at each place, by plain autoregressive evaluation.

        Args:
          note: called once a place.
        """
        found = []
        for place in places:
            watched = WatchedModel(self._model.model)
            context = [*self._prompt(place.prompt_id), *place.context]
            Autoregressive().decode(watched, context, Greedy(), Stop(1, self._model.eos_ids))
            gap = next(seen.gap for seen in watched.seen if seen.gap is not None)
            found.append({"prompt_id": place.prompt_id, "position": place.position, "gap": gap})
            note()
        return found

    def _prompt(self, prompt_id: str) -> Sequence[int]:
        task = self._plan.task
        return self._model.encode(task.prompt(self._items[prompt_id]), task.thinking)

    def _piece(self, token: int) -> str:
        return self._model.tokenizer.decode([token])
