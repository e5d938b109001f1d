"""usage: python -m harness probe [KEY=VALUE ...]

The block-size probe (table 3, F.1): runs each schedule at several block sizes B = W + 1 on a task's first ten prompts
and prints which size gives it the most tokens/s. The paper's own probe:

  python -m harness probe model=nemotron8b task=gsm8k

  blocks=B,B,...   block sizes to try; 4,8,16,32 by default
  run_dir=PATH     folder of the runs, one for each block size; goes on where it stopped

All keys of `python -m harness run` can be given too. Responses are capped at 512 tokens where a task allows more.
Block sizes run one after another, so look at each run's drift before trusting small differences.
"""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.study import WINDOWED, read_study
from harness.analysis.tables.cost import fastest_blocks, table3
from harness.cli.arguments import Overrides, Takes
from harness.cli.keys import Integers, PathKey
from harness.cli.verbs.run import run_and_show
from harness.config.compose import compose
from harness.config.run_config import RunConfig
from harness.errors import UserError
from harness.records.places import RUNS

PROMPTS = 10  # F.1: the first ten questions
CAP = 512  # F.1: new tokens of a response
DEFAULTS = (f"limit={PROMPTS}", "schedule=[linear,quadratic,packed]")
BLOCKS = Integers("blocks", [4, 8, 16, 32], least=2, what="block sizes", example="4,8,16,32")
TAKES = Takes("probe", keys=(BLOCKS, PathKey("run_dir")), overrides=Overrides())


def main(arguments: Sequence[str]) -> int:
    """Runs all block sizes and prints the table."""
    given = TAKES.read(arguments)
    overrides = [*DEFAULTS, *given.overrides]
    config = compose(overrides, besides=TAKES.own)
    if WINDOWED in config.model._target_:
        raise UserError(f"model={config.model.name}: has windows, no blocks. The probe is for Nemotron models.")
    if config.task.max_new_tokens > CAP and not given.sets("task.max_new_tokens"):
        overrides.append(f"task.max_new_tokens={CAP}")
    folder = given["run_dir"] or _new_folder(config)
    for block in given["blocks"]:
        widths = [f"schedules.{name}.width={block - 1}" for name in config.schedules]
        run_and_show(compose([*overrides, *widths, f"run_dir={folder / f'block-{block}'}"]))
    study = read_study([folder])
    for notice in study.notices:
        print(f"notice: {notice}", file=sys.stderr)
    try:
        print(f"\n{table3(study).text()}")
    except NotMeasured as missing:
        raise UserError(f"probe {folder}: {missing}. Try several blocks.") from None
    print("fastest: " + ", ".join(fastest_blocks(study)))
    return 0


def _new_folder(config: RunConfig) -> Path:
    time = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    return RUNS / f"{time}_probe_{config.model.name}_{config.task.name}"
