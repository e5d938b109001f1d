"""Trains an embedded tiny model from scratch on the toy tasks and saves it in the released checkpoint layout.

    python scripts/train_tiny.py tiny_nemotron --steps 1800 --workdir checkpoints/tiny_nemotron

Seeded, and resumable: a killed training goes on from the last checkpoint in the work directory; `--export DIR` at
the end writes config.json, model.safetensors, the tokenizer, and training.json (the commands and the log's summary).
What differs between the models stands in `tiny_recipes`.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import count, islice
from pathlib import Path

import torch
from tiny_objectives import TokenizedExample
from tiny_recipes import RECIPES, VOCAB_SIZE, Batch, Recipe
from tiny_tokenizer import train_tokenizer
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from harness.tasks import toy, toy_code, toy_math, toy_writing
from harness.training.loop import Checkpoint, Progress, descend, rate

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


def note(progress: Progress, parts: dict[str, torch.Tensor]) -> None:
    """Keeps and prints the losses of the step just done."""
    values = {name: loss.item() for name, loss in parts.items()}
    progress.history.append({"step": progress.step, **values})
    shown = " ".join(f"{name} {value:.4f}" for name, value in values.items())
    print(f"{progress.step} {shown} {progress.seconds:.0f}s", flush=True)


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
    checkpoint = Checkpoint(workdir / "checkpoint.pt", model.state_dict(), optimizer, rng)
    progress = checkpoint.restore()
    if progress.step:
        print(f"resumed at step {progress.step}", flush=True)
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
        parts = losses(model, batch, recipe, tokenizer.mask_token_id)
        loss = sum(recipe.loss_weights[name] * one for name, one in parts.items())
        now = rate(progress.step, arguments.steps, arguments.rate, warmup=100)
        descend(optimizer, list(model.parameters()), loss, now)
        progress.step += 1
        progress.seconds = time.perf_counter() - began
        if progress.step % STEPS_A_NOTE == 0:
            note(progress, parts)
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
