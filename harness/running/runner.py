"""Runs one cell: decodes every prompt with every schedule, interleaved prompt by prompt, and records each response.

Decoding is timed and nothing else is: tokenizing, text, grading and files come before or after.
"""

import gc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch

from harness.errors import UserError
from harness.models.language_model import LanguageModel
from harness.records.folder import RunFolder
from harness.records.manifest import now
from harness.records.record import FAILED, SKIPPED, Record, stable_seed
from harness.running.plan import Plan
from harness.running.steady_state import drift, settle
from harness.running.synthetic_acceptance import Key
from harness.system.bandwidth import bandwidth_gb_s
from harness.system.clock import TimedModel, Timing
from harness.tasks.task import Item
from schedules.acceptance import UnsoundLogits
from schedules.native import Native
from schedules.order import LeftToRight
from schedules.response import Response, Stop
from schedules.synthetic_acceptance import SyntheticAcceptance


class Observer(Protocol):
    """Told about the course of a run; a progress bar, or nothing."""

    def planned(self, plan: Plan, model: str, path: Path) -> None: ...

    def started(self, total: int, done: int) -> None: ...

    def paced(self, longest_s: float) -> None: ...

    def recorded(self, record: Record) -> None: ...

    def finished(self) -> None: ...


# What warms up on a CPU is over with the first calls. An accelerator picks kernels by length, up to the longest.
CPU_WARM_UP_TOKENS = 32


class OutOfMemory(UserError):
    """A response that did not fit the device's memory."""


class Runner:
    """Executes a plan with a loaded model and writes its records."""

    def __init__(self, plan: Plan, model: LanguageModel, folder: RunFolder):
        """Checks that the model can do what is planned.

        Raises:
          UserError: it cannot; says what to change.
        """
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
        self._encoded: dict[str, Sequence[int]] = {}
        costs_only = {"random weights": model.has_random_weights, "replayed acceptance": plan.acceptance is not None}
        self._costs_only = ", ".join(why for why, is_so in costs_only.items() if is_so) or None
        self._stop = Stop(plan.max_new_tokens, model.eos_ids, model.markers(plan.task.stop_texts))

    def run(self, observer: Observer) -> None:
        """Decodes what is not recorded yet. Interrupted at any point, it can be run again."""
        plan = self._plan
        done = {record.key for record in self._folder.records()}
        observer.started(plan.responses, len(done))
        try:
            if len(done) < plan.responses:
                self._reserve()
                self._folder.note(memory_gb_s=round(bandwidth_gb_s(self._timed.device), 1))
                pace_s = self._warm_up()
                missing = 1 - len(done) / plan.responses
                observer.paced(pace_s * self._stop.max_new_tokens * len(plan.own_items) * plan.repetitions * missing)
                for item in plan.own_items:
                    self._decode_all(item, done, observer)
                self._folder.note(drift=self._drift())
        finally:
            observer.finished()

    def _decode_all(self, item: Item, done: set[tuple[str, str, int]], observer: Observer) -> None:
        """Decodes one prompt with every schedule."""
        prompt = self._encode(item)
        for repetition in range(self._plan.repetitions):
            for name in self._plan.schedules:
                if (name, item.prompt_id, repetition) not in done:
                    record = self._respond(name, item, prompt, repetition)
                    self._folder.append(record)
                    observer.recorded(record)

    def _reserve(self) -> None:
        """Tells the model about the longest prompt, so that nothing grows while it is timed."""
        prompts = [prompt for prompt in map(self._encode, self._plan.own_items) if self._fits(prompt)]
        self._model.model.reserve(max(map(len, prompts), default=0) + self._stop.max_new_tokens)

    def _warm_up(self) -> float:
        """Decodes a prompt that is not measured, if the data set has any, until times settle.

        Returns:
          Seconds for a token, all schedules together; 0 where nothing was decoded.
        """
        plan, longest = self._plan, self._stop.max_new_tokens
        measured = {item.prompt_id for item in plan.items}
        has_counts = plan.acceptance is None or not plan.acceptance.is_recorded
        others = [item for item in plan.data.items if has_counts and item.prompt_id not in measured]
        item = next((item for item in (*others, *plan.items) if self._fits(self._encode(item))), None)
        if item is None or not plan.config.warmups:
            return 0.0
        prompt = self._encode(item)
        tokens = min(longest, CPU_WARM_UP_TOKENS) if self._timed.device.type == "cpu" else longest
        pace_s: dict[str, float] = {}

        def seconds(name: str) -> float:
            response, timing = self._decode((name, item.prompt_id, 0), prompt, 0, tokens)
            pace_s[name] = timing.wall_s / max(len(response.tokens), 1)
            return timing.wall_s

        self._folder.note(warmups=settle(plan.schedules, seconds, plan.config.warmups), warmup_tokens=tokens)
        return sum(pace_s.values())

    def _drift(self) -> Mapping[str, Any] | None:
        """Decodes the first prompts again and compares their times with those recorded at the start."""
        items = {item.prompt_id: item for item in self._plan.own_items}

        def again(record: Record) -> tuple[Response, float]:
            prompt = self._encode(items[record.prompt_id])
            response, timing = self._decode(record.key, prompt, record.seed, self._stop.max_new_tokens)
            return response, timing.wall_s

        return drift(list(self._folder.records()), again, self._plan.config.drift_prompts)

    def _respond(self, name: str, item: Item, prompt: Sequence[int], repetition: int) -> Record:
        plan = self._plan
        record = {
            "model": self._model.name,
            "task": plan.task.name,
            "schedule": name,
            "width": plan.schedules[name].width,
            "order": plan.order.name,
            "adapter": self._model.adapter,
            "temperature": plan.sampling.temperature if plan.sampling else 0.0,
            "top_k": plan.sampling.top_k if plan.sampling else None,
            "top_p": plan.sampling.top_p if plan.sampling else None,
            "prompt_id": item.prompt_id,
            "repetition": repetition,
            "seed": stable_seed(plan.config.seed, item.prompt_id, repetition, name),
            "prompt_tokens": len(prompt),
            "started_at": now(),
        }
        if not self._fits(prompt):
            # Prompts are never truncated.
            reason = (
                f"skipped: {len(prompt)} prompt tokens and up to {self._stop.max_new_tokens} new ones "
                f"do not fit the context of {self._model.context_length}"
            )
            return Record(**record, **_nothing(SKIPPED, reason))
        try:
            key = (name, item.prompt_id, repetition)
            response, timing = self._decode(key, prompt, record["seed"], self._stop.max_new_tokens)
        except OutOfMemory as error:
            if plan.config.on_error == "stop":
                raise
            return Record(**record, **_nothing(FAILED, f"failed: {error}"))
        text = self._model.text(response.tokens)
        return Record(
            **record,
            token_ids=response.tokens,
            text=text,
            tokens=len(response.tokens),
            nfe=response.nfe,
            wall_s=timing.wall_s,
            model_s=timing.model_s,
            memory_bytes=timing.memory_bytes,
            rows=response.rows,
            adapter_rows_selected=response.adapter_rows.selected,
            adapter_rows_evaluated=response.adapter_rows.evaluated,
            accepted=[iteration.accepted for iteration in response.trace],
            stop_reason=response.stop_reason,
            verdict=self._verdict(text, item),
            costs_only=self._costs_only,
        )

    def _verdict(self, text: str, item: Item) -> Mapping[str, Any]:
        if self._costs_only:
            return {"correct": None, "reason": f"not graded: {self._costs_only}"}
        return self._plan.task.grader.grade(text, item.reference).record()

    def _decode(self, key: Key, prompt: Sequence[int], seed: int, max_new_tokens: int) -> tuple[Response, Timing]:
        """One timed response.

        Raises:
          OutOfMemory: it does not fit; what it had taken is free again.
          UserError: the model's logits are not finite.
        """
        plan, stop = self._plan, replace(self._stop, max_new_tokens=max_new_tokens)
        name, prompt_id, _ = key
        rule, order = plan.rule(seed, self._timed.device), plan.order_of(seed)
        if plan.acceptance is not None:
            # Tokens of synthetic acceptance are stand-ins, which must not end a response.
            stop = Stop(plan.acceptance.cap(key, stop.max_new_tokens), frozenset())
            rule = SyntheticAcceptance(rule, plan.acceptance.of(key))
        try:
            return self._timed.time(lambda: plan.schedules[name].decode(self._timed, prompt, rule, stop, order))
        except UnsoundLogits as error:
            raise UserError(
                f"numerics: {name} on {prompt_id}, {error}. Is the checkpoint intact, and the dtype wide enough?"
            ) from None
        except (MemoryError, RuntimeError) as error:
            # Out of memory is a type of its own on an accelerator, and any RuntimeError on a CPU.
            if not isinstance(error, MemoryError | torch.OutOfMemoryError) and "allocate memory" not in str(error):
                raise
            reason = " ".join(str(error).split())[:200] or type(error).__name__
        gc.collect()
        if self._timed.device.type == "cuda":
            torch.cuda.empty_cache()
        raise OutOfMemory(
            f"memory: {name} on {prompt_id}, {len(prompt)} prompt tokens: {reason}. Nothing of it is recorded; free "
            "memory and go on, or pass over such prompts in a new run with on_error=skip."
        )

    def _encode(self, item: Item) -> Sequence[int]:
        """Token ids of a prompt, made once: it is reserved for, decoded with every schedule, and again at the end."""
        if item.prompt_id not in self._encoded:
            task = self._plan.task
            self._encoded[item.prompt_id] = self._model.encode(task.prompt(item), task.thinking)
        return self._encoded[item.prompt_id]

    def _fits(self, prompt: Sequence[int]) -> bool:
        return len(prompt) + self._stop.max_new_tokens <= self._model.context_length


def _nothing(stop_reason: str, reason: str) -> Mapping[str, Any]:
    """The fields of a record without a response."""
    return {
        "token_ids": [],
        "text": "",
        "tokens": 0,
        "nfe": 0,
        "wall_s": 0.0,
        "model_s": 0.0,
        "rows": 0,
        "accepted": [],
        "stop_reason": stop_reason,
        "verdict": {"correct": None, "reason": reason},
    }
