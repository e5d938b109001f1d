"""usage: python -m harness status [PATH ...] [experiment=NAME [KEY=VALUE ...]]

How far every run folder at and below PATH is (default: results/runs), or every cell of an experiment: done, running,
partial, missing, failed with its first error line, damaged, or "other": the folder of a cell that holds a run of
another config. A run goes on with its own command and run_dir=FOLDER,
an experiment with its own command.
"""

from collections import Counter
from collections.abc import Sequence

from harness.cli.arguments import Overrides, Takes, Words
from harness.config.cells import SWEEP, cells_of
from harness.errors import UserError
from harness.records.places import RUNS
from harness.running.status import Status, cell_statuses, statuses
from harness.text import aligned

TAKES = Takes("status", Words(), flags=SWEEP, overrides=Overrides())
HEADER = ("folder", "cell", "responses", "state", "")


def main(arguments: Sequence[str]) -> int:
    """Prints the table and a line of counts."""
    given = TAKES.read(arguments)
    options = [*given.flags, *given.overrides]
    cells = cells_of(options) if options and not given.words else []
    if options and not cells:
        raise UserError(f"status {options[0]}: takes folders, or experiment=NAME of an experiment with several cells.")
    if cells:
        cells[0].config()  # so that a key that no run has is not looked for among folders
    found = cell_statuses(cells) if cells else statuses(given.paths or [RUNS])
    print(status_table(found))
    return 0


def status_table(found: Sequence[Status]) -> str:
    """A line for each run folder, and how many there are in each state."""
    if not found:
        return "no runs there"
    rows = [
        (str(one.path), one.cell, f"{one.recorded}/{one.expected}", one.state, " ".join(one.reason.split())[:160])
        for one in found
    ]
    counts = Counter(one.state for one in found)
    return "\n".join(
        [
            *(line.rstrip() for line in aligned([HEADER, *rows], is_left=[True, True, False, True, True])),
            ", ".join(f"{count} {state}" for state, count in counts.items()),
        ]
    )
