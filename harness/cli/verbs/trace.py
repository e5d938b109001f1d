"""usage: python -m harness trace [RUN] [KEY=VALUE ...]

Shows decoding as figure 2 does, iteration by iteration: the draft, the verifier's predictions, what is accepted,
the correction, which proposals are kept and discarded, rows, and time inside the model.

  python -m harness trace schedule=[packed,quadratic] schedules.packed.width=7 prompts=[3]
  python -m harness trace RUN      what `python -m harness replay RUN` wrote, instead of decoding anything

  iterations=N               the first N iterations of each response; all by default
  colour=auto|always|never   auto: where the output is a terminal, and NO_COLOR is not set

All keys of `python -m harness run` can be given too; one prompt is decoded by default. A first response of each
schedule is decoded and thrown away, so that times are those of a warm model.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence

from harness.analysis.trace_grid import as_text
from harness.cli.arguments import Given, Overrides, Takes, Words
from harness.cli.keys import Choice, Integer
from harness.config.compose import compose
from harness.errors import UserError
from harness.records.record import stable_seed
from harness.records.trace import FILE, Trace, read_traces
from harness.running.build import build_model, build_plan
from harness.running.replay import Replay

COLOUR = Choice("colour", "auto", ("auto", "always", "never"), example="never")
TAKES = Takes(
    "trace",
    Words(most=1, ask="name the folder of one replayed run, or KEY=VALUE as for a run"),
    (Integer("iterations", example="5"), COLOUR),
    overrides=Overrides(),
)
WIDTH = 120  # columns, where the output is no terminal


def main(arguments: Sequence[str]) -> int:
    """Prints the traces."""
    given = TAKES.read(arguments)
    colour = given["colour"]
    in_colour = colour == "always" or (colour == "auto" and sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    columns = shutil.get_terminal_size((WIDTH, 0)).columns
    for trace in _recorded(given) if given.words else _decoded(given.overrides):
        print(as_text(trace, columns, in_colour, given["iterations"]) + "\n")
    return 0


def _recorded(given: Given) -> Sequence[Trace]:
    (folder,) = given.paths
    if given.overrides or not folder.is_dir():
        raise TAKES.asks([*given.words, *given.overrides])
    traces = read_traces(folder)
    if not traces:
        raise UserError(f"trace {folder}: no {FILE} there. Write it: python -m harness replay {folder}")
    return traces


def _decoded(overrides: Sequence[str]) -> Iterator[Trace]:
    config = compose(["limit=1", *overrides], besides=TAKES.own)
    if config.acceptance is not None or config.weights == "random":
        raise UserError("trace: synthetic acceptance and random weights leave nothing to look at. Leave them out.")
    plan = build_plan(config)
    replay = Replay(plan, build_model(config.model))
    for item in plan.own_items:
        for name in plan.schedules:
            seed = stable_seed(plan.config.seed, item.prompt_id, 0, name)
            replay.decode(name, item.prompt_id, seed)
            yield replay.decode(name, item.prompt_id, seed)[0]
