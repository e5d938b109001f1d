"""usage: python -m harness compare [PATH ...] [KEY=VALUE ...]

Sets the paper's published numbers beside ours, from the records of all run folders below PATH (default: results/runs,
or results/reference where there are none): published value, our value with its 95 % interval, and inside, outside,
not run, or direction only for another model.

  format=text|csv|markdown|latex   of what is printed
  schedules=NAME,NAME              leave other schedules out
  mix=NAME,NAME                    compare records although these differ: device, dtype, code, engine, prompts, rotary
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from harness.analysis.paper.comparison import comparison_table
from harness.analysis.paper.published import read_published
from harness.analysis.study.grid import NotMeasured
from harness.analysis.table import Table
from harness.cli.arguments import Takes
from harness.cli.keys import Choice
from harness.cli.recorded import MIX, PATHS, SCHEDULES, study_of
from harness.errors import UserError

FORMATS: Mapping[str, Callable[[Table], str]] = {
    "text": Table.text,
    "csv": Table.csv,
    "markdown": Table.markdown,
    "latex": Table.latex,
}
FORMAT = Choice("format", "text", FORMATS, example="csv")
TAKES = Takes("compare", PATHS, (FORMAT, SCHEDULES, MIX))


def main(arguments: Sequence[str]) -> int:
    """Prints the comparison; what was left out goes to stderr."""
    given = TAKES.read(arguments)
    study = study_of(given)
    for notice in study.notices:
        print(f"notice: {notice}", file=sys.stderr)
    try:
        table = comparison_table(study, read_published())
    except NotMeasured as error:
        raise UserError(f"nothing to compare: {error}. Run something first, as in python -m harness run.") from None
    print(FORMATS[given["format"]](table).rstrip("\n"))
    return 0
