"""Trains an embedded tiny model from scratch on the toy tasks and saves it in the released checkpoint layout.

    python scripts/train_tiny.py tiny_nemotron --steps 1800 --workdir checkpoints/tiny_nemotron

Seeded, and resumable: a killed training goes on from the last checkpoint in the work directory; `--export DIR` at
the end writes config.json, model.safetensors, the tokenizer, and training.json (the command and the log's summary).
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import count, islice
from pathlib import Path

import torch
from safetensors.torch import save_file
from tiny_objectives import JointBatch, TokenizedExample, joint_batch
from tiny_tokenizer import train_tokenizer
from transformers import Ministral3Config, Ministral3ForCausalLM, PreTrainedTokenizerFast

from harness.models.nemotron.loader import BACKBONE_FIELDS
from harness.tasks import toy, toy_code, toy_math, toy_writing

LANGUAGES = {"toy_math": toy_math, "toy_code": toy_code, "toy_writing": toy_writing}
MIXTURE = {"toy_math": 0.6, "toy_code": 0.25, "toy_writing": 0.15}
VOCAB_SIZE = 768
MASKED_LOSS_WEIGHT = 0.3
BATCHES_A_GROUP = 10  # sorted by length together
STEPS_A_CHECKPOINT = 200  # a multiple of BATCHES_A_GROUP, so that a resumed run sees the same batches


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of all tiny models, always the same."""
    texts = []
    for language in LANGUAGES.values():
        for example in islice(toy.examples(language.generate, "train", seed=0), 4000):
            texts += [example.prompt, example.response]
    return train_tokenizer(texts, VOCAB_SIZE)


def build_model(tokenizer: PreTrainedTokenizerFast) -> Ministral3ForCausalLM:
    """tiny_nemotron's backbone with fresh weights, 1.8 million parameters."""
    return Ministral3ForCausalLM(
        Ministral3Config(
            vocab_size=VOCAB_SIZE,
            hidden_size=192,
            intermediate_size=512,
            num_hidden_layers=4,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=2048,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=None,
            rope_parameters={
                "rope_type": "yarn",  # as released; factor 1 leaves all frequencies as they are
                "rope_theta": 10000.0,
                "factor": 1.0,
                "original_max_position_embeddings": 2048,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.1,
            },
        )
    )


def conversations(tokenizer: PreTrainedTokenizerFast, seed: int, skip: int) -> Iterator[TokenizedExample]:
    """Endless training conversations of the mixture; the first `skip` are passed over without tokenizing."""
    streams = {name: toy.examples(language.generate, "train", seed=seed + 1) for name, language in LANGUAGES.items()}
    rng = random.Random(seed)
    for index in range(sys.maxsize):
        name = rng.choices(list(MIXTURE), weights=list(MIXTURE.values()))[0]
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


def losses(model: Ministral3ForCausalLM, batch: JointBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean causal loss and mean masked loss, in nats per token."""
    hidden = model.model(
        input_ids=batch.input_ids,
        attention_mask=batch.mask,
        position_ids=batch.position_ids,
        use_cache=False,
    ).last_hidden_state
    result = []
    for targets in (batch.causal_targets, batch.masked_targets):
        here = targets != -100
        logits = model.lm_head(hidden[here])
        result.append(torch.nn.functional.cross_entropy(logits, targets[here]))
    return result[0], result[1]


def rate(step: int, steps: int, peak: float, warmup: int) -> float:
    """Learning rate with linear warm-up and cosine decay to 2 % of the peak."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


def train(arguments: argparse.Namespace) -> None:
    """Trains to the end, or goes on from the work directory's checkpoint."""
    torch.manual_seed(arguments.seed)
    workdir = Path(arguments.workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    rng = torch.Generator().manual_seed(arguments.seed)
    step, history, seconds = 0, [], 0.0
    checkpoint = workdir / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        rng.set_state(state["rng"])
        step, history, seconds = state["step"], state["history"], state["seconds"]
        print(f"resumed at step {step}", flush=True)
    data = batches(
        conversations(tokenizer, arguments.seed, skip=step * arguments.batch),
        arguments.batch,
        arguments.seed,
        first_step=step,
    )
    began = time.perf_counter() - seconds
    while step < arguments.steps:
        batch = joint_batch(next(data), tokenizer.pad_token_id, tokenizer.mask_token_id, rng)
        for group in optimizer.param_groups:
            group["lr"] = rate(step, arguments.steps, arguments.rate, warmup=100)
        causal, masked = losses(model, batch)
        optimizer.zero_grad(set_to_none=True)
        (causal + MASKED_LOSS_WEIGHT * masked).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        seconds = time.perf_counter() - began
        if step % 25 == 0:
            history.append({"step": step, "causal": causal.item(), "masked": masked.item()})
            print(f"{step} causal {causal:.4f} masked {masked:.4f} {seconds:.0f}s", flush=True)
        if step % STEPS_A_CHECKPOINT == 0 or step == arguments.steps:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "rng": rng.get_state(),
                "step": step,
                "history": history,
                "seconds": seconds,
            }
            torch.save(state, checkpoint.with_suffix(".partial"))
            checkpoint.with_suffix(".partial").replace(checkpoint)
    if arguments.export:
        summary = {
            "command": " ".join(["python", *sys.argv]),
            "steps": step,
            "batch": arguments.batch,
            "seed": arguments.seed,
            "seconds": round(seconds),
            "mixture": MIXTURE,
            "losses": history[-1:] + history[:: max(1, len(history) // 20)],
        }
        export(model, tokenizer, Path(arguments.export), summary)


def export(
    model: Ministral3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    folder: Path,
    summary: Mapping,
) -> None:
    """Writes the model in the layout of the released Nemotron-Labs-Diffusion checkpoints."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for name, tensor in model.state_dict().items():
        released = name.replace("model.", "encoder.", 1).replace("lm_head.", "diffusion_head.", 1)
        tensors[released] = tensor.contiguous()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    fields = {key: config[key] for key in BACKBONE_FIELDS} | {
        "model_type": "nemotron_labs_diffusion",
        "architectures": ["NemotronLabsDiffusionModel"],
        "dlm_paradigm": "bidirectional",
        "mask_token_id": tokenizer.mask_token_id,
        "block_size": 32,
        "use_cache": False,
        "dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(fields, indent=2) + "\n")
    tokenizer.save_pretrained(folder)
    (folder / "training.json").write_text(json.dumps(summary, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=["tiny_nemotron"])
    parser.add_argument("--steps", type=int, default=1800)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-3, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workdir", required=True, help="checkpoints; reused to resume")
    parser.add_argument("--export", help="folder that the finished model is written to")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
