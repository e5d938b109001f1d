"""Trains an embedded tiny model from scratch on the toy tasks and saves it in the released checkpoint layout.

    python scripts/train_tiny.py tiny_nemotron --steps 1800 --workdir checkpoints/tiny_nemotron

Seeded, and resumable: a killed training goes on from the last checkpoint in the work directory; `--export DIR` at
the end writes config.json, model.safetensors, the tokenizer, and training.json (the commands and the log's summary).
What differs between the models stands in `tiny_recipes`.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from pathlib import Path

import torch
from tiny_objectives import TokenizedExample
from tiny_recipes import RECIPES, VOCAB_SIZE, Batch, Recipe
from tiny_tokenizer import train_tokenizer
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from harness.tasks import toy, toy_code, toy_math, toy_writing

LANGUAGES = {"toy_math": toy_math, "toy_code": toy_code, "toy_writing": toy_writing}
MIXTURE = {"toy_math": 0.6, "toy_code": 0.25, "toy_writing": 0.15}
SUPPRESSED = -1e12  # the mask token's logit where it is never predicted, as released
BATCHES_A_GROUP = 10  # sorted by length together
STEPS_A_NOTE = 25
STEPS_A_CHECKPOINT = 200  # a multiple of BATCHES_A_GROUP, so that a resumed run sees the same batches


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of all tiny models, always the same."""
    texts = []
    for language in LANGUAGES.values():
        for example in islice(toy.examples(language.generate, "train", seed=0), 4000):
            texts += [example.prompt, example.response]
    return train_tokenizer(texts, VOCAB_SIZE)


def conversations(
    tokenizer: PreTrainedTokenizerFast, seed: int, skip: int, mixture: Mapping[str, float] = MIXTURE
) -> Iterator[TokenizedExample]:
    """Endless training conversations of a mixture; the first `skip` are passed over without tokenizing."""
    streams = {name: toy.examples(language.generate, "train", seed=seed + 1) for name, language in LANGUAGES.items()}
    rng = random.Random(seed)
    for index in range(sys.maxsize):
        name = rng.choices(list(mixture), weights=list(mixture.values()))[0]
        example = next(streams[name])
        if index < skip:
            continue
        prompt = tokenizer.apply_chat_template(
            [{"role": "user", "content": example.prompt}], add_generation_prompt=True
        )["input_ids"]
        response = tokenizer(example.response)["input_ids"] + [tokenizer.eos_token_id]
        yield TokenizedExample(prompt, response)


def batches(
    examples: Iterator[TokenizedExample], size: int, seed: int, first_step: int
) -> Iterator[list[TokenizedExample]]:
    """Batches of similar lengths (less padding), in random order within each group of batches."""
    for group_index in count(first_step // BATCHES_A_GROUP):
        pool = sorted(
            islice(examples, size * BATCHES_A_GROUP),
            key=lambda example: len(example.prompt) + 2 * len(example.response),
        )
        group = [pool[start : start + size] for start in range(0, len(pool), size)]
        yield from random.Random(f"{seed}/{group_index}").sample(group, len(group))


def losses(model: PreTrainedModel, batch: Batch, recipe: Recipe, mask_id: int) -> dict[str, torch.Tensor]:
    """The mean of each of the recipe's losses, in nats per token."""
    hidden = model.model(
        input_ids=batch.input_ids,
        attention_mask=batch.mask,
        position_ids=batch.position_ids,
        use_cache=False,
    ).last_hidden_state
    result = {}
    for name in recipe.loss_weights:
        targets = getattr(batch, f"{name}_targets")
        here = targets != -100
        logits = model.lm_head(hidden[here])
        if not recipe.predicts_masks:
            logits[:, mask_id] = SUPPRESSED
        result[name] = torch.nn.functional.cross_entropy(logits, targets[here])
    return result


def rate(step: int, steps: int, peak: float, warmup: int) -> float:
    """Learning rate with linear warm-up and cosine decay to 2 % of the peak."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


@dataclass
class Progress:
    """How far a training is: `history` holds the losses of every STEPS_A_NOTE-th step, `commands` each start."""

    step: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    commands: list[str] = field(default_factory=list)

    def note(self, parts: dict[str, torch.Tensor]) -> None:
        """Keeps and prints the losses of the step just done."""
        values = {name: loss.item() for name, loss in parts.items()}
        self.history.append({"step": self.step, **values})
        shown = " ".join(f"{name} {value:.4f}" for name, value in values.items())
        print(f"{self.step} {shown} {self.seconds:.0f}s", flush=True)


@dataclass(frozen=True)
class Checkpoint:
    """The file that a training goes on from, and what it holds besides the progress."""

    path: Path
    model: PreTrainedModel
    optimizer: torch.optim.Optimizer
    rng: torch.Generator

    def restore(self) -> Progress:
        """Puts everything back as it was saved; a fresh start where nothing was."""
        if not self.path.exists():
            return Progress()
        state = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rng.set_state(state["rng"])
        print(f"resumed at step {state['step']}", flush=True)
        return Progress(state["step"], state["history"], state["seconds"], state["commands"])

    def save(self, progress: Progress) -> None:
        """Replaces the file in one move."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": self.rng.get_state(),
            **asdict(progress),
        }
        partial = self.path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self.path)


def train(arguments: argparse.Namespace) -> None:
    """Trains to the end, or goes on from the work directory's checkpoint."""
    torch.manual_seed(arguments.seed)
    workdir = Path(arguments.workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    recipe = RECIPES[arguments.model]
    tokenizer = build_tokenizer()
    model = recipe.build(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    rng = torch.Generator().manual_seed(arguments.seed)
    checkpoint = Checkpoint(workdir / "checkpoint.pt", model, optimizer, rng)
    progress = checkpoint.restore()
    progress.commands.append(f"from step {progress.step}: {' '.join(['python', *sys.argv])}")
    data = batches(
        conversations(tokenizer, arguments.seed, skip=progress.step * arguments.batch),
        arguments.batch,
        arguments.seed,
        first_step=progress.step,
    )
    began = time.perf_counter() - progress.seconds
    while progress.step < arguments.steps:
        batch = recipe.lay_out(next(data), tokenizer.pad_token_id, tokenizer.mask_token_id, rng)
        for group in optimizer.param_groups:
            group["lr"] = rate(progress.step, arguments.steps, arguments.rate, warmup=100)
        parts = losses(model, batch, recipe, tokenizer.mask_token_id)
        optimizer.zero_grad(set_to_none=True)
        sum(recipe.loss_weights[name] * loss for name, loss in parts.items()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress.step += 1
        progress.seconds = time.perf_counter() - began
        if progress.step % STEPS_A_NOTE == 0:
            progress.note(parts)
        if progress.step % STEPS_A_CHECKPOINT == 0 or progress.step == arguments.steps:
            checkpoint.save(progress)
    if arguments.export:
        folder = Path(arguments.export)
        folder.mkdir(parents=True, exist_ok=True)
        recipe.export(model, tokenizer, folder)
        (folder / "training.json").write_text(json.dumps(summary(arguments, progress), indent=1) + "\n")


def summary(arguments: argparse.Namespace, progress: Progress) -> dict:
    """What training.json says: how to repeat the training, and how it went."""
    history = progress.history
    return {
        "commands": progress.commands,
        "steps": progress.step,
        "batch": arguments.batch,
        "seed": arguments.seed,
        "seconds": round(progress.seconds),
        "mixture": MIXTURE,
        "losses": history[-1:] + history[:: max(1, len(history) // 20)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=sorted(RECIPES))
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-3, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workdir", required=True, help="checkpoints; reused to resume")
    parser.add_argument("--export", help="folder that the finished model is written to")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
