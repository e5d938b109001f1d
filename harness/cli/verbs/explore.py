"""usage: python -m harness explore ATLAS [KEY=VALUE ...]

Tells from a recorded atlas (`python -m harness atlas`), without the model and exactly: the calls and rows of every
schedule at every recorded width; how often assumption 3.1 fails, and how far theorem 3.2 holds all the same; which
partial branches beat Packed and Quadratic at equal rows; and, as predictions, throughput on devices, and which
schedule wins where.

  schedule=[NAME,...] schedules.NAME.KEY=... schedule._target_=MODULE.CLASS   more schedules to simulate, as for a run
  costs=RUNS             run folders that tau and delta are fitted to, and predictions compared with
  tau_ms=T delta_ms=D    a call costs T + D x rows milliseconds, instead
  out=PATH               where tables and figures are written; ATLAS/explored by default

Responses of several widths, interleaved, make the best fit: python -m harness run experiment=costs run_dir=RUNS.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from harness.analysis.atlas.catalogue import Inputs, atlas_products, make
from harness.analysis.atlas.cost_model import CostModel, fit
from harness.analysis.atlas.methods import Method, simulated
from harness.analysis.atlas.simulation import Simulation
from harness.analysis.study.runs import find_runs, unlike
from harness.analysis.style import row_of
from harness.cli.arguments import Overrides, Takes, Words
from harness.cli.keys import Number, PathKey
from harness.config.compose import compose, name_of_class
from harness.errors import UserError
from harness.records.atlas import read_atlas
from harness.records.frame import answered, as_frame
from harness.running.build import build_schedules
from schedules.linear import Linear
from schedules.one_call import OneCall

COSTS, OUT = PathKey("costs"), PathKey("out")
TAU_MS = Number("tau_ms", unit="milliseconds", example="5")
DELTA_MS = Number("delta_ms", unit="milliseconds", example="0.1")
TAKES = Takes(
    "explore",
    Words(least=1, most=1, ask="name the folder of one atlas"),
    (COSTS, TAU_MS, DELTA_MS, OUT),
    overrides=Overrides(only=("schedule", "schedule.*", "schedules.*")),
)


def main(arguments: Sequence[str]) -> int:
    """Makes all tables and figures, and prints the tables."""
    given = TAKES.read(arguments)
    (folder,) = given.paths
    simulation = Simulation(read_atlas(folder))
    if len(simulation.atlas.prompts) < 4:
        raise UserError(f"explore {folder}: {len(simulation.atlas.prompts)} prompts; need at least 4 for intervals.")
    records = _records(given["costs"], simulation) if given["costs"] else None
    cost = _cost(given["tau_ms"], given["delta_ms"], records)
    inputs = Inputs(simulation, own_methods(given.overrides, simulation.atlas.widths), cost, records)
    with tqdm(total=len(atlas_products(inputs)), file=sys.stderr, dynamic_ncols=True) as bar:

        def note(name: str) -> None:
            bar.set_description_str(name)
            bar.update()

        made = make(inputs, given["out"] or folder / "explored", note)
    for reason in made.missing:
        print(f"missing: {reason}", file=sys.stderr)
    print("\n".join(table.text() for table in made.tables))
    print("\n".join(map(str, made.paths)))
    return 0


def _cost(tau_ms: float | None, delta_ms: float | None, records: pd.DataFrame | None) -> CostModel | None:
    given = {"tau_ms": tau_ms, "delta_ms": delta_ms}
    shown = [f"{key}={value:g}" for key, value in given.items() if value is not None]
    if not shown:
        return None if records is None else fit(records)
    if len(shown) == 1 or records is not None:
        raise UserError(f"{shown[0]}: give tau_ms and delta_ms, or costs=RUNS.")
    if tau_ms == delta_ms == 0:
        raise UserError(f"{' '.join(shown)}: need milliseconds, not both 0.")
    return CostModel(tau_ms / 1000, delta_ms / 1000, {})


def _records(path: Path, simulation: Simulation) -> pd.DataFrame:
    """Greedy responses of the atlas' model and task, each under its schedule's own name, whatever the run called it.

    Raises:
      UserError: there are none.
    """
    found = find_runs([path])
    for notice in found.notices:
        print(f"notice: {notice}", file=sys.stderr)
    atlas = simulation.atlas
    frames, facts = [], {}
    for run in found.runs:
        names = {name: _own_name(name, config) for name, config in run.schedules.items()}
        responses = answered(run.records).query("model == @atlas.model and task == @atlas.task and temperature == 0")
        if len(responses):
            frames.append(responses.assign(schedule=responses["schedule"].map(names)))
            facts[str(run.path)] = run.facts
    records = pd.concat([as_frame([]), *frames], ignore_index=True)
    if records.empty:
        raise UserError(f"costs={path}: no greedy responses of {atlas.model} on {atlas.task} there. Run some first.")
    # The atlas says what it is of; how times were measured is for the runs alone.
    one, *_ = next(iter(facts.values()))
    differing = unlike({"the atlas": [one._replace(weights=atlas.weights, data=atlas.data)], **facts})
    if differing:
        raise UserError(f"costs={path}: {' '.join(differing.values())} Name runs that are alike, and the atlas'.")
    return records


def _own_name(given: str, config: Mapping[str, Any]) -> str:
    """The schedule's row, where its width says all: a run that has it at several widths gives it several names."""
    name = name_of_class(config.get("_target_", ""))
    return name if name in simulated() and row_of(name).example is None else given


def own_methods(overrides: Sequence[str], widths: Sequence[int]) -> Sequence[Method]:
    """The schedules that `overrides` name, at their own width if that was recorded.

    Args:
      overrides: as for a run: schedule=..., schedules.NAME.KEY=..., schedule._target_=...

    Raises:
      UserError: unknown names, or a schedule whose calls do not follow from the draft's length.
    """
    if not overrides:
        return []
    config = compose(["schedule=[]", *overrides])
    built = build_schedules(config.schedules)
    for name, schedule in built.items():
        if schedule.width not in widths:
            raise UserError(
                f"schedules.{name}.width={schedule.width}: not in the atlas, which has {', '.join(map(str, widths))}. "
                "Choose one of them, or record an atlas with that width."
            )
    return [_method(name, schedule) for name, schedule in built.items()]


def _method(name: str, schedule: Any) -> Method:
    if isinstance(schedule, Linear):
        return Method(name, schedule.width, lambda simulation: simulation.linear(schedule.width))
    if isinstance(schedule, OneCall) and type(schedule).decode is OneCall.decode:
        return Method(name, schedule.width, lambda simulation: simulation.one_call(schedule.width, schedule.branches))
    raise UserError(
        f"schedules.{name}: has a loop of its own, which cannot be simulated. Subclasses of OneCall that say no more "
        "than their branches can; others have to be run."
    )
