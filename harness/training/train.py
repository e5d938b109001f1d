"""Trains a drafter for a plain causal model, from nothing but the model: prompts, responses, steps, a folder.

    OUT/drafter.safetensors, drafter.json   the drafter, written anew at every evaluation
    OUT/training/settings.json              what a training cannot go on without
    OUT/training/prompts.jsonl              prompts that the model wrote, one batch a line
    OUT/training/responses.jsonl            its responses, one batch a line
    OUT/training/checkpoint.pt              where the steps go on

Killed anywhere, the same command goes on, with more prompts or steps as well.
"""

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from harness.errors import UserError
from harness.models.causal.drafter import Drafter, draw_inputs, write_folder
from harness.models.causal.model import CausalModel
from harness.models.language_model import LanguageModel
from harness.records.lock import locked
from harness.training.loop import Checkpoint, Progress, descend, rate
from harness.training.objective import drawn_contexts, evaluated, loss
from harness.training.prompts import read_prompts
from harness.training.responses import BATCH, Example, Lines, Speaker

PEAK_RATE = 1e-3
WARMUP_SHARE = 0.04
HELD_OUT = 12  # one prompt of so many is evaluated on, never trained on
MOST_EVALUATED = 40  # responses
STEPS_A_NOTE = 10
STEPS_AN_EVALUATION = 250
SECONDS_A_CHECKPOINT = 120.0


class Observer(Protocol):
    """Is told how far a training is."""

    def began(self, what: str, total: int, done: int) -> None:
        """A part of the work, in so many units."""

    def went_on(self, units: int, says: str = "") -> None:
        """So many more are done."""


@dataclass(frozen=True)
class Settings:
    """What a training is told.

    Attributes:
      rank: of the updates.
      width: masks W behind a context.
      prompts: that the model writes itself, beside the user's.
      tokens: of a response, at most.
      steps: one response each.
      data: a user's file of prompts; None for none.
      seed: of everything random.
    """

    rank: int
    width: int
    prompts: int
    tokens: int
    steps: int
    data: Path | None
    seed: int

    def fixed(self) -> Mapping[str, Any]:
        """What cannot change when a training goes on."""
        said = {key: value for key, value in asdict(self).items() if key not in ("prompts", "steps", "data")}
        return said | {"data": str(self.data) if self.data else None}


def train(model: LanguageModel, settings: Settings, out: Path, command: str, observer: Observer) -> Mapping[str, Any]:
    """Trains to the end, or goes on with what is in `out`; gives the last evaluation.

    Args:
      model: of the causal family, without a drafter.
      command: for the record.

    Raises:
      UserError: `out` holds another training, or the model has too little to say to train on.
    """
    own = read_prompts(settings.data) if settings.data else []
    work = out / "training"
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"out={out}: cannot be written ({error.strerror}).") from None
    with locked(work):
        _check_settings(work / "settings.json", settings, model)
        speaker = Speaker(model, settings.seed)
        prompts = [*own, *_written(speaker, Lines(work / "prompts.jsonl"), settings.prompts, observer)]
        examples = _answered(speaker, Lines(work / "responses.jsonl"), prompts, settings.tokens, observer)
        return _Training(model, settings, examples, out, command).run(observer)


def _check_settings(file: Path, settings: Settings, model: LanguageModel) -> None:
    now = {**settings.fixed(), "weights_sha256": model.facts.get("weights_sha256")}
    if not file.exists():
        file.write_text(json.dumps(now, indent=1) + "\n")
        return
    before = json.loads(file.read_text())
    differing = [f"{key} was {before.get(key)}, is {value}" for key, value in now.items() if before.get(key) != value]
    if differing:
        raise UserError(
            f"out={file.parents[1]}: holds a training with other settings: {'; '.join(differing)}. Give another out."
        )


def _written(speaker: Speaker, lines: Lines, count: int, observer: Observer) -> Sequence[str]:
    """The first `count` prompts that the model writes, each once; fewer where it repeats itself too often."""
    prompts = list(dict.fromkeys(prompt for batch in lines.read for prompt in batch))
    observer.began("prompts", count, min(len(prompts), count))
    most_batches = 4 * -(-count // BATCH)
    while len(prompts) < count and len(lines.read) < most_batches:
        lines.append(speaker.write_prompts(len(lines.read)))
        before = len(prompts)
        prompts = list(dict.fromkeys([*prompts, *lines.read[-1]]))
        observer.went_on(min(len(prompts), count) - min(before, count))
    return prompts[:count]


def _answered(
    speaker: Speaker, lines: Lines, prompts: Sequence[str], tokens: int, observer: Observer
) -> Sequence[Example]:
    """The model's responses to `prompts`; those that have fewer than two tokens, or none, are left out."""
    done = sum(line["prompts"] for line in lines.read)
    observer.began("responses", len(prompts), min(done, len(prompts)))
    for start in range(done, len(prompts), BATCH):
        batch = prompts[start : start + BATCH]
        answered = speaker.answer(batch, tokens)
        lines.append({"prompts": len(batch), "examples": [[one.prompt, one.response] for one in answered]})
        observer.went_on(len(batch))
    examples = [Example(*pair) for line in lines.read for pair in line["examples"]]
    return [example for example in examples if len(example.response) > 1]


class _Training:
    """The steps of one training."""

    def __init__(self, model: LanguageModel, settings: Settings, examples: Sequence[Example], out: Path, command: str):
        self._model, self._settings, self._out = model, settings, out
        self._held_out = examples[HELD_OUT - 1 :: HELD_OUT][:MOST_EVALUATED]
        self._examples = [one for place, one in enumerate(examples) if place % HELD_OUT != HELD_OUT - 1]
        if not self._examples or not self._held_out:
            raise UserError(
                f"train-drafter: {len(examples)} responses of two tokens or more, need at least {HELD_OUT}. "
                "Give more with prompts=N or data=FILE."
            )
        backbone = model.model.backbone.requires_grad_(False)
        self._drafter = Drafter.put_on(backbone, settings.rank, "fused", torch.float32)
        draw_inputs(self._drafter, torch.Generator(backbone.device).manual_seed(settings.seed))
        self._drafting = CausalModel(backbone, self._drafter)
        self._parameters = [*self._drafter.parameters().values()]
        self._rng = torch.Generator().manual_seed(settings.seed)
        optimizer = torch.optim.AdamW(self._parameters, betas=(0.9, 0.98), weight_decay=0.0)
        tensors = self._drafter.parameters()
        self._checkpoint = Checkpoint(out / "training" / "checkpoint.pt", tensors, optimizer, self._rng)
        self._progress = self._checkpoint.restore()
        self._progress.commands.append(f"from step {self._progress.step}: {command}")

    def run(self, observer: Observer) -> Mapping[str, Any]:
        """Takes the steps that are missing; gives the last evaluation."""
        progress, steps = self._progress, self._settings.steps
        observer.began("steps", steps, min(progress.step, steps))
        began, saved = time.perf_counter() - progress.seconds, time.perf_counter()
        losses: list[float] = []
        while progress.step < steps:
            losses.append(self._step(progress.step))
            progress.step += 1
            progress.seconds = time.perf_counter() - began
            observer.went_on(1, f"loss {sum(losses) / len(losses):.2f}")
            if progress.step % STEPS_A_NOTE == 0:
                progress.history.append({"step": progress.step, "loss": round(sum(losses) / len(losses), 4)})
                losses.clear()
            is_evaluated = progress.step % STEPS_AN_EVALUATION == 0 or progress.step == steps
            if is_evaluated:
                self._evaluate()
            if is_evaluated or time.perf_counter() - saved > SECONDS_A_CHECKPOINT:
                self._checkpoint.save(progress)
                saved = time.perf_counter()
        if not _evaluations(progress):  # fewer steps are asked for than were taken before
            self._evaluate()
        return _evaluations(progress)[-1]

    def _step(self, step: int) -> float:
        settings = self._settings
        epoch, place = divmod(step, len(self._examples))
        order = random.Random(f"{settings.seed}/{epoch}").sample(range(len(self._examples)), len(self._examples))
        example = self._examples[order[place]]
        one = loss(self._drafting, example, drawn_contexts(example, self._rng), settings.width)
        warmup = max(1, round(WARMUP_SHARE * settings.steps))
        descend(self._checkpoint.optimizer, self._parameters, one, rate(step, settings.steps, PEAK_RATE, warmup))
        return one.item()

    def _evaluate(self) -> None:
        """Notes how well the drafter drafts, and writes it as it is."""
        progress = self._progress
        found = evaluated(self._drafting, self._held_out, self._settings.width)
        progress.history.append({"step": progress.step, **found})
        base = {"name": self._model.name, **{key: self._model.facts.get(key) for key in ("source", "weights_sha256")}}
        write_folder(self._out, self._drafter, base, self._summary(), torch.bfloat16)

    def _summary(self) -> Mapping[str, Any]:
        """What drafter.json says of the training: how to repeat it, and how it went."""
        progress = self._progress
        losses = [one for one in progress.history if "loss" in one]
        return {
            "commands": progress.commands,
            **self._settings.fixed(),
            "dtype": self._model.facts["dtype"],
            "steps": progress.step,
            "seconds": round(progress.seconds),
            "responses": len(self._examples),
            "tokens_trained_on": sum(len(one.response) for one in self._examples),
            "held_out_responses": len(self._held_out),
            "losses": losses[:: max(1, len(losses) // 20)] + losses[-1:],
            "evaluations": _evaluations(progress),
        }


def _evaluations(progress: Progress) -> Sequence[Mapping[str, Any]]:
    return [one for one in progress.history if "accepted" in one]
