"""usage: python -m harness compare [PATH ...] [KEY=VALUE ...]

Sets the paper's published numbers beside ours, from the records of all run folders below PATH (default: results/runs,
or results/reference where there are none): published value, our value with its 95 % interval, and inside, outside,
not run, or direction only for another model.

  format=text|csv|markdown|latex   of what is printed
  schedules=NAME,NAME              leave other schedules out
  mix=NAME,NAME                    compare records although these differ: device, dtype, code, engine, prompts
"""

import sys
from collections.abc import Callable, Mapping, Sequence

from harness.analysis.paper.comparison import comparison_table
from harness.analysis.paper.published import read_published
from harness.analysis.study.grid import NotMeasured
from harness.analysis.study.study import read_study
from harness.analysis.table import Table
from harness.cli.arguments import parse
from harness.errors import UserError, unknown

KEYS = ("format", "schedules", "mix")
FORMATS: Mapping[str, Callable[[Table], str]] = {
    "text": Table.text,
    "csv": Table.csv,
    "markdown": Table.markdown,
    "latex": Table.latex,
}


def main(arguments: Sequence[str]) -> int:
    """Prints the comparison; what was left out goes to stderr."""
    options = parse(arguments, KEYS)
    form = options.one("format", "text")
    if form not in FORMATS:
        raise unknown("format", form, FORMATS)
    study = read_study(options.paths, options.get("mix"), options.get("schedules"))
    for notice in study.notices:
        print(f"notice: {notice}", file=sys.stderr)
    try:
        table = comparison_table(study, read_published())
    except NotMeasured as error:
        raise UserError(f"nothing to compare: {error}. Run something first, as in python -m harness run.") from None
    print(FORMATS[form](table).rstrip("\n"))
    return 0
