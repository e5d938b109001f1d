"""usage: python -m harness run [KEY=VALUE ...] [-m]

Decodes every prompt of a task with one or several schedules (interleaved prompt by prompt), timed and recorded.

  model=NAME task=NAME schedule=NAME|[NAME,NAME]   what to run; `python -m harness list` shows the names
  limit=N  prompts=[ID,...]                        fewer prompts
  schedules.NAME.width=W                           speculative width of one schedule
  task.data_files=PATH                             a data set's own file instead of the hub
  order=ltr|confidence                             verification order, for SetDLM models
  temperature=T  top_k=K  top_p=P  seed=N          see conf/config.yaml for all keys and their defaults
  run_dir=PATH                                     where to write; a run that is there goes on where it stopped
  -m                                               sweep: one run for each combination of KEY=A,B

Writes manifest.json, records.jsonl and summary.json, and prints a table: rates, and ratios to Linear-SS.
"""

import re
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from harness.analysis.closing_table import closing_table
from harness.analysis.summary import summarize
from harness.building import build, build_model, build_schedules
from harness.config import compose
from harness.errors import UserError
from harness.progress import Progress
from harness.records import read_records
from harness.run_folder import RunFolder
from harness.runner import Plan, Runner, plan

RUNS = Path("results/runs")


def main(arguments: Sequence[str]) -> int:
    """Runs one cell, or sweeps over several with -m."""
    if {"-m", "--multirun"} & set(arguments):
        from harness.sweep import sweep

        return sweep(arguments)
    run(compose(arguments))
    return 0


def run(config: DictConfig) -> Path:
    """Runs the cell that `config` describes and prints its table; gives the run's folder.

    Raises:
      UserError: anything wrong with the config, the data, the model or the folder.
    """
    prepared = plan(
        build(config.task, "task"),
        build_schedules(config.schedules),
        build(config.order, "order"),
        limit=config.limit,
        prompts=config.prompts,
        temperature=config.temperature,
        top_k=config.top_k,
        top_p=config.top_p,
        seed=config.seed,
        warmups=config.warmups,
    )
    if not isinstance(config.samples, int) or config.samples < 0:
        raise UserError(f"samples={config.samples}: need an integer of at least 0.")
    path = Path(config.run_dir) if config.run_dir else _new_folder(config)
    _announce(config, prepared, path)
    folder = RunFolder(path)
    model = build_model(config.model)
    samples = [item.prompt_id for item in prepared.items[: config.samples]]
    try:
        Runner(prepared, model, folder).run(OmegaConf.to_container(config, resolve=True), Progress(samples))
    except KeyboardInterrupt:
        print(f"\nstopped; go on with the same command and run_dir={path}", file=sys.stderr)
        raise
    summary = summarize(read_records(folder.records_file))
    folder.write_json("summary.json", summary)
    expected = len(prepared.items) * prepared.repetitions
    print(closing_table(summary, expected))
    print(f"records: {folder.records_file}")
    return path


def _announce(config: DictConfig, prepared: Plan, path: Path) -> None:
    schedules = ", ".join(
        f"{name} (W = {schedule.width})" if schedule.width else name for name, schedule in prepared.schedules.items()
    )
    lines = [
        f"{config.model.name} on {prepared.task.name}: {len(prepared.items)} prompts x "
        f"{prepared.repetitions} x {len(prepared.schedules)} schedules = {prepared.responses} responses",
        f"schedules: {schedules}; temperature {config.temperature:g}, "
        f"at most {prepared.task.max_new_tokens} new tokens",
        f"writing to {path}",
        *(f"notice: {notice}" for notice in prepared.data.notices),
    ]
    print("\n".join(lines), file=sys.stderr)


def _new_folder(config: DictConfig) -> Path:
    """A folder name that says what the run is; the time makes it new."""
    time = datetime.now().strftime("%Y-%m-%dT%H-%M-%S.%f")[:-3]
    parts = (config.model.name, config.task.name, "-".join(config.schedules))
    return RUNS / re.sub(r"[^\w.-]+", "_", "_".join((time, *parts)))
