"""usage: python -m harness figures [PATH ...] [KEY=VALUE ...]

Makes every figure and table of the paper from the records of all run folders below PATH (default: results/runs, or
results/reference where there are none).

  out=PATH             where to write; results/figures by default
  only=NAME,NAME       single ones, as in only=figure3,table06
  schedules=NAME,NAME  leave other schedules out
  mix=NAME,NAME        compare records although these differ: device, dtype, code, engine, prompts, rotary

Figures come as PNG and PDF, tables as CSV, Markdown and LaTeX; index.md lists them. What cannot be made from the
records says what is missing; the exit status is 0 unless nothing could be made.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.analysis.catalogue import INDEX, make
from harness.cli.arguments import Takes
from harness.cli.keys import Names, PathKey
from harness.cli.recorded import MIX, PATHS, SCHEDULES, study_of

OUT = PathKey("out", Path("results/figures"))
ONLY = Names("only", example="figure3,table06")
TAKES = Takes("figures", PATHS, (OUT, ONLY, SCHEDULES, MIX))


def main(arguments: Sequence[str]) -> int:
    """Makes figures and tables, prints what was made, and says on stderr what is missing."""
    given = TAKES.read(arguments)
    study = study_of(given)
    made = make(study, given["out"], given["only"])
    for notice in study.notices:
        print(f"notice: {notice}", file=sys.stderr)
    for one in made:
        if one.missing:
            print(f"missing: {one.product.name} ({one.product.what}): {one.missing}", file=sys.stderr)
    for one in made:
        for path in one.files:
            print(path)
    if not given["only"]:
        print(given["out"] / INDEX)
    return 0
