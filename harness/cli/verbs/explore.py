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
from dataclasses import replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from harness.analysis.atlas.catalogue import Inputs, atlas_products, make
from harness.analysis.atlas.cost_model import CostModel, fit
from harness.analysis.atlas.methods import Method, paper_method
from harness.analysis.atlas.simulation import Simulation
from harness.analysis.study.runs import find_runs
from harness.config.compose import compose
from harness.errors import UserError, unknown
from harness.records.atlas import read_atlas
from harness.records.record import Record
from harness.running.build import build_schedules
from schedules.linear import Linear
from schedules.one_call import OneCall

KEYS = ("costs", "tau_ms", "delta_ms", "out")
SCHEDULES = ("schedule", "schedules")
# A run that has a schedule at several widths gives it several names.
CLASSES = {"schedules.Linear": "linear", "schedules.Packed": "packed", "schedules.Quadratic": "quadratic"}


def main(arguments: Sequence[str]) -> int:
    """Makes all tables and figures, and prints the tables."""
    folders = [argument for argument in arguments if "=" not in argument]
    if len(folders) != 1:
        raise UserError(f"explore {' '.join(arguments)}: name the folder of one atlas.")
    values = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    overrides = [one for one in arguments if "=" in one and one.lstrip("+").split("=")[0].split(".")[0] in SCHEDULES]
    for key in values:
        if key not in KEYS and not any(override.startswith(f"{key}=") for override in overrides):
            raise unknown("key", key, (*KEYS, *SCHEDULES))
    folder = Path(folders[0])
    simulation = Simulation(read_atlas(folder))
    if len(simulation.atlas.prompts) < 4:
        raise UserError(f"explore {folder}: {len(simulation.atlas.prompts)} prompts; need at least 4 for intervals.")
    records = _records(values["costs"], simulation) if "costs" in values else []
    inputs = Inputs(simulation, own_methods(overrides, simulation.atlas.widths), _cost(values, records), records)
    with tqdm(total=len(atlas_products(inputs)), file=sys.stderr, dynamic_ncols=True) as bar:

        def note(name: str) -> None:
            bar.set_description_str(name)
            bar.update()

        made = make(inputs, Path(values.get("out", folder / "explored")), note)
    for reason in made.missing:
        print(f"missing: {reason}", file=sys.stderr)
    print("\n".join(table.text() for table in made.tables))
    print("\n".join(map(str, made.paths)))
    return 0


def _cost(values: Mapping[str, str], records: Sequence[Record]) -> CostModel | None:
    given = [key for key in ("tau_ms", "delta_ms") if key in values]
    if not given:
        return fit(records) if records else None
    if len(given) == 1 or records:
        raise UserError(f"{given[0]}={values[given[0]]}: give tau_ms and delta_ms, or costs=RUNS.")
    try:
        tau_ms, delta_ms = float(values["tau_ms"]), float(values["delta_ms"])
    except ValueError:
        tau_ms = delta_ms = -1.0
    if not (0 <= tau_ms < float("inf") and 0 <= delta_ms < float("inf") and tau_ms + delta_ms > 0):
        raise UserError(f"tau_ms={values['tau_ms']} delta_ms={values['delta_ms']}: need milliseconds, not both 0.")
    return CostModel(tau_ms / 1000, delta_ms / 1000, {})


def _records(path: str, simulation: Simulation) -> Sequence[Record]:
    """Greedy responses of the atlas' model and task, each under its schedule's own name, whatever the run called it.

    Raises:
      UserError: there are none.
    """
    found = find_runs([Path(path)])
    for notice in found.notices:
        print(f"notice: {notice}", file=sys.stderr)
    atlas = simulation.atlas
    records = [
        replace(record, schedule=CLASSES.get(run.schedules[record.schedule].get("_target_"), record.schedule))
        for run in found.runs
        for record in run.records
        if (record.model, record.task, record.temperature) == (atlas.model, atlas.task, 0) and not record.is_skipped
    ]
    if not records:
        raise UserError(f"costs={path}: no greedy responses of {atlas.model} on {atlas.task} there. Run some first.")
    return records


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
        return paper_method("linear", schedule.width)._replace(schedule=name)
    if isinstance(schedule, OneCall) and type(schedule).decode is OneCall.decode:
        return Method(name, schedule.width, lambda simulation: simulation.one_call(schedule.width, schedule.branches))
    raise UserError(
        f"schedules.{name}: has a loop of its own, which cannot be simulated. Subclasses of OneCall that say no more "
        "than their branches can; others have to be run."
    )
