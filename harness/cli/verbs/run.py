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

import sys
import traceback
from collections.abc import Sequence

from harness.cli.arguments import Overrides, Takes
from harness.cli.closing_table import closing_table
from harness.cli.notices import show_notices
from harness.cli.progress import Progress
from harness.cli.verbs.status import status_table
from harness.config.cells import SWEEP, PlannedCell, cells_of, hydra_settings
from harness.config.compose import compose
from harness.config.run_config import RunConfig
from harness.errors import UserError
from harness.records.folder import RunFolder
from harness.running.run import run
from harness.running.status import cell_statuses

DRY_RUN = "--dry-run"
TAKES = Takes("run", flags=(DRY_RUN, *SWEEP), overrides=Overrides())


def main(arguments: Sequence[str]) -> int:
    """Runs one cell, or all cells of an experiment or a sweep."""
    given = TAKES.read(arguments)
    cells = cells_of([*(flag for flag in given.flags if flag in SWEEP), *given.overrides])
    if DRY_RUN in given.flags:
        # It asks the analysis for seconds that the paper states, which no run waits for.
        from harness.cli.dry_run import dry_run

        print(dry_run(cells or [PlannedCell(given.overrides)]))
    elif cells:
        _run_all(cells, hydra_settings(given.overrides))
    else:
        run_and_show(compose(given.overrides))
    return 0


def run_and_show(config: RunConfig) -> None:
    """Runs a cell with a progress bar, and prints its table."""
    finished = run(config, Progress(config.samples))
    print(closing_table(finished.summary, finished.expected))
    print(f"records: {finished.folder.records_file}")


def _run_all(cells: Sequence[PlannedCell], settings: Sequence[str]) -> None:
    """Runs `cells` and prints how each of them ended.

    Raises:
      UserError: some are not done.
    """
    from harness.running.sweep import sweep

    total = len(cells)
    sweep(cells, settings, lambda number, cell, config: _run_cell(f"{number} of {total}", cell, config))
    found = cell_statuses(cells)
    print(status_table(found))
    undone = sum(one.state != "done" for one in found)
    if undone:
        raise UserError(
            f"{undone} of {len(found)} cells are not done, see above. "
            f"The same command with run_dir={cells[0].parent} runs what is missing."
        )


def _run_cell(which: str, cell: PlannedCell, config: RunConfig) -> None:
    """One cell, in this process or in one that a launcher has started; how it failed stays in its folder."""
    show_notices()
    print(f"\n== cell {which}: {' '.join(cell.overrides)}", file=sys.stderr)
    try:
        run_and_show(config)
    except UserError as error:
        RunFolder(cell.folder).failed(str(error))
        print(f"PARTIAL: not run: {error}", file=sys.stderr)
    except Exception as error:
        RunFolder(cell.folder).failed(f"{type(error).__name__}: {error}")
        traceback.print_exc()
