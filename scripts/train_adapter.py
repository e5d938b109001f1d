"""Trains a proposal-only adapter for an embedded model: the adapter's weights alone, on the masked-token objective.

    python scripts/train_adapter.py --model harness/models/embedded/tiny_nemotron --export DIR

Blocks are what the schedules ask for, the last verified token and masks behind it; long draft positions count more,
since those are where drafts end. Saved as a peft adapter folder with the released names.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from tiny_objectives import BlockMix, JointBatch, joint_batch
from train_tiny import batches, build_tokenizer, conversations

from harness.models.nemotron.adapter import TARGET
from harness.models.nemotron.loader import NemotronLoader
from harness.models.nemotron.model import NemotronModel
from harness.models.shifted.adapter import ProposalAdapter
from harness.training.loop import descend, rate

RANK, ALPHA = 96, 192
MIXTURE = {"toy_math": 0.7, "toy_code": 0.15, "toy_writing": 0.15}
DRAFT_MIX = BlockMix(sizes=(8, 16, 16, 32), fully_masked_share=1.0, clean_first_share=1.0)
FULL_WEIGHT_DEPTH = 8  # draft positions from here on weigh twice what the first does
ACCEPTANCE_WEIGHT = 2.0
STEPS_A_NOTE = 25


def draft_loss(model: NemotronModel, batch: JointBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss, and the mean number of draft tokens a block would get accepted.

    The loss is masked-token cross-entropy, later draft positions weighted up, less a reward for expected acceptance:
    the sum over draft positions of the probability that it and all before it in its block are right.
    """
    model.adapter.first_row = batch.clean_rows
    hidden = model.backbone.model(
        input_ids=batch.input_ids, attention_mask=batch.mask, position_ids=batch.position_ids, use_cache=False
    ).last_hidden_state[:, batch.clean_rows :]
    targets, depths = batch.masked_targets[:, batch.clean_rows :], batch.depths[:, batch.clean_rows :]
    here = targets != -100
    losses = torch.zeros(targets.shape)
    losses[here] = torch.nn.functional.cross_entropy(
        model.backbone.lm_head(hidden[here]), targets[here], reduction="none"
    )
    weights = here * (1 + depths.clamp(max=FULL_WEIGHT_DEPTH) / FULL_WEIGHT_DEPTH)
    total = losses.cumsum(dim=1)
    block_starts = torch.arange(targets.shape[1]) - depths
    in_block = total - (total - losses).gather(1, block_starts)  # -log of everything right so far in the block
    accepted = (here * (-in_block).exp()).sum()
    loss = (losses * weights).sum() / weights.sum() - ACCEPTANCE_WEIGHT * accepted / here.sum()
    blocks = (here & (depths == 1)).sum()
    return loss, accepted / blocks


def train(arguments: argparse.Namespace) -> None:
    """Trains from fresh adapter weights to the end and exports them."""
    torch.manual_seed(arguments.seed)
    loaded = NemotronLoader(name="base", path=arguments.model, dtype="float32", device="cpu").load()
    model = loaded.model
    model.adapter = ProposalAdapter(model.backbone, RANK, ALPHA / RANK, mode="fused", targets=[TARGET])
    parameters = []
    model.backbone.requires_grad_(False)
    for layer in model.adapter.projections.values():
        torch.nn.init.kaiming_uniform_(layer.lora_A, a=5**0.5)
        parameters += [layer.lora_A.requires_grad_(), layer.lora_B.requires_grad_()]
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.98), weight_decay=0.0)
    tokenizer = build_tokenizer()
    rng = torch.Generator().manual_seed(arguments.seed)
    # Not the base model's training examples again: another stream of the same languages.
    examples = conversations(tokenizer, arguments.seed + 1000, skip=0, mixture=MIXTURE)
    data = batches(examples, arguments.batch, arguments.seed, first_step=0)
    history, began = [], time.perf_counter()
    for step in range(1, arguments.steps + 1):
        batch = joint_batch(next(data), tokenizer.pad_token_id, tokenizer.mask_token_id, rng, DRAFT_MIX)
        loss, accepted = draft_loss(model, batch)
        descend(optimizer, parameters, loss, rate(step - 1, arguments.steps, arguments.rate, warmup=20))
        if step % STEPS_A_NOTE == 0:
            history.append({"step": step, "loss": loss.item(), "accepted": accepted.item()})
            seconds = time.perf_counter() - began
            print(f"{step} loss {loss:.4f} accepted {accepted:.2f} {seconds:.0f}s", flush=True)
    summary = {"command": " ".join(["python", *sys.argv]), "steps": arguments.steps, "losses": history}
    export(model.adapter, Path(arguments.export), summary)


def export(adapter: ProposalAdapter, folder: Path, summary: dict) -> None:
    """Writes a peft adapter folder whose tensors carry the released names."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"base_model.{name.replace('model.', 'model.encoder.', 1)}.{part}.weight": getattr(projection, part).detach()
        for name, projection in adapter.projections.items()
        for part in ("lora_A", "lora_B")
    }
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": RANK,
        "lora_alpha": ALPHA,
        "lora_dropout": 0.0,
        "use_rslora": False,
        "use_dora": False,
        "bias": "none",
        "modules_to_save": None,
        "target_modules": [TARGET],
    }
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "training.json").write_text(json.dumps(summary, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="checkpoint folder of the base model")
    parser.add_argument("--export", required=True, help="folder that the adapter is written to")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=3e-3, help="peak learning rate")
    parser.add_argument("--seed", type=int, default=0)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
