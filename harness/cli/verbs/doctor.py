"""usage: python -m harness doctor [KEY=VALUE ...]

Looks at what runs need: device, driver and libraries, evalplus and its sandbox, memory and files of models, data sets,
disk. One line each: ok, warning, or fails with what to do. Exit status 1 where something fails.

  model=NAME,... task=NAME,...   look at these only; otherwise at all of them
  KEY=VALUE                      as for a run, such as model.path=FOLDER or task.data_files=PATH
"""

from collections.abc import Sequence

from harness.cli.arguments import Overrides, Takes
from harness.cli.keys import Names
from harness.config.compose import names
from harness.running.doctor import FAILS, examine
from harness.text import aligned

MODELS, TASKS = Names("model", example="nemotron8b"), Names("task", example="gsm8k,mbpp")
TAKES = Takes("doctor", keys=(MODELS, TASKS), overrides=Overrides())


def main(arguments: Sequence[str]) -> int:
    """Prints the findings."""
    given = TAKES.read(arguments)
    findings = list(examine(given["model"] or names("model"), given["task"] or names("task"), given.overrides))
    rows = [(finding.status, finding.what, finding.says) for finding in findings]
    print("\n".join(aligned(rows, is_left=[True] * 3)))
    return int(any(finding.status == FAILS for finding in findings))
