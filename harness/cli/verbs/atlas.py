"""usage: python -m harness atlas [KEY=VALUE ...]

Records a draft atlas: along the greedy continuation of every prompt, what the drafter proposes from each context, its
probability, and the verifier's top-two gap. `python -m harness explore` then tells exactly, without the model, how
many calls and rows any schedule takes. Nothing is timed.

  model=NAME task=NAME        what to record, of the Nemotron family
  widths=W,W,...              speculative widths; the model's own by default
  limit=N  prompts=[ID,...]   fewer prompts
  task.data_files=PATH        a data set's own file instead of the hub
  adapter=NAME                the proposal-only adapter
  run_dir=PATH                where to write; an atlas that is there goes on where it stopped

Writes atlas.json and one file a prompt, and prints how far proposals are right.
"""

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from omegaconf import OmegaConf
from tqdm import tqdm

from harness.cli.arguments import Overrides, Takes
from harness.cli.keys import Integers
from harness.config.compose import compose
from harness.config.run_config import PLACES, SHAPING_ATLASES, RunConfig, with_later_keys
from harness.errors import UserError
from harness.records.atlas import KINDS, Atlas, read_atlas
from harness.records.manifest import identity
from harness.running.build import build_plan, find_model
from harness.running.plan import Plan
from harness.running.record_atlas import AtlasFolder, Recorder
from harness.system.signals import goes_on_with
from harness.text import aligned

ATLASES = Path("results/atlases")
NO_SCHEDULES = "an atlas holds for every schedule. Give widths=W,W and leave it out."
TAKES = Takes(
    "atlas",
    keys=(Integers("widths", least=1, what="speculative widths", example="7,15"),),
    overrides=Overrides(refused=dict.fromkeys(("schedule*", "order*", "experiment"), NO_SCHEDULES)),
)


def main(arguments: Sequence[str]) -> int:
    """Records, or goes on, and prints the table."""
    given = TAKES.read(arguments)
    config = compose(given.overrides, besides=TAKES.own)
    _check(config)
    widths = given["widths"] or sorted({*config.model.widths.values()})
    loader = find_model(config.model)
    plan = build_plan(config)
    path = Path(config.run_dir) if config.run_dir else _new_folder(config)
    _announce(config, plan, widths, path)
    folder = AtlasFolder(path)
    settings = OmegaConf.to_container(OmegaConf.masked_copy(config, list(SHAPING_ATLASES)), resolve=True)
    no_schedules = {"schedules": {}, "widths": widths}
    begun = identity(settings | no_schedules, {**plan.facts(), "schedules": []}, plan.data.record())
    with goes_on_with(path), folder.working(begun, PLACES, with_later_keys):
        model = loader.load()
        folder.note(model=model.facts)
        recorder = Recorder(plan, model, widths, folder)
        done = sum(folder.file(number).exists() for number in range(len(plan.items)))
        if done:
            print(f"going on: {done} of {len(plan.items)} prompts are there", file=sys.stderr)
        with tqdm(total=len(plan.items), initial=done, unit="prompt", file=sys.stderr, dynamic_ncols=True) as bar:
            too_long = recorder.run(lambda tokens: bar.update())
    for prompt_id in too_long:
        print(f"notice: {prompt_id} does not fit the model's context and is left out", file=sys.stderr)
    if len(too_long) < len(plan.items):
        print(_summary(read_atlas(path)))
    print(f"atlas: {path}")
    return 0


def _check(config: RunConfig) -> None:
    if config.temperature != 0:
        raise UserError(f"temperature={config.temperature:g}: an atlas follows greedy continuations. Leave it out.")
    for key in ("shard", "acceptance"):
        if config[key] is not None:
            raise UserError(f"{key}={config[key]}: is for runs. Leave it out; prompts=[...] records some prompts.")


def _announce(config: RunConfig, plan: Plan, widths: Sequence[int], path: Path) -> None:
    lines = [
        f"{config.model.name} on {plan.task.name}: {len(plan.items)} prompts, "
        f"at most {plan.task.max_new_tokens} new tokens; W = {', '.join(map(str, widths))}",
        f"writing to {path}",
        *(f"notice: {notice}" for notice in plan.data.notices),
    ]
    print("\n".join(lines), file=sys.stderr)


def _summary(atlas: Atlas) -> str:
    """For each width and region, how many of the first W proposals are right in a row, and how often all are."""
    header = ("W", "contexts", *(f"{kind}: {what}" for what in ("right in a row", "all right") for kind in KINDS))
    rows = []
    for width in atlas.widths:
        runs = [
            np.concatenate(
                [prompt.correct(kind, width)[:, :width].cumprod(axis=1).sum(axis=1) for prompt in atlas.prompts]
            )
            for kind in KINDS
        ]
        right = [f"{one.mean():.2f}" if one.size else "–" for one in runs]
        whole = [f"{100 * (one == width).mean():.1f} %" if one.size else "–" for one in runs]
        rows.append((str(width), f"{runs[0].size:,}", *right, *whole))
    tokens = sum(len(prompt.tokens) for prompt in atlas.prompts)
    least = min((prompt.gaps.min() for prompt in atlas.prompts if prompt.gaps.size), default=0.0)
    return "\n".join(
        [
            *aligned([header, *rows], is_left=[False] * len(header)),
            f"{atlas.label}; {tokens:,} tokens; least gap between the verifier's top two logits {least:.3g}",
        ]
    )


def _new_folder(config: RunConfig) -> Path:
    time = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    return ATLASES / re.sub(r"[^\w.-]+", "_", f"{time}_{config.model.name}_{config.task.name}")
