"""usage: python -m harness report [PATH ...] [KEY=VALUE ...]

Writes one HTML file with every figure and table, what is missing, and a page for each cell: its methods, where its
numbers come from, and sample outputs with each token's origin, where the run was replayed (python -m harness replay).
The file needs no network. Records are those of all run folders below PATH (default: results/runs, or
results/reference where there are none).

  out=PATH             where to write; results/report.html by default
  schedules=NAME,NAME  leave other schedules out
  mix=NAME,NAME        compare records although these differ: device, dtype, code, engine
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.analysis.report.html import report
from harness.cli.arguments import Takes
from harness.cli.keys import PathKey
from harness.cli.recorded import MIX, PATHS, SCHEDULES, study_of
from harness.errors import UserError

OUT = PathKey("out", Path("results/report.html"), example="report.html")
TAKES = Takes("report", PATHS, (OUT, SCHEDULES, MIX))


def main(arguments: Sequence[str]) -> int:
    """Writes the report."""
    given = TAKES.read(arguments)
    out = given["out"]
    study = study_of(given)
    for notice in study.notices:
        print(f"notice: {notice}", file=sys.stderr)
    if not study.main and not study.adapters:
        why = "no records could be compared, see above." if study.runs else "no records."
        raise UserError(f"nothing to report: {why} Run something first, as in python -m harness run.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(report(study))
    except OSError as error:
        raise UserError(f"out={out}: cannot be written ({error.strerror}).") from None
    print(out)
    return 0
