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
from pathlib import Path

from harness.analysis.trace_grid import as_text
from harness.config.compose import compose
from harness.errors import UserError, unknown
from harness.records.record import stable_seed
from harness.records.trace import FILE, Trace, read_traces
from harness.running.build import build_model, build_plan
from harness.running.replay import Replay

COLOURS = ("auto", "always", "never")
WIDTH = 120  # columns, where the output is no terminal


def main(arguments: Sequence[str]) -> int:
    """Prints the traces."""
    own = {key: value for key, _, value in (one.partition("=") for one in arguments) if key in ("iterations", "colour")}
    rest = [argument for argument in arguments if argument.partition("=")[0] not in own]
    colour, iterations = own.get("colour", "auto"), own.get("iterations", "")
    if colour not in COLOURS:
        raise unknown("colour", colour, COLOURS)
    if iterations and not iterations.isdigit():
        raise UserError(f"iterations={iterations}: need an integer of at least 0.")
    in_colour = colour == "always" or (colour == "auto" and sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    columns = shutil.get_terminal_size((WIDTH, 0)).columns
    folders = [argument for argument in rest if "=" not in argument]
    for trace in _recorded(folders, rest) if folders else _decoded(rest):
        print(as_text(trace, columns, in_colour, int(iterations) if iterations else None) + "\n")
    return 0


def _recorded(folders: Sequence[str], arguments: Sequence[str]) -> Sequence[Trace]:
    if len(arguments) > 1 or not Path(folders[0]).is_dir():
        raise UserError(f"trace {' '.join(arguments)}: name the folder of one replayed run, or KEY=VALUE as for a run.")
    traces = read_traces(Path(folders[0]))
    if not traces:
        raise UserError(f"trace {folders[0]}: no {FILE} there. Write it: python -m harness replay {folders[0]}")
    return traces


def _decoded(arguments: Sequence[str]) -> Iterator[Trace]:
    config = compose(["limit=1", *arguments])
    if config.acceptance is not None or config.weights == "random":
        raise UserError("trace: synthetic acceptance and random weights leave nothing to look at. Leave them out.")
    plan = build_plan(config)
    replay = Replay(plan, build_model(config.model))
    for item in plan.own_items:
        for name in plan.schedules:
            seed = stable_seed(plan.seed, item.prompt_id, 0, name)
            replay.decode(name, item.prompt_id, seed)
            yield replay.decode(name, item.prompt_id, seed)[0]
