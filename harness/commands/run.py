"""usage: python -m harness run [KEY=VALUE ...] [--dry-run] [-m]

Decodes every prompt of a task with one or several schedules (interleaved prompt by prompt), timed and recorded.

  model=NAME task=NAME schedule=NAME|[NAME,NAME]   what to run; `python -m harness list` shows the names
  limit=N  prompts=[ID,...]                        fewer prompts
  schedules.NAME.width=W                           speculative width of one schedule
  schedule._target_=MODULE.CLASS schedule.width=W  one of your own beside the named ones: see schedules/README.md
  task.data_files=PATH                             a data set's own file instead of the hub
  order=ltr|confidence                             verification order, for SetDLM models
  temperature=T  top_k=K  top_p=P  seed=N          see conf/config.yaml for all keys and their defaults
  run_dir=PATH                                     where to write; a run that is there goes on where it stopped
  shard=I/N                                        one part of the prompts; `merge` puts the parts together
  on_error=stop|skip                               what to do where memory runs out
  engine=eager|compiled|cudagraph                  how forward passes are executed
  weights=random  acceptance=N|[N,...]|RUN_DIR     costs without a download: see conf/config.yaml
  experiment=table6                                all cells of a figure or table of the paper, one run each
  cell=K                                           only its K-th cell
  -m                                               sweep: one run for each combination of KEY=A,B
  hydra/launcher=submitit_local|slurm_a100         each of these runs as a job
  --dry-run                                        list the runs with prompts, responses and hours, and run nothing

Writes manifest.json, records.jsonl and summary.json, and prints a table: rates, and ratios to Linear-SS.
"""

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from harness.analysis.closing_table import closing_table
from harness.analysis.runs import RUNS
from harness.analysis.summary import summarize
from harness.building import build_plan, find_model
from harness.config import compose
from harness.errors import UserError
from harness.experiments import Cell, cells_of, hydra_settings
from harness.interruption import goes_on_with
from harness.listing import listing
from harness.machine import hints
from harness.manifest import identity
from harness.planning import Plan, shard_folder
from harness.progress import Progress
from harness.run_folder import RunFolder
from harness.runner import Runner

DRY_RUN = "--dry-run"
# Choices that not every model has, and what those do that have none.
CHOICES = {"weights": "released", "engine": "eager"}


def main(arguments: Sequence[str]) -> int:
    """Runs one cell, or all cells of an experiment or a sweep."""
    given = [argument for argument in arguments if argument != DRY_RUN]
    cells = cells_of(given)
    if DRY_RUN in arguments:
        print(listing(cells or [Cell(given)]))
    elif cells:
        from harness.sweep import sweep

        sweep(cells, hydra_settings(given))
    else:
        run(compose(given))
    return 0


def run(config: DictConfig) -> Path:
    """Runs the cell that `config` describes and prints its table; gives the run's folder.

    Raises:
      UserError: anything wrong with the config, the data, the model or the folder.
    """
    if config.cells:
        raise UserError("experiment: its cells are runs of their own; --dry-run shows a command for each.")
    for key, plain in CHOICES.items():
        if config.model.get(key, plain) != config[key]:
            raise UserError(f"{key}={config[key]}: {config.model.name} has no such choice. Use {key}={plain}.")
    loader = find_model(config.model)
    prepared = build_plan(config)
    if config.samples < 0:
        raise UserError(f"samples={config.samples}: need an integer of at least 0.")
    path = _folder(config)
    _announce(config, prepared, path)
    folder = RunFolder(path)
    begun = identity(OmegaConf.to_container(config, resolve=True), prepared.facts(), prepared.data.record())
    with goes_on_with(path), folder.working(begun):
        for hint in hints(folder.latest("state_at_start")):
            print(f"notice: {hint}", file=sys.stderr)
        model = loader.load()
        folder.note(model=model.facts)
        for notice in model.facts.get("notices", []):
            print(f"notice: {notice}", file=sys.stderr)
        for field, values in model.facts.get("unlike_expected", {}).items():
            print(f"notice: config.json has {field}={values['found']}, known is {values['expected']}", file=sys.stderr)
        samples = [item.prompt_id for item in prepared.items[: config.samples]]
        Runner(prepared, model, folder).run(Progress(samples))
        summary = summarize(folder.records(), folder.latest("drift"))
        folder.write_json("summary.json", summary)
    print(closing_table(summary, len(prepared.own_items) * prepared.repetitions))
    print(f"records: {folder.records_file}")
    return path


def _folder(config: DictConfig) -> Path:
    return shard_folder(Path(config.run_dir) if config.run_dir else _new_folder(config), config.shard)


def _announce(config: DictConfig, prepared: Plan, path: Path) -> None:
    schedules = ", ".join(
        f"{name} (W = {schedule.width})" if schedule.width else name for name, schedule in prepared.schedules.items()
    )
    lines = [
        f"{config.model.name} on {prepared.task.name}: {len(prepared.own_items)} prompts x "
        f"{prepared.repetitions} x {len(prepared.schedules)} schedules = {prepared.responses} responses",
        f"schedules: {schedules}; temperature {config.temperature:g}, at most {prepared.max_new_tokens} new tokens",
        f"writing to {path}",
        *(f"notice: {notice}" for notice in prepared.data.notices),
    ]
    print("\n".join(lines), file=sys.stderr)


def _new_folder(config: DictConfig) -> Path:
    """A folder name that says what the run is; the time makes it new."""
    time = datetime.now().strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
    parts = (config.model.name, config.task.name, "-".join(config.schedules))
    return RUNS / re.sub(r"[^\w.-]+", "_", "_".join((time, *parts)))
