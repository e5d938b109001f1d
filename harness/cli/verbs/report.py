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
from harness.analysis.study.study import read_study
from harness.cli.arguments import parse
from harness.errors import UserError

KEYS = ("out", "schedules", "mix")
OUT = "results/report.html"


def main(arguments: Sequence[str]) -> int:
    """Writes the report."""
    options = parse(arguments, KEYS)
    out = options.one("out", OUT)
    study = read_study(options.paths, options.get("mix"), options.get("schedules"))
    if not study.main and not study.adapters:
        raise UserError("nothing to report: no records. Run something first, as in python -m harness run.")
    for notice in study.notices:
        print(f"notice: {notice}", file=sys.stderr)
    try:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        Path(out).write_text(report(study))
    except OSError as error:
        raise UserError(f"out={out}: cannot be written ({error.strerror}).") from None
    print(out)
    return 0
